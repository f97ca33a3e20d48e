//! The 64-bit slot: a bucket of a table, and the part of it that a lookup keeps.
//!
//! # Data layout
//! ```text
//!        63            32 31        16 15       11 10          0
//! Slot   │   position   │ signature  │ conflicts │   length    │
//! FoundSlot    │   position   │ key number │ conflicts │   length    │
//! ```
//! | length | the bucket is | position is |
//! |---|---|---|
//! | 0 | empty | 0 |
//! | 1 to 1024 | a run of that many rules | the run's first word |
//! | [`Slot::NESTED_LENGTH`] | nested tables | the number of the first of them |
//!
//! The *signature* is a Bloom filter of 16 bits: each rule of the bucket sets the
//! bit chosen by four further bits of its hash. If the key's bit is not set, no rule
//! of the bucket matches the key.
//!
//! The *conflicts* are a [`ConflictMask`]: the groups of tables that may hold a
//! better rule than some rule of the run.
//!
//! A [`FoundSlot`] is a slot found by a key of a batch. The signature has been tested by
//! then, so the number of the key in its batch takes its place.
//!
//! Only this file knows the bit positions. Vector code uses the masks and shifts
//! below.

/// The lowest conflict bit.
const CONFLICTS_AT: u32 = 16 - ConflictMask::GROUP_COUNT as u32;

/// The lowest bit of the signature or the key's number.
pub(crate) const SIGNATURE_AT: u32 = 16;

/// Selects the signature or the key's number.
pub(crate) const SIGNATURE_MASK: u64 = 0xffff << SIGNATURE_AT;

/// Selects the length.
pub(crate) const LENGTH_MASK: u64 = (1 << CONFLICTS_AT) - 1;

/// The lowest bit of the position.
const POSITION_AT: u32 = 32;

/// Groups of a root's tables, one bit each.
///
/// For a rule or a run, these are the groups whose tables may hold a *conflicting*
/// rule: an overlapping rule of better rank. For a table, it is its own group, or
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ConflictMask(u8);

impl ConflictMask {
    /// The number of groups: the bits that the length leaves.
    pub(crate) const GROUP_COUNT: u8 = 5;
    pub(crate) const NONE: ConflictMask = ConflictMask(0);
    pub(crate) const ALL: ConflictMask = ConflictMask((1 << ConflictMask::GROUP_COUNT) - 1);

    /// A single group.
    ///
    /// # Panics
    /// If `number` is not below [`GROUP_COUNT`](Self::GROUP_COUNT).
    pub(crate) fn group(number: u8) -> ConflictMask {
        assert!(number < ConflictMask::GROUP_COUNT, "a group");
        ConflictMask(1 << number)
    }

    /// Takes the lowest bits; ignores the rest.
    #[inline(always)]
    pub(crate) fn from_bits(bits: u8) -> ConflictMask {
        ConflictMask(bits & ConflictMask::ALL.0)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn or(self, other: ConflictMask) -> ConflictMask {
        ConflictMask(self.0 | other.0)
    }

    /// True if `self` and `group` have a group in common.
    #[inline(always)]
    pub(crate) fn has(self, group: ConflictMask) -> bool {
        self.0 & group.0 != 0
    }

    /// Keeps only the groups that are also in `other`, if `matched`. Without a branch: the
    /// second operand of `|` is 0 if `matched`, and else all ones.
    #[inline(always)]
    pub(crate) fn narrow(&mut self, other: ConflictMask, matched: bool) {
        self.0 &= other.0 | u8::from(matched).wrapping_sub(1);
    }
}

/// The number of a table. After the table is removed, its number is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableNumber(u32);

impl TableNumber {
    /// No table.
    pub(crate) const NONE: TableNumber = TableNumber(u32::MAX);

    pub(crate) fn from_index(index: usize) -> TableNumber {
        TableNumber(u32::try_from(index).expect("fewer tables than rules"))
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The first of a slot's nested tables; meaningless for other slots.
    #[inline]
    pub(crate) fn from_slot(slot: Slot) -> TableNumber {
        TableNumber(slot.position())
    }
}

/// A slot of a table. A rule's place is the slot of its run. The *parent* of nested
/// tables is the slot that points to the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) table: TableNumber,
    pub(crate) slot: u32,
}

impl Place {
    /// The parent of the root's tables, to which no slot points.
    pub(crate) const ROOT: Place = Place {
        table: TableNumber::NONE,
        slot: 0,
    };

    #[inline]
    pub(crate) fn is_root(self) -> bool {
        self.table == TableNumber::NONE
    }
}

/// A run of rules, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The position of the run's first word in the array of runs.
    pub(crate) start: u32,
    /// The number of rules, 1 to [`MAX_RUN`].
    pub(crate) len: u16,
}

/// The most rules of a run. Longer runs are never compared as a whole, and inserting
/// into a run costs a copy: this bounds the copy of an update.
pub(crate) const MAX_RUN: usize = 1024;

/// The contents of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bucket {
    Empty,
    Run(Run),
    /// Nested tables, by the first of them.
    Nested(TableNumber),
}

/// A bucket in 8 bytes; see the [module](self) for its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Slot(u64);

impl Slot {
    pub(crate) const EMPTY: Slot = Slot(0);

    /// The length of a slot with nested tables.
    pub(crate) const NESTED_LENGTH: u64 = LENGTH_MASK;

    /// A bucket whose rules may have conflicts in every group.
    pub(crate) fn new(bucket: Bucket, signature: u16) -> Slot {
        let (position, length) = match bucket {
            Bucket::Empty => return Slot::EMPTY,
            Bucket::Run(run) => (run.start, u64::from(run.len)),
            Bucket::Nested(first) => (first.0, Slot::NESTED_LENGTH),
        };
        let position = u64::from(position) << POSITION_AT;
        let slot = Slot(position | u64::from(signature) << SIGNATURE_AT | length);
        slot.with_conflicts(ConflictMask::ALL)
    }

    /// Replaces the conflicts; an empty slot has none.
    pub(crate) fn with_conflicts(self, conflicts: ConflictMask) -> Slot {
        let every_group = u64::from(ConflictMask::ALL.bits()) << CONFLICTS_AT;
        match self.length() {
            0 => self,
            _ => Slot(self.0 & !every_group | u64::from(conflicts.bits()) << CONFLICTS_AT),
        }
    }

    /// Replaces the bucket; keeps the signature and conflicts.
    pub(crate) fn with_bucket(self, bucket: Bucket) -> Slot {
        Slot::new(bucket, self.signature()).with_conflicts(self.conflicts())
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // only the lowest bits are used
    pub(crate) fn conflicts(self) -> ConflictMask {
        ConflictMask::from_bits((self.0 >> CONFLICTS_AT) as u8)
    }

    #[inline]
    pub(crate) fn bucket(self) -> Bucket {
        match self.length() {
            0 => Bucket::Empty,
            _ if self.is_nested() => Bucket::Nested(TableNumber(self.position())),
            len => Bucket::Run(Run {
                start: self.position(),
                len,
            }),
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the second 16 bits
    pub(crate) fn signature(self) -> u16 {
        (self.0 >> SIGNATURE_AT) as u16
    }

    /// False if no rule here matches a key with the signature bit `bit`, 0 to 15.
    #[inline]
    pub(crate) fn may_hold(self, bit: u32) -> bool {
        self.0 >> (SIGNATURE_AT + bit) & 1 != 0
    }

    /// A slot from its word.
    #[inline]
    pub(crate) fn from_word(word: u64) -> Slot {
        Slot(word)
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn is_nested(self) -> bool {
        self.0 & LENGTH_MASK == Slot::NESTED_LENGTH
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // eleven bits
    pub(crate) fn length(self) -> u16 {
        (self.0 & LENGTH_MASK) as u16
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the upper half
    fn position(self) -> u32 {
        (self.0 >> POSITION_AT) as u32
    }
}

/// A key with the slot that it found; see the [module](self) for its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct FoundSlot(u64);

impl FoundSlot {
    /// Belongs to no key.
    pub(crate) const NONE: FoundSlot = FoundSlot(0);

    /// The hit of the key with the number `key` in its batch.
    #[inline(always)]
    pub(crate) fn new(slot: Slot, key: u8) -> FoundSlot {
        FoundSlot(slot.0 & !SIGNATURE_MASK | u64::from(key) << SIGNATURE_AT)
    }

    /// The slot, without its signature.
    #[inline(always)]
    pub(crate) fn slot(self) -> Slot {
        Slot(self.0 & !SIGNATURE_MASK)
    }

    /// The key's number.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // eight bits
    pub(crate) fn key(self) -> u8 {
        (self.0 >> SIGNATURE_AT) as u8
    }

    /// The position of the run's first word.
    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        (self.0 >> POSITION_AT) as usize
    }

    /// The number of rules in the run.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.0 & LENGTH_MASK) as usize
    }

    /// The conflicts of the run's rules.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // only the lowest bits are used
    pub(crate) fn conflicts(self) -> ConflictMask {
        ConflictMask::from_bits((self.0 >> CONFLICTS_AT) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_what_was_put_in() {
        let run = Run { start: 77, len: 3 };
        for bucket in [
            Bucket::Empty,
            Bucket::Run(run),
            Bucket::Nested(TableNumber(5)),
        ] {
            let slot = Slot::new(bucket, 0b101);
            let marked = slot.with_conflicts(ConflictMask::group(3));
            assert_eq!((slot.bucket(), marked.bucket()), (bucket, bucket));
            assert!(!marked.may_hold(1) && marked.conflicts() != ConflictMask::ALL);
            assert_eq!(slot.may_hold(2), bucket != Bucket::Empty);
            assert!(!slot.may_hold(1));
        }
    }

    #[test]
    fn hits_have_all_of_a_slot_but_its_signature() {
        let run = Run {
            start: u32::MAX,
            len: 1024,
        };
        let group = ConflictMask::group(2);
        let slot = Slot::new(Bucket::Run(run), u16::MAX).with_conflicts(group);
        for key in [0, 1, 255] {
            let hit = FoundSlot::new(slot, key);
            assert_eq!((hit.start(), hit.len()), (u32::MAX as usize, 1024));
            assert_eq!((hit.key(), hit.conflicts()), (key, group));
            assert_eq!(hit.slot().bucket(), Bucket::Run(run));
            assert_eq!(hit.slot().signature(), 0);
        }
    }
}
