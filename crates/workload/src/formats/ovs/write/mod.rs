//! Writing rules as flows: ranges become masks, and missing Ethernet types and protocols
//! are added.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;

use classyard::policy::Policy;
use classyard::{Priority, RuleId, Schema};

use crate::formats::text::{counted, counted_verb, quoted};
use crate::formats::{Effect, RuleFormat, SchemaChoice, WriteError, WriteReport};

use super::schema;

mod expand;

use expand::{Expansion, Hindrance, MAX_FLOWS, Missed};

/// The number of different priorities that flows can have.
const MAX_PRIORITIES: usize = 1 << 16;

/// The schema fields that flows can match: name, possible widths in bits, and true if the
/// field may have a mask.
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

/// The first words of Open vSwitch actions.
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

/// Writes a policy as flows. Flows must have all fields of the policy's schemas, as for
/// `openflow15` and the five-tuples.
///
/// # Errors
/// [`WriteError`] for other schemas, for more than 65,536 different priorities, or if
/// writing fails.
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
    let choice = SchemaChoice::of(policy);
    let comment = choice.and_then(|choice| schema::comment(&choice, policy));
    writer.buffer.extend(comment);
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

/// Returns the rules in file order. If the ids are not consecutive from 0, this is the order
/// of rank, because at equal priority the first line wins.
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

/// The priorities of a policy, reduced to 16 bits.
struct Priorities {
    /// The new number of each priority; `None` if all priorities fit in 16 bits.
    renumbered: Option<BTreeMap<Priority, usize>>,
    /// The number of rules that share their priority with another rule.
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
        let distinct_priorities = rules.len();
        let renumbered = if rules.keys().all(fits) {
            None
        } else if distinct_priorities > MAX_PRIORITIES {
            return Err(WriteError::TooManyPriorities {
                format: RuleFormat::Ovs,
                found: distinct_priorities,
                limit: MAX_PRIORITIES,
            });
        } else {
            let first = usize::from(distinct_priorities < MAX_PRIORITIES);
            Some(rules.into_keys().zip(first..).collect())
        };
        Ok(Priorities { renumbered, shared })
    }

    fn number(&self, priority: Priority) -> String {
        let new = self.renumbered.as_ref().and_then(|map| map.get(&priority));
        new.map_or_else(|| priority.to_string(), ToString::to_string)
    }
}

/// Numbers of changed and lost rules for the report, by reason.
#[derive(Default)]
struct Counts {
    renumbered: usize,
    named: usize,
    ranges: usize,
    most: usize,
    filled: usize,
    omitted: usize,
    families: usize,
    impossible: usize,
    labels: usize,
    masks: usize,
    large: usize,
    halves: usize,
    missed: usize,
    mended: usize,
    foreign: usize,
    foreign_actions: BTreeSet<String>,
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
        let (mut ranged, mut filled, mut omitted) = (false, false, false);
        let (mut missed, mut hindrance) = (None, None);
        for rule in &parts {
            match Expansion::of(rule) {
                Ok(expansion) => {
                    ranged |= expansion.ranged;
                    filled |= expansion.kinds.len() > 1;
                    omitted |= expansion.omitted;
                    missed = missed.or(Some(expansion.missed).filter(|missed| missed.any()));
                    expansion.write(&mut flows);
                }
                Err(reason) => hindrance = Some(reason),
            }
        }
        let why = match (hindrance, missed) {
            (Some(hindrance), _) if flows.is_empty() => Some(hindrance.why()),
            (Some(hindrance), _) => Some(format!("of one family, {}", hindrance.why())),
            (None, missed) => missed.map(Missed::why),
        };
        if let Some(why) = why {
            self.report.lose(policy, id, flows.is_empty(), why);
        }
        if let (Some(hindrance), true) = (hindrance, flows.is_empty()) {
            *match hindrance {
                Hindrance::Impossible => &mut self.counts.impossible,
                Hindrance::Labels => &mut self.counts.labels,
                Hindrance::Mask => &mut self.counts.masks,
                Hindrance::Large => &mut self.counts.large,
            } += 1;
            return;
        }
        self.counts.halves += usize::from(hindrance.is_some());
        self.counts.missed += usize::from(hindrance.is_none() && missed.is_some());
        self.counts.ranges += usize::from(ranged);
        if ranged {
            self.counts.most = self.counts.most.max(flows.len());
        }
        self.counts.filled += usize::from(filled);
        self.counts.omitted += usize::from(omitted);
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

    /// Returns an action's name, changed where a flow could not hold it.
    fn action(&mut self, name: &str) -> String {
        let mut action: String = name
            .trim()
            .chars()
            .map(|c| if c.is_control() || c == '#' { '_' } else { c })
            .collect();
        if action.is_empty() {
            "drop".clone_into(&mut action);
        }
        if super::has_action(&action, &super::PARTS_OF_MATCHES) {
            // The reader refuses flows with the action `conjunction`.
            action = action.to_lowercase().replace("conjunction", "conjunction_");
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
        let left_out_counts = [
            (
                counts.impossible,
                "no packet has all that they demand".to_owned(),
            ),
            (
                counts.labels,
                "flows cannot match the fields after the MPLS labels".to_owned(),
            ),
            (
                counts.masks,
                "they have masks or ranges on fields where flows take one value".to_owned(),
            ),
            (
                counts.large,
                format!("each would become more than {MAX_FLOWS} flows"),
            ),
        ];
        for (count, why) in left_out_counts {
            report.note(Effect::Changed, count, left_out(count, &why));
        }
        report.note(
            Effect::Changed,
            counts.halves,
            format!(
                "{} written for one of IPv4 and IPv6 only",
                counted_verb(counts.halves, "rule", "was", "were")
            ),
        );
        report.note(
            Effect::Changed,
            counts.missed,
            format!(
                "{} fewer packets as flows, which must say an Ethernet type",
                counted_verb(counts.missed, "rule", "matches", "match")
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
            counts.omitted,
            format!(
                "{} of a field what all packets in question have, such as 0 of a missing field; flows leave that out",
                counted_verb(counts.omitted, "rule", "demands", "demand")
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
