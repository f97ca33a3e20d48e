//! `classify --write` and `--fields`: the packets that some rules decide.

use std::fs;

use classyard_workload::capture::{Capture, PcapWriter, ReadOptions, read_capture_file};
use classyard_workload::packet::LinkType;
use serde_json::Value;

use crate::support::{Folder, RULES, TRACE, example, program, run, words};

fn capture(path: &str) -> Capture {
    read_capture_file(path, &ReadOptions::default()).unwrap()
}

/// Returns the time, the length, the link type and the bytes of each packet.
fn packets(capture: &Capture) -> Vec<(u64, u32, LinkType, Vec<u8>)> {
    let frames = capture.frames();
    let packets = frames.map(|(packet, frame)| {
        let (time, length) = (packet.timestamp_ns, packet.original_length);
        (time, length, packet.link, frame.to_vec())
    });
    packets.collect()
}

/// Returns the packets of a capture with a line of `--winners` that is in `winners`.
fn with_winners(rules: &str, path: &str, winners: &[&str]) -> Vec<(u64, u32, LinkType, Vec<u8>)> {
    let lines = run(&format!("classify -r {rules} -c {path} --winners -")).exits(0);
    let all = packets(&capture(path));
    assert_eq!(lines.lines().len(), all.len());
    let selected = all.into_iter().zip(lines.lines());
    let selected = selected.filter(|(_, winner)| winners.contains(winner));
    selected.map(|(packet, _)| packet).collect()
}

/// Returns the numbers and the counts of the rules that were hit.
fn hits(report: &Value) -> Vec<(u64, u64)> {
    let hits = report["hits"].as_array().unwrap().iter();
    hits.map(|hit| {
        let number = |key: &str| hit[key].as_u64().unwrap();
        (number("rule"), number("headers"))
    })
    .collect()
}

#[test]
fn the_packets_of_a_rule_are_copied_unchanged() {
    let folder = Folder::new();
    let (rules, out) = (example("office.rules"), folder.path("hits.pcap"));
    for name in ["office.pcap", "office.pcapng.gz"] {
        let packed = example(name);
        let report = run(&format!(
            "classify -r {rules} -c {packed} --rule 147 --write {out} --format json"
        ));
        let report = report.exits(0).silent().json();
        let (_, count) = *hits(&report).iter().find(|(rule, _)| *rule == 147).unwrap();
        assert_eq!(report["written"]["packets"], count);
        let written = packets(&capture(&out));
        assert_eq!(written.len() as u64, count);
        assert!(written == with_winners(&rules, &packed, &["147"]), "{name}");
        let again = run(&format!("classify -r {rules} -c {out} --format json")).json();
        assert_eq!(hits(&again), [(147, count)]);
        assert_eq!(again["input"]["packets"]["count"], count);
    }
}

#[test]
fn rules_actions_misses_and_packets_without_header_are_selected() {
    let folder = Folder::new();
    let (rules, office) = (example("office.rules"), example("office.pcap"));
    let out = folder.path("hits.pcap");
    let written = |selection: &str| {
        run(&format!(
            "classify -r {rules} -c {office} {selection} --write {out}"
        ))
        .exits(0)
        .silent()
        .prints("Written");
        capture(&out).packets().len()
    };
    // The counts are from the example's own description.
    assert_eq!(written("--action drop"), 297);
    assert_eq!(written("--action drop --action reject"), 297 + 12);
    assert_eq!(written("--rule no-header"), 61);
    assert_eq!(written("--rule none"), 0);
    assert_eq!(written("--rule no-header,none --action log"), 61 + 283);
    let by_number = written("--rule 147");
    assert_eq!(written("--rule id:147"), by_number);
    assert_eq!(written("--rule name:default"), by_number);
    let text = fs::read_to_string(&rules).unwrap();
    let mut lines = (1..).zip(text.lines());
    let (line, _) = lines
        .find(|(_, text)| text.contains("name=default"))
        .unwrap();
    assert_eq!(written(&format!("--rule line:{line}")), by_number);
    assert!(by_number > 0);
    // Three rules with lines 2 to 4; most packets match none of them.
    let few = folder.file("few.rules", RULES);
    run(&format!(
        "classify {few} -c {office} --rule none,no-header -w {out} -q"
    ))
    .exits(0);
    let expected = with_winners(&few, &office, &["-", "x"]);
    assert!(packets(&capture(&out)) == expected && expected.len() > 1000);
}

#[test]
fn lengths_and_times_stay_and_other_links_too() {
    let folder = Folder::new();
    let rules = folder.file("any.rules", "schema ipv4-5tuple\npermit\n");
    let office = capture(&example("office.pcap"));
    let (_, frame) = office
        .frames()
        .find(|(_, frame)| frame[12..14] == [8, 0])
        .unwrap();
    let mut writer = PcapWriter::new(Vec::new(), LinkType::RawIp).unwrap();
    let time = 1_700_000_000_123_456_789;
    writer.packet(time, 1500, &frame[14..]).unwrap();
    writer.packet(time + 1, 9000, &frame[14..54]).unwrap();
    let cut = folder.file("cut.pcap", writer.finish().unwrap());
    let out = folder.path("hits.pcap");
    run(&format!("classify {rules} -c {cut} --rule 0 -w {out}")).exits(0);
    assert_eq!(fs::read(&out).unwrap(), fs::read(&cut).unwrap());
    // A file without packets has the link type of the input.
    run(&format!("classify {rules} -c {cut} --rule none -w {out}")).exits(0);
    assert_eq!(fs::read(&out).unwrap(), fs::read(&cut).unwrap()[..24]);
}

#[test]
fn packets_on_standard_output_are_no_report() {
    let rules = example("office.rules");
    let office = example("office.pcapng.gz");
    let arguments = format!("classify -r {rules} -c {office} --action reject --write -");
    let output = program().args(words(&arguments)).output().unwrap();
    assert!(output.status.success());
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(
        messages.contains("12 packets to standard output"),
        "{messages}"
    );
    let folder = Folder::new();
    let hits = folder.file("hits.pcap", &output.stdout);
    assert_eq!(capture(&hits).packets().len(), 12);
    let report = run(&format!("classify -r {rules} -c {hits} --format json")).json();
    assert_eq!(report["actions"][0]["action"], "reject");
    assert_eq!(report["actions"][0]["headers"], 12);
}

/// A block of pcapng with its type and content.
fn block(kind: u32, content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    content.resize(content.len().next_multiple_of(4), 0);
    let length = u32::try_from(content.len() + 12).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &content, &length].concat()
}

/// Returns a pcapng file of an Ethernet packet and an IP packet without a link header.
fn two_links(frame: &[u8]) -> Vec<u8> {
    let start = [
        0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
    ];
    let mut file = block(0x0a0d_0d0a, &start);
    for link in [1_u16, 101] {
        let [low, high] = link.to_le_bytes();
        file.extend(block(1, &[low, high, 0, 0, 0, 0, 0, 0]));
    }
    for (interface, bytes) in [(0_u32, frame), (1, &frame[14..])] {
        let length = u32::try_from(bytes.len()).unwrap();
        let mut content = Vec::new();
        for number in [interface, 0, 7, length, length] {
            content.extend(number.to_le_bytes());
        }
        content.extend(bytes);
        file.extend(block(6, &content));
    }
    file
}

#[test]
fn packets_of_two_link_types_are_an_error() {
    let folder = Folder::new();
    let office = capture(&example("office.pcap"));
    let (_, frame) = office
        .frames()
        .find(|(_, frame)| frame[12..14] == [8, 0])
        .unwrap();
    let mixed = folder.file("mixed.pcapng", two_links(frame));
    let rules = folder.file("any.rules", "schema ipv4-5tuple\npermit\n");
    let out = folder.path("hits.pcap");
    run(&format!("classify {rules} -c {mixed} --rule 0 -w {out}"))
        .exits(2)
        .complains(
            "hits.pcap: packet 2 has the link type raw-ip, and packet 1 has ethernet; a pcap",
        )
        .complains("frame.interface_id==0");
    assert_eq!(capture(&out).packets().len(), 1);
    run(&format!("classify {rules} -c {mixed} --rule none -w {out}")).exits(0);
}

#[test]
fn wrong_selections_are_errors() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let office = example("office.pcap");
    let out = folder.path("hits.pcap");
    let fails = |arguments: &str, message: &str| {
        run(&format!("classify {rules} {arguments}"))
            .exits(2)
            .complains(message);
    };
    let selects = |rule: &str, message: &str| {
        fails(&format!("-c {office} -w {out} --rule {rule}"), message);
        assert!(!folder.has("hits.pcap"), "{rule}");
    };
    selects(
        "3",
        "fw.rules has no rule 3; its rules have the numbers 0 to 2",
    );
    selects(
        "line:1",
        "fw.rules has no rule on line 1; the next rule is on line 2",
    );
    selects("line:9", "no rule on line 9; its last rule is on line 4");
    selects("line:2:7", "no rule at line 2, column 7");
    selects("id:9", "no rule with the id 9");
    selects(
        "name:wep",
        "no rule with the name `wep`; did you mean `web`?",
    );
    selects("web", "expected a rule's number, `line:N`");
    fails(
        &format!("-c {office} -w {out} --action drob"),
        "no rule of ",
    );
    fails(
        &format!("-c {office} -w {out}"),
        "--write needs the packets to write",
    );
    fails(
        &format!("-c {office} --rule 1"),
        "--rule and --action select packets to write",
    );
    let trace = folder.file("trace", TRACE);
    fails(
        &format!("-t {trace} --rule 1 -w {out}"),
        "cannot be used with",
    );
    fails(
        &format!("-c {office} --rule 1 -w - --winners -"),
        "write to standard output",
    );
    fails(
        &format!("-c {office} --fields - --every 1s"),
        "--every and --fields - both write",
    );
    fails(
        &format!("-c {office} --rule 1 -w {out} --fields {out}"),
        "both write",
    );
    let copy = folder.file("copy.pcap", fs::read(&office).unwrap());
    fails(
        &format!("-c {copy} --rule 1 -w {copy}"),
        "would replace the capture",
    );
    fails(
        &format!("-c {office} --fields {rules}"),
        "would replace the rules",
    );
    assert_eq!(folder.read("fw.rules"), RULES);
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&office).unwrap());
    fails(
        &format!("-c {office} --rule 1 -w /nowhere/hits.pcap"),
        "/nowhere/hits.pcap: ",
    );
}

#[test]
fn statements_of_configurations_are_selected_by_line() {
    let folder = Folder::new();
    let config = folder.file(
        "fw.save",
        "*filter\n:INPUT DROP [0:0]\n\
         -A INPUT -p tcp -m multiport --dports 80,443 -j ACCEPT\n\
         -A INPUT -p udp -j ACCEPT\nCOMMIT\n",
    );
    let out = folder.path("hits.pcap");
    let office = example("office.pcap");
    run(&format!(
        "classify {config} -c {office} --rule line:3 -w {out}"
    ))
    .exits(0)
    .silent();
    let report = run(&format!("classify {config} -c {out} --format json")).json();
    let hits = report["hits"].as_array().unwrap();
    assert!(
        !hits.is_empty() && hits.iter().all(|hit| hit["line"] == 3),
        "{hits:?}"
    );
    let column = hits[0]["column"].as_u64().unwrap();
    let same = folder.path("same.pcap");
    run(&format!(
        "classify {config} -c {office} --rule line:3:{column} -w {same}"
    ))
    .exits(0);
    assert_eq!(fs::read(&same).unwrap(), fs::read(&out).unwrap());
}

#[test]
fn fields_of_a_capture_are_lines() {
    let (rules, office) = (example("office.rules"), example("office.pcap"));
    let arguments = format!("classify -r {rules} -c {office}");
    let lines = run(&format!("{arguments} --fields -")).exits(0).silent();
    let lines = lines.lines();
    assert_eq!(
        lines[0],
        "packet\ttime\tlength\tsrc\tdst\tsport\tdport\tproto\trule\tline\tname\taction"
    );
    let winners = run(&format!("{arguments} --winners -"));
    let winners = winners.lines();
    let capture = capture(&office);
    assert_eq!(lines.len() - 1, capture.packets().len());
    for ((number, line), (winner, packet)) in (1..)
        .zip(&lines[1..])
        .zip(winners.iter().zip(capture.packets()))
    {
        let cells: Vec<&str> = line.split('\t').collect();
        let (seconds, nanos) = cells[1].split_once('.').unwrap();
        let time = seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap();
        assert_eq!(
            (cells[0], time),
            (&number.to_string()[..], packet.timestamp_ns)
        );
        assert_eq!(cells[2], packet.original_length.to_string());
        assert_eq!((cells.len(), cells[8]), (12, *winner));
        assert_eq!(cells[3].is_empty(), *winner == "x");
    }
    // Lines of some packets, in other formats.
    let selected = format!("{arguments} --action reject --fields -");
    let csv = run(&format!("{selected} --format csv")).exits(0).csv();
    assert_eq!(csv.len(), 1 + 12);
    assert!(csv[1..].iter().all(|row| row[11] == "reject"));
    let json = run(&format!("{selected} --format json")).exits(0);
    let objects: Vec<Value> = (json.lines().iter())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (row, object) in csv[1..].iter().zip(&objects) {
        assert_eq!(row[0], object["packet"].to_string());
        assert_eq!(row[3], object["fields"]["src"].as_str().unwrap());
        assert_eq!(row[8], object["rule"].to_string());
        assert_eq!(row[9], object["line"].to_string());
    }
    assert_eq!(objects.len(), 12);
}

#[test]
fn fields_of_a_trace_have_its_headers() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    let fields = folder.path("fields.csv");
    run(&format!(
        "classify -r {rules} -t {trace} --fields {fields} --format csv"
    ))
    .exits(0)
    .prints("rule,id,name");
    assert_eq!(
        folder.read("fields.csv"),
        "header,src,dst,sport,dport,proto,rule,line,name,action\n\
         1,10.1.0.1,0.0.0.1,5,80,tcp,0,2,web,allow\n\
         2,10.1.0.1,0.0.0.1,5,81,tcp,1,3,,drop\n\
         3,0.0.0.1,0.0.0.2,3,80,tcp,-,,,\n\
         4,0.0.0.1,0.0.0.2,3,1500,udp,2,4,,log\n"
    );
}
