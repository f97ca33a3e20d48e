//! Both notations, comments and inactive statements.

use classyard_configs::ConfigFormat;

use super::helper::{load, problems};

#[test]
fn both_notations_are_one_configuration() {
    let blocks = load(
        "firewall {
            family inet {
                filter f {
                    term a { from { source-address { 10.0.0.0/8; 10.1.0.0/16 except; } protocol [ tcp udp ]; } then discard; }
                    inactive: term b { then discard; }
                    term c { from { inactive: protocol tcp; destination-port 80; } then { inactive: discard; count x; } }
                }
            }
        }",
    );
    let commands = load(
        "set firewall family inet filter f term a from source-address 10.0.0.0/8
         set firewall family inet filter f term a from source-address 10.1.0.0/16 except
         set firewall family inet filter f term a from protocol tcp
         set firewall family inet filter f term a from protocol udp
         set firewall family inet filter f term a then discard
         set firewall family inet filter f term b then discard
         deactivate firewall family inet filter f term b
         set firewall family inet filter f term c from protocol tcp
         deactivate firewall family inet filter f term c from protocol
         set firewall family inet filter f term c from destination-port 80
         set firewall family inet filter f term c then discard
         set firewall family inet filter f term c then count x
         deactivate firewall family inet filter f term c then discard
         deactivate firewall family inet filter f term a then
         activate firewall family inet filter f term a then",
    );
    for header in [
        "src=10.0.0.1 dst=1.1.1.1 proto=tcp",
        "src=10.1.0.1 dst=1.1.1.1 proto=tcp",
        "src=10.1.0.1 dst=1.1.1.1 proto=udp dport=80",
        "src=10.0.0.1 dst=1.1.1.1 proto=icmp",
    ] {
        let header = format!("list=f {header}");
        let (action, source) = blocks.decide(&header);
        let (other, other_source) = commands.decide(&header);
        assert_eq!(
            (action, &source.text),
            (other, &other_source.text),
            "{header}"
        );
    }
    for loaded in [&blocks, &commands] {
        assert_eq!(loaded.config.notes, ["3 inactive statements were ignored"]);
    }
    let actions = ["src=10.0.0.1", "src=10.1.0.1"].map(|source| {
        blocks
            .decide(&format!("list=f dst=1.1.1.1 proto=udp dport=80 {source}"))
            .0
    });
    assert_eq!(actions, ["deny", "permit"]);
    assert_eq!(commands.statement(1).column, 35);
}

#[test]
fn comments_and_prefixes() {
    let loaded = load(
        "## Last changed: today
/* not this one */
system { /* nor this */ host-name \"a { b; /* c */\"; }
firewall { # nor this
    filter f {
        /*
         ** two
         ** lines
         */
        protect: term a { then accept; /* nor this */ }
        /* **/ term b { then accept; } ## SECRET-DATA
        term c { then accept; }
    }
}",
    );
    let comments = [10, 11, 12].map(|line| loaded.statement(line).comment.as_deref());
    assert_eq!(comments, [Some("two lines"), None, None]);
    let columns = [10, 11, 12].map(|line| loaded.statement(line).column);
    assert_eq!(columns, [18, 16, 9]);
    let loaded = load(
        "# a comment\nset firewall filter f term a then accept # also\n\
         annotate firewall filter f term a \"first; term\"\nset system host-name \"x # y\"\n",
    );
    assert_eq!(loaded.statement(2).comment.as_deref(), Some("first; term"));
}

#[test]
fn replacements_and_deletions_change_earlier_statements() {
    let loaded = load(
        "firewall {
 filter f { term a { then discard; } term b { then discard; } }
}
firewall {
 replace: filter f { term b { then accept; } }
 filter g { term a { then discard; } term b { then accept; } }
 filter g { delete: term a; delete: term none; }
 filter h { term a { from { protocol [ tcp udp ]; } then accept; } }
 filter h { term a { from { delete: protocol [ udp ]; } } }
}",
    );
    loaded.check("list=f", "permit 5 src=1.1.1.1 dst=2.2.2.2");
    loaded.check("list=g", "permit 6 src=1.1.1.1 dst=2.2.2.2");
    loaded.check("list=h", "deny 0 src=1.1.1.1 dst=2.2.2.2 proto=udp");
    assert_eq!(loaded.statement(5).text, "term b then accept");
}

#[test]
fn line_ends_and_byte_order_marks_are_no_problem() {
    let loaded =
        load("\u{feff}set system host-name x\r\nset firewall filter f term a then discard\r\n");
    assert_eq!(
        (loaded.statement(2).line, loaded.statement(2).column),
        (2, 23)
    );
    let loaded = load("\u{feff}system {\r\n}\r\nfirewall {\r\n  filter f { term a; }\r\n}\r\n");
    assert_eq!(
        (loaded.statement(4).line, loaded.statement(4).column),
        (4, 14)
    );
}

#[test]
fn other_texts_are_not_detected() {
    for text in [
        "",
        "*filter\n",
        "set foo\n",
        "table inet filter {\n}\n",
        "{ \"a\": {} }",
        "firewall\n",
    ] {
        assert_ne!(
            ConfigFormat::detect(text),
            Some(ConfigFormat::Junos),
            "{text}"
        );
    }
    for text in [
        "inactive: firewall {\n",
        "deactivate interfaces ge-0/0/0\n",
        " security {\n",
    ] {
        assert_eq!(
            ConfigFormat::detect(text),
            Some(ConfigFormat::Junos),
            "{text}"
        );
    }
    assert!(problems("system { host-name x; }\n").is_empty());
}
