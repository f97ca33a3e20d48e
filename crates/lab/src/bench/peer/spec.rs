//! Names of peers, and the search for their programs.

use std::fmt;
use std::path::{Path, PathBuf};

use classyard_report::failure::Failure;
use classyard_report::suggestion::did_you_mean;

/// The peers that `bench/peers/build` can build.
const KNOWN: [&str; 1] = ["rte_acl"];

/// `NAME[=PROGRAM][:OPTION=VALUE,...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerSpec {
    name: String,
    program: Option<PathBuf>,
    options: Vec<String>,
}

impl PeerSpec {
    /// Parses a specification, for the argument parser.
    pub(crate) fn parse(text: &str) -> Result<PeerSpec, String> {
        let (who, options) = text.split_once(':').unwrap_or((text, ""));
        let (name, program) = match who.split_once('=') {
            Some((name, program)) => (name, Some(PathBuf::from(program))),
            None => (who, None),
        };
        if program.is_none() && !KNOWN.contains(&name) {
            let hint = did_you_mean(name, KNOWN);
            return Err(format!(
                "unknown peer `{name}`; expected {}, or {name}=PROGRAM for another program{hint}",
                KNOWN.join(", ")
            ));
        }
        let options = options.split(',').filter(|option| !option.is_empty());
        let options: Vec<String> = options.map(str::to_owned).collect();
        match options.iter().find(|option| !option.contains('=')) {
            Some(option) => Err(format!("the option `{option}` lacks =VALUE")),
            None => Ok(PeerSpec {
                name: name.to_owned(),
                program,
                options,
            }),
        }
    }

    /// Returns the peer's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its options, as `key=value`.
    pub(crate) fn options(&self) -> &[String] {
        &self.options
    }

    /// Returns the name of a result row.
    pub(crate) fn label(&self, algorithm: &str) -> String {
        let mut label = format!("{}:{algorithm}", self.name);
        for option in &self.options {
            label.push_str(&format!(",{option}"));
        }
        label
    }

    /// Returns this specification with the path of its program, if it has been built.
    ///
    /// # Errors
    /// A message that says how to build it.
    pub(crate) fn find(&self) -> Result<PeerSpec, Failure> {
        let program = match &self.program {
            Some(program) => Some(program.clone()).filter(|path| path.is_file()),
            None => places()
                .map(|place| place.join(&self.name))
                .find(|path| path.is_file()),
        };
        match (program, &self.program) {
            (Some(program), _) => Ok(PeerSpec {
                program: Some(program),
                ..self.clone()
            }),
            (None, Some(named)) => Err(Failure::usage(format!(
                "the peer `{}` has no program {}",
                self.name,
                named.display()
            ))),
            (None, None) => Err(Failure::usage(format!(
                "the peer `{}` is not built: no target/peers/{0} here or above",
                self.name
            ))
            .with_help(format!(
                "in the repository, run `bench/peers/build {}`; or name the program: --peer {0}=PROGRAM",
                self.name
            ))),
        }
    }

    /// Returns the program that [`PeerSpec::find`] found.
    pub(super) fn program(&self) -> &Path {
        self.program.as_deref().unwrap_or(Path::new(&self.name))
    }
}

impl fmt::Display for PeerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, option) in self.options.iter().enumerate() {
            write!(f, "{}{option}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

/// Returns the folders where peers' programs may be: next to the folder of this
/// program (`target/release` or similar), and in `target` of the current folder and
/// its parents.
fn places() -> impl Iterator<Item = PathBuf> {
    let this = std::env::current_exe().unwrap_or_default();
    let beside: Vec<_> = this
        .ancestors()
        .skip(2)
        .take(1)
        .map(Path::to_owned)
        .collect();
    let current_folder = std::env::current_dir().unwrap_or_default();
    let above: Vec<_> = current_folder
        .ancestors()
        .map(|folder| folder.join("target"))
        .collect();
    beside
        .into_iter()
        .chain(above)
        .map(|folder| folder.join("peers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read() {
        let spec = PeerSpec::parse("rte_acl:pages=4k,memory=100").unwrap();
        assert_eq!(spec.to_string(), "rte_acl:pages=4k,memory=100");
        assert_eq!(spec.label("sse"), "rte_acl:sse,pages=4k,memory=100");
        assert_eq!(
            PeerSpec::parse("rte_acl").unwrap().label("sse"),
            "rte_acl:sse"
        );
        let with_program = PeerSpec::parse("mine=/bin/mine:a=b").unwrap();
        assert_eq!(with_program.program(), Path::new("/bin/mine"));
        assert_eq!(
            (with_program.name(), with_program.options()),
            ("mine", &["a=b".to_owned()][..])
        );
        assert!(
            PeerSpec::parse("rte_alc")
                .unwrap_err()
                .contains("did you mean `rte_acl`")
        );
        assert!(
            PeerSpec::parse("rte_acl:pages")
                .unwrap_err()
                .contains("`pages`")
        );
    }
}
