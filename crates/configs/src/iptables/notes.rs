//! Notes with names of sets or chains.

use std::collections::{BTreeMap, BTreeSet};

use classyard_text::line::quoted;

use crate::builder::Builder;

/// The maximum number of names in a note.
const MAX_NOTED_NAMES: usize = 5;

/// An assumption about sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SetNote {
    Expires,
    FewDirections,
    Changed,
    NotModelled,
    Absent,
}

impl SetNote {
    fn sentence(self) -> &'static str {
        match self {
            SetNote::Expires => "elements of sets expire; they were read as they were saved",
            SetNote::FewDirections => {
                "rules give sets fewer directions than their elements have fields, so no \
                 packet is in the set"
            }
            SetNote::Changed => "rules change sets; the sets were read as they were saved",
            SetNote::NotModelled => {
                "sets have elements that no field expresses; their matches are conditions"
            }
            SetNote::Absent => {
                "sets are not in the file (put the output of ipset save before the rules); \
                 their matches are conditions"
            }
        }
    }
}

/// The sets of each assumption.
#[derive(Debug, Default)]
pub(super) struct SetNotes<'t> {
    names: BTreeMap<SetNote, BTreeSet<&'t str>>,
}

impl<'t> SetNotes<'t> {
    /// Records an assumption about a set.
    pub(super) fn add(&mut self, note: SetNote, set: &'t str) {
        self.names.entry(note).or_default().insert(set);
    }

    /// Adds a note for each assumption.
    pub(super) fn write(&self, builder: &mut Builder<'_>) {
        for (note, names) in &self.names {
            builder.note(format!("{}: {}", note.sentence(), shown(names)));
        }
    }
}

/// Returns names in backticks with commas between them, and the number of further names.
pub(super) fn shown<'n>(names: impl IntoIterator<Item = &'n &'n str>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<String> = names
        .by_ref()
        .take(MAX_NOTED_NAMES)
        .map(|name| quoted(name))
        .collect();
    let shown = shown.join(", ");
    match names.count() {
        0 => shown,
        count => format!("{shown} and {count} more"),
    }
}
