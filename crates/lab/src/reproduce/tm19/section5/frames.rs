//! Frames of 64 bytes, drawn from rules or mostly independent of them.

use std::collections::{HashMap, HashSet};

use classyard::key::unpack;
use classyard::policy::PartId;
use classyard::{EngineSpec, FieldMatch, Limits, NoProgress, Policy, RuleId, RuleRef, Schema};
use classyard_datapath::Packet;
use classyard_report::failure::Failure;
use classyard_workload::capture::PcapWriter;
use classyard_workload::capture::frame::{SHORTEST, ipv4_frame};
use classyard_workload::packet::LinkType;
use classyard_workload::traffic::{TrafficConfig, TrafficRecipe, traffic};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{VECTOR_PACKETS, acl::IN_PORT};
use crate::reproduce::statistics::coordinate;

/// One in `FROM_RULES` packets of the default rule's traffic is drawn from the rules.
const FROM_RULES: u32 = 20;

/// Packets for each flow of the default rule's traffic.
const PACKETS_A_FLOW: usize = 10;

/// Draws of a header, at most, until no rule matches it. Some rule sets leave hardly any
/// header to the default rule.
const MAX_DRAWS: usize = 64;

/// Protocols of flows, as cumulative percentages: TCP, UDP, ICMP.
const PROTOCOLS: [(u32, u128); 3] = [(85, 6), (97, 17), (100, 1)];

/// Ports of servers.
const SERVERS: [u128; 8] = [80, 80, 80, 443, 443, 53, 25, 22];

/// A five-tuple.
type Header = [u128; 5];

/// Frames, stored one after the other.
pub(super) struct Frames(Vec<u8>);

impl Frames {
    /// Returns a frame for each header.
    pub(super) fn of(headers: impl Iterator<Item = Header>) -> Frames {
        let (mut bytes, mut frame) = (Vec::new(), Vec::new());
        for header in headers {
            ipv4_frame(&header, &mut frame);
            assert_eq!(frame.len(), SHORTEST, "no payload");
            bytes.extend_from_slice(&frame);
        }
        Frames(bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len() / SHORTEST
    }

    /// The number of flows; frames with the same bytes belong to one flow.
    pub(super) fn flows(&self) -> usize {
        self.0.chunks_exact(SHORTEST).collect::<HashSet<_>>().len()
    }

    /// The number of vectors; the last vector may be shorter.
    pub(super) fn vectors(&self) -> usize {
        self.len().div_ceil(VECTOR_PACKETS)
    }

    /// Returns the bytes of a pcap file with all frames.
    pub(super) fn capture(&self) -> Vec<u8> {
        let mut writer =
            PcapWriter::new(Vec::new(), LinkType::Ethernet).expect("memory takes all bytes");
        let length = u32::try_from(SHORTEST).expect("frames are short");
        for frame in self.0.chunks_exact(SHORTEST) {
            let written = writer.packet(0, length, frame);
            written.expect("memory takes all bytes");
        }
        writer.finish().expect("memory takes all bytes")
    }

    /// Fills a packet with one frame.
    pub(super) fn receive_one(&self, index: usize, packet: &mut Packet) {
        let first_byte = index * SHORTEST;
        packet.receive(&self.0[first_byte..first_byte + SHORTEST], IN_PORT);
    }

    /// Fills packets with a vector's frames and returns their number.
    pub(super) fn receive(&self, vector: usize, packets: &mut [Packet]) -> usize {
        let first_byte = vector * VECTOR_PACKETS * SHORTEST;
        let end_byte = (first_byte + VECTOR_PACKETS * SHORTEST).min(self.0.len());
        let frames = self.0[first_byte..end_byte].chunks_exact(SHORTEST);
        let count = frames.len();
        for (frame, packet) in frames.zip(packets) {
            packet.receive(frame, IN_PORT);
        }
        count
    }
}

/// The traffic for a rule set.
pub(super) struct Traffic {
    /// Frames by workload.
    pub(super) frames: [Frames; 2],
    /// The share of the default rule's traffic that only the default rule matches.
    pub(super) default_share: f64,
    /// The share of packets won by the ten most frequent winners, by workload.
    pub(super) few_shares: [f64; 2],
}

/// The number of most frequent winners in [`Traffic::few_shares`].
const TOP_RULES: usize = 10;

/// True if a rule matches every header.
fn is_default(rule: &RuleRef<'_>) -> bool {
    rule.fields()
        .into_iter()
        .all(|field| field == FieldMatch::Any)
}

impl Traffic {
    /// Draws `packets` packets of each workload.
    pub(super) fn of(policy: &Policy, packets: usize, seed: u64) -> Result<Traffic, Failure> {
        let config = TrafficConfig::new(packets, seed);
        let recipe = TrafficRecipe::uniform();
        let drawn = traffic(policy, &recipe, &config, None, &mut NoProgress)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let schema = policy.part(PartId::FIRST).schema();
        let headers = drawn.trace.iter().map(|(_, key)| {
            Header::try_from(unpack(schema, key)).expect("five-tuples have five fields")
        });
        let synthetic: Vec<Header> = headers.collect();
        let spec = EngineSpec::parse("forest").expect("a registered engine");
        let built = policy.build(&spec, &Limits::default(), &mut NoProgress)?;
        let mut rules = Rules {
            policy,
            schema,
            classifier: built.part(PartId::FIRST),
            keys: Vec::new(),
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let flows = (0..(packets / PACKETS_A_FLOW).max(1)).map(|_| rules.unrelated(&mut rng));
        let flows: Vec<Header> = flows.collect();
        let ranks = Ranks::new(flows.len());
        let real = (0..packets).map(|packet| match rng.random_range(0..FROM_RULES) {
            0 => synthetic[packet],
            _ => flows[ranks.draw(&mut rng)],
        });
        let real: Vec<Header> = real.collect();
        let defaults = real.iter().filter(|header| rules.is_of_default(header));
        let default_share = coordinate(defaults.count()) / coordinate(packets.max(1));
        let few_shares = [&synthetic, &real].map(|headers| rules.few_share(headers));
        Ok(Traffic {
            few_shares,
            frames: [
                Frames::of(synthetic.into_iter()),
                Frames::of(real.into_iter()),
            ],
            default_share,
        })
    }
}

/// Rules and an engine that finds their winners.
struct Rules<'a> {
    policy: &'a Policy,
    schema: &'a Schema,
    classifier: &'a dyn classyard::Classifier,
    /// Storage for the key of a header.
    keys: Vec<u64>,
}

impl Rules<'_> {
    /// Returns the rule that wins a header.
    fn winner(&mut self, header: &Header) -> Option<RuleId> {
        self.keys.clear();
        self.keys.resize(self.schema.key_words(), 0);
        for (id, &value) in self.schema.field_ids().zip(header) {
            self.schema.placement(id).set(&mut self.keys, value);
        }
        let winner = self.classifier.classify_one(&self.keys);
        winner.rule()
    }

    /// Returns the share of headers won by the most frequent winners.
    fn few_share(&mut self, headers: &[Header]) -> f64 {
        let mut counts: HashMap<Option<RuleId>, usize> = HashMap::new();
        for header in headers {
            *counts.entry(self.winner(header)).or_default() += 1;
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top_count: usize = counts.iter().take(TOP_RULES).sum();
        coordinate(top_count) / coordinate(headers.len().max(1))
    }

    /// True if the default rule wins a header, or no rule does.
    fn is_of_default(&mut self, header: &Header) -> bool {
        let Some(id) = self.winner(header) else {
            return true;
        };
        let mut forms = self.policy.rule(id);
        forms.next().is_some_and(|(_, rule)| is_default(&rule))
    }

    /// Draws a header that is independent of the rules.
    fn unrelated(&mut self, rng: &mut Xoshiro256PlusPlus) -> Header {
        let mut header = backbone_header(rng);
        for _ in 1..MAX_DRAWS {
            if self.is_of_default(&header) {
                break;
            }
            header = backbone_header(rng);
        }
        header
    }
}

/// Draws a header as on a backbone: a client and a server with any addresses.
fn backbone_header(rng: &mut Xoshiro256PlusPlus) -> Header {
    // Unicast addresses.
    let mut address = || u128::from(rng.random_range(0x0100_0000_u32..0xe000_0000));
    let (src, dst) = (address(), address());
    let hundredth = rng.random_range(0..100);
    let protocol = PROTOCOLS.iter().find(|(end, _)| hundredth < *end);
    let protocol = protocol.map_or(0, |&(_, protocol)| protocol);
    let server = SERVERS[rng.random_range(0..SERVERS.len())];
    let client = u128::from(rng.random_range(1_024..=u16::MAX));
    let (sport, dport) = match protocol {
        1 => (0, 0),
        _ if rng.random_range(0..2) == 0 => (client, server),
        _ => (server, client),
    };
    [src, dst, sport, dport, protocol]
}

/// Ranks; rank k is drawn with a frequency proportional to 1/k.
struct Ranks(Vec<f64>);

impl Ranks {
    fn new(count: usize) -> Ranks {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += 1.0 / coordinate(rank);
            sum
        });
        Ranks(sums.collect())
    }

    /// Draws a rank, counted from 0.
    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        let total = self.0.last().copied().unwrap_or(0.0);
        let point = rng.random_range(0.0..1.0) * total;
        let rank = self.0.partition_point(|&sum| sum <= point);
        rank.min(self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use classyard_workload::generate::Profile;

    use super::*;
    use crate::bench::generated_policy;
    use classyard_report::input::family::FamilyName;

    #[test]
    fn most_packets_match_the_default_rule_alone() {
        let profile = Arc::new(Profile::built_in("acl1").unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        let policy = generated_policy(family, 200, 1, &mut NoProgress).unwrap();
        let traffic = Traffic::of(&policy, 3_000, 1).unwrap();
        let share = traffic.default_share;
        assert!((0.9..1.0).contains(&share), "{share}");
        // Few rules win most of these packets; many rules win the synthetic packets.
        assert!(traffic.few_shares[1] >= share, "{:?}", traffic.few_shares);
        assert!(traffic.few_shares[0] < 0.5, "{:?}", traffic.few_shares);
        let [synthetic, real] = &traffic.frames;
        assert_eq!((synthetic.len(), real.len()), (3_000, 3_000));
        assert_eq!(synthetic.vectors(), 12);
        // Of 300 flows with random addresses some have no packet; other flows are from
        // the rules.
        assert!((150..=450).contains(&real.flows()), "{}", real.flows());
        assert!(synthetic.flows() > real.flows(), "{}", synthetic.flows());
        let mut packets = vec![Packet::default(); VECTOR_PACKETS];
        assert_eq!(real.receive(0, &mut packets), VECTOR_PACKETS);
        assert_eq!(real.receive(11, &mut packets), 3_000 - 11 * VECTOR_PACKETS);
        // The same seed gives the same packets.
        assert_eq!(Traffic::of(&policy, 3_000, 1).unwrap().frames[1].0, real.0);
    }

    #[test]
    fn low_ranks_are_frequent() {
        let ranks = Ranks::new(100);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut counts = [0; 100];
        for _ in 0..10_000 {
            counts[ranks.draw(&mut rng)] += 1;
        }
        // 1 / (1 + 1/2 + … + 1/100) is 0.193.
        assert!((1_800..2_060).contains(&counts[0]), "{}", counts[0]);
        assert!((860..1_070).contains(&counts[1]), "{}", counts[1]);
        assert_eq!(Ranks::new(1).draw(&mut rng), 0);
    }
}
