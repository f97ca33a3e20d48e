//! The cache selector: chooses which caches to use, by measured time per packet.
//!
//! # Idea
//! The gain from a cache depends on the pipeline, the packets and the CPU caches, so
//! nothing is assumed about it. Now and then, in a *round*, some vectors are processed
//! without caches, some with the caches of the present choice, and some with the caches of
//! another choice. All of these vectors are timed. Between rounds nothing is timed.
//!
//! ```text
//! pause ─▶ present: time ─▶ none: settle, time ─▶ another: learn, settle, time ─▶ pause
//! growing:  present: learn, time ─▶ none: settle, time ─▶ present: …
//! ```
//! The cost of a round is the time of its vectors minus the time that they would have
//! taken with the fastest choice. The pause after a round is chosen so that rounds cost
//! [`MAX_EXPLORING_SHARE`] of all time.
//!
//! # Learning
//! Recording a packet on its way through the tables takes as long as tens of lookups. The
//! budget for recording is a share of the time that caches have saved
//! ([`REINVESTED_SHARE`]), and a small share of all time ([`LEARNING_SHARE`]). Caches
//! that hold too few flows to make packets faster may *grow*, with a larger budget: at
//! the start, when the measured times show that packets would be much faster if every
//! packet hit, and when changes have made many megaflows stale. Growth must not cost much
//! where caches cannot make packets faster: its first rounds are short, and while hits do not
//! increase, pauses without caches between its rounds keep its cost below
//! [`MAX_GROWING_SHARE`]. After a growth phase without effect, the selector waits twice as
//! long before the next one.
//!
//! # The clock
//! The caller provides the clock. Without a clock nothing is timed, and every packet is
//! looked up in all caches. Tests need this.

use std::time::Duration;

use super::settings::Clock;

/// The share of all time that rounds may cost. Measured in `bench/records/constants.md`
/// (Choice of caches).
const MAX_EXPLORING_SHARE: f64 = 0.0075;

/// The share of the time without caches that recording packets may always cost, even if
/// caches do not make packets faster. Measured in `bench/records/constants.md` (Choice of
/// caches).
const LEARNING_SHARE: f64 = 0.005;

/// The share of the time saved by caches that recording packets may cost in addition.
/// Measured in `bench/records/constants.md` (Choice of caches).
const REINVESTED_SHARE: f64 = 0.5;

/// The share of the time without caches that recording packets may cost while caches grow.
/// Measured in `bench/records/constants.md` (Choice of caches).
const GROWING_LEARNING_SHARE: f64 = 0.5;

/// The share of all time that growth may cost while caches make packets slower and hits do not
/// increase by [`MIN_GAIN_SHARE`]. Measured in
/// `bench/records/constants.md` (Choice of caches).
const MAX_GROWING_SHARE: f64 = 0.1;

/// The time that growth may cost before its rounds are delayed to keep that share, in
/// nanoseconds. Measured in `bench/records/constants.md` (Choice of caches).
const UNDELAYED_GROWTH_NS: f64 = 5e7;

/// Caches may grow if the predicted time per packet with hits only is below this share of
/// the present time and of the time without caches. Measured in
/// `bench/records/constants.md` (Choice of caches).
const PROMISING_RATIO: f64 = 0.9;

/// Caches continue to grow while each round turns at least this share of the misses into
/// hits. Measured in `bench/records/constants.md` (Choice of caches).
const MIN_GAIN_SHARE: f64 = 0.06;

/// Caches that have made packets faster grow again if changes of entries have made the
/// megaflows of more than this share of the packets stale. Measured in
/// `bench/records/constants.md` (Choice of caches).
const MAX_STALE_SHARE: f64 = 0.05;

/// If the share of misses whose flows were seen recently is below this limit, growing
/// caches record packets of any flow: many flows may share few megaflows. Measured in
/// `bench/records/constants.md` (Choice of caches).
const MIN_RECURRING_SHARE: f64 = 0.25;

/// The selector switches to another choice if its time per packet is below this share of
/// the present choice's time. Measured in `bench/records/constants.md` (Choice of caches).
const BETTER_RATIO: f64 = 0.98;

/// A ratio that differs from the previous ratio by less than this share is noise. Measured
/// in `bench/records/constants.md` (Choice of caches).
const MAX_NOISE_SHARE: f64 = 0.25;

/// The maximum of saved-up time for recording packets, in nanoseconds. It bounds the work of
/// recording after a long time in which few packets were recorded.
const MAX_CREDIT_NS: f64 = 1e7;

/// Minimum number of vectors and packets that are timed in a segment. Measured in
/// `bench/records/constants.md` (Choice of caches).
const MIN_TIMED_VECTORS: usize = 32;
const MIN_TIMED_PACKETS: u64 = 4096;

/// Maximum number of vectors that are timed, even if they have few packets. It bounds the
/// memory of a segment, and its length if vectors are short.
const MAX_TIMED_VECTORS: usize = 1024;

/// Packets that a choice processes before it is timed, to load its memory into the CPU
/// caches. Measured in `bench/records/constants.md` (Choice of caches).
const SETTLE_PACKETS: u64 = 12_288;

/// The value of [`SETTLE_PACKETS`] for choices whose ratio is outside of [`CLOSE_RATIOS`]:
/// their times differ so much that the contents of CPU caches do not matter. Measured in
/// `bench/records/constants.md` (Choice of caches).
const SHORT_SETTLE_PACKETS: u64 = 2048;

/// If the time of a choice, as a share of the time without caches, is in this range, CPU
/// caches matter. Measured in `bench/records/constants.md` (Choice of caches).
const CLOSE_RATIOS: std::ops::Range<f64> = 0.8..1.25;

/// Packets of the learning segment of another choice, before that choice is timed.
/// Measured in `bench/records/constants.md` (Choice of caches).
const LEARN_PACKETS: u64 = 16_384;

/// Maximum number of packets to record in that segment. The last vector may exceed it.
/// Measured in `bench/records/constants.md` (Choice of caches).
const MAX_RECORDED_IN_SEGMENT: u64 = 128;

/// Minimum and maximum number of packets between rounds. Measured in
/// `bench/records/constants.md` (Choice of caches).
const MIN_PAUSE_PACKETS: u64 = 32_768;
const MAX_PAUSE_PACKETS: u64 = 8_388_608;

/// Packets of the learning segment while caches grow, after the first rounds. Measured in
/// `bench/records/constants.md` (Choice of caches).
const GROWTH_PACKETS: u64 = 131_072;

/// Maximum number of rounds in a growth phase. Measured in `bench/records/constants.md`
/// (Choice of caches).
const GROWTH_ROUNDS: u32 = 12;

/// Number of first rounds of growth. They are shorter than later rounds, and growing continues
/// after them even if hits do not increase. Measured in `bench/records/constants.md` (Choice of
/// caches).
const MIN_GROWTH_ROUNDS: u32 = 3;

/// Rounds until the next growth phase, after a phase without effect: the first number and
/// the maximum. Each phase without effect doubles the number. Measured in
/// `bench/records/constants.md` (Choice of caches).
const FIRST_GROWTH_PAUSE_ROUNDS: u32 = 16;
const MAX_GROWTH_PAUSE_ROUNDS: u32 = 512;

/// The levels of caches that packets are looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pipeline) struct Levels {
    pub(in crate::pipeline) microflows: bool,
    pub(in crate::pipeline) megaflows: bool,
}

/// The instructions of the selector for a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VectorPlan {
    pub(in crate::pipeline) levels: Levels,
    /// True if the flows of misses are noted in `SeenFlows`.
    pub(super) notes_flows: bool,
    /// True if misses may be recorded. Packets with stale megaflows may always be recorded.
    pub(super) may_record: bool,
    /// True if packets of any flow may be recorded, not only of flows seen recently.
    pub(super) of_any_flow: bool,
}

/// The result of processing a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(in crate::pipeline) packets: usize,
    /// Packets that hit a cache.
    pub(in crate::pipeline) hits: usize,
    /// Misses whose flows were seen recently, and packets with stale megaflows; `None` if
    /// flows were not noted.
    pub(in crate::pipeline) seen: Option<usize>,
    /// Packets whose megaflows are stale.
    pub(super) stale: usize,
    /// Packets recorded to renew stale megaflows. Their time is a cost of changes.
    pub(super) renewed: usize,
    /// Other packets that were recorded.
    pub(in crate::pipeline) recorded: usize,
    /// Parts of the vector's time, if it was timed.
    pub(super) took: StepTimes,
}

/// Parts of a vector's time. The remaining time is for packets that miss the first cache:
/// for megaflows behind a microflow cache, and for the tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepTimes {
    /// Time to apply changes to the caches.
    pub(super) upkeep: Duration,
    /// Time of the lookup in the first cache.
    pub(super) asking: Duration,
    /// Time to process the packets that hit.
    pub(in crate::pipeline) hits: Duration,
}

/// Levels that may be used, and their measurements.
#[derive(Clone, Debug)]
struct Choice {
    levels: Levels,
    /// Nanoseconds per packet in the latest timing.
    cost: f64,
    /// In that timing: the share of packets that hit, and of packets with stale megaflows.
    hits: f64,
    stale: f64,
    /// Nanoseconds of the lookup in the first cache per packet, of the processing of a hit,
    /// and of the processing of a miss.
    asking: f64,
    carrying: f64,
    miss_ns: f64,
    /// `cost` divided by the cost without caches; `None` if not timed yet.
    ratio: Option<f64>,
    /// The share of misses whose flows were seen recently.
    seen: f64,
    /// The latest round that timed this choice while another choice was present.
    timed_in: u32,
}

/// The purpose of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Learn,
    Settle,
    Time,
}

/// Consecutive vectors of a round with one choice and one purpose.
#[derive(Clone, Copy, Debug)]
struct Segment {
    choice: usize,
    purpose: Purpose,
    /// The segment ends after this number of packets. Not used in segments that are timed.
    packets: u64,
}

/// The maximum number of segments in a round: one for the present choice, two for no caches,
/// and three for another choice.
const MAX_SEGMENTS: usize = 6;

/// The counts of a segment.
#[derive(Clone, Debug, Default)]
struct Count {
    /// The vectors of a timed segment.
    vectors: Vec<VectorTimes>,
    /// The sum over the vectors of other segments.
    all: VectorTimes,
    /// Nanoseconds to apply changes, not included in the vectors' times.
    upkeep: f64,
    packets: u64,
    hits: u64,
    stale: u64,
    /// Recorded packets, and how many of them renewed stale megaflows.
    recorded: u64,
    renewed: u64,
}

/// Times of a vector, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct VectorTimes {
    packets: f64,
    all: f64,
    asking: f64,
    hits: f64,
}

/// The time and packets of a round so far.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    nanoseconds: f64,
    packets: f64,
}

/// The measurements of a learning segment.
#[derive(Clone, Copy, Debug)]
struct Learned {
    choice: usize,
    /// Nanoseconds for packets that missed the first cache, and the number of misses.
    nanoseconds: f64,
    packets: f64,
    recorded: f64,
}

/// The cache selector.
#[derive(Clone, Debug)]
pub(super) struct CacheSelector {
    clock: Option<Clock>,
    /// The first choice uses no caches.
    choices: Vec<Choice>,
    present: usize,
    /// Remaining rounds of the growth phase; 0 if caches do not grow.
    growth: u32,
    /// The share of misses after the latest round of growth, and true if that round turned
    /// enough misses into hits.
    miss_share: f64,
    hits_rise: bool,
    /// True if caches have paid since they last grew because of changes.
    have_paid: bool,
    /// Rounds until the next growth phase, and the pause after that phase if it has no
    /// effect.
    until_growth: u32,
    growth_rest: u32,
    /// The cost of growth that pauses have not made up for; negative while rounds are not
    /// delayed. Never positive, since a positive cost becomes the next pause.
    growth_debt_ns: f64,
    rounds: u32,
    /// Remaining packets until the next round; 0 in a round.
    rest: u64,
    round: Vec<Segment>,
    at: usize,
    count: Count,
    spent: Spent,
    learned: Option<Learned>,
    begun: Duration,
    /// Nanoseconds that recording packets may still cost.
    credit: f64,
    /// Nanoseconds to record a packet.
    record_ns: f64,
}

impl CacheSelector {
    /// Returns a selector for the levels that the worker has.
    pub(in crate::pipeline) fn new(levels: Levels, clock: Option<Clock>) -> CacheSelector {
        let none = Levels {
            microflows: false,
            megaflows: false,
        };
        let mut choices = vec![none, levels];
        if levels.microflows && levels.megaflows {
            choices.push(Levels {
                microflows: false,
                ..levels
            });
            choices.push(Levels {
                megaflows: false,
                ..levels
            });
        }
        let choice = |levels| Choice {
            levels,
            cost: 0.0,
            hits: 0.0,
            stale: 0.0,
            asking: 0.0,
            carrying: 0.0,
            miss_ns: 0.0,
            ratio: None,
            seen: 0.0,
            timed_in: 0,
        };
        let mut choices: Vec<Choice> = choices.into_iter().map(choice).collect();
        choices[0].ratio = Some(1.0);
        CacheSelector {
            clock,
            choices,
            present: 1,
            growth: GROWTH_ROUNDS,
            miss_share: 1.0,
            hits_rise: false,
            have_paid: false,
            until_growth: 0,
            growth_rest: FIRST_GROWTH_PAUSE_ROUNDS,
            growth_debt_ns: -UNDELAYED_GROWTH_NS,
            rounds: 0,
            rest: 0,
            round: Vec::with_capacity(MAX_SEGMENTS),
            at: 0,
            count: Count {
                vectors: Vec::with_capacity(MAX_TIMED_VECTORS),
                ..Count::default()
            },
            spent: Spent::default(),
            learned: None,
            begun: Duration::ZERO,
            credit: MAX_CREDIT_NS,
            record_ns: 2500.0,
        }
    }

    fn is_growing(&self) -> bool {
        self.growth > 0
    }

    /// Returns the nanoseconds per packet without caches; 1e9 before the first timing.
    pub(super) fn without_caches(&self) -> f64 {
        match self.choices[0].cost {
            0.0 => 1e9,
            cost => cost,
        }
    }

    /// Returns the instructions for the next vector.
    pub(in crate::pipeline) fn begin(&mut self) -> VectorPlan {
        let Some(clock) = self.clock else {
            return VectorPlan {
                levels: self.choices[1].levels,
                notes_flows: true,
                may_record: true,
                of_any_flow: true,
            };
        };
        if self.rest > 0 {
            let choice = self.resting();
            let may_record = choice != 0 && self.credit > 0.0;
            return VectorPlan {
                levels: self.choices[choice].levels,
                notes_flows: may_record,
                may_record,
                of_any_flow: false,
            };
        }
        if self.round.is_empty() {
            self.plan();
        }
        let segment = self.round[self.at];
        self.begun = clock();
        let learns = segment.purpose == Purpose::Learn;
        let may_record = match segment.choice == self.present {
            true => self.credit > 0.0,
            false => self.count.recorded - self.count.renewed < MAX_RECORDED_IN_SEGMENT,
        };
        VectorPlan {
            levels: self.choices[segment.choice].levels,
            notes_flows: learns,
            may_record: learns && may_record,
            // The first round measures how many flows recur.
            of_any_flow: (1..GROWTH_ROUNDS).contains(&self.growth)
                && self.choices[segment.choice].seen < MIN_RECURRING_SHARE,
        }
    }

    /// Returns the time if the vector is in a round, else `None`.
    pub(in crate::pipeline) fn time(&self) -> Option<Duration> {
        let clock = self.clock.filter(|_| self.rest == 0)?;
        Some(clock())
    }

    /// Returns the choice between rounds. Growing caches that do not make packets faster yet
    /// are used in rounds only.
    fn resting(&self) -> usize {
        match self.is_growing() && self.ratio(self.present) >= 1.0 {
            true => 0,
            false => self.present,
        }
    }

    /// Receives the result of the vector.
    pub(in crate::pipeline) fn end(&mut self, outcome: Outcome) {
        let Some(clock) = self.clock else { return };
        if outcome.packets == 0 {
            return;
        }
        if self.rest > 0 {
            self.rest = self.rest.saturating_sub(outcome.packets as u64);
            let choice = self.resting();
            if choice != 0 {
                self.note_seen(choice, outcome);
                self.account(outcome);
            }
            return;
        }
        // Many changes may arrive together. Their time must not count as an interruption.
        let StepTimes {
            upkeep,
            asking,
            hits,
        } = outcome.took;
        self.count.upkeep += nanoseconds(upkeep);
        let taken = clock().saturating_sub(self.begun + upkeep);
        let segment = self.round[self.at];
        self.note_seen(segment.choice, outcome);
        if segment.purpose == Purpose::Learn && segment.choice == self.present {
            self.account(outcome);
        }
        #[allow(clippy::cast_precision_loss)] // packets of one vector
        let vector = VectorTimes {
            packets: outcome.packets as f64,
            all: nanoseconds(taken),
            asking: nanoseconds(asking),
            hits: nanoseconds(hits),
        };
        let count = &mut self.count;
        count.packets += outcome.packets as u64;
        count.hits += outcome.hits as u64;
        count.stale += outcome.stale as u64;
        count.recorded += (outcome.recorded + outcome.renewed) as u64;
        count.renewed += outcome.renewed as u64;
        let is_over = match segment.purpose {
            Purpose::Time => {
                count.vectors.push(vector);
                let vectors = count.vectors.len();
                vectors >= MIN_TIMED_VECTORS && count.packets >= MIN_TIMED_PACKETS
                    || vectors >= MAX_TIMED_VECTORS
            }
            Purpose::Learn | Purpose::Settle => {
                count.all.add(&vector, 1.0);
                count.packets >= segment.packets
            }
        };
        if is_over {
            self.end_segment(segment);
        }
    }

    /// Updates the credit with the income and expense of a vector.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    fn account(&mut self, outcome: Outcome) {
        let (packets, hits) = (outcome.packets as f64, outcome.hits as f64);
        let none = self.choices[0].cost;
        let share = match self.is_growing() {
            true => GROWING_LEARNING_SHARE,
            false => LEARNING_SHARE,
        };
        let Choice {
            asking, carrying, ..
        } = self.choices[self.present];
        let saved = (hits * (none - carrying) - packets * asking).max(0.0);
        let income = packets * none * share + saved * REINVESTED_SHARE;
        let expense = outcome.recorded as f64 * self.record_ns;
        self.credit = (self.credit + income - expense).min(MAX_CREDIT_NS);
    }

    fn note_seen(&mut self, choice: usize, outcome: Outcome) {
        let missed = outcome.packets - outcome.hits;
        if let Some(seen) = outcome.seen
            && missed > 0
        {
            #[allow(clippy::cast_precision_loss)] // numbers of packets
            let share = seen as f64 / missed as f64;
            let seen = &mut self.choices[choice].seen;
            *seen += (share - *seen) / 16.0;
        }
    }

    /// Plans the segments of a round.
    fn plan(&mut self) {
        (self.at, self.spent, self.learned) = (0, Spent::default(), None);
        let is_growing = self.is_growing();
        // If times differ much, the contents of CPU caches do not matter.
        let settle = |number: usize| {
            let ratio = self.choices[number].ratio;
            match ratio.is_none_or(|ratio| CLOSE_RATIOS.contains(&ratio)) {
                true => SETTLE_PACKETS,
                false => SHORT_SETTLE_PACKETS,
            }
        };
        // Alternates between the best and the least recently timed alternative.
        let alternatives = (1..self.choices.len()).filter(|&choice| choice != self.present);
        let ratio = |choice: &usize| self.choices[*choice].ratio.unwrap_or(0.0);
        let alternative = match self.rounds.is_multiple_of(2) {
            true => alternatives.min_by(|one, other| ratio(one).total_cmp(&ratio(other))),
            false => alternatives.min_by_key(|&choice| self.choices[choice].timed_in),
        };
        let alternative = alternative.filter(|_| !is_growing);
        let mut add = |choice, purpose, packets| {
            self.round.push(Segment {
                choice,
                purpose,
                packets,
            });
        };
        if is_growing {
            // Round 1 to `MIN_GROWTH_ROUNDS` have fewer packets; each has twice as many as
            // the round before.
            let halvings = MIN_GROWTH_ROUNDS.saturating_sub(GROWTH_ROUNDS - self.growth);
            add(self.present, Purpose::Learn, GROWTH_PACKETS >> halvings);
        }
        // The present choice comes first: its memory is already in the CPU caches.
        add(self.present, Purpose::Time, 0);
        if self.present != 0 {
            add(0, Purpose::Settle, settle(self.present));
            add(0, Purpose::Time, 0);
        }
        if let Some(alternative) = alternative {
            add(alternative, Purpose::Learn, LEARN_PACKETS);
            add(alternative, Purpose::Settle, settle(alternative));
            add(alternative, Purpose::Time, 0);
            self.choices[alternative].timed_in = self.rounds;
        }
    }

    /// Records the measurements of a segment whose vectors are done.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    fn end_segment(&mut self, segment: Segment) {
        let taken = match segment.purpose {
            Purpose::Time => self.count.taken(),
            Purpose::Learn | Purpose::Settle => self.count.all,
        };
        let packets = self.count.packets as f64;
        let (hits, recorded) = (self.count.hits as f64, self.count.recorded as f64);
        let nanoseconds = taken.all + self.count.upkeep;
        let miss_time = (taken.all - taken.asking - taken.hits).max(0.0);
        let renewing = self.count.renewed as f64 * self.record_ns;
        self.spent.nanoseconds += nanoseconds;
        self.spent.packets += packets;
        let choice = &mut self.choices[segment.choice];
        match segment.purpose {
            Purpose::Time => {
                choice.cost = nanoseconds / packets;
                choice.hits = hits / packets;
                choice.stale = self.count.stale as f64 / packets;
                choice.asking = (taken.asking + self.count.upkeep) / packets;
                choice.carrying = taken.hits / hits.max(1.0);
                choice.miss_ns = (miss_time - renewing).max(0.0) / (packets - hits).max(1.0);
            }
            Purpose::Learn => {
                self.learned = Some(Learned {
                    choice: segment.choice,
                    nanoseconds: miss_time,
                    packets: packets - hits,
                    recorded,
                });
            }
            Purpose::Settle => {}
        }
        let count = &mut self.count;
        count.vectors.clear();
        (count.all, count.upkeep) = (VectorTimes::default(), 0.0);
        (count.packets, count.hits, count.stale) = (0, 0, 0);
        (count.recorded, count.renewed) = (0, 0);
        self.at += 1;
        if self.at == self.round.len() {
            self.end_round();
        }
    }

    /// Records the ratios of a round, chooses, and sets the pause until the next round.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bounded
    fn end_round(&mut self) {
        let none = self.choices[0].cost.max(0.1);
        let mut timed = [false; 4];
        for segment in self.round.drain(..) {
            timed[segment.choice] |= segment.purpose == Purpose::Time;
        }
        let caches = self.choices.iter_mut().zip(timed).skip(1);
        for (choice, _) in caches.filter(|(_, is_timed)| *is_timed) {
            let ratio = choice.cost / none;
            // Averages noise out. A large difference is due to different traffic.
            let old = choice.ratio.unwrap_or(ratio);
            choice.ratio = Some(match (ratio / old - 1.0).abs() < MAX_NOISE_SHARE {
                true => f64::midpoint(old, ratio),
                false => ratio,
            });
        }
        if let Some(learned) = self.learned.filter(|learned| learned.recorded >= 64.0) {
            let passed = learned.packets * self.choices[learned.choice].miss_ns;
            let cost = (learned.nanoseconds - passed) / learned.recorded;
            self.record_ns = f64::midpoint(self.record_ns, cost.clamp(200.0, 100_000.0));
        }
        self.rounds = self.rounds.saturating_add(1);
        self.choose(timed);
        let present = self.choices[self.present].cost.max(0.1);
        let Spent {
            nanoseconds,
            packets,
        } = self.spent;
        self.rest = match self.is_growing() {
            true => {
                // Hits that increase are worth their cost.
                let cost = if self.hits_rise {
                    0.0
                } else {
                    nanoseconds - packets * none
                };
                let debt = self.growth_debt_ns + cost;
                // Rounds that save time pay for later rounds, up to the undelayed time.
                self.growth_debt_ns = debt.clamp(-UNDELAYED_GROWTH_NS, 0.0);
                let pause = debt.max(0.0) / MAX_GROWING_SHARE / none;
                (pause as u64).min(MAX_PAUSE_PACKETS)
            }
            false => {
                let cost = (nanoseconds - packets * present.min(none)).max(0.0);
                let pause = cost / MAX_EXPLORING_SHARE / present;
                (pause as u64).clamp(MIN_PAUSE_PACKETS, MAX_PAUSE_PACKETS)
            }
        };
    }

    /// Chooses the fastest choice, or a choice that may become the fastest.
    fn choose(&mut self, timed: [bool; 4]) {
        let best = self.best();
        let pays = best != 0 && self.ratio(best) < BETTER_RATIO;
        if self.is_outdated(pays) {
            (self.growth, self.miss_share) = (GROWTH_ROUNDS, 1.0);
        } else if self.is_growing() {
            self.grow(pays);
        }
        let present = self.ratio(self.present);
        if pays && (self.ratio(best) < present * BETTER_RATIO || self.present == 0) {
            self.present = best;
        } else if present * BETTER_RATIO > 1.0 && self.growth == 0 {
            self.present = 0;
        }
        self.until_growth = self.until_growth.saturating_sub(1);
        let none = self.choices[0].cost;
        let mut caches = (1..self.choices.len()).filter(|&number| timed[number]);
        let max_cost = self.choices[self.present].cost.min(none) * PROMISING_RATIO;
        let promises = caches.any(|number| self.cost_of_hits(number) < max_cost);
        if promises && self.until_growth == 0 && self.growth == 0 {
            (self.growth, self.miss_share) = (GROWTH_ROUNDS, 1.0);
        }
        if self.growth > 0 {
            // Uses both levels, since each level profits from paths that the other learned.
            self.present = 1;
        }
    }

    /// Returns the choice with the least time per packet.
    fn best(&self) -> usize {
        let choices = 0..self.choices.len();
        let best = choices.min_by(|&one, &other| self.ratio(one).total_cmp(&self.ratio(other)));
        best.unwrap_or(0)
    }

    fn ratio(&self, choice: usize) -> f64 {
        self.choices[choice].ratio.unwrap_or(f64::INFINITY)
    }

    /// Returns true if changes have made many megaflows stale, in caches that have paid
    /// since the previous true result. Other caches are not worth growing.
    fn is_outdated(&mut self, pays: bool) -> bool {
        let is_outdated = self.present != 0 && self.choices[self.present].stale > MAX_STALE_SHARE;
        let is_worth_it = is_outdated && self.have_paid;
        self.have_paid = !is_worth_it && (self.have_paid || pays && !is_outdated);
        is_worth_it
    }

    /// Decides after a round of growth whether caches continue to grow.
    fn grow(&mut self, pays: bool) {
        let none = self.choices[0].cost;
        self.growth -= 1;
        let before = self.miss_share;
        self.miss_share = 1.0 - self.choices[1].hits;
        self.hits_rise = before - self.miss_share >= MIN_GAIN_SHARE * before;
        let hit_cost = self.cost_of_hits(1);
        let is_tried = self.growth + MIN_GROWTH_ROUNDS < GROWTH_ROUNDS;
        if pays && hit_cost > self.choices[1].cost * PROMISING_RATIO {
            self.growth = 0;
        } else if self.growth == 0
            || hit_cost > none * PROMISING_RATIO
            || is_tried && !self.hits_rise
        {
            self.growth = 0;
            self.until_growth = self.growth_rest;
            self.growth_rest = (self.growth_rest * 2).min(MAX_GROWTH_PAUSE_ROUNDS);
        }
    }

    /// Returns the nanoseconds per packet if every packet hit.
    fn cost_of_hits(&self, choice: usize) -> f64 {
        self.choices[choice].asking + self.choices[choice].carrying
    }
}

impl VectorTimes {
    /// Adds a vector's packets, and its times multiplied by `share`.
    fn add(&mut self, vector: &VectorTimes, share: f64) {
        self.packets += vector.packets;
        self.all += vector.all * share;
        self.asking += vector.asking * share;
        self.hits += vector.hits * share;
    }
}

impl Count {
    /// Returns the sum of all vectors' times. A vector with more than four times the median
    /// time per packet was interrupted; its time is reduced to that limit.
    fn taken(&mut self) -> VectorTimes {
        let each = |vector: &VectorTimes| vector.all / vector.packets;
        self.vectors
            .sort_unstable_by(|one, other| each(one).total_cmp(&each(other)));
        let max_time = each(&self.vectors[self.vectors.len() / 2]) * 4.0;
        let mut sum = VectorTimes::default();
        for vector in &self.vectors {
            sum.add(vector, (max_time / each(vector)).min(1.0));
        }
        sum
    }
}

#[allow(clippy::cast_precision_loss)] // times of vectors and rounds
fn nanoseconds(time: Duration) -> f64 {
    time.as_secs() as f64 * 1e9 + f64::from(time.subsec_nanos())
}

#[cfg(test)]
mod tests;
