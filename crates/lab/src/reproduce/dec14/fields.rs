//! A field a core against a packet a core, over the same bit vectors.
//!
//! The paper names two ways to use several cores (§IV.C). With *a field a core*, each core
//! searches its own fields for all packets, and the cores merge the bit vectors that all of
//! them have found. With *a packet a core*, each core searches all fields of its own packets
//! and merges alone; the paper takes this way, because the merge of the other way needs
//! communication.
//!
//! ```text
//! a packet a core             a field a core
//! core 0: half of them        core 0: half of the fields ─┐ rows ┌─ merge half of the packets
//! core 1: the other half      core 1: the other half     ─┘      └─ merge the other half
//! ```
//!
//! Both ways share one structure: for each field, the ends of its intervals, and one bit
//! vector for each interval, with a bit for each rule in order of rank. Cores hand over row
//! numbers, four bytes for each field and packet, and wait for each other once in a batch.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::{FieldId, KeySlice, RuleSet, Schema, Winner};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::Study;
use super::measure::{CHECKED_HEADERS, batches};
use crate::bench::{Spread, size_name};
use crate::cores::{Clocks, first_objection};
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The number of cores.
const CORE_COUNT: usize = 2;

/// Timed passes, interleaved.
const TIMED_PASSES: usize = 7;

/// The maximum number of rules: vectors over 8,000 rules take some 100 MB.
pub(super) const MAX_RULES: usize = 8_000;

/// The number of checks of a waiting core before it yields.
const CHECKS_PER_YIELD: u32 = 10_000;

/// Times over one rule set, in nanoseconds of elapsed time a header.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TwoWays {
    /// The time with one core.
    pub(super) alone: f64,
    /// The time with a packet a core.
    pub(super) packets: f64,
    /// The time with a field a core.
    pub(super) fields: f64,
    /// For each pass, the time with a packet a core over the time with a field a core.
    ratios: Vec<f64>,
    pub(super) wrong: usize,
    /// The reason why the times do not show what the cores can do, if there is one.
    pub(super) objection: Option<String>,
}

/// Draws the table.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut sizes = study.dec14_sizes();
    sizes.retain(|&rules| rules <= MAX_RULES);
    study.expect_points(sizes.len());
    let mut grid = Grid {
        title: format!("{CORE_COUNT} cores over the same bit vectors, in batches of {BATCH}"),
        columns: [
            "rules",
            "ns, one core",
            "ns, a packet a core",
            "ns, a field a core",
            "a packet a core: times one core",
            "a field a core: times one core",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 0,
        rows: Vec::new(),
    };
    let (mut lines, mut cases, mut wrong) = (Vec::new(), Vec::new(), 0);
    for &rules in &sizes {
        let ways = measure(study, rules)?;
        wrong += ways.wrong;
        lines.push(format!(
            "{rules},{:.2},{:.2},{:.2},{}",
            ways.alone,
            ways.packets,
            ways.fields,
            ways.objection.is_none()
        ));
        if ways.objection.is_some() {
            cases.push(Case::missing(size_name(rules), super::NO_PROCESSORS));
            continue;
        }
        cases.push(Case::samples(size_name(rules), ways.ratios));
        grid.rows.push(vec![
            size_name(rules),
            format!("{:.1}", ways.alone),
            format!("{:.1}", ways.packets),
            format!("{:.1}", ways.fields),
            format!("{:.2}", ways.alone / ways.packets),
            format!("{:.2}", ways.alone / ways.fields),
        ]);
    }
    let heading = "rules,alone_ns,packets_ns,fields_ns,cores_were_free";
    study.write_csv("fields.csv", heading, &lines)?;
    if cases.is_empty() {
        let gap = Gap::NotRun("a rule set of at most 8,000 rules");
        cases.push(Case::missing("", gap));
    }
    let mut section = Section {
        title: "A field a core, against a packet a core".to_owned(),
        method: method(),
        claims: claims(cases),
        grids: vec![grid],
        pictures: Vec::new(),
    };
    super::wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Describes the structure and the two ways.
pub(super) fn method() -> String {
    format!(
        "Both ways use the same structure, all rules in bit vectors over all fields, and the \
         same merge with early termination, without SIMD. With a field a core, each of \
         {CORE_COUNT} cores searches its fields for a batch, and the cores then merge half of \
         the packets each; fields are dealt by their number of intervals. Cores wait for each \
         other once in a batch, and do not sleep. Times are elapsed times. Cases in which the \
         cores were not free are left out."
    )
}

/// Returns the claim; without cases, it is not measured.
pub(super) fn claims(cases: Vec<Case>) -> Vec<Claim> {
    vec![
        Claim::new(
            "§IV.C",
            "A field a core is limited by the communication between cores during the merge, \
             so a packet stays on one core.",
        )
        .part(
            Part::new(
                "headers a second, a field a core / a packet a core",
                Threshold::Below(1.0),
            )
            .cases(cases)
            .grid(format!("{CORE_COUNT} cores over"), ""),
        ),
    ]
}

fn measure(study: &mut Study<'_>, rules: usize) -> Result<TwoWays, Failure> {
    study.point(&format!("fields, {rules} rules"), |study| {
        let policy = study.dec14_policy(rules, 0)?;
        let trace = study.dec14_trace(&policy, 0)?;
        let keys = trace.part(PartId::FIRST).as_slice();
        Ok(TwoWays::of(policy.part(PartId::FIRST), keys))
    })
}

impl TwoWays {
    /// Times both ways, and one core, over rules without masks that have gaps.
    pub(super) fn of(rule_set: &RuleSet, keys: KeySlice<'_>) -> TwoWays {
        let vectors = Vectors::new(rule_set);
        let mut winners = [(); 3].map(|()| vec![Winner::MISS; keys.len()]);
        let mut samples = [(); 3].map(|()| Vec::new());
        let mut clocks = [Clocks::default(); 3];
        for pass in 0..=TIMED_PASSES {
            for (way, winners) in winners.iter_mut().enumerate() {
                let ((), run) = Clocks::time(|| match way {
                    0 => vectors.packets(keys, winners),
                    1 => vectors.packets_on_cores(keys, winners),
                    _ => vectors.fields_on_cores(keys, winners),
                });
                // The first pass warms the caches.
                if pass > 0 {
                    samples[way].push(run.wall * 1e9 / coordinate(keys.len().max(1)));
                    clocks[way].add(run);
                }
            }
        }
        let passes = samples[1].iter().zip(&samples[2]);
        let ratios = passes.map(|(packets, fields)| packets / fields).collect();
        let [alone, packets, fields] =
            samples.map(|samples| Spread::of(&samples).map_or(0.0, |spread| spread.median));
        // A core that waits for the other one does not sleep, so its share is whole if its
        // processor is free.
        let runs: Vec<(usize, Clocks)> = [1, CORE_COUNT, CORE_COUNT]
            .into_iter()
            .zip(clocks)
            .collect();
        let checked = keys.iter().take(CHECKED_HEADERS).enumerate();
        let wrong = checked
            .filter(|(index, key)| winners[0][*index] != rule_set.scan(key))
            .count();
        let differing = (0..keys.len())
            .filter(|&index| winners.iter().any(|way| way[index] != winners[0][index]))
            .count();
        TwoWays {
            ratios,
            alone,
            packets,
            fields,
            wrong: wrong + differing,
            objection: first_objection(&runs),
        }
    }
}

/// The intervals of one field.
struct Intervals {
    field: FieldId,
    /// The first value of each interval, ascending; the first interval begins at 0.
    starts: Vec<u128>,
    /// The vector of each interval: a bit for each rule in order of rank.
    rows: Vec<u64>,
}

/// Bit vectors of all rules over all fields.
struct Vectors {
    schema: Arc<Schema>,
    fields: Vec<Intervals>,
    /// The words of a vector.
    words: usize,
    /// The outcome for each rule in order of rank.
    winners: Vec<Winner>,
    /// The fields of each core, as positions in `fields`.
    shares: [Vec<usize>; CORE_COUNT],
}

impl Vectors {
    /// Builds the vectors of rules whose fields are ranges: no rule has a mask with gaps.
    fn new(rules: &RuleSet) -> Vectors {
        let order = rules.by_rank();
        let words = order.len().div_ceil(64);
        let fields: Vec<Intervals> = (rules.schema().field_ids())
            .map(|field| Intervals::new(rules, &order, field, words))
            .collect();
        let mut by_size: Vec<usize> = (0..fields.len()).collect();
        by_size.sort_by_key(|&at| std::cmp::Reverse(fields[at].starts.len()));
        let mut shares: [Vec<usize>; CORE_COUNT] = Default::default();
        for (place, at) in by_size.into_iter().enumerate() {
            shares[place % CORE_COUNT].push(at);
        }
        Vectors {
            schema: Arc::clone(rules.schema()),
            fields,
            words,
            winners: (order.iter())
                .map(|&index| rules.rule(index as usize).winner())
                .collect(),
            shares,
        }
    }

    /// Writes the row numbers of some fields, for each key a row number for each of these
    /// fields.
    fn search(&self, keys: KeySlice<'_>, fields: &[usize], rows: &mut [u32]) {
        for (key, rows) in keys.iter().zip(rows.chunks_exact_mut(fields.len())) {
            for (row, &at) in rows.iter_mut().zip(fields) {
                let field = &self.fields[at];
                *row = field.row(self.schema.get_field(key, field.field));
            }
        }
    }

    /// Returns the best rule that is in the vectors of all rows. `rows` has a field, as a
    /// position in `fields`, with its row.
    fn merge(&self, rows: &(impl Iterator<Item = (usize, u32)> + Clone)) -> Winner {
        for word in 0..self.words {
            let common = rows.clone().fold(u64::MAX, |common, (at, row)| {
                common & self.fields[at].rows[row as usize * self.words + word]
            });
            if common != 0 {
                return self.winners[word * 64 + common.trailing_zeros() as usize];
            }
        }
        Winner::MISS
    }

    /// Looks up all keys on this core.
    fn packets(&self, keys: KeySlice<'_>, winners: &mut [Winner]) {
        let field_indexes: Vec<usize> = (0..self.fields.len()).collect();
        let mut rows = vec![0; BATCH * field_indexes.len()];
        for (batch, winners) in batches(keys, BATCH).zip(winners.chunks_mut(BATCH)) {
            self.search(batch, &field_indexes, &mut rows);
            for (winner, rows) in winners
                .iter_mut()
                .zip(rows.chunks_exact(field_indexes.len()))
            {
                *winner = self.merge(&rows.iter().copied().enumerate());
            }
        }
    }

    /// Looks up half of the keys on each core.
    fn packets_on_cores(&self, keys: KeySlice<'_>, winners: &mut [Winner]) {
        let half = (keys.len() / CORE_COUNT)
            .next_multiple_of(BATCH)
            .min(keys.len());
        let (first, second) = winners.split_at_mut(half);
        std::thread::scope(|scope| {
            scope.spawn(|| self.packets(keys.range(half..keys.len()), second));
            self.packets(keys.range(0..half), first);
        });
    }

    /// Searches half of the fields on each core for all keys, and merges half of the keys
    /// on each core.
    fn fields_on_cores(&self, keys: KeySlice<'_>, winners: &mut [Winner]) {
        // Row numbers of each core, in two buffers that are used in turn. Before a core writes
        // a buffer, both cores have finished the batch that used it.
        let buffers = self
            .shares
            .each_ref()
            .map(|share| [(); 2].map(|()| RwLock::new(vec![0_u32; BATCH * share.len()])));
        let meeting = Meeting::default();
        let mut sides: [Vec<&mut [Winner]>; CORE_COUNT] = Default::default();
        for winners in winners.chunks_mut(BATCH) {
            let (first, second) = winners.split_at_mut(winners.len() / CORE_COUNT);
            sides[0].push(first);
            sides[1].push(second);
        }
        let core = |own: usize, winners: Vec<&mut [Winner]>| {
            for (number, (batch, winners)) in batches(keys, BATCH).zip(winners).enumerate() {
                let turn = number % 2;
                {
                    let mut rows = buffers[own][turn].write().expect("no panic");
                    self.search(batch, &self.shares[own], &mut rows);
                }
                meeting.wait();
                let rows = [0, 1].map(|core| buffers[core][turn].read().expect("no panic"));
                let begin = own * (batch.len() / CORE_COUNT);
                for (key, winner) in (begin..).zip(winners) {
                    let of_core = |core: usize| {
                        let share = &self.shares[core];
                        let rows = &rows[core][key * share.len()..][..share.len()];
                        share.iter().copied().zip(rows.iter().copied())
                    };
                    *winner = self.merge(&of_core(0).chain(of_core(1)));
                }
            }
        };
        let [first, second] = sides;
        std::thread::scope(|scope| {
            scope.spawn(|| core(1, second));
            core(0, first);
        });
    }
}

impl Intervals {
    fn new(rules: &RuleSet, order: &[u32], field: FieldId, words: usize) -> Intervals {
        // Where the bit of a rule changes: at its lower end, and after its upper end.
        let mut changes: Vec<(u128, usize)> = Vec::new();
        let max = rules.schema().field(field).max_value();
        for (bit, &index) in order.iter().enumerate() {
            let (low, high) = rules.rule(index as usize).ends(field);
            changes.push((low, bit));
            if high < max {
                changes.push((high + 1, bit));
            }
        }
        changes.sort_unstable();
        let (mut starts, mut rows) = (vec![0], Vec::new());
        let mut vector = vec![0_u64; words];
        for (value, bit) in changes {
            if value != starts[starts.len() - 1] {
                rows.extend_from_slice(&vector);
                starts.push(value);
            }
            vector[bit / 64] ^= 1 << (bit % 64);
        }
        rows.extend_from_slice(&vector);
        Intervals {
            field,
            starts,
            rows,
        }
    }

    /// Returns the row of a value.
    fn row(&self, value: u128) -> u32 {
        let after = self.starts.partition_point(|&start| start <= value);
        u32::try_from(after - 1).expect("fewer intervals than rules")
    }
}

/// A place where all cores wait for each other, without sleeping.
#[derive(Default)]
struct Meeting {
    arrived: AtomicUsize,
    /// The number of meetings so far.
    over: AtomicUsize,
}

impl Meeting {
    fn wait(&self) {
        let number = self.over.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == CORE_COUNT {
            self.arrived.store(0, Ordering::Relaxed);
            self.over.store(number + 1, Ordering::Release);
            return;
        }
        let mut checks = 0_u32;
        while self.over.load(Ordering::Acquire) == number {
            checks = checks.wrapping_add(1);
            match checks % CHECKS_PER_YIELD {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classyard::{ActionId, FieldMatch, KeyVec, Priority, RuleId, Schema};

    #[test]
    fn all_ways_answer_as_a_scan() {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let mut state = 3;
        let mut below = |limit: u64| u128::from(classyard::author::splitmix(&mut state) % limit);
        for number in 0..200 {
            let low = below(40);
            let high = low + below(9);
            let matches = [
                FieldMatch::Any,
                FieldMatch::Prefix {
                    value: below(16) << 28,
                    length: 4,
                },
                FieldMatch::Range { low, high },
                FieldMatch::Any,
                FieldMatch::Exact(below(3)),
            ];
            let id = RuleId::new(number).unwrap();
            rules
                .add(id, Priority(number % 9), ActionId(0), &matches)
                .unwrap();
        }
        let vectors = Vectors::new(&rules);
        assert_eq!(vectors.shares.iter().map(Vec::len).sum::<usize>(), 5);
        for count in [0, 1, 255, 256, 257, 700] {
            let mut keys = KeyVec::new(&schema);
            for _ in 0..count {
                let header = [below(9), below(16) << 28, below(50), below(9), below(4)];
                keys.push(&header).unwrap();
            }
            let keys = keys.as_slice();
            let expected: Vec<Winner> = keys.iter().map(|key| rules.scan(key)).collect();
            for way in [
                Vectors::packets,
                Vectors::packets_on_cores,
                Vectors::fields_on_cores,
            ] {
                let stale = Winner::new(Priority(99), RuleId::new(999).unwrap());
                let mut winners = vec![stale; count];
                way(&vectors, keys, &mut winners);
                assert_eq!(winners, expected, "{count} keys");
            }
        }
    }
}
