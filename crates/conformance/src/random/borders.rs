//! Values at the borders of bytes, 16-bit lanes and words inside of wide fields.
//!
//! Engines compare fields in pieces. Mistakes with pieces affect ranges that cross a
//! multiple of a piece's size, and headers close to such a multiple.

use super::Dice;

/// The bits at which pieces begin.
const PIECE_BITS: [u32; 9] = [8, 16, 24, 32, 48, 64, 80, 96, 112];

/// Returns a number whose lowest `count` bits are 1. `count` must be below 128.
fn ones(count: u32) -> u128 {
    (1 << count) - 1
}

/// Returns a bit of a field at which a piece begins or, one time in four, any bit.
pub(super) fn piece(width: u32, dice: &mut dyn Dice) -> u32 {
    let begins = PIECE_BITS.iter().filter(|&&bit| bit < width).count();
    if begins == 0 || dice.one_in(4) {
        u32::try_from(dice.below(width as usize)).expect("below 128")
    } else {
        *dice.pick(&PIECE_BITS[..begins])
    }
}

/// Returns a border inside of a field: a multiple of a power of two, other than 0. Some
/// results are the next border below `near`.
pub(super) fn border(width: u32, near: u128, dice: &mut dyn Dice) -> u128 {
    let bit = piece(width, dice);
    let multiple = match dice.below(3) {
        0 => 0,
        1 => near,
        _ => dice.bits(width),
    };
    (multiple & !ones(bit)).max(1 << bit)
}

/// Returns the number of values by which a range extends beyond a border: at least 1.
fn reach(width: u32, dice: &mut dyn Dice) -> u128 {
    match dice.below(4) {
        0 => 1,
        1 => 1 + dice.bits(4),
        2 => 1 << dice.below(width as usize),
        _ => {
            let bits = 1 + dice.below(width as usize);
            let bits = u32::try_from(bits).expect("at most 128");
            dice.bits(bits).saturating_add(1)
        }
    }
}

/// Returns a range with values on both sides of a border. `border` must be above 0.
pub(super) fn straddling(border: u128, width: u32, dice: &mut dyn Dice) -> (u128, u128) {
    let full = u128::MAX >> (128 - width);
    let low = border.saturating_sub(reach(width, dice));
    let high = border.saturating_add(reach(width, dice) - 1).min(full);
    (low, high)
}

/// Returns the range of a prefix around a value, with one value more or less at one end.
pub(super) fn nearly_prefix(value: u128, width: u32, dice: &mut dyn Dice) -> (u128, u128) {
    let full = u128::MAX >> (128 - width);
    let low_bits = ones(piece(width, dice));
    let (low, high) = (value & !low_bits, value | low_bits);
    match dice.below(4) {
        0 => ((low + 1).min(high), high),
        1 => (low, high.saturating_sub(1).max(low)),
        2 => (low.saturating_sub(1), high),
        _ => (low, high.saturating_add(1).min(full)),
    }
}

/// Returns the range between two values after setting their lowest bits to all zeros or all
/// ones.
pub(super) fn round_ends(a: u128, b: u128, width: u32, dice: &mut dyn Dice) -> (u128, u128) {
    let low_bits = ones(piece(width, dice));
    let round = |end: u128, dice: &mut dyn Dice| match dice.below(3) {
        0 => end & !low_bits,
        1 => end | low_bits,
        _ => end,
    };
    let (a, b) = (round(a, dice), round(b, dice));
    (a.min(b), a.max(b))
}

/// Returns a value of a range next to a border that the range crosses. If the range has
/// only one value, returns it.
pub(super) fn beside(low: u128, high: u128, dice: &mut dyn Dice) -> u128 {
    if low == high {
        return low;
    }
    // The range crosses a multiple of this power of two, and so of all lower powers.
    let top = 127 - (low ^ high).leading_zeros();
    let bit = match dice.below(2) {
        0 => top,
        _ => top.min(*dice.pick(&PIECE_BITS)),
    };
    let low_bits = ones(bit);
    let (first, last) = ((low | low_bits) + 1, high & !low_bits);
    let border = match dice.below(3) {
        0 => first,
        1 => last,
        _ => dice.between(first, last) & !low_bits,
    };
    match dice.below(4) {
        0 => border - 1,
        1 => border,
        2 => border.saturating_add(1).min(high),
        _ => (border | low_bits).min(high),
    }
}

/// Returns a value that is usually outside of a range: by a piece's size, or in one 16-bit
/// piece only.
pub(super) fn beyond(low: u128, high: u128, width: u32, dice: &mut dyn Dice) -> u128 {
    let full = u128::MAX >> (128 - width);
    let bit = piece(width, dice);
    let lane = 0xffff << bit & full;
    match dice.below(6) {
        0 => low.saturating_sub(1 << bit),
        1 => high.saturating_add(1 << bit).min(full),
        2 => low & !lane,
        3 => low | lane,
        4 => high & !lane,
        _ => high | lane,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededDice;

    #[test]
    fn values_keep_to_their_fields_and_ranges() {
        let mut dice = SeededDice::new(31);
        let dice: &mut dyn Dice = &mut dice;
        for round in 0..64_000 {
            let width = 1 + round % 128;
            let full = u128::MAX >> (128 - width);
            let value = dice.bits(width);
            let border = border(width, value, dice);
            assert!(border > 0 && border <= full);
            let (low, high) = straddling(border, width, dice);
            assert!(low < border && border <= high && high <= full);
            let inside = beside(low, high, dice);
            assert!(
                (low..=high).contains(&inside),
                "{inside:x} {low:x} {high:x}"
            );
            let (low, high) = nearly_prefix(value, width, dice);
            assert!(low <= high && high <= full);
            let (low, high) = round_ends(value, dice.bits(width), width, dice);
            assert!(low <= high && high <= full);
            assert!(beyond(low, high, width, dice) <= full);
            assert_eq!(beside(value, value, dice), value);
        }
    }
}
