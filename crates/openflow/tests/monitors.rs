//! Monitors of entries: a controller's copy of the entries, kept by reports alone, is equal to
//! the switch's entries.

mod controllers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use classyard_conformance::random::{Dice, SeededDice};
use classyard_datapath::flow::{Command, FlowMod, Instructions, RemovalReason, TableId};
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::pipeline;
use classyard_datapath::{Action, Field, FlowMatch, GroupId, MatchField, PortNo};
use classyard_openflow::agent::{MAX_MONITORS, MAX_REPORT_BYTES};
use classyard_openflow::bundle::{BundleAdd, BundleControl, BundleStep};
use classyard_openflow::monitor::{FlowUpdate, MonitorCancel, MonitorRequest, MonitoredFlow, flag};
use classyard_openflow::multipart::{List, Multipart, Nothing, Reply, Request};
use classyard_openflow::{Code, Message};

use controllers::{Controller, Switch};

fn output(port: u32) -> Action {
    Action::Output {
        port: PortNo(port),
        max_len: 0,
    }
}

fn of_port(port: u32) -> FlowMatch {
    let flow = FlowMatch::new([MatchField::exact(Field::InPort, port.into())]);
    flow.expect("a right match")
}

/// Returns a message about the entry of a table for packets of a port.
fn change(command: Command, table: u8, port: u32, actions: Vec<Action>) -> FlowMod {
    FlowMod {
        table: TableId(table),
        instructions: Arc::new(Instructions {
            apply: actions,
            ..Instructions::default()
        }),
        ..FlowMod::new(command, of_port(port))
    }
}

fn delete(port: u32) -> Message {
    Message::FlowMod(change(
        Command::Delete { strict: true },
        0,
        port,
        Vec::new(),
    ))
}

/// Returns a request to monitor everything, with these flags.
fn monitor(number: u32, flags: u16) -> MonitorRequest {
    MonitorRequest {
        monitor: number,
        flags,
        out_port: PortNo::ANY,
        table: TableId::ALL,
        flow: Arc::default(),
    }
}

fn request(monitors: Vec<MonitorRequest>) -> Message {
    Message::MultipartRequest(Multipart {
        is_more: false,
        body: Request::FlowMonitor(List(monitors)),
    })
}

/// Returns the reports in a message, or `None` if it has none.
fn updates(message: &Message) -> Option<&[FlowUpdate]> {
    match message {
        Message::MultipartReply(Multipart {
            body: Reply::FlowMonitor(List(updates)),
            ..
        }) => Some(updates),
        _ => None,
    }
}

type Key = (TableId, u16, String);

/// The values of an entry that a report has.
type Values = (u64, u16, u16, Arc<Instructions>);

fn described(entry: &MonitoredFlow) -> (Key, Values) {
    let key = (entry.table, entry.priority, entry.flow.to_string());
    let timeouts = (entry.idle_timeout, entry.hard_timeout);
    let instructions = Arc::clone(&entry.instructions);
    (key, (entry.cookie, timeouts.0, timeouts.1, instructions))
}

/// The filter of a follower's monitors.
#[derive(Clone)]
struct Filter {
    tables: Vec<TableId>,
    out_port: PortNo,
    flow: FlowMatch,
}

/// A controller with a copy of the entries.
struct Follower {
    controller: Controller,
    filter: Filter,
    entries: BTreeMap<Key, Values>,
    is_paused: bool,
    /// The entries at the time of each barrier.
    barriers: BTreeMap<u32, BTreeMap<Key, Values>>,
    /// Pauses, and reports of each kind.
    counts: [usize; 4],
    /// Barriers whose entries were compared.
    compared: usize,
}

impl Follower {
    /// Begins to monitor, with one monitor for each table of the filter.
    fn new(switch: &mut Switch, filter: Filter) -> Follower {
        let mut follower = Follower {
            controller: switch.controller(),
            filter,
            entries: BTreeMap::new(),
            is_paused: false,
            barriers: BTreeMap::new(),
            counts: [0; 4],
            compared: 0,
        };
        let monitors = (0..)
            .zip(&follower.filter.tables)
            .map(|(number, &table)| MonitorRequest {
                table,
                out_port: follower.filter.out_port,
                flow: Arc::new(follower.filter.flow.clone()),
                ..monitor(number, flag::ALL)
            });
        let request = request(monitors.collect());
        follower.controller.send(switch, &request);
        follower
    }

    /// Takes a message. Each report must fit the copy.
    fn take(&mut self, xid: u32, message: &Message) {
        match message {
            Message::MonitorPaused(_) => {
                assert!(!self.is_paused, "paused twice");
                self.is_paused = true;
                self.counts[0] += 1;
            }
            Message::MonitorResumed(_) => {
                assert!(self.is_paused, "resumed without a pause");
                self.is_paused = false;
            }
            Message::EchoReply(_) => {}
            Message::Error(_) => {}
            Message::BarrierReply(_) => {
                let expected = self.barriers.remove(&xid).expect("a barrier");
                if !self.is_paused {
                    assert_eq!(self.selected(), expected);
                    self.compared += 1;
                }
            }
            message => {
                let updates = updates(message).unwrap_or_else(|| panic!("{message:?}"));
                updates.iter().for_each(|update| self.update(update));
            }
        }
    }

    fn update(&mut self, update: &FlowUpdate) {
        // Entries that begin or cease to send to a port are reported as modified.
        let has_all = self.filter.out_port == PortNo::ANY;
        let number = match update {
            FlowUpdate::Added(entry) => {
                let (key, values) = described(entry);
                self.entries.insert(key, values);
                1
            }
            FlowUpdate::Modified(entry) => {
                let (key, values) = described(entry);
                let old = self.entries.insert(key, values);
                assert!(old.is_some() || !has_all, "{entry:?} is not known");
                2
            }
            FlowUpdate::Deleted(entry, _) => {
                let old = self.entries.remove(&described(entry).0);
                assert!(old.is_some(), "{entry:?} is not known");
                3
            }
            FlowUpdate::Abbreviated(xid) => panic!("transaction {xid}, with OWN"),
        };
        self.counts[number] += 1;
    }

    fn sends(&self, instructions: &Instructions) -> bool {
        let port = self.filter.out_port;
        port == PortNo::ANY || instructions.sends_to(port)
    }

    /// Returns the entries of the copy that the filter selects.
    fn selected(&self) -> BTreeMap<Key, Values> {
        let mut copy = self.entries.clone();
        copy.retain(|_, (.., instructions)| self.sends(instructions));
        copy
    }

    /// Returns the entries of the switch that the filter selects.
    fn expected(&self, switch: &Switch) -> BTreeMap<Key, Values> {
        let Filter { tables, flow, .. } = &self.filter;
        let in_table = |table| tables.contains(&TableId::ALL) || tables.contains(&table);
        let entries = switch.pipeline.flows().iter();
        let entries = entries.filter(|entry| in_table(entry.table) && flow.includes(&entry.flow));
        let entries = entries.filter(|entry| self.sends(&entry.instructions));
        let entries = entries.map(|entry| {
            let key = (entry.table, entry.priority, entry.flow.to_string());
            let timeouts = (entry.idle_timeout, entry.hard_timeout);
            let instructions = Arc::clone(&entry.instructions);
            (key, (entry.cookie, timeouts.0, timeouts.1, instructions))
        });
        entries.collect()
    }

    /// Changes entries itself, and requests a barrier.
    fn change(&mut self, switch: &mut Switch, dice: &mut dyn Dice) {
        self.controller.send(switch, &random_change(dice));
        let barrier = Message::BarrierRequest(Nothing);
        let xid = self.controller.send(switch, &barrier);
        self.barriers.insert(xid, self.expected(switch));
    }

    /// Requests answers that fill the unsent bytes, while the switch reads requests.
    fn fill(&mut self, switch: &mut Switch, count: usize) {
        for _ in 0..count {
            if switch.agent.unsent(self.controller.session).len() < 2 * MAX_REPORT_BYTES {
                let echo = Message::EchoRequest(vec![0; FILLING_BYTES]);
                self.controller.send(switch, &echo);
            }
        }
    }

    /// Reads `count` bytes at most.
    fn read_some(&mut self, switch: &mut Switch, count: usize) {
        let unsent = switch.agent.unsent(self.controller.session);
        let bytes = unsent[..count.min(unsent.len())].to_vec();
        for (xid, message) in self.controller.read_bytes(switch, &bytes) {
            self.take(xid, &message);
        }
    }

    /// Reads all, until the switch has nothing to send.
    fn read_all(&mut self, switch: &mut Switch) {
        while !switch.agent.unsent(self.controller.session).is_empty() {
            self.read_some(switch, usize::MAX);
        }
        assert!(!self.is_paused, "all was read");
        assert_eq!(self.selected(), self.expected(switch));
    }
}

/// Returns a random change of entries or groups.
fn random_change(dice: &mut dyn Dice) -> Message {
    let word = |small: usize| u32::try_from(small).expect("a small number");
    if dice.one_in(12) {
        let commands = [
            GroupCommand::Add,
            GroupCommand::Modify,
            GroupCommand::Delete,
        ];
        let bucket = Bucket {
            weight: 0,
            watch_port: None,
            watch_group: None,
            actions: vec![output(1)],
        };
        return Message::GroupMod(GroupMod {
            command: commands[dice.below(3)],
            group: Group {
                id: GroupId(1),
                kind: GroupType::All,
                buckets: vec![bucket],
            },
        });
    }
    let strict = dice.one_in(2);
    let command = match dice.below(7) {
        0 => Command::Delete { strict },
        1 | 2 => Command::Modify { strict },
        _ => Command::Add,
    };
    let actions = match dice.below(5) {
        0 => Vec::new(),
        1 => vec![Action::Group(GroupId(1))],
        port => vec![output(word(port - 1))],
    };
    let table = u8::try_from(dice.below(3)).expect("a small number");
    let port = word(1 + dice.below(6));
    let is_wide = dice.one_in(20);
    let seconds = |dice: &mut dyn Dice| match dice.one_in(4) {
        true => u16::try_from(dice.below(4)).expect("a small number"),
        false => 0,
    };
    let message = change(command, table, port, actions);
    Message::FlowMod(FlowMod {
        flow: match is_wide {
            true => Arc::default(),
            false => message.flow,
        },
        priority: u16::try_from(dice.below(2)).expect("a small number"),
        cookie: dice.below(3) as u64,
        idle_timeout: seconds(dice),
        hard_timeout: seconds(dice),
        ..message
    })
}

/// Sends some changes, alone or in a bundle. The switch may refuse them.
fn send_changes(switch: &mut Switch, controller: &mut Controller, dice: &mut dyn Dice) {
    let count = 1 + dice.below(4);
    if dice.one_in(3) {
        let control = |step| {
            Message::BundleControl(BundleControl {
                bundle: 7,
                step,
                flags: 1,
                properties: Vec::new(),
            })
        };
        controller.send(switch, &control(BundleStep::OpenRequest));
        for _ in 0..count {
            let message = random_change(dice).to_bytes(controller.next_xid);
            let add = BundleAdd {
                bundle: 7,
                flags: 1,
                message,
            };
            controller.send(switch, &Message::BundleAdd(add));
        }
        controller.send(switch, &control(BundleStep::CommitRequest));
    } else {
        for _ in 0..count {
            controller.send(switch, &random_change(dice));
        }
    }
}

/// The bytes of an answer that fills the unsent bytes.
const FILLING_BYTES: usize = 60_000;

/// Follows random changes. Returns the counts of reports and of compared barriers.
fn follow(seed: u64) -> ([usize; 4], usize) {
    let mut dice = SeededDice::new(seed);
    let mut switch = Switch::new();
    let mut others = [switch.controller(), switch.controller()];
    for _ in 0..dice.below(30) {
        send_changes(&mut switch, &mut others[0], &mut dice);
    }
    let everything = Filter {
        tables: vec![TableId::ALL],
        out_port: PortNo::ANY,
        flow: FlowMatch::default(),
    };
    let filter = match dice.below(4) {
        0 => everything,
        1 => Filter {
            tables: vec![TableId(0), TableId(2)],
            ..everything
        },
        2 => Filter {
            flow: of_port(3),
            ..everything
        },
        _ => Filter {
            out_port: PortNo(2),
            ..everything
        },
    };
    let mut follower = Follower::new(&mut switch, filter);
    for _ in 0..200 {
        match dice.below(12) {
            0 => {
                switch.now += Duration::from_millis(700);
                switch.with(|agent, around| drop(agent.tick(around, &|_| None)));
            }
            1 => follower.read_all(&mut switch),
            2 | 3 => {
                let count = dice.below(3 * FILLING_BYTES);
                follower.read_some(&mut switch, count);
            }
            4 | 5 => follower.fill(&mut switch, dice.below(12)),
            6 => follower.change(&mut switch, &mut dice),
            number => {
                let other = &mut others[number % 2];
                send_changes(&mut switch, other, &mut dice);
                other.read(&mut switch);
            }
        }
    }
    follower.read_all(&mut switch);
    assert!(follower.barriers.is_empty(), "each barrier has its reply");
    (follower.counts, follower.compared)
}

#[test]
fn copies_of_entries_are_kept_by_reports_alone() {
    let (mut totals, mut compared) = ([0; 4], 0);
    for seed in 0..150 {
        let (counts, barriers) = follow(seed);
        totals = std::array::from_fn(|kind| totals[kind] + counts[kind]);
        compared += barriers;
    }
    let [pauses, added, modified, deleted] = totals;
    assert!(pauses > 100 && compared > 500, "{pauses} {compared}");
    assert!(
        added > 2_000 && modified > 500 && deleted > 1_000,
        "{totals:?}"
    );
}

/// More entries than unsent bytes hold are sent in parts. Entries change between the parts.
#[test]
fn monitors_begin_with_many_entries_that_change() {
    const ENTRIES: u32 = 120_000;
    let mut switch = Switch::new();
    let mut other = switch.controller();
    let messages: Vec<pipeline::Message> = (1..=ENTRIES)
        .map(|port| pipeline::Message::Flow(change(Command::Add, 0, port, vec![output(1)])))
        .collect();
    let added = switch.pipeline.apply(&messages, switch.now);
    assert_eq!(added.expect("right messages").len(), messages.len());
    let filter = Filter {
        tables: vec![TableId::ALL],
        out_port: PortNo::ANY,
        flow: FlowMatch::default(),
    };
    let mut follower = Follower::new(&mut switch, filter);
    assert!(!switch.agent.reads(follower.controller.session));
    // Some of these entries are sent already, and some are not.
    let ports = [ENTRIES - 1, 2, ENTRIES - 4, 5, ENTRIES / 2];
    for port in ports {
        other.send(&mut switch, &delete(port));
        let again = change(Command::Add, 1, port, vec![output(2)]);
        other.send(&mut switch, &Message::FlowMod(again));
        let modify = Command::Modify { strict: false };
        let modified = change(modify, 0, port - 1, vec![output(3)]);
        other.send(&mut switch, &Message::FlowMod(modified));
        follower.read_some(&mut switch, 1_500_000);
        other.send(&mut switch, &delete(port - 1));
    }
    // All entries are sent, and the pause goes on. An entry that was added during the pause,
    // and was sent since, is removed.
    assert!(follower.is_paused && switch.agent.reads(follower.controller.session));
    let strict = Command::Delete { strict: true };
    let removed = change(strict, 1, ports[2], Vec::new());
    other.send(&mut switch, &Message::FlowMod(removed));
    follower.read_all(&mut switch);
    assert_eq!(follower.counts[0], 1, "the monitor has paused");
    assert!(follower.entries.len() > 119_000);
    // Beyond the limit, the reports of removed entries are sent all the same.
    for port in 1..=ENTRIES {
        other.send(&mut switch, &delete(port));
    }
    let unsent = switch.agent.unsent(follower.controller.session).len();
    assert!(unsent > 2 * MAX_REPORT_BYTES, "{unsent}");
    follower.read_all(&mut switch);
    assert!(follower.entries.len() < 10);
}

/// Reads the reports that a controller gets, and the numbers of their messages.
fn reports(switch: &mut Switch, controller: &mut Controller) -> Vec<FlowUpdate> {
    let messages = controller.read(switch).into_iter();
    let messages = messages.map(|(_, message)| updates(&message).expect("reports").to_vec());
    messages.flatten().collect()
}

#[test]
fn own_changes_are_abbreviated_before_the_barrier_reply() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let flags = flag::ALL & !flag::OWN;
    controller.send(&mut switch, &request(vec![monitor(1, flags)]));
    assert!(reports(&mut switch, &mut controller).is_empty());
    let added = Message::FlowMod(change(Command::Add, 0, 1, vec![output(1)]));
    let first = controller.send(&mut switch, &added);
    controller.send(&mut switch, &delete(9));
    let barrier = controller.send(&mut switch, &Message::BarrierRequest(Nothing));
    let messages = controller.read(&mut switch);
    let [(0, report), (xid, Message::BarrierReply(_))] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert_eq!(*xid, barrier);
    assert_eq!(updates(report), Some(&[FlowUpdate::Abbreviated(first)][..]));
    // A message of another controller is reported in full.
    let mut other = switch.controller();
    other.send(&mut switch, &delete(1));
    let full = reports(&mut switch, &mut controller);
    assert!(matches!(full[..], [FlowUpdate::Deleted(..)]), "{full:?}");
    // Each message of a bundle is reported.
    let control = |step| {
        Message::BundleControl(BundleControl {
            bundle: 1,
            step,
            flags: 1,
            properties: Vec::new(),
        })
    };
    controller.send(&mut switch, &control(BundleStep::OpenRequest));
    let mut members = Vec::new();
    for port in [1, 2] {
        let message = change(Command::Add, 0, port, Vec::new());
        let message = Message::FlowMod(message).to_bytes(controller.next_xid);
        let add = BundleAdd {
            bundle: 1,
            flags: 1,
            message,
        };
        members.push(controller.send(&mut switch, &Message::BundleAdd(add)));
    }
    controller.send(&mut switch, &control(BundleStep::CommitRequest));
    let messages = controller.read(&mut switch);
    let abbreviated: Vec<FlowUpdate> = messages
        .iter()
        .filter_map(|(_, message)| updates(message))
        .flatten()
        .cloned()
        .collect();
    let expected = members.into_iter().map(FlowUpdate::Abbreviated);
    assert_eq!(abbreviated, expected.collect::<Vec<_>>());
    assert!(
        matches!(messages.last(), Some((_, Message::BundleControl(_)))),
        "the reply is last"
    );
}

#[test]
fn flags_choose_the_changes_and_their_contents() {
    let mut switch = Switch::new();
    let mut other = switch.controller();
    let flags = [flag::ADD, flag::MODIFY, flag::DELETE | flag::ACTIONS];
    let mut followers = flags.map(|flags| {
        let mut controller = switch.controller();
        controller.send(&mut switch, &request(vec![monitor(1, flags)]));
        controller.read(&mut switch);
        controller
    });
    let group = |command| {
        Message::GroupMod(GroupMod {
            command,
            group: Group {
                id: GroupId(1),
                kind: GroupType::All,
                buckets: Vec::new(),
            },
        })
    };
    let modify = Command::Modify { strict: true };
    for message in [
        group(GroupCommand::Add),
        Message::FlowMod(change(Command::Add, 0, 1, vec![output(1)])),
        // An entry that replaces another one is added.
        Message::FlowMod(change(Command::Add, 0, 1, vec![output(2)])),
        Message::FlowMod(change(modify, 0, 1, vec![Action::Group(GroupId(1))])),
        group(GroupCommand::Delete),
        Message::FlowMod(FlowMod {
            hard_timeout: 5,
            ..change(Command::Add, 0, 2, vec![output(1)])
        }),
    ] {
        assert!(other.ask(&mut switch, &message).is_empty(), "{message:?}");
    }
    switch.now += Duration::from_secs(6);
    switch.with(|agent, around| drop(agent.tick(around, &|_| None)));
    let [added, modified, deleted] =
        std::array::from_fn(|number| reports(&mut switch, &mut followers[number]));
    let has_no_actions = |update: &FlowUpdate| match update {
        FlowUpdate::Added(entry) | FlowUpdate::Modified(entry) | FlowUpdate::Deleted(entry, _) => {
            *entry.instructions == Instructions::default()
        }
        FlowUpdate::Abbreviated(_) => false,
    };
    assert_eq!(added.len(), 3);
    assert!(matches!(added[1], FlowUpdate::Added(_)));
    assert!(matches!(modified[..], [FlowUpdate::Modified(_)]));
    let reasons: Vec<RemovalReason> = deleted
        .iter()
        .map(|update| match update {
            FlowUpdate::Deleted(_, reason) => *reason,
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [RemovalReason::GroupDelete, RemovalReason::HardTimeout];
    assert_eq!(reasons, expected);
    let all = [added, modified, deleted].concat();
    assert!(all.iter().all(has_no_actions));
}

#[test]
fn wrong_requests_add_no_monitor_and_a_cancelled_monitor_reports_nothing() {
    let mut switch = Switch::new();
    let mut controller = switch.controller();
    let right = monitor(1, flag::ALL);
    let bad_table = MonitorRequest {
        table: TableId(254),
        ..right.clone()
    };
    let many = 0..=u32::try_from(MAX_MONITORS).expect("a small number");
    let many = many.map(|number| monitor(number, flag::ALL)).collect();
    for (monitors, code) in [
        (
            vec![right.clone(), monitor(2, flag::INITIAL)],
            Code::BAD_MONITOR_FLAGS,
        ),
        (
            vec![monitor(2, 1 << 6 | flag::ADD)],
            Code::BAD_MONITOR_FLAGS,
        ),
        (vec![right.clone(), right.clone()], Code::MONITOR_EXISTS),
        (vec![right.clone(), bad_table], Code::BAD_TABLE_ID),
        (many, Code::MULTIPART_OVERFLOW),
    ] {
        assert_eq!(controller.refused(&mut switch, &request(monitors)), code);
    }
    controller.send(&mut switch, &request(vec![right.clone()]));
    controller.read(&mut switch);
    // The error has the number of Nicira.
    controller.send(&mut switch, &request(vec![right]));
    let messages = controller.read(&mut switch);
    let [(_, Message::Error(error))] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert_eq!((error.kind, error.code), (0xffff, 6));
    assert_eq!(error.data[..4], [0, 0, 0x23, 0x20]);
    let cancel = Message::MonitorCancel(MonitorCancel { monitor: 1 });
    let mut other = switch.controller();
    let added = Message::FlowMod(change(Command::Add, 0, 1, Vec::new()));
    other.send(&mut switch, &added);
    assert_eq!(reports(&mut switch, &mut controller).len(), 1);
    assert!(controller.ask(&mut switch, &cancel).is_empty());
    other.send(&mut switch, &delete(1));
    assert!(controller.read(&mut switch).is_empty());
    let code = controller.refused(&mut switch, &cancel);
    assert_eq!(code, Code::UNKNOWN_MONITOR);
}
