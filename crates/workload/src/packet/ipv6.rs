//! IPv6 headers (RFC 8200).
//!
//! [`Ipv6::split`] is the only check. The view it returns holds exactly the 40
//! bytes of the header, so none of its methods can fail.

use super::{Anomaly, extension, icmp, sctp, tcp, udp};

/// The length of the header.
pub const HEADER_BYTES: usize = 40;

/// A view of an IPv6 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a>(&'a [u8; HEADER_BYTES]);

impl<'a> Ipv6<'a> {
    /// Splits off the header and returns it with the bytes after it.
    ///
    /// # Errors
    /// [`Anomaly::TruncatedIpv6`] or [`Anomaly::BadIpv6Version`].
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<(Ipv6<'a>, &'a [u8]), Anomaly> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Anomaly::TruncatedIpv6);
        };
        if header[0] >> 4 == 6 {
            Ok((Ipv6(header), rest))
        } else {
            Err(Anomaly::BadIpv6Version)
        }
    }

    /// Returns the differentiated services code point, 6 bits.
    #[inline]
    #[must_use]
    pub fn dscp(self) -> u8 {
        ((self.0[0] & 0x0f) << 2) | (self.0[1] >> 6)
    }

    /// Returns the payload length field: the bytes after this header.
    #[inline]
    #[must_use]
    pub fn payload_length(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// Returns the protocol of what follows the header.
    #[inline]
    #[must_use]
    pub fn next_header(self) -> u8 {
        self.0[6]
    }

    /// Returns the source address.
    #[inline]
    #[must_use]
    pub fn source(self) -> u128 {
        let (_, from) = self.0.split_at(8);
        from.first_chunk().map_or(0, |&b| u128::from_be_bytes(b))
    }

    /// Returns the destination address.
    #[inline]
    #[must_use]
    pub fn destination(self) -> u128 {
        self.0.last_chunk().map_or(0, |&b| u128::from_be_bytes(b))
    }

    /// Returns the captured part of the payload without link padding, and the anomaly
    /// of its length, if any. `rest` is the remainder that [`Ipv6::split`] returned.
    ///
    /// The option of a jumbogram (RFC 2675) gives its length. Any other length of 0 in
    /// front of a header that cannot be empty stands for a segment too long for the
    /// field: all of `rest` is its payload.
    #[inline]
    #[must_use]
    pub fn payload(self, rest: &'a [u8]) -> (&'a [u8], Option<Anomaly>) {
        let mut length = usize::from(self.payload_length());
        if length == 0 && !rest.is_empty() && cannot_be_empty(self.next_header()) {
            match self.jumbo_length(rest) {
                Some(jumbo) => length = jumbo,
                None => return (rest, Some(Anomaly::ZeroLength)),
            }
        }
        match rest.get(..length) {
            Some(payload) => (payload, None),
            None => (rest, Some(Anomaly::PayloadCut)),
        }
    }

    /// Returns the length of a jumbogram; `None` if the packet is not a jumbogram.
    fn jumbo_length(self, rest: &[u8]) -> Option<usize> {
        match self.next_header() {
            extension::HOP_BY_HOP => extension::jumbo_length(rest),
            _ => None,
        }
    }
}

/// True if headers of this protocol have at least one byte.
fn cannot_be_empty(protocol: u8) -> bool {
    matches!(
        protocol,
        tcp::PROTOCOL | udp::PROTOCOL | sctp::PROTOCOL | icmp::PROTOCOL_V6
    ) || extension::is_extension(protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_header() {
        let mut packet = [0; 43];
        packet[..8].copy_from_slice(&[0x6b, 0x80, 0, 0, 0, 2, 59, 64]);
        packet[8..24].copy_from_slice(&0x2001_0db8_u128.to_be_bytes());
        packet[24..40].copy_from_slice(&u128::MAX.to_be_bytes());
        let (ip, rest) = Ipv6::split(&packet).unwrap();
        assert_eq!((ip.dscp(), ip.next_header()), (46, 59));
        assert_eq!((ip.source(), ip.destination()), (0x2001_0db8, u128::MAX));
        assert_eq!(ip.payload(rest), (&[0, 0][..], None));
        assert_eq!(ip.payload(&rest[..1]).1, Some(Anomaly::PayloadCut));
        assert_eq!(
            Ipv6::split(&packet[..39]).unwrap_err(),
            Anomaly::TruncatedIpv6
        );
        packet[5] = 0;
        packet[6] = 6;
        let (ip, rest) = Ipv6::split(&packet).unwrap();
        assert_eq!(ip.payload(rest), (rest, Some(Anomaly::ZeroLength)));
        packet[0] = 0x45;
        assert_eq!(Ipv6::split(&packet).unwrap_err(), Anomaly::BadIpv6Version);
    }
}
