//! TAP devices.

#![allow(unsafe_code)] // `rustix` has no calls for TAP devices.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use super::ioctl::name_bytes;
use crate::virtio;

/// The path that opens TAP devices.
pub(crate) const TUN_PATH: &str = "/dev/net/tun";

/// Opens a queue of a TAP device, and creates the device if there is none of this name. Frames
/// are read and written with a virtio header.
pub(crate) fn open_queue(name: &str, has_many_queues: bool) -> io::Result<OwnedFd> {
    let tun: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(TUN_PATH)?;
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    if has_many_queues {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    let mut argument = libc::ifreq {
        ifr_name: name_bytes(name)?,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_newname: [0; libc::IFNAMSIZ],
        },
    };
    argument.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
    // SAFETY: TUNSETIFF reads and writes an `ifreq`, whose value is not a pointer.
    let result = unsafe {
        libc::ioctl(
            tun.as_raw_fd(),
            libc::TUNSETIFF,
            std::ptr::from_mut(&mut argument),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let header_bytes = libc::c_int::try_from(virtio::HEADER_BYTES).unwrap_or_default();
    // SAFETY: TUNSETVNETHDRSZ reads a `c_int`.
    let result = unsafe {
        libc::ioctl(
            tun.as_raw_fd(),
            libc::TUNSETVNETHDRSZ,
            std::ptr::from_ref(&header_bytes),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(tun.into())
}

/// Lets the kernel leave checksums and segments to the reader of a TAP device. Returns true if
/// this includes segments of UDP.
pub(crate) fn accept_work(queue: &OwnedFd) -> io::Result<bool> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let set = |work: libc::c_uint| {
        // SAFETY: the argument of TUNSETOFFLOAD is a number.
        let result = unsafe {
            libc::ioctl(
                queue.as_raw_fd(),
                libc::TUNSETOFFLOAD,
                libc::c_ulong::from(work),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    };
    // Linux has segments of UDP since 6.2.
    if set(tcp | udp).is_ok() {
        return Ok(true);
    }
    set(tcp)?;
    Ok(false)
}
