//! [FCH14] Table 6: the cost of computing flows in addition to classification.
//!
//! [FCH14]: classyard::papers#fch14

use std::hint::black_box;
use std::sync::Arc;

use classyard_datapath::lab::header_space::Term;
use classyard_datapath::lab::megaflow::simulator::Table;
use classyard_datapath::lab::megaflow::{CommonMatch, FewestMasks, Heuristic, PrefixTree};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{Order, exact, lists, too_much};
use crate::bench::{size_name, timed};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{coordinate, mean};

/// The paper's number of packets, and its seconds: baseline, decision tree, common match.
const PAPER_PACKETS: f64 = 1e7;
const PAPER: [[f64; 3]; 3] = [
    [16.845, 26.085, 285.326],
    [8.041, 9.404, 11.749],
    [1.938, 2.877, 10.902],
];

/// The number of ports in the paper's random list.
pub(super) const RANDOM_PORTS: usize = 50;

const NAMES: [&str; 4] = [
    "baseline",
    "decision tree",
    "common match",
    "fewest masks (ours)",
];

/// Seconds of CPU time for the paper's number of packets.
type Seconds = [f64; NAMES.len()];

/// Parts of the packets that are timed separately, interleaved over the algorithms. Each part
/// is a sample; a confidence interval needs five.
const TIMED_PARTS: usize = 10;

/// Seconds of each algorithm, and of our algorithm's plan, which is computed once for
/// each list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Seconds of each part of the packets, for the paper's number of packets.
    parts: Vec<Seconds>,
    plan: f64,
}

impl Measured {
    fn seconds(&self, algorithm: usize) -> f64 {
        let seconds = self.parts.iter().map(|part| part[algorithm]);
        mean(&seconds.collect::<Vec<_>>())
    }

    /// Returns for each part the seconds of algorithm `a` over the seconds of algorithm `b`.
    fn ratios(&self, a: usize, b: usize) -> Vec<f64> {
        self.parts.iter().map(|part| part[a] / part[b]).collect()
    }
}

/// Creates the table.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let packets = study.headers();
    let random = exact(&Order::Ascending.of(study.fch14_ports(RANDOM_PORTS, 0), 0));
    let lists = [
        ("long (stand-in)", lists::long()),
        ("short (stand-in)", lists::short()),
        ("random 50", random),
    ];
    study.expect_points(lists.len());
    let mut results = Vec::new();
    for (name, rules) in &lists {
        let point = format!("cost {name}, {TIMED_PARTS} parts");
        results.push(study.point(&point, |study| measure(rules, packets, study.list_seed(0)))?);
    }
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for (((name, rules), one), paper) in lists.iter().zip(&results).zip(PAPER) {
        for (index, algorithm) in NAMES.into_iter().enumerate() {
            let seconds = one.seconds(index);
            let paper = paper.get(index);
            let ratio = seconds / one.seconds(0);
            rows.push(vec![
                (*name).to_owned(),
                algorithm.to_owned(),
                format!("{seconds:.3}"),
                paper.map_or("–".to_owned(), |paper| format!("{paper:.3}")),
                format!("{ratio:.2}"),
            ]);
            lines.push(format!("{name},{},{algorithm},{seconds:.5}", rules.len()));
        }
    }
    study.write_csv("cost.csv", "list,rules,algorithm,seconds", &lines)?;
    let groups = lists.iter().map(|(name, _)| (*name).to_owned());
    let groups: Vec<String> = groups.collect();
    let series = NAMES.into_iter().enumerate().map(|(place, name)| {
        let points = results.iter().enumerate();
        Series::line(
            name,
            points.map(|(list, one)| (coordinate(list), one.seconds(place))),
        )
    });
    let chart = Chart {
        title: "Seconds for 10 million classifications ([FCH14] Table 6)",
        x_label: "",
        y_label: "seconds of CPU time",
        log_x: false,
        log_y: true,
    };
    let mut series: Vec<Series> = series.collect();
    study.add_paper("cost.svg", &paper_values(), &mut series);
    study.draw_groups("cost.svg", &chart, &groups, &series)?;
    let plans: Vec<String> = results
        .iter()
        .map(|one| format!("{:.2} s", one.plan))
        .collect();
    Ok(Section {
        title: "The cost of computing flows (Table 6)".to_owned(),
        method: format!(
            "{} random packets are classified one after the other in a tuple space of the rules, and \
             for each the flow is computed, as if no cache were there; seconds of CPU time of one \
             thread, for 10 million packets. The baseline is the classification alone. The lists \
             of the providers are stand-ins (Table 5). Open vSwitch's classifier, in which the \
             paper measured, looks at a packet's whole header; ours here at the port alone. Fewest \
             masks makes its plan once for a list, before packets come: {}.",
            size_name(packets),
            plans.join(", ")
        ),
        claims: claims(&results),
        grids: vec![Grid {
            title: "Seconds for 10 million classifications".to_owned(),
            columns: [
                "list",
                "algorithm",
                "seconds",
                "the paper's",
                "times the baseline",
            ]
            .map(str::to_owned)
            .to_vec(),
            words: 2,
            rows,
        }],
        pictures: vec!["cost.svg".to_owned()],
    })
}

/// Returns the bars of Table 6.
pub(super) fn paper_values() -> PaperValues {
    let values = PaperValues::new(
        "stated in Table 6; the lists of its two providers are private, and ours are stand-ins",
    );
    let algorithms = NAMES.iter().take(PAPER[0].len()).enumerate();
    algorithms.fold(
        values.on("in 2014 on a machine that it does not name"),
        |values, (algorithm, name)| {
            let seconds = PAPER.iter().enumerate();
            values.bars(
                name,
                seconds.map(|(list, seconds)| (coordinate(list), seconds[algorithm])),
            )
        },
    )
}

fn measure(rules: &Arc<[Term<1>]>, packets: usize, seed: u64) -> Result<Measured, Failure> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let packets: Vec<u16> = (0..packets).map(|_| random.random()).collect();
    let table = Table::new(Arc::clone(rules));
    let (mut fewest, plan) = timed(|| FewestMasks::new(Arc::clone(rules)));
    let (mut tree, mut common) = (PrefixTree::new(rules), CommonMatch::new(Arc::clone(rules)));
    let mut parts = Vec::new();
    for packets in packets.chunks(packets.len().div_ceil(TIMED_PARTS).max(1)) {
        let ((), baseline) = timed(|| {
            for &port in packets {
                black_box(table.winner(&[u64::from(port)]));
            }
        });
        let of_tree = computing(&table, packets, &mut tree)?;
        let of_common = computing(&table, packets, &mut common)?;
        let of_ours = computing(&table, packets, &mut fewest)?;
        let scale = PAPER_PACKETS / coordinate(packets.len());
        parts.push([baseline, of_tree, of_common, of_ours].map(|seconds| seconds * scale));
    }
    Ok(Measured { parts, plan })
}

fn computing(
    table: &Table<1>,
    packets: &[u16],
    heuristic: &mut impl Heuristic<1>,
) -> Result<f64, Failure> {
    let (result, seconds) = timed(|| {
        packets.iter().try_for_each(|&port| {
            let flow = table.megaflow(&[u64::from(port)], heuristic)?;
            black_box(flow);
            Ok(())
        })
    });
    result.map_err(too_much)?;
    Ok(seconds)
}

/// Indices of [`NAMES`].
const BASELINE: usize = 0;
const DECISION_TREE: usize = 1;
const COMMON_MATCH: usize = 2;
const FEWEST_MASKS: usize = 3;

/// Names of the lists in cases, in the order of results.
const LISTS: [&str; 3] = ["long stand-in", "short stand-in", "random 50"];

/// The paper's greatest ratio for a modest number of ACLs, rounded up.
const REASONABLE_RATIO: f64 = 6.0;

/// The title of the table.
const TABLE: &str = "Seconds for 10 million";

/// Returns the claims. A list without a result is not measured.
pub(super) fn claims(results: &[Measured]) -> Vec<Claim> {
    let ratios = |list: usize, a: usize, b: usize| {
        let measured = results.get(list);
        measured.map_or_else(Vec::new, |measured| measured.ratios(a, b))
    };
    let case = |list: usize, a: usize, b: usize| Case::samples(LISTS[list], ratios(list, a, b));
    let all = |a: usize, b: usize| (0..LISTS.len()).map(move |list| case(list, a, b));
    let modest = |algorithm: usize, paper: f64| {
        let name = NAMES[algorithm];
        Part::new(
            format!("seconds of a part, {name} / baseline"),
            Threshold::Below(REASONABLE_RATIO),
        )
        .paper(paper)
        .cases([1, 2].map(|list| case(list, algorithm, BASELINE)))
        .grid(TABLE, "")
    };
    let longest = [1, 2].map(|list| {
        let long = ratios(0, COMMON_MATCH, BASELINE).into_iter();
        let pairs = long.zip(ratios(list, COMMON_MATCH, BASELINE));
        Case::samples(LISTS[list], pairs.map(|(long, other)| long / other))
    });
    vec![
        Claim::new(
            "Table 6",
            "For a modest number of ACLs both algorithms perform reasonably: 1.2 to 1.5 times the \
             baseline for the decision tree, 1.5 to 5.6 times for common match.",
        )
        .part(modest(DECISION_TREE, 1.5))
        .part(modest(COMMON_MATCH, 5.6)),
        Claim::new(
            "Table 6",
            "For Provider 1's list common match is quite a bit slower, 17 times the baseline, as \
             its time grows with the number of rules.",
        )
        .part(
            Part::new(
                "times the baseline of common match: long stand-in / the other list",
                Threshold::Above(1.0),
            )
            .cases(longest)
            .case(Case::missing(
                "Provider 1",
                Gap::NotRun("the provider's own list, which is private"),
            ))
            .grid(TABLE, ""),
        ),
        Claim::new("Table 6", "The decision tree costs less than common match.").part(
            Part::new(
                "seconds of a part, decision tree / common match",
                Threshold::Below(1.0),
            )
            .cases(all(DECISION_TREE, COMMON_MATCH))
            .grid(TABLE, ""),
        ),
        Claim::new(
            "ours",
            "(Not the paper's.) With its plan, fewest masks costs no more than common match.",
        )
        .part(
            Part::new(
                "seconds of a part, fewest masks / common match",
                Threshold::AtMost(1.0),
            )
            .cases(all(FEWEST_MASKS, COMMON_MATCH))
            .grid(TABLE, ""),
        ),
    ]
}
