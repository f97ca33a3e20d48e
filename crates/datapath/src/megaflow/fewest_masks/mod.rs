//! Fewest masks: as few flows as common match, with a bounded number of masks.
//!
//! # Idea
//! Common match makes few flows, but with thousands of masks, and a cache in tuple space
//! probes one table for each mask. The decision tree has one mask for each length, but
//! many flows. This heuristic chooses the masks from the rules, before packets come: at
//! most `most` masks, such that few flows with these masks cover all packets that no rule
//! matches. The flow of a packet is then looked up.
//!
//! # Data layout
//! ```text
//! plan      if rules have up to 16 mask bits: for each value of these bits the mask of
//!           its flow, one byte each (64 KiB at most)
//! in use    the masks of flows, at most `most`
//! ```
//!
//! # Making the plan
//! Every value that no rule matches is a free point. A *cell* of a mask holds the points
//! that have the same bits under the mask; it is one possible flow. A cell is free if no
//! rule matches any of its points. The plan is a small set of free cells with few masks
//! that hold all free points (module `plan`):
//!
//! ```text
//! 1. masks:     repeatedly choose the mask whose free cells hold most points that no
//!               earlier mask holds, minus λ for each cell; λ falls from points per rule to 1
//! 2. cells:     repeatedly choose the free cell of these masks with the most points not
//!               yet held (greedy set cover); then drop cells whose points other cells
//!               hold; points that no cell holds get exact flows
//! 3. exchange:  replace a mask that saves few flows by the mask that would save the most,
//!               where each point of a cell of n points is worth 1/n flow; keep the
//!               change if there are fewer flows
//! ```
//!
//! # Lookup
//! ```text
//! if there is a plan and no bit is wanted yet: the mask of the packet's point
//! else: the mask in use with the fewest bits that has all wanted bits and distinguishes
//!       the packet from all rules above;
//!       if there is none: multi-bit common match, while fewer than most - 1 masks are used;
//!       then all mask bits of the rules, which is the last mask
//! ```
//!
//! # Cost
//! With a plan, a packet costs a lookup of up to 16 bits in an array of bytes. Without a
//! plan, O(most × n W). On one core, the plan takes 3 s for 10,000 random ports and 1 s
//! for ten. It is made when the rules change, on a thread that has time.
//!
//! # Where we differ from the paper, and why
//! The algorithm is ours. The paper leaves the choice between few masks (decision tree)
//! and few flows (common match) to the reader (§6). `classyard reproduce fch14` measures
//! all three. A plan enumerates all values of the mask bits, so it is limited to 16 bits:
//! the paper's high-entropy field is a port. Rules with more mask bits get masks of
//! common match, up to the bound.
//!
//! # References
//! [FCH14] §4 to §6 for the two algorithms that it is compared with.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use super::{Heuristic, MultiBit, TooMuchWork, add, and, is_empty, looked_at, tells_apart};
use crate::header_space::Term;
pub(crate) use plan::PlannedPoints;

mod plan;

/// The default maximum number of masks. The paper's decision tree has 14 for ten random
/// ports, fewer for more ports, and 12 and 15 for its providers' lists; this is twice
/// that.
pub const MOST_MASKS: usize = 32;

/// The default number of exchanges that are tried. At 5,000 random ports, where the
/// margin is smallest, this gives clearly fewer flows than common match
/// (`classyard reproduce fch14`, November 2026).
pub const EXCHANGES: usize = 48;

/// Flows with a bounded number of masks.
#[derive(Clone, Debug)]
pub struct FewestMasks<const W: usize> {
    rules: Arc<[Term<W>]>,
    looked_at: [u64; W],
    planned: Option<PlannedPoints<W>>,
    /// Masks of flows, restricted to the rules' mask bits. The mask of all these bits is
    /// not listed; there is always room for it.
    in_use: Vec<[u64; W]>,
    most: usize,
    multi_bit: MultiBit<W>,
}

impl<const W: usize> FewestMasks<W> {
    /// Returns the heuristic for the rules of a table, the highest priority first, with
    /// [`MOST_MASKS`] and [`EXCHANGES`].
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>) -> FewestMasks<W> {
        FewestMasks::with_masks(rules, MOST_MASKS, EXCHANGES)
    }

    /// Returns the heuristic with at most `most` masks (at least 1) and a number of tried
    /// exchanges. Masks that differ only outside of the rules' mask bits count as one.
    #[must_use]
    pub fn with_masks(rules: Arc<[Term<W>]>, most: usize, exchanges: usize) -> FewestMasks<W> {
        // Rules after a rule for all packets never win, and need not be distinguished.
        let last = rules.iter().position(|rule| *rule == Term::ANY);
        let rules: Arc<[Term<W>]> = match last {
            None => rules,
            Some(last) => rules[..last].into(),
        };
        let looked_at = looked_at(&rules);
        let mut rule_masks: Vec<&[u64; W]> = rules.iter().map(Term::mask).collect();
        rule_masks.sort_unstable();
        rule_masks.dedup();
        // Packets that a rule matches have flows with at least that rule's mask.
        let winner_masks = rule_masks.iter().filter(|mask| ***mask != looked_at);
        let room = most.saturating_sub(1 + winner_masks.count());
        let planned = PlannedPoints::new(&looked_at, &rules, room, exchanges);
        let masks = planned.iter().flat_map(PlannedPoints::masks);
        FewestMasks {
            looked_at,
            in_use: masks.collect(),
            planned,
            most: most.max(1),
            multi_bit: MultiBit::new(Arc::clone(&rules)),
            rules,
        }
    }

    /// Returns the maximum number of flows for all packets that no rule matches, whatever
    /// their order. `None` without a plan.
    #[must_use]
    pub fn planned_flows(&self) -> Option<usize> {
        self.planned.as_ref().map(PlannedPoints::flows)
    }

    /// Returns the number of used or planned masks, plus the mask of all bits.
    #[must_use]
    pub fn masks(&self) -> usize {
        self.in_use.len() + 1
    }

    /// True if a mask distinguishes a packet from the first `above` rules.
    fn suffices(&self, mask: &[u64; W], packet: &[u64; W], above: usize) -> bool {
        let mut rules = self.rules[..above].iter();
        rules.all(|rule| tells_apart(mask, packet, rule))
    }

    /// Returns the mask in use with the fewest bits that has all wanted bits and
    /// distinguishes a packet from the first `above` rules.
    fn usable(&self, packet: &[u64; W], above: usize, wanted: &[u64; W]) -> Option<[u64; W]> {
        let usable = self
            .in_use
            .iter()
            .filter(|mask| and(mask, wanted) == *wanted && self.suffices(mask, packet, above));
        let bits = |mask: &&[u64; W]| -> u32 { mask.iter().map(|word| word.count_ones()).sum() };
        usable.min_by_key(bits).copied()
    }
}

impl<const W: usize> Heuristic<W> for FewestMasks<W> {
    fn name(&self) -> &'static str {
        "fewest masks"
    }

    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork> {
        let seen = and(wanted, &self.looked_at);
        if seen == self.looked_at || above == 0 && is_empty(&seen) {
            return Ok(());
        }
        if is_empty(&seen)
            && let Some(mask) = self.planned.as_ref().and_then(|plan| plan.mask(packet))
        {
            add(wanted, &mask);
            return Ok(());
        }
        if let Some(mask) = self.usable(packet, above, &seen) {
            add(wanted, &mask);
            return Ok(());
        }
        if self.in_use.len() + 1 < self.most {
            self.multi_bit.tell_apart(packet, above, wanted)?;
            let mask = and(wanted, &self.looked_at);
            if mask != self.looked_at {
                self.in_use.push(mask);
            }
            return Ok(());
        }
        add(wanted, &self.looked_at);
        Ok(())
    }
}
