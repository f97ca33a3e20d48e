//! The choice of an algorithm for the bits of megaflows.

use std::fmt;
use std::str::FromStr;

/// An algorithm that chooses the bits of a packet that a megaflow matches on.
///
/// ```
/// use classyard_datapath::MegaflowBits;
///
/// let bits: MegaflowBits = "prefix-tree".parse().unwrap();
/// assert_eq!(bits, MegaflowBits::PrefixTree);
/// let error = "tree".parse::<MegaflowBits>().unwrap_err();
/// assert!(error.to_string().contains("prefix-tree"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MegaflowBits {
    /// Planned masks, if a table has a plan. Otherwise agreement trees, which follow every
    /// change of the table.
    #[default]
    Auto,
    /// All mask bits of all entries of higher priority ([FCH14] §2).
    ///
    /// [FCH14]: classyard::papers#fch14
    Naive,
    /// One bit that differs from all entries of higher priority, if there is one; otherwise as
    /// [`MultiBit`](Self::MultiBit) ([FCH14] §4).
    ///
    /// [FCH14]: classyard::papers#fch14
    CommonMatch,
    /// One bit for each of a few groups of entries ([FCH14] §4).
    ///
    /// [FCH14]: classyard::papers#fch14
    MultiBit,
    /// The longest prefix that some entry shares, and the next bit ([FCH14] §4).
    ///
    /// [FCH14]: classyard::papers#fch14
    PrefixTree,
    /// Few megaflows with at most 32 masks, planned when entries have changed.
    FewestMasks,
}

impl MegaflowBits {
    /// All algorithms.
    pub const ALL: [MegaflowBits; 6] = [
        MegaflowBits::Auto,
        MegaflowBits::Naive,
        MegaflowBits::CommonMatch,
        MegaflowBits::MultiBit,
        MegaflowBits::PrefixTree,
        MegaflowBits::FewestMasks,
    ];

    /// Returns the name of the algorithm, such as `prefix-tree`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MegaflowBits::Auto => "auto",
            MegaflowBits::Naive => "naive",
            MegaflowBits::CommonMatch => "common-match",
            MegaflowBits::MultiBit => "multi-bit",
            MegaflowBits::PrefixTree => "prefix-tree",
            MegaflowBits::FewestMasks => "fewest-masks",
        }
    }
}

impl fmt::Display for MegaflowBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of an unknown name of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown algorithm `{name}`; expected {}", MegaflowBits::ALL.map(MegaflowBits::name).join(", "))]
pub struct UnknownMegaflowBits {
    name: String,
}

impl FromStr for MegaflowBits {
    type Err = UnknownMegaflowBits;

    fn from_str(name: &str) -> Result<MegaflowBits, UnknownMegaflowBits> {
        let mut algorithms = MegaflowBits::ALL.into_iter();
        let algorithm = algorithms.find(|bits| bits.name() == name);
        algorithm.ok_or_else(|| UnknownMegaflowBits {
            name: name.to_owned(),
        })
    }
}
