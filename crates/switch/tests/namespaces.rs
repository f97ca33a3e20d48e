//! A running switch between hosts in network namespaces, as their kernels send: with partial
//! checksums and frames to cut into segments.

#![allow(unsafe_code, clippy::print_stderr)]

mod running;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use classyard_switch::config::{DeviceSettings, PortSettings};
use classyard_switch::control::{ControlClient, Link, Request, SwitchStatus, socket_path};

use running::{Running, wait};

/// The bytes of a transfer.
const TRANSFER_BYTES: usize = 8 << 20;

/// The port of all servers.
const SERVER_PORT: u16 = 7000;

/// A thread in a network namespace of its own.
struct Namespace {
    thread: i32,
    work: mpsc::Sender<Box<dyn FnOnce() + Send>>,
}

/// Returns the number of this thread for the system.
fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Gives this thread a network namespace of its own. Returns false if it may not.
fn unshare() -> bool {
    // SAFETY: the call changes only the namespace of this thread.
    let is_alone = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
    if is_alone {
        ip("link set lo up");
        // Hosts send no frames of their own. A system without IPv6 has no such file.
        let _absent = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    }
    is_alone
}

/// Runs `ip` in the namespace of this thread.
#[track_caller]
fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output();
    let output = output.expect("`ip` runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {message}");
}

impl Namespace {
    fn new() -> Namespace {
        let (work, orders) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            assert!(unshare(), "a namespace");
            sender.send(thread_number()).expect("a waiting test");
            for order in orders {
                order();
            }
        });
        let thread = receiver.recv().expect("a thread");
        Namespace { thread, work }
    }

    /// Runs a function in the namespace. Returns what it returns.
    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = mpsc::channel();
        let order = move || sender.send(work()).expect("a waiting test");
        self.work.send(Box::new(order)).expect("a living thread");
        receiver.recv().expect("no panic in the namespace")
    }

    /// Runs a function in the namespace while the test goes on.
    fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (sender, receiver) = mpsc::channel();
        let order = move || sender.send(work()).expect("a waiting test");
        self.work.send(Box::new(order)).expect("a living thread");
        receiver
    }
}

/// True if namespaces can be made. Says so otherwise.
fn can_run(test: &str) -> bool {
    let is_root = std::thread::spawn(|| {
        // SAFETY: the call changes only the namespace of this thread.
        unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
    });
    let is_root = is_root.join().expect("no panic");
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if !is_root {
        eprintln!("SKIPPED {test}: no network namespace; run as root");
    } else if !has_ip {
        eprintln!("SKIPPED {test}: the program `ip` is missing");
    }
    is_root && has_ip
}

/// The address of the host with a number.
fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, host)
}

/// Two hosts, and a switch whose ports 1 and 2 lead to them. `more` is run in the namespace of
/// the switch before it starts.
struct Network {
    hosts: [Namespace; 2],
    switch: Running,
}

/// The kinds of devices of the ports 1 and 2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Veth,
    Tap,
}

impl Network {
    /// Builds a network with these flows. The interfaces have this MTU.
    fn new(kinds: [Kind; 2], mtu: u32, workers: usize, flows: &str) -> Network {
        let hosts = [Namespace::new(), Namespace::new()];
        let threads = [hosts[0].thread, hosts[1].thread];
        let folder = std::env::temp_dir();
        let file = format!("classyard-flows-{}-{}", std::process::id(), threads[0]);
        let file = folder.join(file);
        std::fs::write(&file, flows).expect("a file of flows");
        let prepare = move || {
            assert!(unshare(), "a namespace");
            for (number, thread) in (1..).zip(threads) {
                if kinds[number - 1] == Kind::Veth {
                    ip(&format!(
                        "link add p{number} type veth peer name e0 netns {thread}"
                    ));
                    ip(&format!("link set p{number} mtu {mtu} up"));
                }
            }
            // A cable from the switch to itself, with room for a tag or a label.
            ip("link add p3 type veth peer name p4");
            ip(&format!("link set p3 mtu {} up", mtu + 4));
            ip(&format!("link set p4 mtu {} up", mtu + 4));
        };
        let switch = Running::after(prepare, 0, |settings| {
            settings.workers = workers;
            settings.flows = Some(file.clone());
            for number in 1..=4 {
                let name = format!("p{number}");
                let interface = name.clone();
                let is_tap = kinds.get(number as usize - 1) == Some(&Kind::Tap);
                let device = match is_tap {
                    true => DeviceSettings::Tap { interface },
                    false => DeviceSettings::Interface { interface },
                };
                settings.ports.push(PortSettings {
                    number,
                    name,
                    device,
                });
            }
        });
        std::fs::remove_file(&file).expect("a file of flows");
        let network = Network { hosts, switch };
        for (number, kind) in (1_u8..).zip(kinds) {
            let thread = network.hosts[usize::from(number) - 1].thread;
            if kind == Kind::Tap {
                network
                    .in_switch(move || ip(&format!("link set p{number} netns {thread} name e0")));
            }
            network.hosts[usize::from(number) - 1].run(move || {
                ip(&format!(
                    "link set e0 mtu {mtu} address 02:00:00:00:00:0{number} up"
                ));
                ip(&format!("addr add {}/24 dev e0", address(number)));
                for other in (1..=9).filter(|&other| other != number) {
                    let lladdr = if other == 1 { 1 } else { 2 };
                    let other = address(other);
                    ip(&format!(
                        "neigh add {other} lladdr 02:00:00:00:00:0{lladdr} dev e0"
                    ));
                }
            });
        }
        network
    }

    /// Runs a function in the namespace of the switch.
    fn in_switch(&self, work: impl FnOnce() + Send) {
        let path = format!("/proc/self/task/{}/ns/net", self.switch.thread_number());
        let namespace = std::fs::File::open(path).expect("the namespace of the switch");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let kind = rustix::thread::LinkNameSpaceType::Network;
                let namespace = std::os::fd::AsFd::as_fd(&namespace);
                rustix::thread::move_into_link_name_space(namespace, Some(kind))
                    .expect("the namespace of the switch");
                work();
            });
        });
    }

    fn status(&self) -> SwitchStatus {
        let path = socket_path(&self.switch.folder, "br0");
        let mut client = ControlClient::connect(&path).expect("a running switch");
        client
            .request(&Request::Show)
            .expect("a reply")
            .data()
            .expect("a status")
    }

    /// Sends bytes from host 1 to host 2 and back over TCP. Host 1 connects to `target`.
    fn transfer(&self, target: SocketAddrV4) {
        let (ready, listening) = mpsc::channel();
        let server = self.hosts[1].begin(move || {
            let listener = TcpListener::bind(("0.0.0.0", SERVER_PORT)).expect("a listener");
            ready.send(()).expect("a waiting test");
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("all bytes");
            stream.write_all(&received).expect("an open connection");
            received.len()
        });
        listening.recv().expect("a listener");
        let sent: Vec<u8> = (0..=250).cycle().take(TRANSFER_BYTES).collect();
        let back = self.hosts[0].run(move || {
            let patience = Duration::from_secs(10);
            let mut stream = TcpStream::connect_timeout(&target.into(), patience)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            stream.write_all(&sent)?;
            stream.shutdown(std::net::Shutdown::Write)?;
            let mut back = Vec::new();
            stream.read_to_end(&mut back)?;
            Ok::<bool, std::io::Error>(back == sent)
        });
        assert!(back.expect("a connection"), "other bytes came back");
        assert_eq!(server.recv().expect("a server"), TRANSFER_BYTES);
    }

    /// Sends datagrams from host 1 to host 2 and back.
    fn datagrams(&self) {
        let (ready, listening) = mpsc::channel();
        let server = self.hosts[1].begin(move || {
            let socket = UdpSocket::bind(("0.0.0.0", SERVER_PORT)).expect("a socket");
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .expect("a timeout");
            ready.send(()).expect("a waiting test");
            let mut bytes = [0; 2_000];
            for _ in 0..50 {
                let (count, from) = socket.recv_from(&mut bytes).expect("a datagram");
                socket.send_to(&bytes[..count], from).expect("an answer");
            }
        });
        listening.recv().expect("a socket");
        self.hosts[0].run(|| {
            let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .expect("a timeout");
            let mut bytes = [0; 2_000];
            for number in 0..50_u8 {
                let datagram = vec![number; 20 * usize::from(number)];
                socket
                    .send_to(&datagram, (address(2), SERVER_PORT))
                    .expect("a datagram");
                let count = socket.recv(&mut bytes).expect("an answer");
                assert_eq!(&bytes[..count], datagram);
            }
        });
        server.recv().expect("a server");
    }
}

/// Flows that connect both hosts.
const STRAIGHT: &str = "in_port=1 actions=output:2\nin_port=2 actions=output:1\n";

#[test]
fn hosts_reach_each_other_through_interfaces() {
    if !can_run("hosts_reach_each_other_through_interfaces") {
        return;
    }
    for workers in [1, 2] {
        let network = Network::new([Kind::Veth; 2], 1_500, workers, STRAIGHT);
        network.datagrams();
        network.transfer(SocketAddrV4::new(address(2), SERVER_PORT));
        let ports = network.status().ports;
        assert!(ports[0].received_bytes > TRANSFER_BYTES as u64);
        // The kernels hand over frames of several segments.
        let mean = ports[0].received_bytes / ports[0].received_packets;
        assert!(mean > 2_000, "{mean} bytes a frame: {:?}", ports[0]);
        network.switch.stop();
    }
}

#[test]
fn hosts_reach_each_other_through_taps() {
    if !can_run("hosts_reach_each_other_through_taps") {
        return;
    }
    for kinds in [[Kind::Tap; 2], [Kind::Veth, Kind::Tap]] {
        let network = Network::new(kinds, 1_500, 1, STRAIGHT);
        network.datagrams();
        network.transfer(SocketAddrV4::new(address(2), SERVER_PORT));
        network.switch.stop();
    }
}

/// Addresses and ports are translated while checksums are partial.
#[test]
fn translated_connections_have_right_checksums() {
    if !can_run("translated_connections_have_right_checksums") {
        return;
    }
    let flows = format!(
        "tcp,in_port=1,nw_dst=10.9.0.9,tp_dst=80 \
         actions=set_field:10.9.0.2->ip_dst,set_field:{SERVER_PORT}->tcp_dst,\
         set_field:10.9.0.7->ip_src,dec_ttl,output:2\n\
         tcp,in_port=2,nw_src=10.9.0.2,tp_src={SERVER_PORT} \
         actions=set_field:10.9.0.9->ip_src,set_field:80->tcp_src,\
         set_field:10.9.0.1->ip_dst,\
         set_field:02:00:00:00:00:01->eth_dst,output:1\n"
    );
    let network = Network::new([Kind::Veth; 2], 1_500, 1, &flows);
    network.transfer(SocketAddrV4::new(address(9), 80));
    network.switch.stop();
}

/// Frames pass a cable with a tag or a label that the switch pushes and pops.
#[test]
fn connections_pass_tags_and_labels() {
    if !can_run("connections_pass_tags_and_labels") {
        return;
    }
    let tagged = "in_port=1 actions=push_vlan:0x8100,set_field:4105->vlan_vid,output:3\n\
                  in_port=4,dl_vlan=9 actions=pop_vlan,output:2\n\
                  in_port=2 actions=push_vlan:0x88a8,set_field:4106->vlan_vid,output:4\n\
                  in_port=3,dl_vlan=10 actions=pop_vlan,output:1\n";
    let labelled = "in_port=1,ip actions=push_mpls:0x8847,set_field:9->mpls_label,output:3\n\
                    in_port=4,mpls,mpls_label=9 actions=pop_mpls:0x0800,output:2\n\
                    in_port=2,ip actions=push_mpls:0x8847,set_field:10->mpls_label,output:4\n\
                    in_port=3,mpls,mpls_label=10 actions=pop_mpls:0x0800,output:1\n";
    for flows in [tagged, labelled] {
        let network = Network::new([Kind::Veth; 2], 1_500, 1, flows);
        network.datagrams();
        network.transfer(SocketAddrV4::new(address(2), SERVER_PORT));
        network.switch.stop();
    }
}

/// A port whose interface vanishes is closed, and the others go on. It is open again when the
/// interface is back.
#[test]
fn an_interface_may_vanish_and_come_back() {
    if !can_run("an_interface_may_vanish_and_come_back") {
        return;
    }
    let network = Network::new([Kind::Veth; 2], 1_500, 2, STRAIGHT);
    network.datagrams();
    network.in_switch(|| ip("link del p3"));
    let link = |network: &Network, port: usize| network.status().ports[port - 1].link;
    wait("closed ports", || {
        let are_gone = link(&network, 3) == Link::Gone && link(&network, 4) == Link::Gone;
        are_gone.then_some(())
    });
    network.datagrams();
    network.in_switch(|| ip("link set p2 down"));
    wait("a link that is down", || {
        (link(&network, 2) != Link::Up).then_some(())
    });
    network.in_switch(|| {
        ip("link set p2 up");
        ip("link add p3 type veth peer name p4");
        ip("link set p3 up");
        ip("link set p4 up");
    });
    wait("open ports", || {
        (1..=4)
            .all(|port| link(&network, port) == Link::Up)
            .then_some(())
    });
    network.datagrams();
    network.switch.stop();
}
