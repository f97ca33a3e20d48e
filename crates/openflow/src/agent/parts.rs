//! Replies, split into messages of at most 65,535 bytes.

use crate::message::{Header, Message};
use crate::multipart::{MORE_PARTS, Multipart, Reply};
use crate::wire::{Wire, Writer};

/// The largest message.
const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;

/// The bytes of a part before its items: the header, and type, flags and padding.
const PART_HEADER: usize = Header::BYTES + 8;

/// The items of a reply, split into messages.
pub(super) struct Parts {
    /// A part without items.
    empty: Message,
    xid: u32,
    bytes: Vec<u8>,
    /// The place of the last part.
    start: usize,
}

impl Parts {
    /// Returns a reply without items.
    pub(super) fn new(xid: u32, body: Reply) -> Parts {
        let empty = Multipart {
            is_more: false,
            body,
        };
        let mut parts = Parts {
            empty: Message::MultipartReply(empty),
            xid,
            bytes: Vec::new(),
            start: 0,
        };
        parts.begin();
        parts
    }

    fn begin(&mut self) {
        self.start = self.bytes.len();
        self.empty.write(self.xid, &mut self.bytes);
    }

    fn end(&mut self, is_more: bool) {
        let length = self.bytes.len() - self.start;
        let mut writer = Writer::new(&mut self.bytes);
        writer.set_length(self.start + 2, length);
        let flags = if is_more { MORE_PARTS } else { 0 };
        let flags_start = self.start + Header::BYTES + 2;
        self.bytes[flags_start..flags_start + 2].copy_from_slice(&flags.to_be_bytes());
    }

    /// Adds an item. Returns false if it is longer than a message can be; then it is left out.
    pub(super) fn push(&mut self, item: &impl Wire) -> bool {
        let before = self.bytes.len();
        Writer::new(&mut self.bytes).put(item);
        if self.bytes.len() - self.start <= MAX_MESSAGE_BYTES {
            return true;
        }
        let item = self.bytes.split_off(before);
        if PART_HEADER + item.len() > MAX_MESSAGE_BYTES {
            return false;
        }
        self.end(true);
        self.begin();
        self.bytes.extend(item);
        true
    }

    /// Returns the number of bytes of all parts.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of all parts. The last part says whether more parts follow.
    pub(super) fn finish(mut self, is_more: bool) -> Vec<u8> {
        self.end(is_more);
        self.bytes
    }
}
