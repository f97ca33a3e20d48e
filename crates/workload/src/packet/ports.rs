//! The four bytes with which TCP, UDP and SCTP all begin: two ports.

/// Source and destination port; `None` when the packet ends before.
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
