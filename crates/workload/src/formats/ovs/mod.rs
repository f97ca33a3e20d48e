//! Flows of Open vSwitch, as `ovs-ofctl dump-flows` prints them and `add-flows` reads them.
//!
//! ```text
//! priority=200,tcp,in_port=3,nw_src=10.0.0.0/8,tp_dst=443 actions=output:2
//!  cookie=0x0, duration=3.1s, table=0, n_packets=7, priority=100,ip actions=NORMAL
//! priority=0,actions=drop
//! ```
//!
//! # Meaning
//!
//! The highest priority wins; a flow without a priority has 32768. OpenFlow does not
//! define which of two overlapping flows of equal priority wins; this reader lets the
//! first line win. A rule's id is its number in the file, and its action is the text
//! after `actions=`.
//!
//! All rules are of one table: a switch finds the best flow of a table, then the best
//! flow of the table to which that flow jumps. So a file with flows of several tables is
//! refused, unless [`ReadOptions::table`] selects a table. A flow without a table is in
//! table 0. Of a line of another table, only the table is read. Such lines are counted in
//! a note and keep their numbers. A line with an unreadable table is a bad line. Jumps
//! (`resubmit`, `goto_table`) are not followed; a note counts them.
//!
//! The caller may give the schema. Otherwise a comment `# schema NAME` above the first
//! flow gives it. Without such a comment, the schema is `dual-5tuple` if a flow has IPv6
//! addresses and no flow has a field that five-tuples lack, otherwise `openflow15`. For
//! five-tuples the Ethernet type selects the family, and fields below IP do not exist.
//!
//! These are errors, because ignoring them would change decisions: a flow with a field
//! that the schema lacks, and a mask where the schema requires an exact value (`dl_src` in
//! `openflow15`). Ports and addresses may have any mask, such as `tp_dst=0x1/0x11`. A
//! field without its protocol (`tp_dst` without `tcp`, `udp` or `sctp`; `nw_src` without
//! `ip`) is also an error; switches ignore or refuse it.
//!
//! In schemas with a field for the Ethernet type, the type and code of ICMP are in
//! `sport` and `dport`. For five-tuples, ICMP packets have ports 0, so flows that match a
//! type or code are refused. No schema has a field for `arp_sha`, `arp_tha` or the fields
//! of neighbour discovery.
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
//! In packets without a VLAN tag, the fields of the tag are 0. So schemas cannot
//! distinguish such packets from packets with a tag of zeros. A flow that does is
//! refused: `dl_vlan=0`, `dl_vlan_pcp=0` without a number, `vlan_tci=0`. A rule with
//! `vlan_vid=0` is written as `vlan_tci=0/0x0fff`: the number 0, with or without a tag.
//!
//! Counters and ages are ignored. Cookies, timeouts and flags are ignored and counted in a
//! note. So are groups, meters and tables, which rules cannot express. Named ports get
//! numbers, which a note lists. `#` starts a comment anywhere. The syntax is
//! [`classyard_text::ofctl`], as for pipelines.
//!
//! # Writing
//!
//! OpenFlow has no ranges. A range is written as the fewest masked values that cover it, so
//! a rule may become many flows. The type and code of ICMP cannot have a mask and are
//! written value by value. Fields that packets lack are 0. So a condition that all packets
//! of a kind meet is not written: `sport` of 0 to 1023 for ICMP, or a port of 0 for a
//! protocol without ports.
//!
//! If OpenFlow requires an Ethernet type or protocol and the rule has none, the rule
//! becomes one flow for each type or protocol that fits. Rules that flows cannot express
//! are lost, and the report lists each of them: masks on fields that require an exact
//! value, IP fields behind MPLS labels, rules that match no packet, rules that would
//! become more than 65,536 flows. A rule without an Ethernet type is written only in part
//! in two cases: if it matches packets with IP behind labels, or if it matches packets of
//! other types because the fields that they lack are 0.

use std::collections::BTreeMap;

use std::sync::Arc;

use classyard::policy::{PartId, Policy};
use classyard::{FieldMatch, Priority, RuleId, Schema};
use classyard_text::ofctl::{
    FlowFlags, FlowLine, PortNames, Statement, StatementKind, is_heading, statements,
};
use classyard_text::overlap::{self, Condition};

use super::text::{counted_verb, quoted};
use super::{Fault, SchemaChoice, limit_reached, line_number, rule_number};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions, list_tables};

mod place;
mod schema;
mod write;

pub use write::write;

use place::place;

const ETH_IPV4: u16 = 0x0800;
const ETH_IPV6: u16 = 0x86dd;
const ETH_ARP: u16 = 0x0806;
const ETH_RARP: u16 = 0x8035;
const ETH_MPLS: u16 = 0x8847;
const ETH_MPLS_MULTICAST: u16 = 0x8848;

const PROTO_ICMP: u8 = 1;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;
const PROTO_ICMPV6: u8 = 58;
const PROTO_SCTP: u8 = 132;

/// True if a line is a flow, a group, a meter or a table's configuration, or the
/// heading of a reply.
pub(super) fn looks_like_flow(line: &str) -> bool {
    let starts = |word: &str| word.starts_with("actions=") || word.starts_with("action=");
    let statements = ["group_id=", "meter=", "table_id="];
    is_heading(line)
        || statements
            .iter()
            .any(|key| line.trim_start().starts_with(key))
        || line.split([',', ' ', '\t']).any(starts)
}

/// Reads flows; see the [module](self) for the format.
///
/// # Errors
/// [`ReadError`]: the bad lines, flows of several tables, no flow of the requested table,
/// or more flows than `options` allow.
pub fn read(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
) -> Result<Loaded<Policy>, ReadError> {
    let implied;
    let choice = match schema {
        Some(choice) => choice,
        None => {
            implied = schema::of(text);
            &implied
        }
    };
    let flows = statements(text).filter(|s| s.kind == StatementKind::Flow);
    let tables = Tables::of(flows.clone());
    tables.check(source, options.table)?;
    let mut reader = Reader {
        schemas: choice.schemas(),
        name: choice.name(),
        policy: choice.policy(),
        lines: Vec::new(),
        ports: PortNames::of(text),
        ignored: Ignored::of(text),
    };
    let mut problems = Problems::new(source);
    for (index, statement) in flows.enumerate() {
        let id = rule_number(source, index, statement.number)?;
        let requested = options.table;
        let table = requested.and_then(|_| FlowLine::table_of(statement.text));
        if table.is_some_and(|table| Some(table) != requested) {
            continue;
        }
        let flow = match reader.flow(&statement) {
            Ok(flow) => flow,
            Err(fault) => {
                problems.push_fault(fault, statement.number, statement.lines);
                continue;
            }
        };
        if reader.policy.len() >= options.limit {
            return Err(limit_reached(source, statement.number, options, "rules"));
        }
        if let Err(fault) = reader.add(id, &statement, &flow) {
            problems.push_fault(fault, statement.number, statement.lines);
        }
    }
    let mut notes = tables.notes(options.table);
    notes.extend(reader.ignored.notes());
    notes.extend(reader.ports.note());
    notes.extend(reader.overlaps());
    let problems = problems.with_good_lines(reader.policy.len());
    let lines = reader.lines.iter();
    let rule_lines = lines.map(|&(_, line)| line_number(line)).collect();
    let mut loaded = options.finish(problems, reader.policy)?;
    loaded.notes = notes;
    loaded.rule_lines = rule_lines;
    Ok(loaded)
}

/// A flow, and its matches in each part of the policy that it belongs to.
struct Placed<'t> {
    flow: FlowLine<'t>,
    parts: Vec<(PartId, Vec<FieldMatch>)>,
}

/// The state of reading a file.
struct Reader<'t> {
    schemas: Vec<Arc<Schema>>,
    name: &'t str,
    policy: Policy,
    /// The line number of each rule.
    lines: Vec<(RuleId, usize)>,
    ports: PortNames<'t>,
    ignored: Ignored,
}

impl<'t> Reader<'t> {
    fn flow(&mut self, statement: &Statement<'t>) -> Result<Placed<'t>, Fault<'t>> {
        let flow = FlowLine::parse(statement.text, &mut self.ports)?;
        if has_action(flow.actions, &PARTS_OF_MATCHES) {
            return Err(Fault::unsupported(
                flow.actions,
                "unsupported action `conjunction`",
                "flows that decide by themselves: a conjunction needs several flows to match",
            ));
        }
        let parts = place(&flow, &self.schemas, self.name)?;
        Ok(Placed { flow, parts })
    }

    fn add(
        &mut self,
        id: RuleId,
        statement: &Statement<'t>,
        placed: &Placed<'t>,
    ) -> Result<(), Fault<'t>> {
        let flow = &placed.flow;
        let action = self.policy.declare_action(flow.actions);
        let parts = placed.parts.iter();
        let parts: Vec<(PartId, &[FieldMatch])> = parts
            .map(|(part, matches)| (*part, matches.as_slice()))
            .collect();
        let priority = Priority(flow.priority.into());
        let added = self.policy.add(id, priority, action, &parts);
        added.map_err(|error| Fault::new(statement.text, error.to_string(), "a flow"))?;
        self.ignored.count(flow);
        self.lines.push((id, statement.number));
        Ok(())
    }

    /// Returns a note on overlapping flows of equal priority.
    fn overlaps(&self) -> Option<String> {
        let policy = &self.policy;
        let ids = policy.ids().iter().flat_map(|&id| {
            policy.rule(id).map(move |(part, rule)| {
                let part = u64::try_from(part.index()).unwrap_or(u64::MAX);
                (part << 32 | u64::from(rule.priority().0), (id, part))
            })
        });
        let overlaps = overlap::find(ids, |(id, part_number), conditions| {
            for (part, rule) in policy.rule(id) {
                if u64::try_from(part.index()) != Ok(part_number) {
                    continue;
                }
                let words = rule.value().iter().zip(rule.mask()).enumerate();
                conditions.extend(words.filter(|(_, (_, mask))| **mask != 0).map(
                    |(field, (&value, &mask))| Condition {
                        field,
                        value: u128::from(value & mask),
                        mask: u128::from(mask),
                    },
                ));
            }
        });
        overlaps.note(|(id, _)| {
            let index = self.lines.partition_point(|&(line_id, _)| line_id < id);
            self.lines.get(index).map_or(0, |&(_, line)| line)
        })
    }
}

/// The tables of a file, each with its number of flows and the line of its first flow.
struct Tables(BTreeMap<u8, (usize, usize)>);

impl Tables {
    /// Counts the flows of each table. Lines with an unreadable table are not counted; the
    /// reader of flows reports them.
    fn of<'t>(flows: impl Iterator<Item = Statement<'t>>) -> Tables {
        let mut tables = BTreeMap::new();
        for statement in flows {
            if let Some(table) = FlowLine::table_of(statement.text) {
                tables.entry(table).or_insert((0, statement.number)).0 += 1;
            }
        }
        Tables(tables)
    }

    fn counts(&self, except: Option<u8>) -> Vec<(u8, usize)> {
        let tables = self.0.iter().filter(|(table, _)| Some(**table) != except);
        tables.map(|(table, (count, _))| (*table, *count)).collect()
    }

    /// Checks that the requested table exists or, without a request, that there is only one.
    fn check(&self, source: &str, requested: Option<u8>) -> Result<(), ReadError> {
        let file = source.to_owned();
        match requested {
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

    fn notes(&self, requested: Option<u8>) -> Vec<String> {
        let other_tables = self.counts(requested);
        let flows: usize = other_tables.iter().map(|(_, count)| count).sum();
        let left_out = (requested.is_some() && flows > 0).then(|| {
            let flows = if flows == 1 {
                "1 flow of another table was".to_owned()
            } else {
                format!("{flows} flows of other tables were")
            };
            format!("{flows} left out: {}", list_tables(&other_tables))
        });
        left_out.into_iter().collect()
    }
}

/// Actions that are only a part of a match. A flow with such an action makes no decision.
const PARTS_OF_MATCHES: [&str; 1] = ["conjunction"];

/// True if a list of actions has an action whose name is in `names`.
fn has_action(actions: &str, names: &[&str]) -> bool {
    let mut words = actions.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
}

/// The numbers of flows and statements with properties that rules do not have.
#[derive(Default)]
struct Ignored {
    statements: BTreeMap<&'static str, usize>,
    jumps: usize,
    cookies: usize,
    timeouts: usize,
    flags: usize,
    low_tos_bits: usize,
    stray_bits: usize,
}

impl Ignored {
    /// Counts the statements that are not flows.
    fn of(text: &str) -> Ignored {
        let mut ignored = Ignored::default();
        for statement in statements(text) {
            let noun = match statement.kind {
                StatementKind::Flow => continue,
                StatementKind::Group => "group",
                StatementKind::Meter => "meter",
                StatementKind::Table => "table configuration",
                StatementKind::Port => "port",
            };
            *ignored.statements.entry(noun).or_insert(0) += 1;
        }
        ignored
    }

    fn count(&mut self, flow: &FlowLine<'_>) {
        let stray = |is_tos: bool| {
            let mut stray = flow.demands().iter().filter(|demand| demand.has_stray_bits);
            stray.any(|demand| (demand.key == "nw_tos") == is_tos)
        };
        let has_timeout = flow.idle_timeout != 0 || flow.hard_timeout != 0;
        let has_flags = flow.flags != FlowFlags::default() || flow.importance != 0;
        self.jumps += usize::from(has_action(flow.actions, &["resubmit", "goto_table"]));
        self.cookies += usize::from(flow.cookie != 0);
        self.timeouts += usize::from(has_timeout);
        self.flags += usize::from(has_flags);
        self.low_tos_bits += usize::from(stray(true));
        self.stray_bits += usize::from(stray(false));
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
            (self.stray_bits, "a value with bits outside of its mask"),
        ];
        for (count, property) in counts {
            if count > 0 {
                let flows = counted_verb(count, "flow", "has", "have");
                notes.push(format!("{flows} {property}; ignored"));
            }
        }
        for (noun, count) in &self.statements {
            let counted = counted_verb(*count, noun, "was", "were");
            notes.push(format!("{counted} left out: rules have no place for them"));
        }
        notes
    }
}
