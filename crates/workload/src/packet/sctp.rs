//! SCTP headers (RFC 9260). Only the length of the common header is checked
//! here; the ports are read by [`ports`](super::ports::ports).

use super::Anomaly;

/// The protocol number of SCTP.
pub const PROTOCOL: u8 = 132;

/// The length of the common header.
pub const HEADER_BYTES: usize = 12;

/// Returns the anomaly of the SCTP header at the start of `payload`, if any. The caller
/// has checked that the ports are present.
#[inline]
#[must_use]
pub fn check(payload: &[u8]) -> Option<Anomaly> {
    (payload.len() < HEADER_BYTES).then_some(Anomaly::TruncatedSctp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_the_length() {
        assert_eq!(check(&[0; 12]), None);
        assert_eq!(check(&[0; 11]), Some(Anomaly::TruncatedSctp));
    }
}
