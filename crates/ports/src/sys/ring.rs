//! Memory that a packet socket shares with the kernel: a ring of slots, each for one frame
//! (TPACKET_V2).
//!
//! ```text
//! slot  header (status, lengths, places, tag) │ address │ … │ virtio header │ frame
//! ```
//! A slot belongs to the kernel while its status is 0. The kernel fills the slots in order, and
//! sets the status last. Then the slot belongs to this program, until it sets the status to 0.

#![allow(unsafe_code)] // Memory that the kernel writes.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::options;
use super::packet_socket::PacketSocket;
use super::tag;
use crate::ethernet::TAG_BYTES;
use crate::virtio;

/// The memory of a ring is allocated in blocks. A block has a whole number of slots.
const BLOCK_BYTES: usize = 1 << 16;

/// The least and the greatest bytes of a slot.
const MIN_SLOT_BYTES: usize = 1 << 11;
const MAX_SLOT_BYTES: usize = 1 << 14;

/// Bytes of a slot in front of the frame, at most: headers and alignment.
const SLOT_HEADER_BYTES: usize = 128;

/// The place of the kind of a frame in its address, after the header of the slot.
const KIND_PLACE: usize = 32 + 10;

/// Slots that a packet socket shares with the kernel.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: *mut u8,
    bytes: usize,
    slot_bytes: usize,
    /// The place of the next slot.
    next: usize,
}

// SAFETY: the memory has no other user in this program, and any thread may read it.
unsafe impl Send for Ring {}

impl Ring {
    /// Gives a socket a ring of at most `bytes`, with slots for frames of up to `frame_bytes`
    /// if these are not longer than a slot may be. Takes less memory if the system refuses.
    pub(crate) fn open(
        socket: &PacketSocket,
        bytes: usize,
        frame_bytes: usize,
    ) -> io::Result<Ring> {
        let version: libc::c_int = libc::tpacket_versions::TPACKET_V2 as _;
        options::set(socket, libc::PACKET_VERSION, &version)?;
        let slot_bytes = slot_bytes(frame_bytes);
        let mut blocks = (bytes / BLOCK_BYTES).max(1);
        loop {
            let number = |value: usize| libc::c_uint::try_from(value).unwrap_or(0);
            let request = libc::tpacket_req {
                tp_block_size: number(BLOCK_BYTES),
                tp_block_nr: number(blocks),
                tp_frame_size: number(slot_bytes),
                tp_frame_nr: number(blocks * (BLOCK_BYTES / slot_bytes)),
            };
            match options::set(socket, libc::PACKET_RX_RING, &request) {
                Ok(()) => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && blocks > 1 => {
                    blocks /= 2;
                }
                Err(error) => return Err(error),
            }
        }
        let bytes = blocks * BLOCK_BYTES;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                socket.as_fd(),
                0,
            )?
        };
        Ok(Ring {
            memory: memory.cast(),
            bytes,
            slot_bytes,
            next: 0,
        })
    }

    /// Returns the next frame, or `None` if no frame has arrived.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Slot<'_>> {
        // SAFETY: `next` is the place of a slot.
        let start = unsafe { self.memory.add(self.next) };
        // SAFETY: a slot begins with its status, which is aligned as the slot is. Both sides
        // only use it atomically.
        let status = unsafe { AtomicU32::from_ptr(start.cast()) }.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot belongs to this program, as its status says, and the kernel wrote
        // the header before the status. All bytes are valid numbers.
        let header = unsafe { start.cast::<libc::tpacket2_hdr>().read() };
        Some(Slot {
            ring: self,
            header,
            status,
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory is mapped with these bytes, and no slot is borrowed.
        let result = unsafe { munmap(self.memory.cast(), self.bytes) };
        debug_assert!(result.is_ok(), "the memory is mapped");
    }
}

/// A slot with a frame. The slot is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot<'r> {
    ring: &'r mut Ring,
    header: libc::tpacket2_hdr,
    status: u32,
}

impl Slot<'_> {
    /// Returns all bytes of the slot.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the slot is inside of the memory and belongs to this program while `self`
        // lives, so the kernel does not write it.
        unsafe {
            let start = self.ring.memory.add(self.ring.next);
            std::slice::from_raw_parts(start, self.ring.slot_bytes)
        }
    }

    /// True if the frame is longer than the slot and waits in the socket.
    pub(crate) fn is_in_socket(&self) -> bool {
        self.status & libc::TP_STATUS_COPY != 0
    }

    /// True if the frame is longer than the bytes that are here.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.header.tp_len > self.header.tp_snaplen
    }

    /// True if this host sent the frame.
    pub(crate) fn is_outgoing(&self) -> bool {
        self.bytes()[KIND_PLACE] == libc::PACKET_OUTGOING
    }

    /// Returns the tag that the kernel took out of the frame.
    pub(crate) fn tag(&self) -> Option<[u8; TAG_BYTES]> {
        let header = &self.header;
        tag::read(self.status, header.tp_vlan_tpid, header.tp_vlan_tci)
    }

    /// Returns the virtio header and the frame, or `None` if their places are not in the slot.
    pub(crate) fn frame(&self) -> Option<(virtio::Header, &[u8])> {
        let start = usize::from(self.header.tp_mac);
        let length = self.header.tp_snaplen as usize;
        let (before, rest) = self.bytes().split_at_checked(start)?;
        Some((*before.last_chunk()?, rest.get(..length)?))
    }
}

impl Drop for Slot<'_> {
    #[inline]
    fn drop(&mut self) {
        let ring = &mut *self.ring;
        // SAFETY: the status of the slot, as in `Ring::next`. All reads of the slot are before
        // this store.
        let status = unsafe { AtomicU32::from_ptr(ring.memory.add(ring.next).cast()) };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        ring.next += ring.slot_bytes;
        if ring.next == ring.bytes {
            ring.next = 0;
        }
    }
}

/// Returns the bytes of a slot for frames of a length: a power of two.
fn slot_bytes(frame_bytes: usize) -> usize {
    let bytes = (frame_bytes + SLOT_HEADER_BYTES).next_power_of_two();
    if bytes > MAX_SLOT_BYTES {
        return MIN_SLOT_BYTES;
    }
    bytes.max(MIN_SLOT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_long_as_frames_need_within_limits() {
        for (frame_bytes, expected) in [
            (60, 2_048),
            (1_518, 2_048),
            (1_920, 2_048),
            (1_921, 4_096),
            (9_018, 16_384),
            (65_550, 2_048),
        ] {
            assert_eq!(slot_bytes(frame_bytes), expected, "{frame_bytes}");
            assert_eq!(BLOCK_BYTES % expected, 0);
        }
    }
}
