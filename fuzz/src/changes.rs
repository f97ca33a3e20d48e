//! Bundles, packets and the clock: the datapath compared with the reference interpreter.

use classyard_conformance::random::ByteDice;
use classyard_reference::equivalence::{Options, run};

/// Runs a world until the bytes are used up; both switches must behave equally.
pub(crate) fn changes(data: &[u8]) {
    if let Err(difference) = run(&mut ByteDice::new(data), &Options::small()) {
        panic!("{difference}");
    }
}
