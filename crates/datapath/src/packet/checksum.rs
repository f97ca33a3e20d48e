//! Adjusting checksums when bytes change: RFC 1624, and CRC-32C for SCTP.

/// The change of a checksum when some bytes are replaced.
///
/// The checksum of IP, TCP, UDP and ICMP is a sum of 16-bit words, with the carries added
/// again. So the change depends on whether a byte is the first or the second of its word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change(u32);

impl Change {
    /// Returns the change when `old` is replaced by `new`, `at` bytes after the beginning
    /// of the summed bytes.
    pub(super) fn of(at: usize, old: &[u8], new: &[u8]) -> Change {
        let mut sum = 0_u32;
        for (number, (&old, &new)) in old.iter().zip(new).enumerate() {
            // Subtract the old word by adding its complement, and add the new word.
            let is_first = (at + number).is_multiple_of(2);
            let shift = if is_first { 8 } else { 0 };
            sum += (u32::from(new) << shift) + (0xffff - (u32::from(old) << shift));
        }
        Change(u32::from(folded(sum)))
    }

    /// Returns the checksum after the change (RFC 1624 eq. 3).
    pub(super) fn apply(self, checksum: u16) -> u16 {
        !folded(u32::from(!checksum) + self.0)
    }
}

/// Returns the sum of 16-bit words, with the carries added again. The last word may lack its
/// second byte.
pub(super) fn sum_of(bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(2);
    let whole = words
        .by_ref()
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    let whole: u64 = whole.sum();
    let last = words
        .remainder()
        .first()
        .map_or(0, |&high| u64::from(high) << 8);
    let mut sum = whole + last;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("folded")
}

/// Folds a 32-bit sum to 16 bits by adding the carries.
fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    let twice = (once & 0xffff) + (once >> 16);
    u16::try_from(twice).expect("folded twice")
}

/// Returns the SCTP checksum of a packet after a change of some bytes. A wrong checksum
/// stays wrong by the same difference.
pub(super) fn sctp(packet: &[u8], at: usize, new: &[u8], checksum: u32) -> u32 {
    let (before, from_at) = packet.split_at(at);
    let (old, after) = from_at.split_at(new.len());
    let with = |bytes: &[u8]| {
        let crc = crc32c::crc32c_append(crc32c::crc32c(before), bytes);
        crc32c::crc32c_append(crc, after)
    };
    checksum ^ with(old) ^ with(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the checksum of bytes as in RFC 1071.
    fn checksum(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
        !folded(words.sum())
    }

    #[test]
    fn a_changed_checksum_is_that_of_the_changed_bytes() {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            u8::try_from(state >> 56).unwrap()
        };
        for _ in 0..2000 {
            let old: Vec<u8> = (0..21).map(|_| next()).collect();
            let (at, len) = (usize::from(next() % 16), usize::from(next() % 6));
            let mut new = old.clone();
            for byte in &mut new[at..at + len] {
                *byte = next();
            }
            let change = Change::of(at, &old[at..at + len], &new[at..at + len]);
            let (changed, right) = (change.apply(checksum(&old)), checksum(&new));
            // 0 and 0xffff represent the same sum.
            assert!(changed == right || changed == !right && matches!(right, 0 | 0xffff));
        }
    }

    #[test]
    fn sctp_keeps_what_is_right_and_what_is_wrong() {
        let packet: Vec<u8> = (0..40).collect();
        let mut changed = packet.clone();
        changed[2..4].copy_from_slice(&[77, 78]);
        let (old, right) = (crc32c::crc32c(&packet), crc32c::crc32c(&changed));
        assert_eq!(sctp(&packet, 2, &[77, 78], old), right);
        assert_eq!(sctp(&packet, 2, &[77, 78], old ^ 5), right ^ 5);
    }
}
