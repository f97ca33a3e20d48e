//! Ports of a switch and their devices.

use std::fmt;
use std::path::{Path, PathBuf};

use classyard_datapath::pipeline::PortName;
use classyard_text::line::quoted;
use serde::{Deserialize, Serialize};

use super::faults::Mistake;
use super::values::{MAX_NAME_BYTES, interface_name};

/// The largest number of a port (`OFPP_MAX` of OpenFlow 1.3.5 §7.2.1).
pub const MAX_PORT_NUMBER: u32 = 0xffff_ff00;

/// A port of a switch.
///
/// A value that was read from a file or from JSON has a valid number, valid names, and only
/// settings that its device uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PortFields", into = "PortFields")]
pub struct PortSettings {
    /// The OpenFlow number, 1 to [`MAX_PORT_NUMBER`].
    pub number: u32,
    /// The name, 1 to 15 bytes. No other port of the switch has it.
    pub name: String,
    /// The device that receives and sends frames.
    pub device: DeviceSettings,
}

/// The device of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSettings {
    /// An existing network interface (`type = "interface"`).
    Interface {
        /// The name of the interface.
        interface: String,
    },
    /// A TAP device, which the switch makes if there is none (`type = "tap"`).
    Tap {
        /// The name of the interface.
        interface: String,
    },
    /// Captures in files (`type = "pcap"`). `receive`, `send` or both are set.
    Pcap {
        /// The file whose packets the port receives.
        receive: Option<PathBuf>,
        /// The file that gets the packets that the port sends.
        send: Option<PathBuf>,
    },
    /// Memory of the process (`type = "memory"`), for programs that run a switch inside.
    Memory,
}

/// The names of the types of devices.
pub(super) const TYPES: [&str; 4] = ["interface", "tap", "pcap", "memory"];

impl DeviceSettings {
    /// Returns the name of the device's type: `interface`, `tap`, `pcap` or `memory`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            DeviceSettings::Interface { .. } => TYPES[0],
            DeviceSettings::Tap { .. } => TYPES[1],
            DeviceSettings::Pcap { .. } => TYPES[2],
            DeviceSettings::Memory => TYPES[3],
        }
    }

    /// Returns the name of the network interface, if the device has one.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            DeviceSettings::Interface { interface } | DeviceSettings::Tap { interface } => {
                Some(interface)
            }
            DeviceSettings::Pcap { .. } | DeviceSettings::Memory => None,
        }
    }

    /// Returns the file that the device writes, if any.
    #[must_use]
    pub fn send_file(&self) -> Option<&Path> {
        match self {
            DeviceSettings::Pcap { send, .. } => send.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceSettings {
    /// Writes the type and its settings, such as `interface eth0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())?;
        match self {
            DeviceSettings::Interface { interface } | DeviceSettings::Tap { interface } => {
                write!(f, " {interface}")
            }
            DeviceSettings::Pcap { receive, send } => {
                if let Some(file) = receive {
                    write!(f, " receive {}", file.display())?;
                }
                match send {
                    Some(file) => write!(f, " send {}", file.display()),
                    None => Ok(()),
                }
            }
            DeviceSettings::Memory => Ok(()),
        }
    }
}

/// The fields of a port in JSON.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PortFields {
    number: u32,
    name: String,
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    send: Option<PathBuf>,
}

impl From<PortSettings> for PortFields {
    fn from(port: PortSettings) -> PortFields {
        let r#type = port.device.type_name().to_owned();
        let (interface, receive, send) = match port.device {
            DeviceSettings::Interface { interface } | DeviceSettings::Tap { interface } => {
                (Some(interface), None, None)
            }
            DeviceSettings::Pcap { receive, send } => (None, receive, send),
            DeviceSettings::Memory => (None, None, None),
        };
        PortFields {
            number: port.number,
            name: port.name,
            r#type,
            interface,
            receive,
            send,
        }
    }
}

impl TryFrom<PortFields> for PortSettings {
    type Error = String;

    fn try_from(fields: PortFields) -> Result<PortSettings, String> {
        let parts = DeviceParts {
            interface: fields.interface,
            receive: fields.receive,
            send: fields.send,
        };
        PortSettings::new(fields.number, &fields.name, &fields.r#type, parts)
    }
}

impl PortSettings {
    /// Returns a port whose device has the type `type_name`: `interface`, `tap`, `pcap` or
    /// `memory`.
    ///
    /// # Errors
    /// The first wrong value, or a part that the type does not use, for people.
    pub fn new(
        number: u32,
        name: &str,
        type_name: &str,
        parts: DeviceParts,
    ) -> Result<PortSettings, String> {
        let explain = |key: &str, mistake: &Mistake| {
            format!("`{key}`: {}; expected {}", mistake.found, mistake.expected)
        };
        check_number(number).map_err(|mistake| explain("number", &mistake))?;
        check_name(name).map_err(|mistake| explain("name", &mistake))?;
        let device = device(type_name, name, parts);
        Ok(PortSettings {
            number,
            name: name.to_owned(),
            device: device.map_err(|(key, mistake)| explain(key, &mistake))?,
        })
    }
}

/// Checks the number of a port.
fn check_number(number: u32) -> Result<(), Mistake> {
    match number {
        1..=MAX_PORT_NUMBER => Ok(()),
        _ => Err(Mistake::new(
            quoted(&number.to_string()),
            format!("the number of a port, 1 to {MAX_PORT_NUMBER}"),
        )),
    }
}

/// Checks the name of a port.
pub(super) fn check_name(name: &str) -> Result<(), Mistake> {
    match PortName::new(name) {
        Some(_) => Ok(()),
        None => Err(Mistake::new(
            quoted(name),
            format!(
                "the name of a port: 1 to {MAX_NAME_BYTES} bytes without `\"` and `#`, and not a \
                 word of OpenFlow such as `flood`"
            ),
        )),
    }
}

/// The settings of a device of any type. A setting must be `None` if the type does not use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceParts {
    /// The network interface of type `interface` or `tap`; `None` for the name of the port.
    pub interface: Option<String>,
    /// The file whose packets a port of type `pcap` receives.
    pub receive: Option<PathBuf>,
    /// The file that gets the packets that a port of type `pcap` sends.
    pub send: Option<PathBuf>,
}

/// Returns a device of a type. A mistake comes with the key that has it.
pub(super) fn device(
    type_name: &str,
    port_name: &str,
    parts: DeviceParts,
) -> Result<DeviceSettings, (&'static str, Mistake)> {
    let unused = |key: &'static str, types: &str| {
        let message = format!("`{key}` on a port of type {type_name}");
        let expected = format!("{types}, or no `{key}`");
        Err((key, Mistake::new(message, expected)))
    };
    let has_interface = matches!(type_name, "interface" | "tap");
    if parts.interface.is_some() && !has_interface {
        return unused("interface", "`type = \"interface\"` or `type = \"tap\"`");
    }
    if parts.receive.is_some() && type_name != "pcap" {
        return unused("receive", "`type = \"pcap\"`");
    }
    if parts.send.is_some() && type_name != "pcap" {
        return unused("send", "`type = \"pcap\"`");
    }
    match type_name {
        "interface" | "tap" => {
            let interface = interface_of(port_name, parts.interface)?;
            Ok(match type_name {
                "tap" => DeviceSettings::Tap { interface },
                _ => DeviceSettings::Interface { interface },
            })
        }
        "pcap" if parts.receive.is_none() && parts.send.is_none() => {
            let message = "a port of type pcap without a file";
            let expected = "`receive = \"FILE\"`, `send = \"FILE\"` or both";
            Err(("type", Mistake::new(message, expected)))
        }
        "pcap" => Ok(DeviceSettings::Pcap {
            receive: parts.receive,
            send: parts.send,
        }),
        "memory" => Ok(DeviceSettings::Memory),
        _ => {
            let expected = format!("one of `{}`", TYPES.join("`, `"));
            Err(("type", Mistake::new(quoted(type_name), expected)))
        }
    }
}

/// Returns the interface of a port: the given name, or the name of the port.
fn interface_of(
    port_name: &str,
    interface: Option<String>,
) -> Result<String, (&'static str, Mistake)> {
    match interface {
        Some(interface) => match interface_name(&interface) {
            Ok(()) => Ok(interface),
            Err(mistake) => Err(("interface", mistake)),
        },
        None => match interface_name(port_name) {
            Ok(()) => Ok(port_name.to_owned()),
            Err(_) => {
                let message = format!("no interface can be named {}", quoted(port_name));
                let expected = "`interface = \"NAME\"` in addition to the name of the port";
                Err(("name", Mistake::new(message, expected)))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_json(text: &str) -> Result<PortSettings, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn ports_are_read_back_from_json() {
        let interface = |name: &str| name.to_owned();
        let devices = [
            DeviceSettings::Interface {
                interface: interface("eth0"),
            },
            DeviceSettings::Tap {
                interface: interface("tap0"),
            },
            DeviceSettings::Pcap {
                receive: Some("in.pcap".into()),
                send: None,
            },
            DeviceSettings::Memory,
        ];
        for device in devices {
            let port = PortSettings {
                number: MAX_PORT_NUMBER,
                name: "up link".to_owned(),
                device,
            };
            let text = serde_json::to_string(&port).unwrap();
            assert_eq!(from_json(&text), Ok(port), "{text}");
        }
        let text = r#"{"number":1,"name":"veth1","type":"interface"}"#;
        let port = from_json(text).unwrap();
        assert_eq!(port.device.interface(), Some("veth1"));
        assert_eq!(port.device.to_string(), "interface veth1");
    }

    #[test]
    fn ports_in_json_are_checked() {
        for (text, message) in [
            (
                r#"{"number":0,"name":"a","type":"memory"}"#,
                "`number`: `0`; expected the number of a port, 1 to 4294967040",
            ),
            (
                r#"{"number":1,"name":"flood","type":"memory"}"#,
                "`name`: `flood`; expected the name of a port",
            ),
            (
                r#"{"number":1,"name":"a","type":"dpdk"}"#,
                "`type`: `dpdk`; expected one of `interface`, `tap`, `pcap`, `memory`",
            ),
            (
                r#"{"number":1,"name":"a","type":"pcap"}"#,
                "`type`: a port of type pcap without a file; expected `receive",
            ),
            (
                r#"{"number":1,"name":"a","type":"memory","interface":"a"}"#,
                "`interface`: `interface` on a port of type memory; expected `type =",
            ),
            (
                r#"{"number":1,"name":"a","type":"tap","send":"a"}"#,
                "`send`: `send` on a port of type tap; expected `type = \"pcap\"`, or no `send`",
            ),
            (
                r#"{"number":1,"name":"a b","type":"interface"}"#,
                "`name`: no interface can be named `a b`; expected `interface = \"NAME\"`",
            ),
            (
                r#"{"number":1,"name":"a","type":"interface","interface":"a/b"}"#,
                "`interface`: `a/b`; expected the name of a network interface",
            ),
            (
                r#"{"number":1,"name":"a","type":"memory","mtu":9000}"#,
                "unknown field `mtu`",
            ),
        ] {
            let error = from_json(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
