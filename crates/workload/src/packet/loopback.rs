//! Loopback captures of the BSDs: four bytes of address family, then the
//! packet.
//!
//! [`split`] is the only check.

use super::LinkType;

/// The length of the header.
pub const HEADER_BYTES: usize = 4;

/// Splits off the address family and returns it with the bytes after it.
///
/// The family of [`LinkType::Null`] is in the byte order of the capturing machine,
/// which the file does not record. No family needs more than 16 bits, so the byte order
/// that makes the number small is the right one.
#[inline]
#[must_use]
pub fn split(frame: &[u8], link: LinkType) -> Option<(u32, &[u8])> {
    let (header, rest) = frame.split_first_chunk::<HEADER_BYTES>()?;
    let family = u32::from_be_bytes(*header);
    if link == LinkType::Null && family > 0xffff {
        Some((family.swap_bytes(), rest))
    } else {
        Some((family, rest))
    }
}

/// True if the family is IPv4; all systems use the same number.
#[inline]
#[must_use]
pub fn is_ipv4(family: u32) -> bool {
    family == 2
}

/// True if the family is IPv6: Linux 10, Windows 23, NetBSD and OpenBSD 24, FreeBSD 28,
/// macOS 30.
#[inline]
#[must_use]
pub fn is_ipv6(family: u32) -> bool {
    matches!(family, 10 | 23 | 24 | 28 | 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_is_read_in_either_byte_order() {
        let big = [0, 0, 0, 30, 0x60];
        let little = [2, 0, 0, 0, 0x45];
        assert_eq!(split(&big, LinkType::Null), Some((30, &[0x60][..])));
        assert_eq!(split(&big, LinkType::Loopback), Some((30, &[0x60][..])));
        assert_eq!(split(&little, LinkType::Null), Some((2, &[0x45][..])));
        let (family, _) = split(&little, LinkType::Loopback).unwrap();
        assert!(!is_ipv4(family) && !is_ipv6(family));
        assert_eq!(split(&[0, 0, 0], LinkType::Null), None);
    }
}
