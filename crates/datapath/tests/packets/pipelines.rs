//! Pipelines against a model that takes one packet at a time through lists of
//! entries, as the text of OpenFlow says. It has matches and single changes of
//! packets in common with the pipeline; these have tests of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use classyard::{EngineSpec, RuleId};
use classyard_datapath::action::check;
use classyard_datapath::field::VLAN_PRESENT;
use classyard_datapath::flow::{
    Command, FlowChange, FlowEntry, FlowMod, Instructions, RemovalReason, TableId,
};
use classyard_datapath::group::{Bucket, Group, GroupChange, GroupCommand, GroupMod, GroupType};
use classyard_datapath::pipeline::{
    Change, Count, GroupCount, Message, PacketInReason, Pipeline, PortState, Sink, TableCount,
    Worker, flow_hash,
};
use classyard_datapath::text::{load, read};
use classyard_datapath::{
    Action, ErrorCode, Field, FieldValue, FlowMatch, GroupId, Packet, PortNo, TableSettings,
};

use crate::frames::{Dice, damaged, whole};
use crate::matching::random_match;

/// The register that has a packet's place in its vector.
const TAG: Field = Field::Reg15;

/// What came out for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Sent(PortNo, Option<u32>, Vec<u8>),
    Controller(PacketInReason, u16, TableId, u64, Vec<u8>),
}

#[derive(Default)]
struct Recorder(BTreeMap<u128, Vec<Event>>);

impl Recorder {
    fn record(&mut self, packet: &Packet, event: Event) {
        let tag = packet.key().get(TAG);
        self.0.entry(tag).or_default().push(event);
    }
}

impl Sink for Recorder {
    fn send(&mut self, port: PortNo, queue: Option<u32>, packet: &Packet) {
        let bytes = packet.bytes().to_vec();
        self.record(packet, Event::Sent(port, queue, bytes));
    }

    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        (table, cookie): (TableId, u64),
        packet: &Packet,
    ) {
        let bytes = packet.bytes().to_vec();
        let event = Event::Controller(reason, max_len, table, cookie, bytes);
        self.record(packet, event);
    }
}

/// The model.
struct Model<'m> {
    entries: Vec<&'m FlowEntry>,
    groups: BTreeMap<GroupId, &'m Group>,
    ports: &'m BTreeMap<PortNo, PortState>,
    recorder: Recorder,
    flows: BTreeMap<RuleId, Count>,
    tables: BTreeMap<TableId, (u64, u64)>,
    group_counts: BTreeMap<(GroupId, Option<usize>), Count>,
}

/// A packet, what is known of its way, and its queue.
struct Walk {
    table: TableId,
    cookie: u64,
    reason: PacketInReason,
    queue: Option<u32>,
}

fn since(after: Count, before: Count) -> Count {
    Count {
        packets: after.packets - before.packets,
        bytes: after.bytes - before.bytes,
    }
}

fn add(count: &mut Count, packet: &Packet) {
    count.packets += 1;
    count.bytes += packet.bytes().len() as u64;
}

/// The place of an action in an action set (§5.10).
fn rank(action: &Action) -> (u8, u8) {
    match action {
        Action::CopyTtlIn => (1, 0),
        Action::PopVlan => (2, 0),
        Action::PopMpls(_) => (2, 1),
        Action::PushMpls(_) => (3, 0),
        Action::PushVlan(_) => (5, 0),
        Action::CopyTtlOut => (6, 0),
        Action::DecrementMplsTtl => (7, 0),
        Action::DecrementTtl => (7, 1),
        Action::SetMplsTtl(_) => (8, 0),
        Action::SetTtl(_) => (8, 1),
        Action::SetField(value) => (8, 2 + value.field.index() as u8),
        Action::SetQueue(_) => (9, 0),
        Action::Group(_) => (10, 0),
        Action::Output { .. } => (11, 0),
    }
}

/// Adds actions to a set.
fn write(set: &mut Vec<Action>, actions: &[Action]) {
    for action in actions {
        set.retain(|other| rank(other) != rank(action));
        set.push(*action);
    }
}

/// The actions of a set as they are carried out.
fn ordered(set: &[Action]) -> Vec<Action> {
    let mut set = set.to_vec();
    set.sort_by_key(rank);
    if set.iter().any(|action| matches!(action, Action::Group(_))) {
        set.retain(|action| !matches!(action, Action::Output { .. }));
    }
    set
}

impl Model<'_> {
    fn run(&mut self, packet: &mut Packet) {
        let own = PortNo(packet.key().get(Field::InPort) as u32);
        if self.ports.get(&own).is_some_and(|state| state.no_receive) {
            return;
        }
        let mut set = Vec::new();
        let mut table = TableId(0);
        let mut queue = None;
        loop {
            let counts = self.tables.entry(table).or_default();
            counts.0 += 1;
            let here = self.entries.iter().filter(|entry| entry.table == table);
            let matching = here.filter(|entry| entry.flow.matches(packet.key()));
            // The highest priority, then the lowest number.
            let best = matching.min_by_key(|entry| (u16::MAX - entry.priority, entry.id));
            let Some(&entry) = best else {
                return;
            };
            counts.1 += 1;
            add(self.flows.entry(entry.id).or_default(), packet);
            let is_miss = entry.priority == 0 && entry.flow.values().is_empty();
            let mut walk = Walk {
                table,
                cookie: entry.cookie,
                reason: match is_miss {
                    true => PacketInReason::NoMatch,
                    false => PacketInReason::Action,
                },
                queue,
            };
            let instructions = Arc::clone(&entry.instructions);
            if !self.list(&instructions.apply, packet, &mut walk) {
                return;
            }
            if instructions.clear {
                set.clear();
            }
            write(&mut set, &instructions.write);
            if let Some((value, mask)) = instructions.metadata {
                packet.write_metadata(value, mask);
            }
            match instructions.goto_table {
                Some(next) => (table, queue) = (next, walk.queue),
                None => {
                    self.list(&ordered(&set), packet, &mut walk);
                    return;
                }
            }
        }
    }

    /// Carries actions out; whether the packet is still there.
    fn list(&mut self, actions: &[Action], packet: &mut Packet, walk: &mut Walk) -> bool {
        for action in actions {
            match action {
                Action::Output { port, max_len } => self.output(*port, *max_len, packet, walk),
                Action::Group(id) => self.group(*id, packet, walk),
                Action::SetQueue(queue) => walk.queue = Some(*queue),
                other => {
                    if other.change(packet).is_err() {
                        let reason = PacketInReason::InvalidTtl;
                        let from = (walk.table, walk.cookie);
                        self.recorder.to_controller(reason, u16::MAX, from, packet);
                        return false;
                    }
                }
            }
        }
        true
    }

    fn output(&mut self, port: PortNo, max_len: u16, packet: &Packet, walk: &Walk) {
        let own = PortNo(packet.key().get(Field::InPort) as u32);
        if port == PortNo::CONTROLLER {
            let from = (walk.table, walk.cookie);
            self.recorder
                .to_controller(walk.reason, max_len, from, packet);
            return;
        }
        for (&number, state) in self.ports {
            let is_meant = match port {
                PortNo::IN_PORT => number == own,
                PortNo::ALL => number != own,
                PortNo::FLOOD => number != own && !state.no_flood,
                port => number == port && number != own,
            };
            if is_meant && state.is_up && !state.no_forward {
                self.recorder.send(number, walk.queue, packet);
            }
        }
    }

    fn is_live(&self, bucket: &Bucket) -> bool {
        if bucket.watch_port.is_none() && bucket.watch_group.is_none() {
            return true;
        }
        let port = bucket.watch_port.and_then(|port| self.ports.get(&port));
        let group = bucket.watch_group.and_then(|id| self.groups.get(&id));
        port.is_some_and(|state| state.is_up)
            || group.is_some_and(|group| group.buckets.iter().any(|bucket| self.is_live(bucket)))
    }

    fn group(&mut self, id: GroupId, packet: &Packet, walk: &Walk) {
        let group = self.groups[&id];
        add(self.group_counts.entry((id, None)).or_default(), packet);
        let live: Vec<usize> = (0..group.buckets.len())
            .filter(|&number| self.is_live(&group.buckets[number]))
            .collect();
        let chosen: Vec<usize> = match group.kind {
            GroupType::All => (0..group.buckets.len()).collect(),
            GroupType::Indirect => vec![0],
            GroupType::FastFailover => live.first().copied().into_iter().collect(),
            GroupType::Select => {
                // Each bucket as often as it weighs.
                let shares = live
                    .iter()
                    .flat_map(|&number| vec![number; usize::from(group.buckets[number].weight)]);
                let shares: Vec<usize> = shares.collect();
                let at = flow_hash(packet.key()) as usize;
                let at = at.checked_rem(shares.len());
                at.map(|at| shares[at]).into_iter().collect()
            }
        };
        for number in chosen {
            let count = self.group_counts.entry((id, Some(number))).or_default();
            add(count, packet);
            let mut set = Vec::new();
            write(&mut set, &group.buckets[number].actions);
            let mut own = Walk { ..*walk };
            self.list(&ordered(&set), &mut packet.clone(), &mut own);
        }
    }
}

/// Random messages and packets for a pipeline.
pub(crate) struct World {
    dice: Dice,
    pipeline: Pipeline,
    worker: Worker,
    ports: BTreeMap<PortNo, PortState>,
    refused: BTreeMap<&'static str, usize>,
}

fn settings(engine: &str) -> TableSettings {
    TableSettings {
        engine: EngineSpec::parse(engine).unwrap(),
        rebuild_below: 30,
    }
}

impl World {
    pub(crate) fn new(engine: &str, seed: u64) -> World {
        let mut pipeline = Pipeline::new(settings(engine));
        World {
            dice: Dice(seed),
            worker: pipeline.worker(),
            pipeline,
            ports: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    pub(crate) fn packet(&mut self, number: usize) -> Packet {
        let bytes = match self.dice.one_in(5) {
            true => damaged(&mut self.dice),
            false => whole(&mut self.dice),
        };
        let mut packet = Packet::new(&bytes, 1 + self.dice.below(4) as u32);
        packet.set_field(TAG, number as u128);
        packet
    }

    fn action(&mut self) -> Action {
        let dice = &mut self.dice;
        let fields: Vec<Field> = Field::all()
            .filter(|field| field.info().settable && *field != TAG)
            .collect();
        match dice.below(16) {
            0 | 1 => Action::Output {
                port: PortNo(1 + dice.below(4) as u32),
                max_len: 0,
            },
            2 => Action::Output {
                port: *dice.pick(&[PortNo::IN_PORT, PortNo::ALL, PortNo::FLOOD]),
                max_len: 0,
            },
            3 => Action::Output {
                port: PortNo::CONTROLLER,
                max_len: 64,
            },
            4 | 5 => Action::Group(GroupId(1 + dice.below(6) as u32)),
            6 => Action::SetQueue(dice.below(3) as u32),
            7 => Action::PushVlan(0x8100),
            8 => Action::PopVlan,
            9 => Action::PushMpls(0x8847),
            10 => Action::PopMpls(*dice.pick(&[0x800, 0x8847])),
            11 => *dice.pick(&[Action::DecrementTtl, Action::DecrementMplsTtl]),
            12 => *dice.pick(&[Action::CopyTtlIn, Action::CopyTtlOut, Action::SetTtl(9)]),
            _ => {
                let field = *dice.pick(&fields);
                let value = u128::from(dice.next()) & field.max_value();
                let tag = match field {
                    Field::VlanVid => u128::from(VLAN_PRESENT),
                    _ => 0,
                };
                Action::SetField(FieldValue::exact(field, value | tag))
            }
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        (0..self.dice.below(4)).map(|_| self.action()).collect()
    }

    /// Actions that fit a match, nearly always.
    fn fitting(&mut self, flow: &FlowMatch) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..self.dice.below(5) {
            actions.push(self.action());
            if check(&actions, flow).is_err() && !self.dice.one_in(20) {
                actions.pop();
            }
        }
        actions
    }

    fn message(&mut self, packet: &Packet) -> Message {
        if self.dice.one_in(4) {
            return Message::Group(self.group_message());
        }
        let flow = match self.dice.one_in(6) {
            true => FlowMatch::default(),
            false => random_match(&mut self.dice, packet).unwrap_or_default(),
        };
        let strict = self.dice.one_in(2);
        let command = match self.dice.below(12) {
            0 => Command::Modify { strict },
            1 if strict || !flow.values().is_empty() => Command::Delete { strict },
            _ => Command::Add,
        };
        let (apply, write) = (self.fitting(&flow), self.fitting(&flow));
        let mut message = FlowMod::new(command, flow);
        message.table = TableId(self.dice.below(4) as u8);
        message.priority = self.dice.below(3) as u16;
        message.cookie = self.dice.below(100);
        let mut instructions = Instructions {
            apply,
            ..Instructions::default()
        };
        if self.dice.one_in(2) {
            instructions.write = write;
        }
        instructions.clear = self.dice.one_in(5);
        if self.dice.one_in(4) {
            let mask = self.dice.next();
            instructions.metadata = Some((self.dice.next() & mask, mask));
        }
        if self.dice.one_in(2) {
            instructions.goto_table = Some(TableId(message.table.0 + 1 + self.dice.below(2) as u8));
        }
        message.instructions = Arc::new(instructions);
        Message::Flow(message)
    }

    /// A message that adds something.
    pub(crate) fn adding(&mut self, packet: &Packet) -> Message {
        let mut message = self.message(packet);
        match &mut message {
            Message::Flow(message) => {
                message.command = Command::Add;
                (message.cookie_mask, message.out_port, message.out_group) = (0, None, None);
                message.flags.send_removed = self.dice.one_in(3);
                message.flags.check_overlap = self.dice.one_in(3);
                message.idle_timeout = self.dice.below(3) as u16;
            }
            Message::Group(message) => message.command = GroupCommand::Add,
            _ => {}
        }
        message
    }

    fn group_message(&mut self) -> GroupMod {
        let id = GroupId(1 + self.dice.below(6) as u32);
        let kind = *self.dice.pick(&[
            GroupType::All,
            GroupType::Select,
            GroupType::Indirect,
            GroupType::FastFailover,
        ]);
        let count = match kind {
            GroupType::Indirect => 1,
            _ => self.dice.below(4),
        };
        let buckets = (0..count).map(|_| {
            let watches = kind == GroupType::FastFailover || self.dice.one_in(4);
            let port = PortNo(1 + self.dice.below(4) as u32);
            let group = GroupId(1 + self.dice.below(6) as u32);
            Bucket {
                weight: match kind {
                    GroupType::Select => self.dice.below(4) as u16,
                    _ => 0,
                },
                watch_port: watches.then_some(port),
                watch_group: (watches && self.dice.one_in(5)).then_some(group),
                actions: self.actions(),
            }
        });
        let buckets: Vec<Bucket> = buckets.collect();
        let command = *self.dice.pick(&[
            GroupCommand::Add,
            GroupCommand::Add,
            GroupCommand::Modify,
            GroupCommand::Delete,
        ]);
        GroupMod {
            command,
            group: Group { id, kind, buckets },
        }
    }

    fn change_ports(&mut self) {
        let port = PortNo(1 + self.dice.below(4) as u32);
        let state = PortState {
            is_up: !self.dice.one_in(4),
            no_receive: self.dice.one_in(8),
            no_forward: self.dice.one_in(8),
            no_flood: self.dice.one_in(4),
        };
        let state = (!self.dice.one_in(10)).then_some(state);
        match state {
            Some(state) => drop(self.ports.insert(port, state)),
            None => drop(self.ports.remove(&port)),
        }
        let message = Message::Port(port, state);
        self.pipeline.apply(&[message], Duration::ZERO).unwrap();
    }

    fn entries(&self) -> Vec<FlowEntry> {
        let tables = (0..=253).map(TableId);
        let entries = tables.flat_map(|table| self.pipeline.flows().table(table));
        entries.cloned().collect()
    }

    /// Applies a bundle, which is made or changes nothing.
    fn apply(&mut self, messages: &[Message]) {
        let before = (self.entries(), self.pipeline.groups().clone());
        match self.pipeline.apply(messages, Duration::ZERO) {
            Ok(_) => drop(self.pipeline.collect_removed()),
            Err((number, error)) => {
                assert!(number < messages.len(), "{error}");
                *self.refused.entry(error.code().name()).or_default() += 1;
                assert_eq!(before, (self.entries(), self.pipeline.groups().clone()));
            }
        }
    }

    /// All that is counted.
    fn counts(&self, entries: &[FlowEntry]) -> (Vec<Count>, Vec<TableCount>, Vec<GroupCount>) {
        let pipeline = &self.pipeline;
        let flows = entries.iter().map(|entry| pipeline.flow_count(entry.id));
        let tables = (0..8).map(|table| pipeline.table_count(TableId(table)));
        let groups = pipeline.groups().iter();
        let groups = groups.map(|group| pipeline.group_count(group.id));
        (flows.collect(), tables.collect(), groups.collect())
    }

    /// Processes packets and compares all that comes of it; how many events there
    /// were.
    fn check(&mut self, packets: &[Packet]) -> usize {
        let entries = self.entries();
        let groups = self.pipeline.groups().clone();
        let mut model = Model {
            entries: entries.iter().collect(),
            groups: groups.iter().map(|group| (group.id, group)).collect(),
            ports: &self.ports,
            recorder: Recorder::default(),
            flows: BTreeMap::new(),
            tables: BTreeMap::new(),
            group_counts: BTreeMap::new(),
        };
        for packet in packets {
            model.run(&mut packet.clone());
        }
        let before = self.counts(&entries);
        let (mut vector, mut recorder) = (packets.to_vec(), Recorder::default());
        self.worker
            .process(&mut vector, Duration::ZERO, &mut recorder);
        assert_eq!(recorder.0, model.recorder.0);
        let after = self.counts(&entries);
        for (number, entry) in entries.iter().enumerate() {
            let expected = model.flows.get(&entry.id).copied().unwrap_or_default();
            let found = since(after.0[number], before.0[number]);
            assert_eq!(found, expected, "{}", entry.flow);
        }
        for table in 0..8 {
            let expected = model.tables.get(&TableId(table)).copied();
            let (before, after) = (before.1[usize::from(table)], after.1[usize::from(table)]);
            let found = (
                after.lookups - before.lookups,
                after.matched - before.matched,
            );
            assert_eq!(found, expected.unwrap_or_default(), "{table}");
        }
        for (number, group) in groups.iter().enumerate() {
            let (before, after) = (&before.2[number], &after.2[number]);
            let of = |bucket| {
                let count = model.group_counts.get(&(group.id, bucket));
                count.copied().unwrap_or_default()
            };
            assert_eq!(since(after.all, before.all), of(None));
            assert_eq!(after.buckets.len(), group.buckets.len());
            for (number, &bucket) in after.buckets.iter().enumerate() {
                let found = since(bucket, before.buckets[number]);
                assert_eq!(found, of(Some(number)), "{group:?}");
            }
        }
        recorder.0.values().map(Vec::len).sum()
    }
}

#[test]
fn packets_come_out_as_the_text_says() {
    let (mut events, mut most) = (0, 0);
    let mut refused = BTreeMap::new();
    for (engine, seeds) in [("forest", 0..8), ("tuplemerge", 8..11), ("linear", 11..13)] {
        for seed in seeds {
            let mut world = World::new(engine, seed);
            for _ in 0..12 {
                world.change_ports();
            }
            for _ in 0..30 {
                let packets: Vec<Packet> = (0..40).map(|number| world.packet(number)).collect();
                for packet in &packets {
                    let count = 1 + world.dice.below(2);
                    let messages: Vec<Message> =
                        (0..count).map(|_| world.message(packet)).collect();
                    world.apply(&messages);
                }
                world.change_ports();
                events += world.check(&packets);
                if world.dice.one_in(4) && world.pipeline.rebuild().is_ok() {
                    world.check(&packets);
                }
                most = most.max(world.pipeline.flows().len());
            }
            for (name, times) in world.refused {
                *refused.entry(name).or_insert(0) += times;
            }
        }
    }
    assert!(events > 5_000 && most > 100, "{events} {most}");
    for code in [
        "BAC_BAD_OUT_GROUP",
        "BAC_MATCH_INCONSISTENT",
        "GMFC_LOOP",
        "GMFC_BAD_WATCH",
    ] {
        assert!(
            refused.get(code).is_some_and(|&times| times > 10),
            "{code}: {refused:?}"
        );
    }
}

#[test]
fn counters_begin_at_0_where_a_change_says_so() {
    let add = |text: &str| match &read(text).unwrap()[..] {
        [one] => one.message.clone(),
        _ => unreachable!("one line"),
    };
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
    apply(&mut pipeline, add("group_id=1,type=all"));
    apply(&mut pipeline, add("in_port=1 actions=group:1"));
    assert_eq!(pipeline.flow_count(flow), Count::default());
    assert_eq!(pipeline.last_match(flow), None);
    process();
    assert_eq!(pipeline.flow_count(flow), one);
    assert_eq!(pipeline.last_match(flow), Some(Duration::from_secs(5)));
    assert_eq!(pipeline.group_count(group).all, one);
    // What takes its place keeps them, unless it says otherwise.
    apply(&mut pipeline, add("in_port=1,cookie=7 actions=drop"));
    assert_eq!(pipeline.flow_count(flow), one);
    apply(&mut pipeline, add("in_port=1,reset_counts actions=group:1"));
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
    // What has the number next begins at 0, and so does a group.
    apply(&mut pipeline, add("group_id=1,type=all"));
    apply(&mut pipeline, add("in_port=2 actions=drop"));
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
    assert_eq!(problems[0].line, 6, "{}", problems[0]);
    assert!(
        problems[0].found.contains("FMFC_TABLE_FULL"),
        "{}",
        problems[0]
    );
    assert_eq!(
        (pipeline.flows().len(), pipeline.groups().iter().len()),
        (0, 0)
    );
    // Without it the others fit.
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
    let (number, error) = refused.unwrap_err();
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
