//! Sorting with progress reports and cancellation.
//!
//! A long list is sorted in chunks. Sorted chunks are merged pairwise between
//! the list and a second list of the same size:
//! ```text
//! list    │ sorted │ sorted │ sorted │ sorted │
//! second  │     merged      │     merged      │
//! list    │              merged               │
//! ```
//!
//! # Cost
//! Takes about as long as an ordinary sort. A list longer than a chunk takes
//! twice its memory during the sort.
//!
//! # Compiled code
//! Each item type and each closure compiles its own copy of a sort, and a
//! closure in a function that is generic over key widths is a different closure
//! for each width. So such functions sort plain items with [`sort`], and short
//! lists with [`sort_short`], whose code is small.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;

/// Items sorted without a progress report. It bounds the time between two reports: two
/// or three milliseconds.
const CHUNK_ITEMS: usize = 1 << 15;

/// Maximum number of items sorted by insertion. Measured in `bench/records/constants.md` (Lists
/// and maps).
const MAX_INSERTION_ITEMS: usize = 24;

/// Sorts items by their own order.
///
/// # Errors
/// As for [`sort_by_key`].
pub(crate) fn sort<T: Copy + Ord>(
    items: &mut Vec<T>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    sort_by_key(items, |item| *item, monitor)
}

/// Sorts a list that is usually short: by insertion, or by heapsort if it is
/// long. The order of items with equal keys is unspecified.
pub(crate) fn sort_short<T: Copy, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    if items.len() > MAX_INSERTION_ITEMS {
        sort_as_heap(items, key);
        return;
    }
    for next in 1..items.len() {
        let item = items[next];
        let item_key = key(&item);
        let mut position = next;
        while position > 0 && key(&items[position - 1]) > item_key {
            items[position] = items[position - 1];
            position -= 1;
        }
        items[position] = item;
    }
}

fn sort_as_heap<T: Copy, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    let count = items.len();
    // First, make every parent no less than its children. Then swap the
    // greatest item to the end and restore the heap, repeatedly.
    for step in 0..count / 2 + count {
        let (mut at, end) = match (count / 2).checked_sub(step + 1) {
            Some(parent) => (parent, count),
            None => {
                let heap_end = count - 1 - (step - count / 2);
                items.swap(0, heap_end);
                (0, heap_end)
            }
        };
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < end && key(&items[child]) < key(&items[child + 1]) {
                child += 1;
            }
            if child >= end || key(&items[child]) <= key(&items[at]) {
                break;
            }
            items.swap(at, child);
            at = child;
        }
    }
}

/// Sorts by keys. The order of items with equal keys is unspecified.
///
/// # Errors
/// [`BuildError::Stopped`], [`BuildError::TooManyPeakBytes`]: the contents of
/// the list are then unspecified.
pub(crate) fn sort_by_key<T: Copy, K: Ord>(
    items: &mut Vec<T>,
    key: impl Fn(&T) -> K,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    for chunk in items.chunks_mut(CHUNK_ITEMS) {
        chunk.sort_unstable_by_key(&key);
        monitor.work(chunk.len())?;
    }
    // Rules are often in order already.
    let mut borders = (CHUNK_ITEMS..items.len()).step_by(CHUNK_ITEMS);
    if borders.all(|border| key(&items[border - 1]) <= key(&items[border])) {
        return Ok(());
    }
    let bytes = bytes_of::<T>(items.capacity());
    monitor.memory().take(bytes)?;
    let mut merged = Vec::with_capacity(items.capacity());
    let mut sorted = CHUNK_ITEMS;
    while sorted < items.len() {
        for pair in items.chunks(2 * sorted) {
            let (first, second) = pair.split_at(sorted.min(pair.len()));
            merge(first, second, &key, &mut merged, monitor)?;
        }
        std::mem::swap(items, &mut merged);
        merged.clear();
        sorted *= 2;
    }
    drop(merged);
    monitor.memory().give_back(bytes);
    Ok(())
}

/// Appends the merge of two sorted lists.
fn merge<T: Copy, K: Ord>(
    mut first: &[T],
    mut second: &[T],
    key: &impl Fn(&T) -> K,
    merged: &mut Vec<T>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    while !first.is_empty() && !second.is_empty() {
        // Neither list can run out within `count` items.
        let count = first.len().min(second.len()).min(Monitor::STEPS);
        let (mut a, mut b) = (0, 0);
        merged.extend((0..count).map(|_| {
            let (left, right) = (first[a], second[b]);
            let take_right = key(&right) < key(&left);
            a += usize::from(!take_right);
            b += usize::from(take_right);
            if take_right { right } else { left }
        }));
        (first, second) = (&first[a..], &second[b..]);
        monitor.work(count)?;
    }
    for rest in [first, second] {
        for some in rest.chunks(Monitor::STEPS) {
            merged.extend_from_slice(some);
            monitor.work(some.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::monitor::unwatched;
    use crate::model::seed::splitmix;

    #[test]
    fn short_lists_are_sorted() {
        for length in (0..2 * MAX_INSERTION_ITEMS).chain([100, 1000, 1001]) {
            for spread in [1, 5, u64::MAX] {
                let mut state = length as u64;
                let mut items: Vec<(u64, usize)> = (0..length)
                    .map(|index| (splitmix(&mut state) % spread, index))
                    .collect();
                let mut expected = items.clone();
                expected.sort_unstable();
                sort_short(&mut items, |item| *item);
                assert_eq!(items, expected);
                sort_short(&mut items, |item| std::cmp::Reverse(item.0));
                assert!(items.is_sorted_by_key(|item| std::cmp::Reverse(item.0)));
                items.sort_unstable();
                assert_eq!(items, expected, "{length} items");
            }
        }
    }

    #[test]
    fn lists_of_any_length_are_sorted() {
        let lengths = [
            0,
            1,
            2,
            1000,
            CHUNK_ITEMS - 1,
            CHUNK_ITEMS,
            CHUNK_ITEMS + 1,
            2 * CHUNK_ITEMS,
        ];
        for length in lengths
            .into_iter()
            .chain([3 * CHUNK_ITEMS - 7, 9 * CHUNK_ITEMS + 5])
        {
            for spread in [1, 50, u64::MAX] {
                let mut state = length as u64;
                let mut items: Vec<(u64, usize)> = (0..length)
                    .map(|index| (splitmix(&mut state) % spread, index))
                    .collect();
                let mut expected = items.clone();
                expected.sort_unstable();
                unwatched(|monitor| sort_by_key(&mut items, |item| *item, monitor));
                assert!(items == expected, "{length} items");
                // Already in order, and in reverse order.
                unwatched(|monitor| sort_by_key(&mut items, |item| *item, monitor));
                assert!(items == expected, "{length} items in order");
                items.reverse();
                unwatched(|monitor| sort_by_key(&mut items, |item| *item, monitor));
                assert!(items == expected, "{length} items in reverse");
            }
        }
    }
}
