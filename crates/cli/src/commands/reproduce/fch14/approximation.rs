//! How near the flows of heuristics come to the most general ones.
//!
//! For a packet the optimum is the flow of the fewest bits that tells it apart from all
//! rules, found by trying all masks (§5.2). A flow with d bits more holds 1/2^d of the
//! packets that the optimum holds. That share, in the mean over packets, comes nearest to
//! the paper's "Approx.", which it does not define. The mean over cached flows, and the
//! share of bits (fewest bits over bits), are beside it.

use std::sync::Arc;

use classyard_datapath::lab::header_space::Term;
use classyard_datapath::lab::megaflow::table::{Cache, Table};
use classyard_datapath::lab::megaflow::{BruteForce, Heuristic, TooMuchWork};
use serde::{Deserialize, Serialize};

use crate::commands::reproduce::statistics::mean;

/// All masks over a port.
const MASKS: usize = super::PORTS;

/// Shares of the optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Approximation {
    /// Of the optimum's packets, in the mean over packets that no rule matches.
    pub(super) of_packets: f64,
    /// The same in the mean over cached flows.
    pub(super) of_flows: f64,
    /// Of bits, in the mean over cached flows.
    pub(super) of_bits: f64,
}

/// Compares flows of packets that no rule matches with the best: at most `most` of the
/// packets, evenly chosen, and as many of the flows that a cache gets.
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
    let mut of_packets = Vec::new();
    for &port in packets
        .iter()
        .step_by(packets.len().div_ceil(most.max(1)).max(1))
    {
        let packet = [u64::from(port)];
        if table.winner(&packet).is_none() {
            let bits = table.megaflow(&packet, heuristic)?.term.bits();
            let fewest = table.megaflow(&packet, &mut brute_force)?.term.bits();
            of_packets.push(share(bits, fewest));
        }
    }
    let step = cached.len().div_ceil(most.max(1)).max(1);
    let (mut of_flows, mut of_bits) = (Vec::new(), Vec::new());
    for (packet, bits) in cached.iter().step_by(step) {
        let fewest = table.megaflow(packet, &mut brute_force)?.term.bits();
        of_flows.push(share(*bits, fewest));
        of_bits.push(f64::from(fewest) / f64::from((*bits).max(1)));
    }
    Ok(Approximation {
        of_packets: mean(&of_packets),
        of_flows: mean(&of_flows),
        of_bits: mean(&of_bits),
    })
}

/// The share of the most general flow's packets that a flow of more bits holds.
fn share(bits: u32, fewest: u32) -> f64 {
    0.5f64.powi(i32::try_from(bits - fewest).unwrap_or(i32::MAX))
}
