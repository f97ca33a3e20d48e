//! Finds an entry of a table that overlaps another one of the same priority.
//!
//! # Idea
//! Entries of one priority that look at the same bits are a *tuple*. A new entry
//! overlaps one of a tuple if both have the same values in the bits that both look at.
//! For each set of common bits a tuple has a hash table over these values, built when a
//! new entry first has those bits in common with it.
//!
//! ```text
//! priority ─▶ [ tuple: masks ] ─▶ { common masks ─▶ { hash of the values ─▶ entries } }
//! ```
//!
//! # Cost
//! A check: one probe for each tuple of the priority, and the building of a hash table
//! over a tuple the first time. A table has an index only after a message with
//! `check_overlap`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use classyard::RuleId;

use super::entry::FlowEntry;
use crate::field::Field;
use crate::flow_match::FlowMatch;

/// Fields of which bits are looked at, in the order of fields.
type Masks = Vec<(Field, u128)>;

/// Sets of common bits for which a tuple keeps a hash table; more are found by going
/// through the tuple's entries.
const MAX_PROBES: usize = 64;

/// Entries of one table.
#[derive(Clone, Debug, Default)]
pub(super) struct OverlapIndex {
    priorities: BTreeMap<u16, HashMap<Masks, Tuple>>,
    hasher: RandomState,
}

/// Entries of one priority that look at the same bits.
#[derive(Clone, Debug, Default)]
struct Tuple {
    members: BTreeSet<RuleId>,
    probes: HashMap<Masks, HashMap<u64, BTreeSet<RuleId>>>,
}

fn masks(flow: &FlowMatch) -> Masks {
    let values = flow.values().iter();
    values.map(|value| (value.field, value.mask)).collect()
}

/// The bits that both look at. Both are in the order of fields.
fn common(one: &Masks, other: &Masks) -> Masks {
    let mut others = other.iter().peekable();
    let mut both = Vec::new();
    for &(field, mask) in one {
        while others.next_if(|(other, _)| *other < field).is_some() {}
        if let Some(&(_, other)) = others.next_if(|(other, _)| *other == field)
            && mask & other != 0
        {
            both.push((field, mask & other));
        }
    }
    both
}

impl OverlapIndex {
    /// Builds the index of a table's entries.
    pub(super) fn new<'e>(entries: impl Iterator<Item = &'e FlowEntry>) -> OverlapIndex {
        let mut index = OverlapIndex::default();
        entries.for_each(|entry| index.add(entry));
        index
    }

    /// The hash of a match's values in some bits.
    fn hash(&self, flow: &FlowMatch, bits: &Masks) -> u64 {
        let value = |&(field, mask): &(Field, u128)| {
            let value = flow.get(field).expect("common bits are of its fields");
            value.value & mask
        };
        let values: Vec<u128> = bits.iter().map(value).collect();
        self.hasher.hash_one(values)
    }

    pub(super) fn add(&mut self, entry: &FlowEntry) {
        let priority = self.priorities.entry(entry.priority).or_default();
        let mut tuple = std::mem::take(priority.entry(masks(&entry.flow)).or_default());
        tuple.members.insert(entry.id);
        for (bits, probe) in &mut tuple.probes {
            let hash = self.hash(&entry.flow, bits);
            probe.entry(hash).or_default().insert(entry.id);
        }
        self.put_back(entry, tuple);
    }

    pub(super) fn remove(&mut self, entry: &FlowEntry) {
        let priority = self.priorities.get_mut(&entry.priority);
        let tuple = priority.and_then(|priority| priority.get_mut(&masks(&entry.flow)));
        let Some(tuple) = tuple else { return };
        let mut tuple = std::mem::take(tuple);
        tuple.members.remove(&entry.id);
        for (bits, probe) in &mut tuple.probes {
            let hash = self.hash(&entry.flow, bits);
            if let Some(ids) = probe.get_mut(&hash) {
                ids.remove(&entry.id);
                if ids.is_empty() {
                    probe.remove(&hash);
                }
            }
        }
        self.put_back(entry, tuple);
    }

    /// Puts an entry's tuple back, unless it has no members any more.
    fn put_back(&mut self, entry: &FlowEntry, tuple: Tuple) {
        let priority = self.priorities.entry(entry.priority).or_default();
        match tuple.members.is_empty() {
            true => drop(priority.remove(&masks(&entry.flow))),
            false => drop(priority.insert(masks(&entry.flow), tuple)),
        }
        if priority.is_empty() {
            self.priorities.remove(&entry.priority);
        }
    }

    /// Returns an entry of a priority that a match overlaps. `flow` returns the match of
    /// an entry.
    pub(super) fn overlapping<'e>(
        &mut self,
        priority: u16,
        new: &FlowMatch,
        flow: impl Fn(RuleId) -> &'e FlowMatch,
    ) -> Option<RuleId> {
        let own = masks(new);
        let mut tuples = self.priorities.remove(&priority)?;
        let mut tuples_of_priority = tuples.iter_mut();
        let other = tuples_of_priority.find_map(|(masks, tuple)| {
            let bits = common(&own, masks);
            let ids: &BTreeSet<RuleId> = match tuple.probes.contains_key(&bits) {
                false if tuple.probes.len() == MAX_PROBES => &tuple.members,
                false => {
                    let mut probe: HashMap<u64, BTreeSet<RuleId>> = HashMap::new();
                    for &id in &tuple.members {
                        let hash = self.hash(flow(id), &bits);
                        probe.entry(hash).or_default().insert(id);
                    }
                    let probe = tuple.probes.entry(bits.clone()).or_insert(probe);
                    probe.get(&self.hash(new, &bits))?
                }
                true => tuple.probes[&bits].get(&self.hash(new, &bits))?,
            };
            ids.iter().copied().find(|&id| flow(id).overlaps(new))
        });
        self.priorities.insert(priority, tuples);
        other
    }
}
