//! What a paper claims, what was measured, and whether it holds.

/// Whether a claim holds here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// And what does not.
    InPart(String),
    /// And why, if that is known.
    Fails(String),
    /// And what is missing for it.
    NotMeasured(String),
}

impl Verdict {
    /// It holds, or else does not, and why.
    pub(super) fn of(holds: bool, why: &str) -> Verdict {
        match holds {
            true => Verdict::Holds,
            false => Verdict::Fails(why.to_owned()),
        }
    }

    /// It holds for all, for some or for none; `which` names those for which it
    /// does not.
    pub(super) fn for_most(holding: usize, all: usize, which: &str) -> Verdict {
        match holding {
            _ if holding == all => Verdict::Holds,
            0 => Verdict::Fails(which.to_owned()),
            _ => Verdict::InPart(which.to_owned()),
        }
    }

    /// In a word or three.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::InPart(_) => "holds in part",
            Verdict::Fails(_) => "does not hold here",
            Verdict::NotMeasured(_) => "not measured",
        }
    }

    /// With the reason.
    pub(super) fn text(&self) -> String {
        match self {
            Verdict::Holds => self.word().to_owned(),
            Verdict::InPart(why) | Verdict::Fails(why) | Verdict::NotMeasured(why) => {
                format!("{}: {why}", self.word())
            }
        }
    }
}

/// A claim of a paper, and what was found.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Where the paper says it: `Fig. 5a`.
    pub(super) place: &'static str,
    pub(super) paper: &'static str,
    pub(super) measured: String,
    pub(super) verdict: Verdict,
}

/// Rows of figures for people.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) title: String,
    pub(super) columns: Vec<String>,
    /// Columns of words before those of numbers.
    pub(super) words: usize,
    pub(super) rows: Vec<Vec<String>>,
}

/// A figure or table of a paper, drawn anew.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// How it was measured, and what differs from the paper.
    pub(super) method: String,
    pub(super) claims: Vec<Claim>,
    pub(super) grids: Vec<Grid>,
    /// Names of pictures in the folder.
    pub(super) pictures: Vec<String>,
}
