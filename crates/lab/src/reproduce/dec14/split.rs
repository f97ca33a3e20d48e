//! One rule set split over several cores, whose winners are merged.
//!
//! The paper keeps each packet on one core (§IV.C). The alternative is to give each core
//! a part of the rules: all cores look up each header, and the best of their winners is
//! the result. Rules are ranked, so merging is a minimum.

use std::sync::Barrier;

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::{
    BuildError, Classifier, EngineSpec, KeySlice, Limits, NoProgress, RuleSet, Scratch, Winner,
};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::measure::{CHECKED_HEADERS, batches};
use super::{ENGINE, PAPER_FORM, Study};
use crate::bench::{Spread, size_name};
use crate::cores::{Clocks, first_objection};
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The number of cores over which rules are split.
const CORE_COUNT: usize = 2;

/// Timed passes, interleaved.
const TIMED_PASSES: usize = 5;

/// Times over one rule set, in nanoseconds a header.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Split {
    /// The time with all rules on one core.
    pub(super) whole: f64,
    /// The time until all cores are done with their parts of the rules.
    pub(super) part: f64,
    /// The time to merge winners.
    pub(super) merge: f64,
    /// For each pass, the throughput over the throughput with a header a core.
    throughput_ratios: Vec<f64>,
    pub(super) wrong: usize,
    /// The reason why the times do not show what the cores can do, if there is one.
    pub(super) objection: Option<String>,
}

impl Split {
    /// Returns the time until a batch is done on all cores and merged.
    fn latency(&self) -> f64 {
        self.part + self.merge
    }

    /// Returns the throughput over the throughput with a header a core. Every core works on
    /// each header. If each core had its own headers, the other cores would finish further
    /// headers in this time.
    pub(super) fn throughput_ratio(&self) -> f64 {
        self.whole / self.latency() / coordinate(CORE_COUNT)
    }
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = study.dec14_sizes();
    let forms = [(ENGINE, "as it is"), (PAPER_FORM, "share=0")];
    study.expect_points(sizes.len() * forms.len());
    let mut grid = Grid {
        title: format!("Rules split over {CORE_COUNT} cores, in batches"),
        columns: [
            "engine",
            "rules",
            "ns, all rules on one core",
            "ns, slower part",
            "ns, merging",
            "latency: times as fast",
            "throughput: against a header a core",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows: Vec::new(),
    };
    let (mut lines, mut series, mut wrong) = (Vec::new(), Vec::new(), 0);
    let mut cases = Vec::new();
    for (engine, name) in forms {
        let mut points = Vec::new();
        for &rules in &sizes {
            let split = measure(study, engine, rules)?;
            wrong += split.wrong;
            let latency = split.whole / split.latency();
            let throughput = split.throughput_ratio();
            lines.push(format!(
                "{engine},{rules},{:.2},{:.2},{:.2},{throughput:.4},{}",
                split.whole,
                split.part,
                split.merge,
                split.objection.is_none()
            ));
            let case = format!("{engine}, {}", size_name(rules));
            if split.objection.is_some() {
                cases.push(Case::missing(case, super::NO_PROCESSORS));
                continue;
            }
            cases.push(Case::samples(case, split.throughput_ratios));
            grid.rows.push(vec![
                engine.to_owned(),
                size_name(rules),
                format!("{:.1}", split.whole),
                format!("{:.1}", split.part),
                format!("{:.1}", split.merge),
                format!("{latency:.2}"),
                format!("{throughput:.2}"),
            ]);
            points.push((coordinate(rules), throughput));
        }
        series.push(Series::marked(name, name, Mark::Circle, points));
    }
    let heading = "engine,rules,whole_ns,part_ns,merge_ns,throughput_ratio,cores_were_free";
    study.write_csv("split.csv", heading, &lines)?;
    let chart = Chart {
        title: "Throughput with rules split over two cores, against headers split",
        x_label: "rules",
        y_label: "times the throughput",
        log_x: true,
        log_y: false,
    };
    // Without free cores there is nothing to draw.
    let mut pictures = Vec::new();
    if !grid.rows.is_empty() {
        study.draw("split.svg", &chart, &series)?;
        pictures.push("split.svg".to_owned());
    }
    let mut section = Section {
        title: "One rule set split over cores, winners merged".to_owned(),
        method: format!(
            "Each of {CORE_COUNT} threads has every second rule by rank and looks all headers up \
             in batches of {BATCH}; the better of their winners wins. Times are elapsed times, \
             until both threads are done and until their winners are merged. They are compared \
             with a header a core: each thread has all rules and half of the headers. Cases in \
             which the threads did not have their processors are left out."
        ),
        claims: claims(cases),
        grids: vec![grid],
        pictures,
    };
    super::wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns the claim; without cases, it is not measured.
pub(super) fn claims(cases: Vec<Case>) -> Vec<Claim> {
    vec![
        Claim::new(
            "§IV.C",
            "Each packet stays on a single core, since communication between cores in the \
             merge phase limits the performance of the other way.",
        )
        .part(
            Part::new(
                "headers a second, split rules / split headers",
                Threshold::Below(1.0),
            )
            .cases(cases)
            .grid("Rules split over", ""),
        ),
    ]
}

fn measure(study: &mut Study<'_>, engine: &str, rules: usize) -> Result<Split, Failure> {
    let point = format!("split {engine}, {rules} rules");
    let engine = engine.to_owned();
    study.point(&point, |study| {
        let policy = study.dec14_policy(rules, 0)?;
        let trace = study.dec14_trace(&policy, 0)?;
        let spec = EngineSpec::parse(&engine).expect("a registered engine");
        let keys = trace.part(PartId::FIRST).as_slice();
        let rules = policy.part(PartId::FIRST);
        Ok(Split::of(rules, keys, &spec.seeded(0))?)
    })
}

/// The engine over all rules, and over the rules of each core.
struct Built {
    whole: Box<dyn Classifier>,
    parts: Vec<Box<dyn Classifier>>,
}

impl Split {
    /// Times an engine over rules of one schema.
    pub(super) fn of(
        rules: &RuleSet,
        keys: KeySlice<'_>,
        engine: &EngineSpec,
    ) -> Result<Split, BuildError> {
        let build = |rules: &RuleSet| engine.build(rules, &Limits::default(), &mut NoProgress);
        let parts = (0..CORE_COUNT).map(|core| build(&part_of(rules, core)));
        let built = Built {
            parts: parts.collect::<Result<_, _>>()?,
            whole: build(rules)?,
        };
        let mut winners = vec![vec![Winner::MISS; keys.len()]; CORE_COUNT];
        let mut expected = vec![Winner::MISS; keys.len()];
        let mut samples = [Vec::new(), Vec::new(), Vec::new()];
        let (mut alone, mut together) = (Clocks::default(), Clocks::default());
        for _ in 0..TIMED_PASSES {
            let [whole, part, merge] = built.pass(keys, &mut winners, &mut expected);
            alone.add(whole);
            together.add(part);
            for (samples, clocks) in samples.iter_mut().zip([whole, part, merge]) {
                samples.push(clocks.wall * 1e9 / coordinate(keys.len().max(1)));
            }
        }
        let passes = samples[0].iter().zip(samples[1].iter().zip(&samples[2]));
        let ratios = passes.map(|(whole, (part, merge))| whole / (part + merge));
        let throughput_ratios = ratios.map(|ratio| ratio / coordinate(CORE_COUNT)).collect();
        let median = |samples: &[f64]| Spread::of(samples).map_or(0.0, |s| s.median);
        let merged = winners[0].iter().zip(&expected);
        let merged = merged.filter(|(merged, expected)| merged != expected);
        let checked = keys.iter().take(CHECKED_HEADERS).zip(&expected);
        let wrong = checked.filter(|(key, winner)| **winner != rules.scan(key));
        Ok(Split {
            objection: first_objection(&[(CORE_COUNT, together), (1, alone)]),
            throughput_ratios,
            whole: median(&samples[0]),
            part: median(&samples[1]),
            merge: median(&samples[2]),
            wrong: merged.count() + wrong.count(),
        })
    }
}

impl Built {
    /// Looks all keys up with all rules on one core, then with the rules split over the cores,
    /// and merges the winners into the first of `winners`. Returns the times of these steps.
    fn pass(
        &self,
        keys: KeySlice<'_>,
        winners: &mut [Vec<Winner>],
        expected: &mut [Winner],
    ) -> [Clocks; 3] {
        let ((), whole) = Clocks::time(|| classify(self.whole.as_ref(), keys, expected));
        let barrier = Barrier::new(CORE_COUNT);
        let part = std::thread::scope(|scope| {
            let mut sides = self.parts.iter().zip(winners.iter_mut());
            let (own_part, own_winners) = sides.next().expect("two parts");
            let begun: Vec<_> = sides
                .map(|(part, winners)| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        classify(part.as_ref(), keys, winners);
                    })
                })
                .collect();
            barrier.wait();
            let ((), clocks) = Clocks::time(|| {
                classify(own_part.as_ref(), keys, own_winners);
                for thread in begun {
                    thread.join().expect("no panic");
                }
            });
            clocks
        });
        let (first, other_parts) = winners.split_first_mut().expect("two parts");
        let ((), merge) = Clocks::time(|| {
            for other in &*other_parts {
                for (best, winner) in first.iter_mut().zip(other) {
                    if winner.beats(*best) {
                        *best = *winner;
                    }
                }
            }
        });
        [whole, part, merge]
    }
}

/// Returns every second rule by rank (every `CORE_COUNT`th rule), beginning with rule `core`.
fn part_of(rules: &RuleSet, core: usize) -> RuleSet {
    let mut part = RuleSet::new(rules.schema());
    for index in rules.by_rank().into_iter().skip(core).step_by(CORE_COUNT) {
        let rule = rules.rule(index as usize);
        part.push(rule).expect("a rule of these rules");
    }
    part
}

/// Looks up all headers in batches.
fn classify(classifier: &dyn Classifier, keys: KeySlice<'_>, winners: &mut [Winner]) {
    let mut scratch = Scratch::new();
    for (batch, winners) in batches(keys, BATCH).zip(winners.chunks_mut(BATCH)) {
        classifier.classify_batch(batch, winners, &mut scratch);
    }
}
