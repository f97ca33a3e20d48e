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

use super::cache_settings::Clock;

/// The share of all time that rounds may cost.
const EXPLORING: f64 = 0.0075;

/// The share of the time without caches that may be spent on watching packets, whether
/// caches pay or not.
const WATCHING: f64 = 0.005;

/// The share of what caches have saved that may be spent on watching packets besides.
const REINVESTED: f64 = 0.5;

/// The share of the time without caches that caches which grow may spend on watching.
const GROWING: f64 = 0.5;

/// Caches may grow if packets would take less than this share of the time that they take
/// now, and of that without caches, once all of them are known.
const PROMISING: f64 = 0.9;

/// Caches that grow go on while at least this share of the packets that were not known is
/// known after one more round.
const RISING: f64 = 0.06;

/// Caches that have paid grow if changes have made them doubt more than this share of the
/// packets.
const STALE: f64 = 0.05;

/// Where fewer of the unknown packets than this share are of flows that were seen a moment
/// ago, caches that grow watch any: many flows may have few megaflows.
const RECURRING: f64 = 0.25;

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
const MOST_TIMED: usize = 1024;

/// Packets of a choice before it is timed, so that its memory is near.
const SETTLE: u64 = 12_288;

/// The same where choices differ so much that it does not matter.
const SHORT_SETTLE: u64 = 2048;

/// Shares of the time without caches, from and to, between which it does.
const CLOSE: std::ops::Range<f64> = 0.8..1.25;

/// Packets of another choice, of which some are watched first.
const LEARN: u64 = 16_384;

/// Packets that are watched there, and a vector's more at most.
const LEARNED: u64 = 128;

/// Packets between rounds, at least and at most.
const LEAST_REST: u64 = 32_768;
const MOST_REST: u64 = 8_388_608;

/// Packets of a round in which caches grow.
const GROW: u64 = 131_072;

/// Rounds for which caches may grow without paying.
const GROWTH: u32 = 12;

/// Rounds after which they stop where they would not pay even if they knew more, or do
/// not come to know more.
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
    /// Whether these may be of any flow, and not only of those that come again.
    pub(super) of_any_flow: bool,
}

/// What was done with a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) packets: usize,
    /// Packets whose paths were known.
    pub(super) known: usize,
    /// Of the others, those whose flows were seen a moment ago, where that is noted.
    pub(super) seen: Option<usize>,
    /// Packets whose megaflows may be wrong.
    pub(super) stale: usize,
    /// Packets that were watched for these: what they cost is what changes cost.
    pub(super) renewed: usize,
    /// Others that were watched.
    pub(super) watched: usize,
    /// Parts of the time that it took, if it was timed.
    pub(super) took: Parts,
}

/// Parts of the time that a vector took: the rest of it is for packets that are not known
/// at once, in megaflows behind a cache of single flows and in the tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    /// To follow changes.
    pub(super) upkeep: Duration,
    /// To ask the first of the caches.
    pub(super) asking: Duration,
    /// To carry out what is done with packets that are known.
    pub(super) known: Duration,
}

/// Levels that may be asked, and what is known of it.
#[derive(Clone, Debug)]
struct Choice {
    levels: Levels,
    /// Nanoseconds for each packet when it was timed last.
    cost: f64,
    /// The share of packets that were known then, and of those whose megaflows might be
    /// wrong.
    known: f64,
    stale: f64,
    /// What each packet took in the first cache, each that was known to be carried out,
    /// and each of the others besides, in nanoseconds.
    asking: f64,
    carrying: f64,
    unknown: f64,
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
    /// At most, where it is not timed.
    packets: u64,
}

/// The most segments of a round: the present choice, none and another one.
const SEGMENTS: usize = 6;

/// What has been counted of a segment.
#[derive(Clone, Debug, Default)]
struct Count {
    /// Vectors, where it is timed.
    vectors: Vec<Vector>,
    /// The sum of them, where it is not.
    all: Vector,
    /// Nanoseconds of following changes, which are not in these.
    upkeep: f64,
    packets: u64,
    known: u64,
    stale: u64,
    /// Packets that were watched, and those of them that megaflows knew once.
    watched: u64,
    renewed: u64,
}

/// What a vector took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Vector {
    packets: f64,
    all: f64,
    asking: f64,
    known: f64,
}

/// What a round took so far.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    nanoseconds: f64,
    packets: f64,
}

/// What a learning segment took.
#[derive(Clone, Copy, Debug)]
struct Learned {
    choice: usize,
    /// Nanoseconds that packets took that were not known at once, and how many these were.
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
    /// The share of packets that were not known after the last of them.
    unknown: f64,
    /// Whether they have paid since they grew last because of changes.
    have_paid: bool,
    /// Rounds until that may be so again, and those after that if it is without effect.
    until_growth: u32,
    growth_rest: u32,
    rounds: u32,
    /// Packets until the next round; 0 in a round.
    rest: u64,
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
            stale: 0.0,
            asking: 0.0,
            carrying: 0.0,
            unknown: 0.0,
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
            unknown: 1.0,
            have_paid: false,
            until_growth: 0,
            growth_rest: FIRST_GROWTH_REST,
            rounds: 0,
            rest: 0,
            round: Vec::with_capacity(SEGMENTS),
            at: 0,
            count: Count {
                vectors: Vec::with_capacity(MOST_TIMED),
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
                of_any_flow: true,
            };
        };
        if self.rest > 0 {
            let may_watch = self.present != 0 && self.credit > 0.0;
            return Turn {
                levels: self.choices[self.present].levels,
                notes_flows: may_watch,
                may_watch,
                of_any_flow: false,
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
            false => self.count.watched - self.count.renewed < LEARNED,
        };
        Turn {
            levels: self.choices[segment.choice].levels,
            notes_flows: learns,
            may_watch: learns && may_watch,
            // The first round tells which flows come again.
            of_any_flow: (1..GROWTH).contains(&self.growth)
                && self.choices[segment.choice].seen < RECURRING,
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
            self.rest = self.rest.saturating_sub(outcome.packets as u64);
            if self.present != 0 {
                self.note_seen(self.present, outcome);
                self.account(outcome);
            }
            return;
        }
        // Changes come many at once: what they take is not that of an interruption.
        let Parts {
            upkeep,
            asking,
            known,
        } = outcome.took;
        self.count.upkeep += nanoseconds(upkeep);
        let taken = clock().saturating_sub(self.begun + upkeep);
        let segment = self.round[self.at];
        self.note_seen(segment.choice, outcome);
        if segment.purpose == Purpose::Learn && segment.choice == self.present {
            self.account(outcome);
        }
        #[allow(clippy::cast_precision_loss)] // packets of one vector
        let vector = Vector {
            packets: outcome.packets as f64,
            all: nanoseconds(taken),
            asking: nanoseconds(asking),
            known: nanoseconds(known),
        };
        let count = &mut self.count;
        count.packets += outcome.packets as u64;
        count.known += outcome.known as u64;
        count.stale += outcome.stale as u64;
        count.watched += (outcome.watched + outcome.renewed) as u64;
        count.renewed += outcome.renewed as u64;
        let is_over = match segment.purpose {
            Purpose::Time => {
                count.vectors.push(vector);
                let vectors = count.vectors.len();
                vectors >= TIMED && count.packets >= TIMED_PACKETS || vectors >= MOST_TIMED
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

    /// Income and expenses of a vector between rounds.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    fn account(&mut self, outcome: Outcome) {
        let (packets, known) = (outcome.packets as f64, outcome.known as f64);
        let none = self.choices[0].cost;
        let share = match self.is_growing() {
            true => GROWING,
            false => WATCHING,
        };
        let Choice {
            asking, carrying, ..
        } = self.choices[self.present];
        let saved = (known * (none - carrying) - packets * asking).max(0.0);
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
        let mut add = |choice, purpose, packets| {
            self.round.push(Segment {
                choice,
                purpose,
                packets,
            });
        };
        if is_growing {
            add(self.present, Purpose::Learn, GROW);
        }
        // The present one before none: its memory is near.
        add(self.present, Purpose::Time, 0);
        if self.present != 0 {
            add(0, Purpose::Settle, settle(self.present));
            add(0, Purpose::Time, 0);
        }
        if let Some(other) = other {
            add(other, Purpose::Learn, LEARN);
            add(other, Purpose::Settle, settle(other));
            add(other, Purpose::Time, 0);
            self.choices[other].timed_in = self.rounds;
        }
    }

    /// The vectors of a segment are over.
    #[allow(clippy::cast_precision_loss)] // numbers of packets
    fn end_segment(&mut self, segment: Segment) {
        let taken = match segment.purpose {
            Purpose::Time => self.count.taken(),
            Purpose::Learn | Purpose::Settle => self.count.all,
        };
        let packets = self.count.packets as f64;
        let (known, watched) = (self.count.known as f64, self.count.watched as f64);
        let nanoseconds = taken.all + self.count.upkeep;
        let rest = (taken.all - taken.asking - taken.known).max(0.0);
        let renewing = self.count.renewed as f64 * self.watch;
        self.spent.nanoseconds += nanoseconds;
        self.spent.packets += packets;
        let choice = &mut self.choices[segment.choice];
        match segment.purpose {
            Purpose::Time => {
                choice.cost = nanoseconds / packets;
                choice.known = known / packets;
                choice.stale = self.count.stale as f64 / packets;
                choice.asking = (taken.asking + self.count.upkeep) / packets;
                choice.carrying = taken.known / known.max(1.0);
                choice.unknown = (rest - renewing).max(0.0) / (packets - known).max(1.0);
            }
            Purpose::Learn => {
                self.learned = Some(Learned {
                    choice: segment.choice,
                    nanoseconds: rest,
                    packets: packets - known,
                    watched,
                });
            }
            Purpose::Settle => {}
        }
        let count = &mut self.count;
        count.vectors.clear();
        (count.all, count.upkeep) = (Vector::default(), 0.0);
        (count.packets, count.known, count.stale) = (0, 0, 0);
        (count.watched, count.renewed) = (0, 0);
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
            let passed = learned.packets * self.choices[learned.choice].unknown;
            let cost = (learned.nanoseconds - passed) / learned.watched;
            self.watch = f64::midpoint(self.watch, cost.clamp(200.0, 100_000.0));
        }
        self.rounds = self.rounds.saturating_add(1);
        self.choose(timed);
        let present = self.choices[self.present].cost.max(0.1);
        let Spent {
            nanoseconds,
            packets,
        } = self.spent;
        let cost = (nanoseconds - packets * present.min(none)).max(0.0);
        let rest = cost / EXPLORING / present;
        self.rest = match self.is_growing() {
            true => 0,
            false => (rest as u64).clamp(LEAST_REST, MOST_REST),
        };
    }

    /// Chooses the fastest of what was timed; or what may become the fastest.
    fn choose(&mut self, timed: [bool; 4]) {
        let best = self.best();
        let pays = best != 0 && self.ratio(best) < BETTER;
        if self.is_outdated(pays) {
            (self.growth, self.unknown) = (GROWTH, 1.0);
        } else if self.is_growing() {
            self.grow(pays);
        }
        let present = self.ratio(self.present);
        if pays && (self.ratio(best) < present * BETTER || self.present == 0) {
            self.present = best;
        } else if present * BETTER > 1.0 && self.growth == 0 {
            self.present = 0;
        }
        self.until_growth = self.until_growth.saturating_sub(1);
        let none = self.choices[0].cost;
        let mut caches = (1..self.choices.len()).filter(|&number| timed[number]);
        let least = self.choices[self.present].cost.min(none) * PROMISING;
        let promises = caches.any(|number| self.all_known(number) < least);
        if promises && self.until_growth == 0 && self.growth == 0 {
            (self.growth, self.unknown) = (GROWTH, 1.0);
        }
        if self.growth > 0 {
            // What one level has learned helps the other.
            self.present = 1;
        }
    }

    /// The choice with which packets take the least time.
    fn best(&self) -> usize {
        let all = 0..self.choices.len();
        let best = all.min_by(|&one, &other| self.ratio(one).total_cmp(&self.ratio(other)));
        best.unwrap_or(0)
    }

    fn ratio(&self, choice: usize) -> f64 {
        self.choices[choice].ratio.unwrap_or(f64::INFINITY)
    }

    /// Whether changes have made caches that pay doubt much of what they knew. Where they
    /// pay no more until that is so again they are not worth growing.
    fn is_outdated(&mut self, pays: bool) -> bool {
        let is_outdated = self.present != 0 && self.choices[self.present].stale > STALE;
        let is_worth_it = is_outdated && self.have_paid;
        self.have_paid = !is_worth_it && (self.have_paid || pays && !is_outdated);
        is_worth_it
    }

    /// A round is over in which caches grow: whether they go on.
    fn grow(&mut self, pays: bool) {
        let none = self.choices[0].cost;
        self.growth -= 1;
        let before = self.unknown;
        self.unknown = 1.0 - self.choices[1].known;
        let rises = before - self.unknown >= RISING * before;
        let least = self.all_known(1);
        let is_tried = self.growth + GROWTH_TRIED <= GROWTH;
        if pays && least > self.choices[1].cost * PROMISING {
            self.growth = 0;
        } else if self.growth == 0 || is_tried && (!rises || least > none * PROMISING) {
            self.growth = 0;
            self.until_growth = self.growth_rest;
            self.growth_rest = (self.growth_rest * 2).min(MOST_GROWTH_REST);
        }
    }

    /// What a packet would take, in nanoseconds, if all of them were known.
    fn all_known(&self, choice: usize) -> f64 {
        self.choices[choice].asking + self.choices[choice].carrying
    }
}

impl Vector {
    /// One that counts as a share of itself.
    fn add(&mut self, other: &Vector, share: f64) {
        self.packets += other.packets;
        self.all += other.all * share;
        self.asking += other.asking * share;
        self.known += other.known * share;
    }
}

impl Count {
    /// Nanoseconds of all vectors. What took far longer for each packet than most was
    /// interrupted, and counts as little as these.
    fn taken(&mut self) -> Vector {
        let each = |vector: &Vector| vector.all / vector.packets;
        self.vectors
            .sort_unstable_by(|one, other| each(one).total_cmp(&each(other)));
        let most = each(&self.vectors[self.vectors.len() / 2]) * 4.0;
        let mut sum = Vector::default();
        for vector in &self.vectors {
            sum.add(vector, (most / each(vector)).min(1.0));
        }
        sum
    }
}

#[allow(clippy::cast_precision_loss)] // times of vectors and rounds
fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[cfg(test)]
mod tests;
