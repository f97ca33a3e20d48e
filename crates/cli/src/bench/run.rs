//! A run's version, processor, seed and command, which are needed to repeat it and
//! to judge its figures.

use std::fs;
use std::io::{self, Write};

use serde::Serialize;

use crate::command_line;

/// The run that figures come from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    /// The version of this program.
    version: &'static str,
    /// The processor's name, as the system reports it.
    processor: String,
    /// The seed of the random numbers.
    seed: u64,
    /// The command line.
    command: &'static str,
}

/// A row that has been measured.
pub(crate) trait Finished: Serialize {
    /// Returns a summary in one line.
    fn summary(&self) -> String;
}

impl Run {
    /// Describes this run.
    pub(crate) fn now(seed: u64) -> Run {
        Run {
            version: env!("CARGO_PKG_VERSION"),
            processor: processor(),
            seed,
            command: command_line::text(),
        }
    }

    /// Returns the run as columns for all rows.
    pub(crate) fn columns(&self) -> Vec<(&'static str, String)> {
        vec![
            ("version", self.version.to_owned()),
            ("processor", self.processor.clone()),
            ("seed", self.seed.to_string()),
            ("command", self.command.to_owned()),
        ]
    }

    /// Writes the run for people.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Run {
            version,
            processor,
            seed,
            command,
        } = self;
        writeln!(
            out,
            "classyard {version}, {processor}, seed {seed}: {command}"
        )
    }
}

/// Returns the processor's name, or its architecture if the system reports no name.
pub(crate) fn processor() -> String {
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named(&information).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the processor's name from Linux's `/proc/cpuinfo`: x86 has a name, ARM
/// has numbers for its manufacturer and its part.
fn named(information: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = information.lines().filter_map(|line| line.split_once(':'));
        let line = lines.find(|(name, _)| name.trim() == key);
        line.map(|(_, value)| value.trim().to_owned())
    };
    let numbers = || {
        let (maker, part) = (value("CPU implementer")?, value("CPU part")?);
        let architecture = std::env::consts::ARCH;
        Some(format!("{architecture} implementer {maker} part {part}"))
    };
    let name = value("model name").filter(|name| !name.is_empty());
    name.or_else(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_names_or_numbers() {
        let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9R14\n";
        assert_eq!(named(x86).as_deref(), Some("AMD EPYC 9R14"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert!(named(arm).unwrap().ends_with("implementer 0x41 part 0xd40"));
        assert_eq!(named(""), None);
        assert!(!processor().is_empty());
    }
}
