//! The state of the switch, and what each event does.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use classyard_datapath::PortNo;
use classyard_datapath::pipeline::{Pipeline, Plan};
use classyard_openflow::agent::{
    Agent, PacketForController, SessionId, Surroundings, SwitchIdentity,
};
use classyard_ports::Device;
use tokio::sync::{Notify, mpsc};

use super::endpoints::Endpoints;
use super::packet_ins::PacketIns;
use super::ports::{OpenPort, Opened, Queues, device_of, port_counts};
use crate::clock::Clock;
use crate::config::{Address, ControllerSettings, PortSettings, SwitchSettings};
use crate::tls::Tls;
use crate::worker::{CapturedFrame, Command, Report, WorkerHandle};

/// Connections of controllers and tools at a time.
pub(crate) const MAX_SESSIONS: usize = 64;

/// Ports of a switch.
const MAX_PORTS: usize = 1024;

/// Packets of controllers that may wait for a worker. With more of them, no session is read.
const MAX_WAITING_JOBS: usize = 256;

/// Pieces of maintenance of the engines in a turn.
const MAINTENANCE_STEPS: usize = 256;

/// The state of the switch.
pub(crate) struct State {
    pub(super) agent: Agent,
    pub(super) pipeline: Pipeline,
    pub(super) workers: Vec<WorkerHandle>,
    pub(super) ports: BTreeMap<PortNo, OpenPort>,
    pub(super) sessions: BTreeMap<SessionId, SessionState>,
    pub(super) endpoints: Endpoints,
    /// The address on which the switch listens whatever its settings are.
    pub(super) management: Option<Address>,
    /// Keys and certificates for new connections over TLS.
    pub(super) tls: Option<Rc<Tls>>,
    packet_ins: PacketIns,
    /// The reader of captured frames.
    pub(super) capture: Option<mpsc::Sender<CapturedFrame>>,
    /// The settings that the switch was started with. Its ports and endpoints may have changed.
    started: SwitchSettings,
    pub(super) clock: Clock,
}

/// The other end of a connection.
pub(super) struct Peer {
    /// The address, for people.
    address: String,
    /// The controller, if the switch made the connection.
    controller: Option<Address>,
    /// The time without any message after which the switch asks, and after which it gives up.
    probe: Option<Duration>,
}

impl Peer {
    /// Returns the other end of a connection that it made.
    pub(super) fn incoming(address: String) -> Peer {
        Peer {
            address,
            controller: None,
            probe: None,
        }
    }

    /// Returns a controller that the switch connected to.
    pub(super) fn outgoing(settings: &ControllerSettings) -> Peer {
        Peer {
            address: settings.address.to_string(),
            controller: Some(settings.address.clone()),
            probe: Some(settings.probe_interval),
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The controller, if the switch made the connection.
    pub(super) fn controller(&self) -> Option<&Address> {
        self.controller.as_ref()
    }
}

/// A session, for the task of its connection.
pub(super) struct SessionState {
    pub(super) peer: Peer,
    /// Wakes the task.
    wake: Rc<Notify>,
    /// The reason why the session ends after its last bytes are sent.
    ending: Option<String>,
}

impl State {
    pub(crate) fn new(
        identity: SwitchIdentity,
        pipeline: Pipeline,
        workers: Vec<WorkerHandle>,
        settings: SwitchSettings,
        clock: Clock,
    ) -> State {
        let rate = settings.max_packet_ins_per_second;
        let packet_ins = PacketIns::new(rate, settings.max_packet_in_burst);
        State {
            agent: Agent::new(identity),
            pipeline,
            workers,
            ports: BTreeMap::new(),
            sessions: BTreeMap::new(),
            endpoints: Endpoints::default(),
            management: None,
            tls: None,
            packet_ins,
            capture: None,
            started: settings,
            clock,
        }
    }

    /// Returns the settings with the present ports, controllers and listeners.
    pub(super) fn settings(&self) -> SwitchSettings {
        let ports = self.ports.values();
        SwitchSettings {
            ports: ports.map(|open| open.settings.clone()).collect(),
            controllers: self.endpoints.settings().cloned().collect(),
            listeners: self.endpoints.listeners().cloned().collect(),
            ..self.started.clone()
        }
    }

    /// Returns the number of the switch.
    pub(super) fn datapath_id(&self) -> u64 {
        self.agent.identity().datapath_id
    }

    /// Calls the agent, then gives jobs to workers and wakes the connections with something to
    /// send.
    fn with<T>(&mut self, act: impl FnOnce(&mut Agent, &mut Surroundings<'_>) -> T) -> T {
        let result = self.call(act);
        self.finish_turn();
        result
    }

    fn call<T>(&mut self, act: impl FnOnce(&mut Agent, &mut Surroundings<'_>) -> T) -> T {
        let ports = &self.ports;
        let mut around = Surroundings {
            pipeline: &mut self.pipeline,
            port_counts: &|port| port_counts(ports, port),
            now: self.clock.now(),
        };
        act(&mut self.agent, &mut around)
    }

    fn finish_turn(&mut self) {
        // A change without barrier becomes visible as well.
        self.pipeline.publish();
        for job in self.agent.take_jobs() {
            let worker = job.in_port.0 as usize % self.workers.len();
            self.workers[worker].end.command(Command::Execute(job));
        }
        for worker in &mut self.workers {
            worker.hand_over();
        }
        for (id, fault) in self.agent.take_ended() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.ending = Some(fault.to_string());
            }
        }
        for (&id, session) in &self.sessions {
            if session.ending.is_some() || !self.agent.unsent(id).is_empty() {
                session.wake.notify_one();
            }
        }
    }
}

/// The sessions.
impl State {
    /// Begins a session. Returns its number, and what wakes its task; `None` if there are too
    /// many.
    pub(super) fn connect(&mut self, peer: Peer) -> Option<(SessionId, Rc<Notify>)> {
        if self.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let wake = Rc::new(Notify::new());
        let id = self.agent.connect(self.clock.now());
        let session = SessionState {
            peer,
            wake: Rc::clone(&wake),
            ending: None,
        };
        self.sessions.insert(id, session);
        Some((id, wake))
    }

    pub(super) fn disconnect(&mut self, id: SessionId) {
        self.agent.disconnect(id);
        self.sessions.remove(&id);
    }

    /// True if bytes of a session may be read.
    pub(super) fn reads(&self, id: SessionId) -> bool {
        let waiting: usize = self.workers.iter().map(|worker| worker.end.waiting()).sum();
        waiting < MAX_WAITING_JOBS && self.agent.reads(id)
    }

    /// Takes bytes of a controller.
    pub(super) fn receive(&mut self, id: SessionId, bytes: &[u8]) {
        self.with(|agent, around| agent.receive(id, bytes, around));
    }

    /// Moves up to `limit` unsent bytes to `buffer`, and goes on with the session.
    pub(super) fn take_unsent(&mut self, id: SessionId, buffer: &mut Vec<u8>, limit: usize) {
        let unsent = self.agent.unsent(id);
        let count = unsent.len().min(limit);
        buffer.extend_from_slice(&unsent[..count]);
        if count > 0 {
            self.agent.sent(id, count);
            self.with(|agent, around| agent.proceed(id, around));
        }
    }

    /// Returns the reason why a session ends, once its last bytes were taken.
    pub(super) fn end(&self, id: SessionId) -> Option<String> {
        let ending = self.sessions.get(&id)?.ending.as_ref()?;
        self.agent.unsent(id).is_empty().then(|| ending.clone())
    }
}

/// Events of workers and timers.
impl State {
    /// Takes the reports of all workers. Returns true if packets wait for the rate of controllers.
    pub(super) fn take_reports(&mut self) -> bool {
        let mut done = Vec::new();
        let mut failed = Vec::new();
        let mut captured = Vec::new();
        for (number, worker) in self.workers.iter_mut().enumerate() {
            while let Some(report) = worker.end.report() {
                match report {
                    Report::PacketIn(report) => self.packet_ins.push(report),
                    Report::JobDone(number) => done.push(number),
                    Report::PortFailed(port, error) => failed.push((port, error.to_string())),
                    Report::Captured(frame) => captured.push((number, frame)),
                }
            }
        }
        for (worker, frame) in captured {
            self.captured(worker, frame);
        }
        for number in done {
            if let Some(session) = self.agent.job_done(number) {
                self.call(|agent, around| agent.proceed(session, around));
            }
        }
        for (port, error) in failed {
            self.fail_port(port, error);
        }
        let now = self.clock.now();
        while let Some(report) = self.packet_ins.next(now) {
            self.agent.packet_in(&PacketForController {
                reason: report.reason,
                max_len: report.max_len,
                table: report.table,
                cookie: report.cookie,
                packet: &report.packet,
            });
        }
        self.finish_turn();
        !self.packet_ins.is_empty()
    }

    /// Does what is due without an event.
    pub(super) fn tick(&mut self) {
        let probes: HashMap<SessionId, Duration> = self
            .sessions
            .iter()
            .filter_map(|(&id, session)| Some((id, session.peer.probe?)))
            .collect();
        let silent = self.with(|agent, around| agent.tick(around, &|id| probes.get(&id).copied()));
        for id in silent {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.ending = Some("no answer to an echo request".to_owned());
                session.wake.notify_one();
            }
        }
    }

    /// Does a part of the pending work of engines. Returns true if work is left.
    pub(super) fn maintain(&mut self) -> bool {
        self.pipeline.maintain(MAINTENANCE_STEPS)
    }

    pub(super) fn install(&mut self, plan: Plan) {
        self.pipeline.install(plan);
    }

    /// Gives a command to each worker.
    pub(super) fn command_all(&mut self, mut command: impl FnMut() -> Command) {
        for worker in &mut self.workers {
            worker.end.command(command());
            worker.hand_over();
        }
    }

    /// Returns the number of a worker that has ended without being asked to.
    pub(super) fn ended_worker(&self) -> Option<usize> {
        self.workers
            .iter()
            .position(|worker| worker.end.is_abandoned())
    }

    /// Ends all workers.
    pub(super) fn stop(&mut self) {
        for worker in &mut self.workers {
            worker.stop();
        }
    }
}

/// Ports.
impl State {
    /// Returns the number of the port with a name.
    pub(super) fn port_named(&self, name: &str) -> Result<PortNo, String> {
        let mut ports = self.ports.iter();
        let port = ports.find(|(_, open)| open.settings.name == name);
        port.map(|(&port, _)| port).ok_or_else(|| {
            let open = self.ports.values();
            let names: Vec<&str> = open.map(|open| &*open.settings.name).collect();
            match names.join(", ") {
                names if names.is_empty() => {
                    format!("there is no port `{name}`; the switch has no ports")
                }
                names => format!("there is no port `{name}`; the ports are {names}"),
            }
        })
    }

    /// Checks that a new port has a number, a name and an interface of its own.
    pub(super) fn check_new_port(&self, port: &PortSettings) -> Result<(), String> {
        for open in self.ports.values().map(|open| &open.settings) {
            let shared = match () {
                () if open.number == port.number => format!("the number {}", port.number),
                () if open.name == port.name => format!("the name `{}`", port.name),
                () if open.device.interface().is_some()
                    && open.device.interface() == port.device.interface() =>
                {
                    format!(
                        "the interface `{}`",
                        port.device.interface().unwrap_or_default()
                    )
                }
                () => continue,
            };
            let name = &open.name;
            return Err(format!("port `{name}` has {shared} already"));
        }
        if self.ports.len() >= MAX_PORTS {
            return Err(format!(
                "the switch has {MAX_PORTS} ports, and more are not allowed"
            ));
        }
        Ok(())
    }

    /// Adds ports that are open, each with one queue for each worker.
    pub(super) fn add_ports(&mut self, ports: Vec<Opened>) -> Result<(), String> {
        let mut all = Vec::with_capacity(ports.len());
        for (settings, device, queues) in ports {
            all.push((self.add_device(settings, device)?, queues));
        }
        self.give_queues(all);
        Ok(())
    }

    /// Adds a port without its queues.
    pub(super) fn add_device(
        &mut self,
        settings: PortSettings,
        device: Device,
    ) -> Result<PortNo, String> {
        let port = PortNo(settings.number);
        let open = OpenPort::new(settings, device, self.clock.now());
        let description = open.description(None);
        let name = open.settings.name.clone();
        self.ports.insert(port, open);
        let set = self.with(|agent, around| agent.set_port(port, Some(description), around));
        if let Err(fault) = set {
            self.ports.remove(&port);
            return Err(format!("port {name}: {fault}"));
        }
        Ok(port)
    }

    /// Gives the queues of ports to the workers: the first queue to the first worker, and so on.
    pub(super) fn give_queues(&mut self, ports: Vec<(PortNo, Queues)>) {
        let mut of_workers: Vec<Vec<_>> = self.workers.iter().map(|_| Vec::new()).collect();
        for (port, queues) in ports {
            for (of_worker, queue) in of_workers.iter_mut().zip(queues) {
                of_worker.push((port, queue));
            }
        }
        let mut of_workers = of_workers.into_iter();
        self.command_all(|| Command::Add(of_workers.next().expect("one for each worker")));
    }

    /// Removes a port.
    pub(super) fn remove_port(&mut self, port: PortNo) {
        self.ports.remove(&port);
        self.command_all(|| Command::Remove(port));
        if let Err(fault) = self.with(|agent, around| agent.set_port(port, None, around)) {
            tracing::error!("port {port}: {fault}");
        }
    }

    /// Closes a port whose device gave an error, until its interface is there again.
    fn fail_port(&mut self, port: PortNo, error: String) {
        let Some(open) = self.ports.get_mut(&port) else {
            return;
        };
        if open.error.is_some() {
            return;
        }
        tracing::warn!(port = open.settings.name, "the port is closed: {error}");
        open.close(error);
        self.command_all(|| Command::Remove(port));
        self.announce(port);
    }

    /// Passes the present link of a port to the pipeline and the controllers.
    fn announce(&mut self, port: PortNo) {
        let old = self.pipeline.ports().get(port);
        let Some(open) = self.ports.get(&port) else {
            return;
        };
        let (state, details) = open.description(old);
        let new = Some((state, details));
        if let Err(fault) = self.call(|agent, around| agent.set_port(port, new, around)) {
            tracing::error!("port {port}: {fault}");
        }
    }

    /// Reads the links of all ports, and opens closed ports whose interface is there again.
    pub(super) fn read_links(&mut self) {
        let closed: Vec<PortNo> = self.closed_ports().collect();
        for port in closed {
            self.try_to_reopen(port);
        }
        let ports = self.ports.iter_mut();
        let changed: Vec<PortNo> = ports
            .filter_map(|(&port, open)| open.read_link().then_some(port))
            .collect();
        for port in changed {
            let open = &self.ports[&port];
            let name = &open.settings.name;
            tracing::info!(port = name, is_up = open.link.is_up, "the link changed");
            self.announce(port);
        }
        self.finish_turn();
    }

    fn closed_ports(&self) -> impl Iterator<Item = PortNo> {
        let closed = self.ports.iter().filter(|(_, open)| open.device.is_none());
        closed.map(|(&port, _)| port)
    }

    fn try_to_reopen(&mut self, port: PortNo) {
        let workers = self.workers.len();
        let Some(open) = self.ports.get_mut(&port) else {
            return;
        };
        let Some(settings) = device_of(&open.settings.device) else {
            return;
        };
        match Device::open(&settings, workers) {
            Ok((device, queues)) => {
                tracing::info!(port = open.settings.name, "the port is open again");
                open.reopen(device);
                self.give_queues(vec![(port, queues)]);
                self.announce(port);
            }
            Err(error) => open.error = Some(error.to_string()),
        }
    }
}
