//! Random changes and frames for a switch behind a connection, where a test cannot set the clock.

use classyard_conformance::random::Dice;
use classyard_datapath::flow::TableId;
use classyard_datapath::group::{GroupMod, GroupType};
use classyard_datapath::pipeline::Message;

use super::frames;
use super::messages::{self, Held, Shape};
use crate::{Packet, Reference};

/// A source of random bundles and frames whose effects depend on no clock and no seed of the
/// switch: flow entries without timeouts and meters, and groups without choices by a hash.
pub struct Drawn {
    shape: Shape,
    frames: Vec<Vec<u8>>,
}

/// Ports that packets arrive from: 1 to this number.
const PORTS: usize = 4;

impl Drawn {
    /// Returns a source with this number of frames, and about `most` entries.
    #[must_use]
    pub fn new(dice: &mut dyn Dice, frames: usize, most: usize) -> Drawn {
        Drawn {
            shape: Shape {
                tables: [0, 1, 2, 7].map(TableId).to_vec(),
                most,
                meters_everywhere: false,
                wrong: 40,
                timed: usize::MAX,
                tight: usize::MAX,
            },
            frames: (0..frames).map(|_| frames::frame(dice)).collect(),
        }
    }

    /// Returns a frame and the number of the port that receives it.
    pub fn frame(&self, dice: &mut dyn Dice) -> (&[u8], u32) {
        let frame = &self.frames[dice.below(self.frames.len())];
        let port = 1 + dice.below(PORTS);
        (frame, u32::try_from(port).expect("a small number"))
    }

    /// Returns messages for a switch with the contents of `reference`.
    ///
    /// # Errors
    /// A difference between the rules for matches of the reference and of the datapath.
    pub fn bundle(
        &self,
        reference: &Reference,
        dice: &mut dyn Dice,
    ) -> Result<Vec<Message>, String> {
        let groups = reference.groups().map(|counted| counted.group.id);
        let held = Held {
            entries: reference.entries().len(),
            groups: groups.collect(),
            meters: Vec::new(),
        };
        let mut bundle = Vec::new();
        for _ in 0..1 + dice.below(5) {
            let (frame, port) = self.frame(dice);
            let packet = Packet::new(frame, port, 0);
            let message = messages::message(&self.shape, &packet, &held, dice)?;
            if is_timeless(&message) {
                bundle.push(message);
            }
        }
        Ok(bundle)
    }
}

/// True if the effects of a message depend on no clock and no seed.
fn is_timeless(message: &Message) -> bool {
    match message {
        Message::Flow(change) => {
            change.instructions.meter.is_none()
                && change.idle_timeout == 0
                && change.hard_timeout == 0
        }
        Message::Group(GroupMod { group, .. }) => group.kind != GroupType::Select,
        _ => false,
    }
}
