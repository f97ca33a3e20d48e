//! Which caches are asked: those with which packets take the least time, as measured.
//!
//! # Idea
//! What a cache brings depends on the pipeline, the packets and the processor's own
//! caches, so nothing is assumed about it: now and then, in a *round*, some vectors pass
//! the tables without caches, some with the caches of the present choice, and some with
//! those of another one, and all of these are timed. Between rounds nothing is timed.
//!
//! ```text
//! rest ─▶ present: time ─▶ none: settle, time ─▶ another: learn, settle, time ─▶ rest
//! growing:  present: learn, time ─▶ none: settle, time ─▶ present: …
//! ```
//! A round costs what its vectors took longer than those of the best choice. The rest
//! after it is so long that rounds take [`EXPLORING`] of the time.
//!
//! # Learning
//! To watch a packet in the tables costs as much as many lookups. The time for it comes
//! from what caches have saved ([`REINVESTED`]), and a small share of all time
//! ([`WATCHING`]). Caches that know too little to pay yet are given time to *grow*: at the
//! start, and where two things are measured: flows that they do not know come again, and
//! a packet that they know saves much. If that was without effect they wait twice as long
//! before it is tried again.
//!
//! # The clock
//! It is the caller's. Without one nothing is judged: every cache is asked about every
//! packet, which is what tests want.

use std::time::Duration;

use super::cache_status::Clock;

/// The share of all time that rounds may cost.
const EXPLORING: f64 = 0.0075;

/// The share of the time without caches that may be spent on watching packets, whether
/// caches pay or not.
const WATCHING: f64 = 0.005;

/// The share of what caches have saved that may be spent on watching packets besides.
const REINVESTED: f64 = 0.5;

/// The share of the time without caches that caches which grow may spend on watching.
const GROWING: f64 = 0.5;

/// Caches may grow if packets would take less than this share of the time without caches
/// once all flows that come again are known.
const PROMISING: f64 = 0.9;

/// Another choice is made if packets take less than this share of the present one's time.
const BETTER: f64 = 0.98;

/// A ratio that differs by this share from what it was is not due to noise.
const CHANGED: f64 = 0.25;

/// The most time that may be left over for watching, in nanoseconds.
const CREDIT: f64 = 1e7;

/// Vectors that are timed, and packets in them, at least.
const TIMED: usize = 32;
const TIMED_PACKETS: u64 = 4096;

/// The most vectors that are timed, however few packets they have.
const MOST_TIMED: usize = 128;

/// Vectors of a choice before it is timed, so that its memory is near.
const SETTLE: usize = 48;

/// The same where choices differ so much that it does not matter.
const SHORT_SETTLE: usize = 8;

/// Shares of the time without caches, from and to, between which it does.
const CLOSE: std::ops::Range<f64> = 0.8..1.25;

/// Vectors of another choice in which packets are watched first.
const LEARN: usize = 64;

/// Packets that are watched there, and a vector's more at most.
const LEARNED: u64 = 128;

/// Vectors between rounds, at least and at most.
const LEAST_REST: usize = 128;
const MOST_REST: usize = 32_768;

/// Vectors of a round in which caches grow.
const GROWTH_VECTORS: usize = 512;

/// Rounds for which caches may grow without paying.
const GROWTH: u32 = 12;

/// Rounds after which they stop where they would not pay even if they knew more.
const GROWTH_TRIED: u32 = 3;

/// Rounds until they may grow again after that was without effect: the first time, and
/// at most.
const FIRST_GROWTH_REST: u32 = 16;
const MOST_GROWTH_REST: u32 = 512;

/// The levels of caches that packets are looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) microflows: bool,
    pub(super) megaflows: bool,
}

/// What is to be done with a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) levels: Levels,
    /// Whether it is noted which flows were seen.
    pub(super) notes_flows: bool,
    /// Whether packets may be watched.
    pub(super) may_watch: bool,
}

/// What was done with a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) packets: usize,
    /// Packets whose paths were known.
    pub(super) known: usize,
    /// Of the others, those whose flows were seen a moment ago, where that is noted.
    pub(super) seen: Option<usize>,
    /// Packets that were watched.
    pub(super) watched: usize,
    /// The time that it took to follow changes, if it was timed.
    pub(super) upkeep: Duration,
}

/// Levels that may be asked, and what is known of it.
#[derive(Clone, Debug)]
struct Choice {
    levels: Levels,
    /// Nanoseconds for each packet when it was timed last.
    cost: f64,
    /// The share of packets that were known then.
    known: f64,
    /// Its cost in shares of that without caches; `None` if it was not timed yet.
    ratio: Option<f64>,
    /// Of the packets that are not known, the share whose flows were seen a moment ago.
    seen: f64,
    /// The round in which it was timed last as another than the present one.
    timed_in: u32,
}

/// What vectors of a round are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Learn,
    Settle,
    Time,
}

/// Vectors of a round.
#[derive(Clone, Copy, Debug)]
struct Segment {
    choice: usize,
    purpose: Purpose,
    /// At most.
    vectors: usize,
}

/// The most segments of a round: the present choice, none and another one.
const SEGMENTS: usize = 6;

/// What has been counted of a segment.
#[derive(Clone, Debug, Default)]
struct Count {
    /// Nanoseconds and packets of each vector.
    times: Vec<(f64, u32)>,
    /// Nanoseconds of following changes, which are not in these.
    upkeep: f64,
    packets: u64,
    known: u64,
    watched: u64,
}

/// What a round took so far.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    nanoseconds: f64,
    packets: f64,
    vectors: f64,
}

/// What a learning segment took.
#[derive(Clone, Copy, Debug)]
struct Learned {
    choice: usize,
    nanoseconds: f64,
    packets: f64,
    watched: f64,
}

/// Decides which caches are asked.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    clock: Option<Clock>,
    /// The first is to ask none.
    choices: Vec<Choice>,
    present: usize,
    /// Rounds for which the present choice need not pay yet.
    growth: u32,
    /// Rounds until that may be so again, and those after that if it is without effect.
    until_growth: u32,
    growth_rest: u32,
    rounds: u32,
    /// Vectors until the next round; 0 in a round.
    rest: usize,
    round: Vec<Segment>,
    at: usize,
    count: Count,
    spent: Spent,
    learned: Option<Learned>,
    begun: Duration,
    /// Time that may be spent on watching packets, in nanoseconds.
    credit: f64,
    /// What it takes to watch a packet, in nanoseconds.
    watch: f64,
}

impl Judge {
    /// For the levels that there are.
    pub(super) fn new(levels: Levels, clock: Option<Clock>) -> Judge {
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
            known: 0.0,
            ratio: None,
            seen: 0.0,
            timed_in: 0,
        };
        let mut choices: Vec<Choice> = choices.into_iter().map(choice).collect();
        choices[0].ratio = Some(1.0);
        Judge {
            clock,
            choices,
            present: 1,
            growth: GROWTH,
            until_growth: 0,
            growth_rest: FIRST_GROWTH_REST,
            rounds: 0,
            rest: 0,
            round: Vec::with_capacity(SEGMENTS),
            at: 0,
            count: Count {
                times: Vec::with_capacity(GROWTH_VECTORS),
                ..Count::default()
            },
            spent: Spent::default(),
            learned: None,
            begun: Duration::ZERO,
            credit: CREDIT,
            watch: 2500.0,
        }
    }

    fn is_growing(&self) -> bool {
        self.growth > 0
    }

    /// What a packet takes without caches, in nanoseconds: very long before it was measured.
    pub(super) fn without_caches(&self) -> f64 {
        match self.choices[0].cost {
            0.0 => 1e9,
            cost => cost,
        }
    }

    /// What is to be done with the next vector.
    pub(super) fn begin(&mut self) -> Turn {
        let Some(clock) = self.clock else {
            return Turn {
                levels: self.choices[1].levels,
                notes_flows: true,
                may_watch: true,
            };
        };
        if self.rest > 0 {
            let may_watch = self.present != 0 && self.credit > 0.0;
            return Turn {
                levels: self.choices[self.present].levels,
                notes_flows: may_watch,
                may_watch,
            };
        }
        if self.round.is_empty() {
            self.plan();
        }
        let segment = self.round[self.at];
        self.begun = clock();
        let learns = segment.purpose == Purpose::Learn;
        let may_watch = match segment.choice == self.present {
            true => self.credit > 0.0,
            false => self.count.watched < LEARNED,
        };
        Turn {
            levels: self.choices[segment.choice].levels,
            notes_flows: learns,
            may_watch: learns && may_watch,
        }
    }

    /// The time, in a vector that is timed.
    pub(super) fn time(&self) -> Option<Duration> {
        let clock = self.clock.filter(|_| self.rest == 0)?;
        Some(clock())
    }

    /// What was done with it.
    pub(super) fn end(&mut self, outcome: Outcome) {
        let Some(clock) = self.clock else { return };
        if outcome.packets == 0 {
            return;
        }
        if self.rest > 0 {
            self.rest -= 1;
            if self.present != 0 {
                self.note_seen(self.present, outcome);
                self.account(outcome);
            }
            return;
        }
        // Changes come many at once: what they take is not that of an interruption.
        #[allow(clippy::cast_precision_loss)] // times of one vector
        let upkeep = outcome.upkeep.as_nanos() as f64;
        self.count.upkeep += upkeep;
        let taken = clock().saturating_sub(self.begun + outcome.upkeep);
        let segment = self.round[self.at];
        self.note_seen(segment.choice, outcome);
        if segment.purpose == Purpose::Learn && segment.choice == self.present {
            self.account(outcome);
        }
        #[allow(clippy::cast_precision_loss)] // times of one vector
        let taken = taken.as_nanos() as f64;
        let packets = u32::try_from(outcome.packets).unwrap_or(u32::MAX);
        self.count.times.push((taken, packets));
        self.count.packets += u64::from(packets);
        self.count.known += outcome.known as u64;
        self.count.watched += outcome.watched as u64;
        let vectors = self.count.times.len();
        let is_over = match segment.purpose {
            Purpose::Time => vectors >= TIMED && self.count.packets >= TIMED_PACKETS,
            Purpose::Learn | Purpose::Settle => false,
        };
        if is_over || vectors >= segment.vectors {
            self.end_segment(segment);
        }
    }

    /// Income and expenses of a vector between rounds.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    fn account(&mut self, outcome: Outcome) {
        let (packets, known) = (outcome.packets as f64, outcome.known as f64);
        let none = self.choices[0].cost;
        let share = match self.is_growing() {
            true => GROWING,
            false => WATCHING,
        };
        let saved = known * self.saving(self.present);
        let income = packets * none * share + saved * REINVESTED;
        let expense = outcome.watched as f64 * self.watch;
        self.credit = (self.credit + income - expense).min(CREDIT);
    }

    fn note_seen(&mut self, choice: usize, outcome: Outcome) {
        let missed = outcome.packets - outcome.known;
        if let Some(seen) = outcome.seen
            && missed > 0
        {
            #[allow(clippy::cast_precision_loss)] // numbers of packets
            let share = seen as f64 / missed as f64;
            let seen = &mut self.choices[choice].seen;
            *seen += (share - *seen) / 16.0;
        }
    }

    /// What a packet saves that is known, in nanoseconds.
    ///
    /// Every packet costs a lookup in the caches, and those that are not known pass the
    /// tables besides. What it costs to act on a packet is taken to be the same for
    /// both, so this is rather too much than too little.
    fn saving(&self, choice: usize) -> f64 {
        let none = self.choices[0].cost;
        let Choice { cost, known, .. } = self.choices[choice];
        let lookup = cost - (1.0 - known) * none;
        (none - lookup.max(0.0)).max(0.0)
    }

    /// Plans the segments of a round.
    fn plan(&mut self) {
        (self.at, self.spent, self.learned) = (0, Spent::default(), None);
        let is_growing = self.is_growing();
        // Where choices differ much it does not matter what memory is near.
        let settle = |number: usize| {
            let ratio = self.choices[number].ratio;
            match ratio.is_none_or(|ratio| CLOSE.contains(&ratio)) {
                true => SETTLE,
                false => SHORT_SETTLE,
            }
        };
        // Every second time the best, else one after the other.
        let others = (1..self.choices.len()).filter(|&other| other != self.present);
        let ratio = |other: &usize| self.choices[*other].ratio.unwrap_or(0.0);
        let other = match self.rounds.is_multiple_of(2) {
            true => others.min_by(|one, other| ratio(one).total_cmp(&ratio(other))),
            false => others.min_by_key(|&other| self.choices[other].timed_in),
        };
        let other = other.filter(|_| !is_growing);
        let mut add = |choice, purpose, vectors| {
            self.round.push(Segment {
                choice,
                purpose,
                vectors,
            });
        };
        if is_growing {
            add(self.present, Purpose::Learn, GROWTH_VECTORS);
        }
        // The present one before none: its memory is near.
        add(self.present, Purpose::Time, MOST_TIMED);
        if self.present != 0 {
            add(0, Purpose::Settle, settle(self.present));
            add(0, Purpose::Time, MOST_TIMED);
        }
        if let Some(other) = other {
            add(other, Purpose::Learn, LEARN);
            add(other, Purpose::Settle, settle(other));
            add(other, Purpose::Time, MOST_TIMED);
            self.choices[other].timed_in = self.rounds;
        }
    }

    /// The vectors of a segment are over.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    fn end_segment(&mut self, segment: Segment) {
        let packets = self.count.packets as f64;
        let nanoseconds = self.count.taken() + self.count.upkeep;
        let (known, watched) = (self.count.known as f64, self.count.watched as f64);
        self.spent.nanoseconds += nanoseconds;
        self.spent.packets += packets;
        self.spent.vectors += self.count.times.len() as f64;
        let choice = &mut self.choices[segment.choice];
        match segment.purpose {
            Purpose::Time => {
                choice.cost = nanoseconds / packets;
                choice.known = known / packets;
            }
            Purpose::Learn => {
                self.learned = Some(Learned {
                    choice: segment.choice,
                    nanoseconds,
                    packets,
                    watched,
                });
            }
            Purpose::Settle => {}
        }
        let count = &mut self.count;
        count.times.clear();
        count.upkeep = 0.0;
        (count.packets, count.known, count.watched) = (0, 0, 0);
        self.at += 1;
        if self.at == self.round.len() {
            self.end_round();
        }
    }

    /// Chooses.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bounded
    fn end_round(&mut self) {
        let none = self.choices[0].cost.max(0.1);
        let mut timed = [false; 4];
        for segment in self.round.drain(..) {
            timed[segment.choice] |= segment.purpose == Purpose::Time;
        }
        let others = self.choices.iter_mut().zip(timed).skip(1);
        for (choice, _) in others.filter(|(_, is_timed)| *is_timed) {
            let ratio = choice.cost / none;
            // Noise is evened out, but what is quite another is due to other packets.
            let old = choice.ratio.unwrap_or(ratio);
            choice.ratio = Some(match (ratio / old - 1.0).abs() < CHANGED {
                true => f64::midpoint(old, ratio),
                false => ratio,
            });
        }
        if let Some(learned) = self.learned.filter(|learned| learned.watched >= 64.0) {
            let lookups = learned.packets * self.choices[learned.choice].cost;
            let cost = (learned.nanoseconds - lookups) / learned.watched;
            self.watch = f64::midpoint(self.watch, cost.clamp(200.0, 100_000.0));
        }
        self.rounds = self.rounds.saturating_add(1);
        self.choose(timed);
        let present = self.choices[self.present].cost.max(0.1);
        let Spent {
            nanoseconds,
            packets,
            vectors,
        } = self.spent;
        let cost = (nanoseconds - packets * present.min(none)).max(0.0);
        let rest = cost / EXPLORING / (present * packets / vectors);
        self.rest = match self.is_growing() {
            true => 0,
            false => (rest as usize).clamp(LEAST_REST, MOST_REST),
        };
    }

    /// Chooses the fastest of what was timed; or what may become the fastest.
    fn choose(&mut self, timed: [bool; 4]) {
        let ratio = |number: usize| self.choices[number].ratio.unwrap_or(f64::INFINITY);
        let all = 0..self.choices.len();
        let best = all
            .clone()
            .min_by(|&one, &other| ratio(one).total_cmp(&ratio(other)));
        let best = best.unwrap_or(0);
        let pays = best != 0 && ratio(best) < BETTER;
        let none = self.choices[0].cost;
        if self.growth > 0 {
            self.growth -= 1;
            let projected = self.projected(1);
            if pays && projected > self.choices[1].cost * PROMISING {
                self.growth = 0;
            } else if self.growth == 0 || projected > none && self.growth + GROWTH_TRIED <= GROWTH {
                self.growth = 0;
                self.until_growth = self.growth_rest;
                self.growth_rest = (self.growth_rest * 2).min(MOST_GROWTH_REST);
            }
        }
        if pays && (ratio(best) < ratio(self.present) * BETTER || self.present == 0) {
            self.present = best;
        } else if ratio(self.present) * BETTER > 1.0 && self.growth == 0 {
            self.present = 0;
        }
        self.until_growth = self.until_growth.saturating_sub(1);
        let mut caches = all.skip(1).filter(|&number| timed[number]);
        let least = self.choices[self.present].cost.min(none) * PROMISING;
        let promises = caches.any(|number| self.projected(number) < least);
        if promises && self.until_growth == 0 && self.growth == 0 {
            self.growth = GROWTH;
        }
        if self.growth > 0 {
            // What one level has learned helps the other.
            self.present = 1;
        }
    }

    /// What a packet would take, in nanoseconds, if all flows were known that come again.
    fn projected(&self, choice: usize) -> f64 {
        let Choice {
            cost, known, seen, ..
        } = self.choices[choice];
        cost - (1.0 - known) * seen * self.saving(choice)
    }
}

impl Count {
    /// Nanoseconds of all vectors. What took far longer for each packet than most was
    /// interrupted, and counts as little as these.
    #[allow(clippy::cast_precision_loss)] // less than 2^53
    fn taken(&mut self) -> f64 {
        let each = |&(taken, packets): &(f64, u32)| taken / f64::from(packets);
        self.times
            .sort_unstable_by(|one, other| each(one).total_cmp(&each(other)));
        let most = each(&self.times[self.times.len() / 2]) * 4.0;
        let times = self.times.iter();
        times
            .map(|&(taken, packets)| taken.min(most * f64::from(packets)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<f64> = const { Cell::new(0.0) };
    }

    fn clock() -> Duration {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a test's time
        Duration::from_nanos(NOW.get() as u64)
    }

    const BOTH: Levels = Levels {
        microflows: true,
        megaflows: true,
    };

    /// A datapath of which it is known what everything takes, in nanoseconds.
    struct Model {
        judge: Judge,
        /// What packets take without caches, what a lookup takes, and watching a packet.
        none: f64,
        lookup: f64,
        watch: f64,
        /// Flows, each as frequent as the others, and how many are known.
        flows: f64,
        known: f64,
        /// Packets by whether caches were asked.
        asked: u64,
        passed: u64,
    }

    impl Model {
        fn new(none: f64, lookup: f64, flows: f64) -> Model {
            Model {
                judge: Judge::new(BOTH, Some(clock)),
                none,
                lookup,
                watch: 2500.0,
                flows,
                known: 0.0,
                asked: 0,
                passed: 0,
            }
        }

        /// Processes vectors of 256 packets. Returns how long they took, in shares of the
        /// time without caches.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        fn run(&mut self, vectors: u32) -> f64 {
            let begun = NOW.get();
            for _ in 0..vectors {
                let Turn {
                    levels,
                    notes_flows,
                    may_watch,
                } = self.judge.begin();
                let mut outcome = Outcome {
                    packets: 256,
                    ..Outcome::default()
                };
                if levels == self.judge.choices[0].levels {
                    NOW.set(NOW.get() + 256.0 * self.none);
                    self.passed += 1;
                } else {
                    self.asked += 1;
                    let share = self.known / self.flows;
                    outcome.known = (256.0 * share) as usize;
                    let missed = 256 - outcome.known;
                    if notes_flows {
                        // Few flows come again soon; many do not.
                        let seen = missed as f64 * (20_000.0 / self.flows).min(1.0);
                        outcome.seen = Some(seen as usize);
                    }
                    if may_watch {
                        outcome.watched = outcome.seen.unwrap_or(0).min(32);
                        self.known = (self.known + outcome.watched as f64).min(self.flows);
                    }
                    let time = 256.0 * self.lookup
                        + missed as f64 * self.none
                        + outcome.watched as f64 * self.watch;
                    NOW.set(NOW.get() + time);
                }
                self.judge.end(outcome);
            }
            (NOW.get() - begun) / (f64::from(vectors) * 256.0 * self.none)
        }
    }

    #[test]
    fn caches_that_pay_are_asked() {
        let mut model = Model::new(60.0, 20.0, 1000.0);
        model.run(2000);
        let share = model.run(20_000);
        assert!(share < 0.40, "{share}");
        // And as soon as they do not any more, they are not.
        model.lookup = 70.0;
        model.run(60_000);
        model.passed = 0;
        let share = model.run(20_000);
        assert!(share < 1.03, "{share}");
        assert!(model.passed > 19_000, "{}", model.passed);
    }

    #[test]
    fn caches_that_do_not_pay_cost_little() {
        for (none, lookup) in [(30.0, 28.0), (30.0, 40.0), (60.0, 90.0), (200.0, 250.0)] {
            for flows in [64.0, 80_000.0, 1e9] {
                let mut model = Model::new(none, lookup, flows);
                let share = model.run(10_000);
                assert!(share < 2.0, "{none}, {lookup}, {flows}: {share} at first");
                let share = model.run(100_000);
                assert!(share < 1.03, "{none}, {lookup}, {flows}: {share}");
            }
        }
        // Nor if no flow ever comes again.
        let share = Model::new(200.0, 20.0, 1e12).run(100_000);
        assert!(share < 1.03, "{share}");
    }

    #[test]
    fn caches_that_would_pay_grow() {
        // Of 40,000 flows none is known: caches are slower than none until some are.
        let mut model = Model::new(200.0, 40.0, 40_000.0);
        model.run(20_000);
        let share = model.run(20_000);
        assert!(share < 0.35, "{share}, {} are known", model.known);
    }

    #[test]
    fn without_a_clock_all_caches_are_asked() {
        let mut judge = Judge::new(BOTH, None);
        for _ in 0..1000 {
            let turn = Turn {
                levels: BOTH,
                notes_flows: true,
                may_watch: true,
            };
            assert_eq!(judge.begin(), turn);
            judge.end(Outcome {
                packets: 1,
                ..Outcome::default()
            });
        }
    }
}
