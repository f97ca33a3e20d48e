//! A run's version, processor, seed and command, which are needed to repeat it and
//! to judge its figures.

use std::io::{self, Write};

use serde::Serialize;

use crate::command_line;
use crate::machine::processor;

/// The run that figures come from.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
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
pub trait Finished: Serialize {
    /// Returns a summary in one line.
    fn summary(&self) -> String;
}

impl Run {
    /// Describes this run.
    pub fn now(seed: u64) -> Run {
        Run {
            version: env!("CARGO_PKG_VERSION"),
            processor: processor(),
            seed,
            command: command_line::text(),
        }
    }

    /// Returns the run as columns for all rows.
    pub fn columns(&self) -> Vec<(&'static str, String)> {
        vec![
            ("version", self.version.to_owned()),
            ("processor", self.processor.clone()),
            ("seed", self.seed.to_string()),
            ("command", self.command.to_owned()),
        ]
    }

    /// Writes the run for people.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
