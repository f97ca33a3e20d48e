//! Exact analysis of rule sets.
//!
//! [`lint()`] finds rules that can never win, and rules whose removal changes nothing.
//! [`diff()`] finds the headers that two policies decide differently, and [`outside()`] those
//! with an action in one policy only.
//! [`query()`] lists the rules that decide the headers of a box. The answers are proofs, not
//! samples: a rule is only called dead if no header exists that it wins. Work is limited by a number of steps. A question that is not answered within the
//! limit has the answer *unknown*.
//!
//! Rules become boxes in a space whose coordinates are ranks (`space.rs`, `boxes.rs`). One
//! question answers all others: is a box covered by other boxes, and if not, which header is
//! outside (`cover.rs`)? An index lists the boxes that overlap a box (`overlaps.rs`).
//!
//! The crate opens no file, starts no thread and reads no clock.

mod boxes;
mod cover;
mod diff;
mod error;
mod lint;
mod overlaps;
mod part;
mod query;
mod space;

pub use diff::{Diff, DiffSettings, Difference, Undecided, diff, outside};
pub use error::AnalysisError;
pub use lint::{
    Conflict, Finding, Lint, LintSettings, RuleFindings, Statements, lint, lint_some,
    lint_statements,
};
pub use query::{Answer, Query, QuerySettings, query};
