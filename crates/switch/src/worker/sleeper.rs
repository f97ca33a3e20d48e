//! Sleeping until a frame or a command arrives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use classyard_ports::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Wakes a worker from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker {
    /// It stays set until the worker clears it, so no call is lost.
    event: Arc<Event>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker {
            event: Arc::new(Event::new()?),
        })
    }

    pub(crate) fn wake(&self) {
        self.event.set();
    }

    /// Waits until another thread calls [`wake`](Self::wake), a descriptor is readable, or a time
    /// has passed.
    ///
    /// # Errors
    /// The errors of `poll`.
    pub(crate) fn sleep<'f>(
        &'f self,
        queues: impl Iterator<Item = BorrowedFd<'f>>,
        time: Duration,
    ) -> io::Result<()> {
        let event = self.event.as_fd();
        let descriptors = std::iter::once(event).chain(queues);
        let mut polled: Vec<PollFd<'_>> = descriptors
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let time = Timespec::try_from(time).expect("a second at most");
        match poll(&mut polled, Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if !polled[0].revents().is_empty() {
            self.event.clear();
        }
        Ok(())
    }
}
