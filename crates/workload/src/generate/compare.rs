//! Comparison of two rule sets.
//!
//! [`Summary::of`] measures the properties that make a set easy or hard for the
//! engines; [`Comparison`] shows two summaries next to each other. Distances between
//! distributions are total variation distances: 0 if they are equal, 1 if they have
//! nothing in common.

use std::collections::BTreeMap;
use std::fmt;

use classyard::schema::FieldRole;
use classyard::{FieldId, KeyVec, RuleRef, RuleSet, Schema};

use super::draw::Draw;
use super::five_tuple::Seen;
use super::profile::{PortClass, PortSide};

/// Shares that add up to 1.
pub type Distribution<K> = BTreeMap<K, f64>;

/// The measured properties of a rule set.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of rules.
    pub rules: usize,
    /// The number of distinct masks: the tables of tuple space search. A range counts
    /// as the prefix that contains it.
    pub tuples: usize,
    /// The number of distinct source prefixes.
    pub sources: usize,
    /// The number of distinct destination prefixes.
    pub destinations: usize,
    /// The number of distinct pairs of source and destination prefix.
    pub address_pairs: usize,
    /// The number of rules that match a header, averaged over headers that are corners
    /// of random rules, all rules equally likely.
    pub matches: f64,
    /// Lengths of source and destination prefix.
    pub lengths: Distribution<(u32, u32)>,
    /// Port classes.
    pub ports: Distribution<PortClass>,
    /// Protocols; `None` is any.
    pub protocols: Distribution<Option<u8>>,
}

impl Summary {
    /// Measures a rule set. `headers` headers are looked up by scanning the rules, so
    /// the time is proportional to the number of headers times the number of rules.
    /// Fields that the schema lacks leave their distributions empty.
    #[must_use]
    pub fn of(rules: &RuleSet, headers: usize, seed: u64) -> Summary {
        let schema = rules.schema();
        let role = |role| schema.field_with_role(role);
        let source = role(FieldRole::SourceAddress);
        let destination = role(FieldRole::DestinationAddress);
        let ports = role(FieldRole::SourcePort).zip(role(FieldRole::DestinationPort));
        let protocol = schema.field_named("proto");

        let mut summary = Summary {
            rules: rules.len(),
            tuples: rules
                .iter()
                .map(|rule| rule.mask())
                .collect::<Seen<_>>()
                .len(),
            sources: distinct(rules, source),
            destinations: distinct(rules, destination),
            address_pairs: rules
                .iter()
                .map(|rule| (prefix(&rule, source), prefix(&rule, destination)))
                .collect::<Seen<_>>()
                .len(),
            matches: matches(rules, headers, seed),
            lengths: BTreeMap::new(),
            ports: BTreeMap::new(),
            protocols: BTreeMap::new(),
        };
        let rule_share = 1.0 / rules.len().max(1) as f64;
        for rule in rules.iter() {
            if let (Some(source), Some(destination)) = (source, destination) {
                let lengths = (length(&rule, source), length(&rule, destination));
                *summary.lengths.entry(lengths).or_default() += rule_share;
            }
            if let Some((source, destination)) = ports {
                let class = PortClass {
                    source: side(&rule, source),
                    destination: side(&rule, destination),
                };
                *summary.ports.entry(class).or_default() += rule_share;
            }
            if let Some(protocol) = protocol {
                let (low, high) = rule.ends(protocol);
                let number = (low == high).then(|| u8::try_from(low).unwrap_or(u8::MAX));
                *summary.protocols.entry(number).or_default() += rule_share;
            }
        }
        summary
    }
}

/// Returns a field's value and mask.
fn prefix(rule: &RuleRef<'_>, field: Option<FieldId>) -> Option<(u128, u128)> {
    let placement = rule.schema().placement(field?);
    Some((placement.get(rule.value()), placement.get(rule.mask())))
}

fn distinct(rules: &RuleSet, field: Option<FieldId>) -> usize {
    let Some(field) = field else { return 0 };
    let values = rules.iter().map(|rule| prefix(&rule, Some(field)));
    values.collect::<Seen<_>>().len()
}

fn length(rule: &RuleRef<'_>, field: FieldId) -> u32 {
    let placement = rule.schema().placement(field);
    placement.get(rule.mask()).count_ones()
}

fn side(rule: &RuleRef<'_>, field: FieldId) -> PortSide {
    let (low, high) = rule.ends(field);
    match (u16::try_from(low), u16::try_from(high)) {
        (Ok(low), Ok(high)) => PortSide::of(low, high),
        _ => PortSide::Range,
    }
}

/// Draws a random corner of a rule, as values of its fields.
pub(crate) fn corner(schema: &Schema, rule: &RuleRef<'_>, draw: &mut Draw, values: &mut Vec<u128>) {
    values.clear();
    values.extend(schema.field_ids().map(|id| {
        let (low, high) = rule.ends(id);
        if draw.coin() { high } else { low }
    }));
}

fn matches(rules: &RuleSet, headers: usize, seed: u64) -> f64 {
    if rules.is_empty() || headers == 0 {
        return 0.0;
    }
    let mut draw = Draw::new(seed, "compare");
    let schema = rules.schema();
    let mut keys = KeyVec::new(schema);
    let mut values = Vec::new();
    for _ in 0..headers {
        let rule = rules.rule(draw.below(rules.len()));
        corner(schema, &rule, &mut draw, &mut values);
        keys.push(&values).expect("corners are headers");
    }
    let count: usize = keys
        .as_slice()
        .iter()
        .map(|key| rules.iter().filter(|rule| rule.matches(key)).count())
        .sum();
    count as f64 / headers as f64
}

/// Returns the total variation distance: half the sum of the differences.
#[must_use]
pub fn distance<K: Ord>(a: &Distribution<K>, b: &Distribution<K>) -> f64 {
    let a_differences = a
        .iter()
        .map(|(key, share)| (share - b.get(key).unwrap_or(&0.0)).abs());
    let only_in_b = b.iter().filter(|(key, _)| !a.contains_key(key));
    (a_differences.sum::<f64>() + only_in_b.map(|(_, share)| share).sum::<f64>()) / 2.0
}

/// Two rule sets compared; prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The names of the sets.
    pub names: [String; 2],
    /// The summaries of the sets.
    pub summaries: [Summary; 2],
}

impl Comparison {
    /// Returns the distances between the distributions of prefix lengths, port classes
    /// and protocols.
    #[must_use]
    pub fn distances(&self) -> [(&'static str, f64); 3] {
        let [a, b] = &self.summaries;
        [
            ("prefix lengths", distance(&a.lengths, &b.lengths)),
            ("port classes", distance(&a.ports, &b.ports)),
            ("protocols", distance(&a.protocols, &b.protocols)),
        ]
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.summaries;
        let [left, right] = &self.names;
        writeln!(f, "{:22} {left:>12} {right:>12} {:>7}", "", "ratio")?;
        let counts = [
            ("rules", a.rules, b.rules),
            ("tuples", a.tuples, b.tuples),
            ("source prefixes", a.sources, b.sources),
            ("destination prefixes", a.destinations, b.destinations),
            ("address pairs", a.address_pairs, b.address_pairs),
        ];
        for (name, a, b) in counts {
            let ratio = b as f64 / a.max(1) as f64;
            writeln!(f, "{name:22} {a:>12} {b:>12} {ratio:>7.2}")?;
        }
        let ratio = b.matches / a.matches.max(f64::MIN_POSITIVE);
        let name = "matches per header";
        writeln!(
            f,
            "{name:22} {:>12.2} {:>12.2} {ratio:>7.2}",
            a.matches, b.matches
        )?;
        for (name, distance) in self.distances() {
            writeln!(f, "{:22} {distance:>33.3}", format!("distance of {name}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, FieldMatch, Priority, RuleId};

    use super::*;

    fn sample() -> RuleSet {
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        let net = |value, length| FieldMatch::Prefix { value, length };
        let any = FieldMatch::Any;
        let web = FieldMatch::Exact(80);
        let high = FieldMatch::Range {
            low: 1024,
            high: 65535,
        };
        let list = [
            [net(0x0a00_0000, 8), any, any, web, FieldMatch::Exact(6)],
            [net(0x0a00_0000, 8), any, high, web, FieldMatch::Exact(6)],
            [net(0x0b00_0000, 8), any, any, any, any],
            [any, any, any, any, any],
        ];
        for (index, matches) in list.iter().enumerate() {
            let id = RuleId::from_index(index);
            rules.add(id, Priority(1), ActionId(0), matches).unwrap();
        }
        rules
    }

    #[test]
    fn a_summary_counts_what_is_there() {
        let summary = Summary::of(&sample(), 10_000, 1);
        // The high ports share no bit, so rules 0 and 1 have the same tuple.
        assert_eq!((summary.rules, summary.tuples), (4, 3));
        assert_eq!((summary.sources, summary.destinations), (3, 1));
        assert_eq!(summary.address_pairs, 3);
        assert!((summary.lengths[&(8, 0)] - 0.75).abs() < 1e-12);
        assert!((summary.protocols[&Some(6)] - 0.5).abs() < 1e-12);
        let class = PortClass::from_name("high-exact").unwrap();
        assert!((summary.ports[&class] - 0.25).abs() < 1e-12);
        // 2.5 (the corner's source port is high half of the time), 3, 2 and 1 (a corner
        // of the rule for everything is in neither network).
        assert!(
            (summary.matches - 2.125).abs() < 0.05,
            "{}",
            summary.matches
        );
        let nothing = Summary::of(&RuleSet::new(&Schema::openflow15()), 10, 1);
        assert_eq!((nothing.rules, nothing.tuples), (0, 0));
    }

    #[test]
    fn distances_are_between_0_and_1_and_print() {
        let (a, b) = (sample(), RuleSet::new(&Schema::ipv4_5tuple()));
        let [a, b] = [a, b].map(|rules| Summary::of(&rules, 10, 1));
        assert!(distance(&a.ports, &a.ports).abs() < 1e-12);
        assert!((distance(&a.ports, &b.ports) - 0.5).abs() < 1e-12);
        let far = Distribution::from([(None, 1.0)]);
        assert!((distance(&Distribution::from([(Some(6), 1.0)]), &far) - 1.0).abs() < 1e-12);
        let comparison = Comparison {
            names: ["this".to_owned(), "that".to_owned()],
            summaries: [a, b],
        };
        let table = comparison.to_string();
        assert!(
            table.contains("tuples") && table.contains("that"),
            "{table}"
        );
    }
}
