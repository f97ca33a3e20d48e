//! Settings and link of an interface of Linux.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::OpenError;
use crate::link::Link;
use crate::sys::ioctl::{Interfaces, all_names};

/// The maximum bytes of a name.
const MAX_NAME_BYTES: usize = 15;

/// The number of similar names in a message.
const SIMILAR_NAMES: usize = 3;

/// Names that are less similar are not listed ([`strsim::jaro_winkler`]).
const MIN_SIMILARITY: f64 = 0.7;

/// Hardware types of interfaces with Ethernet frames: Ethernet, and the loopback interface.
const ETHERNET_TYPES: [u16; 2] = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK];

/// An interface, which stays the same if it is renamed.
#[derive(Clone, Debug)]
pub(crate) struct KernelInterface {
    interfaces: Arc<Interfaces>,
    index: u32,
    /// The MTU in bytes when it was read last.
    mtu: Arc<AtomicU32>,
}

impl KernelInterface {
    /// Returns the interface of a name.
    pub(crate) fn find(name: &str) -> Result<KernelInterface, OpenError> {
        let found = KernelInterface::find_any(name)?;
        found.ok_or_else(|| OpenError::NoInterface {
            name: name.to_owned(),
            nearest: similar_names(name, all_names()),
        })
    }

    /// Returns the interface of a name, or `None` if there is none.
    pub(crate) fn find_any(name: &str) -> Result<Option<KernelInterface>, OpenError> {
        let failed = |operation, error| OpenError::of_interface(name, operation, "", error);
        check_name(name)?;
        let interfaces = Interfaces::open().map_err(|error| failed("open a socket", error))?;
        let index = interfaces.index(name);
        let Some(index) = index.map_err(|error| failed("find it", error))? else {
            return Ok(None);
        };
        let interface = KernelInterface {
            interfaces: Arc::new(interfaces),
            index,
            mtu: Arc::default(),
        };
        let (hardware_type, _) = interface
            .interfaces
            .address(name)
            .map_err(|error| failed("read its address", error))?;
        if !ETHERNET_TYPES.contains(&hardware_type) {
            return Err(OpenError::NotEthernet {
                name: name.to_owned(),
                hardware_type,
            });
        }
        let updated = interface.update_mtu();
        updated.map_err(|error| failed("read its MTU", error))?;
        Ok(Some(interface))
    }

    /// Returns the index.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Returns the MTU in bytes when it was read last.
    pub(crate) fn mtu(&self) -> u32 {
        self.mtu.load(Ordering::Relaxed)
    }

    /// Reads the MTU.
    pub(crate) fn update_mtu(&self) -> io::Result<()> {
        let name = self.interfaces.name(self.index)?;
        let mtu = self.interfaces.mtu(&name)?;
        self.mtu.store(mtu, Ordering::Relaxed);
        Ok(())
    }

    /// Switches the interface on.
    pub(crate) fn bring_up(&self) -> io::Result<()> {
        let name = self.interfaces.name(self.index)?;
        self.interfaces.bring_up(&name)
    }

    /// Returns the link.
    pub(crate) fn link(&self) -> io::Result<Link> {
        let name = self.interfaces.name(self.index)?;
        self.update_mtu()?;
        let flags = libc::c_int::from(self.interfaces.flags(&name)?);
        let needed = libc::IFF_UP | libc::IFF_RUNNING;
        let (_, address) = self.interfaces.address(&name)?;
        let speed = self.interfaces.speed_mbit(&name);
        Ok(Link {
            is_up: flags & needed == needed,
            address,
            speed_kbit: speed.and_then(|mbit| mbit.checked_mul(1_000)),
            mtu: self.mtu(),
        })
    }
}

/// Checks that an interface can have a name.
fn check_name(name: &str) -> Result<(), OpenError> {
    let is_bad = |byte: u8| byte.is_ascii_whitespace() || byte == b'/' || byte == b':' || byte == 0;
    let has_length = (1..=MAX_NAME_BYTES).contains(&name.len());
    if !has_length || name.bytes().any(is_bad) || name == "." || name == ".." {
        return Err(OpenError::Name {
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// Returns names that are similar to a name, the most similar one first.
fn similar_names(name: &str, all: Vec<String>) -> Vec<String> {
    let scored = all.into_iter().map(|other| {
        let similarity = strsim::jaro_winkler(name, &other);
        (similarity, other)
    });
    let mut scored: Vec<(f64, String)> = scored
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let names = scored.into_iter().map(|(_, name)| name);
    names.take(SIMILAR_NAMES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_the_system_sees_them() {
        for name in ["", "a/b", "a b", "a:1", ".", "..", "sixteen-bytes-00"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["eth0", "br-lan.7", "fifteen-bytes-0"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn similar_names_are_listed_best_first() {
        let all = ["lo", "veth1", "veth12", "eno1", "veth3", "veth4"].map(str::to_owned);
        let similar = similar_names("veth2", all.into());
        assert_eq!(similar.len(), SIMILAR_NAMES);
        assert!(similar.iter().all(|name| name.starts_with("veth")));
        assert!(similar_names("wlan0", vec!["lo".to_owned()]).is_empty());
    }
}
