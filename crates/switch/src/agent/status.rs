//! The state of the switch, for people.

use classyard_datapath::flow::{FlowMod, TableConfig, TableId, TableMod};
use classyard_datapath::pipeline::{CacheStatus, Message};
use classyard_openflow::switch::Role as OpenFlowRole;
use tokio::sync::oneshot;

use super::connection::Shared;
use super::ports::OpenPort;
use super::state::{SessionState, State};
use crate::config::datapath_id_text;
use crate::control::{
    CacheCounts, ConnectionState, ControllerStatus, DropCount, Link, PortStatus, Role,
    SwitchStatus, TableStatus, WorkerStatus, port_drops,
};
use crate::worker::{Command, WorkerCounts, WorkerHandle};

/// Returns the state of the switch.
pub(super) async fn status(state: &Shared) -> SwitchStatus {
    let caches = caches(state).await;
    state.borrow().status(&caches)
}

/// Waits until the workers have carried out all earlier commands. Returns the states of their
/// caches.
pub(super) async fn caches(state: &Shared) -> Vec<Option<CacheStatus>> {
    let mut answers = Vec::new();
    state.borrow_mut().command_all(|| {
        let (asker, answer) = oneshot::channel();
        answers.push(answer);
        Command::Status(asker)
    });
    let mut caches = Vec::new();
    for answer in answers {
        caches.push(answer.await.unwrap_or_default());
    }
    caches
}

impl State {
    fn status(&self, caches: &[Option<CacheStatus>]) -> SwitchStatus {
        let now = self.clock.now();
        let identity = self.agent.identity();
        let workers = self.workers.iter().zip(caches).enumerate();
        let ports = self.ports.values();
        let tables = (0..=u8::MAX).map(TableId).filter(|table| table.is_table());
        let tables = tables.map(|table| self.table_status(table));
        SwitchStatus {
            name: identity.name.clone(),
            datapath_id: datapath_id_text(identity.datapath_id),
            uptime_seconds: now.as_secs(),
            uptime_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
            version: identity.software.clone(),
            workers: workers
                .map(|(number, (worker, caches))| worker_status(number, worker, caches.as_ref()))
                .collect(),
            ports: ports.map(port_status).collect(),
            tables: tables
                .filter(|table| table.entries > 0 || table.lookups > 0)
                .collect(),
            controllers: self.controllers(),
            listeners: self
                .endpoints
                .listeners()
                .map(ToString::to_string)
                .collect(),
        }
    }

    fn table_status(&self, table: TableId) -> TableStatus {
        let count = self.pipeline.table_count(table);
        TableStatus {
            table: table.0,
            entries: self.pipeline.flows().table_len(table),
            lookups: count.lookups,
            matches: count.matched,
        }
    }

    /// Returns the controllers of the configuration, then the other connections.
    fn controllers(&self) -> Vec<ControllerStatus> {
        let mut all: Vec<ControllerStatus> = Vec::new();
        for (address, state) in self.endpoints.controllers() {
            let mut sessions = self.sessions.iter();
            let session = sessions.find(|(_, session)| session.peer.controller() == Some(address));
            all.push(match session {
                Some((&id, session)) => self.session_status(id, session),
                None => ControllerStatus {
                    address: address.to_string(),
                    state,
                    role: None,
                    received_messages: 0,
                    sent_messages: 0,
                    dropped_packet_ins: 0,
                },
            });
        }
        let incoming = self
            .sessions
            .iter()
            .filter(|(_, session)| session.peer.controller().is_none());
        all.extend(incoming.map(|(&id, session)| self.session_status(id, session)));
        all
    }

    fn session_status(
        &self,
        id: classyard_openflow::agent::SessionId,
        session: &SessionState,
    ) -> ControllerStatus {
        let counts = self.agent.counts(id).unwrap_or_default();
        let role = self.agent.role(id).map(|role| match role {
            OpenFlowRole::Primary => Role::Master,
            OpenFlowRole::Secondary => Role::Slave,
            _ => Role::Equal,
        });
        ControllerStatus {
            address: session.peer.address().to_owned(),
            state: ConnectionState::Connected,
            role,
            received_messages: counts.received,
            sent_messages: counts.sent,
            dropped_packet_ins: counts.dropped_packet_ins,
        }
    }

    /// Returns the ports, tables, groups, meters and flows as text in the syntax of `ovs-ofctl`.
    pub(super) fn dump(&self) -> String {
        let mut text = String::new();
        let mut line = |line: &dyn std::fmt::Display| {
            text.push_str(&line.to_string());
            text.push('\n');
        };
        for (port, state) in self.pipeline.ports().iter() {
            line(&Message::Port(port, Some(state)));
        }
        for table in (0..=u8::MAX).map(TableId).filter(|table| table.is_table()) {
            let config = self.pipeline.flows().config(table);
            if config != TableConfig::default() {
                line(&TableMod { table, config });
            }
        }
        for meter in self.pipeline.meters().iter() {
            line(meter);
        }
        for group in self.pipeline.groups().iter() {
            line(group);
        }
        for entry in self.pipeline.flows().iter() {
            line(&FlowMod::from(entry));
        }
        text
    }
}

fn worker_status(
    number: usize,
    worker: &WorkerHandle,
    caches: Option<&CacheStatus>,
) -> WorkerStatus {
    let counts = worker.counts();
    WorkerStatus {
        worker: number,
        cpu: worker.cpu(),
        packets: counts.packets,
        vectors: counts.vectors,
        sleeps: counts.sleeps,
        busy_ns: counts.busy_ns,
        jobs: counts.jobs,
        drops: worker_drops(&counts),
        caches: caches.map(CacheCounts::from),
    }
}

/// Returns the packets that a worker dropped, by reason. Reasons without packets are left out.
fn worker_drops(counts: &WorkerCounts) -> Vec<DropCount> {
    let reasons = [
        ("no_port", counts.no_port),
        ("controller_full", counts.controller_full),
        ("capture_full", counts.capture_full),
        ("refused_job", counts.refused_jobs),
    ];
    let reasons = reasons.into_iter().filter(|(_, packets)| *packets > 0);
    let drops = reasons.map(|(reason, packets)| DropCount {
        reason: reason.to_owned(),
        packets,
    });
    drops.collect()
}

fn port_status(port: &OpenPort) -> PortStatus {
    let counts = port.counts();
    let link = match (&port.device, port.link.is_up) {
        (None, _) => Link::Gone,
        (Some(_), true) => Link::Up,
        (Some(_), false) => Link::Down,
    };
    PortStatus {
        number: port.settings.number,
        name: port.settings.name.clone(),
        device: port.settings.device.to_string(),
        link,
        received_packets: counts.received_packets,
        received_bytes: counts.received_bytes,
        sent_packets: counts.sent_packets,
        sent_bytes: counts.sent_bytes,
        drops: port_drops(&counts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{MAX_PACKET_INS, MAX_REPORTS};

    #[test]
    fn reasons_of_workers_are_documented() {
        assert_eq!(worker_drops(&WorkerCounts::default()), []);
        // All fields, so that a new count needs a line here.
        let counts = WorkerCounts {
            vectors: 10,
            packets: 20,
            sleeps: 30,
            busy_ns: 35,
            jobs: 40,
            refused_jobs: 1,
            no_port: 2,
            controller_full: 3,
            capture_full: 4,
        };
        let drops = worker_drops(&counts);
        let drops: Vec<(&str, u64)> = drops.iter().map(|it| (&*it.reason, it.packets)).collect();
        let expected = [
            ("no_port", 2),
            ("controller_full", 3),
            ("capture_full", 4),
            ("refused_job", 1),
        ];
        assert_eq!(drops, expected);
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/switch.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (reason, _) in drops {
            assert!(page.contains(&format!("\n| `{reason}` | ")), "{reason}");
        }
        assert!(page.contains(&format!("while {MAX_PACKET_INS} packets of the same port")));
        let reports = format!("{},{:03}", MAX_REPORTS / 1000, MAX_REPORTS % 1000);
        assert!(page.contains(&format!("or {reports} reports in all")));
    }
}
