//! Requests and replies of the control socket.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::trace::TraceSource;
use crate::config::PortSettings;

/// The largest number of bytes of a request, without the end of its line.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;

/// The largest number of bytes of a reply that [`ControlClient`](super::ControlClient)
/// accepts, without the end of its line.
pub const MAX_REPLY_BYTES: usize = 64 << 20;

/// A request to a running switch. The description of each request names the data of the
/// reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Describe the switch: [`SwitchStatus`](super::SwitchStatus).
    Show,
    /// Add a port: no data.
    AddPort {
        /// The port. Paths are absolute.
        port: PortSettings,
    },
    /// Remove a port: no data.
    DelPort {
        /// The name of the port.
        name: String,
    },
    /// Write the ports, tables, groups, meters and flows as text in the syntax of `ovs-ofctl`:
    /// a string.
    Dump,
    /// Trace a packet through the present tables:
    /// [`LiveTrace`](super::LiveTrace). Nothing is counted or cached, and no packet is sent.
    Trace {
        /// The packet.
        packet: TraceSource,
        /// The number of flows that nearly won to list for each table, at most
        /// [`MAX_NEAR_FLOWS`](super::MAX_NEAR_FLOWS).
        near: usize,
    },
    /// List the megaflows of the workers' caches: [`MegaflowList`](super::MegaflowList).
    DumpMegaflows {
        /// The largest number of megaflows to list, at most
        /// [`MAX_LISTED_MEGAFLOWS`](super::MAX_LISTED_MEGAFLOWS).
        limit: usize,
    },
    /// Capture packets of ports. The bytes of a pcapng file follow the line of the reply,
    /// until a limit is reached or the client closes the connection.
    Capture {
        /// The name of the port, or `None` for all ports.
        port: Option<String>,
        /// The limits of the capture.
        limits: CaptureLimits,
    },
    /// Read the configuration file again: [`ReloadStatus`](super::ReloadStatus).
    Reload,
    /// Stop the switch: no data. The switch replies before it closes its ports.
    Stop,
}

/// Limits of a capture. `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureLimits {
    /// The largest number of packets.
    pub max_packets: Option<u64>,
    /// The largest number of bytes of each packet. The rest of a longer packet is left out.
    pub max_packet_bytes: Option<u32>,
    /// The longest time in seconds.
    pub max_seconds: Option<u64>,
}

/// A reason why a line is not a request. Its text is for the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadRequest {
    /// The line is longer than [`MAX_REQUEST_BYTES`].
    TooLong {
        /// The number of bytes of the line.
        bytes: usize,
    },
    /// The line is not a JSON object, or the object is not a request.
    Unreadable {
        /// The first mistake.
        message: String,
    },
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRequest::TooLong { bytes } => write!(
                f,
                "a request of {bytes} bytes; a request has at most {MAX_REQUEST_BYTES} bytes"
            ),
            BadRequest::Unreadable { message } => write!(f, "unreadable request: {message}"),
        }
    }
}

impl std::error::Error for BadRequest {}

impl Request {
    /// Reads a request from a line, with or without its end.
    ///
    /// # Errors
    /// [`BadRequest`]: the line is too long or no request.
    pub fn parse(line: &str) -> Result<Request, BadRequest> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        if line.len() > MAX_REQUEST_BYTES {
            return Err(BadRequest::TooLong { bytes: line.len() });
        }
        serde_json::from_str(line).map_err(|error| BadRequest::Unreadable {
            message: error.to_string(),
        })
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The switch carried out the request.
    Ok {
        /// The data that the [request](Request) names, or `null`.
        #[serde(default)]
        data: Value,
    },
    /// The switch refused the request. Nothing was changed.
    Error {
        /// The reason, for people.
        message: String,
    },
}

impl Reply {
    /// Returns a reply with data. Data that JSON cannot represent becomes an error.
    #[must_use]
    pub fn ok(data: &impl Serialize) -> Reply {
        match serde_json::to_value(data) {
            Ok(data) => Reply::Ok { data },
            Err(error) => Reply::error(&error),
        }
    }

    /// Returns a reply without data.
    #[must_use]
    pub fn done() -> Reply {
        Reply::Ok { data: Value::Null }
    }

    /// Returns a refusal with its reason.
    #[must_use]
    pub fn error(reason: &dyn fmt::Display) -> Reply {
        Reply::Error {
            message: reason.to_string(),
        }
    }

    /// Returns the line of the reply, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("keys are texts");
        line.push('\n');
        line
    }

    /// Returns the data of a reply, or the reason of a refusal.
    ///
    /// # Errors
    /// The reason of a refusal, or that the data have another type.
    pub fn data<T: DeserializeOwned>(self) -> Result<T, String> {
        match self {
            Reply::Ok { data } => serde_json::from_value(data)
                .map_err(|error| format!("the reply has unexpected data: {error}")),
            Reply::Error { message } => Err(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceSettings;

    #[test]
    fn requests_are_lines_of_json() {
        let port = PortSettings {
            number: 1,
            name: "veth1".to_owned(),
            device: DeviceSettings::Interface {
                interface: "veth1".to_owned(),
            },
        };
        for (request, line) in [
            (Request::Show, r#"{"request":"show"}"#),
            (Request::Reload, r#"{"request":"reload"}"#),
            (Request::Stop, r#"{"request":"stop"}"#),
            (
                Request::AddPort { port },
                r#"{"request":"add-port","port":{"number":1,"name":"veth1","type":"interface","interface":"veth1"}}"#,
            ),
            (
                Request::DelPort {
                    name: "veth1".to_owned(),
                },
                r#"{"request":"del-port","name":"veth1"}"#,
            ),
            (Request::Dump, r#"{"request":"dump"}"#),
            (
                Request::Trace {
                    packet: TraceSource::Next {
                        port: "p1".to_owned(),
                        max_seconds: 5,
                    },
                    near: 2,
                },
                r#"{"request":"trace","packet":{"next":{"port":"p1","max_seconds":5}},"near":2}"#,
            ),
            (
                Request::DumpMegaflows { limit: 9 },
                r#"{"request":"dump-megaflows","limit":9}"#,
            ),
            (
                Request::Capture {
                    port: None,
                    limits: CaptureLimits::default(),
                },
                r#"{"request":"capture","port":null,"limits":{"max_packets":null,"max_packet_bytes":null,"max_seconds":null}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
            assert_eq!(Request::parse(line), Ok(request.clone()));
            assert_eq!(Request::parse(&format!("{line}\n")), Ok(request));
        }
    }

    #[test]
    fn bad_requests_are_explained() {
        for (line, message) in [
            ("", "unreadable request: EOF while parsing"),
            ("{}", "unreadable request: missing field `request`"),
            (
                r#"{"request":"shw"}"#,
                "unknown variant `shw`, expected one of `show`",
            ),
            (
                r#"{"request":"del-port","name":"a","port":1}"#,
                "unknown field `port`, expected `name`",
            ),
            (
                r#"{"request":"add-port","port":{"number":0,"name":"a","type":"memory"}}"#,
                "`number`: `0`; expected the number of a port, 1 to 4294967040",
            ),
        ] {
            let error = Request::parse(line).unwrap_err().to_string();
            assert!(error.contains(message), "{line}: {error}");
        }
        let long = " ".repeat(MAX_REQUEST_BYTES + 1);
        assert_eq!(
            Request::parse(&long).unwrap_err().to_string(),
            "a request of 1048577 bytes; a request has at most 1048576 bytes"
        );
        let mut padded = r#"{"request":"show"}"#.to_owned();
        padded.push_str(&" ".repeat(MAX_REQUEST_BYTES - padded.len()));
        padded.push('\n');
        assert_eq!(Request::parse(&padded), Ok(Request::Show));
    }

    #[test]
    fn replies_have_data_or_a_reason() {
        let reply = Reply::ok(&[1, 2]);
        assert_eq!(reply.line(), "{\"reply\":\"ok\",\"data\":[1,2]}\n");
        assert_eq!(reply.clone().data(), Ok(vec![1, 2]));
        let error = reply.data::<String>().unwrap_err();
        assert!(error.starts_with("the reply has unexpected data: invalid type: sequence"));
        assert_eq!(Reply::done().data(), Ok(()));
        let refusal = Reply::error(&"there is no port `x`");
        let read: Reply = serde_json::from_str(&refusal.line()).unwrap();
        assert_eq!(read.data::<()>(), Err("there is no port `x`".to_owned()));
    }
}
