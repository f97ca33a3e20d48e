//! The two ports that TCP, UDP and SCTP all begin with, four bytes.

/// Returns source and destination port; `None` if the packet ends before them.
#[inline]
#[must_use]
pub fn ports(payload: &[u8]) -> Option<(u16, u16)> {
    let &[a, b, c, d] = payload.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_suffice() {
        assert_eq!(ports(&[1, 2, 3, 4]), Some((0x0102, 0x0304)));
        assert_eq!(ports(&[1, 2, 3]), None);
    }
}
