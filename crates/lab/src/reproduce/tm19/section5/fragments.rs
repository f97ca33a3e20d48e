//! Rules with a form for fragments, as in the paper's implementation of tuple space search.
//!
//! A later fragment of an IP packet has no ports, so a rule with ports "requires a different
//! mask" for it ([TM19] §V.B). `OpenFlow` cannot match on fragments, so the rules here have a
//! sixth field next to the five-tuple, and the engines are outside of a pipeline.
//!
//! [TM19]: classyard::papers#tm19

use std::sync::Arc;

use classyard::key::unpack;
use classyard::policy::PartId;
use classyard::schema::{Field, FieldRole};
use classyard::{
    EngineSpec, FieldMatch, Limits, MatchKind, NoProgress, Policy, PolicyTrace, RuleId, RuleSet,
    Schema,
};
use classyard_report::failure::Failure;

use crate::bench::{SCANNED_RULES, answers, wrong_answers};

/// The engines whose tables are counted.
pub(super) const ENGINES: [&str; 2] = ["tss", "tuplemerge"];

/// One in this number of compared headers is a later fragment.
const FRAGMENT_INTERVAL: usize = 4;

/// Values of the field `fragment`: a packet with its ports, and a later fragment.
const WHOLE_PACKET: u128 = 0;
const LATER_FRAGMENT: u128 = 1;

/// Returns the numbers of tables of [`ENGINES`] over the rules with forms for fragments,
/// after comparing answers for headers that include fragments.
///
/// # Errors
/// If an engine cannot be built or gives a wrong answer.
pub(super) fn tables(policy: &Policy, trace: &PolicyTrace) -> Result<[usize; 2], Failure> {
    let rules = with_fragments(policy);
    let headers = fragmented(policy, &rules, trace);
    let mut winners = Vec::new();
    let mut counts = [0; 2];
    for (count, engine) in counts.iter_mut().zip(ENGINES) {
        let spec = EngineSpec::parse(engine).expect("a registered engine");
        let built = rules.build(&spec.seeded(0), &Limits::default(), &mut NoProgress)?;
        *count = built.part(PartId::FIRST).stats().tables;
        winners.push(answers(&built, &headers));
    }
    let slices: Vec<_> = winners.iter().map(Vec::as_slice).collect();
    let wrong = wrong_answers(&rules, &headers, &slices, None, SCANNED_RULES / 10);
    match ENGINES.iter().zip(wrong).find(|(_, wrong)| *wrong > 0) {
        None => Ok(counts),
        Some((engine, wrong)) => Err(Failure::usage(format!(
            "WRONG: {} rules of {} with forms for fragments: {wrong} answers of {engine} differ \
             from a scan",
            policy.len(),
            policy.name()
        ))),
    }
}

/// Returns the five-tuple with a field that is 1 in later fragments.
fn schema(five_tuple: &Schema) -> Arc<Schema> {
    let mut fields = five_tuple.fields().to_vec();
    fields.push(Field::new("fragment", 1, MatchKind::Ternary));
    Schema::new("ipv4-5tuple-fragment", fields).expect("the five-tuple has no such field")
}

/// Returns the rules with a second form, without ports, for the fragments of each rule with
/// ports. A rule without ports has one form for all packets.
fn with_fragments(policy: &Policy) -> Policy {
    let five_tuples = policy.part(PartId::FIRST);
    let schema = schema(five_tuples.schema());
    let ports: Vec<usize> = [FieldRole::SourcePort, FieldRole::DestinationPort]
        .into_iter()
        .filter_map(|role| schema.field_with_role(role))
        .map(classyard::schema::FieldId::index)
        .collect();
    let mut rules = RuleSet::new(&schema);
    for (index, rule) in five_tuples.iter().enumerate() {
        let fields = rule.fields();
        let mut without_ports = fields.clone();
        for &port in &ports {
            without_ports[port] = FieldMatch::Any;
        }
        let forms = match fields == without_ports {
            true => vec![(fields, FieldMatch::Any)],
            false => vec![
                (fields, FieldMatch::Exact(WHOLE_PACKET)),
                (without_ports, FieldMatch::Exact(LATER_FRAGMENT)),
            ],
        };
        for (form, (mut matches, fragment)) in forms.into_iter().enumerate() {
            matches.push(fragment);
            // Forms of rules with equal priorities keep the order of the rules.
            let id = RuleId::from_index(2 * index + form);
            let added = rules.add(id, rule.priority(), rule.action(), &matches);
            added.expect("the fields are the five-tuple's");
        }
    }
    Policy::from_parts(policy.name(), vec![rules])
}

/// Returns headers with the field `fragment`; some are later fragments, without ports.
fn fragmented(policy: &Policy, rules: &Policy, trace: &PolicyTrace) -> PolicyTrace {
    let five_tuple = policy.part(PartId::FIRST).schema();
    let mut headers = PolicyTrace::new(rules.schemas());
    for (index, (_, key)) in trace.iter().enumerate() {
        let mut header = unpack(five_tuple, key);
        let is_fragment = index.is_multiple_of(FRAGMENT_INTERVAL);
        if is_fragment {
            for role in [FieldRole::SourcePort, FieldRole::DestinationPort] {
                if let Some(id) = five_tuple.field_with_role(role) {
                    header[id.index()] = 0;
                }
            }
        }
        header.push(if is_fragment {
            LATER_FRAGMENT
        } else {
            WHOLE_PACKET
        });
        let pushed = headers.push(PartId::FIRST, &header);
        pushed.expect("the values are of the five-tuple's fields");
    }
    headers
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, Priority};

    use super::*;

    #[test]
    fn fragments_match_rules_without_their_ports() {
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        let web = [
            FieldMatch::Prefix {
                value: 10 << 24,
                length: 8,
            },
            FieldMatch::Any,
            FieldMatch::Any,
            FieldMatch::Exact(80),
            FieldMatch::Exact(6),
        ];
        let any = [FieldMatch::Any; 5];
        for (index, matches) in [web, any].iter().enumerate() {
            let id = RuleId::from_index(index);
            rules.add(id, Priority(1), ActionId(0), matches).unwrap();
        }
        let policy = Policy::from_parts("two", vec![rules]);
        let forms = with_fragments(&policy);
        assert_eq!(forms.len(), 3);
        let mut trace = PolicyTrace::new(policy.schemas());
        // A web client, and a client of another service; the first of four is a fragment.
        for port in [443, 80, 443, 80] {
            let header = [10 << 24, 1, 5_000, port, 6];
            trace.push(PartId::FIRST, &header).unwrap();
        }
        let headers = fragmented(&policy, &forms, &trace);
        let spec = EngineSpec::parse("linear").unwrap();
        let built = forms.build(&spec, &Limits::default(), &mut NoProgress);
        let winners = answers(&built.unwrap(), &headers);
        let ids: Vec<_> = winners.iter().map(|winner| winner.rule()).collect();
        // The rule for the web has ids 0 and 1, the rule for everything has id 2.
        let expected = [1, 0, 2, 0].map(|index| Some(RuleId::from_index(index)));
        assert_eq!(ids, expected);
        // Both forms of the first rule and the second rule have different masks.
        assert_eq!(tables(&policy, &trace).unwrap()[0], 3);
    }
}
