//! Limits on the tests of a lookup: rule sets and headers with many candidates that do
//! not match.

use proptest::prelude::*;

use super::*;
use crate::engines::decomposition::candidates::{
    FIRST_BLOCKS, MAX_FAILED, MIN_DENSE, MostTests, Tests,
};
use crate::model::schema::MAX_FIELDS;

/// Tests a key, and counts.
struct Counted<'a> {
    engine: &'a Decomposition,
    key: &'a [u64],
    tags: usize,
    compared: Vec<usize>,
    /// Blocks that were joined or that a summary excluded.
    blocks: usize,
}

impl Tests for Counted<'_> {
    fn passes(&mut self, entry: Entry) -> bool {
        self.tags += 1;
        self.engine.shared.screens.passes_words(entry, self.key)
    }

    fn matches(&mut self, place: usize) -> bool {
        self.compared.push(place);
        self.engine.rules.matches(place, self.key)
    }

    fn joined(&mut self, from: usize, with_candidates: Option<usize>, end: usize) {
        // Without a summary, these blocks were joined.
        self.blocks += with_candidates.map_or(end, |block| block + 1) - from;
    }
}

impl Decomposition {
    /// Counts the tests of a key's lookup.
    pub(super) fn tests_of(&self, key: &[u64]) -> MostTests {
        let (mut lists, mut rows) = ([0; MAX_FIELDS], [0; MAX_FIELDS]);
        let (listing, joining) = self.search(key, &mut lists, &mut rows);
        let mut counted = Counted {
            engine: self,
            key,
            tags: 0,
            compared: Vec::new(),
            blocks: 0,
        };
        let bound = self.rules.len();
        let (lists, rows) = (&lists[..listing], &rows[..joining]);
        let winner = self.first_place(&mut counted, lists, rows, bound);
        if self.stops && self.shared.store.summary == 0 {
            let most = FIRST_BLOCKS + winner.div_ceil(BLOCK_RULES);
            assert!(counted.blocks <= most, "{} of {most}", counted.blocks);
        }
        let Counted { tags, compared, .. } = counted;
        let worse = compared.iter().filter(|&&place| place > winner).count();
        assert!(compared.len() <= (winner + 1).min(bound) + worse);
        MostTests {
            compared: compared.len(),
            tags,
            worse,
        }
    }
}

const ANY: FieldMatch = FieldMatch::Any;
/// The destination and the port that all rules of a hostile set match.
const ANCHOR: u128 = 0x5a5a_5a5a;
const PORT: u128 = 1 << 15;
/// The first of the sources that one rule names.
const HOST: u128 = 0x0a00_0000;

/// A rule that matches protocol `protocol` and the anchor, and overlaps all such rules.
fn wide(protocol: u128, state: &mut u64) -> [FieldMatch; 5] {
    let mut below = |bound: u64| u128::from(splitmix(state) % bound);
    let length = u32::try_from(1 + below(32)).unwrap();
    let mut range = || FieldMatch::Range {
        low: below(1 << 15),
        high: PORT + below(1 << 15),
    };
    let ports = [range(), range()];
    let destination = FieldMatch::Prefix {
        value: ANCHOR >> (32 - length) << (32 - length),
        length,
    };
    [
        ANY,
        destination,
        ports[0],
        ports[1],
        FieldMatch::Exact(protocol),
    ]
}

/// A rule for a source that no other rule names.
fn listed(host: u128, protocol: u128) -> [FieldMatch; 5] {
    let [source, protocol] = [HOST + host, protocol].map(FieldMatch::Exact);
    [source, ANY, ANY, ANY, protocol]
}

/// The header of the anchor, from host `host`.
fn header(host: u128, protocol: u128) -> [u128; 5] {
    [HOST + host, ANCHOR, PORT, PORT, protocol]
}

/// Rules 1 to 600 name a source. All other rules match the anchor. The protocol is 6,
/// except in rules 1 to 16 and in the last rule. The headers that a build draws have
/// protocol 6, so the protocol has no vectors, and a header of another protocol has
/// nearly all rules as candidates.
fn hostile(count: usize) -> RuleSet {
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    let mut state = 5;
    for number in 0..count {
        let matches = match number {
            1..=16 => listed(number as u128, 17),
            17..=600 => listed(number as u128, 6),
            number if number + 1 == count => wide(1, &mut state),
            _ => wide(6, &mut state),
        };
        add(&mut rules, 1, &matches);
    }
    rules
}

fn keys_of(rules: &RuleSet, headers: &[[u128; 5]]) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    for header in headers {
        keys.push(header).unwrap();
    }
    keys
}

/// Returns the rules that a lookup compares, from its trace.
fn compared(built: &dyn Classifier, key: &[u64]) -> Vec<RuleId> {
    let mut trace = built.trace(key);
    trace.probes.pop().unwrap().compared
}

/// The second rule matches, and is in a list. `linear` compares two rules.
#[test]
fn an_early_winner_in_a_list_bounds_the_vectors() {
    let rules = hostile(4000);
    let built = build("", &rules);
    assert_eq!(count(built.as_ref(), "fields with lists"), 1);
    let wide = count(built.as_ref(), "rules in vectors");
    assert_eq!(wide, 4000 - 600);
    let keys = keys_of(&rules, &[header(1, 17), header(0, 17)]);
    assert_eq!(
        built.classify_one(keys.key(0)).rule(),
        Some(RuleId::from_index(1))
    );
    let worse = compared(built.as_ref(), keys.key(0)).len() - 1;
    assert!(worse <= MAX_FAILED + 1, "{worse} rules compared");
    let limit = count(built.as_ref(), "most rules compared below the winner");
    assert_eq!(limit, MAX_FAILED + 1);
    // Without a match, all rules of vectors are candidates, so the set is hostile.
    assert_eq!(built.classify_one(keys.key(1)), Winner::MISS);
    let candidates = compared(built.as_ref(), keys.key(1)).len();
    assert!(candidates > wide * 9 / 10, "{candidates} of {wide}");
}

/// No rule matches, or the last rule does. Most candidates are compared without their
/// tag.
#[test]
fn tags_of_many_candidates_are_not_tested() {
    let rules = hostile(4000);
    let built = tuned("", &rules, Tuning::default());
    let keys = keys_of(&rules, &[header(0, 17), header(0, 1)]);
    let most = built.most_tests();
    assert!(
        most.tags <= 1 + MAX_FAILED + (MIN_DENSE - 1) * 7,
        "{most:?}"
    );
    for key in keys.as_slice().iter() {
        let tests = built.tests_of(key);
        assert!(tests.compared > 3000 && tests.compared <= most.compared);
        assert!(tests.tags <= MAX_FAILED + 1, "{tests:?}");
        assert_eq!(tests.worse, 0);
    }
    check::<2>(&built, &rules, &keys);
}

/// Blocks of vectors beyond the first are joined only up to the winner.
#[test]
fn an_early_winner_in_a_list_ends_joining() {
    let count = 600 + (2 * FIRST_BLOCKS + 3) * BLOCK_RULES;
    let rules = hostile(count);
    for options in ["", ":aggregate=1073741824", ":stop=off"] {
        let built = tuned(options, &rules, Tuning::default());
        let keys = keys_of(&rules, &[header(1, 17), header(0, 17), header(0, 1)]);
        for (key, early) in keys.as_slice().rows::<2>().iter().zip([true, false, false]) {
            let tests = built.tests_of(key);
            assert_eq!(tests.compared < 100, early, "{tests:?}");
            assert_eq!(built.improve(key, Winner::MISS), rules.scan(key));
        }
    }
}

/// Rules that are hidden are passed over, also behind the last rule that matters.
#[test]
fn hidden_candidates_change_no_answer() {
    let rules = hostile(2000);
    let mut built = build("", &rules);
    let mut left = RuleSet::new(rules.schema());
    for rule in rules.iter() {
        match rule.id().index() {
            1 | 50..=1990 => assert_eq!(built.hide(rule.id()), Some(true)),
            _ => left.push(rule).unwrap(),
        }
    }
    let keys = keys_of(
        &rules,
        &[header(1, 17), header(2, 17), header(0, 17), header(0, 1)],
    );
    for key in keys.as_slice().iter() {
        let expected = left.scan(key);
        assert_eq!(built.classify_one(key), expected);
        let mut mask = vec![0; keys.as_slice().width()];
        assert_eq!(built.improve_masked(key, Winner::MISS, &mut mask), expected);
        assert!(
            compared(built.as_ref(), key)
                .iter()
                .all(|&id| left.get(id).is_some())
        );
    }
}

/// Numbers of candidates around which a lookup changes to the next step: of the first
/// step, of dense blocks, and of its blocks.
fn thresholds() -> impl Strategy<Value = usize> {
    let around = |count: usize| count.saturating_sub(3)..count + 4;
    prop_oneof![
        0_usize..4,
        around(MAX_FAILED),
        around(MIN_DENSE + MAX_FAILED),
        around(BLOCK_RULES),
        around(BLOCK_RULES + MIN_DENSE),
        around(FIRST_BLOCKS * BLOCK_RULES),
        around(FIRST_BLOCKS * BLOCK_RULES + MAX_FAILED),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The best match is a rule of vectors or of a list, on both sides of each
    /// threshold; every kind of lookup returns it, in batches of every length.
    #[test]
    fn matches_around_the_thresholds_are_found(
        places in proptest::collection::vec(thresholds(), 1..8),
        hosts in proptest::collection::vec(thresholds(), 1..4),
        more in 0_usize..1200,
        options in proptest::sample::select(vec![
            "", ":stop=off", ":aggregate=1", ":isa=scalar", ":share=0:mebibytes=1",
            ":aggregate=1:stop=off", ":aggregate=1073741824",
        ]),
    ) {
        let count = places.iter().chain(&hosts).max().unwrap() + more + 1;
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        let mut state = 3;
        let hosts_at = |place: usize| hosts.iter().filter(move |&&host| host == place);
        let mut next_host = 1000;
        for place in 0..count {
            for _ in hosts_at(place) {
                let host = next_host;
                add(&mut rules, 1, &listed(host, 17));
                next_host += 1;
            }
            let matching = places.iter().position(|&matching| matching == place);
            let protocol = matching.map_or(6, |number| 20 + number as u128);
            add(&mut rules, 1, &wide(protocol, &mut state));
        }
        // Enough further rules for lists, which no header matches.
        for host in 0..BLOCK_RULES as u128 {
            add(&mut rules, 1, &listed(host, 99));
        }
        let mut headers = Vec::new();
        for host in 999..next_host {
            for protocol in (20..20 + places.len() as u128).chain([6, 17, 0]) {
                headers.push(header(host, protocol));
            }
        }
        let keys = keys_of(&rules, &headers);
        let tuning = Tuning { least_listed: BLOCK_RULES, ..Tuning::default() };
        let built = tuned(options, &rules, tuning);
        check::<2>(&built, &rules, &keys);
        let mut buffers = lookup::Buffers::default();
        let rows = keys.as_slice().rows::<2>();
        for length in [1, 7, GROUP, GROUP + 1, 2 * GROUP + 1, 5 * GROUP + 3] {
            for keys in rows.chunks(length) {
                let mut winners = vec![Winner::MISS; keys.len()];
                built.improve_batch(keys, &mut winners, &mut buffers);
                for (key, winner) in keys.iter().zip(winners) {
                    prop_assert_eq!(winner, rules.scan(key));
                }
            }
        }
    }
}
