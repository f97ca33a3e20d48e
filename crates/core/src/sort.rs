//! Sorting that reports its progress and can be stopped.
//!
//! A list that is not short is sorted in chunks, which are merged, two at a time,
//! between the list and a second one of the same size:
//! ```text
//! list    │ sorted │ sorted │ sorted │ sorted │
//! other   │     merged      │     merged      │
//! list    │              merged               │
//! ```
//!
//! # Cost
//! That of sorting at once, about. Twice the memory of the list
//! meanwhile, where it is longer than a chunk.
//!
//! # Compiled code
//! A sort is compiled anew for each type of items and each closure, and a closure
//! in a function that is generic over key widths is another one at each width. So
//! such functions sort plain items by [`sort`], and short lists by [`sort_short`],
//! which is little code.

use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;

/// Items that are sorted at once: two or three milliseconds.
const CHUNK: usize = 1 << 15;

/// Items that are sorted by insertion.
const SHORT: usize = 24;

/// Sorts items by their own order.
///
/// # Errors
/// Those of [`sort_by_key`].
pub(crate) fn sort<T: Copy + Ord>(
    items: &mut Vec<T>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    sort_by_key(items, |item| *item, monitor)
}

/// Sorts a list that is short in most cases, by insertion, and a longer one as a
/// heap. Items of equal keys come in any order.
pub(crate) fn sort_short<T: Copy, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    if items.len() > SHORT {
        sort_as_heap(items, key);
        return;
    }
    for next in 1..items.len() {
        let item = items[next];
        let of_item = key(&item);
        let mut at = next;
        while at > 0 && key(&items[at - 1]) > of_item {
            items[at] = items[at - 1];
            at -= 1;
        }
        items[at] = item;
    }
}

fn sort_as_heap<T: Copy, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    let count = items.len();
    // First every parent becomes no less than its children, then the greatest
    // item goes to the end, and the last one takes its place.
    for step in 0..count / 2 + count {
        let (mut at, end) = match (count / 2).checked_sub(step + 1) {
            Some(parent) => (parent, count),
            None => {
                let end = count - 1 - (step - count / 2);
                items.swap(0, end);
                (0, end)
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

/// Sorts by keys. Items of equal keys come in any order.
///
/// # Errors
/// [`BuildError::Stopped`], [`BuildError::TooManyPeakBytes`]: the list holds
/// anything then.
pub(crate) fn sort_by_key<T: Copy, K: Ord>(
    items: &mut Vec<T>,
    key: impl Fn(&T) -> K,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    for chunk in items.chunks_mut(CHUNK) {
        chunk.sort_unstable_by_key(&key);
        monitor.work(chunk.len())?;
    }
    // Rules often come in order.
    let mut borders = (CHUNK..items.len()).step_by(CHUNK);
    if borders.all(|border| key(&items[border - 1]) <= key(&items[border])) {
        return Ok(());
    }
    let bytes = bytes_of::<T>(items.capacity());
    monitor.memory().take(bytes)?;
    let mut other = Vec::with_capacity(items.capacity());
    let mut sorted = CHUNK;
    while sorted < items.len() {
        for pair in items.chunks(2 * sorted) {
            let (first, second) = pair.split_at(sorted.min(pair.len()));
            merge(first, second, &key, &mut other, monitor)?;
        }
        std::mem::swap(items, &mut other);
        other.clear();
        sorted *= 2;
    }
    drop(other);
    monitor.memory().give_back(bytes);
    Ok(())
}

/// Appends two sorted lists as one.
fn merge<T: Copy, K: Ord>(
    mut first: &[T],
    mut second: &[T],
    key: &impl Fn(&T) -> K,
    merged: &mut Vec<T>,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    while !first.is_empty() && !second.is_empty() {
        // As many as surely come from these two: no end is met on the way.
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
    use crate::monitor::unwatched;
    use crate::seed::splitmix;

    #[test]
    fn short_lists_are_sorted() {
        for length in (0..2 * SHORT).chain([100, 1000, 1001]) {
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
        let lengths = [0, 1, 2, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK];
        for length in lengths.into_iter().chain([3 * CHUNK - 7, 9 * CHUNK + 5]) {
            for spread in [1, 50, u64::MAX] {
                let mut state = length as u64;
                let mut items: Vec<(u64, usize)> = (0..length)
                    .map(|index| (splitmix(&mut state) % spread, index))
                    .collect();
                let mut expected = items.clone();
                expected.sort_unstable();
                unwatched(|monitor| sort_by_key(&mut items, |item| *item, monitor));
                assert!(items == expected, "{length} items");
                // In order already, and in the opposite order.
                unwatched(|monitor| sort_by_key(&mut items, |item| *item, monitor));
                assert!(items == expected, "{length} items in order");
                items.reverse();
                unwatched(|monitor| sort_by_key(&mut items, |item| *item, monitor));
                assert!(items == expected, "{length} items in reverse");
            }
        }
    }
}
