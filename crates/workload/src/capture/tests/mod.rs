//! Tests of reading and writing captures.

mod build;
mod links;
mod streaming;
mod writing;

use std::io::{Cursor, Read as _, Write as _};

use classyard::policy::PartId;
use classyard::{EngineSpec, Field, MatchKind, Policy, PolicyTrace, Schema};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::diagnostic::ReadError;
use crate::packet::Kind;
use build::{ORDERS, Order};

fn read(bytes: &[u8]) -> Result<Capture, ReadError> {
    read_capture("test", bytes, &ReadOptions::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn udp4(sport: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = [0x0a00_0001, 0x0a00_0002, u128::from(sport), 53, 17];
    frame::ipv4_frame(&header, &mut bytes);
    bytes
}

fn tcp6(sport: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::ipv6_frame(&[1, 2, u128::from(sport), 443, 6], &mut bytes);
    bytes
}

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

fn pcap(order: Order, magic: u32) -> Vec<u8> {
    let mut file = order.pcap_header(magic, 65_535, 1);
    file.extend(order.pcap_record(1_700_000_000, 999_999, &udp4(1)));
    file.extend(order.pcap_record(1_700_000_001, 7, &tcp6(2)));
    file.extend(order.pcap_record(1_700_000_001, 8, &[]));
    file
}

/// Two sections of different byte orders, three interfaces, all packet blocks.
fn pcapng() -> Vec<u8> {
    let (one, two) = (Order::Big, Order::Little);
    let raw = udp4(9)[14..].to_vec();
    [
        one.section(),
        one.interface(1, 0, &[]),
        one.block(5, &[0; 12]),
        one.enhanced(0, 1_700_000_000_000_001, &udp4(1)),
        one.interface_with_clock(101, 9, 0),
        one.enhanced(1, 1_700_000_000_000_000_002, &raw),
        one.simple(60, &udp4(3)),
        one.obsolete(1, 3, &raw[..21]),
        one.block(0x0bad, &[1, 2, 3, 4, 5]),
        one.block(0x1234_5678, &[]),
        two.section(),
        // Binary fractions of a second, counted from the year 2000.
        two.interface_with_clock(1, 0x80 | 10, 946_684_800),
        two.enhanced(0, 1024 + 512, &tcp6(4)),
        two.block(4, &[0; 4]),
    ]
    .concat()
}

/// Time, original length, link, interface and bytes of each packet.
fn contents(capture: &Capture) -> Vec<(u64, u32, LinkType, u32, Vec<u8>)> {
    capture
        .frames()
        .map(|(packet, bytes)| {
            assert_eq!(packet.captured_length() as usize, bytes.len());
            (
                packet.timestamp_ns,
                packet.original_length,
                packet.link,
                packet.interface,
                bytes.to_vec(),
            )
        })
        .collect()
}

#[test]
fn pcap_in_either_byte_order_and_resolution() {
    for order in ORDERS {
        for (magic, unit) in [(MICROS, 1000), (NANOS, 1)] {
            let capture = read(&pcap(order, magic)).unwrap();
            assert_eq!(capture.format(), Format::Pcap);
            assert_eq!(capture.warnings(), []);
            let second = 1_000_000_000;
            let ethernet = LinkType::Ethernet;
            assert_eq!(
                contents(&capture),
                [
                    (
                        1_700_000_000 * second + 999_999 * unit,
                        65,
                        ethernet,
                        0,
                        udp4(1)
                    ),
                    (1_700_000_001 * second + 7 * unit, 79, ethernet, 0, tcp6(2)),
                    (1_700_000_001 * second + 8 * unit, 5, ethernet, 0, vec![]),
                ]
            );
        }
    }
}

#[test]
fn pcap_with_the_longer_records_of_old_systems() {
    let order = Order::Little;
    let mut file = order.pcap_header(MODIFIED, 65_535, 1);
    let mut record = order.pcap_record(1, 2, &udp4(5));
    record.splice(16..16, [9; 8]);
    file.extend(&record);
    let capture = read(&file).unwrap();
    assert_eq!(capture.frame(0), udp4(5));
    assert_eq!(capture.packets()[0].timestamp_ns, 1_000_002_000);
    let cut = read(&file[..24 + 20]).unwrap();
    assert_eq!((cut.packets().len(), cut.warnings().len()), (0, 1));
}

#[test]
fn pcapng_with_sections_interfaces_and_all_packet_blocks() {
    let capture = read(&pcapng()).unwrap();
    assert_eq!(capture.format(), Format::Pcapng);
    assert_eq!(capture.warnings(), []);
    let raw = udp4(9)[14..].to_vec();
    assert_eq!(
        contents(&capture),
        [
            (
                1_700_000_000_000_001_000,
                65,
                LinkType::Ethernet,
                0,
                udp4(1)
            ),
            (
                1_700_000_000_000_000_002,
                51,
                LinkType::RawIp,
                1,
                raw.clone()
            ),
            (0, 60, LinkType::Ethernet, 0, udp4(3)),
            (3, 26, LinkType::RawIp, 1, raw[..21].to_vec()),
            (946_684_801_500_000_000, 79, LinkType::Ethernet, 2, tcp6(4)),
        ]
    );
    let names: Vec<_> = capture
        .interfaces()
        .iter()
        .map(|interface| interface.name.as_deref())
        .collect();
    assert_eq!(names, [None, Some("eth0"), Some("eth0")]);
    let skipped: Vec<_> = capture.skipped_blocks().collect();
    assert_eq!(skipped, [(4, 1), (5, 1), (0x0bad, 1), (0x1234_5678, 1)]);
}

#[test]
fn simple_packets_are_cut_at_the_snap_length() {
    for order in ORDERS {
        let frame = udp4(1);
        let file = [
            order.section(),
            order.interface(1, 41, &[]),
            order.simple(60, &frame[..41]),
            order.simple(39, &frame[..39]),
        ]
        .concat();
        let capture = read(&file).unwrap();
        assert_eq!(capture.frame(0), &frame[..41]);
        assert_eq!(capture.packets()[0].original_length, 60);
        assert_eq!(capture.frame(1), &frame[..39]);
    }
}

#[test]
fn odd_clocks_do_not_overflow() {
    for resolution in [0, 19, 38, 39, 127, 0x80, 0x80 | 63, 0xff] {
        for offset in [i64::MIN, -1, 0, i64::MAX] {
            let order = Order::Big;
            let file = [
                order.section(),
                order.interface_with_clock(1, resolution, offset),
                order.enhanced(0, u64::MAX, &[]),
            ]
            .concat();
            let capture = read(&file).unwrap();
            let time = capture.packets()[0].timestamp_ns;
            if offset == i64::MAX {
                assert_eq!(time, u64::MAX);
            }
            if offset == i64::MIN && resolution & 0x7f != 0 {
                assert_eq!(time, 0);
            }
        }
    }
}

#[test]
fn gzip_is_recognised_by_its_first_bytes() {
    for file in [pcap(Order::Big, NANOS), pcapng()] {
        let plain = read(&file).unwrap();
        let packed = read(&gzip(&file)).unwrap();
        assert_eq!(contents(&plain), contents(&packed));
        let stream = Cursor::new(gzip(&file));
        let streamed = read_capture_from("test", stream, &ReadOptions::default()).unwrap();
        assert_eq!(contents(&plain), contents(&streamed));
        // Several gzip members, one after the other.
        let (start, end) = file.split_at(70);
        let members = [gzip(start), gzip(end)].concat();
        assert_eq!(contents(&plain), contents(&read(&members).unwrap()));
    }
}

/// Checks that the packets read from a part of the file are the first packets of the
/// whole file.
fn assert_start(part: &Capture, whole: &Capture) {
    let (part, whole) = (contents(part), contents(whole));
    assert!(part.len() <= whole.len());
    assert_eq!(part[..], whole[..part.len()]);
}

#[test]
fn a_file_cut_anywhere_gives_what_comes_before() {
    let files = [
        (pcap(Order::Little, MICROS), 24),
        (pcap(Order::Big, NANOS), 24),
        (pcapng(), 28),
    ];
    for (file, header) in files {
        let whole = read(&file).unwrap();
        let mut counts = Vec::new();
        for length in 0..file.len() {
            match read(&file[..length]) {
                Err(error) => {
                    assert!(length < header, "{length}: {error}");
                    assert!(matches!(error, ReadError::Format { .. }));
                }
                Ok(part) => {
                    assert!(length >= header);
                    assert_start(&part, &whole);
                    counts.push(part.packets().len());
                    assert!(part.warnings().len() <= 1);
                    for warning in part.warnings() {
                        assert!(warning.offset < length as u64);
                        assert_eq!(warning.packets, part.packets().len() as u64);
                        let CaptureProblem::Truncated { needed, left, .. } = warning.problem else {
                            panic!("{warning}");
                        };
                        assert!(left < needed && warning.offset + left == length as u64);
                    }
                }
            }
        }
        // Every number of packets occurred, in ascending order.
        assert!(counts.is_sorted());
        counts.dedup();
        let last = whole.packets().len();
        let all: Vec<usize> = (0..=last).collect();
        assert!(counts == all || counts == all[..last], "{counts:?}");
    }
}

#[test]
fn damaged_gzip_gives_what_could_be_decompressed() {
    let order = Order::Little;
    let mut file = order.pcap_header(MICROS, 65_535, 1);
    for port in 0..500_u16 {
        // Bytes that hardly compress.
        let noise = u32::from(port).wrapping_mul(2_654_435_761);
        file.extend(order.pcap_record(noise, port.into(), &udp4(port)));
    }
    let whole = read(&file).unwrap();
    let packed = gzip(&file);
    let mut most = 0;
    for length in 0..packed.len() {
        match read(&packed[..length]) {
            Err(ReadError::Format { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(part) => {
                assert_start(&part, &whole);
                most = most.max(part.packets().len());
                let damage = part
                    .warnings()
                    .iter()
                    .any(|warning| matches!(warning.problem, CaptureProblem::Gzip { .. }));
                assert!(damage, "{length}");
            }
        }
    }
    assert!(most > 300, "{most}");

    let mut flipped = packed.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let part = read(&flipped).unwrap();
    assert!(!part.warnings().is_empty());
    let trailing = [packed, b"garbage".to_vec()].concat();
    let part = read(&trailing).unwrap();
    assert_eq!(part.packets().len(), 500);
    assert_eq!(part.warnings().len(), 1);
}

fn message(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn what_is_no_capture_is_named() {
    let cases: [(&[u8], &str); 7] = [
        (b"", "an empty file"),
        (b"\x7fELF\x02\x01", "a file that starts with 7f454c46"),
        (
            b"@192.0.2.0/24 10.0.0.0/8",
            "a text file that starts with 40313932",
        ),
        (
            &gzip(b"hello, world"),
            "a text file that starts with 68656c6c",
        ),
        (b"\x1f\x8b\x08", "gzip data of which nothing"),
        (&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0], "only 6 of the 24 bytes"),
        (
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 9, 9, 9, 9],
            "byte-order mark 09090909",
        ),
    ];
    for (bytes, expected) in cases {
        let message = message(bytes);
        assert!(
            message.starts_with("test: ") && message.contains(expected),
            "{message}"
        );
        assert!(message.contains("expected a pcap or pcapng capture"));
    }
    let mut old = Order::Big.pcap_header(MICROS, 0, 1);
    old[5] = 1;
    assert!(message(&old).contains("version 1.4 of the pcap format"));
    let mut new = Order::Big.section();
    new[13] = 9;
    assert!(message(&new).contains("version 9.0 of the pcapng format"));
    let missing = read_capture_file("/no/such/capture.pcap", &ReadOptions::default());
    assert!(matches!(missing, Err(ReadError::Io { .. })));
}

#[test]
fn absurd_lengths_end_reading_with_a_warning() {
    for order in ORDERS {
        let mut file = pcap(order, MICROS);
        let good = file.len();
        for field in [1, 2, 0xffff_fff0, 9] {
            file.extend(order.u32(field));
        }
        file.extend([0; 100]);
        let capture = read(&file).unwrap();
        assert_eq!(capture.packets().len(), 3);
        let [warning] = capture.warnings() else {
            panic!("{:?}", capture.warnings());
        };
        assert_eq!((warning.offset, warning.packets), (good as u64, 3));
        assert_eq!(
            warning.to_string(),
            format!(
                "byte {good}, after 3 packets: a packet of 4294967280 bytes; expected at most \
                 262144; the rest was not read"
            )
        );

        for length in [0, 8, 11, u32::MAX] {
            let mut file = [order.section(), order.interface(1, 0, &[])].concat();
            file.extend(order.enhanced(0, 1, &udp4(1)));
            let good = file.len() as u64;
            file.extend(order.u32(6));
            file.extend(order.u32(length));
            file.extend([0; 64]);
            let capture = read(&file).unwrap();
            assert_eq!(capture.packets().len(), 1);
            assert_eq!(capture.warnings().len(), 1);
            assert_eq!(capture.warnings()[0].offset, good);
        }
    }
}

#[test]
fn malformed_blocks_are_skipped_with_a_warning() {
    for order in ORDERS {
        let mut too_long = order.enhanced(0, 1, &udp4(1));
        // The captured length is beyond the block's end.
        too_long[20..24].copy_from_slice(&order.u32(5000));
        let mut obsolete = order.obsolete(0, 1, &udp4(1));
        obsolete[20..24].copy_from_slice(&order.u32(5000));
        let file = [
            order.section(),
            order.simple(4, &[1, 2, 3, 4]),
            order.interface(1, 0, &[]),
            too_long,
            obsolete,
            order.enhanced(7, 1, &udp4(1)),
            order.block(6, &[0; 4]),
            order.block(1, &[]),
            order.enhanced(1, 1, &udp4(1)),
            order.enhanced(0, 1, &udp4(8)),
        ]
        .concat();
        let capture = read(&file).unwrap();
        let reasons: Vec<String> = capture.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(reasons.len(), 7, "{reasons:#?}");
        assert!(reasons[0].contains("its interface 0 is none of the section's 0"));
        assert!(reasons[1].contains("lengths contradict"));
        assert!(reasons[2].contains("lengths contradict"));
        assert!(reasons[3].contains("its interface 7 is none of the section's 1"));
        assert!(reasons[4].contains("lengths contradict"));
        assert!(reasons[5].contains("interface description that is malformed"));
        assert!(reasons[6].contains("link type 65535"));
        // The malformed interface keeps its number.
        let interfaces: Vec<u32> = capture.packets().iter().map(|p| p.interface).collect();
        assert_eq!(interfaces, [1, 0]);
    }
}

#[test]
fn warnings_are_bounded() {
    let order = Order::Little;
    let mut file = [order.section(), order.interface(1, 0, &[])].concat();
    for _ in 0..50 {
        file.extend(order.enhanced(3, 1, &[]));
    }
    let capture = read(&file).unwrap();
    assert_eq!(
        (capture.warnings().len(), capture.more_warnings()),
        (20, 30)
    );
}

#[test]
fn limits_are_met_with_an_error_and_first_with_a_warning() {
    for file in [pcap(Order::Little, MICROS), pcapng()] {
        let count = read(&file).unwrap().packets().len();
        let with = |options: &ReadOptions| read_capture("test", &file, options);
        let enough = ReadOptions {
            limit: count,
            first: Some(count),
            max_bytes: file.len() as u64,
            ..ReadOptions::default()
        };
        let capture = with(&enough).unwrap();
        assert_eq!(capture.packets().len(), count);
        assert_eq!(capture.warnings(), []);

        let limited = with(&ReadOptions { limit: 2, ..enough });
        assert_eq!(
            limited.unwrap_err().to_string(),
            "test:3: more than 2 packets; raise the limit or split the file"
        );
        let some = with(&ReadOptions {
            first: Some(2),
            limit: 2,
            ..enough
        })
        .unwrap();
        assert_eq!(some.packets().len(), 2);
        assert_eq!(some.warnings()[0].problem, CaptureProblem::Stopped);
        let small = ReadOptions {
            max_bytes: file.len() as u64 - 1,
            ..enough
        };
        let packed = gzip(&file);
        let streams = [
            with(&small),
            read_capture("test", &packed, &small),
            read_capture_from("test", Cursor::new(&file), &small),
        ];
        for result in streams {
            let message = result.unwrap_err().to_string();
            assert!(message.contains("more than"), "{message}");
        }
    }
}

#[test]
fn a_bomb_is_defused() {
    // 64 MiB of zeros after a header, compressed to about 64 KiB.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(&Order::Little.pcap_header(MICROS, 0, 1))
        .unwrap();
    std::io::copy(&mut std::io::repeat(0).take(1 << 26), &mut encoder).unwrap();
    let packed = encoder.finish().unwrap();
    let options = ReadOptions {
        max_bytes: 1 << 20,
        ..ReadOptions::default()
    };
    let error = read_capture("test", &packed, &options).unwrap_err();
    assert!(error.to_string().contains("more than 1048576 bytes"));
}

#[test]
fn unknown_link_types_are_warned_of_and_counted() {
    let order = Order::Big;
    let mut file = order.pcap_header(MICROS, 65_535, 127);
    file.extend(order.pcap_record(1, 1, &[0; 40]));
    let capture = read(&file).unwrap();
    assert_eq!(
        capture.warnings()[0].to_string(),
        "byte 0, after 0 packets: frames of interface 0 cannot be parsed: link type 127 is not \
         supported"
    );
    let headers = capture
        .classify_input(&[Schema::ipv4_5tuple(), Schema::openflow15()])
        .unwrap();
    assert!(headers.trace.is_empty());
    assert_eq!(headers.left_out(), [(Kind::UnknownLink, 1)]);
    // The upper bits mean that frames end with a checksum of 4 bytes.
    let mut file = order.pcap_header(MICROS, 65_535, 0x2400_0001);
    file.extend(order.pcap_record(1, 1, &udp4(1)));
    assert_eq!(read(&file).unwrap().packets()[0].link, LinkType::Ethernet);
}

// ---- headers

#[test]
fn packets_go_to_the_part_of_their_family() {
    let order = Order::Little;
    let arp = [&[0; 12][..], &[8, 6], &[0, 1, 8, 0, 6, 4, 0, 1], &[0; 20]].concat();
    let file = [
        order.section(),
        order.interface(1, 0, &[]),
        order.interface(101, 0, &[]),
        order.enhanced(0, 10, &udp4(1)),
        order.enhanced(0, 11, &arp),
        order.enhanced(0, 12, &tcp6(2)),
        order.enhanced(1, 13, &udp4(3)[14..]),
        order.enhanced(0, 14, &udp4(4)[..36]),
    ]
    .concat();
    let capture = read(&file).unwrap();

    let dual = capture
        .classify_input(Policy::dual_stack().schemas())
        .unwrap();
    assert_eq!(dual.packet_of, [0, 2, 3]);
    assert_eq!(dual.timestamps_ns, [10_000, 12_000, 13_000]);
    assert_eq!(dual.lengths, [65, 79, 51]);
    let (v4, v6) = (PartId::from_index(0), PartId::from_index(1));
    let parts: Vec<PartId> = dual.trace.iter().map(|(part, _)| part).collect();
    assert_eq!(parts, [v4, v6, v4]);
    assert_eq!(
        dual.trace.part(v4).header(1),
        [0x0a00_0001, 0x0a00_0002, 3, 53, 17]
    );
    assert_eq!(dual.left_out(), [(Kind::Ipv4Incomplete, 1), (Kind::Arp, 1)]);
    assert_eq!(dual.left_out_total(), 2);
    assert_eq!(dual.counters.packets(), 5);

    let only6 = capture.classify_input(&[Schema::ipv6_5tuple()]).unwrap();
    assert_eq!(only6.packet_of, [2]);
    assert_eq!(
        only6.left_out(),
        [(Kind::Ipv4, 2), (Kind::Ipv4Incomplete, 1), (Kind::Arp, 1)]
    );

    let flows = capture.classify_input(&[Schema::openflow15()]).unwrap();
    assert_eq!(flows.packet_of, [0, 1, 2, 3, 4]);
    let headers = flows.trace.part(PartId::FIRST);
    let in_ports: Vec<u128> = (0..5).map(|i| headers.header(i)[0]).collect();
    assert_eq!(in_ports, [1, 1, 1, 2, 1]);
    assert_eq!(
        headers.header(4)[9..],
        [0x0a00_0001, 0x0a00_0002, 17, 0, 0, 0]
    );

    let both = capture
        .classify_input(&[Schema::ipv4_5tuple(), Schema::openflow15()])
        .unwrap();
    let parts: Vec<usize> = both.trace.iter().map(|(part, _)| part.index()).collect();
    assert_eq!(parts, [0, 1, 1, 0, 1]);
}

/// A packet that several parts can represent goes to the same part whether it is read
/// from a capture or looked up as a single header: in policies of three parts, each of
/// any built-in schema.
#[test]
fn captures_and_single_headers_choose_the_same_part() {
    let capture = read(&pcapng()).unwrap();
    let built_in = |index: usize| Schema::built_in(Schema::BUILT_IN[index]).unwrap();
    let spec = EngineSpec::parse("linear").unwrap();
    for number in 0..27 {
        let schemas = [number / 9, number / 3 % 3, number % 3].map(built_in);
        let policy = Policy::new("three parts", &schemas);
        let classifier = spec.builder().policy(&policy).unwrap();
        let mut trace = PolicyTrace::new(policy.schemas());
        for (packet, parsed) in capture.packets().iter().zip(capture.parsed()) {
            let header = parsed.received_by(packet.interface + 1);
            let verdict = classifier.classify_header(&header);
            let part = verdict.map(|verdict| verdict.part);
            assert_eq!(trace.push_header(&header), part);
        }
        let from_capture = capture.classify_input(policy.schemas()).unwrap();
        assert_eq!(from_capture.trace, trace, "parts {schemas:?}");
    }
}

#[test]
fn schemas_of_ones_own_are_refused_with_advice() {
    let schema = Schema::new("mine", vec![Field::new("a", 8, MatchKind::Exact)]).unwrap();
    let capture = read(&pcap(Order::Little, MICROS)).unwrap();
    let error = capture.classify_input(&[schema]).unwrap_err().to_string();
    assert!(error.contains("`mine`"), "{error}");
    assert!(
        error.contains("ipv4-5tuple, ipv6-5tuple, openflow15"),
        "{error}"
    );
    assert!(error.contains("as text instead of a capture"), "{error}");
}

// ---- damage

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn damaged_files_never_panic(
        which in 0..4_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let file = match which {
            0 => pcap(Order::Little, MICROS),
            1 => pcap(Order::Big, NANOS),
            2 => gzip(&pcapng()),
            _ => pcapng(),
        };
        let mut damaged = file;
        for (at, value) in damage {
            let at = at.index(damaged.len());
            damaged[at] = value;
        }
        if let Ok(capture) = read(&damaged) {
            for (packet, frame) in capture.frames() {
                prop_assert_eq!(packet.captured_length() as usize, frame.len());
            }
            let _ = capture.classify_input(&[Schema::openflow15()]).unwrap();
        }
    }

    #[test]
    fn random_bytes_behind_a_magic_never_panic(
        magic in prop::sample::select(vec![
            vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4],
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            Order::Little.section(),
            Order::Big.section(),
            vec![0x0a, 0x0d, 0x0d, 0x0a],
            vec![0x1f, 0x8b, 8],
        ]),
        kinds in prop::collection::vec((1..8_u32, prop::collection::vec(any::<u8>(), 0..60)), 0..9),
        tail in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut file = magic;
        for (kind, body) in kinds {
            file.extend(Order::Little.block(kind, &body));
        }
        file.extend(tail);
        if let Ok(capture) = read(&file) {
            for (packet, frame) in capture.frames() {
                prop_assert_eq!(packet.captured_length() as usize, frame.len());
            }
        }
    }
}
