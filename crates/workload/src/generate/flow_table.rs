//! Rules over the fifteen fields of OpenFlow that are like those of real flow
//! tables.
//!
//! # Idea
//! [`OpenFlowRules`](super::OpenFlowRules) fills fifteen fields at random, as
//! [DEC14] does. Rules of real flow tables use two to six fields, and most rules
//! of a table use the same ones, because one application writes them: a switch
//! that learns addresses, a router, a firewall. These tables are made here.
//!
//! | table | rules | fields of a rule |
//! |---|---|---|
//! | [`FlowTable::L2`] | forwarding to learned addresses: `vlan_vid`, `eth_dst`; every fifth: `in_port`, `vlan_vid`, `eth_src`; what is flooded | 2 or 3 |
//! | [`FlowTable::L3`] | routes of virtual routers: `metadata` (the router), `eth_type`, `dst` | 2 or 3 |
//! | [`FlowTable::Acl`] | an access list: `eth_type`, `src`, `dst`, `proto`, `sport`, `dport`, of which most have four or five | 3 to 6 |
//! | [`FlowTable::Mixed`] | the single table of a switch that does all of that: access list, routed and switched traffic, MPLS, ARP, reactive flows of six fields | 2 to 6 |
//!
//! # What the figures are like
//! They are ours, in the style of public descriptions; no operator's table was
//! measured.
//! * Ethernet addresses have one of 24 vendors' prefixes, hosts of a vendor
//!   follow each other with gaps. About 250 hosts share a VLAN.
//! * Route lengths are spread as in the Internet's routing table: three in five
//!   are /24, most others /16 to /23; in a virtual router every fifth is a host's
//!   /32. There are 1 to 64 virtual routers, the first has half of the routes.
//! * An access list is between groups: networks of /16 to /28 and hosts, a
//!   thirtieth as many as rules, times a few dozen services of which HTTPS is the
//!   most common. Every eighth port is a range.
//!
//! # What is promised
//! Rules keep OpenFlow's prerequisites: IP fields come with `eth_type` 0x0800,
//! ports with TCP or UDP, labels with `eth_type` 0x8847. No rule stands behind
//! one that covers it: rules that name more bits come first.
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
    /// All of these and more in one table.
    Mixed,
}

impl FlowTable {
    /// All of them.
    pub const ALL: [FlowTable; 4] = [
        FlowTable::L2,
        FlowTable::L3,
        FlowTable::Acl,
        FlowTable::Mixed,
    ];

    /// The name on command lines, which list it among the profiles.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FlowTable::L2 => "of-l2",
            FlowTable::L3 => "of-l3",
            FlowTable::Acl => "of-acl",
            FlowTable::Mixed => "of-mixed",
        }
    }

    /// What the rules are like, in a few words.
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

    /// The table of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<FlowTable> {
        FlowTable::ALL
            .into_iter()
            .find(|table| table.name() == name)
    }

    /// Distinct rules, fewer than wanted when there are no more, from specific to
    /// general.
    pub(super) fn generate(
        self,
        config: &GeneratorConfig,
        progress: &mut dyn Progress,
    ) -> Result<impl ExactSizeIterator<Item = [FieldMatch; 15]> + use<>, GenerateError> {
        let mut maker = Maker::new(self, config);
        let mut steps = Steps::new("drawing rules", config.rules, progress);
        let mut seen: Seen<Flow> = Seen::default();
        let mut flows: Vec<Flow> = Vec::with_capacity(config.rules);
        let mut tries = config.rules.saturating_mul(TRIES);
        while flows.len() < config.rules && tries > 0 {
            tries -= 1;
            let flow = maker.flow(self);
            if seen.insert(flow) {
                flows.push(flow);
                steps.advance(1)?;
            }
        }
        // Stable: rules of as many bits keep the order in which they came.
        flows.sort_by_key(|flow| Reverse(flow.bits()));
        Ok(flows.into_iter().map(|flow| flow.matches()))
    }
}

/// The most rules that are drawn for each one wanted.
const TRIES: usize = 50;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const MPLS: u16 = 0x8847;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const BROADCAST: u64 = (1 << 48) - 1;

/// The usual VLAN numbers: 1 to this.
const VLANS: usize = 4094;
/// Hosts of a VLAN, on average.
const VLAN_HOSTS: usize = 250;
/// Access ports of a switch at most.
const PORTS: usize = 48;
/// Vendors' prefixes of Ethernet addresses.
const VENDORS: usize = 24;
/// Routes for each virtual router, and the most of these.
const ROUTER_ROUTES: usize = 250;
const ROUTERS: usize = 64;
/// Rules of an access list for each group of addresses.
const GROUP_RULES: usize = 30;

/// The share of routes of each prefix length, in thousandths: those of the
/// Internet's table, rounded.
const LENGTHS: [(u8, u32); 17] = [
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

/// Services of an access list with their weights.
const SERVICES: [(u8, u16, u16, u32); 24] = [
    (TCP, 443, 443, 30),
    (TCP, 80, 80, 15),
    (TCP, 22, 22, 10),
    (UDP, 53, 53, 8),
    (TCP, 53, 53, 3),
    (TCP, 25, 25, 3),
    (TCP, 3306, 3306, 4),
    (TCP, 5432, 5432, 4),
    (TCP, 6379, 6379, 3),
    (TCP, 8080, 8080, 4),
    (TCP, 8443, 8443, 3),
    (TCP, 3389, 3389, 3),
    (TCP, 1433, 1433, 2),
    (TCP, 389, 389, 2),
    (TCP, 636, 636, 2),
    (UDP, 123, 123, 3),
    (UDP, 161, 162, 2),
    (UDP, 514, 514, 2),
    (TCP, 137, 139, 2),
    (TCP, 8000, 8099, 2),
    (TCP, 1024, 65_535, 3),
    (UDP, 1024, 65_535, 2),
    (TCP, 30_000, 32_767, 2),
    (UDP, 33_434, 33_534, 1),
];

/// A rule. What is 0 is a wildcard, and so are addresses of length 0 and all
/// ports. A million of them are 64 MB; the matches of fifteen fields are 700.
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

/// A rule for everything.
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

    /// Less than that of a rule that it covers and is not: the bits that it
    /// names, of ranges by their size.
    fn bits(&self) -> u32 {
        let exact = |value: u64, width: u32| if value == 0 { 0 } else { width };
        let port = |(low, high): (u16, u16)| u32::from(u16::MAX - (high - low));
        // A port's bits are a logarithm; the size itself tells more ranges
        // apart. So all other bits weigh more than both ranges can.
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

/// The first bits of an address.
fn network(address: u32, length: u8) -> (u32, u8) {
    let shift = 32 - u32::from(length);
    let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
    (address & mask, length)
}

/// A host that a switch has seen.
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
        let vendors = (0..VENDORS).map(|_| (draw.bits() & 0xfc_ffff).max(1) << 24);
        let vendors = vendors.collect();
        let routers = (config.rules / ROUTER_ROUTES).clamp(1, ROUTERS);
        let numbers = 1..=u64::try_from(routers).expect("a few");
        let weight = |router: usize| if router == 0 { routers as f64 } else { 1.0 };
        let groups = (config.rules / GROUP_RULES).max(4);
        let groups = (0..groups).map(|_| group(&mut draw)).collect();
        let shares = |shares: &[u32]| {
            Choice::new(shares.iter().copied().map(f64::from)).expect("some are above 0")
        };
        Maker {
            vendors,
            vlans: (config.rules / VLAN_HOSTS).clamp(1, VLANS),
            routers: numbers.collect(),
            router: Choice::new((0..routers).map(weight)).expect("all are above 0"),
            lengths: shares(&LENGTHS.map(|(_, share)| share)),
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

    /// The next host of some vendor.
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
        u32::try_from(1 + self.draw.below(PORTS)).expect("a few")
    }

    /// What a learning switch writes for a host, and a few rules for a VLAN.
    fn learned(&mut self) -> Flow {
        let host = self.host();
        let to = Flow {
            vlan: host.vlan,
            eth_dst: host.mac,
            ..ANY
        };
        match self.draw.below(100) {
            0 => Flow {
                eth_dst: BROADCAST,
                ..to
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
            _ => to,
        }
    }

    /// A route of a virtual router.
    fn route(&mut self) -> Flow {
        let metadata = self.routers[self.router.draw(&mut self.draw)];
        let dst = self.prefix();
        Flow {
            metadata,
            eth_type: IPV4,
            dst,
            ..ANY
        }
    }

    /// The prefix of a route, sometimes that for everything.
    fn prefix(&mut self) -> (u32, u8) {
        let address = low(self.draw.bits());
        match self.draw.below(1000) {
            0 => (0, 0),
            1..200 => network(10 << 24 | address >> 8, 32),
            _ => {
                let (length, _) = LENGTHS[self.lengths.draw(&mut self.draw)];
                network(unicast(address), length)
            }
        }
    }

    /// A route of a switch that is a router too: for frames to its own address.
    fn routed(&mut self) -> Flow {
        let vlan = 1 + self.draw.below(self.vlans);
        Flow {
            vlan: u16::try_from(vlan).expect("twelve bits"),
            eth_dst: self.vendors[0] | 1 << 23,
            eth_type: IPV4,
            dst: self.prefix(),
            ..ANY
        }
    }

    /// A rule of an access list.
    fn access(&mut self) -> Flow {
        let src = *self.draw.of(&self.groups);
        let dst = *self.draw.of(&self.groups);
        let (proto, low, high, _) = SERVICES[self.services.draw(&mut self.draw)];
        let between = Flow {
            eth_type: IPV4,
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
            // From anywhere to a service, and answers of one.
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
                proto: ICMP,
                ..between
            },
            90..95 => Flow { proto, ..between },
            _ => between,
        }
    }

    /// A flow that a controller added for the first packet of a connection.
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
                    eth_type: IPV4,
                    src: network(from.address, 32),
                    dst: network(to.address, 32),
                    proto,
                    dport: (port, port),
                    ..ANY
                }
            }
        }
    }

    /// A label that is switched. The first sixteen are reserved.
    fn label(&mut self) -> Flow {
        let label = 16 + self.draw.below((1 << 20) - 16);
        Flow {
            eth_type: MPLS,
            mpls_label: u32::try_from(label).expect("twenty bits"),
            ..ANY
        }
    }

    /// Requests for a host's Ethernet address, or all from a port.
    fn arp(&mut self) -> Flow {
        let host = self.host();
        let arp = Flow {
            eth_type: ARP,
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

/// A group of an access list: a network or a host, of which half are in private
/// networks.
fn group(draw: &mut Draw) -> (u32, u8) {
    let address = low(draw.bits());
    let length = *draw.of(&[16, 20, 22, 24, 24, 24, 24, 26, 28, 32, 32, 32]);
    match draw.coin() {
        true => network(10 << 24 | address >> 8, length),
        false => network(unicast(address), length),
    }
}

/// An address of classes A to C, not in 0.0.0.0/8.
fn unicast(address: u32) -> u32 {
    let first = 1 + (address >> 24) % 223;
    first << 24 | address & 0xff_ffff
}

/// The low half of random bits.
#[allow(clippy::cast_possible_truncation)] // that is what it is for
fn low(bits: u64) -> u32 {
    bits as u32
}
