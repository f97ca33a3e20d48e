//! The sizes of the processor's caches, read from Linux.

use std::fs;
use std::path::Path;

/// Returns the bytes of the first processor's L1 data cache and of its L2 and L3
/// caches, or `None` if the system does not report them.
pub(super) fn sizes() -> Option<[usize; 3]> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut sizes = [None; 3];
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
        else {
            continue;
        };
        if kind.trim() == "Instruction" {
            continue;
        }
        let level: usize = level.trim().parse().ok()?;
        if let Some(slot) = level.checked_sub(1).and_then(|at| sizes.get_mut(at)) {
            *slot = bytes(size.trim());
        }
    }
    let [first, second, third] = sizes;
    let second = second?;
    // Some processors have no L3 cache.
    Some([first?, second, third.unwrap_or(second)])
}

/// Parses a size such as `48K`.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let times = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("48K"), Some(49_152));
        assert_eq!(bytes("32M"), Some(32 << 20));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("x"), None);
        assert_eq!(bytes("3G"), None);
    }
}
