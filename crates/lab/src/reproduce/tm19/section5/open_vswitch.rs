//! Open vSwitch with its caches, interleaved with our workers.
//!
//! Open vSwitch gets the rules that the paper gives it, with a single port in place of
//! every range, and traffic drawn from these rules. Before it is measured, its packet counts
//! are compared with the counts of our pipeline over the same entries.

use std::cell::RefCell;
use std::collections::HashMap;

use classyard::Policy;
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::acl::{ACL_TABLE, Acl, single_ports};
use super::frames::{Frames, Traffic};
use super::runner::Runner;
use super::{CONTENDERS, OVS_TUPLE_MERGE, WORKLOADS};
use crate::bench::{LoadedSwitch, Spread, SwitchPeer, SwitchRate};
use crate::reproduce::Study;
use crate::reproduce::statistics::coordinate;

/// The share of packets that may be in no count: Open vSwitch loses the last counts of
/// megaflows that it deletes, up to 76 of 200,000 packets in `bench/records/ovs.md`.
const MAX_MISSING_SHARE: f64 = 0.01;

/// Packets by the cookie of the entry that they match.
type Counts = HashMap<u64, u64>;

/// Measured values of Open vSwitch with one kind of traffic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SwitchRun {
    /// Flow entries of the access list.
    pub(super) entries: usize,
    pub(super) load_seconds: f64,
    /// Seconds until the caches were filled; `None` if packets still missed them after the
    /// time limit of the program.
    pub(super) settled_seconds: Option<f64>,
    /// Packets that no entry counted in the first pass; `None` if the pass took too long and
    /// nothing was compared.
    pub(super) missing_packets: Option<u64>,
    pub(super) turns: Vec<SwitchRate>,
}

impl SwitchRun {
    /// Returns the packets a second of each turn.
    pub(super) fn rates(&self) -> Vec<f64> {
        self.values(|turn| turn.packets_per_second)
    }

    /// Returns the median of a value over the turns.
    pub(super) fn median(&self, value: impl Fn(&SwitchRate) -> f64) -> f64 {
        Spread::of(&self.values(value)).expect("measured").median
    }

    fn values(&self, value: impl Fn(&SwitchRate) -> f64) -> Vec<f64> {
        self.turns.iter().map(value).collect()
    }
}

/// Open vSwitch over one rule set.
pub(super) struct SwitchContender<'a> {
    peer: &'a RefCell<SwitchPeer>,
    acl: Acl,
    traffic: Traffic,
    /// Packets of one pass by workload, as our pipeline counts them.
    expected: [Counts; 2],
    /// The rule set, for messages.
    rules: String,
    runs: [Option<SwitchRun>; 2],
}

impl<'a> SwitchContender<'a> {
    /// Prepares entries, traffic and counts; `None` if Open vSwitch is not measured.
    pub(super) fn new(
        study: &'a Study<'_>,
        policy: &Policy,
        list: usize,
    ) -> Result<Option<SwitchContender<'a>>, Failure> {
        let Some(peer) = &study.open_vswitch else {
            return Ok(None);
        };
        let rules = single_ports(policy);
        let traffic = Traffic::of(&rules, study.headers(), study.list_seed(list))?;
        let acl = Acl::of(&rules)?;
        let mut runner = Runner::new(acl.pipeline(CONTENDERS[OVS_TUPLE_MERGE].engine)?);
        let [synthetic, default_rule] = &traffic.frames;
        let expected = [
            counts(&mut runner, synthetic),
            counts(&mut runner, default_rule),
        ];
        Ok(Some(SwitchContender {
            peer,
            acl,
            traffic,
            expected,
            rules: format!("{} rules of {}", policy.len(), policy.name()),
            runs: [None, None],
        }))
    }

    /// Starts Open vSwitch with the entries and the packets of a workload, and compares its
    /// counts. It is stopped until its first turn.
    pub(super) fn load(&mut self, workload: usize) -> Result<(), Failure> {
        let frames = &self.traffic.frames[workload];
        let loaded = (self.peer.borrow_mut()).load(&self.acl.text, &frames.capture())?;
        let missing = missing(&loaded, frames.len(), &self.expected[workload]);
        let missing_packets = missing.map_err(|what| {
            Failure::usage(format!(
                "WRONG: {} with single ports, {} traffic, Open vSwitch: {what}",
                self.rules, WORKLOADS[workload].0
            ))
        })?;
        self.runs[workload] = Some(SwitchRun {
            entries: self.acl.flows,
            load_seconds: loaded.load_seconds,
            settled_seconds: loaded.settled_seconds,
            missing_packets,
            turns: Vec::new(),
        });
        Ok(())
    }

    /// Measures one turn with the loaded workload.
    pub(super) fn turn(&mut self, workload: usize) -> Result<(), Failure> {
        let rate = self.peer.borrow_mut().turn()?;
        let run = self.runs[workload].as_mut().expect("loaded before");
        run.turns.push(rate);
        Ok(())
    }

    /// Ends Open vSwitch.
    pub(super) fn unload(&mut self) -> Result<(), Failure> {
        self.peer.borrow_mut().unload()
    }

    /// Returns the measured values by workload.
    pub(super) fn runs(self) -> [SwitchRun; 2] {
        self.runs
            .map(|run| run.expect("both workloads were measured"))
    }
}

/// Returns the counts of one pass over all frames.
fn counts(runner: &mut Runner, frames: &Frames) -> Counts {
    let by_cookie = |runner: &Runner| -> Counts {
        let entries = runner.pipeline.flows().iter();
        let of_list = entries.filter(|entry| entry.table == ACL_TABLE && entry.cookie != 0);
        let counts =
            of_list.map(|entry| (entry.cookie, runner.pipeline.flow_count(entry.id).packets));
        counts.collect()
    };
    let before = by_cookie(runner);
    runner.vectors.some(frames, frames.vectors(), None);
    let mut counts = by_cookie(runner);
    for (cookie, packets) in &mut counts {
        *packets -= before.get(cookie).copied().unwrap_or(0);
    }
    counts.retain(|_, packets| *packets > 0);
    counts
}

/// Compares the counts of the first pass with ours. Returns the number of packets that no
/// entry counted, or `None` if there are no counts.
///
/// # Errors
/// A message if the capture was read differently, if an entry counted packets of another
/// one, or if too many packets are missing.
fn missing(
    loaded: &LoadedSwitch,
    packets: usize,
    expected: &Counts,
) -> Result<Option<u64>, String> {
    if loaded.packets != packets {
        return Err(format!(
            "it read {} packets of {packets} in the capture",
            loaded.packets
        ));
    }
    let Some(counts) = &loaded.counts else {
        return Ok(None);
    };
    let packets_of = |counts: &Counts, cookie| counts.get(cookie).copied().unwrap_or(0);
    if let Some((cookie, counted)) =
        (counts.iter()).find(|&(cookie, counted)| *counted > packets_of(expected, cookie))
    {
        return Err(format!(
            "it counts {counted} packets for entry {cookie}, which matches {}",
            packets_of(expected, cookie)
        ));
    }
    let missing = expected.iter();
    let missing = missing.map(|(cookie, packets)| packets - packets_of(counts, cookie));
    let missing: u64 = missing.sum();
    let missing_packets = usize::try_from(missing).unwrap_or(usize::MAX);
    match coordinate(missing_packets) > MAX_MISSING_SHARE * coordinate(packets) {
        true => Err(format!(
            "{missing} of {packets} packets are in the count of no entry that matches them"
        )),
        false => Ok(Some(missing)),
    }
}

#[cfg(test)]
impl SwitchRun {
    /// Creates a run of turns with given packets a second.
    pub(super) fn of_rates(rates: [f64; 5]) -> SwitchRun {
        let turns = rates.map(|packets_per_second| SwitchRate {
            packets_per_second,
            emc_share: 0.25,
            megaflow_share: 0.75,
            lookups_per_hit: 3.0,
            upcalls_per_second: 0.0,
            megaflows: 500,
        });
        SwitchRun {
            entries: 900,
            load_seconds: 0.5,
            settled_seconds: Some(3.0),
            missing_packets: Some(2),
            turns: turns.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use classyard::NoProgress;
    use classyard_workload::generate::Profile;

    use super::*;
    use crate::bench::generated_policy;
    use classyard_report::input::family::FamilyName;

    fn loaded(packets: usize, counts: Option<&[(u64, u64)]>) -> LoadedSwitch {
        LoadedSwitch {
            packets,
            load_seconds: 0.5,
            settled_seconds: None,
            counts: counts.map(|counts| counts.iter().copied().collect()),
        }
    }

    #[test]
    fn counts_of_another_entry_are_found() {
        let expected: Counts = [(1, 700), (2, 300)].into();
        let compare = |loaded: LoadedSwitch| missing(&loaded, 1_000, &expected);
        let equal: &[(u64, u64)] = &[(1, 700), (2, 300)];
        assert_eq!(compare(loaded(1_000, Some(equal))), Ok(Some(0)));
        let fewer: &[(u64, u64)] = &[(1, 695), (2, 300)];
        assert_eq!(compare(loaded(1_000, Some(fewer))), Ok(Some(5)));
        assert_eq!(compare(loaded(1_000, None)), Ok(None));
        for (wrong, reason) in [
            (loaded(999, Some(equal)), "999 packets of 1000"),
            (loaded(1_000, Some(&[(1, 701), (2, 299)])), "entry 1"),
            (
                loaded(1_000, Some(&[(1, 700), (2, 300), (3, 1)])),
                "entry 3",
            ),
            (loaded(1_000, Some(&[(1, 700), (2, 280)])), "20 of 1000"),
        ] {
            let error = compare(wrong).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn each_pass_is_counted_by_cookies() {
        let profile = Arc::new(Profile::built_in("acl1").unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        let policy = single_ports(&generated_policy(family, 100, 1, &mut NoProgress).unwrap());
        let traffic = Traffic::of(&policy, 1_000, 1).unwrap();
        let acl = Acl::of(&policy).unwrap();
        assert_eq!(acl.text.lines().count(), acl.flows + 2);
        let mut runner = Runner::new(acl.pipeline("linear").unwrap());
        let first = counts(&mut runner, &traffic.frames[0]);
        let entries = u64::try_from(acl.flows).unwrap();
        assert!(first.keys().all(|cookie| (1..=entries).contains(cookie)));
        assert!((900..=1_000).contains(&first.values().sum::<u64>()));
        let real = counts(&mut runner, &traffic.frames[1]);
        assert!(real.values().sum::<u64>() < 200, "{real:?}");
        assert_eq!(counts(&mut runner, &traffic.frames[0]), first);
    }
}
