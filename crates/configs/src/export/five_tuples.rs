//! Rules over the fields of firewalls as rules over five-tuples.

use classyard::policy::PartId;
use classyard::{FieldMatch, Policy, RuleId, RuleRef};

use super::{MAX_REFUSALS, Refusal, WriteError};
use crate::packets::{Field, Values};

/// The fields that five-tuples lack, with words for messages.
const OTHERS: [(Field, &str); 7] = [
    (Field::IcmpType, "a type of ICMP"),
    (Field::IcmpCode, "a code of ICMP"),
    (Field::TcpFlags, "TCP flags"),
    (Field::State, "the state of a connection"),
    (Field::InInterface, "an input interface"),
    (Field::OutInterface, "an output interface"),
    (Field::Condition, "a condition that no field expresses"),
];

/// Returns the rules of one list of a policy over [`Policy::acl`] as rules over
/// [`Policy::dual_stack`], with the actions that `action` returns for theirs.
///
/// # Errors
/// [`WriteError::Rules`]: rules ask for more than addresses, ports and a protocol, or have an
/// action for which `action` returns `None`. A rule for ports other than 0 may leave out later
/// fragments, as these have no ports.
pub fn as_five_tuples(
    policy: &Policy,
    action: impl Fn(&str) -> Option<String>,
) -> Result<Policy, WriteError> {
    let mut tuples = Policy::dual_stack();
    let parts: Vec<PartId> = tuples.part_ids().collect();
    let mut refusals = Vec::new();
    let mut refused = 0;
    let mut list = None;
    for &id in policy.ids() {
        let mut forms = Vec::new();
        let mut why = None;
        for (part, rule) in policy.rule(id) {
            match form(id, part, &rule, &mut list) {
                Ok(matches) => forms.push((parts[part.index()], matches, rule.action())),
                Err(refusal) => why = Some(refusal),
            }
        }
        let Some((_, rule)) = policy.rule(id).next() else {
            continue;
        };
        let name = policy.action_name(rule.action()).unwrap_or_default();
        match (why, action(name)) {
            (None, Some(action)) => {
                let action = tuples.declare_action(&action);
                let forms: Vec<_> = forms.iter().map(|form| (form.0, &form.1[..])).collect();
                let added = tuples.add(id, rule.priority(), action, &forms);
                added.expect("a rule of a policy");
            }
            (why, _) => {
                refused += 1;
                let reason = format!("the action `{name}`");
                let refusal = why.unwrap_or(Refusal { rule: id, reason });
                if refusals.len() < MAX_REFUSALS {
                    refusals.push(refusal);
                }
            }
        }
    }
    match refused {
        0 => Ok(tuples),
        total => Err(WriteError::Rules {
            shown: refusals,
            total,
        }),
    }
}

/// Returns the matches of a five-tuple. `list` is the list of the rules before.
fn form(
    id: RuleId,
    part: PartId,
    rule: &RuleRef<'_>,
    list: &mut Option<FieldMatch>,
) -> Result<Vec<FieldMatch>, Refusal> {
    let refuse = |reason: &str| Refusal {
        rule: id,
        reason: reason.to_owned(),
    };
    let mut matches = rule.fields();
    let address_bits = if part.index() == 0 { 32 } else { 128 };
    let values = |field: Field| Values::of_match(matches[field as usize], field, address_bits);
    if *list.get_or_insert(matches[Field::List as usize]) != matches[Field::List as usize] {
        return Err(refuse(
            "another list than the rules before; --list selects one list",
        ));
    }
    if let Some((_, what)) = OTHERS.iter().find(|(field, _)| values(*field).is_some()) {
        return Err(refuse(what));
    }
    let ports = [Field::SourcePort, Field::DestinationPort];
    let has_port = |&field: &Field| values(field).is_some_and(|ports| !ports.has(0));
    let is_whole_or_first = values(Field::Fragment) == Some(Values::range(0u8, 1u8));
    if values(Field::Fragment).is_some() && !(is_whole_or_first && ports.iter().any(has_port)) {
        return Err(refuse("some kinds of fragments only"));
    }
    matches.truncate(Field::Protocol as usize + 1);
    Ok(matches)
}
