//! Traces of packets through the tables of the running switch, for people.

use std::time::Duration;

use classyard_datapath::pipeline::Step;
use classyard_datapath::{Field, Packet, PortNo, text};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connection::Shared;
use super::state::State;
use crate::control::{
    ItemOrigin, LiveTrace, MAX_NEAR_FLOWS, TraceMegaflow, TracePacket, TracePort, TraceSource,
    TraceStep, TracedItem, frame_bytes,
};
use crate::worker::Command;

/// The longest time to wait for a packet: a day.
const MAX_WAIT_SECONDS: u64 = 86_400;

/// The bytes of all packets that a trace sends, at most. A long frame may go to many ports, and
/// the reply has each of its bytes as two digits.
const MAX_SENT_BYTES: usize = 8 << 20;

/// The number of the ingress port if none is given.
const DEFAULT_IN_PORT: &str = "1";

/// The source of a packet that a person gave.
const GIVEN: &str = "the command line";

/// Traces a packet. Packets are forwarded at the same time: workers read other copies of the
/// tables.
///
/// # Errors
/// The reason for people: the packet or its port is not as it should be, or no packet arrived.
pub(super) async fn trace(
    state: &Shared,
    source: &TraceSource,
    near: usize,
) -> Result<LiveTrace, String> {
    if near > MAX_NEAR_FLOWS {
        return Err(format!(
            "near {near}; at most {MAX_NEAR_FLOWS} flows of each table are listed"
        ));
    }
    let (packet, name) = match source {
        TraceSource::Frame { bytes, in_port } => {
            let bytes = frame_bytes(bytes)?;
            let in_port = state.borrow().in_port(in_port.as_deref())?;
            (Packet::new(&bytes, in_port.0), GIVEN.to_owned())
        }
        TraceSource::Flow { fields, in_port } => {
            let packet = state.borrow().packet_of(fields, in_port.as_deref())?;
            (packet, GIVEN.to_owned())
        }
        TraceSource::Next { port, max_seconds } => {
            let packet = next_packet(state, port, *max_seconds).await?;
            (packet, format!("port {port}"))
        }
    };
    state.borrow().trace(&packet, name, near)
}

/// Waits for the next packet that a port receives.
async fn next_packet(state: &Shared, port: &str, max_seconds: u64) -> Result<Packet, String> {
    if !(1..=MAX_WAIT_SECONDS).contains(&max_seconds) {
        return Err(format!(
            "max_seconds {max_seconds}; expected 1 to {MAX_WAIT_SECONDS}"
        ));
    }
    let number = state.borrow().given_port(port)?;
    let (sender, mut packets) = mpsc::channel(1);
    let worker_sender = sender.clone();
    state
        .borrow_mut()
        .command_all(|| Command::Next(number, worker_sender.clone()));
    let packet = timeout(Duration::from_secs(max_seconds), packets.recv()).await;
    // Workers keep copies of the sender until they receive a packet from the port.
    drop((worker_sender, sender));
    match packet {
        Ok(Some(packet)) => Ok(packet),
        _ => Err(format!(
            "port `{port}` received no packet within {max_seconds} s; wait longer, or look at \
             its counts with `classyard switch show`"
        )),
    }
}

impl State {
    /// Returns the port with a number or a name.
    fn given_port(&self, text: &str) -> Result<PortNo, String> {
        let number = text.parse().ok().map(PortNo);
        match number.filter(|number| self.ports.contains_key(number)) {
            Some(number) => Ok(number),
            None => self.port_named(text),
        }
    }

    /// Returns the ingress port of a packet.
    fn in_port(&self, given: Option<&str>) -> Result<PortNo, String> {
        self.given_port(given.unwrap_or(DEFAULT_IN_PORT))
    }

    /// Returns a packet with given fields.
    fn packet_of(&self, fields: &str, in_port: Option<&str>) -> Result<Packet, String> {
        // The fields may name the ingress port.
        let given = in_port.map(|port| self.given_port(port)).transpose()?;
        let default: PortNo = given.unwrap_or(PortNo(1));
        let packet = text::packet(fields, default.0, self.pipeline.ports());
        let packet = packet.map_err(|problem| {
            format!(
                "column {} of `{fields}`: {}; expected {}",
                problem.column, problem.found, problem.expected
            )
        })?;
        let port = u32::try_from(packet.key().get(Field::InPort)).expect("32 bits");
        if let Some(given) = given.filter(|given| given.0 != port) {
            return Err(format!(
                "the fields have in_port={port}, and the ingress port is {given}; give one of them"
            ));
        }
        // Reserved ports, such as the controller, are not in the list of ports.
        match PortNo(port).is_physical() {
            true => self.given_port(&port.to_string()).map(|_| packet),
            false => Ok(packet),
        }
    }

    /// Traces a packet that arrives now.
    fn trace(&self, packet: &Packet, source: String, near: usize) -> Result<LiveTrace, String> {
        let now = self.clock.now();
        let trace = self.pipeline.trace(packet, now, near);
        let sent_bytes: usize = trace.steps.iter().map(sent_bytes).sum();
        if sent_bytes > MAX_SENT_BYTES {
            return Err(format!(
                "the switch sends {sent_bytes} bytes for the packet; a trace has at most \
                 {MAX_SENT_BYTES} bytes; trace a shorter packet"
            ));
        }
        let megaflow = self.pipeline.new_megaflow(packet, now);
        let packet = TracePacket::new(packet, source, None, now);
        let port = PortNo(packet.in_port);
        Ok(LiveTrace {
            port: self.traced_port(port),
            steps: TraceStep::all(&trace, &origin),
            dropped: trace.is_dropped(),
            megaflow: megaflow.as_ref().map(TraceMegaflow::new),
            packet,
        })
    }

    fn traced_port(&self, port: PortNo) -> Option<TracePort> {
        let state = self.pipeline.ports().get(port)?;
        let open = self.ports.get(&port)?;
        Some(TracePort {
            number: port.0,
            name: open.settings.name.clone(),
            is_up: state.is_up,
            receives: !state.no_receive,
        })
    }
}

/// Returns the bytes of a sent packet; 0 for another step.
fn sent_bytes(step: &Step) -> usize {
    match step {
        Step::Sent { bytes, .. } | Step::ToController { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

/// Returns the origin of an item of a running switch: flows have cookies.
fn origin(item: TracedItem<'_>) -> ItemOrigin {
    ItemOrigin {
        cookie: match item {
            TracedItem::Flow(entry) => Some(format!("{:#x}", entry.cookie)),
            TracedItem::Group(_) | TracedItem::Meter(_) => None,
        },
        ..ItemOrigin::default()
    }
}
