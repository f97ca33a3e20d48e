//! Ethernet headers.
//!
//! [`Ethernet::split`] is the only check. The view it returns holds exactly
//! the 14 bytes of the header, so none of its methods can fail.

/// The EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// The EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// The EtherType of RARP, whose packets have the format of ARP.
pub const RARP: u16 = 0x8035;
/// The EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// The EtherType of MPLS.
pub const MPLS: u16 = 0x8847;
/// The EtherType of PPPoE sessions.
pub const PPPOE_SESSION: u16 = 0x8864;
/// The EtherType of MPLS with an upstream-assigned label.
pub const MPLS_UPSTREAM: u16 = 0x8848;
/// The smallest EtherType; smaller values are IEEE 802.3 frame lengths.
pub const LEAST: u16 = 0x0600;
/// The type that OpenFlow uses for an IEEE 802.3 frame without a type.
pub const NO_TYPE: u16 = 0x05ff;

/// The length of an Ethernet header.
pub const HEADER_BYTES: usize = 14;

/// A view of the header of an Ethernet frame.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet<'a>(&'a [u8; HEADER_BYTES]);

impl<'a> Ethernet<'a> {
    /// Splits off the header and returns it with the bytes after it; `None` if the
    /// frame is too short.
    #[inline]
    #[must_use]
    pub fn split(frame: &'a [u8]) -> Option<(Ethernet<'a>, &'a [u8])> {
        let (header, rest) = frame.split_first_chunk()?;
        Some((Ethernet(header), rest))
    }

    /// Returns the destination address, in the low 48 bits.
    #[inline]
    #[must_use]
    pub fn destination(self) -> u64 {
        let [a, b, c, d, e, f, ..] = *self.0;
        mac([a, b, c, d, e, f])
    }

    /// Returns the source address, in the low 48 bits.
    #[inline]
    #[must_use]
    pub fn source(self) -> u64 {
        let [_, _, _, _, _, _, a, b, c, d, e, f, _, _] = *self.0;
        mac([a, b, c, d, e, f])
    }

    /// Returns the type; below [`LEAST`] it is the frame's length instead.
    #[inline]
    #[must_use]
    pub fn ethertype(self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }
}

/// Returns an Ethernet address as a number.
#[inline]
#[must_use]
pub fn mac(bytes: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_and_type() {
        let frame = [
            1, 2, 3, 4, 5, 6, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf, 0x86, 0xdd, 9,
        ];
        let (header, rest) = Ethernet::split(&frame).unwrap();
        assert_eq!(header.destination(), 0x0102_0304_0506);
        assert_eq!(header.source(), 0x0a0b_0c0d_0e0f);
        assert_eq!(header.ethertype(), IPV6);
        assert_eq!(rest, [9]);
        assert!(Ethernet::split(&frame[..13]).is_none());
    }
}
