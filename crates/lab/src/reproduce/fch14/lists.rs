//! Stand-ins for the port lists of two cloud providers, which are private.
//!
//! The paper gives their numbers of entries after ranges became values under masks, 1,038
//! and 32, and says that "high entropy" rules are at one end of the field. So the short
//! list has ports of well-known services, and the long list has ports and ranges of
//! ports, most of them low, in a few clusters.

use std::sync::Arc;

use classyard::FieldMatch;
use classyard_datapath::lab::header_space::Term;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::exact;

/// The paper's numbers of entries of both lists.
pub(super) const LONG_ENTRIES: usize = 1_038;
pub(super) const SHORT_ENTRIES: usize = 32;

/// Ports of well-known services.
const SERVICES: [u16; SHORT_ENTRIES] = [
    20, 21, 22, 23, 25, 53, 69, 80, 110, 111, 123, 135, 137, 138, 139, 143, 161, 162, 179, 389,
    443, 445, 465, 514, 587, 636, 993, 995, 1433, 1521, 3306, 3389,
];

/// Clusters of the long list's ports: the first port, the number of ports, and the
/// frequency in 20 cases.
const CLUSTERS: [(u32, u32, u32); 5] = [
    (0, 1_024, 9),
    (1_024, 4_096, 5),
    (5_000, 2_000, 3),
    (8_000, 1_500, 2),
    (27_000, 1_000, 1),
];

/// Returns the short list.
pub(super) fn short() -> Arc<[Term<1>]> {
    exact(&SERVICES)
}

/// Returns the long list: ranges without overlaps, ascending, each as values under masks.
pub(super) fn long() -> Arc<[Term<1>]> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let mut entries = 0;
    while entries < LONG_ENTRIES {
        let mut case = random.random_range(0..20);
        let cluster = CLUSTERS.iter().find(|(.., cases)| {
            let is_here = case < *cases;
            case = case.saturating_sub(*cases);
            is_here
        });
        let (first, ports, _) = *cluster.expect("twenty cases");
        let low = first + random.random_range(0..ports);
        // Most entries of firewalls are single ports; some have a few ports, few have
        // many.
        let length = match random.random_range(0..20) {
            0..14 => 1,
            14..19 => random.random_range(2..=16),
            _ => random.random_range(17..=100),
        };
        let high = low + length - 1;
        let apart = |&(other_low, other_high): &(u32, u32)| high < other_low || other_high < low;
        let masks = under_masks(low, high).len();
        if ranges.iter().all(apart) && entries + masks <= LONG_ENTRIES {
            entries += masks;
            ranges.push((low, high));
        }
    }
    ranges.sort_unstable();
    let terms = ranges
        .iter()
        .flat_map(|&(low, high)| under_masks(low, high));
    terms.collect()
}

/// Converts a range of ports to the fewest values under masks.
fn under_masks(low: u32, high: u32) -> Vec<Term<1>> {
    let range = FieldMatch::Range {
        low: low.into(),
        high: high.into(),
    };
    let narrow = |number: u128| u64::try_from(number).expect("a port");
    let masked = range.masked_values(u16::BITS).into_iter();
    let terms = masked.map(|(value, mask)| Term::new([narrow(value)], [narrow(mask)]));
    terms.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_under_masks() {
        for (low, high, masks) in [(0, 65_535, 1), (1, 14, 6), (80, 80, 1), (1_024, 65_535, 6)] {
            let terms = under_masks(low, high);
            assert_eq!(terms.len(), masks);
            for port in 0..=u32::from(u16::MAX) {
                let held = terms
                    .iter()
                    .filter(|term| term.contains(&[u64::from(port)]));
                let expected = usize::from((low..=high).contains(&port));
                assert_eq!(held.count(), expected, "{port} of {low}-{high}");
            }
        }
    }

    #[test]
    fn lists_are_as_long_as_the_papers() {
        assert_eq!(short().len(), SHORT_ENTRIES);
        let long = long();
        assert_eq!(long.len(), LONG_ENTRIES);
        let exact = long.iter().filter(|term| term.mask() == &[0xffff]).count();
        assert!((LONG_ENTRIES / 2..LONG_ENTRIES).contains(&exact), "{exact}");
    }
}
