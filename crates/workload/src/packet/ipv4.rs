//! IPv4 headers (RFC 791).
//!
//! [`Ipv4::split`] checks that the 20 fixed bytes are present, that the version is 4
//! and that the header length is possible. The view it returns holds exactly these
//! bytes, so none of its getters can fail. [`Ipv4::payload`] checks the rest: options
//! and total length.

use super::{Anomaly, Fragment};

/// The length of a header without options.
pub const HEADER_BYTES: usize = 20;

/// A view of the fixed part of an IPv4 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a>(&'a [u8; HEADER_BYTES]);

impl<'a> Ipv4<'a> {
    /// Splits off the fixed part of the header and returns it with the bytes after it.
    ///
    /// # Errors
    /// [`Anomaly::TruncatedIpv4`], [`Anomaly::BadIpv4Version`] or
    /// [`Anomaly::BadIhl`].
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<(Ipv4<'a>, &'a [u8]), Anomaly> {
        let Some((header, rest)) = bytes.split_first_chunk() else {
            return Err(Anomaly::TruncatedIpv4);
        };
        let view = Ipv4(header);
        if view.version() != 4 {
            return Err(Anomaly::BadIpv4Version);
        }
        if view.header_length() < HEADER_BYTES {
            return Err(Anomaly::BadIhl);
        }
        Ok((view, rest))
    }

    fn version(self) -> u8 {
        self.0[0] >> 4
    }

    /// Returns the length of the header with its options, 20 to 60 bytes.
    #[inline]
    #[must_use]
    pub fn header_length(self) -> usize {
        usize::from(self.0[0] & 0x0f) * 4
    }

    /// Returns the differentiated services code point, 6 bits.
    #[inline]
    #[must_use]
    pub fn dscp(self) -> u8 {
        self.0[1] >> 2
    }

    /// Returns the total length field: the bytes of header and payload together.
    #[inline]
    #[must_use]
    pub fn total_length(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// True if more fragments follow.
    #[inline]
    #[must_use]
    pub fn more_fragments(self) -> bool {
        self.0[6] & 0x20 != 0
    }

    /// Returns the offset of the fragment's payload in the payload of the whole packet,
    /// in units of 8 bytes; 13 bits.
    #[inline]
    #[must_use]
    pub fn fragment_offset(self) -> u16 {
        u16::from_be_bytes([self.0[6] & 0x1f, self.0[7]])
    }

    /// Returns the part of a packet that this packet carries.
    #[inline]
    #[must_use]
    pub fn fragment(self) -> Fragment {
        Fragment::new(self.fragment_offset(), self.more_fragments())
    }

    /// Returns the protocol of the payload.
    #[inline]
    #[must_use]
    pub fn protocol(self) -> u8 {
        self.0[9]
    }

    /// Returns the source address.
    #[inline]
    #[must_use]
    pub fn source(self) -> u32 {
        u32::from_be_bytes([self.0[12], self.0[13], self.0[14], self.0[15]])
    }

    /// Returns the destination address.
    #[inline]
    #[must_use]
    pub fn destination(self) -> u32 {
        u32::from_be_bytes([self.0[16], self.0[17], self.0[18], self.0[19]])
    }

    /// Returns the captured part of the payload without link padding, and an anomaly
    /// that leaves the payload known, if any. `rest` is the remainder that
    /// [`Ipv4::split`] returned.
    ///
    /// # Errors
    /// [`Anomaly::TruncatedIpv4Options`] or [`Anomaly::BadTotalLength`].
    #[inline]
    pub fn payload(self, rest: &'a [u8]) -> Result<(&'a [u8], Option<Anomaly>), Anomaly> {
        let total = usize::from(self.total_length());
        if total != 0 && total < self.header_length() {
            return Err(Anomaly::BadTotalLength);
        }
        let options = self.header_length() - HEADER_BYTES;
        let Some(payload) = rest.get(options..) else {
            return Err(Anomaly::TruncatedIpv4Options);
        };
        if total == 0 {
            return Ok((payload, Some(Anomaly::ZeroLength)));
        }
        match payload.get(..total - self.header_length()) {
            Some(payload) => Ok((payload, None)),
            None => Ok((payload, Some(Anomaly::PayloadCut))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: [u8; 25] = [
        0x46, 0xb8, 0, 25, 1, 2, 0x20, 0x03, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 9, 1, 1, 1, 1,
        0xee,
    ];

    #[test]
    fn reads_the_header() {
        let (ip, rest) = Ipv4::split(&PACKET).unwrap();
        assert_eq!(ip.header_length(), 24);
        assert_eq!((ip.dscp(), ip.protocol()), (46, 17));
        assert_eq!((ip.source(), ip.destination()), (0xc000_0201, 0xc000_0209));
        assert_eq!((ip.fragment_offset(), ip.more_fragments()), (3, true));
        assert_eq!(ip.fragment(), Fragment::Later);
        assert_eq!(ip.payload(rest), Ok((&[0xee][..], None)));
    }

    #[test]
    fn checks_lengths() {
        let with = |at: usize, value: u8| {
            let mut packet = PACKET;
            packet[at] = value;
            packet
        };
        let outcome = |packet: &[u8]| -> Result<(usize, Option<Anomaly>), Anomaly> {
            let (ip, rest) = Ipv4::split(packet)?;
            let (payload, odd) = ip.payload(rest)?;
            Ok((payload.len(), odd))
        };
        assert_eq!(outcome(&PACKET[..19]), Err(Anomaly::TruncatedIpv4));
        assert_eq!(outcome(&PACKET[..23]), Err(Anomaly::TruncatedIpv4Options));
        assert_eq!(outcome(&PACKET[..24]), Ok((0, Some(Anomaly::PayloadCut))));
        assert_eq!(outcome(&with(0, 0x66)), Err(Anomaly::BadIpv4Version));
        assert_eq!(outcome(&with(0, 0x44)), Err(Anomaly::BadIhl));
        assert_eq!(outcome(&with(3, 23)), Err(Anomaly::BadTotalLength));
        assert_eq!(outcome(&with(3, 24)), Ok((0, None)));
        assert_eq!(outcome(&with(3, 0)), Ok((1, Some(Anomaly::ZeroLength))));
    }
}
