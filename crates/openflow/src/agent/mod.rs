//! The agent of a switch: it carries out the messages of all controllers, and tells them what
//! happened.
//!
//! ```text
//! bytes of a controller ─▶ Connection ─▶ Session ─▶ Pipeline: changes, statistics
//!                                          │  └───▶ Job: a packet for a worker
//! bytes for the controller ◀── unsent ◀────┘
//! worker: packet-in ─▶ all sessions that want it
//! pipeline: removed entries, ports ─▶ all sessions that want them
//! ```
//! The agent opens no socket and reads no clock. Its caller passes bytes, the time and the
//! pipeline to it, sends the unsent bytes, and gives the jobs to workers.
//!
//! # Barriers
//! Flow, group and meter messages are submitted to the pipeline. A barrier publishes them, so
//! that every packet that a worker begins after it meets them, and waits for the jobs of the
//! messages before it. Only then the session answers and reads its next message.
//!
//! # Bounds
//! | memory of a session | limit | beyond it |
//! |---|---|---|
//! | unsent bytes | [`MAX_UNSENT_BYTES`], and one answer | packet-in and other messages without request are dropped and counted; no request is read |
//! | statistics of entries | one part of a reply | the next part is made when the unsent bytes are below the limit |
//! | bundles | [`MAX_BUNDLES`], [`MAX_BUNDLE_BYTES`] | `BFC_OUT_OF_BUNDLES`, `BFC_MSG_TOO_MANY` |

mod bundles;
mod changes;
mod events;
mod requests;
mod session;
mod stats;

use std::collections::BTreeMap;
use std::time::Duration;

use classyard_datapath::pipeline::Pipeline;
use classyard_datapath::{Action, GroupId, MeterId, PortNo};

pub use bundles::{MAX_BUNDLE_BYTES, MAX_BUNDLES};
pub use events::{PacketForController, PortChange};
pub use session::{MAX_UNSENT_BYTES, SessionCounts};

use crate::connection::Received;
use crate::fault::Fault;
use crate::message::{Header, Message};
use crate::multipart::Nothing;
use crate::switch::{Role, SwitchConfig};
use session::{Session, Waiting};

/// The number of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(u64);

/// What the agent says about the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchIdentity {
    /// The number of the switch.
    pub datapath_id: u64,
    /// The manufacturer, up to 255 bytes.
    pub manufacturer: String,
    /// The hardware, up to 255 bytes.
    pub hardware: String,
    /// The software with its version, up to 255 bytes.
    pub software: String,
    /// The serial number, up to 31 bytes.
    pub serial_number: String,
    /// The name of the switch, up to 255 bytes.
    pub name: String,
}

/// The description of a port that the pipeline does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDetails {
    /// The hardware address.
    pub address: [u8; 6],
    /// True if the port is administratively down.
    pub is_down: bool,
    /// True if no packets of the port go to the controller.
    pub no_packet_in: bool,
    /// The time when the port was added.
    pub added: Duration,
}

/// Counts of a port; `None` for a counter that the port does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Packets and bytes received.
    pub received: Option<(u64, u64)>,
    /// Packets and bytes sent.
    pub sent: Option<(u64, u64)>,
    /// Packets dropped at reception, and before sending.
    pub dropped: Option<(u64, u64)>,
    /// Errors of reception and of sending.
    pub errors: Option<(u64, u64)>,
}

/// A packet of a controller, for a worker. The caller says when it is done
/// ([`Agent::job_done`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of the job.
    pub number: u64,
    /// The port that the packet counts as received from.
    pub in_port: PortNo,
    /// The actions.
    pub actions: Vec<Action>,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The switch around the agent during a call.
pub struct Surroundings<'a> {
    /// The pipeline.
    pub pipeline: &'a mut Pipeline,
    /// Returns the counts of a port.
    pub port_counts: &'a dyn Fn(PortNo) -> PortCounts,
    /// The time, since any fixed point.
    pub now: Duration,
}

/// Data of all sessions.
struct Shared {
    identity: SwitchIdentity,
    config: SwitchConfig,
    /// The generation of the latest election of a primary controller.
    generation: Option<u64>,
    ports: BTreeMap<PortNo, PortDetails>,
    groups_added: BTreeMap<GroupId, Duration>,
    meters_added: BTreeMap<MeterId, Duration>,
    jobs: Vec<Job>,
    next_job: u64,
    table_features: stats::TableFeaturesCache,
}

/// The agent of a switch.
pub struct Agent {
    shared: Shared,
    sessions: BTreeMap<SessionId, Session>,
    next_session: u64,
    /// Sessions that a fault has ended, with the reason.
    ended: Vec<(SessionId, Fault)>,
}

/// The bytes of a packet that the controller gets by default (`OFPCML_MAX` is more).
const FIRST_MISS_SEND_LEN: u16 = 128;

impl Agent {
    /// Returns an agent without sessions.
    #[must_use]
    pub fn new(identity: SwitchIdentity) -> Agent {
        let shared = Shared {
            identity,
            config: SwitchConfig {
                flags: 0,
                miss_send_len: FIRST_MISS_SEND_LEN,
            },
            generation: None,
            ports: BTreeMap::new(),
            groups_added: BTreeMap::new(),
            meters_added: BTreeMap::new(),
            jobs: Vec::new(),
            next_job: 0,
            table_features: stats::TableFeaturesCache::default(),
        };
        Agent {
            shared,
            sessions: BTreeMap::new(),
            next_session: 0,
            ended: Vec::new(),
        }
    }

    /// Begins a session. Its unsent bytes begin with a hello.
    pub fn connect(&mut self, now: Duration) -> SessionId {
        let id = SessionId(self.next_session);
        self.next_session += 1;
        self.sessions.insert(id, Session::new(now));
        id
    }

    /// Ends a session whose connection is gone.
    pub fn disconnect(&mut self, id: SessionId) {
        self.sessions.remove(&id);
    }

    /// Takes bytes of a controller, and carries out the messages that are complete. Bytes
    /// beyond a message that must wait are kept until [`proceed`](Self::proceed).
    pub fn receive(&mut self, id: SessionId, bytes: &[u8], around: &mut Surroundings<'_>) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.heard = around.now;
            session.probed = None;
            session.connection.receive(bytes);
            self.proceed(id, around);
        }
    }

    /// Returns true if a session takes more bytes. If not, the caller stops reading until
    /// bytes were sent or jobs were done.
    #[must_use]
    pub fn reads(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(Session::reads)
    }

    /// Returns the bytes to send to a controller.
    #[must_use]
    pub fn unsent(&self, id: SessionId) -> &[u8] {
        self.sessions.get(&id).map_or(&[], Session::unsent)
    }

    /// Notes that the first `count` unsent bytes were sent. Call
    /// [`proceed`](Self::proceed) afterwards.
    pub fn sent(&mut self, id: SessionId, count: usize) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.sent(count);
        }
    }

    /// Returns the counts of a session.
    #[must_use]
    pub fn counts(&self, id: SessionId) -> Option<SessionCounts> {
        self.sessions.get(&id).map(|session| session.counts)
    }

    /// Returns the role of a session's controller.
    #[must_use]
    pub fn role(&self, id: SessionId) -> Option<Role> {
        self.sessions.get(&id).map(|session| session.role)
    }

    /// Takes the sessions that a fault has ended. Send their unsent bytes, which include the
    /// error, then close their connections and call [`disconnect`](Self::disconnect).
    pub fn take_ended(&mut self) -> Vec<(SessionId, Fault)> {
        std::mem::take(&mut self.ended)
    }

    /// Takes the jobs for workers.
    pub fn take_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.shared.jobs)
    }

    /// Notes that a worker has carried out a job. Call [`proceed`](Self::proceed) for the
    /// returned session, whose barrier may be over.
    pub fn job_done(&mut self, number: u64) -> Option<SessionId> {
        let mut sessions = self.sessions.iter_mut();
        let (id, session) = sessions.find(|(_, session)| session.jobs.contains(&number))?;
        session.jobs.remove(&number);
        if let Some(Waiting::Barrier(jobs, _)) = &mut session.waiting {
            jobs.remove(&number);
        }
        Some(*id)
    }

    /// Goes on with a session: with what waits, and then with the messages that have arrived.
    pub fn proceed(&mut self, id: SessionId, around: &mut Surroundings<'_>) {
        let Some(mut session) = self.sessions.remove(&id) else {
            return;
        };
        let mut turn = Turn {
            session: &mut session,
            others: &mut self.sessions,
            shared: &mut self.shared,
            around,
        };
        let ended = turn.proceed();
        self.sessions.insert(id, session);
        self.ended.extend(ended.map(|fault| (id, fault)));
    }
}

/// The turn of one session.
struct Turn<'t, 'a> {
    session: &'t mut Session,
    others: &'t mut BTreeMap<SessionId, Session>,
    shared: &'t mut Shared,
    around: &'t mut Surroundings<'a>,
}

impl Turn<'_, '_> {
    /// Carries out messages until one must wait. Returns the fault that ended the connection.
    fn proceed(&mut self) -> Option<Fault> {
        loop {
            self.finish_waiting();
            if !self.session.reads() {
                return None;
            }
            match self.session.connection.next()? {
                Received::Message(header, message) => {
                    self.session.counts.received += 1;
                    if let Err(fault) = self.handle(header, message) {
                        self.refuse(header, &fault);
                    }
                }
                Received::Refused(header, fault) => {
                    self.session.counts.received += 1;
                    self.refuse(header, &fault);
                }
                Received::Fatal(header, fault) => {
                    self.refuse(header, &fault);
                    return Some(fault);
                }
            }
        }
    }

    /// Sends an error about the message that was received last.
    fn refuse(&mut self, header: Header, fault: &Fault) {
        let first = self.session.connection.first_bytes().to_vec();
        self.session.refuse(header.xid, fault, &first);
    }

    /// Ends a wait that is over, or makes the next part of an answer.
    fn finish_waiting(&mut self) {
        while let Some(waiting) = self.session.waiting.take() {
            match waiting {
                Waiting::Barrier(jobs, xid) if jobs.is_empty() => {
                    self.session.send(xid, &Message::BarrierReply(Nothing));
                }
                Waiting::Flows(dump) if !self.session.is_full() => {
                    self.session.waiting = self.send_flows(*dump).map(Waiting::Flows);
                }
                still => {
                    self.session.waiting = Some(still);
                    return;
                }
            }
        }
    }
}
