//! The datapath and the reference side by side, in random worlds: the same bundles, the
//! same packets, the same clock. Everything that can be asked of both is compared.
//!
//! All choices of a world come from [`Dice`]: from a seed, or from a fuzzer's bytes.
//!
//! One thing is left to the datapath: it takes the packets of a vector table by table,
//! so meters meet them in another order than one packet at a time would. In worlds whose
//! vectors have several packets only the first table uses meters.

mod frames;
mod ladders;
mod messages;
mod world;

use std::collections::BTreeMap;

use classyard_workload::kit::random::{Dice, SeededDice};

use world::World;

/// How much happens in a world.
#[derive(Clone, Debug)]
pub struct Options {
    /// Steps: each a bundle or two, the clock, packets.
    pub steps: usize,
    /// Frames to choose packets from.
    pub frames: usize,
    /// The most vectors of packets after each bundle.
    pub vectors: usize,
    /// The most entries.
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
    /// Little, for worlds of a fuzzer's bytes: frames are drawn first, and bytes must be
    /// left for what happens to them.
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

/// What was compared.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Packets.
    pub packets: u64,
    /// Packets that went out, or to the controller.
    pub events: u64,
    /// Messages.
    pub messages: u64,
    /// Bundles that were refused, by the code.
    pub refused: BTreeMap<&'static str, u64>,
    /// Entries that went, by the reason.
    pub removed: BTreeMap<String, u64>,
    /// Packets that a band of a meter was applied to.
    pub banded: u64,
    /// The most entries at once.
    pub entries: usize,
    /// Packets that were dropped at the limit of actions.
    pub limited_actions: u64,
    /// Packets that were dropped at the limit of copies.
    pub limited_copies: u64,
}

impl Summary {
    /// Adds what was compared elsewhere.
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
            .map_err(|found| format!("step {step}, {world}: {found}"))?;
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
    run(&mut dice, options).map_err(|found| format!("seed {seed}, {found}"))
}
