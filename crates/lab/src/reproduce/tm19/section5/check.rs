//! Comparison of all engines' decisions, before anything is timed.
//!
//! `linear` is compared with a scan of the rules, for a few packets. The other engines
//! are compared with `linear`, for the packets that it looks up in a limited time, and
//! with each other for further packets, also for a limited time. The counters of every
//! entry must equal its packets, and all packets must be sent.

use std::collections::HashMap;
use std::time::Duration;

use classyard::policy::PartId;
use classyard::{Policy, RuleId};
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::Observer;
use classyard_datapath::{Field, Packet};
use classyard_report::failure::Failure;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::acl::ACL_TABLE;
use super::frames::Frames;
use super::runner::Runner;
use super::{VECTOR_PACKETS, WORKLOADS};
use crate::bench::thread_cpu_time;

/// Packets of a workload that are compared with a scan of the rules, and the maximum
/// number of rules compared in these scans.
const SCANNED_PACKETS: usize = 256;
const SCANNED_RULES: usize = 2_000_000;

/// The time limit of each other engine for packets that `linear` did not reach, as a
/// multiple of `linear`'s time.
const MAX_TIME_RATIO: f64 = 3.0;

/// The winner of a packet in the access list: an entry, or none.
type Won = Option<RuleId>;

/// Records the winners in the access list.
struct Winners(Vec<Won>);

impl Observer for Winners {
    fn looked_up(&mut self, table: TableId, winner: Option<RuleId>, _: &Packet) {
        if table == ACL_TABLE {
            self.0.push(winner);
        }
    }
}

/// Checks the pipeline of `linear` and the pipelines of other engines with the same
/// rules; none has processed packets before. `linear` looks up for `seconds` in each
/// workload. Returns the number of packets over which all engines were compared.
///
/// # Errors
/// If two engines differ; the first difference is described.
pub(super) fn check(
    policy: &Policy,
    frames: &[Frames; 2],
    linear: &mut Runner,
    others: &mut [(&str, &mut Runner)],
    seconds: f64,
) -> Result<usize, Failure> {
    let mut compared = 0;
    let mut counts = vec![HashMap::new(); others.len() + 1];
    let mut processed = vec![0; others.len() + 1];
    for (frames, (workload, _)) in frames.iter().zip(WORKLOADS) {
        let wrong = |what: String| {
            Failure::usage(format!(
                "WRONG: {} rules of {}, {workload} traffic: {what}",
                policy.len(),
                policy.name()
            ))
        };
        let known = reference(policy, frames, linear, seconds, &mut counts[0]).map_err(wrong)?;
        let decided = known.iter().flatten().map(Vec::len).sum::<usize>();
        compared += decided;
        processed[0] += decided;
        // The winners of the first of the other engines.
        let mut firsts: Vec<Option<Vec<Won>>> = vec![None; known.len()];
        for (number, (engine, runner)) in others.iter_mut().enumerate() {
            let deadline = thread_cpu_time() + Duration::from_secs_f64(MAX_TIME_RATIO * seconds);
            for (vector, (right, first)) in known.iter().zip(&mut firsts).enumerate() {
                if right.is_none() && thread_cpu_time() >= deadline {
                    continue;
                }
                let mut winners = Winners(Vec::with_capacity(VECTOR_PACKETS));
                processed[number + 1] += runner.vectors.observe(frames, vector, &mut winners);
                for winner in winners.0.iter().flatten() {
                    *counts[number + 1].entry(*winner).or_insert(0) += 1;
                }
                let right = right.as_ref().or(first.as_ref()).unwrap_or(&winners.0);
                if let Some(index) = (0..right.len()).find(|&at| right[at] != winners.0[at]) {
                    return Err(wrong(format!(
                        "packet {} is won by {:?} with {engine}, by {:?} with the engine before",
                        vector * VECTOR_PACKETS + index,
                        winners.0[index],
                        right[index]
                    )));
                }
                if number == 0 {
                    *first = Some(winners.0);
                }
            }
        }
    }
    let linear = std::iter::once(("linear", linear));
    let runners = linear.chain(
        others
            .iter_mut()
            .map(|(engine, runner)| (*engine, &mut **runner)),
    );
    for ((engine, runner), (counts, processed)) in runners.zip(counts.iter().zip(processed)) {
        counters(engine, runner, counts, processed)?;
    }
    Ok(compared)
}

/// Returns the winners of `linear` for each vector, in random order, until its time is
/// over; `None` for vectors that it did not reach.
fn reference(
    policy: &Policy,
    frames: &Frames,
    linear: &mut Runner,
    seconds: f64,
    counts: &mut HashMap<RuleId, u64>,
) -> Result<Vec<Option<Vec<Won>>>, String> {
    let mut order: Vec<usize> = (0..frames.vectors()).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(0));
    let mut known = vec![None; frames.vectors()];
    let deadline = thread_cpu_time() + Duration::from_secs_f64(seconds);
    let mut scans = (SCANNED_RULES / policy.len().max(1)).clamp(1, SCANNED_PACKETS);
    for vector in order {
        let mut winners = Winners(Vec::with_capacity(VECTOR_PACKETS));
        let count = linear.vectors.observe(frames, vector, &mut winners);
        for place in 0..count.min(scans) {
            let packet = &linear.vectors.packets[place];
            let priority = winners.0[place].and_then(|id| linear.pipeline.flows().get(id));
            let priority = priority.map_or(0, |entry| u32::from(entry.priority));
            let right = scan(policy, packet);
            if priority != right {
                return Err(format!(
                    "packet {} is won by an entry of priority {priority}, and by the rule of \
                     priority {right}",
                    vector * VECTOR_PACKETS + place
                ));
            }
        }
        scans -= count.min(scans);
        for winner in winners.0.iter().flatten() {
            *counts.entry(*winner).or_insert(0) += 1;
        }
        known[vector] = Some(winners.0);
        if thread_cpu_time() >= deadline {
            break;
        }
    }
    Ok(known)
}

/// Returns the priority of the rule that wins a packet, by a scan of every rule; 0 for
/// the default rule.
fn scan(policy: &Policy, packet: &Packet) -> u32 {
    let field = |field| packet.key().get(field);
    let protocol = field(Field::IpProto);
    // TCP, UDP and SCTP; other protocols have other fields in this place.
    let (sport, dport) = match protocol {
        6 | 17 | 132 => (field(Field::TcpSrc), field(Field::TcpDst)),
        _ => (0, 0),
    };
    let header = [
        field(Field::Ipv4Src),
        field(Field::Ipv4Dst),
        sport,
        dport,
        protocol,
    ];
    let rules = policy.part(PartId::FIRST);
    let schema = rules.schema();
    let mut key = vec![0; schema.key_words()];
    for (id, value) in schema.field_ids().zip(header) {
        schema.placement(id).set(&mut key, value);
    }
    rules.scan(&key).priority().map_or(0, |priority| priority.0)
}

/// Compares a pipeline's counters with the packets that it has processed.
fn counters(
    engine: &str,
    runner: &Runner,
    counts: &HashMap<RuleId, u64>,
    processed: usize,
) -> Result<(), Failure> {
    let pipeline = &runner.pipeline;
    for entry in pipeline
        .flows()
        .iter()
        .filter(|entry| entry.table == ACL_TABLE)
    {
        let (counted, right) = (
            pipeline.flow_count(entry.id).packets,
            counts.get(&entry.id).copied().unwrap_or(0),
        );
        if counted != right {
            return Err(Failure::usage(format!(
                "WRONG: {engine} counts {counted} packets of {}, which has won {right}",
                entry.flow
            )));
        }
    }
    let sent = runner.vectors.nowhere.sent;
    match sent == processed {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "WRONG: {engine} has sent {sent} of {processed} packets"
        ))),
    }
}
