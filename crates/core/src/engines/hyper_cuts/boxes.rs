//! Boxes of nodes, and the parts of a cut box that rules are in.

use super::node::Cut;
use crate::parts::tree::{Entry, Grid, Side};

/// The parts of a field that a rule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// The first and the last part.
    pub(super) parts: [usize; 2],
    /// True for the first and the last part, if the rule matches all of its values.
    covers: [bool; 2],
    /// True if the rule matches all values of the parts between.
    covers_inner: bool,
}

impl Parts {
    /// The parts of a field that is not cut.
    pub(super) const ONE: Parts = Parts {
        parts: [0, 0],
        covers: [true; 2],
        covers_inner: true,
    };

    /// True if the rule matches all values of one of its parts.
    #[inline(always)]
    pub(super) fn covers(&self, part: usize) -> bool {
        self.covers_inner
            && (part > self.parts[0] || self.covers[0])
            && (part < self.parts[1] || self.covers[1])
    }
}

impl Cut {
    /// The number of parts.
    pub(super) fn count(&self) -> usize {
        1 << self.bits
    }

    /// Returns the parts that a rule is in.
    pub(super) fn parts(&self, grid: &Grid, side: &Side, entry: &Entry) -> Parts {
        if entry.open >> self.field & 1 == 0 {
            return Parts {
                parts: [0, self.count() - 1],
                covers: [true; 2],
                covers_inner: true,
            };
        }
        let [low, high] = grid.values(self.field, grid.span(entry.place, self.field));
        let [low, high] = [low.max(side.base), high.min(side.last())];
        let part = |value: u128| {
            usize::try_from((value - side.base) >> self.shift).expect("at most 12 bits")
        };
        let inner = (1 << self.shift) - 1;
        Parts {
            parts: [part(low), part(high)],
            covers: [low & inner == 0, high & inner == inner],
            covers_inner: !grid.has_holes(entry.place, self.field),
        }
    }

    /// Returns the smallest box of equal bits that contains two of the parts.
    pub(super) fn hull(&self, grid: &Grid, side: &Side, [first, last]: [usize; 2]) -> Side {
        let start = |part: usize| side.base + ((part as u128) << self.shift);
        let last_value = start(last) + ((1 << self.shift) - 1);
        Side::around(grid, self.field, start(first), last_value)
    }
}
