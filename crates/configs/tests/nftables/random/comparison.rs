//! Comparisons of rules: their meaning, and their forms in text and JSON.

use super::field::{Field, Range, has, random_ranges, range_json, range_text};
use super::packet::{FLAG_BITS, FLAGS, PATTERNS, Packet, STATES};
use crate::support::Random;

/// A comparison of a rule.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Numbers {
        field: Field,
        is_negated: bool,
        ranges: Vec<Range>,
    },
    Order {
        field: Field,
        operator: &'static str,
        value: u16,
    },
    Pairs {
        fields: [Field; 2],
        is_negated: bool,
        pairs: Vec<[Range; 2]>,
        is_named: bool,
    },
    /// Flags by their positions in `FLAGS`, under a mask.
    Flags {
        mask: Vec<usize>,
        flags: Vec<usize>,
        is_negated: bool,
    },
    AnyFlag {
        flags: Vec<usize>,
        is_negated: bool,
    },
    States {
        states: Vec<usize>,
        form: &'static str,
    },
    Interface {
        patterns: Vec<&'static str>,
        is_negated: bool,
    },
    Family {
        is_v6: bool,
        is_negated: bool,
    },
    Later {
        is_later: bool,
    },
}

pub(super) fn subset<T: Copy>(values: &[T], random: &mut Random) -> Vec<T> {
    let chosen: Vec<T> = values.iter().copied().filter(|_| random.coin()).collect();
    match chosen.is_empty() {
        true => vec![random.pick(values)],
        false => chosen,
    }
}

pub(super) fn bits(flags: &[usize]) -> u8 {
    flags.iter().map(|&flag| FLAG_BITS[flag]).sum()
}

pub(super) fn names(positions: &[usize], names: &[&str]) -> Vec<String> {
    positions
        .iter()
        .map(|&position| names[position].to_owned())
        .collect()
}

pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

impl Test {
    pub(super) fn random(random: &mut Random) -> Test {
        let is_negated = random.below(3) == 0;
        match random.below(12) {
            0 => {
                let field = Field::random_small(random);
                Test::Order {
                    field,
                    operator: random.pick(&["<", "<=", ">", ">="]),
                    value: field.random_value(random).max(1),
                }
            }
            1 | 2 => {
                let fields = match is_negated {
                    true => [Field::random_small(random), Field::random_small(random)],
                    false => [Field::random(random), Field::random(random)],
                };
                // A concatenation needs fields that one packet can have.
                let is_possible = fields[0] != fields[1]
                    && (0..400).any(|seed| {
                        let packet = Packet::new(&mut Random(seed * 7919 + 13));
                        fields.iter().all(|field| field.value(&packet).is_some())
                    });
                if !is_possible {
                    return Test::random(random);
                }
                let mut pairs = vec![[(0, 0); 2]];
                pairs.clear();
                for _ in 0..=random.below(3) {
                    let pair = fields.map(|field| random_ranges(field, random)[0]);
                    let is_apart = |other: &[Range; 2]| {
                        (0..2).any(|part| {
                            pair[part].1 < other[part].0 || other[part].1 < pair[part].0
                        })
                    };
                    if pairs.iter().all(is_apart) {
                        pairs.push(pair);
                    }
                }
                Test::Pairs {
                    fields,
                    is_negated,
                    pairs,
                    is_named: random.coin(),
                }
            }
            3 => {
                let mask = subset(&[0, 1, 2, 3], random);
                Test::Flags {
                    flags: subset(&mask, random),
                    mask,
                    is_negated,
                }
            }
            4 => Test::AnyFlag {
                flags: subset(&[0, 1, 2, 3], random),
                is_negated,
            },
            5 => Test::States {
                states: subset(&[0, 1, 2, 3, 4], random),
                form: random.pick(&["", "set", "!=", "!"]),
            },
            6 => Test::Interface {
                patterns: vec![random.pick(&PATTERNS)],
                is_negated,
            },
            7 => Test::Interface {
                patterns: vec!["lo", random.pick(&["eth*", "wan"])],
                is_negated,
            },
            8 => Test::Family {
                is_v6: random.coin(),
                is_negated,
            },
            9 => Test::Later {
                is_later: random.coin(),
            },
            _ => {
                let field = match is_negated {
                    true => Field::random_small(random),
                    false => Field::random(random),
                };
                Test::Numbers {
                    field,
                    is_negated,
                    ranges: random_ranges(field, random),
                }
            }
        }
    }

    /// True if the comparison holds for a packet.
    pub(super) fn holds(&self, packet: &Packet) -> bool {
        let has_flags = packet.protocol == 6 && packet.fragment < 2;
        match self {
            Test::Numbers {
                field,
                is_negated,
                ranges,
            } => field
                .value(packet)
                .is_some_and(|value| has(ranges, value) != *is_negated),
            Test::Order {
                field,
                operator,
                value,
            } => field.value(packet).is_some_and(|own| match *operator {
                "<" => own < *value,
                "<=" => own <= *value,
                ">" => own > *value,
                _ => own >= *value,
            }),
            Test::Pairs {
                fields,
                is_negated,
                pairs,
                ..
            } => {
                let (Some(first), Some(second)) =
                    (fields[0].value(packet), fields[1].value(packet))
                else {
                    return false;
                };
                let is_member = pairs
                    .iter()
                    .any(|[a, b]| has(&[*a], first) && has(&[*b], second));
                is_member != *is_negated
            }
            Test::Flags {
                mask,
                flags,
                is_negated,
            } => has_flags && (packet.flags & bits(mask) == bits(flags)) != *is_negated,
            Test::AnyFlag { flags, is_negated } => {
                has_flags && (packet.flags & bits(flags) != 0) != *is_negated
            }
            Test::States { states, form } => match *form {
                "" | "set" => states.contains(&packet.state),
                "!" => !states.contains(&packet.state),
                // A packet has one state, so it never has several.
                _ => states.len() > 1 || !states.contains(&packet.state),
            },
            Test::Interface {
                patterns,
                is_negated,
            } => {
                let is_one = patterns
                    .iter()
                    .any(|pattern| matches_pattern(pattern, packet.input));
                is_one != *is_negated
            }
            Test::Family { is_v6, is_negated } => (packet.is_v6 == *is_v6) != *is_negated,
            Test::Later { is_later } => !packet.is_v6 && (packet.fragment >= 2) == *is_later,
        }
    }

    /// Returns the comparison as text. A named set is added to `sets`.
    pub(super) fn text(&self, sets: &mut Vec<String>) -> String {
        let not = |is_negated: &bool| if *is_negated { "!= " } else { "" };
        match self {
            Test::Numbers {
                field,
                is_negated,
                ranges,
            } => {
                let values: Vec<String> = ranges
                    .iter()
                    .map(|&range| range_text(*field, range))
                    .collect();
                match &values[..] {
                    [value] => format!("{} {}{value}", field.text(), not(is_negated)),
                    _ => format!(
                        "{} {}{{ {} }}",
                        field.text(),
                        not(is_negated),
                        values.join(", ")
                    ),
                }
            }
            Test::Order {
                field,
                operator,
                value,
            } => {
                format!("{} {operator} {}", field.text(), field.show(*value))
            }
            Test::Pairs {
                fields,
                is_negated,
                pairs,
                is_named,
            } => {
                let elements = pairs.iter().map(|pair| {
                    format!(
                        "{} . {}",
                        range_text(fields[0], pair[0]),
                        range_text(fields[1], pair[1])
                    )
                });
                let elements = elements.collect::<Vec<_>>().join(", ");
                let left_side = format!("{} . {}", fields[0].text(), fields[1].text());
                match is_named {
                    true => {
                        let name = format!("set{}", sets.len());
                        sets.push(format!(
                            "set {name} {{ typeof {left_side}; flags interval; elements = {{ {elements} }}; }}"
                        ));
                        format!("{left_side} {}@{name}", not(is_negated))
                    }
                    false => format!("{left_side} {}{{ {elements} }}", not(is_negated)),
                }
            }
            Test::Flags {
                mask,
                flags,
                is_negated,
            } => {
                let operator = if *is_negated { "!=" } else { "==" };
                let (mask, flags) = (
                    names(mask, &FLAGS).join(" | "),
                    names(flags, &FLAGS).join(" | "),
                );
                format!("tcp flags & ({mask}) {operator} ({flags})")
            }
            Test::AnyFlag { flags, is_negated } => {
                let operator = if *is_negated { "! " } else { "" };
                format!("tcp flags {operator}{}", names(flags, &FLAGS).join(","))
            }
            Test::States { states, form } => {
                let states = names(states, &STATES);
                match *form {
                    "set" => format!("ct state {{ {} }}", states.join(", ")),
                    form => format!("ct state {form} {}", states.join(",")),
                }
            }
            Test::Interface {
                patterns,
                is_negated,
            } => {
                let quoted: Vec<String> =
                    patterns.iter().map(|name| format!("\"{name}\"")).collect();
                match &quoted[..] {
                    [name] => format!("iifname {}{name}", not(is_negated)),
                    _ => format!("iifname {}{{ {} }}", not(is_negated), quoted.join(", ")),
                }
            }
            Test::Family { is_v6, is_negated } => {
                format!(
                    "meta nfproto {}{}",
                    not(is_negated),
                    if *is_v6 { "ipv6" } else { "ipv4" }
                )
            }
            Test::Later { is_later } => {
                format!(
                    "ip frag-off & 0x1fff {} 0",
                    if *is_later { "!=" } else { "==" }
                )
            }
        }
    }

    /// Returns the comparison as JSON, with sets inside it.
    pub(super) fn json(&self) -> String {
        let equal = |is_negated: &bool| if *is_negated { "!=" } else { "==" };
        let list = |names: &[String]| {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            quoted.join(", ")
        };
        let flags_field = "{\"payload\": {\"protocol\": \"tcp\", \"field\": \"flags\"}}";
        let (operator, left_side, right_side) = match self {
            Test::Numbers {
                field,
                is_negated,
                ranges,
            } => {
                let values: Vec<String> = ranges
                    .iter()
                    .map(|&range| range_json(*field, range))
                    .collect();
                (
                    equal(is_negated),
                    field.json(),
                    format!("{{\"set\": [{}]}}", values.join(", ")),
                )
            }
            Test::Order {
                field,
                operator,
                value,
            } => (*operator, field.json(), field.json_value(*value)),
            Test::Pairs {
                fields,
                is_negated,
                pairs,
                ..
            } => {
                let elements = pairs.iter().map(|pair| {
                    let parts = [
                        range_json(fields[0], pair[0]),
                        range_json(fields[1], pair[1]),
                    ];
                    format!("{{\"concat\": [{}]}}", parts.join(", "))
                });
                let elements: Vec<String> = elements.collect();
                let left_side = format!(
                    "{{\"concat\": [{}, {}]}}",
                    fields[0].json(),
                    fields[1].json()
                );
                (
                    equal(is_negated),
                    left_side,
                    format!("{{\"set\": [{}]}}", elements.join(", ")),
                )
            }
            Test::Flags {
                mask,
                flags,
                is_negated,
            } => {
                let left_side = format!(
                    "{{\"&\": [{flags_field}, [{}]]}}",
                    list(&names(mask, &FLAGS))
                );
                (
                    equal(is_negated),
                    left_side,
                    format!("{{\"|\": [{}]}}", list(&names(flags, &FLAGS))),
                )
            }
            Test::AnyFlag { flags, is_negated } => {
                let operator = if *is_negated { "!" } else { "in" };
                (
                    operator,
                    flags_field.to_owned(),
                    format!("[{}]", list(&names(flags, &FLAGS))),
                )
            }
            Test::States { states, form } => {
                let states = list(&names(states, &STATES));
                let (operator, right_side) = match *form {
                    "" => ("in", format!("[{states}]")),
                    "set" => ("==", format!("{{\"set\": [{states}]}}")),
                    "!" => ("!", format!("[{states}]")),
                    _ => ("!=", format!("{{\"|\": [{states}]}}")),
                };
                (
                    operator,
                    "{\"ct\": {\"key\": \"state\"}}".to_owned(),
                    right_side,
                )
            }
            Test::Interface {
                patterns,
                is_negated,
            } => {
                let names: Vec<String> = patterns.iter().map(|&name| name.to_owned()).collect();
                let left_side = "{\"meta\": {\"key\": \"iifname\"}}".to_owned();
                (
                    equal(is_negated),
                    left_side,
                    format!("{{\"set\": [{}]}}", list(&names)),
                )
            }
            Test::Family { is_v6, is_negated } => {
                let left_side = "{\"meta\": {\"key\": \"nfproto\"}}".to_owned();
                (
                    equal(is_negated),
                    left_side,
                    format!("\"{}\"", if *is_v6 { "ipv6" } else { "ipv4" }),
                )
            }
            Test::Later { is_later } => {
                let field = "{\"payload\": {\"protocol\": \"ip\", \"field\": \"frag-off\"}}";
                let operator = if *is_later { "!=" } else { "==" };
                (
                    operator,
                    format!("{{\"&\": [{field}, 8191]}}"),
                    "0".to_owned(),
                )
            }
        };
        format!(
            "{{\"match\": {{\"op\": \"{operator}\", \"left\": {left_side}, \"right\": {right_side}}}}}"
        )
    }
}
