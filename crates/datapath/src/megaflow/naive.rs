//! Every bit that a rule of higher priority looks at.
//!
//! # Idea
//! What Open vSwitch did at first: a bit is a wildcard in the cached flow if no rule that
//! was looked at looks at it ([FCH14] §2). Where rules look at ports, flows are as many as
//! connections.
//!
//! # Data layout
//! For each number of rules, the bits that so many rules look at: n × W words.
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
//! Not at all.
//!
//! # References
//! [FCH14] §2.
//!
//! [FCH14]: classyard::papers#fch14

use super::{Heuristic, TooMuchWork, add};
use crate::header_space::Term;

/// Every bit that a rule of higher priority looks at.
#[derive(Clone, Debug)]
pub struct Naive<const W: usize> {
    /// By the number of rules.
    looked_at: Vec<[u64; W]>,
}

impl<const W: usize> Naive<W> {
    /// Over the rules of a table, the highest priority first.
    #[must_use]
    pub fn new(rules: &[Term<W>]) -> Naive<W> {
        let mut looked_at = vec![[0; W]];
        let mut all = [0; W];
        for rule in rules {
            add(&mut all, rule.mask());
            looked_at.push(all);
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
