//! The limits of one packet's work: chains of groups, fan-outs, lists of actions. Each of
//! these inputs once stopped a worker, so most tests only have to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::{Command, FlowMod, Instructions, TableId};
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::limits::{
    LimitCounts, MAX_GROUP_DEPTH, MAX_PACKET_ACTIONS, MAX_PACKET_COPIES, PacketLimit,
};
use classyard_datapath::pipeline::KINDS;
use classyard_datapath::pipeline::{
    CacheSettings, Message, PacketInReason, Pipeline, PortState, Sink, Step, Worker,
};
use classyard_datapath::{Action, ErrorCode, FlowMatch, GroupId, Packet, PortNo, TableSettings};

const NOW: Duration = Duration::ZERO;

pub(crate) fn pipeline() -> Pipeline {
    let engine = EngineSpec::parse("forest").unwrap();
    let mut pipeline = Pipeline::new(TableSettings::new(engine).unwrap());
    let ports = [1, 2, 3].map(|port| Message::Port(PortNo(port), Some(PortState::default())));
    pipeline.apply(&ports, NOW).unwrap();
    pipeline
}

/// Counts all packets that are sent.
#[derive(Default)]
pub(crate) struct Sent(pub(crate) u32);

impl Sink for Sent {
    fn send(&mut self, _: PortNo, _: Option<u32>, _: &Packet) {
        self.0 += 1;
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), _: &Packet) {
        self.0 += 1;
    }
}

pub(crate) fn sent(worker: &mut Worker) -> u32 {
    let mut sink = Sent::default();
    worker.process(&mut [Packet::new(&[0; 60], 1)], NOW, &mut sink);
    sink.0
}

pub(crate) fn output(port: PortNo) -> Action {
    Action::Output { port, max_len: 0 }
}

pub(crate) fn bucket(actions: &[Action]) -> Bucket {
    Bucket {
        actions: actions.to_vec(),
        ..Bucket::default()
    }
}

pub(crate) fn group(id: u32, kind: GroupType, buckets: Vec<Bucket>) -> Message {
    let id = GroupId(id);
    Message::Group(GroupMod {
        command: GroupCommand::Add,
        group: Group { id, kind, buckets },
    })
}

pub(crate) fn to(id: u32) -> Action {
    Action::Group(GroupId(id))
}

/// Returns an entry of the first table for all packets.
pub(crate) fn entry(instructions: Instructions) -> Message {
    let mut message = FlowMod::new(Command::Add, FlowMatch::default());
    message.instructions = Arc::new(instructions);
    Message::Flow(message)
}

fn applying(apply: Vec<Action>) -> Message {
    entry(Instructions {
        apply,
        ..Instructions::default()
    })
}

/// Returns a chain of groups; the first group sends packets out.
fn chain(length: u32) -> Vec<Message> {
    let groups = (0..length).map(|id| {
        let action = match id {
            0 => output(PortNo(2)),
            _ => to(id - 1),
        };
        group(id, GroupType::Indirect, vec![bucket(&[action])])
    });
    groups.collect()
}

#[test]
fn a_chain_of_groups_has_a_greatest_length() {
    let mut pipeline = pipeline();
    let refused = pipeline.apply(&chain(13_000), NOW).unwrap_err();
    assert_eq!(refused.error().code(), ErrorCode::ChainingUnsupported);
    assert_eq!(refused.index(), MAX_GROUP_DEPTH);
    assert_eq!(pipeline.groups().iter().len(), 0, "nothing is half made");
    let depth = u32::try_from(MAX_GROUP_DEPTH).unwrap();
    pipeline.apply(&chain(depth), NOW).unwrap();
    pipeline
        .apply(&[applying(vec![to(depth - 1)])], NOW)
        .unwrap();
    assert_eq!(sent(&mut pipeline.worker()), 1);
    // A new group at the end makes the chains of the groups before it longer.
    let below = group(depth, GroupType::All, vec![bucket(&[output(PortNo(3))])]);
    let Message::Group(longer) = group(0, GroupType::All, vec![bucket(&[to(depth)])]) else {
        unreachable!("a group");
    };
    let longer = GroupMod {
        command: GroupCommand::Modify,
        ..longer
    };
    let refused = pipeline.apply(&[below, Message::Group(longer)], NOW);
    let refused = refused.unwrap_err();
    assert_eq!(refused.index(), 1);
    assert_eq!(refused.error().code(), ErrorCode::ChainingUnsupported);
    let message = refused.error().to_string();
    assert!(message.contains("at most 32"), "{message}");
    assert_eq!(sent(&mut pipeline.worker()), 1);
}

/// Returns groups that each double the packets of the group before.
fn doubling(groups: u32) -> impl Iterator<Item = Message> {
    (0..groups).map(|id| {
        let action = match id {
            0 => output(PortNo(2)),
            _ => to(id - 1),
        };
        group(
            id,
            GroupType::All,
            vec![bucket(&[action]), bucket(&[action])],
        )
    })
}

#[test]
fn groups_that_double_packets_are_refused_where_they_take_too_much() {
    let mut pipeline = pipeline();
    let messages: Vec<Message> = doubling(40).collect();
    let refused = pipeline.apply(&messages, NOW).unwrap_err();
    assert_eq!(refused.error().code(), ErrorCode::OutOfBuckets);
    let fitting = u32::try_from(refused.index()).unwrap();
    pipeline.apply(&messages[..refused.index()], NOW).unwrap();
    let actions = pipeline.groups().actions(GroupId(fitting - 1)).unwrap();
    assert!(actions <= u64::from(MAX_PACKET_ACTIONS));
    pipeline
        .apply(&[applying(vec![to(fitting - 1)])], NOW)
        .unwrap();
    assert_eq!(sent(&mut pipeline.worker()), 1 << fitting);
    assert_eq!(pipeline.limit_counts(), LimitCounts::default());
    // Two such groups in one list exceed the limit of a packet.
    let twice = applying(vec![to(fitting - 1); 2]);
    let refused = pipeline.apply(&[twice], NOW).unwrap_err();
    assert_eq!(refused.error().code(), ErrorCode::TooManyActions);
}

/// Returns a worker with all caches, and a worker without caches.
fn workers(pipeline: &mut Pipeline) -> [Worker; 2] {
    let kind = *KINDS.last().unwrap();
    let settings = CacheSettings::new().seed(1).microflows(kind, 64).unwrap();
    [pipeline.worker(), pipeline.cached_worker(settings)]
}

#[test]
fn a_packet_that_reaches_a_limit_on_its_way_is_dropped_and_counted() {
    let flood = output(PortNo::FLOOD);
    let floods = usize::try_from(MAX_PACKET_COPIES).unwrap() / 2 + 1;
    let later = Instructions {
        apply: vec![output(PortNo(2)); 3],
        ..Instructions::default()
    };
    let cases = [
        // Two groups, in the list and in the action set. The second stops halfway;
        // packets sent before stay sent.
        (
            Instructions {
                apply: vec![to(8)],
                write: vec![to(9)],
                ..Instructions::default()
            },
            PacketLimit::Actions,
            512 + 512,
        ),
        // A list of the maximum length, and further actions in the next table.
        (
            Instructions {
                apply: vec![output(PortNo(2)); MAX_PACKET_ACTIONS as usize],
                goto_table: Some(TableId(1)),
                ..Instructions::default()
            },
            PacketLimit::Actions,
            MAX_PACKET_ACTIONS,
        ),
        // Few actions that send two packets each.
        (
            Instructions {
                apply: vec![flood; floods],
                ..Instructions::default()
            },
            PacketLimit::Copies,
            MAX_PACKET_COPIES,
        ),
    ];
    for (instructions, limit, expected) in cases {
        let mut pipeline = pipeline();
        let messages: Vec<Message> = doubling(10).collect();
        pipeline.apply(&messages, NOW).unwrap();
        let mut second = FlowMod::new(Command::Add, FlowMatch::default());
        second.table = TableId(1);
        second.instructions = Arc::new(later.clone());
        let first = entry(instructions);
        pipeline
            .apply(&[Message::Flow(second), first], NOW)
            .unwrap();
        for mut worker in workers(&mut pipeline) {
            for _ in 0..4 {
                let before = pipeline.limit_counts();
                assert_eq!(sent(&mut worker), expected, "{limit}");
                let after = pipeline.limit_counts();
                assert_eq!(after.get(limit), before.get(limit) + 1);
                assert_eq!(
                    after.actions + after.copies,
                    before.actions + before.copies + 1
                );
            }
        }
        let counted: u64 = pipeline
            .flows()
            .iter()
            .map(|entry| pipeline.flow_count(entry.id).packets)
            .sum();
        let tables = [0, 1].map(|table| pipeline.table_count(TableId(table)).matched);
        assert_eq!(
            counted,
            tables.iter().sum::<u64>(),
            "entries and tables count alike"
        );
        let story = pipeline.trace(&Packet::new(&[0; 60], 1), NOW, 0);
        assert!(story.steps.contains(&Step::Limited(limit)), "{limit}");
    }
}

#[test]
fn long_lists_are_refused_and_the_longest_is_carried_out() {
    let mut pipeline = pipeline();
    let outputs = |count: u32| vec![output(PortNo(2)); count as usize];
    for count in [16_000, MAX_PACKET_ACTIONS + 1] {
        let apply = applying(outputs(count));
        let write = entry(Instructions {
            write: outputs(count),
            ..Instructions::default()
        });
        let buckets = vec![bucket(&outputs(count))];
        for message in [apply, write, group(1, GroupType::All, buckets)] {
            let refused = pipeline.apply(&[message], NOW).unwrap_err();
            assert_eq!(refused.error().code(), ErrorCode::TooManyActions);
            let text = refused.to_string();
            assert!(text.contains("at most 4096 are possible"), "{text}");
        }
        let executed = pipeline.worker().execute(
            &outputs(count),
            &Packet::new(&[0; 60], 1),
            NOW,
            &mut Sent::default(),
        );
        assert_eq!(executed.unwrap_err().code(), ErrorCode::TooManyActions);
    }
    pipeline
        .apply(&[applying(outputs(MAX_PACKET_ACTIONS))], NOW)
        .unwrap();
    for mut worker in workers(&mut pipeline) {
        assert_eq!(sent(&mut worker), MAX_PACKET_ACTIONS);
        assert_eq!(sent(&mut worker), MAX_PACKET_ACTIONS);
    }
}

/// Returns groups that each watch the group before twice; the first watches a port.
fn watching(groups: u32) -> Vec<Message> {
    let groups = (0..groups).map(|id| {
        let mut one = bucket(&[output(PortNo(3))]);
        match id {
            0 => one.watch_port = Some(PortNo(2)),
            _ => one.watch_group = Some(GroupId(id - 1)),
        }
        group(id, GroupType::FastFailover, vec![one.clone(), one])
    });
    groups.collect()
}

#[test]
fn groups_that_watch_each_other_are_as_live_as_the_port_at_the_end() {
    for count in [24, 13_000] {
        let mut pipeline = pipeline();
        pipeline.apply(&watching(count), NOW).unwrap();
        pipeline
            .apply(&[applying(vec![to(count - 1)])], NOW)
            .unwrap();
        let mut worker = pipeline.worker();
        for is_up in [true, false, true] {
            let state = PortState {
                is_up,
                ..PortState::default()
            };
            let port = Message::Port(PortNo(2), Some(state));
            pipeline.apply(&[port], NOW).unwrap();
            assert_eq!(sent(&mut worker), u32::from(is_up));
        }
        // From the last to the first, so that no remaining group watches the deleted one.
        for id in (0..count).rev() {
            let delete = Message::Group(GroupMod::delete(GroupId(id)));
            pipeline.apply(&[delete], NOW).unwrap();
        }
        assert_eq!(sent(&mut worker), 0);
        assert!(pipeline.flows().is_empty());
    }
}

#[test]
fn changes_end_beside_a_worker_whose_groups_are_at_their_bounds() {
    const CHANGES: usize = 100;
    const VECTOR: u32 = 16;
    let mut pipeline = pipeline();
    let messages: Vec<Message> = doubling(40).collect();
    let refused = pipeline.apply(&messages, NOW).unwrap_err();
    let fitting = u32::try_from(refused.index()).unwrap();
    pipeline.apply(&messages[..refused.index()], NOW).unwrap();
    pipeline
        .apply(&[applying(vec![to(fitting - 1)])], NOW)
        .unwrap();
    // The group at the end has one bucket or two, for half of the copies or for all.
    let change = |buckets: usize| {
        let buckets = vec![bucket(&[output(PortNo(2))]); buckets];
        let Message::Group(message) = group(0, GroupType::All, buckets) else {
            unreachable!("a group");
        };
        Message::Group(GroupMod {
            command: GroupCommand::Modify,
            ..message
        })
    };
    let copies = [1_u32, 2].map(|buckets| buckets << (fitting - 1));
    let stop = AtomicBool::new(false);
    let (first_vector, running) = mpsc::channel();
    let mut worker = pipeline.worker();
    let (applied, vectors) = std::thread::scope(|scope| {
        let stop = &stop;
        let thread = scope.spawn(move || {
            let mut vectors = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let mut packets = vec![Packet::new(&[0; 60], 1); VECTOR as usize];
                let mut sink = Sent::default();
                worker.process(&mut packets, NOW, &mut sink);
                let is_whole = copies.map(|copies| copies * VECTOR).contains(&sink.0);
                assert!(is_whole, "{} copies: one version for a vector", sink.0);
                vectors += 1;
                if vectors == 1 {
                    first_vector.send(()).unwrap();
                }
            }
            vectors
        });
        running.recv().unwrap();
        let changes = (1..=CHANGES).map(|number| change(1 + number % 2));
        let applied = changes.filter(|message| {
            let message = std::slice::from_ref(message);
            pipeline.apply(message, NOW).is_ok()
        });
        let applied = applied.count();
        stop.store(true, Ordering::Relaxed);
        (applied, thread.join().unwrap())
    });
    assert_eq!(applied, CHANGES);
    assert!(vectors > 0);
    let matched = pipeline.table_count(TableId(0)).matched;
    assert_eq!(matched, vectors * u64::from(VECTOR));
    assert_eq!(pipeline.limit_counts(), LimitCounts::default());
    for buckets in [2, 1] {
        pipeline.apply(&[change(buckets)], NOW).unwrap();
        assert_eq!(sent(&mut pipeline.worker()), copies[buckets - 1]);
    }
}
