//! Descriptors that become readable on request (`eventfd`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// A descriptor that is readable while it is set, to wake a thread that sleeps in `poll`.
///
/// ```
/// let event = classyard_ports::Event::new()?;
/// event.set();
/// event.clear();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// Returns an event that is not set.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn new() -> io::Result<Event> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Event(eventfd(0, flags)?))
    }

    /// Sets the event. The count of the descriptor cannot overflow: 2^64 − 2 calls fit.
    pub fn set(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Clears the event.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
