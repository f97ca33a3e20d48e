//! The common parts of the examples about flow caches: pipelines, entries, frames.

use std::sync::Arc;
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::{Command, FlowMod, Instructions, TableId};
use classyard_datapath::pipeline::KINDS;
use classyard_datapath::pipeline::{CacheSettings, Clock, Message, Pipeline, PortState};
use classyard_datapath::{Action, Field, FlowMatch, MatchField, Packet, PortNo, TableSettings};

/// Returns settings of a worker's caches: our own microflow cache, and megaflows.
pub(crate) fn caches(max_megaflows: usize, clock: Option<Clock>) -> CacheSettings {
    let kind = *KINDS.last().expect("kinds of caches");
    let settings = CacheSettings::new().seed(1).clock(clock);
    let settings = settings.microflows(kind, 131_072);
    let settings = settings.and_then(|settings| settings.max_megaflows(max_megaflows));
    settings.expect("counts in their ranges")
}

/// Returns a pipeline with two ports and these entries.
pub(crate) fn pipeline(entries: impl IntoIterator<Item = Message>) -> Pipeline {
    let engine = EngineSpec::parse("forest").expect("the engine's name");
    let settings = TableSettings::new(engine).expect("it takes updates");
    let mut pipeline = Pipeline::new(settings.rebuild_below(1000));
    let port = |number| Message::Port(PortNo(number), Some(PortState::default()));
    let messages: Vec<Message> = [port(1), port(2)].into_iter().chain(entries).collect();
    pipeline
        .apply(&messages, Duration::ZERO)
        .expect("the messages fit");
    pipeline.rebuild().expect("engines are built");
    pipeline
}

/// Returns a TCP packet; each tuple has an address and a port.
pub(crate) fn tcp(source: (u32, u16), destination: (u32, u16)) -> Packet {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(source.0.to_be_bytes());
    frame.extend(destination.0.to_be_bytes());
    frame.extend(source.1.to_be_bytes());
    frame.extend(destination.1.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    Packet::new(&frame, 1)
}

/// Returns a message about an entry that sends packets to a table or to port 2. `values`
/// has fields with value and mask.
pub(crate) fn entry(
    command: Command,
    (table, priority): (u8, u16),
    values: &[(Field, u128, u128)],
    goto_table: Option<u8>,
) -> Message {
    let values = values
        .iter()
        .map(|&(field, value, mask)| MatchField { field, value, mask });
    let output = Action::Output {
        port: PortNo(2),
        max_len: 0,
    };
    Message::Flow(FlowMod {
        table: TableId(table),
        priority,
        instructions: Arc::new(Instructions {
            apply: goto_table.is_none().then_some(output).into_iter().collect(),
            goto_table: goto_table.map(TableId),
            ..Instructions::default()
        }),
        ..FlowMod::new(command, FlowMatch::new(values).expect("a match"))
    })
}
