//! The report on flow caches.

use classyard_datapath::pipeline::CacheStatus;
use classyard_report::output::style::counted;
use serde::Serialize;

/// The totals of all workers' caches.
#[derive(Serialize)]
pub(super) struct CacheReport {
    /// Packets looked up in the microflow cache.
    microflow_lookups: u64,
    microflow_hits: u64,
    /// Hits that did not cover the packet.
    microflow_wrong: u64,
    microflow_capacity: usize,
    microflows: usize,
    microflow_bytes: usize,
    /// Vectors that bypassed the microflow cache.
    microflow_bypasses: u64,
    megaflow_lookups: u64,
    megaflow_hits: u64,
    /// Masks that were probed.
    megaflow_probes: u64,
    megaflow_bypasses: u64,
    megaflows: usize,
    masks: usize,
    paths: usize,
    megaflow_bytes: usize,
    added: u64,
    evicted: u64,
    /// Megaflows that lost packets to new flows.
    outdated: u64,
    /// Megaflows whose path an entry left.
    stranded: u64,
    narrowed: u64,
    revalidations: u64,
    stale: u64,
    /// Megaflows stored before the first packet.
    proactive: u64,
    learned: u64,
    /// Packets that passed the tables, from the first on.
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
            microflow_bypasses: sum(|it| it.microflow_bypasses),
            megaflow_lookups: sum(|it| it.megaflow_lookups),
            megaflow_hits: sum(|it| it.megaflow_hits),
            megaflow_probes: sum(|it| it.megaflow_probes),
            megaflow_bypasses: sum(|it| it.megaflow_bypasses),
            megaflows: size(|it| it.megaflows),
            masks: size(|it| it.masks),
            paths: size(|it| it.paths),
            megaflow_bytes: size(|it| it.megaflow_bytes),
            added: sum(|it| it.added),
            evicted: sum(|it| it.evicted),
            outdated: sum(|it| it.outdated),
            stranded: sum(|it| it.stranded),
            narrowed: sum(|it| it.narrowed),
            revalidations: sum(|it| it.revalidations),
            stale: sum(|it| it.stale),
            proactive: sum(|it| it.proactive),
            learned: sum(|it| it.learned),
            by_tables: sum(|it| it.by_tables),
        }
    }

    /// Returns facts for people: names and values.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if self.microflow_capacity > 0 {
            facts.push(("Microflows", self.microflow_text()));
        }
        facts.push(("Megaflows", self.megaflow_text()));
        if self.proactive > 0 {
            let stored = counted(self.proactive, "megaflow");
            facts.push((
                "Proactive",
                format!("{stored} stored before the first packet"),
            ));
        }
        facts
    }

    fn microflow_text(&self) -> String {
        format!(
            "{}, {}",
            share(self.microflow_hits, self.microflow_lookups),
            counted(self.microflows, "flow"),
        )
    }

    fn megaflow_text(&self) -> String {
        format!(
            "{}, {:.1} masks probed per lookup; {} with {} and {}",
            share(self.megaflow_hits, self.megaflow_lookups),
            ratio(self.megaflow_probes, self.megaflow_lookups),
            counted(self.megaflows, "megaflow"),
            counted(self.masks, "mask"),
            counted(self.paths, "path"),
        )
    }

    /// Returns the number of vectors that bypassed a level, for people; `None` if there are
    /// none.
    pub(super) fn bypasses(&self) -> Option<String> {
        let levels = [
            ("microflows", self.microflow_bypasses),
            ("megaflows", self.megaflow_bypasses),
        ];
        let levels = levels.iter().filter(|(_, vectors)| *vectors > 0);
        let texts =
            levels.map(|(level, vectors)| format!("{vectors} vectors were faster without {level}"));
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

#[allow(clippy::cast_precision_loss)] // shares
fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Formats hits as a percentage of packets.
fn share(part: u64, all: u64) -> String {
    format!(
        "{:.1} % hits of {}",
        100.0 * ratio(part, all),
        counted(all, "packet")
    )
}
