//! The 64-bit slot: what a table holds for each bucket, and what a lookup keeps
//! of it.
//!
//! # Data layout
//! ```text
//!        63            32 31        16 15       11 10          0
//! Slot   │   position   │ signature  │ conflicts │   length    │
//! Hit    │   position   │ key number │ conflicts │   length    │
//! ```
//! | length | the bucket is | position is |
//! |---|---|---|
//! | 0 | empty | 0 |
//! | 1 to 1024 | a run of that many rules | the run's first word |
//! | [`Slot::NESTED`] | nested tables | the number of the first of them |
//!
//! The *signature* is a Bloom filter of 16 bits: each rule of the bucket sets the
//! bit that four further bits of its hash choose. A key whose bit is not set has
//! nothing to find in the bucket.
//!
//! The *conflicts* are a [`ConflictMask`]: groups of tables in which a rule of
//! the run may be beaten.
//!
//! A [`Hit`] is a slot that a key of a batch has found. The signature has done
//! its work by then, and the number of the key in its batch takes its place.
//!
//! This is the only file that knows where the bits are. Vector code uses the
//! masks and shifts below.

/// The lowest of the bits for conflicts.
const CONFLICTS_AT: u32 = 16 - ConflictMask::GROUPS as u32;

/// The lowest of the bits for the signature or the key's number.
pub(crate) const SIGNATURE_AT: u32 = 16;

/// The bits for the signature or the key's number.
pub(crate) const SIGNATURE: u64 = 0xffff << SIGNATURE_AT;

/// The bits for the length.
pub(crate) const LENGTH: u64 = (1 << CONFLICTS_AT) - 1;

/// The lowest of the bits for the position.
const POSITION_AT: u32 = 32;

/// Groups of a root's tables, one bit each.
///
/// For a rule or a run these are the groups whose tables may hold a
/// *conflicting* rule, one that overlaps it and has a better rank. For a table
/// it is its own group alone, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ConflictMask(u8);

impl ConflictMask {
    /// The number of groups.
    pub(crate) const GROUPS: u8 = 5;
    pub(crate) const NONE: ConflictMask = ConflictMask(0);
    pub(crate) const ALL: ConflictMask = ConflictMask((1 << ConflictMask::GROUPS) - 1);

    /// One group alone.
    ///
    /// # Panics
    /// When there is no group of that number.
    pub(crate) fn group(number: u8) -> ConflictMask {
        assert!(number < ConflictMask::GROUPS, "a group");
        ConflictMask(1 << number)
    }

    /// From the lowest bits; the others are ignored.
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

    /// Whether a group is among these.
    #[inline(always)]
    pub(crate) fn has(self, group: ConflictMask) -> bool {
        self.0 & group.0 != 0
    }

    /// Keeps the groups that are also in `other`, if a rule with `other` has
    /// matched.
    #[inline(always)]
    pub(crate) fn narrow(&mut self, other: ConflictMask, matched: bool) {
        self.0 &= other.0 | u8::from(matched).wrapping_sub(1);
    }
}

/// The number of a table. It is used again after the table is gone.
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

    /// The first of a slot's nested tables; means nothing for other slots.
    #[inline]
    pub(crate) fn from_slot(slot: Slot) -> TableNumber {
        TableNumber(slot.position())
    }
}

/// A slot of a table. A rule's place is the slot whose run it is in; nested
/// tables have the slot that points to the first of them as their *parent*.
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
    /// The position of its first word in the array of runs.
    pub(crate) start: u32,
    /// The number of its rules, 1 to [`MAX_RUN`].
    pub(crate) len: u16,
}

/// The most rules of a run. Longer ones are never compared as a whole, and
/// inserting into one costs a copy.
pub(crate) const MAX_RUN: usize = 1024;

/// What a slot holds.
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

    /// The length that means nested tables.
    pub(crate) const NESTED: u64 = LENGTH;

    /// A bucket whose rules may have conflicts in every group.
    pub(crate) fn new(bucket: Bucket, signature: u16) -> Slot {
        let (position, length) = match bucket {
            Bucket::Empty => return Slot::EMPTY,
            Bucket::Run(run) => (run.start, u64::from(run.len)),
            Bucket::Nested(first) => (first.0, Slot::NESTED),
        };
        let position = u64::from(position) << POSITION_AT;
        let slot = Slot(position | u64::from(signature) << SIGNATURE_AT | length);
        slot.with_conflicts(ConflictMask::ALL)
    }

    /// With other conflicts; an empty slot has none.
    pub(crate) fn with_conflicts(self, conflicts: ConflictMask) -> Slot {
        let all = u64::from(ConflictMask::ALL.bits()) << CONFLICTS_AT;
        match self.length() {
            0 => self,
            _ => Slot(self.0 & !all | u64::from(conflicts.bits()) << CONFLICTS_AT),
        }
    }

    /// Another bucket with the same signature and conflicts.
    pub(crate) fn with_bucket(self, bucket: Bucket) -> Slot {
        Slot::new(bucket, self.signature()).with_conflicts(self.conflicts())
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lowest of the bits count
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

    /// Whether a key with that signature bit, 0 to 15, may find something here.
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
        self.0 & LENGTH == Slot::NESTED
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // eleven bits
    pub(crate) fn length(self) -> u16 {
        (self.0 & LENGTH) as u16
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the upper half
    fn position(self) -> u32 {
        (self.0 >> POSITION_AT) as u32
    }
}

/// A key with what it found; see the [module](self) for its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Hit(u64);

impl Hit {
    /// No key's.
    pub(crate) const NONE: Hit = Hit(0);

    /// What the key of that number in its batch found.
    #[inline(always)]
    pub(crate) fn new(slot: Slot, key: u8) -> Hit {
        Hit(slot.0 & !SIGNATURE | u64::from(key) << SIGNATURE_AT)
    }

    /// The slot, without its signature.
    #[inline(always)]
    pub(crate) fn slot(self) -> Slot {
        Slot(self.0 & !SIGNATURE)
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
        (self.0 & LENGTH) as usize
    }

    /// The conflicts of the run's rules.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lowest of the bits count
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
            let hit = Hit::new(slot, key);
            assert_eq!((hit.start(), hit.len()), (u32::MAX as usize, 1024));
            assert_eq!((hit.key(), hit.conflicts()), (key, group));
            assert_eq!(hit.slot().bucket(), Bucket::Run(run));
            assert_eq!(hit.slot().signature(), 0);
        }
    }
}
