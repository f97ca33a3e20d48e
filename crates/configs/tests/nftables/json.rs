//! The JSON of a ruleset.

use crate::support::{Firewall, firewall, input, problems};

/// Returns the JSON of the table that [`input`] has as text. `items` come before the rules. A
/// rule is a list of statements.
fn json(items: &str, rules: &[&str]) -> String {
    let mut text = String::from(
        "{\"nftables\": [{\"metainfo\": {\"version\": \"1.0.6\", \"json_schema_version\": 1}}, \
         {\"table\": {\"family\": \"inet\", \"name\": \"t\", \"handle\": 1}}, \
         {\"chain\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"a\", \"handle\": 1}}, \
         {\"chain\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"b\", \"handle\": 2}}, \
         {\"chain\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"input\", \"handle\": 3, \
         \"type\": \"filter\", \"hook\": \"input\", \"prio\": 0, \"policy\": \"drop\"}}",
    );
    text.push_str(items);
    for rule in rules {
        text.push_str(&format!(
            ",\n{{\"rule\": {{\"family\": \"inet\", \"table\": \"t\", \"chain\": \"input\", \
             \"handle\": 4, \"expr\": [{rule}]}}}}"
        ));
    }
    text.push_str("]}\n");
    text
}

/// Returns the rules, their actions and conditions, for comparison.
fn rules(firewall: &Firewall) -> Vec<String> {
    let policy = &firewall.config.policy;
    let rules = policy.ids().iter().enumerate().map(|(position, &id)| {
        let source = firewall.config.source(position);
        let forms = policy.rule(id).map(|(part, rule)| {
            let action = policy.action_name(rule.action()).unwrap();
            format!("{part:?} {action} {:?}", rule.fields())
        });
        let forms: Vec<String> = forms.collect();
        format!("{forms:?} {:?} {:?}", source.conditions, source.hits)
    });
    rules.collect()
}

#[test]
fn json_is_read_like_text() {
    let payload = |protocol: &str, field: &str| {
        format!("{{\"payload\": {{\"protocol\": \"{protocol}\", \"field\": \"{field}\"}}}}")
    };
    let comparison = |operator: &str, left_side: &str, right_side: &str| {
        format!(
            "{{\"match\": {{\"op\": \"{operator}\", \"left\": {left_side}, \"right\": {right_side}}}}}, {{\"accept\": null}}"
        )
    };
    let (flags, source, port) = (
        payload("tcp", "flags"),
        payload("ip", "saddr"),
        payload("tcp", "dport"),
    );
    let state = "{\"ct\": {\"key\": \"state\"}}";
    let meta = |key: &str| format!("{{\"meta\": {{\"key\": \"{key}\"}}}}");
    let cases = [
        ("tcp flags syn accept", comparison("in", &flags, "\"syn\"")),
        ("tcp flags == syn accept", comparison("==", &flags, "\"syn\"")),
        ("tcp flags ! syn accept", comparison("!", &flags, "\"syn\"")),
        ("tcp flags syn,ack accept", comparison("in", &flags, "[\"syn\", \"ack\"]")),
        ("tcp flags syn / fin,syn accept", comparison("==", &format!("{{\"&\": [{flags}, [\"fin\", \"syn\"]]}}"), "\"syn\"")),
        ("tcp flags { syn | ack, syn } accept", comparison("==", &flags, "{\"set\": [{\"|\": [\"syn\", \"ack\"]}, \"syn\"]}")),
        ("tcp flags & (fin | syn | rst) == 0 accept", comparison("==", &format!("{{\"&\": [{flags}, {{\"|\": [\"fin\", \"syn\", \"rst\"]}}]}}"), "0")),
        ("ct state established,related accept", comparison("in", state, "[\"established\", \"related\"]")),
        ("ct state != established accept", comparison("!=", state, "\"established\"")),
        ("ip saddr 10.0.0.0/8 accept", comparison("==", &source, "{\"prefix\": {\"addr\": \"10.0.0.0\", \"len\": 8}}")),
        ("ip saddr 10.0.0.1-10.0.0.7 accept", comparison("==", &source, "{\"range\": [\"10.0.0.1\", \"10.0.0.7\"]}")),
        ("tcp dport != { 22, 80-90 } accept", comparison("!=", &port, "{\"set\": [22, {\"range\": [80, 90]}]}")),
        ("ip saddr . tcp dport { 10.0.0.1 . 22 } accept", comparison("==", &format!("{{\"concat\": [{source}, {port}]}}"), "{\"set\": [{\"concat\": [\"10.0.0.1\", 22]}]}")),
        ("iifname \"eth*\" accept", comparison("==", &meta("iifname"), "\"eth*\"")),
        ("meta mark 0x10 accept", comparison("==", &meta("mark"), "16")),
        ("meta l4proto { tcp, udp } accept", comparison("==", &meta("l4proto"), "{\"set\": [\"tcp\", \"udp\"]}")),
        ("exthdr frag exists accept", comparison("==", "{\"exthdr\": {\"name\": \"frag\"}}", "true")),
        ("frag frag-off != 0 accept", comparison("!=", "{\"exthdr\": {\"name\": \"frag\", \"field\": \"frag-off\"}}", "0")),
        ("fib saddr . iif oif missing accept", comparison("==", "{\"fib\": {\"result\": \"oif\", \"flags\": [\"saddr\", \"iif\"]}}", "false")),
        ("@nh,8,16 5 accept", comparison("==", "{\"payload\": {\"base\": \"nh\", \"offset\": 8, \"len\": 16}}", "5")),
        ("@th,16,16 5 accept", comparison("==", "{\"payload\": {\"base\": \"th\", \"offset\": 16, \"len\": 16}}", "5")),
        ("numgen inc mod 2 0 accept", comparison("==", "{\"numgen\": {\"mode\": \"inc\", \"mod\": 2, \"offset\": 0}}", "0")),
        ("tcp option maxseg exists accept", comparison("==", "{\"tcp option\": {\"name\": \"maxseg\"}}", "true")),
        ("ct original ip saddr 10.0.0.1 accept", comparison("==", "{\"ct\": {\"key\": \"ip saddr\", \"dir\": \"original\"}}", "\"10.0.0.1\"")),
        ("tcp dport vmap { 22 : accept, 23 : jump a, * : drop }", format!("{{\"vmap\": {{\"key\": {port}, \"data\": {{\"set\": [[22, {{\"accept\": null}}], [23, {{\"jump\": {{\"target\": \"a\"}}}}], [\"*\", {{\"drop\": null}}]]}}}}}}")),
        ("limit rate over 10/minute burst 5 packets drop", "{\"limit\": {\"rate\": 10, \"burst\": 5, \"per\": \"minute\", \"inv\": true}}, {\"drop\": null}".to_owned()),
        ("limit rate 10 mbytes/second drop", "{\"limit\": {\"rate\": 10, \"burst\": 0, \"per\": \"second\", \"rate_unit\": \"mbytes\", \"burst_unit\": \"bytes\"}}, {\"drop\": null}".to_owned()),
        ("quota over 10 mbytes drop", "{\"quota\": {\"val\": 10, \"val_unit\": \"mbytes\", \"inv\": true}}, {\"drop\": null}".to_owned()),
        ("ct count over 20 reject", "{\"ct count\": {\"val\": 20, \"inv\": true}}, {\"reject\": {\"type\": \"icmpx\", \"expr\": \"port-unreachable\"}}".to_owned()),
        ("reject with tcp reset", "{\"reject\": {\"type\": \"tcp reset\"}}".to_owned()),
        ("reject", "{\"reject\": null}".to_owned()),
        ("counter packets 4 bytes 5 log queue flags bypass to 1-3", "{\"counter\": {\"packets\": 4, \"bytes\": 5}}, {\"log\": {\"prefix\": \"x\"}}, {\"queue\": {\"num\": {\"range\": [1, 3]}, \"flags\": [\"bypass\"]}}".to_owned()),
        ("dnat ip to 10.0.0.1-10.0.0.4:80 random,persistent", "{\"dnat\": {\"family\": \"ip\", \"addr\": {\"range\": [\"10.0.0.1\", \"10.0.0.4\"]}, \"port\": 80, \"flags\": [\"random\", \"persistent\"]}}".to_owned()),
        ("dnat ip6 to [2001:db8::1]:80", "{\"dnat\": {\"family\": \"ip6\", \"addr\": \"2001:db8::1\", \"port\": 80}}".to_owned()),
        ("dnat ip to tcp dport map { 80 : 10.0.0.1 }", format!("{{\"dnat\": {{\"family\": \"ip\", \"addr\": {{\"map\": {{\"key\": {port}, \"data\": {{\"set\": [[80, \"10.0.0.1\"]]}}}}}}}}}}")),
        ("masquerade random", "{\"masquerade\": {\"flags\": \"random\"}}".to_owned()),
        ("redirect to :8080", "{\"redirect\": {\"port\": 8080}}".to_owned()),
        ("tproxy to 127.0.0.1:50080 accept", "{\"tproxy\": {\"family\": \"ip\", \"addr\": \"127.0.0.1\", \"port\": 50080}}, {\"accept\": null}".to_owned()),
        ("add @s { ip saddr limit rate 3/minute } accept", format!("{{\"set\": {{\"op\": \"add\", \"elem\": {{\"elem\": {{\"val\": {source}, \"timeout\": 120}}}}, \"set\": \"@s\", \"stmt\": [{{\"limit\": {{\"rate\": 3, \"burst\": 5, \"per\": \"minute\"}}}}]}}}}, {{\"accept\": null}}")),
        ("meter m { ip saddr limit rate 3/second } accept", format!("{{\"meter\": {{\"key\": {source}, \"stmt\": {{\"limit\": {{\"rate\": 3, \"burst\": 5, \"per\": \"second\"}}}}, \"size\": 65535, \"name\": \"m\"}}}}, {{\"accept\": null}}")),
        ("meta mark set ct mark & 0xff | 0x10 notrack accept", format!("{{\"mangle\": {{\"key\": {}, \"value\": {{\"|\": [{{\"&\": [{{\"ct\": {{\"key\": \"mark\"}}}}, 255]}}, 16]}}}}}}, {{\"notrack\": null}}, {{\"accept\": null}}", meta("mark"))),
        ("goto b", "{\"goto\": {\"target\": \"b\"}}".to_owned()),
        ("jump a", "{\"jump\": {\"target\": \"a\"}}".to_owned()),
        ("return", "{\"return\": null}".to_owned()),
        ("continue", "{\"continue\": null}".to_owned()),
    ];
    for (text, statements) in cases {
        let from_text = firewall(&input(text));
        let from_json = firewall(&json("", &[&statements]));
        assert_eq!(rules(&from_text), rules(&from_json), "{text}\n{statements}");
        assert_eq!(
            from_text.conditions.texts(),
            from_json.conditions.texts(),
            "{text}"
        );
    }
}

#[test]
fn json_has_sets_and_maps() {
    let items = ", {\"set\": {\"family\": \"inet\", \"name\": \"s\", \"table\": \"t\", \
        \"type\": [\"ipv4_addr\", \"inet_service\"], \"handle\": 7, \"flags\": [\"interval\"], \
        \"elem\": [{\"concat\": [{\"prefix\": {\"addr\": \"10.0.0.0\", \"len\": 8}}, 22]}]}}, \
        {\"map\": {\"family\": \"inet\", \"name\": \"m\", \"table\": \"t\", \"type\": \"inet_service\", \
        \"map\": \"verdict\", \"elem\": [[{\"elem\": {\"val\": 22, \"comment\": \"x\"}}, {\"accept\": null}], \
        [23, {\"drop\": null}]]}}, \
        {\"element\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"m\", \"elem\": [[24, {\"drop\": null}]]}}, \
        {\"counter\": {\"family\": \"inet\", \"name\": \"c\", \"table\": \"t\"}}";
    let text = json(
        items,
        &[
            "{\"match\": {\"op\": \"==\", \"left\": {\"concat\": [{\"payload\": {\"protocol\": \"ip\", \
             \"field\": \"saddr\"}}, {\"payload\": {\"protocol\": \"tcp\", \"field\": \"dport\"}}]}, \
             \"right\": \"@s\"}}, {\"reject\": null}",
            "{\"vmap\": {\"key\": {\"payload\": {\"protocol\": \"tcp\", \"field\": \"dport\"}}, \
             \"data\": \"@m\"}}",
        ],
    );
    let firewall = firewall(&text);
    let action = |header: &str| firewall.action(&format!("{header} list=input")).to_owned();
    assert_eq!(action("src=10.0.0.1 proto=tcp dport=22"), "reject");
    assert_eq!(action("src=11.0.0.1 proto=tcp dport=22"), "permit");
    assert_eq!(
        firewall.line("src=11.0.0.1 proto=tcp dport=24 list=input"),
        3
    );
    assert_eq!(firewall.line("src=11.0.0.1 list=input"), 1);
    let texts: Vec<&str> = firewall
        .config
        .sources
        .iter()
        .map(|source| &source.text[..])
        .collect();
    assert_eq!(
        texts,
        [
            "ip saddr . tcp dport @s reject",
            "tcp dport vmap @m",
            "policy drop"
        ]
    );
    let columns: Vec<_> = firewall
        .config
        .sources
        .iter()
        .map(|source| source.column)
        .collect();
    assert_eq!(columns[..2], [10, 10]);
}

#[test]
fn json_of_one_line_has_positions() {
    let long = "é".repeat(3000);
    let text = json(
        &format!(", {{\"table\": {{\"family\": \"ip\", \"name\": \"{long}\"}}}}"),
        &["{\"accept\": null}"],
    );
    let text = text.replace(",\n", ", ");
    let firewall = firewall(&text);
    let offset = text
        .find("{\"family\": \"inet\", \"table\": \"t\", \"chain\"")
        .unwrap();
    let column = text[..offset].chars().count() + 1;
    assert_eq!(firewall.config.sources[0].column as usize, column);
}

#[test]
fn json_commands_are_read() {
    let rule = "{\"rule\": {\"family\": \"ip\", \"table\": \"t\", \"chain\": \"in\", \"expr\": [{\"drop\": null}], \"comment\": \"two\"}}";
    let chain = "{\"chain\": {\"family\": \"ip\", \"table\": \"t\", \"name\": \"in\", \"type\": \"filter\", \"hook\": \"input\", \"prio\": 0}}";
    let accept = rule.replace("drop", "accept");
    let text = format!(
        "{{\"nftables\": [{{\"add\": {chain}}}, {{\"add\": {accept}}},\n{{\"flush\": {{\"ruleset\": null}}}}, \
         {{\"create\": {chain}}},\n{{\"add\": {accept}}},\n{{\"insert\": {rule}}}]}}"
    );
    let firewall = firewall(&text);
    assert_eq!(firewall.line("src=1.1.1.1 list=in"), 4);
    assert_eq!(firewall.config.sources[0].comment.as_deref(), Some("two"));
    let implied = firewall.config.sources.last().unwrap();
    assert!(implied.is_implied && implied.line == 2, "{implied:?}");
}

#[test]
fn bad_json_is_a_problem() {
    let statements = |rule: &str| json("", &[rule]);
    let cases = [
        ("{\"nftables\": [".to_owned(), "1:15: the text ends here"),
        ("{\"nftables\": [}".to_owned(), "1:15: `}`"),
        (
            "{\"nftables\": [\"a]}".to_owned(),
            "1:19: the text ends here; expected the end of the string",
        ),
        ("{\"nftables\": {}} x".to_owned(), "1:18: `x`"),
        (
            "{\"nftables\": []} {\"nftables\": []}".to_owned(),
            "1:18: a second value",
        ),
        ("{\"other\": []}".to_owned(), "1:1: no key `nftables`"),
        (
            "{\"nftables\": [{\"thing\": {}}]}".to_owned(),
            "1:15: an object `thing`",
        ),
        ("{\"nftables\": [5]}".to_owned(), "1:15: `5`"),
        (
            "{\"nftables\": [{\"replace\": {}}]}".to_owned(),
            "1:15: the command `replace`",
        ),
        (
            format!("{{\"nftables\": {}", "[".repeat(100)),
            "1:113: more than 100 lists and mappings inside each other",
        ),
        (
            statements("{\"accept\": null}, {\"drop\": null}"),
            "2:101: a statement after the decision",
        ),
        (
            statements("{\"flow\": {\"op\": \"add\", \"flowtable\": \"@f\"}}"),
            "2:83: the statement `flow`",
        ),
        (
            statements("{\"xt\": {\"type\": \"match\", \"name\": \"x\"}}"),
            "2:83: the statement `xt`",
        ),
        (
            statements("{\"jump\": {\"target\": \"zz\"}}"),
            "2:83: no chain `zz`",
        ),
        (
            statements("{\"match\": {\"op\": \"??\", \"left\": 1, \"right\": 2}}"),
            "2:100: `\"??\"`",
        ),
        (
            statements(
                "{\"match\": {\"op\": \"==\", \"left\": {\"payload\": {\"protocol\": \"tcp\", \"field\": \"dport\"}}, \"right\": 70000}}",
            ),
            "2:175: `70000`",
        ),
    ];
    for (text, message) in cases {
        let messages = problems(&text);
        assert!(
            messages.contains(&format!("fw:{message}")),
            "{text}\n{message}\n{messages}"
        );
    }
}
