//! Pairs of equal rules of two lists, in the order of both lists.

use std::collections::HashMap;

use crate::part::AnalysedPart;

/// Returns for each rule of both lists the place of its equal rule in the other list, if it
/// has one. Pairs do not cross: a better rule of the first list has a better rule of the
/// second list. `same_action` compares the actions of two places.
pub(super) fn pair(
    part: &AnalysedPart<'_>,
    same_action: impl Fn(u32, u32) -> bool,
) -> Vec<Option<u32>> {
    let (a, b) = (part.places(0), part.places(1));
    let mut pairs = vec![None; b.end as usize];
    // The last occurrence of a rule is last here, so that `pop` returns the first one.
    let mut by_words: HashMap<&[u64], Vec<u32>> = HashMap::new();
    for place in b.rev() {
        by_words
            .entry(part.rule(place).words())
            .or_default()
            .push(place);
    }
    let candidates = a.filter_map(|place| {
        let list = by_words.get_mut(part.rule(place).words())?;
        let partner = list.pop_if(|partner| same_action(place, *partner))?;
        Some((place, partner))
    });
    let candidates: Vec<(u32, u32)> = candidates.collect();
    for index in longest_ascending(&candidates) {
        let (place, other) = candidates[index];
        pairs[place as usize] = Some(other);
        pairs[other as usize] = Some(place);
    }
    pairs
}

/// Returns the positions of a longest subsequence whose second numbers ascend.
fn longest_ascending(pairs: &[(u32, u32)]) -> Vec<usize> {
    // The position of the smallest last number of a subsequence of each length.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![usize::MAX; pairs.len()];
    for (index, &(_, number)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < number);
        if let Some(before) = length.checked_sub(1) {
            previous[index] = ends[before];
        }
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut longest = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        longest.push(index);
        next = Some(previous[index]).filter(|&index| index != usize::MAX);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::longest_ascending;

    #[test]
    fn the_longest_ascending_subsequence_is_found() {
        let longest = |numbers: &[u32]| {
            let pairs: Vec<_> = numbers.iter().map(|&number| (0, number)).collect();
            let mut positions = longest_ascending(&pairs);
            positions.reverse();
            assert!(positions.is_sorted_by_key(|&position| numbers[position]));
            positions.len()
        };
        assert_eq!(longest(&[]), 0);
        assert_eq!(longest(&[3, 2, 1]), 1);
        assert_eq!(longest(&[5, 1, 2, 9, 3, 4]), 4);
        assert_eq!(longest(&[1, 2, 3]), 3);
    }
}
