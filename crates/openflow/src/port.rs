//! Messages about ports and queues: descriptions, changes, statistics (OpenFlow 1.3.5 §7.2.1,
//! §7.3.4.4, §7.3.5.6, §7.3.5.7, §7.4.3).

use classyard_datapath::PortNo;

use crate::wire::layout;

/// Flags of a port's configuration (`ofp_port_config`).
pub mod config {
    /// The port is administratively down.
    pub const DOWN: u32 = 1 << 0;
    /// Packets from the port are dropped.
    pub const NO_RECEIVE: u32 = 1 << 2;
    /// Packets to the port are dropped.
    pub const NO_FORWARD: u32 = 1 << 5;
    /// Packets from the port are not sent to the controller.
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// Flags of a port's state (`ofp_port_state`).
pub mod state {
    /// The port has no link.
    pub const LINK_DOWN: u32 = 1 << 0;
    /// The port is live for fast failover groups.
    pub const LIVE: u32 = 1 << 2;
}

layout! {
    /// The description of a port (`ofp_port`).
    pub struct Port {
        /// The number.
        number: PortNo,
        /// The hardware address.
        [4] address: [u8; 6],
        /// The name, filled with zeros.
        [2] name: [u8; 16],
        /// Flags of the configuration ([`config`]).
        config: u32,
        /// Flags of the state ([`state`]).
        state: u32,
        /// The features in use (`ofp_port_features`).
        current: u32,
        /// The features that the port advertises.
        advertised: u32,
        /// The features that the port supports.
        supported: u32,
        /// The features that the other end advertises.
        peer: u32,
        /// The present rate, in kilobits per second.
        current_speed: u32,
        /// The largest rate, in kilobits per second.
        max_speed: u32,
    }
}

layout! {
    /// A change of a port, for the controller (`ofp_port_status`).
    pub struct PortStatus {
        /// 0 for an added port, 1 for a deleted one, 2 for a modified one.
        reason: u8,
        /// The port.
        [7] port: Port,
    }
}

layout! {
    /// A change of a port's configuration (`ofp_port_mod`).
    pub struct PortMod {
        /// The port.
        number: PortNo,
        /// Its hardware address.
        [4] address: [u8; 6],
        /// The new flags ([`config`]).
        [2] config: u32,
        /// The flags to change.
        mask: u32,
        /// The features to advertise; 0 for no change.
        advertise: u32,
    } [4]
}

layout! {
    /// A request about one port or all (`ofp_port_stats_request`).
    pub struct PortRequest {
        /// The port, or [`PortNo::ANY`].
        port: PortNo,
    } [4]
}

layout! {
    /// Statistics of a port (`ofp_port_stats`). A counter that the port has not is 2^64 − 1.
    pub struct PortStats {
        /// The port.
        port: PortNo,
        /// Packets received.
        [4] received_packets: u64,
        /// Packets sent.
        sent_packets: u64,
        /// Bytes received.
        received_bytes: u64,
        /// Bytes sent.
        sent_bytes: u64,
        /// Packets dropped at reception.
        receive_dropped: u64,
        /// Packets dropped before sending.
        send_dropped: u64,
        /// Errors of reception.
        receive_errors: u64,
        /// Errors of sending.
        send_errors: u64,
        /// Frames out of alignment.
        frame_errors: u64,
        /// Packets that overran the receiver.
        overrun_errors: u64,
        /// Checksum errors of frames.
        crc_errors: u64,
        /// Collisions.
        collisions: u64,
        /// The seconds of the port's life until now.
        seconds: u32,
        /// The nanoseconds beyond `seconds`.
        nanoseconds: u32,
    }
}

layout! {
    /// A request about queues (`ofp_queue_stats_request`).
    pub struct QueueRequest {
        /// The port, or [`PortNo::ANY`].
        port: PortNo,
        /// The queue, or 2^32 − 1 for all.
        queue: u32,
    }
}

layout! {
    /// Statistics of a queue (`ofp_queue_stats`).
    pub struct QueueStats {
        /// The port.
        port: PortNo,
        /// The queue.
        queue: u32,
        /// Bytes sent.
        bytes: u64,
        /// Packets sent.
        packets: u64,
        /// Packets dropped because the queue was full.
        errors: u64,
        /// The seconds of the queue's life until now.
        seconds: u32,
        /// The nanoseconds beyond `seconds`.
        nanoseconds: u32,
    }
}

layout! {
    /// A request for the queues of a port (`ofp_queue_get_config_request`).
    pub struct QueueConfigRequest {
        /// The port, or [`PortNo::ANY`].
        port: PortNo,
    } [4]
}

layout! {
    /// The queues of a port (`ofp_queue_get_config_reply`). Queues and their properties follow
    /// as bytes; this switch has none.
    pub struct QueueConfig {
        /// The port of the request.
        port: PortNo,
        /// The queues.
        [4] queues: Vec<u8>,
    }
}
