//! Generated rules over the fifteen fields of [DEC14].
//!
//! # Idea
//! For each field, the paper gives the number of distinct values as a ratio to the
//! number of rules (Table III), counting the wildcard as one value. So each field gets
//! a pool with that number of matches, as far as its width allows, and each rule takes
//! one match from each pool. Every match of a pool is used once before a match is used
//! again, so that the ratios are met.
//!
//! The paper does not give the frequency of wildcards; our figures are in
//! [`OpenFlowRules::default`].
//!
//! # Consistent rules
//! OpenFlow allows a match on a field of a protocol only together with a match that
//! selects the protocol. With [`OpenFlowRules::consistent`], rules get the matches that
//! they lack, which lowers the ratios of the fields in question: IP fields need
//! `eth_type` 0x0800; MPLS fields need `eth_type` 0x8847 and no IP fields; ports need
//! TCP, UDP or SCTP; a VLAN priority needs a VLAN.
//!
//! # References
//! [DEC14] §V.A, Tables I and III; OpenFlow Switch Specification 1.5.1, §7.2.3.8.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::schema::FieldRole;
use classyard::{Field, FieldMatch, MatchKind, Progress, Schema};

use super::draw::{Draw, whole};
use super::five_tuple::Seen;
use super::random::check_probability;
use super::{GenerateError, GeneratorConfig, Steps};

/// The parameters of rules over the fifteen fields. Arrays are in the schema's order:
/// in_port, metadata, eth_src, eth_dst, eth_type, vlan_vid, vlan_pcp, mpls_label,
/// mpls_tc, src, dst, proto, ip_dscp, sport, dport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenFlowRules {
    /// For each field, the number of distinct values per rule, 0 to 1.
    pub ratios: [f64; 15],
    /// For each field, the probability of a wildcard.
    pub wildcards: [f64; 15],
    /// True if rules satisfy OpenFlow's prerequisites.
    pub consistent: bool,
}

impl Default for OpenFlowRules {
    /// The ratios of [DEC14] Table III, and wildcards as in a switch that does a bit of
    /// everything. Without prerequisites, as in the paper.
    ///
    /// [DEC14]: classyard::papers#dec14
    fn default() -> OpenFlowRules {
        OpenFlowRules {
            ratios: [
                0.02, 0.02, 0.25, 0.25, 0.01, 0.2, 1.0, 0.02, 1.0, 0.25, 0.25, 0.02, 1.0, 0.1, 0.1,
            ],
            wildcards: [
                0.6, 0.8, 0.6, 0.5, 0.4, 0.5, 0.8, 0.9, 0.9, 0.4, 0.3, 0.4, 0.8, 0.7, 0.5,
            ],
            consistent: false,
        }
    }
}

const ETH_TYPE: usize = 4;
const VLAN_VID: usize = 5;
const VLAN_PCP: usize = 6;
const MPLS_FIELDS: std::ops::Range<usize> = 7..9;
const IP_FIELDS: std::ops::Range<usize> = 9..15;
const IP_PROTO: usize = 11;
const PORT_FIELDS: std::ops::Range<usize> = 13..15;

/// The maximum number of rules drawn for each requested rule.
const TRIES_PER_RULE: usize = 50;

/// The matches of a field, the wildcard first, and the number of matches already used.
struct Pool {
    matches: Vec<FieldMatch>,
    used: usize,
}

/// The wildcard's index in every pool.
const WILDCARD_INDEX: u32 = 0;

/// A rule before packing: for each field, the index of its match in the field's pool.
/// In this form a million rules take 60 MB instead of 700 MB.
type Places = [u32; 15];

impl Pool {
    /// Creates a pool with as many distinct matches as the ratio requires and the width
    /// allows.
    fn new(field: &Field, ratio: f64, wildcard: f64, rules: usize, draw: &mut Draw) -> Pool {
        let target = whole((rules as f64 * ratio).ceil(), rules);
        // The wildcard counts as one value.
        let target = target.saturating_sub(usize::from(wildcard > 0.0)).max(1);
        let values = usize::try_from(field.max_value()).unwrap_or(usize::MAX);
        let target = match field.kind() {
            MatchKind::Exact => target.min(values.saturating_add(1)),
            _ => target,
        };
        let mut pool = Pool {
            matches: vec![FieldMatch::Any],
            used: 0,
        };
        let mut seen: Seen<FieldMatch> = Seen::default();
        let mut tries = target * TRIES_PER_RULE;
        while pool.matches.len() <= target && tries > 0 {
            tries -= 1;
            let field_match = one_match(field, &pool.matches[1..], draw);
            if seen.insert(field_match) {
                pool.matches.push(field_match);
            }
        }
        // Small fields are filled up in ascending order.
        if field.kind() == MatchKind::Exact && field.width() <= 16 {
            for value in 0..=field.max_value() {
                if pool.matches.len() > target {
                    break;
                }
                if seen.insert(FieldMatch::Exact(value)) {
                    pool.matches.push(FieldMatch::Exact(value));
                }
            }
        }
        pool
    }

    fn draw(&mut self, draw: &mut Draw) -> u32 {
        let index = if self.used + 1 < self.matches.len() {
            self.used += 1;
            self.used
        } else {
            1 + draw.below(self.matches.len() - 1)
        };
        u32::try_from(index).expect("fewer matches than rules")
    }

    /// Returns the index of a value, and adds the value to the pool if it is missing.
    fn place(&mut self, value: u128) -> u32 {
        let field_match = FieldMatch::Exact(value);
        let known = self.matches.iter().position(|entry| *entry == field_match);
        let index = known.unwrap_or_else(|| {
            self.matches.push(field_match);
            self.matches.len() - 1
        });
        u32::try_from(index).expect("fewer matches than rules")
    }
}

/// Draws a match for a field's pool, which already has the matches in `pool`.
fn one_match(field: &Field, pool: &[FieldMatch], draw: &mut Draw) -> FieldMatch {
    let full = field.max_value();
    match (field.kind(), field.role()) {
        (MatchKind::Prefix, _) => {
            // Half of the prefixes start inside another prefix of the pool, so that
            // networks nest.
            let base = match pool {
                [_, ..] if draw.coin() => match *draw.of(pool) {
                    FieldMatch::Exact(value) | FieldMatch::Prefix { value, .. } => value,
                    _ => 0,
                },
                _ => draw.up_to(full),
            };
            let length = *draw.of(&[32, 32, 32, 32, 28, 24, 24, 24, 20, 16, 16, 8]);
            let keep = length.min(*draw.of(&[8, 12, 16, 20, 24]));
            let own_bits = draw.up_to(full);
            let value = (base & !(full >> keep)) | (own_bits & (full >> keep));
            match length {
                32 => FieldMatch::Exact(value),
                length => FieldMatch::Prefix {
                    value: value & !(full >> length),
                    length,
                },
            }
        }
        (MatchKind::Range, FieldRole::SourcePort | FieldRole::DestinationPort) => {
            // Most ports are single ports.
            if draw.below(10) < 7 {
                return FieldMatch::Exact(draw.up_to(full));
            }
            let low = draw.up_to(full - 1);
            let reach = (full - low).min(1 << (1 + draw.below(14)));
            let high = low + 1 + draw.up_to(reach - 1);
            match (low, high) {
                (0, high) if high == full => FieldMatch::Exact(low),
                (low, high) => FieldMatch::Range { low, high },
            }
        }
        _ => match field.name() {
            // The common values come first into the pools.
            "eth_type" if pool.is_empty() => FieldMatch::Exact(0x0800),
            "proto" if pool.len() < 3 => FieldMatch::Exact([6, 17, 1][pool.len()]),
            // Switches have few ports.
            "in_port" => FieldMatch::Exact(1 + draw.up_to(4 * (pool.len() as u128 + 1))),
            // Individual, universally administered addresses.
            "eth_src" | "eth_dst" => FieldMatch::Exact(draw.up_to(full) & !(0b11 << 40)),
            _ => FieldMatch::Exact(draw.up_to(full)),
        },
    }
}

impl OpenFlowRules {
    /// Returns the default parameters with OpenFlow's prerequisites.
    #[must_use]
    pub fn consistent() -> OpenFlowRules {
        OpenFlowRules {
            consistent: true,
            ..OpenFlowRules::default()
        }
    }

    /// Returns distinct rules in random order.
    pub(super) fn generate(
        &self,
        config: &GeneratorConfig,
        progress: &mut dyn Progress,
    ) -> Result<impl ExactSizeIterator<Item = [FieldMatch; 15]> + use<>, GenerateError> {
        for &ratio in &self.ratios {
            check_probability("a ratio of distinct values", ratio)?;
        }
        for &wildcard in &self.wildcards {
            check_probability("a probability of wildcards", wildcard)?;
        }
        let schema = Schema::openflow15();
        let mut draw = Draw::new(config.seed, "openflow15");
        let mut pools: Vec<Pool> = schema
            .fields()
            .iter()
            .zip(self.ratios.iter().zip(&self.wildcards))
            .map(|(field, (&ratio, &wildcard))| {
                Pool::new(field, ratio, wildcard, config.rules, &mut draw)
            })
            .collect();
        let needs = self.consistent.then(|| Needs::new(&mut pools));
        let mut steps = Steps::new("drawing rules", config.rules, progress);
        let mut seen: Seen<Places> = Seen::default();
        let mut rules: Vec<Places> = Vec::with_capacity(config.rules);
        let mut tries = config.rules.saturating_mul(TRIES_PER_RULE);
        while rules.len() < config.rules && tries > 0 {
            tries -= 1;
            let mut rule: Places = std::array::from_fn(|field| {
                if draw.chance(self.wildcards[field]) {
                    WILDCARD_INDEX
                } else {
                    pools[field].draw(&mut draw)
                }
            });
            if let Some(needs) = &needs {
                needs.add_to(&mut rule, &mut pools, &mut draw);
            }
            if seen.insert(rule) {
                rules.push(rule);
                steps.advance(1)?;
            }
        }
        // The values that occur once are in the first rules, so shuffle the rules.
        for index in (1..rules.len()).rev() {
            rules.swap(index, draw.below(index + 1));
        }
        Ok(rules.into_iter().map(move |rule| {
            std::array::from_fn(|field| pools[field].matches[rule[field] as usize])
        }))
    }
}

/// The pool indices of the matches that other matches require.
struct Needs {
    ipv4: u32,
    mpls: u32,
    /// TCP, UDP, SCTP.
    with_ports: [u32; 3],
}

impl Needs {
    fn new(pools: &mut [Pool]) -> Needs {
        Needs {
            ipv4: pools[ETH_TYPE].place(0x0800),
            mpls: pools[ETH_TYPE].place(0x8847),
            with_ports: [6, 17, 132].map(|number| pools[IP_PROTO].place(number)),
        }
    }

    /// Adds the matches that a rule's other matches require.
    fn add_to(&self, rule: &mut Places, pools: &mut [Pool], draw: &mut Draw) {
        let set = |fields: &[u32]| fields.iter().any(|&place| place != WILDCARD_INDEX);
        if set(&rule[MPLS_FIELDS]) && set(&rule[IP_FIELDS]) {
            // A packet has either MPLS fields or IP fields.
            let drop = if draw.below(10) == 0 {
                IP_FIELDS
            } else {
                MPLS_FIELDS
            };
            rule[drop].fill(WILDCARD_INDEX);
        }
        if set(&rule[MPLS_FIELDS]) {
            rule[ETH_TYPE] = self.mpls;
        }
        if set(&rule[IP_FIELDS]) {
            rule[ETH_TYPE] = self.ipv4;
        }
        if set(&rule[PORT_FIELDS]) && !self.with_ports.contains(&rule[IP_PROTO]) {
            let [tcp, udp, sctp] = self.with_ports;
            rule[IP_PROTO] = *draw.of(&[tcp, tcp, tcp, udp, udp, sctp]);
        }
        if rule[VLAN_PCP] != WILDCARD_INDEX && rule[VLAN_VID] == WILDCARD_INDEX {
            rule[VLAN_VID] = pools[VLAN_VID].draw(draw);
        }
    }
}
