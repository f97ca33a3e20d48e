//! Transactions that own their rules are built and applied through a live table
//! without allocating, once buffers and table are warm. Allocations of an
//! engine's own updates are not tested.

use std::sync::Arc;

use classyard::engine::{Engine, Wraps};
use classyard::policy::PartId;
use classyard::*;

mod allocations;

use allocations::requests;

const RULE_COUNT: u32 = 64;
const ROUND_COUNT: u32 = 200;

fn id(number: u32) -> RuleId {
    RuleId::new(number).unwrap()
}

/// Every second rule has a cookie: the map of cookies frees its memory when it
/// is empty.
fn cookie(number: u32) -> u64 {
    u64::from(number % 2) << 40
}

/// Returns the matches of a rule; each rule has two forms with the same mask.
fn matches(number: u32, form: u32) -> [FieldMatch; 5] {
    let mut matches = [FieldMatch::Any; 5];
    matches[1] = FieldMatch::Exact(u128::from(number));
    matches[3] = FieldMatch::Exact(u128::from(form));
    matches
}

/// Transactions of one change and of several changes: rules are removed,
/// inserted again and modified, with and without cookies. One transaction is
/// refused.
fn round(round: u32, mut apply: impl FnMut(Step) -> bool) {
    let number = round % RULE_COUNT;
    let form = round / RULE_COUNT % 2;
    assert!(apply(Step::Begin));
    assert!(apply(Step::Modify(number, form)) && apply(Step::Apply));
    apply(Step::Begin);
    for other in 0..8 {
        let number = (number + other) % RULE_COUNT;
        apply(Step::Remove(number));
        apply(Step::Insert(number, form));
    }
    assert!(apply(Step::Apply));
    // The last change is refused, also without allocating.
    apply(Step::Insert(number, form));
    assert!(!apply(Step::Apply));
}

/// A step of a test; `apply` returns whether it was accepted.
enum Step {
    Begin,
    Insert(u32, u32),
    Modify(u32, u32),
    Remove(u32),
    Apply,
}

/// An engine with a preallocated row for each id. Its own updates allocate
/// nothing, so the test counts only allocations of the table and the
/// transactions.
struct Rows {
    schema: Arc<Schema>,
    rows: Vec<Row>,
}

#[derive(Clone)]
struct Row {
    there: bool,
    priority: Priority,
    action: ActionId,
    words: Vec<u64>,
}

const ROWS: &[Engine] = &[Engine {
    name: "rows",
    summary: "a place for each id",
    paper: "none",
    wraps: Wraps::Nothing,
    options: &[],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: |request| {
        let rules = request.rules;
        let empty = Row {
            there: false,
            priority: Priority(0),
            action: ActionId(0),
            words: vec![0; rules.schema().rule_words()],
        };
        let mut rows = Rows {
            schema: Arc::clone(rules.schema()),
            rows: vec![empty; RULE_COUNT as usize],
        };
        rules.iter().for_each(|rule| rows.put(&rule));
        Ok(Box::new(rows))
    },
    estimate: |_, _| unreachable!("not called here"),
}];

impl Rows {
    fn put(&mut self, rule: &RuleRef<'_>) {
        let row = &mut self.rows[rule.id().index()];
        (row.there, row.priority, row.action) = (true, rule.priority(), rule.action());
        row.words.copy_from_slice(rule.words());
    }
}

impl Classifier for Rows {
    fn engine(&self) -> &'static str {
        ROWS[0].name
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn improve_batch(&self, _: KeySlice<'_>, _: &mut [Winner], _: &mut Scratch) {
        unreachable!("not called here")
    }

    fn improve_masked(&self, _: &[u64], _: Winner, _: &mut [u64]) -> Winner {
        unreachable!("not called here")
    }

    fn trace(&self, _: &[u64]) -> LookupTrace {
        unreachable!("not called here")
    }

    fn stats(&self) -> Stats {
        Stats {
            rules: self.rows.iter().filter(|row| row.there).count(),
            ..Stats::default()
        }
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        Some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        Some(self)
    }
}

impl DynamicClassifier for Rows {
    fn contains(&self, id: RuleId) -> bool {
        self.rows.get(id.index()).is_some_and(|row| row.there)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.contains(id).then(|| {
            words.extend_from_slice(&self.rows[id.index()].words);
            self.rows[id.index()].priority
        })
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        self.contains(id).then(|| self.rows[id.index()].action)
    }

    fn winners(&self) -> Vec<Winner> {
        let rows = (0..).zip(&self.rows).filter(|(_, row)| row.there);
        rows.map(|(number, row)| Winner::new(row.priority, id(number)))
            .collect()
    }

    fn check(&self, _: &Transaction<'_>) -> Result<(), UpdateError> {
        Ok(())
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        for change in transaction.changes() {
            match change {
                Change::Insert(rule) | Change::Modify(rule) => self.put(rule),
                Change::Remove(id) => self.rows[id.index()].there = false,
            }
        }
    }
}

fn one_engine(spec: &EngineSpec, pinned: bool) -> usize {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    for number in 0..RULE_COUNT {
        rules
            .add(id(number), Priority(1), ActionId(0), &matches(number, 0))
            .unwrap();
    }
    let (mut writer, table) =
        Table::build(&rules, spec, &Limits::default(), &mut NoProgress).unwrap();
    let mut reader = table.reader();
    let mut changes = TransactionBuf::new(&schema);
    let mut run = |rounds_made: std::ops::Range<u32>| {
        for round in rounds_made {
            // With a guard, changes stay pending and are published later.
            let guard = (pinned && round % 4 != 0).then(|| reader.pin());
            self::round(round, |step| {
                let (priority, action) = (Priority(round), ActionId(round));
                match step {
                    Step::Begin => changes.clear(),
                    Step::Insert(number, form) => {
                        let matches = matches(number, form);
                        let inserted = changes.insert(id(number), priority, action, &matches);
                        inserted.unwrap().cookie(cookie(number));
                    }
                    Step::Modify(number, form) => {
                        let matches = matches(number, form);
                        changes
                            .modify(id(number), priority, action, &matches)
                            .unwrap()
                            .cookie(cookie(number));
                    }
                    Step::Remove(number) => {
                        changes.remove(id(number));
                    }
                    Step::Apply => return writer.apply(&changes.transaction()).is_ok(),
                }
                true
            });
            drop(guard);
        }
        writer.synchronize();
    };
    run(0..ROUND_COUNT);
    run(0..ROUND_COUNT);
    let again = requests(|| run(0..ROUND_COUNT));
    assert_eq!(writer.rules(), RULE_COUNT as usize);
    assert_eq!(writer.accepted().transactions(), u64::from(6 * ROUND_COUNT));
    let last = reader
        .pin()
        .rule(id((ROUND_COUNT - 1) % RULE_COUNT))
        .unwrap();
    assert_eq!(last.view().action(), ActionId(ROUND_COUNT - 1));
    assert_eq!(last.view().cookie(), cookie((ROUND_COUNT - 1) % RULE_COUNT));
    again
}

fn a_policy(spec: &EngineSpec, pinned: bool) -> usize {
    let parts = [0, 1].map(PartId::from_index);
    let mut policy = Policy::dual_stack();
    for number in 0..RULE_COUNT {
        let matches = matches(number, 0);
        let forms = parts.map(|part| (part, &matches[..]));
        policy
            .add(id(number), Priority(1), ActionId(0), &forms)
            .unwrap();
    }
    let (mut writer, table) =
        PolicyTable::build_policy(&policy, spec, &Limits::default(), &mut NoProgress).unwrap();
    let mut reader = table.reader();
    let mut changes = PolicyTransactionBuf::new(policy.schemas());
    let mut run = |rounds_made: std::ops::Range<u32>| {
        for round in rounds_made {
            let guard = (pinned && round % 4 != 0).then(|| reader.pin());
            self::round(round, |step| {
                let (priority, action) = (Priority(round), ActionId(round));
                match step {
                    Step::Begin => changes.clear(),
                    Step::Insert(number, form) => {
                        let matches = matches(number, form);
                        let forms = parts.map(|part| (part, &matches[..]));
                        let inserted = changes.insert(id(number), priority, action, &forms);
                        inserted.unwrap().cookie(cookie(number));
                    }
                    Step::Modify(number, form) => {
                        let matches = matches(number, form);
                        let forms = [(parts[(round % 2) as usize], &matches[..])];
                        let modified = changes.modify(id(number), priority, action, &forms);
                        modified.unwrap().cookie(cookie(number));
                    }
                    Step::Remove(number) => {
                        changes.remove(id(number));
                    }
                    Step::Apply => return writer.apply(&changes.transaction()).is_ok(),
                }
                true
            });
            drop(guard);
        }
        writer.synchronize();
    };
    run(0..ROUND_COUNT);
    run(0..ROUND_COUNT);
    let again = requests(|| run(0..ROUND_COUNT));
    assert_eq!(writer.rules(), RULE_COUNT as usize);
    let guard = reader.pin();
    let last = guard
        .rule_in(parts[0], id((ROUND_COUNT - 1) % RULE_COUNT))
        .unwrap();
    assert_eq!(last.view().action(), ActionId(ROUND_COUNT - 1));
    again
}

#[test]
fn transactions_allocate_nothing_once_warm() {
    // The counter works.
    assert!(requests(|| drop(vec![0_u8; 100])) > 0);
    let spec = EngineSpec::parse_in(ROWS, "rows").unwrap();
    for pinned in [false, true] {
        assert_eq!(one_engine(&spec, pinned), 0, "one engine, {pinned}");
        assert_eq!(a_policy(&spec, pinned), 0, "a policy, {pinned}");
    }
}
