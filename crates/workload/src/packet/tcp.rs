//! TCP headers (RFC 9293). Only the header's length is checked here; the ports are read
//! by [`ports`](super::ports::ports).

use super::Anomaly;

/// The protocol number of TCP.
pub const PROTOCOL: u8 = 6;

/// The length of a header without options.
pub const HEADER_BYTES: usize = 20;

/// Returns the anomaly of the TCP header at the start of `payload`, if any. The caller
/// has checked that the ports are present.
#[inline]
#[must_use]
pub fn check(payload: &[u8]) -> Option<Anomaly> {
    let Some(header) = payload.first_chunk::<HEADER_BYTES>() else {
        return Some(Anomaly::TruncatedTcp);
    };
    let length = usize::from(header[12] >> 4) * 4;
    if length < HEADER_BYTES {
        Some(Anomaly::BadTcpOffset)
    } else if length > payload.len() {
        Some(Anomaly::TruncatedTcp)
    } else {
        None
    }
}

/// Returns the flags of the TCP header at the start of `payload`, from bit 0: FIN, SYN, RST,
/// PSH, ACK, URG, ECE, CWR. `None` if the packet ends before them.
#[inline]
#[must_use]
pub fn flags(payload: &[u8]) -> Option<u8> {
    payload.get(13).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_need_fourteen_bytes() {
        let mut header = [0; 20];
        header[13] = 0x12;
        assert_eq!(flags(&header), Some(0x12));
        assert_eq!(flags(&header[..14]), Some(0x12));
        assert_eq!(flags(&header[..13]), None);
    }

    #[test]
    fn checks_the_data_offset() {
        let mut header = [0; 24];
        header[12] = 0x60;
        assert_eq!(check(&header), None);
        assert_eq!(check(&header[..23]), Some(Anomaly::TruncatedTcp));
        assert_eq!(check(&header[..19]), Some(Anomaly::TruncatedTcp));
        header[12] = 0x40;
        assert_eq!(check(&header), Some(Anomaly::BadTcpOffset));
    }
}
