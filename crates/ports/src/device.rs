//! Devices of all kinds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::MAX_QUEUES;
use crate::counters::{Counters, QueueCounts};
use crate::error::OpenError;
use crate::kernel_interface::KernelInterface;
use crate::link::Link;
use crate::memory::MemoryPeer;
use crate::queue::Queue;
use crate::{capture, interface, tap};

/// The MTU of devices that are not interfaces of Linux, in bytes.
const UNLIMITED_MTU: u32 = 65_535;

/// Settings of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSettings {
    /// A network interface, by a packet socket.
    Interface {
        /// The name of the interface.
        name: String,
    },
    /// A TAP device. It is created and switched on if there is none of this name.
    Tap {
        /// The name of the interface.
        name: String,
    },
    /// Files of frames, as pcap. All frames that are received come to the first queue, as fast
    /// as it takes them.
    Capture {
        /// The file to receive from: pcap or pcapng, also compressed by gzip.
        receive: Option<PathBuf>,
        /// The file that is created for sent frames, as pcap.
        send: Option<PathBuf>,
    },
}

/// A device, for the thread that watches ports: its counts and its link. The queues belong to
/// workers.
#[derive(Debug)]
pub struct Device {
    kind: Kind,
    counters: Vec<Arc<Counters>>,
}

#[derive(Debug)]
enum Kind {
    Kernel(KernelInterface),
    Capture { address: [u8; 6] },
    Memory { address: [u8; 6], peer: MemoryPeer },
}

impl Device {
    /// Opens a device with a number of queues, at most [`MAX_QUEUES`](crate::MAX_QUEUES). The
    /// device is closed when its queues are dropped.
    ///
    /// # Errors
    /// [`OpenError`] says what failed, and the remedy.
    pub fn open(
        settings: &DeviceSettings,
        queues: usize,
    ) -> Result<(Device, Vec<Box<dyn Queue>>), OpenError> {
        if !(1..=MAX_QUEUES).contains(&queues) {
            return Err(OpenError::Queues { queues });
        }
        let counters = new_counters(queues);
        let (kind, queues) = match settings {
            DeviceSettings::Interface { name } => {
                let found = KernelInterface::find(name)?;
                let queues = interface::open(name, &found, &counters)?;
                (Kind::Kernel(found), queues)
            }
            DeviceSettings::Tap { name } => {
                let (found, queues) = tap::open(name, &counters)?;
                (Kind::Kernel(found), queues)
            }
            DeviceSettings::Capture { receive, send } => {
                let queues = capture::open(receive.as_deref(), send.as_deref(), &counters)?;
                let address = new_address();
                (Kind::Capture { address }, queues)
            }
        };
        Ok((Device { kind, counters }, queues))
    }

    /// Returns the counts of each queue.
    #[must_use]
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    /// Returns the sums of the counts of all queues.
    #[must_use]
    pub fn counts(&self) -> QueueCounts {
        let mut sum = QueueCounts::default();
        for counters in &self.counters {
            sum += counters.read();
        }
        sum
    }

    /// Returns the link.
    ///
    /// # Errors
    /// The error of the system: the interface has vanished.
    pub fn link(&self) -> io::Result<Link> {
        let (is_up, address) = match &self.kind {
            Kind::Kernel(interface) => return interface.link(),
            Kind::Capture { address } => (true, *address),
            Kind::Memory { address, peer } => (peer.is_up(), *address),
        };
        Ok(Link {
            is_up,
            address,
            speed_kbit: None,
            mtu: UNLIMITED_MTU,
        })
    }
}

/// Opens a device in this process, with a number of queues, for tests and demonstrations. The
/// peer sends to its queues and receives from them.
///
/// ```
/// use classyard_datapath::Packet;
/// use classyard_datapath::packet::Offload;
///
/// let (device, mut queues, peer) = classyard_ports::memory(1);
/// assert!(peer.send(0, &[0; 60], Offload::NONE));
/// let mut packets = vec![Packet::default(); 32];
/// assert_eq!(queues[0].receive(&mut packets, 1)?, 1);
/// queues[0].send(&packets[0]);
/// queues[0].flush()?;
/// assert_eq!(peer.receive(), Some((vec![0; 60], Offload::NONE)));
/// assert_eq!(device.counts().sent_packets, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If the system has no more descriptors.
#[must_use]
pub fn memory(queues: usize) -> (Device, Vec<Box<dyn Queue>>, MemoryPeer) {
    let counters = new_counters(queues);
    let opened = crate::memory::open(&counters);
    let (queues, peer) = opened.expect("the system has descriptors");
    let kind = Kind::Memory {
        address: new_address(),
        peer: peer.clone(),
    };
    (Device { kind, counters }, queues, peer)
}

fn new_counters(queues: usize) -> Vec<Arc<Counters>> {
    (0..queues).map(|_| Arc::default()).collect()
}

/// Returns a locally administered address, a different one for each device of this process.
fn new_address() -> [u8; 6] {
    static DEVICES: AtomicU32 = AtomicU32::new(1);
    let [a, b, c, d] = DEVICES.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    [2, 0, a, b, c, d]
}
