//! The control socket of a running switch: its messages, and a client.
//!
//! A switch listens on the Unix socket `RUN_DIR/NAME.ctl`. A client sends a [`Request`], one
//! JSON object on one line, and receives a [`Reply`], one JSON object on one line. It may
//! then send the next request.
//!
//! ```text
//! ▶ {"request":"del-port","name":"veth1"}
//! ◀ {"reply":"ok","data":null}
//! ▶ {"request":"del-port","name":"veth1"}
//! ◀ {"reply":"error","message":"the switch lacks a port `veth1`"}
//! ```

mod client;
mod megaflows;
mod message;
mod status;
mod trace;

use std::path::{Path, PathBuf};

pub use client::{ControlClient, ControlError, find_switch, running_switches};
pub use megaflows::{MAX_LISTED_MEGAFLOWS, MegaflowList, MegaflowStatus, WorkerMegaflows};
pub use message::{BadRequest, CaptureLimits, MAX_REPLY_BYTES, MAX_REQUEST_BYTES, Reply, Request};
pub use status::{
    CacheCounts, ConnectionState, ControllerStatus, DropCount, Link, PortStatus, ReloadStatus,
    Role, SwitchStatus, TableStatus, WorkerStatus, port_drops,
};
pub use trace::{
    ItemOrigin, LiveTrace, MAX_NEAR_FLOWS, NearFlow, RefusedField, TraceChange, TraceField,
    TraceFlow, TraceGroup, TraceMegaflow, TraceMeter, TracePacket, TracePort, TraceSent,
    TraceSource, TraceStep, TraceTable, TracedItem, frame_bytes,
};

/// Returns the path of the control socket of the switch `name`.
#[must_use]
pub fn socket_path(run_dir: &Path, name: &str) -> PathBuf {
    run_dir.join(format!("{name}.ctl"))
}
