//! Changes that wait to be published together: how long they wait, and how the work is
//! spread over that time.

use super::*;

const INTERVAL: Duration = Duration::from_millis(10);

/// The number of changes that a call may make on one side, plus three times its own.
const MAX_EXTRA_CHANGES: usize = 256;

/// The time, which a test sets.
struct Clock(Duration);

impl Clock {
    /// Makes a clock for a writer, and sets the writer's publish interval.
    fn of<R: Replica>(writer: &mut Writer<R>, interval: Duration) -> Clock {
        writer.set_publish_interval(interval);
        Clock(Duration::ZERO)
    }

    fn pass<R: Replica>(&mut self, writer: &mut Writer<R>, time: Duration) {
        self.0 += time;
        writer.set_now(self.0);
    }
}

/// Returns a table of engines that record their calls, and the record.
fn telling() -> (Writer, Table, Arc<Mutex<Vec<Told>>>) {
    let (left, mut right) = (Fragile::new(true), Fragile::new(true));
    let told = Arc::clone(&left.told);
    right.told = Arc::clone(&told);
    let limits = Limits::default();
    let (writer, table) =
        Table::from_pair(Box::new(left), Box::new(right), &rules(0..0), &limits).unwrap();
    (writer, table, told)
}

/// The number of calls since the last time.
fn count(told: &Mutex<Vec<Told>>) -> usize {
    std::mem::take(&mut *told.lock().unwrap()).len()
}

/// Modifies rule 0 `times` times, in one transaction.
fn modify(writer: &mut Writer, times: usize) -> Version {
    let rule = rule(0);
    let mut transaction = Transaction::new();
    for _ in 0..times {
        transaction.modify(rule.view());
    }
    writer.apply(&transaction).unwrap()
}

#[test]
fn changes_wait_until_the_interval_is_over() {
    let (mut writer, table) = build(0..3, &Limits::default());
    let mut reader = table.reader();
    assert_eq!(writer.publish_interval(), Duration::ZERO);
    let mut clock = Clock::of(&mut writer, INTERVAL);
    assert_eq!(writer.publish_interval(), INTERVAL);
    insert(&mut writer, 10).unwrap();
    clock.pass(&mut writer, INTERVAL - Duration::from_micros(1));
    insert(&mut writer, 11).unwrap();
    assert!(!writer.publish_if_due());
    assert_eq!((writer.pending(), writer.visible()), (2, Version(0)));
    assert_eq!(best(&mut reader, PartId::FIRST), Some(2));
    // Pending changes count in checks.
    assert!(insert(&mut writer, 10).is_err());
    assert_eq!(writer.rules(), 5);
    clock.pass(&mut writer, Duration::from_micros(1));
    assert_eq!(writer.visible(), Version(0), "only calls publish");
    assert!(writer.publish_if_due());
    assert_eq!((writer.pending(), writer.visible()), (0, Version(2)));
    assert_eq!(best(&mut reader, PartId::FIRST), Some(11));
    // A new interval has begun.
    insert(&mut writer, 12).unwrap();
    assert_eq!(writer.visible(), Version(2));
    clock.pass(&mut writer, INTERVAL);
    insert(&mut writer, 13).unwrap();
    assert_eq!((writer.pending(), writer.visible()), (0, Version(4)));
    assert!(writer.publish_if_due(), "nothing waits");
    // After an idle time, changes do not wait.
    clock.pass(&mut writer, INTERVAL * 5);
    insert(&mut writer, 14).unwrap();
    assert_eq!(writer.visible(), Version(5));
    assert_eq!(best(&mut reader, PartId::FIRST), Some(14));
}

#[test]
fn calls_that_must_publish_ignore_the_interval() {
    let (mut writer, table) = build(0..3, &Limits::default());
    let mut reader = table.reader();
    writer.set_publish_interval(INTERVAL);
    type Call = fn(&mut Writer);
    let calls: [(u32, Call); 5] = [
        (10, |writer| assert!(writer.try_publish())),
        (11, |writer| assert_eq!(writer.publish(), Version(2))),
        (12, |writer| assert_eq!(writer.synchronize(), Version(3))),
        (13, |writer| {
            writer.rebuild(&mut NoProgress).unwrap();
        }),
        (14, |writer| {
            writer.set_publish_interval(Duration::ZERO);
            assert!(writer.publish_if_due());
        }),
    ];
    for (number, publish) in calls {
        insert(&mut writer, number).unwrap();
        assert_ne!(best(&mut reader, PartId::FIRST), Some(number));
        publish(&mut writer);
        assert_eq!(best(&mut reader, PartId::FIRST), Some(number));
        assert_eq!(writer.visible(), writer.accepted());
    }
    insert(&mut writer, 15).unwrap();
    assert_eq!(
        writer.visible(),
        Version(6),
        "there is no interval any more"
    );
    writer.set_publish_interval(INTERVAL);
    insert(&mut writer, 16).unwrap();
    assert_eq!(writer.visible(), Version(6), "there is one again");
    drop(writer);
    assert_eq!(best(&mut reader, PartId::FIRST), Some(16));
}

/// With transactions of any size, and a reader in the standby for any part of an
/// interval, no call does more than its share of the work, and little is left at the end
/// of the interval.
#[test]
fn the_work_is_spread_over_the_interval() {
    for (size, pinned) in [(1, 0), (1, 90), (20, 0), (20, 40), (500, 0), (500, 40)] {
        let (mut writer, table, told) = telling();
        insert(&mut writer, 0).unwrap();
        writer.synchronize();
        let mut clock = Clock::of(&mut writer, INTERVAL);
        let mut readers = [0; 5].map(|_| table.reader());
        let mut guard = None;
        let mut published = Vec::new();
        let mut most_at_last = 0;
        for reader in &mut readers {
            let mut reader = Some(reader);
            for round in 0..100 {
                clock.pass(&mut writer, INTERVAL / 100);
                if round == pinned {
                    guard = None;
                }
                if round == 99 {
                    // The reader is in the standby once this round has published.
                    guard = reader.take().map(Reader::pin);
                }
                count(&told);
                let version = modify(&mut writer, size);
                let made = count(&told);
                assert!(made <= 3 * size + MAX_EXTRA_CHANGES, "{made} of {size}");
                if writer.visible() == version {
                    published.push(version.transactions());
                    most_at_last = most_at_last.max(made);
                }
            }
        }
        drop(guard);
        // The first hundred transactions were made in the first interval.
        assert_eq!(published, [101, 201, 301, 401, 501], "{size}, {pinned}");
        assert!(most_at_last <= 3 * size, "{most_at_last} of {size}");
    }
}

/// After a large transaction, each later call replays a little of it, for at most one
/// more interval. Then the rest is done immediately.
#[test]
fn a_burst_is_worked_off_within_two_intervals() {
    for idle in [false, true] {
        let (mut writer, _table, told) = telling();
        insert(&mut writer, 0).unwrap();
        writer.synchronize();
        let mut clock = Clock::of(&mut writer, INTERVAL);
        clock.pass(&mut writer, INTERVAL);
        count(&told);
        // One side makes the changes immediately; the other side still lacks them.
        let burst = modify(&mut writer, 3000);
        assert_eq!((count(&told), writer.visible()), (1 + 3000, burst));
        for _ in 0..8 {
            modify(&mut writer, 1);
            assert_eq!(count(&told), 3 + MAX_EXTRA_CHANGES);
        }
        let left = 3000 + 8 - 8 * (3 + MAX_EXTRA_CHANGES);
        clock.pass(&mut writer, INTERVAL);
        assert_eq!(writer.visible(), burst);
        if idle {
            assert!(writer.publish_if_due());
            assert_eq!(count(&told), left, "no reader waits for it");
            continue;
        }
        modify(&mut writer, 1);
        assert_eq!(
            (count(&told), writer.visible()),
            (3 + MAX_EXTRA_CHANGES, burst)
        );
        clock.pass(&mut writer, INTERVAL);
        let last = modify(&mut writer, 1);
        assert_eq!(writer.visible(), last);
        assert_eq!(count(&told), left + 2 - (3 + MAX_EXTRA_CHANGES));
    }
}

#[test]
fn a_writer_with_nothing_to_do_catches_up() {
    let (mut writer, table, told) = telling();
    insert(&mut writer, 0).unwrap();
    writer.synchronize();
    let mut clock = Clock::of(&mut writer, INTERVAL);
    let mut reader = table.reader();
    clock.pass(&mut writer, INTERVAL);
    let guard = reader.pin();
    let burst = modify(&mut writer, 1000);
    assert_eq!(writer.visible(), burst);
    count(&told);
    assert!(writer.publish_if_due());
    assert_eq!(count(&told), 0, "a reader is in the way");
    drop(guard);
    let mut made = Vec::new();
    for _ in 0..6 {
        assert!(writer.publish_if_due(), "nothing waits");
        made.push(count(&told));
    }
    assert_eq!(
        made,
        [
            MAX_EXTRA_CHANGES,
            MAX_EXTRA_CHANGES,
            MAX_EXTRA_CHANGES,
            1000 - 3 * MAX_EXTRA_CHANGES,
            0,
            0
        ]
    );
}

#[test]
fn no_interval_lets_too_much_wait() {
    let (mut writer, table, told) = telling();
    insert(&mut writer, 0).unwrap();
    writer.synchronize();
    writer.set_publish_interval(Duration::MAX);
    let before = writer.visible();
    for _ in 0..MAX_PENDING / 128 {
        modify(&mut writer, 128);
    }
    assert_eq!((writer.pending(), writer.visible()), (MAX_PENDING, before));
    count(&told);
    let last = modify(&mut writer, 1);
    assert_eq!((writer.pending(), writer.visible()), (0, last));
    assert_eq!(count(&told), 1, "all but that was done by then");
    assert_eq!(table.reader().pin().version(), last);
    // Another 65,536 changes take no more memory.
    let mut again = || {
        for _ in 0..=MAX_PENDING / 128 {
            modify(&mut writer, 128);
        }
        assert_eq!(writer.pending(), 0);
        writer.log_bytes()
    };
    let bytes = again();
    assert!(again() <= bytes, "nothing piles up");
}

/// The engine panics while the standby catches up before the interval is over, in each
/// call that does so. None of the pending changes has been visible, and none ever is.
#[test]
fn an_engine_that_panics_ahead_of_time_poisons_the_writer_and_no_reader() {
    let calls: [fn(&mut Writer) -> bool; 4] = [
        |writer| insert(writer, 21).is_ok(),
        |writer| writer.publish_if_due(),
        |writer| writer.try_publish(),
        |writer| writer.publish() > Version(0),
    ];
    for call in calls {
        let (mut writer, table, _) = telling();
        let (mut early, mut late) = (table.reader(), table.reader());
        writer.set_publish_interval(INTERVAL);
        let guard = early.pin();
        insert(&mut writer, 20).unwrap();
        writer.publish();
        // The guard keeps the standby from catching up.
        insert(&mut writer, 13).unwrap();
        assert!(!writer.publish_if_due());
        drop(guard);
        let panicked = catch_unwind(AssertUnwindSafe(|| call(&mut writer)));
        assert!(panicked.is_err() && writer.is_poisoned());
        assert_eq!(best(&mut late, PartId::FIRST), Some(20));
        for call in calls {
            let refused = catch_unwind(AssertUnwindSafe(|| call(&mut writer))).unwrap_err();
            let message = refused.downcast_ref::<&str>().unwrap();
            assert!(message.contains("poisoned"), "{message}");
        }
        drop(writer);
        assert_eq!(best(&mut late, PartId::FIRST), Some(20));
        assert_eq!(late.pin().version(), Version(1));
    }
}

/// With an interval, maintenance continues on one side, and is published when the
/// interval is over.
#[test]
fn maintaining_respects_the_interval() {
    let (mut left, mut right) = (Fragile::new(true), Fragile::new(true));
    (left.steps, right.steps) = (1000, 1000);
    let told = Arc::clone(&left.told);
    right.told = Arc::clone(&told);
    let limits = Limits::default();
    let (mut writer, _) =
        Table::from_pair(Box::new(left), Box::new(right), &rules(0..0), &limits).unwrap();
    let mut clock = Clock::of(&mut writer, INTERVAL);
    let steps = |told: &Mutex<Vec<Told>>| {
        let told = std::mem::take(&mut *told.lock().unwrap()).into_iter();
        let steps = told.map(|told| match told {
            Told::Maintain(steps) => steps,
            other => panic!("{other:?}"),
        });
        steps.sum::<usize>()
    };
    assert!(writer.maintain(500));
    assert_eq!(steps(&told), 500);
    for _ in 0..7 {
        assert!(writer.maintain(64));
        assert_eq!(steps(&told), 64);
    }
    for round in 0..1000 {
        assert!(writer.maintain(64), "no reader has seen it yet");
        assert_eq!(steps(&told), if round == 0 { 52 } else { 0 });
    }
    clock.pass(&mut writer, INTERVAL);
    assert!(!writer.maintain(64));
    assert_eq!(steps(&told), 0);
    // The other side does its maintenance with later changes, within the limit for each
    // call, and no steps once nothing is left to do.
    let mut made = Vec::new();
    for number in 0..5 {
        insert(&mut writer, number).unwrap();
        let told = std::mem::take(&mut *told.lock().unwrap());
        let of = |told: &Told| match told {
            Told::Maintain(steps) => *steps,
            _ => 1,
        };
        made.push(told.iter().map(of).sum::<usize>());
    }
    let each = 3 + MAX_EXTRA_CHANGES;
    // The last steps find nothing to do, and end the maintenance.
    assert_eq!(made[..3], [each; 3]);
    assert_eq!(made.iter().sum::<usize>(), 1000 + 5);
    assert_eq!(writer.pending(), 5);
}

/// Any number of steps of maintenance leaves all changes visible on both sides.
#[test]
fn unlimited_steps_of_maintenance_lose_no_change() {
    let spec = EngineSpec::parse("forest").unwrap();
    let limits = Limits::default();
    let (mut writer, table) =
        Table::build(&rules(0..300), &spec, &limits, &mut NoProgress).unwrap();
    let mut reader = table.reader();
    for number in 1000..1004 {
        let plan = reader.plan(&mut NoProgress).unwrap();
        if let Some(plan) = plan {
            assert!(writer.install(&plan));
        }
        while writer.maintain(usize::MAX) {}
        insert(&mut writer, number).unwrap();
        writer.publish();
        assert_eq!(best(&mut reader, PartId::FIRST), Some(number));
        assert_eq!(reader.pin().stats().rules, writer.rules());
    }
}

/// Newer plans replace plans that one side has begun to adopt.
#[test]
fn plans_are_replaced_in_a_log_half_replayed() {
    let spec = EngineSpec::parse("forest").unwrap();
    let limits = Limits::default();
    let set = rules(0..300);
    let (mut writer, table) = Table::build(&set, &spec, &limits, &mut NoProgress).unwrap();
    let mut clock = Clock::of(&mut writer, INTERVAL);
    let mut reader = table.reader();
    let plan = reader.plan(&mut NoProgress).unwrap().unwrap();
    for round in 0..4 {
        let first = 1000 + 10 * round;
        for number in first..first + 10 {
            assert!(writer.install(&plan));
            assert!(writer.maintain(5));
            insert(&mut writer, number).unwrap();
        }
        assert_eq!(writer.pending(), 10);
        assert!(!writer.drift().unwrap().installing || round > 0);
        clock.pass(&mut writer, INTERVAL);
        assert!(writer.publish_if_due());
        assert_eq!(best(&mut reader, PartId::FIRST), Some(first + 9));
        assert_eq!(reader.pin().stats().rules, writer.rules());
    }
    while writer.maintain(1000) {
        clock.pass(&mut writer, INTERVAL);
    }
    assert!(!writer.drift().unwrap().installing);
    writer.synchronize();
    insert(&mut writer, 2000).unwrap();
    clock.pass(&mut writer, INTERVAL);
    assert!(writer.publish_if_due());
    assert_eq!(best(&mut reader, PartId::FIRST), Some(2000));
}

/// The library has no clock of its own: without `set_now` no time passes, and an earlier
/// time than before is ignored.
#[test]
fn time_is_what_the_writer_is_told() {
    let (mut writer, _table) = build(0..3, &Limits::default());
    writer.set_now(INTERVAL * 7);
    writer.set_publish_interval(INTERVAL);
    insert(&mut writer, 10).unwrap();
    std::thread::sleep(INTERVAL * 2);
    insert(&mut writer, 11).unwrap();
    assert!(!writer.publish_if_due());
    assert_eq!(writer.visible(), Version(0), "it was told no time");
    writer.set_now(INTERVAL * 2);
    writer.set_now(INTERVAL * 3);
    assert!(!writer.publish_if_due(), "it was told older times");
    writer.set_now(INTERVAL * 8);
    assert!(writer.publish_if_due());
    writer.set_now(Duration::ZERO);
    insert(&mut writer, 12).unwrap();
    assert_eq!(
        writer.visible(),
        Version(2),
        "the interval began at the last"
    );
    writer.set_now(Duration::MAX);
    insert(&mut writer, 13).unwrap();
    assert_eq!(writer.visible(), Version(4));
    writer.set_publish_interval(Duration::MAX);
    insert(&mut writer, 14).unwrap();
    assert_eq!(writer.visible(), Version(4), "no overflow");
}
