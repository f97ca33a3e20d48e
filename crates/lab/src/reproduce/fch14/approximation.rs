//! Comparison of the flows of heuristics with the most general flows.
//!
//! For a packet the optimum is the flow with the fewest bits that distinguishes it from
//! all rules, found by trying all masks (§5.2). A flow with d bits more has 1/2^d of the
//! optimum's packets. The mean of this share over packets comes nearest to the paper's
//! "Approx.", which the paper does not define. Two further values are measured: the mean
//! over cached flows, and the share of bits (fewest bits divided by bits).

use std::sync::Arc;

use classyard_datapath::lab::header_space::Term;
use classyard_datapath::lab::megaflow::simulator::{Cache, Table};
use classyard_datapath::lab::megaflow::{BruteForce, Heuristic, TooMuchWork};
use serde::{Deserialize, Serialize};

use crate::reproduce::statistics::mean;

/// The number of masks over a port.
const PORT_MASKS: usize = super::PORT_COUNT;

/// Shares of the optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Approximation {
    /// The share of the optimum's packets, as a mean over packets that no rule matches.
    pub(super) of_packets: f64,
    /// The share of the optimum's packets, as a mean over cached flows.
    pub(super) of_flows: f64,
    /// The share of bits, as a mean over cached flows.
    pub(super) of_bits: f64,
}

/// Compares flows of packets that no rule matches with the optimum: for at most
/// `max_flows` of the packets, evenly chosen, and at most `max_flows` cached flows.
pub(super) fn measure(
    rules: &Arc<[Term<1>]>,
    packets: &[u16],
    heuristic: &mut impl Heuristic<1>,
    max_flows: usize,
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
    let mut brute_force = BruteForce::new(Arc::clone(rules), PORT_MASKS);
    let mut of_packets = Vec::new();
    for &port in packets
        .iter()
        .step_by(packets.len().div_ceil(max_flows.max(1)).max(1))
    {
        let packet = [u64::from(port)];
        if table.winner(&packet).is_none() {
            let bits = table.megaflow(&packet, heuristic)?.term.bits();
            let fewest = table.megaflow(&packet, &mut brute_force)?.term.bits();
            of_packets.push(share(bits, fewest));
        }
    }
    let step = cached.len().div_ceil(max_flows.max(1)).max(1);
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

/// Returns the share of the most general flow's packets that a flow of `bits` bits has.
fn share(bits: u32, fewest: u32) -> f64 {
    0.5f64.powi(i32::try_from(bits - fewest).unwrap_or(i32::MAX))
}
