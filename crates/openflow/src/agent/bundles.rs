//! The open bundles of a session (ONF extension 230).

use std::collections::BTreeMap;

use crate::bundle::{BundleAdd, BundleControl, BundleStep, flag};
use crate::fault::{Code, Fault};
use crate::message::{Header, Message};

/// Maximum number of bundles of a session.
pub const MAX_BUNDLES: usize = 16;

/// Maximum number of bytes of the messages in the bundles of a session. A message counts with
/// at least 256 bytes, about its size in memory.
pub const MAX_BUNDLE_BYTES: usize = 256 << 20;

/// Bytes that a short message counts for.
const LEAST_MESSAGE_BYTES: usize = 256;

/// A message in a bundle: its transaction number, its first bytes for an error, and itself.
pub(super) struct Member {
    pub(super) xid: u32,
    pub(super) first: Vec<u8>,
    pub(super) message: Message,
}

/// The most first bytes of a message that are kept for an error.
const MAX_FIRST_BYTES: usize = 64;

#[derive(Default)]
struct Bundle {
    flags: u16,
    is_closed: bool,
    bytes: usize,
    members: Vec<Member>,
}

/// The bundles of a session, by their numbers.
#[derive(Default)]
pub(super) struct Bundles {
    open: BTreeMap<u32, Bundle>,
    bytes: usize,
}

/// The result of a control message.
pub(super) enum Outcome {
    /// The answer.
    Reply(BundleControl),
    /// The messages to carry out before the answer.
    Commit(BundleControl, Vec<Member>),
}

impl Bundles {
    /// Carries out a control message.
    pub(super) fn control(&mut self, request: &BundleControl) -> Result<Outcome, Fault> {
        let id = request.bundle;
        let reply = |step| BundleControl {
            bundle: id,
            step,
            flags: request.flags,
            properties: Vec::new(),
        };
        match request.step {
            BundleStep::OpenRequest => {
                self.open(id, request.flags)?;
                Ok(Outcome::Reply(reply(BundleStep::OpenReply)))
            }
            BundleStep::CloseRequest => {
                let bundle = self.get(id, request.flags)?;
                if bundle.is_closed {
                    return Err(closed(id));
                }
                bundle.is_closed = true;
                Ok(Outcome::Reply(reply(BundleStep::CloseReply)))
            }
            BundleStep::CommitRequest => {
                self.get(id, request.flags)?;
                let members = self.remove(id);
                Ok(Outcome::Commit(reply(BundleStep::CommitReply), members))
            }
            BundleStep::DiscardRequest => {
                if !self.open.contains_key(&id) {
                    return Err(unknown(id));
                }
                self.remove(id);
                Ok(Outcome::Reply(reply(BundleStep::DiscardReply)))
            }
            BundleStep::OpenReply
            | BundleStep::CloseReply
            | BundleStep::CommitReply
            | BundleStep::DiscardReply => {
                let message = "a reply about a bundle; only a switch sends these";
                Err(Fault::new(Code::BUNDLE_BAD_TYPE, message))
            }
        }
    }

    fn open(&mut self, id: u32, flags: u16) -> Result<(), Fault> {
        if self.open.contains_key(&id) {
            let message = format!("bundle {id} is open already");
            return Err(Fault::new(Code::BUNDLE_EXISTS, message));
        }
        if flags & !(flag::ATOMIC | flag::ORDERED) != 0 {
            let message = format!("flags {flags:#06x}; bundles have 0x0001 and 0x0002");
            return Err(Fault::new(Code::BUNDLE_BAD_FLAGS, message));
        }
        if self.open.len() == MAX_BUNDLES {
            let message = format!("{MAX_BUNDLES} bundles are open, and no more can be");
            return Err(Fault::new(Code::OUT_OF_BUNDLES, message));
        }
        let bundle = Bundle {
            flags,
            ..Bundle::default()
        };
        self.open.insert(id, bundle);
        Ok(())
    }

    /// Returns an open bundle. Its flags must be the same in all messages about it.
    fn get(&mut self, id: u32, flags: u16) -> Result<&mut Bundle, Fault> {
        let Some(bundle) = self.open.get_mut(&id) else {
            return Err(unknown(id));
        };
        if bundle.flags != flags {
            let message = format!(
                "flags {flags:#06x}; bundle {id} was opened with {:#06x}",
                bundle.flags
            );
            return Err(Fault::new(Code::BUNDLE_BAD_FLAGS, message));
        }
        Ok(bundle)
    }

    fn remove(&mut self, id: u32) -> Vec<Member> {
        let bundle = self.open.remove(&id).unwrap_or_default();
        self.bytes -= bundle.bytes;
        bundle.members
    }

    /// Adds a message. `xid` is the transaction number of the message about the bundle.
    /// A bundle that does not exist is opened, as the extension allows.
    pub(super) fn add(&mut self, xid: u32, add: &BundleAdd) -> Result<(), Fault> {
        let id = add.bundle;
        let length = add.message.first_chunk().map(|first| Header::read(*first));
        let Some(length) = length.map(|header| usize::from(header.length)) else {
            let message = format!("a message of {} bytes in a bundle", add.message.len());
            return Err(Fault::new(Code::BUNDLE_MESSAGE_BAD_LENGTH, message));
        };
        let Some(bytes) = add.message.get(..length) else {
            let message = format!(
                "a message of length {length} in {} bytes",
                add.message.len()
            );
            return Err(Fault::new(Code::BUNDLE_MESSAGE_BAD_LENGTH, message));
        };
        let (header, message) = Message::read(bytes)?;
        if header.xid != xid {
            let message = format!(
                "transaction {} in a message of transaction {xid}",
                header.xid
            );
            return Err(Fault::new(Code::BUNDLE_MESSAGE_BAD_XID, message));
        }
        if !is_allowed(&message) {
            let message = format!("{} in a bundle", message.name());
            return Err(Fault::new(Code::BUNDLE_MESSAGE_UNSUPPORTED, message));
        }
        let counted = length.max(LEAST_MESSAGE_BYTES);
        if self.bytes + counted > MAX_BUNDLE_BYTES {
            let message =
                format!("the bundles of a connection have {MAX_BUNDLE_BYTES} bytes at most");
            return Err(Fault::new(Code::BUNDLE_TOO_MANY_MESSAGES, message));
        }
        if !self.open.contains_key(&id) {
            self.open(id, add.flags)?;
        }
        let bundle = self.get(id, add.flags)?;
        if bundle.is_closed {
            return Err(closed(id));
        }
        bundle.bytes += counted;
        bundle.members.push(Member {
            xid,
            first: bytes[..length.min(MAX_FIRST_BYTES)].to_vec(),
            message,
        });
        self.bytes += counted;
        Ok(())
    }
}

/// True for messages that change the pipeline.
fn is_allowed(message: &Message) -> bool {
    matches!(
        message,
        Message::FlowMod(_) | Message::GroupMod(_) | Message::MeterMod(_)
    )
}

fn unknown(id: u32) -> Fault {
    Fault::new(Code::BUNDLE_BAD_ID, format!("there is no bundle {id}"))
}

fn closed(id: u32) -> Fault {
    Fault::new(Code::BUNDLE_CLOSED, format!("bundle {id} is closed"))
}
