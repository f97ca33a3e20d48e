//! Megaflows of one mask: a hash table, and keys in rows.
//!
//! ```text
//! key & mask ─▶ hash ─▶ bucket [ hash, row │ hash, row │ … ]   8 places, a cache line
//!                                     │
//! rows   [ state │ key word │ key word … ] [ … ]               words of the mask alone
//! signatures   [ 32 bits ] [ … ]                               beside, for changes
//! ```
//! A bucket that is full gives up the row that was idle the longest. Where all of its rows
//! are in use there are twice as many buckets, as long as there are as many rows as
//! buckets.

use super::signature::{Demand, Signature, agreeing};
use crate::cache::bits::{Known, Words};
use crate::cache::path::PathId;
use crate::key::KEY_WORDS;

/// Rows of a bucket.
const WAYS: usize = 8;

/// A place without a row.
const EMPTY: u64 = u64::MAX;

/// The state of a row that has no megaflow.
const FREE: u64 = u64::MAX;

/// A row, by its number.
pub(super) type Row = u32;

/// Rows at which signatures are picked anew, from the keys that are there.
const PICKED_AT: [usize; 3] = [64, 512, 4096];

/// Keys that signatures are picked by.
const SAMPLE: usize = 256;

/// What is known of a megaflow, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Where its packets go.
    pub(super) path: PathId,
    /// When it was last used, in the store's ticks.
    pub(super) tick: u8,
    /// The store's era in which it was last known to be right.
    pub(super) era: u32,
}

/// Paths have numbers of 24 bits, and one is left over for rows that are free.
pub(super) const MAX_PATHS: usize = (1 << 24) - 1;

impl State {
    fn word(self) -> u64 {
        u64::from(self.path.0) << 40 | u64::from(self.tick) << 32 | u64::from(self.era)
    }

    #[allow(clippy::cast_possible_truncation)] // it is taken apart
    fn of(word: u64) -> State {
        State {
            path: PathId((word >> 40) as u32),
            tick: (word >> 32) as u8,
            era: word as u32,
        }
    }
}

/// What hashes are computed with: nobody who sends packets knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret(pub(super) [u64; 2]);

/// A product of 128 bits, its halves joined.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    #[allow(clippy::cast_possible_truncation)] // both halves are used
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}

/// A sum of products, which do not wait for each other.
#[inline]
fn hash(words: impl Iterator<Item = u64>, secret: Secret) -> u64 {
    let (mut sum, mut salt) = (secret.0[1], secret.0[0]);
    for word in words {
        sum = sum.wrapping_add(fold(word ^ salt, secret.0[1]));
        salt = salt.rotate_left(7).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    sum ^ sum >> 32
}

/// Megaflows of one mask.
pub(super) struct MaskTable {
    mask: Words,
    /// Words of the mask that are not 0.
    words: Vec<(usize, u64)>,
    buckets: Vec<[u64; WAYS]>,
    rows: Vec<u64>,
    free: Vec<Row>,
    used: usize,
    signature: Signature,
    signatures: Vec<u32>,
    /// Bits that actions have set on the way of some path.
    open: Words,
}

impl MaskTable {
    pub(super) fn new(mask: Words) -> MaskTable {
        let words = mask.iter().enumerate().filter(|(_, mask)| **mask != 0);
        MaskTable {
            words: words.map(|(word, &mask)| (word, mask)).collect(),
            mask,
            buckets: vec![[EMPTY; WAYS]; 8],
            rows: Vec::new(),
            free: Vec::new(),
            used: 0,
            signature: Signature::default(),
            signatures: Vec::new(),
            open: [0; KEY_WORDS],
        }
    }

    pub(super) fn mask(&self) -> &Words {
        &self.mask
    }

    /// Megaflows.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Megaflows for each bucket.
    pub(super) fn load(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // less than 2^53
        let load = self.used as f64 / self.buckets.len() as f64;
        load
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<[u64; WAYS]>()
            + self.rows.capacity() * size_of::<u64>()
            + self.signatures.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<Row>()
    }

    /// Words of a row.
    fn stride(&self) -> usize {
        1 + self.words.len()
    }

    /// The hash of a key under the mask.
    #[inline]
    pub(super) fn hash(&self, key: &Words, secret: Secret) -> u64 {
        let words = self.words.iter().map(|&(word, mask)| key[word] & mask);
        hash(words, secret)
    }

    fn hash_row(&self, row: Row, secret: Secret) -> u64 {
        hash(self.row(row)[1..].iter().copied(), secret)
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        // As many as a power of 2.
        #[allow(clippy::cast_possible_truncation)] // the low bits are wanted
        let hash = hash as usize;
        hash & (self.buckets.len() - 1)
    }

    /// The part of a place that says which hash it is for.
    #[inline]
    fn tag(hash: u64) -> u64 {
        hash >> 32 << 32
    }

    #[inline]
    fn row(&self, row: Row) -> &[u64] {
        let stride = self.stride();
        &self.rows[row as usize * stride..][..stride]
    }

    /// Whether a row has a megaflow, and the megaflow covers a key.
    #[inline]
    pub(super) fn covers(&self, row: Row, key: &Words) -> bool {
        let stride = self.stride();
        let at = row as usize * stride;
        let Some(row) = self.rows.get(at..at + stride) else {
            return false;
        };
        let differ = self.words.iter().zip(&row[1..]);
        let differ = differ.fold(0, |all, (&(word, mask), &own)| all | key[word] & mask ^ own);
        (row[0] != FREE) & (differ == 0)
    }

    /// Fetches the bucket of a hash into the cache: says nothing.
    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u64 {
        self.buckets[self.bucket(hash)][0]
    }

    /// The row that a hash may be of, other than by accident: the first of them.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<Row> {
        let tag = MaskTable::tag(hash);
        let mut places = self.buckets[self.bucket(hash)].iter();
        let place = places.find(|&&place| place ^ tag <= 0xffff_ffff && place != EMPTY);
        place.map(|&place| MaskTable::row_of(place))
    }

    /// Fetches a row into the cache: all of it, and says its state.
    #[inline]
    pub(super) fn touch_row(&self, row: Row) -> Option<(State, u64)> {
        let stride = self.stride();
        let at = row as usize * stride;
        let row = self.rows.get(at..at + stride)?;
        let state = (row[0] != FREE).then(|| State::of(row[0]));
        state.map(|state| (state, row[stride - 1]))
    }

    /// The row of the megaflow that covers a key.
    #[inline]
    pub(super) fn find(&self, key: &Words, hash: u64) -> Option<Row> {
        let bucket = &self.buckets[self.bucket(hash)];
        let tag = MaskTable::tag(hash);
        for &place in bucket {
            if place ^ tag <= 0xffff_ffff && place != EMPTY {
                #[allow(clippy::cast_possible_truncation)] // the low half is the row
                let row = place as Row;
                if self.covers(row, key) {
                    return Some(row);
                }
            }
        }
        None
    }

    #[inline]
    pub(super) fn state(&self, row: Row) -> State {
        State::of(self.rows[row as usize * self.stride()])
    }

    #[inline]
    pub(super) fn set_state(&mut self, row: Row, state: State) {
        let at = row as usize * self.stride();
        self.rows[at] = state.word();
    }

    /// The megaflow of a row takes another path, on which actions set some bits.
    pub(super) fn renew(&mut self, row: Row, state: State, set: &[Known]) {
        self.set_state(row, state);
        self.note_set(set);
    }

    /// Actions set some bits on the way of a path.
    fn note_set(&mut self, set: &[Known]) {
        for known in set {
            self.open[usize::from(known.word)] |= known.mask;
        }
    }

    /// Whether a row has a megaflow.
    pub(super) fn has(&self, row: Row) -> bool {
        let at = row as usize * self.stride();
        self.rows.get(at).is_some_and(|&state| state != FREE)
    }

    /// Rows, those that are free included.
    #[allow(clippy::cast_possible_truncation)] // rows have numbers of 24 bits
    pub(super) fn rows(&self) -> Row {
        (self.rows.len() / self.stride()) as Row
    }

    /// The key of a row, 0 outside of the mask.
    pub(super) fn key(&self, row: Row) -> Words {
        let mut key = [0; KEY_WORDS];
        for (&(word, _), &own) in self.words.iter().zip(&self.row(row)[1..]) {
            key[word] = own;
        }
        key
    }

    /// Adds a megaflow whose key is not there. Returns its row, and the path of the one
    /// that was given up for it.
    pub(super) fn insert(
        &mut self,
        key: &Words,
        state: State,
        set: &[Known],
        secret: Secret,
        demand: &Demand,
    ) -> (Row, Option<PathId>) {
        if self.used >= self.buckets.len() * WAYS / 2 {
            self.grow(secret);
        }
        let hash = self.hash(key, secret);
        let mut bucket = self.bucket(hash);
        // Rows that are all in use would take turns.
        while self.is_busy(bucket, state.tick) && self.used >= self.buckets.len() {
            self.grow(secret);
            bucket = self.bucket(hash);
        }
        let (way, given_up) = match self.buckets[bucket].iter().position(|&it| it == EMPTY) {
            Some(way) => (way, None),
            None => {
                let way = self.idlest(bucket, state.tick);
                let row = MaskTable::row_of(self.buckets[bucket][way]);
                let path = self.state(row).path;
                self.take_out(row);
                (way, Some(path))
            }
        };
        let row = self.free.pop().unwrap_or_else(|| {
            let row = self.rows();
            self.rows.resize(self.rows.len() + self.stride(), FREE);
            self.signatures.push(0);
            row
        });
        self.set_state(row, state);
        let at = row as usize * self.stride();
        for (place, &(word, mask)) in self.words.iter().enumerate() {
            self.rows[at + 1 + place] = key[word] & mask;
        }
        self.buckets[bucket][way] = MaskTable::tag(hash) | u64::from(row);
        self.used += 1;
        self.note_set(set);
        match PICKED_AT.contains(&self.used) {
            true => self.pick(demand),
            false => {
                self.signatures[row as usize] =
                    self.signature.of(|word| key[word] & self.mask[word]);
            }
        }
        (row, given_up)
    }

    #[allow(clippy::cast_possible_truncation)] // the low half is the row
    fn row_of(place: u64) -> Row {
        place as Row
    }

    /// Whether a bucket is full, of rows that were used not long ago.
    fn is_busy(&self, bucket: usize, tick: u8) -> bool {
        self.buckets[bucket].iter().all(|&place| {
            let recent = |row| tick.wrapping_sub(self.state(row).tick) <= 1;
            place != EMPTY && recent(MaskTable::row_of(place))
        })
    }

    /// The way of a full bucket whose row was idle the longest.
    fn idlest(&self, bucket: usize, tick: u8) -> usize {
        let age = |place: u64| tick.wrapping_sub(self.state(MaskTable::row_of(place)).tick);
        let ways = (0..WAYS).max_by_key(|&way| age(self.buckets[bucket][way]));
        ways.expect("there are some")
    }

    /// Removes a megaflow.
    pub(super) fn remove(&mut self, row: Row, secret: Secret) {
        let bucket = self.bucket(self.hash_row(row, secret));
        let mut ways = self.buckets[bucket].iter_mut();
        let place = ways.find(|place| **place != EMPTY && MaskTable::row_of(**place) == row);
        *place.expect("every row is in its bucket") = EMPTY;
        self.take_out(row);
    }

    /// Frees a row that is in no bucket any more.
    fn take_out(&mut self, row: Row) {
        let at = row as usize * self.stride();
        self.rows[at] = FREE;
        self.free.push(row);
        self.used -= 1;
    }

    fn grow(&mut self, secret: Secret) {
        let old = std::mem::take(&mut self.buckets);
        self.buckets = vec![[EMPTY; WAYS]; old.len() * 2];
        for place in old.into_iter().flatten().filter(|&place| place != EMPTY) {
            let bucket = self.bucket(self.hash_row(MaskTable::row_of(place), secret));
            // Half of a full bucket, at most.
            let mut ways = self.buckets[bucket].iter_mut();
            let way = ways.find(|way| **way == EMPTY);
            *way.expect("each bucket comes from one of the same size") = place;
        }
    }

    /// Picks the bits of signatures anew.
    fn pick(&mut self, demand: &Demand) {
        let rows = 0..self.rows();
        let rows: Vec<Row> = rows.filter(|&row| self.has(row)).collect();
        let step = rows.len().div_ceil(SAMPLE);
        let keys: Vec<Words> = rows
            .iter()
            .step_by(step)
            .map(|&row| self.key(row))
            .collect();
        self.signature = Signature::pick(&self.mask, &keys, demand);
        for row in rows {
            let key = self.key(row);
            self.signatures[row as usize] = self.signature.of(|word| key[word]);
        }
    }

    /// Rows whose megaflows may overlap what a rule asks for; some have none.
    pub(super) fn overlapping(&self, asked: &[Known], found: &mut Vec<usize>) {
        agreeing(
            &self.signatures,
            self.signature.asked(asked, &self.open),
            found,
        );
    }

    /// Whether some packet of a megaflow has what a rule asks for, where actions have
    /// set some bits before.
    pub(super) fn overlaps(&self, row: Row, asked: &[Known], set: &[Known]) -> bool {
        let own = self.row(row);
        asked.iter().all(|asked| {
            let word = usize::from(asked.word);
            let mut open = asked.mask;
            if let Some(set) = set.iter().find(|set| set.word == asked.word) {
                if (set.value ^ asked.value) & set.mask & asked.mask != 0 {
                    return false;
                }
                open &= !set.mask;
            }
            match self.words.iter().position(|&(other, _)| other == word) {
                None => true,
                Some(place) => (own[1 + place] ^ asked.value) & self.mask[word] & open == 0,
            }
        })
    }
}
