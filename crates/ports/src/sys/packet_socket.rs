//! Sockets that receive and send whole frames of an interface (AF_PACKET).

#![allow(unsafe_code)] // `rustix` has neither the addresses nor the messages of packet sockets.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use super::{options, tag};
use crate::ethernet::{TAG_BYTES, TYPE_PLACE};
use crate::virtio;

/// Bytes of frames that wait in a socket, if they are longer than a slot of its ring, and bytes
/// of frames that are being sent. Linux counts its own overhead, about as much again.
const SOCKET_BUFFER_BYTES: usize = 16 << 20;

/// Any positive threshold makes the kernel queue frames that are longer than a slot.
const COPY_THRESHOLD: libc::c_int = 1;

/// The bits of a group's number. The other bits are the kind of the group.
const GROUP_NUMBER_MASK: libc::c_int = 0xffff;

/// A socket that receives and sends whole frames.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket that receives nothing until [`bind`](Self::bind).
    pub(crate) fn open() -> io::Result<PacketSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        Ok(PacketSocket(socket))
    }

    /// Sets the options of all sockets of this crate: a virtio header in front of frames, no
    /// frames that this host sends, no traffic control for sent frames, tags of frames that are
    /// longer than a slot.
    pub(crate) fn set_options(&self) -> io::Result<()> {
        let yes: libc::c_int = 1;
        options::set(self, libc::PACKET_VNET_HDR, &yes)?;
        options::set(self, libc::PACKET_AUXDATA, &yes)?;
        options::set(self, libc::PACKET_COPY_THRESH, &COPY_THRESHOLD)?;
        options::set(self, libc::PACKET_QDISC_BYPASS, &yes)?;
        // Linux before 4.20 does not have it. Such frames are recognised by their kind as well.
        let _ = options::set(self, libc::PACKET_IGNORE_OUTGOING, &yes);
        // Without the capability, the limits of the system hold.
        if sockopt::set_socket_recv_buffer_size_force(self, SOCKET_BUFFER_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(self, SOCKET_BUFFER_BYTES)?;
        }
        if sockopt::set_socket_send_buffer_size_force(self, SOCKET_BUFFER_BYTES).is_err() {
            sockopt::set_socket_send_buffer_size(self, SOCKET_BUFFER_BYTES)?;
        }
        Ok(())
    }

    /// Receives all frames of an interface from now on.
    pub(crate) fn bind(&self, interface: u32) -> io::Result<()> {
        let every = u16::try_from(libc::ETH_P_ALL).unwrap_or_default();
        let address = libc::sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).unwrap_or_default(),
            sll_protocol: every.to_be(),
            sll_ifindex: index_of(interface)?,
            ..NO_ADDRESS
        };
        // SAFETY: the descriptor is open, and the kernel reads an address of this size.
        let result = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                ADDRESS_BYTES,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Receives frames to other addresses as well, while the socket is open.
    pub(crate) fn make_promiscuous(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: index_of(interface)?,
            mr_type: libc::c_ushort::try_from(libc::PACKET_MR_PROMISC).unwrap_or_default(),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        options::set(self, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Joins a group of sockets that share the frames of an interface by their flows. Without a
    /// group, founds one. Returns the group.
    pub(crate) fn share(&self, group: Option<u16>) -> io::Result<u16> {
        let hash = libc::PACKET_FANOUT_HASH;
        let ignore_outgoing = libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let found = libc::PACKET_FANOUT_FLAG_UNIQUEID;
        let kind = if group.is_some() { hash } else { hash | found };
        let join = |kind: libc::c_uint| {
            let value = kind << 16 | u32::from(group.unwrap_or(0));
            options::set(self, libc::PACKET_FANOUT, &value.cast_signed())
        };
        // Linux before 5.16 does not have the flag.
        match join(kind | ignore_outgoing) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => join(kind)?,
            result => result?,
        }
        let joined = options::get(self, libc::PACKET_FANOUT, 0)? & GROUP_NUMBER_MASK;
        Ok(u16::try_from(joined).unwrap_or_default())
    }

    /// Returns the number of frames that the kernel dropped since the last call.
    pub(crate) fn drops(&self) -> io::Result<u32> {
        let none = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        Ok(options::get(self, libc::PACKET_STATISTICS, none)?.tp_drops)
    }

    /// Returns an error that the kernel has noted for the socket, and removes it.
    pub(crate) fn take_error(&self) -> io::Result<()> {
        Ok(sockopt::socket_error(self)??)
    }

    /// True if the socket's interface has vanished.
    pub(crate) fn has_lost_interface(&self) -> bool {
        let mut address = NO_ADDRESS;
        let mut bytes = ADDRESS_BYTES;
        // SAFETY: the kernel writes at most `bytes` bytes of the address.
        let result = unsafe {
            libc::getsockname(
                self.0.as_raw_fd(),
                std::ptr::from_mut(&mut address).cast(),
                &raw mut bytes,
            )
        };
        result == 0 && address.sll_ifindex < 0
    }

    /// Receives the next of the frames that are longer than a slot. Returns `None` if there is
    /// none.
    pub(crate) fn receive<'b>(&self, buffer: &'b mut LongFrame) -> io::Result<Option<Long<'b>>> {
        let (first, rest) = buffer.bytes.split_at_mut(TAG_BYTES + TYPE_PLACE);
        let mut header = virtio::Header::default();
        let mut parts = [part(&mut header), part(&mut first[TAG_BYTES..]), part(rest)];
        let mut address = NO_ADDRESS;
        let mut control = Control([0; CONTROL_BYTES]);
        // SAFETY: zeros are an empty message: null pointers with length 0.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_name = std::ptr::from_mut(&mut address).cast();
        message.msg_namelen = ADDRESS_BYTES;
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the message has three parts, an address and a buffer for control messages, of
        // the lengths that it says; all outlive the call.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
        let Ok(received) = usize::try_from(received) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            };
        };
        // SAFETY: the kernel has filled the message and the buffer of its control messages.
        let tag = unsafe { tag_of(&message) };
        let length = received.saturating_sub(virtio::HEADER_BYTES);
        let is_cut_off = length > buffer.bytes.len() - TAG_BYTES;
        let start = match tag {
            // The tag goes between the addresses and the type.
            Some(tag) => {
                buffer
                    .bytes
                    .copy_within(TAG_BYTES..TAG_BYTES + TYPE_PLACE, 0);
                buffer.bytes[TYPE_PLACE..TYPE_PLACE + TAG_BYTES].copy_from_slice(&tag);
                0
            }
            None => TAG_BYTES,
        };
        let frame = buffer.bytes.get(start..TAG_BYTES + length);
        Ok(Some(Long {
            header,
            frame: frame.filter(|_| !is_cut_off),
            tag_bytes: if tag.is_some() { TAG_BYTES } else { 0 },
            is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
        }))
    }

    /// Sends frames, each with its virtio header in front. Returns the number of frames that
    /// the kernel took. An error concerns the first frame.
    pub(crate) fn send<'f>(
        &self,
        buffers: &mut SendBuffers,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> io::Result<usize> {
        buffers.parts.clear();
        buffers.parts.extend(frames.map(|frame| libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        }));
        let count = buffers.parts.len();
        buffers.messages.clear();
        let messages = buffers.parts.iter_mut().map(|part| {
            // SAFETY: zeros are an empty message: null pointers with length 0.
            let mut message: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
            message.msg_hdr.msg_iov = std::ptr::from_mut(part);
            message.msg_hdr.msg_iovlen = 1;
            message
        });
        buffers.messages.extend(messages);
        // SAFETY: there are `count` messages of one part each. The kernel reads the frames,
        // which are borrowed until after the call.
        let sent = unsafe {
            libc::sendmmsg(
                self.0.as_raw_fd(),
                buffers.messages.as_mut_ptr(),
                libc::c_uint::try_from(count).unwrap_or(0),
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A frame that is longer than a slot.
#[derive(Debug)]
pub(crate) struct Long<'b> {
    /// The header in front of the frame.
    pub(crate) header: virtio::Header,
    /// The frame with its tag, or `None` if it is longer than the buffer.
    pub(crate) frame: Option<&'b [u8]>,
    /// The bytes of the tag that was put back.
    pub(crate) tag_bytes: usize,
    /// True if this host sent the frame.
    pub(crate) is_outgoing: bool,
}

/// A buffer for one frame of any length.
#[derive(Debug)]
pub(crate) struct LongFrame {
    /// Room for a tag, then the frame.
    bytes: Box<[u8]>,
}

impl LongFrame {
    /// Returns a buffer for frames of up to `frame_bytes`.
    pub(crate) fn new(frame_bytes: usize) -> LongFrame {
        LongFrame {
            bytes: vec![0; TAG_BYTES + frame_bytes].into(),
        }
    }
}

/// Buffers of the messages of one system call.
#[derive(Debug, Default)]
pub(crate) struct SendBuffers {
    messages: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
}

// SAFETY: the pointers are only read by the system call in `PacketSocket::send`, which writes
// them before. Between calls they have no meaning.
unsafe impl Send for SendBuffers {}

/// The bytes of an address.
#[allow(clippy::cast_possible_truncation)] // 20 bytes
const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

const NO_ADDRESS: libc::sockaddr_ll = libc::sockaddr_ll {
    sll_family: 0,
    sll_protocol: 0,
    sll_ifindex: 0,
    sll_hatype: 0,
    sll_pkttype: 0,
    sll_halen: 0,
    sll_addr: [0; 8],
};

/// Bytes for control messages. The message with a tag takes 40 bytes.
const CONTROL_BYTES: usize = 128;

/// A buffer with the alignment of control messages.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Returns a part of a message.
fn part(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

/// Returns the index of an interface as packet sockets have it.
fn index_of(interface: u32) -> io::Result<libc::c_int> {
    libc::c_int::try_from(interface).map_err(|_| Errno::NODEV.into())
}

/// Returns the tag that the kernel took out of a frame.
///
/// # Safety
/// A system call must have filled the message, and its control messages must be there.
unsafe fn tag_of(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: the kernel has written the length of the control messages.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !control.is_null() {
        // SAFETY: the pointer is to the header of a control message in the buffer.
        let header = unsafe { &*control };
        let is_whole = header.cmsg_len as usize
            >= size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>();
        if header.cmsg_level == libc::SOL_PACKET
            && header.cmsg_type == libc::PACKET_AUXDATA
            && is_whole
        {
            // SAFETY: the message has the bytes of the structure; all bytes are valid numbers.
            let data = unsafe {
                libc::CMSG_DATA(control)
                    .cast::<libc::tpacket_auxdata>()
                    .read_unaligned()
            };
            return tag::read(data.tp_status, data.tp_vlan_tpid, data.tp_vlan_tci);
        }
        // SAFETY: as for the first one.
        control = unsafe { libc::CMSG_NXTHDR(message, control) };
    }
    None
}
