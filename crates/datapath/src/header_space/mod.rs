//! Header spaces: sets of headers, as unions of values under masks.
//!
//! # Idea
//! A header of `W` words is one of 2^(64 W) points. A [`Term`] is the set of all points
//! with a given value on the bits of a mask, like the match of a flow entry. A [`Space`]
//! is a union of terms. Union, intersection and difference work term by term. The headers
//! that a flow entry wins are those in its match, minus the matches of entries of higher
//! priority ([FCH14] §3.1, after Kazemian's header space analysis).
//!
//! # Data layout
//! ```text
//! Term<W>   value │ mask        W words each; value has no bits outside of the mask
//! Space<W>  term │ term │ …     a term is never empty
//! ```
//!
//! # Cost
//! | operation | terms in the result for n and m terms with at most b mask bits |
//! |---|---|
//! | union | n + m |
//! | intersection | n × m |
//! | subtracting one term | n × b |
//! | complement, difference | b^m in the worst case |
//!
//! Because of the last line [FCH14] §3 rules header spaces out for whole tables: the
//! number of terms does not grow polynomially, and finding the smallest number of terms
//! for a space is NP-hard. So all operations that add terms take a limit and return
//! [`TooManyTerms`] above it. [`Space::without_covered`] drops terms inside of another
//! term; nothing here minimises the number of terms.
//!
//! # Where we differ from the paper, and why
//! - **Disjoint parts.** The paper's complement of `0101` is `1xxx ∪ x0xx ∪ xx1x ∪ xxx0`,
//!   whose terms overlap. Ours is `1xxx ∪ 00xx ∪ 011x ∪ 0100`, the same set without
//!   overlaps. So subtracting several terms handles no point twice.
//! - **Rewriting** sets bits to constants, as set-field does. The paper's registers also
//!   copy one field to another; OpenFlow 1.3.5 has no such action.
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
