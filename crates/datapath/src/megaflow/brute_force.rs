//! Brute force: the smallest set of bits that distinguishes a packet from all rules.
//!
//! # Idea
//! Tries all choices of one bit, then of two bits, and so on. The first choice that
//! differs from every rule of higher priority is optimal. For tests, and to measure how
//! close the heuristics come ([FCH14] Table 4, "Approx.").
//!
//! # Data layout
//! The rules; each choice is compared with them one by one.
//!
//! # Lookup
//! ```text
//! for count = 0, 1, 2, …
//!     for each choice of count bits among the bits where some rule differs:
//!         if every rule differs in a chosen or wanted bit: wanted |= choice; done
//! ```
//!
//! # Cost
//! O(n 2^b) for a packet, with b mask bits. After `most` choices it returns
//! [`TooMuchWork`].
//!
//! # Where we differ from the paper, and why
//! - **The rule that refused a choice is tried first** on the next choice. It often
//!   refuses that choice too, so most choices take one comparison.
//!
//! # References
//! [FCH14] §5.2, steps 1–3.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use super::{Heuristic, TooMuchWork, add, and, is_empty};
use crate::header_space::Term;

/// The smallest set of bits that distinguishes a packet from all rules.
#[derive(Clone, Debug)]
pub struct BruteForce<const W: usize> {
    rules: Arc<[Term<W>]>,
    most: usize,
}

impl<const W: usize> BruteForce<W> {
    /// Returns the heuristic for the rules of a table, the highest priority first. At
    /// most `most` choices of bits are tried for a packet.
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>, most: usize) -> BruteForce<W> {
        BruteForce { rules, most }
    }
}

impl<const W: usize> Heuristic<W> for BruteForce<W> {
    fn name(&self) -> &'static str {
        "brute force"
    }

    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork> {
        let differing = self.rules[..above]
            .iter()
            .map(|rule| rule.differing(packet));
        let mut remaining: Vec<[u64; W]> = differing
            .filter(|bits| is_empty(&and(bits, wanted)))
            .collect();
        let mut useful = [0; W];
        for bits in &remaining {
            add(&mut useful, bits);
        }
        let bits: Vec<(usize, u64)> = (0..W)
            .flat_map(|word| {
                let word_bits = (0..u64::BITS).rev().map(move |bit| (word, 1 << bit));
                word_bits.filter(move |(_, bit)| useful[word] & bit != 0)
            })
            .collect();
        let mut tried = 0;
        for count in 0..=bits.len() {
            let mut chosen: Vec<usize> = (0..count).collect();
            loop {
                tried += 1;
                if tried > self.most {
                    let counted = "masks";
                    return Err(TooMuchWork {
                        counted,
                        most: self.most,
                    });
                }
                let mut mask = [0; W];
                for &place in &chosen {
                    let (word, bit) = bits[place];
                    mask[word] |= bit;
                }
                match remaining
                    .iter()
                    .position(|rule| is_empty(&and(rule, &mask)))
                {
                    None => {
                        add(wanted, &mask);
                        return Ok(());
                    }
                    Some(refusing) => remaining.swap(0, refusing),
                }
                if !advance(&mut chosen, bits.len()) {
                    break;
                }
            }
        }
        unreachable!("all bits tell the packet apart from rules that do not match it")
    }
}

/// Advances to the next choice of positions below `all`, in lexicographic order.
fn advance(chosen: &mut [usize], all: usize) -> bool {
    let count = chosen.len();
    let Some(last) = (0..count).rposition(|place| chosen[place] < all - count + place) else {
        return false;
    };
    let first = chosen[last] + 1;
    for (next, place) in chosen[last..].iter_mut().enumerate() {
        *place = first + next;
    }
    true
}
