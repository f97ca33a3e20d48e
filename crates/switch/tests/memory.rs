//! A running switch with ports in memory: packets, changes, controllers.

mod running;

use std::io::Write;

use classyard_datapath::PortNo;
use classyard_datapath::packet::Offload;
use classyard_datapath::pipeline::PacketInReason;
use classyard_openflow::Message;
use classyard_openflow::packet::PacketOut;

use running::{Running, forward_to, frame, output, wait};

#[test]
fn packets_follow_the_entries_of_a_controller() {
    for workers in [1, 2] {
        let switch = Running::start(3, workers);
        let mut controller = switch.controller();
        assert!(controller.ask(&forward_to(1, PortNo(2))).is_empty());
        for number in 0..500 {
            switch.send(1, &frame(number));
            assert_eq!(switch.receive(2), frame(number));
        }
        switch.send(2, &frame(0));
        assert!(controller.ask(&forward_to(1, PortNo(3))).is_empty());
        switch.send(1, &frame(7));
        assert_eq!(switch.receive(3), frame(7));
        assert!(switch.received(2).is_empty());
        switch.stop();
    }
}

/// After the reply of a barrier, each packet meets the changes before the barrier.
#[test]
fn no_packet_after_a_barrier_meets_an_older_entry() {
    let switch = Running::start(3, 1);
    let mut controller = switch.controller();
    for number in 0..10_000 {
        let port = 2 + number % 2;
        assert!(controller.ask(&forward_to(1, PortNo(port))).is_empty());
        switch.send(1, &frame(number));
        assert_eq!(switch.receive(port), frame(number));
    }
    assert!(switch.received(2).is_empty() && switch.received(3).is_empty());
    switch.stop();
}

#[test]
fn a_controller_gets_packets_and_sends_packets() {
    let switch = Running::start(2, 2);
    let mut controller = switch.controller();
    controller.ask(&forward_to(1, PortNo::CONTROLLER));
    for number in 0..100 {
        switch.send(1, &frame(number));
        let (_, Message::PacketIn(packet)) = controller.read() else {
            panic!("no packet");
        };
        assert_eq!(packet.data, frame(number));
        assert_eq!(packet.reason, PacketInReason::Action);
        let answer = Message::PacketOut(PacketOut {
            in_port: PortNo::CONTROLLER,
            actions: vec![output(PortNo(2))],
            data: packet.data,
        });
        assert!(controller.ask(&answer).is_empty());
        // The barrier has been answered, so the packet has been sent.
        assert_eq!(switch.received(2), [frame(number)]);
    }
    switch.stop();
}

/// One port floods the controller, and most of its packets are dropped. Packets of another port
/// still arrive.
#[test]
fn a_port_that_floods_the_controller_leaves_room_for_others() {
    let switch = Running::with(2, |settings| {
        settings.max_packet_ins_per_second = 2_000;
        settings.max_packet_in_burst = 10;
    });
    let mut controller = switch.controller();
    controller.ask(&forward_to(1, PortNo::CONTROLLER));
    controller.ask(&forward_to(2, PortNo::CONTROLLER));
    let mut others = 0;
    for round in 0..20 {
        for number in 0..1_000 {
            // Most of them find no room.
            let _sent = switch.peers[0].send(0, &frame(number), Offload::NONE);
        }
        switch.send(2, &frame(1_000_000 + round));
        wait("packet of the quiet port", || {
            let (_, Message::PacketIn(packet)) = controller.read() else {
                return None;
            };
            let number = u32::from_be_bytes(packet.data[14..18].try_into().expect("4 bytes"));
            (number == 1_000_000 + round).then_some(())
        });
        others += 1;
    }
    assert_eq!(others, 20);
    switch.stop();
}

#[test]
fn controllers_hear_of_links() {
    let switch = Running::start(2, 1);
    let mut controller = switch.controller();
    controller.barrier();
    switch.peers[1].set_link(false);
    let (_, Message::PortStatus(status)) = controller.read() else {
        panic!("no news of the port");
    };
    assert_eq!(status.port.number, PortNo(2));
    assert_eq!(status.port.state & 1, 1, "{status:?}");
    controller.ask(&forward_to(1, PortNo(2)));
    switch.send(1, &frame(1));
    switch.peers[1].set_link(true);
    controller.read();
    switch.send(1, &frame(2));
    assert_eq!(switch.receive(2), frame(2));
    switch.stop();
}

/// A connection with bytes that are not OpenFlow ends, and no other one.
#[test]
fn a_hostile_connection_costs_only_itself() {
    let switch = Running::start(2, 1);
    let mut good = switch.controller();
    good.ask(&forward_to(1, PortNo(2)));
    for number in 0_u8..30 {
        let mut bad = switch.controller();
        let bytes: Vec<u8> = (0..200).map(|place| number.wrapping_mul(place)).collect();
        // The switch may have closed the connection.
        let _closed = bad.stream.write_all(&bytes);
        assert!(good.barrier().is_empty());
        switch.send(1, &frame(number.into()));
        assert_eq!(switch.receive(2), frame(number.into()));
    }
    // A connection that sends requests and does not read.
    let mut deaf = switch.controller();
    deaf.stream.set_nonblocking(true).expect("a socket");
    let echo = Message::EchoRequest(vec![0; 60_000]).to_bytes(1);
    let mut written = 0;
    while written < 64 << 20 && deaf.stream.write_all(&echo).is_ok() {
        written += echo.len();
    }
    assert!(written < 32 << 20, "{written} bytes were taken");
    assert!(good.barrier().is_empty());
    switch.stop();
}
