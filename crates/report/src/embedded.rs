//! The embedded example, for commands without files: an office's traffic and its
//! firewall.

/// The rules.
pub(crate) const RULES: &str = include_str!("../embedded/office.rules");

/// The packets, as pcap.
pub(crate) const CAPTURE: &[u8] = include_bytes!("../embedded/office.pcap");

/// The pipeline of a switch at the office's edge.
pub(crate) const PIPELINE: &str = include_str!("../embedded/office.flows");

/// The pipeline's name in messages.
pub(crate) const PIPELINE_NAME: &str = "office.flows";

/// The rules' name in messages.
pub(crate) const RULES_NAME: &str = "office.rules";

/// The packets' name in messages.
pub const CAPTURE_NAME: &str = "office.pcap";

/// A header that several rules match: an employee opens a page of the web server.
pub const HEADER: &str = "src=10.20.1.11 dst=10.20.2.10 sport=40123 dport=443 proto=tcp";
