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
//! Rules are those of one table: a switch looks for the best flow of one table,
//! then of the one that this flow jumps to. So a file with flows of several
//! tables is refused, unless [`ReadOptions::table`] says which one to load. A
//! flow that names no table is in table 0. Lines of other tables are not looked
//! at beyond their table and are counted in a note; they keep their numbers. A
//! line whose table cannot be told is a bad line. Jumps (`resubmit`,
//! `goto_table`) are not followed; they are counted in a note, too.
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
//! The type and the code of ICMP stand in `sport` and `dport` of schemas with a
//! field for the Ethernet type. For five-tuples, packets of ICMP have the ports
//! 0, so flows that demand a type or code are refused. No schema has a field for
//! `arp_sha`, `arp_tha` or the fields of neighbour discovery.
//!
//! | in flows | in schemas |
//! |---|---|
//! | `in_port`, a number or a reserved name such as `LOCAL` | `in_port` |
//! | `metadata`, with a mask | `metadata` |
//! | `dl_src`, `dl_dst`, `eth_src`, `eth_dst`, with a mask | `eth_src`, `eth_dst` |
//! | `dl_type`, `eth_type`, `ip`, `ipv6`, `arp`, `rarp`, `mpls`, `mplsm` | `eth_type` |
//! | `dl_vlan`, `vlan_vid` (with 0x1000), `vlan_tci` | `vlan_vid` |
//! | `dl_vlan_pcp`, `vlan_pcp`, `vlan_tci` | `vlan_pcp` |
//! | `mpls_label`, `mpls_tc` | the same |
//! | `nw_src`, `nw_dst`, `ip_src`, `ip_dst`, with `/24` or a mask | `src`, `dst` of 32 bits |
//! | `arp_spa`, `arp_tpa` of `arp` and `rarp`, also as `nw_src`, `nw_dst` | `src`, `dst` of 32 bits |
//! | `arp_op` of `arp` and `rarp`, also as `nw_proto` | `proto` |
//! | `ipv6_src`, `ipv6_dst`, with `/64` or a mask | `src`, `dst` of 128 bits |
//! | `nw_proto`, `ip_proto`, `tcp`, `udp`, `sctp`, `icmp`, and with a 6 | `proto` |
//! | `nw_tos` (its upper six bits), `ip_dscp` | `ip_dscp` |
//! | `tp_src`, `tp_dst`, `tcp_src`, `udp_dst`, …, with a mask | `sport`, `dport` |
//! | `icmp_type`, `icmp_code`, `icmpv6_type`, `icmpv6_code`, also as `tp_src`, `tp_dst` | `sport`, `dport` |
//!
//! Fields of the VLAN tag are 0 in packets without one, so schemas cannot tell
//! them from packets with a tag of zeros. A flow that can is refused: `dl_vlan=0`,
//! `dl_vlan_pcp=0` without a number, `vlan_tci=0`. `vlan_tci=0/0x0fff`, the number
//! 0 with a tag or without, is what `vlan_vid=0` is written as.
//!
//! Counters and ages are passed over; cookies, timeouts and flags are passed
//! over and counted in a note. `#` starts a comment anywhere.
//!
//! # Writing
//!
//! OpenFlow has no ranges: each is written as the few masked values that cover
//! it, so a rule may become many flows. The type and code of ICMP take no mask
//! and are written value by value. A demand that all packets of a kind meet is
//! not written: `sport` of 0 to 1023 for ICMP, or a port of 0 for a protocol
//! without ports, as fields that packets lack are 0.
//!
//! A rule that needs an Ethernet type or a protocol by OpenFlow's rules but has
//! none becomes a flow for each that fits. What flows cannot say is lost, and
//! stands in the report rule by rule: masks on fields that take one value,
//! fields of IP behind MPLS labels, rules that match no packet, rules that would
//! become more than 65,536 flows. A rule without an Ethernet type is said only
//! in part where it matches packets with IP behind labels, or packets of other
//! types by the zeros of the fields that they lack.

use std::collections::BTreeMap;

use classyard::policy::{PartId, Policy};
use classyard::{FieldMatch, Priority, Schema};

use super::text::{counted_verb, is_blank, lines, quoted};
use super::{Fault, SchemaChoice, limit_reached, rule_number};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions, list_tables};

mod flow;
mod write;

pub use write::write;

use flow::{Flow, place, table_of};

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
/// [`ReadError`]: the bad lines, flows of several tables or none of the table
/// that is asked for, or more flows than `options` allow.
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
    let tables = Tables::of(flows.clone().map(|(number, _, said)| (number, said)));
    tables.check(source, options.table)?;
    let elsewhere = |said: &str| {
        let asked = options.table;
        asked.is_some_and(|asked| table_of(said).is_some_and(|table| table != asked))
    };
    for (index, (number, line, said)) in flows.enumerate() {
        let id = rule_number(source, index, number)?;
        if elsewhere(said) {
            continue;
        }
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
    loaded.notes = tables.notes(options.table);
    loaded.notes.extend(ignored.notes());
    Ok(loaded)
}

/// The tables in which flows stand: how many flows, and the first one's line.
struct Tables(BTreeMap<u8, (usize, usize)>);

impl Tables {
    /// Counts. Lines whose table cannot be told are left to the reader of
    /// flows, which finds what is wrong with them.
    fn of<'t>(flows: impl Iterator<Item = (usize, &'t str)>) -> Tables {
        let mut tables = BTreeMap::new();
        for (line, said) in flows {
            if let Some(table) = table_of(said) {
                tables.entry(table).or_insert((0, line)).0 += 1;
            }
        }
        Tables(tables)
    }

    fn counts(&self, except: Option<u8>) -> Vec<(u8, usize)> {
        let tables = self.0.iter().filter(|(table, _)| Some(**table) != except);
        tables.map(|(table, (count, _))| (*table, *count)).collect()
    }

    /// That there is one table to read.
    fn check(&self, source: &str, asked: Option<u8>) -> Result<(), ReadError> {
        let file = source.to_owned();
        match asked {
            Some(table) if !self.0.contains_key(&table) => Err(ReadError::NoSuchTable {
                file,
                table,
                tables: self.counts(None),
            }),
            None if self.0.len() > 1 => {
                let mut firsts: Vec<usize> = self.0.values().map(|(_, line)| *line).collect();
                firsts.sort_unstable();
                Err(ReadError::SeveralTables {
                    file,
                    line: firsts[1],
                    tables: self.counts(None),
                })
            }
            _ => Ok(()),
        }
    }

    fn notes(&self, asked: Option<u8>) -> Vec<String> {
        let others = self.counts(asked);
        let flows: usize = others.iter().map(|(_, count)| count).sum();
        let left_out = (asked.is_some() && flows > 0).then(|| {
            let flows = if flows == 1 {
                "1 flow of another table was".to_owned()
            } else {
                format!("{flows} flows of other tables were")
            };
            format!("{flows} left out: {}", list_tables(&others))
        });
        left_out.into_iter().collect()
    }
}

/// What flows say that rules cannot.
#[derive(Default)]
struct Ignored {
    jumps: usize,
    cookies: usize,
    timeouts: usize,
    flags: usize,
    low_tos_bits: usize,
}

impl Ignored {
    fn count(&mut self, flow: &Flow<'_>) {
        self.jumps += usize::from(flow.jumps);
        self.cookies += usize::from(flow.cookie);
        self.timeouts += usize::from(flow.timeout);
        self.flags += usize::from(flow.flags);
        self.low_tos_bits += usize::from(flow.low_tos_bits);
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.jumps > 0 {
            notes.push(format!(
                "{} to a table (resubmit, goto_table), which is not followed: the action is kept as text",
                counted_verb(self.jumps, "flow", "jumps", "jump")
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
