//! The session of one controller: its connection, role, masks, bundles and unsent bytes.

use std::collections::BTreeSet;
use std::time::Duration;

use classyard::RuleId;
use classyard_datapath::flow::TableId;

use super::bundles::Bundles;
use super::monitor::Monitors;
use crate::connection::Connection;
use crate::fault::Fault;
use crate::flow::FlowRequest;
use crate::message::Message;
use crate::switch::{AsyncConfig, ErrorMessage, Hello, Role, RoleMasks};

/// Unsent bytes of a session beyond which messages without request are dropped, and beyond
/// which no further request is read. A request that was read is always answered.
pub const MAX_UNSENT_BYTES: usize = 4 << 20;

/// Bytes at the front of the buffer that were sent and may stay before the rest moves.
const MAX_SENT_BYTES: usize = 1 << 16;

/// Messages that a controller gets at first: all with the role equal or primary, changes of
/// ports with the role secondary (OpenFlow 1.3.5 §7.3.10).
const FIRST_MASKS: AsyncConfig = AsyncConfig {
    packet_in: RoleMasks {
        primary: 0b111,
        secondary: 0,
    },
    port_status: RoleMasks {
        primary: 0b111,
        secondary: 0b111,
    },
    flow_removed: RoleMasks {
        primary: 0b1_1111,
        secondary: 0,
    },
};

/// Work that must end before a session reads its next message.
pub(super) enum Waiting {
    /// A barrier: the jobs that must be done, and the transaction number.
    Barrier(BTreeSet<u64>, u32),
    /// Statistics of entries, which are sent part by part.
    Flows(Box<FlowDump>),
    /// The entries that new monitors begin with, which are sent part by part: the transaction
    /// number.
    Monitors(u32),
}

/// Statistics of entries that are being sent.
pub(super) struct FlowDump {
    pub(super) xid: u32,
    pub(super) request: FlowRequest,
    /// The last entry that was looked at.
    pub(super) last: Option<(TableId, RuleId)>,
}

/// Counts of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Messages received.
    pub received: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages refused, each with an error.
    pub refused: u64,
    /// Packet-in messages that were dropped because too many bytes were unsent.
    pub dropped_packet_ins: u64,
    /// Other messages without request that were dropped for this reason.
    pub dropped_events: u64,
    /// Entries, groups and meters that were left out of answers, because they are longer than
    /// a message can be.
    pub too_long: u64,
    /// Times that the session's monitors have paused.
    pub monitor_pauses: u64,
}

/// The session of a controller.
pub(super) struct Session {
    pub(super) connection: Connection,
    output: Vec<u8>,
    /// The bytes at the front of `output` that were sent.
    sent: usize,
    pub(super) role: Role,
    pub(super) masks: AsyncConfig,
    pub(super) bundles: Bundles,
    pub(super) monitors: Monitors,
    pub(super) waiting: Option<Waiting>,
    /// Jobs of this session that are not done.
    pub(super) jobs: BTreeSet<u64>,
    pub(super) counts: SessionCounts,
    /// The time of the last message of the controller.
    pub(super) heard: Duration,
    /// The time of the echo request that is not answered.
    pub(super) probed: Option<Duration>,
}

impl Session {
    pub(super) fn new(now: Duration) -> Session {
        let mut session = Session {
            connection: Connection::new(),
            output: Vec::new(),
            sent: 0,
            role: Role::Equal,
            masks: FIRST_MASKS,
            bundles: Bundles::default(),
            monitors: Monitors::default(),
            waiting: None,
            jobs: BTreeSet::new(),
            counts: SessionCounts::default(),
            heard: now,
            probed: None,
        };
        session.send(0, &Message::Hello(Hello::only_1_3()));
        session
    }

    /// The bytes that are not sent.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Notes that the first `count` unsent bytes were sent.
    pub(super) fn sent(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.output.len());
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        } else if self.sent > MAX_SENT_BYTES {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.unsent().len() > MAX_UNSENT_BYTES
    }

    /// Returns true if the next message may be read.
    pub(super) fn reads(&self) -> bool {
        self.waiting.is_none() && !self.is_full() && !self.connection.is_closed()
    }

    pub(super) fn send(&mut self, xid: u32, message: &Message) {
        self.counts.sent += 1;
        message.write(xid, &mut self.output);
    }

    /// Appends a whole message in bytes.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        self.counts.sent += 1;
        self.output.extend_from_slice(bytes);
    }

    /// Sends an error about a message. `first` has the first bytes of the message.
    pub(super) fn refuse(&mut self, xid: u32, fault: &Fault, first: &[u8]) {
        self.counts.refused += 1;
        let mut data = Vec::with_capacity(4 + first.len());
        if let Some(experimenter) = fault.code.experimenter() {
            data.extend(experimenter.to_be_bytes());
        }
        data.extend_from_slice(first);
        let error = ErrorMessage {
            kind: fault.code.kind,
            code: fault.code.code,
            data,
        };
        self.send(xid, &Message::Error(error));
    }

    /// Returns true if the controller gets messages for a reason.
    pub(super) fn gets(&self, masks: impl Fn(&AsyncConfig) -> &RoleMasks, reason: u8) -> bool {
        let masks = masks(&self.masks);
        let mask = match self.role {
            Role::Secondary => masks.secondary,
            _ => masks.primary,
        };
        self.connection.is_open() && mask >> reason & 1 != 0
    }
}
