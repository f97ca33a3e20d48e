//! Reads filter sets.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::policy::Policy;
use classyard::{FieldMatch, Priority, Schema};

use super::super::text::{counted_verb, decimal, is_blank, lines, quoted, words};
use super::super::{
    Fault, SchemaChoice, check_count, limit_reached, line_number, rule_number, value,
};
use super::{NO_ACTION, parts};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};

/// The number of fields of firewall rules.
const ACL_FIELDS: usize = 14;
/// The position of the TCP flags among them.
const ACL_TCP_FLAGS: usize = 7;

/// The contents of a line.
#[derive(Debug, PartialEq, Eq)]
struct Filter {
    v6: bool,
    src: (u128, u32),
    dst: (u128, u32),
    sport: (u32, u32),
    dport: (u32, u32),
    protocol: Option<u32>,
    /// The value and the mask of TCP flags, if the line has a condition on them.
    flags: Option<(u32, u32)>,
    /// True if there are columns after the flags.
    extra: bool,
}

impl Filter {
    /// Returns the matches of all fields of firewall rules. The flags of TCP are the upper
    /// eight bits of their column. `None` if the mask has lower bits.
    fn acl_matches(&self) -> Option<[FieldMatch; ACL_FIELDS]> {
        let mut matches = [FieldMatch::Any; ACL_FIELDS];
        matches[..5].copy_from_slice(&self.matches());
        if let Some((value, mask)) = self.flags {
            if mask & 0xff != 0 {
                return None;
            }
            matches[ACL_TCP_FLAGS] = FieldMatch::Ternary {
                value: u128::from(value & mask) >> 8,
                mask: u128::from(mask) >> 8,
            };
        }
        Some(matches)
    }

    fn matches(&self) -> [FieldMatch; 5] {
        let prefix = |(value, length)| FieldMatch::Prefix { value, length };
        let range = |(low, high): (u32, u32)| FieldMatch::Range {
            low: low.into(),
            high: high.into(),
        };
        [
            prefix(self.src),
            prefix(self.dst),
            range(self.sport),
            range(self.dport),
            match self.protocol {
                Some(number) => FieldMatch::Exact(number.into()),
                None => FieldMatch::Any,
            },
        ]
    }
}

/// Reads a filter set; see the [module](super) for the format.
///
/// # Errors
/// [`ReadError`]: the bad lines, more rules than `options` allow, or a `schema` that is
/// not a five-tuple.
pub fn read(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
) -> Result<Loaded<Policy>, ReadError> {
    let survey = Survey::of(text);
    let choice = match schema {
        Some(choice) => choice.clone(),
        None => match (survey.v4, survey.v6) {
            (true, true) => SchemaChoice::DualStack,
            (false, true) => SchemaChoice::Single(Schema::ipv6_5tuple()),
            _ => SchemaChoice::Single(Schema::ipv4_5tuple()),
        },
    };
    let has_flags = matches!(choice, SchemaChoice::Acl);
    // `acl` has the same parts as dual-stack five-tuples.
    let five_tuples = if has_flags {
        &SchemaChoice::DualStack
    } else {
        &choice
    };
    let [v4, v6] = parts(five_tuples).ok_or_else(|| ReadError::Format {
        file: source.to_owned(),
        found: format!("schema `{}` was asked for", choice.name()),
        expected: "a schema of five-tuples or acl, as ClassBench has no other rules".to_owned(),
    })?;

    let rules = lines(text).filter(|(_, line)| !is_blank(line));
    check_count(source, survey.rules, rules.clone(), options)?;
    let mut policy = choice.policy();
    policy.reserve(survey.rules.min(options.limit));
    let action = policy.declare_action(NO_ACTION);
    let mut problems = Problems::new(source);
    let mut unused = UnusedColumns::default();
    let mut rule_lines = Vec::new();
    for (index, (number, line)) in rules.enumerate() {
        let id = rule_number(source, index, number)?;
        let priority = u32::try_from(survey.rules - index).unwrap_or(u32::MAX);
        let parsed = match parse_quickly(line.as_bytes()) {
            Some(filter) => Ok(filter),
            None => parse_carefully(line),
        };
        let added = parsed.and_then(|filter| {
            let Some(part) = (if filter.v6 { v6 } else { v4 }) else {
                return Err(wrong_family(line, &filter, &choice));
            };
            if policy.len() >= options.limit {
                return Ok(false);
            }
            let (five_tuple, all_fields);
            let matches: &[FieldMatch] = if has_flags {
                all_fields = filter.acl_matches().ok_or_else(|| unknown_flags(line))?;
                &all_fields
            } else {
                five_tuple = filter.matches();
                &five_tuple
            };
            policy
                .add(id, Priority(priority), action, &[(part, matches)])
                .map_err(|error| Fault::new(line.trim(), error.to_string(), "a rule"))?;
            unused.flags += usize::from(filter.flags.is_some() && !has_flags);
            unused.further += usize::from(filter.extra);
            Ok(true)
        });
        match added {
            Ok(true) => rule_lines.push(line_number(number)),
            Ok(false) => return Err(limit_reached(source, number, options, "rules")),
            Err(fault) => problems.push_fault(fault, number, line),
        }
    }

    let mut loaded = options.finish(problems.with_good_lines(policy.len()), policy)?;
    loaded.rule_lines = rule_lines;
    if unused.flags > 0 || unused.further > 0 {
        loaded.merged_rules = merged_rules(text, has_flags);
    }
    loaded.notes.extend(unused.notes(loaded.merged_rules));
    Ok(loaded)
}

/// The number of rules with columns that are not used.
#[derive(Debug, Default)]
struct UnusedColumns {
    flags: usize,
    further: usize,
}

impl UnusedColumns {
    /// Returns notes about the rules. `merged_rules` differ from another in these columns only.
    fn notes(&self, merged_rules: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if self.flags > 0 {
            notes.push(format!(
                "{} TCP flags, which are not among the five fields; the demand was dropped \
                 (--schema acl keeps it)",
                counted_verb(self.flags, "rule", "demands", "demand")
            ));
        }
        if self.further > 0 {
            notes.push(format!(
                "{} columns beyond the flags; they were ignored",
                counted_verb(self.further, "rule", "has", "have")
            ));
        }
        if merged_rules > 0 {
            notes.push(format!(
                "{} from another only in columns that were left out, and {} here",
                counted_verb(merged_rules, "rule", "differs", "differ"),
                if merged_rules == 1 {
                    "is its duplicate"
                } else {
                    "are duplicates"
                }
            ));
        }
        notes
    }
}

/// The columns of a rule: true for IPv6, then prefixes, ports, protocol, TCP flags.
/// The flags are `None` if they are not read.
type Columns = (bool, [u128; 4], [u32; 4], Option<u32>, Option<(u32, u32)>);

/// Counts rules that are equal to an earlier rule except for columns that are not read.
fn merged_rules(text: &str, has_flags: bool) -> usize {
    let mut firsts: HashMap<Columns, &str> = HashMap::new();
    let mut merged = 0;
    for (_, line) in lines(text).filter(|(_, line)| !is_blank(line)) {
        let filter = parse_quickly(line.as_bytes()).or_else(|| parse_carefully(line).ok());
        let Some(filter) = filter else {
            continue;
        };
        let width = if filter.v6 { 128 } else { 32 };
        let prefix = |(value, length): (u128, u32)| {
            let wildcard_bits = width - length.min(width);
            value & u128::MAX.checked_shl(wildcard_bits).unwrap_or(0)
        };
        let addresses = [
            prefix(filter.src),
            u128::from(filter.src.1),
            prefix(filter.dst),
            u128::from(filter.dst.1),
        ];
        let ports = [
            filter.sport.0,
            filter.sport.1,
            filter.dport.0,
            filter.dport.1,
        ];
        let flags = filter.flags.filter(|_| has_flags);
        let left_out = left_out(line);
        let first = *firsts
            .entry((filter.v6, addresses, ports, filter.protocol, flags))
            .or_insert(left_out);
        merged += usize::from(first != left_out);
    }
    merged
}

/// Returns the columns of a line after the protocol. Omits flags that match everything.
fn left_out(line: &str) -> &str {
    let protocol = line.split_once("0x").map_or("", |(_, tail)| tail);
    let protocol_end = protocol.find(|c: char| c.is_ascii_whitespace());
    let columns = protocol_end.map_or("", |end| protocol[end..].trim());
    let mask = columns.split_once('/').map_or("", |(_, mask)| mask);
    let no_demand = mask
        .strip_prefix("0x")
        .unwrap_or(mask)
        .trim_start_matches('0');
    if no_demand.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return columns;
    }
    no_demand.trim()
}

/// Returns the fault of flags that are not in the upper eight bits.
fn unknown_flags(line: &str) -> Fault<'_> {
    let mut masked = words(line).filter(|word| word.starts_with("0x"));
    let flags = masked.nth(1).unwrap_or(line);
    Fault::new(
        flags,
        format!("TCP flags {}", quoted(flags)),
        "flags in the upper eight bits, such as 0x1000/0x1000 for ACK",
    )
}

fn wrong_family<'t>(line: &'t str, filter: &Filter, choice: &SchemaChoice) -> Fault<'t> {
    let address = words(line).next().unwrap_or(line);
    let family = if filter.v6 { "IPv6" } else { "IPv4" };
    Fault::new(
        address.trim_start_matches('@'),
        format!("an {family} address in a file read as `{}`", choice.name()),
        format!(
            "addresses of the schema, or the schema `{}`",
            Policy::DUAL_STACK
        ),
    )
}

/// Facts about the whole text, collected before the first line is parsed.
struct Survey {
    rules: usize,
    v4: bool,
    v6: bool,
}

impl Survey {
    fn of(text: &str) -> Survey {
        let mut survey = Survey {
            rules: 0,
            v4: false,
            v6: false,
        };
        for (_, line) in lines(text).filter(|(_, line)| !is_blank(line)) {
            survey.rules += 1;
            match line.bytes().find(|b| matches!(b, b'.' | b':')) {
                Some(b'.') => survey.v4 = true,
                Some(_) => survey.v6 = true,
                None => {}
            }
        }
        survey
    }
}

// ---------------------------------------------------------------- quick path

/// Reads a well-formed IPv4 line. Returns `None` for any other line; the caller then uses
/// [`parse_carefully`].
fn parse_quickly(line: &[u8]) -> Option<Filter> {
    let mut unread = line;
    skip_blanks(&mut unread);
    take(&mut unread, b'@')?;
    let src = quick_prefix(&mut unread)?;
    skip_some_blanks(&mut unread)?;
    let dst = quick_prefix(&mut unread)?;
    skip_some_blanks(&mut unread)?;
    let sport = quick_range(&mut unread)?;
    skip_some_blanks(&mut unread)?;
    let dport = quick_range(&mut unread)?;
    skip_some_blanks(&mut unread)?;
    let (number, mask) = quick_masked(&mut unread, 2)?;
    let protocol = match mask {
        0 => None,
        0xff => Some(number),
        _ => return None,
    };
    let mut filter = Filter {
        v6: false,
        src,
        dst,
        sport,
        dport,
        protocol,
        flags: None,
        extra: false,
    };
    if !unread.is_empty() {
        skip_some_blanks(&mut unread)?;
    }
    if !unread.is_empty() {
        filter.flags = Some(quick_masked(&mut unread, 4)?).filter(|flags| flags.1 != 0);
        if !unread.is_empty() {
            skip_some_blanks(&mut unread)?;
            filter.extra = !unread.is_empty();
        }
    }
    Some(filter)
}

fn take(unread: &mut &[u8], wanted: u8) -> Option<()> {
    let (&first, tail) = unread.split_first()?;
    *unread = tail;
    (first == wanted).then_some(())
}

fn skip_blanks(unread: &mut &[u8]) {
    while let [b' ' | b'\t', tail @ ..] = *unread {
        *unread = tail;
    }
}

fn skip_some_blanks(unread: &mut &[u8]) -> Option<()> {
    let before = unread.len();
    skip_blanks(unread);
    (unread.len() < before).then_some(())
}

/// Reads a decimal number of at most 5 digits and at most `limit`.
fn quick_decimal(unread: &mut &[u8], limit: u32) -> Option<u32> {
    let mut value = 0;
    let mut digits = 0;
    while let [digit @ b'0'..=b'9', tail @ ..] = *unread {
        value = value * 10 + u32::from(digit - b'0');
        *unread = tail;
        digits += 1;
        if digits > 5 {
            return None;
        }
    }
    (digits > 0 && value <= limit).then_some(value)
}

fn quick_prefix(unread: &mut &[u8]) -> Option<(u128, u32)> {
    let mut address = 0;
    for end in *b".../" {
        // Other programs may read a leading zero as octal. The careful path refuses it.
        let padded = matches!(*unread, [b'0', b'0'..=b'9', ..]);
        address = (address << 8) | quick_decimal(unread, 255)?;
        take(unread, end)?;
        if padded {
            return None;
        }
    }
    let length = quick_decimal(unread, 32)?;
    Some((address.into(), length))
}

fn quick_range(unread: &mut &[u8]) -> Option<(u32, u32)> {
    let low = quick_decimal(unread, 0xffff)?;
    skip_blanks(unread);
    take(unread, b':')?;
    skip_blanks(unread);
    let high = quick_decimal(unread, 0xffff)?;
    (low <= high).then_some((low, high))
}

fn quick_masked(unread: &mut &[u8], digits: usize) -> Option<(u32, u32)> {
    let value = quick_hex(unread, digits)?;
    take(unread, b'/')?;
    Some((value, quick_hex(unread, digits)?))
}

fn quick_hex(unread: &mut &[u8], max_digits: usize) -> Option<u32> {
    take(unread, b'0')?;
    take(unread, b'x')?;
    let mut value = 0;
    let mut digits = 0;
    while let Some((digit, tail)) = unread.split_first() {
        let Some(digit) = char::from(*digit).to_digit(16) else {
            break;
        };
        value = value << 4 | digit;
        *unread = tail;
        digits += 1;
        if digits > max_digits {
            return None;
        }
    }
    (digits > 0).then_some(value)
}

// -------------------------------------------------------------- careful path

/// Reads any line, or returns its first fault.
fn parse_carefully(line: &str) -> Result<Filter, Fault<'_>> {
    let mut unread = line;
    let first = next_word(&mut unread, line, "a rule that starts with `@`")?;
    let Some(src_text) = first.strip_prefix('@') else {
        return Err(Fault::new(
            first,
            quoted(first),
            "`@` and the source prefix, such as @192.0.2.0/24",
        ));
    };
    let (src_v6, src) = prefix(src_text)?;
    let dst_text = next_word(&mut unread, line, "the destination prefix")?;
    let (dst_v6, dst) = prefix(dst_text)?;
    if src_v6 != dst_v6 {
        return Err(Fault::new(
            dst_text,
            format!("{} is of another family than the source", quoted(dst_text)),
            if src_v6 {
                "an IPv6 prefix"
            } else {
                "an IPv4 prefix"
            },
        ));
    }
    let sport = range(&mut unread, line, "the source ports as LOW : HIGH")?;
    let dport = range(&mut unread, line, "the destination ports as LOW : HIGH")?;
    let text = next_word(&mut unread, line, "the protocol as 0xNUMBER/0xMASK")?;
    let (number, mask) = masked(text, 0xff, "the protocol as 0xNUMBER/0xMASK")?;
    let protocol = match mask.1 {
        0 => None,
        0xff => Some(number),
        _ => {
            return Err(Fault::new(
                mask.0,
                format!("protocol mask {}", quoted(mask.0)),
                "0x00 for any protocol or 0xFF for this one",
            ));
        }
    };
    let flags = match words(unread).next() {
        None => None,
        Some(_) => {
            let text = next_word(&mut unread, line, "")?;
            let (value, mask) = masked(text, 0xffff, "flags as 0xFLAGS/0xMASK, or the line's end")?;
            Some((value, mask.1)).filter(|flags| flags.1 != 0)
        }
    };
    Ok(Filter {
        v6: src_v6,
        src,
        dst,
        sport,
        dport,
        protocol,
        flags,
        extra: words(unread).next().is_some(),
    })
}

/// Removes the next word from the unread part of a line, and returns it.
fn next_word<'t>(
    unread: &mut &'t str,
    line: &'t str,
    expected: &str,
) -> Result<&'t str, Fault<'t>> {
    let text = unread.trim_ascii_start();
    let word_end = text
        .bytes()
        .position(|b| b.is_ascii_whitespace())
        .unwrap_or(text.len());
    let (word, tail) = text.split_at(word_end);
    *unread = tail;
    if word.is_empty() {
        return Err(Fault::missing(line, expected));
    }
    Ok(word)
}

fn prefix(text: &str) -> Result<(bool, (u128, u32)), Fault<'_>> {
    let Some((address, length)) = text.split_once('/') else {
        return Err(Fault::new(
            text,
            format!("{} has no prefix length", quoted(text)),
            "ADDRESS/LENGTH",
        ));
    };
    let v6 = address.contains(':');
    let bits = if v6 {
        address.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits)
    } else {
        address.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into())
    };
    let Some(bits) = bits else {
        return Err(Fault::new(
            address,
            format!("{} is not an address", quoted(address)),
            "an IPv4 address such as 192.0.2.1 or an IPv6 address such as 2001:db8::1",
        ));
    };
    let width = if v6 { 128 } else { 32 };
    Ok((v6, (bits, value::parse_length(length, width)?)))
}

/// Reads two ports with a colon between them, with or without blanks.
fn range<'t>(unread: &mut &'t str, line: &'t str, expected: &str) -> Result<(u32, u32), Fault<'t>> {
    let text = unread.trim_ascii_start();
    let low = port(text, line, expected)?;
    let after = text[low.0.len()..].trim_ascii_start();
    let Some(after) = after.strip_prefix(':') else {
        return Err(match words(after).next() {
            Some(word) => Fault::new(word, quoted(word), format!("`:` ({expected})")),
            None => Fault::missing(line, expected),
        });
    };
    let after = after.trim_ascii_start();
    let high = port(after, line, expected)?;
    *unread = &after[high.0.len()..];
    if unread
        .bytes()
        .next()
        .is_some_and(|b| !b.is_ascii_whitespace())
    {
        let word = words(unread).next().unwrap_or(unread);
        return Err(Fault::new(word, quoted(word), "a tab after the ports"));
    }
    if low.1 > high.1 {
        let length = text.len() - unread.len();
        return Err(value::inverted(&text[..length]));
    }
    Ok((low.1, high.1))
}

/// Reads a port at the start of a text. Returns its digits and its value.
fn port<'t>(text: &'t str, line: &'t str, expected: &str) -> Result<(&'t str, u32), Fault<'t>> {
    let digits_end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    let digits = &text[..digits_end];
    match decimal::<u16>(digits) {
        Some(port) => Ok((digits, port.into())),
        None if digits.is_empty() => Err(match words(text).next() {
            Some(word) => Fault::new(word, quoted(word), expected),
            None => Fault::missing(line, expected),
        }),
        None => Err(Fault::new(
            digits,
            format!("port {} does not fit in 16 bits", quoted(digits)),
            "at most 65535",
        )),
    }
}

/// Reads `0xVALUE/0xMASK`. Returns the value, and the mask with its text.
fn masked<'t>(
    text: &'t str,
    largest: u32,
    expected: &str,
) -> Result<(u32, (&'t str, u32)), Fault<'t>> {
    let Some((value, mask)) = text.split_once('/') else {
        return Err(Fault::new(text, quoted(text), expected));
    };
    let number = |text: &'t str| {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(value) if value <= largest => Ok(value),
            Some(_) => Err(Fault::new(
                text,
                format!("{} is too large", quoted(text)),
                format!("at most {largest:#x}"),
            )),
            None => Err(Fault::new(text, quoted(text), expected)),
        }
    };
    Ok((number(value)?, (mask, number(mask)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quick path may return `None`, but must never read a line differently than the
    /// careful path.
    #[test]
    fn both_paths_agree() {
        let good = "@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0200\t";
        assert_eq!(parse_quickly(good.as_bytes()), parse_carefully(good).ok());
        assert!(parse_quickly(good.as_bytes()).is_some());
        // Every line that differs in one byte, lacks one byte, or ends early.
        for position in 0..good.len() {
            for byte in 0..128u8 {
                let mut changed = good.as_bytes().to_vec();
                changed[position] = byte;
                agree(&changed);
            }
            let mut shorter = good.as_bytes().to_vec();
            shorter.remove(position);
            agree(&shorter);
            agree(&good.as_bytes()[..position]);
        }
    }

    fn agree(line: &[u8]) {
        let text = std::str::from_utf8(line).unwrap();
        if let Some(quick) = parse_quickly(line) {
            let careful = parse_carefully(text);
            assert_eq!(Some(quick), careful.ok(), "{text:?}");
        }
    }
}
