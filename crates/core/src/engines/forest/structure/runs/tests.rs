use super::*;
use crate::engines::forest::structure::free_lists::NO_UNIT;
use crate::model::seed::splitmix;

/// Two of three words are stored column by column; of 50 words, all are.
fn layout(columns: usize) -> RunLayout {
    RunLayout {
        columns,
        heads: if columns == 3 { 2 } else { columns },
    }
}

fn rows(runs: &Runs, run: Run) -> Vec<Vec<u64>> {
    let len = usize::from(run.len);
    let row = |rule| {
        let mut row = Vec::new();
        runs.push_row(run, rule, &mut row);
        row
    };
    (0..len).map(row).collect()
}

fn row(rank: u64) -> [u64; 3] {
    [rank, rank + 100, rank + 200]
}

/// Blocks cover the array, free blocks before the hole are in lists, and all free units
/// are counted.
fn check(runs: &Runs) {
    let units = runs.units;
    let (mut unit, mut free, mut listed) = (0, 0, Vec::new());
    while unit < units {
        assert!(runs.heads.get(unit), "unit {unit}");
        let next = runs.heads.next_one(unit + 1).unwrap_or(units);
        let hole = runs.hole.filter(|hole| hole.target < hole.next);
        if hole.is_some_and(|hole| hole.target == unit) {
            assert!(!runs.free.get(unit));
            assert_eq!(hole.unwrap().next, next);
            free += next - unit;
        } else if runs.free.get(unit) {
            free += next - unit;
            if runs.hole.is_none_or(|hole| unit < hole.target) {
                listed.push((next - unit, unit));
            }
        }
        unit = next;
    }
    assert_eq!(free, runs.free_units);
    let mut blocks = Vec::new();
    for mut first in runs.lists.firsts() {
        while first != NO_UNIT {
            let header = runs.words()[first as usize * runs.columns];
            let length = usize::try_from(header & 0xffff_ffff).unwrap();
            blocks.push((length, first as usize));
            first = u32::try_from(header >> 32).unwrap();
        }
    }
    listed.sort_unstable();
    blocks.sort_unstable();
    assert_eq!(blocks, listed);
    runs.array.check();
}

#[test]
fn runs_keep_their_rules_in_order() {
    let mut runs = Runs::new(layout(3), true);
    let first = row(5);
    let mut run = runs.create([&first[..]].into_iter());
    for rank in [9, 1, 7, 3] {
        run = runs.insert(run, &row(rank));
        check(&runs);
    }
    assert_eq!(rows(&runs, run), [1, 3, 5, 7, 9].map(|r| row(r).to_vec()));
    run = runs.remove(run, 0).unwrap();
    run = runs.remove(run, 3).unwrap();
    run = runs.remove(run, 1).unwrap();
    assert_eq!(rows(&runs, run), [3, 7].map(|r| row(r).to_vec()));
    assert_eq!(runs.ranks(run), [3, 7]);
    run = runs.remove(run, 0).unwrap();
    assert_eq!(runs.remove(run, 0), None);
    assert_eq!((runs.units, runs.free_words()), (0, 0));
}

/// Thousands of runs that grow and shrink at random, and are moved during that.
#[test]
fn runs_survive_being_moved_and_waste_is_bounded() {
    let mut runs = Runs::new(layout(3), true);
    let mut state = 5;
    // The ranks of each run, in order, and its position. The ranks of a run's rules
    // have the run's number in the upper bits.
    let mut model: Vec<(Vec<u64>, Option<Run>)> = vec![(Vec::new(), None); 3000];
    let mut moves = 0;
    let mut swaps = 0;
    for step in 0..120_000_u64 {
        let which = usize::try_from(splitmix(&mut state) % 3000).unwrap();
        // Growing at first, shrinking later.
        let grows = splitmix(&mut state) % 100 < if step < 60_000 { 80 } else { 15 };
        let (ranks, run) = &mut model[which];
        if grows && ranks.len() < 200 {
            let rank = (which as u64) << 32 | (splitmix(&mut state) >> 40 << 8 | step & 0xff);
            if ranks.contains(&rank) {
                continue;
            }
            let position = ranks.partition_point(|&present| present < rank);
            ranks.insert(position, rank);
            let row = row(rank);
            *run = Some(match *run {
                None => runs.create([&row[..]].into_iter()),
                Some(run) => runs.insert(run, &row),
            });
        } else if let Some(old_run) = *run {
            let position = splitmix(&mut state) % ranks.len() as u64;
            let position = usize::try_from(position).unwrap();
            ranks.remove(position);
            *run = runs.remove(old_run, position);
        }
        let growing = runs.array.is_growing();
        runs.tidy(&mut |rank, run| {
            moves += 1;
            model[usize::try_from(rank >> 32).unwrap()].1 = Some(run);
        });
        swaps += usize::from(growing && !runs.array.is_growing());
        if step.is_multiple_of(4096) {
            check(&runs);
            let used = runs.units - runs.free_units;
            // A sweep may be in progress; it began at a quarter.
            assert!(
                runs.free_words() <= 3 * used / 2 + 2 * MIN_FREE_WORDS,
                "{used} units"
            );
        }
    }
    for (ranks, run) in &model {
        let expected: Vec<Vec<u64>> = ranks.iter().map(|&rank| row(rank).to_vec()).collect();
        let actual = run.map_or(Vec::new(), |run| rows(&runs, run));
        assert_eq!(actual, expected);
    }
    assert!(moves > 1000, "{moves} moves");
    assert!(swaps > 0, "the array has grown in the background");
}

/// If all runs grow one after the other, no freed run fits the next.
#[test]
fn growing_runs_reuse_what_they_leave() {
    let mut runs = Runs::new(layout(3), true);
    let mut model: Vec<Run> = (0..500)
        .map(|which| runs.create([&row(which << 32)[..]].into_iter()))
        .collect();
    for round in 1..64 {
        for which in 0..500 {
            let rank = (which as u64) << 32 | round;
            model[which] = runs.insert(model[which], &row(rank));
            runs.tidy(&mut |rank, run| model[usize::try_from(rank >> 32).unwrap()] = run);
        }
        check(&runs);
    }
    assert_eq!(runs.units - runs.free_units, 500 * 64);
    assert!(runs.units <= 500 * 64 * 3 / 2, "{}", runs.units);
    assert!(runs.bytes() <= 500 * 64 * 24 * 5 / 2, "{}", runs.bytes());
}

/// As many rules as the capacity, in runs of all lengths that grow and shrink
/// alternately: appended words can always be addressed.
#[test]
fn a_full_array_has_room_for_every_change() {
    // The length of the longest run, and the steps between calls of `tidy`; the last
    // never calls it.
    for (longest, tidied) in [(3, 1), (40, 7), (MAX_RUN, 1), (MAX_RUN, 9), (MAX_RUN, 0)] {
        let mut runs = Runs::new(layout(3), false);
        runs.set_limit(3 * 12_000 + 2);
        let capacity = runs.capacity();
        assert_eq!(capacity, 12_000 / 4 * 3 - 2 * MAX_RUN);
        let mut state = longest as u64 + tidied;
        let mut below = |bound: usize| {
            let number = splitmix(&mut state) % bound as u64;
            usize::try_from(number).unwrap()
        };
        // The position of each run, by number. The ranks of its rules have the
        // number in the upper bits.
        let mut model: Vec<Option<Run>> = vec![None; capacity.div_ceil(longest) * 2];
        let (mut rules, mut fresh, mut compacted, mut full) = (0, 0, 0, 0);
        for step in 0..100_000_u64 {
            // Even runs grow while odd runs shrink, and vice versa.
            let which = below(model.len());
            let grows = (which as u64 + step / 20_000).is_multiple_of(2) || below(3) > 0;
            if runs.is_short_of_room() {
                compacted += 1;
                runs.compact(&mut |rank, run| {
                    model[usize::try_from(rank >> 32).unwrap()] = Some(run);
                });
                assert_eq!(runs.free_units, 0);
                assert!(!runs.is_short_of_room());
                check(&runs);
            }
            let run_len = model[which].map_or(0, |run| usize::from(run.len));
            if grows && rules == capacity {
                full += 1;
            } else if grows && run_len < longest {
                fresh += 1;
                let row = row((which as u64) << 32 | fresh);
                model[which] = Some(match model[which] {
                    Some(run) => runs.insert(run, &row),
                    None => runs.create([&row[..]].into_iter()),
                });
                rules += 1;
            } else if let Some(run) = model[which] {
                // Frees a whole long run, as when it is split.
                if below(60) == 0 {
                    runs.release(run);
                    (model[which], rules) = (None, rules - run_len);
                } else {
                    model[which] = runs.remove(run, below(run_len));
                    rules -= 1;
                }
            }
            if tidied > 0 && step.is_multiple_of(tidied) {
                runs.tidy(&mut |rank, run| {
                    model[usize::try_from(rank >> 32).unwrap()] = Some(run);
                });
            }
            assert!(runs.units * runs.columns <= runs.limit as usize);
        }
        check(&runs);
        assert_eq!(runs.units - runs.free_units, rules);
        assert!(full > 0, "runs of up to {longest} rules filled the array");
        assert!(
            longest < MAX_RUN || compacted > 0,
            "nothing was moved together"
        );
        for (which, run) in model.iter().enumerate() {
            let ranks = run.map_or(&[][..], |run| runs.ranks(run));
            assert!(ranks.iter().all(|rank| rank >> 32 == which as u64));
            assert!(ranks.is_sorted());
        }
    }
}

#[test]
fn what_can_be_addressed_is_enough_for_the_narrowest_and_the_widest_rules() {
    assert!(Runs::new(layout(3), false).capacity() > 1_000_000_000);
    assert!(Runs::new(layout(50), false).capacity() > 64_000_000);
}

#[test]
fn units_are_positions_divided_by_columns() {
    for columns in [3, 4, 5, 7, 8, 11, 17, 64, 100, 1000, 65_535] {
        let runs = Runs::new(layout(columns), false);
        let last = u32::MAX as usize / columns;
        for unit in [0, 1, 2, last / 3, last / 2, last - 1, last] {
            assert_eq!(runs.unit(runs.run_at(unit, 1)), unit, "{columns} columns");
        }
    }
}
