//! The prices of work on this machine: the `--machine` flag and its default file,
//! for commands that estimate.

use std::fs;
use std::path::{Path, PathBuf};

use classyard::machine::Machine;
use classyard_workload::diagnostic::ReadError;
use classyard_workload::limits::FileLimit;

mod file;
mod processor;

pub use file::{Calibration, today};
pub use processor::processor;

use crate::failure::Failure;
use crate::input::read_text;
use crate::output::file::to_file;
use crate::reporter::Reporter;

/// The flag of commands that estimate.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MachineArgs {
    /// Use the prices in this file, which `classyard calibrate` wrote, or `default`
    /// for the built-in ones
    ///
    /// Without the flag, commands read $XDG_CONFIG_HOME/classyard/machine.toml or
    /// ~/.config/classyard/machine.toml, if it exists.
    #[arg(long, value_name = "FILE", help_heading = "Estimates")]
    machine: Option<PathBuf>,
}

/// The word for the built-in prices.
const DEFAULT: &str = "default";

/// A machine and its source.
pub struct KnownMachine {
    /// The prices of work.
    pub machine: Machine,
    /// The calibrated processor; `None` for the built-in prices.
    pub processor: Option<String>,
    /// The file's path, or `default`.
    pub source: String,
}

impl MachineArgs {
    /// Returns the requested machine, or the machine in the default file.
    ///
    /// Warns if the file describes another processor. A requested file is used even
    /// so; the default file is not.
    ///
    /// # Errors
    /// [`Failure`] with line and column if a file is invalid, and if a requested file
    /// does not exist.
    pub fn load(&self, reporter: Reporter) -> Result<KnownMachine, Failure> {
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
        let this_processor = processor();
        if calibration.processor != this_processor {
            let mismatch = format!(
                "{} was calibrated on another processor, {}; this one is {this_processor}",
                path.display(),
                calibration.processor
            );
            if self.machine.is_none() {
                reporter.warn(&format!(
                    "{mismatch}. Estimates use the built-in prices instead; `classyard calibrate` \
                     measures this machine, and --machine {} uses the file anyway",
                    path.display()
                ));
                return Ok(built_in());
            }
            reporter.warn(&format!(
                "{mismatch}, so estimates describe that processor; `classyard calibrate` \
                 measures this machine"
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

/// Writes a file and creates its folder if needed.
///
/// # Errors
/// [`Failure`] names the file.
pub fn write(path: &Path, calibration: &Calibration) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    }
    let text = calibration.to_toml();
    to_file(path, |out| Ok(out.write_all(text.as_bytes())?))
}

/// Returns the default path of the machine file, or `None` if there is no home
/// directory.
pub fn default_place() -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("classyard").join("machine.toml"))
}
