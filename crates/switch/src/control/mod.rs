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
mod message;
mod status;

use std::path::{Path, PathBuf};

pub use client::{ControlClient, ControlError, find_switch, running_switches};
pub use message::{BadRequest, CaptureLimits, MAX_REPLY_BYTES, MAX_REQUEST_BYTES, Reply, Request};
pub use status::{
    CacheCounts, ConnectionState, ControllerStatus, DropCount, Link, PortStatus, ReloadStatus,
    Role, SwitchStatus, TableStatus, WorkerStatus, port_drops,
};

/// Returns the path of the control socket of the switch `name`.
#[must_use]
pub fn socket_path(run_dir: &Path, name: &str) -> PathBuf {
    run_dir.join(format!("{name}.ctl"))
}
