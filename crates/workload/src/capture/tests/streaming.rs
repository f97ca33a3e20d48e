//! Tests of reading packet by packet: the packets and warnings are the same as when
//! reading the whole capture, memory is bounded, and it does not matter how the bytes
//! arrive.

use std::io::{self, Read};

use super::*;
use crate::limits::{MAX_BLOCK_KINDS, MAX_INTERFACES};

/// A stream that returns at most `size` bytes per call, and the error "interrupted" on
/// every second call.
struct Drops<'a> {
    bytes: &'a [u8],
    size: usize,
    interrupted: bool,
}

impl<'a> Drops<'a> {
    fn new(bytes: &'a [u8], size: usize) -> Drops<'a> {
        Drops {
            bytes,
            size,
            interrupted: false,
        }
    }
}

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.size.min(buffer.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}

/// Returns packets and warnings as text.
fn streamed(stream: impl Read, options: &ReadOptions) -> Result<Vec<String>, ReadError> {
    let mut reader = CaptureReader::new("test", stream, options)?;
    let mut found = Vec::new();
    while let Some(Record { packet, frame }) = reader.next_record()? {
        assert_eq!(packet.captured_length() as usize, frame.len());
        found.push(format!(
            "{} {} {:?} {} {frame:?}",
            packet.timestamp_ns, packet.original_length, packet.link, packet.interface
        ));
    }
    assert_eq!(reader.packets(), found.len() as u64);
    // The reader stays at the end.
    assert!(reader.next_record()?.is_none());
    found.extend(reader.warnings().iter().map(ToString::to_string));
    found.extend(reader.interfaces().iter().map(|it| format!("{it:?}")));
    found.extend(reader.skipped_blocks().map(|it| format!("{it:?}")));
    Ok(found)
}

/// As `streamed`, for a capture that is held in memory.
fn held(bytes: &[u8], options: &ReadOptions) -> Result<Vec<String>, ReadError> {
    let capture = read_capture("test", bytes, options)?;
    let mut found: Vec<String> = capture
        .frames()
        .map(|(packet, frame)| {
            format!(
                "{} {} {:?} {} {frame:?}",
                packet.timestamp_ns, packet.original_length, packet.link, packet.interface
            )
        })
        .collect();
    found.extend(capture.warnings().iter().map(ToString::to_string));
    found.extend(capture.interfaces().iter().map(|it| format!("{it:?}")));
    found.extend(capture.skipped_blocks().map(|it| format!("{it:?}")));
    Ok(found)
}

fn assert_equal(bytes: &[u8], options: &ReadOptions) {
    let expected = held(bytes, options).map_err(|error| error.to_string());
    for size in [1, 2, 7, 64, 4096] {
        let found = streamed(Drops::new(bytes, size), options).map_err(|error| error.to_string());
        assert_eq!(found, expected, "{size} bytes at a time");
    }
}

#[test]
fn packets_are_the_same_however_the_bytes_arrive() {
    let short = ReadOptions {
        max_record: 40,
        ..ReadOptions::default()
    };
    let first = ReadOptions {
        first: Some(2),
        ..ReadOptions::default()
    };
    for file in [
        pcap(Order::Little, MICROS),
        pcap(Order::Big, NANOS),
        pcapng(),
    ] {
        for options in [ReadOptions::default(), ReadOptions::STREAMED, short, first] {
            assert_equal(&file, &options);
            assert_equal(&gzip(&file), &options);
            for length in (0..file.len()).step_by(3) {
                assert_equal(&file[..length], &options);
            }
        }
    }
}

#[test]
fn records_that_straddle_the_buffer_are_whole() {
    for order in ORDERS {
        let mut old = order.pcap_header(MICROS, 0, 1);
        let mut new = [order.section(), order.interface(1, 0, &[])].concat();
        for number in 0..40_u8 {
            let frame = vec![number; 251 * usize::from(number) * usize::from(number) % 200_000];
            old.extend(order.pcap_record(1, number.into(), &frame));
            new.extend(order.enhanced(0, number.into(), &frame));
        }
        for file in [old, new] {
            let expected = held(&file, &ReadOptions::default()).unwrap();
            assert!(expected.len() >= 40);
            for size in [1000, 65_536, 1 << 20] {
                let found = streamed(Drops::new(&file, size), &ReadOptions::STREAMED);
                assert_eq!(found.unwrap(), expected);
            }
        }
    }
}

/// A stream of some bytes followed by endless zeros.
fn endless(start: Vec<u8>) -> impl Read {
    Cursor::new(start).chain(io::repeat(0))
}

#[test]
fn a_claimed_length_is_no_allocation() {
    for order in ORDERS {
        // The packet is complete, but longer than the limit.
        let mut old = order.pcap_header(MICROS, u32::MAX, 1);
        old.extend(order.pcap_record(1, 1, &vec![7; 300_000]));
        old.extend(order.pcap_record(1, 2, &udp4(2)));
        let mut new = [order.section(), order.interface(1, 0, &[])].concat();
        new.extend(order.enhanced(0, 1, &vec![7; 300_000]));
        new.extend(order.simple(500_000, &vec![7; 500_000]));
        new.extend(order.obsolete(0, 1, &vec![7; 500_000]));
        new.extend(order.enhanced(0, 2, &udp4(2)));
        for (file, skipped) in [
            (old, &["300000"][..]),
            (new, &["300000", "500016", "500000"][..]),
        ] {
            let mut reader =
                CaptureReader::new("test", file.as_slice(), &ReadOptions::STREAMED).unwrap();
            let record = reader.next_record().unwrap().unwrap();
            assert_eq!(record.frame, udp4(2));
            assert!(reader.next_record().unwrap().is_none());
            let said: Vec<String> = reader
                .warnings()
                .iter()
                .map(|warning| warning.problem.to_string())
                .collect();
            let expected: Vec<String> = skipped
                .iter()
                .map(|length| {
                    format!("skipped a packet of {length} bytes; at most 262144 are read")
                })
                .collect();
            assert_eq!(said, expected);
            let whole = read(&file).unwrap();
            assert_eq!(whole.packets().len(), 1);
        }
    }
    // With a larger `max_record` the packet is read.
    let order = Order::Little;
    let mut file = order.pcap_header(MICROS, 1 << 20, 1);
    file.extend(order.pcap_record(1, 1, &vec![7; 300_000]));
    let long = ReadOptions {
        max_record: 300_000,
        ..ReadOptions::STREAMED
    };
    let mut reader = CaptureReader::new("test", file.as_slice(), &long).unwrap();
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(record.frame.len(), 300_000);

    // Memory grows with the bytes that arrive, not with the limit.
    let mut file = order.pcap_header(MICROS, u32::MAX, 1);
    for field in [1, 1, u32::MAX - 1, u32::MAX - 1] {
        file.extend(order.u32(field));
    }
    file.extend([0; 1000]);
    let all = ReadOptions {
        max_record: u32::MAX,
        ..ReadOptions::STREAMED
    };
    let mut reader = CaptureReader::new("test", file.as_slice(), &all).unwrap();
    assert!(reader.next_record().unwrap().is_none());
    assert!(reader.input.capacity() <= 1 << 16);
    assert!(matches!(
        reader.warnings()[0].problem,
        CaptureProblem::Truncated { left: 1016, .. }
    ));
}

#[test]
fn a_stream_without_an_end_is_read_in_bounded_memory() {
    // An endless stream of empty packets.
    let start = Order::Little.pcap_header(MICROS, 65_535, 1);
    let mut reader = CaptureReader::new("test", endless(start), &ReadOptions::STREAMED).unwrap();
    for _ in 0..1_000_000 {
        assert!(reader.next_record().unwrap().is_some());
    }
    assert_eq!(reader.packets(), 1_000_000);
    assert!(reader.input.capacity() <= 1 << 16);

    // The packet limit ends reading.
    let start = Order::Little.pcap_header(MICROS, 65_535, 1);
    let options = ReadOptions {
        limit: 1000,
        ..ReadOptions::STREAMED
    };
    let error = streamed(endless(start.clone()), &options).unwrap_err();
    assert!(matches!(error, ReadError::Limit { limit: 1000, .. }));
    let options = ReadOptions {
        max_bytes: 1 << 20,
        ..ReadOptions::STREAMED
    };
    let error = streamed(endless(start), &options).unwrap_err();
    assert!(matches!(error, ReadError::TooLong { .. }));
}

/// Repeats bytes endlessly.
struct Again(Vec<u8>, usize);

impl Read for Again {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in buffer.iter_mut() {
            *byte = self.0[self.1];
            self.1 = (self.1 + 1) % self.0.len();
        }
        Ok(buffer.len())
    }
}

#[test]
fn interfaces_and_block_types_are_bounded() {
    let order = Order::Little;
    let name = [b'x'; 60_000];
    let start = order.section();
    let interface = order.interface(1, 0, &[(2, &name)]);
    let stream = Cursor::new(start.clone()).chain(Again(interface, 0));
    let mut reader = CaptureReader::new("test", stream, &ReadOptions::STREAMED).unwrap();
    let error = reader.next_record().unwrap_err().to_string();
    assert_eq!(
        error,
        "test:65537: more than 65536 interfaces; raise the limit or split the file"
    );
    assert_eq!(reader.interfaces().len(), MAX_INTERFACES);
    assert_eq!(reader.interfaces()[0].name.as_ref().unwrap().len(), 255);

    let mut file = start;
    for kind in 0..1000 {
        file.extend(order.block(0x1000 + kind, &[]));
        file.extend(order.block(0x1000, &[]));
    }
    let capture = read(&file).unwrap();
    assert_eq!(capture.skipped_blocks().count(), MAX_BLOCK_KINDS);
    assert_eq!(capture.skipped_blocks().next(), Some((0x1000, 1001)));
    assert_eq!(capture.more_skipped_blocks(), 1000 - MAX_BLOCK_KINDS as u64);
}

#[test]
fn a_whole_record_is_had_without_waiting() {
    let order = Order::Little;
    for (start, record) in [
        (
            order.pcap_header(MICROS, 65_535, 1),
            order.pcap_record(1, 1, &udp4(1)),
        ),
        (
            [order.section(), order.interface(1, 0, &[])].concat(),
            order.enhanced(0, 1, &udp4(1)),
        ),
    ] {
        let file = [start, record.clone(), record.clone()].concat();
        // The first record and half of the second arrive together.
        let (now, later) = file.split_at(file.len() - record.len() / 2);
        let stream = Cursor::new(now).chain(later);
        let mut reader = CaptureReader::new("test", stream, &ReadOptions::STREAMED).unwrap();
        assert!(reader.next_record().unwrap().is_some());
        assert!(!reader.is_buffered());
        assert!(reader.next_record().unwrap().is_some());
        assert!(reader.next_record().unwrap().is_none());
        assert!(reader.is_buffered());

        let mut reader =
            CaptureReader::new("test", file.as_slice(), &ReadOptions::STREAMED).unwrap();
        assert!(reader.next_record().unwrap().is_some());
        assert!(reader.is_buffered());
    }
}

/// A stream that fails at its end.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the cable was cut")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_stream_that_fails_is_an_error_and_damaged_gzip_a_warning() {
    let file = pcap(Order::Little, MICROS);
    for bytes in [file.clone(), gzip(&file)] {
        let cut = &bytes[..bytes.len() - 5];
        let error = streamed(Failing(cut), &ReadOptions::STREAMED).unwrap_err();
        assert_eq!(error.to_string(), "test: the cable was cut");
    }
    let packed = gzip(&file);
    let found = streamed(&packed[..packed.len() - 5], &ReadOptions::STREAMED).unwrap();
    let said = found.iter().find(|line| line.contains("compressed data"));
    assert!(said.unwrap().starts_with(&format!("byte {},", file.len())));
}
