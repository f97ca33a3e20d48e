//! The datapath and the reference in identical random worlds: identical bundles, packets
//! and clock. Everything that can be queried from both is compared.
//!
//! All choices of a world come from [`Dice`]: from a seed, or from a fuzzer's bytes.
//!
//! One difference is allowed: the datapath processes the packets of a vector table by
//! table, so they reach meters in another order than single packets. In worlds whose
//! vectors have several packets, only the first table uses meters.

mod drawn;
mod frames;
mod ladders;
mod messages;
mod world;

use std::collections::BTreeMap;

use classyard_conformance::random::{Dice, SeededDice};

pub use drawn::Drawn;
use world::World;

/// The size of a world.
#[derive(Clone, Debug)]
pub struct Options {
    /// Steps: each has a bundle or two, a change of the clock, and packets.
    pub steps: usize,
    /// Frames to choose packets from.
    pub frames: usize,
    /// The maximum number of vectors of packets after each bundle.
    pub vectors: usize,
    /// The maximum number of entries.
    pub entries: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            steps: 60,
            frames: 24,
            vectors: 5,
            entries: 60,
        }
    }
}

impl Options {
    /// Small sizes, for worlds from a fuzzer's bytes: frames are drawn first, and enough
    /// bytes must remain for messages and packets.
    #[must_use]
    pub fn small() -> Options {
        Options {
            steps: 40,
            frames: 5,
            vectors: 2,
            entries: 20,
        }
    }
}

/// Counts of the compared messages, packets and events.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Packets.
    pub packets: u64,
    /// Packets sent out or to the controller.
    pub events: u64,
    /// Messages.
    pub messages: u64,
    /// Refused bundles, by error code.
    pub refused: BTreeMap<&'static str, u64>,
    /// Removed entries, by reason.
    pub removed: BTreeMap<String, u64>,
    /// Packets to which a meter band was applied.
    pub banded: u64,
    /// The greatest number of entries at one time.
    pub entries: usize,
    /// Packets dropped at the limit of actions.
    pub limited_actions: u64,
    /// Packets dropped at the limit of copies.
    pub limited_copies: u64,
}

impl Summary {
    /// Adds the counts of another summary.
    pub fn add(&mut self, other: &Summary) {
        self.packets += other.packets;
        self.events += other.events;
        self.messages += other.messages;
        for (code, times) in &other.refused {
            *self.refused.entry(code).or_default() += times;
        }
        for (reason, times) in &other.removed {
            *self.removed.entry(reason.clone()).or_default() += times;
        }
        self.banded += other.banded;
        self.entries = self.entries.max(other.entries);
        self.limited_actions += other.limited_actions;
        self.limited_copies += other.limited_copies;
    }
}

/// Runs a world.
///
/// # Errors
/// The first difference.
pub fn run(dice: &mut dyn Dice, options: &Options) -> Result<Summary, String> {
    let mut world = World::new(dice, options)?;
    let mut step = 0;
    while step < options.steps && !dice.spent() {
        world
            .step(dice)
            .map_err(|difference| format!("step {step}, {world}: {difference}"))?;
        step += 1;
    }
    Ok(world.summary())
}

/// Runs the world of a seed.
///
/// # Errors
/// The first difference, with the seed.
pub fn run_seed(seed: u64, options: &Options) -> Result<Summary, String> {
    let mut dice = SeededDice::new(seed);
    run(&mut dice, options).map_err(|difference| format!("seed {seed}, {difference}"))
}
