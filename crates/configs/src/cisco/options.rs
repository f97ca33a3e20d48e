//! The options at the end of entries of routers and switches.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::Dialect;
use super::address::Condition;
use super::names;
use super::selector::Selector;
use super::words::Words;
use crate::packets::Values;

/// Options that are conditions, with a value that may follow an operator.
const CONDITIONS_WITH_VALUE: [&str; 17] = [
    "cos",
    "dest-option-type",
    "dscp",
    "flow-label",
    "fragment-type",
    "http-method",
    "mobility-type",
    "option",
    "packet-length",
    "precedence",
    "routing-type",
    "tcp-option-length",
    "time-range",
    "tos",
    "ttl",
    "vlan",
    "vni",
];

/// Options that are conditions without a value.
const CONDITIONS: [&str; 7] = [
    "auth",
    "dest-option",
    "destopts",
    "hbh",
    "mobility",
    "routing",
    "undetermined-transport",
];

/// Options that do not change which packets pass.
const IGNORED: [&str; 5] = ["capture", "icmp-off", "icmp-on", "log", "log-input"];

/// Options with effects that are not modelled.
const UNSUPPORTED: [&str; 12] = [
    "default",
    "evaluate",
    "nexthop1",
    "nexthop2",
    "nexthop3",
    "nexthop",
    "police",
    "redirect",
    "reflect",
    "set",
    "tcp-flags-mask",
    "udf",
];

const EXPECTED: &str = "an option of an entry such as `log`, or the end of the statement";

/// Reads the options up to the end of the statement.
pub(super) fn read_options<'t>(
    words: &mut Words<'t>,
    dialect: Dialect,
    selector: &mut Selector<'t>,
) -> Result<(), Fault<'t>> {
    read_icmp_or_igmp(words, selector)?;
    let mut fragments_word = None;
    while let Some(word) = words.peek() {
        if is_flag(word) || matches!(word, "match-any" | "match-all") {
            read_flags(words, selector)?;
            continue;
        }
        words.take();
        match word {
            "established" => {
                let flags = names::ESTABLISHED_FLAGS.iter();
                let flags = flags.filter_map(|name| names::tcp_flag(name));
                selector.add_flags(word, flags.map(|mask| Values::bits(mask, mask)).collect())?;
            }
            "fragments" => fragments_word = Some(word),
            "counter" => {
                words.require("the name of a counter")?;
            }
            "nve" => {}
            _ if IGNORED.contains(&word) => skip_cookie(word, words, dialect),
            _ if CONDITIONS_WITH_VALUE.contains(&word) => {
                let text = read_condition(word, words)?;
                selector.conditions.push(Condition { text, word });
            }
            _ if CONDITIONS.contains(&word) => selector.conditions.push(Condition {
                text: word.to_owned(),
                word,
            }),
            _ => return Err(unknown_option(word)),
        }
    }
    match fragments_word {
        Some(word) => selector.require_fragments(word),
        None => Ok(()),
    }
}

fn unknown_option(word: &str) -> Fault<'_> {
    match UNSUPPORTED.contains(&word) {
        true => Fault::unsupported(word, format!("the option `{word}`"), "an entry without it"),
        false => Fault::new(word, format!("the unknown word {}", quoted(word)), EXPECTED),
    }
}

/// True if a word is a control bit of TCP, perhaps with a sign.
fn is_flag(word: &str) -> bool {
    names::tcp_flag(word.trim_start_matches(['+', '-'])).is_some()
}

/// A message of IGMP is a condition, as no field has it.
fn read_icmp_or_igmp<'t>(
    words: &mut Words<'t>,
    selector: &mut Selector<'t>,
) -> Result<(), Fault<'t>> {
    let [service] = &mut selector.services[..] else {
        return Ok(());
    };
    match service.protocol {
        Some(protocol @ (names::ICMP_NUMBER | names::ICMPV6_NUMBER)) if service.icmp.is_none() => {
            let message = super::service::read_icmp(words, protocol)?;
            service.icmp = message.map(|message| vec![message]);
        }
        Some(names::IGMP_NUMBER) => {
            let is_message =
                |word: &&str| names::is_number(word) || names::IGMP_NAMES.contains(word);
            if let Some(word) = words.peek().filter(is_message) {
                words.take();
                let text = format!("igmp {word}");
                selector.layer4_conditions.push(Condition { text, word });
            }
        }
        _ => {}
    }
    Ok(())
}

/// IOS takes a word after `log` that its messages repeat.
fn skip_cookie(option: &str, words: &mut Words<'_>, dialect: Dialect) {
    let is_last = words.unread().len() == 1;
    if dialect != Dialect::Ios || !is_last || !option.starts_with("log") {
        return;
    }
    let is_option = |word: &str| {
        let lists: [&[&str]; 4] = [&IGNORED, &CONDITIONS, &CONDITIONS_WITH_VALUE, &UNSUPPORTED];
        lists.iter().any(|list| list.contains(&word))
            || is_flag(word)
            || matches!(word, "established" | "fragments")
    };
    if words.peek().is_some_and(|word| !is_option(word)) {
        words.take();
    }
}

/// Returns a condition with its value, such as `dscp ef` or `ttl range 1 5`.
fn read_condition<'t>(word: &str, words: &mut Words<'t>) -> Result<String, Fault<'t>> {
    const EXPECTED_VALUE: &str = "the value of the option";
    let mut text = word.to_owned();
    let mut value = words.require(EXPECTED_VALUE)?;
    let values_after_first = match value {
        "eq" | "neq" | "lt" | "gt" => 1,
        "range" => 2,
        _ => 0,
    };
    for _ in 0..values_after_first {
        text.extend([" ", value]);
        value = words.require(EXPECTED_VALUE)?;
    }
    text.extend([" ", value]);
    Ok(text)
}

/// Reads control bits of TCP: `syn`, or `match-all +syn -ack`.
fn read_flags<'t>(words: &mut Words<'t>, selector: &mut Selector<'t>) -> Result<(), Fault<'t>> {
    let first_word = words.require("a TCP flag")?;
    let keyword = matches!(first_word, "match-any" | "match-all").then_some(first_word);
    let mut flags = Vec::new();
    if keyword.is_none() {
        flags.push(flag_values(first_word));
    }
    while let Some(word) = words.peek().filter(|word| is_flag(word)) {
        words.take();
        flags.push(flag_values(word));
    }
    match (keyword, flags.len()) {
        (_, 0) => Err(words.missing("a TCP flag such as `+syn`")),
        (None, 2..) => Err(Fault::unsupported(
            first_word,
            "several TCP flags without `match-any` or `match-all`",
            "`match-any` or `match-all` before the flags",
        )),
        (Some("match-all"), _) => {
            let mut all = Values::bits(0, 0);
            let (mut value, mut mask) = (0, 0);
            for &(flag_value, flag_mask) in &flags {
                let conflicts = (value ^ flag_value) & mask & flag_mask != 0;
                if conflicts {
                    return Err(Fault::new(
                        first_word,
                        "a TCP flag that must be set and not set",
                        "each flag once",
                    ));
                }
                value |= flag_value;
                mask |= flag_mask;
                all = Values::bits(value, mask);
            }
            selector.add_flags(first_word, vec![all])
        }
        _ => {
            let alternatives = flags.iter().map(|&(value, mask)| Values::bits(value, mask));
            selector.add_flags(first_word, alternatives.collect())
        }
    }
}

/// Returns the value and the mask of a flag: `syn` and `+syn` are set, `-syn` is not set.
fn flag_values(word: &str) -> (u128, u128) {
    let mask = names::tcp_flag(word.trim_start_matches(['+', '-'])).unwrap_or(0);
    match word.starts_with('-') {
        true => (0, mask),
        false => (mask, mask),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of ports ends at the first option.
    #[test]
    fn no_option_is_the_name_of_a_port() {
        let lists: [&[&str]; 4] = [&CONDITIONS_WITH_VALUE, &CONDITIONS, &IGNORED, &UNSUPPORTED];
        let others = [
            "established",
            "fragments",
            "counter",
            "nve",
            "match-any",
            "match-all",
        ];
        for word in lists.concat().iter().chain(&others) {
            assert_eq!(names::port(word, &[]), None, "{word}");
            assert!(!names::AMBIGUOUS_PORTS.contains(word), "{word}");
        }
    }
}
