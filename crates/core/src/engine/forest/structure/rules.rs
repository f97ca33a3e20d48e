//! Rules that come and go, runs that are made, chains that are taken apart.

use super::Structure;
use super::places::{Known, Places};
use super::runs::Runs;
use super::tables::Tables;
use crate::engine::forest::outline::Outline;
use crate::engine::forest::slot::{Bucket, ConflictMask, Place, Run, Slot, TableNumber};
use crate::error::BuildError;
use crate::id_map::Position;
use crate::monitor::Monitor;
use crate::rule::{ActionId, RuleId, Winner};

/// Where a rule that comes belongs in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// What is there before the rule.
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

    /// The run, and the rule's number in it.
    pub(crate) fn in_run(self) -> (Run, usize) {
        (self.run, self.at)
    }
}

fn id_of(rank: u64) -> RuleId {
    Winner::from_rank(rank).rule().expect("a rule's rank")
}

/// Rules that come.
impl<const W: usize> Structure<W> {
    /// Counts a rule that comes in to a table; says where in it the rule goes.
    #[inline]
    pub(crate) fn count_in(&mut self, number: TableNumber, rule: &Outline<W>) -> Entry {
        let table = &mut self.tables[number.index()];
        table.count_in(rule.rank);
        let hash = table.hash(&rule.value, &self.secrets);
        let slot = table.slot_of(hash);
        let held = table.slot(slot);
        let signature = held.signature() | 1 << table.signature_bit(hash);
        let best = table.best().min(rule.rank);
        self.set_best(number, best);
        Entry {
            place: Place {
                table: number,
                slot,
            },
            bucket: held.bucket(),
            signature,
        }
    }

    /// Adds an id, whose rule is to be [inserted](Self::insert) next. `None`,
    /// and nothing has changed, when it is there.
    #[inline]
    pub(crate) fn add_id(&mut self, id: RuleId, action: ActionId) -> Option<Position> {
        self.places.insert(id, Known::unplaced(action)).ok()
    }

    /// Adds ids, whose rules are to be placed next, and the rules' actions. That
    /// takes least time when they come in order.
    pub(crate) fn add_ids(&mut self, ids: impl IntoIterator<Item = (RuleId, ActionId)>) {
        let known = |(id, action)| (id, Known::unplaced(action));
        self.places.extend(ids.into_iter().map(known));
    }

    /// Puts a rule's row into the run of an entry, or into an empty bucket. The
    /// rule's id is known already; `position` says where, if no id came or went
    /// since it was added.
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
        self.fill(entry.place, Bucket::Run(run), entry.signature);
    }

    /// A rule whose id is known is at a place from now on.
    fn move_to(&mut self, place: Place, rank: u64) {
        let known = self.places.get_mut(id_of(rank));
        known.expect("the ids of rules are known").place = place;
    }

    /// Gives a slot a bucket and a signature. Its rules may have conflicts in
    /// every group.
    #[inline]
    pub(crate) fn fill(&mut self, place: Place, bucket: Bucket, signature: u16) {
        self.tables[place.table.index()].set_slot(place.slot, Slot::new(bucket, signature));
    }

    /// Makes a run of rows, the best first, whose rules are at a place from now
    /// on. The place is to be [filled](Self::fill) with it.
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

    /// Sets what is known of the conflicts of a run's rules.
    pub(crate) fn set_conflicts(&mut self, place: Place, conflicts: ConflictMask) {
        let table = &mut self.tables[place.table.index()];
        let slot = table.slot(place.slot);
        table.set_slot(place.slot, slot.with_conflicts(conflicts));
    }

    /// Conflicts are marked anew, with this as the table's group.
    pub(crate) fn begin_marking(&mut self, number: TableNumber, group: ConflictMask) {
        self.tables[number.index()].begin_marking(group);
    }

    /// All conflicts are marked: from now on lookups of rules without conflicts
    /// in the table pass over it.
    pub(crate) fn end_marking(&mut self, number: TableNumber) {
        self.tables[number.index()].end_marking();
    }
}

/// Rules that go.
impl<const W: usize> Structure<W> {
    /// Where the rule of an id is.
    pub(crate) fn find(&self, id: RuleId) -> Option<RuleAt> {
        Some(self.find_at(id, self.places.get(id)?.place))
    }

    /// The action of the rule of an id.
    pub(crate) fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.places.get(id)?.action)
    }

    /// The same of a rule at a known place.
    pub(crate) fn find_at(&self, id: RuleId, place: Place) -> RuleAt {
        let Bucket::Run(run) = self.slot(place).bucket() else {
            unreachable!("rules are in runs");
        };
        let is_it = |&rank: &u64| Winner::from_rank(rank).rule() == Some(id);
        let at = self.runs.ranks(run).iter().position(is_it);
        let at = at.expect("the rule is in its run");
        RuleAt { place, run, at }
    }

    /// Forgets an id. Says where its rule is, to be [taken
    /// out](Self::take_out) next.
    #[inline]
    pub(crate) fn remove_id(&mut self, id: RuleId) -> Option<RuleAt> {
        let place = self.places.remove(id)?.place;
        self.forget_mask(id);
        Some(self.find_at(id, place))
    }

    /// Takes a rule out of its run. Its id stays known unless it was removed
    /// before. Returns the parent of
    /// the outermost nested tables above it that have no more than `few` rules
    /// left, if there are any.
    pub(crate) fn take_out(&mut self, rule: RuleAt, few: usize) -> Option<Place> {
        let RuleAt { place, run, at } = rule;
        let rank = self.runs.ranks(run)[at];
        let left = self.runs.remove(run, at).map_or(Bucket::Empty, Bucket::Run);
        let table = &mut self.tables[place.table.index()];
        table.set_slot(place.slot, table.slot(place.slot).with_bucket(left));
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

    /// Whether a chain has rules, but no more than `few`.
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
    /// Appends all rules of a chain as rows, nested ones included.
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

    /// Frees the run at a place, and appends its rules as rows. They have no
    /// place until they get another.
    pub(crate) fn dissolve_run(&mut self, place: Place, run: Run, rows: &mut Vec<u64>) {
        self.append_run(run, rows);
        self.runs.release(run);
        self.tables[place.table.index()].set_slot(place.slot, Slot::EMPTY);
    }

    /// Frees a chain's tables and runs, and appends its rules as rows. They have no
    /// place until they get another, and the parent slot is to be filled.
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

/// Work put off.
impl<const W: usize> Structure<W> {
    /// Moves runs together, all at once, if the next change could not address
    /// the words that it may append. Every run's rules must have their places.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if self.runs.is_short_of_room() {
            self.move_runs(Runs::compact);
        }
    }

    /// Whether [`make_room`](Self::make_room) would move runs.
    #[cfg(test)]
    pub(crate) fn is_short_of_room(&self) -> bool {
        self.runs.is_short_of_room()
    }

    /// Does some of the work that updates put off: to be called once at the end
    /// of each update.
    pub(crate) fn tidy(&mut self) {
        self.move_runs(Runs::tidy);
        self.leftover.free_some();
    }

    /// Whether slots of tables that are gone are still to be freed.
    pub(crate) fn has_leftover(&self) -> bool {
        !self.leftover.is_empty()
    }

    /// Does what moves runs, and tells slots where theirs have gone.
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

/// Points the slot of the rule of that rank, the first of a run, to where the run
/// is now.
fn follow<const W: usize>(tables: &mut Tables<W>, places: &Places, rank: u64, run: Run) {
    let known = places.get(id_of(rank)).expect("rules in runs have places");
    let place = known.place;
    let table = &mut tables[place.table.index()];
    let moved = table.slot(place.slot).with_bucket(Bucket::Run(run));
    table.set_slot(place.slot, moved);
}
