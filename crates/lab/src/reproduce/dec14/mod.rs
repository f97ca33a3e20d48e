//! [DEC14] §V: the cost of decomposition, and the model's prediction of it.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::{Policy, PolicyTrace};
use classyard_report::failure::Failure;
use classyard_workload::generate::Family;

use super::claims::{Gap, Section};
use super::figure::{Figure, OwnFigure};
use super::inputs::{Input, LOOKUP_INPUTS};
use super::paper_values::PaperValues;
use super::request::{Common, Paper, Request, at_least_one, sizes};
use super::statistics::coordinate;
use super::study::Study;
use crate::bench::{generated_policy, generated_trace};
use crate::cores::usable_processors;

mod calibration;
mod clock;
pub(super) mod concurrency;
mod equations;
pub(super) mod fields;
pub(super) mod forecast;
pub(super) mod latency;
mod measure;
mod model;
mod own;
mod own_cores;
mod own_equations;
mod own_headers;
mod peak;
pub(super) mod random_headers;
pub(super) mod rule_sets;
pub(super) mod split;
pub(super) mod throughput;

/// The gap of a case whose threads shared processors with other work.
const NO_PROCESSORS: Gap = Gap::NotRun("each thread on a processor of its own");

/// The description of measurements whose threads shared processors.
const WITHOUT_TIMES: &str =
    "Times are left out if the threads did not have processors of their own.";

/// The paper.
const PAPER: Paper = Paper {
    key: "dec14",
    name: "dec14",
    title: "Decomposition on multi-core processors [DEC14], measured with classyard",
    headers: 100_000,
    is_stored_by_set: false,
};

/// The inputs of figures whose structure is the paper's: no engine can replace it.
const WITHOUT_ENGINES: &[Input] = &[Input::Rules, Input::Trace, Input::CapturedHeaders];

/// Its figures and tables.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "rule-sets",
        draw: rule_sets::draw,
        own: Some(OwnFigure {
            accepts: &[Input::Rules],
            needs_updates: false,
            draw: own_equations::draw_rule_sets,
        }),
    },
    Figure {
        name: "latency",
        draw: latency::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_latency,
        }),
    },
    Figure {
        name: "concurrency",
        draw: concurrency::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_concurrency,
        }),
    },
    Figure {
        name: "equations",
        draw: forecast::draw,
        own: Some(OwnFigure {
            accepts: WITHOUT_ENGINES,
            needs_updates: false,
            draw: own_equations::draw,
        }),
    },
    Figure {
        name: "throughput",
        draw: throughput::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_throughput,
        }),
    },
    Figure {
        name: "random-headers",
        draw: random_headers::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own_headers::draw,
        }),
    },
    Figure {
        name: "split",
        draw: split::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own_cores::draw_split,
        }),
    },
    Figure {
        name: "fields",
        draw: fields::draw,
        own: Some(OwnFigure {
            accepts: WITHOUT_ENGINES,
            needs_updates: false,
            draw: own_cores::draw_fields,
        }),
    },
];

/// Qu et al., decomposition on multi-core processors, 2014
///
/// Its rule sets are the rule sets of the paper's Table III.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  rule-sets        unique rules of each field (Table III)
  latency          time against rules, and the model's prediction (Fig. 2, Tables V and VI)
  concurrency      latency against headers together and threads (Fig. 3)
  equations        eqs. 1 to 7 of the paper, our counts and measured time (§IV.C)
  throughput       with and without optimisations, and the peak (Fig. 4, Table VII)
  random-headers   random headers, and headers in bursts (§V.A)
  split            one rule set split over cores, winners merged
  fields           a field a core, against a packet a core

Examples:
  classyard reproduce dec14 --quick
  classyard reproduce dec14 -r acl.rules -t acl.trace --figures equations,split
      eq. 6 and rules split over cores, with own rules and headers")]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,

    /// Numbers of rules; the model is fitted to the first two [default: 1k, 2k, ... 32k]
    #[arg(long, value_delimiter = ',', value_parser = sizes, value_name = "COUNTS")]
    sizes: Vec<usize>,

    /// Headers in each trace [default: 100k, quick 20k]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    headers: Option<usize>,
}

impl Args {
    pub(super) fn request(&self) -> Request {
        Request {
            sizes: self.sizes.clone(),
            headers: self.headers,
            ..Request::new(&PAPER, &self.common)
        }
    }
}

/// The engine's default form, and the paper's form: all rules in vectors, over all
/// fields.
const ENGINE: &str = "decomposition";
const PAPER_FORM: &str = "decomposition:share=0";

/// Both forms without grouping and without early termination.
const PLAIN: &str = "decomposition:group=off:stop=off";
const PLAIN_PAPER_FORM: &str = "decomposition:share=0:group=off:stop=off";

/// Numbers of rules in the paper's Fig. 2, and the numbers of a quick reproduction.
const SIZES: [usize; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
const FEW_SIZES: [usize; 4] = [1_000, 2_000, 4_000, 8_000];

/// The number of rules of Figs. 3 and 4.
const MOST_RULES: usize = 32_000;

/// The year of the paper, and its machines (§V.A).
const MACHINES: &str = "in 2014 on 16 cores at 2.4 GHz of two AMD Opteron 6278 and on 16 cores of two \
                        Intel Xeon E5-2470, and we on one core";

/// The paper's greatest latency of a packet, in nanoseconds (§V.C); its throughput in million
/// packets a second, and the number of packets that are processed together (§V.E).
const PAPER_LATENCY_NS: f64 = 150.0;
const PAPER_MPPS: f64 = 33.0;
const PAPER_TOGETHER: f64 = 64.0;

/// Returns the paper's latency of 1 and of 64 packets together, in nanoseconds.
fn paper_latencies() -> [(f64, f64); 2] {
    let together_ns = PAPER_TOGETHER / PAPER_MPPS * 1e3;
    [(1.0, PAPER_LATENCY_NS), (PAPER_TOGETHER, together_ns)]
}

/// Returns the value of Fig. 2 that the text has.
pub(super) fn paper_latency() -> PaperValues {
    PaperValues::new("an upper bound stated in §V.C for 32k rules")
        .on(MACHINES)
        .curve("", "paper", [(coordinate(MOST_RULES), PAPER_LATENCY_NS)])
}

/// Returns the values of Fig. 3, each times `scale`: an upper bound, and eq. 7 with the
/// throughput of Fig. 4.
pub(super) fn paper_concurrency(scale: f64) -> PaperValues {
    let values = paper_latencies().map(|(packets, ns)| (packets, ns * scale));
    PaperValues::new(
        "for 32k rules an upper bound stated in §V.C for one packet, and for 64 packets the time \
         that follows by eq. 7 from the 33 million packets a second of §V.E",
    )
    .on(MACHINES)
    .curve("", "paper", values)
}

/// Numbers of headers that are looked up together.
const TOGETHER: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The maximum number of measured threads, on a machine with that many processors.
const MOST_THREADS: usize = 16;

impl Study<'_> {
    /// Returns the numbers of rules of this reproduction, ascending.
    fn dec14_sizes(&self) -> Vec<usize> {
        let default_sizes: &[usize] = if self.args.quick { &FEW_SIZES } else { &SIZES };
        let mut sizes = self.sizes(default_sizes);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the number of rules for Figs. 3 and 4: the greatest size up to the
    /// paper's.
    fn dec14_rules(&self) -> usize {
        let sizes = self.dec14_sizes();
        let fitting = sizes.iter().rev().find(|&&size| size <= MOST_RULES);
        fitting.copied().unwrap_or(sizes[0])
    }

    /// Generates a rule set of Table III.
    fn dec14_policy(&self, rules: usize, set: usize) -> Result<Policy, Failure> {
        let seed = self.args.seed.wrapping_add(set as u64);
        let family = Family::OpenFlow15(Box::default());
        generated_policy(family, rules, seed, &mut classyard::NoProgress)
    }

    /// Generates headers for a rule set.
    fn dec14_trace(&self, policy: &Policy, set: usize) -> Result<PolicyTrace, Failure> {
        let seed = self.args.seed.wrapping_add(set as u64);
        generated_trace(policy, self.headers(), seed, &mut classyard::NoProgress)
    }

    /// Returns the measured numbers of threads: powers of two up to the number of
    /// processors.
    fn dec14_threads(&self) -> Vec<usize> {
        let processors = usable_processors();
        let counts = std::iter::successors(Some(1), |threads| Some(2 * threads));
        counts
            .take_while(|&threads| threads == 1 || threads <= processors.min(MOST_THREADS))
            .collect()
    }
}

/// Adds a note to the report if answers were wrong.
fn wrong_answers(section: &mut Section, wrong: usize) {
    if wrong > 0 {
        let remark = format!(" WRONG: {wrong} answers differ from a scan of the rules.");
        section.method.push_str(&remark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_all_values_of_the_paper() {
        paper_latency().check(&[1]);
        paper_concurrency(1e-3).check(&[2]);
        throughput::paper_values().check(&[1, 1]);
    }
}
