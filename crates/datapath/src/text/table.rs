//! Reads lines that configure tables.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_text::ofctl::{number, parts};

use crate::flow::{TableConfig, TableId, TableMod};

/// Reads `table_id=N[,max_entries=N][,eviction]`.
pub(super) fn read(line: &str) -> Result<TableMod, Fault<'_>> {
    let (mut table, mut config) = (None, TableConfig::default());
    for part in parts(line) {
        match part.split_once('=') {
            Some(("table_id", value)) => table = Some(TableId(number(value, "table_id")?)),
            Some(("max_entries", value)) => {
                config.max_entries = number(value, "max_entries")?;
            }
            None if part == "eviction" => config.eviction = true,
            _ => {
                return Err(Fault::new(
                    part,
                    format!("unknown table option {}", quoted(part)),
                    "`table_id=N`, `max_entries=N`, `eviction`",
                ));
            }
        }
    }
    let table = table.ok_or_else(|| Fault::missing(line, "`table_id=N`"))?;
    Ok(TableMod { table, config })
}
