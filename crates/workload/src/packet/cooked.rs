//! Linux cooked captures (SLL and SLL2), which libpcap writes when it captures on all
//! interfaces together or on links without a link header.
//!
//! [`Cooked::split_v1`] and [`Cooked::split_v2`] are the only checks; the values they
//! return are plain.

/// The length of a version 1 header.
pub const LENGTH_V1: usize = 16;
/// The length of a version 2 header.
pub const LENGTH_V2: usize = 20;

/// The device type of netlink messages, which have their own protocol numbers.
const ARPHRD_NETLINK: u16 = 824;

/// The fields of a cooked header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooked {
    /// The sender's link address, if it is an Ethernet address.
    pub source: Option<u64>,
    /// The EtherType; 1 and 4 stand for IEEE 802.3 frames without an EtherType. `None`
    /// if the protocol numbers are not EtherTypes.
    pub protocol: Option<u16>,
}

impl Cooked {
    /// Splits off a version 1 header and returns it with the bytes after it.
    #[inline]
    #[must_use]
    pub fn split_v1(frame: &[u8]) -> Option<(Cooked, &[u8])> {
        let (h, rest) = frame.split_first_chunk::<LENGTH_V1>()?;
        let device = u16::from_be_bytes([h[2], h[3]]);
        let address_length = u16::from_be_bytes([h[4], h[5]]);
        let address = [h[6], h[7], h[8], h[9], h[10], h[11]];
        let protocol = u16::from_be_bytes([h[14], h[15]]);
        Some((Cooked::new(device, address_length, address, protocol), rest))
    }

    /// Splits off a version 2 header and returns it with the bytes after it.
    #[inline]
    #[must_use]
    pub fn split_v2(frame: &[u8]) -> Option<(Cooked, &[u8])> {
        let (h, rest) = frame.split_first_chunk::<LENGTH_V2>()?;
        let protocol = u16::from_be_bytes([h[0], h[1]]);
        let device = u16::from_be_bytes([h[8], h[9]]);
        let address = [h[12], h[13], h[14], h[15], h[16], h[17]];
        Some((
            Cooked::new(device, u16::from(h[11]), address, protocol),
            rest,
        ))
    }

    fn new(device: u16, address_length: u16, address: [u8; 6], protocol: u16) -> Cooked {
        Cooked {
            source: (address_length == 6).then(|| super::ethernet::mac(address)),
            protocol: (device != ARPHRD_NETLINK).then_some(protocol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_say_the_same() {
        let v1 = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 7, 0, 0, 8, 0, 0x45];
        let v2 = [
            8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 7, 0, 0, 0x45,
        ];
        let expected = Cooked {
            source: Some(0x0200_0000_0007),
            protocol: Some(0x0800),
        };
        assert_eq!(Cooked::split_v1(&v1), Some((expected, &[0x45][..])));
        assert_eq!(Cooked::split_v2(&v2), Some((expected, &[0x45][..])));
        assert_eq!(Cooked::split_v1(&v1[..15]), None);
        assert_eq!(Cooked::split_v2(&v2[..19]), None);
    }

    #[test]
    fn netlink_protocols_are_no_ethertypes() {
        let mut frame = [0; LENGTH_V1];
        frame[2..4].copy_from_slice(&ARPHRD_NETLINK.to_be_bytes());
        let (header, _) = Cooked::split_v1(&frame).unwrap();
        assert_eq!((header.source, header.protocol), (None, None));
    }
}
