//! Figures of [FCH14] with own lists of rules and own headers.
//!
//! [FCH14]: classyard::papers#fch14

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use classyard::RuleSet;
use classyard::policy::PartId;
use classyard_datapath::lab::megaflow::simulator::{Cache, Table};
use classyard_datapath::lab::megaflow::{
    CommonMatch, FewestMasks, Heuristic, MultiBit, Naive, PrefixTree,
};
use classyard_report::failure::Failure;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::own_lists::{captured_ports, ports_of_rules, random, random_lists, stand_ins};
use super::own_terms::{OwnTerms, own_terms};
use super::{PORT_COUNT, acl_claims, cost, providers};
use crate::bench::{thread_cpu_time, timed};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, MadeSet, Quantity, Workload, check_one_schema, compare_algorithms,
};
use crate::reproduce::inputs::Input;
use crate::reproduce::statistics::{coordinate, quantile};
use crate::reproduce::study::Study;

/// The inputs of the figures. Algorithms take the place of engines.
pub(super) const INPUTS: &[Input] = &[
    Input::Rules,
    Input::Trace,
    Input::CapturedHeaders,
    Input::Packets,
];

/// The kind of candidates, as a column of the CSV files.
const ALGORITHM: &str = "algorithm";

/// The algorithms, in the order of cells.
const ALGORITHMS: [&str; 5] = [
    "naive",
    "common match",
    "multi-bit common match",
    "decision tree",
    "fewest masks (ours)",
];

/// The headers that are drawn from rules, at most: as many as there are ports, which the
/// paper's scans send.
const MAX_DRAWN_HEADERS: usize = PORT_COUNT;

/// The headers that `cost` classifies, at most. Common match takes 50 µs for a header with
/// 1,000 rules of acl1 (`classyard reproduce fch14`, November 2026), so this number keeps a
/// list of 10,000 rules below a minute.
const MAX_TIMED_HEADERS: usize = 5_000;

/// The words of the widest keys (`classyard::Schema::key_words`).
const WIDEST_KEY_WORDS: usize = 32;

/// Passes over the headers of `cost`, interleaved over the algorithms.
const PASSES: usize = 5;

/// Misses between two readings of the clock.
const MISSES_PER_CHECK: usize = 64;

const FLOW_QUANTITIES: [Quantity; 5] = [
    Quantity {
        column: "flows",
        title: "Cached flows, headers in their order",
    },
    Quantity {
        column: "masks",
        title: "Masks of cached flows, headers in their order",
    },
    Quantity {
        column: "bits",
        title: "Bits of a cached flow, mean",
    },
    Quantity {
        column: "shuffled_flows",
        title: "Cached flows, headers in random order",
    },
    Quantity {
        column: "shuffled_masks",
        title: "Masks of cached flows, headers in random order",
    },
];

const COST_QUANTITIES: [Quantity; 3] = [
    Quantity {
        column: "classify_ns",
        title: "Time to classify a header in a tuple space, ns",
    },
    Quantity {
        column: "flow_ns",
        title: "Time to classify a header and compute its flow, ns",
    },
    Quantity {
        column: "prepare_ms",
        title: "Time to prepare the algorithm for the rules, ms",
    },
];

/// The description of the rules and headers.
const INPUT_TEXT: &str = "Rules are in the order of their priorities. A rule with ranges becomes \
    several values under masks. Headers are drawn from the rules, unless they are from a file.";

/// The description of a list with captured packets.
const CAPTURE_TEXT: &str = "Headers are the destination ports of the packets of a capture, in their \
    order.";

/// Draws flows and masks (Tables 4 and 5, Fig. 3).
pub(super) fn draw_acls(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`acls` of fch14")?;
    let (made, text) = match study.inputs.packets.is_empty() {
        true => (Vec::new(), INPUT_TEXT.to_owned()),
        false => {
            let made = captured_ports(study, &random_lists(study))?;
            (made, format!("Random ports are blocked. {CAPTURE_TEXT}"))
        }
    };
    let title = "Cached flows and masks (Tables 4 and 5, Fig. 3)";
    let section = draw_flows(study, "acls", title, &text, &made)?;
    Ok(Section {
        claims: acl_claims::claims(&[]),
        ..section
    })
}

/// Draws flows and masks of lists of ports (Table 5).
pub(super) fn draw_providers(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`providers` of fch14")?;
    let (made, text) = match study.inputs.packets.is_empty() {
        true => {
            let text = "A list has the different matches of a port field in own rules, the best \
                        rule first. Headers are all ports in random order, unless own headers \
                        have the ports."
                .to_owned();
            (ports_of_rules(study)?, text)
        }
        false => {
            let made = captured_ports(study, &stand_ins())?;
            let text =
                format!("The lists are stand-ins for the lists of providers. {CAPTURE_TEXT}");
            (made, text)
        }
    };
    let title = "Cached flows and masks of lists of ports (Table 5)";
    let section = draw_flows(study, "providers", title, &text, &made)?;
    Ok(Section {
        claims: providers::claims(&[]),
        ..section
    })
}

/// Draws flows and masks over the sets that were made, or over own rules if there are none.
fn draw_flows(
    study: &mut Study<'_>,
    figure: &'static str,
    title: &'static str,
    input_text: &str,
    made: &[MadeSet],
) -> Result<Section, Failure> {
    let limit = study.build_time();
    let seconds = limit.as_secs_f64();
    let comparison = Comparison {
        figure,
        title,
        method: format!(
            "Every header that is not in the cache adds the flow that an algorithm computes for \
             it. The cache has no limit. An algorithm may take {seconds} CPU seconds for each \
             order of headers. {input_text}"
        ),
        quantities: &FLOW_QUANTITIES,
        engines: &ALGORITHMS,
        generated: generated(made),
        sizes: &[],
        has_headers: true,
        options: format!(", {seconds} s"),
    };
    let headers = MAX_DRAWN_HEADERS;
    compare_algorithms(study, &comparison, ALGORITHM, headers, |study, workload| {
        let flows = Flows {
            limit,
            seed: study.list_seed(0),
        };
        Ok(each_width(workload, &flows))
    })
}

/// Returns the sets that were made, or own rules if there are none.
fn generated(made: &[MadeSet]) -> Generated<'_> {
    match made {
        [] => Generated::Profiles,
        made => Generated::Made(made),
    }
}

/// Draws the cost of computing flows (Table 6).
pub(super) fn draw_cost(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`cost` of fch14")?;
    let (made, text) = match study.inputs.packets.is_empty() {
        true => (Vec::new(), INPUT_TEXT.to_owned()),
        false => {
            let mut lists = stand_ins();
            let name = format!("{} random ports", cost::RANDOM_PORTS);
            lists.push((name, random(study, cost::RANDOM_PORTS)));
            let text = format!("The lists are those of Table 6 or stand-ins. {CAPTURE_TEXT}");
            (captured_ports(study, &lists)?, text)
        }
    };
    let comparison = Comparison {
        figure: "cost",
        title: "The cost of computing flows (Table 6)",
        method: format!(
            "At most {MAX_TIMED_HEADERS} headers are classified one after the other in a tuple \
             space of the rules, and for each the flow is computed, as if no cache were there. \
             Times are CPU times of one thread, the median of {PASSES} passes. {text}"
        ),
        quantities: &COST_QUANTITIES,
        engines: &ALGORITHMS,
        generated: generated(&made),
        sizes: &[],
        has_headers: true,
        options: String::new(),
    };
    let headers = MAX_TIMED_HEADERS;
    let section = compare_algorithms(study, &comparison, ALGORITHM, headers, |_, workload| {
        Ok(each_width(workload, &Cost))
    })?;
    Ok(Section {
        claims: cost::claims(&[]),
        ..section
    })
}

/// A measurement over rules whose keys have any number of words.
trait Measure {
    /// Returns a cell for each of [`ALGORITHMS`].
    fn measure<const W: usize>(&self, list: &List<W>) -> Vec<Cell>;
}

/// Own rules and the headers to send.
struct List<const W: usize> {
    table: Table<W>,
    terms: OwnTerms<W>,
    headers: Vec<[u64; W]>,
    /// Headers whose winner in the table differs from a scan of the rules.
    wrong: usize,
}

/// Measures with keys of the width of the rules' schema.
fn each_width(workload: &Workload<'_>, measure: &impl Measure) -> Vec<Cell> {
    let rules = workload.policy.part(PartId::FIRST);
    match rules.schema().key_words() {
        2 => cells::<2>(workload, rules, measure),
        5 => cells::<5>(workload, rules, measure),
        6 => cells::<6>(workload, rules, measure),
        16 => cells::<16>(workload, rules, measure),
        _ => cells::<WIDEST_KEY_WORDS>(workload, rules, measure),
    }
}

fn cells<const W: usize>(
    workload: &Workload<'_>,
    rules: &RuleSet,
    measure: &impl Measure,
) -> Vec<Cell> {
    let terms = match own_terms::<W>(rules) {
        Ok(terms) => terms,
        Err(reason) => return vec![Cell::refused(&reason); ALGORITHMS.len()],
    };
    let keys = workload.trace.part(PartId::FIRST).as_slice();
    let headers: Vec<[u64; W]> = keys.rows::<W>().to_vec();
    let table = Table::new(Arc::clone(&terms.terms));
    let checked = workload.few.part(PartId::FIRST).as_slice();
    let wrong = checked.rows::<W>().iter().filter(|key| {
        let winner = table.winner(key).map(|term| terms.rules[term]);
        winner != rules.scan(*key).rule()
    });
    measure.measure(&List {
        wrong: wrong.count(),
        table,
        headers,
        terms,
    })
}

/// Flows and masks after all headers.
struct Flows {
    /// The CPU time that an algorithm may take for one order of headers.
    limit: Duration,
    seed: u64,
}

/// The contents of a cache after all headers.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    flows: usize,
    masks: usize,
    /// The sum of the bits of all flows.
    bits: usize,
    /// Headers for which the cache's winner differed from the table's.
    wrong: usize,
}

impl Measure for Flows {
    fn measure<const W: usize>(&self, list: &List<W>) -> Vec<Cell> {
        let mut shuffled = list.headers.clone();
        shuffled.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(self.seed));
        let orders = [&list.headers, &shuffled];
        let terms = &list.terms.terms;
        let shared = || Arc::clone(terms);
        vec![
            self.cell(list, orders, &Naive::new(terms)),
            self.cell(list, orders, &CommonMatch::new(shared())),
            self.cell(list, orders, &MultiBit::new(shared())),
            self.cell(list, orders, &PrefixTree::new(terms)),
            self.cell(list, orders, &FewestMasks::new(shared())),
        ]
    }
}

impl Flows {
    fn cell<const W: usize>(
        &self,
        list: &List<W>,
        orders: [&Vec<[u64; W]>; 2],
        heuristic: &(impl Heuristic<W> + Clone),
    ) -> Cell {
        let filled = orders.map(|headers| self.fill(&list.table, headers, heuristic.clone()));
        match filled {
            [Ok(given), Ok(shuffled)] => Cell {
                refused: None,
                values: vec![
                    coordinate(given.flows),
                    coordinate(given.masks),
                    coordinate(given.bits) / coordinate(given.flows.max(1)),
                    coordinate(shuffled.flows),
                    coordinate(shuffled.masks),
                ],
                wrong: list.wrong + given.wrong + shuffled.wrong,
            },
            [Err(reason), _] | [_, Err(reason)] => Cell::refused(&reason),
        }
    }

    /// Sends headers through a cache that an algorithm fills.
    ///
    /// # Errors
    /// The reason why the algorithm was stopped.
    fn fill<const W: usize>(
        &self,
        table: &Table<W>,
        headers: &[[u64; W]],
        mut heuristic: impl Heuristic<W>,
    ) -> Result<Filled, String> {
        let (mut cache, mut filled) = (Cache::new(), Filled::default());
        let (begun, mut misses) = (thread_cpu_time(), 0_usize);
        for header in headers {
            if let Some(winner) = cache.get(header) {
                filled.wrong += usize::from(winner != table.winner(header));
                continue;
            }
            misses += 1;
            let spent = || thread_cpu_time().saturating_sub(begun);
            if misses.is_multiple_of(MISSES_PER_CHECK) && spent() > self.limit {
                let seconds = self.limit.as_secs_f64();
                return Err(format!("more than {seconds} CPU seconds"));
            }
            let flow = table.megaflow(header, &mut heuristic);
            let flow = flow.map_err(|error| error.to_string())?;
            filled.bits += flow.term.bits() as usize;
            cache.insert(&flow);
        }
        Ok(Filled {
            flows: cache.flows(),
            masks: cache.masks(),
            ..filled
        })
    }
}

/// The time to compute flows.
struct Cost;

impl Measure for Cost {
    fn measure<const W: usize>(&self, list: &List<W>) -> Vec<Cell> {
        let terms = &list.terms.terms;
        let shared = || Arc::clone(terms);
        let (mut naive, naive_seconds) = timed(|| Naive::new(terms));
        let (mut common, common_seconds) = timed(|| CommonMatch::new(shared()));
        let (mut multi_bit, multi_bit_seconds) = timed(|| MultiBit::new(shared()));
        let (mut tree, tree_seconds) = timed(|| PrefixTree::new(terms));
        let (mut fewest, fewest_seconds) = timed(|| FewestMasks::new(shared()));
        let prepared = [
            naive_seconds,
            common_seconds,
            multi_bit_seconds,
            tree_seconds,
            fewest_seconds,
        ];
        let headers = &list.headers[..list.headers.len().min(MAX_TIMED_HEADERS)];
        let mut classified = Vec::new();
        let mut computed: [Vec<f64>; ALGORITHMS.len()] = Default::default();
        for _ in 0..PASSES {
            let ((), seconds) = timed(|| {
                for header in headers {
                    black_box(list.table.winner(header));
                }
            });
            classified.push(seconds);
            let seconds = [
                computing(&list.table, headers, &mut naive),
                computing(&list.table, headers, &mut common),
                computing(&list.table, headers, &mut multi_bit),
                computing(&list.table, headers, &mut tree),
                computing(&list.table, headers, &mut fewest),
            ];
            for (samples, seconds) in computed.iter_mut().zip(seconds) {
                samples.push(seconds);
            }
        }
        let per_header = |samples: Vec<f64>| median(samples) * 1e9 / coordinate(headers.len());
        let classify_ns = per_header(classified);
        let cells = computed.into_iter().zip(prepared);
        let cells = cells.map(|(samples, prepare_seconds)| Cell {
            refused: None,
            values: vec![classify_ns, per_header(samples), prepare_seconds * 1e3],
            wrong: list.wrong,
        });
        cells.collect()
    }
}

/// Returns the CPU seconds to compute the flow of each header.
fn computing<const W: usize>(
    table: &Table<W>,
    headers: &[[u64; W]],
    heuristic: &mut impl Heuristic<W>,
) -> f64 {
    let ((), seconds) = timed(|| {
        for header in headers {
            let flow = table.megaflow(header, heuristic);
            // Only an exhaustive search gives up.
            let _ = black_box(flow);
        }
    });
    seconds
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    quantile(&samples, 0.5)
}
