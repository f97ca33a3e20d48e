//! Options of sockets that hold plain numbers.

#![allow(unsafe_code)] // `rustix` has no options of packet sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// A value that the kernel reads or fills byte for byte: it has no padding, no pointer, and any
/// bytes are a value.
///
/// # Safety
/// The type must be as described.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: any bytes are a number.
unsafe impl Plain for libc::c_int {}
// SAFETY: four numbers of 32 bits, without padding.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: two numbers of 32 bits, without padding.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: numbers of 32, 16 and 16 bits, then 8 bytes, without padding.
unsafe impl Plain for libc::packet_mreq {}

/// Sets an option of packet sockets.
pub(super) fn set<T: Plain>(socket: impl AsFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let bytes = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the descriptor is open, and the kernel reads `bytes` bytes of the value.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            bytes,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Reads an option of packet sockets. `value` is returned where the kernel writes less.
pub(super) fn get<T: Plain>(socket: impl AsFd, option: libc::c_int, mut value: T) -> io::Result<T> {
    let mut bytes = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the descriptor is open, and the kernel writes at most `bytes` bytes of the value,
    // for which any bytes are valid.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_mut(&mut value).cast(),
            &raw mut bytes,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}
