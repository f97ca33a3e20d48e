//! Tests of hostile captures and frames: memory grows with the real bytes and the limits,
//! never with the lengths that a file claims.

#[path = "../../core/tests/allocations/mod.rs"]
mod allocations;

use std::io::Write as _;

use classyard_workload::capture::{
    CaptureProblem, CaptureReader, ReadOptions, ethernet_frame, read_capture,
};
use classyard_workload::diagnostic::ReadError;
use classyard_workload::packet::{Anomaly, LinkType, parse};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The maximum memory in bytes for reading packet by packet, without the longest record: the
/// buffer, the decompressor and the warnings.
const STREAM_BYTES: usize = 512 << 10;

/// The result of reading a stream.
struct Streamed {
    packets: u64,
    interfaces: usize,
    problems: Vec<CaptureProblem>,
    peak_bytes: usize,
}

/// Reads a capture packet by packet.
fn streamed(file: &[u8]) -> Streamed {
    let (mut streamed, bytes) = allocations::bytes(|| {
        let mut reader = CaptureReader::new("hostile", file, &ReadOptions::STREAMED).unwrap();
        while let Some(record) = reader.next_record().unwrap() {
            assert!(record.frame.len() <= 262_144);
        }
        let warnings = reader.warnings().iter();
        Streamed {
            packets: reader.packets(),
            interfaces: reader.interfaces().len(),
            problems: warnings.map(|warning| warning.problem.clone()).collect(),
            peak_bytes: 0,
        }
    });
    streamed.peak_bytes = bytes.peak;
    streamed
}

fn gzip(parts: &[&[u8]]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for part in parts {
        encoder.write_all(part).unwrap();
    }
    encoder.finish().unwrap()
}

fn pcap_header(snap_length: u32) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(snap_length.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    file
}

/// Returns a pcapng block. `claimed` replaces its real length.
fn block(kind: u32, claimed: Option<u32>, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = claimed.unwrap_or(u32::try_from(padded + 12).unwrap());
    let mut block = [kind.to_le_bytes(), length.to_le_bytes()].concat();
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(length.to_le_bytes());
    block
}

fn section() -> Vec<u8> {
    let mut body = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    body.extend([0xff; 8]);
    block(0x0a0d_0d0a, None, &body)
}

fn interface(options: &[u8]) -> Vec<u8> {
    let body = [&[1, 0, 0, 0, 0, 0, 0, 0][..], options].concat();
    block(1, None, &body)
}

/// Returns an enhanced packet block that claims `captured` bytes of a packet.
fn enhanced(captured: u32, rest: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 12];
    body.extend(captured.to_le_bytes());
    body.extend(captured.to_le_bytes());
    body.extend(rest);
    block(6, None, &body)
}

#[test]
fn gzip_bombs_are_streamed_in_a_buffer_and_refused_where_they_are_held() {
    // 64 MiB of empty packets, compressed to 64 KiB.
    let zeros = vec![0; 1 << 20];
    let mut parts: Vec<&[u8]> = vec![&zeros; 64];
    let header = pcap_header(65_535);
    parts.insert(0, &header);
    let bomb = gzip(&parts);
    assert!(bomb.len() < 128 << 10, "{}", bomb.len());
    let read = streamed(&bomb);
    assert_eq!(read.packets, 4 << 20);
    assert!(read.peak_bytes < STREAM_BYTES, "{} bytes", read.peak_bytes);

    let options = ReadOptions::DEFAULT.with_max_bytes(4 << 20);
    let (error, bytes) = allocations::bytes(|| read_capture("bomb", &bomb, &options));
    assert!(matches!(error, Err(ReadError::TooLong { .. })));
    // 32 bytes for each packet header of 16 bytes, doubled while the list grows.
    assert!(bytes.peak < 26 << 20, "{} bytes", bytes.peak);

    // A large record is skipped, not stored.
    let mut record = pcap_header(u32::MAX);
    for field in [0_u32, 0, 60 << 20, 60 << 20] {
        record.extend(field.to_le_bytes());
    }
    parts[0] = &record;
    let read = streamed(&gzip(&parts));
    assert!(matches!(
        read.problems[0],
        CaptureProblem::LongPacket { .. }
    ));
    assert!(read.peak_bytes < STREAM_BYTES, "{} bytes", read.peak_bytes);

    // Many empty gzip members before the capture.
    let members = gzip(&[]).repeat(20_000);
    let read = streamed(&[members, gzip(&[&header])].concat());
    assert_eq!((read.packets, read.problems.len()), (0, 0));
    assert!(read.peak_bytes < STREAM_BYTES, "{} bytes", read.peak_bytes);
}

#[test]
fn lengths_that_a_file_claims_take_no_memory() {
    let mut claims = pcap_header(u32::MAX);
    for field in [0, 0, u32::MAX - 1, u32::MAX - 1] {
        claims.extend(field.to_le_bytes());
    }
    claims.extend([0; 100]);
    let with = |block: Vec<u8>| [section(), interface(&[]), block].concat();
    let files = [
        claims,
        with(block(6, Some(u32::MAX), &[0; 40])),
        with(block(6, Some(u32::MAX - 3), &[0; 40])),
        with(block(1, Some(u32::MAX), &[0; 40])),
        with(block(0x0bad, Some(u32::MAX), &[0; 40])),
        with(block(3, Some(12), &[])),
        with(enhanced(u32::MAX, &[0; 64])),
        with(enhanced(65, &[0; 64])),
        with(block(6, Some(11), &[0; 40])),
        with(block(6, Some(0), &[0; 40])),
    ];
    for (number, file) in files.iter().enumerate() {
        let read = streamed(file);
        assert_eq!(read.packets, 0, "file {number}");
        assert_eq!(read.problems.len(), 1, "file {number}: {:?}", read.problems);
        assert!(
            read.peak_bytes < STREAM_BYTES,
            "file {number}: {} bytes",
            read.peak_bytes
        );
    }
}

#[test]
fn options_and_bad_blocks_take_memory_in_proportion() {
    // The shortest options, as many as an interface or a packet may have.
    let option = [0x39, 0x30, 0, 0];
    let described = [section(), interface(&option.repeat(200_000))].concat();
    let read = streamed(&described);
    assert_eq!(read.interfaces, 1);
    assert!(
        read.peak_bytes < 24 * described.len(),
        "{} bytes",
        read.peak_bytes
    );

    let packet = enhanced(4, &[&[9; 4][..], &option.repeat(30_000)].concat());
    let file = [section(), interface(&[]), packet.repeat(20)].concat();
    let read = streamed(&file);
    assert_eq!(read.packets, 20);
    assert!(
        read.peak_bytes < 24 * packet.len() + STREAM_BYTES,
        "{} bytes",
        read.peak_bytes
    );

    // Each bad block causes a warning.
    let bad = enhanced(1_000, &[0; 4]);
    let file = [section(), interface(&[]), bad.repeat(50_000)].concat();
    let read = streamed(&file);
    assert_eq!(read.packets, 0);
    assert!(read.problems.len() <= 20);
    assert!(read.peak_bytes < STREAM_BYTES, "{} bytes", read.peak_bytes);
}

/// Returns frames of 200 KB that consist of tags, labels or headers.
fn long_frames() -> Vec<(Vec<u8>, Anomaly)> {
    let start = |kind: u16| [&[2; 12][..], &kind.to_be_bytes()].concat();
    let tags = [start(0x8100), [0, 1, 0x81, 0].repeat(50_000)].concat();
    let labels = [start(0x8847), [0, 1, 0, 9].repeat(50_000)].concat();
    let ipv6 = |next: u8, headers: Vec<u8>| {
        let mut frame = start(0x86dd);
        frame.extend([0x60, 0, 0, 0, 0, 0, next, 64]);
        frame.extend([0x20; 32]);
        frame.extend(headers);
        frame
    };
    let headers = ipv6(60, [60, 0, 1, 4, 0, 0, 0, 0].repeat(30_000));
    let mut options = [43, 255].to_vec();
    options.resize(2_048, 0);
    let hop_by_hop = ipv6(
        0,
        [options, [43, 0, 0, 0, 0, 0, 0, 0].repeat(30_000)].concat(),
    );
    vec![
        (tags, Anomaly::TooManyVlanTags),
        (labels, Anomaly::TooManyMplsLabels),
        (headers, Anomaly::TooManyExtensions),
        (hop_by_hop, Anomaly::TooManyExtensions),
    ]
}

#[test]
fn no_frame_makes_the_parser_allocate_or_walk_on() {
    for (frame, anomaly) in long_frames() {
        for link in LinkType::PARSED {
            let count = allocations::requests(|| {
                let parsed = parse(&frame, link);
                let is_bounded = parsed.anomalies.contains(anomaly);
                assert!(is_bounded || link != LinkType::Ethernet, "{parsed:?}");
            });
            assert_eq!(count, 0, "{link}");
            // A converted frame has the original bytes and a header.
            let (_, bytes) = allocations::bytes(|| ethernet_frame(&frame, link).is_ok());
            assert!(
                bytes.peak <= frame.len() + 14,
                "{link}: {} bytes",
                bytes.peak
            );
        }
    }
}
