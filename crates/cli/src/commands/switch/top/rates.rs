//! The rates of a switch between two of its states.

use classyard_switch::control::{
    CacheCounts, ControllerStatus, DropCount, PortStatus, Role, SwitchStatus, WorkerStatus,
};
use serde::Serialize;

/// The rates of a switch during an interval. Keys are stable.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TopReport {
    pub(super) switch: String,
    /// The time since the switch started, at the end of the interval.
    pub(super) uptime_seconds: f64,
    /// The length of the interval.
    pub(super) seconds: f64,
    pub(super) ports: Vec<PortRates>,
    pub(super) workers: Vec<WorkerRates>,
    pub(super) drops: Vec<DropRates>,
    pub(super) controllers: Vec<ControllerRates>,
}

/// The rates of a port, a second.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PortRates {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) link: &'static str,
    pub(super) received_packets: f64,
    pub(super) received_bits: f64,
    pub(super) sent_packets: f64,
    pub(super) sent_bits: f64,
    pub(super) dropped_packets: f64,
}

/// The load of a worker. Rates are a second.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct WorkerRates {
    pub(super) worker: usize,
    pub(super) cpu: Option<usize>,
    /// The share of the interval that the worker spent with packets and commands.
    pub(super) busy: f64,
    pub(super) packets: f64,
    /// `None` without packets.
    pub(super) packets_per_vector: Option<f64>,
    pub(super) sleeps: f64,
    /// The share of hits; `None` without lookups.
    pub(super) microflow_hits: Option<f64>,
    /// The share of hits; `None` without lookups.
    pub(super) megaflow_hits: Option<f64>,
    /// Packets that the tables processed.
    pub(super) by_tables: f64,
    pub(super) microflows: usize,
    pub(super) megaflows: usize,
}

/// The packets dropped for a reason, of a port or of a worker.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct DropRates {
    /// The name of the port; `None` for a worker.
    pub(super) port: Option<String>,
    /// The number of the worker; `None` for a port.
    pub(super) worker: Option<usize>,
    pub(super) reason: String,
    /// A second.
    pub(super) dropped_packets: f64,
    /// Since the switch started.
    pub(super) total_packets: u64,
}

/// The rates of a controller, a second.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ControllerRates {
    pub(super) address: String,
    pub(super) state: &'static str,
    pub(super) role: Option<&'static str>,
    pub(super) received_messages: f64,
    pub(super) sent_messages: f64,
    pub(super) dropped_packet_ins: f64,
}

/// Two counts, and the seconds between them.
#[derive(Clone, Copy)]
struct Interval {
    seconds: f64,
}

impl Interval {
    /// Returns the rate of a count, a second.
    #[allow(clippy::cast_precision_loss)] // shown with three digits
    fn rate(self, old: u64, new: u64) -> f64 {
        match self.seconds > 0.0 {
            true => increase(old, new) as f64 / self.seconds,
            false => 0.0,
        }
    }
}

/// Returns the increase of a count. A port or a connection that was replaced counts from 0.
fn increase(old: u64, new: u64) -> u64 {
    new.checked_sub(old).unwrap_or(new)
}

/// Returns the increase of `hits` in the increase of `lookups`; `None` without lookups.
#[allow(clippy::cast_precision_loss)] // shown with three digits
fn share((old_hits, hits): (u64, u64), (old_lookups, lookups): (u64, u64)) -> Option<f64> {
    match increase(old_lookups, lookups) {
        0 => None,
        lookups => Some(increase(old_hits, hits) as f64 / lookups as f64),
    }
}

#[allow(clippy::cast_precision_loss)] // shown with three digits
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn total(drops: &[DropCount]) -> u64 {
    drops.iter().map(|drop| drop.packets).sum()
}

impl TopReport {
    /// Returns the rates between two states.
    pub(super) fn between(old: &SwitchStatus, new: &SwitchStatus) -> TopReport {
        let time = Interval {
            seconds: seconds(new.uptime_ns.saturating_sub(old.uptime_ns)),
        };
        let old_port = |port: &PortStatus| {
            let mut ports = old.ports.iter();
            ports.find(|old| (old.number, &old.name) == (port.number, &port.name))
        };
        let old_worker = |worker: &WorkerStatus| {
            let mut workers = old.workers.iter();
            workers.find(|old| old.worker == worker.worker)
        };
        let old_controller = |controller: &ControllerStatus| {
            let mut controllers = old.controllers.iter();
            controllers.find(|old| old.address == controller.address)
        };
        let port_drops = new.ports.iter().flat_map(|port| {
            let old = old_port(port).map_or(&[][..], |old| &old.drops);
            drops((Some(port.name.clone()), None), old, &port.drops, time)
        });
        let worker_drops = new.workers.iter().flat_map(|worker| {
            let old = old_worker(worker).map_or(&[][..], |old| &old.drops);
            drops((None, Some(worker.worker)), old, &worker.drops, time)
        });
        let (ports, workers) = (new.ports.iter(), new.workers.iter());
        let controllers = new.controllers.iter();
        TopReport {
            switch: new.name.clone(),
            uptime_seconds: seconds(new.uptime_ns),
            seconds: time.seconds,
            drops: port_drops.chain(worker_drops).collect(),
            ports: ports
                .map(|port| PortRates::between(old_port(port), port, time))
                .collect(),
            workers: workers
                .map(|worker| WorkerRates::between(old_worker(worker), worker, time))
                .collect(),
            controllers: controllers
                .map(|new| ControllerRates::between(old_controller(new), new, time))
                .collect(),
        }
    }
}

fn drops(
    (port, worker): (Option<String>, Option<usize>),
    old: &[DropCount],
    new: &[DropCount],
    time: Interval,
) -> Vec<DropRates> {
    let rows = new.iter().map(|drop| {
        let old = old.iter().find(|old| old.reason == drop.reason);
        DropRates {
            port: port.clone(),
            worker,
            reason: drop.reason.clone(),
            dropped_packets: time.rate(old.map_or(0, |old| old.packets), drop.packets),
            total_packets: drop.packets,
        }
    });
    rows.collect()
}

impl PortRates {
    /// A port without an old state was added during the interval.
    fn between(old: Option<&PortStatus>, new: &PortStatus, time: Interval) -> PortRates {
        let rate = |count: fn(&PortStatus) -> u64| time.rate(old.map_or(0, count), count(new));
        PortRates {
            number: new.number,
            name: new.name.clone(),
            link: new.link.word(),
            received_packets: rate(|port| port.received_packets),
            received_bits: 8.0 * rate(|port| port.received_bytes),
            sent_packets: rate(|port| port.sent_packets),
            sent_bits: 8.0 * rate(|port| port.sent_bytes),
            dropped_packets: rate(|port| total(&port.drops)),
        }
    }
}

impl WorkerRates {
    fn between(old: Option<&WorkerStatus>, new: &WorkerStatus, time: Interval) -> WorkerRates {
        let none = WorkerStatus::default();
        let old = old.unwrap_or(&none);
        let old_caches = old.caches.unwrap_or_default();
        let caches = new.caches.unwrap_or_default();
        let both = |count: fn(&CacheCounts) -> u64| (count(&old_caches), count(&caches));
        let (old_tables, tables) = both(|caches| caches.by_tables);
        WorkerRates {
            worker: new.worker,
            cpu: new.cpu,
            busy: (time.rate(old.busy_ns, new.busy_ns) / 1e9).min(1.0),
            packets: time.rate(old.packets, new.packets),
            packets_per_vector: share((old.packets, new.packets), (old.vectors, new.vectors)),
            sleeps: time.rate(old.sleeps, new.sleeps),
            microflow_hits: share(
                both(|caches| caches.microflow_hits),
                both(|caches| caches.microflow_lookups),
            ),
            megaflow_hits: share(
                both(|caches| caches.megaflow_hits),
                both(|caches| caches.megaflow_lookups),
            ),
            by_tables: time.rate(old_tables, tables),
            microflows: caches.microflows,
            megaflows: caches.megaflows,
        }
    }
}

impl ControllerRates {
    fn between(
        old: Option<&ControllerStatus>,
        new: &ControllerStatus,
        time: Interval,
    ) -> ControllerRates {
        let rate =
            |count: fn(&ControllerStatus) -> u64| time.rate(old.map_or(0, count), count(new));
        ControllerRates {
            address: new.address.clone(),
            state: new.state.word(),
            role: new.role.map(Role::word),
            received_messages: rate(|controller| controller.received_messages),
            sent_messages: rate(|controller| controller.sent_messages),
            dropped_packet_ins: rate(|controller| controller.dropped_packet_ins),
        }
    }
}

#[cfg(test)]
mod tests {
    use classyard_switch::control::Link;

    use super::*;

    fn state(uptime_ns: u64, packets: u64, drops: u64) -> SwitchStatus {
        SwitchStatus {
            name: "br0".to_owned(),
            uptime_ns,
            ports: vec![PortStatus {
                number: 1,
                name: "p1".to_owned(),
                device: "memory".to_owned(),
                link: Link::Up,
                received_packets: packets,
                received_bytes: packets * 60,
                sent_packets: 0,
                sent_bytes: 0,
                drops: vec![DropCount {
                    reason: "no_room".to_owned(),
                    packets: drops,
                }],
            }],
            workers: vec![WorkerStatus {
                packets,
                vectors: packets / 10,
                busy_ns: uptime_ns / 4,
                caches: Some(CacheCounts {
                    microflow_lookups: packets,
                    microflow_hits: packets / 2,
                    by_tables: packets / 2,
                    ..CacheCounts::default()
                }),
                ..WorkerStatus::default()
            }],
            ..SwitchStatus::default()
        }
    }

    #[test]
    fn rates_are_differences_a_second() {
        let report = TopReport::between(&state(0, 1_000, 4), &state(2_000_000_000, 3_000, 5));
        let port = &report.ports[0];
        assert_eq!((report.seconds, report.uptime_seconds), (2.0, 2.0));
        let received = (port.received_packets, port.received_bits);
        assert_eq!(received, (1_000.0, 480_000.0));
        assert_eq!((port.sent_packets, port.dropped_packets), (0.0, 0.5));
        let worker = &report.workers[0];
        assert_eq!((worker.busy, worker.packets), (0.25, 1_000.0));
        assert_eq!(worker.packets_per_vector, Some(10.0));
        assert_eq!(worker.microflow_hits, Some(0.5));
        assert_eq!((worker.megaflow_hits, worker.by_tables), (None, 500.0));
        let drop = &report.drops[0];
        assert_eq!((drop.dropped_packets, drop.total_packets), (0.5, 5));
        assert_eq!((drop.port.as_deref(), drop.worker), (Some("p1"), None));
    }

    #[test]
    fn replaced_ports_count_from_zero() {
        let old = state(1_000_000_000, 5_000, 9);
        let mut new = state(2_000_000_000, 100, 0);
        let rates = |new: &SwitchStatus| TopReport::between(&old, new).ports[0].received_packets;
        assert_eq!(rates(&new), 100.0);
        new.ports[0].name = "p2".to_owned();
        assert_eq!(rates(&new), 100.0);
        // Two states of the same time have no rate.
        new.uptime_ns = old.uptime_ns;
        assert_eq!(rates(&new), 0.0);
    }
}
