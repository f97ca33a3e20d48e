//! Files that are made to need much time or memory.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::support::{firewall, try_read};
use classyard_workload::diagnostic::ReadOptions;

/// The maximum time to read a hostile file without optimisation.
const MAX_SECONDS: u64 = 60;

/// Returns the error of a text, which must be there soon.
fn error(text: &str) -> String {
    let start = Instant::now();
    let options = ReadOptions::DEFAULT.with_limit(1 << 17);
    let error = try_read(text, &options)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        start.elapsed() < Duration::from_secs(MAX_SECONDS),
        "{:?}",
        start.elapsed()
    );
    error
}

/// Returns a table whose chains C0 to C`count` have these rules.
fn chains(count: usize, rules: impl Fn(usize) -> String) -> String {
    let mut text = "*filter\n:INPUT DROP [0:0]\n".to_owned();
    for chain in 0..=count {
        writeln!(text, ":C{chain} - [0:0]").unwrap();
    }
    text.push_str("-A INPUT -j C0\n");
    for chain in 0..count {
        text.push_str(&rules(chain));
    }
    text + "COMMIT\n"
}

#[test]
fn chains_that_double_are_stopped() {
    let text = chains(30, |chain| {
        format!("-A C{chain} -j C{0}\n-A C{chain} -j C{0}\n", chain + 1)
    });
    // It points to the chain of a jump.
    let error = error(&text);
    assert!(error.contains("more than 1048576 rules after all jumps"));
    assert!(error.contains(":11: more than 1048576"), "{error}");
}

#[test]
fn deep_jumps_are_stopped() {
    let deep = |count| chains(count, |chain| format!("-A C{chain} -j C{}\n", chain + 1));
    // Line 135 is `-A C30 -j C31`.
    assert!(error(&deep(100)).contains("fw:135:11: more than 32 jumps inside each other"));
    firewall(&deep(30));
    let gotos = chains(5, |chain| format!("-A C{chain} -g C{}\n", (chain + 1) % 3));
    assert!(error(&gotos).contains("a loop of jumps through the chain `C0`"));
}

#[test]
fn returns_of_chains_that_many_rules_jump_to_are_stopped() {
    let mut rules = String::new();
    for index in 0..100 {
        writeln!(rules, "-A C0 -s 10.{index}.0.1 -j RETURN").unwrap();
        writeln!(rules, "-A C0 -d 10.{index}.0.1 -j RETURN").unwrap();
    }
    let once = chains(1, |_| format!("{rules}-A C0 -j ACCEPT\n"));
    let good = firewall(&once);
    assert_eq!(good.action("src=10.7.0.1 dst=11.0.0.1 list=INPUT"), "deny");
    assert_eq!(good.action("src=11.0.0.1 dst=10.7.0.1 list=INPUT"), "deny");
    assert_eq!(
        good.action("src=11.0.0.1 dst=10.7.0.2 list=INPUT"),
        "permit"
    );
    let often = once.replace("-A INPUT -j C0\n", &"-A INPUT -p tcp -j C0\n".repeat(40));
    assert!(error(&often).contains("more than"), "{}", error(&often));
}

#[test]
fn sets_in_many_rules_are_stopped() {
    let mut text = "create a hash:ip\ncreate b hash:ip\n".to_owned();
    for index in 0..5000 {
        let (high, low) = (index / 256, index % 256);
        writeln!(text, "add a 10.{high}.{low}.1\nadd b 11.{high}.{low}.1").unwrap();
    }
    let rule = "-A C0 -m set --match-set a src -j LOG\n-A C0 -m set --match-set b src -j LOG\n";
    let product = "-A C0 -m set --match-set a src -m set --match-set b dst -j DROP\n";
    let many = format!("{text}{}", chains(1, |_| rule.repeat(200)));
    assert!(error(&many).contains("the rules expand to more than 1048576 matches"));
    let product = format!("{text}{}", chains(1, |_| product.to_owned()));
    assert!(error(&product).contains("the rule expands to more than 65536 matches"));
    let jumps = "-A C0 -m set --match-set a src -j C1\n".to_owned()
        + &"-A C1 -m set --match-set b src -j LOG\n".repeat(20);
    let jumps = format!("{text}{}", chains(1, |_| jumps.clone()));
    assert!(error(&jumps).contains("more than"), "{}", error(&jumps));
}

#[test]
fn lists_of_lists_are_read_once() {
    let mut text =
        "create s0 hash:ip\nadd s0 10.0.0.1\ncreate t0 hash:ip\nadd t0 10.0.0.2\n".to_owned();
    for level in 1..=10 {
        for name in ["s", "t"] {
            writeln!(text, "create {name}{level} list:set size 8").unwrap();
            writeln!(
                text,
                "add {name}{level} s{0}\nadd {name}{level} t{0}",
                level - 1
            )
            .unwrap();
        }
    }
    let rule = |level: usize| {
        format!(
            "{text}*filter\n:INPUT DROP [0:0]\n\
             -A INPUT -m set --match-set s{level} src -j ACCEPT\nCOMMIT\n"
        )
    };
    let good = firewall(&rule(10));
    assert_eq!(good.action("src=10.0.0.2 list=INPUT"), "permit");
    assert_eq!(good.action("src=10.0.0.3 list=INPUT"), "deny");
    for level in 11..=20 {
        writeln!(
            text,
            "create s{level} list:set size 8\nadd s{level} s{}",
            level - 1
        )
        .unwrap();
    }
    let deep = format!(
        "{text}*filter\n:INPUT DROP [0:0]\n-A INPUT -m set --match-set s20 src -j ACCEPT\nCOMMIT\n"
    );
    assert!(error(&deep).contains("more than 16 lists of sets inside each other"));
}

#[test]
fn elements_and_conditions_have_limits() {
    let mut text = "create a hash:net,net family inet6\n".to_owned();
    for index in 1..=40 {
        let range = format!("::{index}:1-{index}:ffff:ffff:ffff:ffff:ffff:ffff:fffe");
        writeln!(text, "add a {range},{range}").unwrap();
    }
    assert!(error(&text).contains("more than 1048576 elements of sets"));
    let mut rules = String::new();
    for index in 0..200 {
        writeln!(rules, "-A INPUT -m limit --limit {index}/min -j ACCEPT").unwrap();
    }
    let text = format!("*filter\n:INPUT DROP [0:0]\n{rules}COMMIT\n");
    assert!(error(&text).contains("more than 128 different conditions"));
    let matches = "-m mac --mac-source 02:00:00:00:00:01 ".repeat(100);
    let text = format!("*filter\n:INPUT DROP [0:0]\n-A INPUT {matches}\nCOMMIT\n");
    assert!(error(&text).contains("more than 64 matches in a rule"));
}

#[test]
fn rules_have_the_limit_of_the_options() {
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m multiport --dports 1,3,5,7 -j DROP\nCOMMIT\n";
    let error = try_read(text, &ReadOptions::DEFAULT.with_limit(4)).map(|_| ());
    assert_eq!(
        error.unwrap_err().to_string(),
        "fw:2: more than 4 rules; raise the limit or split the file"
    );
}
