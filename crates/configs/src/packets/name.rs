//! Names of lists and interfaces as values of fields.

use super::Values;

/// The number of bytes of a name in a field.
const NAME_BYTES: usize = 16;

/// The number of bytes at the start of a long name that are kept.
const KEPT_BYTES: usize = 8;

/// Returns the value of a name: its bytes, padded with zero bytes. A name of more than 16
/// bytes becomes its first 8 bytes, `~` and 7 characters that are computed from the name.
pub(crate) fn name_value(name: &str) -> Values {
    let mut bytes = [0; NAME_BYTES];
    if name.len() <= NAME_BYTES {
        bytes[..name.len()].copy_from_slice(name.as_bytes());
    } else {
        bytes[..KEPT_BYTES].copy_from_slice(&name.as_bytes()[..KEPT_BYTES]);
        bytes[KEPT_BYTES] = b'~';
        let mut hash = fnv1a(name.as_bytes());
        for byte in &mut bytes[KEPT_BYTES + 1..] {
            *byte = b"0123456789abcdefghijklmnopqrstuv"[(hash & 31) as usize];
            hash >>= 5;
        }
    }
    Values::bits(u128::from_be_bytes(bytes), u128::MAX)
}

/// Returns the names that start with the first 16 bytes of a text.
pub(crate) fn name_prefix(start: &str) -> Values {
    let mut bytes = [0; NAME_BYTES];
    let length = start.len().min(NAME_BYTES);
    bytes[..length].copy_from_slice(&start.as_bytes()[..length]);
    let free_bits = 8 * (NAME_BYTES - length);
    let mask = u128::MAX.checked_shl(u32::try_from(free_bits).expect("at most 128"));
    Values::bits(u128::from_be_bytes(bytes), mask.unwrap_or(0))
}

/// Returns the name that a value stands for. `None` if the bytes are not of a name.
pub(crate) fn name_of_value(value: u128) -> Option<String> {
    let bytes = value.to_be_bytes();
    let length = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let name = std::str::from_utf8(&bytes[..length]).ok()?;
    let is_plain = !name.is_empty() && !name.chars().any(char::is_control);
    is_plain.then(|| name.to_owned())
}

/// The hash function FNV-1a. It must not change: two files have the same value for a name.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
