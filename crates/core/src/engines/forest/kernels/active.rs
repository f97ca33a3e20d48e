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

use super::keys::Keys;
use crate::contract::classifier::BATCH;
use crate::engines::forest::slot::ConflictMask;
use crate::model::rule::Winner;
use crate::parts::simd::Isa;
use crate::parts::simd::vector::{Kernel, Lanes, Simd, Vector};

/// For each set of lanes: their numbers, one byte each, packed.
#[allow(clippy::cast_possible_truncation)] // below eight
static LANE_NUMBERS: [u64; 256] = {
    let mut numbers = [0; 256];
    let mut selected = 0;
    while selected < 256 {
        let (mut lane, mut packed) = (0, 0);
        while lane < 8 {
            if selected >> lane & 1 != 0 {
                numbers[selected] |= lane << (8 * packed);
                packed += 1;
            }
            lane += 1;
        }
        selected += 1;
    }
    numbers
};

/// The lowest bit of each byte.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

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
    /// The positions of keys that later tables may improve, in order. Kept without
    /// vectors only: it saves more than it costs there.
    improvable: [u8; BATCH],
    conflicts: [ConflictMask; BATCH + 8],
    /// The [fingerprints](super::fingerprint) of keys, if they were taken.
    prints: [u64; BATCH],
    /// If keys are wanted in columns: the first word of [`BATCH`] keys, then the
    /// second word, and so on. Values behind the last key are undefined.
    columns: Vec<u64>,
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace {
            active: [0; BATCH + 8],
            improvable: POSITIONS,
            conflicts: [ConflictMask::ALL; BATCH + 8],
            prints: [0; BATCH],
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
    /// The number of keys that later tables may improve; with vectors, only 0 if there are
    /// none.
    improvable_count: usize,
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
        workspace.improvable = POSITIONS;
        ActiveKeys {
            rows,
            len: 0,
            improvable_count: rows.len(),
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
        let active_count = isa.run(Activate { keys: self, bounds });
        self.len = active_count;
        if self.in_columns && active_count * 8 >= self.rows.len() * 7 {
            // Using all columns is less work than selecting some keys.
            self.len = self.rows.len();
            self.workspace.active[..self.len].copy_from_slice(&POSITIONS[..self.len]);
        }
        self.workspace.active[self.len..self.len + 8].fill(0);
        self.improvable_count > 0
    }

    /// All keys of the batch, with their winners.
    #[inline(always)]
    pub(crate) fn keys(&mut self) -> Keys<'_, W> {
        let workspace = &mut *self.workspace;
        Keys::new(
            self.rows,
            self.winners,
            &mut workspace.conflicts,
            &workspace.prints,
        )
    }

    /// True if all keys are active, so that list index and position are equal.
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

    /// Copies the words of all keys into columns, if there are vectors that use them.
    pub(crate) fn make_columns(&mut self, isa: Isa) {
        isa.run(MakeColumns(self));
    }

    /// The keys of the batch in columns, and the memory for their fingerprints, with
    /// spare room for a vector of eight.
    ///
    /// # Panics
    /// If there are no columns.
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
    #[inline(always)]
    pub(super) fn in_columns(&self) -> bool {
        self.in_columns
    }

    /// The column with one word of all keys.
    ///
    /// # Panics
    /// If there are no columns.
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
    #[inline(always)]
    pub(super) fn eight(&self, from: usize) -> &[u8; 8] {
        let eight = self.workspace.active[from..].first_chunk();
        eight.expect("there is room for eight behind each")
    }
}

impl<const W: usize> ActiveKeys<'_, W> {
    /// One word of up to eight active keys from `from` on; beyond the last active key, of
    /// any keys.
    #[inline(always)]
    pub(super) fn word<S: Simd>(&self, simd: S, from: usize, word: usize) -> S::Full {
        assert!(word < W && from < self.len, "a word of active keys");
        let positions = self.eight(from);
        // SAFETY: `activate` lists the positions of `len` keys, and 0 eight times behind
        // them.
        unsafe {
            S::Full::gather(simd, self.rows.as_flattened(), |lane| {
                usize::from(positions[lane]) * W + word
            })
        }
    }

    /// Both words of up to eight active keys of two words, as [`word`](Self::word).
    #[inline(always)]
    pub(super) fn two_words<S: Simd>(&self, simd: S, from: usize) -> (S::Full, S::Full) {
        assert!(W == 2 && from < self.len, "active keys of two words");
        let words = self.rows.as_flattened();
        if self.all() && from + S::Full::LANE_COUNT <= self.len {
            return S::Full::load_two(simd, &words[2 * from..]);
        }
        let positions = self.eight(from);
        // SAFETY: as in `word`.
        unsafe { S::Full::gather_two(simd, words, |lane| usize::from(positions[lane]) * 2) }
    }
}

/// Lists the active keys, and the keys that later tables may improve. Returns the number of
/// active keys.
struct Activate<'k, 'a, 'b, const W: usize> {
    keys: &'k mut ActiveKeys<'a, W>,
    bounds: &'b TableBounds,
}

impl<const W: usize> Kernel for Activate<'_, '_, '_, W> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) -> usize {
        if S::Full::LANE_COUNT == 1 {
            return self.one_by_one();
        }
        let mut listed = Listed::default();
        let lanes = S::Full::LANE_COUNT;
        let whole_len = self.keys.winners.len() / lanes * lanes;
        for from in (0..whole_len).step_by(lanes) {
            self.list(simd, from, lanes, &mut listed);
        }
        let rest = self.keys.winners.len() - whole_len;
        if rest > 0 {
            self.list(simd, whole_len, rest, &mut listed);
        }
        self.keys.improvable_count = listed.improvable.count_ones() as usize;
        listed.active_count
    }
}

/// The result of listing.
#[derive(Default)]
struct Listed {
    active_count: usize,
    /// The lanes in which later tables may improve some key.
    improvable: Lanes,
}

impl<const W: usize> Activate<'_, '_, '_, W> {
    /// Lists keys among the `count` keys from `from` on, which fit a vector.
    #[inline(always)]
    fn list<S: Simd>(&mut self, simd: S, from: usize, count: usize, listed: &mut Listed) {
        let winners = &self.keys.winners[from..from + count];
        let ranks = if count == S::Full::LANE_COUNT {
            // SAFETY: one word is read for each winner, and a winner is one
            // word.
            unsafe { S::Full::load_unchecked(simd, winners.as_ptr().cast()) }
        } else {
            let first = S::Full::first(simd, count);
            // SAFETY: as above.
            unsafe { S::Full::load_first(simd, winners.as_ptr().cast(), first) }
        };
        let TableBounds {
            best,
            late_best,
            group,
        } = *self.bounds;
        let best = S::Full::splat(simd, best.rank());
        let better = best.less_than(ranks) & S::Full::first_lanes(simd, count);
        let late = S::Full::splat(simd, late_best.rank()).less_than(ranks);
        let workspace = &mut *self.keys.workspace;
        let conflicts = workspace.conflicts[from..].first_chunk();
        let with_group = lanes_with(conflicts.expect("room for a vector"), group.bits());
        let selected = better & (with_group | late);
        let positions = LANE_NUMBERS[usize::from(selected)] + from as u64 * LOW_BITS;
        workspace.active[listed.active_count..][..8].copy_from_slice(&positions.to_le_bytes());
        listed.active_count += selected.count_ones() as usize;
        listed.improvable |= better;
    }

    /// Lists keys, out of the keys that the table before might have improved.
    #[inline(always)]
    fn one_by_one(&mut self) -> usize {
        let workspace = &mut *self.keys.workspace;
        let winners = &*self.keys.winners;
        let (mut active_count, mut improvable_count) = (0, 0);
        for index in 0..self.keys.improvable_count {
            let position = workspace.improvable[index];
            let winner = winners[usize::from(position)];
            let conflicts = workspace.conflicts[usize::from(position)];
            workspace.improvable[improvable_count] = position;
            improvable_count += usize::from(self.bounds.best.beats(winner));
            workspace.active[active_count] = position;
            active_count += usize::from(self.bounds.may_improve(winner, conflicts));
        }
        self.keys.improvable_count = improvable_count;
        active_count
    }
}

/// The lanes of eight masks that have the group `group`, which is one bit or none.
#[inline(always)]
fn lanes_with(masks: &[ConflictMask; 8], group: u8) -> Lanes {
    /// Moves the lowest bit of each byte to its place among the upper eight.
    const PACKING_FACTOR: u64 = 0x0102_0408_1020_4080;
    let bytes = u64::from_le_bytes(masks.map(ConflictMask::bits));
    let has = (bytes & (u64::from(group) * LOW_BITS)) >> (group.trailing_zeros() & 7);
    (has.wrapping_mul(PACKING_FACTOR) >> 56).to_le_bytes()[0]
}

/// Copies keys into columns.
struct MakeColumns<'k, 'a, const W: usize>(&'k mut ActiveKeys<'a, W>);

impl<const W: usize> Kernel for MakeColumns<'_, '_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let keys = self.0;
        if S::Full::LANE_COUNT == 1 {
            return;
        }
        let columns = &mut keys.workspace.columns;
        if columns.len() < W * BATCH {
            columns.resize(W * BATCH, 0);
        }
        for from in (0..keys.rows.len()).step_by(S::Full::LANE_COUNT) {
            let last = keys.rows.len() - 1;
            for word in 0..W {
                // SAFETY: no index is beyond the last word of the last key.
                let eight = unsafe {
                    S::Full::gather(simd, keys.rows.as_flattened(), |lane| {
                        (from + lane).min(last) * W + word
                    })
                };
                eight.store(&mut columns[word * BATCH + from..]);
            }
        }
        keys.in_columns = true;
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
                    improvable: [77; BATCH],
                    ..Workspace::default()
                };
                let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                assert!(keys.positions().is_empty());
                let mut conflicts = vec![ConflictMask::ALL; len];
                for (position, conflicts) in (0..=u8::MAX).zip(&mut conflicts) {
                    let random_mask =
                        ConflictMask::from_bits(splitmix(&mut state).to_le_bytes()[0]);
                    conflicts.narrow(random_mask, position % 3 != 0);
                    *keys.keys().at(position).2 = *conflicts;
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
                        let mut keys = keys.keys();
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
