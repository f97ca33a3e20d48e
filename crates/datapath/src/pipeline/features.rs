//! What a flow table can do (`ofp_table_features`, OpenFlow 1.3.5 §7.3.5.5).
//!
//! Every table can match every field and carry out every instruction and action; they
//! differ in what they hold, and in the tables that they lead to.

use crate::field::Field;
use crate::flow::{TableConfig, TableId};

/// What a flow table can do. Entries and the table-miss entry can do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// The table.
    pub table: TableId,
    /// What it holds.
    pub config: TableConfig,
    /// Bits of the metadata that it can match.
    pub metadata_match: u64,
    /// Bits of the metadata that it can write.
    pub metadata_write: u64,
    /// Types of instructions (`ofp_instruction_type`).
    pub instructions: Vec<u16>,
    /// Tables that it can lead to.
    pub next_tables: Vec<TableId>,
    /// Types of actions to apply and to write (`ofp_action_type`).
    pub actions: Vec<u16>,
    /// Fields that it can match, each of which may be left out, and whether they take
    /// masks.
    pub matches: Vec<(Field, bool)>,
    /// Fields that its actions can set.
    pub set_fields: Vec<Field>,
}

/// `ofp_instruction_type`: goto, write-metadata, write-actions, apply-actions,
/// clear-actions, meter.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];

/// `ofp_action_type`: output, copy-ttl-out, copy-ttl-in, set-mpls-ttl, dec-mpls-ttl,
/// push-vlan, pop-vlan, push-mpls, pop-mpls, set-queue, group, set-nw-ttl, dec-nw-ttl,
/// set-field.
const ACTIONS: [u16; 14] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];

impl TableFeatures {
    /// What a table can do that is configured so.
    pub(super) fn new(table: TableId, config: TableConfig) -> TableFeatures {
        let later = (table.0..TableId::LAST.0).map(|before| TableId(before + 1));
        TableFeatures {
            table,
            config,
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            instructions: INSTRUCTIONS.to_vec(),
            next_tables: later.collect(),
            actions: ACTIONS.to_vec(),
            matches: Field::all()
                .map(|field| (field, field.info().maskable))
                .collect(),
            set_fields: Field::all().filter(|field| field.info().settable).collect(),
        }
    }
}
