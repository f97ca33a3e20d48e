//! The hash table of one mask: the rows of its megaflows.
//!
//! ```text
//! key & mask ─▶ hash ─▶ bucket [ hash, row │ hash, row │ … ]   8 ways, one cache line
//!                                     │
//! rows   [ state │ key word │ key word … ] [ … ]               only words of the mask
//! signatures   [ 32 bits ] [ … ]                               separate, for changes
//! ```
//! A full bucket drops the row that was idle longest. If all rows of a full bucket were
//! used recently, the number of buckets is doubled, as long as there are at least as many
//! rows as buckets.

use super::signature::{Demand, Signature, agreeing};
use crate::bits::{Known, Words};
use crate::cache::path::PathId;
use crate::hash::Secret;
use crate::key::KEY_WORDS;

/// The number of rows in a bucket: as many words as a cache line has.
const BUCKET_WAYS: usize = 8;

/// The number of buckets of a new table.
const MIN_BUCKETS: usize = 8;

/// A way without a row.
const EMPTY_WAY: u64 = u64::MAX;

/// The state of a row without a megaflow.
const FREE_ROW: u64 = u64::MAX;

/// A row, by its number.
pub(super) type Row = u32;

/// The numbers of megaflows at which a growing table picks new signature bits from its keys.
/// Measured in `bench/records/constants.md` (Signatures and changes).
const PICKED_AT: [usize; 3] = [64, 512, 4096];

/// The maximum number of keys used to pick signature bits. Measured in
/// `bench/records/constants.md` (Signatures and changes).
const SAMPLE_KEYS: usize = 256;

/// The state of a megaflow, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The path of its packets.
    pub(super) path: PathId,
    /// The store's tick at the last use. After [`u16::MAX`] ticks without use, the idle
    /// time begins at 0 again; this only affects which megaflow is evicted.
    pub(super) tick: u16,
    /// The store's era when it was learned, at most [`LAST_ERA`]; [`STALE`] if a new entry
    /// may win some of its packets.
    pub(super) era: u32,
}

/// Never the store's era.
pub(super) const STALE: u32 = 0;

/// Eras have numbers of 24 bits.
pub(super) const LAST_ERA: u32 = (1 << 24) - 1;

/// Paths have numbers of 24 bits; one number is reserved for free rows.
pub(super) const MAX_PATHS: usize = (1 << 24) - 1;

impl State {
    fn word(self) -> u64 {
        u64::from(self.path.0) << 40 | u64::from(self.tick) << 24 | u64::from(self.era)
    }

    #[allow(clippy::cast_possible_truncation)] // splits the word
    fn of(word: u64) -> State {
        State {
            path: PathId((word >> 40) as u32),
            tick: (word >> 24) as u16,
            era: word as u32 & LAST_ERA,
        }
    }
}

/// Megaflows of one mask.
pub(super) struct MaskTable {
    mask: Words,
    /// The words of the mask that are not 0, with their indexes.
    words: Vec<(usize, u64)>,
    buckets: Vec<[u64; BUCKET_WAYS]>,
    rows: Vec<u64>,
    free: Vec<Row>,
    used: usize,
    signature: Signature,
    /// The number of megaflows for which the signature's bits were picked. 0 if none were
    /// picked since the table was created or compacted.
    picked_at: usize,
    signatures: Vec<u32>,
    /// The bits that actions set on some path.
    set_by_actions: Words,
}

impl MaskTable {
    pub(super) fn new(mask: Words) -> MaskTable {
        let words = mask.iter().enumerate().filter(|(_, mask)| **mask != 0);
        MaskTable {
            words: words.map(|(word, &mask)| (word, mask)).collect(),
            mask,
            buckets: vec![[EMPTY_WAY; BUCKET_WAYS]; MIN_BUCKETS],
            rows: Vec::new(),
            free: Vec::new(),
            used: 0,
            signature: Signature::default(),
            picked_at: 0,
            signatures: Vec::new(),
            set_by_actions: [0; KEY_WORDS],
        }
    }

    pub(super) fn mask(&self) -> &Words {
        &self.mask
    }

    /// Returns the number of megaflows.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Returns the number of megaflows per bucket.
    pub(super) fn load(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // less than 2^53
        let load = self.used as f64 / self.buckets.len() as f64;
        load
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<[u64; BUCKET_WAYS]>()
            + self.rows.capacity() * size_of::<u64>()
            + self.signatures.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<Row>()
    }

    /// Returns the number of words in a row.
    fn stride(&self) -> usize {
        1 + self.words.len()
    }

    /// Returns the hash of a key under the mask.
    #[inline]
    pub(super) fn hash(&self, key: &Words, secret: Secret) -> u64 {
        let words = self.words.iter().map(|&(word, mask)| key[word] & mask);
        secret.hash(words)
    }

    fn hash_row(&self, row: Row, secret: Secret) -> u64 {
        secret.hash(self.row(row)[1..].iter().copied())
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        // The number of buckets is a power of 2.
        #[allow(clippy::cast_possible_truncation)] // the low bits are wanted
        let hash = hash as usize;
        hash & (self.buckets.len() - 1)
    }

    /// Returns the part of a way that identifies its hash.
    #[inline]
    fn tag(hash: u64) -> u64 {
        hash >> 32 << 32
    }

    #[inline]
    fn row(&self, row: Row) -> &[u64] {
        let stride = self.stride();
        &self.rows[row as usize * stride..][..stride]
    }

    /// True if a row has a megaflow that covers a key.
    #[inline]
    pub(super) fn covers(&self, row: Row, key: &Words) -> bool {
        let stride = self.stride();
        let start = row as usize * stride;
        let Some(row) = self.rows.get(start..start + stride) else {
            return false;
        };
        let differ = self.words.iter().zip(&row[1..]);
        let differ = differ.fold(0, |all, (&(word, mask), &own)| all | key[word] & mask ^ own);
        (row[0] != FREE_ROW) & (differ == 0)
    }

    /// Prefetches the bucket of a hash. The result has no meaning.
    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u64 {
        self.buckets[self.bucket(hash)][0]
    }

    /// Returns the first row whose tag agrees with a hash.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<Row> {
        let tag = MaskTable::tag(hash);
        let mut ways = self.buckets[self.bucket(hash)].iter();
        let way = ways.find(|&&way| way ^ tag <= 0xffff_ffff && way != EMPTY_WAY);
        way.map(|&way| MaskTable::row_of(way))
    }

    /// Prefetches a whole row. Returns its state, and a word without meaning.
    #[inline]
    pub(super) fn touch_row(&self, row: Row) -> Option<(State, u64)> {
        let stride = self.stride();
        let start = row as usize * stride;
        let row = self.rows.get(start..start + stride)?;
        let state = (row[0] != FREE_ROW).then(|| State::of(row[0]));
        state.map(|state| (state, row[stride - 1]))
    }

    /// Returns the row of the megaflow that covers a key.
    #[inline]
    pub(super) fn find(&self, key: &Words, hash: u64) -> Option<Row> {
        let bucket = &self.buckets[self.bucket(hash)];
        let tag = MaskTable::tag(hash);
        for &way in bucket {
            if way ^ tag <= 0xffff_ffff && way != EMPTY_WAY {
                let row = MaskTable::row_of(way);
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
        let start = row as usize * self.stride();
        self.rows[start] = state.word();
    }

    /// Replaces the path of a row's megaflow. Actions on the new path set the bits of
    /// `set`.
    pub(super) fn replace_path(&mut self, row: Row, state: State, set: &[Known]) {
        self.set_state(row, state);
        self.note_set(set);
    }

    /// Records bits that actions set on a path.
    fn note_set(&mut self, set: &[Known]) {
        for known in set {
            self.set_by_actions[usize::from(known.word)] |= known.mask;
        }
    }

    /// True if a row has a megaflow.
    pub(super) fn has(&self, row: Row) -> bool {
        let start = row as usize * self.stride();
        self.rows.get(start).is_some_and(|&state| state != FREE_ROW)
    }

    /// Returns the number of rows, including free rows.
    #[allow(clippy::cast_possible_truncation)] // rows have numbers of 24 bits
    pub(super) fn rows(&self) -> Row {
        (self.rows.len() / self.stride()) as Row
    }

    /// Returns the number of rows without a megaflow.
    pub(super) fn free_rows(&self) -> usize {
        self.free.len()
    }

    /// Returns the key of a row; bits outside of the mask are 0.
    pub(super) fn key(&self, row: Row) -> Words {
        let mut key = [0; KEY_WORDS];
        for (&(word, _), &own) in self.words.iter().zip(&self.row(row)[1..]) {
            key[word] = own;
        }
        key
    }

    /// Adds a megaflow with a new key. Returns its row, and the path of the megaflow that
    /// was removed for it, if any.
    pub(super) fn insert(
        &mut self,
        key: &Words,
        state: State,
        set: &[Known],
        secret: Secret,
        demand: &Demand,
    ) -> (Row, Option<PathId>) {
        if self.used >= self.buckets.len() * BUCKET_WAYS / 2 {
            self.grow(secret);
        }
        let hash = self.hash(key, secret);
        let mut bucket = self.bucket(hash);
        // Rows that are all in use would replace each other.
        while self.is_busy(bucket, state.tick) && self.used >= self.buckets.len() {
            self.grow(secret);
            bucket = self.bucket(hash);
        }
        let (way, given_up) = match self.buckets[bucket]
            .iter()
            .position(|&way| way == EMPTY_WAY)
        {
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
            self.rows.resize(self.rows.len() + self.stride(), FREE_ROW);
            self.signatures.push(0);
            row
        });
        self.set_state(row, state);
        let start = row as usize * self.stride();
        for (index, &(word, mask)) in self.words.iter().enumerate() {
            self.rows[start + 1 + index] = key[word] & mask;
        }
        self.buckets[bucket][way] = MaskTable::tag(hash) | u64::from(row);
        self.used += 1;
        self.note_set(set);
        // A table whose size varies around a number must not pick bits again and again.
        if self.used > self.picked_at && PICKED_AT.contains(&self.used) {
            self.pick(demand);
        } else {
            self.signatures[row as usize] = self.signature.of(|word| key[word] & self.mask[word]);
        }
        (row, given_up)
    }

    #[allow(clippy::cast_possible_truncation)] // the low half is the row
    fn row_of(way: u64) -> Row {
        way as Row
    }

    /// True if a bucket is full and all of its rows were used recently.
    fn is_busy(&self, bucket: usize, tick: u16) -> bool {
        self.buckets[bucket].iter().all(|&way| {
            let recent = |row| tick.wrapping_sub(self.state(row).tick) <= 1;
            way != EMPTY_WAY && recent(MaskTable::row_of(way))
        })
    }

    /// Returns the way of a full bucket whose row was idle longest.
    fn idlest(&self, bucket: usize, tick: u16) -> usize {
        let age = |way: u64| tick.wrapping_sub(self.state(MaskTable::row_of(way)).tick);
        let ways = (0..BUCKET_WAYS).max_by_key(|&way| age(self.buckets[bucket][way]));
        ways.expect("there are some")
    }

    /// Removes a megaflow.
    pub(super) fn remove(&mut self, row: Row, secret: Secret) {
        let bucket = self.bucket(self.hash_row(row, secret));
        let mut ways = self.buckets[bucket].iter_mut();
        let way = ways.find(|way| **way != EMPTY_WAY && MaskTable::row_of(**way) == row);
        *way.expect("every row is in its bucket") = EMPTY_WAY;
        self.take_out(row);
    }

    /// Frees a row that is no longer in a bucket.
    fn take_out(&mut self, row: Row) {
        let start = row as usize * self.stride();
        self.rows[start] = FREE_ROW;
        self.free.push(row);
        self.used -= 1;
    }

    /// Doubles the number of buckets.
    fn grow(&mut self, secret: Secret) {
        // The rows of a bucket go to two buckets of the same size.
        let has_room = self.set_buckets(self.buckets.len() * 2, secret);
        debug_assert!(has_room, "each bucket comes from one of the same size");
    }

    /// Puts all megaflows into `count` new buckets, a power of 2. Returns false, and keeps
    /// the old buckets, if a new bucket has too few ways.
    fn set_buckets(&mut self, count: usize, secret: Secret) -> bool {
        let mut buckets = vec![[EMPTY_WAY; BUCKET_WAYS]; count];
        for row in 0..self.rows() {
            if !self.has(row) {
                continue;
            }
            let hash = self.hash_row(row, secret);
            #[allow(clippy::cast_possible_truncation)] // the low bits are wanted
            let mut ways = buckets[hash as usize & (count - 1)].iter_mut();
            let Some(way) = ways.find(|way| **way == EMPTY_WAY) else {
                return false;
            };
            *way = MaskTable::tag(hash) | u64::from(row);
        }
        self.buckets = buckets;
        true
    }

    /// Moves all megaflows to the first rows, and frees the memory of the other rows and of
    /// buckets. Returns the old and the new row of each megaflow that was moved, in
    /// ascending order.
    pub(super) fn compact(&mut self, secret: Secret) -> Vec<(Row, Row)> {
        let stride = self.stride();
        let mut moved = Vec::new();
        let mut used = 0;
        for row in 0..self.rows() {
            if !self.has(row) {
                continue;
            }
            if row != used {
                let (from, to) = (row as usize * stride, used as usize * stride);
                self.rows.copy_within(from..from + stride, to);
                self.signatures[used as usize] = self.signatures[row as usize];
                moved.push((row, used));
            }
            used += 1;
        }
        self.rows.truncate(used as usize * stride);
        self.signatures.truncate(used as usize);
        self.rows.shrink_to_fit();
        self.signatures.shrink_to_fit();
        self.free = Vec::new();
        self.picked_at = 0;
        let most = self.buckets.len();
        let mut count = (self.used * 2 / BUCKET_WAYS).next_power_of_two();
        count = count.clamp(MIN_BUCKETS, most);
        // The rows had room in the present number of buckets.
        while !self.set_buckets(count, secret) && count < most {
            count *= 2;
        }
        moved
    }

    /// Picks new bits for signatures.
    fn pick(&mut self, demand: &Demand) {
        self.picked_at = self.used;
        let rows = 0..self.rows();
        let rows: Vec<Row> = rows.filter(|&row| self.has(row)).collect();
        let step = rows.len().div_ceil(SAMPLE_KEYS);
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

    /// Finds rows whose megaflows may overlap a rule. Some of them may be free.
    pub(super) fn overlapping(&self, match_bits: &[Known], found: &mut Vec<usize>) {
        agreeing(
            &self.signatures,
            self.signature.of_bits(match_bits, &self.set_by_actions),
            found,
        );
    }

    /// True if some packet of a megaflow matches a rule, after actions have set some
    /// bits.
    pub(super) fn overlaps(&self, row: Row, match_bits: &[Known], set: &[Known]) -> bool {
        let row_words = self.row(row);
        match_bits.iter().all(|bits| {
            let word = usize::from(bits.word);
            let mut compared = bits.mask;
            if let Some(set) = set.iter().find(|set| set.word == bits.word) {
                if (set.value ^ bits.value) & set.mask & bits.mask != 0 {
                    return false;
                }
                compared &= !set.mask;
            }
            match self.words.iter().position(|&(other, _)| other == word) {
                None => true,
                Some(index) => {
                    (row_words[1 + index] ^ bits.value) & self.mask[word] & compared == 0
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET_SEED: u64 = 1;

    /// Returns a key that differs from others in the low 16 bits of two words.
    fn key(number: u64) -> Words {
        let mut key = [0; KEY_WORDS];
        (key[3], key[5]) = (number, number * 7919);
        key
    }

    #[test]
    fn renewed_megaflows_pick_no_signature_bits_again() {
        let secret = Secret::new(SECRET_SEED);
        let mut mask = [0; KEY_WORDS];
        (mask[3], mask[5]) = (0xffff_ffff, 0xffff_ffff);
        let mut table = MaskTable::new(mask);
        let state = State {
            path: PathId(0),
            tick: 0,
            era: 1,
        };
        let mut demand = Demand::default();
        let insert = |table: &mut MaskTable, number, demand: &Demand| {
            let (row, _) = table.insert(&key(number), state, &[], secret, demand);
            row
        };
        let mut rows: Vec<Row> = (0..64).map(|at| insert(&mut table, at, &demand)).collect();
        let picked = table.signature.of(|_| u64::MAX);
        // With this demand, the bits of word 5 would be picked.
        let rule = Known {
            word: 5,
            mask: 0xffff_ffff,
            value: 0,
        };
        (0..1_000).for_each(|_| demand.note(&[rule]));
        let of_word_5 = |table: &MaskTable| table.signature.of(|word| u64::from(word == 5) * !0);
        let before = of_word_5(&table);
        for number in 0..64 {
            let row = rows.pop().expect("64 rows");
            table.remove(row, secret);
            let _ = insert(&mut table, 100 + number, &demand);
            assert_eq!(table.len(), 64);
        }
        assert_eq!((of_word_5(&table), picked), (before, u32::MAX));
        // A larger table picks bits again, and so does a compacted one.
        (200..648).for_each(|number| {
            let _ = insert(&mut table, number, &demand);
        });
        assert_eq!(table.len(), 512);
        assert_ne!(of_word_5(&table), before);
    }
}
