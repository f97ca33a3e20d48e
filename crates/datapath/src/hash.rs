//! Hashes of keys and flows, with a secret that makes them unpredictable for senders of
//! packets.

use classyard::author::splitmix;

/// The secret of a hash function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secret {
    salt: u64,
    /// Odd, so that it is not 0.
    factor: u64,
}

impl Secret {
    /// Returns a secret that a seed determines.
    pub(crate) fn new(mut seed: u64) -> Secret {
        Secret {
            salt: splitmix(&mut seed),
            factor: splitmix(&mut seed) | 1,
        }
    }

    /// Returns the hash of some words: a sum of products that the CPU can compute in
    /// parallel.
    #[inline]
    pub(crate) fn hash(self, words: impl Iterator<Item = u64>) -> u64 {
        let (mut sum, mut salt) = (self.factor, self.salt);
        for word in words {
            sum = sum.wrapping_add(fold(word ^ salt, self.factor));
            salt = next_salt(salt);
        }
        sum ^ sum >> 32
    }

    /// Returns the hash of an even number of words, with one product for two words.
    #[inline]
    pub(crate) fn hash_pairs(self, words: &[u64]) -> u64 {
        let (mut sum, mut salt) = (self.factor, self.salt);
        let (pairs, _) = words.as_chunks::<2>();
        for &[one, other] in pairs {
            sum = sum.wrapping_add(fold(one ^ salt, other ^ salt.rotate_left(32)));
            salt = next_salt(salt);
        }
        (sum ^ sum >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }
}

/// Returns the exclusive or of the halves of a 128-bit product.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    #[allow(clippy::cast_possible_truncation)] // both halves are used
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}

/// Returns the salt of the next word. The salts of a key differ, so words of 0 do not make
/// products 0.
#[inline]
fn next_salt(salt: u64) -> u64 {
    salt.rotate_left(7).wrapping_add(0x9e37_79b9_7f4a_7c15)
}
