//! `forest`: few tables, each with a mask learned over the whole key.
//!
//! # Idea
//! A rule may stand in a table if all bits of the table's mask are exact in the
//! rule; a range counts with the prefix that its values share. [TM19] relaxes
//! the masks of tuples, field by field, until they are few. Here masks are
//! *learned*: any bits of any fields that tell the rules apart, so that two or
//! three tables serve nearly all rules of a set, in small buckets. A bucket is
//! a *run* of rules, best first, compared up to eight at a time; a bucket that
//! is too full for that gets *nested tables* with masks of their own. Tables are
//! visited in the order of their best rules, and a lookup ends when no later
//! table can win.
//!
//! # Data layout
//! ```text
//! root ──▶ table ──▶ table ──▶ table        best rule first
//!            │ mask, slots
//!            ▼
//!          slot ──▶ run of rules, column by column; or nested tables
//! ```
//! A slot has no key: rules whose hashes meet share a run, and the comparison
//! tells them apart. A 16-bit signature turns away most keys that have nothing to
//! find. The details: [`structure`], [`slot`], [`rows`].
//!
//! # Lookup
//! For each table, in order: hash the key's bits under the mask, read the slot,
//! compare the key with the run. Tables in which nothing better than the winner so
//! far can match are passed over. The details: [`lookup`], [`conflicts`].
//!
//! # Modules
//! From the bottom up; a module imports only modules above it in this list.
//!
//! | module | what it is |
//! |---|---|
//! | [`slot`] | the 64-bit slot: its bits, and what they mean |
//! | [`outline`] | a rule, as far as masks are concerned |
//! | [`settings`] | what users choose |
//! | [`kernels`] | vector code: active keys, fingerprints, probing tables, comparing runs |
//! | [`rows`] | a rule as the columns of a run, and back |
//! | [`structure`] | tables, slots, runs, places; data layout and invariants |
//! | [`lookup`] | batches, one key, masked, traced |
//! | [`conflicts`] | marks of the tables in which a rule may be beaten |
//! | [`learn`] | choosing masks: a sample, an estimate of costs, a search |
//! | [`grow`] | from rules and masks to tables, runs and nested tables |
//! | [`update`] | inserting and removing, splitting and folding |
//! | [`maintain`] | drift, snapshots, adopting plans |
//! | [`index`] | the forest: all of the above together |
//! | [`estimate`] | what a forest would cost |
//! | [`engine`] | the forest as a classifier |
//!
//! `docs/forest.md` has who imports whom.
//!
//! # Learning
//! When building, choose the masks whose tables make lookups cheapest, as
//! estimated on a sample of the rules, and deal the rules out: each goes to the
//! first mask that fits it. Likewise in each bucket of more than `most` rules.
//!
//! # Updates
//! A rule goes to the first learned table that fits it, in each chain on its way;
//! a run of `most` rules is split into nested tables when one more comes. A removal
//! finds its run by id. Nested tables with few rules become a run again, an empty
//! table goes.
//! Whatever is large, arrays that grow, gaps to be closed, bounds to be corrected,
//! is done a few steps with each update.
//!
//! Masks are not touched by updates, so lookup cost rises as the rule set changes.
//! The root is optimised again from a snapshot of the rules, on another thread,
//! and the plan is adopted in place. [`rebuild`] learns everything anew, nested
//! tables as well, at once.
//!
//! # Cost
//! Lookup: a hash and a slot for each table that is visited, mostly one to
//! three, and a run in one or two of them. Update: a hash and a copy of a run.
//! Memory of an IPv4 rule: 40 bytes in its run, 13 in `places`, 4 to 16 in
//! slots.
//!
//! # References
//! [TM19] §III for tables that rules of several tuples share, and for the order
//! of tables. Learned masks and the rest are ours.
//!
//! [`rebuild`]: crate::classifier::DynamicClassifier::rebuild
//!
//! [TM19]: crate::papers#tm19

use crate::engine::adapter::build_dynamic;
use crate::engine::{Engine, EngineOption, Wraps};
use crate::simd::Isa;

mod conflicts;
mod engine;
mod estimate;
mod grow;
mod index;
mod kernels;
mod learn;
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
        EngineOption::whole(
            "bucket",
            (1, 64),
            2,
            "rules in a mean bucket that learning aims at",
        ),
        EngineOption::whole(
            "most",
            (2, MAX_RUN),
            128,
            "rules of a bucket beyond which it becomes nested tables",
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
             where hardly two rules have the same mask",
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
