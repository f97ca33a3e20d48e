//! Packets for controllers: fair between ports, at a limited rate.
//!
//! Workers hold back the packets of a port that has too many of them here. So the queues are
//! bounded, and a port that sends many packets to controllers does not displace others.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use classyard_datapath::Field;

use crate::worker::PacketInReport;

/// The packets that wait, by port.
pub(super) struct PacketIns {
    queues: BTreeMap<u128, VecDeque<PacketInReport>>,
    /// The port that was served last.
    last: Option<u128>,
    per_second: f64,
    burst: f64,
    /// Packets that may be sent now.
    tokens: f64,
    filled: Duration,
}

impl PacketIns {
    /// Returns an empty queue with a rate in packets a second. After a pause, `burst` packets may
    /// follow each other directly.
    pub(super) fn new(per_second: u32, burst: u32) -> PacketIns {
        PacketIns {
            queues: BTreeMap::new(),
            last: None,
            per_second: f64::from(per_second),
            burst: f64::from(burst),
            tokens: f64::from(burst),
            filled: Duration::ZERO,
        }
    }

    pub(super) fn push(&mut self, report: PacketInReport) {
        let port = report.packet.key().get(Field::InPort);
        self.queues.entry(port).or_default().push_back(report);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the next packet, of each port in turn, or `None` if there is none or the rate is
    /// reached.
    pub(super) fn next(&mut self, now: Duration) -> Option<PacketInReport> {
        let time = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + time * self.per_second).min(self.burst);
        if self.tokens < 1.0 {
            return None;
        }
        let after = self.last.map_or(0, |last| last + 1);
        let mut later = self.queues.range(after..);
        let port = *later.next().or_else(|| self.queues.first_key_value())?.0;
        let queue = self.queues.get_mut(&port)?;
        let report = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&port);
        }
        self.last = Some(port);
        self.tokens -= 1.0;
        report
    }
}
