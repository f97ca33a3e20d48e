//! Active keys: the keys of a batch that the next table may improve.
//!
//! # Idea
//! Tables come best first, so fewer and fewer keys need the next table, and these
//! keys are scattered. A vector of eight neighbours would do the work of eight keys
//! for two or three. So the positions of the *active* keys are kept in a list, one
//! byte each. The list is rebuilt for each table from all winners, eight at a time:
//! ```text
//! winners    0   1   2   3   4   5        winners 1, 2 and 4 are better than the table's best rule
//!            │       ╱───╯ ╱─────╯
//! active     0   3   5
//! ```
//! Neither keys nor winners move. While all keys are active, as at the first table,
//! vectors are loaded directly from the keys.
//!
//! A key with a winner also has the groups of tables where the winner has
//! [conflicts](ConflictMask). For tables of other groups the key is not active,
//! whatever the table's best rule.

use crate::contract::classifier::BATCH;
use crate::engines::forest::slot::ConflictMask;
use crate::model::rule::Winner;
use crate::parts::simd::Isa;

/// All positions in a batch.
#[allow(clippy::cast_possible_truncation)] // below 256
static POSITIONS: [u8; BATCH] = {
    let mut positions = [0; BATCH];
    let mut index = 0;
    while index < BATCH {
        positions[index] = index as u8;
        index += 1;
    }
    positions
};

/// The data of a table that decides which keys are active for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableBounds {
    /// No rule in the table is better.
    pub(crate) best: Winner,
    /// No rule inserted since conflicts were marked is better.
    pub(crate) late_best: Winner,
    /// The table's own group, or none.
    pub(crate) group: ConflictMask,
}

impl TableBounds {
    /// True if the table may have a better rule for a key.
    #[inline(always)]
    pub(crate) fn may_improve(&self, winner: Winner, conflicts: ConflictMask) -> bool {
        self.best.beats(winner) & (conflicts.has(self.group) | self.late_best.beats(winner))
    }
}

/// Working memory for the keys of a batch.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Workspace {
    active: [u8; BATCH + 8],
    conflicts: [ConflictMask; BATCH + 8],
    /// The [fingerprints](super::fingerprint) of keys, if they were taken.
    prints: [u64; BATCH],
    /// If keys are wanted in columns: the first word of [`BATCH`] keys, then the
    /// second word, and so on. Values behind the last key are undefined.
    #[cfg(target_arch = "x86_64")]
    columns: Vec<u64>,
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace {
            active: [0; BATCH + 8],
            conflicts: [ConflictMask::ALL; BATCH + 8],
            prints: [0; BATCH],
            #[cfg(target_arch = "x86_64")]
            columns: Vec::new(),
        }
    }
}

/// The keys of a batch, their present winners, and the list of active keys.
#[derive(Debug)]
pub(crate) struct ActiveKeys<'a, const W: usize> {
    /// At most [`BATCH`] keys.
    rows: &'a [[u64; W]],
    /// One winner for each key.
    winners: &'a mut [Winner],
    /// The positions of active keys come first, followed by eight positions of
    /// existing keys, if there are any keys.
    workspace: &'a mut Workspace,
    /// The number of active keys.
    len: usize,
    /// True if the workspace has the keys in columns.
    in_columns: bool,
}

impl<'a, const W: usize> ActiveKeys<'a, W> {
    /// Returns a batch without active keys.
    ///
    /// # Panics
    /// If there are more than [`BATCH`] keys, or the number of winners differs.
    pub(crate) fn new(
        rows: &'a [[u64; W]],
        winners: &'a mut [Winner],
        workspace: &'a mut Workspace,
    ) -> ActiveKeys<'a, W> {
        assert!(rows.len() <= BATCH, "a batch is at most {BATCH} keys");
        assert_eq!(rows.len(), winners.len(), "one winner for each key");
        workspace.conflicts = [ConflictMask::ALL; BATCH + 8];
        ActiveKeys {
            rows,
            len: 0,
            winners,
            workspace,
            in_columns: false,
        }
    }

    /// Activates the keys that a table with these bounds may improve. If these are nearly
    /// all keys, and the keys are also stored by columns, activates all keys. Returns true
    /// if the best rule of this table or of a later one may improve any key; if not, all
    /// later tables can be skipped.
    pub(crate) fn activate(&mut self, isa: Isa, bounds: &TableBounds) -> bool {
        let (active, may_continue) = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) => x86::activate(proof, self, bounds),
            _ => self.activate_scalar(bounds),
        };
        self.len = active;
        if self.in_columns && active * 8 >= self.rows.len() * 7 {
            // Using all columns is less work than selecting some keys.
            self.len = self.rows.len();
            self.workspace.active[..self.len].copy_from_slice(&POSITIONS[..self.len]);
        }
        self.workspace.active[self.len..self.len + 8].fill(0);
        may_continue
    }

    /// The scalar fallback.
    fn activate_scalar(&mut self, bounds: &TableBounds) -> (usize, bool) {
        let mut active_count = 0;
        let mut may_continue = false;
        let keys = self.winners.iter().zip(&self.workspace.conflicts);
        for ((&winner, &conflicts), position) in keys.zip(0..=u8::MAX) {
            self.workspace.active[active_count] = position;
            active_count += usize::from(bounds.may_improve(winner, conflicts));
            may_continue |= bounds.best.beats(winner);
        }
        (active_count, may_continue)
    }

    /// True if all keys are active, so that list index and position are equal.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(crate) fn all(&self) -> bool {
        self.len == self.rows.len()
    }

    /// All keys of the batch, active or not.
    #[inline(always)]
    pub(super) fn rows(&self) -> &[[u64; W]] {
        self.rows
    }

    /// All keys of the batch, and the memory for their fingerprints.
    pub(super) fn rows_and_prints(&mut self) -> (&[[u64; W]], &mut [u64]) {
        (self.rows, &mut self.workspace.prints[..self.rows.len()])
    }

    /// Copies the words of all keys into columns, if vector code can use them.
    pub(crate) fn make_columns(&mut self, isa: Isa) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) => {
                let columns = &mut self.workspace.columns;
                if columns.len() < W * BATCH {
                    columns.resize(W * BATCH, 0);
                }
                x86::make_columns(proof, self.rows, columns);
                self.in_columns = true;
            }
            _ => {}
        }
    }

    /// The keys of the batch in columns, and the memory for their fingerprints, with
    /// spare room for a vector of eight.
    ///
    /// # Panics
    /// If there are no columns.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn columns_and_prints(&mut self) -> ([&[u64; BATCH]; W], &mut [u64; BATCH]) {
        assert!(self.in_columns, "columns were made");
        let Workspace {
            prints, columns, ..
        } = &mut *self.workspace;
        let column = |word: usize| columns[word * BATCH..].first_chunk();
        let columns = std::array::from_fn(|word| column(word).expect("a column for each word"));
        (columns, prints)
    }

    /// True if the keys are also in columns.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn in_columns(&self) -> bool {
        self.in_columns
    }

    /// The column with one word of all keys.
    ///
    /// # Panics
    /// If there are no columns.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn column(&self, word: usize) -> &[u64; BATCH] {
        let column = self.workspace.columns[word * BATCH..].first_chunk();
        column.expect("a column for each word")
    }

    /// The positions of active keys.
    #[inline(always)]
    pub(crate) fn positions(&self) -> &[u8] {
        &self.workspace.active[..self.len]
    }

    /// The positions of eight active keys from `from` on, at least one is
    /// active. Beyond the last active key, the positions are of any keys.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) fn eight(&self, from: usize) -> &[u8; 8] {
        let eight = self.workspace.active[from..].first_chunk();
        eight.expect("there is room for eight behind each")
    }
}

/// Keys with their present winners, by position.
pub(crate) trait Keys<const W: usize> {
    /// Returns a key, its winner, and the winner's conflicts.
    ///
    /// # Panics
    /// If the position does not exist.
    fn at(&mut self, position: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask);

    /// The number of positions.
    fn len(&self) -> usize;

    /// The fingerprint of a key, if fingerprints were taken.
    fn print(&self, position: u8) -> u64;

    /// The winner of a key.
    ///
    /// # Panics
    /// If the position does not exist.
    fn winner(&self, position: u8) -> Winner;

    /// Like [`at`](Self::at), without a bounds check.
    ///
    /// # Safety
    /// The position must be less than [`len`](Self::len).
    #[cfg(target_arch = "x86_64")]
    unsafe fn at_unchecked(&mut self, position: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask);
}

impl<const W: usize> Keys<W> for ActiveKeys<'_, W> {
    #[inline(always)]
    fn at(&mut self, position: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask) {
        let position = usize::from(position);
        let conflicts = &mut self.workspace.conflicts[position];
        (&self.rows[position], &mut self.winners[position], conflicts)
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn print(&self, position: u8) -> u64 {
        self.workspace.prints[usize::from(position)]
    }

    #[inline(always)]
    fn winner(&self, position: u8) -> Winner {
        self.winners[usize::from(position)]
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn at_unchecked(&mut self, position: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask) {
        let position = usize::from(position);
        // SAFETY: the position is in bounds, as the caller guarantees; there are as
        // many winners as rows (asserted by `new`, and neither changes).
        unsafe {
            let row = self.rows.get_unchecked(position);
            let winner = self.winners.get_unchecked_mut(position);
            (row, winner, &mut self.workspace.conflicts[position])
        }
    }
}

/// A single key, at every position.
pub(crate) struct OneKey<'a, const W: usize> {
    pub(crate) key: &'a [u64; W],
    pub(crate) winner: Winner,
    pub(crate) conflicts: ConflictMask,
    /// Its fingerprint, if one was taken.
    print: u64,
}

impl<'a, const W: usize> OneKey<'a, W> {
    pub(crate) fn new(key: &'a [u64; W], winner: Winner, print: u64) -> OneKey<'a, W> {
        OneKey {
            key,
            winner,
            conflicts: ConflictMask::ALL,
            print,
        }
    }
}

impl<const W: usize> Keys<W> for OneKey<'_, W> {
    #[inline(always)]
    fn at(&mut self, _: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask) {
        (self.key, &mut self.winner, &mut self.conflicts)
    }

    #[inline(always)]
    fn len(&self) -> usize {
        BATCH
    }

    #[inline(always)]
    fn print(&self, _: u8) -> u64 {
        self.print
    }

    #[inline(always)]
    fn winner(&self, _: u8) -> Winner {
        self.winner
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn at_unchecked(&mut self, position: u8) -> (&[u64; W], &mut Winner, &mut ConflictMask) {
        self.at(position)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_loadl_epi64, _mm512_cvtepu8_epi64, _mm512_mask_cmplt_epu64_mask,
        _mm512_maskz_loadu_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_storeu_si512,
        _mm512_test_epi64_mask, _pdep_u64, _pext_u64,
    };

    use super::{ActiveKeys, TableBounds};
    use crate::contract::classifier::BATCH;
    use crate::parts::simd::{Avx512, first_bits};

    pub(super) fn activate<const W: usize>(
        _: Avx512,
        keys: &mut ActiveKeys<'_, W>,
        bounds: &TableBounds,
    ) -> (usize, bool) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { activate_avx512(keys, bounds) }
    }

    pub(super) fn make_columns<const W: usize>(_: Avx512, rows: &[[u64; W]], columns: &mut [u64]) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { make_columns_avx512(rows, columns) }
    }

    /// Transposes eight keys at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn make_columns_avx512<const W: usize>(rows: &[[u64; W]], columns: &mut [u64]) {
        for (rows, from) in rows.chunks(8).zip((0..).step_by(8)) {
            let last = rows.len() - 1;
            let rows: [&[u64; W]; 8] = std::array::from_fn(|index| &rows[index.min(last)]);
            for word in 0..W {
                let [a, b, c, d, e, f, g, h] = rows.map(|row| row[word].cast_signed());
                let eight = _mm512_set_epi64(h, g, f, e, d, c, b, a);
                let target = &mut columns[word * BATCH + from..][..8];
                // SAFETY: eight words are written to a slice of eight.
                unsafe { _mm512_storeu_si512(target.as_mut_ptr().cast(), eight) };
            }
        }
    }

    /// Writes the positions. Returns their number, and true if the best rule is
    /// better than any winner.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
    fn activate_avx512<const W: usize>(
        keys: &mut ActiveKeys<'_, W>,
        bounds: &TableBounds,
    ) -> (usize, bool) {
        const LOW_BIT_OF_EACH_BYTE: u64 = 0x0101_0101_0101_0101;
        let best = _mm512_set1_epi64(bounds.best.rank().cast_signed());
        let late_best = _mm512_set1_epi64(bounds.late_best.rank().cast_signed());
        let group = _mm512_set1_epi64(bounds.group.bits().into());
        let mut positions = 0x0706_0504_0302_0100;
        let mut active_count = 0;
        let mut improvable = 0;
        let conflicts = keys.workspace.conflicts.chunks_exact(8);
        for (winners, conflicts) in keys.winners.chunks(8).zip(conflicts) {
            let existing = first_bits(winners.len());
            // SAFETY: the mask selects existing winners, at most eight; masked-out
            // lanes are not accessed. A winner is one word.
            let ranks = unsafe { _mm512_maskz_loadu_epi64(existing, winners.as_ptr().cast()) };
            // SAFETY: eight bytes are read from a slice of eight.
            let conflicts = unsafe { _mm_loadl_epi64(conflicts.as_ptr().cast()) };
            let conflicts = _mm512_test_epi64_mask(_mm512_cvtepu8_epi64(conflicts), group);
            let better = _mm512_mask_cmplt_epu64_mask(existing, best, ranks);
            let selected =
                conflicts & better | _mm512_mask_cmplt_epu64_mask(better, late_best, ranks);
            improvable |= better;
            let bytes = _pext_u64(
                positions,
                _pdep_u64(selected.into(), LOW_BIT_OF_EACH_BYTE) * 0xff,
            );
            keys.workspace.active[active_count..active_count + 8]
                .copy_from_slice(&bytes.to_le_bytes());
            active_count += selected.count_ones() as usize;
            positions = positions.wrapping_add(8 * LOW_BIT_OF_EACH_BYTE);
        }
        (active_count, improvable != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::seed::splitmix;

    #[test]
    fn with_columns_a_few_more_stay_so_that_all_do() {
        let rows = [[7_u64; 3]; 40];
        let mut state = 1;
        for isa in Isa::available() {
            for worse in 0..=40 {
                // Keys with rank 9 are active, keys with rank 1 are not.
                let ranks = (0..40).map(|index| if index < worse { 9 } else { 1 });
                let mut winners: Vec<Winner> = ranks.map(Winner::from_rank).collect();
                let swap = usize::try_from(splitmix(&mut state) % 40).unwrap();
                winners.swap(0, swap);
                let mut workspace = Workspace::default();
                let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                keys.make_columns(isa);
                let may_continue = keys.activate(
                    isa,
                    &TableBounds {
                        best: Winner::from_rank(5),
                        late_best: Winner::from_rank(5),
                        group: ConflictMask::group(1),
                    },
                );
                assert_eq!(may_continue, worse > 0);
                let all_active = keys.in_columns && worse >= 35;
                assert_eq!(keys.positions().len(), if all_active { 40 } else { worse });
                let positions = keys.positions();
                assert!(positions.windows(2).all(|two| two[0] < two[1]));
            }
        }
    }

    #[test]
    fn those_stay_whose_winners_a_table_beats() {
        let mut state = 9;
        for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
            for isa in Isa::available() {
                let rows: Vec<[u64; 2]> = (0..len)
                    .map(|_| [splitmix(&mut state), splitmix(&mut state)])
                    .collect();
                let mut winners: Vec<Winner> = (0..len)
                    .map(|_| Winner::from_rank(splitmix(&mut state) % 1000))
                    .collect();
                let ranks = winners.clone();
                let mut workspace = Workspace {
                    active: [77; BATCH + 8],
                    ..Workspace::default()
                };
                let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                assert!(keys.positions().is_empty());
                let mut conflicts = vec![ConflictMask::ALL; len];
                for (position, conflicts) in (0..=u8::MAX).zip(&mut conflicts) {
                    let random_mask =
                        ConflictMask::from_bits(splitmix(&mut state).to_le_bytes()[0]);
                    conflicts.narrow(random_mask, position % 3 != 0);
                    *keys.at(position).2 = *conflicts;
                }
                for (best, group) in [(0, 1), (10, 0), (300, 0), (500, 4), (900, 2)] {
                    let bounds = TableBounds {
                        best: Winner::from_rank(best),
                        late_best: Winner::from_rank(best + 300),
                        group: ConflictMask::group(group),
                    };
                    let may_continue = keys.activate(isa, &bounds);
                    let is_active = |&position: &u8| {
                        let index = usize::from(position);
                        let winner = ranks[index].rank();
                        let known = conflicts[index].bits() >> group & 1 != 0;
                        best < winner && (known || best + 300 < winner)
                    };
                    let expected: Vec<u8> = (0..=u8::MAX).take(len).filter(is_active).collect();
                    assert_eq!(keys.positions(), expected, "{isa}, {len} keys");
                    assert_eq!(
                        may_continue,
                        ranks.iter().any(|winner| best < winner.rank())
                    );
                    for from in 0..expected.len() {
                        let exists = |&position: &u8| usize::from(position) < len;
                        assert!(keys.eight(from).iter().all(exists));
                    }
                    for &position in &expected {
                        let index = usize::from(position);
                        let (row, winner, mask) = keys.at(position);
                        assert_eq!(
                            (row, *winner, *mask),
                            (&rows[index], ranks[index], conflicts[index])
                        );
                    }
                }
            }
        }
    }
}
