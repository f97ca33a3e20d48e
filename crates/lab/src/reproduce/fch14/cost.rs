//! [FCH14] Table 6: the cost of computing flows in addition to classification.
//!
//! [FCH14]: classyard::papers#fch14

use std::hint::black_box;
use std::sync::Arc;

use classyard_datapath::lab::header_space::Term;
use classyard_datapath::lab::megaflow::table::Table;
use classyard_datapath::lab::megaflow::{CommonMatch, FewestMasks, Heuristic, PrefixTree};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{Order, exact, lists, too_much};
use crate::bench::{size_name, timed};
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::coordinate;

/// The paper's number of packets, and its seconds: baseline, decision tree, common match.
const PAPER_PACKETS: f64 = 1e7;
const PAPER: [[f64; 3]; 3] = [
    [16.845, 26.085, 285.326],
    [8.041, 9.404, 11.749],
    [1.938, 2.877, 10.902],
];

/// The number of ports in the paper's random list.
const RANDOM_PORTS: usize = 50;

const NAMES: [&str; 4] = [
    "baseline",
    "decision tree",
    "common match",
    "fewest masks (ours)",
];

/// Seconds of CPU time for the paper's number of packets.
type Seconds = [f64; NAMES.len()];

/// Seconds of each algorithm, and of our algorithm's plan, which is computed once for
/// each list.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Measured {
    seconds: Seconds,
    plan: f64,
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
        results.push(study.point(&format!("cost {name}"), |study| {
            measure(rules, packets, study.list_seed(0))
        })?);
    }
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for (((name, rules), one), paper) in lists.iter().zip(&results).zip(PAPER) {
        for (algorithm, seconds) in NAMES.into_iter().zip(one.seconds) {
            let index = NAMES.iter().position(|other| *other == algorithm);
            let paper = index.and_then(|index| paper.get(index));
            let ratio = seconds / one.seconds[0];
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
            points.map(|(list, one)| (coordinate(list), one.seconds[place])),
        )
    });
    let chart = Chart {
        title: "Seconds for 10 million classifications ([FCH14] Table 6)",
        x_label: "",
        y_label: "seconds of CPU time",
        log_x: false,
        log_y: true,
    };
    study.draw_groups("cost.svg", &chart, &groups, &series.collect::<Vec<_>>())?;
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

fn measure(rules: &Arc<[Term<1>]>, packets: usize, seed: u64) -> Result<Measured, Failure> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let packets: Vec<u16> = (0..packets).map(|_| random.random()).collect();
    let table = Table::new(Arc::clone(rules));
    let ((), baseline) = timed(|| {
        for &port in &packets {
            black_box(table.winner(&[u64::from(port)]));
        }
    });
    let (fewest, plan) = timed(|| FewestMasks::new(Arc::clone(rules)));
    let of_tree = computing(&table, &packets, PrefixTree::new(rules))?;
    let of_common = computing(&table, &packets, CommonMatch::new(Arc::clone(rules)))?;
    let of_ours = computing(&table, &packets, fewest)?;
    let scale = PAPER_PACKETS / coordinate(packets.len().max(1));
    Ok(Measured {
        seconds: [baseline, of_tree, of_common, of_ours].map(|seconds| seconds * scale),
        plan,
    })
}

fn computing(
    table: &Table<1>,
    packets: &[u16],
    mut heuristic: impl Heuristic<1>,
) -> Result<f64, Failure> {
    let (result, seconds) = timed(|| {
        packets.iter().try_for_each(|&port| {
            let flow = table.megaflow(&[u64::from(port)], &mut heuristic)?;
            black_box(flow);
            Ok(())
        })
    });
    result.map_err(too_much)?;
    Ok(seconds)
}

fn claims(results: &[Measured]) -> Vec<Claim> {
    let ratio = |one: &Measured, place: usize| one.seconds[place] / one.seconds[0];
    let ratios = |place: usize| -> String {
        let texts = results
            .iter()
            .map(|one| format!("{:.1}", ratio(one, place)));
        texts.collect::<Vec<_>>().join(", ")
    };
    let (long, other_lists) = (&results[0], &results[1..]);
    let reasonable = other_lists
        .iter()
        .filter(|one| ratio(one, 1) < 6.0 && ratio(one, 2) < 6.0);
    let slowest = other_lists.iter().all(|one| ratio(long, 2) > ratio(one, 2));
    let cheaper = results
        .iter()
        .filter(|one| one.seconds[1] < one.seconds[2])
        .count();
    let ours = results
        .iter()
        .filter(|one| one.seconds[3] <= one.seconds[2])
        .count();
    vec![
        Claim {
            place: "Table 6",
            paper: "For a modest number of ACLs both algorithms perform reasonably: 1.2 to 1.5 times \
                    the baseline for the decision tree, 1.5 to 5.6 times for common match.",
            measured: format!("{} and {} times, list by list", ratios(1), ratios(2)),
            verdict: Verdict::for_most(
                reasonable.count(),
                other_lists.len(),
                "our baseline is a lookup of a single port, far less work than Open vSwitch's",
            ),
        },
        Claim {
            place: "Table 6",
            paper: "For Provider 1's list common match is quite a bit slower, 17 times the baseline, \
                    as its time grows with the number of rules.",
            measured: format!("{:.0} times for the long stand-in", ratio(long, 2)),
            verdict: Verdict::of(slowest, "other lists take longer"),
        },
        Claim {
            place: "Table 6",
            paper: "The decision tree costs less than common match.",
            measured: format!("for {cheaper} of {} lists", results.len()),
            verdict: Verdict::for_most(cheaper, results.len(), "see the table"),
        },
        Claim {
            place: "ours",
            paper: "(Not the paper's.) With its plan, fewest masks costs no more than common match.",
            measured: format!("{} times the baseline, list by list", ratios(3)),
            verdict: Verdict::for_most(ours, results.len(), "see the table"),
        },
    ]
}
