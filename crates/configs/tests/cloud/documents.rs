//! The syntax of JSON and YAML, and its limits.

use classyard_configs::ConfigFormat::{Aws, Kubernetes};

use crate::helper::{load, problems};

#[test]
fn syntax_errors_have_positions() {
    let start = "{\"SecurityGroups\": ";
    for (tail, expected) in [
        ("[1 2]}", "1:23: `2`; expected `,` or `]`"),
        ("[01]}", "1:21: `01`; expected a number of JSON"),
        ("[-]}", "1:21: `-`; expected a number of JSON"),
        ("nul}", "1:20: `n`; expected a value of JSON"),
        (
            "[\"\\x\"]}",
            "1:22: `\\x`; expected an escape sequence of JSON",
        ),
        (
            "[\"\\ud800\"]}",
            "1:22: `\\ud800`; expected an escape sequence of JSON",
        ),
        (
            "[\"\\ud800\\u0041\"]}",
            "1:22: `\\ud800`; expected an escape sequence of JSON",
        ),
        (
            "[\"\u{7}\"]}",
            "1:22: a control character in a string; expected an escape",
        ),
        (
            "[\"a",
            "1:23: the text ends here; expected the end of the string",
        ),
        (",}", "1:20: `,`; expected a value of JSON"),
        ("1, }", "1:23: `}`; expected a key in quotes"),
        ("1, \"a\" 2}", "1:27: `2`; expected `:`"),
        ("1} ]", "1:23: `]`; expected `{` or `[`"),
        ("1\n, 2}", "2:3: `2`; expected a key in quotes"),
        ("\"é\" x", "1:24: `x`; expected `,` or `}`"),
    ] {
        assert_eq!(
            problems(&format!("{start}{tail}"), Aws),
            [expected],
            "{tail}"
        );
    }
}

#[test]
fn escapes_of_json_are_read() {
    let text = r#"{"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "\u0061\ud83d\ude00\"\\\/",
        "IpPermissions": [], "IpPermissionsEgress": []}]}"#;
    assert_eq!(load(text, Aws).lists()[0], "a😀\"\\//sg-1/in");
}

#[test]
fn nesting_is_limited() {
    for (text, format) in [
        ("[".repeat(100_000), Aws),
        (format!("a: {}", "[".repeat(100_000)), Kubernetes),
        (format!("a: {}", "{a: ".repeat(100_000)), Kubernetes),
        (format!("a:\n{}", "- ".repeat(100_000)), Kubernetes),
    ] {
        let problems = problems(&text, format);
        assert_eq!(problems.len(), 1);
        let expected = "more than 100 lists and mappings inside each other";
        let is_expected = problems[0].contains(expected) || problems[0].contains("bad YAML");
        assert!(is_expected, "{problems:?}");
    }
}

#[test]
fn aliases_are_limited() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for number in 1..40 {
        let alias = format!("*a{}, ", number - 1).repeat(10);
        text.push_str(&format!("a{number}: &a{number} [{alias}]\n"));
    }
    let problems_of_text = problems(&text, Kubernetes);
    assert!(
        problems_of_text[0].contains("more than 4194304 values; expected a smaller file"),
        "{problems_of_text:?}"
    );
    let mut deep = "a0: &a0 [x]\n".to_owned();
    for number in 1..200 {
        deep.push_str(&format!("a{number}: &a{number} [*a{}]\n", number - 1));
    }
    let problems_of_text = problems(&deep, Kubernetes);
    assert!(
        problems_of_text[0].contains("more than 100 lists and mappings"),
        "{problems_of_text:?}"
    );
    let problems_of_text = problems("a: &a [*a]\n", Kubernetes);
    assert!(
        problems_of_text[0].starts_with("1:8: an alias inside of its own anchor"),
        "{problems_of_text:?}"
    );
}

#[test]
fn yaml_that_is_not_read_is_named() {
    for (text, expected) in [
        (
            "a: &a {b: c}\nd:\n  <<: *a\n",
            "3:3: merge keys of YAML (`<<`); expected the merged keys themselves",
        ),
        ("[a]: b\n", "1:2: `a`; expected a value of JSON"),
        (
            "? [a]\n: b\n",
            "1:3: lists and mappings as keys of YAML; expected keys that are strings",
        ),
        (
            "a: !secret b\n",
            "1:4: tags of YAML outside of the core schema; expected a value without the tag \
             `secret`",
        ),
        (
            "a: 1\nb: 2\na: 3\n",
            "3:1: a second value of the key `a`; expected each key once",
        ),
    ] {
        assert_eq!(problems(text, Kubernetes), [expected], "{text}");
    }
    let problems_of_text = problems("a: 'b\n", Kubernetes);
    assert!(
        problems_of_text[0].contains("bad YAML"),
        "{problems_of_text:?}"
    );
}
