//! An agent with controllers: their messages, and the answers.

mod controllers;

use std::sync::Arc;
use std::time::Duration;

use classyard_datapath::flow::{Command, FlowFlags, FlowMod, Instructions, TableId};
use classyard_datapath::pipeline::{self, PacketInReason};
use classyard_datapath::{Action, Field, FlowMatch, GroupId, MatchField, MeterId, Packet, PortNo};
use classyard_openflow::agent::{MAX_UNSENT_BYTES, PacketForController};
use classyard_openflow::bundle::{BundleAdd, BundleControl, BundleStep, flag};
use classyard_openflow::flow::FlowRequest;
use classyard_openflow::meter::MeterRequest;
use classyard_openflow::multipart::{Multipart, Nothing, Reply, Request};
use classyard_openflow::packet::PacketOut;
use classyard_openflow::switch::{Role, RoleMessage};
use classyard_openflow::{Code, Message};

use controllers::{Controller, Switch};

fn output(port: u32) -> Action {
    Action::Output {
        port: PortNo(port),
        max_len: 0xffff,
    }
}

/// Returns a message that adds an entry for packets of a port.
fn add(in_port: u32, actions: Vec<Action>) -> FlowMod {
    let flow = FlowMatch::new([MatchField::exact(Field::InPort, in_port.into())]);
    FlowMod {
        instructions: Arc::new(Instructions {
            apply: actions,
            ..Instructions::default()
        }),
        ..FlowMod::new(Command::Add, flow.expect("a right match"))
    }
}

fn all_flows() -> FlowRequest {
    FlowRequest {
        table: TableId::ALL,
        out_port: PortNo::ANY,
        out_group: GroupId(u32::MAX),
        cookie: 0,
        cookie_mask: 0,
        flow: Arc::default(),
    }
}

fn request(body: Request) -> Message {
    Message::MultipartRequest(Multipart {
        is_more: false,
        body,
    })
}

/// Returns the matches of entries that the switch reports, of all parts.
fn dumped(switch: &mut Switch, controller: &mut Controller, wanted: FlowRequest) -> Vec<String> {
    let answers = controller.ask(switch, &request(Request::Flow(wanted)));
    let last = answers.len() - 1;
    let mut flows = Vec::new();
    for (number, answer) in answers.into_iter().enumerate() {
        let Message::MultipartReply(Multipart {
            is_more,
            body: Reply::Flow(part),
        }) = answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!(is_more, number < last);
        flows.extend(part.0.iter().map(|stats| stats.flow.to_string()));
    }
    flows
}

#[test]
fn a_controller_adds_entries_and_reads_them_back() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    for port in 1..=3 {
        let change = Message::FlowMod(add(port, vec![output(2)]));
        assert!(controller.ask(&mut switch, &change).is_empty());
    }
    let barrier = controller.ask(&mut switch, &Message::BarrierRequest(Nothing));
    assert_eq!(barrier, [Message::BarrierReply(Nothing)]);
    assert_eq!(switch.pipeline.flows().len(), 3);
    let flows = dumped(&mut switch, &mut controller, all_flows());
    assert_eq!(flows, ["in_port=1", "in_port=2", "in_port=3"]);
    let of_port_1 = FlowRequest {
        out_port: PortNo(1),
        ..all_flows()
    };
    assert!(dumped(&mut switch, &mut controller, of_port_1).is_empty());
}

#[test]
fn statistics_of_many_entries_come_in_parts() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    for port in 1..=20_000 {
        controller.send(&mut switch, &Message::FlowMod(add(port, vec![output(1)])));
    }
    let flows = dumped(&mut switch, &mut controller, all_flows());
    assert_eq!(flows.len(), 20_000);
    assert_eq!(flows[19_999], "in_port=20000");
}

#[test]
fn a_controller_that_does_not_read_costs_bounded_memory() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    for port in 1..=20_000 {
        controller.send(&mut switch, &Message::FlowMod(add(port, vec![output(1)])));
    }
    // About 2 MB each. The session stops reading after a few.
    for _ in 0..50 {
        controller.send(&mut switch, &request(Request::Flow(all_flows())));
    }
    assert!(!switch.agent.reads(controller.session));
    let unsent = switch.agent.unsent(controller.session).len();
    assert!(unsent < 2 * MAX_UNSENT_BYTES, "{unsent}");
    // Packets for the controller are dropped and counted, answers are not.
    let packet = Packet::new(&[0; 60], 1);
    let event = PacketForController {
        reason: PacketInReason::Action,
        max_len: 128,
        table: TableId(0),
        cookie: 0,
        packet: &packet,
    };
    for _ in 0..10 {
        switch.agent.packet_in(&event);
    }
    let counts = switch.agent.counts(controller.session).expect("a session");
    assert_eq!(counts.dropped_packet_ins, 10);
    let answers = controller.read(&mut switch);
    let whole = answers.iter().filter(|(_, message)| match message {
        Message::MultipartReply(part) => !part.is_more,
        other => panic!("{other:?}"),
    });
    assert_eq!(whole.count(), 50);
}

#[test]
fn errors_name_what_is_wrong_and_change_nothing() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let bad_table = FlowMod {
        table: TableId(254),
        ..add(1, vec![output(2)])
    };
    let code = controller.refused(&mut switch, &Message::FlowMod(bad_table));
    assert_eq!(code, Code { kind: 5, code: 2 });
    let bad_group = add(1, vec![Action::Group(GroupId(9))]);
    let code = controller.refused(&mut switch, &Message::FlowMod(bad_group));
    assert_eq!(code, Code { kind: 2, code: 9 });
    let code = controller.refused(&mut switch, &Message::BarrierReply(Nothing));
    assert_eq!(code, Code::BAD_TYPE);
    assert!(switch.pipeline.flows().is_empty());
    assert_eq!(switch.agent.counts(controller.session).unwrap().refused, 3);
}

/// Types, protocols and the bottom of the label stack can be set, as OpenFlow allows. Fields
/// that are not in a header cannot.
#[test]
fn fields_of_headers_are_set_and_others_refused() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let set = |field, value| Action::SetField(MatchField::exact(field, value));
    let ipv6 = set(Field::EthType, 0x86dd);
    for actions in [
        vec![ipv6, set(Field::IpProto, 17), set(Field::UdpDst, 53)],
        vec![Action::PushMpls(0x8847), set(Field::MplsBos, 1)],
    ] {
        let change = Message::FlowMod(add(1, actions));
        assert!(controller.ask(&mut switch, &change).is_empty());
    }
    let cases = [
        (set(Field::EthType, 0x5ff), Code::BAD_SET_ARGUMENT),
        (set(Field::IpProto, 6), Code { kind: 2, code: 10 }),
        (set(Field::MplsBos, 0), Code { kind: 2, code: 10 }),
        (set(Field::InPort, 1), Code::BAD_SET_TYPE),
        (set(Field::InPhyPort, 1), Code::BAD_SET_TYPE),
        (set(Field::Metadata, 1), Code::BAD_SET_TYPE),
        (set(Field::Ipv6Exthdr, 1), Code::BAD_SET_TYPE),
    ];
    for (action, expected) in cases {
        let change = Message::FlowMod(add(2, vec![action]));
        assert_eq!(
            controller.refused(&mut switch, &change),
            expected,
            "{action}"
        );
    }
    assert_eq!(switch.pipeline.flows().len(), 1);
}

/// The configuration of a meter has the flags and sizes of bursts of the message that added it,
/// also a size of 0, which stands for the rate.
#[test]
fn a_meter_is_reported_as_it_was_added() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    // Flags: kilobits 1, packets 2, bursts 4, statistics 8.
    for (number, flags, burst) in [(1, 2, 0), (2, 1 | 4, 0), (3, 2 | 4 | 8, 7), (4, 1 | 8, 0)] {
        let band = [0, 1, 0, 16, 0, 0, 0, 9, 0, 0, 0, burst, 0, 0, 0, 0];
        let head = [4, 29, 0, 32, 0, 0, 0, 9, 0, 0, 0, flags, 0, 0, 0, number];
        let message = [&head[..], &band].concat();
        let session = controller.session;
        switch.with(|agent, around| agent.receive(session, &message, around));
        assert!(controller.read(&mut switch).is_empty(), "no error");
        let meter = MeterId(number.into());
        let wanted = request(Request::MeterConfig(MeterRequest { meter }));
        controller.send(&mut switch, &wanted);
        let reply = switch.agent.unsent(session).to_vec();
        let config = [&[0, 24, 0, flags, 0, 0, 0, number], &band[..]].concat();
        assert_eq!(reply[16..], config);
        controller.read(&mut switch);
    }
}

#[test]
fn a_bundle_is_carried_out_as_a_whole_or_not_at_all() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let control = |bundle, step| {
        Message::BundleControl(BundleControl {
            bundle,
            step,
            flags: flag::ATOMIC,
            properties: Vec::new(),
        })
    };
    let flows_of = |bundle, switch: &mut Switch, controller: &mut Controller, groups: &[u32]| {
        controller.ask(switch, &control(bundle, BundleStep::OpenRequest));
        for (number, group) in groups.iter().enumerate() {
            let actions = match group {
                0 => vec![output(1)],
                group => vec![Action::Group(GroupId(*group))],
            };
            let port = u32::try_from(number).unwrap() + 1;
            let message = Message::FlowMod(add(port, actions)).to_bytes(controller.next_xid);
            let add = Message::BundleAdd(BundleAdd {
                bundle,
                flags: flag::ATOMIC,
                message,
            });
            assert!(controller.ask(switch, &add).is_empty());
        }
        controller.send(switch, &control(bundle, BundleStep::CommitRequest));
        controller.read(switch)
    };
    // The second message uses a group that does not exist.
    let answers = flows_of(1, &mut switch, &mut controller, &[0, 7, 0]);
    let codes: Vec<Code> = answers
        .iter()
        .map(|(_, message)| match message {
            Message::Error(error) => Code {
                kind: error.kind,
                code: error.code,
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        codes,
        [Code { kind: 2, code: 9 }, Code::BUNDLE_MESSAGE_FAILED]
    );
    assert!(answers[0].0 < answers[1].0, "the message, then the commit");
    assert!(switch.pipeline.flows().is_empty());
    let answers = flows_of(1, &mut switch, &mut controller, &[0, 0]);
    assert!(matches!(answers[..], [(_, Message::BundleControl(_))]));
    assert_eq!(switch.pipeline.flows().len(), 2);
    let code = controller.refused(&mut switch, &control(1, BundleStep::CommitRequest));
    assert_eq!(code, Code::BUNDLE_BAD_ID);
}

#[test]
fn only_one_controller_is_primary() {
    let mut switch = Switch::new();
    let (mut first, mut second) = (switch.controller(), switch.controller());
    let become_primary = |generation| {
        Message::RoleRequest(RoleMessage {
            role: Role::Primary,
            generation,
        })
    };
    first.ask(&mut switch, &become_primary(5));
    second.ask(&mut switch, &become_primary(6));
    assert_eq!(switch.agent.role(first.session), Some(Role::Secondary));
    let change = Message::FlowMod(add(1, vec![output(2)]));
    assert_eq!(first.refused(&mut switch, &change), Code::IS_SLAVE);
    assert_eq!(
        first.refused(&mut switch, &become_primary(5)),
        Code::STALE_ROLE
    );
    assert!(second.ask(&mut switch, &change).is_empty());
    // The secondary controller reads, and hears of ports.
    assert_eq!(dumped(&mut switch, &mut first, all_flows()), ["in_port=1"]);
    switch.with(|agent, around| {
        agent
            .set_port(PortNo(2), None, around)
            .expect("a known port");
    });
    for controller in [&mut first, &mut second] {
        let heard = controller.read(&mut switch);
        assert!(
            matches!(&heard[..], [(0, Message::PortStatus(status))] if status.reason == 1),
            "{heard:?}"
        );
    }
}

#[test]
fn a_barrier_waits_for_the_packets_before_it() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let packet = Message::PacketOut(PacketOut {
        in_port: PortNo::CONTROLLER,
        actions: vec![output(1)],
        data: vec![0; 60],
    });
    assert!(controller.ask(&mut switch, &packet).is_empty());
    let barrier = controller.send(&mut switch, &Message::BarrierRequest(Nothing));
    let echo = controller.send(&mut switch, &Message::EchoRequest(vec![7]));
    assert!(controller.read(&mut switch).is_empty());
    let jobs = switch.agent.take_jobs();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].actions, [output(1)]);
    let session = switch.agent.job_done(jobs[0].number);
    assert_eq!(session, Some(controller.session));
    switch.with(|agent, around| agent.proceed(controller.session, around));
    assert_eq!(
        controller.read(&mut switch),
        [
            (barrier, Message::BarrierReply(Nothing)),
            (echo, Message::EchoReply(vec![7])),
        ]
    );
}

#[test]
fn controllers_hear_of_removed_entries_and_packets() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let short_lived = FlowMod {
        cookie: 0x77,
        hard_timeout: 10,
        flags: FlowFlags {
            send_removed: true,
            ..FlowFlags::default()
        },
        ..add(1, vec![output(2)])
    };
    controller.ask(&mut switch, &Message::FlowMod(short_lived));
    switch.now += Duration::from_secs(11);
    let silent = switch.with(|agent, around| agent.tick(around, &|_| None));
    assert!(silent.is_empty());
    let heard = controller.read(&mut switch);
    let [(0, Message::FlowRemoved(removed))] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((removed.cookie, removed.seconds), (0x77, 11));
    let packet = Packet::new(&[7; 90], 2);
    switch.agent.packet_in(&PacketForController {
        reason: PacketInReason::NoMatch,
        max_len: 64,
        table: TableId(3),
        cookie: 5,
        packet: &packet,
    });
    let heard = controller.read(&mut switch);
    let [(0, Message::PacketIn(packet_in))] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((packet_in.total_bytes, packet_in.data.len()), (90, 64));
    assert_eq!(packet_in.context.to_string(), "in_port=2");
}

/// A frame of segmentation offload is longer than a message can be.
#[test]
fn the_longest_packet_fits_into_one_message() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let packet = Packet::new(&[7; 66_000], 2);
    switch.agent.packet_in(&PacketForController {
        reason: PacketInReason::Action,
        max_len: u16::MAX,
        table: TableId(0),
        cookie: 0,
        packet: &packet,
    });
    let heard = controller.read(&mut switch);
    let [(0, Message::PacketIn(packet_in))] = &heard[..] else {
        panic!("{} messages", heard.len());
    };
    assert!(packet_in.data.len() > 65_000);
    let echo = Message::EchoRequest(vec![1]);
    assert_eq!(
        controller.ask(&mut switch, &echo),
        [Message::EchoReply(vec![1])]
    );
}

/// An entry with more actions than a message can have is counted, and the others are sent.
#[test]
fn entries_longer_than_a_message_are_counted() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let long = add(1, vec![output(2); 4_096]);
    let changes = [
        pipeline::Message::Flow(long),
        pipeline::Message::Flow(add(2, vec![])),
    ];
    let applied = switch.pipeline.apply(&changes, switch.now);
    applied.expect("as many actions as a packet may take");
    assert_eq!(
        dumped(&mut switch, &mut controller, all_flows()),
        ["in_port=2"]
    );
    assert_eq!(switch.agent.counts(controller.session).unwrap().too_long, 1);
}

#[test]
fn a_silent_controller_is_asked_and_then_reported() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let probe = Some(Duration::from_secs(5));
    switch.now += Duration::from_secs(5);
    assert!(
        switch
            .with(|agent, around| agent.tick(around, &|_| probe))
            .is_empty()
    );
    let asked = controller.read(&mut switch);
    assert_eq!(asked, [(0, Message::EchoRequest(Vec::new()))]);
    controller.send(&mut switch, &Message::EchoReply(Vec::new()));
    switch.now += Duration::from_secs(5);
    assert!(
        switch
            .with(|agent, around| agent.tick(around, &|_| probe))
            .is_empty()
    );
    switch.now += Duration::from_secs(5);
    let silent = switch.with(|agent, around| agent.tick(around, &|_| probe));
    assert_eq!(silent, [controller.session]);
}

/// Random messages of every type leave the agent working, with bounded output for each.
#[test]
fn hostile_messages_leave_the_agent_working() {
    use classyard_conformance::random::{Dice, SeededDice};

    let mut dice = SeededDice::new(5);
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    for number in 0..30_000_u32 {
        let kind = dice.below(32);
        let mut bytes = worlds::message(&mut dice, kind).to_bytes(number);
        if dice.below(2) == 0 {
            let place = 4 + dice.below(bytes.len() - 4);
            bytes[place] = u8::try_from(dice.below(256)).expect("a byte");
        }
        let session = controller.session;
        switch.with(|agent, around| agent.receive(session, &bytes, around));
        for job in switch.agent.take_jobs() {
            let session = switch.agent.job_done(job.number).expect("the session");
            switch.with(|agent, around| agent.proceed(session, around));
        }
        controller.read(&mut switch);
        assert!(switch.agent.take_ended().is_empty());
    }
    let echo = Message::EchoRequest(vec![1]);
    assert_eq!(
        controller.ask(&mut switch, &echo),
        [Message::EchoReply(vec![1])]
    );
}

mod worlds;
