//! The control socket of a running switch.

mod running;

use classyard_datapath::packet::Offload;
use classyard_switch::config::{DeviceSettings, PortSettings};
use classyard_switch::control::{
    CaptureLimits, ControlClient, Link, Reply, Request, SwitchStatus, socket_path,
};
use classyard_workload::capture::{ReadOptions, read_capture};

use running::{Running, forward, frame, wait};

fn client(switch: &Running) -> ControlClient {
    ControlClient::connect(&socket_path(&switch.folder, "br0")).expect("a running switch")
}

fn ask(client: &mut ControlClient, request: &Request) -> Reply {
    client.request(request).expect("a reply")
}

fn status(client: &mut ControlClient) -> SwitchStatus {
    ask(client, &Request::Show).data().expect("a status")
}

#[test]
fn the_state_has_the_packets_of_each_port_table_and_worker() {
    let switch = Running::start(3, 2);
    let mut controller = switch.controller();
    controller.ask(&forward(1, 2));
    for number in 0..100 {
        switch.send(1, &frame(number));
        switch.receive(2);
        // No entry matches.
        switch.send(3, &frame(number));
    }
    let mut client = client(&switch);
    let status = wait("counts of all packets", || {
        let status = status(&mut client);
        (status.tables.first()?.lookups == 200).then_some(status)
    });
    assert_eq!(status.name, "br0");
    let ports = status.ports.iter();
    let ports: Vec<_> = ports
        .map(|port| (port.received_packets, port.sent_packets, port.link))
        .collect();
    let up = Link::Up;
    assert_eq!(ports, [(100, 0, up), (0, 100, up), (100, 0, up)]);
    let table = status.tables[0];
    assert_eq!((table.entries, table.matches), (1, 100));
    let packets: Vec<u64> = status.workers.iter().map(|worker| worker.packets).collect();
    assert_eq!(
        packets,
        [200, 0],
        "the first queue of a port in memory has all packets"
    );
    assert!(status.workers[0].caches.is_some());
    assert_eq!(status.controllers.len(), 1);
    assert!(status.controllers[0].received_messages >= 3);
    switch.stop();
}

#[test]
fn ports_are_added_and_removed() {
    let switch = Running::start(1, 1);
    let mut client = client(&switch);
    let mut controller = switch.controller();
    controller.barrier();
    let port = PortSettings {
        number: 7,
        name: "late".to_owned(),
        device: DeviceSettings::Memory,
    };
    let add = Request::AddPort { port };
    assert_eq!(ask(&mut client, &add).data(), Ok(()));
    let (_, heard) = controller.read();
    assert_eq!(heard.name(), "PORT_STATUS");
    assert_eq!(
        ask(&mut client, &add).data::<()>(),
        Err("port `late` has the number 7 already".to_owned())
    );
    assert_eq!(status(&mut client).ports.len(), 2);
    let remove = Request::DelPort {
        name: "late".to_owned(),
    };
    assert_eq!(ask(&mut client, &remove).data(), Ok(()));
    assert_eq!(
        ask(&mut client, &remove).data::<()>(),
        Err("there is no port `late`; the ports are port1".to_owned())
    );
    assert_eq!(status(&mut client).ports.len(), 1);
    switch.stop();
}

/// The text of a dump, loaded into another pipeline, is dumped the same.
#[test]
fn a_dump_has_all_flows_and_ports() {
    let switch = Running::start(2, 1);
    let mut controller = switch.controller();
    controller.ask(&forward(1, 2));
    controller.ask(&forward(2, 1));
    let text: String = ask(&mut client(&switch), &Request::Dump)
        .data()
        .expect("a text");
    assert_eq!(
        text,
        "port=1,name=port1\nport=2,name=port2\n\
         table=0,priority=32768,in_port=1 actions=output:2\n\
         table=0,priority=32768,in_port=2 actions=output:1\n"
    );
    let read = classyard_datapath::text::read(&text).expect("a right text");
    assert_eq!(read.len(), 4);
    switch.stop();
}

#[test]
fn captured_frames_have_their_ports_and_directions() {
    let switch = Running::start(2, 1);
    let mut controller = switch.controller();
    controller.ask(&forward(1, 2));
    let mut client = client(&switch);
    let capture = Request::Capture {
        port: None,
        limits: CaptureLimits {
            max_packets: Some(4),
            ..CaptureLimits::default()
        },
    };
    assert_eq!(ask(&mut client, &capture).data(), Ok(()));
    for number in 0..2 {
        switch.send(1, &frame(number));
        assert_eq!(switch.receive(2), frame(number));
    }
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut client.into_stream(), &mut bytes).expect("a capture");
    let capture = read_capture("capture", &bytes, &ReadOptions::DEFAULT);
    let capture = capture.expect("a right capture");
    let frames: Vec<&[u8]> = capture.frames().map(|(_, frame)| frame).collect();
    assert_eq!(frames, [frame(0), frame(0), frame(1), frame(1)]);
    let names = capture
        .interfaces()
        .iter()
        .map(|interface| interface.name.as_deref());
    assert!(names.eq([Some("port1"), Some("port2")]));
    switch.stop();
}

#[test]
fn requests_that_are_none_are_explained() {
    use std::io::{BufRead, BufReader, Write};
    let switch = Running::start(1, 1);
    let path = socket_path(&switch.folder, "br0");
    let stream = std::os::unix::net::UnixStream::connect(path).expect("a socket");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut line = String::new();
    for (request, answer) in [
        ("{}\n", "missing field"),
        ("no JSON\n", "expected ident"),
        (
            "{\"request\":\"reload\"}\n",
            "started without a configuration file",
        ),
    ] {
        (&stream).write_all(request.as_bytes()).expect("a socket");
        line.clear();
        reader.read_line(&mut line).expect("an answer");
        assert!(line.contains(answer), "{request}: {line}");
    }
    // Two switches of one name cannot run in one folder.
    let second = Running::try_in(&switch.folder);
    let error = second.expect_err("a second switch").to_string();
    assert!(error.contains("another process listens there"), "{error}");
    assert!(switch.peers[0].send(0, &frame(1), Offload::NONE));
    switch.stop();
}

/// Connections beyond the limit are refused with the reason, and an end makes room.
#[test]
fn there_are_at_most_sixteen_control_connections() {
    let switch = Running::start(1, 1);
    let mut clients: Vec<ControlClient> = (0..16).map(|_| client(&switch)).collect();
    for client in &mut clients {
        status(client);
    }
    let refused = client(&switch).request(&Request::Show).expect("a reply");
    let reason = refused.data::<SwitchStatus>().expect_err("a refusal");
    assert_eq!(
        reason,
        "16 commands are connected, and more are not allowed"
    );
    clients.pop();
    wait("place for a connection", || {
        let reply = client(&switch).request(&Request::Show).ok()?;
        reply.data::<SwitchStatus>().ok()
    });
    switch.stop();
}
