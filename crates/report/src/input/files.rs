//! Checks on input files: rules given once, with or without their flag, and at most
//! one file from standard input.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::output::file::is_dash;

/// The file of rules, as a positional argument or with its flag.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(id = "rules_given", multiple = false)]
pub struct RulesFile {
    /// The rules; - for standard input, gzip is unpacked
    #[arg(value_name = "RULES", help_heading = "Input")]
    rules_file: Option<PathBuf>,

    /// The rules, the same as RULES
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    rules: Option<PathBuf>,
}

impl RulesFile {
    /// Returns the file, if one was given.
    pub fn path(&self) -> Option<&Path> {
        self.rules.as_deref().or(self.rules_file.as_deref())
    }
}

/// Returns an error if several files are standard input.
///
/// # Errors
/// [`Failure::Usage`] with the names of these files.
pub fn only_one_from_stdin(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let from_stdin = files.iter().filter(|(_, path)| path.is_some_and(is_dash));
    let names: Vec<&str> = from_stdin.map(|&(name, _)| name).collect();
    match names.as_slice() {
        [] | [_] => Ok(()),
        [one, other] => Err(Failure::usage(format!(
            "{one} and {other} both come from standard input; only one can"
        ))),
        [others @ .., last] => Err(Failure::usage(format!(
            "{} and {last} all come from standard input; only one can",
            others.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_from_standard_input_are_named() {
        let dash = Some(Path::new("-"));
        let said = |files: &[_]| match only_one_from_stdin(files) {
            Err(Failure::Usage { message, .. }) => message,
            _ => String::new(),
        };
        assert_eq!(said(&[("rules", dash), ("trace", None)]), "");
        assert_eq!(
            said(&[("rules", dash), ("trace", Some(Path::new("t")))]),
            ""
        );
        assert_eq!(
            said(&[("rules", dash), ("capture", dash), ("trace", None)]),
            "rules and capture both come from standard input; only one can"
        );
        assert_eq!(
            said(&[("a", dash), ("b", dash), ("c", dash)]),
            "a, b and c all come from standard input; only one can"
        );
    }
}
