//! Network interfaces: pairs of virtual ones in a namespace of their own.

#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use classyard_datapath::packet::{Offload, SegmentKind};
use classyard_datapath::{Field, Packet};
use classyard_ports::{Device, DeviceSettings, LinkEvents, OpenError, Queue, Sent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use support::{
    has_udp_segments, in_namespace, ip, is_right_tcp, plain_frame, receive, send, tcp_frame,
    udp_frame, veth, wait_for,
};

/// Opens an interface with a number of queues.
#[track_caller]
fn open(name: &str, queues: usize) -> (Device, Vec<Box<dyn Queue>>) {
    let name = name.to_owned();
    Device::open(&DeviceSettings::Interface { name }, queues).expect("the interface opens")
}

/// Opens an interface with one queue.
#[track_caller]
fn open_one(name: &str) -> (Device, Box<dyn Queue>) {
    let (device, queues) = open(name, 1);
    (device, queues.into_iter().next().unwrap())
}

#[test]
fn frames_of_all_lengths_pass_unchanged() {
    in_namespace("frames_of_all_lengths_pass_unchanged", || {
        veth("v0", "v1");
        let ((left_device, mut left), (right_device, mut right)) = (open_one("v0"), open_one("v1"));
        let (mut count, mut bytes) = (0, 0);
        for length in 60..=1_514 {
            let frame = plain_frame(u32::try_from(length).unwrap(), length);
            send(&mut *left, &frame, Offload::NONE);
            let received = receive(&mut *right);
            assert_eq!(received.bytes(), frame, "{length} bytes to the right");
            assert_eq!(received.offload(), Offload::NONE);
            assert_eq!(received.key().get(Field::InPort), 1);
            send(&mut *right, &frame, Offload::NONE);
            assert_eq!(
                receive(&mut *left).bytes(),
                frame,
                "{length} bytes to the left"
            );
            count += 1;
            bytes += length as u64;
        }
        for counts in [left_device.counts(), right_device.counts()] {
            assert_eq!(
                (counts.received_packets, counts.received_bytes),
                (count, bytes)
            );
            assert_eq!((counts.sent_packets, counts.sent_bytes), (count, bytes));
            assert_eq!((counts.refused, counts.no_room, counts.missed), (0, 0, 0));
        }
        // One byte more does not fit.
        let long = Packet::new(&plain_frame(0, 1_515), 1);
        assert_eq!(left.send(&long), Sent::TooLong);
        assert_eq!(left_device.counts().sent_too_long, 1);
        // A greater MTU is noticed.
        ip("link set v0 mtu 2000");
        ip("link set v1 mtu 2000");
        left.update_counts();
        let frame = plain_frame(7, 2_014);
        send(&mut *left, &frame, Offload::NONE);
        assert_eq!(receive(&mut *right).bytes(), frame, "longer than a slot");
    });
}

#[test]
fn tags_are_put_back() {
    in_namespace("tags_are_put_back", || {
        veth("v0", "v1");
        let ((_, mut left), (_, mut right)) = (open_one("v0"), open_one("v1"));
        let plain = plain_frame(1, 100);
        for tags in [
            &[0x81, 0, 0x60, 5][..],
            &[0x88, 0xa8, 0, 6],
            &[0x81, 0, 0, 5, 0x81, 0, 0x20, 9],
        ] {
            let frame = [&plain[..12], tags, &plain[12..]].concat();
            send(&mut *left, &frame, Offload::NONE);
            assert_eq!(receive(&mut *right).bytes(), frame, "{tags:x?}");
        }
        // With a tag, a frame may have four bytes more.
        let longest = plain_frame(2, 1_514);
        let frame = [&longest[..12], &[0x81, 0, 0, 5], &longest[12..]].concat();
        send(&mut *left, &frame, Offload::NONE);
        assert_eq!(receive(&mut *right).bytes(), frame);
        // The work on a frame moves with its tag, in the ring and in the socket.
        for payload in [1_000, 60_000] {
            let (tcp, offload) = tcp_frame(1, payload);
            let mut packet = Packet::default();
            packet.receive_offloaded(&tcp, 1, offload);
            packet.push_vlan(0x8100);
            assert_eq!(right.send(&packet), Sent::Queued);
            right.flush().unwrap();
            let received = receive(&mut *left);
            assert_eq!(received.bytes(), packet.bytes());
            assert_eq!(received.offload().checksum, packet.offload().checksum);
            if payload > 1_448 {
                assert_eq!(received.offload(), packet.offload());
            }
        }
    });
}

#[test]
fn frames_to_be_cut_pass_whole_and_in_order() {
    in_namespace("frames_to_be_cut_pass_whole_and_in_order", || {
        veth("v0", "v1");
        let ((_, mut left), (device, mut right)) = (open_one("v0"), open_one("v1"));
        for round in 0..50 {
            // Linux cuts frames of 65,536 bytes or more itself (`gso_max_size`).
            let (tcp, offload) = tcp_frame(round, 65_535 - 54);
            assert_eq!(tcp.len(), 65_535);
            let small = plain_frame(u32::from(round), 60);
            let (second, cut) = tcp_frame(round + 1_000, 2_000 + usize::from(round) * 300);
            send(&mut *left, &tcp, offload);
            send(&mut *left, &small, Offload::NONE);
            send(&mut *left, &second, cut);
            for (frame, offload) in [(tcp, offload), (small, Offload::NONE), (second, cut)] {
                let received = receive(&mut *right);
                assert!(received.bytes() == frame, "frame of round {round}");
                assert_eq!(received.offload(), offload);
            }
        }
        right.update_counts();
        let counts = device.counts();
        assert_eq!((counts.missed, counts.received_packets), (0, 150));
        if has_udp_segments() {
            let (udp, offload) = udp_frame(30_000);
            send(&mut *left, &udp, offload);
            let received = receive(&mut *right);
            assert!(received.bytes() == udp);
            assert_eq!(received.offload(), offload);
        }
    });
}

#[test]
fn work_that_the_kernel_cannot_do_is_done_here() {
    in_namespace("work_that_the_kernel_cannot_do_is_done_here", || {
        veth("v0", "v1");
        let ((_, mut left), (_, mut right)) = (open_one("v0"), open_one("v1"));
        let (tcp, offload) = tcp_frame(1, 10_000);
        let mut packet = Packet::default();
        packet.receive_offloaded(&tcp, 1, offload);
        packet.push_mpls(0x8847);
        assert_eq!(left.send(&packet), Sent::Queued);
        left.flush().unwrap();
        let mut payload = Vec::new();
        while payload.len() < 10_000 {
            let segment = receive(&mut *right);
            assert_eq!(segment.offload(), Offload::NONE);
            assert!(is_right_tcp(segment.bytes(), 18));
            payload.extend_from_slice(&segment.bytes()[58..]);
        }
        assert!(payload == tcp[54..]);
        // A partial checksum behind labels.
        let (tcp, offload) = tcp_frame(2, 100);
        let mut packet = Packet::default();
        let checksum = offload.checksum;
        let offload = Offload {
            checksum,
            segmentation: None,
        };
        packet.receive_offloaded(&tcp, 1, offload);
        packet.push_mpls(0x8847);
        left.send(&packet);
        left.flush().unwrap();
        let received = receive(&mut *right);
        assert_eq!(received.offload(), Offload::NONE);
        assert!(is_right_tcp(received.bytes(), 18));
    });
}

#[test]
fn wrong_work_is_refused_or_ignored() {
    in_namespace("wrong_work_is_refused_or_ignored", || {
        veth("v0", "v1");
        let ((device, mut left), (_, mut right)) = (open_one("v0"), open_one("v1"));
        let (tcp, right_work) = tcp_frame(1, 1_000);
        let mut wrong_place = right_work;
        wrong_place.checksum.as_mut().unwrap().start = 3;
        wrong_place.segmentation = None;
        let mut wrong_kind = right_work;
        wrong_kind.segmentation.as_mut().unwrap().kind = SegmentKind::Udp;
        let mut wrong_header = right_work;
        wrong_header.segmentation.as_mut().unwrap().transport = 40;
        for offload in [wrong_place, wrong_kind, wrong_header] {
            let mut packet = Packet::default();
            packet.receive_offloaded(&tcp, 1, offload);
            left.send(&packet);
            left.flush().unwrap();
        }
        // The queue goes on.
        let frame = plain_frame(9, 60);
        send(&mut *left, &frame, Offload::NONE);
        wait_for("the last frame", || {
            (receive(&mut *right).bytes() == frame).then_some(())
        });
        let counts = device.counts();
        assert_eq!(counts.refused, 1, "the kernel refuses the first frame");
        assert_eq!(counts.no_room, 0);
    });
}

#[test]
fn a_vanished_interface_is_an_error() {
    in_namespace("a_vanished_interface_is_an_error", || {
        veth("v0", "v1");
        let (device, mut queue) = open_one("v0");
        assert!(device.link().unwrap().is_up);
        ip("link del v0");
        let error = wait_for("an error of receive", || {
            queue.receive(&mut [Packet::default()], 1).err()
        });
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
        queue.send(&Packet::new(&plain_frame(1, 60), 1));
        let error = queue.flush().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
        assert_eq!(device.counts().refused, 1);
        let error = device.link().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
        queue.update_counts();
        // Another interface of the same name is not this one.
        veth("v0", "v1");
        assert!(device.link().is_err());
    });
}

#[test]
fn down_and_up_are_noticed() {
    in_namespace("down_and_up_are_noticed", || {
        veth("v0", "v1");
        let events = LinkEvents::open().unwrap();
        let ((device, mut left), (_, mut right)) = (open_one("v0"), open_one("v1"));
        let wake_up = |what: &str| {
            let mut wait = [PollFd::new(&events, PollFlags::IN)];
            let time = Timespec {
                tv_sec: 10,
                tv_nsec: 0,
            };
            assert_eq!(poll(&mut wait, Some(&time)).unwrap(), 1, "{what}");
            events.drain().unwrap();
        };
        for other_end in ["v0", "v1"] {
            events.drain().unwrap();
            ip(&format!("link set {other_end} down"));
            wake_up("down");
            wait_for("down", || (!device.link().unwrap().is_up).then_some(()));
            if other_end == "v0" {
                let error = wait_for("an error", || {
                    left.receive(&mut [Packet::default()], 1).err()
                });
                assert_eq!(error.kind(), ErrorKind::NetworkDown);
                left.send(&Packet::new(&plain_frame(1, 60), 1));
                assert_eq!(left.flush().unwrap_err().kind(), ErrorKind::NetworkDown);
            }
            events.drain().unwrap();
            ip(&format!("link set {other_end} up"));
            wake_up("up");
            wait_for("up", || device.link().unwrap().is_up.then_some(()));
        }
        let _ = right.receive(&mut [Packet::default()], 1);
        let frame = plain_frame(2, 200);
        send(&mut *left, &frame, Offload::NONE);
        let mut packet = [Packet::default()];
        wait_for("a frame after up", || {
            right
                .receive(&mut packet, 1)
                .is_ok_and(|count| count > 0)
                .then_some(())
        });
        assert_eq!(packet[0].bytes(), frame);
    });
}

#[test]
fn an_interface_that_is_down_can_be_opened() {
    in_namespace("an_interface_that_is_down_can_be_opened", || {
        ip("link add v0 type veth peer name v1");
        let (device, mut queue) = open_one("v0");
        let (_, mut other) = open_one("v1");
        assert!(!device.link().unwrap().is_up);
        ip("link set v0 up");
        ip("link set v1 up");
        wait_for("up", || device.link().unwrap().is_up.then_some(()));
        let frame = plain_frame(2, 200);
        let _ = other.flush();
        send(&mut *other, &frame, Offload::NONE);
        let mut packet = [Packet::default()];
        wait_for("a frame", || {
            queue
                .receive(&mut packet, 1)
                .is_ok_and(|count| count > 0)
                .then_some(())
        });
        assert_eq!(packet[0].bytes(), frame);
    });
}

#[test]
fn several_queues_receive_each_frame_once() {
    in_namespace("several_queues_receive_each_frame_once", || {
        veth("v0", "v1");
        let (_, mut sender) = open_one("v0");
        let (device, mut queues) = open("v1", 2);
        // Another port of this process has a group of its own.
        let (_, mut others) = open("v0", 2);
        for port in 1..=200 {
            let (tcp, offload) = tcp_frame(port, 10);
            let checksum = offload.checksum;
            let segmentation = None;
            send(
                &mut *sender,
                &tcp,
                Offload {
                    checksum,
                    segmentation,
                },
            );
        }
        let mut seen: BTreeMap<u128, usize> = BTreeMap::new();
        let mut packets = vec![Packet::default(); 32];
        wait_for("all frames", || {
            for queue in &mut queues {
                let count = queue.receive(&mut packets, 1).unwrap();
                for packet in &packets[..count] {
                    *seen.entry(packet.key().get(Field::TcpSrc)).or_default() += 1;
                }
            }
            (seen.len() == 200).then_some(())
        });
        assert!(seen.values().all(|count| *count == 1));
        for counters in device.counters() {
            assert!(counters.read().received_packets > 20, "flows are spread");
        }
        assert_eq!(device.counts().received_packets, 200);
        // This host sent the frames, so the other queues do not receive them.
        for queue in &mut others {
            assert_eq!(queue.receive(&mut packets, 1).unwrap(), 0);
        }
    });
}

#[test]
fn frames_beyond_the_ring_are_missed_and_counted() {
    in_namespace("frames_beyond_the_ring_are_missed_and_counted", || {
        veth("v0", "v1");
        let ((sender, mut left), (device, mut right)) = (open_one("v0"), open_one("v1"));
        for number in 0..20_000 {
            left.send(&Packet::new(&plain_frame(number, 60), 1));
        }
        left.flush().unwrap();
        let mut packets = vec![Packet::default(); 256];
        let (mut received, mut last, mut empty_calls) = (0, None, 0);
        while empty_calls < 100 {
            let count = right.receive(&mut packets, 1).unwrap();
            for packet in &packets[..count] {
                let number = u32::from_be_bytes(packet.bytes()[14..18].try_into().unwrap());
                assert!(last < Some(number), "in order");
                last = Some(number);
            }
            received += count as u64;
            empty_calls = if count == 0 { empty_calls + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(u64::from(count == 0)));
        }
        right.update_counts();
        let (sent, counts) = (sender.counts(), device.counts());
        assert_eq!(sent.sent_packets + sent.no_room, 20_000);
        assert!((1_000..20_000).contains(&received), "{received} received");
        assert_eq!(counts.received_packets, received);
        // The pair of interfaces may drop frames itself.
        assert!(counts.missed > 0 && received + counts.missed <= sent.sent_packets);
        let frame = plain_frame(1, 60);
        send(&mut *left, &frame, Offload::NONE);
        assert_eq!(receive(&mut *right).bytes(), frame);
    });
}

#[test]
fn long_frames_beyond_the_buffer_are_missed_and_counted() {
    let name = "long_frames_beyond_the_buffer_are_missed_and_counted";
    in_namespace(name, || {
        veth("v0", "v1");
        let ((sender, mut left), (device, mut right)) = (open_one("v0"), open_one("v1"));
        for port in 1..=1_000 {
            let (tcp, offload) = tcp_frame(port, 60_000);
            let mut packet = Packet::default();
            packet.receive_offloaded(&tcp, 1, offload);
            assert_eq!(left.send(&packet), Sent::Queued);
        }
        left.flush().unwrap();
        let sent = sender.counts().sent_packets;
        assert!(sent > 500, "{sent} sent");
        let mut packets = vec![Packet::default(); 32];
        let mut last = 0;
        let counts = wait_for("all frames", || {
            let count = right.receive(&mut packets, 1).unwrap();
            for packet in &packets[..count] {
                let port = u16::try_from(packet.key().get(Field::TcpSrc)).unwrap();
                assert!(packet.bytes() == tcp_frame(port, 60_000).0, "frame {port}");
                assert!(port > last, "in order");
                last = port;
            }
            let counts = device.counts();
            (counts.received_packets + counts.missed == sent).then_some(counts)
        });
        assert!(counts.missed > 0 && counts.received_packets > 50);
        // Later frames are whole again.
        let (tcp, offload) = tcp_frame(7, 50_000);
        send(&mut *left, &tcp, offload);
        let received = receive(&mut *right);
        assert!(received.bytes() == tcp && received.offload() == offload);
    });
}

#[test]
fn errors_of_opening_say_what_to_do() {
    in_namespace("errors_of_opening_say_what_to_do", || {
        ip("link add veth1 type veth peer name veth2");
        let open = |name: &str, queues| {
            let name = name.to_owned();
            Device::open(&DeviceSettings::Interface { name }, queues)
                .err()
                .map(|e| e.to_string())
        };
        let expected = "no network interface `veth3`; similar names: `veth1`, `veth2`; `ip link` \
                        lists the interfaces";
        assert_eq!(open("veth3", 1).as_deref(), Some(expected));
        let expected = "0 queues were requested; a port has 1 to 256";
        assert_eq!(open("veth1", 0).as_deref(), Some(expected));
        let error = open("a/b", 1).unwrap();
        assert!(
            error.starts_with("`a/b` cannot be the name of an interface"),
            "{error}"
        );
        let name = "veth9".to_owned();
        let error = Device::open(&DeviceSettings::Interface { name }, 1).err();
        assert!(matches!(error, Some(OpenError::NoInterface { .. })));
        assert_eq!(open("veth1", 1), None);
    });
}
