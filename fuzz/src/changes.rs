//! Bundles, packets and the clock: the datapath against the reference interpreter.

use classyard_reference::equivalence::{Options, run};
use classyard_workload::kit::random::ByteDice;

/// A world for as long as there are bytes, in which both switches must do the same.
pub(crate) fn changes(data: &[u8]) {
    if let Err(found) = run(&mut ByteDice::new(data), &Options::small()) {
        panic!("{found}");
    }
}
