//! What flow caches report: status, megaflows.

use std::fmt;

use classyard::RuleId;

use crate::cache::bits::Words;
use crate::cache::microflow::Usage;
use crate::field::{Field, Prerequisite};
use crate::flow::TableId;
use crate::key::{KEY_WORDS, PacketKey};

/// How a worker's caches are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheStatus {
    /// Packets that the cache of single flows was asked about.
    pub microflow_lookups: u64,
    /// Packets that it knew.
    pub microflow_hits: u64,
    /// Packets for which its answer was wrong.
    pub microflow_wrong: u64,
    /// What is in it.
    pub microflows: Usage,
    /// Vectors that passed it by, since it did not pay for itself.
    pub microflow_by_passed: u64,
    /// Packets that were looked up among megaflows.
    pub megaflow_lookups: u64,
    /// Packets that a megaflow covered.
    pub megaflow_hits: u64,
    /// Masks that were tried for them; where an engine finds megaflows, its lookups.
    pub megaflow_probes: u64,
    /// Vectors that passed them by, since they did not pay for themselves.
    pub megaflow_by_passed: u64,
    /// Megaflows.
    pub megaflows: usize,
    /// Masks that they have.
    pub masks: usize,
    /// Different paths that their packets take.
    pub paths: usize,
    /// Bytes of megaflows.
    pub megaflow_bytes: usize,
    /// Megaflows that were added.
    pub added: u64,
    /// Megaflows that were given up for others.
    pub evicted: u64,
    /// Megaflows from which new entries took packets: they are renewed when a packet
    /// comes for them.
    pub outdated: u64,
    /// Megaflows that got a mask with more bits than they need.
    pub narrowed: u64,
    /// Times when so much had changed that every megaflow was held against the tables
    /// before it was believed again.
    pub revalidations: u64,
    /// Packets that were held against the tables.
    pub stale: u64,
    /// Packets whose paths were learned.
    pub learned: u64,
    /// Packets that were processed by tables from the first one on.
    pub by_tables: u64,
}

/// What a worker's caches know of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheAnswer {
    /// Whether the cache of single flows knows it; `None` without such a cache.
    pub microflow: Option<bool>,
    /// The megaflow that covers it.
    pub megaflow: Option<Megaflow>,
}

/// A decision that is kept for later packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Megaflow {
    /// The bits that packets have which it covers.
    pub key: [u64; KEY_WORDS],
    /// The bits that are looked at.
    pub mask: [u64; KEY_WORDS],
    /// Tables, and the entries that win there.
    pub steps: Vec<(TableId, Option<RuleId>)>,
    /// The table at which the pipeline goes on, if it does.
    pub rest: Option<TableId>,
}

impl fmt::Display for Megaflow {
    /// The fields of which bits are looked at, with masks where some are not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        let mut told: Words = [0; KEY_WORDS];
        for field in Field::all().filter(|&field| self.may_have(field)) {
            let place = PacketKey::place(field);
            let mask = place.get(&self.mask);
            // Fields of other packets may share the place.
            if mask & !place.get(&told) == 0 {
                continue;
            }
            place.set_bits(&mut told, mask);
            let value = field.format().display(place.get(&self.key));
            let comma = if is_first { "" } else { "," };
            is_first = false;
            match mask == field.max_value() {
                true => write!(f, "{comma}{field}={value}")?,
                false => write!(f, "{comma}{field}={value}/{}", field.format().display(mask))?,
            }
        }
        match is_first {
            true => f.write_str("every packet"),
            false => Ok(()),
        }
    }
}

impl Megaflow {
    /// Whether packets that it covers may be of a kind that has a field.
    fn may_have(&self, field: Field) -> bool {
        let may_be = |field: Field, values: &[u16]| {
            let place = PacketKey::place(field);
            let (mask, own) = (place.get(&self.mask), place.get(&self.key));
            let fits = |value: &u16| (u128::from(*value) ^ own) & mask == 0;
            values.iter().any(fits)
        };
        match field.info().prerequisite {
            Prerequisite::None | Prerequisite::InPort | Prerequisite::Vlan => true,
            Prerequisite::EthType(types) => may_be(Field::EthType, types),
            Prerequisite::IpProto(types, proto) => {
                may_be(Field::EthType, types) && may_be(Field::IpProto, &[u16::from(proto)])
            }
            Prerequisite::Icmpv6Type(types) => {
                let types: Vec<u16> = types.iter().map(|&kind| u16::from(kind)).collect();
                self.may_have(Field::Icmpv6Type) && may_be(Field::Icmpv6Type, &types)
            }
        }
    }
}
