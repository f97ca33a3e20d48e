//! Addresses as disjoint intervals, so that large sets and their complements stay small.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packets::{Families, MAX_BOXES, TooManyBoxes, Values, range_of_addresses};

/// A network of a set, and whether the set has it or excludes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) low: u128,
    pub(super) high: u128,
    /// True if addresses of the network are not in the set (`nomatch`).
    pub(super) is_excluded: bool,
}

/// Disjoint intervals of addresses of one family, ascending, not adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Intervals {
    intervals: Vec<(u128, u128)>,
}

impl Intervals {
    /// Returns the addresses whose smallest network is not excluded. Of two equal networks,
    /// the later one counts. Two networks must be disjoint, or one in the other.
    pub(super) fn of_networks(mut networks: Vec<Network>) -> Intervals {
        networks.sort_by_key(|network| (network.low, std::cmp::Reverse(network.high)));
        let mut intervals = Intervals::default();
        // The networks that the next address is in, the smallest last.
        let mut open: Vec<Network> = Vec::new();
        let mut next_address = Some(0);
        for network in networks {
            intervals.close(&mut open, &mut next_address, Some(network.low));
            if let (Some(outer), Some(address)) = (open.last(), next_address)
                && address < network.low
            {
                if !outer.is_excluded {
                    intervals.push(address, network.low - 1);
                }
                next_address = Some(network.low);
            }
            next_address = next_address.map(|address| address.max(network.low));
            open.push(network);
        }
        intervals.close(&mut open, &mut next_address, None);
        intervals
    }

    /// Adds the addresses up to the ends of the networks that end before `limit`.
    fn close(
        &mut self,
        open: &mut Vec<Network>,
        next_address: &mut Option<u128>,
        limit: Option<u128>,
    ) {
        while let Some(network) = open.pop_if(|inner| limit.is_none_or(|limit| inner.high < limit))
        {
            let Some(address) = *next_address else {
                continue;
            };
            if address <= network.high {
                if !network.is_excluded {
                    self.push(address, network.high);
                }
                *next_address = network.high.checked_add(1);
            }
        }
    }

    /// Adds an interval that does not start before the start of the last one.
    fn push(&mut self, low: u128, high: u128) {
        match self.intervals.last_mut() {
            Some(before) if low <= before.1.saturating_add(1) => before.1 = before.1.max(high),
            _ => self.intervals.push((low, high)),
        }
    }

    /// Returns the addresses up to `max_address` that are not in these intervals.
    pub(super) fn complement(&self, max_address: u128) -> Intervals {
        let mut intervals = Vec::new();
        let mut next_address = Some(0);
        for &(low, high) in &self.intervals {
            if let Some(address) = next_address.filter(|address| *address < low) {
                intervals.push((address, low - 1));
            }
            next_address = high.checked_add(1);
        }
        if let Some(address) = next_address.filter(|address| *address <= max_address) {
            intervals.push((address, max_address));
        }
        Intervals { intervals }
    }

    /// Returns the networks that have these addresses.
    pub(super) fn networks(
        &self,
        family: Families,
    ) -> Result<Vec<(Families, Values)>, TooManyBoxes> {
        let mut networks = Vec::new();
        for &(low, high) in &self.intervals {
            let ends = [low, high].map(|bits| address(bits, family));
            let range = range_of_addresses(ends[0], ends[1]).expect("a range of one family");
            networks.extend(range);
            if networks.len() > MAX_BOXES {
                return Err(TooManyBoxes);
            }
        }
        Ok(networks)
    }
}

/// Returns the address with these bits.
fn address(bits: u128, family: Families) -> IpAddr {
    match family == Families::IPV4 {
        true => Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(u32::MAX)).into(),
        false => Ipv6Addr::from_bits(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(low: u128, high: u128, is_excluded: bool) -> Network {
        Network {
            low,
            high,
            is_excluded,
        }
    }

    #[test]
    fn the_smallest_network_counts() {
        let all = [
            network(0, 63, false),
            network(0, 15, true),
            network(4, 7, false),
            network(32, 47, true),
            network(128, 191, true),
            network(192, 195, true),
            network(192, 195, false),
            network(u128::MAX - 1, u128::MAX, false),
        ];
        // Every subset of the networks, compared with a search address by address.
        for subset in 0..1 << all.len() {
            let networks: Vec<Network> = (0..all.len())
                .filter(|index| subset >> index & 1 == 1)
                .map(|index| all[index])
                .collect();
            let intervals = Intervals::of_networks(networks.clone());
            let others = intervals.complement(u128::MAX);
            for address in (0..256).chain([u128::MAX - 2, u128::MAX - 1, u128::MAX]) {
                let with = networks.iter().enumerate();
                let with = with.filter(|(_, n)| (n.low..=n.high).contains(&address));
                let smallest = with.min_by_key(|(index, n)| (n.high - n.low, usize::MAX - index));
                let expected = smallest.is_some_and(|(_, network)| !network.is_excluded);
                let has = |set: &Intervals| {
                    let mut intervals = set.intervals.iter();
                    intervals.any(|&(low, high)| (low..=high).contains(&address))
                };
                assert_eq!(has(&intervals), expected, "{networks:?} {address}");
                assert_eq!(has(&others), !expected, "{networks:?} {address}");
            }
        }
    }

    #[test]
    fn adjacent_networks_become_one() {
        let networks = [(8, 9), (0, 3), (4, 7), (20, 20)];
        let networks = networks.map(|(low, high)| network(low, high, false));
        let intervals = Intervals::of_networks(networks.to_vec());
        assert_eq!(intervals.intervals, [(0, 9), (20, 20)]);
        assert_eq!(intervals.networks(Families::IPV4).unwrap().len(), 3);
        assert_eq!(intervals.complement(255).intervals, [(10, 19), (21, 255)]);
    }
}
