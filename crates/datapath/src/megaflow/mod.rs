//! Computed flow caches: how few bits of a packet say which rule wins it.
//!
//! # Idea
//! A flow cache of exact headers needs an entry for every connection. A *megaflow* looks
//! at fewer bits: a value under a mask that the packet has, and for all of whose packets
//! the same rule wins. Fewer bits are more packets in one entry, and fewer entries.
//!
//! The bits of the rule that wins are needed in any case. What remains to be chosen is
//! how the packet is told apart from each rule of higher priority that does not match
//! it: one bit for each rule, in which the packet differs from it, is enough. To find
//! the fewest such bits is a hitting-set problem, so a [`Heuristic`] chooses them.
//!
//! ```text
//! rules above, none of which matches      0101   0110         tell apart: bits in which
//! packet                           1011                        1011 differs from both
//! differing bits                          111x   11x1
//! megaflow                         1xxx   (or x0xx)
//! ```
//!
//! # The algorithms
//! | module | bits that are added | from |
//! |---|---|---|
//! | [`naive`] | all that some rule looks at | [FCH14] §2 |
//! | [`common_match`] | one that differs from all rules, else as below | [FCH14] §4 |
//! | [`multi_bit`] | one for each of a few groups of rules | [FCH14] §4 |
//! | [`prefix_tree`] | a prefix, as long as some rule shares it, and a bit more | [FCH14] §4 |
//! | [`brute_force`] | the fewest | [FCH14] §5.2 |
//! | [`fewest_masks`] | those of one of a few masks, chosen for few flows | ours |
//!
//! [`table`] has one table and a cache of what a heuristic computes for it: the simulator
//! of [FCH14] §5.2. [`cross_product`] needs no packets: it computes all flows of a
//! pipeline ahead of time (§3.1).
//!
//! # Which error is safe
//! A bit too many is safe: the flow has fewer packets than it could. A bit too few is
//! not: some packet would be treated as a rule says that does not win it. Every
//! heuristic keeps this: once it returns, each rule that it was asked about differs from
//! the packet in a bit that is wanted.
//!
//! # Where we differ from the paper, and why
//! - **Rules of any masks.** The paper's rules are exact ports, or ports under masks;
//!   here they are terms of any number of words, so that one heuristic serves a port, the
//!   fields of a table, and a packet's whole key.
//! - **Bits that are wanted already** are taken into account: a rule that they tell apart
//!   needs none of its own. In a pipeline, earlier tables have un-wildcarded bits.
//!
//! # References
//! [FCH14] §4, §5.2.
//!
//! [FCH14]: classyard::papers#fch14

use std::fmt;

use crate::header_space::Term;

pub mod brute_force;
pub mod common_match;
pub mod cross_product;
pub mod fewest_masks;
pub mod multi_bit;
pub mod naive;
pub mod prefix_tree;
pub mod table;
#[cfg(test)]
mod tests;

pub use brute_force::BruteForce;
pub use common_match::CommonMatch;
pub use fewest_masks::FewestMasks;
pub use multi_bit::MultiBit;
pub use naive::Naive;
pub use prefix_tree::PrefixTree;

/// Chooses the bits that tell a packet apart from rules that do not match it.
///
/// A heuristic is made for the rules of one table, in the order of their priorities, the
/// highest first, and made anew when they change.
pub trait Heuristic<const W: usize> {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Adds bits to `wanted`, until each of the first `above` rules of the table looks at
    /// a wanted bit in which the packet differs from it. None of them matches the packet;
    /// `above` is at most the number of rules.
    ///
    /// It may remember what it chose, so that later packets get the same masks.
    ///
    /// # Errors
    /// [`TooMuchWork`] where a bound on its work was met; `wanted` is as it was then.
    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork>;
}

/// An algorithm's bound on its work was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchWork {
    /// What is counted: `masks` that were tried.
    pub counted: &'static str,
    /// How many of them are allowed.
    pub most: usize,
}

impl fmt::Display for TooMuchWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooMuchWork { counted, most } = self;
        write!(f, "more than {most} {counted} would have to be tried")
    }
}

impl std::error::Error for TooMuchWork {}

/// Whether a mask tells a packet apart from a rule.
#[inline]
fn tells_apart<const W: usize>(mask: &[u64; W], packet: &[u64; W], rule: &Term<W>) -> bool {
    let differing = rule.differing(packet);
    (0..W).any(|word| differing[word] & mask[word] != 0)
}

/// The most significant of some bits, alone: the highest of the first word that has any.
#[inline]
fn most_significant<const W: usize>(bits: &[u64; W]) -> Option<[u64; W]> {
    let word = bits.iter().position(|&word| word != 0)?;
    let mut one = [0; W];
    one[word] = 1 << bits[word].ilog2();
    Some(one)
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

/// All bits that some rule looks at.
fn looked_at<const W: usize>(rules: &[Term<W>]) -> [u64; W] {
    let mut all = [0; W];
    for rule in rules {
        add(&mut all, rule.mask());
    }
    all
}
