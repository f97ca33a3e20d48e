//! How large containers are that hold so many items.

/// The capacity of a vector that grew to so many small items one by one.
#[must_use]
pub fn grown(items: usize) -> usize {
    match items {
        0 => 0,
        items => items.next_power_of_two().max(4),
    }
}

/// The bytes of a hash map of `hashbrown` (or the standard library) with room
/// for so many entries of that size: seven eighths of a power of two of them,
/// and a byte each.
#[must_use]
pub fn map_bytes(entries: usize, entry: usize) -> usize {
    const GROUP: usize = 16;
    let buckets = match entries {
        0 => return 0,
        1..=3 => 4,
        4..=7 => 8,
        8..=14 => 16,
        _ => (entries * 8 / 7).next_power_of_two(),
    };
    (buckets * entry).next_multiple_of(GROUP) + buckets + GROUP
}

#[cfg(test)]
mod tests {
    use hashbrown::HashMap;

    use super::*;
    use crate::seed::MapState;

    #[test]
    fn maps_are_as_large_as_computed() {
        for count in [0, 1, 3, 4, 7, 8, 14, 15, 28, 29, 1000, 14_336, 14_337] {
            let small: HashMap<u32, u32, MapState> =
                HashMap::with_capacity_and_hasher(count, MapState::default());
            assert_eq!(map_bytes(count, 8), small.allocation_size(), "{count}");
            let large: HashMap<u32, u64, MapState> =
                HashMap::with_capacity_and_hasher(count, MapState::default());
            assert_eq!(map_bytes(count, 16), large.allocation_size(), "{count}");
        }
    }

    #[test]
    fn vectors_are_as_large_as_computed() {
        let mut vector: Vec<u64> = Vec::new();
        for count in 0..100 {
            assert_eq!(grown(count), vector.capacity(), "{count}");
            vector.push(0);
        }
    }
}
