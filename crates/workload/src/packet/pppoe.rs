//! PPPoE sessions (RFC 2516): PPP in Ethernet frames.
//!
//! [`Pppoe::split`] is the only check; the values it returns are plain.

use super::Anomaly;

/// The length of the header with the PPP protocol that follows it.
pub const HEADER_BYTES: usize = 8;

/// The PPP protocol of IPv4.
pub const IPV4: u16 = 0x0021;
/// The PPP protocol of IPv6.
pub const IPV6: u16 = 0x0057;

/// Version 1 and type 1, then code 0: the data of a session.
const SESSION_DATA: [u8; 2] = [0x11, 0];

/// The header of a PPPoE session, and the PPP protocol behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pppoe {
    /// The session's number.
    pub session: u16,
    /// The PPP protocol of what follows.
    pub protocol: u16,
}

impl Pppoe {
    /// Splits off the header. Returns it with the payload after it, which ends where
    /// the header says or where the captured bytes end.
    ///
    /// # Errors
    /// [`Anomaly::TruncatedPppoe`] or [`Anomaly::BadPppoe`].
    #[inline]
    pub fn split(bytes: &[u8]) -> Result<(Pppoe, &[u8]), Anomaly> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Anomaly::TruncatedPppoe);
        };
        let [version, code, s0, s1, l0, l1, p0, p1] = *header;
        // The length includes the protocol field.
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let (true, Some(length)) = ([version, code] == SESSION_DATA, length.checked_sub(2)) else {
            return Err(Anomaly::BadPppoe);
        };
        let header = Pppoe {
            session: u16::from_be_bytes([s0, s1]),
            protocol: u16::from_be_bytes([p0, p1]),
        };
        Ok((header, rest.get(..length).unwrap_or(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_header_off_and_bounds_what_follows() {
        let bytes = [0x11, 0, 0x12, 0x34, 0, 4, 0, 0x21, 0x45, 0, 9];
        let (header, rest) = Pppoe::split(&bytes).unwrap();
        assert_eq!((header.session, header.protocol), (0x1234, IPV4));
        assert_eq!(rest, [0x45, 0]);
        // The length is beyond the end of the frame.
        let (_, rest) = Pppoe::split(&bytes[..9]).unwrap();
        assert_eq!(rest, [0x45]);
        let truncated = Pppoe::split(&bytes[..7]);
        assert_eq!(truncated, Err(Anomaly::TruncatedPppoe));
        for (at, value) in [(0, 0x21), (1, 0x09), (5, 1)] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert_eq!(Pppoe::split(&bytes), Err(Anomaly::BadPppoe), "byte {at}");
        }
    }
}
