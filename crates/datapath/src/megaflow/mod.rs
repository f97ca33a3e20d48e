//! Algorithms for the mask of a megaflow: few bits of a packet that determine its winning
//! rule. Flow tables use [`agreement`] and
//! [`planned`]; all others are measured in [`lab`](crate::lab).
//!
//! # Idea
//! A flow cache of exact headers needs an entry for every connection. A *megaflow* is a
//! value under a mask with fewer bits, such that the same rule wins all packets that
//! match it. With fewer bits, an entry covers more packets, and the cache needs fewer
//! entries.
//!
//! The mask always includes the bits of the winning rule. It must also exclude every rule
//! of higher priority that does not match the packet, by a bit where the packet differs
//! from that rule. To find the smallest set of such bits is a hitting-set
//! problem, so a [`Heuristic`] chooses them.
//!
//! ```text
//! rules above, none of which matches      0101   0110         choose bits where
//! packet                           1011                        1011 differs from each
//! differing bits                          111x   11x1
//! megaflow                         1xxx   (or x0xx)
//! ```
//!
//! # The algorithms
//! | module | added bits | from |
//! |---|---|---|
//! | [`naive`] | all bits that some rule has in its mask | [FCH14] §2 |
//! | [`common_match`] | one bit that differs from all rules, if any; otherwise as below | [FCH14] §4 |
//! | [`multi_bit`] | one bit for each of a few groups of rules | [FCH14] §4 |
//! | [`prefix_tree`] | the longest prefix that some rule shares, and the next bit | [FCH14] §4 |
//! | [`brute_force`] | the smallest number of bits | [FCH14] §5.2 |
//! | [`agreement`] | the cheapest common bit of each group of rules | ours |
//! | [`fewest_masks`] | the bits of a mask from a small set, chosen for few flows | ours |
//!
//! [`planned`] uses the last for flow tables whose rules differ in few bits. [`simulator`] has
//! a table and a cache of the flows that a heuristic computes for it: the
//! simulator of [FCH14] §5.2. [`cross_product`] needs no packets: it computes all flows
//! of a pipeline in advance (§3.1).
//!
//! # Safe errors
//! An unnecessary bit is safe: the flow only covers fewer packets. A missing bit is not
//! safe: the flow could cover a packet that another rule wins. So after every heuristic,
//! each rule above differs from the packet in a wanted bit.
//!
//! # Where we differ from the paper, and why
//! - **Rules with any masks.** The paper's rules are exact ports, or ports under masks.
//!   Here they are terms of any number of words, so one heuristic works for a port, the
//!   fields of a table, and a packet's whole key.
//! - **Bits that are already wanted**, such as the bits of earlier tables of a pipeline,
//!   are used: a rule that differs from the packet in such a bit needs no further one.
//!
//! # References
//! [FCH14] §4, §5.2.
//!
//! [FCH14]: classyard::papers#fch14

use std::fmt;

use crate::header_space::Term;

pub(crate) mod agreement;
mod algorithm;
pub mod brute_force;
pub mod common_match;
pub mod cross_product;
pub(crate) mod family_bits;
pub mod fewest_masks;
pub mod multi_bit;
pub mod naive;
pub(crate) mod planned;
pub mod prefix_tree;
pub mod simulator;
#[cfg(test)]
mod tests;

pub use algorithm::{MegaflowBits, UnknownMegaflowBits};
pub use brute_force::BruteForce;
pub use common_match::CommonMatch;
pub use fewest_masks::FewestMasks;
pub use multi_bit::MultiBit;
pub use naive::Naive;
pub use prefix_tree::PrefixTree;

/// Chooses bits that distinguish a packet from rules that do not match it.
///
/// A heuristic is made for the rules of one table, the highest priority first, and made
/// again when the rules change.
pub trait Heuristic<const W: usize> {
    /// Returns the name of the algorithm.
    fn name(&self) -> &'static str;

    /// Adds bits to `wanted` until each of the first `above` rules has a wanted mask bit
    /// where the packet differs from it. None of these rules may match the packet;
    /// `above` is at most the number of rules.
    ///
    /// May record its choices, so that later packets get the same masks.
    ///
    /// # Errors
    /// [`TooMuchWork`] if the algorithm reached its limit; `wanted` is unchanged.
    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork>;
}

/// An algorithm reached its limit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchWork {
    /// The counted objects, such as tried `masks`.
    pub counted: &'static str,
    /// The limit.
    pub most: usize,
}

impl fmt::Display for TooMuchWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooMuchWork { counted, most } = self;
        write!(f, "more than {most} {counted} would have to be tried")
    }
}

impl std::error::Error for TooMuchWork {}

/// True if a mask distinguishes a packet from a rule.
#[inline]
fn tells_apart<const W: usize>(mask: &[u64; W], packet: &[u64; W], rule: &Term<W>) -> bool {
    let differing = rule.differing(packet);
    (0..W).any(|word| differing[word] & mask[word] != 0)
}

/// Returns the most significant set bit: the highest bit of the first word that is not 0.
#[inline]
fn most_significant<const W: usize>(bits: &[u64; W]) -> Option<[u64; W]> {
    let word = bits.iter().position(|&word| word != 0)?;
    let mut highest = [0; W];
    highest[word] = 1 << bits[word].ilog2();
    Some(highest)
}

#[inline]
fn is_empty<const W: usize>(bits: &[u64; W]) -> bool {
    bits.iter().all(|&word| word == 0)
}

#[inline]
fn and<const W: usize>(one: &[u64; W], two: &[u64; W]) -> [u64; W] {
    std::array::from_fn(|word| one[word] & two[word])
}

#[inline]
fn add<const W: usize>(to: &mut [u64; W], bits: &[u64; W]) {
    for (to, bits) in to.iter_mut().zip(bits) {
        *to |= bits;
    }
}

/// Returns all mask bits of the rules.
fn looked_at<const W: usize>(rules: &[Term<W>]) -> [u64; W] {
    let mut mask = [0; W];
    for rule in rules {
        add(&mut mask, rule.mask());
    }
    mask
}
