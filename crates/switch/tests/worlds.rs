//! Random changes over a connection, as bundles, and random packets: the running switch and the
//! reference do the same.

mod running;

use std::collections::BTreeMap;
use std::time::Duration;

use classyard_conformance::random::SeededDice;
use classyard_datapath::pipeline::{Message as PipelineMessage, PortState};
use classyard_datapath::{ErrorCode, PortNo};
use classyard_openflow::packet::PacketOut;
use classyard_openflow::{Code, Message};
use classyard_reference::equivalence::Drawn;
use classyard_reference::{Event, Packet, Reference};

use running::{Controller, Running};

/// The ports of the switch.
const PORTS: u32 = 4;

/// Returns a change as a message of OpenFlow, or `None` if it reads back as another one.
fn on_the_wire(change: &PipelineMessage) -> Option<Message> {
    let message = match change.clone() {
        PipelineMessage::Flow(change) => Message::FlowMod(change),
        PipelineMessage::Group(change) => Message::GroupMod(change),
        _ => return None,
    };
    let bytes = message.to_bytes(1);
    let (_, read) = Message::read(&bytes).ok()?;
    (read == message).then_some(message)
}

/// Packets that a switch sent, by port, and those for the controller, in order.
#[derive(Default, PartialEq, Eq, Debug)]
struct Outputs {
    sent: BTreeMap<u32, Vec<Vec<u8>>>,
    to_controller: Vec<Vec<u8>>,
}

impl Outputs {
    fn of(events: Vec<Event>) -> Outputs {
        let mut outputs = Outputs::default();
        for event in events {
            match event {
                // The switch has no other ports.
                Event::Sent { port, bytes, .. } if port.0 <= PORTS => {
                    outputs.sent.entry(port.0).or_default().push(bytes);
                }
                Event::Sent { .. } => {}
                Event::Controller { max_len, bytes, .. } => {
                    let length = bytes.len().min(usize::from(max_len));
                    outputs.to_controller.push(bytes[..length].to_vec());
                }
            }
        }
        outputs
    }

    fn len(&self) -> usize {
        self.to_controller.len() + self.sent.values().map(Vec::len).sum::<usize>()
    }

    /// Returns what the switch has sent after all frames that it got.
    fn taken(switch: &Running, controller: &mut Controller) -> Outputs {
        let mut outputs = Outputs::default();
        // The worker carries out a packet of the controller, then receives frames. So the second
        // packet is carried out after all frames that waited before the first.
        for _ in 0..2 {
            let nothing = Message::PacketOut(PacketOut {
                in_port: PortNo::CONTROLLER,
                actions: Vec::new(),
                data: vec![0; 60],
            });
            for message in controller.ask(&nothing) {
                if let Message::PacketIn(packet) = message {
                    outputs.to_controller.push(packet.data);
                }
            }
        }
        for port in 1..=PORTS {
            let frames = switch.received(port);
            if !frames.is_empty() {
                outputs.sent.insert(port, frames);
            }
        }
        outputs
    }
}

/// Runs a world. Returns the numbers of accepted bundles, refused bundles and outputs.
fn world(seed: u64) -> (usize, usize, usize) {
    let mut dice = SeededDice::new(seed);
    let drawn = Drawn::new(&mut dice, 12, 40);
    let switch = Running::with(PORTS, |settings| {
        settings.max_packet_ins_per_second = 1_000_000;
        settings.max_packet_in_burst = 1_000_000;
    });
    let mut controller = switch.controller();
    let mut reference = Reference::new(0);
    for port in 1..=PORTS {
        let port = PipelineMessage::Port(PortNo(port), Some(PortState::default()));
        reference.apply(&[port], Duration::ZERO).expect("a port");
    }
    let (mut accepted, mut refused, mut all) = (0, 0, 0);
    for step in 0..60 {
        let bundle = drawn.bundle(&reference, &mut dice).expect("one rule");
        let messages: Option<Vec<Message>> = bundle.iter().map(on_the_wire).collect();
        if let Some(messages) = messages {
            let expected = reference.apply(&bundle, Duration::ZERO);
            let done = controller.bundle(step, &messages);
            match expected {
                Ok(()) => accepted += usize::from(done.is_ok()),
                Err(_) => refused += 1,
            }
            let expected = expected.map_err(|(_, code)| code_on_the_wire(code));
            assert_eq!(done, expected, "seed {seed}, step {step}: {bundle:?}");
        }
        for _ in 0..8 {
            let (frame, port) = drawn.frame(&mut dice);
            let mut packet = Packet::new(frame, port, 0);
            let events = reference.process(&mut packet, Duration::ZERO);
            let expected = Outputs::of(events);
            switch.send(port, frame);
            let outputs = Outputs::taken(&switch, &mut controller);
            assert_eq!(
                outputs, expected,
                "seed {seed}, step {step}: {frame:02x?} from port {port}"
            );
            all += outputs.len();
        }
    }
    switch.stop();
    (accepted, refused, all)
}

/// Returns the type and code of an error on the wire.
fn code_on_the_wire(code: ErrorCode) -> Code {
    let (kind, code) = code.numbers();
    Code { kind, code }
}

#[test]
fn the_running_switch_does_what_the_reference_does() {
    let (mut accepted, mut refused, mut outputs) = (0, 0, 0);
    for seed in 0..30 {
        let (more_accepted, more_refused, more_outputs) = world(seed);
        accepted += more_accepted;
        refused += more_refused;
        outputs += more_outputs;
    }
    assert!(
        accepted > 100 && refused > 10 && outputs > 1_000,
        "{accepted} bundles accepted, {refused} refused, {outputs} packets sent"
    );
}
