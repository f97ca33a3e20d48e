//! Settings of network interfaces, by `ioctl`.

#![allow(unsafe_code)] // `rustix` has no calls for flags, addresses, MTU and speed.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

/// The command of ethtool that reads settings, and the bytes of its answer.
const ETHTOOL_GET_SETTINGS: u32 = 1;
const ETHTOOL_SETTINGS_BYTES: usize = 44;

/// The places of the lower and the upper half of the speed in the answer.
const SPEED_PLACES: [usize; 2] = [12, 28];

/// The network interfaces of a network namespace.
#[derive(Debug)]
pub(crate) struct Interfaces(OwnedFd);

impl Interfaces {
    /// Opens the interfaces of the network namespace of the calling thread.
    pub(crate) fn open() -> io::Result<Interfaces> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        Ok(Interfaces(socket))
    }

    /// Returns the index of an interface, or `None` if there is none of this name.
    pub(crate) fn index(&self, name: &str) -> io::Result<Option<u32>> {
        match netdevice::name_to_index(&self.0, name) {
            Ok(index) => Ok(Some(index)),
            Err(rustix::io::Errno::NODEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the name of an interface.
    pub(crate) fn name(&self, index: u32) -> io::Result<String> {
        netdevice::index_to_name(&self.0, index).map_err(nonexistent_index)
    }

    /// Returns the flags `IFF_…`.
    pub(crate) fn flags(&self, name: &str) -> io::Result<libc::c_short> {
        let answer = self.request(name, libc::SIOCGIFFLAGS as _, NO_VALUE)?;
        // SAFETY: the kernel has written the flags.
        Ok(unsafe { answer.ifru_flags })
    }

    /// Switches an interface on.
    pub(crate) fn bring_up(&self, name: &str) -> io::Result<()> {
        let up = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
        let ifru_flags = self.flags(name)? | up;
        let value = libc::__c_anonymous_ifr_ifru { ifru_flags };
        self.request(name, libc::SIOCSIFFLAGS as _, value)?;
        Ok(())
    }

    /// Returns the MTU in bytes.
    pub(crate) fn mtu(&self, name: &str) -> io::Result<u32> {
        let answer = self.request(name, libc::SIOCGIFMTU as _, NO_VALUE)?;
        // SAFETY: the kernel has written the MTU.
        let mtu = unsafe { answer.ifru_mtu };
        Ok(u32::try_from(mtu).unwrap_or(0))
    }

    /// Returns the hardware type and the address.
    pub(crate) fn address(&self, name: &str) -> io::Result<(u16, [u8; 6])> {
        let answer = self.request(name, libc::SIOCGIFHWADDR as _, NO_VALUE)?;
        // SAFETY: the kernel has written the address.
        let address = unsafe { answer.ifru_hwaddr };
        let mut bytes = [0; 6];
        for (byte, value) in bytes.iter_mut().zip(address.sa_data) {
            let [value] = value.to_ne_bytes();
            *byte = value;
        }
        Ok((address.sa_family, bytes))
    }

    /// Returns the speed in Mbit/s, if the interface has one.
    pub(crate) fn speed_mbit(&self, name: &str) -> Option<u32> {
        let mut settings = [0_u8; ETHTOOL_SETTINGS_BYTES];
        settings[..4].copy_from_slice(&ETHTOOL_GET_SETTINGS.to_ne_bytes());
        let value = libc::__c_anonymous_ifr_ifru {
            // The pointer is valid during the call of `request`, which ends before `settings`.
            ifru_data: settings.as_mut_ptr().cast(),
        };
        self.request(name, libc::SIOCETHTOOL as _, value).ok()?;
        let half = |at: usize| u16::from_ne_bytes([settings[at], settings[at + 1]]);
        let [low, high] = SPEED_PLACES.map(half);
        let speed = u32::from(high) << 16 | u32::from(low);
        (speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed)
    }

    /// Makes a request about an interface, with a value that the kernel reads or replaces.
    fn request(
        &self,
        name: &str,
        request: libc::Ioctl,
        value: libc::__c_anonymous_ifr_ifru,
    ) -> io::Result<libc::__c_anonymous_ifr_ifru> {
        let mut argument = libc::ifreq {
            ifr_name: name_bytes(name)?,
            ifr_ifru: value,
        };
        // SAFETY: all requests of this module read and write an `ifreq`. Only SIOCETHTOOL takes a
        // pointer in it, to a buffer of the length that the command in the buffer writes.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                request,
                std::ptr::from_mut(&mut argument),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(argument.ifr_ifru)
    }
}

/// The value of requests that only read.
const NO_VALUE: libc::__c_anonymous_ifr_ifru = libc::__c_anonymous_ifr_ifru {
    ifru_newname: [0; libc::IFNAMSIZ],
};

/// Returns a name with zero bytes after it, as the kernel expects.
pub(super) fn name_bytes(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut bytes = [0; libc::IFNAMSIZ];
    if name.len() >= bytes.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (byte, value) in bytes.iter_mut().zip(name.bytes()) {
        *byte = libc::c_char::from_ne_bytes([value]);
    }
    Ok(bytes)
}

/// Returns the error for an index without an interface: the kernel says ENXIO or ENODEV.
fn nonexistent_index(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::NXIO => rustix::io::Errno::NODEV.into(),
        error => error.into(),
    }
}

/// Returns the names of all interfaces, or none if the system does not list them.
pub(crate) fn all_names() -> Vec<String> {
    // SAFETY: the call has no preconditions; it returns null or a list.
    let list = unsafe { libc::if_nameindex() };
    let mut names = Vec::new();
    if list.is_null() {
        return names;
    }
    let mut entry = list;
    // SAFETY: the list ends with an entry of index 0, and `entry` is at or before it. The names
    // of the entries before it are strings that end with 0.
    unsafe {
        while (*entry).if_index != 0 {
            let name = std::ffi::CStr::from_ptr((*entry).if_name);
            names.push(name.to_string_lossy().into_owned());
            entry = entry.add(1);
        }
    }
    // SAFETY: the list is from `if_nameindex` and is freed once; the names are copies.
    unsafe { libc::if_freenameindex(list) };
    names
}
