//! The language of `tcp-flags`: `!`, `&` or `+`, `|` or `,`, and parentheses.

use classyard_text::Fault;
use classyard_text::line::quoted;

use crate::packets::Values;

/// The maximum number of parentheses and `!` inside each other.
const MAX_DEPTH: usize = 64;

/// The number of values of the field.
const VALUES: usize = 256;

/// The flags by name, with their bits.
const NAMES: [(&str, u8); 10] = [
    ("fin", 0x01),
    ("syn", 0x02),
    ("rst", 0x04),
    ("push", 0x08),
    ("psh", 0x08),
    ("ack", 0x10),
    ("urgent", 0x20),
    ("urg", 0x20),
    ("ece", 0x40),
    ("cwr", 0x80),
];

/// Values of the field of TCP flags.
type FlagSet = [bool; VALUES];

/// Returns the values of the TCP flags for which an expression holds.
pub(super) fn parse(text: &str) -> Result<Vec<Values>, Fault<'_>> {
    let mut expression = Expression { unread: text };
    let flags = expression.either(0)?;
    expression.skip_spaces();
    match expression.unread.is_empty() {
        true => Ok(cover(&flags)),
        false => Err(expression.fault("`&`, `|` or the end of the expression")),
    }
}

struct Expression<'t> {
    unread: &'t str,
}

impl<'t> Expression<'t> {
    fn skip_spaces(&mut self) {
        self.unread = self.unread.trim_start();
    }

    fn fault(&self, expected: &str) -> Fault<'t> {
        match self.unread.is_empty() {
            true => Fault::new(self.unread, "the expression ends here", expected),
            false => Fault::new(self.unread, quoted(self.unread), expected),
        }
    }

    /// Skips a character of a pair.
    fn skip(&mut self, characters: [char; 2]) -> bool {
        self.skip_spaces();
        match self.unread.strip_prefix(characters) {
            Some(unread) => {
                self.unread = unread;
                true
            }
            None => false,
        }
    }

    fn either(&mut self, depth: usize) -> Result<FlagSet, Fault<'t>> {
        let mut flags = self.all(depth)?;
        while self.skip(['|', ',']) {
            let operand_flags = self.all(depth)?;
            flags = std::array::from_fn(|value| flags[value] || operand_flags[value]);
        }
        Ok(flags)
    }

    fn all(&mut self, depth: usize) -> Result<FlagSet, Fault<'t>> {
        let mut flags = self.operand(depth)?;
        while self.skip(['&', '+']) {
            let operand_flags = self.operand(depth)?;
            flags = std::array::from_fn(|value| flags[value] && operand_flags[value]);
        }
        Ok(flags)
    }

    fn operand(&mut self, depth: usize) -> Result<FlagSet, Fault<'t>> {
        if depth == MAX_DEPTH {
            return Err(Fault::new(
                self.unread,
                format!("more than {MAX_DEPTH} parentheses and `!` inside each other"),
                "a simpler expression",
            ));
        }
        if self.skip(['!', '!']) {
            return Ok(self.operand(depth + 1)?.map(|holds| !holds));
        }
        if self.skip(['(', '(']) {
            let flags = self.either(depth + 1)?;
            return match self.skip([')', ')']) {
                true => Ok(flags),
                false => Err(self.fault("`)`")),
            };
        }
        self.flag()
    }

    fn flag(&mut self) -> Result<FlagSet, Fault<'t>> {
        let is_end = |c: char| !c.is_ascii_alphanumeric();
        let end = self.unread.find(is_end).unwrap_or(self.unread.len());
        let (word, unread) = self.unread.split_at(end);
        let expected = "a flag: fin, syn, rst, push, ack, urgent, ece or cwr";
        if word.is_empty() {
            return Err(self.fault(expected));
        }
        let named = NAMES.iter().find(|(name, _)| *name == word);
        let number = word
            .strip_prefix("0x")
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let bit = match (named, number) {
            (Some((_, bit)), _) => *bit,
            (None, Some(number)) if number.count_ones() == 1 => number,
            (None, Some(_)) => {
                return Err(Fault::unsupported(
                    word,
                    "a number of several TCP flags",
                    "the names of the flags",
                ));
            }
            (None, None) => return Err(Fault::new(word, quoted(word), expected)),
        };
        self.unread = unread;
        Ok(std::array::from_fn(|value| value & usize::from(bit) != 0))
    }
}

/// Returns disjoint sets of the values that are true.
fn cover(flags: &FlagSet) -> Vec<Values> {
    let mut sets = Vec::new();
    let mut parts = vec![(0_usize, 0_usize)];
    while let Some((value, mask)) = parts.pop() {
        let members = || (0..VALUES).filter(|member| member & mask == value);
        if members().all(|member| flags[member]) {
            sets.push(Values::bits(value as u128, mask as u128));
        } else if members().any(|member| flags[member]) {
            // The first bit on which the values of this part depend.
            let mut bits = (0..8).map(|bit| 1 << bit).filter(|bit| mask & bit == 0);
            let depends =
                |bit: &usize| members().any(|member| flags[member] != flags[member ^ bit]);
            if let Some(bit) = bits.find(depends) {
                parts.push((value | bit, mask | bit));
                parts.push((value, mask | bit));
            }
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of an expression.
    fn values(text: &str) -> Vec<u128> {
        let sets = parse(text).unwrap();
        let is_in = |value: &u128| {
            let count = sets.iter().filter(|set| match set {
                Values::Bits { value: bits, mask } => value & mask == *bits,
                Values::Range { .. } => panic!("flags are bits"),
            });
            let count = count.count();
            assert!(count < 2, "{text} has {value} twice");
            count == 1
        };
        (0..256).filter(is_in).collect()
    }

    #[test]
    fn expressions_select_flags() {
        let check = |text: &str, holds: fn(u128) -> bool| {
            assert_eq!(
                values(text),
                (0..256).filter(|v| holds(*v)).collect::<Vec<_>>(),
                "{text}"
            );
        };
        check("syn", |v| v & 2 != 0);
        check("syn & !ack", |v| v & 2 != 0 && v & 16 == 0);
        check("(ack | rst)", |v| v & 20 != 0);
        check("ack,rst", |v| v & 20 != 0);
        check("!(syn&ack)", |v| v & 18 != 18);
        check("syn | fin & rst", |v| v & 2 != 0 || v & 5 == 5);
        check("(syn | fin) + !0x04", |v| v & 3 != 0 && v & 4 == 0);
        check("!!urgent", |v| v & 32 != 0);
        check("syn & !syn", |_| false);
        check("syn | !syn", |_| true);
    }

    #[test]
    fn mistakes_are_found() {
        for text in [
            "", "syn &", "(syn", "syn)", "syn ack", "foo", "0x03", "!", "&", "0x100",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"!".repeat(100_000)).is_err());
        assert!(parse(&"(".repeat(100_000)).is_err());
    }
}
