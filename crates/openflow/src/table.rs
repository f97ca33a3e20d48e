//! Messages about flow tables: configuration, statistics, features (OpenFlow 1.3.5
//! §7.3.3, §7.3.5.4, §7.3.5.5).

use classyard_datapath::flow::TableId;

use crate::fault::{Code, Fault};
use crate::oxm::OxmHeader;
use crate::wire::{Reader, Wire, Writer, layout};

layout! {
    /// The configuration of a table (`ofp_table_mod`). OpenFlow 1.3 has no flags.
    pub struct TableModMessage {
        /// The table, or all tables.
        table: TableId,
        /// Flags, reserved for later versions.
        [3] config: u32,
    }
}

layout! {
    /// Statistics of a table (`ofp_table_stats`).
    pub struct TableStats {
        /// The table.
        table: TableId,
        /// The number of entries.
        [3] active: u32,
        /// Packets that were looked up.
        lookups: u64,
        /// Packets that an entry matched.
        matched: u64,
    }
}

/// The kinds of an entry's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Actions that are written into the action set.
    Write,
    /// Actions that are applied.
    Apply,
}

/// A property of a table's features (`ofp_table_feature_prop_type`). `miss` is true for the
/// properties of the table-miss entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableProperty {
    /// The types of instructions.
    Instructions {
        /// True for the table-miss entry.
        miss: bool,
        /// The types.
        types: Vec<u16>,
    },
    /// The tables that packets can go to.
    NextTables {
        /// True for the table-miss entry.
        miss: bool,
        /// The tables.
        tables: Vec<TableId>,
    },
    /// The types of actions.
    Actions {
        /// The kind of the actions.
        written: Written,
        /// True for the table-miss entry.
        miss: bool,
        /// The types.
        types: Vec<u16>,
    },
    /// The fields of matches.
    Match(Vec<OxmHeader>),
    /// The fields that a match may leave out.
    Wildcards(Vec<OxmHeader>),
    /// The fields that actions can set.
    SetFields {
        /// The kind of the actions.
        written: Written,
        /// True for the table-miss entry.
        miss: bool,
        /// The fields.
        fields: Vec<OxmHeader>,
    },
}

/// Types of properties. A property of the table-miss entry has the next higher type.
mod kind {
    pub(super) const INSTRUCTIONS: u16 = 0;
    pub(super) const NEXT_TABLES: u16 = 2;
    pub(super) const WRITE_ACTIONS: u16 = 4;
    pub(super) const APPLY_ACTIONS: u16 = 6;
    pub(super) const MATCH: u16 = 8;
    pub(super) const WILDCARDS: u16 = 10;
    pub(super) const WRITE_SET_FIELD: u16 = 12;
    pub(super) const APPLY_SET_FIELD: u16 = 14;
}

/// The bytes of a property's type and length.
const HEADER_BYTES: usize = 4;

/// The bytes of an instruction's or action's header, in a list of types.
const TYPE_BYTES: u16 = 4;

impl TableProperty {
    fn kind(&self) -> u16 {
        let (kind, miss) = match self {
            TableProperty::Instructions { miss, .. } => (kind::INSTRUCTIONS, *miss),
            TableProperty::NextTables { miss, .. } => (kind::NEXT_TABLES, *miss),
            TableProperty::Actions { written, miss, .. } => match written {
                Written::Write => (kind::WRITE_ACTIONS, *miss),
                Written::Apply => (kind::APPLY_ACTIONS, *miss),
            },
            TableProperty::Match(_) => (kind::MATCH, false),
            TableProperty::Wildcards(_) => (kind::WILDCARDS, false),
            TableProperty::SetFields { written, miss, .. } => match written {
                Written::Write => (kind::WRITE_SET_FIELD, *miss),
                Written::Apply => (kind::APPLY_SET_FIELD, *miss),
            },
        };
        kind + u16::from(miss)
    }
}

/// Reads the types of instructions or actions, each with the length of its header.
fn read_types(reader: &mut Reader<'_>) -> Result<Vec<u16>, Fault> {
    let mut types = Vec::new();
    while !reader.is_empty() {
        let (kind, length): (u16, u16) = (reader.get()?, reader.get()?);
        // Experimenters' types have more bytes.
        reader.skip(usize::from(length.saturating_sub(TYPE_BYTES)))?;
        types.push(kind);
    }
    Ok(types)
}

fn write_types(writer: &mut Writer<'_>, types: &[u16]) {
    for kind in types {
        writer.put(kind);
        writer.put(&TYPE_BYTES);
    }
}

impl Wire for TableProperty {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut item = reader.or(Code::BAD_TABLE_FEATURE_LENGTH);
        let (kind, length): (u16, u16) = (item.get()?, item.get()?);
        let length = usize::from(length);
        let Some(bytes) = length.checked_sub(HEADER_BYTES) else {
            let message =
                format!("a table property of length {length}; {HEADER_BYTES} is the least");
            return Err(Fault::new(Code::BAD_TABLE_FEATURE_LENGTH, message));
        };
        let mut body = item.part(bytes)?;
        item.skip(crate::wire::padding(length))?;
        let used = reader.len() - item.len();
        reader.skip(used)?;
        let is_match = matches!(kind, kind::MATCH | kind::WILDCARDS);
        let miss = kind & 1 != 0 && !is_match;
        let (written, base) = (Written::Write, kind & !1);
        Ok(match base {
            kind::INSTRUCTIONS => TableProperty::Instructions {
                miss,
                types: read_types(&mut body)?,
            },
            kind::NEXT_TABLES => TableProperty::NextTables {
                miss,
                tables: body.list()?,
            },
            kind::WRITE_ACTIONS => TableProperty::Actions {
                written,
                miss,
                types: read_types(&mut body)?,
            },
            kind::APPLY_ACTIONS => TableProperty::Actions {
                written: Written::Apply,
                miss,
                types: read_types(&mut body)?,
            },
            kind::MATCH if !miss => TableProperty::Match(body.list()?),
            kind::WILDCARDS if !miss => TableProperty::Wildcards(body.list()?),
            kind::WRITE_SET_FIELD => TableProperty::SetFields {
                written,
                miss,
                fields: body.list()?,
            },
            kind::APPLY_SET_FIELD => TableProperty::SetFields {
                written: Written::Apply,
                miss,
                fields: body.list()?,
            },
            _ => {
                let message = format!("a table property of type {kind}; the types are 0 to 15");
                return Err(Fault::new(Code::BAD_TABLE_FEATURE_TYPE, message));
            }
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&self.kind());
        writer.put(&0_u16);
        match self {
            TableProperty::Instructions { types, .. } | TableProperty::Actions { types, .. } => {
                write_types(writer, types);
            }
            TableProperty::NextTables { tables, .. } => writer.list(tables),
            TableProperty::Match(fields)
            | TableProperty::Wildcards(fields)
            | TableProperty::SetFields { fields, .. } => writer.list(fields),
        }
        writer.set_length(start + 2, writer.len() - start);
        writer.align(start);
    }
}

/// The features of a table (`ofp_table_features`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeaturesItem {
    /// The table.
    pub table: TableId,
    /// The name, filled with zeros.
    pub name: [u8; 32],
    /// Bits of the metadata that the table can match.
    pub metadata_match: u64,
    /// Bits of the metadata that the table can write.
    pub metadata_write: u64,
    /// Flags, reserved for later versions.
    pub config: u32,
    /// The maximum number of entries.
    pub max_entries: u32,
    /// The properties.
    pub properties: Vec<TableProperty>,
}

/// An item of a reply. It begins with its length.
impl Wire for TableFeaturesItem {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut item = reader.or(Code::BAD_TABLE_FEATURE_LENGTH);
        let length: u16 = item.get()?;
        let mut item = item.part(usize::from(length).saturating_sub(2))?;
        let table = item.get()?;
        item.skip(5)?;
        let item = TableFeaturesItem {
            table,
            name: item.get()?,
            metadata_match: item.get()?,
            metadata_write: item.get()?,
            config: item.get()?,
            max_entries: item.get()?,
            properties: item.list()?,
        };
        reader.skip(usize::from(length).max(2))?;
        Ok(item)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        writer.put(&self.table);
        writer.skip(5);
        writer.put(&self.name);
        writer.put(&self.metadata_match);
        writer.put(&self.metadata_write);
        writer.put(&self.config);
        writer.put(&self.max_entries);
        writer.list(&self.properties);
        writer.set_length(start, writer.len() - start);
    }
}
