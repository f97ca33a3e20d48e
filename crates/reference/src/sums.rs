//! Checksums of changed packets, computed from all covered bytes: a checksum changes by
//! the difference of the covered bytes' sums. So a wrong checksum stays wrong by the same
//! amount.

use std::ops::Range;

use classyard_datapath::Field;

use crate::fields::{ICMP, ICMPV6, SCTP, TCP, UDP};
use crate::frame::{Network, Parsed};

/// The algorithm of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The complement of the sum of 16-bit words, with carries added again (RFC 1071).
    Words,
    /// Like `Words`, for UDP: 0 stands for a missing checksum.
    OptionalWords,
    /// The sum of the words itself: a partial checksum, which a network card finishes.
    Partial,
    /// CRC-32C (RFC 9260, Appendix A).
    Crc,
}

/// A checksum of a packet: its position, and the bytes that it covers.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    kind: Kind,
    place: Range<usize>,
    /// The position of the protocol's number, if a pseudo-header with it is covered. There, the
    /// number is a word.
    protocol_at: Option<usize>,
    /// Covered bytes; only the last range may have an odd length.
    covers: Vec<Range<usize>>,
}

/// Returns the checksum of the IPv4 header at `at`, including the options that are
/// present.
pub(crate) fn of_ipv4_header(bytes: &[u8], at: usize) -> Sum {
    let length = usize::from(bytes[at] % 16) * 4;
    let header = at..bytes.len().min(at + length.max(20));
    Sum {
        kind: Kind::Words,
        place: at + 10..at + 12,
        protocol_at: None,
        covers: vec![header],
    }
}

/// Returns all checksums of a packet. A partial checksum at the place `partial` covers only
/// the pseudo-header: addresses and protocol. Its length does not change.
pub(crate) fn of(bytes: &[u8], parsed: &Parsed, partial: Option<usize>) -> Vec<Sum> {
    let mut sums = Vec::new();
    if parsed.network == Network::Ipv4 {
        sums.push(of_ipv4_header(bytes, parsed.at));
    }
    let Some(transport) = parsed.transport else {
        return sums;
    };
    let addresses = match parsed.network {
        Network::Ipv4 => parsed.at + 12..parsed.at + 20,
        // The checksum covers the final destination (RFC 8200 §8.1), which is in the
        // routing header while segments are left.
        _ if parsed.is_routed => parsed.at + 8..parsed.at + 24,
        _ => parsed.at + 8..parsed.at + 40,
    };
    let payload = transport..parsed.end;
    let protocol = parsed.fields.get(Field::IpProto).unwrap_or(0);
    let (kind, offset, length, covers) = match protocol {
        TCP => (Kind::Words, 16, 2, vec![addresses.clone(), payload]),
        UDP => (Kind::OptionalWords, 6, 2, vec![addresses.clone(), payload]),
        ICMPV6 => (Kind::Words, 2, 2, vec![addresses.clone(), payload]),
        ICMP => (Kind::Words, 2, 2, vec![payload]),
        // It covers the whole packet, which is not available.
        SCTP if parsed.is_fragment || parsed.is_cut => return sums,
        SCTP => (Kind::Crc, 8, 4, vec![payload]),
        _ => return sums,
    };
    let place = transport + offset..transport + offset + length;
    let (kind, covers) = match partial == Some(place.start) {
        true => (Kind::Partial, vec![addresses]),
        false => (kind, covers),
    };
    let has_pseudo_header = [TCP, UDP, ICMPV6].contains(&protocol);
    if place.end <= parsed.end {
        sums.push(Sum {
            kind,
            place,
            protocol_at: parsed.protocol_at.filter(|_| has_pseudo_header),
            covers,
        });
    }
    sums
}

impl Sum {
    /// True if some of these bytes are covered.
    pub(crate) fn covers(&self, bytes: &Range<usize>) -> bool {
        let protocol = self.protocol_at.map(|at| at..at + 1);
        self.covers
            .iter()
            .chain(&protocol)
            .any(|range| range.start < bytes.end && bytes.start < range.end)
    }

    /// Returns the covered bytes, with 0 in place of the checksum.
    fn covered(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[self.place.clone()].fill(0);
        let protocol = self.protocol_at.map(|at| [0, bytes[at]]);
        let ranges = self.covers.iter().cloned();
        let ranges = ranges.flat_map(|range| bytes[range].to_vec());
        protocol.into_iter().flatten().chain(ranges).collect()
    }

    /// Adjusts the checksum of the changed bytes; a wrong checksum stays wrong.
    pub(crate) fn adjust(&self, old: &[u8], new: &mut [u8]) {
        let (before, after) = (self.covered(old), self.covered(new));
        let range = self.place.clone();
        match self.kind {
            Kind::Crc => {
                let change = crc32c::crc32c(&before) ^ crc32c::crc32c(&after);
                for (byte, change) in new[range].iter_mut().zip(change.to_le_bytes()) {
                    *byte ^= change;
                }
            }
            Kind::Partial => {
                let old_sum = u64::from(new[range.start]) << 8 | u64::from(new[range.start + 1]);
                let new_sum = 0xffff - changed(0xffff - old_sum, words(&before), words(&after));
                let [.., high, low] = new_sum.to_be_bytes();
                new[range].copy_from_slice(&[high, low]);
            }
            Kind::Words | Kind::OptionalWords => {
                let is_optional = self.kind == Kind::OptionalWords;
                let old_sum = u64::from(new[range.start]) << 8 | u64::from(new[range.start + 1]);
                if is_optional && old_sum == 0 {
                    return;
                }
                let new_sum = match changed(old_sum, words(&before), words(&after)) {
                    0 if is_optional => 0xffff,
                    new_sum => new_sum,
                };
                let [.., high, low] = new_sum.to_be_bytes();
                new[range].copy_from_slice(&[high, low]);
            }
        }
    }
}

/// Returns the sum of 16-bit words; the last word may lack its second byte.
fn words(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into());
    bytes.chunks(2).map(word).sum()
}

/// Returns the checksum after the sum of the covered words has changed. Sums with carries
/// added again are numbers modulo 65,535, with two forms of 0; RFC 1624 uses the form
/// whose complement is 0.
fn changed(checksum: u64, before: u64, after: u64) -> u64 {
    const SUM_MODULUS: u64 = 0xffff;
    let sum = (0xffff - checksum) + after + (SUM_MODULUS - before % SUM_MODULUS);
    match sum % SUM_MODULUS {
        0 => 0,
        sum => 0xffff - sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_checksum_stays_right_and_a_wrong_one_wrong() {
        // RFC 1071's example: the sum of these words is ddf2.
        let old = [0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(words(&old), 0x2_ddf0);
        let new = [0, 1, 0xf2, 3, 0, 0, 0xf6, 0xf7];
        let right = |bytes| changed(0xffff, 0, words(bytes));
        assert_eq!(right(&old), 0x220d);
        assert_eq!(changed(0x220d, words(&old), words(&new)), right(&new));
        assert_eq!(
            changed(0x220e, words(&old), words(&new)),
            right(&new) + 1,
            "as wrong as before"
        );
        assert_eq!(changed(0xffff, 5, 5), 0, "the form of RFC 1624");
    }
}
