//! Counts of packets and bytes: of entries, tables, groups and meters.

/// Numbers of packets and bytes. The bytes of a packet are the length of its frame at the
/// time of counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// Returns the sum of two counts.
    #[must_use]
    pub fn and(self, other: Count) -> Count {
        Count {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }

    pub(in crate::pipeline) fn since(self, earlier: Count) -> Count {
        Count {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// The counts of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCount {
    /// Packets that were looked up.
    pub lookups: u64,
    /// Packets that an entry matched.
    pub matched: u64,
}

/// The counts of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Packets that were sent to the group.
    pub all: Count,
    /// Packets that went to each bucket.
    pub buckets: Vec<Count>,
}

/// The counts of a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterCount {
    /// Packets that reached the meter.
    pub all: Count,
    /// Packets to which each band was applied.
    pub bands: Vec<Count>,
}
