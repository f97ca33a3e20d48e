//! VLAN tags: 802.1Q, 802.1ad (QinQ) and its predecessor 0x9100.
//!
//! [`Tag::split`] is the only check. The view it returns holds exactly the 4
//! bytes after the EtherType, so none of its methods can fail.

/// The EtherType of an 802.1Q tag.
pub const CUSTOMER: u16 = 0x8100;
/// The EtherType of an 802.1ad tag.
pub const SERVICE: u16 = 0x88a8;
/// The EtherType of stacked tags before 802.1ad.
pub const OLD_SERVICE: u16 = 0x9100;

/// The length of a tag without its own EtherType.
pub const HEADER_BYTES: usize = 4;

/// True if a tag follows this EtherType.
#[inline]
#[must_use]
pub fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, CUSTOMER | SERVICE | OLD_SERVICE)
}

/// A view of a VLAN tag.
#[derive(Clone, Copy, Debug)]
pub struct Tag<'a>(&'a [u8; HEADER_BYTES]);

impl<'a> Tag<'a> {
    /// Splits off the tag and returns it with the bytes after it; `None` if the frame
    /// is too short.
    #[inline]
    #[must_use]
    pub fn split(bytes: &'a [u8]) -> Option<(Tag<'a>, &'a [u8])> {
        let (tag, rest) = bytes.split_first_chunk()?;
        Some((Tag(tag), rest))
    }

    /// Returns the VLAN's number, 12 bits.
    #[inline]
    #[must_use]
    pub fn vid(self) -> u16 {
        u16::from_be_bytes([self.0[0] & 0x0f, self.0[1]])
    }

    /// Returns the priority, 3 bits.
    #[inline]
    #[must_use]
    pub fn pcp(self) -> u8 {
        self.0[0] >> 5
    }

    /// Returns the EtherType of what follows the tag.
    #[inline]
    #[must_use]
    pub fn ethertype(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_tag() {
        let (tag, rest) = Tag::split(&[0xbf, 0xff, 8, 0, 1]).unwrap();
        assert_eq!((tag.vid(), tag.pcp(), tag.ethertype()), (0xfff, 5, 0x0800));
        assert_eq!(rest, [1]);
        assert!(Tag::split(&[0xbf, 0xff, 8]).is_none());
    }
}
