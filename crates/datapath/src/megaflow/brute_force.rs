//! Brute force: the fewest bits that tell a packet apart from all rules.
//!
//! # Idea
//! All choices of one bit are tried, then all of two, and so on. The first that differs
//! from every rule of higher priority is the best there is. For tests, and to say how
//! near the heuristics come ([FCH14] Table 4, "Approx.").
//!
//! # Data layout
//! The rules, over which a choice is tried one after the other.
//!
//! # Lookup
//! ```text
//! for count = 0, 1, 2, …
//!     for each choice of count bits among those in which some rule differs:
//!         if every rule differs in a bit that is chosen or wanted: wanted |= choice; done
//! ```
//!
//! # Cost
//! O(n 2^b) for a packet, b bits that rules look at: up to `most` choices, then it ends
//! with [`TooMuchWork`].
//!
//! # Where we differ from the paper, and why
//! - **Rules that refused a choice are tried first** on the next one. They often refuse
//!   that one too, so that most choices take one comparison.
//!
//! # References
//! [FCH14] §5.2, steps 1–3.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use super::{Heuristic, TooMuchWork, add, and, is_empty};
use crate::header_space::Term;

/// The fewest bits that tell a packet apart from all rules.
#[derive(Clone, Debug)]
pub struct BruteForce<const W: usize> {
    rules: Arc<[Term<W>]>,
    most: usize,
}

impl<const W: usize> BruteForce<W> {
    /// Over the rules of a table, the highest priority first; at most `most` choices of
    /// bits are tried for a packet.
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
        let mut left: Vec<[u64; W]> = differing
            .filter(|bits| is_empty(&and(bits, wanted)))
            .collect();
        let mut useful = [0; W];
        for bits in &left {
            add(&mut useful, bits);
        }
        let bits: Vec<(usize, u64)> = (0..W)
            .flat_map(|word| {
                let all = (0..u64::BITS).rev().map(move |bit| (word, 1 << bit));
                all.filter(move |(_, bit)| useful[word] & bit != 0)
            })
            .collect();
        let mut tried = 0;
        for count in 0..=bits.len() {
            let mut chosen: Vec<usize> = (0..count).collect();
            loop {
                tried += 1;
                if tried > self.most {
                    let counted = "masks";
                    let most = self.most;
                    return Err(TooMuchWork { counted, most });
                }
                let mut mask = [0; W];
                for &place in &chosen {
                    let (word, bit) = bits[place];
                    mask[word] |= bit;
                }
                match left.iter().position(|rule| is_empty(&and(rule, &mask))) {
                    None => {
                        add(wanted, &mask);
                        return Ok(());
                    }
                    Some(refusing) => left.swap(0, refusing),
                }
                if !advance(&mut chosen, bits.len()) {
                    break;
                }
            }
        }
        unreachable!("all bits tell the packet apart from rules that do not match it")
    }
}

/// The next choice of as many places below `all`, in lexicographic order.
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
