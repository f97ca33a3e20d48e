//! Limits of rules, conditions and changes.

use std::fmt::Write as _;

use classyard_workload::diagnostic::{ReadError, ReadOptions};

use crate::support::{CiscoAsa, CiscoIos, problems, read_with};

#[test]
fn rules_have_a_limit() {
    let text = "ip access-list extended A\n permit tcp any any eq 1 3 5 7\n";
    let options = ReadOptions::DEFAULT.with_limit(6);
    assert_eq!(read_with(text, CiscoIos, &options).unwrap().policy.len(), 6);
    let options = ReadOptions::DEFAULT.with_limit(5);
    let error = read_with(text, CiscoIos, &options).unwrap_err();
    assert!(
        matches!(error, ReadError::Limit { limit: 5, .. }),
        "{error}"
    );
}

#[test]
fn a_product_of_groups_has_a_limit() {
    let mut text = String::from("object-group network G\n");
    for host in 0..300 {
        writeln!(text, " host 10.0.{}.{}", host / 256, host % 256).unwrap();
    }
    text += "ip access-list extended A\n permit ip object-group G object-group G\n";
    let message = problems(&text, CiscoIos);
    assert!(
        message.starts_with("f:303:2: the rule expands to more than 65536"),
        "{message}"
    );
}

#[test]
fn conditions_have_a_limit() {
    let mut text = String::from("ip access-list extended A\n");
    for length in 0..129 {
        writeln!(text, " permit ip any any packet-length eq {length}").unwrap();
    }
    let message = problems(&text, CiscoIos);
    assert!(
        message.starts_with("f:130:20: more than 128 different conditions"),
        "{message}"
    );
}

#[test]
fn changes_have_a_limit() {
    let mut text = String::from("ip access-list extended A\n permit ip any any\n");
    text += &" 20 deny ip any any\n no 20\n".repeat(1001);
    let message = problems(&text, CiscoIos);
    assert!(
        message.starts_with("f:2004:2: more than 1000 changes of a list"),
        "{message}"
    );
    let text = "access-list A line 1 permit ip any any\n".repeat(1002);
    assert!(problems(&text, CiscoAsa).starts_with("f:1002:1: more than 1000 changes"));
}

/// A banner without an end does not hide the statements after it.
#[test]
fn banners_end_or_are_no_banners() {
    let text = "banner motd #\naccess-list 5 permit foo\n";
    assert!(problems(text, CiscoIos).starts_with("f:2:22: `foo` is not an address"));
    let text = "banner motd #\naccess-list 5 permit foo\n#\n";
    assert_eq!(problems(text, CiscoIos), "");
    let text = "banner motd # one line #\naccess-list 5 permit foo\n";
    assert!(problems(text, CiscoIos).starts_with("f:2:22"));
}
