//! [DEC14] §V.A: random headers next to headers in bursts.
//!
//! The paper classifies random headers, and says in a footnote that real packets depend on
//! each other, so that times with random headers are pessimistic. The other figures take
//! headers as ClassBench draws them: corners of rules, in short bursts.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::policy::PartId;
use classyard::{Classifier, KeySlice, NoProgress, Policy, PolicyTrace, Scratch};
use classyard_report::failure::Failure;
use classyard_workload::traffic::{TrafficConfig, TrafficRecipe, traffic};
use serde::{Deserialize, Serialize};

use super::measure::{CHECKED_HEADERS, built, fitting, pass};
use super::{ENGINE, PAPER_FORM, Study, TOGETHER};
use crate::bench::{Spread, size_name, timed};
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The kinds of headers.
pub(super) const KINDS: [&str; 3] = ["bursts", "corners", "random"];
const BURSTS: usize = 0;
const CORNERS: usize = 1;
const RANDOM: usize = 2;

/// The measured forms of the engine.
const ENGINES: [&str; 2] = [ENGINE, PAPER_FORM];

/// Times of lookups with each kind of headers, from interleaved passes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kinds {
    /// For each kind and pass, nanoseconds of a header looked up alone, and in batches.
    single_ns: [Vec<f64>; KINDS.len()],
    batch_ns: [Vec<f64>; KINDS.len()],
    /// The share of headers that some rule matches.
    matched: [f64; KINDS.len()],
    wrong: usize,
}

/// Draws the table.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = study.dec14_sizes();
    study.expect_points(sizes.len() * ENGINES.len());
    let (mut rows, mut lines, mut wrong) = (Vec::new(), Vec::new(), 0);
    let mut cases = [Vec::new(), Vec::new()];
    for engine in ENGINES {
        for &rules in &sizes {
            let kinds = study.dec14_kinds(engine, rules)?;
            wrong += kinds.wrong;
            for (kind, cases) in [CORNERS, RANDOM].into_iter().zip(&mut cases) {
                let pairs = kinds.single_ns[kind].iter().zip(&kinds.single_ns[BURSTS]);
                let name = format!("{engine}, {} rules", size_name(rules));
                cases.push(Case::samples(name, pairs.map(|(ns, bursts)| ns / bursts)));
            }
            for (index, kind) in KINDS.iter().enumerate() {
                let median = |samples: &[f64]| Spread::of(samples).map_or(0.0, |s| s.median);
                let single = median(&kinds.single_ns[index]);
                let batch = median(&kinds.batch_ns[index]);
                let matched = kinds.matched[index];
                rows.push(vec![
                    engine.to_owned(),
                    size_name(rules),
                    (*kind).to_owned(),
                    format!("{:.1} %", 100.0 * matched),
                    format!("{single:.1}"),
                    format!("{batch:.1}"),
                ]);
                lines.push(format!(
                    "{engine},{rules},{kind},{matched:.4},{single:.2},{batch:.2}"
                ));
            }
        }
    }
    let heading = "engine,rules,headers,matched,single_ns,batch_ns";
    study.write_csv("random-headers.csv", heading, &lines)?;
    let mut section = Section {
        title: "Random headers and headers in bursts (§V.A)".to_owned(),
        method: "bursts: corners of rules, each repeated as in ClassBench's traces; corners: \
                 corners of rules, each once; random: all bits of all fields uniformly random. \
                 Times are CPU times of one thread, medians of passes that alternate between \
                 the kinds."
            .to_owned(),
        claims: vec![claim(cases)],
        grids: vec![Grid {
            title: "Nanoseconds a lookup, by the kind of headers".to_owned(),
            columns: [
                "engine",
                "rules",
                "headers",
                "matched",
                "one by one",
                "in batches",
            ]
            .map(str::to_owned)
            .to_vec(),
            words: 3,
            rows,
        }],
        pictures: Vec::new(),
    };
    super::wrong_answers(&mut section, wrong);
    Ok(section)
}

pub(super) fn claim([corners, random]: [Vec<Case>; 2]) -> Claim {
    let table = "Nanoseconds a lookup, by the kind";
    Claim::new(
        "§V.A",
        "Times with random headers are pessimistic: packets that depend on each other are \
         classified faster.",
    )
    .part(
        Part::new(
            "time of a lookup one by one, corners / bursts",
            Threshold::Above(1.0),
        )
        .cases(corners)
        .grid(table, ""),
    )
    .part(
        Part::new(
            "time of a lookup one by one, random / bursts",
            Threshold::Above(1.0),
        )
        .cases(random)
        .grid(table, ""),
    )
}

impl Study<'_> {
    /// Times lookups with each kind of headers. Returns stored times if there are any.
    fn dec14_kinds(&mut self, engine: &str, rules: usize) -> Result<Kinds, Failure> {
        let point = format!("kinds of headers, {engine}, {rules} rules");
        self.point(&point, |study| {
            let policy = study.dec14_policy(rules, 0)?;
            let traces = study.dec14_headers_of_kinds(&policy)?;
            let classifier = built(engine, &policy)?;
            let classifier = classifier.part(PartId::FIRST);
            let keys = traces
                .iter()
                .map(|trace| trace.part(PartId::FIRST).as_slice());
            let keys: Vec<KeySlice<'_>> = keys.collect();
            let mut kinds = Kinds::default();
            let times = time(classifier, &keys, study.dec14_repeats());
            for (kind, [single_ns, batch_ns]) in times.into_iter().enumerate() {
                (kinds.single_ns[kind], kinds.batch_ns[kind]) = (single_ns, batch_ns);
            }
            let rule_set = &policy.parts()[0];
            for (keys, matched) in keys.iter().zip(&mut kinds.matched) {
                let (mut checked, mut matches) = (0, 0);
                for key in keys.iter().take(CHECKED_HEADERS) {
                    let winner = rule_set.scan(key);
                    checked += 1;
                    matches += usize::from(!winner.is_miss());
                    let found = classifier.classify_one(key);
                    kinds.wrong += usize::from(found != winner);
                }
                *matched = coordinate(matches) / coordinate(checked.max(1));
            }
            Ok(kinds)
        })
    }

    /// Generates headers of each of [`KINDS`].
    pub(super) fn dec14_headers_of_kinds(
        &self,
        policy: &Policy,
    ) -> Result<Vec<PolicyTrace>, Failure> {
        let recipes = [
            TrafficRecipe::classbench(),
            TrafficRecipe::uniform(),
            TrafficRecipe::Random,
        ];
        let traces = recipes
            .iter()
            .map(|recipe| self.dec14_headers(policy, recipe));
        traces.collect()
    }

    fn dec14_headers(
        &self,
        policy: &Policy,
        recipe: &TrafficRecipe,
    ) -> Result<PolicyTrace, Failure> {
        let config = TrafficConfig::new(self.headers(), self.args.seed);
        let drawn = traffic(policy, recipe, &config, None, &mut NoProgress);
        drawn
            .map(|drawn| drawn.trace)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Times passes over each of some traces; the passes of all traces alternate. Returns for each
/// trace the nanoseconds of a header in each pass, one by one and in batches.
pub(super) fn time(
    classifier: &dyn Classifier,
    traces: &[KeySlice<'_>],
    repeats: usize,
) -> Vec<[Vec<f64>; 2]> {
    let mut scratch = Scratch::new();
    let mut times = vec![[const { Vec::new() }; 2]; traces.len()];
    let traces = traces
        .iter()
        .map(|keys| fitting(classifier, *keys, &mut scratch));
    let traces: Vec<KeySlice<'_>> = traces.collect();
    for repeat in 0..=repeats {
        for (&keys, times) in traces.iter().zip(&mut times) {
            let together = [1, TOGETHER[TOGETHER.len() - 1]];
            for (together, samples) in together.into_iter().zip(times) {
                let (folded, seconds) = timed(|| pass(classifier, keys, together, &mut scratch));
                std::hint::black_box(folded);
                // The first pass warms the caches.
                if repeat > 0 {
                    samples.push(seconds * 1e9 / coordinate(keys.len().max(1)));
                }
            }
        }
    }
    times
}
