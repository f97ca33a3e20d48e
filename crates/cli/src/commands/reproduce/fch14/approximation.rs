//! How near the flows of heuristics come to the most general ones.
//!
//! For a packet the optimum is the flow of the fewest bits that tells it apart from all
//! rules, found by trying all masks (§5.2). A flow with d bits more holds 1/2^d of the
//! packets that the optimum holds: that share, in the mean over flows that are cached, is
//! the paper's "Approx." as far as its numbers let one say. The share of bits (fewest
//! bits over bits) is beside it.

use std::sync::Arc;

use classyard_datapath::header_space::Term;
use classyard_datapath::megaflow::table::{Cache, Table};
use classyard_datapath::megaflow::{BruteForce, Heuristic, TooMuchWork};
use serde::{Deserialize, Serialize};

use crate::commands::reproduce::statistics::mean;

/// All masks over a port.
const MASKS: usize = super::PORTS;

/// Shares of the optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Approximation {
    /// Of the optimum's packets.
    pub(super) packets: f64,
    /// Of bits.
    pub(super) bits: f64,
    /// Flows that were compared.
    pub(super) flows: usize,
}

/// Compares the flows of packets that no rule matches, evenly chosen among those that
/// are cached, at most `most`.
pub(super) fn measure(
    rules: &Arc<[Term<1>]>,
    packets: &[u16],
    heuristic: &mut impl Heuristic<1>,
    most: usize,
) -> Result<Approximation, TooMuchWork> {
    let table = Table::new(Arc::clone(rules));
    let mut cache = Cache::new();
    let mut cached = Vec::new();
    for &port in packets {
        let packet = [u64::from(port)];
        if cache.get(&packet).is_none() {
            let flow = table.megaflow(&packet, heuristic)?;
            cache.insert(&flow);
            if flow.winner.is_none() {
                cached.push((packet, flow.term.bits()));
            }
        }
    }
    let mut brute_force = BruteForce::new(Arc::clone(rules), MASKS);
    let step = cached.len().div_ceil(most.max(1)).max(1);
    let (mut of_packets, mut of_bits) = (Vec::new(), Vec::new());
    for (packet, bits) in cached.iter().step_by(step) {
        let fewest = table.megaflow(packet, &mut brute_force)?.term.bits();
        of_packets.push(0.5f64.powi(i32::try_from(bits - fewest).unwrap_or(i32::MAX)));
        of_bits.push(f64::from(fewest) / f64::from((*bits).max(1)));
    }
    Ok(Approximation {
        packets: mean(&of_packets),
        bits: mean(&of_bits),
        flows: of_packets.len(),
    })
}
