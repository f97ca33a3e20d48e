//! Writes filter sets.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::policy::Policy;
use classyard::{FieldMatch, Priority, RuleRef};

use super::super::text::{counted, counted_verb};
use super::super::{Effect, RuleFormat, SchemaChoice, WriteError, WriteReport};
use super::{NO_ACTION, parts};

/// Writes the rules of a policy over five-tuples, the winning rules first.
///
/// # Errors
/// [`WriteError`] for other schemas, or if writing fails.
pub fn write(policy: &Policy, out: &mut dyn io::Write) -> Result<WriteReport, WriteError> {
    let choice = SchemaChoice::of(policy);
    let [v4, v6] = choice.as_ref().and_then(parts).ok_or(WriteError::Schema {
        format: RuleFormat::Classbench,
        schema: policy.name().to_owned(),
        takes: "ipv4-5tuple, ipv6-5tuple and dual-5tuple",
    })?;
    let mut report = WriteReport {
        rules: policy.len(),
        ..WriteReport::default()
    };

    let mut order: Vec<(Priority, usize)> = Vec::with_capacity(policy.len());
    let (mut named, mut acting, mut doubled, mut renumbered) = (0, 0, 0, 0);
    for (position, &id) in policy.ids().iter().enumerate() {
        let mut parts = policy.rule(id);
        let Some((_, rule)) = parts.next() else {
            continue;
        };
        doubled += usize::from(parts.next().is_some());
        named += usize::from(policy.rule_name(id).is_some());
        acting += usize::from(policy.action_name(rule.action()) != Some(NO_ACTION));
        renumbered += usize::from(id.index() != position);
        order.push((rule.priority(), position));
    }
    let plain = |&(priority, position): &(Priority, usize)| {
        u32::try_from(policy.len() - position).ok() == Some(priority.0)
    };
    let repriorised = order.iter().filter(|entry| !plain(entry)).count();
    if repriorised > 0 {
        let ids = policy.ids();
        order.sort_by_key(|&(priority, position)| (std::cmp::Reverse(priority), ids[position]));
    }
    let moved = order.iter().zip(0..).filter(|((_, from), to)| from != to);
    let moved = moved.count();

    let mut buffer = String::new();
    let mut masked = 0;
    for (_, position) in &order {
        let id = policy.ids()[*position];
        if policy.rule(id).any(|(_, rule)| has_mask(&rule)) {
            masked += 1;
            report.lose(policy, id, true, MASKS);
            continue;
        }
        for (part, rule) in policy.rule(id) {
            let v6 = Some(part) == v6;
            debug_assert!(v6 || Some(part) == v4);
            write_line(&mut buffer, rule, v6);
            report.lines += 1;
        }
        if buffer.len() > 1 << 16 {
            out.write_all(buffer.as_bytes())?;
            buffer.clear();
        }
    }
    out.write_all(buffer.as_bytes())?;

    report.note(
        Effect::Changed,
        masked,
        format!(
            "{} left out: {MASKS}",
            counted_verb(masked, "rule", "was", "were")
        ),
    );
    report.note(
        Effect::Restated,
        named,
        format!(
            "{} dropped: the format has none",
            counted(named, "rule name")
        ),
    );
    report.note(
        Effect::Restated,
        acting,
        format!(
            "the actions of {} dropped: the format has none",
            counted(acting, "rule")
        ),
    );
    report.note(
        Effect::Restated,
        repriorised,
        format!(
            "{} ranked by the order of lines instead of a priority of their own",
            counted(repriorised, "rule")
        ),
    );
    report.note(
        Effect::Restated,
        moved,
        format!(
            "{} on another line than their place in the policy, as the first line wins",
            counted(moved, "rule")
        ),
    );
    report.note(
        Effect::Restated,
        renumbered,
        format!(
            "{} dropped: rules are numbered by their lines",
            counted(renumbered, "rule id")
        ),
    );
    report.note(
        Effect::Restated,
        doubled,
        format!(
            "{} without an address written as two lines, one for IPv4 and one for IPv6",
            counted(doubled, "rule")
        ),
    );
    Ok(report)
}

/// The reason for which rules are left out.
const MASKS: &str = "the format has only prefix masks";

/// True if a field has a mask that is not a prefix mask.
fn has_mask(rule: &RuleRef<'_>) -> bool {
    let mut fields = rule.schema().field_ids().map(|field| rule.field(field));
    fields.any(|wanted| matches!(wanted, FieldMatch::Ternary { .. }))
}

fn write_line(out: &mut String, rule: RuleRef<'_>, v6: bool) {
    let ends: Vec<(u128, u128)> = rule
        .schema()
        .field_ids()
        .map(|field| rule.ends(field))
        .collect();
    let &[src, dst, sport, dport, protocol] = ends.as_slice() else {
        debug_assert!(false, "the schema was checked");
        return;
    };
    out.push('@');
    write_prefix(out, src, v6);
    out.push('\t');
    write_prefix(out, dst, v6);
    let (protocol, mask) = if protocol.0 == protocol.1 {
        (protocol.0, 0xff)
    } else {
        (0, 0)
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\t{} : {}\t{} : {}\t0x{protocol:02x}/0x{mask:02X}\t0x0000/0x0000",
        sport.0, sport.1, dport.0, dport.1
    );
}

fn write_prefix(out: &mut String, (low, high): (u128, u128), v6: bool) {
    let free = (low ^ high).count_ones();
    if v6 {
        write_full_ipv6(out, Ipv6Addr::from_bits(low));
        let _ = write!(out, "/{}", 128 - free.min(128));
    } else {
        let bits = u32::try_from(low).unwrap_or(0);
        let _ = write!(out, "{}/{}", Ipv4Addr::from_bits(bits), 32 - free.min(32));
    }
}

/// Writes an IPv6 address with all eight groups.
pub(in crate::formats) fn write_full_ipv6(out: &mut String, address: Ipv6Addr) {
    for (index, group) in address.segments().iter().enumerate() {
        let separator = if index == 0 { "" } else { ":" };
        let _ = write!(out, "{separator}{group:x}");
    }
}
