//! Ids of a policy's parts.

/// The id of a part of a policy: its position, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartId(u8);

impl PartId {
    /// The first part; the only part of a policy over a single schema.
    pub const FIRST: PartId = PartId(0);

    /// Returns the part at a position.
    ///
    /// # Panics
    /// If the position is not below [`MAX_PARTS`].
    #[must_use]
    pub fn from_index(index: usize) -> PartId {
        assert!(index < MAX_PARTS, "a policy has at most {MAX_PARTS} parts");
        PartId(u8::try_from(index).expect("MAX_PARTS is small"))
    }

    /// Returns the position of the part.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The maximum number of parts in a policy: a set of parts is stored in eight bits.
pub const MAX_PARTS: usize = 8;
