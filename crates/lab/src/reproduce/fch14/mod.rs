//! [FCH14] §3 and §5: the flows that caches need, and the cost to compute them.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use classyard_datapath::lab::header_space::Term;
use classyard_datapath::lab::megaflow::simulator::{Cache, Table};
use classyard_datapath::lab::megaflow::{Heuristic, TooMuchWork};
use classyard_report::failure::Failure;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::figure::{Figure, OwnFigure};
use super::inputs::Input;
use super::request::{Common, Paper, Request, at_least_one, sizes};
use super::study::Study;

mod acl_claims;
mod acl_results;
pub(super) mod acls;
mod approximation;
pub(super) mod cost;
pub(super) mod cross_product;
mod lists;
mod own;
mod own_lists;
mod own_product;
mod own_terms;
mod pipelines;
pub(super) mod providers;

/// The paper.
const PAPER: Paper = Paper {
    key: "fch14",
    name: "fch14",
    title: "Flow caching for high entropy packet fields [FCH14], measured with classyard",
    // As in the paper.
    headers: 10_000_000,
    is_stored_by_set: false,
};

/// Its figures and tables.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "acls",
        draw: acls::draw,
        own: Some(OwnFigure {
            accepts: own::INPUTS,
            needs_updates: false,
            draw: own::draw_acls,
        }),
    },
    Figure {
        name: "providers",
        draw: providers::draw,
        own: Some(OwnFigure {
            accepts: own::INPUTS,
            needs_updates: false,
            draw: own::draw_providers,
        }),
    },
    Figure {
        name: "cost",
        draw: cost::draw,
        own: Some(OwnFigure {
            accepts: own::INPUTS,
            needs_updates: false,
            draw: own::draw_cost,
        }),
    },
    Figure {
        name: "cross-product",
        draw: cross_product::draw,
        own: Some(OwnFigure {
            accepts: &[Input::Rules],
            needs_updates: false,
            draw: own_product::draw,
        }),
    },
];

/// Flow Caching for High Entropy Packet Fields, 2014
///
/// It has lists of ports, and no profiles. With own rules, `acls` and `cost` show all
/// algorithms over the rules, `providers` over their ports, and `cross-product` has the rules
/// as access lists. A capture alone has the packets.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  acls             cached flows and masks of random ACLs (Table 4, Fig. 3)
  providers        lists of ports like those of two providers (Table 5)
  cost             what computing flows adds to classification (Table 6)
  cross-product    all flows of a pipeline ahead of time (Fig. 2)

Examples:
  classyard reproduce fch14 --quick
  classyard reproduce fch14 --figures acls -r acl.rules -c dump.pcap
      flows and masks of own rules, with the headers of a capture
  classyard reproduce fch14 -c dump.pcap
      flows and masks of the paper's lists, with the destination ports of a capture")]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,

    /// Numbers of rules of the ACLs, at most 65,536 [default: 10, 100, 1k, 5k and 10k]
    #[arg(long, value_delimiter = ',', value_parser = sizes, value_name = "COUNTS")]
    sizes: Vec<usize>,

    /// Headers that `cost` classifies [default: 10M, quick 20k]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    headers: Option<usize>,

    /// Lists of ports of `acls` [default: 5, quick 1]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    sets: Option<usize>,
}

impl Args {
    pub(super) fn request(&self) -> Result<Request, Failure> {
        let request = Request {
            sizes: self.sizes.clone(),
            headers: self.headers,
            sets: self.sets,
            ..Request::new(&PAPER, &self.common)
        };
        let what = format!("there are {PORT_COUNT} ports");
        request.check_sizes(PORT_COUNT, &what, "the paper has at most 10k ACLs")?;
        Ok(request)
    }
}

/// Numbers of ACLs in the paper's Table 4, and the numbers of a quick reproduction.
const SIZES: [usize; 5] = [10, 100, 1_000, 5_000, 10_000];
const FEW_SIZES: [usize; 3] = [10, 100, 1_000];

/// The number of ports.
pub(super) const PORT_COUNT: usize = 1 << 16;

/// The order of rules or packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Ascending,
    Random,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Ascending => "ascending",
            Order::Random => "random",
        }
    }

    /// Returns the ports in this order.
    fn of(self, mut ports: Vec<u16>, seed: u64) -> Vec<u16> {
        ports.sort_unstable();
        if self == Order::Random {
            ports.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        }
        ports
    }

    /// Returns all ports in this order, as packets.
    fn packets(self, seed: u64) -> Vec<u16> {
        self.of((0..=u16::MAX).collect(), seed)
    }
}

/// The numbers of flows and masks in a cache after all ports have been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Scan {
    flows: usize,
    masks: usize,
    /// Packets for which the cache's decision differed from the table's; 0 if it is
    /// correct.
    wrong: usize,
}

/// Sends packets through a cache that a heuristic fills.
fn scan(
    table: &Table<1>,
    packets: &[u16],
    heuristic: &mut impl Heuristic<1>,
) -> Result<Scan, TooMuchWork> {
    let mut cache = Cache::new();
    let mut wrong = 0;
    for &port in packets {
        let packet = [u64::from(port)];
        match cache.get(&packet) {
            Some(winner) => wrong += usize::from(winner != table.winner(&packet)),
            None => cache.insert(&table.megaflow(&packet, heuristic)?),
        }
    }
    Ok(Scan {
        flows: cache.flows(),
        masks: cache.masks(),
        wrong,
    })
}

/// Returns an exact-match rule for each port.
fn exact(ports: &[u16]) -> Arc<[Term<1>]> {
    let rule = |&port: &u16| Term::new([u64::from(port)], [u64::from(u16::MAX)]);
    ports.iter().map(rule).collect()
}

/// Converts the error of a heuristic that exceeded its work limit.
fn too_much(error: TooMuchWork) -> Failure {
    Failure::usage(error.to_string()).with_help("--sizes with fewer rules")
}

impl Study<'_> {
    /// Returns the numbers of ACLs of this reproduction, ascending.
    fn fch14_sizes(&self) -> Vec<usize> {
        let default_sizes: &[usize] = if self.args.quick { &FEW_SIZES } else { &SIZES };
        let mut sizes = self.sizes(default_sizes);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns `count` distinct random ports of list number `list`.
    fn fch14_ports(&self, count: usize, list: usize) -> Vec<u16> {
        let mut ports = Order::Random.packets(self.list_seed(list));
        ports.truncate(count);
        ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_all_values_of_the_paper() {
        let rows = acl_results::PAPER_ROWS.len();
        for what in ["flows", "masks"] {
            acls::paper_values(what).check(&[rows; 2]);
        }
        // Three lists for each of three algorithms.
        cost::paper_values().check(&[3; 3]);
    }
}
