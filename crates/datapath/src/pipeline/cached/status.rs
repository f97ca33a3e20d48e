//! Reports of flow caches: status, megaflows.

use std::fmt;

use classyard::RuleId;

use crate::bits::Words;
use crate::cache::microflow::Usage;
use crate::field::{Field, Prerequisite};
use crate::flow::TableId;
use crate::key::{KEY_WORDS, PacketKey};

/// The contents and counters of a worker's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheStatus {
    /// Lookups in the microflow cache, in packets.
    pub microflow_lookups: u64,
    /// Hits of the microflow cache.
    pub microflow_hits: u64,
    /// Wrong answers of the microflow cache: the megaflow did not cover the packet.
    pub microflow_wrong: u64,
    /// Capacity and use of the microflow cache.
    pub microflows: Usage,
    /// Vectors that bypassed the microflow cache, since packets were faster without it.
    pub microflow_bypasses: u64,
    /// Lookups among megaflows, in packets.
    pub megaflow_lookups: u64,
    /// Hits among megaflows.
    pub megaflow_hits: u64,
    /// Masks probed by these lookups. If an engine finds megaflows, the number of its
    /// lookups.
    pub megaflow_probes: u64,
    /// Vectors that bypassed the megaflows, since packets were faster without them.
    pub megaflow_bypasses: u64,
    /// Cached megaflows.
    pub megaflows: usize,
    /// Different masks of cached megaflows.
    pub masks: usize,
    /// Different paths of cached megaflows.
    pub paths: usize,
    /// Bytes held by megaflows.
    pub megaflow_bytes: usize,
    /// Megaflows that were added.
    pub added: u64,
    /// Megaflows that were replaced by other megaflows.
    pub evicted: u64,
    /// Megaflows that became stale because a new entry wins some of their packets. The next
    /// packet that such a megaflow covers renews it.
    pub outdated: u64,
    /// Megaflows with a mask of more bits than they need.
    pub narrowed: u64,
    /// Number of times that all megaflows became stale, since too many entries had changed.
    pub revalidations: u64,
    /// Packets with stale megaflows, which the tables processed.
    pub stale: u64,
    /// Packets whose paths were learned.
    pub learned: u64,
    /// Packets that the tables processed, from the first table.
    pub by_tables: u64,
}

/// The answer of a worker's caches for a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheAnswer {
    /// True if the microflow cache hits; `None` without such a cache.
    pub microflow: Option<bool>,
    /// The megaflow that covers the packet.
    pub megaflow: Option<Megaflow>,
}

/// A cached decision for all packets that agree with `key` in the bits of `mask`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Megaflow {
    /// The values of the bits in `mask`.
    pub key: [u64; KEY_WORDS],
    /// The bits of a packet's key that are compared.
    pub mask: [u64; KEY_WORDS],
    /// The tables of the path, and the entry that wins in each.
    pub steps: Vec<(TableId, Option<RuleId>)>,
    /// The table where the pipeline continues, if the path ends early.
    pub rest: Option<TableId>,
}

impl fmt::Display for Megaflow {
    /// Writes the fields that have bits in the mask, with a mask if it is partial.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        let mut shown: Words = [0; KEY_WORDS];
        for field in Field::all().filter(|&field| self.may_have(field)) {
            let field_place = PacketKey::place(field);
            let mask = field_place.get(&self.mask);
            // Fields of different kinds of packets may share bits of the key.
            if mask & !field_place.get(&shown) == 0 {
                continue;
            }
            field_place.set_bits(&mut shown, mask);
            let value = field.format().display(field_place.get(&self.key));
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
    /// Returns true if covered packets may be of a kind that has the field.
    fn may_have(&self, field: Field) -> bool {
        let may_be = |field: Field, values: &[u16]| {
            let field_place = PacketKey::place(field);
            let (mask, key) = (field_place.get(&self.mask), field_place.get(&self.key));
            let fits = |value: &u16| (u128::from(*value) ^ key) & mask == 0;
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
