//! The fields that a table's entries match, and a check that they fit in a key.

use foldhash::HashMap;

use super::table_id::TableId;
use crate::flow_match::{Family, FlowMatch};
use crate::projection::{FieldSet, TooWide};

/// The fields that entries match, by table and family.
#[derive(Clone, Debug, Default)]
pub(super) struct Widths {
    uses: HashMap<(TableId, Family), Uses>,
}

/// The fields that some entries match.
#[derive(Clone, Debug)]
struct Uses {
    fields: FieldSet,
    /// The number of entries that match each field.
    entries: [u32; FieldSet::BITS],
}

impl Uses {
    const NONE: Uses = Uses {
        fields: FieldSet::NONE,
        entries: [0; FieldSet::BITS],
    };
}

impl Widths {
    /// Checks that the fields of an entry fit in the table's keys.
    pub(super) fn check(&self, table: TableId, flow: &FlowMatch) -> Result<(), TooWide> {
        for family in Widths::families(flow) {
            let uses = self.uses.get(&(table, family));
            let fields = uses.map_or(FieldSet::NONE, |uses| uses.fields);
            let more = FieldSet::of(flow, family);
            if !fields.has(more) {
                fields.and(more).check_width()?;
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, table: TableId, flow: &FlowMatch) {
        for family in Widths::families(flow) {
            let uses = self.uses.entry((table, family)).or_insert(Uses::NONE);
            let fields = FieldSet::of(flow, family);
            uses.fields = uses.fields.and(fields);
            fields.bits().for_each(|bit| uses.entries[bit] += 1);
        }
    }

    pub(super) fn remove(&mut self, table: TableId, flow: &FlowMatch) {
        for family in Widths::families(flow) {
            if let Some(uses) = self.uses.get_mut(&(table, family)) {
                for bit in FieldSet::of(flow, family).bits() {
                    uses.entries[bit] -= 1;
                    uses.fields.set_bit(bit, uses.entries[bit] > 0);
                }
            }
        }
    }

    /// Returns the families of a match; none for a match on every packet, which is not in an
    /// engine.
    fn families(flow: &FlowMatch) -> impl Iterator<Item = Family> {
        let is_always = flow.matches_all();
        flow.families().filter(move |_| !is_always)
    }
}
