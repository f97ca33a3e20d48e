//! classyard classifies packets: for each packet, it finds the best matching
//! rule in a list of rules over header fields. Answers are exact. Lookups run
//! at many millions of packets per second while rules are added and removed.
//!
//! The steps of using the library:
//!
//! 1. A [`Schema`] defines the fields of headers and the kinds of matches that
//!    rules may use. [`Schema::ipv4_5tuple`], [`Schema::ipv6_5tuple`] and
//!    [`Schema::openflow15`] are built in.
//! 2. A [`RuleSet`] holds [`Rule`]s of one schema. A [`Policy`] holds rules of
//!    several schemas (IPv4 and IPv6) in one priority order.
//! 3. An [`EngineSpec`] builds a [`Classifier`] over the rules. The [`engine`]
//!    module lists the engines and when to choose each.
//! 4. Headers are packed as keys ([`KeyVec`]). A lookup takes a batch of keys
//!    and returns [`Winner`]s.
//!    Headers that are stored by column are packed and looked up with
//!    [`columns`].
//! 5. A [`Transaction`] changes the rules of a [`DynamicClassifier`]. A
//!    [`TransactionBuf`] owns its rules.
//! 6. A [`Table`] lets any number of threads look up headers while one writer
//!    makes transactions. Readers never wait. For one batch, a reader sees the
//!    rules and actions of one version.
//! 7. A [`LookupPool`](parallel::LookupPool) looks up one batch on several threads of the
//!    caller.
//! 8. Engines that adapt to their rules can be re-optimised while the rules
//!    change: [`reoptimise`].
//! 9. [`estimate`] predicts an engine's memory and lookup time before it is
//!    built.
//!
//! The crate root has the names that most programs use. Other names are in the
//! module of their topic: errors in [`error`], the layout of keys in
//! [`schema`], the parts of live tables in [`table`]. To write your own engine,
//! see [`author`].
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use classyard::prelude::*;
//! use ipnet::Ipv4Net;
//!
//! let schema = Schema::ipv4_5tuple();
//! let servers: Ipv4Net = "10.0.0.0/8".parse()?;
//! let web = Rule::builder(&schema)
//!     .id(0)
//!     .priority(10)
//!     .field("dst", servers)
//!     .field("dport", 80..=89)
//!     .field("proto", 6)
//!     .action(ActionId(1));
//! let mut rules = RuleSet::new(&schema);
//! rules.push(web.build()?.view())?;
//!
//! let classifier = EngineSpec::parse("linear")?.builder().build(&rules)?;
//!
//! // Headers are packed into keys: one value for each field, in field order.
//! let mut keys = KeyVec::new(&schema);
//! let [src, dst] = ["192.0.2.1", "10.1.2.3"].map(|text| text.parse::<Ipv4Addr>());
//! let (src, dst) = (u128::from(src?.to_bits()), u128::from(dst?.to_bits()));
//! keys.push(&[src, dst, 40_000, 80, 6])?;
//! keys.push(&[src, dst, 40_000, 22, 6])?;
//! let mut winners = vec![Winner::MISS; keys.len()];
//! classifier.classify_batch(keys.as_slice(), &mut winners, &mut Scratch::new());
//! assert_eq!(winners[0].rule(), Some(RuleId::new(0)?));
//! assert!(winners[1].is_miss());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [`prelude`] has the names for the usual `use` line.

pub mod author;
pub mod build;
pub mod engine;
pub mod parallel;
pub mod policy;
pub mod table;

mod budget;
mod contract;
mod cost;
mod engines;
mod model;
mod parts;

pub use budget::progress;
pub use contract::{classifier, reoptimise};
pub use cost::{estimate, machine};
pub use model::{columns, error, key, limits, rule, ruleset, schema, seed, transaction, value};

pub use build::EngineBuilder;
pub use classifier::{Classifier, DynamicClassifier, LookupTrace, Scratch, Stats};
pub use engine::EngineSpec;
pub use error::{BuildError, UpdateError};
pub use key::{KeySlice, KeyVec};
pub use limits::Limits;
pub use policy::{
    FiveTuple, PacketHeader, PartId, Policy, PolicyClassifier, PolicyRule, PolicyTrace,
    PolicyTransaction, PolicyTransactionBuf, Verdict,
};
pub use progress::{NoProgress, Progress};
pub use rule::{
    ActionId, FieldMatch, FieldValue, Priority, Rule, RuleBuilder, RuleId, RuleRef, Winner,
};
pub use ruleset::RuleSet;
pub use schema::{Field, FieldId, MatchKind, Schema};
pub use seed::Seed;
pub use table::{PolicyTable, PolicyWriter, Reader, Table, Writer};
pub use transaction::{Change, Transaction, TransactionBuf};

pub mod prelude {
    //! The names that most programs use. Names that are likely to clash are not
    //! included: import tables, changes and fields by name.
    //!
    //! ```
    //! use classyard::prelude::*;
    //!
    //! let schema = Schema::ipv4_5tuple();
    //! let mut rules = RuleSet::new(&schema);
    //! rules.push(Rule::builder(&schema).id(0).field("dport", 80..=89).build()?.view())?;
    //! let classifier = EngineSpec::parse("forest")?.builder().build(&rules)?;
    //! let mut keys = KeyVec::new(&schema);
    //! keys.push(&[0xc000_0201, 0x0a01_0203, 40_000, 80, 6])?;
    //! let winner = classifier.classify_one(keys.key(0));
    //! assert_eq!(winner.rule(), Some(RuleId::new(0)?));
    //! # Ok::<(), Box<dyn std::error::Error>>(())
    //! ```

    pub use crate::{
        ActionId, Classifier, DynamicClassifier, EngineSpec, FieldMatch, FiveTuple, KeyVec,
        PacketHeader, Policy, PolicyClassifier, PolicyRule, PolicyTable, PolicyTrace,
        PolicyTransactionBuf, PolicyWriter, Priority, Rule, RuleId, RuleRef, RuleSet, Schema,
        Scratch, TransactionBuf, Winner,
    };
}

/// The papers that code and documents cite, by key. `docs/papers.md` lists the
/// parts of each paper that are implemented, and the files that implement them.
///
/// # TM19
/// J. Daly, V. Bruschi, L. Linguaglossa, S. Pontarelli, D. Rossi, J. Tollet,
/// E. Torng, A. Yourtchenko: TupleMerge: Fast Software Packet Processing for
/// Online Packet Classification. IEEE/ACM Transactions on Networking 27 (4),
/// 2019. <https://doi.org/10.1109/TNET.2019.2920718>
///
/// # SFL17
/// S. Hager, S. Brack, B. Scheuermann: The Small, the Fast and the Lazy (SFL): A
/// General Approach for Fast and Flexible Packet Classification. 2017.
///
/// # DEC14
/// Y. R. Qu, S. Zhou, V. K. Prasanna: Performance Modeling and Optimizations for
/// Decomposition-based Large-scale Packet Classification on Multi-core
/// Processors. 2014.
///
/// # FCH14
/// N. Shelly, E. J. Jackson, T. Koponen, N. McKeown, J. Rajahalme: Flow Caching
/// for High Entropy Packet Fields. HotSDN 2014.
/// <https://doi.org/10.1145/2620728.2620755>
///
/// # FTS25
/// B. Xiong, J. Wu, G. Hu, J. Zhang, B. Zhao, K. Li: FastTSS: Accelerating tuple
/// space search for fast packet classification in virtual SDN switches. Journal
/// of Network and Computer Applications, 2025.
/// <https://doi.org/10.1016/j.jnca.2025.104112>
///
/// # CS18
/// W. Li, X. Li, H. Li, G. Xie: CutSplit: A Decision-Tree Combining Cutting and
/// Splitting for Scalable Packet Classification. INFOCOM 2018.
/// <https://doi.org/10.1109/INFOCOM.2018.8485947>
///
/// # SBVW03
/// S. Singh, F. Baboescu, G. Varghese, J. Wang: Packet Classification Using
/// Multidimensional Cutting. SIGCOMM 2003.
/// <https://doi.org/10.1145/863955.863980>
///
/// # HXSM14
/// P. He, G. Xie, K. Salamatian, L. Mathy: Meta-Algorithms for Software-Based Packet
/// Classification. ICNP 2014.
///
/// # PS16
/// S. Yingchareonthawornchai, J. Daly, A. X. Liu, E. Torng: A Sorted Partitioning
/// Approach to High-speed and Fast-update OpenFlow Classification. ICNP 2016.
/// <https://doi.org/10.1109/ICNP.2016.7784429>
///
/// # RC15
/// P. Ramalhete, A. Correia: Left-Right: A Concurrency Control Technique with
/// Wait-Free Population Oblivious Reads. 2015.
/// <https://hal.science/hal-01207881>
pub mod papers {}

/// Tests the examples of `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
