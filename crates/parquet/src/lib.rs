//! Looks up the headers of flow logs in Parquet files, and writes the winners to Parquet.
//!
//! [`find_files`] returns the files of names, folders and patterns. [`Logs::open`] reads their
//! footers and checks their columns before any row is read. [`Logs::classify`] looks up all rows
//! on one or several threads, returns counts, and writes the results.
//!
//! ```no_run
//! use std::fs::File;
//!
//! use classyard::prelude::*;
//! use classyard::{Limits, NoProgress};
//! use classyard_arrow::{BuiltPolicy, HeaderFields, Mapping};
//! use classyard_parquet::{Keep, LogColumns, Logs, Lookups, VerdictNames, find_files};
//!
//! let mut policy = Policy::dual_stack();
//! let permit = policy.declare_action("permit");
//! policy.add_rule(&PolicyRule::new(7).field("dport", 443).action(permit))?;
//! let spec = EngineSpec::parse("forest")?;
//! let classifier = policy.build(&spec, &Limits::default(), &mut NoProgress)?;
//!
//! let columns = LogColumns {
//!     mapping: Mapping::preset("vpc").unwrap(),
//!     fields: HeaderFields::of(&policy),
//!     verdict: Some("action".to_owned()),
//!     keep: Keep::All,
//!     prefix: "policy_".to_owned(),
//! };
//! let logs = Logs::open(find_files(&["logs".to_owned()])?, columns, true)?;
//! let lookups = Lookups {
//!     rules: &BuiltPolicy { policy: &policy, classifier: &classifier },
//!     actions: &["permit".to_owned()],
//!     verdicts: &VerdictNames::default(),
//!     threads: 2,
//! };
//! let results = File::create("results.parquet")?;
//! let summary = logs.classify(&lookups, Some(results), &mut NoProgress)?;
//! println!("{} rows, {} without a rule", summary.rows, summary.unmatched);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Results
//!
//! Kept columns are copied with their encoding, compression and statistics, without decoding
//! them. So a row group of the results has the rows of a row group of a log, and all logs must
//! have the same kept columns. The columns of winners are `matched`, `rule` (the id of the rule)
//! and `action`, with the meaning that [`Output`](classyard_arrow::Output) gives them.
//!
//! # Memory
//!
//! Each thread holds the pages and 65,536 decoded rows of the columns that it needs, and up to 5
//! bytes of results for each row of a row group ([`MAX_GROUP_ROWS`]). Of each file, the number of
//! rows of its row groups is held.

mod columns;
mod comparison;
mod counts;
mod error;
mod files;
mod footer;
mod logs;
mod lookups;
mod results;
mod run;
mod summary;
mod totals;
mod unit;
mod verdict;

pub use comparison::{MAX_VERDICTS, VerdictSummary};
pub use error::LogError;
pub use files::find_files;
pub use logs::{LogColumns, Logs, MAX_GROUP_ROWS, column_names};
pub use lookups::Lookups;
pub use results::Keep;
pub use summary::{Example, MAX_EXAMPLES, Summary};
pub use verdict::{Verdict, VerdictNameError, VerdictNames};
