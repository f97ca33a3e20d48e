//! What flow caches did, as it is reported.

use classyard_datapath::pipeline::CacheStatus;
use serde::Serialize;

/// What the caches of all workers did together.
#[derive(Serialize)]
pub(super) struct CacheReport {
    /// Packets that the cache of single flows was asked about.
    microflow_lookups: u64,
    microflow_hits: u64,
    /// Answers that did not cover the packet.
    microflow_wrong: u64,
    microflow_capacity: usize,
    microflows: usize,
    microflow_bytes: usize,
    /// Vectors that passed it by.
    microflow_by_passed: u64,
    megaflow_lookups: u64,
    megaflow_hits: u64,
    /// Masks that were tried.
    megaflow_probes: u64,
    megaflow_by_passed: u64,
    megaflows: usize,
    masks: usize,
    paths: usize,
    megaflow_bytes: usize,
    added: u64,
    evicted: u64,
    /// Those from which new flows took packets.
    outdated: u64,
    narrowed: u64,
    revalidations: u64,
    stale: u64,
    learned: u64,
    /// Packets that passed the tables from the first one on.
    by_tables: u64,
}

impl CacheReport {
    pub(super) fn new(workers: &[CacheStatus]) -> CacheReport {
        let sum = |of: fn(&CacheStatus) -> u64| workers.iter().map(of).sum();
        let size = |of: fn(&CacheStatus) -> usize| workers.iter().map(of).sum();
        CacheReport {
            microflow_lookups: sum(|it| it.microflow_lookups),
            microflow_hits: sum(|it| it.microflow_hits),
            microflow_wrong: sum(|it| it.microflow_wrong),
            microflow_capacity: size(|it| it.microflows.capacity),
            microflows: size(|it| it.microflows.used),
            microflow_bytes: size(|it| it.microflows.bytes),
            microflow_by_passed: sum(|it| it.microflow_by_passed),
            megaflow_lookups: sum(|it| it.megaflow_lookups),
            megaflow_hits: sum(|it| it.megaflow_hits),
            megaflow_probes: sum(|it| it.megaflow_probes),
            megaflow_by_passed: sum(|it| it.megaflow_by_passed),
            megaflows: size(|it| it.megaflows),
            masks: size(|it| it.masks),
            paths: size(|it| it.paths),
            megaflow_bytes: size(|it| it.megaflow_bytes),
            added: sum(|it| it.added),
            evicted: sum(|it| it.evicted),
            outdated: sum(|it| it.outdated),
            narrowed: sum(|it| it.narrowed),
            revalidations: sum(|it| it.revalidations),
            stale: sum(|it| it.stale),
            learned: sum(|it| it.learned),
            by_tables: sum(|it| it.by_tables),
        }
    }

    /// Facts for people: names and values.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if self.microflow_capacity > 0 {
            facts.push(("Single flows", self.microflow_text()));
        }
        facts.push(("Megaflows", self.megaflow_text()));
        facts
    }

    fn microflow_text(&self) -> String {
        let mut text = format!(
            "{} known, of {} flows",
            share(self.microflow_hits, self.microflow_lookups),
            self.microflows,
        );
        if self.microflow_by_passed > 0 {
            text += &format!("; {} vectors passed it by", self.microflow_by_passed);
        }
        text
    }

    fn megaflow_text(&self) -> String {
        let mut text = format!(
            "{} known, {:.1} masks tried for each; {} with {} masks and {} paths",
            share(self.megaflow_hits, self.megaflow_lookups),
            ratio(self.megaflow_probes, self.megaflow_lookups),
            self.megaflows,
            self.masks,
            self.paths,
        );
        if self.megaflow_by_passed > 0 {
            text += &format!("; {} vectors passed them by", self.megaflow_by_passed);
        }
        text
    }
}

#[allow(clippy::cast_precision_loss)] // shares
fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// A share in per cent, of a number of packets.
fn share(part: u64, all: u64) -> String {
    format!("{:.1} % of {all} packets", 100.0 * ratio(part, all))
}
