//! Actions of rules, indexed by rule id.
//!
//! # Idea
//! An engine returns a rule's action, but its map from ids to places is made for updates:
//! a lookup reads three cache lines. A program that needs the action of every header
//! would spend as long on actions as on lookups. Each copy of an engine in a live table
//! therefore has [`Actions`] next to it: an array by id. A lookup reads one line of it.
//!
//! # Data layout
//! ```text
//! segments  id / 1024 ─▶ present 32 │ ─▶ action × 1024      no array if none is present
//! ```
//! Rules with high ids are left out, so that scattered ids do not fill the memory: an id is
//! stored if it is less than [`IDS_PER_RULE`] times the number of stored rules, plus one
//! segment. Other actions come from the engine.
//!
//! # Cost
//! An update writes one action. Memory: 4 bytes a rule if ids are dense, at most 16 bytes
//! a rule and 4 KiB otherwise. After removals, the array may have ids up to twice that limit.
//! If it has more, each removal frees the last two segments, and their rules are left out.
//! Nothing large is copied or filled.

use crate::model::rule::{ActionId, RuleId};
use crate::model::ruleset::RuleSet;
use crate::model::transaction::Change;

/// The number of ids of a segment.
const SEGMENT_IDS: usize = 1024;

/// The number of ids for each stored rule up to which an action is stored.
const IDS_PER_RULE: usize = 4;

/// Stands for an action that is not stored.
const NO_ACTION: u32 = u32::MAX;

/// The actions of consecutive ids.
#[derive(Debug, Default)]
struct Segment {
    /// No array if no id has an action.
    actions: Option<Box<[u32; SEGMENT_IDS]>>,
    /// The number of ids with an action. It is not in the array: an update of a large table
    /// then waits for one line of memory.
    present: u32,
}

impl Segment {
    /// Returns the action at a place, or [`NO_ACTION`].
    #[inline]
    fn get(&self, place: usize) -> u32 {
        self.actions
            .as_ref()
            .map_or(NO_ACTION, |actions| actions[place])
    }

    /// Sets the action at a place; returns the action before, or [`NO_ACTION`].
    #[inline]
    fn replace(&mut self, place: usize, action: u32) -> u32 {
        let actions = self.actions.get_or_insert_with(no_actions);
        std::mem::replace(&mut actions[place], action)
    }
}

#[cold]
fn no_actions() -> Box<[u32; SEGMENT_IDS]> {
    Box::new([NO_ACTION; SEGMENT_IDS])
}

/// The actions of one engine's rules, except for rules with high ids.
#[derive(Debug, Default)]
pub(super) struct Actions {
    segments: Vec<Segment>,
    /// The number of actions in all segments.
    present: usize,
}

impl Actions {
    /// Copies the actions of a rule set.
    pub(super) fn new(rules: &RuleSet) -> Actions {
        let mut actions = Actions::default();
        // From low ids to high ids, so that all ids of a dense set are covered.
        let mut ids: Vec<_> = rules
            .iter()
            .map(|rule| (rule.id(), rule.action()))
            .collect();
        ids.sort_unstable_by_key(|(id, _)| *id);
        for (id, action) in ids {
            actions.put(id, action);
        }
        actions
    }

    /// Applies a change that the engine has accepted.
    #[inline]
    pub(super) fn change(&mut self, change: &Change<'_>) {
        match change {
            Change::Insert(rule) | Change::Modify(rule) => self.put(rule.id(), rule.action()),
            Change::Remove(id) => self.clear(*id),
        }
    }

    /// Returns the action of a rule; `None` if it is not stored here.
    #[inline]
    pub(super) fn get(&self, id: RuleId) -> Option<ActionId> {
        let (segment, place) = split(id);
        let action = self.segments.get(segment)?.get(place);
        (action != NO_ACTION).then_some(ActionId(action))
    }

    /// The lowest id that is not stored.
    #[inline]
    fn end(&self) -> usize {
        IDS_PER_RULE * self.present + SEGMENT_IDS
    }

    #[inline]
    fn put(&mut self, id: RuleId, action: ActionId) {
        let (index, place) = split(id);
        let is_stored = id.index() < self.end()
            || (self.segments.get(index)).is_some_and(|segment| segment.get(place) != NO_ACTION);
        if !is_stored || action.0 == NO_ACTION {
            self.clear(id);
            return;
        }
        if index >= self.segments.len() {
            self.segments.resize_with(index + 1, Segment::default);
        }
        let segment = &mut self.segments[index];
        if segment.replace(place, action.0) == NO_ACTION {
            segment.present += 1;
            self.present += 1;
        }
    }

    #[inline]
    fn clear(&mut self, id: RuleId) {
        let (index, place) = split(id);
        if let Some(segment) = self.segments.get_mut(index)
            && segment.present > 0
            && segment.replace(place, NO_ACTION) != NO_ACTION
        {
            segment.present -= 1;
            self.present -= 1;
            if segment.present == 0 {
                segment.actions = None;
            }
        }
        self.free_last_segments();
    }

    /// Frees the last two segments if they are empty, or if few ids below them are in use.
    #[inline]
    fn free_last_segments(&mut self) {
        for _ in 0..2 {
            let Some(last) = self.segments.last() else {
                return;
            };
            let present = last.present;
            if present > 0 && self.segments.len() * SEGMENT_IDS <= 2 * self.end() {
                return;
            }
            self.present -= present as usize;
            self.segments.pop();
        }
        if self.segments.capacity() > 4 * self.segments.len() + 64 {
            self.segments.shrink_to(2 * self.segments.len());
        }
    }

    /// Returns the bytes held, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        let held = (self.segments.iter()).filter(|segment| segment.actions.is_some());
        held.count() * size_of::<[u32; SEGMENT_IDS]>()
            + self.segments.capacity() * size_of::<Segment>()
    }
}

/// Returns an id's segment, and its place in the segment.
fn split(id: RuleId) -> (usize, usize) {
    (id.index() / SEGMENT_IDS, id.index() % SEGMENT_IDS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::rule::{FieldMatch, Priority, Rule};
    use crate::model::schema::Schema;
    use crate::model::seed::splitmix;

    fn rule(id: usize, action: u32) -> Rule {
        let any = [FieldMatch::Any; 5];
        let (schema, id) = (Schema::ipv4_5tuple(), RuleId::from_index(id));
        Rule::new(&schema, id, Priority(1), ActionId(action), &any).unwrap()
    }

    fn insert(actions: &mut Actions, id: usize, action: u32) {
        actions.change(&Change::Insert(rule(id, action).view()));
    }

    fn remove(actions: &mut Actions, id: usize) {
        actions.change(&Change::Remove(RuleId::from_index(id)));
    }

    /// Compares with a map: stored actions are right, and dense low ids are stored.
    #[test]
    fn a_stored_action_is_the_last_one() {
        let (mut actions, mut model) = (Actions::default(), BTreeMap::new());
        let mut state = 3;
        let mut stored = 0;
        for step in 0..60_000_u32 {
            let roll = splitmix(&mut state);
            let ids = [300, 5000, 40_000, 3_000_000][(roll >> 8) as usize % 4];
            let id = (roll >> 16) as usize % ids;
            // Every 20,000 steps, removals begin to outnumber inserts, and later the reverse.
            let removes = roll % 100 < if step / 10_000 % 2 == 0 { 20 } else { 80 };
            if removes {
                let id = *model.range(id..).next().map_or(&id, |(id, _)| id);
                model.remove(&id);
                remove(&mut actions, id);
            } else {
                let action = if roll.is_multiple_of(7) {
                    u32::MAX
                } else {
                    step
                };
                model.insert(id, action);
                insert(&mut actions, id, action);
            }
            for probe in [id, (roll >> 40) as usize % 5000] {
                let found = actions.get(RuleId::from_index(probe));
                let expected = model.get(&probe).copied().map(ActionId);
                assert!(found.is_none() || found == expected, "id {probe}");
                stored += usize::from(found.is_some());
            }
            assert!(actions.bytes() <= 32 * model.len() + 1_000_000);
        }
        assert!(stored > 10_000, "{stored} of 120,000 probes");
    }

    #[test]
    fn all_actions_of_dense_ids_are_stored_in_few_bytes() {
        for count in [1, 1000, 1025, 50_000] {
            let mut actions = Actions::default();
            (0..count).for_each(|id| insert(&mut actions, id, 7));
            let all = (0..count).map(RuleId::from_index);
            assert!(all.clone().all(|id| actions.get(id) == Some(ActionId(7))));
            assert!(actions.bytes() <= 5 * count + 8192, "{count} ids");
            (0..count).for_each(|id| remove(&mut actions, id));
            assert!(all.clone().all(|id| actions.get(id).is_none()));
            assert!(actions.bytes() <= 8192, "{count} ids");
        }
    }

    /// One rule in a thousand stays: the memory must not stay.
    #[test]
    fn memory_follows_the_number_of_rules() {
        let mut actions = Actions::default();
        (0..200_000).for_each(|id| insert(&mut actions, id, 7));
        (0..200_000)
            .filter(|id| id % 1000 != 0)
            .for_each(|id| remove(&mut actions, id));
        assert!(actions.bytes() <= 16 * 1024, "{} bytes", actions.bytes());
        let mut scattered = Actions::default();
        (0..1000).for_each(|n| insert(&mut scattered, n * 100_000, 7));
        assert!(
            scattered.bytes() <= 16 * 1024,
            "{} bytes",
            scattered.bytes()
        );
    }
}
