//! MPLS label stack entries (RFC 3032, RFC 5462).
//!
//! [`Label::split`] is the only check. The view it returns holds exactly 4
//! bytes, so none of its methods can fail.

/// The length of a label stack entry.
pub const HEADER_BYTES: usize = 4;

/// A view of a label stack entry.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a>(&'a [u8; HEADER_BYTES]);

impl<'a> Label<'a> {
    /// Splits off the entry and returns it with the bytes after it; `None` if the frame
    /// is too short.
    #[inline]
    #[must_use]
    pub fn split(bytes: &'a [u8]) -> Option<(Label<'a>, &'a [u8])> {
        let (label, rest) = bytes.split_first_chunk()?;
        Some((Label(label), rest))
    }

    /// Returns the label, 20 bits.
    #[inline]
    #[must_use]
    pub fn label(self) -> u32 {
        u32::from_be_bytes(*self.0) >> 12
    }

    /// Returns the traffic class, 3 bits.
    #[inline]
    #[must_use]
    pub fn traffic_class(self) -> u8 {
        (self.0[2] >> 1) & 7
    }

    /// True if this is the last entry of the stack.
    #[inline]
    #[must_use]
    pub fn is_bottom(self) -> bool {
        self.0[2] & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_entry() {
        let (label, rest) = Label::split(&[0x12, 0x34, 0x5b, 64, 0x45]).unwrap();
        assert_eq!(label.label(), 0x12345);
        assert_eq!((label.traffic_class(), label.is_bottom()), (5, true));
        assert_eq!(rest, [0x45]);
        assert!(Label::split(&[0, 0, 0]).is_none());
    }
}
