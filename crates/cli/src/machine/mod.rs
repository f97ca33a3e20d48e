//! What work costs on this machine: the flag and the default file of commands that
//! estimate.

use std::fs;
use std::path::{Path, PathBuf};

use classyard::machine::Machine;
use classyard_workload::diagnostic::ReadError;
use classyard_workload::limits::FileLimit;

mod file;

pub(crate) use file::{Calibration, today};

use crate::bench::processor;
use crate::failure::Failure;
use crate::input::read_text;
use crate::output::file::to_file;
use crate::reporter::Reporter;

/// The flag of commands that estimate.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MachineArgs {
    /// What work costs here: a file that `classyard calibrate` wrote, or `default`
    /// for what is built in
    ///
    /// Without it, the file in the default place is taken if there is one:
    /// $XDG_CONFIG_HOME/classyard/machine.toml, or
    /// ~/.config/classyard/machine.toml.
    #[arg(long, value_name = "FILE", help_heading = "Estimates")]
    machine: Option<PathBuf>,
}

/// The word for what is built in.
const DEFAULT: &str = "default";

/// A machine, and where it is from.
pub(crate) struct KnownMachine {
    pub(crate) machine: Machine,
    /// The processor that was calibrated; `None` of what is built in.
    pub(crate) processor: Option<String>,
    /// The file, or `default`.
    pub(crate) source: String,
}

impl MachineArgs {
    /// The machine that is asked for, or that of the default place.
    ///
    /// A file of another processor is taken with a warning if it was asked for. In
    /// the default place it is not taken, with a warning as well.
    ///
    /// # Errors
    /// [`Failure`] with line and column for a file that says no machine, and for
    /// one that was asked for and is not there.
    pub(crate) fn load(&self, reporter: Reporter) -> Result<KnownMachine, Failure> {
        let built_in = || KnownMachine {
            machine: Machine::default(),
            processor: None,
            source: DEFAULT.to_owned(),
        };
        let path = match &self.machine {
            Some(word) if word == Path::new(DEFAULT) => return Ok(built_in()),
            Some(path) => path.clone(),
            None => match default_place() {
                Some(path) if path.exists() => path,
                _ => return Ok(built_in()),
            },
        };
        let calibration = read(&path)?;
        let here = processor();
        if calibration.processor != here {
            let found = format!(
                "{} was calibrated on another processor, {}; this one is {here}",
                path.display(),
                calibration.processor
            );
            if self.machine.is_none() {
                reporter.warn(&format!(
                    "{found}. Estimates take what is built in instead; `classyard calibrate` \
                     measures this machine, and --machine {} takes the file all the same",
                    path.display()
                ));
                return Ok(built_in());
            }
            reporter.warn(&format!(
                "{found}, so estimates are of that one; `classyard calibrate` measures this \
                 machine"
            ));
        }
        Ok(KnownMachine {
            machine: calibration.machine,
            processor: Some(calibration.processor),
            source: path.display().to_string(),
        })
    }
}

/// Reads a file.
fn read(path: &Path) -> Result<Calibration, ReadError> {
    let text = read_text(path, FileLimit::PROFILE)?;
    Calibration::from_toml(&path.display().to_string(), &text)
}

/// Writes a file, its folder included.
///
/// # Errors
/// [`Failure`] names the file.
pub(crate) fn write(path: &Path, calibration: &Calibration) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    }
    let text = calibration.to_toml();
    to_file(path, |out| Ok(out.write_all(text.as_bytes())?))
}

/// Where the machine is looked for; nothing where there is no home.
pub(crate) fn default_place() -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("classyard").join("machine.toml"))
}
