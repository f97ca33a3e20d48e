//! Names in notes.

use std::fmt;

/// The maximum number of names that a note shows.
const SHOWN_NAMES: usize = 5;

/// A list of names; a note shows the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    shown: Vec<String>,
    count: usize,
}

impl Names {
    /// Adds a name.
    pub(crate) fn add(&mut self, name: impl Into<String>) {
        if self.shown.len() < SHOWN_NAMES {
            self.shown.push(name.into());
        }
        self.count += 1;
    }

    /// The number of names.
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

/// The names with commas between them; `…` stands for names that are not shown.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown.join(", "))?;
        match self.count > self.shown.len() {
            true => f.write_str(", …"),
            false => Ok(()),
        }
    }
}
