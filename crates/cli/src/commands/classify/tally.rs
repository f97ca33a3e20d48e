//! Counts of headers by the rule that they hit.

use std::collections::BTreeMap;

use classyard::{Policy, RuleId};

use super::Lookups;
use super::packets::Chunk;

/// A number of headers, and the bytes of their packets if they come from packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) headers: u64,
    pub(super) bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.headers += 1;
        self.bytes += bytes;
    }

    fn merge(&mut self, other: Count) {
        self.headers += other.headers;
        self.bytes += other.bytes;
    }
}

/// Counts of headers by the rule that they hit.
pub(super) struct Tally<'a> {
    positions: Positions<'a>,
    /// The counts of rules, by position in file order.
    pub(super) rules: Vec<Count>,
    /// The headers that match no rule.
    pub(super) misses: Count,
    /// All headers.
    pub(super) total: Count,
}

/// The totals over the rules with one action.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ActionTally {
    pub(super) rules: u64,
    pub(super) rules_hit: u64,
    pub(super) count: Count,
}

impl<'a> Tally<'a> {
    /// Creates counts of zero.
    pub(super) fn new(policy: &'a Policy) -> Tally<'a> {
        Tally {
            positions: Positions::new(policy),
            rules: vec![Count::default(); policy.len()],
            misses: Count::default(),
            total: Count::default(),
        }
    }

    /// Creates counts from the number of headers that each rule decides, by the rule's id, and
    /// the number of headers that match no rule.
    pub(super) fn of_hits(policy: &'a Policy, hits: &BTreeMap<u32, u64>, misses: u64) -> Tally<'a> {
        let mut tally = Tally::new(policy);
        for (&id, &headers) in hits {
            let id = RuleId::new(id).ok();
            let position = id.and_then(|id| tally.positions.get(id));
            let position = position.expect("a winner is a rule of the policy");
            tally.rules[position].headers = headers;
            tally.total.headers += headers;
        }
        tally.misses.headers = misses;
        tally.total.headers += misses;
        tally
    }

    /// Counts the winners of some headers.
    pub(super) fn add(&mut self, chunk: &Chunk, lookups: &Lookups) {
        let lengths = chunk.packets.as_ref().map(|packets| &packets.lengths);
        for (index, winner) in lookups.in_order(&chunk.trace).enumerate() {
            let bytes = lengths.map_or(0, |lengths| u64::from(lengths[index]));
            match winner.rule().and_then(|id| self.positions.get(id)) {
                Some(position) => self.rules[position].add(bytes),
                None => self.misses.add(bytes),
            }
            self.total.add(bytes);
        }
    }

    /// Returns the positions of the rules that were hit, most hits first.
    pub(super) fn ranking(&self) -> Vec<usize> {
        let mut hit: Vec<usize> = (0..self.rules.len())
            .filter(|&at| self.rules[at].headers > 0)
            .collect();
        hit.sort_by_key(|&at| (std::cmp::Reverse(self.rules[at].headers), at));
        hit
    }

    /// Returns the positions of the rules that were never hit, in file order.
    pub(super) fn never_hit(&self) -> Vec<usize> {
        (0..self.rules.len())
            .filter(|&at| self.rules[at].headers == 0)
            .collect()
    }

    /// Returns the actions by name, most hits first; `None` for rules without an
    /// action name.
    pub(super) fn actions(&self, policy: &Policy) -> Vec<(Option<String>, ActionTally)> {
        let mut actions: BTreeMap<Option<&str>, ActionTally> = BTreeMap::new();
        for (&id, &count) in policy.ids().iter().zip(&self.rules) {
            let rule = policy.rule(id).next();
            let name = rule.and_then(|(_, rule)| policy.action_name(rule.action()));
            let action = actions.entry(name).or_default();
            action.rules += 1;
            action.rules_hit += u64::from(count.headers > 0);
            action.count.merge(count);
        }
        let mut actions: Vec<_> = actions
            .into_iter()
            .map(|(name, tally)| (name.map(str::to_owned), tally))
            .collect();
        actions.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.count.headers));
        actions
    }
}

/// Maps ids to positions, without hashing if the ids are small.
struct Positions<'a> {
    policy: &'a Policy,
    dense: Option<Vec<u32>>,
}

impl<'a> Positions<'a> {
    fn new(policy: &'a Policy) -> Positions<'a> {
        let largest = policy.ids().iter().map(|id| id.index()).max();
        let small = largest.filter(|&largest| largest < 8 * policy.len() + 1024);
        let dense = small.map(|largest| {
            let mut positions = vec![u32::MAX; largest + 1];
            for (position, id) in (0..).zip(policy.ids()) {
                positions[id.index()] = position;
            }
            positions
        });
        Positions { policy, dense }
    }

    fn get(&self, id: RuleId) -> Option<usize> {
        match &self.dense {
            Some(positions) => positions.get(id.index()).map(|&position| position as usize),
            None => self.policy.position(id),
        }
    }
}
