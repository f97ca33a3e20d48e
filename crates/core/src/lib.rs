//! classyard: packet classification. Given a list of rules over header fields,
//! find the best rule that a packet matches, exactly, for many millions of
//! packets a second, while rules come and go.
//!
//! The way through the library:
//!
//! 1. A [`Schema`] says which fields headers have and how rules may constrain
//!    them. [`Schema::ipv4_5tuple`], [`Schema::ipv6_5tuple`] and
//!    [`Schema::openflow15`] are built in.
//! 2. A [`RuleSet`] holds [`Rule`]s of one schema, a [`Policy`] rules of several
//!    (IPv4 and IPv6) in one priority order.
//! 3. An [`EngineSpec`] builds a [`Classifier`] over them; the [`engine`] module
//!    lists the engines and when to pick which.
//! 4. Headers packed as keys ([`KeyVec`]) go in, in batches; [`Winner`]s come
//!    out.
//! 5. A [`Transaction`] changes the rules of a [`DynamicClassifier`]; a
//!    [`TransactionBuf`] is one that owns its rules.
//! 6. A [`Table`] lets readers look up on any number of threads while a writer
//!    makes transactions, without waiting, and read rules and their actions as
//!    they are at the version of the lookup.
//! 7. An engine that is fitted to its rules can be fitted again while they
//!    change: [`reoptimise`].
//! 8. What an engine would cost is known before it is built: [`estimate`].
//!
//! ```
//! use classyard::*;
//!
//! let schema = Schema::ipv4_5tuple();
//! let mut rules = RuleSet::new(&schema);
//! let web = [
//!     FieldMatch::Any,
//!     FieldMatch::Prefix { value: 0x0a00_0000, length: 8 },
//!     FieldMatch::Any,
//!     FieldMatch::Range { low: 80, high: 89 },
//!     FieldMatch::Exact(6),
//! ];
//! rules.add(RuleId::new(0)?, Priority(10), ActionId(1), &web)?;
//!
//! let engine = EngineSpec::parse("linear")?;
//! let classifier = engine.build(&rules, &Limits::default(), &mut NoProgress)?;
//!
//! let mut keys = KeyVec::new(&schema);
//! keys.push(&[0xc000_0201, 0x0a01_0203, 40_000, 80, 6])?;
//! keys.push(&[0xc000_0201, 0x0a01_0203, 40_000, 22, 6])?;
//! let mut winners = vec![Winner::MISS; keys.len()];
//! classifier.classify_batch(keys.as_slice(), &mut winners, &mut Scratch::new());
//! assert_eq!(winners[0].rule(), Some(RuleId::new(0)?));
//! assert!(winners[1].is_miss());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod classifier;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod key;
pub mod limits;
pub mod memory;
pub mod monitor;
pub mod policy;
pub mod progress;
pub mod reoptimise;
pub mod rule;
pub mod ruleset;
pub mod schema;
pub mod seed;
pub mod table;
pub mod transaction;
pub mod value;

mod id_map;
mod match_kind;
mod packed;
mod part;
mod positions;
mod rule_store;
mod simd;
mod sort;
mod unwildcard;

pub use classifier::{
    BATCH, Classifier, DynamicClassifier, LookupTrace, Metric, MetricValue, Probe, Scratch, Stats,
};
pub use engine::{ENGINES, EngineSpec};
pub use error::{
    BuildError, HeaderError, PartError, Refusal, RuleError, SchemaError, SpecError, SpecPlace,
    TryApplyError, UpdateError,
};
pub use estimate::{Estimate, Shape};
pub use key::{KeySlice, KeyVec};
pub use limits::Limits;
pub use memory::Memory;
pub use monitor::Monitor;
pub use policy::{
    Policy, PolicyChange, PolicyClassifier, PolicyTrace, PolicyTransaction, PolicyTransactionBuf,
};
pub use progress::{NoProgress, Progress};
pub use reoptimise::{Drift, LookupPlan, Reoptimise, Snapshot};
pub use rule::{ActionId, FieldMatch, Priority, Rule, RuleId, RuleRef, Winner};
pub use ruleset::{AddError, RuleSet};
pub use schema::{Field, FieldId, FieldRole, MatchKind, Schema};
pub use seed::Seed;
pub use table::{Guard, PolicyTable, PolicyWriter, Reader, Table, Version, Writer};
pub use transaction::{Change, Transaction, TransactionBuf};
pub use value::ValueFormat;
