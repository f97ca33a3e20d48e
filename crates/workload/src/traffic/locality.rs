//! Traffic with locality: a stream of packets as on a backbone link, to measure caches.
//!
//! # Idea
//! [FTS25] §4.2.1 describes its traces: the packets of a flow come in batches with idle
//! times between them, and few flows have most of the packets. In this model, flows
//! begin at random times (Poisson). The number of batches of a flow and the number of
//! packets of a batch are heavy-tailed (Pareto); some batches are scattered single
//! packets. Within a batch, packets follow each other at the flow's own pace, which is
//! log-normal over flows. Between batches, the flow is idle for a log-normal time. A
//! queue ordered by time merges all active flows.
//!
//! ```text
//! flow 1  ··· ··     idle            ·· · ···           │ pace: time within a batch
//! flow 2       ·                  ·                     │ scattered packets
//! flow 3 ·············· idle  ··········                │
//! stream ─────────────────────────────────▶ time
//! ```
//! Networks are drawn by class (A, B, C, and D with E), then by popularity (Zipf), so
//! that flows share the entries of a table that matches networks: *wildcarding flows*.
//!
//! The stream is in its steady state from the first packet, because the generator first
//! runs for [`LocalityModel::warm_up`] seconds. Memory grows with the number of active
//! flows, not with the number of packets.
//!
//! # Cost
//! About 0.2 µs a packet; 80 bytes for each active flow.
//!
//! # Fit to the paper
//! The paper's traces are not public. [`TRACE1`] and [`TRACE2`] match the figures in
//! the paper, as measured in `classyard reproduce fts25`: packets a second, wildcarding
//! flows within 10 s, active flows with a threshold of 256 ms, and the hit rate of an
//! 8k-entry `wef`. Everything else, such as the tail of flow sizes, is an assumption. A
//! flow has at most 30 batches, about two minutes: with more batches, the stream would
//! take longer than a trace to reach the steady state.
//!
//! # References
//! [FTS25] §4.2.1, §6.1.
//!
//! [FTS25]: classyard::papers#fts25

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Maker, TrafficConfig, TrafficError, check};
use crate::generate::Steps;
use crate::generate::draw::{Choice, Draw, whole, whole_u64};
use classyard::Schema;
use classyard::author::splitmix;

/// An IPv4 flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ipv4Flow {
    /// The source address.
    pub source: u32,
    /// The destination address.
    pub destination: u32,
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// The protocol.
    pub protocol: u8,
}

impl Ipv4Flow {
    /// Returns the tuple as two words: the addresses, then protocol and ports.
    #[must_use]
    pub fn words(&self) -> [u64; 2] {
        [
            u64::from(self.source) << 32 | u64::from(self.destination),
            u64::from(self.protocol) << 32
                | u64::from(self.source_port) << 16
                | u64::from(self.destination_port),
        ]
    }

    /// Returns the values of the fields of [`Schema::ipv4_5tuple`], in their order.
    fn values(&self) -> [u128; 5] {
        [
            self.source.into(),
            self.destination.into(),
            self.source_port.into(),
            self.destination_port.into(),
            self.protocol.into(),
        ]
    }

    /// Returns the mask of [FTS25] §6.1 in the layout of [`words`](Self::words): the
    /// default masks of both addresses' classes, the highest bit of each port, and the
    /// protocol. There are 16 such masks.
    ///
    /// [FTS25]: classyard::papers#fts25
    #[must_use]
    pub fn class_mask(&self) -> [u64; 2] {
        let (source, destination) = (class_mask(self.source), class_mask(self.destination));
        [
            u64::from(source) << 32 | u64::from(destination),
            0xff_8000_8000,
        ]
    }
}

/// Returns the default mask of an address's class.
fn class_mask(address: u32) -> u32 {
    match address >> 28 {
        0..8 => 0xff00_0000,
        8..12 => 0xffff_0000,
        12..14 => 0xffff_ff00,
        _ => u32::MAX,
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalityPacket {
    /// The arrival time, in nanoseconds from the start; never decreasing.
    pub time: u64,
    /// The flow's number, counted from 0 in the order of their starts.
    pub flow: u64,
    /// The packet's header.
    pub header: Ipv4Flow,
}

/// The shares and the number of networks of an address class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkClass {
    /// The share of the class in source addresses, relative to the other classes.
    pub sources: f64,
    /// The share of the class in destination addresses, relative to the other classes.
    pub destinations: f64,
    /// The number of networks in use.
    pub networks: usize,
}

/// The distributions of flows over time. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalityModel {
    /// The mean number of flows that begin in a second.
    pub flows_per_second: f64,
    /// The tail index of the number of batches of a flow, at least 1 batch.
    pub batches_shape: f64,
    /// The maximum number of batches of a flow.
    pub most_batches: usize,
    /// The share of batches that have one packet.
    pub scattered: f64,
    /// The tail index of the number of packets of other batches.
    pub packets_shape: f64,
    /// The minimum number of packets of other batches.
    pub least_packets: f64,
    /// The maximum number of packets of a batch.
    pub most_packets: usize,
    /// The median over flows of the mean time between packets of a batch.
    pub pace: f64,
    /// The standard deviation of the natural logarithm of that mean time, over flows.
    pub pace_sigma: f64,
    /// The median time between batches.
    pub idle: f64,
    /// The standard deviation of the natural logarithm of the idle time.
    pub idle_sigma: f64,
    /// The classes A, B, C, and D with E.
    pub classes: [NetworkClass; 4],
    /// The popularity of the network with rank `k` is proportional to `1 / k^alpha`.
    pub alpha: f64,
    /// The time that the model runs before the first packet of the stream.
    pub warm_up: f64,
}

/// A model of TRACE1 of [FTS25]: 15,420,235 packets in 122 s.
///
/// [FTS25]: classyard::papers#fts25
pub const TRACE1: LocalityModel = LocalityModel {
    flows_per_second: 10_650.0,
    batches_shape: 1.4,
    most_batches: 30,
    scattered: 0.888,
    packets_shape: 1.4,
    least_packets: 12.0,
    most_packets: 2_000,
    pace: 0.008,
    pace_sigma: 2.0,
    idle: 1.5,
    idle_sigma: 1.5,
    classes: [
        NetworkClass {
            sources: 0.42,
            destinations: 0.42,
            networks: 26,
        },
        NetworkClass {
            sources: 0.17,
            destinations: 0.17,
            networks: 48,
        },
        NetworkClass {
            sources: 0.40,
            destinations: 0.39,
            networks: 48,
        },
        NetworkClass {
            sources: 0.01,
            destinations: 0.02,
            networks: 1_000,
        },
    ],
    alpha: 1.0,
    warm_up: 60.0,
};

/// A model of TRACE2 of [FTS25]: 15,420,235 packets in 100 s.
///
/// [FTS25]: classyard::papers#fts25
pub const TRACE2: LocalityModel = LocalityModel {
    flows_per_second: 8_200.0,
    scattered: 0.876,
    least_packets: 19.0,
    pace: 0.006,
    classes: [
        NetworkClass {
            networks: 20,
            ..TRACE1.classes[0]
        },
        NetworkClass {
            networks: 37,
            ..TRACE1.classes[1]
        },
        NetworkClass {
            networks: 37,
            ..TRACE1.classes[2]
        },
        TRACE1.classes[3],
    ],
    ..TRACE1
};

/// The longest time in nanoseconds, about three years.
const MAX_TIME_NS: u64 = 100_000_000_000_000_000;

const NS_PER_SECOND: f64 = 1e9;

impl LocalityModel {
    /// Returns an endless stream of packets.
    ///
    /// # Errors
    /// [`TrafficError::BadParameter`] if a parameter is out of its bounds.
    pub fn packets(&self, seed: u64) -> Result<Locality, TrafficError> {
        check(
            "the rate of flows",
            self.flows_per_second,
            f64::MIN_POSITIVE,
        )?;
        check(
            "the shape of batches",
            self.batches_shape,
            f64::MIN_POSITIVE,
        )?;
        check("the share of scattered packets", self.scattered, 0.0)?;
        check(
            "the shape of packets",
            self.packets_shape,
            f64::MIN_POSITIVE,
        )?;
        check("the least number of packets", self.least_packets, 0.0)?;
        check("the pace", self.pace, 0.0)?;
        check("the spread of paces", self.pace_sigma, 0.0)?;
        check("the idle time", self.idle, 0.0)?;
        check("the spread of idle times", self.idle_sigma, 0.0)?;
        check("alpha", self.alpha, 0.0)?;
        check("the warm-up", self.warm_up, 0.0)?;
        let no_class = |parameter| TrafficError::BadParameter {
            parameter,
            found: "0 for all classes".to_owned(),
            expected: "a number above 0 for some class",
        };
        let sources = self.classes.iter().map(|class| class.sources);
        let destinations = self.classes.iter().map(|class| class.destinations);
        let mut draw = Draw::new(seed, "locality");
        let networks = self.classes.map(|class| {
            let ranks = (1..=class.networks.max(1)).map(|rank| rank as f64);
            let weights = ranks.map(|rank| libm::pow(rank, -self.alpha));
            Choice::new(weights).expect("ranks have weights above 0")
        });
        let start = whole_u64(self.warm_up * NS_PER_SECOND, MAX_TIME_NS);
        Ok(Locality {
            model: *self,
            sources: Choice::new(sources).ok_or_else(|| no_class("the sources"))?,
            destinations: Choice::new(destinations).ok_or_else(|| no_class("the destinations"))?,
            networks,
            places: draw.bits(),
            next_flow: 0,
            flows: Vec::new(),
            ended: Vec::new(),
            under_way: BinaryHeap::new(),
            begun: 0,
            start,
            draw,
        })
    }
}

/// Makes headers of a stream in the first part of the policy that has IPv4 headers.
pub(super) fn make(
    maker: &mut Maker<'_>,
    model: &LocalityModel,
    config: &TrafficConfig,
    steps: &mut Steps<'_>,
) -> Result<(), TrafficError> {
    let policy = maker.policy;
    let mut parts = policy.part_ids();
    let part = parts.find(|&part| *policy.part(part).schema() == Schema::ipv4_5tuple());
    let part = part.ok_or(TrafficError::NoIpv4)?;
    for packet in model.packets(config.seed)?.take(config.headers) {
        maker.values.clear();
        maker.values.extend(packet.header.values());
        maker.push(part);
        maker.made.timestamps.push(packet.time);
        let flow = u32::try_from(packet.flow).expect("fewer flows than headers fit into memory");
        maker.made.flows.push(flow);
        steps.advance(1)?;
    }
    Ok(())
}

/// An active flow.
#[derive(Clone, Debug)]
struct Flow {
    number: u64,
    header: Ipv4Flow,
    /// The number of batches after the current batch.
    batches: usize,
    /// The number of packets left in the current batch.
    packets: usize,
    /// The mean time between packets of a batch, in nanoseconds.
    pace: f64,
}

/// An endless stream of packets.
#[derive(Clone, Debug)]
pub struct Locality {
    model: LocalityModel,
    draw: Draw,
    sources: Choice,
    destinations: Choice,
    networks: [Choice; 4],
    /// A random number that determines the addresses of networks.
    places: u64,
    /// The time at which the next flow begins.
    next_flow: u64,
    flows: Vec<Flow>,
    /// The free slots of `flows`, whose flows have ended.
    ended: Vec<usize>,
    /// The time of the next packet, and the flow's slot in `flows`.
    under_way: BinaryHeap<Reverse<(u64, usize)>>,
    begun: u64,
    /// The time of the stream's start.
    start: u64,
}

impl Locality {
    /// Returns the number of active flows.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Returns the next packet, including the packets of the warm-up.
    fn step(&mut self) -> LocalityPacket {
        loop {
            let due = self.under_way.peek().map(|Reverse((time, _))| *time);
            if due.is_none_or(|due| self.next_flow <= due) {
                self.begin();
                continue;
            }
            let Some(Reverse((time, slot))) = self.under_way.pop() else {
                continue;
            };
            let (number, header) = (self.flows[slot].number, self.flows[slot].header);
            match self.wait(slot) {
                Some(wait) => {
                    let next = time.saturating_add(wait);
                    self.under_way.push(Reverse((next, slot)));
                }
                None => self.ended.push(slot),
            }
            return LocalityPacket {
                time,
                flow: number,
                header,
            };
        }
    }

    /// Begins a flow.
    fn begin(&mut self) {
        let model = self.model;
        let batches = whole(
            self.draw.pareto(model.batches_shape, 1.0),
            model.most_batches,
        );
        let pace = model.pace * libm::exp(model.pace_sigma * self.draw.normal());
        let flow = Flow {
            number: self.begun,
            header: self.header(),
            batches: batches.saturating_sub(1),
            packets: self.batch(),
            pace: pace * NS_PER_SECOND,
        };
        self.begun += 1;
        let slot = match self.ended.pop() {
            Some(slot) => {
                self.flows[slot] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.flows.len() - 1
            }
        };
        self.under_way.push(Reverse((self.next_flow, slot)));
        let between = self.draw.exponential() * NS_PER_SECOND / model.flows_per_second;
        self.next_flow = self
            .next_flow
            .saturating_add(whole_u64(between, MAX_TIME_NS));
    }

    /// Draws the number of packets of a batch.
    fn batch(&mut self) -> usize {
        let model = &self.model;
        if self.draw.chance(model.scattered) {
            return 1;
        }
        let packets = self.draw.pareto(model.packets_shape, model.least_packets);
        whole(packets, model.most_packets).max(1)
    }

    /// Draws the time to a flow's next packet; `None` after its last packet.
    fn wait(&mut self, slot: usize) -> Option<u64> {
        let flow = &mut self.flows[slot];
        flow.packets -= 1;
        let wait = if flow.packets > 0 {
            flow.pace * self.draw.exponential()
        } else {
            flow.batches = flow.batches.checked_sub(1)?;
            let spread = libm::exp(self.model.idle_sigma * self.draw.normal());
            self.flows[slot].packets = self.batch();
            self.model.idle * NS_PER_SECOND * spread
        };
        Some(whole_u64(wait, MAX_TIME_NS))
    }

    fn header(&mut self) -> Ipv4Flow {
        let source_class = self.sources.draw(&mut self.draw);
        let destination_class = self.destinations.draw(&mut self.draw);
        let [source_port, destination_port] = self.ports();
        Ipv4Flow {
            source: self.address(source_class),
            destination: self.address(destination_class),
            source_port,
            destination_port,
            protocol: if self.draw.chance(0.8) { 6 } else { 17 },
        }
    }

    /// Draws a well-known port and an ephemeral port, in either order.
    fn ports(&mut self) -> [u16; 2] {
        let known = *self.draw.of(&[80, 443, 53, 8_080, 25, 22]);
        let ephemeral = self.draw.between(1_024, 65_535);
        let ephemeral = u16::try_from(ephemeral).expect("16 bits");
        match self.draw.coin() {
            true => [known, ephemeral],
            false => [ephemeral, known],
        }
    }

    /// Draws a random host in a network of a class.
    fn address(&mut self, class: usize) -> u32 {
        let rank = self.networks[class].draw(&mut self.draw) as u64;
        // The network of a rank has a random address in its class.
        let mut state = self.places ^ (rank << 2 | class as u64);
        let [a, b, c, d, ..] = splitmix(&mut state).to_le_bytes();
        let network = u32::from_be_bytes([a, b, c, d]);
        let network = match class {
            0 => network >> 1,
            1 => 0x8000_0000 | network >> 2,
            2 => 0xc000_0000 | network >> 3,
            _ => 0xe000_0000 | network >> 3,
        };
        let mask = class_mask(network);
        let [host, ..] = self.draw.bits().to_le_bytes();
        network & mask | u32::from(host) & !mask
    }
}

impl Iterator for Locality {
    type Item = LocalityPacket;

    fn next(&mut self) -> Option<LocalityPacket> {
        loop {
            let mut packet = self.step();
            if let Some(time) = packet.time.checked_sub(self.start) {
                packet.time = time;
                return Some(packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn streams_are_fixed_by_the_seed() {
        let model = LocalityModel {
            warm_up: 1.0,
            ..TRACE1
        };
        let packets =
            |seed| -> Vec<LocalityPacket> { model.packets(seed).unwrap().take(5_000).collect() };
        assert_eq!(packets(1), packets(1));
        assert_ne!(packets(1), packets(2));
        assert!(packets(1).is_sorted_by_key(|packet| packet.time));
    }

    /// The packet rates are those of the paper's traces, and flows of all masks occur.
    #[test]
    fn rates_are_those_of_the_traces() {
        for (model, rate) in [
            (TRACE1, 15_420_235.0 / 122.0),
            (TRACE2, 15_420_235.0 / 100.0),
        ] {
            let mut masks: HashMap<[u64; 2], u32> = HashMap::new();
            let (mut count, mut last) = (0.0, 0);
            for packet in model.packets(1).unwrap().take(1_000_000) {
                count += 1.0;
                last = packet.time;
                *masks.entry(packet.header.class_mask()).or_default() += 1;
            }
            let packet_rate = count / (last as f64 / 1e9);
            assert!(
                (packet_rate / rate - 1.0).abs() < 0.1,
                "{packet_rate} of {rate}"
            );
            assert_eq!(masks.len(), 16);
        }
    }

    /// All packets of a flow have one header. Packets come in batches: most follow the
    /// previous packet within 256 ms.
    #[test]
    fn packets_come_in_batches() {
        let mut flows: HashMap<u64, (u64, Ipv4Flow)> = HashMap::new();
        let (mut close, mut all) = (0.0, 0.0);
        for packet in TRACE1.packets(3).unwrap().take(400_000) {
            all += 1.0;
            let latest = flows.insert(packet.flow, (packet.time, packet.header));
            if let Some((time, header)) = latest {
                assert_eq!(header, packet.header);
                close += f64::from(u8::from(packet.time - time <= 256_000_000));
            }
        }
        let share = close / all;
        assert!((0.7..0.95).contains(&share), "{share}");
    }

    #[test]
    fn masks_are_those_of_classes() {
        let tuple = |source, destination| Ipv4Flow {
            source,
            destination,
            source_port: 80,
            destination_port: 50_000,
            protocol: 6,
        };
        let mask = |source, destination| tuple(source, destination).class_mask();
        assert_eq!(
            mask(0x0a00_0001, 0x8000_0001),
            [0xff00_0000_ffff_0000, 0xff_8000_8000]
        );
        assert_eq!(
            mask(0xc000_0001, 0xe000_0001),
            [0xffff_ff00_ffff_ffff, 0xff_8000_8000]
        );
        assert_eq!(tuple(1, 2).words(), [0x1_0000_0002, 0x6_0050_c350]);
    }

    #[test]
    fn parameters_are_checked() {
        let wrong = [
            LocalityModel {
                flows_per_second: 0.0,
                ..TRACE1
            },
            LocalityModel {
                idle: f64::NAN,
                ..TRACE1
            },
            LocalityModel {
                classes: [NetworkClass {
                    sources: 0.0,
                    ..TRACE1.classes[0]
                }; 4],
                ..TRACE1
            },
        ];
        for model in wrong {
            assert!(model.packets(1).is_err(), "{model:?}");
        }
    }
}
