//! Fits the constants of the paper's equations to the smallest rule sets ([DEC14] §V.B).
//!
//! [DEC14]: classyard::papers#dec14

use super::equations::{Accesses, Delays};

/// The number of fitted delays.
const TERMS: usize = 3;

/// A pivot below this share of its column's length means that columns are dependent.
const MIN_PIVOT: f64 = 1e-12;

/// A measured time, and the numbers that eq. 6 multiplies by its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimedPoint {
    /// V_inst / (f · I · C), in nanoseconds.
    pub(super) executed_ns: f64,
    /// V_1.
    pub(super) l1_accesses: f64,
    /// N · P.
    pub(super) rules_times_packets: f64,
    pub(super) measured_ns: f64,
}

/// Fits λ_1 and α of eq. 1 to two rule sets, as Table V does. A point has the theoretical
/// and the counted number of accesses.
///
/// Returns `None` if the theoretical numbers are equal.
pub(super) fn fit_accesses(points: [(f64, f64); 2]) -> Option<Accesses> {
    let [(few, few_counted), (many, many_counted)] = points;
    let lambda = (many_counted - few_counted) / (many - few);
    let alpha = few_counted - lambda * few;
    lambda.is_finite().then_some(Accesses { lambda, alpha })
}

/// Fits η_1, β_1 + Σ β_n · λ_n and η_0 of eq. 6: least squares of the relative errors, over
/// constants that are not negative. A delay that would be negative is 0, and the others
/// are fitted without it.
pub(super) fn fit_delays(points: &[TimedPoint]) -> Delays {
    let rows = points.iter().map(|point| {
        let terms = [
            point.executed_ns,
            point.l1_accesses,
            point.rules_times_packets,
        ];
        terms.map(|term| term / point.measured_ns.max(1e-9))
    });
    let rows: Vec<[f64; TERMS]> = rows.collect();
    let subsets = 1..1_u32 << TERMS;
    let candidates = subsets.filter_map(|subset| solve(&rows, subset));
    let squares = |factors: &[f64; TERMS]| -> f64 {
        let errors = rows.iter().map(|row| dot(row, factors) - 1.0);
        errors.map(|error| error * error).sum()
    };
    let best = candidates.min_by(|one, other| squares(one).total_cmp(&squares(other)));
    let [eta_1, access_ns, eta_0] = best.unwrap_or_default();
    Delays {
        beta: [access_ns, 0.0, 0.0, 0.0],
        eta_0,
        eta_1,
    }
}

/// Solves least squares of `row · factors = 1` over the terms whose bit in `subset` is set;
/// other factors are 0. Returns `None` if the solution is not unique or has a negative
/// factor.
fn solve(rows: &[[f64; TERMS]], subset: u32) -> Option<[f64; TERMS]> {
    let terms: Vec<usize> = (0..TERMS).filter(|term| subset >> term & 1 == 1).collect();
    let product =
        |one: usize, other: usize| -> f64 { rows.iter().map(|row| row[one] * row[other]).sum() };
    // Columns of length 1 keep the elimination accurate.
    let lengths: Vec<f64> = terms
        .iter()
        .map(|&term| product(term, term).sqrt())
        .collect();
    if lengths
        .iter()
        .any(|&length| length <= 0.0 || length.is_nan())
    {
        return None;
    }
    let mut matrix: Vec<Vec<f64>> = Vec::new();
    for (&term, length) in terms.iter().zip(&lengths) {
        let others = terms.iter().zip(&lengths);
        let mut row: Vec<f64> = others
            .map(|(&other, other_length)| product(term, other) / (length * other_length))
            .collect();
        row.push(rows.iter().map(|row| row[term]).sum::<f64>() / length);
        matrix.push(row);
    }
    let solution = eliminate(matrix)?;
    let mut factors = [0.0; TERMS];
    for ((term, value), length) in terms.into_iter().zip(solution).zip(lengths) {
        factors[term] = value / length;
    }
    let is_valid = |factor: &f64| factor.is_finite() && *factor >= 0.0;
    factors.iter().all(is_valid).then_some(factors)
}

/// Solves linear equations by elimination. Each row has its coefficients, and then its
/// right side. The matrix of least squares is symmetric and not negative, so its diagonal
/// has the pivots.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = matrix.len();
    for pivot in 0..size {
        if matrix[pivot][pivot].abs() < MIN_PIVOT {
            return None;
        }
        let pivot_row = matrix[pivot].clone();
        for (index, row) in matrix.iter_mut().enumerate() {
            let factor = row[pivot] / pivot_row[pivot];
            if index != pivot {
                for (value, above) in row.iter_mut().zip(&pivot_row) {
                    *value -= factor * above;
                }
            }
        }
    }
    let solved = matrix.iter().enumerate();
    Some(solved.map(|(index, row)| row[size] / row[index]).collect())
}

fn dot(row: &[f64; TERMS], factors: &[f64; TERMS]) -> f64 {
    row.iter()
        .zip(factors)
        .map(|(term, factor)| term * factor)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(terms: [f64; TERMS], measured_ns: f64) -> TimedPoint {
        let [executed_ns, l1_accesses, rules_times_packets] = terms;
        TimedPoint {
            executed_ns,
            l1_accesses,
            rules_times_packets,
            measured_ns,
        }
    }

    /// Instructions, accesses and N · P of 1 K and 2 K rules, for one and 64 packets.
    const TERMS_OF_POINTS: [[f64; TERMS]; 4] = [
        [400.0, 271.0, 1024.0],
        [450.0, 493.0, 2048.0],
        [400.0, 271.0, 65536.0],
        [450.0, 493.0, 131_072.0],
    ];

    fn made_by(factors: [f64; TERMS]) -> Vec<TimedPoint> {
        let points = TERMS_OF_POINTS.map(|terms| point(terms, dot(&terms, &factors)));
        points.to_vec()
    }

    #[test]
    fn delays_are_found_again() {
        for factors in [[0.5, 0.1, 0.001], [0.25, 0.0, 0.002], [0.0, 0.3, 0.0]] {
            let delays = fit_delays(&made_by(factors));
            let found = [delays.eta_1, delays.beta[0], delays.eta_0];
            for (found, made) in found.iter().zip(factors) {
                assert!(
                    (found - made).abs() < 1e-6,
                    "{delays:?}, made by {factors:?}"
                );
            }
            assert_eq!(delays.beta[1..], [0.0; 3]);
        }
    }

    #[test]
    fn a_delay_is_never_negative() {
        let delays = fit_delays(&made_by([1.0, -0.2, 0.001]));
        assert_eq!(delays.beta[0], 0.0);
        assert!(delays.eta_1 > 0.0 && delays.eta_0 > 0.0, "{delays:?}");
    }

    /// The best single factor of 1 and 3 ns, by relative errors: x of
    /// (x - 1)² + (x / 3 - 1)², which is (1 + 1/3) / (1 + 1/9) = 1.2.
    #[test]
    fn errors_are_relative() {
        let points = [point([1.0, 0.0, 0.0], 1.0), point([1.0, 0.0, 0.0], 3.0)];
        assert!((fit_delays(&points).eta_1 - 1.2).abs() < 1e-9);
        assert_eq!(fit_delays(&[]).eta_1, 0.0);
    }

    /// Table V, AMD: (1150 − 847) / (494 − 259) = 1.289 and 847 − 1.289 · 259 = 513; the
    /// paper has 1.30 and 508. Intel: 286 / 235 = 1.217 and 185; the paper has 1.21 and 183.
    #[test]
    fn accesses_are_fitted_as_in_table_v() {
        let amd = fit_accesses([(259.0, 847.0), (494.0, 1150.0)]).unwrap();
        assert!((amd.lambda - 1.2894).abs() < 1e-4, "{amd:?}");
        assert!((amd.alpha - 513.05).abs() < 0.01, "{amd:?}");
        let intel = fit_accesses([(258.0, 499.0), (493.0, 785.0)]).unwrap();
        assert!((intel.lambda / 1.21 - 1.0).abs() < 0.01, "{intel:?}");
        assert!((intel.alpha / 183.0 - 1.0).abs() < 0.02, "{intel:?}");
        assert_eq!(fit_accesses([(5.0, 1.0), (5.0, 2.0)]), None);
    }
}
