//! Numbers of a policy's parts.

/// One of a policy's families of headers, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartId(u8);

impl PartId {
    /// The first part; the only one of a policy over a single schema.
    pub const FIRST: PartId = PartId(0);

    /// The part at a position.
    ///
    /// # Panics
    /// When the position is not below [`MAX_PARTS`].
    #[must_use]
    pub fn from_index(index: usize) -> PartId {
        assert!(index < MAX_PARTS, "a policy has at most {MAX_PARTS} parts");
        PartId(u8::try_from(index).expect("MAX_PARTS is small"))
    }

    /// The position.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The most parts that a policy has.
pub const MAX_PARTS: usize = 8;
