//! Hashes of flows, for microflow caches.

use crate::cache::bits::Words;

/// Words of a key that identify a flow: all except the registers.
const FLOW_WORDS: usize = 14;

/// Returns the hash of a packet's flow. It is a sum of independent products, so the CPU
/// computes them in parallel.
#[inline]
pub(super) fn flow_of(key: &Words, secrets: [u64; 2]) -> u64 {
    let (mut sum, mut salt) = (secrets[1], secrets[0]);
    let (pairs, _) = key[..FLOW_WORDS].as_chunks::<2>();
    for &[one, other] in pairs {
        // The salts depend on the position, so words of 0 do not make the product 0.
        let product = u128::from(one ^ salt) * u128::from(other ^ salt.rotate_left(32));
        #[allow(clippy::cast_possible_truncation)] // both halves are used
        let (low, high) = (product as u64, (product >> 64) as u64);
        sum = sum.wrapping_add(low ^ high);
        salt = salt.rotate_left(7).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    (sum ^ sum >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
