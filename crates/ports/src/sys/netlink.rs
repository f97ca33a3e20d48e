//! Notices that interfaces changed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// The group of notices about links (`RTMGRP_LINK`).
const LINK_GROUP: u32 = 1;

/// A descriptor that becomes readable when an interface appears, vanishes, goes up or down, or
/// gets other settings.
///
/// A reader then calls [`drain`](Self::drain) and [`Device::link`](crate::Device::link) of each
/// port, in this order. The contents of the notices are not used, so a notice that is lost
/// since the reader is slow does no harm.
#[derive(Debug)]
pub struct LinkEvents(OwnedFd);

impl LinkEvents {
    /// Opens the notices of the network namespace of the calling thread.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open() -> io::Result<LinkEvents> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // The default protocol of netlink is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, LINK_GROUP))?;
        Ok(LinkEvents(socket))
    }

    /// Discards the notices that have arrived.
    ///
    /// # Errors
    /// The error of the system. Lost notices are not an error.
    pub fn drain(&self) -> io::Result<()> {
        let mut notice = [0_u8; 1_024];
        loop {
            match recv(&self.0, &mut notice, RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
