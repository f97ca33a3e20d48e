//! Planned masks: the masks of [`fewest_masks`](super::fewest_masks) for a flow table whose
//! rules differ in few bits, such as a list of blocked ports.
//!
//! # Idea
//! Many tables match on one field: every rule has the same Ethernet type and protocol, and
//! another port. The bits where all rules agree are *constant*. At most 16 other bits remain.
//! For these, [`PlannedPoints`] has a small set of masks, planned in advance. A packet that has the
//! constant values and that no rule matches gets the constant bits and the planned mask.
//!
//! The rules end at the first rule that matches every packet with the constant values, such
//! as the entry for all other packets. Rules after it never win such a packet.
//!
//! # Cost
//! A packet costs a lookup in an array of bytes. A plan takes up to 64 KiB. A plan is made
//! on a thread that has time, and is valid until the rules change.
//!
//! # References
//! [FCH14] §4 to §6.
//!
//! [FCH14]: classyard::papers#fch14

use super::agreement::{AgreementTrees, Group, WantedBits};
use super::fewest_masks::{MOST_MASKS, PlannedPoints};
use super::looked_at;
use crate::bits::Words;
use crate::header_space::Term;
use crate::key::KEY_WORDS;

/// Maximum number of planned masks, not counting the mask of all bits of the rules. A cache
/// has 32 masks by default, and reserves one for megaflows that fit no other.
const MAX_PLANNED_MASKS: usize = MOST_MASKS - 2;

/// Exchanges that are tried for a plan. With exchanges, plans need fewer megaflows, but a
/// plan of hundreds of rules takes seconds. Measured in `bench/records/constants.md` (Bits
/// of megaflows).
const EXCHANGES: usize = 0;

/// Maximum number of groups whose masks are planned. It bounds the time to read the
/// rules. Measured in `bench/records/constants.md` (Bits of megaflows).
const MAX_PLANNED_GROUPS: usize = 64;

/// Maximum number of bits where rules may differ: the bits of a port.
const MAX_VARYING_BITS: u32 = 16;

/// The rules for which masks are planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRules {
    /// The bits where all rules agree.
    constant: Term<KEY_WORDS>,
    /// The other bits of the rules.
    rules: Vec<Term<KEY_WORDS>>,
    /// The rank of the first rule that matches all packets with the constant values. All
    /// rules that may win such a packet and have a better rank are in `rules`.
    end: u64,
}

/// The masks for the packets that none of the rules matches.
#[derive(Debug)]
pub(crate) struct PlannedMasks {
    constant: Term<KEY_WORDS>,
    end: u64,
    points: PlannedPoints<KEY_WORDS>,
}

impl PlannedRules {
    /// Returns the rules for which masks can be planned. `always` is the rank of the best
    /// rule that matches every packet, or the worst rank. Returns `None` if the rules differ
    /// in too many bits, or if there are fewer than two.
    pub(crate) fn of(trees: &AgreementTrees, always: u64) -> Option<PlannedRules> {
        let groups = trees.groups();
        let mut groups: Vec<&Group> = groups.filter(|group| group.best_rank() < always).collect();
        groups.sort_unstable_by_key(|group| group.best_rank());
        let mut end = always;
        let mut constant: Option<Term<KEY_WORDS>> = None;
        let mut mask = [0; KEY_WORDS];
        // Groups that look only at constant bits: a rule matches all packets with the
        // constant values, or none.
        let (mut planned, mut broad) = (Vec::new(), Vec::new());
        for group in groups {
            if group.best_rank() >= end {
                break;
            }
            let group_mask = group.full_mask();
            if let Some(constant) = &constant
                && is_within(&group_mask, constant.mask())
            {
                let matching = group
                    .values()
                    .find(|(values, _)| constant.overlaps(&Term::new(*values, group_mask)));
                end = matching.map_or(end, |(_, rank)| end.min(rank));
                broad.push(group_mask);
                continue;
            }
            let agreed = group.agreed();
            let common = constant.map_or(agreed, |constant| constant.agreement(&agreed));
            mask = std::array::from_fn(|word| mask[word] | group_mask[word]);
            constant = Some(common);
            planned.push(group);
            if planned.len() > MAX_PLANNED_GROUPS || varying(&mask, &common) > MAX_VARYING_BITS {
                return None;
            }
        }
        let constant = constant?;
        if broad.iter().any(|broad| !is_within(broad, constant.mask())) {
            return None;
        }
        let mut rules = Vec::new();
        for group in planned {
            let group_mask = group.full_mask();
            let varying = std::array::from_fn(|word| group_mask[word] & !constant.mask()[word]);
            let values = group.values().filter(|&(_, rank)| rank < end);
            rules.extend(values.map(|(values, _)| Term::new(values, varying)));
        }
        (rules.len() >= 2).then_some(PlannedRules {
            constant,
            rules,
            end,
        })
    }

    /// Plans the masks. Returns `None` if the rules differ in too many bits.
    pub(crate) fn plan(self) -> Option<PlannedMasks> {
        let varying = looked_at(&self.rules);
        let points = PlannedPoints::new(&varying, &self.rules, MAX_PLANNED_MASKS, EXCHANGES)?;
        Some(PlannedMasks {
            constant: self.constant,
            end: self.end,
            points,
        })
    }
}

impl PlannedMasks {
    /// Adds the planned mask of a packet to `wanted`. Returns false, and adds nothing, if
    /// there is none: if one of the rules wins the packet, given by its rank, or if the
    /// packet lacks a constant value.
    pub(crate) fn add_planned(
        &self,
        packet: &Words,
        winner: u64,
        wanted: &mut WantedBits<'_>,
    ) -> bool {
        if winner < self.end || !self.constant.contains(packet) {
            return false;
        }
        let Some(mask) = self.points.mask(packet) else {
            return false;
        };
        for (word, (planned, constant)) in mask.iter().zip(self.constant.mask()).enumerate() {
            wanted.add_exactly(word, planned | constant);
        }
        true
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.points.bytes()
    }
}

/// True if all bits of `mask` are bits of `wide`.
fn is_within(mask: &Words, wide: &Words) -> bool {
    (0..KEY_WORDS).all(|word| mask[word] & !wide[word] == 0)
}

/// Returns the number of bits of a mask that are not constant.
fn varying(mask: &Words, constant: &Term<KEY_WORDS>) -> u32 {
    let words = mask.iter().zip(constant.mask());
    words
        .map(|(mask, constant)| (mask & !constant).count_ones())
        .sum()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bits::Known;
    use crate::megaflow::agreement::prefix_fields;

    const PROTOCOL: Known = Known {
        word: 5,
        mask: 0xff << 24,
        value: 6 << 24,
    };

    /// Returns the bits of a rule for a protocol and a destination port.
    fn port_rule(port: u64) -> [Known; 2] {
        let port = Known {
            word: 6,
            mask: 0xffff << 16,
            value: port << 16,
        };
        [PROTOCOL, port]
    }

    fn packet(protocol: u64, port: u64) -> Words {
        let mut words = [0; KEY_WORDS];
        (words[5], words[6]) = (protocol << 24, port << 16);
        words
    }

    #[test]
    fn no_planned_flow_has_a_port_of_a_rule() {
        let ports: HashSet<u64> = (0..100)
            .map(|number| number * number * 7 % 65_536)
            .collect();
        let mut trees = AgreementTrees::default();
        for (rank, &port) in (0..).zip(&ports) {
            trees.insert(&port_rule(port), rank);
        }
        let end = 1_000;
        trees.insert(&[PROTOCOL], end);
        trees.insert(&port_rule(5), end + 1);
        let planned = PlannedRules::of(&trees, u64::MAX).expect("few bits differ");
        assert_eq!(planned.end, end);
        let masks = planned.plan().expect("few bits differ");
        let (mut flows, mut flow_masks) = (HashSet::new(), HashSet::new());
        for port in (0..65_536).filter(|port| !ports.contains(port)) {
            let mut mask = [0; KEY_WORDS];
            let mut wanted = WantedBits::new(&mut mask, prefix_fields(false));
            assert!(masks.add_planned(&packet(6, port), end, &mut wanted));
            assert_eq!(mask[5], PROTOCOL.mask);
            if flows.insert((mask[6], port << 16 & mask[6])) {
                flow_masks.insert(mask[6]);
                let covers = |other: &&u64| (*other ^ port) << 16 & mask[6] == 0;
                assert_eq!(ports.iter().find(covers), None, "port {port}");
            }
        }
        // One more mask has all bits of the rules.
        assert!(flow_masks.len() <= MAX_PLANNED_MASKS + 1);
        assert!(flows.len() < 600, "{} flows", flows.len());
        // Other packets have no planned mask.
        let mut mask = [0; KEY_WORDS];
        let mut wanted = WantedBits::new(&mut mask, prefix_fields(false));
        assert!(!masks.add_planned(&packet(17, 9), u64::MAX, &mut wanted));
        let blocked = *ports.iter().next().expect("a port");
        assert!(!masks.add_planned(&packet(6, blocked), 0, &mut wanted));
    }

    #[test]
    fn rules_that_differ_in_many_bits_are_not_planned() {
        let mut trees = AgreementTrees::default();
        let address = |value: u64| Known {
            word: 7,
            mask: u64::from(u32::MAX),
            value,
        };
        trees.insert(&[address(1)], 0);
        assert_eq!(PlannedRules::of(&trees, u64::MAX), None, "one rule");
        trees.insert(&[address(1 << 16 | 1)], 1);
        assert!(
            PlannedRules::of(&trees, u64::MAX).is_some(),
            "one bit differs"
        );
        trees.insert(&[address(0xffff_fffe)], 2);
        assert_eq!(PlannedRules::of(&trees, u64::MAX), None, "31 bits differ");
        assert_eq!(
            PlannedRules::of(&trees, 0),
            None,
            "another rule always wins"
        );
    }
}
