//! Features of a flow table (`ofp_table_features`, OpenFlow 1.3.5 §7.3.5.5).
//!
//! Every table can match every field and carry out every instruction and action. Tables
//! differ only in their configuration and in their next tables.

use crate::field::Field;
use crate::flow::{TableConfig, TableId};

/// The features of a flow table. OpenFlow's separate properties for the table-miss entry
/// have the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// The table.
    pub table: TableId,
    /// The table's configuration.
    pub config: TableConfig,
    /// Bits of the metadata that the table can match.
    pub metadata_match: u64,
    /// Bits of the metadata that the table can write.
    pub metadata_write: u64,
    /// Types of instructions (`ofp_instruction_type`).
    pub instructions: Vec<u16>,
    /// Tables that `goto_table` can name.
    pub next_tables: Vec<TableId>,
    /// Types of actions to apply and to write (`ofp_action_type`).
    pub actions: Vec<u16>,
    /// Fields that the table can match, and true for fields that take masks. A match may leave
    /// out any of them.
    pub matches: Vec<(Field, bool)>,
    /// Fields that actions can set.
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
    /// Returns the features of a table with this configuration.
    pub(in crate::pipeline) fn new(table: TableId, config: TableConfig) -> TableFeatures {
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
