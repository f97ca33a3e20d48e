//! Actions and cookies of rules, by id.
//!
//! # Idea
//! Engines hold what lookups need: matches, priorities and ids. What else
//! belongs to a rule is kept here, beside an engine, and changed with it.
//! Matches and priorities are read from the engine
//! ([`copy_rule`](crate::classifier::DynamicClassifier::copy_rule)), so nothing
//! is kept twice. Few users set cookies, so these have a map of their own, with
//! the rules only whose cookie is not 0.
//!
//! # Data layout
//! ```text
//! actions  { rule id → action }               every rule
//! cookies  { rule id → cookie, two halves }   rules whose cookie is not 0
//! ```
//!
//! # Cost
//! An update or a lookup: one operation of [`IdMap`] in `actions`, and one in
//! `cookies` as long as any rule has a cookie. Memory where ids are dense: 5 to
//! 6 bytes a rule without a cookie, 14 to 16 with one, and 16 KB besides; after
//! many rules have gone, up to 8 and 20.

use crate::id_map::IdMap;
use crate::rule::{ActionId, RuleId, RuleRef};
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

/// The actions and cookies of one engine's rules. Public in a private module:
/// a hidden trait of the live table names it.
#[derive(Debug)]
pub struct RuleStore {
    actions: IdMap<ActionId>,
    cookies: IdMap<Halves>,
}

impl RuleStore {
    /// Those of a rule set.
    pub(crate) fn new(rules: &RuleSet) -> RuleStore {
        RuleStore::with_seed(rules, Seed::PROCESS)
    }

    /// The same with maps that begin with a seed: bytes depend on it a little.
    fn with_seed(rules: &RuleSet, seed: Seed) -> RuleStore {
        let seed = seed.number();
        let mut store = RuleStore {
            actions: IdMap::new(seed),
            cookies: IdMap::new(seed),
        };
        for rule in rules.iter() {
            store.put(&rule);
        }
        store
    }

    /// Does for actions and cookies what the change does for an engine's rules.
    /// The engine has accepted it.
    pub(crate) fn change(&mut self, change: &Change<'_>) {
        match change {
            Change::Insert(rule) | Change::Modify(rule) => self.put(rule),
            Change::Remove(id) => {
                self.actions.remove(*id);
                self.clear_cookie(*id);
            }
        }
    }

    fn put(&mut self, rule: &RuleRef<'_>) {
        self.actions.set(rule.id(), rule.action());
        match rule.cookie() {
            0 => self.clear_cookie(rule.id()),
            cookie => {
                self.cookies.set(rule.id(), Halves::new(cookie));
            }
        }
    }

    fn clear_cookie(&mut self, id: RuleId) {
        if !self.cookies.is_empty() {
            self.cookies.remove(id);
        }
    }

    /// The action of the rule with that id, if there is one.
    pub(crate) fn action(&self, id: RuleId) -> Option<ActionId> {
        self.actions.get(id)
    }

    /// The cookie of the rule with that id, if there is one.
    pub(crate) fn cookie(&self, id: RuleId) -> Option<u64> {
        if !self.actions.contains(id) {
            return None;
        }
        let cookie = (!self.cookies.is_empty()).then(|| self.cookies.get(id));
        Some(cookie.flatten().map_or(0, Halves::cookie))
    }

    /// The number of rules.
    pub(crate) fn len(&self) -> usize {
        self.actions.len()
    }

    /// The ids of all rules, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = RuleId> {
        self.actions.iter().map(|(id, _)| id)
    }

    /// Bytes held, spare room included.
    pub(crate) fn bytes(&self) -> usize {
        self.actions.bytes() + self.cookies.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rule::{FieldMatch, Priority, Rule};
    use crate::schema::Schema;
    use crate::seed::splitmix;

    fn rule(id: usize, action: u32, cookie: u64) -> Rule {
        let any = [FieldMatch::Any; 5];
        let (schema, id) = (Schema::ipv4_5tuple(), RuleId::from_index(id));
        let rule = Rule::new(&schema, id, Priority(1), ActionId(action), &any);
        rule.unwrap().with_cookie(cookie)
    }

    /// With a seed of its own: an index may hold a segment of 16 KB more or
    /// less, depending on where entries lie.
    fn empty() -> RuleStore {
        let rules = RuleSet::new(&Schema::ipv4_5tuple());
        RuleStore::with_seed(&rules, Seed::new(0x1319_8a2e_0370_7344))
    }

    /// Against a map, over orders in which ids come, change and go; cookies of
    /// which either half may be 0.
    #[test]
    #[allow(clippy::cast_possible_truncation)]
    fn what_was_put_in_last_is_found_and_nothing_else() {
        let (mut store, mut model) = (empty(), BTreeMap::new());
        let mut state = 5;
        for step in 0..20_000 {
            let roll = splitmix(&mut state);
            let id = (roll % 300) as usize;
            let number = RuleId::from_index(id);
            if roll >> 32 & 1 == 0 && model.remove(&id).is_some() {
                store.change(&Change::Remove(number));
            } else {
                let halves = splitmix(&mut state);
                let cookie = match step / 2000 % 2 {
                    0 => 0,
                    _ => [0, halves, halves << 32, halves >> 32][(roll >> 40) as usize % 4],
                };
                let rule = rule(id, (roll >> 20) as u32, cookie);
                let view = rule.view();
                let change = match model.insert(id, (view.action(), cookie)) {
                    None => Change::Insert(view),
                    Some(_) => Change::Modify(view),
                };
                store.change(&change);
            }
            let expected = model.get(&id);
            assert_eq!(store.action(number), expected.map(|rule| rule.0));
            assert_eq!(store.cookie(number), expected.map(|rule| rule.1));
            assert_eq!(store.len(), model.len());
        }
        for id in 0..300 {
            let (number, expected) = (RuleId::from_index(id), model.get(&id));
            assert_eq!(store.action(number), expected.map(|rule| rule.0));
            assert_eq!(store.cookie(number), expected.map(|rule| rule.1));
        }
        let mut ids: Vec<usize> = store.ids().map(RuleId::index).collect();
        ids.sort_unstable();
        assert!(ids.iter().eq(model.keys()));
        assert!(model.len() > 50);
    }

    /// The bytes a rule that the documentation states: as rules come and are
    /// replaced, and after three of four have gone.
    #[test]
    fn a_rule_takes_few_bytes() {
        for (cookie, most, most_later) in [(0, 6, 8), (7, 16, 20)] {
            let insert = |store: &mut RuleStore, id| {
                store.change(&Change::Insert(rule(id, 1, cookie).view()));
            };
            let remove = |store: &mut RuleStore, id| {
                store.change(&Change::Remove(RuleId::from_index(id)));
            };
            for rules in [5000, 10_000, 30_000, 65_536, 106_600, 200_000] {
                let mut store = empty();
                (0..rules).for_each(|id| insert(&mut store, id));
                let check = |store: &RuleStore, most: usize| {
                    let bytes = store.bytes();
                    assert_eq!(store.len(), rules);
                    assert!(bytes <= most * rules, "{bytes} bytes for {rules} rules");
                };
                check(&store, most);
                for id in 0..rules {
                    remove(&mut store, id);
                    insert(&mut store, id);
                }
                check(&store, most);
                (rules..4 * rules).for_each(|id| insert(&mut store, id));
                (rules..4 * rules).for_each(|id| remove(&mut store, id));
                check(&store, most_later);
            }
        }
    }
}
