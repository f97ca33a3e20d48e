//! Naive masks: all mask bits of rules of higher priority.
//!
//! # Idea
//! Open vSwitch's first algorithm: a bit of the cached flow is a wildcard if no rule that
//! was compared has it in its mask ([FCH14] §2). If rules match ports, there are as many
//! flows as connections.
//!
//! # Data layout
//! For each number n of rules, the mask bits of the first n rules: W words each.
//!
//! # Lookup
//! ```text
//! wanted |= looked_at[above]
//! ```
//!
//! # Cost
//! O(W) for a packet, whatever the number of rules; O(n W) for a table.
//!
//! # Where we differ from the paper, and why
//! None.
//!
//! # References
//! [FCH14] §2.
//!
//! [FCH14]: classyard::papers#fch14

use super::{Heuristic, TooMuchWork, add};
use crate::header_space::Term;

/// All mask bits of rules of higher priority.
#[derive(Clone, Debug)]
pub struct Naive<const W: usize> {
    /// The mask bits of the first n rules, by n.
    looked_at: Vec<[u64; W]>,
}

impl<const W: usize> Naive<W> {
    /// Returns the heuristic for the rules of a table, the highest priority first.
    #[must_use]
    pub fn new(rules: &[Term<W>]) -> Naive<W> {
        let mut looked_at = vec![[0; W]];
        let mut mask = [0; W];
        for rule in rules {
            add(&mut mask, rule.mask());
            looked_at.push(mask);
        }
        Naive { looked_at }
    }
}

impl<const W: usize> Heuristic<W> for Naive<W> {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn tell_apart(
        &mut self,
        _: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork> {
        add(wanted, &self.looked_at[above]);
        Ok(())
    }
}
