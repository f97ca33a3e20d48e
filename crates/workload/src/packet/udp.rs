//! UDP headers (RFC 768). Only the length is checked here; the ports are read
//! by [`ports`](super::ports::ports).

use super::Anomaly;

/// The protocol number of UDP.
pub const PROTOCOL: u8 = 17;

/// The length of the header.
pub const HEADER_BYTES: usize = 8;

/// Returns the anomaly of the UDP header at the start of `payload`, if any. The caller
/// has checked that the ports are present. If `whole`, the payload was captured
/// completely, so the datagram must not be longer. (A length of 0 stands for a datagram
/// too long for the field, RFC 2675.)
#[inline]
#[must_use]
pub fn check(payload: &[u8], whole: bool) -> Option<Anomaly> {
    let Some(header) = payload.first_chunk::<HEADER_BYTES>() else {
        return Some(Anomaly::TruncatedUdp);
    };
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let bad = length != 0 && (length < HEADER_BYTES || (whole && length > payload.len()));
    bad.then_some(Anomaly::BadUdpLength)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_the_length() {
        let datagram = |length| [0, 1, 0, 2, 0, length, 0, 0, 9];
        assert_eq!(check(&datagram(9), true), None);
        assert_eq!(check(&datagram(8), true), None);
        assert_eq!(check(&datagram(0), true), None);
        assert_eq!(check(&datagram(7), true), Some(Anomaly::BadUdpLength));
        assert_eq!(check(&datagram(10), true), Some(Anomaly::BadUdpLength));
        assert_eq!(check(&datagram(10), false), None);
        assert_eq!(check(&datagram(9)[..7], true), Some(Anomaly::TruncatedUdp));
    }
}
