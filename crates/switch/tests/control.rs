//! The control socket of a running switch.

mod running;

use classyard_datapath::PortNo;
use classyard_datapath::packet::Offload;
use classyard_switch::config::{DeviceSettings, PortSettings};
use classyard_switch::control::{
    CaptureLimits, ControlClient, Link, LiveTrace, MegaflowList, Reply, Request, SwitchStatus,
    TraceSource, socket_path,
};
use classyard_workload::capture::{ReadOptions, read_capture};

use running::{Running, forward, forward_to, frame, wait};

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

fn traced(client: &mut ControlClient, packet: TraceSource) -> Result<LiveTrace, String> {
    ask(client, &Request::Trace { packet, near: 2 }).data()
}

fn fields(fields: &str) -> TraceSource {
    TraceSource::Flow {
        fields: fields.to_owned(),
        in_port: None,
    }
}

/// Frames pass while packets are traced, and traces leave no mark.
#[test]
fn a_trace_changes_nothing() {
    let switch = Running::start(2, 2);
    let mut controller = switch.controller();
    controller.ask(&forward(1, 2));
    let mut client = client(&switch);
    let before = status(&mut client);
    for number in 0..200 {
        let trace = traced(&mut client, fields("in_port=1,dl_type=0x88b5")).expect("a trace");
        let kinds: Vec<&str> = trace.steps.iter().map(|step| &*step.step).collect();
        assert_eq!(kinds, ["lookup", "action", "sent"]);
        let megaflow = trace.megaflow.expect("a megaflow");
        assert_eq!(
            (&*megaflow.covers, megaflow.tables),
            ("in_port=1,eth_type=0x88b5", vec![0])
        );
        assert_eq!(trace.port.expect("a port").name, "port1");
        if number % 2 == 0 {
            switch.send(1, &frame(number));
            assert_eq!(switch.receive(2), frame(number));
        }
    }
    assert_eq!(switch.received(2), Vec::<Vec<u8>>::new());
    let after = status(&mut client);
    assert_eq!(
        (before.tables[0].lookups, after.tables[0].lookups),
        (0, 100)
    );
    assert_eq!(after.tables[0].matches, 100);
    assert!(after.uptime_ns > before.uptime_ns);
    assert!(after.workers[0].busy_ns > 0);
    switch.stop();
}

/// A trace follows the present flows and ports.
#[test]
fn a_trace_has_the_present_flows_and_ports() {
    let switch = Running::start(2, 1);
    let mut client = client(&switch);
    let packet = || fields("in_port=port1,tcp,tp_dst=80");
    let trace = traced(&mut client, packet()).expect("a trace");
    assert!(trace.dropped && trace.steps[0].table.as_ref().unwrap().flows == 0);
    let mut controller = switch.controller();
    controller.ask(&forward(1, 2));
    let trace = traced(&mut client, packet()).expect("a trace");
    let table = trace.steps[0].table.as_ref().unwrap();
    let winner = table.winner.as_ref().expect("a winner");
    assert_eq!(
        (&*winner.matches, &*winner.actions),
        ("in_port=1", "output:2")
    );
    assert_eq!(winner.origin.cookie.as_deref(), Some("0x0"));
    assert!(!trace.dropped);
    let remove = Request::DelPort {
        name: "port2".to_owned(),
    };
    assert_eq!(ask(&mut client, &remove).data(), Ok(()));
    let trace = traced(&mut client, packet()).expect("a trace");
    assert!(trace.dropped, "{trace:?}");
    switch.stop();
}

#[test]
fn the_next_packet_of_a_port_is_traced() {
    let switch = Running::start(2, 2);
    let mut controller = switch.controller();
    controller.ask(&forward(1, 2));
    let path = socket_path(&switch.folder, "br0");
    let tracer = std::thread::spawn(move || {
        let mut client = ControlClient::connect(&path).expect("a running switch");
        let packet = TraceSource::Next {
            port: "port1".to_owned(),
            max_seconds: 20,
        };
        traced(&mut client, packet)
    });
    // The tracer may not wait yet, so more packets than one are sent. The other port is not
    // traced.
    let mut number = 0;
    while !tracer.is_finished() {
        switch.send(2, &frame(1_000_000));
        switch.send(1, &frame(number));
        assert_eq!(switch.receive(2), frame(number));
        number += 1;
    }
    let trace = tracer.join().expect("no panic").expect("a trace");
    assert_eq!(
        (&*trace.packet.source, trace.packet.in_port),
        ("port port1", 1)
    );
    let sent = (0..number).map(|number| {
        let digits = frame(number).into_iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    });
    assert!(sent.into_iter().any(|digits| digits == trace.packet.bytes));
    assert!(!trace.dropped);
    switch.stop();
}

#[test]
fn refused_traces_are_explained() {
    let switch = Running::start(2, 1);
    let mut client = client(&switch);
    let next = |port: &str, max_seconds| TraceSource::Next {
        port: port.to_owned(),
        max_seconds,
    };
    let frame = |bytes: &str, in_port: Option<&str>| TraceSource::Frame {
        bytes: bytes.to_owned(),
        in_port: in_port.map(str::to_owned),
    };
    for (packet, message) in [
        (
            next("port3", 1),
            "there is no port `port3`; the ports are port1, port2",
        ),
        (next("port1", 0), "max_seconds 0; expected 1 to 86400"),
        (
            next("2", 1),
            "port `2` received no packet within 1 s; wait longer, or ",
        ),
        (
            frame("0x", None),
            "not a frame; expected hexadecimal digits",
        ),
        (
            frame("00", Some("7")),
            "there is no port `7`; the ports are port1, port2",
        ),
        (
            fields("in_port=9"),
            "there is no port `9`; the ports are port1, port2",
        ),
        (
            fields("in_port=wan"),
            "column 9 of `in_port=wan`: no port has the name `wan`; expected ",
        ),
        (
            fields("tcp,tp_dst=web"),
            "column 12 of `tcp,tp_dst=web`: `web`",
        ),
        (
            TraceSource::Flow {
                fields: "in_port=2".to_owned(),
                in_port: Some("1".to_owned()),
            },
            "the fields have in_port=2, and the ingress port is 1; give one of them",
        ),
    ] {
        let refused = traced(&mut client, packet).expect_err(message);
        assert!(refused.starts_with(message), "{refused}");
    }
    // The frame goes to many ports.
    let mut controller = switch.controller();
    controller.ask(&forward_to(1, PortNo::ALL));
    for number in 3..=200 {
        let port = PortSettings {
            number,
            name: format!("more{number}"),
            device: DeviceSettings::Memory,
        };
        assert_eq!(ask(&mut client, &Request::AddPort { port }).data(), Ok(()));
    }
    let refused = traced(&mut client, frame(&"00".repeat(60_000), None)).expect_err("too long");
    assert_eq!(
        refused,
        "the switch sends 11940000 bytes for the packet; a trace has at most 8388608 bytes; trace a \
         shorter packet"
    );
    let near = Request::Trace {
        packet: fields("arp"),
        near: 1001,
    };
    assert_eq!(
        ask(&mut client, &near).data::<LiveTrace>(),
        Err("near 1001; at most 1000 flows of each table are listed".to_owned())
    );
    switch.stop();
}

/// Each source address of a flow table has a megaflow of its own.
#[test]
fn megaflows_are_listed_up_to_a_limit() {
    const FLOWS: usize = 300;
    let switch = Running::with(2, |settings| {
        let folder = settings.run_dir.clone();
        let flows = (0..FLOWS).map(|number| {
            format!(
                "priority=5,dl_src=02:00:00:00:{:02x}:{:02x} actions=output:2\n",
                number / 256,
                number % 256
            )
        });
        let file = folder.join("flows");
        std::fs::write(&file, flows.collect::<String>()).expect("a file");
        settings.flows = Some(file);
        settings.workers = 2;
    });
    let mut client = client(&switch);
    let list = |client: &mut ControlClient, limit| -> MegaflowList {
        let list = ask(client, &Request::DumpMegaflows { limit });
        list.data().expect("a list")
    };
    // A cache takes a flow when its packets come again.
    let all = wait("megaflows of all flows", || {
        for number in 0..FLOWS {
            let mut bytes = frame(0);
            bytes[10] = u8::try_from(number / 256).unwrap();
            bytes[11] = u8::try_from(number % 256).unwrap();
            switch.send(1, &bytes);
            assert_eq!(switch.receive(2), bytes);
        }
        let list = list(&mut client, 10_000);
        (list.megaflows.len() >= FLOWS).then_some(list)
    });
    let counts: Vec<_> = all
        .workers
        .iter()
        .map(|it| (it.worker, it.left_out))
        .collect();
    assert_eq!(counts, [(0, 0), (1, 0)]);
    assert_eq!(all.workers[0].megaflows, all.megaflows.len());
    let mut covers: Vec<&str> = all
        .megaflows
        .iter()
        .map(|it| &*it.megaflow.covers)
        .collect();
    covers.sort_unstable();
    covers.dedup();
    assert_eq!(covers.len(), all.megaflows.len(), "each is listed once");
    for megaflow in &all.megaflows {
        assert!(
            megaflow.megaflow.covers.contains("eth_src=02:00:00:00:0"),
            "{megaflow:?}"
        );
        assert_eq!((megaflow.worker, megaflow.stale), (0, false));
        assert_eq!(
            (&*megaflow.actions, &*megaflow.megaflow.tables),
            ("output:2", &[0][..])
        );
    }
    // The worker without megaflows leaves the limit to none after it: the first gets its half.
    let few = list(&mut client, 20);
    assert_eq!(few.megaflows.len(), 10);
    assert_eq!(few.workers[0].left_out, all.megaflows.len() - 10);
    let request = Request::DumpMegaflows { limit: 65_537 };
    assert_eq!(
        ask(&mut client, &request).data::<MegaflowList>(),
        Err("limit 65537; at most 65536 megaflows are listed".to_owned())
    );
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
