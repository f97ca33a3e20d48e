//! Cookies of rules, by id.
//!
//! # Idea
//! Engines that take updates hold what lookups need, matches, priorities and
//! ids, and each rule's action. A cookie is the caller's: it is kept here,
//! beside an engine, and changed with it. Few users set cookies, so only those
//! that are not 0 are here.
//!
//! # Data layout
//! ```text
//! by_id  { rule id → cookie, two halves }   rules whose cookie is not 0
//! ```
//!
//! # Cost
//! An update: one operation of [`IdMap`] as long as any rule has a cookie, none
//! otherwise. Memory where ids are dense: nothing for a rule without a cookie, 9
//! to 13 bytes for one with a cookie; after many rules have gone, up to 15.

use crate::id_map::IdMap;
use crate::rule::{RuleId, RuleRef};
use crate::ruleset::RuleSet;
use crate::seed::Seed;
use crate::transaction::Change;

/// A cookie that needs no alignment of its own.
#[derive(Clone, Copy, Debug)]
struct Halves([u32; 2]);

impl Halves {
    #[allow(clippy::cast_possible_truncation)] // taken apart
    fn new(cookie: u64) -> Halves {
        Halves([cookie as u32, (cookie >> 32) as u32])
    }

    fn cookie(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// The cookies of one engine's rules. Public in a private module: a hidden trait
/// of the live table names it.
#[derive(Debug)]
pub struct Cookies {
    by_id: IdMap<Halves>,
}

impl Cookies {
    /// Those of a rule set.
    pub(crate) fn new(rules: &RuleSet) -> Cookies {
        Cookies::with_seed(rules, Seed::PROCESS)
    }

    /// The same with a map that begins with a seed: bytes depend on it a little.
    fn with_seed(rules: &RuleSet, seed: Seed) -> Cookies {
        let mut cookies = Cookies {
            by_id: IdMap::new(seed.number()),
        };
        for rule in rules.iter() {
            cookies.put(&rule);
        }
        cookies
    }

    /// Does for cookies what the change does for an engine's rules. The engine
    /// has accepted it.
    #[inline]
    pub(crate) fn change(&mut self, change: &Change<'_>) {
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

    /// The cookie of a rule that the engine has; 0 if none was set.
    pub(crate) fn get(&self, id: RuleId) -> u64 {
        let cookie = (!self.by_id.is_empty()).then(|| self.by_id.get(id));
        cookie.flatten().map_or(0, Halves::cookie)
    }

    /// Bytes held, spare room included.
    pub(crate) fn bytes(&self) -> usize {
        self.by_id.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rule::{ActionId, FieldMatch, Priority, Rule};
    use crate::schema::Schema;
    use crate::seed::splitmix;

    fn rule(id: usize, cookie: u64) -> Rule {
        let any = [FieldMatch::Any; 5];
        let (schema, id) = (Schema::ipv4_5tuple(), RuleId::from_index(id));
        let rule = Rule::new(&schema, id, Priority(1), ActionId(1), &any);
        rule.unwrap().with_cookie(cookie)
    }

    /// With a seed of its own: an index may hold a segment of 16 KB more or
    /// less, depending on where entries lie.
    fn empty() -> Cookies {
        let rules = RuleSet::new(&Schema::ipv4_5tuple());
        Cookies::with_seed(&rules, Seed::new(0x1319_8a2e_0370_7344))
    }

    /// Against a map, over orders in which ids come, change and go; cookies of
    /// which either half may be 0.
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

    /// The bytes a rule that the documentation states: as rules come and are
    /// replaced, and after three of four have gone.
    #[test]
    fn a_rule_takes_few_bytes() {
        for (cookie, most, most_later) in [(0, 0, 0), (7, 13, 15)] {
            let insert = |cookies: &mut Cookies, id| {
                cookies.change(&Change::Insert(rule(id, cookie).view()));
            };
            let remove = |cookies: &mut Cookies, id| {
                cookies.change(&Change::Remove(RuleId::from_index(id)));
            };
            for rules in [5000, 10_000, 30_000, 65_536, 106_600, 200_000] {
                let mut cookies = empty();
                (0..rules).for_each(|id| insert(&mut cookies, id));
                let check = |cookies: &Cookies, most: usize| {
                    let bytes = cookies.bytes();
                    assert!(bytes <= most * rules, "{bytes} bytes for {rules} rules");
                };
                check(&cookies, most);
                for id in 0..rules {
                    remove(&mut cookies, id);
                    insert(&mut cookies, id);
                }
                check(&cookies, most);
                (rules..4 * rules).for_each(|id| insert(&mut cookies, id));
                (rules..4 * rules).for_each(|id| remove(&mut cookies, id));
                check(&cookies, most_later);
            }
        }
    }
}
