//! Tests of writing captures and reading them back.

use super::*;

#[test]
fn written_packets_read_back() {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::RawIp).unwrap();
    let frame = udp4(1)[14..].to_vec();
    writer
        .packet(4_294_967_295_999_999_999, 1500, &frame)
        .unwrap();
    writer.packet(0, 0, &[]).unwrap();
    let late = writer.packet(4_294_967_296_000_000_000, 1, &[1]);
    assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert!(writer.packet(0, 0, &vec![0; 262_145]).is_err());
    let file = writer.finish().unwrap();
    let capture = read(&file).unwrap();
    assert_eq!(
        contents(&capture),
        [
            (4_294_967_295_999_999_999, 1500, LinkType::RawIp, 0, frame),
            (0, 0, LinkType::RawIp, 0, vec![]),
        ]
    );
}

#[test]
fn traces_of_other_schemas_cannot_be_written() {
    let mut trace = PolicyTrace::new([Schema::openflow15()].iter());
    trace.push(PartId::FIRST, &[0; 15]).unwrap();
    let error = write_trace(Vec::new(), &trace, |_| 0).unwrap_err();
    assert!(error.to_string().contains("`openflow15`"));
}

fn checksum_holds(bytes: &[u8]) -> bool {
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16) == 0xffff
}

#[test]
fn frames_have_right_lengths_and_checksums() {
    for protocol in 0..=255_u8 {
        let header = [0xfffe_fdfc, 0x0102_0304, 0xabcd, 0x1234, protocol.into()];
        let mut frame = Vec::new();
        frame::ipv4_frame(&header, &mut frame);
        let parsed = parse(&frame, LinkType::Ethernet);
        assert!(parsed.anomalies.is_empty(), "{protocol}: {parsed:?}");
        assert!(frame.len() >= frame::SHORTEST);
        assert!(checksum_holds(&frame[14..34]));
        let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let payload = &frame[34..14 + total];
        let pseudo = |addresses: &[u8]| {
            let length = u8::try_from(payload.len()).unwrap();
            [addresses, &[0, protocol, 0, length], payload].concat()
        };
        match protocol {
            1 => assert!(checksum_holds(payload)),
            6 | 17 => assert!(checksum_holds(&pseudo(&frame[26..34]))),
            132 => {}
            _ => assert!(payload.is_empty()),
        }

        frame::ipv6_frame(&header, &mut frame);
        let parsed = parse(&frame, LinkType::Ethernet);
        assert!(parsed.anomalies.is_empty(), "{protocol}: {parsed:?}");
        let length = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
        let payload = &frame[54..54 + length];
        let pseudo = [
            &frame[22..54],
            &[0, protocol, 0, u8::try_from(length).unwrap()],
            payload,
        ]
        .concat();
        if matches!(protocol, 6 | 17 | 58) {
            assert!(checksum_holds(&pseudo), "{protocol}");
        }
        // etherparse is an independent check. It reads protocols 1 and 2 as ICMP and
        // IGMP in IPv6 too.
        if !matches!(protocol, 1 | 2) {
            etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        }
    }
}

/// Returns the header read back from a frame, and the losses.
fn survives(v6: bool, header: [u128; 5]) -> ([u128; 5], bool, bool) {
    let [src, dst, sport, dport, protocol] = header;
    let ports = matches!(protocol, 6 | 17 | 132);
    let extension = v6 && matches!(protocol, 0 | 43 | 44 | 51 | 60);
    let protocol = if extension { 59 } else { protocol };
    if ports {
        (header, false, false)
    } else {
        let lost = (sport, dport) != (0, 0);
        ([src, dst, 0, 0, protocol], lost, extension)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn traces_survive_a_round_trip(
        headers in prop::collection::vec(
            (
                any::<bool>(),
                any::<(u128, u128, u16, u16)>(),
                prop_oneof![
                    prop::sample::select(vec![6_u8, 17, 132, 1, 58]),
                    any::<u8>(),
                ],
                any::<u32>(),
            ),
            0..40,
        )
    ) {
        let policy = Policy::dual_stack();
        let mut trace = PolicyTrace::new(policy.schemas());
        let mut expected = PolicyTrace::new(policy.schemas());
        let mut report = TraceReport::default();
        let mut times = Vec::new();
        for (v6, (src, dst, sport, dport), protocol, time) in headers {
            let shift = if v6 { 0 } else { 96 };
            let header = [
                src >> shift, dst >> shift, sport.into(), dport.into(), protocol.into(),
            ];
            let part = PartId::from_index(usize::from(v6));
            let (back, ports_lost, protocol_lost) = survives(v6, header);
            trace.push(part, &header).unwrap();
            expected.push(part, &back).unwrap();
            times.push(u64::from(time) * 1_000_003);
            report.packets += 1;
            report.ports_lost += u64::from(ports_lost);
            report.protocols_lost += u64::from(protocol_lost);
        }
        let mut file = Vec::new();
        prop_assert_eq!(write_trace(&mut file, &trace, |i| times[i]).unwrap(), report);
        let capture = read(&file).unwrap();
        prop_assert_eq!(capture.warnings(), &[]);
        let back = capture.classify_input(policy.schemas()).unwrap();
        prop_assert_eq!(back.left_out_total(), 0);
        prop_assert_eq!(back.trace, expected);
        prop_assert_eq!(back.timestamps_ns, times);
    }
}
