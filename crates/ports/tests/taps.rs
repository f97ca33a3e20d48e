//! TAP devices: frames between a queue and a packet socket on the host's side of the device.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr)]

mod support;

use std::io::ErrorKind;
use std::path::Path;

use classyard_datapath::Packet;
use classyard_datapath::packet::Offload;
use classyard_ports::{Device, DeviceSettings, Queue, Sent};

use support::{
    has_udp_segments, in_namespace, ip, is_right_tcp, plain_frame, receive, send, tcp_frame,
    udp_frame, wait_for,
};

/// Runs a test in a namespace if the system has TAP devices.
fn with_taps(name: &str, test: impl FnOnce() + Send + 'static) {
    if Path::new("/dev/net/tun").exists() {
        in_namespace(name, test);
    } else {
        eprintln!("SKIPPED {name}: /dev/net/tun is missing");
    }
}

fn tap(name: &str) -> DeviceSettings {
    let name = name.to_owned();
    DeviceSettings::Tap { name }
}

/// Opens a TAP device, and a packet socket on the host's side.
fn open() -> (Device, Box<dyn Queue>, Box<dyn Queue>) {
    let (device, queues) = Device::open(&tap("t0"), 1).expect("the device opens");
    let name = "t0".to_owned();
    let (_, host) = Device::open(&DeviceSettings::Interface { name }, 1).expect("it is there");
    let [queue, host] = [queues, host].map(|queues| queues.into_iter().next().unwrap());
    (device, queue, host)
}

#[test]
fn frames_of_all_lengths_pass_both_ways() {
    with_taps("frames_of_all_lengths_pass_both_ways", || {
        let (device, mut queue, mut host) = open();
        assert!(
            device.link().unwrap().is_up,
            "it is created and switched on"
        );
        for length in 60..=1_514 {
            let frame = plain_frame(u32::try_from(length).unwrap(), length);
            send(&mut *queue, &frame, Offload::NONE);
            assert_eq!(
                receive(&mut *host).bytes(),
                frame,
                "{length} bytes to the host"
            );
            send(&mut *host, &frame, Offload::NONE);
            assert_eq!(
                receive(&mut *queue).bytes(),
                frame,
                "{length} bytes from the host"
            );
        }
        let counts = device.counts();
        assert_eq!(
            (counts.sent_packets, counts.received_packets),
            (1_455, 1_455)
        );
        let long = Packet::new(&plain_frame(0, 1_515), 1);
        assert_eq!(queue.send(&long), Sent::TooLong);
        assert_eq!(device.counts().sent_too_long, 1);
    });
}

#[test]
fn checksums_and_segments_are_passed_on() {
    with_taps("checksums_and_segments_are_passed_on", || {
        let (_, mut queue, mut host) = open();
        let (tcp, offload) = tcp_frame(1, 65_000);
        let mut frames = vec![(tcp.clone(), offload)];
        if has_udp_segments() {
            frames.push(udp_frame(30_000));
        }
        for (frame, offload) in frames {
            send(&mut *queue, &frame, offload);
            let received = receive(&mut *host);
            assert!(received.bytes() == frame);
            assert_eq!(received.offload(), offload);
            send(&mut *host, &frame, offload);
            let received = receive(&mut *queue);
            assert!(received.bytes() == frame);
            assert_eq!(received.offload(), offload);
        }
        // Labels: the kernel cannot cut the frame.
        let mut packet = Packet::default();
        packet.receive_offloaded(&tcp, 1, offload);
        packet.push_mpls(0x8847);
        assert_eq!(queue.send(&packet), Sent::Queued);
        let segment = receive(&mut *host);
        assert!(is_right_tcp(segment.bytes(), 18));
        assert_eq!(segment.bytes().len(), 54 + 4 + 1_448);
    });
}

#[test]
fn a_wrong_frame_is_refused() {
    with_taps("a_wrong_frame_is_refused", || {
        let (device, mut queue, mut host) = open();
        let (tcp, mut offload) = tcp_frame(1, 100);
        offload.segmentation = None;
        offload.checksum.as_mut().unwrap().start = 3;
        let mut packet = Packet::default();
        packet.receive_offloaded(&tcp, 1, offload);
        queue.send(&packet);
        queue.flush().unwrap();
        send(&mut *queue, &plain_frame(1, 60), Offload::NONE);
        let frame = plain_frame(1, 60);
        wait_for("the frame", || {
            (receive(&mut *host).bytes() == frame).then_some(())
        });
        assert!(device.counts().refused <= 1);
    });
}

#[test]
fn a_device_that_is_down_or_vanished_is_an_error() {
    with_taps("a_device_that_is_down_or_vanished_is_an_error", || {
        let (device, mut queue, _host) = open();
        ip("link set t0 down");
        queue.send(&Packet::new(&plain_frame(1, 60), 1));
        assert_eq!(queue.flush().unwrap_err().kind(), ErrorKind::NetworkDown);
        assert_eq!(device.counts().refused, 1);
        assert!(!device.link().unwrap().is_up);
        assert_eq!(queue.receive(&mut [Packet::default()], 1).unwrap(), 0);
        ip("link set t0 up");
        send(&mut *queue, &plain_frame(1, 60), Offload::NONE);
        ip("link del t0");
        let error = queue.receive(&mut [Packet::default()], 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
        queue.send(&Packet::new(&plain_frame(1, 60), 1));
        assert_eq!(
            queue.flush().unwrap_err().raw_os_error(),
            Some(libc::ENODEV)
        );
        assert!(device.link().is_err());
    });
}

#[test]
fn existing_devices_are_opened_if_they_are_free() {
    with_taps("existing_devices_are_opened_if_they_are_free", || {
        let open = |name: &str, queues| Device::open(&tap(name), queues);
        let message = |name: &str, queues| open(name, queues).err().unwrap().to_string();
        ip("tuntap add single mode tap");
        let opened = open("single", 1).expect("it was created with one queue");
        assert!(
            !opened.0.link().unwrap().is_up,
            "its settings are the owner's"
        );
        assert_eq!(
            message("single", 1),
            "TAP device `single` is in use; stop the program that uses it, or choose another name"
        );
        drop(opened);
        let error = message("single", 2);
        assert!(
            error.contains("cannot be opened as a TAP device with 2 queues"),
            "{error}"
        );
        ip("link add v0 type veth peer name v1");
        let error = message("v0", 1);
        assert!(error.contains("it is another kind of interface"), "{error}");
        ip("tuntap add many mode tap multi_queue vnet_hdr");
        assert_eq!(open("many", 4).unwrap().1.len(), 4);
        let error = message("a-name-that-is-long", 1);
        assert!(error.contains("a name has 1 to 15 bytes"), "{error}");
    });
}
