//! Truncated and changed texts make no reader panic.

use classyard_configs::ConfigFormat;
use classyard_workload::diagnostic::ReadOptions;

use crate::support::{FORMATS, Numbers, read_with};

/// Statements of all systems.
const TEXT: &str = "\
ASA Version 9.1
name 10.0.0.5 MAIL
object network N
 range 10.0.0.1 10.0.0.9
object-group service S tcp-udp
 port-object range 1 9
object-group network ipv4 G
 host 10.0.0.1
 10.0.0.0 255.0.0.0
 group-object G
object-group ip port P
 10 neq 7
ip access-list extended E
 10 permit tcp any eq 1 2 3 host 10.0.0.1 range 5 9 match-all +syn -ack log
 remark text é ü
 no 10
 deny icmp any any 3 4 fragments (12 matches)
ip access-list A
  fragments permit-all
  permit udp 10.0.0.0/8 addrgroup G portgroup P
ipv4 access-list X
 20 permit ipv4 net-group G any ttl range 1 2
ipv6 access-list V
 permit icmp any 2001:db8::/32 nd-na sequence 7
access-list 10 permit 10.0.0.0, wildcard bits 0.0.0.255 (3 matches)
access-list 101 deny ip 10.0.0.0 0.255.0.255 any dscp ef
access-list O line 1 extended permit tcp object-group G object-group S any4 eq www log 5 interval 9
  access-list O line 1 extended permit ip any interface outside (hitcnt=3) 0x12
Extended IP access list 102
    10 permit 47 any any
access-group O in interface outside
banner motd ^Ctext^C
";

fn read_all(text: &str, formats: &[ConfigFormat]) {
    let options = ReadOptions::DEFAULT.with_skip_bad(true).with_limit(10_000);
    let _ = ConfigFormat::detect(text);
    for &format in formats {
        if let Ok(config) = read_with(text, format, &options) {
            assert_eq!(config.source_of_rule.len(), config.policy.len());
        }
    }
}

#[test]
fn truncations() {
    for (end, _) in TEXT.char_indices() {
        read_all(&TEXT[..end], &FORMATS);
        read_all(&TEXT[end..], &FORMATS);
    }
}

#[test]
fn changed_characters() {
    let mut numbers = Numbers(7);
    let characters: Vec<char> = TEXT.chars().collect();
    let other = [
        '\n', ' ', '\t', '0', '9', '/', ':', '.', '(', ')', 'é', '\u{85}', '-', '\r',
    ];
    for round in 0..4000 {
        let mut changed = characters.clone();
        for _ in 0..=numbers.below(4) {
            let index = numbers.below(changed.len());
            match numbers.below(3) {
                0 => changed[index] = other[numbers.below(other.len())],
                1 => {
                    changed.remove(index);
                }
                _ => changed.insert(index, other[numbers.below(other.len())]),
            }
        }
        let text: String = changed.into_iter().collect();
        read_all(&text, &FORMATS[round % 4..=round % 4]);
    }
}

#[test]
fn changed_words_and_lines() {
    let mut numbers = Numbers(8);
    let words: Vec<&str> = TEXT.split_ascii_whitespace().collect();
    let lines: Vec<&str> = TEXT.lines().collect();
    for round in 0..4000 {
        let mut text = String::new();
        for _ in 0..numbers.below(20) {
            let line = numbers.pick(&lines);
            let mut line_words: Vec<&str> = line.split(' ').collect();
            for _ in 0..numbers.below(3) {
                let index = numbers.below(line_words.len());
                line_words[index] = numbers.pick(&words);
            }
            text += &line_words.join(" ");
            text.push('\n');
        }
        read_all(&text, &FORMATS[round % 4..=round % 4]);
    }
}
