//! The sizes of a structure before it exists.

use std::sync::Arc;

use super::Structure;
use super::places::Places;
use super::runs::Runs;
use super::tables::Tables;
use crate::engines::forest::kernels::fingerprint::Fingerprint;
use crate::engines::forest::rows::RowShape;
use crate::model::schema::Schema;

/// Returns the layout of rows for a schema.
fn shape_for(schema: &Arc<Schema>, fingerprints: bool) -> RowShape {
    RowShape::new(schema, fingerprints.then(|| Fingerprint::blind(schema, 0)))
}

impl<const W: usize> Structure<W> {
    /// The most rules of a schema for which there is always room.
    pub(crate) fn capacity_for(schema: &Arc<Schema>, fingerprints: bool) -> usize {
        Runs::new(shape_for(schema, fingerprints).layout(), false).capacity()
    }

    /// The columns of a schema's rules.
    pub(crate) fn columns_for(schema: &Arc<Schema>, fingerprints: bool) -> usize {
        shape_for(schema, fingerprints).columns()
    }

    /// Bytes of `rules` rules with ids in `id_groups` groups, without tables.
    pub(crate) fn rule_bytes_for(
        schema: &Arc<Schema>,
        fingerprints: bool,
        rules: usize,
        id_groups: usize,
    ) -> usize {
        let columns = Structure::<W>::columns_for(schema, fingerprints);
        Runs::bytes_for(columns, rules) + Places::bytes_for(rules, id_groups)
    }

    /// Bytes of `tables` tables with `slots` slots in total.
    pub(crate) fn table_bytes_for(tables: usize, slots: usize) -> usize {
        Tables::<W>::bytes_for(tables) + slots * size_of::<u64>()
    }
}
