//! Addresses of controllers and of listeners.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use classyard_text::line::quoted;
use serde::{Serialize, Serializer};

use super::faults::Mistake;
use crate::tls;

/// The largest number of bytes of the path of a Unix socket (`sun_path` without its end).
pub const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The largest number of bytes of a host's name (RFC 1035 §2.3.4).
const MAX_HOST_BYTES: usize = 253;

/// The port of OpenFlow that IANA has assigned, for addresses without port.
const DEFAULT_PORT: u16 = 6653;

/// The forms of addresses, for messages.
const FORMS: &str = "`tcp:HOST:PORT`, `ssl:HOST:PORT` or `unix:PATH`";

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
    /// TLS over TCP: `ssl:HOST:PORT`, as Open vSwitch names it.
    Ssl {
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
        let (scheme, host, port) = match self {
            Address::Tcp { host, port } => ("tcp", host, port),
            Address::Ssl { host, port } => ("ssl", host, port),
            Address::Unix(path) => return write!(f, "unix:{}", path.display()),
        };
        match host.contains(':') {
            true => write!(f, "{scheme}:[{host}]:{port}"),
            false => write!(f, "{scheme}:{host}:{port}"),
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

    /// Reads the address of a listener, which is an IP address or a path. The forms of Open
    /// vSwitch are accepted as well: `ptcp:PORT:ADDRESS`, `pssl:PORT:ADDRESS` and `punix:PATH`.
    pub(super) fn of_listener(text: &str, folder: &Path) -> Result<Address, Mistake> {
        let address = match text.split_once(':') {
            Some(("ptcp", rest)) => passive(rest).and_then(|place| of_scheme("tcp", place)),
            Some(("pssl", rest)) => passive(rest).and_then(|place| of_scheme("ssl", place)),
            Some(("punix", rest)) => unix(rest, folder),
            _ => Address::parse(text, folder),
        }?;
        match &address {
            Address::Tcp { host, .. } | Address::Ssl { host, .. }
                if host.parse::<IpAddr>().is_err() =>
            {
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
            "tcp" | "ssl" => of_scheme(scheme, host_and_port(rest)?),
            "unix" => unix(rest, folder),
            "tls" => Err(Mistake::new(
                quoted(text),
                "`ssl:HOST:PORT`, the name of TLS in Open vSwitch",
            )),
            "ptcp" | "punix" | "pssl" => {
                let expected = "an address to connect to; addresses to listen on are in the list \
                                `openflow` of `[listen]`";
                Err(Mistake::new(quoted(text), expected))
            }
            _ => Err(Mistake::new(quoted(text), FORMS)),
        }
    }
}

/// Returns the address of a host and a port: `tcp` or `ssl`.
fn of_scheme(scheme: &str, (host, port): (String, u16)) -> Result<Address, Mistake> {
    match scheme {
        "ssl" if !tls::IS_SUPPORTED => {
            let fault = "`ssl:` needs TLS, and this program was built without TLS";
            let remedy = "a build with the feature `tls`, which is on by default";
            Err(Mistake::unsupported(fault, remedy))
        }
        "ssl" => Ok(Address::Ssl { host, port }),
        _ => Ok(Address::Tcp { host, port }),
    }
}

/// Reads a port, which follows the host or, as Open vSwitch has it for listeners, comes first.
fn port_number(text: &str) -> Result<u16, Mistake> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port @ 1..) if digits => Ok(port),
        _ => {
            let message = format!("{} is not a port", quoted(text));
            let expected = "a port from 1 to 65535, as in `tcp:192.0.2.1:6653`";
            Err(Mistake::new(message, expected))
        }
    }
}

/// Reads `PORT` or `PORT:ADDRESS`, by default all IPv4 addresses of the host.
fn passive(text: &str) -> Result<(String, u16), Mistake> {
    let (port, host) = text.split_once(':').unwrap_or((text, "0.0.0.0"));
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    Ok((inner.unwrap_or(host).to_owned(), port_number(port)?))
}

/// Reads `HOST:PORT`, or `HOST` with the default port.
fn host_and_port(text: &str) -> Result<(String, u16), Mistake> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, after)) => {
            let is_ipv6 = host.parse::<std::net::Ipv6Addr>().is_ok();
            if !is_ipv6 {
                let message = format!("{} is not an IPv6 address", quoted(host));
                return Err(Mistake::new(message, "an IPv6 address between `[` and `]`"));
            }
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => {
                    let expected = "`:` and a port after `]`, or nothing";
                    return Err(Mistake::new(quoted(after), expected));
                }
            }
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                let expected = "brackets around an IPv6 address, as in `tcp:[2001:db8::1]:6653`";
                return Err(Mistake::new(quoted(text), expected));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || host.len() > MAX_HOST_BYTES || !host.chars().all(is_host) {
        let message = format!("{} is not a host", quoted(host));
        return Err(Mistake::new(message, "an IP address or the name of a host"));
    }
    let port = port.map_or(Ok(DEFAULT_PORT), port_number)?;
    Ok((host.to_owned(), port))
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
        for (text, full) in [
            ("tcp:192.0.2.1", "tcp:192.0.2.1:6653"),
            ("tcp:[::1]", "tcp:[::1]:6653"),
        ] {
            assert_eq!(read(text).unwrap().to_string(), full);
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn addresses_of_tls_are_read_and_written() {
        for text in [
            "ssl:192.0.2.1:6653",
            "ssl:[2001:db8::1]:1",
            "ssl:c.example.net:65535",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("ssl:c").unwrap().to_string(), "ssl:c:6653");
        let listener = |text| Address::of_listener(text, Path::new(""));
        for (text, full) in [
            ("pssl:6653", "ssl:0.0.0.0:6653"),
            ("pssl:1:127.0.0.1", "ssl:127.0.0.1:1"),
            ("pssl:1:[::1]", "ssl:[::1]:1"),
            ("ssl:127.0.0.1:1", "ssl:127.0.0.1:1"),
        ] {
            assert_eq!(listener(text).unwrap().to_string(), full);
        }
        let mistake = listener("pssl:1:localhost").unwrap_err();
        assert_eq!(mistake.found, "`localhost` is not an IP address");
        let mistake = listener("pssl:").unwrap_err();
        assert_eq!(mistake.found, "`` is not a port");
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn addresses_of_tls_name_the_feature() {
        let mistake = read("ssl:192.0.2.1:6653").unwrap_err();
        assert!(mistake.is_unsupported && mistake.expected.contains("feature `tls`"));
        assert_eq!(Address::of_listener("pssl:1", Path::new("")), Err(mistake));
    }

    #[test]
    fn bad_addresses_say_what_to_write() {
        for (text, found, expected) in [
            ("", "``", FORMS),
            ("192.0.2.1", "`192.0.2.1`", FORMS),
            ("udp:192.0.2.1:1", "`udp:192.0.2.1:1`", FORMS),
            (
                "tls:192.0.2.1:6653",
                "`tls:192.0.2.1:6653`",
                "`ssl:HOST:PORT`",
            ),
            ("ptcp:6653", "`ptcp:6653`", "of `[listen]`"),
            ("pssl:6653", "`pssl:6653`", "of `[listen]`"),
            ("tcp:192.0.2.1:", "`` is not a port", "from 1 to 65535"),
            ("tcp:192.0.2.1:0", "`0` is not a port", "from 1 to 65535"),
            ("tcp:192.0.2.1:+1", "`+1` is not a port", "from 1 to 65535"),
            (
                "tcp:192.0.2.1:65536",
                "`65536` is not a port",
                "from 1 to 65535",
            ),
            ("tcp:", "`` is not a host", "an IP address"),
            ("tcp::1", "`` is not a host", "an IP address"),
            ("tcp:a b:1", "`a b` is not a host", "an IP address"),
            ("tcp:2001:db8::1:6653", "`2001:db8::1:6653`", "brackets"),
            ("tcp:[::1]6653", "`6653`", "a port after `]`"),
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
        let folder = Path::new("/run");
        for (text, full) in [
            ("tcp:[::]:6653", "tcp:[::]:6653"),
            ("ptcp:6653", "tcp:0.0.0.0:6653"),
            ("punix:a", "unix:/run/a"),
        ] {
            let address = Address::of_listener(text, folder).unwrap();
            assert_eq!(address.to_string(), full);
        }
        let mistake = Address::of_listener("tcp:localhost:6653", folder).unwrap_err();
        assert_eq!(mistake.found, "`localhost` is not an IP address");
    }
}
