//! Rules that can never win.
//!
//! A rule is *dead* if better rules match everything that it matches, alone or together. Random headers of a rule's boxes are looked up first. If the rule wins
//! a header, it is alive, and the header is its witness. This decides nearly all rules of
//! usual sets. The others are searched for a header that no better rule matches
//! ([`CoverSearch`]).

use classyard::classifier::BATCH;
use classyard::{
    BuildError, Classifier, EngineSpec, KeyVec, Limits, Progress, RuleId, Scratch, Winner,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::cover::{Cover, CoverSearch, Steps};
use crate::part::AnalysedPart;

/// The number of random headers of each rule.
const HEADERS_PER_RULE: usize = 8;

/// The number of rules up to which an engine is used that is built faster and looks up
/// headers more slowly. Measured: bench/records/analysis.md, "Looking up witnesses".
const SMALL_LIST_RULES: usize = 20_000;

/// Returns the engine that looks up headers.
fn engine(rules: usize) -> EngineSpec {
    let name = match rules {
        0..=SMALL_LIST_RULES => "tuplemerge",
        _ => "forest",
    };
    EngineSpec::parse(name).expect("a registered engine")
}

/// The state of a rule in one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The rule wins a header: a position in the witnesses.
    Live(u32),
    /// Better rules match everything that the rule matches.
    Dead(Blockers),
    /// The search reached its limit, or the rule is not represented exactly.
    Unknown,
}

/// The better rules that match everything that a dead rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blockers {
    /// The places of the rules, best first.
    pub(super) places: Vec<u32>,
    /// True if every rule is needed: the others leave a header to the dead rule.
    pub(super) all_needed: bool,
}

/// The states of all rules of a part.
#[derive(Debug)]
pub(super) struct Lives {
    /// By place.
    pub(super) by_place: Vec<Life>,
    /// Headers that live rules win.
    pub(super) witnesses: KeyVec,
}

/// Decides if rules of a part are dead. `is_examined` selects the rules.
pub(super) fn find(
    part: &AnalysedPart<'_>,
    is_examined: impl Fn(RuleId) -> bool,
    steps_per_rule: u64,
    all_steps: &mut Steps,
    progress: &mut dyn Progress,
) -> Result<Lives, BuildError> {
    let rules = part.list(0);
    let engine = engine(rules.len()).build(rules, &Limits::default(), progress)?;
    let mut finder = Finder {
        part,
        engine: engine.as_ref(),
        lives: vec![Life::Unknown; part.places(0).len()],
        witnesses: KeyVec::new(part.list(0).schema()),
        search: CoverSearch::default(),
    };
    let mut examined: Vec<u32> = part.places(0).collect();
    examined.retain(|&place| is_examined(part.rule(place).id()));
    let total = examined.len();
    let undecided = finder.look_up_headers(examined, progress)?;
    for (done, &place) in undecided.iter().enumerate() {
        classyard::progress::report(
            progress,
            "searching for dead rules",
            total - undecided.len() + done,
            total,
        )?;
        let mut steps = all_steps.portion(steps_per_rule);
        finder.lives[place as usize] = finder.decide(place, &mut steps);
        all_steps.give_back(&steps);
    }
    Ok(Lives {
        by_place: finder.lives,
        witnesses: finder.witnesses,
    })
}

struct Finder<'a> {
    part: &'a AnalysedPart<'a>,
    engine: &'a dyn Classifier,
    lives: Vec<Life>,
    witnesses: KeyVec,
    search: CoverSearch,
}

impl Finder<'_> {
    /// Looks up random headers of the rules at some places. Returns the places of rules that
    /// won none of them.
    fn look_up_headers(
        &mut self,
        mut undecided: Vec<u32>,
        progress: &mut dyn Progress,
    ) -> Result<Vec<u32>, BuildError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for round in 0..HEADERS_PER_RULE {
            classyard::progress::report(
                progress,
                "looking up headers of rules",
                round,
                HEADERS_PER_RULE,
            )?;
            for start in (0..undecided.len()).step_by(BATCH) {
                let batch_places = &undecided[start..undecided.len().min(start + BATCH)];
                self.look_up(batch_places, round % 2 == 0, &mut random);
            }
            undecided.retain(|&place| self.lives[place as usize] == Life::Unknown);
        }
        Ok(undecided)
    }

    /// Looks up a random header of each rule: with the smallest values of random ranks, or
    /// with random values.
    fn look_up(&mut self, places: &[u32], by_rank: bool, random: &mut Xoshiro256PlusPlus) {
        let (boxes, space) = (self.part.boxes(), self.part.space());
        let mut keys = KeyVec::new(self.part.list(0).schema());
        for &place in places {
            let numbers = boxes.of(place);
            let count = u64::from(numbers.end - numbers.start);
            let number = numbers.start + u32::try_from(up_to(random, count - 1)).expect("a box");
            let bounds = boxes.bounds(number);
            let header = if by_rank {
                let ranks = bounds.chunks_exact(2).map(|ends| {
                    let offset = up_to(random, u64::from(ends[1] - ends[0]));
                    ends[0] + u32::try_from(offset).expect("a rank")
                });
                space.header(ranks)
            } else {
                space.header_within(bounds, |last| up_to(random, last))
            };
            keys.push(&header).expect("values of the fields");
        }
        let mut winners = vec![Winner::MISS; keys.len()];
        self.engine
            .classify_batch(keys.as_slice(), &mut winners, &mut Scratch::new());
        for (index, (&place, winner)) in places.iter().zip(winners).enumerate() {
            if winner == self.part.rule(place).winner() {
                self.set_live(place, keys.key(index));
            }
        }
    }

    fn set_live(&mut self, place: u32, key: &[u64]) {
        let witness = u32::try_from(self.witnesses.len()).expect("fewer rules than ids");
        self.witnesses.push_key(key);
        self.lives[place as usize] = Life::Live(witness);
    }

    /// Decides if the rule at a place is dead.
    fn decide(&mut self, place: u32, steps: &mut Steps) -> Life {
        let boxes = self.part.boxes();
        if !boxes.is_exact(place) {
            return Life::Unknown;
        }
        let own_boxes = boxes.of(place);
        let mut blocking: Vec<u32> = Vec::new();
        let mut targets: Vec<Box<[u32]>> = Vec::new();
        for number in own_boxes.clone() {
            let bounds = boxes.bounds(number);
            let candidates = self.part.candidates(bounds, 0..own_boxes.start, |_| true);
            targets.push(bounds.into());
            if let (true, Some(&number)) = (candidates.one_covers, candidates.boxes.last()) {
                blocking.push(boxes.owner(number));
                continue;
            }
            let list = &candidates.boxes;
            match self.search.search(boxes, bounds, list, steps) {
                Cover::Covered(numbers) => {
                    blocking.extend(numbers.iter().map(|&number| boxes.owner(number)));
                }
                Cover::Uncovered(piece) => return self.check_witness(place, &piece),
                Cover::Unknown => return Life::Unknown,
            }
        }
        blocking.sort_unstable();
        blocking.dedup();
        let all_needed = match blocking.len() {
            1 => true,
            _ => self.search.reduce(boxes, &targets, &mut blocking, steps),
        };
        Life::Dead(Blockers {
            places: blocking,
            all_needed,
        })
    }

    /// Looks up a header that no better rule with exact boxes matches.
    fn check_witness(&mut self, place: u32, piece: &[u32]) -> Life {
        let ranks = piece.chunks_exact(2).map(|ends| ends[0]);
        let header = self.part.space().header(ranks);
        let mut keys = KeyVec::new(self.part.list(0).schema());
        keys.push(&header).expect("values of the fields");
        if self.engine.classify_one(keys.key(0)) == self.part.rule(place).winner() {
            self.set_live(place, keys.key(0));
        }
        // Another winner is a rule without exact boxes.
        self.lives[place as usize].clone()
    }
}

/// Returns a random number from 0 to `last`.
fn up_to(random: &mut Xoshiro256PlusPlus, last: u64) -> u64 {
    match last.checked_add(1) {
        Some(count) => random.next_u64() % count,
        None => random.next_u64(),
    }
}
