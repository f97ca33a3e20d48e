//! Tags that the kernel took out of a frame.

use crate::ethernet::TAG_BYTES;

/// The type of a tag if the kernel does not say it.
const DEFAULT_TAG_TYPE: u16 = 0x8100;

/// Returns the tag that the kernel took out of a frame.
pub(super) fn read(status: u32, kind: u16, tag: u16) -> Option<[u8; TAG_BYTES]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => DEFAULT_TAG_TYPE,
        _ => kind,
    };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), tag.to_be_bytes());
    Some([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_its_type() {
        let valid = libc::TP_STATUS_VLAN_VALID;
        assert_eq!(read(0, 0x88a8, 5), None);
        assert_eq!(read(valid, 0, 0x2005), Some([0x81, 0, 0x20, 5]));
        let with_type = valid | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(read(with_type, 0x88a8, 5), Some([0x88, 0xa8, 0, 5]));
    }
}
