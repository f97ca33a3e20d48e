//! Addresses of controllers and of listeners.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use classyard_text::line::quoted;
use serde::{Serialize, Serializer};

use super::faults::Mistake;

/// The largest number of bytes of the path of a Unix socket (`sun_path` without its end).
pub const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The largest number of bytes of a host's name (RFC 1035 §2.3.4).
const MAX_HOST_BYTES: usize = 253;

/// The forms of addresses, for messages.
const FORMS: &str = "`tcp:HOST:PORT` or `unix:PATH`";

/// An address that the switch connects to, or listens on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// TCP: `tcp:HOST:PORT`.
    Tcp {
        /// An IP address, without brackets, or the name of a host.
        host: String,
        /// The port, from 1.
        port: u16,
    },
    /// A Unix socket: `unix:PATH`.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    /// Writes the address as configuration files have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Address {
    /// Reads the address of a controller. A path is relative to `folder`.
    pub(super) fn of_controller(text: &str, folder: &Path) -> Result<Address, Mistake> {
        Address::parse(text, folder)
    }

    /// Reads the address of a listener, which is an IP address or a path.
    pub(super) fn of_listener(text: &str, folder: &Path) -> Result<Address, Mistake> {
        let address = Address::parse(text, folder)?;
        match &address {
            Address::Tcp { host, .. } if host.parse::<IpAddr>().is_err() => {
                let message = format!("{} is not an IP address", quoted(host));
                let expected = "an address of this host, such as `tcp:127.0.0.1:6653`, or \
                                `tcp:0.0.0.0:6653` for all";
                Err(Mistake::new(message, expected))
            }
            _ => Ok(address),
        }
    }

    fn parse(text: &str, folder: &Path) -> Result<Address, Mistake> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(Mistake::new(quoted(text), FORMS));
        };
        match scheme {
            "tcp" => tcp(rest),
            "unix" => unix(rest, folder),
            "tls" | "ssl" => {
                let message = format!("`{scheme}:` is not supported yet");
                Err(Mistake::unsupported(message, FORMS))
            }
            "ptcp" | "punix" | "pssl" => {
                let expected = "`tcp:ADDRESS:PORT` or `unix:PATH` in the list `openflow` of \
                                `[listen]`";
                Err(Mistake::new(quoted(text), expected))
            }
            _ => Err(Mistake::new(quoted(text), FORMS)),
        }
    }
}

/// Reads `HOST:PORT`.
fn tcp(text: &str) -> Result<Address, Mistake> {
    let expected_port = "a port from 1 to 65535 after the host, as in `tcp:192.0.2.1:6653`";
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, after)) => {
            let is_ipv6 = host.parse::<std::net::Ipv6Addr>().is_ok();
            if !is_ipv6 {
                let message = format!("{} is not an IPv6 address", quoted(host));
                return Err(Mistake::new(message, "an IPv6 address between `[` and `]`"));
            }
            let Some(port) = after.strip_prefix(':') else {
                let message = format!("{} has no port", quoted(text));
                return Err(Mistake::new(message, expected_port));
            };
            (host, port)
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                let expected = "brackets around an IPv6 address, as in `tcp:[2001:db8::1]:6653`";
                return Err(Mistake::new(quoted(text), expected));
            }
            Some((host, port)) => (host, port),
            None => {
                let message = format!("{} has no port", quoted(text));
                return Err(Mistake::new(message, expected_port));
            }
        },
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || host.len() > MAX_HOST_BYTES || !host.chars().all(is_host) {
        let message = format!("{} is not a host", quoted(host));
        return Err(Mistake::new(message, "an IP address or the name of a host"));
    }
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port @ 1..) if digits => Ok(Address::Tcp {
            host: host.to_owned(),
            port,
        }),
        _ => {
            let message = format!("{} is not a port", quoted(port));
            Err(Mistake::new(message, expected_port))
        }
    }
}

/// Reads the path of a Unix socket.
fn unix(text: &str, folder: &Path) -> Result<Address, Mistake> {
    let path = super::values::path(text, folder)?;
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH_BYTES {
        let message = format!("a path of {length} bytes");
        let expected = format!("at most {MAX_SOCKET_PATH_BYTES} bytes, the limit for Unix sockets");
        return Err(Mistake::new(message, expected));
    }
    Ok(Address::Unix(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Address, Mistake> {
        Address::of_controller(text, Path::new("/etc/classyard"))
    }

    #[test]
    fn addresses_are_read_and_written() {
        for text in [
            "tcp:192.0.2.1:6653",
            "tcp:[2001:db8::1]:6653",
            "tcp:controller-1.example.net:65535",
            "unix:/run/classyard/br0.mgmt",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        let relative = read("unix:br0.mgmt").unwrap();
        assert_eq!(relative.to_string(), "unix:/etc/classyard/br0.mgmt");
    }

    #[test]
    fn bad_addresses_say_what_to_write() {
        for (text, found, expected) in [
            ("", "``", FORMS),
            ("192.0.2.1", "`192.0.2.1`", FORMS),
            ("udp:192.0.2.1:1", "`udp:192.0.2.1:1`", FORMS),
            ("tls:192.0.2.1:6653", "`tls:` is not supported yet", FORMS),
            ("ptcp:6653", "`ptcp:6653`", "of `[listen]`"),
            (
                "tcp:192.0.2.1",
                "`192.0.2.1` has no port",
                "from 1 to 65535",
            ),
            ("tcp:192.0.2.1:0", "`0` is not a port", "from 1 to 65535"),
            ("tcp:192.0.2.1:+1", "`+1` is not a port", "from 1 to 65535"),
            (
                "tcp:192.0.2.1:65536",
                "`65536` is not a port",
                "from 1 to 65535",
            ),
            ("tcp::1", "`` is not a host", "an IP address"),
            ("tcp:a b:1", "`a b` is not a host", "an IP address"),
            ("tcp:2001:db8::1:6653", "`2001:db8::1:6653`", "brackets"),
            ("tcp:[::1]", "`[::1]` has no port", "from 1 to 65535"),
            (
                "tcp:[host]:1",
                "`host` is not an IPv6 address",
                "between `[`",
            ),
            ("unix:", "``", "a path"),
        ] {
            let mistake = read(text).unwrap_err();
            assert_eq!(mistake.found, found, "{text}");
            assert!(mistake.expected.contains(expected), "{text}: {mistake:?}");
        }
        let long = format!("unix:/{}", "x".repeat(MAX_SOCKET_PATH_BYTES));
        assert_eq!(read(&long).unwrap_err().found, "a path of 108 bytes");
        assert!(read(&long[..long.len() - 1]).is_ok());
    }

    #[test]
    fn a_listener_has_an_address_of_its_host() {
        let folder = Path::new("");
        assert!(Address::of_listener("tcp:[::]:6653", folder).is_ok());
        let mistake = Address::of_listener("tcp:localhost:6653", folder).unwrap_err();
        assert_eq!(mistake.found, "`localhost` is not an IP address");
    }
}
