//! `lint --html`: the page for auditors.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use crate::support::{Folder, run};

/// Returns the texts between `start` and the next quote.
fn attributes<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    let parts = page.split(start).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

/// Fails unless the page is well formed, has no scripts, names no other file, and every link
/// leads to an element of the page.
#[track_caller]
fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.strip_prefix("<!doctype html>\n").expect("a document");
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap();
        match tag {
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "</{tag}>"),
            _ if name == "meta" || tag.ends_with('/') => {}
            _ => open.push(name),
        }
        assert_ne!(name, "script");
        for refused in [
            " src=", " onload", " onerror", "http://", "https://", "url(",
        ] {
            assert!(!tag.contains(refused), "{tag}");
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let ids = attributes(page, " id=\"");
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len());
    for link in attributes(page, " href=\"") {
        let id = link.strip_prefix('#').expect("a link within the page");
        assert!(distinct.contains(id), "{link}");
    }
}

/// Writes the page of files of rules.
#[track_caller]
fn page(folder: &Folder, arguments: &str, code: i32) -> String {
    let out = folder.path("page.html");
    run(&format!("lint {arguments} --html {out}")).exits(code);
    let page = folder.read("page.html");
    check(&page);
    page
}

const FIREWALL: &str = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [7:7]\n\
    [120:9000] -A INPUT -s 10.0.0.0/8 -p tcp -j ACCEPT\n\
    [0:0] -A INPUT -s 10.1.0.0/16 -p tcp -m tcp --dport 80 -j DROP\n\
    [9:900] -A INPUT -p udp -m multiport --dports 53,123 -j ACCEPT\n\
    [3:30] -A FORWARD -s 192.0.2.0/24 -j DROP\nCOMMIT\n";

#[test]
fn the_page_has_findings_rules_hits_and_shares() {
    let folder = Folder::new();
    let rules = folder.file("fw.save", FIREWALL);
    let page = page(&folder, &rules, 1);
    assert!(page.contains("<title>1 finding in "), "{page}");
    // The finding, its statement, and a link to the rule that covers it.
    assert!(page.contains(
        "<span class=\"badge k0\">dead</span></td><td class=\"kind\"><a href=\"#f1r3\">line 5</a>"
    ) || page.contains("\">line 5</a></td><td><code>-A INPUT -s 10.1.0.0/16 -p tcp"));
    assert!(page.contains("covered by line 4 (-A INPUT -s 10.0.0.0/8 -p tcp -j ACCEPT)"));
    assert!(page.contains("<p>See <a href=\"#f1r"));
    let row = |text: &str| {
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with("<tr id=\"f1r") && line.contains(text));
        line.unwrap_or_else(|| panic!("no {text} in {page}"))
    };
    let dead = row("10.1.0.0/16");
    for cell in [
        ">5</td>",
        ">INPUT<",
        "class=\"n\">0</td>",
        "class=\"n\">0 %</td>",
        "#f1n0",
    ] {
        assert!(dead.contains(cell), "{cell} in {dead}");
    }
    let first = row("10.0.0.0/8");
    assert!(
        first.contains("class=\"n\">120</td><td class=\"n\">100 %</td>"),
        "{first}"
    );
    assert!(page.contains("<svg ") && page.contains("class=\"s8\""));
}

#[test]
fn texts_of_the_file_stay_texts() {
    let folder = Folder::new();
    let script = "<script>alert(1)</script>";
    let rules = folder.file(
        "x<b>y.rules",
        format!(
            "schema ipv4-5tuple\n\
             # {script}\n\
             \"{script}\" src=10.0.0.0/8 name=\"{script}\"\n\
             \"a\\\" onload=\\\"x\" src=10.1.0.0/16 name=\"\u{202e}evil\"\n\
             permit src=10.2.0.0/16 # <img src=x> classyard: allow dead\n"
        ),
    );
    let found = page(&folder, &rules, 1);
    assert!(found.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(found.contains("x&lt;b&gt;y.rules"));
    assert!(found.contains("\\u{202e}evil"));
    assert!(found.contains("the comment on line 5"));
    let save = folder.file(
        "fw.save",
        "*filter\n:INPUT DROP [0:0]\n\
         -A INPUT -p tcp -m comment --comment \"<script>alert(1)</script>\" -j ACCEPT\n\
         -A INPUT -p tcp -m comment --comment \"</td><b onload=x>\" -j DROP\nCOMMIT\n",
    );
    let found = page(&folder, &save, 1);
    assert!(found.contains("&lt;script&gt;"));
}

#[test]
fn several_files_are_on_one_page_and_the_page_is_reproducible() {
    let folder = Folder::new();
    let one = folder.file("one.save", FIREWALL);
    let two = folder.file("two.rules", "schema ipv4-5tuple\ndeny\npermit dport=1\n");
    let arguments = format!("{one} {two}");
    let first = page(&folder, &arguments, 1);
    assert!(first.contains("2 findings in 2 files"));
    assert_eq!(first, page(&folder, &arguments, 1));
    let selected = page(&folder, &format!("{arguments} --select redundant"), 0);
    assert!(selected.contains("No findings in 2 files"));
    let example = page(&folder, "", 1);
    assert!(example.contains("redundant"));
}

#[test]
fn pages_of_long_files_list_a_part_and_say_so() {
    let folder = Folder::new();
    let mut text = "schema ipv4-5tuple\n".to_owned();
    for port in 0..2_600 {
        let _ = writeln!(text, "permit dport={port}");
    }
    for port in (0..2_600).rev() {
        let _ = writeln!(text, "deny dport={port} proto=tcp");
    }
    let rules = folder.file("long.rules", text);
    let page = page(&folder, &rules, 1);
    assert!(page.contains("The first 2,000 of 2,600 findings."));
    assert!(page.contains("5,000 of 5,200 rules: "));
    assert!(page.contains("A sample: "));
    assert_eq!(page.matches("<tr id=\"f1n").count(), 2_000);
    assert_eq!(page.matches("<tr id=\"f1r").count(), 5_000);
    assert!(page.len() < 4_000_000, "{}", page.len());
}

#[test]
fn the_page_is_written_whole_or_not_at_all() {
    let folder = Folder::new();
    let rules = folder.file("fw.save", FIREWALL);
    let before = folder.file("page.html", "before");
    let bad = folder.file("bad.rules", "schema ipv4-5tuple\npermit dport=x\n");
    run(&format!("lint {rules} {bad} --html {before}")).exits(2);
    assert_eq!(fs::read_to_string(before).unwrap(), "before");
    run(&format!("lint {rules} --html /nowhere/page.html"))
        .exits(2)
        .complains("/nowhere/page.html: ");
    let stdout = run(&format!("lint {rules} --html - --format json")).exits(1);
    check(&stdout.stdout);
    let three = folder.file(
        "three.rules",
        "schema ipv4-5tuple\ndeny src=10.0.0.0/8\npermit src=10.1.0.0/16\nlog src=11.0.0.0/8\n",
    );
    let overlaps = page(&folder, &three, 1);
    assert!(overlaps.contains("1 of 3 pairs of rules overlap."));
    assert!(overlaps.contains("<path class=\"s8\" d=\"M0 1h1v1h-1z\"/>"));
    let wide = folder.file("one.rules", "schema ipv4-5tuple\npermit\n");
    let page = page(&folder, &wide, 0);
    assert!(page.contains("<p>None.</p>") && !page.contains("<svg"));
}
