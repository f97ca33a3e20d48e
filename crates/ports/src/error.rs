//! Reasons why a port cannot be opened.

use std::io;
use std::path::PathBuf;

use classyard_workload::diagnostic::ReadError;
use thiserror::Error;

/// A reason why a port cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No interface has this name.
    #[error("no network interface `{name}`{}; `ip link` lists the interfaces", nearest_names(.nearest))]
    NoInterface {
        /// The name.
        name: String,
        /// Similar names of interfaces, the most similar one first.
        nearest: Vec<String>,
    },
    /// The name cannot be a name of an interface.
    #[error(
        "`{name}` cannot be the name of an interface: a name has 1 to 15 bytes, without `/`, `:` \
         and spaces"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The interface has no Ethernet frames.
    #[error(
        "interface `{name}` has no Ethernet frames (hardware type {hardware_type}); a port needs \
         an Ethernet interface"
    )]
    NotEthernet {
        /// The name of the interface.
        name: String,
        /// Its hardware type (`ARPHRD_…` of Linux).
        hardware_type: u16,
    },
    /// The program may not do this.
    #[error(
        "interface `{name}`: not permitted to {operation}; run as root, or run \
         `setcap {capabilities}+ep` on the program"
    )]
    Permission {
        /// The name of the interface.
        name: String,
        /// The operation that failed.
        operation: &'static str,
        /// The capabilities that the program needs.
        capabilities: &'static str,
    },
    /// Another program has the TAP device open.
    #[error("TAP device `{name}` is in use; stop the program that uses it, or choose another name")]
    TapInUse {
        /// The name of the device.
        name: String,
    },
    /// The interface of this name is of another kind, or was created with other settings.
    #[error(
        "interface `{name}` exists and cannot be opened as a TAP device with {queues} queues: it is \
         another kind of interface, or was created with other settings; choose another name, or \
         create it with `ip tuntap add {name} mode tap multi_queue vnet_hdr`"
    )]
    NotTap {
        /// The name of the interface.
        name: String,
        /// The number of queues that was requested.
        queues: usize,
    },
    /// The kernel has no TAP devices.
    #[error(
        "TAP device `{name}`: {} is missing; load the kernel module with `modprobe tun`, or give \
         the container this device",
        crate::sys::tun::TUN_PATH
    )]
    NoTun {
        /// The name of the device.
        name: String,
    },
    /// A file cannot be opened.
    #[error("cannot open the capture `{}`: {error}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file for sent frames exists.
    #[error("`{}` exists; choose the name of a new file for sent frames", path.display())]
    FileExists {
        /// The path.
        path: PathBuf,
    },
    /// The file to receive from is not a capture.
    #[error(transparent)]
    Capture(#[from] ReadError),
    /// The number of queues is out of range.
    #[error(
        "{queues} queues were requested; a port has 1 to {}",
        crate::MAX_QUEUES
    )]
    Queues {
        /// The number of queues that was requested.
        queues: usize,
    },
    /// Another operation of the system failed.
    #[error("interface `{name}`: cannot {operation}: {error}")]
    System {
        /// The name of the interface.
        name: String,
        /// The operation that failed.
        operation: &'static str,
        /// The reason.
        error: io::Error,
    },
}

impl OpenError {
    /// Returns the error for an operation on an interface.
    pub(crate) fn of_interface(
        name: &str,
        operation: &'static str,
        capabilities: &'static str,
        error: io::Error,
    ) -> OpenError {
        let name = name.to_owned();
        if error.kind() == io::ErrorKind::PermissionDenied {
            OpenError::Permission {
                name,
                operation,
                capabilities,
            }
        } else {
            OpenError::System {
                name,
                operation,
                error,
            }
        }
    }
}

/// Returns the part of a message that lists similar names.
fn nearest_names(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("; similar names: {}", names.join(", "))
}
