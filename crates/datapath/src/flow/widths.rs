//! The fields that a table's entries look at, which may not be too many.

use std::collections::HashMap;

use super::entry::TableId;
use crate::flow_match::{Family, FlowMatch};
use crate::projection::{FieldSet, TooWide};

/// How many entries look at each of the fields, by tables and families.
#[derive(Clone, Debug, Default)]
pub(super) struct Widths {
    uses: HashMap<(TableId, Family), [u32; FieldSet::BITS]>,
}

impl Widths {
    /// Whether a table's keys have room for what an entry looks at.
    pub(super) fn check(&self, table: TableId, flow: &FlowMatch) -> Result<(), TooWide> {
        for family in Widths::families(flow) {
            let used = self.uses.get(&(table, family));
            let used = used.map_or(FieldSet::NONE, |uses| {
                FieldSet::from_bits(|bit| uses[bit] > 0)
            });
            used.and(FieldSet::of(flow, family)).check_width()?;
        }
        Ok(())
    }

    pub(super) fn add(&mut self, table: TableId, flow: &FlowMatch) {
        for family in Widths::families(flow) {
            let uses = self.uses.entry((table, family));
            let uses = uses.or_insert([0; FieldSet::BITS]);
            for bit in FieldSet::of(flow, family).bits() {
                uses[bit] += 1;
            }
        }
    }

    pub(super) fn remove(&mut self, table: TableId, flow: &FlowMatch) {
        for family in Widths::families(flow) {
            if let Some(uses) = self.uses.get_mut(&(table, family)) {
                for bit in FieldSet::of(flow, family).bits() {
                    uses[bit] -= 1;
                }
            }
        }
    }

    /// An entry that matches every packet is in no engine.
    fn families(flow: &FlowMatch) -> impl Iterator<Item = Family> {
        let is_always = flow.values().is_empty();
        flow.families().filter(move |_| !is_always)
    }
}
