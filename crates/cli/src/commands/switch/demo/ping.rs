//! Frames of a ping, for hosts in memory.

/// The bytes before the ICMP message: an Ethernet header and an IPv4 header without options.
const ICMP_OFFSET: usize = 34;

/// The bytes before the IPv4 header.
const IP_OFFSET: usize = 14;

/// The bytes of data that `ping` sends by default.
const DATA_BYTES: u8 = 56;

/// The number of ICMP as protocol of IPv4.
const ICMP: u8 = 1;

/// Returns the last byte of a host's addresses.
fn host_byte(host: usize) -> u8 {
    u8::try_from(host).expect("there are two hosts")
}

/// Returns the Ethernet address of a host.
pub(super) fn ethernet_address(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, host_byte(host)]
}

/// Returns the IPv4 address of a host.
pub(super) fn ip_address(host: usize) -> [u8; 4] {
    [10, 9, 0, host_byte(host)]
}

/// Returns an echo request from a host to another one.
pub(super) fn request(from: usize, to: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(ethernet_address(to));
    frame.extend(ethernet_address(from));
    frame.extend([0x08, 0x00]);
    let length = 20 + 8 + DATA_BYTES;
    // Version and length of the header, then no fragment, a time to live of 64.
    frame.extend([0x45, 0, 0, length, 0, 1, 0x40, 0, 64, ICMP, 0, 0]);
    frame.extend(ip_address(from));
    frame.extend(ip_address(to));
    // An echo request with the identifier 1 and the sequence number 1.
    frame.extend([8, 0, 0, 0, 0, 1, 0, 1]);
    frame.extend(0..DATA_BYTES);
    fill_checksums(&mut frame);
    frame
}

/// True if a frame is an IPv4 packet of ICMP without options.
pub(super) fn is_icmp(frame: &[u8]) -> bool {
    frame.len() > ICMP_OFFSET && frame[12..15] == [0x08, 0x00, 0x45] && frame[23] == ICMP
}

/// Returns the answer to an echo request.
pub(super) fn reply(request: &[u8]) -> Vec<u8> {
    let mut frame = request.to_vec();
    frame[..6].copy_from_slice(&request[6..12]);
    frame[6..12].copy_from_slice(&request[..6]);
    frame[26..30].copy_from_slice(&request[30..34]);
    frame[30..34].copy_from_slice(&request[26..30]);
    frame[ICMP_OFFSET] = 0;
    fill_checksums(&mut frame);
    frame
}

fn fill_checksums(frame: &mut [u8]) {
    for (range, place) in [
        (IP_OFFSET..ICMP_OFFSET, IP_OFFSET + 10),
        (ICMP_OFFSET..frame.len(), ICMP_OFFSET + 2),
    ] {
        frame[place..place + 2].fill(0);
        let sum = checksum(&frame[range]);
        frame[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns the checksum of the Internet protocols (RFC 1071) over an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let words = words.map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    !words.fold(0_u16, |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071 §3.
    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(
            checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
    }

    #[test]
    fn a_request_is_answered() {
        let request = request(1, 2);
        assert_eq!(request.len(), 98);
        assert!(is_icmp(&request));
        // The sum over data with a right checksum is 0.
        assert_eq!(checksum(&request[IP_OFFSET..ICMP_OFFSET]), 0);
        assert_eq!(checksum(&request[ICMP_OFFSET..]), 0);
        let reply = reply(&request);
        assert_eq!(reply[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        assert_eq!(reply[26..34], [10, 9, 0, 2, 10, 9, 0, 1]);
        assert_eq!(reply[ICMP_OFFSET], 0);
        assert_eq!(checksum(&reply[IP_OFFSET..ICMP_OFFSET]), 0);
        assert_eq!(checksum(&reply[ICMP_OFFSET..]), 0);
        assert!(!is_icmp(&reply[..30]));
    }
}
