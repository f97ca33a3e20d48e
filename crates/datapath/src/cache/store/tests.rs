//! A store against what was put into it, over keys of eight bits in two words.

use classyard::{Priority, RuleId};
use classyard_workload::kit::random::{Dice, SeededDice};

use super::*;
use crate::cache::bits::known;
use crate::cache::path::Step;

/// A point: four bits in each of two words.
fn point(number: usize) -> Words {
    let mut key = [0; KEY_WORDS];
    key[3] = (number as u64 & 15) << 40;
    key[7] = number as u64 >> 4;
    key
}

fn mask(dice: &mut dyn Dice) -> Words {
    match dice.below(3) {
        0 => point(dice.below(256)),
        1 => point(255 << dice.below(5) & 255),
        _ => point(*dice.pick(&[0x0f, 0xf0, 0xff, 0x33])),
    }
}

fn winner(priority: usize, id: usize) -> Winner {
    let priority = Priority(u32::try_from(priority).unwrap());
    Winner::new(priority, RuleId::from_index(id))
}

fn path(winner: Winner) -> Path {
    let steps = [(TableId(0), Winner::MISS), (TableId(4), winner)];
    let steps = steps.map(|(table, winner)| Step {
        table,
        winner,
        set: Vec::new(),
    });
    Path {
        steps: steps.into(),
        rest: None,
    }
}

fn covers(mask: &Words, key: &Words, other: &Words) -> bool {
    let words = mask.iter().zip(key).zip(other);
    words.fold(true, |all, ((mask, one), other)| {
        all & ((one ^ other) & mask == 0)
    })
}

/// The winner that a store finds for a point.
fn found(store: &mut Store<Winner>, number: usize) -> Option<(Decision, Winner)> {
    let (key, mut answer) = (point(number), None);
    store.find(
        true,
        |_| &key,
        &mut vec![0],
        |_, decision, found| {
            if let Found::Path(path) = found {
                answer = Some((decision, path));
            }
        },
    );
    let (decision, path) = answer?;
    assert_eq!(store.check(decision, &key), Found::Path(path));
    Some((decision, *store.paths.program(path).unwrap()))
}

/// What is found was put in for a region that has the point, and no change has taken it
/// out; there is never more than there may be.
#[test]
fn a_store_has_what_was_put_in_and_no_change_took_out() {
    let mut hits = 0;
    for seed in 0..60 {
        let mut dice = SeededDice::new(seed);
        let dice: &mut dyn Dice = &mut dice;
        let bounds = Bounds {
            masks: *dice.pick(&[2, 3, 8, 32]),
            megaflows: *dice.pick(&[1, 5, 40, 300]),
        };
        let mut store = Store::new(bounds, seed);
        // Regions that are right by now: key, mask, winner.
        let mut right: Vec<(Words, Words, Winner)> = Vec::new();
        for step in 0..400 {
            match dice.below(12) {
                0 => {
                    // A rule over some points takes them from winners of less priority.
                    let (value, asked) = (point(dice.below(256)), mask(dice));
                    let rule = winner(dice.below(8), 10_000 + step);
                    let bits = known(&value, &asked);
                    store.entry_added(TableId(4), rule, &bits);
                    right.retain(|(key, mask, winner)| {
                        let overlaps = (0..256).map(point).any(|point| {
                            covers(mask, key, &point) && covers(&asked, &value, &point)
                        });
                        !(overlaps && rule.beats(*winner))
                    });
                    // One of another table takes nothing from paths that do not pass it.
                    store.entry_added(TableId(2), rule, &[]);
                }
                1 => {
                    let gone = RuleId::from_index(dice.below(40));
                    for path in store.paths.of_entry(gone) {
                        store.paths.close(path);
                    }
                    right.retain(|(_, _, winner)| winner.rule() != Some(gone));
                }
                2 if dice.one_in(5) => {
                    store.begin_era();
                    right.clear();
                }
                3 => store.tick(),
                _ => {
                    let (key, mask) = (point(dice.below(256)), mask(dice));
                    let winner = winner(dice.below(8), dice.below(40));
                    let program = |_: &Path| winner;
                    let kept = store.insert(&key, &mask, path(winner), program);
                    let kept = kept.expect("there are few paths");
                    let (own, bits, path) = store.megaflow(kept.decision).expect("it is kept");
                    assert_eq!(path, kept.path);
                    // It may look at more bits, and never at fewer.
                    assert!(covers(&bits, &own, &key));
                    let words = mask.iter().zip(&bits);
                    assert!(words.fold(true, |all, (mask, bits)| all & (mask & !bits == 0)));
                    right.push((own, bits, winner));
                }
            }
            assert!(store.masks() <= bounds.masks && store.len() <= bounds.megaflows);
            assert_eq!(store.len(), store.all().count());
            let number = dice.below(256);
            let key = point(number);
            if let Some((_, winner)) = found(&mut store, number) {
                hits += 1;
                let is_right = |(own, mask, other): &(Words, Words, Winner)| {
                    covers(mask, own, &key) && *other == winner
                };
                assert!(right.iter().any(is_right), "seed {seed}, step {step}");
            }
        }
    }
    assert!(hits > 3_000, "{hits}");
}

/// What was put in last is found at once, as long as there is room.
#[test]
fn what_was_put_in_is_found() {
    let bounds = Bounds {
        masks: 4,
        megaflows: 1000,
    };
    let mut store = Store::new(bounds, 1);
    let mask = point(255);
    for number in 0..256 {
        let winner = winner(1, number);
        store.insert(&point(number), &mask, path(winner), |_| winner);
    }
    for number in 0..256 {
        let (_, winner) = found(&mut store, number).expect("it was put in");
        assert_eq!(winner.rule(), Some(RuleId::from_index(number)));
    }
    assert_eq!(
        (store.len(), store.masks(), store.counts.evicted),
        (256, 1, 0)
    );
}
