//! The live table: one writer changes rules while any number of readers look up headers,
//! and no reader ever waits.
//!
//! # Semantics
//!
//! A [`Reader`] *pins* the table for one batch. While the table is pinned, the reader
//! sees one [`Version`]: the rules after some number of whole transactions. Pinning takes
//! a constant number of steps, whatever the writer and other readers do. A reader never
//! pins an older version after a newer one.
//!
//! [`Writer::apply`] checks each transaction against everything accepted before, and
//! accepts or refuses it immediately. All changes of an accepted transaction become
//! visible together: immediately if no reader has an older version pinned, otherwise with
//! a later call. Transactions become visible in order. [`Writer::publish`] returns when
//! everything accepted is visible to every reader that pins afterwards. Only the writer
//! ever waits, and only for readers that have an older version pinned.
//!
//! After each publication, readers have cold caches. So a writer that changes rules all
//! the time may publish changes together, every few milliseconds
//! ([`Writer::set_publish_interval`]). The library reads no clock; with a publish
//! interval, the caller passes the time to the writer.
//!
//! If a reader is leaked while it is pinned ([`Reader::pin`]), its side stays occupied
//! for good. Then [`Writer::apply`] and [`Writer::publish`] may wait for ever.
//! [`Writer::try_apply`] and [`Writer::try_publish`] return instead of waiting.
//!
//! A [`Guard`] also returns the rules at its version: a winner's action and cookie
//! ([`EngineReplica::action`], [`EngineReplica::cookie`]), a rule by its id
//! ([`EngineReplica::rule`]), all rules ([`EngineReplica::rules`]).
//!
//! A table has two copies of the engine and of the rules' actions and cookies. It also
//! has two logs, of the changes that one copy or both copies lack: each log has at most
//! [`MAX_PENDING`] changes, plus the changes of one transaction.
//!
//! # Contents
//!
//! | table | two copies of | a transaction |
//! |---|---|---|
//! | [`Table`] | [`EngineReplica`]: one engine, its rules' actions and cookies | [`Transaction`](crate::Transaction), [`TransactionBuf`](crate::TransactionBuf) |
//! | [`PolicyTable`] | [`PolicyReplica`]: one such engine for each part of a policy | [`PolicyTransaction`](crate::PolicyTransaction), [`PolicyTransactionBuf`](crate::PolicyTransactionBuf) |
//! | [`Table<R>`](Table::new) | any [`Replica`] | the replica's |
//!
//! ```
//! use classyard::prelude::*;
//! use classyard::Transaction;
//!
//! let schema = Schema::ipv4_5tuple();
//! let forest = EngineSpec::parse("forest")?;
//! let (mut writer, table) = forest.builder().table(&RuleSet::new(&schema))?;
//!
//! let rule = Rule::builder(&schema).id(7).priority(1).action(ActionId(3)).build()?;
//! let mut keys = KeyVec::new(&schema);
//! keys.push(&[0xc000_0201, 0x0a01_0203, 40_000, 80, 6])?;
//!
//! let mut reader = table.reader(); // one for each thread
//! let before = reader.pin();
//! let accepted = writer.apply(Transaction::new().insert(rule.view()))?;
//! assert_eq!(before.classify_one(keys.key(0)), Winner::MISS);
//! drop(before);
//!
//! assert_eq!(writer.publish(), accepted);
//! let mut winners = [Winner::MISS];
//! let seen = reader.classify_batch(keys.as_slice(), &mut winners, &mut Scratch::new());
//! assert_eq!(seen, accepted);
//! assert_eq!(winners[0].rule(), Some(RuleId::new(7)?));
//!
//! // An action is read at the version of the lookup: under the same guard.
//! let guard = reader.pin();
//! let winner = guard.classify_one(keys.key(0));
//! assert_eq!(guard.action(winner), Some(ActionId(3)));
//! assert_eq!(guard.rule(RuleId::new(7)?), Some(rule));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Re-optimisation
//!
//! Some engines can be [re-optimised](crate::contract::reoptimise) while readers look up
//! headers and the writer makes transactions. The work runs on a thread of the caller,
//! with its own reader. Neither readers nor the writer wait.
//!
//! ```
//! use std::sync::mpsc;
//! use classyard::prelude::*;
//! use classyard::{NoProgress, Transaction};
//!
//! let schema = Schema::ipv4_5tuple();
//! let forest = EngineSpec::parse("forest")?;
//! let (mut writer, table) = forest.builder().table(&RuleSet::new(&schema))?;
//! let mut reader = table.reader();
//! let (request, requests) = mpsc::channel();
//! let (computed, plans) = mpsc::channel();
//! std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
//!     scope.spawn(move || {
//!         while requests.recv().is_ok() {
//!             let plan = reader.plan(&mut NoProgress).expect("`NoProgress` never stops");
//!             let _ = computed.send(plan.expect("a forest can be re-optimised"));
//!         }
//!     });
//!     let mut planning = false;
//!     for number in 0..5000 {
//!         let rule = Rule::builder(&schema).id(number).field("dst", number << 8).build()?;
//!         writer.apply(Transaction::new().insert(rule.view()))?;
//!         let check = number % 1000 == 999;
//!         if check && !planning && writer.drift().is_some_and(|drift| drift.is_due()) {
//!             request.send(())?;
//!             planning = true;
//!         }
//!         if let Ok(plan) = plans.try_recv() {
//!             planning = !writer.install(&plan);
//!         }
//!     }
//!     // In quiet times:
//!     if planning && writer.install(&plans.recv()?) {
//!         while writer.maintain(64) {}
//!     }
//!     drop(request);
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Mechanism
//!
//! Left-right [RC15] with group commit. `left_right.rs` has the protocol and the argument
//! for its correctness; `docs/live-table.md` explains the protocol. Only the files in
//! `rules/` depend on rules.
//!
//! ```text
//!            apply, publish                        pin
//!  ┌──────┐  ┌─────┐ ┌─────┐        ┌──────────┐  ◀──── Reader
//!  │Writer│─▶│ new │▶│ old │─┐      │   live   │  ◀──── Reader
//!  └──────┘  └─────┘ └─────┘ │      └──────────┘
//!             neither  the   │        ▲  swap
//!             side    live   │        ▼
//!             has     side   │      ┌──────────┐
//!             these   has    └─────▶│ standby  │  ◀──── readers that pinned before
//!                     these  replay └──────────┘        the last swap, if any
//! ```
//!
//! [RC15]: crate::papers#rc15

mod actions;
mod cookies;
mod handles;
mod labels;
mod left_right;
mod log;
mod publish_interval;
mod replica;
mod rules;
mod sync;
mod writer;

#[cfg(test)]
mod tests;

pub use handles::{Guard, Reader, Table, Version};
pub use replica::{Accepted, ChangeLog, Replica};
pub use rules::{
    AcceptedRules, EngineReplica, InstallPlan, PolicyReplica, PolicyTable, PolicyWriter, RuleLog,
    RuleReplica,
};
pub use writer::{MAX_DEFERRED, MAX_PENDING, Writer};
