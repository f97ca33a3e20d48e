//! Inserting and removing rules, making runs, dissolving chains.

use super::Structure;
use super::places::{Known, Places};
use super::runs::Runs;
use super::tables::Tables;
use crate::budget::monitor::Monitor;
use crate::engines::forest::outline::Outline;
use crate::engines::forest::slot::{Bucket, ConflictMask, Place, Run, Slot, TableNumber};
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, RuleId, RuleRef, Winner};
use crate::parts::id_map::Position;

/// The slot of a table for an inserted rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// The bucket before the insertion.
    pub(crate) bucket: Bucket,
    /// The signature with the rule's bit.
    pub(crate) signature: u16,
}

/// A rule in its run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleAt {
    place: Place,
    run: Run,
    at: usize,
}

impl RuleAt {
    /// The slot of the run.
    #[cfg(test)]
    pub(crate) fn place(self) -> Place {
        self.place
    }

    /// The run, and the rule's position in it.
    pub(crate) fn in_run(self) -> (Run, usize) {
        (self.run, self.at)
    }
}

fn id_of(rank: u64) -> RuleId {
    Winner::from_rank(rank).rule().expect("a rule's rank")
}

/// Inserting.
impl<const W: usize> Structure<W> {
    /// Counts an inserted rule in a table; returns the rule's slot in that table.
    #[inline]
    pub(crate) fn count_in(&mut self, number: TableNumber, rule: &Outline<W>) -> Entry {
        let table = &mut self.tables[number.index()];
        table.count_in(rule.rank);
        let hash = table.hash(&rule.value, &self.secrets);
        let slot = table.slot_of(hash);
        let old_slot = table.slot(slot);
        let signature = old_slot.signature() | 1 << table.signature_bit(hash);
        let best = table.best().min(rule.rank);
        self.set_best(number, best);
        Entry {
            place: Place {
                table: number,
                slot,
            },
            bucket: old_slot.bucket(),
            signature,
        }
    }

    /// The slot of a table for a rule, which may not be there.
    #[inline]
    pub(crate) fn place_in(&self, number: TableNumber, rule: &Outline<W>) -> Place {
        let table = self.table(number);
        Place {
            table: number,
            slot: table.slot_of(table.hash(&rule.value, &self.secrets)),
        }
    }

    /// Adds an id, whose rule is [inserted](Self::insert) next. Returns `None` and
    /// changes nothing if the id exists.
    #[inline]
    pub(crate) fn add_id(&mut self, id: RuleId, action: ActionId) -> Option<Position> {
        self.places.insert(id, Known::unplaced(action)).ok()
    }

    /// Adds ids, whose rules are placed next, and the rules' actions. Sorted ids
    /// take the least time.
    pub(crate) fn add_ids(&mut self, ids: impl IntoIterator<Item = (RuleId, ActionId)>) {
        let known = |(id, action)| (id, Known::unplaced(action));
        self.places.extend(ids.into_iter().map(known));
    }

    /// Puts a rule's row into the run of an entry, or into an empty bucket. The
    /// rule's id must exist; `position` is its position in `places`, if no id was
    /// added or removed since.
    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry, row: &[u64], position: Option<Position>) {
        match position {
            Some(position) => self.places.at_mut(position).place = entry.place,
            None => self.move_to(entry.place, row[0]),
        }
        let run = match entry.bucket {
            Bucket::Empty => self.runs.create([row].into_iter()),
            Bucket::Run(run) => self.runs.insert(run, row),
            Bucket::Nested(_) => unreachable!("rules are in runs"),
        };
        self.store_bucket(entry.place, Bucket::Run(run), entry.signature);
    }

    /// Sets the place of a rule whose id exists.
    fn move_to(&mut self, place: Place, rank: u64) {
        let known = self.places.get_mut(id_of(rank));
        known.expect("the ids of rules are known").place = place;
    }

    /// Stores a bucket and a signature in a slot. Its conflicts are set to all
    /// groups.
    #[inline]
    pub(crate) fn store_bucket(&mut self, place: Place, bucket: Bucket, signature: u16) {
        self.tables[place.table.index()].set_slot(place.slot, Slot::new(bucket, signature));
    }

    /// Makes a run of rows, sorted best first, and sets the place of their rules.
    /// The caller [stores](Self::store_bucket) the run in that slot.
    pub(crate) fn create_run<'a>(
        &mut self,
        place: Place,
        rows: impl ExactSizeIterator<Item = &'a [u64]> + Clone,
    ) -> Run {
        let run = self.runs.create(rows.clone());
        for row in rows {
            self.move_to(place, row[0]);
        }
        run
    }

    /// Sets the conflicts of a run's rules.
    pub(crate) fn set_conflicts(&mut self, place: Place, conflicts: ConflictMask) {
        let table = &mut self.tables[place.table.index()];
        let slot = table.slot(place.slot);
        table.set_slot(place.slot, slot.with_conflicts(conflicts));
    }

    /// Starts to mark conflicts, with `group` as the table's group.
    pub(crate) fn begin_marking(&mut self, number: TableNumber, group: ConflictMask) {
        self.tables[number.index()].begin_marking(group);
    }

    /// Ends marking: from now on, lookups skip the table if the winner has no
    /// conflicts in it.
    pub(crate) fn end_marking(&mut self, number: TableNumber) {
        self.tables[number.index()].end_marking();
    }
}

/// Replacing.
impl<const W: usize> Structure<W> {
    /// Sets the action of the rule with the same id, if it has this row and its run
    /// holds its whole mask. Otherwise returns false and changes nothing.
    pub(crate) fn set_action(&mut self, rule: &RuleRef<'_>, row: &[u64]) -> bool {
        let Some(RuleAt { run, at, .. }) = self.find(rule.id()) else {
            return false;
        };
        let is_equal = self.runs.row(run, at).eq(row.iter().copied());
        let is_held = self.shape.holds_mask(rule) && self.mask_of(row[0]).is_none();
        if !is_equal || !is_held {
            return false;
        }
        let known = self.places.get_mut(rule.id());
        known.expect("the rule was found").action = rule.action();
        true
    }
}

/// Removing.
impl<const W: usize> Structure<W> {
    /// Returns the run and position of the rule with that id.
    pub(crate) fn find(&self, id: RuleId) -> Option<RuleAt> {
        Some(self.find_at(id, self.places.get(id)?.place))
    }

    /// The slot of the run of the rule with that id.
    pub(crate) fn place_of(&self, id: RuleId) -> Option<Place> {
        Some(self.places.get(id)?.place)
    }

    /// Returns the action of the rule with that id.
    pub(crate) fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.places.get(id)?.action)
    }

    /// Returns the run and position of a rule at a known place.
    pub(crate) fn find_at(&self, id: RuleId, place: Place) -> RuleAt {
        let Bucket::Run(run) = self.slot(place).bucket() else {
            unreachable!("rules are in runs");
        };
        let is_it = |&rank: &u64| Winner::from_rank(rank).rule() == Some(id);
        let position = self.runs.ranks(run).iter().position(is_it);
        let position = position.expect("the rule is in its run");
        RuleAt {
            place,
            run,
            at: position,
        }
    }

    /// Removes an id. Returns the position of its rule, which is [taken
    /// out](Self::take_out) next.
    #[inline]
    pub(crate) fn remove_id(&mut self, id: RuleId) -> Option<RuleAt> {
        let place = self.places.remove(id)?.place;
        self.forget_mask(id);
        Some(self.find_at(id, place))
    }

    /// Takes a rule out of its run. Its id remains unless it was removed before. If
    /// nested tables above the rule have at most `few` remaining rules, returns the
    /// parent of the outermost of them.
    pub(crate) fn take_out(&mut self, rule: RuleAt, few: usize) -> Option<Place> {
        let RuleAt { place, run, at } = rule;
        let rank = self.runs.ranks(run)[at];
        let remaining = self.runs.remove(run, at).map_or(Bucket::Empty, Bucket::Run);
        let table = &mut self.tables[place.table.index()];
        table.set_slot(place.slot, table.slot(place.slot).with_bucket(remaining));
        let mut number = place.table;
        let mut small = None;
        while number != TableNumber::NONE {
            let parent = self.table(number).parent();
            self.count_out(number, rank);
            if !parent.is_root() && self.has_few_rules(parent, few) {
                small = Some(parent);
            }
            number = parent.table;
        }
        small
    }

    /// True if a chain has rules, but at most `few`.
    fn has_few_rules(&self, parent: Place, few: usize) -> bool {
        let mut rules = 0;
        for number in self.chain(self.first_of(parent)) {
            rules += self.table(number).rules();
            if rules > few {
                return false;
            }
        }
        rules > 0
    }
}

/// Whole runs and chains.
impl<const W: usize> Structure<W> {
    /// Appends all rules of a chain as rows, including nested tables.
    pub(crate) fn append_rows(
        &self,
        first: TableNumber,
        rows: &mut Vec<u64>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        for number in self.chain(first) {
            for slot in self.table(number).slots() {
                match slot.bucket() {
                    Bucket::Empty => {}
                    Bucket::Nested(first) => self.append_rows(first, rows, monitor)?,
                    Bucket::Run(run) => {
                        self.append_run(run, rows);
                        monitor.advance(usize::from(run.len))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn append_run(&self, run: Run, rows: &mut Vec<u64>) {
        for rule in 0..usize::from(run.len) {
            self.runs.push_row(run, rule, rows);
        }
    }

    /// Frees the run at a place, and appends its rules as rows. The rules have no
    /// place until they are placed again.
    pub(crate) fn dissolve_run(&mut self, place: Place, run: Run, rows: &mut Vec<u64>) {
        self.append_run(run, rows);
        self.runs.release(run);
        self.tables[place.table.index()].set_slot(place.slot, Slot::EMPTY);
    }

    /// Frees a chain's tables and runs, and appends its rules as rows. The rules
    /// have no place until they are placed again, and the caller fills the parent
    /// slot.
    pub(crate) fn dissolve_chain(&mut self, first: TableNumber, rows: &mut Vec<u64>) {
        let numbers: Vec<TableNumber> = self.chain(first).collect();
        for number in numbers {
            let slots: Vec<Slot> = self.table(number).slots().collect();
            for slot in slots {
                match slot.bucket() {
                    Bucket::Empty => {}
                    Bucket::Nested(first) => self.dissolve_chain(first, rows),
                    Bucket::Run(run) => {
                        self.append_run(run, rows);
                        self.runs.release(run);
                    }
                }
            }
            self.tables[number.index()].take_slots();
            self.tables.remove(number);
        }
    }
}

/// Postponed work.
impl<const W: usize> Structure<W> {
    /// Moves all runs together in one pause, if the next change might append words
    /// that are not addressable. The rules of every run must have places.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if self.runs.is_short_of_room() {
            self.move_runs(Runs::compact);
        }
    }

    /// True if [`make_room`](Self::make_room) would move runs.
    #[cfg(test)]
    pub(crate) fn is_short_of_room(&self) -> bool {
        self.runs.is_short_of_room()
    }

    /// Does some of the work that updates postpone; to be called once at the end of
    /// each update.
    pub(crate) fn tidy(&mut self) {
        self.move_runs(Runs::tidy);
        self.leftover.free_some();
    }

    /// True if slots of removed tables are not yet freed.
    pub(crate) fn has_leftover(&self) -> bool {
        !self.leftover.is_empty()
    }

    /// Runs `work`, which moves runs, and updates the slots of the moved runs.
    fn move_runs(&mut self, work: impl FnOnce(&mut Runs, &mut dyn FnMut(u64, Run))) {
        let Structure {
            runs,
            tables,
            places,
            ..
        } = self;
        work(runs, &mut |rank, run| follow(tables, places, rank, run));
    }
}

/// Updates the slot of a moved run. `rank` is the rank of the run's first rule.
fn follow<const W: usize>(tables: &mut Tables<W>, places: &Places, rank: u64, run: Run) {
    let known = places.get(id_of(rank)).expect("rules in runs have places");
    let place = known.place;
    let table = &mut tables[place.table.index()];
    let moved = table.slot(place.slot).with_bucket(Bucket::Run(run));
    table.set_slot(place.slot, moved);
}
