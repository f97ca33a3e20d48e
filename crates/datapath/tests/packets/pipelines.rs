//! Pipelines: cases that the comparison with the reference interpreter
//! (`crates/reference/tests/equivalence`) does not cover by name, and regressions that it
//! found.

use std::sync::Arc;
use std::time::Duration;

use classyard::{EngineSpec, RuleId};
use classyard_datapath::flow::{
    Command, FlowChange, FlowMod, Instructions, RemovalReason, TableId,
};
use classyard_datapath::group::{Group, GroupChange, GroupCommand, GroupMod, GroupType};
use classyard_datapath::meter::{MeterCommand, MeterMod};
use classyard_datapath::pipeline::{
    Change, Count, Message, PacketInReason, Pipeline, PortState, Sink,
};
use classyard_datapath::text::{load, read};
use classyard_datapath::{
    Action, ErrorCode, FlowMatch, GroupId, MeterId, Packet, PortNo, TableSettings,
};

/// Records the ports of sent packets.
#[derive(Default)]
pub(crate) struct Recorder(pub(crate) Vec<PortNo>);

impl Sink for Recorder {
    fn send(&mut self, port: PortNo, _: Option<u32>, _: &Packet) {
        self.0.push(port);
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), _: &Packet) {}
}

fn settings(engine: &str) -> TableSettings {
    let engine = EngineSpec::parse(engine).unwrap();
    TableSettings::new(engine).unwrap().rebuild_below(30)
}

/// Returns the message of a line of text.
fn line(text: &str) -> Message {
    match &read(text).unwrap()[..] {
        [one] => one.message.clone(),
        _ => unreachable!("one line"),
    }
}

#[test]
fn counters_begin_at_0_where_a_change_says_so() {
    let mut pipeline = Pipeline::new(settings("forest"));
    let mut worker = pipeline.worker();
    let apply = |pipeline: &mut Pipeline, message: Message| {
        pipeline.apply(&[message], Duration::ZERO).unwrap();
    };
    let mut process = || {
        let (mut packets, mut sink) = ([Packet::new(&[0; 60], 1)], Recorder::default());
        worker.process(&mut packets, Duration::from_secs(5), &mut sink);
    };
    let (flow, group) = (RuleId::from_index(0), GroupId(1));
    let one = Count {
        packets: 1,
        bytes: 60,
    };
    apply(&mut pipeline, line("group_id=1,type=all"));
    apply(&mut pipeline, line("in_port=1 actions=group:1"));
    assert_eq!(pipeline.flow_count(flow), Count::default());
    assert_eq!(pipeline.last_match(flow), None);
    process();
    assert_eq!(pipeline.flow_count(flow), one);
    assert_eq!(pipeline.last_match(flow), Some(Duration::from_secs(5)));
    assert_eq!(pipeline.group_count(group).all, one);
    // A replacing entry keeps the counts, unless its message resets them.
    apply(&mut pipeline, line("in_port=1,cookie=7 actions=drop"));
    assert_eq!(pipeline.flow_count(flow), one);
    apply(
        &mut pipeline,
        line("in_port=1,reset_counts actions=group:1"),
    );
    assert_eq!(pipeline.flow_count(flow), Count::default());
    assert_eq!(pipeline.group_count(group).all, one);
    process();
    let delete = Message::Group(GroupMod::delete(GroupId::ALL));
    apply(&mut pipeline, delete);
    assert_eq!(pipeline.flows().len(), 0, "it went with its group");
    let removed = pipeline.collect_removed();
    assert_eq!(removed.len(), 1);
    assert_eq!(
        (removed[0].reason, removed[0].count),
        (RemovalReason::GroupDelete, one)
    );
    // A new entry with the same id starts at 0, and so does a group.
    apply(&mut pipeline, line("group_id=1,type=all"));
    apply(&mut pipeline, line("in_port=2 actions=drop"));
    assert_eq!(pipeline.flows().get(flow).map(|entry| entry.id), Some(flow));
    assert_eq!(pipeline.flow_count(flow), Count::default());
    assert_eq!(pipeline.group_count(group).all, Count::default());
}

#[test]
fn a_flow_that_no_engine_takes_is_the_one_that_is_named() {
    let lines = [
        "table=3 actions=drop",
        "table=3,ipv6,ipv6_src=::1,ipv6_dst=::1 actions=drop",
        "group_id=1,type=all",
        "table=3,eth_src=01:00:00:00:00:00,eth_dst=01:00:00:00:00:00,tun_id=1,metadata=1,reg0=1,reg1=1,reg2=1,\
         reg3=1,reg4=1,reg5=1,reg6=1,reg7=1,reg8=1,reg9=1,reg10=1,reg11=1,reg12=1,reg13=1,reg14=1,\
         reg15=1 actions=drop",
        "table=4 actions=drop",
        "table=3,icmp6,icmpv6_type=135,nd_target=::1 actions=drop",
        "table=5 actions=drop",
    ];
    let mut pipeline = Pipeline::new(settings("forest"));
    let problems = load(&lines.join("\n"), &mut pipeline, Duration::ZERO).unwrap_err();
    assert_eq!(problems.shown()[0].line, 6, "{}", problems.shown()[0]);
    assert!(
        problems.shown()[0].found.contains("FMFC_TABLE_FULL"),
        "{}",
        problems.shown()[0]
    );
    assert_eq!(
        (pipeline.flows().len(), pipeline.groups().iter().len()),
        (0, 0)
    );
    // Without that line the others fit.
    let others = [&lines[..5], &lines[6..]].concat().join("\n");
    assert_eq!(
        load(&others, &mut pipeline, Duration::ZERO).unwrap().len(),
        6
    );
}

#[test]
fn a_group_that_is_deleted_takes_its_flow_entries_along() {
    let mut pipeline = Pipeline::new(settings("forest"));
    let add = |priority: u16, action: Action| {
        let mut message = FlowMod::new(Command::Add, FlowMatch::default());
        message.priority = priority;
        message.instructions = Arc::new(Instructions {
            apply: vec![action],
            ..Instructions::default()
        });
        Message::Flow(message)
    };
    let group = |command| {
        Message::Group(GroupMod {
            command,
            group: Group {
                id: GroupId(1),
                kind: GroupType::All,
                buckets: Vec::new(),
            },
        })
    };
    let to_group = || add(9, Action::Group(GroupId(1)));
    let elsewhere = || {
        add(
            8,
            Action::Output {
                port: PortNo(1),
                max_len: 0,
            },
        )
    };
    let refused = pipeline.apply(&[elsewhere(), to_group()], Duration::ZERO);
    let refused = refused.unwrap_err();
    let (number, error) = (refused.index(), refused.error());
    assert_eq!((number, error.code()), (1, ErrorCode::BadOutGroup));
    assert_eq!(pipeline.flows().len(), 0, "the first message is taken back");
    let bundle = [elsewhere(), group(GroupCommand::Add), to_group()];
    assert_eq!(pipeline.apply(&bundle, Duration::ZERO).unwrap().len(), 3);
    let changes = pipeline.apply(&[group(GroupCommand::Delete)], Duration::ZERO);
    let changes = changes.unwrap();
    let [
        Change::Group(GroupChange::Removed(_), _),
        Change::Flow(gone),
    ] = &changes[..]
    else {
        panic!("{changes:?}");
    };
    assert!(
        matches!(gone, FlowChange::Removed(entry, RemovalReason::GroupDelete) if entry.priority == 9)
    );
    assert_eq!(pipeline.flows().len(), 1);
}

/// Returns the pipeline after messages, and the output ports of a packet from port 1.
fn sent(messages: &[Message]) -> (Pipeline, Vec<PortNo>) {
    let mut pipeline = Pipeline::new(settings("linear"));
    pipeline.apply(messages, Duration::ZERO).unwrap();
    let mut recorder = Recorder::default();
    let mut packets = [Packet::new(&[0; 60], 1)];
    let mut worker = pipeline.worker();
    worker.process(&mut packets, Duration::ZERO, &mut recorder);
    (pipeline, recorder.0)
}

#[test]
fn the_local_port_is_among_all_ports() {
    let port = |port| Message::Port(port, Some(PortState::default()));
    for action in ["all", "flood"] {
        let ports = [port(PortNo(1)), port(PortNo(2)), port(PortNo::LOCAL)];
        let entry = line(&format!("actions={action}"));
        let messages = [&ports[..], &[entry]].concat();
        assert_eq!(sent(&messages).1, [PortNo(2), PortNo::LOCAL], "{action}");
    }
}

#[test]
fn buckets_and_bands_of_a_modification_count_from_0() {
    let group = line("group_id=1,type=all,bucket=actions=output:1,bucket=actions=output:2");
    let meter = line("meter=1,pktps,burst,bands=type=dscp_remark,rate=1,prec_level=1,burst_size=1");
    let entry = line("actions=meter:1,group:1");
    let (mut pipeline, _) = sent(&[group.clone(), meter.clone(), entry]);
    let mut worker = pipeline.worker();
    let mut packets = [Packet::new(&[0; 60], 1)];
    worker.process(&mut packets, Duration::ZERO, &mut Recorder::default());
    let both = Count {
        packets: 2,
        bytes: 120,
    };
    let before = pipeline.group_count(GroupId(1));
    assert_eq!((before.all, before.buckets), (both, vec![both; 2]));
    let before = pipeline.meter_count(MeterId(1));
    assert_eq!((before.all, before.bands[0].packets), (both, 1));
    let (Message::Group(group), Message::Meter(meter)) = (group, meter) else {
        unreachable!("a group and a meter");
    };
    let modify = [
        Message::Group(GroupMod {
            command: GroupCommand::Modify,
            ..group
        }),
        Message::Meter(MeterMod {
            command: MeterCommand::Modify,
            ..meter
        }),
    ];
    pipeline.apply(&modify, Duration::ZERO).unwrap();
    let after = pipeline.group_count(GroupId(1));
    assert_eq!(
        (after.all, after.buckets),
        (both, vec![Count::default(); 2])
    );
    let after = pipeline.meter_count(MeterId(1));
    assert_eq!((after.all, after.bands), (both, vec![Count::default()]));
}

#[test]
fn instructions_of_a_deletion_say_nothing() {
    let mut pipeline = Pipeline::new(settings("linear"));
    let mut deletion = FlowMod::new(Command::Delete { strict: false }, FlowMatch::default());
    deletion.instructions = Arc::new(Instructions {
        meter: Some(MeterId(9)),
        apply: vec![Action::Group(GroupId(9))],
        ..Instructions::default()
    });
    let made = pipeline.apply(&[Message::Flow(deletion)], Duration::ZERO);
    assert!(made.unwrap().is_empty());
}

#[test]
fn every_action_that_is_written_is_checked() {
    let mut pipeline = Pipeline::new(settings("linear"));
    let output = |port| Action::Output { port, max_len: 0 };
    let mut message = FlowMod::new(Command::Add, FlowMatch::default());
    message.instructions = Arc::new(Instructions {
        // The second output replaces the first one in an action set.
        write: vec![output(PortNo::ANY), output(PortNo(1))],
        ..Instructions::default()
    });
    let made = pipeline.apply(&[Message::Flow(message)], Duration::ZERO);
    assert_eq!(made.unwrap_err().error().code(), ErrorCode::BadOutPort);
}

#[test]
fn a_packet_has_its_port_as_the_physical_one_as_well() {
    let port = Message::Port(PortNo(2), Some(PortState::default()));
    let entry = line("in_port=1,in_phy_port=1 actions=output:2");
    assert_eq!(sent(&[port, entry]).1, [PortNo(2)]);
}
