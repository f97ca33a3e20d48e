//! Generated rules over the fifteen fields of OpenFlow that resemble real flow tables.
//!
//! # Idea
//! [`OpenFlowRules`](super::OpenFlowRules) fills fifteen fields at random, as [DEC14]
//! does. Rules of real flow tables use two to six fields, and most rules of a table use
//! the same fields, because one application writes them: a switch that learns
//! addresses, a router, a firewall. This module generates such tables.
//!
//! | table | rules | fields of a rule |
//! |---|---|---|
//! | [`FlowTable::L2`] | forwarding to learned addresses: `vlan_vid`, `eth_dst`; one rule in five: `in_port`, `vlan_vid`, `eth_src`; flooding rules | 2 or 3 |
//! | [`FlowTable::L3`] | routes of virtual routers: `metadata` (the router), `eth_type`, `dst` | 2 or 3 |
//! | [`FlowTable::Acl`] | an access list: `eth_type`, `src`, `dst`, `proto`, `sport`, `dport`; most rules have four or five of them | 3 to 6 |
//! | [`FlowTable::Mixed`] | the single table of a switch with all these functions: access list, routed and switched traffic, MPLS, ARP, reactive flows of six fields | 2 to 6 |
//!
//! # Sizes and distributions
//! The figures are our own and follow public descriptions; no operator's table was
//! measured.
//! * Ethernet addresses have one of 24 vendors' prefixes; the hosts of a vendor have
//!   ascending numbers with gaps. About 250 hosts share a VLAN.
//! * Route lengths are distributed as in the Internet's routing table: three in five
//!   are /24, most others /16 to /23. In a virtual router, one in five routes is a
//!   host's /32. There are 1 to 64 virtual routers; the first has half of the routes.
//! * An access list connects groups, which are networks of /16 to /28 and hosts. There
//!   is one group for 30 rules, and two dozen services, most often HTTPS. One port in
//!   eight is a range.
//!
//! # Guarantees
//! Rules satisfy OpenFlow's prerequisites: IP fields come with `eth_type` 0x0800, ports
//! with TCP or UDP, labels with `eth_type` 0x8847. No rule follows a rule that covers
//! it: rules with more exact bits come first.
//!
//! # References
//! OpenFlow Switch Specification 1.5.1, §7.2.3.8 (prerequisites); [DEC14] Table I
//! (the fields).
//!
//! [DEC14]: classyard::papers#dec14

use std::cmp::Reverse;

use classyard::{FieldMatch, Progress};

use super::draw::{Choice, Draw};
use super::five_tuple::Seen;
use super::{GenerateError, GeneratorConfig, Steps};

/// A kind of flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FlowTable {
    /// Learned Ethernet addresses.
    L2,
    /// Routes of several virtual routers.
    L3,
    /// An access list over addresses, protocols and ports.
    Acl,
    /// The rules of all other tables and more, in one table.
    Mixed,
}

impl FlowTable {
    /// All kinds.
    pub const ALL: [FlowTable; 4] = [
        FlowTable::L2,
        FlowTable::L3,
        FlowTable::Acl,
        FlowTable::Mixed,
    ];

    /// Returns the name on command lines, which list it among the profiles.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FlowTable::L2 => "of-l2",
            FlowTable::L3 => "of-l3",
            FlowTable::Acl => "of-acl",
            FlowTable::Mixed => "of-mixed",
        }
    }

    /// Returns a short description of the rules.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            FlowTable::L2 => "OpenFlow: learned Ethernet addresses by VLAN, two or three fields",
            FlowTable::L3 => "OpenFlow: routes of virtual routers, two or three fields",
            FlowTable::Acl => "OpenFlow: an access list, three to six fields",
            FlowTable::Mixed => {
                "OpenFlow: one table for switching, routing and access, two to six fields"
            }
        }
    }

    /// Returns the table with the name `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<FlowTable> {
        FlowTable::ALL
            .into_iter()
            .find(|table| table.name() == name)
    }

    /// Returns distinct rules from specific to general; fewer than requested if there
    /// are not enough.
    pub(super) fn generate(
        self,
        config: &GeneratorConfig,
        progress: &mut dyn Progress,
    ) -> Result<impl ExactSizeIterator<Item = [FieldMatch; 15]> + use<>, GenerateError> {
        let mut maker = Maker::new(self, config);
        let mut steps = Steps::new("drawing rules", config.rules, progress);
        let mut seen: Seen<Flow> = Seen::default();
        let mut flows: Vec<Flow> = Vec::with_capacity(config.rules);
        let mut tries = config.rules.saturating_mul(TRIES_PER_RULE);
        while flows.len() < config.rules && tries > 0 {
            tries -= 1;
            let flow = maker.flow(self);
            if seen.insert(flow) {
                flows.push(flow);
                steps.advance(1)?;
            }
        }
        // The sort is stable: rules with equally many bits keep their order.
        flows.sort_by_key(|flow| Reverse(flow.bits()));
        Ok(flows.into_iter().map(|flow| flow.matches()))
    }
}

/// The maximum number of rules drawn for each requested rule.
const TRIES_PER_RULE: usize = 50;

const ETH_TYPE_IPV4: u16 = 0x0800;
const ETH_TYPE_ARP: u16 = 0x0806;
const ETH_TYPE_MPLS: u16 = 0x8847;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;
const PROTO_ICMP: u8 = 1;
const BROADCAST_MAC: u64 = (1 << 48) - 1;

/// The largest usual VLAN number; the smallest is 1.
const MAX_VLANS: usize = 4094;
/// The mean number of hosts of a VLAN.
const VLAN_HOSTS: usize = 250;
/// The maximum number of access ports of a switch.
const MAX_PORTS: usize = 48;
/// The number of vendors' prefixes of Ethernet addresses.
const VENDOR_COUNT: usize = 24;
/// The number of routes for each virtual router, and the maximum number of these
/// routers.
const ROUTER_ROUTES: usize = 250;
const MAX_ROUTERS: usize = 64;
/// The number of rules of an access list for each group of addresses.
const GROUP_RULES: usize = 30;

/// The share of routes of each prefix length in thousandths, rounded from the
/// Internet's routing table.
const ROUTE_LENGTHS: [(u8, u32); 17] = [
    (8, 1),
    (9, 1),
    (10, 1),
    (11, 1),
    (12, 1),
    (13, 2),
    (14, 3),
    (15, 3),
    (16, 15),
    (17, 10),
    (18, 15),
    (19, 28),
    (20, 50),
    (21, 55),
    (22, 110),
    (23, 104),
    (24, 600),
];

/// The services of an access list: protocol, lowest port, highest port, weight.
const SERVICES: [(u8, u16, u16, u32); 24] = [
    (PROTO_TCP, 443, 443, 30),
    (PROTO_TCP, 80, 80, 15),
    (PROTO_TCP, 22, 22, 10),
    (PROTO_UDP, 53, 53, 8),
    (PROTO_TCP, 53, 53, 3),
    (PROTO_TCP, 25, 25, 3),
    (PROTO_TCP, 3306, 3306, 4),
    (PROTO_TCP, 5432, 5432, 4),
    (PROTO_TCP, 6379, 6379, 3),
    (PROTO_TCP, 8080, 8080, 4),
    (PROTO_TCP, 8443, 8443, 3),
    (PROTO_TCP, 3389, 3389, 3),
    (PROTO_TCP, 1433, 1433, 2),
    (PROTO_TCP, 389, 389, 2),
    (PROTO_TCP, 636, 636, 2),
    (PROTO_UDP, 123, 123, 3),
    (PROTO_UDP, 161, 162, 2),
    (PROTO_UDP, 514, 514, 2),
    (PROTO_TCP, 137, 139, 2),
    (PROTO_TCP, 8000, 8099, 2),
    (PROTO_TCP, 1024, 65_535, 3),
    (PROTO_UDP, 1024, 65_535, 2),
    (PROTO_TCP, 30_000, 32_767, 2),
    (PROTO_UDP, 33_434, 33_534, 1),
];

/// A rule. A field that is 0 is a wildcard, and so are addresses of length 0 and all
/// ports. A million of these take 64 MB; as matches of fifteen fields they would take
/// 700 MB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    metadata: u64,
    eth_src: u64,
    eth_dst: u64,
    in_port: u32,
    mpls_label: u32,
    src: (u32, u8),
    dst: (u32, u8),
    sport: (u16, u16),
    dport: (u16, u16),
    eth_type: u16,
    vlan: u16,
    proto: u8,
}

const ANY_PORT: (u16, u16) = (0, u16::MAX);

/// The rule that matches everything.
const ANY: Flow = Flow {
    metadata: 0,
    eth_src: 0,
    eth_dst: 0,
    in_port: 0,
    mpls_label: 0,
    src: (0, 0),
    dst: (0, 0),
    sport: ANY_PORT,
    dport: ANY_PORT,
    eth_type: 0,
    vlan: 0,
    proto: 0,
};

impl Flow {
    fn matches(&self) -> [FieldMatch; 15] {
        let exact = |value: u64| match value {
            0 => FieldMatch::Any,
            value => FieldMatch::Exact(value.into()),
        };
        let prefix = |(value, length): (u32, u8)| match length {
            0 => FieldMatch::Any,
            32 => FieldMatch::Exact(value.into()),
            length => FieldMatch::Prefix {
                value: value.into(),
                length: length.into(),
            },
        };
        let range = |(low, high): (u16, u16)| match (low, high) {
            ANY_PORT => FieldMatch::Any,
            (low, high) if low == high => FieldMatch::Exact(low.into()),
            (low, high) => FieldMatch::Range {
                low: low.into(),
                high: high.into(),
            },
        };
        [
            exact(self.in_port.into()),
            exact(self.metadata),
            exact(self.eth_src),
            exact(self.eth_dst),
            exact(self.eth_type.into()),
            exact(self.vlan.into()),
            FieldMatch::Any,
            exact(self.mpls_label.into()),
            FieldMatch::Any,
            prefix(self.src),
            prefix(self.dst),
            exact(self.proto.into()),
            FieldMatch::Any,
            range(self.sport),
            range(self.dport),
        ]
    }

    /// Returns a sort key, the weighted number of exact bits; ranges count by their
    /// size. A rule that covers another rule has the smaller key.
    fn bits(&self) -> u32 {
        let exact = |value: u64, width: u32| if value == 0 { 0 } else { width };
        let port = |(low, high): (u16, u16)| u32::from(u16::MAX - (high - low));
        // A port's bits would be a logarithm, but the size distinguishes more ranges.
        // So the weight of every other bit exceeds the weight of both ranges.
        let whole = exact(self.in_port.into(), 32)
            + exact(self.metadata, 64)
            + exact(self.eth_src, 48)
            + exact(self.eth_dst, 48)
            + exact(self.eth_type.into(), 16)
            + exact(self.vlan.into(), 12)
            + exact(self.mpls_label.into(), 20)
            + u32::from(self.src.1)
            + u32::from(self.dst.1)
            + exact(self.proto.into(), 8);
        whole * (1 << 17) + port(self.sport) + port(self.dport)
    }
}

/// Returns the first `length` bits of an address.
fn network(address: u32, length: u8) -> (u32, u8) {
    let shift = 32 - u32::from(length);
    let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
    (address & mask, length)
}

/// A host behind a switch.
#[derive(Clone, Copy)]
struct Host {
    mac: u64,
    vlan: u16,
    port: u32,
    address: u32,
}

/// Draws rules.
struct Maker {
    draw: Draw,
    vendors: Vec<u64>,
    vlans: usize,
    routers: Vec<u64>,
    router: Choice,
    lengths: Choice,
    services: Choice,
    groups: Vec<(u32, u8)>,
    next_host: u64,
}

impl Maker {
    fn new(table: FlowTable, config: &GeneratorConfig) -> Maker {
        let mut draw = Draw::new(config.seed, table.name());
        // Individual, universally administered addresses.
        let vendors = (0..VENDOR_COUNT).map(|_| (draw.bits() & 0xfc_ffff).max(1) << 24);
        let vendors = vendors.collect();
        let routers = (config.rules / ROUTER_ROUTES).clamp(1, MAX_ROUTERS);
        let numbers = 1..=u64::try_from(routers).expect("a few");
        let weight = |router: usize| if router == 0 { routers as f64 } else { 1.0 };
        let groups = (config.rules / GROUP_RULES).max(4);
        let groups = (0..groups).map(|_| group(&mut draw)).collect();
        let shares = |shares: &[u32]| {
            Choice::new(shares.iter().copied().map(f64::from)).expect("some are above 0")
        };
        Maker {
            vendors,
            vlans: (config.rules / VLAN_HOSTS).clamp(1, MAX_VLANS),
            routers: numbers.collect(),
            router: Choice::new((0..routers).map(weight)).expect("all are above 0"),
            lengths: shares(&ROUTE_LENGTHS.map(|(_, share)| share)),
            services: shares(&SERVICES.map(|(_, _, _, share)| share)),
            groups,
            next_host: draw.bits() & 0xff_ffff,
            draw,
        }
    }

    fn flow(&mut self, table: FlowTable) -> Flow {
        match table {
            FlowTable::L2 => self.learned(),
            FlowTable::L3 => self.route(),
            FlowTable::Acl => self.access(),
            FlowTable::Mixed => match self.draw.below(20) {
                0..6 => self.learned(),
                6..11 => self.routed(),
                11..16 => self.access(),
                16..18 => self.reactive(),
                18 => self.label(),
                _ => self.arp(),
            },
        }
    }

    /// Draws the next host of a random vendor.
    fn host(&mut self) -> Host {
        self.next_host = (self.next_host + 1 + self.draw.bits() % 7) & 0xff_ffff;
        let vendor = *self.draw.of(&self.vendors);
        let vlan = self.draw.below(self.vlans);
        let inside = self.draw.bits();
        Host {
            mac: vendor | self.next_host,
            vlan: u16::try_from(1 + vlan).expect("twelve bits"),
            port: self.port(),
            // Each VLAN has a network 10.x.x.0/20.
            address: 10 << 24 | (low(vlan as u64) & 0xfff) << 12 | low(inside) & 0xfff,
        }
    }

    fn port(&mut self) -> u32 {
        u32::try_from(1 + self.draw.below(MAX_PORTS)).expect("a few")
    }

    /// Draws a rule that a learning switch writes for a host; a few rules are for a
    /// VLAN.
    fn learned(&mut self) -> Flow {
        let host = self.host();
        let to_host = Flow {
            vlan: host.vlan,
            eth_dst: host.mac,
            ..ANY
        };
        match self.draw.below(100) {
            0 => Flow {
                eth_dst: BROADCAST_MAC,
                ..to_host
            },
            1 => Flow {
                in_port: host.port,
                vlan: host.vlan,
                ..ANY
            },
            2..20 => Flow {
                in_port: host.port,
                vlan: host.vlan,
                eth_src: host.mac,
                ..ANY
            },
            _ => to_host,
        }
    }

    /// Draws a route of a virtual router.
    fn route(&mut self) -> Flow {
        let metadata = self.routers[self.router.draw(&mut self.draw)];
        let dst = self.prefix();
        Flow {
            metadata,
            eth_type: ETH_TYPE_IPV4,
            dst,
            ..ANY
        }
    }

    /// Draws the prefix of a route, sometimes the prefix of length 0.
    fn prefix(&mut self) -> (u32, u8) {
        let address = low(self.draw.bits());
        match self.draw.below(1000) {
            0 => (0, 0),
            1..200 => network(10 << 24 | address >> 8, 32),
            _ => {
                let (length, _) = ROUTE_LENGTHS[self.lengths.draw(&mut self.draw)];
                network(unicast(address), length)
            }
        }
    }

    /// Draws a route of a switch that also routes: for frames to the switch's own
    /// address.
    fn routed(&mut self) -> Flow {
        let vlan = 1 + self.draw.below(self.vlans);
        Flow {
            vlan: u16::try_from(vlan).expect("twelve bits"),
            eth_dst: self.vendors[0] | 1 << 23,
            eth_type: ETH_TYPE_IPV4,
            dst: self.prefix(),
            ..ANY
        }
    }

    /// Draws a rule of an access list.
    fn access(&mut self) -> Flow {
        let src = *self.draw.of(&self.groups);
        let dst = *self.draw.of(&self.groups);
        let (proto, low, high, _) = SERVICES[self.services.draw(&mut self.draw)];
        let between = Flow {
            eth_type: ETH_TYPE_IPV4,
            src,
            dst,
            ..ANY
        };
        let to_service = Flow {
            proto,
            dport: (low, high),
            ..between
        };
        match self.draw.below(100) {
            0..55 => to_service,
            // From anywhere to a service; below, the replies of a service.
            55..70 => Flow {
                src: (0, 0),
                ..to_service
            },
            70..78 => Flow {
                proto,
                sport: (low, high),
                ..between
            },
            78..84 => Flow {
                sport: (1024, u16::MAX),
                ..to_service
            },
            84..90 => Flow {
                proto: PROTO_ICMP,
                ..between
            },
            90..95 => Flow { proto, ..between },
            _ => between,
        }
    }

    /// Draws a flow that a controller added for the first packet of a connection.
    fn reactive(&mut self) -> Flow {
        let (from, to) = (self.host(), self.host());
        match self.draw.coin() {
            true => Flow {
                in_port: from.port,
                vlan: from.vlan,
                eth_src: from.mac,
                eth_dst: to.mac,
                ..ANY
            },
            false => {
                let (proto, port, _, _) = SERVICES[self.services.draw(&mut self.draw)];
                Flow {
                    in_port: from.port,
                    eth_type: ETH_TYPE_IPV4,
                    src: network(from.address, 32),
                    dst: network(to.address, 32),
                    proto,
                    dport: (port, port),
                    ..ANY
                }
            }
        }
    }

    /// Draws a rule for a switched label. The first sixteen labels are reserved.
    fn label(&mut self) -> Flow {
        let label = 16 + self.draw.below((1 << 20) - 16);
        Flow {
            eth_type: ETH_TYPE_MPLS,
            mpls_label: u32::try_from(label).expect("twenty bits"),
            ..ANY
        }
    }

    /// Draws a rule for ARP packets of a host, or for all ARP packets from a port.
    fn arp(&mut self) -> Flow {
        let host = self.host();
        let arp = Flow {
            eth_type: ETH_TYPE_ARP,
            vlan: host.vlan,
            ..ANY
        };
        match self.draw.coin() {
            true => Flow {
                in_port: host.port,
                ..arp
            },
            false => Flow {
                eth_src: host.mac,
                ..arp
            },
        }
    }
}

/// Draws a group of an access list: a network or a host, half of them in private
/// networks.
fn group(draw: &mut Draw) -> (u32, u8) {
    let address = low(draw.bits());
    let length = *draw.of(&[16, 20, 22, 24, 24, 24, 24, 26, 28, 32, 32, 32]);
    match draw.coin() {
        true => network(10 << 24 | address >> 8, length),
        false => network(unicast(address), length),
    }
}

/// Returns an address of classes A to C outside of 0.0.0.0/8.
fn unicast(address: u32) -> u32 {
    let first = 1 + (address >> 24) % 223;
    first << 24 | address & 0xff_ffff
}

/// Returns the low half of random bits.
#[allow(clippy::cast_possible_truncation)] // that is what it is for
fn low(bits: u64) -> u32 {
    bits as u32
}
