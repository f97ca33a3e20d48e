//! Reports of flow caches: status, megaflows.

use std::fmt;

use classyard::RuleId;
use classyard::value::ValueFormat;

use crate::bits::Words;
use crate::cache::microflow::Usage;
use crate::field::{Field, Prerequisite};
use crate::flow::TableId;
use crate::key::{KEY_WORDS, PacketKey, Presence};

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
    /// Megaflows that became stale because an entry on their path was removed, or sends
    /// their packets to another table.
    pub stranded: u64,
    /// Megaflows with a mask of more bits than they need.
    pub narrowed: u64,
    /// Number of times that all megaflows became stale, since too many entries had changed.
    pub revalidations: u64,
    /// Packets with stale megaflows, which the tables processed.
    pub stale: u64,
    /// Megaflows that were stored before packets arrived.
    pub proactive: u64,
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
    /// True if the lookup finds a megaflow that a change made stale, so the tables process
    /// the packet.
    pub stale: bool,
}

/// A cached path for all packets that agree with `key` in the bits of `mask`.
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

impl Megaflow {
    /// Returns the number of bits of a packet's key that are compared.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }
}

impl fmt::Display for Megaflow {
    /// Writes the fields that have bits in the mask. If the mask of a field is partial, writes
    /// it as well; numbers are then hexadecimal. In a packet without a field, its bits are 0.
    /// So the headers that covered packets have are written too, unless a written value that
    /// is not 0 implies them, and the headers that covered packets lack.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let mut shown: Words = [0; KEY_WORDS];
        let mut implied = Presence::NONE;
        for field in Field::all().filter(|&field| self.may_have(field)) {
            let field_place = PacketKey::place(field);
            let mask = field_place.get(&self.mask);
            // Fields of different kinds of packets may share bits of the key.
            if mask & !field_place.get(&shown) == 0 {
                continue;
            }
            field_place.set_bits(&mut shown, mask);
            let bits = field_place.get(&self.key) & mask;
            if bits != 0 {
                implied = implied.and(field.info().presence);
            }
            let format = match (mask == field.max_value(), field.format()) {
                (false, ValueFormat::Decimal) => ValueFormat::Hex,
                (_, format) => format,
            };
            let value = format.display(bits);
            parts.push(match mask == field.max_value() {
                true => format!("{field}={value}"),
                false => format!("{field}={value}/{}", format.display(mask)),
            });
        }
        parts.extend(self.headers(implied));
        match parts.is_empty() {
            true => f.write_str("every packet"),
            false => f.write_str(&parts.join(",")),
        }
    }
}

/// The names of the presence bits, the lowest first.
const HEADER_NAMES: [&str; Presence::WIDTH as usize] = [
    "a network header",
    "an IP protocol",
    "a transport header",
    "a neighbour discovery target",
    "a neighbour discovery address",
];

impl Megaflow {
    /// Returns the last header that all covered packets have, unless `implied` has it, and
    /// the first header that they lack. A packet with a header has all headers before it.
    fn headers(&self, implied: Presence) -> impl Iterator<Item = String> {
        let part = PacketKey::presence_place();
        let bits = |words: &Words| (words[part.word] & part.mask()) >> part.shift;
        let (key, mask) = (bits(&self.key), bits(&self.mask));
        let last = (mask & key).checked_ilog2();
        let last = last.filter(|&bit| u64::from(implied.bits()) >> bit & 1 == 0);
        let first_absent = mask & !key;
        let absent = (first_absent != 0).then(|| first_absent.trailing_zeros());
        let last = last.map(|bit| format!("with {}", HEADER_NAMES[bit as usize]));
        let absent = absent.map(|bit| format!("without {}", HEADER_NAMES[bit as usize]));
        last.into_iter().chain(absent)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of a megaflow of fields with values and masks, and of presence bits.
    fn text(fields: &[(Field, u128, u128)], presence: Presence, presence_mask: u64) -> String {
        let mut key = PacketKey::default();
        let mut mask = [0; KEY_WORDS];
        key.set_presence(presence);
        for &(field, value, field_mask) in fields {
            key.set(field, value);
            PacketKey::place(field).set_bits(&mut mask, field_mask);
        }
        let part = PacketKey::presence_place();
        mask[part.word] |= presence_mask << part.shift;
        let (key, steps) = (*key.words(), Vec::new());
        let rest = None;
        let megaflow = Megaflow {
            key,
            mask,
            steps,
            rest,
        };
        megaflow.to_string()
    }

    #[test]
    fn partial_masks_of_numbers_are_hexadecimal() {
        let fields = [
            (Field::EthType, 0x86dd, 0xffff),
            (Field::IpProto, 58, 0xff),
            (Field::Icmpv6Type, 0x88, 0xf8),
        ];
        let expected = "eth_type=0x86dd,ip_proto=58,icmpv6_type=0x88/0xf8";
        assert_eq!(text(&fields, Presence::TRANSPORT, 4), expected);
    }

    #[test]
    fn headers_are_named_if_no_value_implies_them() {
        let ipv4 = (Field::EthType, 0x800, 0xffff);
        let udp = [ipv4, (Field::IpProto, 17, 0xff)];
        // A first fragment has ports, a later fragment has none.
        assert_eq!(
            text(&udp, Presence::PROTOCOL, 4),
            "eth_type=0x800,ip_proto=17,without a transport header"
        );
        assert_eq!(
            text(&udp, Presence::TRANSPORT, 4),
            "eth_type=0x800,ip_proto=17,with a transport header"
        );
        let low_port = [udp[0], udp[1], (Field::UdpDst, 0x35, 0xff00)];
        assert_eq!(
            text(&low_port, Presence::TRANSPORT, 7),
            "eth_type=0x800,ip_proto=17,udp_dst=0x0/0xff00,with a transport header"
        );
        let high_port = [udp[0], udp[1], (Field::UdpDst, 0x1235, 0xff00)];
        assert_eq!(
            text(&high_port, Presence::TRANSPORT, 7),
            "eth_type=0x800,ip_proto=17,udp_dst=0x1200/0xff00"
        );
        assert_eq!(text(&[], Presence::NONE, 0), "every packet");
        assert_eq!(text(&[], Presence::NONE, 31), "without a network header");
    }
}
