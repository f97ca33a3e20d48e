//! [FTS25] §5 and §6: a cache of active flows in front of a tuple space sorted by use.
//!
//! [FTS25]: classyard::papers#fts25

use classyard_report::failure::Failure;
use classyard_workload::traffic::locality::{LocalityModel, TRACE1, TRACE2};

use super::figure::{Figure, OwnFigure};
use super::inputs::Input;
use super::request::{Common, Paper, Request, at_least_one};
use super::study::Study;
use stream::Outcome;

pub(super) mod flows;
mod formulas;
pub(super) mod hit_rates;
pub(super) mod search_length;
mod stream;
pub(super) mod tables;
mod traffic;

/// The paper.
const PAPER: Paper = Paper {
    key: "fts25",
    name: "fts25",
    title: "FastTSS [FTS25], measured with classyard",
    headers: PAPER_PACKETS,
    is_stored_by_set: false,
};

/// Its figures and tables.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "tables",
        draw: tables::draw,
        own: None,
    },
    Figure {
        name: "wildcarding-flows",
        draw: flows::draw,
        own: Some(OwnFigure {
            accepts: &[Input::Packets],
            needs_updates: false,
            draw: flows::draw,
        }),
    },
    Figure {
        name: "hit-rates",
        draw: hit_rates::draw,
        own: Some(OwnFigure {
            accepts: &[Input::Packets],
            needs_updates: false,
            draw: hit_rates::draw,
        }),
    },
    Figure {
        name: "search-length",
        draw: search_length::draw,
        own: Some(OwnFigure {
            accepts: &[Input::Packets],
            needs_updates: false,
            draw: search_length::draw,
        }),
    },
];

/// Xiong et al., FastTSS, 2025
///
/// It has traffic of its own, like the paper's traces, and no rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  tables              hit rates and search lengths by formula (Tables 1 and 2)
  wildcarding-flows   flows that share an entry, over time (Fig. 9)
  hit-rates           hit rates by size, threshold, scheme and bytes (Figs. 10 to 12)
  search-length       average search length, and eqs. 5 to 8 (Figs. 13 and 14)

Example:
  classyard reproduce fts25 --quick")]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,

    /// Packets of each trace [default: 15,420,235, quick 2M]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    headers: Option<usize>,
}

impl Args {
    pub(super) fn request(&self) -> Request {
        Request {
            headers: self.headers,
            ..Request::new(&PAPER, &self.common)
        }
    }
}

/// A trace of the paper, and the generated traffic that replaces it.
struct Trace {
    name: &'static str,
    model: LocalityModel,
    /// The trace's seconds in the paper.
    seconds: f64,
    /// Wildcarding flows in the steady state, in the paper.
    wildcarding: f64,
    /// The hit rate of the paper's cache.
    hit_rate: f64,
    /// The paper's average search lengths: FastTSS, CuckooFlow, Open vSwitch.
    search_lengths: [f64; 3],
}

static TRACES: [Trace; 2] = [
    Trace {
        name: "TRACE1",
        model: TRACE1,
        seconds: 122.0,
        wildcarding: 35_000.0,
        hit_rate: 0.77,
        search_lengths: [10.42, 11.96, 20.37],
    },
    Trace {
        name: "TRACE2",
        model: TRACE2,
        seconds: 100.0,
        wildcarding: 24_500.0,
        hit_rate: 0.85,
        search_lengths: [5.51, 7.06, 12.72],
    },
];

/// Packets of each trace, in the paper and in a quick run.
const PAPER_PACKETS: usize = 15_420_235;
const FEW_PACKETS: usize = 2_000_000;

/// The paper's cache size, whose threshold is 256 ms.
const CACHE_FLOWS: usize = 8_192;
const THRESHOLD_MS: u64 = 256;

/// Nanoseconds after which idle flows leave caches of active flows. The paper does not
/// state this time; with 1 s its caches hold about 8k flows.
const IDLE_TIMEOUT_NS: u64 = 1_000_000_000;

/// The report's description of the traffic.
const TRAFFIC: &str = "The paper's traces are not public. In their place is generated traffic: \
    flows begin at random, send heavy-tailed numbers of batches of packets at paces of their own, \
    and pause between. Its parameters are fitted to what the paper says of the traces: packets \
    a second, wildcarding flows within 10 s, active flows at a threshold of 256 ms, and so the \
    hit rate of the paper's cache with 8k entries, which is therefore no test of it. Shapes \
    of curves and comparisons of schemes were not fitted.";

impl Study<'_> {
    /// The number of packets of each trace.
    fn fts25_packets(&self) -> usize {
        self.args.headers.unwrap_or(match self.args.quick {
            true => FEW_PACKETS,
            false => PAPER_PACKETS,
        })
    }

    /// Returns the outcome of each trace: measured now, or stored.
    fn fts25_outcomes(&mut self) -> Result<Vec<Outcome>, Failure> {
        self.expect_points(TRACES.len());
        let measured = TRACES.iter().map(|trace| {
            self.point(&format!("packets of {}", trace.name), |study| {
                stream::measure(trace, study.fts25_packets(), study.args.seed)
            })
        });
        measured.collect()
    }
}

/// Converts a count to a floating-point number.
#[allow(clippy::cast_precision_loss)] // far below 2^52
fn many(count: u64) -> f64 {
    count as f64
}

/// Formats a share in percent.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_all_values_of_the_paper() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        flows::paper_values().check(&[1; TRACES.len()]);
        hit_rates::paper_curves(8_192.0).check(&[1; TRACES.len()]);
        let caches = names(&["cuckoo", stream::WEF_ALGORITHM_1]);
        hit_rates::paper_bars(&caches).check(&[1; TRACES.len()]);
        let schemes = names(&["Open vSwitch", "adaptive", "FastTSS", "CuckooFlow"]);
        search_length::paper_values(&schemes).check(&[3; TRACES.len()]);
    }
}
