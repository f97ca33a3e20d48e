//! Common match: one bit that differs from all rules of higher priority.
//!
//! # Idea
//! If all rules have the same value in a bit and the packet has the other value, this bit
//! alone distinguishes it from all of them, and no flow can use fewer. A high bit that
//! all rules have in their masks is often such a bit: the blocked ports are small
//! numbers, most other ports are not.
//!
//! # Data layout
//! For each number n of rules, a term with the bits where the first n rules agree: 2 W
//! words of value and mask.
//!
//! # Lookup
//! ```text
//! bits = common[above].mask & (common[above].value ^ packet)
//! if bits & wanted: done
//! else if bits: wanted |= the most significant bit of bits
//! else: multi-bit common match
//! ```
//!
//! # Cost
//! O(W) for a packet if there is such a bit, otherwise O(g n W); O(n W) for a table.
//!
//! # Where we differ from the paper, and why
//! - **If no bit is common**, the paper's heuristic "fails". Ours continues with
//!   [`multi_bit`](super::multi_bit). The paper's measured "common match" must have
//!   done this too, since ten random ports rarely have a bit in common.
//!
//! # References
//! [FCH14] §4, "Common match", with the proof that a single bit is found if there is one.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use super::{Heuristic, MultiBit, TooMuchWork, add, and, is_empty, most_significant};
use crate::header_space::Term;

/// One bit that differs from all rules, or one bit for each of a few groups of rules.
#[derive(Clone, Debug)]
pub struct CommonMatch<const W: usize> {
    /// The bits where the first n rules agree, by n - 1. No rules need no bits.
    common: Vec<Term<W>>,
    multi_bit: MultiBit<W>,
}

impl<const W: usize> CommonMatch<W> {
    /// Returns the heuristic for the rules of a table, the highest priority first.
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>) -> CommonMatch<W> {
        let mut common = Vec::with_capacity(rules.len());
        let mut last: Option<Term<W>> = None;
        for rule in rules.iter() {
            let agreed = last.map_or(*rule, |last| last.agreement(rule));
            common.push(agreed);
            last = Some(agreed);
        }
        CommonMatch {
            common,
            multi_bit: MultiBit::new(rules),
        }
    }
}

impl<const W: usize> Heuristic<W> for CommonMatch<W> {
    fn name(&self) -> &'static str {
        "common match"
    }

    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork> {
        let Some(last) = above.checked_sub(1) else {
            return Ok(());
        };
        let bits = self.common[last].differing(packet);
        if !is_empty(&and(&bits, wanted)) {
            return Ok(());
        }
        match most_significant(&bits) {
            Some(bit) => {
                add(wanted, &bit);
                Ok(())
            }
            None => self.multi_bit.tell_apart(packet, above, wanted),
        }
    }
}
