//! The fields that a table's entries match, and a check that they fit in a key.

use std::collections::HashMap;

use super::table_id::TableId;
use crate::flow_match::{Family, FlowMatch};
use crate::projection::{FieldSet, TooWide};

/// The number of entries that match each field, by table and family.
#[derive(Clone, Debug, Default)]
pub(super) struct Widths {
    uses: HashMap<(TableId, Family), [u32; FieldSet::BITS]>,
}

impl Widths {
    /// Checks that the fields of an entry fit in the table's keys.
    pub(super) fn check(&self, table: TableId, flow: &FlowMatch) -> Result<(), TooWide> {
        for family in Widths::families(flow) {
            let uses = self.uses.get(&(table, family));
            let fields = uses.map_or(FieldSet::NONE, |uses| {
                FieldSet::from_bits(|bit| uses[bit] > 0)
            });
            fields.and(FieldSet::of(flow, family)).check_width()?;
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

    /// Returns the families of a match; none for a match on every packet, which is not in an
    /// engine.
    fn families(flow: &FlowMatch) -> impl Iterator<Item = Family> {
        let is_always = flow.values().is_empty();
        flow.families().filter(move |_| !is_always)
    }
}
