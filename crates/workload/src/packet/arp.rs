//! ARP for IPv4 over Ethernet (RFC 826), and RARP (RFC 903).
//!
//! [`Arp::new`] is the only check. The view it returns holds exactly the 28
//! bytes of such a packet, so none of its methods can fail.

use super::Anomaly;

/// The length of an ARP packet for IPv4 over Ethernet.
pub const HEADER_BYTES: usize = 28;

/// A view of an ARP packet.
#[derive(Clone, Copy, Debug)]
pub struct Arp<'a>(&'a [u8; HEADER_BYTES]);

impl<'a> Arp<'a> {
    /// Reads the packet at the start of `bytes`.
    ///
    /// # Errors
    /// [`Anomaly::TruncatedArp`], or [`Anomaly::UnknownArp`] if the packet is not for
    /// IPv4 over Ethernet.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Arp<'a>, Anomaly> {
        let Some(kind) = bytes.first_chunk::<6>() else {
            return Err(Anomaly::TruncatedArp);
        };
        // Hardware type (Ethernet, or IEEE 802), protocol type, two lengths.
        if !matches!(kind, [0, 1 | 6, 8, 0, 6, 4]) {
            return Err(Anomaly::UnknownArp);
        }
        bytes.first_chunk().map(Arp).ok_or(Anomaly::TruncatedArp)
    }

    /// Returns the operation: 1 for a request, 2 for a reply.
    #[inline]
    #[must_use]
    pub fn operation(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// Returns the sender's IPv4 address.
    #[inline]
    #[must_use]
    pub fn sender(self) -> u32 {
        u32::from_be_bytes([self.0[14], self.0[15], self.0[16], self.0[17]])
    }

    /// Returns the target's IPv4 address.
    #[inline]
    #[must_use]
    pub fn target(self) -> u32 {
        u32::from_be_bytes([self.0[24], self.0[25], self.0[26], self.0[27]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_reply() {
        let mut packet = [0; HEADER_BYTES];
        packet[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 2]);
        packet[14..18].copy_from_slice(&[192, 0, 2, 1]);
        packet[24..28].copy_from_slice(&[192, 0, 2, 9]);
        let arp = Arp::new(&packet).unwrap();
        assert_eq!(arp.operation(), 2);
        assert_eq!((arp.sender(), arp.target()), (0xc000_0201, 0xc000_0209));
        assert_eq!(Arp::new(&packet[..27]).unwrap_err(), Anomaly::TruncatedArp);
        packet[4] = 8;
        assert_eq!(Arp::new(&packet).unwrap_err(), Anomaly::UnknownArp);
    }
}
