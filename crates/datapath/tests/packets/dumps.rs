//! Texts from practice: output of `ovs-ofctl`, unsupported features, bad files, large
//! files; also that rules and pipelines have the same reader.

use std::sync::Arc;
use std::time::{Duration, Instant};

use classyard::EngineSpec;
use classyard_datapath::flow::{Instructions, TableId};
use classyard_datapath::pipeline::{Message, Pipeline, PortState};
use classyard_datapath::text::{Filled, Problems, fill, read};
use classyard_datapath::{
    Action, Field, FlowMatch, GroupId, MatchField, MeterId, Packet, PortNo, TableSettings,
};
use classyard_workload::diagnostic::{ReadError, ReadOptions};
use classyard_workload::formats::{RuleFormat, read_policy};

use crate::frames::Dice;
use crate::messages::Maker;
use crate::pipelines::Recorder;

const FLOWS: &str = include_str!("../../../../testdata/ovs/flows.dump");
const FLOWS_10: &str = include_str!("../../../../testdata/ovs/flows10.dump");
const GROUPS: &str = include_str!("../../../../testdata/ovs/groups.dump");
const METERS: &str = include_str!("../../../../testdata/ovs/meters.dump");

fn empty() -> Pipeline {
    Pipeline::new(
        TableSettings::new(EngineSpec::parse("forest").unwrap())
            .unwrap()
            .rebuild_below(100),
    )
}

fn with_ports() -> Pipeline {
    let mut pipeline = empty();
    let ports = [1, 2, 3, 4].map(|port| Message::Port(PortNo(port), Some(PortState::default())));
    pipeline.apply(&ports, Duration::ZERO).unwrap();
    pipeline
}

fn filled(text: &str, skip_bad: bool) -> Result<Filled, Problems> {
    fill(empty(), "f", text, skip_bad, Duration::ZERO)
}

#[test]
fn a_dump_is_loaded_as_it_is_printed() {
    // In the usual order of concatenation.
    let text = [FLOWS, GROUPS, METERS].concat();
    let Filled {
        pipeline,
        lines,
        skipped,
        notes,
        ..
    } = filled(&text, false).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(skipped.is_empty());
    assert_eq!(pipeline.flows().len(), 17);
    assert_eq!(pipeline.flows().table(TableId(1)).count(), 2);
    assert_eq!(pipeline.groups().iter().count(), 2);
    assert_eq!(
        notes,
        ["2 ports are called by name and got numbers: eth0.1 = 1, eth1 = 2"]
    );
    for entry in pipeline.flows().iter() {
        let line = text.lines().nth(lines.flow(entry.id).unwrap() - 1).unwrap();
        let priority = format!("priority={}", entry.priority);
        assert!(line.contains(&priority), "{line}");
    }
    assert_eq!(lines.group(GroupId(1)), Some(21));
    assert_eq!(lines.meter(MeterId(2)), Some(26));
    // The messages are written, and read back as the same messages.
    let messages = read(&text).unwrap();
    let written: Vec<String> = messages.iter().map(|one| one.message.to_string()).collect();
    let again = read(&written.join("\n")).unwrap_or_else(|problems| panic!("{problems}"));
    let messages_of = |all: Vec<_>| -> Vec<Message> {
        all.into_iter()
            .map(|one: classyard_datapath::text::Located| one.message)
            .collect()
    };
    assert_eq!(messages_of(messages), messages_of(again));
}

#[test]
fn what_is_not_supported_is_skipped_and_counted_by_reason() {
    let problems = filled(FLOWS_10, false).err().unwrap();
    assert_eq!((problems.total(), problems.can_be_skipped()), (6, true));
    let filled = filled(FLOWS_10, true).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(filled.pipeline.flows().len(), 1);
    let mut reasons = filled.skipped.by_reason();
    assert_eq!(reasons.remove(0), ("unsupported action `resubmit`", 2));
    let normal = reasons.remove(0);
    assert!(
        normal.0.starts_with("normal: this switch") && normal.1 == 1,
        "{normal:?}"
    );
    let expected = [
        ("unsupported action `conjunction`", 1),
        ("unsupported action `learn`", 1),
        ("unsupported field `ct_state`", 1),
    ];
    assert_eq!(reasons, expected);
}

/// A flow that refers to a skipped group is skipped too, and the others are loaded.
#[test]
fn what_the_pipeline_refuses_is_skipped() {
    let mut text = "group_id=1,type=odd\ngroup_id=2,type=all\n".to_owned();
    for number in 0..3_000 {
        let group = if number % 3 == 0 { 1 } else { 2 };
        text.push_str(&format!("priority={number} actions=group:{group}\n"));
    }
    let loaded = filled(&text, true).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.pipeline.flows().len(), 2_000);
    assert_eq!(loaded.skipped.total(), 1_001);
    for entry in loaded.pipeline.flows().iter() {
        assert_eq!(
            loaded.lines.flow(entry.id),
            Some(usize::from(entry.priority) + 3)
        );
    }
    // Without skipping, the first refused line is the problem.
    let text = text.replace("group_id=1,type=odd\n", "\n");
    let problems = filled(&text, false).err().unwrap();
    assert_eq!(problems.total(), 1);
    assert_eq!(problems.shown()[0].line, 3, "{problems}");
}

/// Twenty problems are stored and the others counted, in time proportional to the text.
#[test]
fn bad_lines_cost_no_more_than_good_ones() {
    let text = "x\n".repeat(80_000);
    let began = Instant::now();
    for problems in [
        filled(&text, false).err().unwrap(),
        read(&text).unwrap_err(),
    ] {
        assert_eq!((problems.shown().len(), problems.total()), (20, 80_000));
    }
    let skipped = filled(&text, true).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(skipped.skipped.total(), 80_000);
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

/// Groups may be in any order, also if they form chains.
#[test]
fn groups_are_added_after_those_that_they_refer_to() {
    let mut lines: Vec<String> = vec!["group_id=1,type=all".to_owned()];
    for id in 2..=12 {
        lines.push(format!(
            "group_id={id},type=all,bucket=actions=group:{}",
            id - 1
        ));
    }
    lines.reverse();
    let text = lines.join("\n");
    let loaded = filled(&text, false).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.pipeline.groups().iter().count(), 12);
    assert_eq!(loaded.lines.group(GroupId(12)), Some(1));
    let circle = "group_id=1,type=all,bucket=group:2\ngroup_id=2,type=all,bucket=group:1";
    assert_eq!(filled(circle, false).err().unwrap().total(), 1);
}

#[test]
fn overlapping_flows_and_stray_bits_are_noted() {
    let text = "priority=5,ip,nw_src=10.0.0.1/8 actions=1\npriority=5,tcp,tp_dst=80 actions=2\n\
        priority=4,ip actions=1\ntable=1,priority=5 actions=1\n";
    let notes = filled(text, false)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .notes;
    assert_eq!(
        notes,
        [
            "1 flow has a value with bits outside of its mask; they are ignored",
            "1 pair of flows of equal priority overlaps, such as lines 1 and 2; OpenFlow leaves \
             open which of them wins, here it is the first",
        ]
    );
}

/// The two lower bits are for congestion (ECN). They are not compared, which is noted.
#[test]
fn nw_tos_compares_the_upper_six_bits_only() {
    let stray = "1 flow has a value with bits outside of its mask; they are ignored";
    for (tos, note) in [(184, None), (185, Some(stray)), (187, Some(stray))] {
        let text = format!("priority=5,ip,nw_tos={tos} actions=output:2\n");
        let loaded = fill(with_ports(), "f", &text, false, Duration::ZERO)
            .unwrap_or_else(|problems| panic!("{problems}"));
        assert!(loaded.notes.iter().eq(note.iter()), "{:?}", loaded.notes);
        let mut pipeline = loaded.pipeline;
        let entry = pipeline.flows().iter().next().unwrap();
        let expected = [
            MatchField::exact(Field::EthType, 0x800),
            MatchField::exact(Field::IpDscp, 46),
        ];
        assert_eq!(*entry.flow, FlowMatch::new(expected).unwrap(), "{tos}");
        let mut worker = pipeline.worker();
        for packet_tos in 180..=191 {
            let mut frame = vec![2_u8; 12];
            frame.extend([8, 0, 0x45, packet_tos, 0, 46, 0, 0, 0, 0, 64, 17]);
            frame.resize(60, 0);
            let mut recorder = Recorder::default();
            let mut vector = [Packet::new(&frame, 1)];
            worker.process(&mut vector, Duration::ZERO, &mut recorder);
            let is_sent = recorder.0 == [PortNo(2)];
            assert_eq!(is_sent, packet_tos >> 2 == 46, "{tos}: {packet_tos}");
        }
    }
}

/// Returns a text of flows of table 0 with random matches, priorities and ports, and the
/// packets that the matches were made from.
fn random_outputs(count: usize) -> (String, Vec<Packet>) {
    let mut maker = Maker(Dice(6));
    let (mut text, mut packets) = (String::new(), Vec::new());
    while packets.len() < count {
        let packet = maker.packet();
        let Message::Flow(mut flow) = maker.adding(&packet) else {
            continue;
        };
        flow.table = TableId(0);
        flow.priority = 1 + maker.0.below(count as u64) as u16;
        flow.flags.check_overlap = false;
        flow.instructions = Arc::new(Instructions {
            apply: vec![Action::Output {
                port: PortNo(1 + maker.0.below(4) as u32),
                max_len: 0,
            }],
            ..Instructions::default()
        });
        if !flow.flow.matches_all() {
            text.push_str(&format!("{flow}\n"));
            packets.push(packet);
        }
    }
    (text, packets)
}

/// Engines built once over all entries give the same results as engines that get the
/// entries one by one, and as engines of a pipeline that has a worker during filling.
#[test]
fn a_filled_pipeline_forwards_as_if_entries_came_one_by_one() {
    let (text, packets) = random_outputs(600);
    let mut single = with_ports();
    for one in read(&text).unwrap() {
        // Some entries have too many fields for one table.
        let _ = single.apply(&[one.message], Duration::ZERO);
    }
    let mut filled = fill(with_ports(), "f", &text, true, Duration::ZERO).unwrap();
    let mut busy = with_ports();
    let busy_worker = busy.worker();
    let busy = fill(busy, "f", &text, true, Duration::ZERO).unwrap();
    let mut workers = [single.worker(), filled.pipeline.worker(), busy_worker];
    let mut forwarded = 0;
    for packet in packets {
        let sent = workers.each_mut().map(|worker| {
            let mut recorder = Recorder::default();
            let mut vector = [packet.clone()];
            worker.process(&mut vector, Duration::ZERO, &mut recorder);
            recorder.0
        });
        assert!(sent.iter().all(|one| *one == sent[0]), "{sent:?}");
        forwarded += sent[0].len();
    }
    assert!(forwarded > 200, "{forwarded}");
    for entry in single.flows().iter() {
        let count = single.flow_count(entry.id);
        assert_eq!(filled.pipeline.flow_count(entry.id), count, "{entry:?}");
        assert_eq!(busy.pipeline.flow_count(entry.id), count, "{entry:?}");
    }
}

/// Filling a pipeline adds the same entries as one bundle.
#[test]
fn filling_and_loading_make_the_same_pipeline() {
    let mut maker = Maker(Dice(5));
    let mut text = String::new();
    for _ in 0..3_000 {
        let packet = maker.packet();
        let line = maker.adding(&packet).to_string();
        if read(&line).is_ok() && line.starts_with("table=") {
            text.push_str(&line);
            text.push('\n');
        }
    }
    let filled = filled(&text, true).unwrap_or_else(|problems| panic!("{problems}"));
    // One by one, without the refused messages.
    let mut whole = empty();
    let mut refused = 0;
    for one in read(&text).unwrap_or_else(|problems| panic!("{problems}")) {
        refused += usize::from(whole.apply(&[one.message], Duration::ZERO).is_err());
    }
    let entries = |pipeline: &Pipeline| -> Vec<String> {
        pipeline
            .flows()
            .iter()
            .map(|entry| format!("{entry:?}"))
            .collect()
    };
    assert_eq!(entries(&filled.pipeline), entries(&whole));
    assert_eq!(filled.skipped.total(), refused);
    assert!(
        whole.flows().len() > 50 && refused > 50,
        "{} {refused}",
        whole.flows().len()
    );
}

/// A wrong flow has the same problem as a rule and as an entry, since both have the same
/// reader.
#[test]
fn rules_and_pipelines_say_the_same_about_a_line() {
    for line in [
        "ip,nw_dst=10.0.0.0/8",
        "ip,foo=1 actions=1",
        "ip,bar actions=1",
        "nw_dst=10.0.0.1 actions=1",
        "tp_dst=1 actions=1",
        "ip,nw_dst=10.0.0.0/33 actions=1",
        "ip,nw_dst=10.0.0 actions=1",
        "tcp,tp_dst=65536 actions=1",
        "tcp,tcp_dst=5,tcp_dst=6 actions=1",
        "ip,arp actions=1",
        "priority=65536 actions=1",
        "icmp,icmp_type=8/0xf actions=1",
        "in_port=\"a actions=1",
        "dl_dst=1 actions=1",
        "delete ip",
        "vlan_tci=0x10000 actions=1",
        "ip,actions=",
    ] {
        let pipeline = read(line).expect_err(line);
        let rules = read_policy(
            "f",
            line,
            Some(RuleFormat::Ovs),
            None,
            &ReadOptions::DEFAULT,
        );
        let Err(ReadError::Bad(rules)) = rules else {
            panic!("{line}: {rules:?}");
        };
        assert_eq!(pipeline.shown(), rules.shown(), "{line}");
    }
}
