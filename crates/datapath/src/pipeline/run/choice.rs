//! The choice of a group's bucket for a packet, among the live buckets.

use std::hash::{BuildHasher, RandomState};

use crate::field::Field;
use crate::group::{Bucket, GroupType};
use crate::key::PacketKey;
use classyard::author::splitmix;

/// The buckets that packets of a group go to. The choice is recomputed when the group or
/// the liveness of a bucket changes, so processing a packet does not search for live
/// buckets.
pub(in crate::pipeline) enum Choice {
    /// All buckets.
    All,
    /// The only bucket of an indirect group, or the first live bucket of a fast-failover
    /// group; `None` if no bucket is live.
    One(Option<usize>),
    /// A live bucket, chosen by the packet's flow.
    ByFlow(Shares),
}

impl Choice {
    /// Returns the choice of a group. `is_live` returns the liveness of a bucket.
    pub(in crate::pipeline) fn new<'b>(
        kind: GroupType,
        buckets: impl Iterator<Item = &'b Bucket>,
        is_live: impl Fn(usize) -> bool,
    ) -> Choice {
        let mut live = buckets.enumerate().filter(|(number, _)| is_live(*number));
        match kind {
            GroupType::All => Choice::All,
            GroupType::Indirect => Choice::One(Some(0)),
            GroupType::FastFailover => Choice::One(live.next().map(|(number, _)| number)),
            GroupType::Select => {
                let mut total_weight = 0;
                let ends = live.filter(|(_, bucket)| bucket.weight > 0);
                let ends = ends.map(|(number, bucket)| {
                    total_weight += u64::from(bucket.weight);
                    (total_weight, number)
                });
                Choice::ByFlow(Shares(ends.collect()))
            }
        }
    }
}

/// The live buckets of a select group: for each, the sum of the weights up to and
/// including its own, and its number.
pub(in crate::pipeline) struct Shares(Vec<(u64, usize)>);

impl Shares {
    /// Returns the bucket for a hash; `None` if no live bucket has a weight. A bucket's
    /// share of all hashes is proportional to its weight.
    pub(in crate::pipeline) fn choose(&self, hash: impl FnOnce() -> u64) -> Option<usize> {
        let &(total, _) = self.0.last()?;
        let offset = hash() % total;
        let share = self.0.partition_point(|&(end, _)| end <= offset);
        Some(self.0[share].1)
    }
}

/// Hashes the fields that all packets of a flow share: Ethernet addresses and type, IP
/// addresses, protocol and ports. VLANs and fields that change between hops are left out.
///
/// Each 64-bit half of a field's value is added to the hash. The sum is multiplied by a
/// secret number, and the two halves of the 128-bit product are combined by XOR. Start
/// and multiplier come from the seed, so an attacker without the seed cannot create flows
/// that all go to one bucket.
///
/// ```
/// use classyard_datapath::Packet;
/// use classyard_datapath::pipeline::FlowHash;
///
/// let hash = FlowHash::seeded(7);
/// let packet = Packet::new(&[0; 60], 1);
/// assert_eq!(hash.of(packet.key()), FlowHash::seeded(7).of(packet.key()));
/// assert_ne!(hash.of(packet.key()), FlowHash::seeded(8).of(packet.key()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FlowHash {
    start: u64,
    multiplier: u64,
}

impl FlowHash {
    /// Returns the hash function of a seed. It is the same in every process.
    #[must_use]
    pub fn seeded(seed: u64) -> FlowHash {
        let mut state = seed;
        FlowHash {
            start: splitmix(&mut state),
            multiplier: splitmix(&mut state) | 1,
        }
    }

    /// Returns a hash function with a random seed, which is unknown outside of this process.
    #[must_use]
    pub fn random() -> FlowHash {
        FlowHash::seeded(RandomState::new().hash_one(0_u8))
    }

    /// Returns the hash of a packet's flow.
    #[must_use]
    pub fn of(&self, key: &PacketKey) -> u64 {
        const FIELDS: [Field; 8] = [
            Field::EthDst,
            Field::EthSrc,
            Field::EthType,
            Field::IpProto,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::TcpSrc,
            Field::TcpDst,
        ];
        FIELDS.into_iter().fold(self.start, |hash, field| {
            let value = key.get(field);
            #[allow(clippy::cast_possible_truncation)] // both halves are used
            let halves = [value as u64, (value >> 64) as u64];
            halves.into_iter().fold(hash, |hash, half| {
                let product = u128::from(hash.wrapping_add(half)) * u128::from(self.multiplier);
                #[allow(clippy::cast_possible_truncation)] // both halves are used
                let folded = product as u64 ^ (product >> 64) as u64;
                folded
            })
        })
    }
}
