//! Compares the office capture, frame by frame, with an independent dissection.
//!
//! `testdata/capture` has the frames as pcap and as pcapng, and tshark's dissection: a table
//! with one row for each frame, and counts.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use classyard::{Policy, Schema};
use classyard_workload::capture::{
    Capture, CaptureProblem, Format, ReadOptions, read_capture, read_capture_file,
};
use classyard_workload::packet::{
    Anomaly, Counters, Family, Kind, LinkType, Parsed, Property, Transport, parse,
};
use flate2::read::GzDecoder;
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/capture")
        .join(name)
}

fn capture(name: &str) -> Capture {
    let capture = read_capture_file(file(name), &ReadOptions::default()).unwrap();
    assert_eq!(capture.warnings(), []);
    capture
}

/// Reads a text file, or its compressed form.
fn text(name: &str) -> String {
    if let Ok(text) = fs::read_to_string(file(name)) {
        return text;
    }
    let packed = fs::File::open(file(&format!("{name}.gz"))).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text
}

/// Returns a frame in the format of the dissection's rows.
fn row(number: usize, parsed: &Parsed) -> String {
    let v4 = |address: u128| Ipv4Addr::from(u32::try_from(address).unwrap()).to_string();
    let v6 = |address: u128| Ipv6Addr::from(address).to_string();
    let (l3, src, dst) = match (parsed.kind, parsed.family) {
        (_, Some(Family::V4)) => ("ipv4", v4(parsed.src), v4(parsed.dst)),
        (_, Some(Family::V6)) => ("ipv6", v6(parsed.src), v6(parsed.dst)),
        (Kind::Arp, None) => ("arp", v4(parsed.src), v4(parsed.dst)),
        _ => ("other", String::new(), String::new()),
    };
    let proto = parsed.proto.map_or(String::new(), |p| p.to_string());
    let (sport, dport) = parsed.ports.map_or(Default::default(), |(sport, dport)| {
        (sport.to_string(), dport.to_string())
    });
    let vlan = if parsed.vlan_tags > 0 {
        parsed.vlan_vid.to_string()
    } else {
        String::new()
    };
    format!("{number},{l3},{src},{dst},{proto},{sport},{dport},{vlan}")
}

/// Writes the addresses of a row in a canonical form.
fn canonical(row: &str) -> String {
    let address = |field: &str| match field.parse::<Ipv6Addr>() {
        Ok(address) => address.to_string(),
        Err(_) => field.to_owned(),
    };
    row.split(',').map(address).collect::<Vec<_>>().join(",")
}

#[test]
fn every_frame_is_what_the_dissector_says() {
    let capture = capture("office.pcap");
    let table = text("office.headers.csv");
    let mut rows = table.lines();
    assert_eq!(rows.next(), Some("frame,l3,src,dst,proto,sport,dport,vlan"));
    let mut compared = 0;
    for (number, parsed) in capture.parsed().enumerate() {
        let expected = canonical(rows.next().expect("a row for each frame"));
        assert_eq!(row(number, &parsed), expected, "{parsed:?}");
        compared += 1;
    }
    assert_eq!(rows.next(), None);
    assert!(compared > 1000, "{compared} frames");
}

#[test]
fn the_counts_are_the_dissectors() {
    let capture = capture("office.pcap");
    let mut counters = Counters::new();
    for parsed in capture.parsed() {
        counters.add(&parsed);
    }
    let document: Value = serde_json::from_str(&text("office.counts.json")).unwrap();
    let snapped = capture
        .packets()
        .iter()
        .filter(|packet| packet.captured_length() < packet.original_length);
    let igmp = capture.parsed().filter(|parsed| parsed.proto == Some(2));
    let igmp = igmp.count() as u64;
    let kinds = |kinds: &[Kind]| kinds.iter().map(|&kind| counters.kind(kind)).sum();
    let ours: [(&str, u64); 22] = [
        ("frames", counters.packets()),
        ("frames_snapped", snapped.count() as u64),
        ("ipv4", kinds(&[Kind::Ipv4, Kind::Ipv4Incomplete])),
        ("ipv6", kinds(&[Kind::Ipv6, Kind::Ipv6Incomplete])),
        ("arp", counters.kind(Kind::Arp)),
        (
            "other_l3",
            kinds(&[
                Kind::Mpls,
                Kind::Llc,
                Kind::OtherNetwork,
                Kind::Unreadable,
                Kind::UnknownLink,
            ]),
        ),
        ("vlan_tagged", counters.property(Property::VlanTagged)),
        ("qinq_tagged", counters.property(Property::QinQTagged)),
        ("tcp", counters.transport(Transport::Tcp)),
        ("udp", counters.transport(Transport::Udp)),
        ("icmp", counters.transport(Transport::Icmp)),
        ("icmpv6", counters.transport(Transport::Icmpv6)),
        ("sctp", counters.transport(Transport::Sctp)),
        ("igmp", igmp),
        (
            "other_ip_protocol",
            counters.transport(Transport::Other) - igmp,
        ),
        (
            "ipv4_fragments_first",
            counters.property(Property::Ipv4FirstFragment),
        ),
        (
            "ipv4_fragments_later",
            counters.property(Property::Ipv4LaterFragment),
        ),
        (
            "ipv6_fragments_first",
            counters.property(Property::Ipv6FirstFragment),
        ),
        (
            "ipv6_fragments_later",
            counters.property(Property::Ipv6LaterFragment),
        ),
        (
            "ipv4_with_options",
            counters.property(Property::Ipv4Options),
        ),
        (
            "ipv6_with_extension_headers",
            counters.property(Property::Ipv6Extensions),
        ),
        ("with_ports", counters.property(Property::WithPorts)),
    ];
    let theirs = document["counts"].as_object().expect("counts");
    for (name, count) in ours {
        assert_eq!(theirs[name].as_u64(), Some(count), "{name}");
    }
    assert_eq!(theirs.len(), ours.len(), "a count that is not compared");
}

#[test]
fn pcap_and_pcapng_have_the_same_packets() {
    let one = capture("office.pcap");
    let other = capture("office.pcapng.gz");
    assert_eq!(
        (one.format(), other.format()),
        (Format::Pcap, Format::Pcapng)
    );
    assert_eq!(one.packets().len(), other.packets().len());
    for ((a, bytes), (b, same_bytes)) in one.frames().zip(other.frames()) {
        assert_eq!(bytes, same_bytes);
        // pcap has microseconds, pcapng nanoseconds.
        assert_eq!(
            (a.timestamp_ns / 1000, a.original_length, a.link),
            (b.timestamp_ns / 1000, b.original_length, b.link)
        );
        assert_eq!(a.link, LinkType::Ethernet);
    }
    // The capture has one interface for each port of the router. Blocks with names and
    // statistics are not packets.
    let names: Vec<&str> = other
        .interfaces()
        .iter()
        .filter_map(|interface| interface.name.as_deref())
        .collect();
    assert_eq!(names, ["lan0", "dmz0", "trunk0", "metro0", "wan0"]);
    let skipped: Vec<(u32, u64)> = other.skipped_blocks().collect();
    assert_eq!(skipped, [(4, 1), (5, 5)]);
    let schemas = Policy::dual_stack();
    let headers = |capture: &Capture| capture.classify_input(schemas.schemas()).unwrap();
    let (one, other) = (headers(&one), headers(&other));
    assert_eq!(one.trace, other.trace);
    assert_eq!(one.counters, other.counters);
}

#[test]
fn all_of_it_can_be_classified() {
    let capture = capture("office.pcap");
    let tuples = capture
        .classify_input(Policy::dual_stack().schemas())
        .unwrap();
    let ip = tuples.counters.kind(Kind::Ipv4) + tuples.counters.kind(Kind::Ipv6);
    assert_eq!(tuples.trace.len() as u64, ip);
    assert_eq!(tuples.left_out_total() + ip, capture.packets().len() as u64);
    // The snap length cuts no headers.
    assert_eq!(tuples.counters.kind(Kind::Ipv4Incomplete), 0);
    assert_eq!(tuples.counters.kind(Kind::Ipv6Incomplete), 0);
    let flows = capture.classify_input(&[Schema::openflow15()]).unwrap();
    assert_eq!(flows.trace.len(), capture.packets().len());
    assert!(flows.left_out().is_empty());
}

#[test]
fn every_prefix_of_every_frame_is_parsed_with_care() {
    let capture = capture("office.pcap");
    for (packet, frame) in capture.frames() {
        let whole = parse(frame, packet.link);
        for length in 0..frame.len() {
            let cut = parse(&frame[..length], packet.link);
            assert!(cut.ipv4_5tuple().is_none() || cut.ipv4_5tuple() == whole.ipv4_5tuple());
            assert!(cut.ipv6_5tuple().is_none() || cut.ipv6_5tuple() == whole.ipv6_5tuple());
            if length < 14 {
                assert!(cut.anomalies.contains(Anomaly::TruncatedEthernet));
            }
        }
    }
}

#[test]
fn cut_files_give_what_comes_before() {
    let bytes = fs::read(file("office.pcap")).unwrap();
    let whole = read_capture("office.pcap", &bytes, &ReadOptions::default()).unwrap();
    for length in (24..bytes.len()).step_by(997) {
        let part = read_capture("cut", &bytes[..length], &ReadOptions::default()).unwrap();
        assert_eq!(
            part.packets(),
            &whole.packets()[..part.packets().len()],
            "{length}"
        );
        assert!(part.warnings().len() <= 1);
    }
    let packed = fs::read(file("office.pcapng.gz")).unwrap();
    let half = &packed[..packed.len() / 2];
    let part = read_capture("half", half, &ReadOptions::default()).unwrap();
    assert!(part.packets().len() > whole.packets().len() / 4);
    let problems = part.warnings().iter().map(|warning| &warning.problem);
    assert!(
        problems
            .into_iter()
            .any(|problem| matches!(problem, CaptureProblem::Gzip { .. }))
    );
}
