//! Updates: one rule is inserted or removed.
//!
//! In each chain on its way, a rule goes to the first table that fits it, in the
//! order in which masks were learned. A run of `most` rules is *split* into nested
//! tables when another rule is added. Nested tables with few remaining rules are
//! *folded* into a run. Masks do not change.

use super::grow::{self, Growth};
use super::outline::Outline;
use super::rows::Rows;
use super::slot::{Bucket, MAX_RUN, Place, Run, TableNumber};
use super::structure::{Role, RuleAt, Structure, Table};
use crate::budget::monitor::unwatched;
use crate::model::rule::RuleId;
use crate::parts::id_map::Position;

/// Nested tables with at most this number of rules become a run again. Measured in
/// `bench/records/constants.md` (Forest).
const MAX_FOLDED_RULES: usize = 6;

/// Inserts a rule, given as a row. Its id must be known: either it was just
/// [added](Structure::add_id), at that position, or its rule was taken out. `root` is
/// the root's table for the rule, if it is known; the root may have changed since.
pub(super) fn insert<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    row: &[u64],
    position: Option<Position>,
    root: Option<TableNumber>,
) {
    structure.make_room();
    let rule = structure.outline(row);
    let mut parent = Place::ROOT;
    let mut found = root.filter(|&root| still_fits(structure, &rule, root));
    loop {
        let table = (found.take()).unwrap_or_else(|| table_for(structure, &rule, parent));
        let entry = structure.count_in(table, &rule);
        match entry.bucket {
            Bucket::Nested(_) => {
                structure.store_bucket(entry.place, entry.bucket, entry.signature);
                parent = entry.place;
            }
            Bucket::Run(run) if growth.is_to_be_split(run) => {
                let bucket = split(structure, growth, run, row, entry.place);
                structure.store_bucket(entry.place, bucket, entry.signature);
                return;
            }
            Bucket::Empty | Bucket::Run(_) => {
                structure.insert(entry, row, position);
                return;
            }
        }
    }
}

/// Removes the rule with that id; returns true if there was one.
pub(super) fn remove<const W: usize>(structure: &mut Structure<W>, id: RuleId) -> bool {
    structure.make_room();
    let Some(rule) = structure.remove_id(id) else {
        return false;
    };
    take_out(structure, rule);
    true
}

/// Takes a rule out of its run.
pub(super) fn take_out<const W: usize>(structure: &mut Structure<W>, rule: RuleAt) {
    if let Some(parent) = structure.take_out(rule, MAX_FOLDED_RULES) {
        fold(structure, parent);
    }
}

/// Returns the table of a chain for a rule: the first learned table that fits it, or
/// a new table that fits all rules.
fn table_for<const W: usize>(
    structure: &mut Structure<W>,
    rule: &Outline<W>,
    parent: Place,
) -> TableNumber {
    first_fitting(structure, rule, parent)
        .unwrap_or_else(|| structure.add(Table::new([0; W], 1).of_chain(parent, u32::MAX)))
}

/// True if there is a table of the root with that number, and a rule may go to it.
fn still_fits<const W: usize>(
    structure: &Structure<W>,
    rule: &Outline<W>,
    number: TableNumber,
) -> bool {
    structure.table_if_any(number).is_some_and(|table| {
        table.slot_count() > 1 && table.parent().is_root() && accepts(table, rule)
    })
}

/// Returns the first learned table of a chain that fits a rule.
pub(super) fn first_fitting<const W: usize>(
    structure: &Structure<W>,
    rule: &Outline<W>,
    parent: Place,
) -> Option<TableNumber> {
    let fits = |number: &TableNumber| accepts(structure.table(*number), rule);
    if parent.is_root() {
        return structure.root_by_order().find(fits);
    }
    let fitting = structure.chain(structure.first_of(parent)).filter(fits);
    fitting.min_by_key(|number| structure.table(*number).order())
}

/// True if a rule may go to a table.
fn accepts<const W: usize>(table: &Table<W>, rule: &Outline<W>) -> bool {
    rule.fits(table.mask()) && table.role() != Role::Draining && !is_full(table)
}

/// True if a table is a single full run that no mask splits.
fn is_full<const W: usize>(table: &Table<W>) -> bool {
    table.slot_count() == 1 && usize::from(table.slot(0).length()) == MAX_RUN
}

/// Divides a run and one more rule into nested tables. If no mask distinguishes the
/// rules, makes a longer run. The caller stores the result in the slot.
fn split<const W: usize>(
    structure: &mut Structure<W>,
    growth: &mut Growth<W>,
    run: Run,
    row: &[u64],
    place: Place,
) -> Bucket {
    let mut words = Vec::with_capacity((usize::from(run.len) + 1) * row.len());
    structure.dissolve_run(place, run, &mut words);
    words.extend_from_slice(row);
    let rows = Rows::new(&words, row.len());
    growth.budget().begin_split();
    let bucket = unwatched(|monitor| {
        let members = rows.numbers();
        grow::grow_bucket(structure, growth, &rows, members, place, false, monitor)
    });
    growth.budget().end();
    bucket
}

/// Makes a run of the nested tables under a slot.
fn fold<const W: usize>(structure: &mut Structure<W>, parent: Place) {
    let mut words = Vec::new();
    structure.dissolve_chain(structure.first_of(parent), &mut words);
    let rows = Rows::new(&words, structure.shape().columns());
    let members = rows.numbers();
    let table = structure.table(parent.table);
    let signature = members.iter().fold(0, |signature, &index| {
        let rule = structure.outline(rows.row(index));
        let hash = table.hash(&rule.value, structure.secrets());
        signature | 1 << table.signature_bit(hash)
    });
    let run = grow::make_run(structure, &rows, members, parent);
    structure.store_bucket(parent, Bucket::Run(run), signature);
}
