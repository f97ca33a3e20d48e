//! The megaflows of a worker: keys under masks, and the paths of the packets that they
//! cover.
//!
//! # Idea
//! A megaflow is right for every packet that it covers: all of them take its path. So
//! it does not matter which of several that cover a packet is found, and the first one
//! found ends the search. Those of one mask are in a table of their own
//! ([`table`]), and tables are asked in the order in which they are likely to answer
//! ([FTS25] §4.3.2). Instead, an engine of the registry may say which row covers a packet
//! ([`index`]); rows are where they are without it.
//!
//! # Bounds
//! There are at most so many masks and megaflows as the settings say, whatever packets
//! come. A megaflow with one mask more gets a mask that is there already and looks at all
//! bits of its own, and perhaps at more: it covers less then, and is right all the same.
//! One mask that looks at every bit that packets differ in is kept for those that fit
//! nowhere else. Where there are as many megaflows as may be, the one goes that was idle
//! the longest of a few.
//!
//! # Changes
//! - An entry that is gone, or does something else, closes the paths on which it wins.
//! - An entry that is new takes packets from entries of less priority: the megaflows
//!   that overlap it, and in its table have a winner that it beats. They are found by
//!   their signatures ([`signature`]).
//! - Where more has changed than is worth going through, a new *era* begins.
//!
//! A megaflow whose path is closed, from which an entry took packets, or which is of an
//! older era, is *stale*: it says nothing about a packet. The next one that it covers
//! passes the pipeline, and what is learned from that takes its place.

mod index;
mod signature;
mod table;

use classyard::Winner;

use self::index::{Buffers, Index};
use self::signature::Demand;
use self::table::{MAX_PATHS, MaskTable, Row, Secret, State};
use super::bits::{Known, Words};
use super::finder::Finder;
use super::microflow::Decision;
use super::path::{Path, PathId, Paths};
use crate::flow::TableId;
use crate::key::KEY_WORDS;

pub(crate) use self::index::schema as index_schema;

/// How much a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Masks, 2 to [`MAX_MASKS`].
    pub(crate) masks: usize,
    /// Megaflows, 1 to [`MAX_MEGAFLOWS`].
    pub(crate) megaflows: usize,
}

/// The most masks that a store can have.
pub(crate) const MAX_MASKS: usize = 128;

/// The most megaflows that a store can have.
pub(crate) const MAX_MEGAFLOWS: usize = 1 << 23;

/// Bits of a decision that say which row.
const ROW_BITS: u32 = 24;

/// Truncation of the share that a hit adds to a table's weight ([FTS25] eq. 3).
const TRUNCATION: f64 = 4.0;

/// Of so many searches, one asks all tables, to see whether more are worth it.
const ALL_ASKED: u32 = 16;

/// Packets whose rows are fetched together.
const TOGETHER: usize = 64;

/// Rows that are looked at for one that was idle for long.
const TRIES: usize = 8;

/// What a store knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its path.
    Path(PathId),
    /// That it has a megaflow which may be wrong: the pipeline is to say.
    Stale,
    /// Nothing.
    Nothing,
}

/// A megaflow that was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) decision: Decision,
    pub(crate) path: PathId,
    /// The path has a new program.
    pub(crate) is_new: bool,
}

/// An entry that is new.
pub(crate) struct Added {
    pub(crate) table: TableId,
    pub(crate) winner: Winner,
    /// The bits of keys that it asks for.
    pub(crate) asked: Vec<Known>,
}

/// What a store has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreCounts {
    /// Tables that were asked for packets.
    pub(crate) probes: u64,
    /// Megaflows that were added.
    pub(crate) added: u64,
    /// Megaflows that were given up for others.
    pub(crate) evicted: u64,
    /// Megaflows from which new entries took packets.
    pub(crate) outdated: u64,
    /// Megaflows that got a mask with more bits than they need.
    pub(crate) narrowed: u64,
    /// Eras that began.
    pub(crate) eras: u64,
}

/// The megaflows of a worker, and their paths.
pub(crate) struct Store<P> {
    bounds: Bounds,
    secret: Secret,
    tables: Vec<MaskTable>,
    /// What finds rows, unless the tables are asked one after the other. It has exactly
    /// the rows that there are, and is given up if its engine refuses one.
    index: Option<Index>,
    looked_up: Buffers,
    /// The tables, in the order in which they are asked.
    order: Vec<usize>,
    /// What packets found in each table lately.
    weights: Vec<f64>,
    /// The same, counted: packets that were looked up in each table, and those found.
    asked: Vec<(f64, f64)>,
    /// Tables that are worth being asked: the first ones.
    worth: usize,
    /// Searches so far.
    searches: u32,
    used: usize,
    pub(crate) paths: Paths<P>,
    demand: Demand,
    era: u32,
    tick: u8,
    /// Where to look next for a megaflow to give up.
    hand: (usize, Row),
    pub(crate) counts: StoreCounts,
    /// Room for rows that a change may concern.
    rows: Vec<usize>,
}

impl<P> Store<P> {
    /// # Panics
    /// Where bounds are not what [`Bounds`] says.
    pub(crate) fn new(bounds: Bounds, seed: u64) -> Store<P> {
        assert!((2..=MAX_MASKS).contains(&bounds.masks), "{bounds:?}");
        assert!(
            (1..=MAX_MEGAFLOWS).contains(&bounds.megaflows),
            "{bounds:?}"
        );
        Store {
            bounds,
            secret: Secret([seed, seed.rotate_left(32) | 1].map(mix)),
            tables: Vec::new(),
            index: None,
            looked_up: Buffers::default(),
            order: Vec::new(),
            weights: Vec::new(),
            asked: Vec::new(),
            worth: MAX_MASKS,
            searches: 0,
            used: 0,
            paths: Paths::default(),
            demand: Demand::default(),
            era: 0,
            tick: 0,
            hand: (0, 0),
            counts: StoreCounts::default(),
            rows: Vec::new(),
        }
    }

    /// The same store, in which something else finds megaflows. Engines get a seed.
    pub(crate) fn found_by(mut self, finder: &Finder, seed: u64) -> Store<P> {
        let spec = finder.spec().cloned();
        let index = spec.map(|spec| Index::new(spec.seeded(mix(seed))));
        self.index = index.and_then(Result::ok);
        self
    }

    /// Megaflows.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Masks that some megaflow has.
    pub(crate) fn masks(&self) -> usize {
        self.tables.iter().filter(|table| table.len() > 0).count()
    }

    /// Bytes held, paths left out.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(MaskTable::bytes);
        tables.sum::<usize>() + self.index.as_ref().map_or(0, Index::bytes)
    }

    /// Whether the megaflows of decisions cover the keys of packets by their places: what
    /// is known of each then.
    ///
    /// Rows and paths are anywhere in memory: those of many packets are fetched together
    /// before any is looked at.
    pub(crate) fn check_all<'k>(
        &mut self,
        decisions: &[(usize, Decision)],
        key: impl Fn(usize) -> &'k Words,
        mut found: impl FnMut(usize, Decision, Found),
    ) {
        for decisions in decisions.chunks(TOGETHER) {
            let rows = decisions.iter().map(|&(_, decision)| parts(decision));
            self.fetch(rows);
            for &(place, decision) in decisions {
                found(place, decision, self.check(decision, key(place)));
            }
        }
    }

    /// Fetches rows of tables and their paths into the cache: at most [`TOGETHER`].
    fn fetch(&self, rows: impl Iterator<Item = (usize, Row)>) {
        let mut paths = [PathId(u32::MAX); TOGETHER];
        let mut touched = 0;
        for (path, (table, row)) in paths.iter_mut().zip(rows) {
            let row = self.tables.get(table).and_then(|it| it.touch_row(row));
            if let Some((state, last)) = row {
                *path = state.path;
                touched |= last;
            }
        }
        for path in paths {
            touched |= self.paths.touch(path);
        }
        std::hint::black_box(touched);
    }

    /// Whether the megaflow of a decision covers a key: what is known then.
    #[inline]
    pub(crate) fn check(&mut self, decision: Decision, key: &Words) -> Found {
        let (table, row) = parts(decision);
        match self.tables.get(table) {
            Some(it) if it.covers(row, key) => self.known(table, row),
            _ => Found::Nothing,
        }
    }

    /// What is known of the packets of a megaflow.
    #[inline]
    fn known(&mut self, table: usize, row: Row) -> Found {
        let state = self.tables[table].state(row);
        if self.is_stale(state) {
            return Found::Stale;
        }
        if state.tick != self.tick {
            let tick = self.tick;
            self.tables[table].set_state(row, State { tick, ..state });
        }
        Found::Path(state.path)
    }

    /// Whether a megaflow may be wrong.
    #[inline]
    fn is_stale(&self, state: State) -> bool {
        state.era != self.era || self.paths.program(state.path).is_none()
    }

    /// For keys by their places in a vector: what is known of each, and the decision
    /// that says it. Those of which nothing is known are left in `places`. Asks all
    /// tables, or those that are worth it.
    pub(crate) fn find<'k>(
        &mut self,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        found: impl FnMut(usize, Decision, Found),
    ) {
        match self.index {
            Some(_) => self.find_by_engine(key, places, found),
            None => self.find_in_tables(all, key, places, found),
        }
    }

    fn find_by_engine<'k>(
        &mut self,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        mut found: impl FnMut(usize, Decision, Found),
    ) {
        let mut buffers = std::mem::take(&mut self.looked_up);
        if let Some(index) = &self.index {
            self.counts.probes += places.len() as u64;
            index.look_up(places.iter().map(|&place| key(place)), &mut buffers);
        }
        let mut number = 0;
        places.retain(|&place| {
            let decision = buffers.decision(number);
            number += 1;
            match decision.and_then(|decision| self.confirm(decision, key(place))) {
                Some((decision, known)) => found(place, decision, known),
                None => return true,
            }
            false
        });
        self.looked_up = buffers;
    }

    /// Holds what the index says of a key against the row: they may differ in bits that
    /// the index leaves out.
    fn confirm(&mut self, decision: Decision, key: &Words) -> Option<(Decision, Found)> {
        match self.check(decision, key) {
            Found::Nothing => None,
            known => Some((decision, known)),
        }
    }

    fn find_in_tables<'k>(
        &mut self,
        all: bool,
        key: impl Fn(usize) -> &'k Words,
        places: &mut Vec<usize>,
        mut found: impl FnMut(usize, Decision, Found),
    ) {
        let mut hashes = [0; TOGETHER];
        self.searches = self.searches.wrapping_add(1);
        let tables = match all || self.searches.is_multiple_of(ALL_ASKED) {
            true => self.order.len(),
            false => self.worth.min(self.order.len()),
        };
        for at in 0..tables {
            let number = self.order[at];
            if places.is_empty() {
                return;
            }
            if self.tables[number].len() == 0 {
                continue;
            }
            self.counts.probes += places.len() as u64;
            let searched = places.len();
            let (mut hits, mut kept, mut first) = (0_u32, 0, 0);
            while first < places.len() {
                let some = (places.len() - first).min(hashes.len());
                // All hashes first, so that buckets are fetched together.
                let mut touched = 0;
                for (hash, &place) in hashes.iter_mut().zip(&places[first..first + some]) {
                    *hash = self.tables[number].hash(key(place), self.secret);
                    touched |= self.tables[number].touch(*hash);
                }
                std::hint::black_box(touched);
                let rows = hashes[..some].iter();
                let rows = rows.filter_map(|&hash| self.tables[number].candidate(hash));
                self.fetch(rows.map(|row| (number, row)));
                for offset in 0..some {
                    let place = places[first + offset];
                    let row = self.tables[number].find(key(place), hashes[offset]);
                    let known = row.map(|row| (row, self.known(number, row)));
                    match known {
                        Some((row, known)) if known != Found::Nothing => {
                            hits += 1;
                            found(place, decision(number, row), known);
                        }
                        _ => {
                            places[kept] = place;
                            kept += 1;
                        }
                    }
                }
                first += some;
            }
            places.truncate(kept);
            let share = 1.0 / self.tables[number].load();
            let share = share.clamp(1.0 / TRUNCATION, TRUNCATION);
            self.weights[number] += f64::from(hits) * share;
            let (asked, answered) = &mut self.asked[number];
            #[allow(clippy::cast_precision_loss)] // packets of a vector
            let searched = searched as f64;
            (*asked, *answered) = (*asked + searched, *answered + f64::from(hits));
        }
    }

    /// Sorts tables by what was found in them, of which half is forgotten; time goes on
    /// for who was idle. A packet that is found saves the time of so many lookups in one.
    pub(crate) fn tick(&mut self, saved: f64) {
        self.tick = self.tick.wrapping_add(1);
        let weights = &mut self.weights;
        self.order
            .sort_by(|&one, &other| weights[other].total_cmp(&weights[one]));
        for weight in weights {
            *weight /= 2.0;
        }
        self.worth = self.worth(saved);
        for (asked, answered) in &mut self.asked {
            *asked /= 2.0;
            *answered /= 2.0;
        }
        let settled = self.index.as_mut().map(Index::settle);
        if settled.is_some_and(|settled| settled.is_err()) {
            self.index = None;
        }
    }

    /// How many tables, in their order, are worth being asked, if a packet that is found
    /// saves the time of so many lookups in one. Packets that are left after some tables
    /// ask the others for nothing where these know too few.
    fn worth(&self, saved: f64) -> usize {
        // Of the packets that ask a table, how many are left for the next one.
        let mut left = 1.0;
        let (mut sum, mut most, mut worth) = (0.0, 0.0, 0);
        for (at, &number) in self.order.iter().enumerate() {
            let (asked, answered) = self.asked[number];
            if asked < 1.0 || self.tables[number].len() == 0 {
                continue;
            }
            let share = answered / asked;
            sum += left * (share * saved - 1.0);
            left *= 1.0 - share;
            if sum > most {
                (most, worth) = (sum, at + 1);
            }
        }
        worth
    }

    /// Adds a megaflow: packets that agree with a key on the bits of a mask take a path.
    /// One that is there already, under a mask that looks at these bits, takes it from
    /// now on. Nothing where there are too many paths.
    pub(crate) fn insert(
        &mut self,
        key: &Words,
        mask: &Words,
        path: &Path,
        program: impl FnOnce(&Path) -> P,
    ) -> Option<Kept> {
        if self.paths.len() >= MAX_PATHS / 2 {
            return None;
        }
        let table = self.table_for(mask);
        let set: Vec<Known> = path
            .steps
            .iter()
            .flat_map(|step| &step.set)
            .copied()
            .collect();
        let (path, is_new) = self.paths.refer(path, self.era, program);
        let kept = |table, row| {
            Some(Kept {
                decision: decision(table, row),
                path,
                is_new,
            })
        };
        let state = State {
            path,
            tick: self.tick,
            era: self.era,
        };
        let hash = self.tables[table].hash(key, self.secret);
        if let Some(row) = self.tables[table].find(key, hash) {
            let old = self.tables[table].state(row).path;
            self.tables[table].renew(row, state, &set);
            self.paths.release(old);
            return kept(table, row);
        }
        if self.used >= self.bounds.megaflows {
            self.give_one_up();
        }
        let (secret, demand) = (self.secret, &self.demand);
        let (row, given_up) = self.tables[table].insert(key, state, &set, secret, demand);
        match given_up {
            Some(path) => {
                self.paths.release(path);
                self.counts.evicted += 1;
            }
            None => self.used += 1,
        }
        self.counts.added += 1;
        self.index_row(table, row);
        kept(table, row)
    }

    /// Tells the index of a new row, which may have taken the place of another one.
    fn index_row(&mut self, table: usize, row: Row) {
        let Some(index) = &mut self.index else {
            return;
        };
        let it = &self.tables[table];
        let megaflow = (decision(table, row), it.key(row), it.mask());
        if index.insert(megaflow, megaflows(&self.tables)).is_err() {
            self.index = None;
        }
    }

    /// The table whose mask looks at the bits of a mask, and at few others.
    fn table_for(&mut self, mask: &Words) -> usize {
        let extra = |table: &MaskTable| {
            let words = table.mask().iter().zip(mask);
            let lacks = words.clone().any(|(own, wanted)| wanted & !own != 0);
            let extra = words
                .map(|(own, wanted)| (own & !wanted).count_ones())
                .sum::<u32>();
            (!lacks).then_some(extra)
        };
        let fitting = self.tables.iter().enumerate();
        let fitting = fitting.filter_map(|(number, table)| Some((extra(table)?, number)));
        let fitting = fitting.min();
        if let Some((0, number)) = fitting {
            return number;
        }
        // The last one is for what fits nowhere else.
        if self.tables.len() + 1 < self.bounds.masks {
            return self.add_table(*mask);
        }
        let empty = self.tables.iter().position(|table| table.len() == 0);
        if let Some(number) = empty.filter(|&number| number + 1 < self.bounds.masks) {
            self.tables[number] = MaskTable::new(*mask);
            self.weights[number] = 0.0;
            self.asked[number] = (0.0, 0.0);
            return number;
        }
        self.counts.narrowed += 1;
        match fitting {
            Some((_, number)) => number,
            None => {
                let last = self.bounds.masks - 1;
                let mut all = *mask;
                for table in &self.tables {
                    let words = all.iter_mut().zip(table.mask());
                    words.for_each(|(all, own)| *all |= own);
                }
                // Whole words, so that few megaflows make it wider still.
                all.iter_mut()
                    .filter(|word| **word != 0)
                    .for_each(|word| *word = u64::MAX);
                if last < self.tables.len() {
                    self.clear_table(last);
                    self.tables[last] = MaskTable::new(all);
                    return last;
                }
                self.add_table(all)
            }
        }
    }

    fn add_table(&mut self, mask: Words) -> usize {
        self.tables.push(MaskTable::new(mask));
        self.weights.push(0.0);
        self.asked.push((0.0, 0.0));
        self.order.push(self.tables.len() - 1);
        self.tables.len() - 1
    }

    fn clear_table(&mut self, table: usize) {
        for row in 0..self.tables[table].rows() {
            if self.tables[table].has(row) {
                self.remove(table, row);
            }
        }
    }

    /// Makes room for a megaflow: of a few, the one that was idle the longest goes.
    fn give_one_up(&mut self) {
        let mut oldest = None;
        let mut looked_at = 0;
        while looked_at < TRIES {
            let (mut table, mut row) = self.hand;
            if table >= self.tables.len() {
                (table, row) = (0, 0);
            }
            if row >= self.tables[table].rows() {
                self.hand = (table + 1, 0);
                continue;
            }
            self.hand = (table, row + 1);
            if !self.tables[table].has(row) {
                continue;
            }
            looked_at += 1;
            let state = self.tables[table].state(row);
            let age = match self.paths.program(state.path) {
                None => u16::MAX,
                Some(_) => u16::from(self.tick.wrapping_sub(state.tick)),
            };
            if oldest.is_none_or(|(other, _, _)| age > other) {
                oldest = Some((age, table, row));
            }
            if self.used < TRIES && looked_at >= self.used {
                break;
            }
        }
        if let Some((_, table, row)) = oldest {
            self.remove(table, row);
            self.counts.evicted += 1;
        }
    }

    fn remove(&mut self, table: usize, row: Row) {
        let path = self.tables[table].state(row).path;
        self.tables[table].remove(row, self.secret);
        if let Some(index) = &mut self.index
            && index.remove(decision(table, row)).is_err()
        {
            self.index = None;
        }
        self.paths.release(path);
        self.used -= 1;
    }

    /// Entries are new: the megaflows of which they take packets are stale from now on.
    pub(crate) fn entries_added(&mut self, added: &[Added]) {
        for added in added {
            self.demand.note(&added.asked);
        }
        let mut rows = std::mem::take(&mut self.rows);
        for number in 0..self.tables.len() {
            // The signatures of a table are near for all entries after the first.
            for added in added {
                rows.clear();
                self.tables[number].overlapping(&added.asked, &mut rows);
                for &row in &rows {
                    let row = Row::try_from(row).expect("24 bits");
                    if self.tables[number].has(row) && self.takes_from(added, (number, row)) {
                        let state = self.tables[number].state(row);
                        // Any other than the present one.
                        let era = !self.era;
                        self.tables[number].set_state(row, State { era, ..state });
                        self.counts.outdated += 1;
                    }
                }
            }
        }
        self.rows = rows;
    }

    /// Whether a new entry takes packets from a megaflow that was right.
    fn takes_from(&self, added: &Added, (number, row): (usize, Row)) -> bool {
        let megaflows = &self.tables[number];
        let state = megaflows.state(row);
        if self.is_stale(state) {
            return false;
        }
        let (path, _) = self.paths.get(state.path);
        let step = path.steps.iter().find(|step| step.table == added.table);
        step.is_some_and(|step| {
            added.winner.beats(step.winner) && megaflows.overlaps(row, &added.asked, &step.set)
        })
    }

    /// Megaflows have to be held against the pipeline before they are believed again.
    pub(crate) fn begin_era(&mut self) {
        self.counts.eras += 1;
        match self.era.checked_add(1) {
            Some(era) => self.era = era,
            // After four thousand million eras none may seem to be of a later one.
            None => {
                (0..self.tables.len()).for_each(|table| self.clear_table(table));
                self.era = 0;
            }
        }
    }

    /// Removes a megaflow that was not believed any more, if it is still there.
    pub(crate) fn drop_stale(&mut self, decision: Decision, key: &Words) {
        let (table, row) = parts(decision);
        let stale = |it: &MaskTable| it.covers(row, key) && self.is_stale(it.state(row));
        if self.tables.get(table).is_some_and(stale) {
            self.remove(table, row);
        }
    }

    /// The key and mask of a decision's megaflow.
    pub(crate) fn megaflow(&self, decision: Decision) -> Option<(Words, Words, PathId)> {
        let (table, row) = parts(decision);
        let table = self.tables.get(table)?;
        let state = table.has(row).then(|| table.state(row))?;
        Some((table.key(row), *table.mask(), state.path))
    }

    /// Every megaflow: key, mask and path.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Words, Words, PathId)> {
        megaflows(&self.tables).map(|(decision, key, mask)| {
            let (table, row) = parts(decision);
            (key, *mask, self.tables[table].state(row).path)
        })
    }
}

/// All megaflows of tables.
fn megaflows(tables: &[MaskTable]) -> impl Iterator<Item = index::Megaflow<'_>> {
    tables.iter().enumerate().flat_map(|(number, table)| {
        let rows = (0..table.rows()).filter(|&row| table.has(row));
        rows.map(move |row| (decision(number, row), table.key(row), table.mask()))
    })
}

fn decision(table: usize, row: Row) -> Decision {
    let table = u32::try_from(table).expect("few masks");
    Decision::new(table << ROW_BITS | row).expect("fewer masks than 255")
}

#[inline]
fn parts(decision: Decision) -> (usize, Row) {
    let number = decision.number();
    (
        (number >> ROW_BITS) as usize,
        number & ((1 << ROW_BITS) - 1),
    )
}

/// Bits of a seed, mixed.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    (mixed ^ mixed >> 32) | 1
}

const _: () = assert!(KEY_WORDS < 256);

#[cfg(test)]
mod tests;
