//! A connection: bytes that arrive in any pieces become messages, after both ends have said
//! hello.
//!
//! Memory is bounded: a connection keeps the bytes of one message, and the bytes of the latest
//! call of [`receive`](Connection::receive).

use std::ops::Range;

use crate::fault::{Code, Fault};
use crate::message::{Header, Message};
use crate::switch::VERSION_1_3;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The other end has not said hello.
    New,
    /// Both ends have said hello.
    Open,
    /// A fault ended the connection.
    Closed,
}

/// An item that a connection received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Header, Message),
    /// A message that is refused. The connection goes on.
    Refused(Header, Fault),
    /// A message that ends the connection.
    Fatal(Header, Fault),
}

/// The most bytes of a refused message that the answer repeats. OpenFlow asks for at least 64.
const MAX_REPEATED_BYTES: usize = 128;

/// One end of a connection: it takes bytes and gives messages.
///
/// ```
/// use classyard_openflow::Message;
/// use classyard_openflow::connection::{Connection, Received};
/// use classyard_openflow::switch::Hello;
///
/// let mut connection = Connection::new();
/// let hello = Message::Hello(Hello::only_1_3()).to_bytes(1);
/// connection.receive(&hello[..5]);
/// assert_eq!(connection.next(), None);
/// connection.receive(&hello[5..]);
/// assert!(matches!(connection.next(), Some(Received::Message(_, Message::Hello(_)))));
/// assert!(connection.is_open());
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    bytes: Vec<u8>,
    /// The bytes at the front that have been taken.
    taken: usize,
    /// The bytes of the message that was taken last.
    last: Range<usize>,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection::new()
    }
}

impl Connection {
    /// Returns a connection that waits for a hello.
    #[must_use]
    pub fn new() -> Connection {
        Connection {
            state: State::New,
            bytes: Vec::new(),
            taken: 0,
            last: 0..0,
        }
    }

    /// Returns true if the other end has said hello and no fault has ended the connection.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns true if a fault has ended the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Takes bytes of the other end. Call [`next`](Self::next) until it returns `None` before
    /// the next bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.state == State::Closed {
            return;
        }
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.last = 0..0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message, or `None` if no message is complete.
    #[allow(clippy::should_implement_trait)] // an iterator would end at the first `None`
    pub fn next(&mut self) -> Option<Received> {
        if self.state == State::Closed {
            return None;
        }
        let untaken = &self.bytes[self.taken..];
        let header = Header::read(*untaken.first_chunk()?);
        let length = usize::from(header.length);
        if length < Header::BYTES {
            let message = format!("a message of length {length}; its header has 8 bytes");
            let fault = Fault::new(Code::BAD_LENGTH, message);
            self.take(Header::BYTES);
            return Some(self.close(header, fault));
        }
        let message = untaken.get(..length)?;
        let read = Message::read(message);
        self.take(length);
        if self.state == State::New {
            return Some(self.greet(header, read));
        }
        Some(match read {
            Ok((header, message)) => Received::Message(header, message),
            Err(fault) => Received::Refused(header, fault),
        })
    }

    fn take(&mut self, length: usize) {
        self.last = self.taken..self.taken + length;
        self.taken += length;
    }

    /// Returns the first bytes of the message that [`next`](Self::next) returned last, for an
    /// error message about it.
    #[must_use]
    pub fn first_bytes(&self) -> &[u8] {
        let last = &self.bytes[self.last.clone()];
        &last[..last.len().min(MAX_REPEATED_BYTES)]
    }

    /// Handles the first message, which must be a hello with a version in common.
    fn greet(&mut self, header: Header, read: Result<(Header, Message), Fault>) -> Received {
        let refusal = match read {
            Ok((_, Message::Hello(hello))) if hello.has_1_3(header.version) => {
                self.state = State::Open;
                return Received::Message(header, Message::Hello(hello));
            }
            Ok((_, Message::Hello(_))) => format!(
                "the other end has no OpenFlow 1.3 (version {VERSION_1_3}); its latest version \
                 is {}",
                header.version
            ),
            Ok((_, other)) => format!("{} before a hello", other.name()),
            Err(fault) => format!("no hello: {fault}"),
        };
        self.close(header, Fault::new(Code::HELLO_INCOMPATIBLE, refusal))
    }

    fn close(&mut self, header: Header, fault: Fault) -> Received {
        self.state = State::Closed;
        Received::Fatal(header, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multipart::Nothing;
    use crate::switch::Hello;

    fn hello() -> Vec<u8> {
        Message::Hello(Hello::only_1_3()).to_bytes(1)
    }

    #[test]
    fn messages_arrive_in_any_pieces() {
        let mut bytes = hello();
        for xid in 2..40 {
            Message::EchoRequest(vec![1; xid]).write(u32::try_from(xid).unwrap(), &mut bytes);
        }
        for piece in [1, 7, 8, 100, bytes.len()] {
            let mut connection = Connection::new();
            let mut xids = Vec::new();
            for part in bytes.chunks(piece) {
                connection.receive(part);
                while let Some(received) = connection.next() {
                    let Received::Message(header, _) = received else {
                        panic!("{received:?}");
                    };
                    xids.push(header.xid);
                }
            }
            assert_eq!(xids, (1..40).collect::<Vec<_>>(), "{piece}");
        }
    }

    #[test]
    fn a_bad_message_is_refused_and_the_next_one_read() {
        let mut connection = Connection::new();
        let mut bytes = hello();
        bytes.extend([4, 99, 0, 12, 0, 0, 0, 2, 1, 2, 3, 4]);
        Message::BarrierRequest(Nothing).write(3, &mut bytes);
        connection.receive(&bytes);
        assert!(matches!(connection.next(), Some(Received::Message(..))));
        let refused = connection.next();
        let Some(Received::Refused(header, fault)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((header.xid, fault.code), (2, Code::BAD_TYPE));
        assert_eq!(connection.first_bytes().len(), 12);
        assert!(matches!(
            connection.next(),
            Some(Received::Message(_, Message::BarrierRequest(_)))
        ));
    }

    #[test]
    fn faults_in_the_frame_or_the_hello_end_the_connection() {
        let old_only = Message::Hello(Hello {
            versions: Some(vec![1 << 1]),
        });
        let mut old_header = hello();
        old_header[0] = 1;
        old_header.truncate(8);
        old_header[3] = 8;
        let short = vec![4, 2, 0, 7, 0, 0, 0, 0];
        let cases = [
            old_only.to_bytes(1),
            old_header,
            Message::BarrierRequest(Nothing).to_bytes(1),
            short.clone(),
        ];
        for bytes in cases {
            let mut connection = Connection::new();
            connection.receive(&bytes);
            let received = connection.next();
            assert!(
                matches!(received, Some(Received::Fatal(..))),
                "{received:?}"
            );
            assert!(connection.is_closed());
            connection.receive(&hello());
            assert_eq!(connection.next(), None);
        }
        // A later version that has 1.3 too, by its bitmap or without one.
        for versions in [None, Some(vec![1 << 1 | 1 << 4 | 1 << 6])] {
            let mut bytes = Message::Hello(Hello { versions }).to_bytes(1);
            bytes[0] = 6;
            let mut connection = Connection::new();
            connection.receive(&bytes);
            assert!(matches!(connection.next(), Some(Received::Message(..))));
            connection.receive(&short);
            assert!(matches!(connection.next(), Some(Received::Fatal(..))));
        }
    }
}
