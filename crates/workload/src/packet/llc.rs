//! IEEE 802.2 LLC headers, and SNAP headers, which contain an EtherType.
//!
//! [`split`] is the only check; the values it returns are plain.

/// The length of a SNAP header with its EtherType.
pub const SNAP_LENGTH: usize = 8;

/// The shortest LLC header: two service access points and a control byte.
pub const LLC_LENGTH: usize = 3;

/// The content after the length field of an IEEE 802.3 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Llc<'a> {
    /// SNAP with the OUI of encapsulated Ethernet: an EtherType, and the bytes after
    /// it.
    Snap(u16, &'a [u8]),
    /// Anything else: spanning tree, IS-IS, IPX, …
    Other,
}

/// Reads the bytes after the length field; `None` if the frame is too short.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<Llc<'_>> {
    let (&[dsap, ssap, control], after) = bytes.split_first_chunk::<LLC_LENGTH>()?;
    if (dsap, ssap, control) != (0xaa, 0xaa, 0x03) {
        return Some(Llc::Other);
    }
    let (&[a, b, c, high, low], rest) = after.split_first_chunk()?;
    // The OUIs of RFC 1042 and of bridge tunnel encapsulation.
    if matches!([a, b, c], [0, 0, 0] | [0, 0, 0xf8]) {
        Some(Llc::Snap(u16::from_be_bytes([high, low]), rest))
    } else {
        Some(Llc::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_snap_from_the_rest() {
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45];
        assert_eq!(split(&snap), Some(Llc::Snap(0x0800, &[0x45])));
        assert_eq!(split(&snap[..7]), None);
        assert_eq!(split(&[0x42, 0x42, 3]), Some(Llc::Other));
        assert_eq!(split(&[0x42, 0x42]), None);
        let cisco = [0xaa, 0xaa, 3, 0, 0, 0xc, 0x20, 0];
        assert_eq!(split(&cisco), Some(Llc::Other));
    }
}
