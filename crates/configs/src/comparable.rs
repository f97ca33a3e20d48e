//! Policies of different formats, made comparable.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{FieldMatch, Policy, Priority, RuleId, Schema};

use crate::builder::DENY;
use crate::copied::copied;
use crate::packets::{FIELDS, Field, PORT_PROTOCOLS};

/// The number of TCP among the IP protocols.
const TCP: u8 = 6;
/// The numbers of ICMP, by part of [`Policy::acl`].
const ICMP: [u8; 2] = [1, 58];

/// Returns the rules of five-tuples as rules over [`Policy::acl`], for any value of the other
/// fields. `None` if the policy has other fields than five-tuples.
#[must_use]
pub fn as_acl(policy: &Policy) -> Option<Policy> {
    const FIVE_TUPLE: usize = Field::Protocol as usize + 1;
    let acl = Policy::acl();
    let part_of_schema = |schema: &Arc<Schema>| {
        let is_start_of = |part: &PartId| {
            let all = &acl.part(*part).schema().fields()[..FIVE_TUPLE];
            let is_same = |(own, all): (&classyard::Field, &classyard::Field)| {
                own.name() == all.name() && own.width() == all.width()
            };
            schema.fields().len() == FIVE_TUPLE && schema.fields().iter().zip(all).all(is_same)
        };
        acl.part_ids().find(is_start_of)
    };
    let parts: Vec<PartId> = policy
        .schemas()
        .map(part_of_schema)
        .collect::<Option<_>>()?;
    Some(copied(policy, |part, matches| {
        matches.resize(FIELDS, FieldMatch::Any);
        Some(parts[part.index()])
    }))
}

/// Returns rules over [`Policy::acl`] without the name of their list: each list of the policy
/// examines every packet.
#[must_use]
pub fn for_any_list(policy: &Policy) -> Policy {
    copied(policy, |part, matches| {
        matches[Field::List as usize] = FieldMatch::Any;
        Some(part)
    })
}

/// Returns a policy with better rules that deny all headers which no packet has: with ports of
/// a protocol without ports, or with ports, ICMP messages or TCP flags of a later fragment. So
/// two such policies differ in headers of packets only. Returns a copy of a policy that is not
/// over [`Policy::acl`].
#[must_use]
pub fn with_impossible_headers_denied(policy: &Policy) -> Policy {
    let mut denying = policy.clone();
    if policy.name() != Policy::ACL {
        return denying;
    }
    let action = denying.declare_action(DENY);
    let mut ids = (0..u32::MAX)
        .rev()
        .filter_map(|number| RuleId::new(number).ok())
        .filter(|&id| policy.position(id).is_none());
    for (part, icmp) in policy.part_ids().zip(ICMP) {
        for matches in impossible(icmp) {
            let id = ids.next().expect("fewer rules than ids");
            let added = denying.add(id, Priority(u32::MAX), action, &[(part, &matches[..])]);
            added.expect("matches of the schema's fields");
        }
    }
    denying
}

/// Returns matches of all headers that no packet has.
fn impossible(icmp: u8) -> Vec<[FieldMatch; FIELDS]> {
    let mut matches = Vec::new();
    let later = FieldMatch::Range { low: 2, high: 3 };
    let ports = [Field::SourcePort, Field::DestinationPort];
    let messages = [Field::IcmpType, Field::IcmpCode];
    let mut add = |condition: (Field, FieldMatch), lacking: Field| {
        for value in nonzero(lacking) {
            let mut fields = [FieldMatch::Any; FIELDS];
            fields[condition.0 as usize] = condition.1;
            fields[lacking as usize] = value;
            matches.push(fields);
        }
    };
    for field in ports.into_iter().chain(messages).chain([Field::TcpFlags]) {
        add((Field::Fragment, later), field);
    }
    for (fields, protocols) in [
        (&ports[..], &PORT_PROTOCOLS[..]),
        (&messages, &[icmp]),
        (&[Field::TcpFlags], &[TCP]),
    ] {
        for other in between(protocols) {
            for &field in fields {
                add((Field::Protocol, other), field);
            }
        }
    }
    matches
}

/// Returns matches of all values of a field except 0.
fn nonzero(field: Field) -> Vec<FieldMatch> {
    let bits = field.bits(0);
    match field {
        Field::TcpFlags => (0..bits)
            .map(|bit| FieldMatch::Ternary {
                value: 1 << bit,
                mask: 1 << bit,
            })
            .collect(),
        _ => vec![FieldMatch::Range {
            low: 1,
            high: (1 << bits) - 1,
        }],
    }
}

/// Returns the ranges of protocols that are not among some ascending numbers.
fn between(protocols: &[u8]) -> Vec<FieldMatch> {
    let mut ranges = Vec::new();
    let mut low = 0;
    for end in protocols.iter().map(|&number| number.into()).chain([256]) {
        if low < end {
            ranges.push(FieldMatch::Range { low, high: end - 1 });
        }
        low = end + 1;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of matches of a header.
    fn matches(part: usize, values: [u128; 9]) -> usize {
        let is_in = |matched: &FieldMatch, value: u128| match *matched {
            FieldMatch::Any => true,
            FieldMatch::Range { low, high } => (low..=high).contains(&value),
            FieldMatch::Ternary {
                value: wanted,
                mask,
            } => value & mask == wanted,
            _ => unreachable!("no other matches"),
        };
        let covers = |fields: &&[FieldMatch; FIELDS]| {
            fields
                .iter()
                .zip(values)
                .all(|(matched, value)| is_in(matched, value))
        };
        impossible(ICMP[part]).iter().filter(covers).count()
    }

    #[test]
    fn packets_are_possible_and_ports_of_other_protocols_are_not() {
        // Addresses, ports, protocol, ICMP type and code, TCP flags, fragment.
        assert_eq!(matches(0, [1, 2, 80, 443, 6, 0, 0, 0x12, 0]), 0);
        assert_eq!(matches(0, [1, 2, 80, 443, 17, 0, 0, 0, 1]), 0);
        assert_eq!(matches(0, [1, 2, 0, 0, 1, 8, 3, 0, 0]), 0);
        assert_eq!(matches(1, [1, 2, 0, 0, 58, 128, 0, 0, 0]), 0);
        assert_eq!(matches(0, [1, 2, 0, 0, 6, 0, 0, 0, 2]), 0);
        assert_eq!(matches(0, [1, 2, 0, 0, 255, 0, 0, 0, 0]), 0);
        assert_ne!(matches(0, [1, 2, 0, 443, 1, 0, 0, 0, 0]), 0);
        assert_ne!(matches(0, [1, 2, 0, 443, 6, 0, 0, 0, 2]), 0);
        assert_ne!(matches(0, [1, 2, 0, 0, 17, 0, 0, 2, 0]), 0);
        assert_ne!(matches(1, [1, 2, 0, 0, 1, 8, 0, 0, 0]), 0);
        assert_ne!(matches(0, [1, 2, 1, 0, 0, 0, 0, 0, 0]), 0);
    }
}
