//! Header spaces: sets of headers, as unions of values under masks.
//!
//! # Idea
//! A header of `W` words is a point among 2^(64 W). A [`Term`] is the set of all points
//! that agree with a value on the bits of a mask, as what a flow entry matches; a
//! [`Space`] is a union of terms. Sets of headers are joined, cut and subtracted term by
//! term, so the headers that a flow entry wins are what it matches, less what entries of
//! higher priority match ([FCH14] §3.1, after Kazemian's header space analysis).
//!
//! # Data layout
//! ```text
//! Term<W>   value │ mask        W words each; value has no bit outside of the mask
//! Space<W>  term │ term │ …     no empty terms: a term always has a point
//! ```
//!
//! # Cost
//! | operation | terms that come out of n and m terms, of at most b bits looked at |
//! |---|---|
//! | union | n + m |
//! | intersection | n × m |
//! | subtracting one term | n × b |
//! | complement, difference | b^m in the worst case |
//!
//! The last line is why [FCH14] §3 rules this out for whole tables: the number of terms
//! does not grow polynomially, and the least number of terms for a space is as hard to
//! find as any NP-hard problem. So all operations that grow take a limit and say when it
//! is met ([`TooManyTerms`]). [`Space::without_covered`] drops terms inside of another
//! one; nothing here looks for the least number.
//!
//! # Where we differ from the paper, and why
//! - **Disjoint parts.** The paper's complement of `0101` is `1xxx ∪ x0xx ∪ xx1x ∪ xxx0`,
//!   whose terms overlap. Ours is `1xxx ∪ 00xx ∪ 011x ∪ 0100`: the same set in parts
//!   without overlaps, so subtracting several terms meets no point twice.
//! - **Rewriting** sets bits to constants, as set-field does. Copying one field into
//!   another, as the paper's registers do, is no action of OpenFlow 1.3.5.
//!
//! # References
//! [FCH14] §2 (theoretical underpinnings), §3.
//!
//! [FCH14]: classyard::papers#fch14

mod space;
mod term;
#[cfg(test)]
mod tests;

pub use space::{Space, TooManyTerms};
pub use term::Term;
