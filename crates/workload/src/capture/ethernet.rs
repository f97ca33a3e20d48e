//! Conversion of frames of other link types to Ethernet frames, for programs that
//! accept only Ethernet, such as a datapath.
//!
//! | link type | destination | source | type |
//! |---|---|---|---|
//! | Ethernet | of the frame | of the frame | of the frame |
//! | raw IP | 0 | 0 | IPv4 or IPv6, by the version |
//! | raw IPv4, raw IPv6 | 0 | 0 | IPv4, IPv6 |
//! | BSD and OpenBSD loopback | 0 | 0 | IPv4 or IPv6, by the address family |
//! | Linux cooked, versions 1 and 2 | 0 | the sender's if it is an Ethernet address, else 0 | the protocol; for an IEEE 802.3 frame its captured length |
//!
//! [`parse`](crate::packet::parse) returns the same fields for the converted frame as
//! for the original frame.

use std::borrow::Cow;

use thiserror::Error;

use crate::packet::cooked::Cooked;
use crate::packet::{LinkType, ethernet, loopback};

/// A reason why a frame of another link type cannot get an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
#[non_exhaustive]
pub enum NoEthernetFrame {
    /// Frames of this link type are not supported.
    #[error("the link type is not supported")]
    UnknownLink,
    /// The frame ends inside its link header, or is empty.
    #[error("the frame ends inside its link header")]
    Truncated,
    /// According to the link header or the IP version, something other than a packet
    /// with an Ethernet type follows.
    #[error("what follows the link header has no Ethernet type")]
    NoType,
}

/// Returns a captured frame as an Ethernet frame. An Ethernet frame is returned
/// unchanged. In any other frame, a synthetic Ethernet header replaces the link header.
///
/// ```
/// use classyard_workload::capture::ethernet_frame;
/// use classyard_workload::packet::LinkType;
///
/// let packet = [0x45, 0, 0, 20];
/// let frame = ethernet_frame(&packet, LinkType::RawIp)?;
/// assert_eq!(frame[12..], [0x08, 0x00, 0x45, 0, 0, 20]);
/// # Ok::<(), classyard_workload::capture::NoEthernetFrame>(())
/// ```
///
/// # Errors
/// [`NoEthernetFrame`] if the link type is not supported, the link header is cut off,
/// or what follows it has no Ethernet type.
pub fn ethernet_frame(frame: &[u8], link: LinkType) -> Result<Cow<'_, [u8]>, NoEthernetFrame> {
    let (source, kind, packet) = match link {
        LinkType::Ethernet => return Ok(Cow::Borrowed(frame)),
        LinkType::RawIp => (0, version(frame)?, frame),
        LinkType::Ipv4 | LinkType::Ipv6 if frame.is_empty() => {
            return Err(NoEthernetFrame::Truncated);
        }
        LinkType::Ipv4 => (0, ethernet::IPV4, frame),
        LinkType::Ipv6 => (0, ethernet::IPV6, frame),
        LinkType::Null | LinkType::Loopback => {
            let (family, packet) =
                loopback::split(frame, link).ok_or(NoEthernetFrame::Truncated)?;
            (0, family_type(family)?, packet)
        }
        LinkType::LinuxCooked => cooked(Cooked::split_v1(frame))?,
        LinkType::LinuxCooked2 => cooked(Cooked::split_v2(frame))?,
        LinkType::Other(_) => return Err(NoEthernetFrame::UnknownLink),
    };
    let mut new_frame = Vec::with_capacity(ethernet::HEADER_BYTES + packet.len());
    new_frame.extend([0; 6]);
    new_frame.extend(&u64::to_be_bytes(source)[2..]);
    new_frame.extend(kind.to_be_bytes());
    new_frame.extend(packet);
    Ok(Cow::Owned(new_frame))
}

fn version(frame: &[u8]) -> Result<u16, NoEthernetFrame> {
    match frame.first().map(|byte| byte >> 4) {
        Some(4) => Ok(ethernet::IPV4),
        Some(6) => Ok(ethernet::IPV6),
        Some(_) => Err(NoEthernetFrame::NoType),
        None => Err(NoEthernetFrame::Truncated),
    }
}

fn family_type(family: u32) -> Result<u16, NoEthernetFrame> {
    match family {
        family if loopback::is_ipv4(family) => Ok(ethernet::IPV4),
        family if loopback::is_ipv6(family) => Ok(ethernet::IPV6),
        _ => Err(NoEthernetFrame::NoType),
    }
}

/// Returns source address, type and packet of a cooked frame.
fn cooked(header: Option<(Cooked, &[u8])>) -> Result<(u64, u16, &[u8]), NoEthernetFrame> {
    let (header, packet) = header.ok_or(NoEthernetFrame::Truncated)?;
    let kind = match header.protocol {
        // An IEEE 802.3 frame without LLC starts with these bytes. Any other content
        // would be parsed as LLC.
        Some(1) if !packet.starts_with(&[0xff, 0xff]) => None,
        // IEEE 802.3 frames have their length in place of a type.
        Some(1 | 4) => {
            let length = u16::try_from(packet.len()).ok();
            length.filter(|&length| length < ethernet::LEAST)
        }
        protocol => protocol.filter(|&kind| kind >= ethernet::LEAST),
    };
    let kind = kind.ok_or(NoEthernetFrame::NoType)?;
    Ok((header.source.unwrap_or(0), kind, packet))
}
