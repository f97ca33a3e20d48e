//! Finds overlapping entries of the same table and priority.
//!
//! # Idea
//! Entries of one priority that match the same bits are a *tuple*. A new entry overlaps an
//! entry of a tuple if both have equal values in their common bits. For each set of common
//! bits a tuple has a hash table over these values, built when a new entry first has this
//! set in common with the tuple.
//!
//! ```text
//! priority ─▶ [ tuple: masks ] ─▶ { common masks ─▶ { hash of the values ─▶ entries } }
//! ```
//!
//! # Cost
//! A check takes one probe for each tuple of the priority, and the first time a hash table
//! over the tuple is built. A table has an index only after a message with `check_overlap`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use classyard::RuleId;

use super::entry::FlowEntry;
use crate::field::Field;
use crate::flow_match::FlowMatch;

/// Matched fields with their masks, in the order of fields.
type Masks = Vec<(Field, u128)>;

/// Maximum number of hash tables of a tuple. For further sets of common bits, a check
/// searches all entries of the tuple.
const MAX_PROBES: usize = 64;

/// The index of one table's entries.
#[derive(Clone, Debug, Default)]
pub(super) struct OverlapIndex {
    priorities: BTreeMap<u16, HashMap<Masks, Tuple>>,
    hasher: RandomState,
}

/// Entries of one priority that match the same bits.
#[derive(Clone, Debug, Default)]
struct Tuple {
    members: BTreeSet<RuleId>,
    probes: HashMap<Masks, HashMap<u64, BTreeSet<RuleId>>>,
}

fn masks(flow: &FlowMatch) -> Masks {
    let values = flow.values().iter();
    values.map(|value| (value.field, value.mask)).collect()
}

/// Returns the common bits of two lists of masks in the order of fields.
fn common(left: &Masks, right: &Masks) -> Masks {
    let mut right = right.iter().peekable();
    let mut common = Vec::new();
    for &(field, mask) in left {
        while right.next_if(|(next, _)| *next < field).is_some() {}
        if let Some(&(_, right_mask)) = right.next_if(|(next, _)| *next == field)
            && mask & right_mask != 0
        {
            common.push((field, mask & right_mask));
        }
    }
    common
}

impl OverlapIndex {
    /// Builds the index of a table's entries.
    pub(super) fn new<'e>(entries: impl Iterator<Item = &'e FlowEntry>) -> OverlapIndex {
        let mut index = OverlapIndex::default();
        entries.for_each(|entry| index.add(entry));
        index
    }

    /// Returns the hash of a match's values in `bits`.
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

    /// Puts an entry's tuple back, unless the tuple is empty.
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

    /// Returns an entry of the priority that overlaps a match. `flow` returns the match of an
    /// entry.
    pub(super) fn overlapping<'e>(
        &mut self,
        priority: u16,
        new: &FlowMatch,
        flow: impl Fn(RuleId) -> &'e FlowMatch,
    ) -> Option<RuleId> {
        let new_masks = masks(new);
        let mut tuples = self.priorities.remove(&priority)?;
        let mut tuples_of_priority = tuples.iter_mut();
        let overlapping = tuples_of_priority.find_map(|(masks, tuple)| {
            let bits = common(&new_masks, masks);
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
        overlapping
    }
}
