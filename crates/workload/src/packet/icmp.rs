//! ICMP and ICMPv6 messages (RFC 792, RFC 4443): both begin with a type and a
//! code.

/// The protocol number of ICMP.
pub const PROTOCOL: u8 = 1;

/// The protocol number of ICMPv6.
pub const PROTOCOL_V6: u8 = 58;

/// Returns type and code; `None` if the packet ends before them.
#[inline]
#[must_use]
pub fn type_and_code(payload: &[u8]) -> Option<(u8, u8)> {
    let &[kind, code] = payload.first_chunk()?;
    Some((kind, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bytes_suffice() {
        assert_eq!(type_and_code(&[3, 1]), Some((3, 1)));
        assert_eq!(type_and_code(&[3]), None);
    }
}
