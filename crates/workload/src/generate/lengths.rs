//! The distribution of source and destination prefix lengths.
//!
//! The total length of both prefixes is drawn first; the address scope biases this draw
//! towards short or long totals. Then the source's part of the total is drawn.
//! *Smoothing* by `r` bits spreads both distributions before drawing, so that sets also
//! get prefix lengths next to the measured lengths.
//!
//! # References
//! D. E. Taylor and J. S. Turner, ClassBench, 2007, §V.A.

use super::draw::{Choice, Draw};
use super::profile::PairShare;

/// The longest IPv4 prefix in bits; profiles have IPv4 lengths.
const MAX_LENGTH: usize = 32;

/// The number of total lengths, 0 to 64.
const TOTAL_LENGTHS: usize = 2 * MAX_LENGTH + 1;

/// The distributions of total and source lengths: the share of each total, and for each
/// total the shares of source lengths.
#[derive(Clone, Debug, PartialEq)]
struct Shares {
    total: [f64; TOTAL_LENGTHS],
    source: Vec<[f64; MAX_LENGTH + 1]>,
}

impl Shares {
    fn none() -> Shares {
        Shares {
            total: [0.0; TOTAL_LENGTHS],
            source: vec![[0.0; MAX_LENGTH + 1]; TOTAL_LENGTHS],
        }
    }

    fn new(pairs: &[PairShare]) -> Shares {
        let mut shares = Shares::none();
        for pair in pairs {
            let source = usize::from(pair.source);
            let total = source + usize::from(pair.destination);
            shares.total[total] += pair.share;
            shares.source[total][source] += pair.share;
        }
        shares.normalise();
        shares
    }

    /// Makes each distribution sum to 1 and drops impossible lengths.
    fn normalise(&mut self) {
        for (total, sources) in self.source.iter_mut().enumerate() {
            for (source, share) in sources.iter_mut().enumerate() {
                if source > total || total - source > MAX_LENGTH {
                    *share = 0.0;
                }
            }
            let sum: f64 = sources.iter().sum();
            if sum > 0.0 {
                sources.iter_mut().for_each(|share| *share /= sum);
            } else {
                self.total[total] = 0.0;
            }
        }
        let sum: f64 = self.total.iter().sum();
        if sum > 0.0 {
            self.total.iter_mut().for_each(|share| *share /= sum);
        }
    }

    /// Spreads every total binomially over the `radius` totals on either side.
    ///
    /// A total at distance `d` gets its source lengths from the source lengths of the
    /// original total: the `d` bits of difference may belong to the source or the
    /// destination, and the rest of the radius may move bits from one to the other. At
    /// its own total, the original counts with its full weight; at other totals, it
    /// counts in proportion to its share.
    fn smoothed(&self, radius: usize) -> Shares {
        let mut result = Shares::none();
        let spread = binomial(2 * radius);
        for total in 0..TOTAL_LENGTHS {
            let share = self.total[total];
            if share <= 0.0 {
                continue;
            }
            for (step, weight) in spread.iter().enumerate() {
                if let Some(target) = (total + step)
                    .checked_sub(radius)
                    .filter(|t| *t < TOTAL_LENGTHS)
                {
                    result.total[target] += weight * share;
                }
            }
            let sources = self.source[total].iter().enumerate();
            for (source, part) in sources.filter(|(_, part)| **part > 0.0) {
                let slack = radius / 2;
                spread_source(&mut result.source[total], source, slack, slack, *part);
                for distance in 1..=radius {
                    let slack = (radius - distance) / 2;
                    if let Some(target) = total.checked_sub(distance) {
                        let sources = &mut result.source[target];
                        spread_source(sources, source, distance + slack, slack, part * share);
                    }
                    if let Some(sources) = result.source.get_mut(total + distance) {
                        spread_source(sources, source, slack, distance + slack, part * share);
                    }
                }
            }
        }
        result.normalise();
        result
    }
}

/// Adds a share, spread binomially over the lengths from `below` less to `above` more
/// than `length`.
fn spread_source(
    sources: &mut [f64; MAX_LENGTH + 1],
    length: usize,
    below: usize,
    above: usize,
    share: f64,
) {
    for (step, weight) in binomial(below + above).iter().enumerate() {
        let target = (length + step).checked_sub(below);
        if let Some(sum) = target.and_then(|target| sources.get_mut(target)) {
            *sum += weight * share;
        }
    }
}

/// Returns the binomial distribution of `n` fair coins.
fn binomial(n: usize) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; row.len() + 1];
        for (heads, weight) in row.iter().enumerate() {
            next[heads] += weight / 2.0;
            next[heads + 1] += weight / 2.0;
        }
        row = next;
    }
    row
}

/// Draws pairs of lengths for one port class.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    total: Choice,
    source: Vec<Option<Choice>>,
}

impl Lengths {
    /// Returns the smoothed distribution of these pairs; `None` without pairs.
    pub(super) fn new(pairs: &[PairShare], smoothing: u32) -> Option<Lengths> {
        let radius = smoothing as usize;
        let shares = Shares::new(pairs);
        let shares = if radius > 0 {
            shares.smoothed(radius)
        } else {
            shares
        };
        Some(Lengths {
            total: Choice::new(shares.total)?,
            source: shares.source.iter().map(|s| Choice::new(*s)).collect(),
        })
    }

    /// Draws source and destination length; `scope` is the address scope.
    pub(super) fn draw(&self, draw: &mut Draw, scope: f64) -> (u8, u8) {
        let total = self.total.at(biased(draw.unit(), scope));
        let source = match &self.source[total] {
            Some(choice) => choice.draw(draw),
            None => unreachable!("totals without source lengths have no share"),
        };
        let length = |n: usize| u8::try_from(n).expect("at most 32");
        (length(source), length(total - source))
    }
}

/// Bends a uniform number towards 0 (positive scope) or 1 (negative scope) with a
/// quadratic that maps 0 to 0 and 1 to 1. Lists run from general to specific, so a
/// positive scope makes rules more general.
pub(super) fn biased(uniform: f64, scope: f64) -> f64 {
    uniform * (1.0 - scope * (1.0 - uniform))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: u8, destination: u8, share: f64) -> PairShare {
        PairShare {
            source,
            destination,
            share,
        }
    }

    #[test]
    fn without_smoothing_only_the_given_pairs_come() {
        let lengths = Lengths::new(&[pair(8, 16, 1.0), pair(32, 0, 3.0)], 0).unwrap();
        let mut draw = Draw::new(1, "lengths");
        let drawn: Vec<_> = (0..4000).map(|_| lengths.draw(&mut draw, 0.0)).collect();
        let first = drawn.iter().filter(|&&pair| pair == (8, 16)).count();
        assert!(drawn.iter().all(|p| *p == (8, 16) || *p == (32, 0)));
        assert!((900..1100).contains(&first), "{first}");
        assert!(Lengths::new(&[], 2).is_none());
    }

    #[test]
    fn smoothing_stays_within_its_distance_and_keeps_the_middle() {
        let lengths = Lengths::new(&[pair(16, 16, 1.0)], 2).unwrap();
        let mut draw = Draw::new(1, "lengths");
        let mut counts = [0u32; 5];
        for _ in 0..16_000 {
            let (source, destination) = lengths.draw(&mut draw, 0.0);
            let distance = source.abs_diff(16) + destination.abs_diff(16);
            assert!(distance <= 2, "{source} {destination}");
            counts[usize::from(source + destination - 30)] += 1;
        }
        // The expected shares are 1, 4, 6, 4 and 1 sixteenths.
        let expected = [1000.0, 4000.0, 6000.0, 4000.0, 1000.0];
        for (count, expected) in counts.iter().zip(expected) {
            assert!((f64::from(*count) - expected).abs() < 200.0, "{counts:?}");
        }
    }

    #[test]
    fn every_smoothing_gives_possible_lengths() {
        let corners = [pair(0, 0, 1.0), pair(32, 32, 1.0), pair(0, 32, 1.0)];
        let mut draw = Draw::new(5, "lengths");
        for radius in 0..=64 {
            let lengths = Lengths::new(&corners, radius).unwrap();
            for _ in 0..200 {
                let (source, destination) = lengths.draw(&mut draw, -1.0);
                assert!(source <= 32 && destination <= 32);
            }
        }
    }

    #[test]
    fn scope_moves_towards_the_general_or_the_specific() {
        assert!(biased(0.5, 0.5) < 0.5 && biased(0.5, -0.5) > 0.5);
        for scope in [-1.0, -0.1, 0.0, 0.5, 1.0] {
            assert!(biased(0.0, scope).abs() < 1e-12);
            assert!((biased(1.0, scope) - 1.0).abs() < 1e-12);
        }
    }
}
