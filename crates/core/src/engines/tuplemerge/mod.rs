//! `tuplemerge`: tuple space search with few tables.
//!
//! # Idea
//! Not every bit of a rule is needed to find it. A table may leave bits out, so that
//! rules with similar but different masks share it. Rules with the same masked key form
//! a chain, which must not grow longer than a collision limit `c`. A new table takes a
//! rule's mask and makes it less specific, so that later rules fit too ([`selection`]).
//! A rule goes to the first table that it fits, in order of best priority. If its chain
//! in that table is full, a more specific mask splits the table. The rest is a tuple
//! space search, with a tenth of the tables.
//!
//! There are three engines:
//! - `tuplemerge`, the online form: rules are placed one by one.
//! - `tuplemerge-offline`: a build selects all tables together ([`offline`]); updates
//!   work as in the online form.
//! - `tuplemerge-vpp`: the online form as in VPP's ACL plugin: one hash table keyed by
//!   table number and masked key; masks lose bits in larger steps, and IPv6 masks are
//!   relaxed at the borders that networks use.
//!
//! # Data layout
//! A [tuple space](crate::parts::tuple_space) and nothing else.
//!
//! # Lookup
//! As in the [tuple space](crate::parts::tuple_space), by [TM19] §III.C.1.
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
//!     if mask does not separate them: lengthen the field whose lengths differ most
//!                                     to the mean of its shortest and longest
//!     move every rule of the table that fits to the table of that mask
//! ```
//! A deletion takes one step in the map from ids to records and one in a chain. A table
//! that becomes empty is removed; no other table changes.
//!
//! # Re-optimisation
//! Another thread can select all tables again while updates continue ([`background`]).
//!
//! # Cost
//! Lookup: a probe of each table that can still win (around 30 at 256k rules, hundreds
//! for `tss`), with up to `c` rules compared in each. Update: O(tables) mask
//! comparisons, one probe, and a walk of at most `c` rules. A split moves a table's
//! rules and happens a few dozen times for each table. Memory: linear.
//!
//! # Where we differ from the paper, and why
//! - If another table already has the mask of a split, rules move to that table, up to
//!   its limit. The paper makes a second table with the same mask.
//! - Masks cannot separate colliding rules that have equal masks and equal bits under
//!   them (the same addresses with many port ranges, say). Their chain grows beyond `c`:
//!   a separate table would not help, as [TM19] §III.C.2 says of overlapping rules.
//! - The order of rules decides which tables are made: a general rule does not fit a
//!   table made for a specific rule, but a specific rule fits a table made for a general
//!   one. Rule lists begin with specific rules, so placing rules in file order makes up
//!   to five times the tables. Builds shuffle the rules, as [TM19] §IV.A does, always in
//!   the same way unless a `seed` is given. `order=worst-first` makes still fewer tables
//!   with longer chains: over the twelve built-in profiles its batch lookups are 0.8
//!   times as fast at 64k rules and 1.3 times at 256k, its updates 0.7 and 0.85 times
//!   (November 2026; `classyard bench --profiles all --sizes 64k,256k --updates -e
//!   tuplemerge,tuplemerge:order=worst-first`).
//! - Bits are removed in proportion to a field's width; the paper gives numbers for 32
//!   bits only.
//! - The paper does not say how the mean of two lengths is rounded. We round up, so that
//!   the new mask is always more specific.
//!
//! # References
//! [TM19] §III.C.2 (tuple selection), §III.C.3 (insertion), §III.C.4 (deletion),
//! §III.C.5 (offline), §III.D.1 (VPP), §IV.F (collision limit).
//!
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use crate::budget::memory::{Memory, bytes_of};
use crate::budget::monitor::Monitor;
use crate::contract::adapter::{DynamicEveryWidth, build_dynamic};
use crate::contract::classifier::{NoProgress, Progress};
use crate::contract::options::EngineOption;
use crate::contract::reoptimise::Reoptimise;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::model::error::BuildError;
use crate::model::schema::{FieldId, MatchKind, Schema};
use crate::model::seed::{Seed, splitmix};
use crate::parts::tuple_space::{
    EntryIndex, Form, Mark, Placement, Renumbered, TableNumber, TupleEngine, TupleSpace,
    place_one_by_one,
};

mod background;
mod estimate;
mod offline;
mod selection;

use background::Installing;
use selection::{Relaxation, Selection, leading_bits};

/// The collision limit of the online form: the best value of [TM19] §IV.F. Measured here
/// in `bench/records/tm19-figures.md` (Figs. 7 and 8).
///
/// [TM19]: crate::papers#tm19
const ONLINE_LIMIT: usize = 40;

/// The number of tables tried for one step of work. It sets how often a build reports
/// progress, as does the next number.
const TABLES_PER_STEP: usize = 16;

/// The steps of work for each colliding rule when a mask for them is computed.
const SPLIT_STEPS_PER_RULE: usize = 4;

/// After a split that moved no rule, the number of examined rules is divided by this.
/// The result is the number of insertions into full chains that go unsplit. A chain of
/// [`ONLINE_LIMIT`] rules that masks cannot separate is examined again after three
/// insertions, a chain of thousands after hundreds. So insertions stay within a constant
/// factor of insertions into `tss`.
const LOOKED_AT_PER_UNSPLIT_INSERTION: usize = 16;

/// The collision limit of the offline form: the best value of [TM19] §IV.F. Measured
/// here in `bench/records/tm19-figures.md` (Figs. 7 and 8).
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

/// The registry entry of the form in VPP.
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

    /// Returns the variant that is registered under a name.
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

impl DynamicEveryWidth for AnyWidth {
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
    /// Returns the settings of a specification.
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
    /// Changes since all tables were last selected.
    changes: usize,
    /// The plan that is being installed.
    installing: Installing,
    /// The cost of a lookup right after the tables were last selected.
    fitted: f64,
    /// The number of insertions into full chains that go unsplit, because the last split
    /// moved no rule.
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
        monitor.work(tried / TABLES_PER_STEP)?;
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
            rebuilt.expect("only a progress callback stops a rebuild");
        }
        self.install_some(space, changes * background::STEPS_PER_CHANGE);
    }

    fn reoptimise(engine: &TupleEngine<W, Self>) -> Option<&dyn Reoptimise> {
        Some(engine)
    }

    fn reoptimise_mut(engine: &mut TupleEngine<W, Self>) -> Option<&mut dyn Reoptimise> {
        Some(engine)
    }
}

impl TupleMerge {
    /// Returns the form of tables and the selection of their masks.
    fn form(settings: &Settings, schema: &Schema) -> (Form, Selection) {
        let (form, relaxation) = match settings.variant {
            Variant::Online | Variant::Offline => (Form::Private, Relaxation::Paper),
            Variant::Vpp => (Form::Shared, Relaxation::Vpp),
        };
        (form, Selection::new(schema, relaxation))
    }

    /// Makes room for a rule whose chain in a table is full ([TM19] §III.C.3). If no
    /// rule moves, the next insertions into full chains go unsplit, to pay for the rules
    /// examined.
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
        // Memory for the rules and their masked keys.
        let bytes = bytes_of::<EntryIndex>(count) + bytes_of::<[u64; W]>(count);
        monitor.memory().take(bytes)?;
        let mut colliding = Vec::with_capacity(count);
        colliding.extend(space.chain(table, entry));
        colliding.push(entry);
        let mask = self.parting_mask(space, table, &colliding);
        monitor
            .work(SPLIT_STEPS_PER_RULE * colliding.len() + space.table_count() / TABLES_PER_STEP)?;
        drop(colliding);
        monitor.memory().give_back(bytes);
        let Some(mask) = mask else {
            self.unsplit_insertions = count / LOOKED_AT_PER_UNSPLIT_INSERTION;
            return space.link(table, entry, monitor);
        };
        let target = space
            .tables()
            .find(|&(table, existing)| *existing == mask && space.mark(table) != Mark::Draining)
            .map(|(number, _)| number);
        let target = match target {
            Some(target) => target,
            None => space.new_table(mask, monitor)?,
        };
        let looked_at = count + space.rules_in(table);
        let moved_rules = space.move_fitting(table, target, self.settings.limit, monitor)?;
        if moved_rules == 0 {
            self.unsplit_insertions = looked_at / LOOKED_AT_PER_UNSPLIT_INSERTION;
        }
        let has_room = |space: &TupleSpace<W>, table| {
            space.chain(table, entry).take(self.settings.limit).count() < self.settings.limit
        };
        let fits_other = space.entry(entry).fits(&mask);
        if fits_other && has_room(space, target) {
            space.link(target, entry, monitor)?;
        } else {
            space.link(table, entry, monitor)?;
        }
        space.drop_if_empty(table);
        Ok(())
    }

    /// Returns a mask that is more specific than the table's and separates its colliding
    /// rules, or `None` if masks cannot separate them.
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

    /// True if no masked key has more rules than the limit.
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

    /// Lengthens the field whose length differs most among the rules to the mean of the
    /// shortest and the longest. Returns `None` if all masks are equal.
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
            // A mean length is meaningless for masks with holes, and for fields that are
            // exact or any: take the most specific rule's bits.
            MatchKind::Ternary | MatchKind::Exact => bits,
            // These masks may have holes too, though rarely. So take only bits of the
            // longest mask: with other bits, no rule would fit the table.
            MatchKind::Prefix | MatchKind::Range => {
                leading_bits(bits, (shortest + longest).div_ceil(2))
            }
        };
        let mut mask = *common;
        self.schema.placement(field).set_bits(&mut mask, extra);
        Some(mask)
    }
}

/// Shuffles by an explicit seed, or else always in the same way.
///
/// The order decides which tables are made, and so time and memory. A rule set measured
/// in one process should be as fast in the next, so the random seed of the process is
/// not used. It would protect against nothing: rules that make bad tables do so in most
/// orders.
fn shuffle(
    entries: &mut [EntryIndex],
    seed: Seed,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let mut state = seed.explicit().unwrap_or(0);
    for last in (1..entries.len()).rev() {
        let bound = u64::try_from(last + 1).expect("a length");
        let chosen = usize::try_from(splitmix(&mut state) % bound).expect("an index");
        entries.swap(last, chosen);
        monitor.advance(1)?;
    }
    Ok(())
}

/// True if every bit of `small` is in `large`.
fn is_within(small: &[u64], large: &[u64]) -> bool {
    small
        .iter()
        .zip(large)
        .all(|(small, large)| small & !large == 0)
}

#[cfg(test)]
mod tests;
