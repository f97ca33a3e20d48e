//! Reasons why a switch cannot start.

use std::fmt;
use std::io;

use classyard_ports::OpenError;
use classyard_text::Problems;

use crate::tls::TlsError;

/// A reason why a switch cannot start, or why it ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwitchError {
    /// The file of flows cannot be read.
    FlowsFile(String, io::Error),
    /// The file of flows has mistakes.
    Flows(Problems),
    /// The engine cannot be used for flow tables.
    Engine(String),
    /// A port cannot be opened.
    Port(String, OpenError),
    /// A port cannot be added.
    AddPort(String),
    /// A worker cannot start.
    Worker(usize, io::Error),
    /// The folder of sockets cannot be made.
    RunFolder(String, io::Error),
    /// TLS cannot be used.
    Tls(TlsError),
    /// A socket cannot listen.
    Listen(String),
    /// The system refuses what the agent needs.
    System(&'static str, io::Error),
    /// A worker ended.
    WorkerEnded(usize),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::FlowsFile(file, error) => write!(f, "{file}: {error}"),
            SwitchError::Flows(problems) => problems.fmt(f),
            SwitchError::Engine(error)
            | SwitchError::AddPort(error)
            | SwitchError::Listen(error) => f.write_str(error),
            SwitchError::Port(name, error) => write!(f, "port {name}: {error}"),
            SwitchError::Worker(number, error) => {
                write!(f, "worker {number} cannot start: {error}")
            }
            SwitchError::RunFolder(folder, error) => write!(
                f,
                "{folder}: the folder of sockets cannot be made: {error}; choose another one \
                 (`run-dir`)"
            ),
            SwitchError::Tls(error) => error.fmt(f),
            SwitchError::System(what, error) => write!(f, "{what}: {error}"),
            SwitchError::WorkerEnded(number) => {
                write!(f, "worker {number} ended by an error; the switch stops")
            }
        }
    }
}

impl std::error::Error for SwitchError {}
