//! Flows of Open vSwitch, as `ovs-ofctl dump-flows` prints and `add-flows`
//! takes them.
//!
//! ```text
//! priority=200,tcp,in_port=3,nw_src=10.0.0.0/8,tp_dst=443 actions=output:2
//!  cookie=0x0, duration=3.1s, table=0, n_packets=7, priority=100,ip actions=NORMAL
//! priority=0,actions=drop
//! ```
//!
//! # Meaning
//!
//! The highest priority wins; a flow without one has 32768. OpenFlow leaves
//! open which of two overlapping flows of equal priority wins; here it is the
//! first line. A rule's id is its number in the file, its action the text behind
//! `actions=`.
//!
//! Fields go where the schema has one for them: `openflow15` unless another is
//! asked for; for five-tuples the Ethernet type picks the family and there is no
//! place for the fields below IP. A flow that demands a field for which the
//! schema has no place is an error, as is a mask where the schema takes one
//! value (`dl_src` in `openflow15`): dropping it would change decisions. Ports
//! and addresses take any mask, such as `tp_dst=0x1/0x11`. So is a field without what it
//! needs (`tp_dst` without `tcp`, `udp` or `sctp`; `nw_src` without `ip`), which
//! switches ignore or refuse.
//!
//! | in flows | in schemas |
//! |---|---|
//! | `in_port`, a number or a reserved name such as `LOCAL` | `in_port` |
//! | `metadata`, with a mask | `metadata` |
//! | `dl_src`, `dl_dst`, `eth_src`, `eth_dst`, with a mask | `eth_src`, `eth_dst` |
//! | `dl_type`, `eth_type`, `ip`, `ipv6`, `arp`, `rarp`, `mpls`, `mplsm` | `eth_type` |
//! | `dl_vlan`, `vlan_vid` (with 0x1000), `vlan_tci` (of tagged packets) | `vlan_vid` |
//! | `dl_vlan_pcp`, `vlan_pcp`, `vlan_tci` | `vlan_pcp` |
//! | `mpls_label`, `mpls_tc` | the same |
//! | `nw_src`, `nw_dst`, `ip_src`, `ip_dst`, with `/24` or a mask | `src`, `dst` of 32 bits |
//! | `ipv6_src`, `ipv6_dst`, with `/64` or a mask | `src`, `dst` of 128 bits |
//! | `nw_proto`, `ip_proto`, `tcp`, `udp`, `sctp`, `icmp`, and with a 6 | `proto` |
//! | `nw_tos` (its upper six bits), `ip_dscp` | `ip_dscp` |
//! | `tp_src`, `tp_dst`, `tcp_src`, `udp_dst`, …, with a mask | `sport`, `dport` |
//!
//! Counters and ages are passed over; cookies, timeouts, flags and several
//! tables in one file are passed over and counted in a note. `#` starts a
//! comment anywhere.
//!
//! # Writing
//!
//! OpenFlow has no ranges: each is written as the few masked values that cover
//! it, so a rule may become many flows. A rule that needs an Ethernet type or a
//! protocol by OpenFlow's rules but has none becomes a flow for each that fits.
//! Packets without the header in question are not matched by these, as in
//! OpenFlow, even if a rule would match the zeros that stand for a missing field
//! in keys. All of this is counted in the report, as is whatever is left out.

use std::collections::BTreeSet;

use classyard::policy::{PartId, Policy};
use classyard::{FieldMatch, Priority, Schema};

use super::text::{counted, counted_verb, is_blank, lines, quoted};
use super::{Fault, SchemaChoice, limit_reached, rule_number};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};

mod flow;
mod write;

pub use write::write;

use flow::{Flow, place};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// The priority of a flow that says none.
const DEFAULT_PRIORITY: u32 = 32768;

/// Words that stand for an Ethernet type and perhaps a protocol.
const SHORTHANDS: [(&str, u16, Option<u8>); 14] = [
    ("ip", IPV4, None),
    ("icmp", IPV4, Some(ICMP)),
    ("tcp", IPV4, Some(TCP)),
    ("udp", IPV4, Some(UDP)),
    ("sctp", IPV4, Some(SCTP)),
    ("ipv6", IPV6, None),
    ("icmp6", IPV6, Some(ICMPV6)),
    ("tcp6", IPV6, Some(TCP)),
    ("udp6", IPV6, Some(UDP)),
    ("sctp6", IPV6, Some(SCTP)),
    ("arp", ARP, None),
    ("rarp", RARP, None),
    ("mpls", MPLS, None),
    ("mplsm", MPLS_MULTICAST, None),
];

/// Names of reserved ports.
const PORTS: [(&str, u32); 9] = [
    ("UNSET", 0xffff_fff7),
    ("IN_PORT", 0xffff_fff8),
    ("TABLE", 0xffff_fff9),
    ("NORMAL", 0xffff_fffa),
    ("FLOOD", 0xffff_fffb),
    ("ALL", 0xffff_fffc),
    ("CONTROLLER", 0xffff_fffd),
    ("LOCAL", 0xffff_fffe),
    ("ANY", 0xffff_ffff),
];

/// Whether a line is a flow, or the heading over some.
pub(super) fn looks_like_flow(line: &str) -> bool {
    let starts = |word: &str| word.starts_with("actions=") || word.starts_with("action=");
    is_heading(line) || line.split([',', ' ', '\t']).any(starts)
}

/// `NXST_FLOW reply (xid=0x4):`
fn is_heading(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next().is_some_and(|word| word.ends_with("ST_FLOW")) && words.next() == Some("reply")
}

/// Reads flows; see the [module](self) for the format.
///
/// # Errors
/// [`ReadError`]: the bad lines, or more flows than `options` allow.
pub fn read(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
) -> Result<Loaded<Policy>, ReadError> {
    let default = SchemaChoice::Single(Schema::openflow15());
    let choice = schema.unwrap_or(&default);
    let schemas = choice.schemas();
    let mut policy = choice.policy();
    let mut problems = Problems::new(source);
    let mut ignored = Ignored::default();
    let flows = lines(text)
        .map(|(number, line)| (number, line, line.split('#').next().unwrap_or(line)))
        .filter(|(_, _, said)| !is_blank(said) && !is_heading(said));
    for (index, (number, line, said)) in flows.enumerate() {
        let id = rule_number(source, index, number)?;
        let parsed = Flow::parse(said).and_then(|flow| {
            let parts = place(&flow, &schemas, choice.name())?;
            Ok((flow, parts))
        });
        let (flow, parts) = match parsed {
            Ok(parsed) => parsed,
            Err(fault) => {
                problems.push(fault.at(number, line));
                continue;
            }
        };
        if policy.len() >= options.limit {
            return Err(limit_reached(source, number, options, "rules"));
        }
        let action = policy.action(flow.action);
        let parts: Vec<(PartId, &[FieldMatch])> = parts
            .iter()
            .map(|(part, matches)| (*part, matches.as_slice()))
            .collect();
        match policy.add(id, Priority(flow.priority), action, &parts) {
            Ok(()) => ignored.count(&flow),
            Err(error) => {
                let fault = Fault::new(said.trim(), error.to_string(), "a flow");
                problems.push(fault.at(number, line));
            }
        }
    }
    let mut loaded = problems.beside(policy.len()).finish(policy, options)?;
    loaded.notes = ignored.notes();
    Ok(loaded)
}

/// What flows say that rules cannot.
#[derive(Default)]
struct Ignored {
    tables: BTreeSet<u32>,
    cookies: usize,
    timeouts: usize,
    flags: usize,
    low_tos_bits: usize,
}

impl Ignored {
    fn count(&mut self, flow: &Flow<'_>) {
        self.tables.insert(flow.table);
        self.cookies += usize::from(flow.cookie);
        self.timeouts += usize::from(flow.timeout);
        self.flags += usize::from(flow.flags);
        self.low_tos_bits += usize::from(flow.low_tos_bits);
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.tables.len() > 1 {
            notes.push(format!(
                "the flows of {} stand in one list; jumps from table to table are not followed",
                counted(self.tables.len(), "table")
            ));
        }
        let counts = [
            (self.cookies, "a cookie"),
            (self.timeouts, "a timeout"),
            (self.flags, "flags"),
            (self.low_tos_bits, "a nw_tos with bits below the DSCP"),
        ];
        for (count, what) in counts {
            if count > 0 {
                let flows = counted_verb(count, "flow", "has", "have");
                notes.push(format!("{flows} {what}; ignored"));
            }
        }
        notes
    }
}
