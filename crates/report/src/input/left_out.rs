//! Packets of a capture that a switch cannot process, by link type and reason.

use std::collections::BTreeMap;

use classyard_workload::capture::NoEthernetFrame;
use classyard_workload::packet::LinkType;

use crate::failure::Failure;
use crate::output::join;
use crate::output::style::counted;
use crate::reporter::Reporter;

/// Counts of skipped packets.
#[derive(Default)]
pub struct LeftOut {
    /// By link type number and reason: at most three reasons per number.
    counts: BTreeMap<(u16, NoEthernetFrame), usize>,
}

impl LeftOut {
    /// Counts a packet.
    pub fn add(&mut self, link: LinkType, reason: NoEthernetFrame) {
        *self.counts.entry((link.number(), reason)).or_default() += 1;
    }

    /// Returns the number of packets.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Warns of the packets, if there are any.
    pub fn warn(&self, reporter: Reporter) {
        if !self.counts.is_empty() {
            let packets = counted(self.total(), "packet");
            reporter.warn(&format!("{packets} left out: {self}"));
        }
    }

    /// Returns an error if all packets of a capture were skipped.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the link types and the counts.
    pub fn check(&self, source: &str, packets_taken: usize) -> Result<(), Failure> {
        if packets_taken > 0 || self.counts.is_empty() {
            return Ok(());
        }
        let message = format!("no packet of {source} can go through a pipeline: {self}");
        Err(Failure::usage(message).with_help(link_help()))
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = self.counts.iter();
        let parts = counts.map(|(&(number, reason), packets)| {
            format!("{packets} of {} ({reason})", LinkType::from_number(number))
        });
        f.write_str(&join(parts, ", "))
    }
}

/// Returns a help text with the supported link types.
pub fn link_help() -> String {
    let links = LinkType::PARSED.iter().map(ToString::to_string);
    format!(
        "supported link types: {}; `classyard formats capture` has more",
        join(links, ", ")
    )
}
