//! Claims of papers, their measured values and verdicts.

/// The verdict on a claim on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// With the part that does not hold.
    InPart(String),
    /// With the reason, if known.
    Fails(String),
    /// With the missing measurement.
    NotMeasured(String),
}

impl Verdict {
    /// Returns [`Verdict::Holds`] or [`Verdict::Fails`] with the reason.
    pub(super) fn of(holds: bool, why: &str) -> Verdict {
        match holds {
            true => Verdict::Holds,
            false => Verdict::Fails(why.to_owned()),
        }
    }

    /// The verdict on `all` cases if `holding` of them hold; `which` names the others.
    pub(super) fn for_most(holding: usize, all: usize, which: &str) -> Verdict {
        match holding {
            _ if holding == all => Verdict::Holds,
            0 => Verdict::Fails(which.to_owned()),
            _ => Verdict::InPart(which.to_owned()),
        }
    }

    /// The verdict in one to four words.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::InPart(_) => "holds in part",
            Verdict::Fails(_) => "does not hold here",
            Verdict::NotMeasured(_) => "not measured",
        }
    }

    /// The verdict with the reason.
    pub(super) fn text(&self) -> String {
        match self {
            Verdict::Holds => self.word().to_owned(),
            Verdict::InPart(why) | Verdict::Fails(why) | Verdict::NotMeasured(why) => {
                format!("{}: {why}", self.word())
            }
        }
    }
}

/// A claim of a paper, with its measured value and verdict.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The place in the paper: `Fig. 5a`.
    pub(super) place: &'static str,
    pub(super) paper: &'static str,
    pub(super) measured: String,
    pub(super) verdict: Verdict,
}

/// A table of measured values for readers.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) title: String,
    pub(super) columns: Vec<String>,
    /// The number of leading text columns; the others have numbers.
    pub(super) words: usize,
    pub(super) rows: Vec<Vec<String>>,
}

/// A reproduced figure or table of a paper.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// The method of measurement, and its differences from the paper.
    pub(super) method: String,
    pub(super) claims: Vec<Claim>,
    pub(super) grids: Vec<Grid>,
    /// Names of pictures in the folder.
    pub(super) pictures: Vec<String>,
}
