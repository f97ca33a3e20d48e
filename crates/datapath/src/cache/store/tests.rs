//! Compares a store with the inserted megaflows, over keys of eight bits in two words.

use classyard::{EngineSpec, Priority, RuleId};
use classyard_conformance::random::{Dice, SeededDice};

use super::*;
use crate::bits::known;
use crate::cache::path::Step;
use crate::cache::tuple_order::TupleSettings;

/// Returns a point: four bits in each of two words.
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

/// Returns the winner that a store finds for a point.
fn found(store: &mut Store<Winner>, number: usize) -> Option<(MegaflowId, Winner)> {
    let (key, mut answer) = (point(number), None);
    // If megaflows cover the point, any of them is found.
    let is_covered = store.all().any(|(own, mask, _)| covers(&mask, &own, &key));
    let mut packet_indices = vec![0];
    store.find(
        true,
        |_| &key,
        &mut packet_indices,
        |_, megaflow, found| {
            answer = Some((megaflow, found));
            true
        },
    );
    assert_eq!(
        (answer.is_some(), packet_indices.is_empty()),
        (is_covered, is_covered)
    );
    let (megaflow, Found::Path(path)) = answer? else {
        return None;
    };
    assert_eq!(store.check(megaflow, &key), Found::Path(path));
    Some((megaflow, *store.paths().program(path).unwrap()))
}

/// Returns every engine that takes updates, and one more that rarely lets rules share a
/// bucket.
fn engines() -> Vec<Finder> {
    let engines = EngineSpec::all().filter(EngineSpec::is_dynamic);
    let strict = EngineSpec::parse("tuplemerge:c=1").unwrap();
    let engines = engines.chain([strict]);
    engines.map(|spec| Finder::engine(spec).unwrap()).collect()
}

/// Returns the finders that probe hash tables. Metrics are normalised often.
fn hash_tables() -> [Finder; 2] {
    let settings = TupleSettings::default().with_normalise_every(7);
    [Finder::default(), Finder::sorted_tuples(settings)]
}

/// Returns the index, if an engine finds the rows.
fn index<P>(store: &Store<P>) -> Option<&Index> {
    match &store.search {
        ChosenSearch::Tables(_) | ChosenSearch::Tuples(_) => None,
        ChosenSearch::Engine(index) => Some(index),
    }
}

/// True if the index has exactly the rows of the tables.
fn is_in_step<P>(store: &Store<P>) -> bool {
    index(store).is_none_or(|index| {
        let mut rows = store.megaflows.megaflows();
        index.len() == store.len() && rows.all(|(megaflow, ..)| index.has(megaflow))
    })
}

#[test]
fn a_store_has_what_was_put_in_and_no_change_took_out() {
    for finder in hash_tables() {
        has_what_was_put_in(&finder, 60, 3_000);
    }
}

#[test]
fn a_store_has_the_same_whatever_finds_it() {
    for finder in engines() {
        has_what_was_put_in(&finder, 6, 300);
    }
}

/// Every result was inserted for a region with the point, and no change has removed it.
/// The bounds are never exceeded.
fn has_what_was_put_in(finder: &Finder, seeds: u64, least: usize) {
    let mut hits = 0;
    for seed in 0..seeds {
        let mut dice = SeededDice::new(seed);
        let dice: &mut dyn Dice = &mut dice;
        let bounds = Bounds {
            masks: *dice.pick(&[2, 3, 8, 32]),
            megaflows: *dice.pick(&[1, 5, 40, 300]),
        };
        let mut store = Store::new(bounds, finder, seed);
        // Regions that are still right: key, mask, winner.
        let mut right: Vec<(Words, Words, Winner)> = Vec::new();
        for step in 0..400 {
            match dice.below(12) {
                0 => {
                    // A rule over some points takes them from winners of lower priority.
                    let (value, asked) = (point(dice.below(256)), mask(dice));
                    let rule = winner(dice.below(8), 10_000 + step);
                    let added = |table, winner, match_bits| NewEntry {
                        table,
                        winner,
                        match_bits,
                    };
                    let bits = known(&value, &asked);
                    // An entry of another table takes nothing from paths that do not pass
                    // it.
                    let other = added(TableId(2), rule, Vec::new());
                    store.entries_added(&[other, added(TableId(4), rule, bits)]);
                    right.retain(|(key, mask, winner)| {
                        let overlaps = (0..256).map(point).any(|point| {
                            covers(mask, key, &point) && covers(&asked, &value, &point)
                        });
                        !(overlaps && rule.beats(*winner))
                    });
                }
                1 => {
                    let removed = RuleId::from_index(dice.below(40));
                    for path in store.paths().of_entry(removed) {
                        store.paths_mut().close(path);
                    }
                    right.retain(|(_, _, winner)| winner.rule() != Some(removed));
                }
                2 if dice.one_in(5) => {
                    store.begin_era();
                    right.clear();
                }
                3 => store.tick(10.0),
                _ => {
                    let (key, mask) = (point(dice.below(256)), mask(dice));
                    let winner = winner(dice.below(8), dice.below(40));
                    let program = |_: &Path| winner;
                    let kept = store.insert(&key, &mask, &path(winner), program);
                    let kept = kept.expect("there are few paths");
                    let (own, bits, path) = store.megaflow(kept.megaflow).expect("it is kept");
                    assert_eq!(path, kept.path);
                    // The mask may have more bits, but never fewer.
                    assert!(covers(&bits, &own, &key));
                    let words = mask.iter().zip(&bits);
                    assert!(words.fold(true, |all, (mask, bits)| all & (mask & !bits == 0)));
                    right.push((own, bits, winner));
                }
            }
            assert!(store.masks() <= bounds.masks && store.len() <= bounds.megaflows);
            assert_eq!(store.len(), store.all().count());
            let is_engine = matches!(finder.0, Method::Engine(_));
            assert_eq!(index(&store).is_some(), is_engine, "{finder}");
            assert!(is_in_step(&store), "{finder}: seed {seed}, step {step}");
            let number = dice.below(256);
            let key = point(number);
            if let Some((_, winner)) = found(&mut store, number) {
                hits += 1;
                let is_right = |(own, mask, other): &(Words, Words, Winner)| {
                    covers(mask, own, &key) && *other == winner
                };
                assert!(
                    right.iter().any(is_right),
                    "{finder}: seed {seed}, step {step}"
                );
            }
        }
    }
    assert!(hits > least, "{finder}: {hits}");
}

/// Inserted megaflows are found immediately, as long as there is room.
#[test]
fn what_was_put_in_is_found() {
    for finder in engines().iter().chain(&hash_tables()) {
        is_found(finder);
    }
}

fn is_found(finder: &Finder) {
    let bounds = Bounds {
        masks: 4,
        megaflows: 1000,
    };
    let mut store = Store::new(bounds, finder, 1);
    let mask = point(255);
    for number in 0..256 {
        let winner = winner(1, number);
        store.insert(&point(number), &mask, &path(winner), |_| winner);
    }
    // The number of megaflows is large enough that an engine is rebuilt.
    store.tick(10.0);
    for number in 0..256 {
        let (_, winner) = found(&mut store, number).expect("it was put in");
        assert_eq!(winner.rule(), Some(RuleId::from_index(number)));
    }
    assert_eq!(
        (store.len(), store.masks(), store.counts.evicted),
        (256, 1, 0)
    );
}

/// Megaflows with closed paths are stale. After they are dropped, other megaflows that
/// cover a packet are found, whichever row an engine returns first.
#[test]
fn rows_of_closed_paths_make_room_for_others() {
    for finder in engines().iter().chain(&hash_tables()) {
        for open in 0..5 {
            let bounds = Bounds {
                masks: 8,
                megaflows: 100,
            };
            let mut store = Store::new(bounds, finder, 2);
            for (number, mask) in [0xff, 0xfe, 0xf0, 0xc0, 0].into_iter().enumerate() {
                let winner = winner(1, number);
                store.insert(&point(0x55), &point(mask), &path(winner), |_| winner);
            }
            for number in (0..5).filter(|&number| number != open) {
                for path in store.paths().of_entry(RuleId::from_index(number)) {
                    store.paths_mut().close(path);
                }
            }
            let key = point(0x55);
            let mut stale = 0;
            let path = loop {
                let (mut packet_indices, mut known) = (vec![0, 1, 2], Vec::new());
                store.find(
                    true,
                    |_| &key,
                    &mut packet_indices,
                    |_, megaflow, found| {
                        known.push((megaflow, found));
                        true
                    },
                );
                assert!(packet_indices.is_empty(), "{finder}, {open}");
                assert_eq!(known, [known[0]; 3]);
                match known[0] {
                    (megaflow, Found::Stale) => store.drop_stale(megaflow, &key),
                    (_, Found::Path(path)) => break path,
                    (_, Found::Nothing) => panic!("{finder}, {open}"),
                }
                stale += 1;
                assert!(is_in_step(&store), "{finder}, {open}");
            };
            assert_eq!(store.paths().program(path), Some(&winner(1, open)));
            assert!(stale < 5 && store.len() == 5 - stale);
        }
    }
}

/// A megaflow that takes another path, on which an action sets a bit, is compared with
/// new entries after that bit is set.
#[test]
fn a_megaflow_on_another_path_is_compared_as_it_is_then() {
    let bounds = Bounds {
        masks: 4,
        megaflows: 1000,
    };
    let mut store = Store::new(bounds, &Finder::default(), 4);
    let mask = point(255);
    // Enough rows that signatures are picked.
    for number in 0..256 {
        let winner = winner(1, number);
        store.insert(&point(number), &mask, &path(winner), |_| winner);
    }
    let (number, rule) = (0x37, winner(1, 400));
    let mut other = path(rule);
    other.steps[1].set = known(&point(0x04), &point(0x0f));
    store.insert(&point(number), &mask, &other, |_| rule);
    let added = |bits| NewEntry {
        table: TableId(4),
        winner: winner(2, 500),
        match_bits: known(&point(bits), &point(0xff)),
    };
    store.entries_added(&[added(number)]);
    assert_eq!(store.counts.outdated, 0, "no packet has these bits there");
    store.entries_added(&[added(0x34)]);
    // The packets that had these bits from the start, and the packet on the new path.
    assert_eq!(store.counts.outdated, 2);
    for number in [number, 0x34] {
        assert_eq!(found(&mut store, number), None);
    }
}

/// An index begins with few fields, and adds the fields that masks use. It finds
/// megaflows added before and after.
#[test]
fn an_index_gets_the_fields_of_masks() {
    for finder in engines() {
        let bounds = Bounds {
            masks: 32,
            megaflows: 100,
        };
        let mut store = Store::new(bounds, &finder, 3);
        let mut keys: Vec<Words> = Vec::new();
        for word in 0..14 {
            let (mut key, mut mask) = ([0; KEY_WORDS], [0; KEY_WORDS]);
            (key[word], mask[word]) = (0x0001_8001_0001_0001, 0x0001_8001_0001_0001);
            let winner = winner(1, word);
            store.insert(&key, &mask, &path(winner), |_| winner);
            keys.push(key);
            assert!(index(&store).is_some() && is_in_step(&store), "{finder}");
        }
        let (mut packet_indices, mut known) = ((0..14).collect(), Vec::new());
        store.find(
            true,
            |packet_index| &keys[packet_index],
            &mut packet_indices,
            |_, _, found| {
                known.push(found);
                true
            },
        );
        let known: Vec<Winner> = known
            .iter()
            .map(|found| match found {
                Found::Path(path) => *store.paths().program(*path).unwrap(),
                other => panic!("{finder}: {other:?}"),
            })
            .collect();
        let expected: Vec<Winner> = (0..14).map(|word| winner(1, word)).collect();
        assert_eq!(known, expected, "{finder}");
    }
}

/// Sorted tuples: the mask of frequent packets is probed first, unless these packets enter
/// the microflow cache.
#[test]
fn references_sort_the_tables_of_masks() {
    let bounds = Bounds {
        masks: 8,
        megaflows: 100,
    };
    let probes = |is_counted: bool| {
        let finder = Finder::sorted_tuples(TupleSettings::default());
        let mut store = Store::new(bounds, &finder, 5);
        for (number, mask) in [0xff, 0x0f, 0xf0].into_iter().enumerate() {
            let winner = winner(1, number);
            store.insert(&point(0x11 << number), &point(mask), &path(winner), |_| {
                winner
            });
        }
        let key = point(0x44);
        for _ in 0..10 {
            store.find(true, |_| &key, &mut vec![0, 1, 2], |_, _, _| is_counted);
        }
        store.counts.probes
    };
    // The mask is the third one in the first search of three packets.
    assert_eq!(probes(true), 3 * (3 + 9));
    assert_eq!(probes(false), 3 * 30);
}

/// If a new entry may win packets of a megaflow, the megaflow is stale in its era and in all
/// later eras, also when the numbers of eras begin again.
#[test]
fn a_stale_megaflow_stays_stale_in_later_eras() {
    let bounds = Bounds {
        masks: 4,
        megaflows: 100,
    };
    for era in [
        STALE + 1,
        STALE + 2,
        LAST_ERA / 2,
        LAST_ERA / 2 + 1,
        LAST_ERA - 2,
        LAST_ERA,
    ] {
        let mut store = Store::new(bounds, &Finder::default(), 6);
        store.megaflows.era = era;
        for number in [1, 2] {
            let winner = winner(1, number);
            store.insert(&point(number), &point(255), &path(winner), |_| winner);
        }
        let added = NewEntry {
            table: TableId(4),
            winner: winner(2, 500),
            match_bits: known(&point(1), &point(255)),
        };
        store.entries_added(&[added]);
        assert_eq!(found(&mut store, 1), None, "era {era}");
        assert!(found(&mut store, 2).is_some(), "era {era}");
        for later in 1..4 {
            store.begin_era();
            for number in [1, 2] {
                assert_eq!(found(&mut store, number), None, "{later} after era {era}");
            }
        }
    }
}

/// If traffic moves from mask to mask, the rows of all masks together stay bounded, and
/// megaflows that were moved are found.
#[test]
fn rows_are_bounded_when_traffic_moves_from_mask_to_mask() {
    let key = |mask: usize, number: usize| {
        let mut key = [0; KEY_WORDS];
        key[mask % 8] = number as u64 | 1 << 40;
        key[8] = mask as u64;
        key
    };
    for finder in engines().iter().chain(&hash_tables()) {
        let bounds = Bounds {
            masks: 32,
            megaflows: 1000,
        };
        let mut store = Store::new(bounds, finder, 7);
        let mut first_bytes = 0;
        for mask in 0..24 {
            let mut mask_words = [0; KEY_WORDS];
            mask_words[mask % 8] = u64::MAX;
            // Distinguishes the masks that use the same word.
            mask_words[8] = 1 << mask | 0xff << 32;
            for number in 0..2000 {
                let winner = winner(1, number % 40);
                let key = key(mask, number);
                store.insert(&key, &mask_words, &path(winner), |_| winner);
                let (mut packet_indices, mut is_found) = (vec![0], false);
                store.find(
                    true,
                    |_| &key,
                    &mut packet_indices,
                    |_, _, found| {
                        is_found = matches!(found, Found::Path(_));
                        true
                    },
                );
                assert!(is_found, "{finder}: mask {mask}, megaflow {number}");
            }
            let rows = store
                .megaflows
                .tables
                .iter()
                .map(|table| table.rows() as usize);
            let rows: usize = rows.sum();
            assert!(rows <= 2000, "{finder}: {rows} rows");
            assert!(
                store.len() <= 1000 && is_in_step(&store),
                "{finder}: mask {mask}"
            );
            if mask == 0 {
                first_bytes = store.bytes();
            }
        }
        assert!(
            index(&store).is_some() || store.bytes() < 4 * first_bytes,
            "{finder}: {} bytes",
            store.bytes()
        );
    }
}

#[test]
fn an_era_begins_if_too_many_megaflows_are_compared_with_new_entries() {
    let (megaflows, limit) = (1 << 10, MAX_COMPARED_MEGAFLOWS);
    let bounds = Bounds {
        masks: 2,
        megaflows,
    };
    let mut store = Store::new(bounds, &Finder::default(), 1);
    let mut mask = [0; KEY_WORDS];
    mask[7] = u64::MAX;
    // Actions write all bits of word 3 before table 4.
    let mut path = path(winner(5, 5));
    path.steps[1].set.push(Known {
        word: 3,
        mask: u64::MAX,
        value: 1,
    });
    let key = |number: usize| {
        let mut key = [0; KEY_WORDS];
        key[7] = number as u64;
        key
    };
    for number in 0..megaflows {
        store.insert(&key(number), &mask, &path, |_| ());
    }
    // No packet has the value 2, but no signature shows this.
    let added = |number: usize| NewEntry {
        table: TableId(4),
        winner: winner(9, 100 + number),
        match_bits: vec![Known {
            word: 3,
            mask: u64::MAX,
            value: 2,
        }],
    };
    let rows = store.rows();
    let few: Vec<NewEntry> = (0..limit / rows).map(added).collect();
    store.entries_added(&few);
    assert_eq!((store.counts.eras, store.counts.outdated), (0, 0));
    let is_found = |store: &mut Store<()>, number| {
        let mut result = Found::Nothing;
        let key = key(number);
        store.find(
            true,
            |_| &key,
            &mut vec![0],
            |_, _, found| {
                result = found;
                true
            },
        );
        matches!(result, Found::Path(_))
    };
    assert!((0..megaflows).all(|number| is_found(&mut store, number)));
    let many: Vec<NewEntry> = (0..=limit / rows).map(added).collect();
    store.entries_added(&many);
    assert_eq!((store.counts.eras, store.counts.outdated), (1, 0));
    assert!((0..megaflows).all(|number| !is_found(&mut store, number)));
}
