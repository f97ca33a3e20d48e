//! Cookies of rules, indexed by rule id.
//!
//! # Idea
//! Engines that support updates store each rule's matches, priority, id and
//! action. They do not store cookies, which are the caller's data. Each copy of
//! an engine in a live table has [`Cookies`] next to it, which change with
//! the engine's rules. Few users set cookies, so only nonzero cookies are
//! stored.
//!
//! # Data layout
//! ```text
//! by_id  { rule id → cookie, two halves }   rules whose cookie is not 0
//! ```
//!
//! # Cost
//! Each update takes one operation of [`IdMap`] if any rule has a nonzero
//! cookie, otherwise none. If ids are dense, a rule without a cookie takes no
//! memory and a rule with a cookie takes 9 to 13 bytes; after many rules were
//! removed, up to 15 bytes.

use crate::model::rule::{RuleId, RuleRef};
use crate::model::ruleset::RuleSet;
use crate::model::seed::Seed;
use crate::model::transaction::Change;
use crate::parts::id_map::IdMap;

/// A cookie stored with an alignment of 4 bytes instead of 8.
#[derive(Clone, Copy, Debug)]
struct Halves([u32; 2]);

impl Halves {
    #[allow(clippy::cast_possible_truncation)] // split into halves
    fn new(cookie: u64) -> Halves {
        Halves([cookie as u32, (cookie >> 32) as u32])
    }

    fn cookie(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// The cookies of one engine's rules.
#[derive(Debug)]
pub(super) struct Cookies {
    by_id: IdMap<Halves>,
}

impl Cookies {
    /// Copies the cookies of a rule set.
    pub(super) fn new(rules: &RuleSet) -> Cookies {
        Cookies::with_seed(rules, Seed::PROCESS)
    }

    /// Like [`new`](Self::new), with a seed for the map; the bytes held depend
    /// slightly on the seed.
    fn with_seed(rules: &RuleSet, seed: Seed) -> Cookies {
        let mut cookies = Cookies {
            by_id: IdMap::new(seed.number()),
        };
        for rule in rules.iter() {
            cookies.put(&rule);
        }
        cookies
    }

    /// Applies a change that the engine has accepted to the cookies.
    #[inline]
    pub(super) fn change(&mut self, change: &Change<'_>) {
        match change {
            Change::Insert(rule) | Change::Modify(rule) => self.put(rule),
            Change::Remove(id) => self.clear(*id),
        }
    }

    #[inline]
    fn put(&mut self, rule: &RuleRef<'_>) {
        match rule.cookie() {
            0 => self.clear(rule.id()),
            cookie => {
                self.by_id.set(rule.id(), Halves::new(cookie));
            }
        }
    }

    #[inline]
    fn clear(&mut self, id: RuleId) {
        if !self.by_id.is_empty() {
            self.by_id.remove(id);
        }
    }

    /// Returns the cookie of a rule in the engine; 0 if none was set.
    pub(super) fn get(&self, id: RuleId) -> u64 {
        let cookie = (!self.by_id.is_empty()).then(|| self.by_id.get(id));
        cookie.flatten().map_or(0, Halves::cookie)
    }

    /// Returns the bytes held, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        self.by_id.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::rule::{ActionId, FieldMatch, Priority, Rule};
    use crate::model::schema::Schema;
    use crate::model::seed::splitmix;

    fn rule(id: usize, cookie: u64) -> Rule {
        let any = [FieldMatch::Any; 5];
        let (schema, id) = (Schema::ipv4_5tuple(), RuleId::from_index(id));
        let rule = Rule::new(&schema, id, Priority(1), ActionId(1), &any);
        rule.unwrap().with_cookie(cookie)
    }

    /// Uses a fixed seed: an index may hold up to 16 KB more or less (one
    /// segment), depending on where its entries are.
    fn empty() -> Cookies {
        let rules = RuleSet::new(&Schema::ipv4_5tuple());
        Cookies::with_seed(&rules, Seed::new(0x1319_8a2e_0370_7344))
    }

    /// Compares the cookies with a map while rules are inserted, modified and
    /// removed in random order. Either half of a cookie may be 0.
    #[test]
    #[allow(clippy::cast_possible_truncation)]
    fn what_was_put_in_last_is_found_and_nothing_else() {
        let (mut cookies, mut model) = (empty(), BTreeMap::new());
        let mut state = 5;
        for step in 0..20_000 {
            let roll = splitmix(&mut state);
            let id = (roll % 300) as usize;
            let number = RuleId::from_index(id);
            if roll >> 32 & 1 == 0 && model.remove(&id).is_some() {
                cookies.change(&Change::Remove(number));
            } else {
                let halves = splitmix(&mut state);
                let cookie = match step / 2000 % 2 {
                    0 => 0,
                    _ => [0, halves, halves << 32, halves >> 32][(roll >> 40) as usize % 4],
                };
                let rule = rule(id, cookie);
                let view = rule.view();
                let change = match model.insert(id, cookie) {
                    None => Change::Insert(view),
                    Some(_) => Change::Modify(view),
                };
                cookies.change(&change);
            }
            let expected = model.get(&id).copied().unwrap_or(0);
            assert_eq!(cookies.get(number), expected);
        }
        for id in 0..300 {
            let expected = model.get(&id).copied().unwrap_or(0);
            assert_eq!(cookies.get(RuleId::from_index(id)), expected);
        }
        assert!(model.len() > 50);
        assert!(model.values().filter(|&&cookie| cookie != 0).count() > 20);
    }

    /// Checks the bytes for each rule that the documentation states: after
    /// inserts, after replacements, and after three of four rules were removed.
    #[test]
    fn a_rule_takes_few_bytes() {
        for (cookie, max_bytes, max_bytes_later) in [(0, 0, 0), (7, 13, 15)] {
            let insert = |cookies: &mut Cookies, id| {
                cookies.change(&Change::Insert(rule(id, cookie).view()));
            };
            let remove = |cookies: &mut Cookies, id| {
                cookies.change(&Change::Remove(RuleId::from_index(id)));
            };
            for rules in [5000, 10_000, 30_000, 65_536, 106_600, 200_000] {
                let mut cookies = empty();
                (0..rules).for_each(|id| insert(&mut cookies, id));
                let check = |cookies: &Cookies, max_bytes: usize| {
                    let bytes = cookies.bytes();
                    assert!(
                        bytes <= max_bytes * rules,
                        "{bytes} bytes for {rules} rules"
                    );
                };
                check(&cookies, max_bytes);
                for id in 0..rules {
                    remove(&mut cookies, id);
                    insert(&mut cookies, id);
                }
                check(&cookies, max_bytes);
                (rules..4 * rules).for_each(|id| insert(&mut cookies, id));
                (rules..4 * rules).for_each(|id| remove(&mut cookies, id));
                check(&cookies, max_bytes_later);
            }
        }
    }
}
