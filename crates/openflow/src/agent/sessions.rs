//! The agent: it has the sessions, and carries out their messages in order.

use std::collections::BTreeMap;
use std::time::Duration;

use super::session::{Session, SessionCounts, Waiting};
use super::shared::{Job, SessionId, Shared, Surroundings, SwitchIdentity};
use super::turn::Turn;
use crate::connection::Received;
use crate::fault::Fault;
use crate::message::{Header, Message};
use crate::multipart::Nothing;
use crate::switch::Role;

/// The agent of a switch.
pub struct Agent {
    pub(super) shared: Shared,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    next_session: u64,
    /// Sessions that a fault has ended, with the reason.
    ended: Vec<(SessionId, Fault)>,
}

impl Agent {
    /// Returns an agent without sessions.
    #[must_use]
    pub fn new(identity: SwitchIdentity) -> Agent {
        Agent {
            shared: Shared::new(identity),
            sessions: BTreeMap::new(),
            next_session: 0,
            ended: Vec::new(),
        }
    }

    /// Returns the identity of the switch.
    #[must_use]
    pub fn identity(&self) -> &SwitchIdentity {
        &self.shared.identity
    }

    /// Begins a session. Its unsent bytes begin with a hello.
    pub fn connect(&mut self, now: Duration) -> SessionId {
        let id = SessionId(self.next_session);
        self.next_session += 1;
        self.sessions.insert(id, Session::new(now));
        id
    }

    /// Ends a session, after its connection has ended.
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

impl Turn<'_, '_> {
    /// Carries out messages until one must wait. Returns the fault that ended the connection.
    fn proceed(&mut self) -> Option<Fault> {
        loop {
            self.session.resume_monitors(self.around.pipeline.flows());
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
                Waiting::Monitors(xid) if !self.session.is_full() => {
                    let is_more = self.send_monitored(xid);
                    self.session.waiting = is_more.then_some(Waiting::Monitors(xid));
                }
                still => {
                    self.session.waiting = Some(still);
                    return;
                }
            }
        }
    }
}
