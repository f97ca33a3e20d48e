//! Rules as flows: ranges become masks, gaps in the protocol stack are filled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::policy::Policy;
use classyard::schema::Field;
use classyard::{FieldMatch, Priority, RuleId, RuleRef, Schema, ValueFormat};

use super::flow::family;
use super::{IPV4, IPV6, MPLS, MPLS_MULTICAST, PORTS, SCTP, SHORTHANDS, TCP, UDP};
use crate::formats::text::{counted, counted_verb, quoted};
use crate::formats::{Effect, RuleFormat, WriteError, WriteReport};

/// The most flows that one rule may become.
const MOST_FLOWS: usize = 1 << 16;

/// The number of priorities of a flow.
const PRIORITIES: usize = 1 << 16;

/// The fields that flows can say, with their widths, and whether they take a
/// mask.
const FIELDS: [(&str, &[u32], bool); 15] = [
    ("in_port", &[32], false),
    ("metadata", &[64], true),
    ("eth_src", &[48], true),
    ("eth_dst", &[48], true),
    ("eth_type", &[16], false),
    ("vlan_vid", &[12], false),
    ("vlan_pcp", &[3], false),
    ("mpls_label", &[20], false),
    ("mpls_tc", &[3], false),
    ("src", &[32, 128], true),
    ("dst", &[32, 128], true),
    ("proto", &[8], false),
    ("ip_dscp", &[6], false),
    ("sport", &[16], true),
    ("dport", &[16], true),
];

/// Words with which an action of Open vSwitch starts.
const ACTIONS: [&str; 48] = [
    "drop",
    "output",
    "normal",
    "flood",
    "all",
    "local",
    "in_port",
    "controller",
    "enqueue",
    "group",
    "resubmit",
    "goto_table",
    "table",
    "set_field",
    "load",
    "move",
    "push",
    "pop",
    "mod_vlan_vid",
    "mod_vlan_pcp",
    "strip_vlan",
    "push_vlan",
    "pop_vlan",
    "push_mpls",
    "pop_mpls",
    "mod_dl_src",
    "mod_dl_dst",
    "mod_nw_src",
    "mod_nw_dst",
    "mod_nw_tos",
    "mod_tp_src",
    "mod_tp_dst",
    "dec_ttl",
    "set_mpls_label",
    "set_mpls_tc",
    "set_queue",
    "pop_queue",
    "ct",
    "ct_clear",
    "nat",
    "learn",
    "conjunction",
    "meter",
    "write_metadata",
    "write_actions",
    "clear_actions",
    "note",
    "bundle",
];

/// Writes a policy over schemas whose fields flows have, such as `openflow15`
/// and the five-tuples.
///
/// # Errors
/// [`WriteError`] for other schemas, for more than 65,536 different
/// priorities, or when writing fails.
pub fn write(policy: &Policy, out: &mut dyn io::Write) -> Result<WriteReport, WriteError> {
    if !policy.schemas().all(|schema| is_sayable(schema)) {
        return Err(WriteError::Schema {
            format: RuleFormat::Ovs,
            schema: policy.name().to_owned(),
            takes: "openflow15, five-tuples, and schemas made of their fields",
        });
    }
    let mut writer = Writer {
        priorities: Priorities::of(policy)?,
        counts: Counts::default(),
        buffer: String::new(),
        report: WriteReport {
            rules: policy.len(),
            ..WriteReport::default()
        },
    };
    let order = order(policy, &mut writer.counts);
    for id in order {
        writer.rule(policy, id);
        if writer.buffer.len() > 1 << 16 {
            out.write_all(writer.buffer.as_bytes())?;
            writer.buffer.clear();
        }
    }
    out.write_all(writer.buffer.as_bytes())?;
    Ok(writer.finish())
}

fn is_sayable(schema: &Schema) -> bool {
    schema.fields().iter().all(|field| {
        let known = FIELDS.iter().find(|(name, ..)| *name == field.name());
        known.is_some_and(|(_, widths, _)| widths.contains(&field.width()))
    }) && address_widths(schema).len() <= 1
}

fn address_widths(schema: &Schema) -> BTreeSet<u32> {
    let addresses = ["src", "dst"]
        .into_iter()
        .filter_map(|name| schema.field_named(name));
    addresses.map(|id| schema.field(id).width()).collect()
}

/// The rules in file order; in the order of winning if that is not the order of
/// ids, as equal priorities are decided by the line.
fn order(policy: &Policy, counts: &mut Counts) -> Vec<RuleId> {
    let mut order = policy.ids().to_vec();
    counts.renumbered = order
        .iter()
        .zip(0..)
        .filter(|(id, i)| id.index() != *i)
        .count();
    if counts.renumbered > 0 {
        let rank = |id: &RuleId| {
            policy
                .rule(*id)
                .next()
                .map(|(_, rule)| rule.winner().rank())
        };
        order.sort_by_key(rank);
    }
    order
}

/// Priorities in the 16 bits that flows have for them.
struct Priorities {
    /// The new number of each, if they do not fit as they are.
    renumbered: Option<BTreeMap<Priority, usize>>,
    /// The rules that share theirs with another.
    shared: usize,
}

impl Priorities {
    fn of(policy: &Policy) -> Result<Priorities, WriteError> {
        let mut rules: BTreeMap<Priority, usize> = BTreeMap::new();
        for &id in policy.ids() {
            if let Some((_, rule)) = policy.rule(id).next() {
                *rules.entry(rule.priority()).or_default() += 1;
            }
        }
        let shared = rules.values().filter(|&&count| count > 1).sum();
        let fits = |priority: &Priority| u16::try_from(priority.0).is_ok();
        let found = rules.len();
        let renumbered = if rules.keys().all(fits) {
            None
        } else if found > PRIORITIES {
            return Err(WriteError::TooManyPriorities {
                format: RuleFormat::Ovs,
                found,
                limit: PRIORITIES,
            });
        } else {
            let first = usize::from(found < PRIORITIES);
            Some(rules.into_keys().zip(first..).collect())
        };
        Ok(Priorities { renumbered, shared })
    }

    fn number(&self, priority: Priority) -> String {
        let new = self.renumbered.as_ref().and_then(|map| map.get(&priority));
        new.map_or_else(|| priority.to_string(), ToString::to_string)
    }
}

/// What became of how many rules.
#[derive(Default)]
struct Counts {
    renumbered: usize,
    named: usize,
    ranges: usize,
    most: usize,
    filled: usize,
    families: usize,
    impossible: usize,
    masks: usize,
    large: usize,
    mended: usize,
    foreign: usize,
    foreign_actions: BTreeSet<String>,
}

/// Why a rule cannot be written.
enum Hindrance {
    /// It demands fields that no packet has together.
    Impossible,
    /// It has a mask where flows have none.
    Mask,
    /// It would become too many flows.
    Large,
}

struct Writer {
    priorities: Priorities,
    counts: Counts,
    buffer: String,
    report: WriteReport,
}

impl Writer {
    fn rule(&mut self, policy: &Policy, id: RuleId) {
        let parts: Vec<_> = policy.rule(id).map(|(_, rule)| rule).collect();
        let Some(first) = parts.first() else { return };
        let mut flows = Vec::new();
        let (mut ranged, mut filled) = (false, false);
        for rule in &parts {
            match Expansion::of(rule) {
                Ok(expansion) => {
                    ranged |= expansion.ranged;
                    filled |= expansion.stacks.len() > 1;
                    expansion.write(rule, &mut flows);
                }
                Err(hindrance) => {
                    *match hindrance {
                        Hindrance::Impossible => &mut self.counts.impossible,
                        Hindrance::Mask => &mut self.counts.masks,
                        Hindrance::Large => &mut self.counts.large,
                    } += 1;
                    return;
                }
            }
        }
        self.counts.ranges += usize::from(ranged);
        if ranged {
            self.counts.most = self.counts.most.max(flows.len());
        }
        self.counts.filled += usize::from(filled);
        self.counts.families += usize::from(parts.len() > 1);
        if let Some(name) = policy.rule_name(id) {
            self.counts.named += 1;
            let name: String = name
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            let _ = writeln!(self.buffer, "# {name}");
        }
        let action = self.action(policy.action_name(first.action()).unwrap_or(""));
        let priority = self.priorities.number(first.priority());
        for flow in &flows {
            // Writing to a String cannot fail.
            let _ = writeln!(self.buffer, "priority={priority}{flow} actions={action}");
        }
        self.report.lines += flows.len();
    }

    /// An action as a flow can hold it.
    fn action(&mut self, name: &str) -> String {
        let mut action: String = name
            .trim()
            .chars()
            .map(|c| if c.is_control() || c == '#' { '_' } else { c })
            .collect();
        if action.is_empty() {
            "drop".clone_into(&mut action);
        }
        self.counts.mended += usize::from(action != name);
        let word = action.split([',', ':', '(', '=', ' ']).next().unwrap_or("");
        let known = ACTIONS.iter().any(|known| word.eq_ignore_ascii_case(known));
        if !known && (word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit())) {
            self.counts.foreign += 1;
            if self.counts.foreign_actions.len() < 5 {
                self.counts.foreign_actions.insert(action.clone());
            }
        }
        action
    }

    fn finish(self) -> WriteReport {
        let Writer {
            mut report,
            counts,
            priorities,
            ..
        } = self;
        let left_out = |count, why: &str| {
            format!(
                "{} left out: {why}",
                counted_verb(count, "rule", "was", "were")
            )
        };
        report.note(
            Effect::Changed,
            counts.impossible,
            left_out(
                counts.impossible,
                "no packet of OpenFlow has all the fields that they demand",
            ),
        );
        report.note(
            Effect::Changed,
            counts.masks,
            left_out(
                counts.masks,
                "they have masks or ranges on fields where flows take one value",
            ),
        );
        report.note(
            Effect::Changed,
            counts.large,
            left_out(
                counts.large,
                &format!("each would become more than {MOST_FLOWS} flows"),
            ),
        );
        report.note(
            Effect::Restated,
            counts.ranges,
            format!(
                "{} ranges, each written as up to {}",
                counted_verb(counts.ranges, "rule", "has", "have"),
                counted(counts.most, "flow")
            ),
        );
        report.note(
            Effect::Restated,
            counts.filled,
            format!(
                "{} the Ethernet type or protocol that flows must say, and became a flow for each",
                counted_verb(counts.filled, "rule", "leaves out", "leave out")
            ),
        );
        report.note(
            Effect::Restated,
            counts.families,
            format!(
                "{} for IPv4 and IPv6, and became flows for each",
                counted_verb(counts.families, "rule", "holds", "hold")
            ),
        );
        if let Some(map) = &priorities.renumbered {
            report.note(
                Effect::Restated,
                map.len(),
                format!(
                    "{} renumbered to fit in 16 bits; their order is kept",
                    counted_verb(map.len(), "different priority number", "was", "were")
                ),
            );
        }
        report.note(
            Effect::Exact,
            priorities.shared,
            format!(
                "{} a priority with another; where two overlap a switch may choose either",
                counted_verb(priorities.shared, "rule", "shares", "share")
            ),
        );
        report.note(
            Effect::Restated,
            counts.renumbered,
            format!(
                "{} dropped: rules are numbered by their lines",
                counted(counts.renumbered, "rule id")
            ),
        );
        report.note(
            Effect::Restated,
            counts.named,
            format!("{} written as comments", counted(counts.named, "rule name")),
        );
        report.note(
            Effect::Restated,
            counts.mended,
            format!(
                "{} changed to stand on one line",
                counted_verb(counts.mended, "rule's action", "was", "were")
            ),
        );
        let shown: Vec<String> = counts.foreign_actions.iter().map(|a| quoted(a)).collect();
        report.note(
            Effect::Exact,
            counts.foreign,
            format!(
                "{} that Open vSwitch does not know, such as {}; replace them before loading the file",
                counted_verb(counts.foreign, "rule", "has an action", "have actions"),
                shown.join(", ")
            ),
        );
        report
    }
}

/// The flows of one rule: the product of its stacks and of its fields' pieces.
struct Expansion {
    /// Ethernet type and protocol.
    stacks: Vec<(Option<u16>, Option<u8>)>,
    /// For each other field that is demanded, its values under masks.
    pieces: Vec<(usize, Vec<(u128, u128)>)>,
    ranged: bool,
}

impl Expansion {
    fn of(rule: &RuleRef<'_>) -> Result<Expansion, Hindrance> {
        let schema = rule.schema();
        let mut expansion = Expansion {
            stacks: Vec::new(),
            pieces: Vec::new(),
            ranged: false,
        };
        let mut eth_type = None;
        let mut protocol = None;
        let mut demanded = BTreeSet::new();
        for id in schema.field_ids() {
            let field = schema.field(id);
            let wanted = rule.field(id);
            if wanted == FieldMatch::Any {
                continue;
            }
            demanded.insert(field.name());
            let maskable = FIELDS
                .iter()
                .any(|(name, _, mask)| *name == field.name() && *mask);
            match (field.name(), wanted) {
                ("eth_type", FieldMatch::Exact(value)) => eth_type = u16::try_from(value).ok(),
                ("proto", FieldMatch::Exact(value)) => protocol = u8::try_from(value).ok(),
                (_, FieldMatch::Exact(value)) => {
                    let piece = vec![(value, field.max_value())];
                    expansion.pieces.push((id.index(), piece));
                }
                _ if !maskable => return Err(Hindrance::Mask),
                (_, wanted) => {
                    let pieces = pieces(field, &wanted);
                    expansion.ranged |= pieces.len() > 1;
                    expansion.pieces.push((id.index(), pieces));
                }
            }
        }
        expansion.stacks = stacks(schema, eth_type, protocol, &demanded);
        if expansion.stacks.is_empty() {
            return Err(Hindrance::Impossible);
        }
        let sizes = expansion.pieces.iter().map(|(_, pieces)| pieces.len());
        let total = sizes.fold(expansion.stacks.len(), usize::saturating_mul);
        if total > MOST_FLOWS {
            return Err(Hindrance::Large);
        }
        Ok(expansion)
    }

    /// Appends each flow's match, with a comma in front of every field.
    fn write(&self, rule: &RuleRef<'_>, flows: &mut Vec<String>) {
        for &(eth_type, protocol) in &self.stacks {
            let mut heads = vec![stack_text(eth_type, protocol)];
            for (index, pieces) in &self.pieces {
                let field = &rule.schema().fields()[*index];
                let texts: Vec<String> = pieces
                    .iter()
                    .map(|&(value, mask)| field_text(field, value, mask))
                    .collect();
                heads = heads
                    .iter()
                    .flat_map(|head| texts.iter().map(move |text| format!("{head}{text}")))
                    .collect();
            }
            flows.append(&mut heads);
        }
    }
}

/// The Ethernet types and protocols under which all demanded fields exist.
fn stacks(
    schema: &Schema,
    eth_type: Option<u16>,
    protocol: Option<u8>,
    demanded: &BTreeSet<&str>,
) -> Vec<(Option<u16>, Option<u8>)> {
    let demands = |names: &[&str]| names.iter().any(|name| demanded.contains(name));
    let addresses = family(schema).unwrap_or(IPV4);
    let mut types: Vec<Option<u16>> = match eth_type {
        Some(_) => vec![eth_type],
        // A schema of one family has no field for it.
        None if schema.field_named("eth_type").is_none() => vec![family(schema)],
        None => vec![None],
    };
    let mut restrict = |allowed: &[u16]| match types.as_slice() {
        [None] => types = allowed.iter().copied().map(Some).collect(),
        _ => types.retain(|t| t.is_some_and(|t| allowed.contains(&t))),
    };
    if demands(&["src", "dst"]) {
        restrict(&[addresses]);
    }
    if demands(&["proto", "ip_dscp", "sport", "dport"]) {
        restrict(&[IPV4, IPV6]);
    }
    if demands(&["mpls_label", "mpls_tc"]) {
        restrict(&[MPLS, MPLS_MULTICAST]);
    }
    let with_ports = [TCP, UDP, SCTP];
    let protocols: Vec<Option<u8>> = match protocol {
        _ if !demands(&["sport", "dport"]) => vec![protocol],
        Some(given) if with_ports.contains(&given) => vec![protocol],
        Some(_) => Vec::new(),
        None => with_ports.map(Some).to_vec(),
    };
    let pairs = |&t: &Option<u16>| protocols.iter().map(move |&p| (t, p));
    types.iter().flat_map(pairs).collect()
}

fn stack_text(eth_type: Option<u16>, protocol: Option<u8>) -> String {
    let find = |protocol: Option<u8>| {
        let mut words = SHORTHANDS.iter();
        words.find(|(_, t, p)| Some(*t) == eth_type && *p == protocol)
    };
    if let Some((word, ..)) = find(protocol) {
        return format!(",{word}");
    }
    let mut text = match (find(None), eth_type) {
        (Some((word, ..)), _) => format!(",{word}"),
        (None, Some(eth_type)) => format!(",dl_type={eth_type:#06x}"),
        (None, None) => String::new(),
    };
    if let Some(protocol) = protocol {
        let _ = write!(text, ",nw_proto={protocol}");
    }
    text
}

/// The values under masks that cover a match exactly.
fn pieces(field: &Field, wanted: &FieldMatch) -> Vec<(u128, u128)> {
    let full = field.max_value();
    match *wanted {
        FieldMatch::Any => vec![(0, 0)],
        FieldMatch::Exact(value) => vec![(value, full)],
        FieldMatch::Ternary { value, mask } => vec![(value & mask, mask)],
        FieldMatch::Prefix { value, length } => {
            let free = field.width().saturating_sub(length);
            let mask = full & u128::MAX.checked_shl(free).unwrap_or(0);
            vec![(value & mask, mask)]
        }
        FieldMatch::Range { low, high } => cover(low, high, full),
    }
}

/// The fewest prefixes that cover a range: at most two for each bit, less two.
fn cover(mut low: u128, high: u128, full: u128) -> Vec<(u128, u128)> {
    let mut pieces = Vec::new();
    loop {
        // The largest block that starts at `low` and ends by `high`.
        let mut free = 0u128;
        loop {
            let wider = (free << 1) | 1;
            if free == full || low & wider != 0 || low | wider > high || wider > full {
                break;
            }
            free = wider;
        }
        pieces.push((low, full & !free));
        let last = low | free;
        if last >= high {
            return pieces;
        }
        low = last + 1;
    }
}

fn field_text(field: &Field, value: u128, mask: u128) -> String {
    let full = field.max_value();
    let whole = mask == full;
    let format = field.format();
    let shown = |value| match field.width() {
        32 if field.name() != "in_port" => ip(value),
        128 => Ipv6Addr::from_bits(value).to_string(),
        48 => ValueFormat::Mac.display(value).to_string(),
        64 => format!("{value:#x}"),
        _ => format.display(value).to_string(),
    };
    let free = full & !mask;
    let prefix = (free & free.wrapping_add(1) == 0).then(|| mask.count_ones());
    let name = match (field.name(), field.width()) {
        ("in_port", _) => {
            let named = PORTS
                .iter()
                .find(|(_, number)| u128::from(*number) == value);
            return match named {
                Some((name, _)) => format!(",in_port={name}"),
                None => format!(",in_port={value}"),
            };
        }
        ("eth_src", _) => "dl_src",
        ("eth_dst", _) => "dl_dst",
        ("vlan_vid", _) => return format!(",dl_vlan={value}"),
        ("vlan_pcp", _) => return format!(",dl_vlan_pcp={value}"),
        ("src", 32) => "nw_src",
        ("dst", 32) => "nw_dst",
        ("src", _) => "ipv6_src",
        ("dst", _) => "ipv6_dst",
        ("ip_dscp", _) => return format!(",nw_tos={}", value << 2),
        ("sport", _) => "tp_src",
        ("dport", _) => "tp_dst",
        (name @ ("mpls_label" | "mpls_tc"), _) => return format!(",{name}={value}"),
        (other, _) => other,
    };
    match prefix {
        _ if mask == 0 => String::new(),
        _ if whole && matches!(name, "tp_src" | "tp_dst") => format!(",{name}={value}"),
        _ if matches!(name, "tp_src" | "tp_dst") => format!(",{name}={value:#x}/{mask:#x}"),
        _ if whole => format!(",{name}={}", shown(value)),
        Some(length) if matches!(field.width(), 32 | 128) => {
            format!(",{name}={}/{length}", shown(value))
        }
        _ => format!(",{name}={}/{}", shown(value), shown(mask)),
    }
}

fn ip(value: u128) -> String {
    Ipv4Addr::from_bits(u32::try_from(value).unwrap_or(u32::MAX)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_are_exact_and_small() {
        for low in 0..=31u128 {
            for high in low..=31 {
                let pieces = cover(low, high, 31);
                for value in 0..=31u128 {
                    let hits = pieces.iter().filter(|(v, m)| (v ^ value) & m == 0).count();
                    let expected = usize::from((low..=high).contains(&value));
                    assert_eq!(hits, expected, "{value} in {low}-{high}");
                }
                assert!(pieces.len() <= 8);
            }
        }
        assert_eq!(cover(1, 65534, 65535).len(), 30);
        assert_eq!(cover(0, u128::MAX, u128::MAX), [(0, 0)]);
        assert_eq!(cover(1, u128::MAX, u128::MAX).len(), 128);
    }
}
