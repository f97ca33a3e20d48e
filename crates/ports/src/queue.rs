//! The interface of queues.

use std::io;
use std::os::fd::BorrowedFd;

use classyard_datapath::Packet;

/// The fate of a packet that was given to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The packet is sent at the next flush, or was sent.
    Queued,
    /// The queue is full. The packet is dropped.
    NoRoom,
    /// The packet is longer than the device takes. The packet is dropped.
    TooLong,
}

/// A queue of a device, for one worker.
///
/// A queue counts the packets that it receives, sends and drops in its
/// [`Counters`](crate::Counters).
pub trait Queue: Send {
    /// Receives up to `packets.len()` frames into packets that count as received from `in_port`,
    /// without waiting. Returns their number.
    ///
    /// # Errors
    /// The error of the device. [`io::ErrorKind::NetworkDown`] says that the interface is down:
    /// the queue can be used further, and receives again when the interface is up. Other errors
    /// say that the device vanished or failed. A lack of frames is not an error.
    fn receive(&mut self, packets: &mut [Packet], in_port: u32) -> io::Result<usize>;

    /// Copies a packet to the frames that the next [`flush`](Self::flush) sends. Work that is
    /// left on the packet is passed on, or done here if the device does not take it.
    fn send(&mut self, packet: &Packet) -> Sent;

    /// Sends the frames that were queued. Frames that the device has no room for are dropped and
    /// counted.
    ///
    /// # Errors
    /// The error of the device, as for [`receive`](Self::receive). The frames are dropped and
    /// counted as refused. A lack of room is not an error.
    fn flush(&mut self) -> io::Result<()>;

    /// Returns a descriptor that becomes readable when frames arrive, or `None` if the worker has
    /// to look.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Reads counts that the device has, such as drops in the kernel. Workers call it about once
    /// a second.
    fn update_counts(&mut self) {}
}
