//! Growth of long lists: by an eighth, so that at most a ninth of the memory is unused. A list
//! that doubles leaves up to half of it unused.

/// Lists grow by the fraction `1 / GROWTH_DIVISOR`. While a list becomes long, the number of
/// moved items is at most `GROWTH_DIVISOR + 1` times its length. The system moves long lists
/// without copies.
const GROWTH_DIVISOR: usize = 8;

/// Makes room for more items in a list.
pub(crate) fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / GROWTH_DIVISOR));
    }
}

/// Returns the slot of a list at an index. The list becomes longer if it ends before.
pub(crate) fn slot_at<T>(list: &mut Vec<Option<T>>, index: usize) -> &mut Option<T> {
    if let Some(more) = (index + 1).checked_sub(list.len()) {
        make_room(list, more);
        list.resize_with(list.len() + more, || None);
    }
    &mut list[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_is_unused_and_few_items_are_moved() {
        let (mut list, mut moved) = (Vec::new(), 0);
        for number in 0..100_000 {
            let capacity = list.capacity();
            make_room(&mut list, 1);
            if list.capacity() > capacity {
                moved += list.len();
            }
            list.push(number);
            assert!(list.capacity() <= list.len() + list.len() / GROWTH_DIVISOR + 1);
        }
        assert!(moved <= (GROWTH_DIVISOR + 1) * list.len(), "{moved}");
    }
}
