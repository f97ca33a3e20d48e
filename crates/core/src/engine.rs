//! The engines, and the registry that lists them.
//!
//! | engine | kind | pick it when |
//! |---|---|---|
//! | `linear` | dynamic | there are a few dozen rules, or to check the others |
//! | `forest` | dynamic | lookups must be fast and rules change |
//! | `tss` | dynamic | rules change all the time and there are few distinct masks |
//! | `tuplemerge` | dynamic | rules change and lookups must be fast |
//! | `tuplemerge-offline` | dynamic | the rules are known up front and change little |
//! | `tuplemerge-vpp` | dynamic | one hash table for all is wanted, as in VPP's ACL plugin |
//! | `partition-sort` | dynamic | rules change and a published algorithm without hash tables is wanted |
//! | `bit-vector` | static | there are up to a few thousand rules; as a part of other methods |
//! | `rfc` | static | there are up to a thousand rules, or few of them overlap |
//! | `hyper-split` | static | headers come one at a time; as a part of other methods |
//! | `cut-split` | dynamic | a decision tree is wanted, and rules change |
//! | `hyper-cuts` | static | few of the rules are wide in all fields; as a part of other methods |
//! | `smart-split` | static | a decision tree is wanted and which kind is fastest is not known |
//! | `decomposition` | static | rules have many fields, such as fifteen, and do not change |
//! | `sfl(INNER)` | dynamic | a static engine is the right one, and its rules change now and then |
//!
//! An engine is a module in `engines/` that implements the traits of the [`adapter`], and
//! an entry in [`ENGINES`]. Conformance tests, differential tests, fuzzing, benchmarks
//! and the command line iterate over the registry, so they include a new engine without
//! further changes. Tests compare tables in documents with the registry.
//!
//! Users choose engines by [specification](EngineSpec): a name and options, such as
//! `tuplemerge:c=10`. If an engine wraps another engine, the inner engine is in
//! parentheses: `NAME(INNER):option=value`.

pub use crate::contract::adapter;
pub use crate::contract::options::{EngineOption, EngineOptions, OptionKind, OptionValue};
pub use crate::contract::parse::MAX_NESTING;
pub use crate::contract::spec::BuildRequest;
pub use crate::contract::spec::EngineSpec;
pub use crate::contract::spec::{BuildFn, Engine, EstimateFn, Wraps};
pub use crate::engines::auto;
pub use crate::engines::registry::{ENGINES, engine, takes_no_updates};
