//! The rule for rebuilds: when enough changes are pending.
//!
//! # Idea
//! Costs are counted in *comparisons* of a key with a rule of the buffer. A lookup costs one
//! comparison for each pending change. An insertion or removal costs [`CHANGE_COMPARISONS`]
//! for each rule in the buffer, because rules move. A build costs B: the comparisons that
//! take as long.
//!
//! With l lookups for each change, k changes cost B + l k²/2 until the next rebuild. The
//! cost of a change is least at k = √(2 B / l) ([`optimal_delta`]).
//!
//! With `lookups=auto` the engine does not assume rates. It adds up the costs of pending
//! changes since the last rebuild ([`Paid`]), and a rebuild is due when the sum reaches B.
//! With constant rates this is the case after √(2 B / l) changes. If rates change, the total
//! cost is at most about twice the least possible cost: while the sum grows to B, any other
//! choice of rebuilds costs at least B, either for a rebuild or for the same lookups.
//!
//! # Threads
//! Readers count their lookups in one number, which has a cache line of its own. They add to
//! it once for each batch, and once for [`SINGLES_PER_COUNT`] single lookups of a thread.
//! They count nothing while no change is pending.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::contract::reoptimise::Drift;

/// The largest number of changes that may be pending, chosen or given.
pub(super) const MAX_DELTA: usize = 1_000_000;

/// The smallest number of pending changes that [`optimal_delta`] chooses.
const MIN_DELTA: usize = 1;

/// An update rebuilds if the number of pending changes exceeds this factor times δ + 1, or
/// with `lookups=auto` if pending changes have cost as much as this number of builds. It
/// bounds the buffer, and so the time of a lookup.
const FORCED_REBUILD_FACTOR: usize = 8;

/// The comparisons that take as long as an insertion, for each rule in the buffer: half of
/// the rules move in the mean. Measured in `bench/records/sfl17-updates.md` (Counting lookups).
const CHANGE_COMPARISONS: u64 = 8;

/// The single lookups of a thread that are counted together. The number is prime: if a
/// thread searches several tables in a fixed order, each of them gets its share.
const SINGLES_PER_COUNT: u32 = 251;

/// The number of lookups while changes were pending.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct LookupCount(AtomicU64);

thread_local! {
    /// Single lookups of this thread since it last added to a count.
    static SINGLES: Cell<u32> = const { Cell::new(0) };
}

impl LookupCount {
    fn add(&self, lookups: u64) {
        self.0.fetch_add(lookups, Ordering::Relaxed);
    }

    /// Counts a single lookup. Every [`SINGLES_PER_COUNT`]th call of a thread adds that
    /// number.
    fn add_one(&self) {
        let singles = SINGLES.get() + 1;
        if singles < SINGLES_PER_COUNT {
            SINGLES.set(singles);
        } else {
            SINGLES.set(0);
            self.add(singles.into());
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the number of pending changes at which the cost of a change is least.
/// `build_cost` is the cost of a build in comparisons.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
#[allow(clippy::cast_precision_loss)] // an estimate
pub(super) fn optimal_delta(build_cost: f64, lookups_per_change: f64) -> usize {
    let cost_per_pending = lookups_per_change + CHANGE_COMPARISONS as f64;
    let changes = (2.0 * build_cost / cost_per_pending).sqrt();
    changes.clamp(MIN_DELTA as f64, MAX_DELTA as f64) as usize
}

/// The cost of pending changes since the last rebuild.
struct Paid {
    /// Shared with the other side of a live table after the first plan.
    lookups: Arc<LookupCount>,
    /// The value of `lookups` at the last change.
    counted_lookups: u64,
    /// Lookups and changes since the last rebuild.
    lookups_since: u64,
    changes_since: u64,
    /// The cost up to the last change, in comparisons.
    comparisons: u64,
}

impl Paid {
    fn new(lookups: Arc<LookupCount>) -> Paid {
        Paid {
            counted_lookups: lookups.get(),
            lookups,
            lookups_since: 0,
            changes_since: 0,
            comparisons: 0,
        }
    }

    /// Returns the lookups since the last change.
    fn new_lookups(&self) -> u64 {
        self.lookups.get().wrapping_sub(self.counted_lookups)
    }

    /// Returns the cost up to now. `pending` is the number of pending changes.
    fn total(&self, pending: usize) -> u64 {
        let comparisons = self.new_lookups().saturating_mul(pending as u64);
        self.comparisons.saturating_add(comparisons)
    }

    /// Adds the lookups since the last change, and a change.
    fn add_change(&mut self, pending: usize, buffered: usize) {
        let lookups = self.new_lookups();
        let moves = CHANGE_COMPARISONS.saturating_mul(buffered as u64);
        self.comparisons = self.total(pending).saturating_add(moves);
        self.counted_lookups = self.counted_lookups.wrapping_add(lookups);
        self.lookups_since = self.lookups_since.saturating_add(lookups);
        self.changes_since += 1;
    }
}

/// The rule for rebuilds.
pub(super) struct Threshold {
    /// The cost of a build in comparisons.
    build_cost: f64,
    rule: Rule,
}

enum Rule {
    /// A rebuild is due when more than this number of changes (δ) are pending.
    Delta(usize),
    /// A rebuild is due when pending changes have cost as much as a build.
    Cost(Paid),
}

impl Threshold {
    /// Returns the rule with a fixed δ.
    pub(super) fn fixed(delta: usize, build_cost: f64) -> Threshold {
        Threshold {
            build_cost,
            rule: Rule::Delta(delta),
        }
    }

    /// Returns the rule by the cost of changes and of the lookups counted from now on.
    pub(super) fn counting(lookups: Arc<LookupCount>, build_cost: f64) -> Threshold {
        Threshold {
            build_cost,
            rule: Rule::Cost(Paid::new(lookups)),
        }
    }

    /// Returns the count of lookups, or `None` if they are not counted.
    pub(super) fn lookups(&self) -> Option<&Arc<LookupCount>> {
        match &self.rule {
            Rule::Delta(_) => None,
            Rule::Cost(paid) => Some(&paid.lookups),
        }
    }

    /// Counts the lookups of a batch.
    #[inline]
    pub(super) fn count(&self, lookups: usize) {
        if let Some(count) = self.lookups() {
            count.add(lookups as u64);
        }
    }

    /// Counts a single lookup.
    #[inline]
    pub(super) fn count_one(&self) {
        if let Some(count) = self.lookups() {
            count.add_one();
        }
    }

    /// Adds the cost of the next change and of the lookups before it. `pending` is the
    /// number of pending changes, `buffered` the number of rules in the buffer.
    pub(super) fn add_change(&mut self, pending: usize, buffered: usize) {
        if let Rule::Cost(paid) = &mut self.rule {
            paid.add_change(pending, buffered);
        }
    }

    /// The cost since the last rebuild, divided by the cost of a build.
    #[allow(clippy::cast_precision_loss)] // a ratio
    fn paid_ratio(&self, paid: &Paid, pending: usize) -> f64 {
        match pending {
            0 => 0.0,
            _ => paid.total(pending) as f64 / self.build_cost.max(1.0),
        }
    }

    /// True if a rebuild is due.
    pub(super) fn is_due(&self, pending: usize) -> bool {
        match &self.rule {
            Rule::Delta(delta) => pending > *delta,
            Rule::Cost(paid) => pending > MAX_DELTA || self.paid_ratio(paid, pending) >= 1.0,
        }
    }

    /// True if an update must rebuild, because the caller has not done it.
    #[allow(clippy::cast_precision_loss)] // a small factor
    pub(super) fn is_overdue(&self, pending: usize) -> bool {
        match &self.rule {
            Rule::Delta(delta) => {
                pending
                    > delta
                        .saturating_add(1)
                        .saturating_mul(FORCED_REBUILD_FACTOR)
            }
            Rule::Cost(paid) => {
                let ratio = self.paid_ratio(paid, pending);
                pending > MAX_DELTA || ratio >= FORCED_REBUILD_FACTOR as f64
            }
        }
    }

    /// Returns the drift. It is due if a rebuild [is due](Self::is_due).
    #[allow(clippy::cast_precision_loss)] // at most 2^32 changes
    pub(super) fn drift(&self, pending: usize) -> Drift {
        let (fitted, added) = match &self.rule {
            Rule::Delta(delta) => (2.0 * (*delta as f64 + 1.0), pending as f64),
            Rule::Cost(_) if pending > MAX_DELTA => (2.0, FORCED_REBUILD_FACTOR as f64),
            Rule::Cost(paid) => (2.0, self.paid_ratio(paid, pending)),
        };
        Drift {
            current: fitted + added,
            fitted,
            installing: false,
        }
    }

    /// Returns δ. With `lookups=auto`, returns the optimum at the rates since the last
    /// rebuild.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub(super) fn delta(&self) -> usize {
        match &self.rule {
            Rule::Delta(delta) => *delta,
            Rule::Cost(paid) => {
                let lookups = paid.lookups_since.saturating_add(paid.new_lookups());
                let per_change = lookups as f64 / paid.changes_since.max(1) as f64;
                optimal_delta(self.build_cost, per_change)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::seed::splitmix;

    /// Returns the mean cost of a change for each δ: a rebuild follows each change after
    /// which more than δ are pending.
    #[allow(clippy::cast_precision_loss)]
    fn costs_of_change(build_cost: f64, lookups: u64) -> Vec<f64> {
        let mut paid = 0;
        let mut cost = |pending: u64| {
            paid += pending * (lookups + CHANGE_COMPARISONS);
            (build_cost + paid as f64) / (pending as f64 + 1.0)
        };
        (0..20_000).map(&mut cost).collect()
    }

    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn the_optimum_is_that_of_a_search_over_delta() {
        for build_cost in [1e3, 1e5, 1e7, 1e9] {
            for lookups in [0, 1, 100, 10_000, 1_000_000] {
                let costs = costs_of_change(build_cost, lookups);
                let delta = optimal_delta(build_cost, lookups as f64);
                let searched = costs.iter().copied().fold(f64::INFINITY, f64::min);
                // Even the least δ that is chosen may be larger than the best.
                let allowed = (searched * 1.01).max(costs[MIN_DELTA]);
                assert!(costs[delta] <= allowed, "{build_cost}, {lookups}: {delta}");
            }
        }
        assert_eq!(optimal_delta(f64::MAX, 0.0), MAX_DELTA);
        assert_eq!(optimal_delta(0.0, 1e9), MIN_DELTA);
    }

    fn counting(build_cost: f64) -> (Arc<LookupCount>, Threshold) {
        let lookups = Arc::<LookupCount>::default();
        (
            Arc::clone(&lookups),
            Threshold::counting(lookups, build_cost),
        )
    }

    /// With constant rates a rebuild is due at the optimal number of changes.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn costs_reach_that_of_a_build_at_the_optimum() {
        for (build_cost, lookups) in [(1e7, 10), (1e8, 10_000), (1e9, 300), (1e5, 0)] {
            let (_, mut threshold) = counting(build_cost);
            let mut pending = 0;
            while !threshold.is_due(pending) {
                threshold.add_change(pending, pending);
                pending += 1;
                threshold.count(lookups);
            }
            let optimum = optimal_delta(build_cost, lookups as f64);
            assert!(pending.abs_diff(optimum) <= 2, "{pending}, {optimum}");
            assert!(threshold.delta().abs_diff(optimum) <= optimum / 50);
            assert!(threshold.drift(pending).is_due() && !threshold.is_overdue(pending));
        }
    }

    fn draw(state: &mut u64, values: [u64; 3]) -> u64 {
        values[usize::try_from(splitmix(state) % 3).unwrap()]
    }

    /// A step: lookups, and after them a change or none.
    type Step = (u64, bool);

    /// Returns the least cost of all choices of rebuilds, one before each step or none.
    fn least_cost(steps: &[Step], build_cost: u64) -> u64 {
        // The least cost up to now, by the number of pending changes.
        let mut costs = vec![0];
        for &(lookups, is_change) in steps {
            let rebuilt = costs.iter().min().unwrap() + build_cost;
            costs[0] = costs[0].min(rebuilt);
            for (pending, cost) in costs.iter_mut().enumerate() {
                let moves = u64::from(is_change) * CHANGE_COMPARISONS;
                *cost += (lookups + moves) * pending as u64;
            }
            if is_change {
                costs.insert(0, u64::MAX / 2);
            }
        }
        *costs.iter().min().unwrap()
    }

    /// The total cost is at most twice the least possible cost, plus the cost of a step for
    /// each rebuild, since a rebuild follows only after a step.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn no_choice_of_rebuilds_costs_less_than_half() {
        const BUILD_COST: u64 = 20_000;
        let mut state = 5;
        for _ in 0..200 {
            let length = draw(&mut state, [1, 5, 40]);
            let mut steps: Vec<Step> = Vec::new();
            while steps.len() < 400 {
                let is_change = draw(&mut state, [0, 1, 1]) == 0;
                let lookups = draw(&mut state, [0, 3, 30]);
                steps.extend((0..length).map(|_| (lookups, is_change)));
            }
            let (lookups, mut threshold) = counting(BUILD_COST as f64);
            let (mut pending, mut cost, mut most) = (0, 0, 0);
            for &(count, is_change) in &steps {
                lookups.add(count);
                let before = cost;
                cost += count * pending as u64;
                if is_change {
                    cost += CHANGE_COMPARISONS * pending as u64;
                    threshold.add_change(pending, pending);
                    pending += 1;
                }
                most = most.max(cost - before);
                if threshold.is_due(pending) {
                    cost += BUILD_COST;
                    pending = 0;
                    threshold = Threshold::counting(Arc::clone(&lookups), BUILD_COST as f64);
                }
            }
            let bound = 2.0 + most as f64 / BUILD_COST as f64;
            let least = least_cost(&steps, BUILD_COST).max(1);
            assert!(cost as f64 <= bound * least as f64, "{cost}, {least}");
        }
    }

    #[test]
    fn nothing_is_due_while_nothing_is_pending() {
        let (lookups, mut threshold) = counting(10.0);
        threshold.add_change(1, 1);
        lookups.add(1_000_000);
        assert!(threshold.is_due(1) && threshold.is_overdue(1));
        assert!(!threshold.is_due(0) && !threshold.is_overdue(0));
        assert!(!threshold.drift(0).is_due());
        let (_, untouched) = counting(f64::MAX);
        assert!(untouched.is_due(MAX_DELTA + 1) && untouched.drift(MAX_DELTA + 1).is_due());
        assert!(!untouched.is_due(MAX_DELTA));
    }

    /// Two tables that a thread searches alternately each get half of the count.
    #[test]
    fn single_lookups_are_counted_by_sample() {
        let counts = [LookupCount::default(), LookupCount::default()];
        let lookups = u64::from(SINGLES_PER_COUNT) * 20;
        for _ in 0..lookups / 2 {
            counts.iter().for_each(LookupCount::add_one);
        }
        let [first, second] = counts.map(|count| count.get());
        assert_eq!(first + second, lookups);
        assert_eq!(first, second);
    }
}
