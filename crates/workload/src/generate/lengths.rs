//! Prefix lengths: how long a rule's source and destination prefixes are.
//!
//! The length of both together is drawn first, from few bits to many; the
//! address scope moves that draw towards one end. Then the source's share of it
//! is drawn. *Smoothing* by `r` bits spreads both distributions beforehand, so
//! that sets get prefixes of lengths next to those that were measured.
//!
//! # References
//! D. E. Taylor and J. S. Turner, ClassBench, 2007, §V.A.

use super::draw::{Choice, Draw};
use super::profile::PairShare;

/// The longest IPv4 prefix; profiles speak of IPv4 lengths.
const LONGEST: usize = 32;

/// Total lengths, 0 to 64.
const TOTALS: usize = 2 * LONGEST + 1;

/// How total and source lengths are distributed: for each total its share, and
/// the shares of source lengths given that total.
#[derive(Clone, Debug, PartialEq)]
struct Shares {
    total: [f64; TOTALS],
    source: Vec<[f64; LONGEST + 1]>,
}

impl Shares {
    fn none() -> Shares {
        Shares {
            total: [0.0; TOTALS],
            source: vec![[0.0; LONGEST + 1]; TOTALS],
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
                if source > total || total - source > LONGEST {
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
    /// A total at distance `d` gets its source lengths from the spike's: the
    /// `d` bits of difference may be the source's or the destination's, and
    /// what is left of the radius may move bits from one to the other. A spike
    /// keeps the say over the source lengths of its own total: neighbours count
    /// there, as anywhere, by their share, the spike itself as a whole.
    fn smoothed(&self, radius: usize) -> Shares {
        let mut result = Shares::none();
        let spread = binomial(2 * radius);
        for total in 0..TOTALS {
            let share = self.total[total];
            if share <= 0.0 {
                continue;
            }
            for (step, weight) in spread.iter().enumerate() {
                if let Some(target) = (total + step).checked_sub(radius).filter(|t| *t < TOTALS) {
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

/// Adds a share, spread binomially from `below` under to `above` over a length.
fn spread_source(
    sources: &mut [f64; LONGEST + 1],
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

/// The binomial distribution of `n` fair coins.
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
    /// The lengths that these pairs describe, smoothed; `None` without pairs.
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

    /// Source and destination length; the scope is that of the addresses.
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

/// Bends a uniform number towards 0 (positive scope) or 1 (negative): a
/// quadratic that keeps 0 and 1 where they are. Lists run from general to
/// specific, so a positive scope makes rules more general.
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
        // 1 4 6 4 1 sixteenths.
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
