//! Captures and memory devices.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::PathBuf;

use classyard_datapath::Packet;
use classyard_datapath::packet::Offload;
use classyard_ports::{Device, DeviceSettings, Queue, Sent};
use classyard_workload::capture::{PcapWriter, ReadOptions, read_capture_file};
use classyard_workload::packet::LinkType;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use support::{in_small_file_system, is_right_tcp, plain_frame, tcp_frame};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("classyard-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a capture of these frames.
fn write_capture(path: &PathBuf, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        writer.packet(0, length, frame).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// True if the queue's descriptor is readable.
fn is_readable(queue: &dyn Queue) -> bool {
    let descriptor = queue.descriptor().expect("a descriptor");
    let mut wait = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let no_time = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wait, Some(&no_time)).unwrap() == 1
}

#[test]
fn frames_are_received_in_order_and_sent_whole() {
    let folder = Folder::new("captures");
    let frames: Vec<Vec<u8>> = (0..1_000).map(|number| plain_frame(number, 60)).collect();
    write_capture(&folder.file("in.pcap").unwrap(), &frames);
    let settings = DeviceSettings::Capture {
        receive: folder.file("in.pcap"),
        send: folder.file("out.pcap"),
    };
    let (device, mut queues) = Device::open(&settings, 2).unwrap();
    assert!(!is_readable(&*queues[1]));
    let mut packets = vec![Packet::default(); 256];
    let mut received = 0;
    while is_readable(&*queues[0]) {
        let count = queues[0].receive(&mut packets, 1).unwrap();
        for packet in &packets[..count] {
            assert_eq!(packet.bytes(), frames[received]);
            received += 1;
            assert_eq!(queues[received % 2].send(packet), Sent::Queued);
        }
        queues[0].flush().unwrap();
    }
    assert_eq!(received, 1_000);
    assert_eq!(queues[0].receive(&mut packets, 1).unwrap(), 0);
    // A frame to be cut: a file takes no work.
    let (tcp, offload) = tcp_frame(1, 3_000);
    packets[0].receive_offloaded(&tcp, 1, offload);
    assert_eq!(queues[1].send(&packets[0]), Sent::Queued);
    queues[1].flush().unwrap();
    let read = read_capture_file(folder.file("out.pcap").unwrap(), &ReadOptions::DEFAULT).unwrap();
    let sent: Vec<&[u8]> = read.frames().map(|(_, frame)| frame).collect();
    assert_eq!(sent.len(), 1_003);
    assert_eq!(sent[..1_000], frames);
    assert!(
        sent[1_000..]
            .iter()
            .all(|segment| is_right_tcp(segment, 14))
    );
    assert_eq!(device.counts().sent_packets, 1_003);
    assert_eq!(device.counts().received_packets, 1_000);
}

#[test]
fn errors_of_files_name_them() {
    let folder = Folder::new("capture-errors");
    let open = |receive: Option<&str>, send: Option<&str>| {
        let file = |name: Option<&str>| name.map(|name| folder.0.join(name));
        let (receive, send) = (file(receive), file(send));
        let result = Device::open(&DeviceSettings::Capture { receive, send }, 1);
        result.err().map(|error| error.to_string())
    };
    fs::write(folder.0.join("text"), "no capture").unwrap();
    let message = open(Some("text"), None).unwrap();
    assert!(
        message.contains("text: a text file that starts with"),
        "{message}"
    );
    let message = open(Some("missing"), None).unwrap();
    assert!(
        message.starts_with("cannot open the capture `"),
        "{message}"
    );
    let message = open(Some("."), None).unwrap();
    assert!(message.ends_with("it is not a regular file"), "{message}");
    let message = open(None, Some("text")).unwrap();
    assert!(message.ends_with("text` exists; choose the name of a new file for sent frames"));
    assert_eq!(fs::read(folder.0.join("text")).unwrap(), b"no capture");
    assert_eq!(open(None, None), None);
}

#[test]
fn a_damaged_file_ends_with_an_error_after_its_frames() {
    let folder = Folder::new("capture-damage");
    let path = folder.file("in.pcap").unwrap();
    write_capture(&path, &[plain_frame(1, 60), plain_frame(2, 60)]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let settings = DeviceSettings::Capture {
        receive: Some(path),
        send: None,
    };
    let (device, mut queues) = Device::open(&settings, 1).unwrap();
    let mut packets = vec![Packet::default(); 8];
    assert_eq!(queues[0].receive(&mut packets, 1).unwrap(), 1);
    let error = queues[0].receive(&mut packets, 1).unwrap_err().to_string();
    assert!(error.contains("in.pcap"), "{error}");
    assert_eq!(queues[0].receive(&mut packets, 1).unwrap(), 0);
    assert!(!is_readable(&*queues[0]));
    assert_eq!(device.counts().received_packets, 1);
}

#[test]
fn a_full_disk_is_one_error() {
    let folder = Folder::new("capture-full");
    let path = folder.0.clone();
    in_small_file_system("a_full_disk_is_one_error", path, move || {
        let settings = DeviceSettings::Capture {
            receive: None,
            send: folder.file("out.pcap"),
        };
        let (device, mut queues) = Device::open(&settings, 2).unwrap();
        let packet = Packet::new(&plain_frame(1, 1_000), 1);
        let mut errors = 0;
        for number in 0..200 {
            let _ = queues[number % 2].send(&packet);
            errors += usize::from(queues[number % 2].flush().is_err());
        }
        assert_eq!(errors, 1);
        assert_eq!(queues[0].send(&packet), Sent::NoRoom);
        assert!(device.counts().no_room > 100);
        let path = folder.file("out.pcap").unwrap();
        let read = read_capture_file(path, &ReadOptions::DEFAULT).unwrap();
        assert!(read.warnings().is_empty(), "no part of a frame");
        assert!(read.packets().len() > 50);
        assert!(read.frames().all(|(_, frame)| frame == packet.bytes()));
    });
}

#[test]
fn memory_devices_pass_frames_with_their_work() {
    let (device, mut queues, peer) = classyard_ports::memory(2);
    let mut packets = vec![Packet::default(); 100];
    let (tcp, offload) = tcp_frame(1, 5_000);
    assert!(!is_readable(&*queues[1]));
    assert!(peer.send(1, &tcp, offload));
    assert!(is_readable(&*queues[1]) && !is_readable(&*queues[0]));
    assert_eq!(queues[1].receive(&mut packets, 3).unwrap(), 1);
    assert!(!is_readable(&*queues[1]));
    assert_eq!(packets[0].offload(), offload);
    assert_eq!(queues[1].send(&packets[0]), Sent::Queued);
    assert_eq!(peer.receive(), None, "before the flush");
    queues[1].flush().unwrap();
    assert!(peer.receive() == Some((tcp, offload)));
    assert!(!peer.send(2, &[0; 60], Offload::NONE), "no such queue");
    assert_eq!(device.counters()[1].read().received_packets, 1);
    assert_eq!(device.counts().sent_packets, 1);
}

#[test]
fn memory_devices_are_bounded_and_count_drops() {
    let (device, mut queues, peer) = classyard_ports::memory(1);
    let accepted = (0..5_000)
        .filter(|_| peer.send(0, &[0; 60], Offload::NONE))
        .count();
    assert_eq!(accepted, 4_096);
    queues[0].update_counts();
    assert_eq!(device.counts().missed, 904);
    let mut packets = vec![Packet::default(); 1_000];
    for expected in [1_000, 1_000, 1_000, 1_000, 96, 0] {
        assert_eq!(is_readable(&*queues[0]), expected > 0);
        assert_eq!(queues[0].receive(&mut packets, 1).unwrap(), expected);
    }
    for _ in 0..2 {
        for _ in 0..3_000 {
            let _ = queues[0].send(&packets[0]);
        }
        queues[0].flush().unwrap();
    }
    assert_eq!(
        (device.counts().sent_packets, device.counts().no_room),
        (4_096, 1_904)
    );
    let received = std::iter::from_fn(|| peer.receive()).count();
    assert_eq!(received, 4_096);
}

#[test]
fn a_memory_link_that_is_off_drops_frames() {
    let (device, mut queues, peer) = classyard_ports::memory(1);
    assert!(device.link().unwrap().is_up);
    peer.clone().set_link(false);
    assert!(!device.link().unwrap().is_up);
    assert!(!peer.send(0, &[0; 60], Offload::NONE));
    let _ = queues[0].send(&Packet::new(&[0; 60], 1));
    let error = queues[0].flush().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NetworkDown);
    assert_eq!(device.counts().refused, 1);
    peer.set_link(true);
    assert!(peer.send(0, &[0; 60], Offload::NONE));
    let address = |device: &Device| device.link().unwrap().address;
    let (other, _, _) = classyard_ports::memory(1);
    assert_ne!(address(&device), address(&other));
    fn is_shared<T: Clone + Send + Sync>(_: &T) {}
    is_shared(&peer);
}
