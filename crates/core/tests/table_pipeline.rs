//! A live table of a type unknown to the library: a small pipeline of flow
//! tables, whose rules lead to other tables and to groups. Its transactions
//! change several tables and groups together, and a reader sees all changes of
//! a transaction or none.
//!
//! ```text
//!  table 0 ──goto──▶ table 1 or 2 ──group──▶ a port      a flow is in one of
//!                                                        the two, under one id
//! ```
//!
//! Every transaction moves a flow to the other table, with a new group, and
//! sets group 0 to the transaction's number.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use classyard::table::Version;
use classyard::table::{Accepted, Guard, Reader, Replica, Table, Writer};
use classyard::*;

mod table_kit;

use table_kit::id;

const TABLE_COUNT: usize = 3;
const FLOW_COUNT: u32 = 6;

/// The group whose port is the number of transactions.
const COUNTER_GROUP: u32 = 0;

/// The action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Goto(usize),
    Group(u32),
}

#[derive(Clone, Debug)]
enum Step {
    Insert(usize, Rule, Then),
    Modify(usize, Rule, Then),
    Remove(usize, RuleId),
    /// Adds or replaces a group.
    SetGroup(u32, u64),
    RemoveGroup(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Duplicate(usize, RuleId),
    Unknown(usize, RuleId),
    NoTable(usize),
    NoGroup(u32),
    NoRoom,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Refusal {}

/// The expected rules and groups by id, without lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    rules: [BTreeMap<RuleId, (Rule, Then)>; TABLE_COUNT],
    groups: BTreeMap<u32, u64>,
}

impl State {
    fn table(&mut self, table: usize) -> Result<&mut BTreeMap<RuleId, (Rule, Then)>, Refusal> {
        self.rules.get_mut(table).ok_or(Refusal::NoTable(table))
    }

    fn make(&mut self, step: &Step) -> Result<(), Refusal> {
        match step {
            Step::Insert(table, rule, then) => {
                let id = rule.view().id();
                match self.table(*table)?.insert(id, (rule.clone(), *then)) {
                    Some(_) => Err(Refusal::Duplicate(*table, id)),
                    None => Ok(()),
                }
            }
            Step::Modify(table, rule, then) => {
                let id = rule.view().id();
                let known = self.table(*table)?.get_mut(&id);
                *known.ok_or(Refusal::Unknown(*table, id))? = (rule.clone(), *then);
                Ok(())
            }
            Step::Remove(table, id) => {
                let known = self.table(*table)?.remove(id);
                known.map(drop).ok_or(Refusal::Unknown(*table, *id))
            }
            Step::SetGroup(group, port) => {
                self.groups.insert(*group, *port);
                Ok(())
            }
            Step::RemoveGroup(group) => {
                let known = self.groups.remove(group);
                known.map(drop).ok_or(Refusal::NoGroup(*group))
            }
        }
    }

    /// Makes all steps, and checks that every rule leads to a table or a group.
    fn make_all(&mut self, steps: &[Step]) -> Result<(), Refusal> {
        steps.iter().try_for_each(|step| self.make(step))?;
        for (table, rules) in self.rules.iter().enumerate() {
            for (_, then) in rules.values() {
                match *then {
                    Then::Goto(to) if to <= table || to >= TABLE_COUNT => {
                        return Err(Refusal::NoTable(to));
                    }
                    Then::Group(group) if !self.groups.contains_key(&group) => {
                        return Err(Refusal::NoGroup(group));
                    }
                    Then::Goto(_) | Then::Group(_) => {}
                }
            }
        }
        Ok(())
    }

    fn rule_count(&self) -> usize {
        self.rules.iter().map(BTreeMap::len).sum()
    }

    /// Returns a state with all flows in table 1, each with a group.
    fn initial() -> State {
        let mut state = State::default();
        state.groups.insert(COUNTER_GROUP, 0);
        for flow in 0..FLOW_COUNT {
            let steps = [
                Step::SetGroup(1 + flow, 0),
                Step::Insert(1, rule(flow), Then::Group(1 + flow)),
                Step::Insert(0, rule(flow), Then::Goto(1)),
            ];
            state.make_all(&steps).unwrap();
        }
        state
    }

    /// Returns the transaction with this number.
    fn next(&self, number: u64) -> Vec<Step> {
        let flow = u32::try_from(number % u64::from(FLOW_COUNT)).unwrap();
        let old_table = usize::from(!self.rules[1].contains_key(&id(flow))) + 1;
        let new_table = 3 - old_table;
        let Then::Group(old) = self.rules[old_table][&id(flow)].1 else {
            unreachable!("flows end in groups");
        };
        let new = 100 + u32::try_from(number).unwrap();
        vec![
            Step::SetGroup(COUNTER_GROUP, number),
            Step::Remove(old_table, id(flow)),
            Step::RemoveGroup(old),
            Step::Insert(new_table, rule(flow), Then::Group(new)),
            Step::Modify(0, rule(flow), Then::Goto(new_table)),
            Step::SetGroup(new, number),
        ]
    }

    /// Returns transactions that begin like a valid transaction but cannot be
    /// made, and the expected refusals.
    fn wrong(&self, number: u64) -> Vec<(Vec<Step>, Refusal)> {
        let good = self.next(number);
        let moved = u32::try_from(number % u64::from(FLOW_COUNT)).unwrap();
        // A flow moved by the previous transaction, which may still be pending.
        let neighbour = (moved + FLOW_COUNT - 1) % FLOW_COUNT;
        let table = usize::from(!self.rules[1].contains_key(&id(neighbour))) + 1;
        let and = |more: Step| good.iter().cloned().chain([more]).collect::<Vec<_>>();
        vec![
            (
                and(Step::Modify(0, rule(neighbour), Then::Goto(TABLE_COUNT))),
                Refusal::NoTable(TABLE_COUNT),
            ),
            (
                and(Step::Insert(
                    TABLE_COUNT,
                    rule(99),
                    Then::Group(COUNTER_GROUP),
                )),
                Refusal::NoTable(TABLE_COUNT),
            ),
            (
                and(Step::Modify(table, rule(neighbour), Then::Group(7777))),
                Refusal::NoGroup(7777),
            ),
            (
                and(Step::RemoveGroup(100 + u32::try_from(number).unwrap())),
                Refusal::NoGroup(100 + u32::try_from(number).unwrap()),
            ),
            (
                and(Step::Insert(
                    table,
                    rule(neighbour),
                    Then::Group(COUNTER_GROUP),
                )),
                Refusal::Duplicate(table, id(neighbour)),
            ),
            (
                and(Step::Remove(3 - table, id(neighbour))),
                Refusal::Unknown(3 - table, id(neighbour)),
            ),
            (
                (1000..1200)
                    .map(|number| Step::Insert(0, rule(number), Then::Goto(1)))
                    .collect(),
                Refusal::NoRoom,
            ),
        ]
    }
}

/// Returns a flow's rule, which is the same in each table.
fn rule(flow: u32) -> Rule {
    let mut matches = [FieldMatch::Any; 5];
    matches[1] = FieldMatch::Exact(u128::from(flow));
    let schema = Schema::ipv4_5tuple();
    Rule::new(&schema, id(flow), Priority(1), ActionId(0), &matches).unwrap()
}

struct FlowTable {
    engine: Box<dyn Classifier>,
    then: BTreeMap<RuleId, Then>,
}

/// A side of the table: a pipeline of flow tables, and groups.
struct Pipeline {
    tables: Vec<FlowTable>,
    groups: BTreeMap<u32, u64>,
}

impl Pipeline {
    fn new(state: &State, spec: &EngineSpec) -> Pipeline {
        let tables = state.rules.iter().map(|rules| {
            let mut set = RuleSet::new(&Schema::ipv4_5tuple());
            set.extend(rules.values().map(|(rule, _)| rule.clone()));
            let built = spec.build(&set, &Limits::default(), &mut NoProgress);
            FlowTable {
                engine: built.unwrap(),
                then: rules.iter().map(|(id, (_, then))| (*id, *then)).collect(),
            }
        });
        Pipeline {
            tables: tables.collect(),
            groups: state.groups.clone(),
        }
    }

    fn change(&mut self, table: usize, change: Change<'_>, then: Option<Then>) {
        let FlowTable {
            engine,
            then: actions,
        } = &mut self.tables[table];
        let mut transaction = Transaction::new();
        let engine = engine.as_dynamic().unwrap();
        engine.replay(transaction.push(change));
        match then {
            Some(then) => actions.insert(change.id(), then),
            None => actions.remove(&change.id()),
        };
    }

    /// Returns the tables that a flow's header passes, and its output port.
    fn walk(&self, flow: u32) -> (Vec<usize>, u64) {
        let mut keys = KeyVec::new(&Schema::ipv4_5tuple());
        keys.push(&[0, u128::from(flow), 0, 0, 0]).unwrap();
        let (mut table, mut way) = (0, Vec::new());
        loop {
            way.push(table);
            let FlowTable { engine, then } = &self.tables[table];
            let winner = engine.classify_one(keys.key(0));
            let rule = winner
                .rule()
                .unwrap_or_else(|| panic!("flow {flow}: {way:?}"));
            match then[&rule] {
                Then::Goto(next) => table = next,
                Then::Group(group) => return (way, self.groups[&group]),
            }
        }
    }

    /// Returns the complete state.
    fn state(&self) -> State {
        let mut state = State {
            groups: self.groups.clone(),
            ..State::default()
        };
        for (table, rules) in self.tables.iter().zip(&mut state.rules) {
            let engine = table.engine.dynamic().unwrap();
            assert_eq!(engine.stats().rules, table.then.len());
            for (&id, &then) in &table.then {
                let mut words = Vec::new();
                let priority = engine.copy_rule(id, &mut words).expect("as in the map");
                let rule = rule(id.get());
                let view = rule.view();
                assert_eq!((view.priority(), view.words()), (priority, &words[..]));
                rules.insert(id, (rule, then));
            }
        }
        state
    }
}

impl Replica for Pipeline {
    type Transaction<'t> = &'t [Step];
    type Refusal = Refusal;
    type Log = Vec<Step>;
    type Accepted = Book;
    type Operation = Infallible;

    fn replay(&mut self, log: &Vec<Step>, changes: Range<usize>) {
        for step in &log[changes] {
            match step {
                Step::Insert(table, rule, then) => {
                    self.change(*table, Change::Insert(rule.view()), Some(*then));
                }
                Step::Modify(table, rule, then) => {
                    self.change(*table, Change::Modify(rule.view()), Some(*then));
                }
                Step::Remove(table, id) => self.change(*table, Change::Remove(*id), None),
                Step::SetGroup(group, port) => {
                    self.groups.insert(*group, *port);
                }
                Step::RemoveGroup(group) => {
                    self.groups.remove(group).expect("it was checked");
                }
            }
        }
    }

    fn operate(&mut self, operation: &Infallible) {
        match *operation {}
    }

    fn bytes(&self) -> usize {
        let engines = self.tables.iter().map(|table| table.engine.stats().bytes());
        engines.sum()
    }
}

/// The changes that the live side lacks, and the maximum number of rules.
struct Book {
    pending: Vec<Step>,
    limit: usize,
}

impl Accepted<Pipeline> for Book {
    fn check(&mut self, live: &Pipeline, steps: &[Step]) -> Result<usize, Refusal> {
        let mut state = live.state();
        state.make_all(&self.pending).expect("accepted is accepted");
        state.make_all(steps)?;
        if state.rule_count() > self.limit {
            return Err(Refusal::NoRoom);
        }
        Ok(steps.len())
    }

    fn accept(&mut self, steps: &[Step], log: &mut Vec<Step>) {
        log.extend_from_slice(steps);
    }

    fn deferred(&mut self, log: &Vec<Step>, from: usize) {
        self.pending.extend_from_slice(&log[from..]);
    }

    fn published(&mut self, _: &Vec<Step>) {
        self.pending.clear();
    }
}

fn build(state: &State, spec: &EngineSpec) -> (Writer<Pipeline>, Table<Pipeline>) {
    let book = Book {
        pending: Vec::new(),
        limit: 100,
    };
    let [left, right] = [0, 1].map(|_| Pipeline::new(state, spec));
    Table::new(left, right, book)
}

/// Panics unless a guard shows whole transactions, according to the invariants
/// between tables and groups at each version. Returns a digest of the state.
fn look(guard: &Guard<'_, Pipeline>) -> u64 {
    let version = guard.version().transactions();
    assert_eq!(
        guard.groups[&COUNTER_GROUP], version,
        "the transaction's number"
    );
    // One group for each flow, and the counter.
    assert_eq!(guard.groups.len(), FLOW_COUNT as usize + 1);
    let mut seen = 0;
    for flow in 0..FLOW_COUNT {
        let (way, port) = guard.walk(flow);
        let [0, table @ (1 | 2)] = way[..] else {
            panic!("flow {flow} goes through {way:?}");
        };
        let other_table = &guard.tables[3 - table];
        assert!(
            !other_table.then.contains_key(&id(flow)),
            "flow {flow} twice"
        );
        assert!(!other_table.engine.dynamic().unwrap().contains(id(flow)));
        // The last transaction of this flow: each flow moves once in
        // `FLOW_COUNT` transactions.
        let turn = u64::from(FLOW_COUNT);
        let last = (version + turn - u64::from(flow)) / turn * turn + u64::from(flow);
        let last = last.checked_sub(turn).filter(|&last| last > 0);
        assert_eq!(port, last.unwrap_or(0), "flow {flow} at version {version}");
        let number = u64::from(flow) << 56 | (table as u64) << 48 | port;
        seen = table_kit::Dice(seen ^ number).roll();
    }
    seen
}

/// Ends the readers' loops, even if the writer panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The minimum number of transactions, and of observations by each reader.
const MIN_TRANSACTIONS: u64 = if cfg!(miri) { 20 } else { 2000 };
const MIN_LOOKS: usize = if cfg!(miri) { 10 } else { 1000 };

#[test]
fn readers_see_whole_transactions_over_tables_and_groups() {
    for (engine, interval) in [
        ("linear", Duration::ZERO),
        ("tuplemerge", Duration::from_micros(300)),
        ("forest", Duration::ZERO),
    ] {
        let spec = EngineSpec::parse(engine).unwrap();
        let mut state = State::initial();
        let (mut writer, table) = build(&state, &spec);
        writer.set_publish_interval(interval);
        let start = Instant::now();
        let (looks, over) = ([0, 1].map(AtomicUsize::new), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _ends = Ends(&over);
            for looks in &looks {
                scope.spawn(|| {
                    let _ends = Ends(&over);
                    let mut reader = table.reader();
                    let mut last = Version::default();
                    while !over.load(Ordering::Relaxed) {
                        let guard = reader.pin();
                        assert!(guard.version() >= last, "back from {last}");
                        last = guard.version();
                        let seen = look(&guard);
                        // The guard's state does not change.
                        std::thread::yield_now();
                        assert_eq!(look(&guard), seen);
                        drop(guard);
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut number = 0;
            let enough = || looks.iter().all(|n| n.load(Ordering::Relaxed) >= MIN_LOOKS);
            while number < MIN_TRANSACTIONS || !enough() {
                assert!(!over.load(Ordering::Relaxed), "a reader has panicked");
                writer.set_now(start.elapsed());
                if number % 16 == 5 {
                    for (wrong, refusal) in state.wrong(number + 1) {
                        assert_eq!(writer.apply(&wrong), Err(refusal));
                    }
                }
                number += 1;
                let steps = state.next(number);
                state.make_all(&steps).unwrap();
                assert_eq!(writer.apply(&steps).unwrap().transactions(), number);
                if number % 500 == 0 {
                    let rebuilt = writer.on_both_sides(|pipeline| {
                        let mut tables = pipeline.tables.iter_mut();
                        tables.try_for_each(|table| {
                            let engine = table.engine.as_dynamic().unwrap();
                            engine.rebuild(&mut NoProgress)
                        })
                    });
                    assert_eq!(rebuilt.unwrap().transactions(), number);
                }
                assert!(number < 10_000_000, "readers do not get on");
            }
        });
        writer.synchronize();
        assert!(table.reader().pin().state() == state, "{engine}");
    }
}

/// An operation, when nothing else happens at the same time.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Apply,
    Refused,
    TryPublish,
    /// The reader with this number pins or unpins.
    Turn(usize),
}

const DEEDS: [Deed; 5] = [
    Deed::Apply,
    Deed::Refused,
    Deed::TryPublish,
    Deed::Turn(0),
    Deed::Turn(1),
];

/// A guard and the side that it is in.
struct Pinned<'a> {
    guard: Guard<'a, Pipeline>,
    version: usize,
    in_standby: bool,
}

/// Tries all orders of a few operations, and compares each with the expected
/// state.
#[test]
fn every_order_shows_whole_transactions() {
    const ORDER_LENGTH: u32 = if cfg!(miri) { 3 } else { 6 };
    let orders = u32::try_from(DEEDS.len()).unwrap().pow(ORDER_LENGTH);
    for interval in [Duration::ZERO, Duration::MAX] {
        for order in 0..orders {
            let mut remaining = order as usize;
            let deeds: Vec<Deed> = (0..ORDER_LENGTH)
                .map(|_| {
                    let deed = DEEDS[remaining % DEEDS.len()];
                    remaining /= DEEDS.len();
                    deed
                })
                .collect();
            run_order(&deeds, interval, order as usize);
        }
    }
}

fn run_order(deeds: &[Deed], interval: Duration, seed: usize) {
    let spec = EngineSpec::parse("linear").unwrap();
    // The expected state of each version.
    let mut states = vec![State::initial()];
    let (mut writer, table) = build(&states[0], &spec);
    writer.set_publish_interval(interval);
    let mut readers: Vec<Reader<Pipeline>> = deeds.iter().map(|_| table.reader()).collect();
    let mut readers = readers.iter_mut();
    let mut pinned: [Option<Pinned<'_>>; 2] = [None, None];
    let mut visible = 0;
    let publish = |pinned: &mut [Option<Pinned<'_>>; 2], visible: &mut usize, accepted: usize| {
        let in_the_way = pinned.iter().flatten().any(|pinned| pinned.in_standby);
        if *visible < accepted && !in_the_way {
            *visible = accepted;
            for pinned in pinned.iter_mut().flatten() {
                pinned.in_standby = true;
            }
        }
        *visible == accepted
    };
    let context = || format!("{deeds:?}, {interval:?}");
    for &deed in deeds {
        let accepted = states.len() - 1;
        match deed {
            Deed::Apply => {
                let mut state = states[accepted].clone();
                let steps = state.next(states.len() as u64);
                state.make_all(&steps).unwrap();
                states.push(state);
                let version = writer.try_apply(&steps).unwrap();
                assert_eq!(version.transactions(), accepted as u64 + 1);
                if interval.is_zero() {
                    publish(&mut pinned, &mut visible, accepted + 1);
                }
            }
            Deed::Refused => {
                let mut wrong = states[accepted].wrong(states.len() as u64);
                let (steps, refusal) = wrong.swap_remove(seed % wrong.len());
                let before = (writer.pending(), writer.accepted(), writer.visible());
                assert_eq!(writer.apply(&steps), Err(refusal), "{}", context());
                let after = (writer.pending(), writer.accepted(), writer.visible());
                assert_eq!(before, after);
            }
            Deed::TryPublish => {
                let published = writer.try_publish();
                let expected = publish(&mut pinned, &mut visible, accepted);
                assert_eq!(published, expected, "{}", context());
            }
            Deed::Turn(place) => {
                pinned[place] = match pinned[place].take() {
                    Some(_) => None,
                    None => Some(Pinned {
                        guard: readers.next().expect("one for each deed").pin(),
                        version: visible,
                        in_standby: false,
                    }),
                };
            }
        }
        assert_eq!(writer.visible().transactions(), visible as u64);
        for pinned in pinned.iter().flatten() {
            let version = pinned.guard.version().transactions();
            assert_eq!(version, pinned.version as u64, "{}", context());
            let shown = pinned.guard.state();
            assert!(shown == states[pinned.version], "{}", context());
            look(&pinned.guard);
        }
    }
    pinned = [None, None];
    drop(pinned);
    // Check both sides, one after the other.
    for _ in 0..2 {
        writer.synchronize();
        let accepted = states.len() - 1;
        let mut reader = table.reader();
        assert!(reader.pin().state() == states[accepted], "{}", context());
        let mut state = states[accepted].clone();
        let steps = state.next(states.len() as u64);
        state.make_all(&steps).unwrap();
        states.push(state);
        writer.apply(&steps).unwrap();
    }
}
