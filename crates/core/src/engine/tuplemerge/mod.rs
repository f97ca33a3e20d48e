//! `tuplemerge`: tuple space search with few tables.
//!
//! # Idea
//! Not every bit of a rule is needed to find it. A table may leave bits out, so
//! that rules with similar but different masks share it; rules that then share
//! a masked key form a chain, which must not grow longer than a collision limit
//! `c`. A new table takes a rule's mask, made less specific on purpose, so that
//! later rules fit too ([`selection`]). A rule goes to the first table that it
//! fits, in order of best priority; when its chain there is full, the table is
//! split by a more specific mask. The rest is a tuple space search, with a
//! tenth of the tables.
//!
//! Three engines are registered:
//! - `tuplemerge`, the online form: rules are placed one by one.
//! - `tuplemerge-offline`: all tables are selected at once when building
//!   ([`offline`]); updates go on as in the online form.
//! - `tuplemerge-vpp`: the online form as it runs in VPP's ACL plugin: one hash
//!   table keyed by table number and masked key, bit masks relaxed in larger
//!   steps, and IPv6 addresses relaxed at the borders that networks use.
//!
//! # Data layout
//! A [tuple space](super::tuple_space); there is nothing else.
//!
//! # Lookup
//! That of the [tuple space](super::tuple_space), as in [TM19] §III.C.1.
//!
//! # Insertion
//! ```text
//! for table in order of best priority:
//!     if table.mask ⊆ rule.mask:                       first compatible table
//!         if chain(rule) has less than c rules: link; done
//!         split(table, chain + rule); done
//! link to a new table with select(rule.mask)
//!
//! split(table, colliding):
//!     mask = bits common to all colliding rules
//!     if mask does not part them: lengthen the field whose lengths differ most
//!                                 to the mean of its shortest and longest
//!     move every rule of the table that fits to the table of that mask
//! ```
//! Deletion is one step in the map from ids to records and one in a chain. A
//! table that becomes empty goes, and takes no other with it.
//!
//! # Re-optimisation
//! All tables can be selected anew while updates go on, on another thread
//! ([`background`]).
//!
//! # Cost
//! Lookup: a probe for each table that can still win (around 30 at 256k rules,
//! hundreds for `tss`) and up to `c` rules compared in each. Update: O(tables)
//! mask comparisons, one probe, a walk of at most `c` rules; a split moves a
//! table's rules and happens a few dozen times in a table's life. Memory:
//! linear.
//!
//! # Where we differ from the paper, and why
//! - A split whose mask another table has already moves rules there instead of
//!   making a second table with the same mask; only as many as its limit admits.
//! - Colliding rules with equal masks cannot be parted by masks (the same
//!   addresses with many port ranges, say). Their chain then grows beyond `c`:
//!   a separate table would not help, as [TM19] §III.C.2 says of overlapping
//!   rules.
//! - The order in which rules come decides which tables are made: a table made
//!   for a specific rule does not fit a general one, but the other way round it
//!   does. Rule lists have the specific rules first, so placing them in file
//!   order makes up to five times the tables. Building shuffles them, always the
//!   same way unless a `seed` is given, as [TM19] §IV.A feeds them. `order=worst-first` makes still fewer tables
//!   with longer chains: over the twelve built-in profiles its batch lookups
//!   are 0.8 times as fast at 64k rules and 1.3 times at 256k, its updates 0.7
//!   and 0.85 times (November 2026; `classyard bench --profiles all --sizes
//!   64k,256k --updates -e tuplemerge,tuplemerge:order=worst-first`).
//! - Bits are removed in proportion to a field's width; the paper says how many
//!   for 32 bits only.
//! - The paper calls the mean of two lengths without saying how it is rounded;
//!   we round up, so that the new mask is always more specific.
//!
//! # References
//! [TM19] §III.C.2 (tuple selection), §III.C.3 (insertion), §III.C.4 (deletion),
//! §III.C.5 (offline), §III.D.1 (VPP), §IV.F (collision limit).
//!
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use crate::classifier::{NoProgress, Progress};
use crate::engine::adapter::{BuildRequest, DynamicFamily, build_dynamic};
use crate::engine::tuple_space::{
    EntryIndex, Form, Mark, Placement, Renumbered, TableNumber, TupleEngine, TupleSpace,
    place_one_by_one,
};
use crate::engine::{Engine, EngineOption, EngineSpec, Wraps};
use crate::error::BuildError;
use crate::memory::{Memory, bytes_of};
use crate::monitor::Monitor;
use crate::reoptimise::Reoptimise;
use crate::schema::{FieldId, MatchKind, Schema};
use crate::seed::{Seed, splitmix};

mod background;
mod estimate;
mod offline;
mod selection;

use background::Installing;
use selection::{Relaxation, Selection, leading_bits};

/// The collision limit of the online form: the best of [TM19] §IV.F.
///
/// [TM19]: crate::papers#tm19
const ONLINE_LIMIT: usize = 40;

/// Tables that a rule is tried in, as much work as a step.
const TRIED: usize = 16;

/// Steps that finding a mask for colliding rules takes for each of them.
const PARTED: usize = 4;

/// Rules that a split without effect may have looked at for each insertion into a
/// full chain that follows it unsplit. A chain of [`ONLINE_LIMIT`] rules that
/// masks cannot part is looked at again after three insertions, one of thousands
/// after hundreds: insertions stay within a constant factor of those of `tss`.
const LOOKED_AT_PER_UNSPLIT_INSERTION: usize = 16;

/// The collision limit of the offline form: the best of [TM19] §IV.F.
///
/// [TM19]: crate::papers#tm19
const OFFLINE_LIMIT: usize = 8;

const OPTIONS: &[EngineOption] = &[
    EngineOption::whole(
        "c",
        (1, 65535),
        ONLINE_LIMIT,
        "collision limit of updates: rules that may share a table's masked key",
    ),
    EngineOption::whole(
        "offline-c",
        (1, 65535),
        OFFLINE_LIMIT,
        "collision limit of offline table selection",
    ),
    EngineOption::choice(
        "order",
        &["random", "worst-first", "best-first"],
        "order in which building places rules; random is always the same, unless a seed is given",
    ),
    EngineOption::whole(
        "rebuild",
        (0, usize::MAX),
        0,
        "select all tables anew after this many changes; 0: only when asked",
    ),
    EngineOption::SEED,
];

/// The registry entry of the online form.
pub(super) const ONLINE: Engine = Engine {
    name: "tuplemerge",
    summary: "tuple space search with merged tables, placed rule by rule",
    paper: "[TM19] §III.C.1-4",
    wraps: Wraps::Nothing,
    options: OPTIONS,
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate: estimate::estimate,
};

/// The registry entry of the offline form.
pub(super) const OFFLINE: Engine = Engine {
    name: "tuplemerge-offline",
    summary: "tuplemerge with all tables selected at once when building",
    paper: "[TM19] §III.C.5",
    wraps: Wraps::Nothing,
    options: OPTIONS,
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate: estimate::estimate,
};

/// The registry entry of the form that runs in VPP.
pub(super) const VPP: Engine = Engine {
    name: "tuplemerge-vpp",
    summary: "tuplemerge with one hash table for all tables, as in VPP",
    paper: "[TM19] §III.D",
    wraps: Wraps::Nothing,
    options: OPTIONS,
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate: estimate::estimate,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Online,
    Offline,
    Vpp,
}

impl Variant {
    fn engine(self) -> &'static Engine {
        match self {
            Variant::Online => &ONLINE,
            Variant::Offline => &OFFLINE,
            Variant::Vpp => &VPP,
        }
    }

    /// The variant that is registered under a name.
    fn named(name: &str) -> Variant {
        if name == OFFLINE.name {
            Variant::Offline
        } else if name == VPP.name {
            Variant::Vpp
        } else {
            Variant::Online
        }
    }
}

/// The engines at every key width.
struct AnyWidth;

impl DynamicFamily for AnyWidth {
    type At<const W: usize> = TupleEngine<W, TupleMerge>;
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    variant: Variant,
    limit: usize,
    offline_limit: usize,
    order: &'static str,
    rebuild_after: Option<usize>,
    seed: Seed,
}

impl Settings {
    /// What a specification says.
    fn of(spec: &EngineSpec) -> Settings {
        let options = spec.options();
        let rebuild = options.whole("rebuild");
        Settings {
            variant: Variant::named(spec.engine().name),
            limit: options.whole("c"),
            offline_limit: options.whole("offline-c"),
            order: options.choice("order"),
            rebuild_after: (rebuild > 0).then_some(rebuild),
            seed: options.seed("seed"),
        }
    }
}

struct TupleMerge {
    settings: Settings,
    schema: Arc<Schema>,
    selection: Selection,
    /// Changes since the tables were last selected as a whole.
    changes: usize,
    /// The plan that is being installed.
    installing: Installing,
    /// The cost of a lookup right after the tables were last selected.
    fitted: f64,
    /// Insertions into full chains that are to come without a split, since the
    /// last split had no effect.
    unsplit_insertions: usize,
}

impl<const W: usize> Placement<W> for TupleMerge {
    fn new(request: &BuildRequest<'_>) -> (TupleSpace<W>, Self) {
        let settings = Settings::of(request.spec);
        let schema = request.schema();
        let (form, selection) = TupleMerge::form(&settings, schema);
        let space = TupleSpace::new(schema, form, settings.seed);
        let placement = TupleMerge {
            settings,
            schema: Arc::clone(schema),
            selection,
            changes: 0,
            installing: Installing::default(),
            fitted: background::cost(&space),
            unsplit_insertions: 0,
        };
        (space, placement)
    }

    fn place(
        &mut self,
        space: &mut TupleSpace<W>,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let rule = space.entry(entry);
        let mut tried = 0;
        let compatible = space.tables().find(|&(table, mask)| {
            tried += 1;
            rule.fits(mask) && space.mark(table) != Mark::Draining
        });
        let compatible = compatible.map(|(table, _)| table);
        monitor.work(tried / TRIED)?;
        let Some(table) = compatible else {
            let mut mask = space.entry(entry).mask;
            self.selection.select(&mut mask);
            let table = space.new_table(mask, monitor)?;
            return space.link(table, entry, monitor);
        };
        let chain = space.chain(table, entry).take(self.settings.limit).count();
        if chain < self.settings.limit {
            space.link(table, entry, monitor)
        } else if self.unsplit_insertions > 0 {
            self.unsplit_insertions -= 1;
            space.link(table, entry, monitor)
        } else {
            self.split(space, table, entry, monitor)
        }
    }

    fn place_all(
        &mut self,
        space: &mut TupleSpace<W>,
        mut entries: Vec<EntryIndex>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        if self.settings.variant == Variant::Offline {
            offline::select_tables(space, entries, self.settings.offline_limit, monitor)?;
            self.fitted = background::cost(space);
            return Ok(());
        }
        monitor.begin("ordering rules", entries.len())?;
        match self.settings.order {
            "random" => shuffle(&mut entries, self.settings.seed, monitor)?,
            _ => space.sort_by_rank(&mut entries, monitor)?,
        }
        if self.settings.order == "worst-first" {
            entries.reverse();
        }
        place_one_by_one(self, space, &entries, monitor)?;
        self.fitted = background::cost(space);
        Ok(())
    }

    fn renumbered(&mut self, _: &Renumbered) {
        self.installing.start_again();
    }

    fn rebuild(
        &mut self,
        space: &mut TupleSpace<W>,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let mut memory = Memory::unlimited();
        let mut monitor = Monitor::new(progress, &mut memory);
        let (entries, limit) = (space.stored(), self.settings.offline_limit);
        offline::select_tables(space, entries, limit, &mut monitor)?;
        self.installing = Installing::default();
        self.changes = 0;
        self.fitted = background::cost(space);
        Ok(())
    }

    fn settle(&mut self, space: &mut TupleSpace<W>, changes: usize) {
        self.changes += changes;
        let rebuild_after = self.settings.rebuild_after;
        if rebuild_after.is_some_and(|after| self.changes >= after) {
            let rebuilt = self.rebuild(space, &mut NoProgress);
            rebuilt.expect("only an observer stops a rebuild");
        }
        self.install_some(space, changes * background::STEPS);
    }

    fn reoptimise(engine: &TupleEngine<W, Self>) -> Option<&dyn Reoptimise> {
        Some(engine)
    }

    fn reoptimise_mut(engine: &mut TupleEngine<W, Self>) -> Option<&mut dyn Reoptimise> {
        Some(engine)
    }
}

impl TupleMerge {
    /// What tables and their masks are like.
    fn form(settings: &Settings, schema: &Schema) -> (Form, Selection) {
        let (form, relaxation) = match settings.variant {
            Variant::Online | Variant::Offline => (Form::Private, Relaxation::Paper),
            Variant::Vpp => (Form::Shared, Relaxation::Vpp),
        };
        (form, Selection::new(schema, relaxation))
    }

    /// Makes room for a rule whose chain in a table is full ([TM19] §III.C.3). If
    /// no rule moves, the next insertions into full chains pay for what was looked
    /// at.
    ///
    /// [TM19]: crate::papers#tm19
    fn split<const W: usize>(
        &mut self,
        space: &mut TupleSpace<W>,
        table: TableNumber,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let count = space.chain(table, entry).count() + 1;
        // The rules, and their keys under a mask.
        let bytes = bytes_of::<EntryIndex>(count) + bytes_of::<[u64; W]>(count);
        monitor.memory().take(bytes)?;
        let mut colliding = Vec::with_capacity(count);
        colliding.extend(space.chain(table, entry));
        colliding.push(entry);
        let mask = self.parting_mask(space, table, &colliding);
        monitor.work(PARTED * colliding.len() + space.table_count() / TRIED)?;
        drop(colliding);
        monitor.memory().give_back(bytes);
        let Some(mask) = mask else {
            self.unsplit_insertions = count / LOOKED_AT_PER_UNSPLIT_INSERTION;
            return space.link(table, entry, monitor);
        };
        let other = space
            .tables()
            .find(|&(table, existing)| *existing == mask && space.mark(table) != Mark::Draining)
            .map(|(number, _)| number);
        let other = match other {
            Some(other) => other,
            None => space.new_table(mask, monitor)?,
        };
        let looked_at = count + space.rules_in(table);
        let moved_rules = space.move_fitting(table, other, self.settings.limit, monitor)?;
        if moved_rules == 0 {
            self.unsplit_insertions = looked_at / LOOKED_AT_PER_UNSPLIT_INSERTION;
        }
        let has_room = |space: &TupleSpace<W>, table| {
            space.chain(table, entry).take(self.settings.limit).count() < self.settings.limit
        };
        let fits_other = space.entry(entry).fits(&mask);
        if fits_other && has_room(space, other) {
            space.link(other, entry, monitor)?;
        } else {
            space.link(table, entry, monitor)?;
        }
        space.drop_if_empty(table);
        Ok(())
    }

    /// A mask that is more specific than the table's and parts its colliding
    /// rules, if masks can part them.
    fn parting_mask<const W: usize>(
        &self,
        space: &TupleSpace<W>,
        table: TableNumber,
        colliding: &[EntryIndex],
    ) -> Option<[u64; W]> {
        let old = space.mask(table);
        let mut common = [u64::MAX; W];
        for &entry in colliding {
            for (common, mask) in common.iter_mut().zip(&space.entry(entry).mask) {
                *common &= mask;
            }
        }
        let mut relaxed = common;
        self.selection.relax_split(&mut relaxed);
        let candidates = [relaxed, common];
        let parts = |mask: &[u64; W]| {
            mask != old && is_within(old, mask) && self.parts(space, colliding, mask)
        };
        if let Some(mask) = candidates.into_iter().find(parts) {
            return Some(mask);
        }
        self.lengthen_widest_spread(space, colliding, &common)
            .or((common != *old).then_some(common))
    }

    /// Whether no masked key is left with more rules than the limit.
    fn parts<const W: usize>(
        &self,
        space: &TupleSpace<W>,
        colliding: &[EntryIndex],
        mask: &[u64; W],
    ) -> bool {
        let masked = |&entry: &EntryIndex| -> [u64; W] {
            let value = &space.entry(entry).value;
            std::array::from_fn(|word| value[word] & mask[word])
        };
        let mut keys: Vec<[u64; W]> = colliding.iter().map(masked).collect();
        keys.sort_unstable();
        let longest = keys.chunk_by(|a, b| a == b).map(<[_]>::len).max();
        longest.is_none_or(|longest| longest <= self.settings.limit)
    }

    /// Sets the field whose length differs most among the rules to the mean of
    /// the shortest and the longest; `None` when all masks are equal.
    fn lengthen_widest_spread<const W: usize>(
        &self,
        space: &TupleSpace<W>,
        colliding: &[EntryIndex],
        common: &[u64; W],
    ) -> Option<[u64; W]> {
        let length = |entry: EntryIndex, field: FieldId| {
            let bits = self.schema.placement(field).get(&space.entry(entry).mask);
            (bits.count_ones(), bits)
        };
        let spread = |field: FieldId| {
            let lengths = colliding.iter().map(|&entry| length(entry, field));
            let (shortest, _) = lengths.clone().min()?;
            let (longest, bits) = lengths.max()?;
            (shortest < longest).then_some((longest - shortest, shortest, longest, bits, field))
        };
        let fields = self.schema.field_ids().filter_map(spread);
        let (_, shortest, longest, bits, field) = fields.max_by_key(|&(spread, ..)| spread)?;
        let extra = match self.schema.field(field).kind() {
            // A mean length means nothing for masks with holes, or for fields
            // that are whole or not there: take the most specific rule's bits.
            MatchKind::Ternary | MatchKind::Exact => bits,
            // These may have holes too, though seldom. Bits that the rule of the
            // longest mask does not have would make a table that fits no rule.
            MatchKind::Prefix | MatchKind::Range => {
                leading_bits(bits, (shortest + longest).div_ceil(2))
            }
        };
        let mut mask = *common;
        self.schema.placement(field).set_bits(&mut mask, extra);
        Some(mask)
    }
}

/// Shuffles as a given seed says, else the same way each time.
///
/// The order decides which tables are made, so it decides time and memory. A
/// set that was measured in one process should be as fast in the next, so the
/// random seed of a process has no part in it. It guards nothing either: rules
/// that make bad tables do so in most orders.
fn shuffle(
    entries: &mut [EntryIndex],
    seed: Seed,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let mut state = seed.explicit().unwrap_or(0);
    for last in (1..entries.len()).rev() {
        let below = u64::try_from(last + 1).expect("a length");
        let other = usize::try_from(splitmix(&mut state) % below).expect("an index");
        entries.swap(last, other);
        monitor.advance(1)?;
    }
    Ok(())
}

/// Whether every bit of `small` is in `large`.
fn is_within(small: &[u64], large: &[u64]) -> bool {
    small
        .iter()
        .zip(large)
        .all(|(small, large)| small & !large == 0)
}

#[cfg(test)]
mod tests;
