//! Sets of numbers as sorted intervals, so that negations are exact and small.

/// Disjoint intervals in ascending order, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intervals(Vec<(u128, u128)>);

impl Intervals {
    /// Returns the numbers of some intervals, in any order.
    pub(super) fn new(mut intervals: Vec<(u128, u128)>) -> Intervals {
        intervals.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(intervals.len());
        for (low, high) in intervals {
            match merged.last_mut() {
                Some(previous) if low <= previous.1.saturating_add(1) => {
                    previous.1 = previous.1.max(high);
                }
                _ => merged.push((low, high)),
            }
        }
        Intervals(merged)
    }

    /// Returns the numbers up to `max` that are not in the set.
    pub(super) fn complement(&self, max: u128) -> Intervals {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = Some(0);
        for &(low, high) in &self.0 {
            if let Some(start) = next.filter(|&start| start < low) {
                gaps.push((start, low - 1));
            }
            next = high.checked_add(1).filter(|&start| start <= max);
        }
        gaps.extend(next.map(|start| (start, max)));
        Intervals(gaps)
    }

    /// Returns the intervals.
    pub(super) fn parts(&self) -> &[(u128, u128)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complements_have_all_other_numbers() {
        type List = &'static [(u128, u128)];
        let cases: [(List, List); 5] = [
            (&[], &[(0, 255)]),
            (&[(0, 255)], &[]),
            (&[(5, 7), (0, 0), (6, 9)], &[(1, 4), (10, 255)]),
            (&[(250, 255), (3, 3), (4, 4)], &[(0, 2), (5, 249)]),
            (&[(1, 1)], &[(0, 0), (2, 255)]),
        ];
        for (intervals, complement) in cases {
            let set = Intervals::new(intervals.to_vec());
            assert_eq!(set.complement(255).parts(), complement, "{intervals:?}");
            assert_eq!(set.complement(255).complement(255), set);
        }
        let all = Intervals::new(vec![(0, u128::MAX)]);
        assert!(all.complement(u128::MAX).parts().is_empty());
    }
}
