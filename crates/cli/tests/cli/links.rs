//! Captures of links other than Ethernet: their contents are classified and
//! replayed as if they had come over Ethernet. A capture without usable packets is
//! an error.

use classyard_workload::capture::{PcapWriter, ReadOptions, read_capture_file};
use classyard_workload::packet::LinkType;
use serde_json::Value;

use crate::support::{Folder, example, run};

const RULES: &str = "schema dual-5tuple\nallow proto=tcp\nallow proto=udp\ndrop\n";

const PIPELINE: &str = "\
priority=9,tcp actions=output:2
priority=9,tcp6 actions=output:2
priority=8,udp actions=push_vlan:0x8100,set_field:0x1007->vlan_vid,output:3
priority=8,udp6 actions=output:3
priority=7,ip actions=output:4
priority=7,ipv6 actions=output:4
priority=0 actions=drop
";

/// Returns a frame of another link with the packet of an Ethernet frame.
fn relinked(link: LinkType, frame: &[u8]) -> Option<Vec<u8>> {
    let (kind, packet) = (&frame[12..14], &frame[14..]);
    let is_ipv6 = match kind {
        [0x08, 0x00] => false,
        [0x86, 0xdd] => true,
        _ => return None,
    };
    let header = match link {
        LinkType::Ethernet => frame[..14].to_vec(),
        LinkType::RawIp => vec![],
        LinkType::Ipv4 if !is_ipv6 => vec![],
        LinkType::Ipv6 if is_ipv6 => vec![],
        LinkType::LinuxCooked => [&[0, 0, 0, 1, 0, 6], &frame[6..12], &[0, 0], kind].concat(),
        LinkType::LinuxCooked2 => {
            let device = [0, 0, 0, 0, 0, 3, 0, 1, 0, 6];
            [kind, &device, &frame[6..12], &[0, 0]].concat()
        }
        LinkType::Null => vec![if is_ipv6 { 30 } else { 2 }, 0, 0, 0],
        LinkType::Loopback => vec![0, 0, 0, if is_ipv6 { 24 } else { 2 }],
        _ => return None,
    };
    Some([&header, packet].concat())
}

/// Writes the IP packets of the example as a capture of another link. Returns its
/// path and their number.
fn capture(folder: &Folder, link: LinkType) -> (String, u64) {
    let office = read_capture_file(example("office.pcap"), &ReadOptions::default()).unwrap();
    let mut writer = PcapWriter::new(Vec::new(), link).unwrap();
    let mut packets = 0;
    for (packet, frame) in office.frames() {
        if let Some(frame) = relinked(link, frame) {
            let length = u32::try_from(frame.len()).unwrap();
            writer.packet(packet.timestamp_ns, length, &frame).unwrap();
            packets += 1;
        }
    }
    let name = format!("link-{}.pcap", link.number());
    (folder.file(&name, writer.finish().unwrap()), packets)
}

/// Returns the values of a key in all elements of a list.
fn column(rows: &Value, key: &str) -> Vec<u64> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[key].as_u64().unwrap()).collect()
}

#[test]
fn every_link_is_replayed_as_ethernet_is() {
    let folder = Folder::new();
    let flows = folder.file("switch.flows", PIPELINE);
    let mut expected = None;
    let both = |link| !matches!(link, LinkType::Ipv4 | LinkType::Ipv6);
    for link in LinkType::PARSED {
        let (pcap, packets) = capture(&folder, link);
        assert!(packets > 100, "{link}");
        let out = folder.path(&format!("out-{}", link.number()));
        let arguments = format!("-p {flows} -c {pcap} --seconds 0 --out {out}");
        let run = run(&format!("replay {arguments} --format json"));
        let report = run.exits(0).silent().json();
        assert_eq!(report["capture"]["packets"], packets, "{link}");
        assert_eq!(report["capture"]["left_out"], 0, "{link}");
        let counts = column(&report["flows"], "packets");
        assert_eq!(counts.iter().sum::<u64>(), packets, "{link}");
        if both(link) {
            assert_eq!(*expected.get_or_insert(counts.clone()), counts, "{link}");
        }
        // The output is a capture of Ethernet frames.
        let sent = column(&report["ports"], "sent_packets").iter().sum::<u64>();
        let mut written = 0;
        for port in 2..=4 {
            let Ok(port) =
                read_capture_file(format!("{out}/port-{port}.pcap"), &ReadOptions::default())
            else {
                continue;
            };
            assert_eq!(port.warnings(), []);
            assert_eq!(port.interfaces()[0].link, LinkType::Ethernet);
            for parsed in port.parsed() {
                assert!(parsed.family.is_some(), "{link}: {parsed:?}");
                let has_source = parsed.eth_src != 0;
                let is_known = matches!(
                    link,
                    LinkType::Ethernet | LinkType::LinuxCooked | LinkType::LinuxCooked2
                );
                assert_eq!(has_source, is_known, "{link}: {parsed:?}");
            }
            written += port.packets().len() as u64;
        }
        assert_eq!(written, sent, "{link}");
        assert!(sent > 100, "{link}");
    }
}

#[test]
fn every_link_is_classified_as_ethernet_is() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let mut expected = None;
    for link in LinkType::PARSED {
        let (pcap, packets) = capture(&folder, link);
        let arguments = format!("classify {rules} -c {pcap} --repeat 1 --format json");
        let report = run(&arguments).exits(0).silent().json();
        assert_eq!(report["input"]["headers"], packets, "{link}");
        if !matches!(link, LinkType::Ipv4 | LinkType::Ipv6) {
            let hits = column(&report["hits"], "headers");
            assert_eq!(*expected.get_or_insert(hits.clone()), hits, "{link}");
        }
    }
}

#[test]
fn a_packet_of_another_link_is_traced() {
    let folder = Folder::new();
    let flows = folder.file("switch.flows", PIPELINE);
    let (pcap, _) = capture(&folder, LinkType::LinuxCooked);
    run(&format!("trace -p {flows} -c {pcap}"))
        .exits(0)
        .silent()
        .prints("table 0");
}

/// Writes a capture of frames of an unsupported link type.
fn unreadable(folder: &Folder, packets: u64) -> String {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Other(127)).unwrap();
    for number in 0..packets {
        writer.packet(number, 60, &[0x45; 60]).unwrap();
    }
    folder.file("radio.pcap", writer.finish().unwrap())
}

#[test]
fn a_capture_of_which_no_packet_can_be_used_is_an_error() {
    let folder = Folder::new();
    let flows = folder.file("switch.flows", PIPELINE);
    let rules = folder.file("fw.rules", RULES);
    let radio = unreadable(&folder, 3);
    for command in ["replay", "trace"] {
        let run = run(&format!("{command} -p {flows} -c {radio}")).exits(2);
        run.complains("no packet of ")
            .complains("3 of link type 127 (the link type is not supported)")
            .complains("supported link types: ethernet, raw-ip,");
    }
    let by_winner = folder.path("winners");
    for output in ["", "--format json", "--winners -"] {
        let run = run(&format!("classify {rules} -c {radio} {output}")).exits(2);
        run.complains("has a header for these rules: 3 unknown-link")
            .complains("by link type: 3 of link type 127")
            .complains("supported link types");
    }
    let run_to_file = run(&format!(
        "classify {rules} -c {radio} --winners {by_winner}"
    ));
    run_to_file.exits(2).prints("3 unknown-link");
    assert_eq!(folder.read("winners"), "x\nx\nx\n");
    // A capture without packets is not an error.
    let empty = unreadable(&folder, 0);
    run(&format!("classify {rules} -c {empty}")).exits(0);
    run(&format!("replay -p {flows} -c {empty}")).exits(0);
}

#[test]
fn packets_that_cannot_be_used_among_others_are_counted_by_reason() {
    let folder = Folder::new();
    let flows = folder.file("switch.flows", PIPELINE);
    let mut writer = PcapWriter::new(Vec::new(), LinkType::RawIp).unwrap();
    for frame in [&[0x45, 0, 0, 20][..], &[0x55], &[]] {
        writer.packet(0, 60, frame).unwrap();
    }
    let pcap = folder.file("raw.pcap", writer.finish().unwrap());
    let run = run(&format!("replay -p {flows} -c {pcap} --format json")).exits(0);
    let run = run
        .complains("2 packets left out:")
        .complains("1 of raw-ip (the frame ends inside its link header)")
        .complains("1 of raw-ip (what follows the link header has no Ethernet type)");
    let report = run.json();
    assert_eq!(report["capture"]["packets"], 1);
    assert_eq!(report["capture"]["left_out"], 2);
}

#[test]
fn unknown_ethernet_types_are_named_by_number() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", "schema openflow15\nallow\n");
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
    for kind in [0x88cc_u16, 0x9999, 0x88cc, 0x0806] {
        let mut frame = vec![2; 12];
        frame.extend(kind.to_be_bytes());
        frame.resize(60, 0);
        writer.packet(0, 60, &frame).unwrap();
    }
    let pcap = folder.file("types.pcap", writer.finish().unwrap());
    let arguments = format!("classify {rules} -c {pcap}");
    run(&arguments)
        .exits(0)
        .prints("unknown Ethernet types: 2 0x88cc, 1 0x9999");
    let report = run(&format!("{arguments} --format json")).exits(0).json();
    let types = &report["input"]["packets"]["unknown_ethertypes"];
    assert_eq!(types[0]["ethertype"], "0x88cc");
    assert_eq!(column(types, "packets"), [2, 1]);
}

/// Returns the rows of the table of link types in `docs/formats.md`: the words of the
/// name in small letters, and the numbers.
fn documented_links() -> Vec<(Vec<String>, Vec<u16>)> {
    let page = include_str!("../../../../docs/formats.md");
    let (_, table) = page.split_once("\n| link type |").expect("the table");
    // The rest of the heading and the line below it come first.
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let rows = rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let words = cells[1].split(|character: char| !character.is_alphanumeric());
        let words: Vec<String> = words.map(str::to_lowercase).collect();
        let numbers = cells[2].split(',').map(str::trim);
        let numbers: Vec<u16> = numbers.filter_map(|number| number.parse().ok()).collect();
        (words, numbers)
    });
    rows.collect()
}

#[test]
fn every_link_type_that_is_read_is_in_the_documentation() {
    let rows = documented_links();
    let mut read = Vec::new();
    for number in 0..=u16::MAX {
        let link = LinkType::from_number(number);
        let row = rows.iter().find(|(_, numbers)| numbers.contains(&number));
        if let LinkType::Other(_) = link {
            assert_eq!(row, None, "{link} is documented and not read");
            continue;
        }
        let (words, _) = row.unwrap_or_else(|| panic!("{link}, {number}, is not documented"));
        for part in link.to_string().split('-') {
            let is_named = words.iter().any(|word| word == part);
            assert!(is_named, "{link}, {number}: no {part} in {words:?}");
        }
        read.push(link);
    }
    for link in LinkType::PARSED {
        assert!(read.contains(&link), "{link}");
    }
    assert!(read.iter().all(|link| LinkType::PARSED.contains(link)));
}
