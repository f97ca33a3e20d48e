//! Common match: one bit that differs from all rules of higher priority.
//!
//! # Idea
//! Where all rules have the same value in a bit and the packet has the other one, that
//! bit alone tells it apart from all of them, and no flow can look at fewer. A high bit
//! that all of them look at is often such a one: the blocked ports are small numbers, most
//! others are not.
//!
//! # Data layout
//! For each number of rules, a term of the bits in which so many rules agree: the value
//! and the mask, n × 2 W words.
//!
//! # Lookup
//! ```text
//! bits = common[above].mask & (common[above].value ^ packet)
//! if bits & wanted: done
//! else if bits: wanted |= the most significant of them
//! else: multi-bit common match
//! ```
//!
//! # Cost
//! O(W) for a packet where there is such a bit, else O(g n W); O(n W) for a table.
//!
//! # Where we differ from the paper, and why
//! - **Where no bit is common** the paper's heuristic "fails"; ours goes on with
//!   [`multi_bit`](super::multi_bit), which the paper's measured "common match" must have
//!   done as well: among ten random ports hardly a bit is common.
//!
//! # References
//! [FCH14] §4, "Common match", with the proof that a single bit, where there is one, is
//! found.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use super::{Heuristic, MultiBit, TooMuchWork, add, and, is_empty, most_significant};
use crate::header_space::Term;

/// One bit that differs from all rules, or else one for each of a few groups of them.
#[derive(Clone, Debug)]
pub struct CommonMatch<const W: usize> {
    /// By the number of rules: the bits in which they agree. Of no rule there is nothing
    /// to be told apart from.
    common: Vec<Term<W>>,
    multi_bit: MultiBit<W>,
}

impl<const W: usize> CommonMatch<W> {
    /// Over the rules of a table, the highest priority first.
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>) -> CommonMatch<W> {
        let mut common = Vec::with_capacity(rules.len());
        let mut all: Option<Term<W>> = None;
        for rule in rules.iter() {
            let agreed = all.map_or(*rule, |all| agreement(&all, rule));
            common.push(agreed);
            all = Some(agreed);
        }
        CommonMatch {
            common,
            multi_bit: MultiBit::new(rules),
        }
    }
}

/// The bits that both look at and in which they agree.
fn agreement<const W: usize>(one: &Term<W>, two: &Term<W>) -> Term<W> {
    let mask = std::array::from_fn(|word| {
        one.mask()[word] & two.mask()[word] & !(one.value()[word] ^ two.value()[word])
    });
    Term::new(*one.value(), mask)
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
