//! Sleeping until a frame or a command arrives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Wakes a worker from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker {
    /// An `eventfd`. It stays readable until the worker reads it, so no call is lost.
    event: Arc<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker {
            event: Arc::new(event),
        })
    }

    pub(crate) fn wake(&self) {
        // The only error is a counter that is full, and then the worker wakes as well.
        let _full = rustix::io::write(&*self.event, &1_u64.to_ne_bytes());
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
            let mut count = [0; 8];
            let _empty = rustix::io::read(&*self.event, &mut count);
        }
        Ok(())
    }
}
