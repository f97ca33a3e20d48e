//! Messages about flow entries and tables (OpenFlow 1.3.5 §6.4, §7.3.4.1; table
//! configuration as in OpenFlow 1.4).
//!
//! If several things are wrong with a message, OpenFlow does not define which error is
//! reported. The order here: references of instructions, the table, the instructions
//! themselves, overlaps, table space.

use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;
use classyard_datapath::flow::{
    Command, FlowEntry, FlowMod, Instructions, RemovalReason, TableConfig, TableId, TableMod,
};
use classyard_datapath::pipeline::Count;
use classyard_datapath::{Action, ErrorCode, MatchField, PortNo};

use crate::actions::{self, MAX_ACTIONS, all_actions, has_action};
use crate::groups::actions_of;
use crate::matching::{is_as_specific, overlap, values};
use crate::state::{Counted, State};

/// The documented maximum of a table's configured entries: 2^22.
const MOST_ENTRIES: u32 = 4_194_304;

/// The last table.
const LAST_TABLE: u8 = 253;

pub(crate) fn apply(state: &mut State, message: &FlowMod, now: Duration) -> Result<(), ErrorCode> {
    let is_delete = matches!(message.command, Command::Delete { .. });
    // The instructions of a deletion are ignored.
    if !is_delete {
        check_references(state, &message.instructions)?;
    }
    if message.table.0 > LAST_TABLE && !(is_delete && message.table == TableId::ALL) {
        return Err(ErrorCode::FlowModBadTable);
    }
    match message.command {
        Command::Add => add(state, message, now),
        Command::Modify { strict } => modify(state, message, strict),
        Command::Delete { strict } => {
            state.remove(RemovalReason::Delete, now, |counted| {
                is_meant(message, strict, &counted.entry) && passes_filters(message, &counted.entry)
            });
            Ok(())
        }
    }
}

pub(crate) fn configure(state: &mut State, message: &TableMod) -> Result<(), ErrorCode> {
    if message.table.0 > LAST_TABLE {
        return Err(ErrorCode::TableModBadTable);
    }
    if message.config.max_entries > MOST_ENTRIES {
        return Err(ErrorCode::TableModBadConfig);
    }
    state.tables.insert(message.table, message.config);
    Ok(())
}

fn check_references(state: &State, instructions: &Instructions) -> Result<(), ErrorCode> {
    if let Some(meter) = instructions.meter
        && !state.meters.contains_key(&meter)
    {
        return Err(ErrorCode::InvalidMeter);
    }
    let is_missing = |action: &Action| match action {
        Action::Group(group) => !state.groups.contains_key(group),
        _ => false,
    };
    if all_actions(instructions).any(is_missing) {
        return Err(ErrorCode::BadOutGroup);
    }
    let groups = instructions.apply.iter().map(|action| match action {
        Action::Group(group) => 1 + actions_of(state, *group),
        _ => 1,
    });
    match groups.sum::<u64>() > MAX_ACTIONS {
        true => Err(ErrorCode::TooManyActions),
        false => Ok(()),
    }
}

/// Checks instructions for the packets of an entry.
fn check_instructions(
    instructions: &Instructions,
    table: TableId,
    values: &[MatchField],
) -> Result<(), ErrorCode> {
    if let Some(next) = instructions.goto_table
        && (next.0 <= table.0 || next.0 > LAST_TABLE)
    {
        return Err(ErrorCode::BadTable);
    }
    if let Some((value, mask)) = instructions.metadata
        && value & !mask != 0
    {
        return Err(ErrorCode::UnsupportedMetadata);
    }
    actions::check_length(&instructions.apply)?;
    actions::check_length(&instructions.write)?;
    actions::check(&instructions.apply, values)?;
    for action in &instructions.write {
        actions::check_alone(action)?;
    }
    let mut set = Vec::new();
    actions::write(&mut set, &instructions.write);
    actions::check(&set, values)
}

fn add(state: &mut State, message: &FlowMod, now: Duration) -> Result<(), ErrorCode> {
    let new_values = values(&message.flow);
    check_instructions(&message.instructions, message.table, &new_values)?;
    let shares_priority = |counted: &&Counted| {
        counted.entry.table == message.table && counted.entry.priority == message.priority
    };
    let overlaps = |counted: &Counted| {
        shares_priority(&counted) && overlap(&values(&counted.entry.flow), &new_values)
    };
    if message.flags.check_overlap && state.entries.iter().any(overlaps) {
        return Err(ErrorCode::FlowModOverlap);
    }
    let mut new = FlowEntry {
        id: RuleId::new(0).expect("a number"),
        table: message.table,
        priority: message.priority,
        flow: Arc::clone(&message.flow),
        instructions: Arc::clone(&message.instructions),
        cookie: message.cookie,
        idle_timeout: message.idle_timeout,
        hard_timeout: message.hard_timeout,
        importance: message.importance,
        flags: message.flags,
        added: now,
    };
    let mut entries = state.entries.iter_mut();
    let replaced = entries
        .find(|counted| shares_priority(&&**counted) && values(&counted.entry.flow) == new_values);
    if let Some(counted) = replaced {
        // The new entry takes the old entry's number, and its counters unless the message
        // resets them.
        new.id = counted.entry.id;
        counted.entry = new;
        if message.flags.reset_counts {
            counted.count = Count::default();
        }
        return Ok(());
    }
    new.id = RuleId::new(state.free_number()).expect("a number");
    make_room(state, message, now)?;
    state.put_in(new);
    Ok(())
}

/// A full table accepts an entry only by evicting an entry that is not more important.
fn make_room(state: &mut State, message: &FlowMod, now: Duration) -> Result<(), ErrorCode> {
    let default = TableConfig {
        max_entries: 1_000_000,
        eviction: false,
    };
    let config = state.tables.get(&message.table).unwrap_or(&default);
    let mut held: Vec<&FlowEntry> = state
        .entries
        .iter()
        .map(|counted| &counted.entry)
        .filter(|entry| entry.table == message.table)
        .collect();
    if held.len() < config.max_entries as usize {
        return Ok(());
    }
    held.sort_by_key(|entry| (entry.importance, entry.added, entry.id));
    match held.first() {
        Some(first) if config.eviction && first.importance <= message.importance => {
            let id = first.id;
            state.remove(RemovalReason::Eviction, now, |counted| {
                counted.entry.id == id
            });
            Ok(())
        }
        _ => Err(ErrorCode::FlowModTableFull),
    }
}

fn modify(state: &mut State, message: &FlowMod, strict: bool) -> Result<(), ErrorCode> {
    let mut meant = 0;
    for counted in &state.entries {
        let entry = &counted.entry;
        if is_meant(message, strict, entry) {
            check_instructions(&message.instructions, entry.table, &values(&entry.flow))?;
            meant += 1;
        }
    }
    if meant == 0 {
        // Nothing is changed, but wrong instructions are still an error.
        return check_instructions(&message.instructions, message.table, &values(&message.flow));
    }
    for counted in &mut state.entries {
        if is_meant(message, strict, &counted.entry) {
            counted.entry.instructions = Arc::clone(&message.instructions);
            if message.flags.reset_counts {
                counted.count = Count::default();
            }
        }
    }
    Ok(())
}

/// True if a modification or deletion applies to an entry.
fn is_meant(message: &FlowMod, strict: bool, entry: &FlowEntry) -> bool {
    let (wanted, has) = (values(&message.flow), values(&entry.flow));
    let is_here = message.table == TableId::ALL || message.table == entry.table;
    let fits = match strict {
        true => entry.priority == message.priority && has == wanted,
        false => is_as_specific(&has, &wanted),
    };
    let cookie = entry.cookie & message.cookie_mask == message.cookie & message.cookie_mask;
    is_here && fits && cookie
}

/// True if an entry has the output port and group to which a deletion may be limited.
fn passes_filters(message: &FlowMod, entry: &FlowEntry) -> bool {
    let sends_to = |wanted: PortNo| {
        all_actions(&entry.instructions)
            .any(|action| matches!(action, Action::Output { port, .. } if *port == wanted))
    };
    let uses = |group| has_action(&entry.instructions, &Action::Group(group));
    message.out_port.is_none_or(sends_to) && message.out_group.is_none_or(uses)
}
