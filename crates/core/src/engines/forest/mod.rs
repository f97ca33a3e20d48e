//! `forest`: few tables, each with a mask learned over the whole key.
//!
//! # Idea
//! A table may hold a rule if all bits of the table's mask are exact in the rule. A
//! range counts with the prefix that its values share. [TM19] shortens the masks of
//! tuples, field by field, until few masks remain. The forest *learns* masks
//! instead: any bits of any fields that distinguish the rules, so that two or three
//! tables serve nearly all rules of a set, in small buckets. A bucket is a *run* of
//! rules, best first, compared up to eight at a time. A larger bucket becomes
//! *nested tables* with masks of their own. A lookup visits tables in the order of
//! their best rules and ends when no later table can win.
//!
//! # Data layout
//! ```text
//! root ──▶ table ──▶ table ──▶ table        best rule first
//!            │ mask, slots
//!            ▼
//!          slot ──▶ run of rules, column by column; or nested tables
//! ```
//! A slot has no key. Rules with colliding hashes share a run, and comparing them
//! with the key separates them. A 16-bit signature rejects most keys that no rule of
//! the run matches. The details: [`structure`], [`slot`], [`rows`].
//!
//! # Lookup
//! For each table, in order: hash the key's bits under the mask, read the slot,
//! compare the key with the run. A table is skipped if no rule in it can match and
//! beat the present winner. The details: [`lookup`], [`conflicts`].
//!
//! # Modules
//! In order of dependency: a module imports only modules above it in this list.
//!
//! | module | contents |
//! |---|---|
//! | [`slot`] | the 64-bit slot: its bits and their meaning |
//! | [`outline`] | the exact bits and the rank of a rule, for learning masks |
//! | [`settings`] | the options |
//! | [`kernels`] | vector code: active keys, fingerprints, probing tables, comparing runs |
//! | [`rows`] | a rule as the columns of a run, and back |
//! | [`structure`] | tables, slots, runs, places; data layout and invariants |
//! | [`lookup`] | lookups: batches, one key, masked, traced |
//! | [`conflicts`] | marks of the tables that may hold a better rule |
//! | [`learn`] | choosing masks: a sample, a cost model, a search |
//! | [`grow`] | from rules and masks to tables, runs and nested tables |
//! | [`update`] | inserting and removing, splitting and folding |
//! | [`maintain`] | drift, snapshots, adopting plans |
//! | [`index`] | the forest: all of the above together |
//! | [`estimate`] | the estimated cost of a forest |
//! | [`engine`] | the forest as a classifier |
//!
//! `docs/design.md` draws the imports.
//!
//! # Learning
//! A build chooses the masks with the cheapest lookups, as estimated on a sample of
//! the rules. Each rule then goes to the first mask that fits it. Buckets of more
//! than `most` rules are divided in the same way.
//!
//! # Updates
//! In each chain on its way, a rule goes to the first learned table that fits it. A
//! run of `most` rules is split into nested tables when another rule is added. A
//! removal finds its run by id. Nested tables with few rules become a run again; an
//! empty table is removed. Large tasks, such as growing arrays, closing gaps and
//! correcting bounds, are done a few steps with each update.
//!
//! Updates do not change masks, so lookup cost rises as the rule set changes. The
//! root is re-optimised from a snapshot of the rules, on another thread, and the
//! plan is adopted in place. [`rebuild`] learns all masks again, also of nested
//! tables, in one call.
//!
//! # Cost
//! Lookup: a hash and a slot for each visited table, mostly one to three, and a run
//! in one or two of them. Update: a hash and a copy of a run. Memory of an IPv4
//! rule: 40 bytes in its run, 13 in `places`, 4 to 16 in slots.
//!
//! # References
//! [TM19] §III for tables shared by rules of several tuples, and for the order of
//! tables. Learned masks and the rest are ours.
//!
//! [`rebuild`]: crate::contract::classifier::DynamicClassifier::rebuild
//!
//! [TM19]: crate::papers#tm19

use crate::contract::adapter::build_dynamic;
use crate::contract::options::EngineOption;
use crate::contract::spec::{Engine, Wraps};
use crate::parts::simd::Isa;

mod conflicts;
mod engine;
mod estimate;
mod grow;
mod index;
mod kernels;
mod learn;
mod look_ahead;
mod lookup;
mod maintain;
mod outline;
mod rows;
mod settings;
mod slot;
mod structure;
#[cfg(test)]
mod tests;
mod update;

use settings::{FINGERPRINTS, Feature, NAME};
use slot::MAX_RUN;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    summary: "few tables with learned masks, rules compared eight at a time",
    paper: "ours; tables as in [TM19] §III",
    wraps: Wraps::Nothing,
    options: &[
        // Compared with 4 in `bench/records/forest-experiments.md`, "target bucket".
        EngineOption::whole(
            "bucket",
            (1, 64),
            2,
            "mean number of rules in a bucket that learning aims at",
        ),
        // Compared with 32 and 256 to 1,024 in
        // `bench/records/forest-experiments.md`, "prices fitted again" and "runs of
        // up to 256".
        EngineOption::whole(
            "most",
            (2, MAX_RUN),
            128,
            "most rules of a bucket; a larger one becomes nested tables",
        ),
        EngineOption::host_choice(
            "isa",
            &Isa::NAMES,
            Isa::lacks,
            "instructions to compare with",
        ),
        EngineOption::choice(
            "fingerprints",
            &FINGERPRINTS,
            "whether keys of three words and more are compared by fingerprints first; `auto`: \
             if most rules have a mask of their own",
        ),
        EngineOption::SEED,
        EngineOption::choice(
            "without",
            &Feature::NAMES,
            "turn one feature off, to measure what it is worth",
        ),
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<engine::AnyWidth>,
    estimate: estimate::estimate,
};
