//! The formulas of [FTS25] §4.2.4, §4.3.3 and §5.2.
//!
//! [FTS25]: classyard::papers#fts25

/// Eq. 2: the hit rate of a cache with the `n` most active of `all` flows, if each flow's
/// activity is `q` times the activity of the flow before.
pub(super) fn hit_rate(all: f64, q: f64, n: f64) -> f64 {
    (1.0 - q.powf(n)) / (1.0 - q.powf(all))
}

/// Eq. 5: the mean number of failed tuple lookups in `tuples` tuples whose reference
/// probabilities form a progression with ratio `r`, in this order.
pub(super) fn failed(r: f64, tuples: f64) -> f64 {
    if (1.0 - r).abs() < 1e-9 {
        return (tuples - 1.0) / 2.0;
    }
    let last = r.powf(tuples);
    r / (1.0 - r) - tuples * last / (1.0 - last)
}

/// Eq. 6: the limit of eq. 5 for many tuples.
pub(super) fn failed_of_many(r: f64) -> f64 {
    r / (1.0 - r)
}

/// Eq. 7 before its last step: the search length of a cache miss with `failed` failed
/// tuple lookups and the load factor `load`. The lookup in the cache counts as 1.
pub(super) fn miss_length(failed: f64, load: f64) -> f64 {
    1.0 + failed * load + load / 2.0 + 1.0
}

/// Eq. 8: the average search length at a hit rate.
pub(super) fn search_length(hit_rate: f64, miss_length: f64) -> f64 {
    hit_rate + (1.0 - hit_rate) * miss_length
}

/// Returns the most likely ratio `r` for tuples with these numbers of references: the
/// ratio whose mean rank (eq. 5) equals the references' mean rank in descending order.
pub(super) fn fitted_ratio(references: &[u64]) -> f64 {
    let mut sorted = references.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let counts = || sorted.iter().map(|&count| super::many(count));
    let ranks = (0_u32..).map(f64::from);
    let mean = counts().zip(ranks).map(|(count, place)| count * place);
    let mean = mean.sum::<f64>() / counts().sum::<f64>().max(1.0);
    let tuples = super::super::statistics::coordinate(sorted.len());
    // Eq. 5 grows with r.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match failed(middle, tuples) < mean {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_those_of_the_paper() {
        assert!((hit_rate(100_000.0, 0.9991, 2_000.0) - 0.8348).abs() < 1e-4);
        let numbers = [(0.7, 2.33), (0.8, 4.0), (0.9, 9.0)];
        for (r, expected) in numbers {
            assert!((failed_of_many(r) - expected).abs() < 0.01);
            assert!((failed(r, 200.0) - expected).abs() < 0.01);
        }
        let length = search_length(0.7632, miss_length(4.0, 2.0));
        assert!((length - 3.36).abs() < 0.01, "{length}");
        assert!((failed(1.0, 9.0) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_ratio_of_a_progression_is_found() {
        let references = [1_000, 800, 640, 512, 410, 328];
        assert!((fitted_ratio(&references) - 0.8).abs() < 0.001);
    }
}
