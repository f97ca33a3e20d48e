//! Readers leaked while pinned, and the calls that a writer can still make.

use super::*;

/// Leaks a guard of a reader, so that the reader stays in the standby.
fn leak<R: Replica>(reader: &mut Reader<R>) {
    std::mem::forget(reader.pin());
}

/// Returns the state that a writer reports.
fn state<R: RuleReplica>(writer: &Writer<R>) -> (Version, Version, usize, usize, usize) {
    (
        writer.accepted(),
        writer.visible(),
        writer.pending(),
        writer.rules(),
        writer.log_bytes(),
    )
}

/// Accepts transactions of `size` changes until the next would have to wait.
fn fill(writer: &mut Writer, size: usize) -> TryApplyError {
    let rule = rule(0);
    let mut transaction = Transaction::new();
    for _ in 0..size {
        transaction.modify(rule.view());
    }
    loop {
        let before = writer.accepted();
        match writer.try_apply(&transaction) {
            Ok(version) => assert_eq!(version, before.next()),
            Err(error) => return error,
        }
        assert!(writer.pending() <= MAX_PENDING);
    }
}

#[test]
fn a_writer_that_would_wait_for_a_leaked_guard_says_so() {
    for interval in [Duration::ZERO, Duration::from_millis(10)] {
        let (mut writer, table) = build(0..3, &Limits::default());
        let (mut leaked, mut reader) = (table.reader(), table.reader());
        leak(&mut leaked);
        // The first swap does not need the leaked reader's side.
        insert(&mut writer, 10).unwrap();
        assert!(writer.try_publish());
        writer.set_publish_interval(interval);
        writer.set_now(interval * 5);
        let seen = writer.visible();

        let full = fill(&mut writer, 64);
        let would_wait = |changes| TryApplyError::WouldWait {
            pending: MAX_PENDING,
            changes,
            limit: MAX_PENDING,
        };
        assert_eq!(full, would_wait(64));
        assert_eq!(
            full.to_string(),
            "a reader that pinned an older version is in the way: 65536 changes are pending, and \
             with 64 more they would exceed the limit of 65536"
        );

        // Nothing is half applied, whatever the number of attempts.
        let before = state(&writer);
        let (new, old) = (rule(77), RuleId::new(1).unwrap());
        let mut both = Transaction::new();
        both.insert(new.view()).remove(old);
        for _ in 0..3 {
            assert_eq!(writer.try_apply(&both), Err(would_wait(2)));
            assert_eq!(state(&writer), before);
            assert!(!writer.contains(new.view().id()) && writer.contains(old));
        }
        // A transaction with an error is still refused.
        let known = rule(10);
        let mut wrong = Transaction::new();
        wrong.remove(old).insert(known.view());
        let refused = writer.apply(&wrong).unwrap_err();
        assert_eq!(
            writer.try_apply(&wrong),
            Err(TryApplyError::Refused(refused.clone()))
        );
        assert_eq!(
            TryApplyError::Refused(refused.clone()).to_string(),
            refused.to_string()
        );
        // A transaction without changes is always accepted.
        assert_eq!(writer.try_apply(&Transaction::new()), Ok(before.0.next()));
        // The other calls that never wait do not wait here either.
        assert!(!writer.try_publish());
        assert!(!writer.publish_if_due());
        assert_eq!(reader.pin().version(), seen);

        drop(leaked);
        let version = writer.try_apply(&both).unwrap();
        assert_eq!((writer.pending(), writer.visible()), (0, version));
        assert_eq!(best(&mut reader, PartId::FIRST), Some(77));
        assert_eq!(writer.rules(), 4);
    }
}

/// Reader and guard are both lost: the standby is never free again, and the writer
/// continues without waiting until it is dropped.
#[test]
fn a_leaked_reader_stops_no_try() {
    let (mut writer, table) = build(0..3, &Limits::default());
    let mut leaked = table.reader();
    leak(&mut leaked);
    std::mem::forget(leaked);
    let mut reader = table.reader();
    insert(&mut writer, 10).unwrap();
    assert!(matches!(
        fill(&mut writer, 1000),
        TryApplyError::WouldWait {
            pending: 65_000,
            changes: 1000,
            ..
        }
    ));
    // Smaller transactions still fit.
    assert!(matches!(
        fill(&mut writer, 1),
        TryApplyError::WouldWait { changes: 1, .. }
    ));
    assert_eq!(writer.pending(), MAX_PENDING);
    assert!(!writer.maintain(10));
    assert!(!writer.try_publish());
    drop(writer);
    assert_eq!(best(&mut reader, PartId::FIRST), Some(10));
}

/// A transaction of any size needs no waiting if no reader is in the standby.
#[test]
fn what_need_not_wait_is_accepted_at_any_size() {
    for interval in [Duration::ZERO, Duration::MAX] {
        let (mut writer, table) = build(0..3, &Limits::default());
        writer.set_publish_interval(interval);
        let rule = rule(0);
        let mut many = Transaction::new();
        for _ in 0..=MAX_PENDING {
            many.modify(rule.view());
        }
        for count in 1..3 {
            assert_eq!(writer.try_apply(&many), Ok(Version(count)));
            assert_eq!((writer.pending(), writer.visible()), (0, Version(count)));
        }
        let mut reader = table.reader();
        leak(&mut reader);
        writer.apply(&Transaction::new()).unwrap();
        writer.publish();
        let found = writer.try_apply(&many);
        assert!(matches!(
            found,
            Err(TryApplyError::WouldWait { pending: 0, .. })
        ));
        // The reader pins again, and leaves.
        drop(reader.pin());
        assert_eq!(writer.try_apply(&many), Ok(Version(4)));
    }
}

/// In a policy a change counts once for each part, and a transaction waits as a whole.
#[test]
fn a_policys_writer_says_so_as_well() {
    let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
    let rules = schemas.each_ref().map(|schema| rule_of(schema, 5, 5));
    let views = || {
        let rules = rules.iter().enumerate();
        rules.map(|(part, rule)| (PartId::from_index(part), rule.view()))
    };
    let mut insert = PolicyTransaction::new();
    insert.insert(views());
    let limits = Limits::default();
    let policy = Policy::dual_stack();
    let (mut writer, table) =
        PolicyTable::build_policy(&policy, &spec(), &limits, &mut NoProgress).unwrap();
    let (mut leaked, mut reader) = (table.reader(), table.reader());
    leak(&mut leaked);
    let inserted = writer.try_apply(&insert);
    assert_eq!(inserted, Ok(writer.visible()));
    let mut modify = PolicyTransaction::new();
    for _ in 0..1024 {
        modify.modify(views());
    }
    for _ in 0..MAX_PENDING / 2048 {
        writer.try_apply(&modify).unwrap();
    }
    assert_eq!(writer.pending(), MAX_PENDING);
    let before = state(&writer);
    let mut remove = PolicyTransaction::new();
    remove.remove(RuleId::new(5).unwrap());
    assert_eq!(
        writer.try_apply(&remove),
        Err(TryApplyError::WouldWait {
            pending: MAX_PENDING,
            changes: 2,
            limit: MAX_PENDING,
        })
    );
    assert!(matches!(
        writer.try_apply(&insert),
        Err(TryApplyError::Refused(UpdateError::DuplicateId { .. }))
    ));
    assert_eq!(state(&writer), before);
    drop(leaked);
    assert_eq!(writer.try_apply(&remove), Ok(before.0.next()));
    assert_eq!((writer.pending(), writer.rules()), (0, 0));
    for part in 0..2 {
        assert_eq!(best(&mut reader, PartId::from_index(part)), None);
    }
}
