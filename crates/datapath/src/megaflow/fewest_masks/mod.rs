//! Fewest masks: flows as few as those of common match, under a bounded number of masks.
//!
//! # Idea
//! Common match makes few flows, but of thousands of masks, and a cache that is a tuple
//! space looks a packet up once for each mask. The decision tree has one mask for each
//! length, but many flows. Here the masks are chosen for the rules, before there are
//! packets: at most `most` of them, so that few flows of these masks hold all packets that
//! no rule matches. A packet's flow is then looked up.
//!
//! # Data layout
//! ```text
//! plan      where rules look at up to 16 bits: for each value of these bits the mask of
//!           its flow, a byte each (64 KiB at most)
//! in use    masks that flows have been given, at most `most`
//! ```
//!
//! # Making the plan
//! Every value that no rule matches is a point, and a flow is a *cell*: the points that
//! share the bits of a mask. A cell without a point that a rule matches is free. The
//! fewest free cells of few masks that hold all points are wanted (module `plan`):
//!
//! ```text
//! 1. masks:     one after the other the one whose free cells hold the most points that no
//!               earlier mask holds, less λ for each cell; λ falls from points a rule to 1
//! 2. cells:     of all free cells of these masks the one with the most points that are
//!               left, until all are held (greedy set cover); then cells that the others
//!               make needless are dropped; what no cell holds is exact
//! 3. exchange:  a mask that spares the fewest flows gives its place to one that would
//!               spare the most, at prices of 1/n for each point of a cell of n; if cells
//!               become fewer, it stays
//! ```
//!
//! # Lookup
//! ```text
//! if there is a plan and no bit is wanted yet: the mask of the packet's point
//! else: of the masks in use the one with the fewest bits that tells the packet apart
//!       from all rules above, with all bits that are wanted;
//!       if there is none: multi-bit common match, as long as masks are fewer than most - 1;
//!       then all bits that rules look at, which is the last mask
//! ```
//!
//! # Cost
//! With a plan a packet costs a look at up to 16 bits and a byte. Without, O(most × n W).
//! The plan of 10,000 random ports takes 3 s, that of ten 1 s, on one core; it is
//! made when rules change, on a thread that has the time.
//!
//! # Where we differ from the paper, and why
//! All is ours. The paper leaves the choice between few masks (decision tree) and few flows
//! (common match) to the reader (§6). What both reach is measured by
//! `classyard reproduce fch14`. A plan needs all values of the bits that rules look at, so
//! it ends at 16 of them: the high-entropy field of the paper is a port. Rules over more
//! bits have masks of common match, up to the bound.
//!
//! # References
//! [FCH14] §4 to §6 for the two that it is held against.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use super::{Heuristic, MultiBit, TooMuchWork, add, and, is_empty, looked_at, tells_apart};
use crate::header_space::Term;
use plan::{Plan, Universe};

mod plan;

/// Masks of a table unless asked for otherwise: the paper's decision tree has 14 for ten
/// random ports, fewer for more, and 12 and 15 for its providers' lists; twice that.
pub const MOST_MASKS: usize = 32;

/// Exchanges of masks that are tried unless asked for otherwise: at 5,000 random ports,
/// where the margin is smallest, as many as it takes to have fewer flows than common match
/// with room to spare (`classyard reproduce fch14`, November 2026).
pub const EXCHANGES: usize = 48;

/// Flows of a bounded number of masks.
#[derive(Clone, Debug)]
pub struct FewestMasks<const W: usize> {
    rules: Arc<[Term<W>]>,
    looked_at: [u64; W],
    universe: Option<(Universe<W>, Plan)>,
    /// Masks that flows have, as far as rules look at their bits, without the one of all
    /// bits, for which there is always room.
    in_use: Vec<[u64; W]>,
    most: usize,
    multi_bit: MultiBit<W>,
}

impl<const W: usize> FewestMasks<W> {
    /// Over the rules of a table, the highest priority first, with [`MOST_MASKS`] and
    /// [`EXCHANGES`].
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>) -> FewestMasks<W> {
        FewestMasks::with_masks(rules, MOST_MASKS, EXCHANGES)
    }

    /// The same with at most `most` masks, at least 1, and a number of exchanges that are
    /// tried to make flows fewer. Masks count as far as rules look at their bits.
    #[must_use]
    pub fn with_masks(rules: Arc<[Term<W>]>, most: usize, exchanges: usize) -> FewestMasks<W> {
        // Behind a rule for all packets none wins, and none needs to be told apart.
        let last = rules.iter().position(|rule| *rule == Term::ANY);
        let rules: Arc<[Term<W>]> = match last {
            None => rules,
            Some(last) => rules[..last].into(),
        };
        let looked_at = looked_at(&rules);
        let mut rule_masks: Vec<&[u64; W]> = rules.iter().map(Term::mask).collect();
        rule_masks.sort_unstable();
        rule_masks.dedup();
        // Packets that a rule matches have flows of at least that rule's mask.
        let others = rule_masks.iter().filter(|mask| ***mask != looked_at);
        let room = most.saturating_sub(1 + others.count());
        let universe = Universe::of(&looked_at).map(|universe| {
            let plan = Plan::new(&universe, &rules, room, exchanges);
            (universe, plan)
        });
        let planned = universe.iter().flat_map(|(universe, plan)| {
            let masks = plan.masks().iter();
            masks.map(|&mask| universe.expand(mask))
        });
        FewestMasks {
            looked_at,
            in_use: planned.collect(),
            universe,
            most: most.max(1),
            multi_bit: MultiBit::new(Arc::clone(&rules)),
            rules,
        }
    }

    /// Flows that hold all packets that no rule matches, whatever packets come and in
    /// whatever order: never more are computed for them. `None` without a plan.
    #[must_use]
    pub fn planned_flows(&self) -> Option<usize> {
        self.universe.as_ref().map(|(_, plan)| plan.flows())
    }

    /// Masks that flows have or are planned to have, and the one of all bits.
    #[must_use]
    pub fn masks(&self) -> usize {
        self.in_use.len() + 1
    }

    /// Whether a mask tells a packet apart from the first rules.
    fn suffices(&self, mask: &[u64; W], packet: &[u64; W], above: usize) -> bool {
        let mut rules = self.rules[..above].iter();
        rules.all(|rule| tells_apart(mask, packet, rule))
    }

    /// The mask with the fewest bits among those in use that has all wanted bits and
    /// tells a packet apart from the first rules.
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
        if let Some((universe, plan)) = &self.universe
            && is_empty(&seen)
            && let Some(mask) = plan.mask(universe.compress(packet))
        {
            add(wanted, &universe.expand(mask));
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
