//! Flows and masks of random ACLs: the paper's, and measured ones.

use serde::{Deserialize, Serialize};

use super::approximation::Approximation;
use super::{Order, Scan};
use crate::reproduce::statistics::{coordinate, mean};

/// A row of the paper's Table 4: ACLs, then flows and masks of common match and of the
/// decision tree, and the share of the optimum, which the paper has only up to 1,000
/// ACLs.
pub(super) type Row = (usize, [Scan; 2], Option<[f64; 2]>);

pub(super) const PAPER_ROWS: [Row; 5] = [
    (10, [of(93, 76), of(126, 14)], Some([0.940, 0.159])),
    (100, [of(552, 435), of(913, 13)], Some([0.796, 0.134])),
    (
        1_000,
        [of(3_860, 2_669), of(6_141, 9)],
        Some([0.573, 0.074]),
    ),
    (5_000, [of(13_822, 504), of(20_060, 7)], None),
    (10_000, [of(22_333, 3_563), of(30_947, 6)], None),
];

const fn of(flows: usize, masks: usize) -> Scan {
    Scan {
        flows,
        masks,
        wrong: 0,
    }
}

/// The names of the algorithms, and their indices.
pub(super) const NAMES: [&str; 3] = ["common match", "decision tree", "fewest masks (ours)"];
pub(super) const COMMON_MATCH: usize = 0;
pub(super) const DECISION_TREE: usize = 1;
pub(super) const FEWEST_MASKS: usize = 2;

/// Orders of rules and packets: the first is used for Table 4 here.
pub(super) const ORDERS: [(Order, Order); 4] = [
    (Order::Ascending, Order::Random),
    (Order::Ascending, Order::Ascending),
    (Order::Random, Order::Random),
    (Order::Random, Order::Ascending),
];

/// One list of ports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Results by order and algorithm. The last two algorithms do not depend on the order
    /// of rules.
    pub(super) scans: [[Scan; NAMES.len()]; ORDERS.len()],
    /// Flows of our algorithm for any order of packets, with the flows of ACLs.
    pub(super) planned: usize,
    pub(super) plan_seconds: f64,
}

/// Shares of the optimum for each algorithm.
pub(super) type Shares = [Approximation; NAMES.len()];

/// Results of all lists with one number of ACLs.
pub(super) struct Size {
    pub(super) size: usize,
    pub(super) lists: Vec<Measured>,
    /// Shares of the optimum of the first lists; empty for many ACLs.
    pub(super) shares: Vec<Shares>,
}

impl Size {
    pub(super) fn mean(&self, value: impl Fn(&Measured) -> usize) -> f64 {
        let values: Vec<f64> = self
            .lists
            .iter()
            .map(|list| coordinate(value(list)))
            .collect();
        mean(&values)
    }

    pub(super) fn flows(&self, order: usize, algorithm: usize) -> f64 {
        self.mean(|list| list.scans[order][algorithm].flows)
    }

    pub(super) fn masks(&self, order: usize, algorithm: usize) -> f64 {
        self.mean(|list| list.scans[order][algorithm].masks)
    }

    pub(super) fn most_masks(&self) -> usize {
        let lists = self.lists.iter().flat_map(|list| &list.scans);
        lists
            .map(|scans| scans[FEWEST_MASKS].masks)
            .max()
            .unwrap_or(0)
    }

    pub(super) fn paper(&self) -> Option<&'static Row> {
        PAPER_ROWS.iter().find(|paper| paper.0 == self.size)
    }

    /// The means of the shares of the optimum; `None` if they were not measured.
    pub(super) fn share(&self, algorithm: usize) -> Option<Approximation> {
        let mean_of = |value: fn(&Approximation) -> f64| {
            let values = self.shares.iter().map(|shares| value(&shares[algorithm]));
            mean(&values.collect::<Vec<_>>())
        };
        (!self.shares.is_empty()).then(|| Approximation {
            of_packets: mean_of(|share| share.of_packets),
            of_flows: mean_of(|share| share.of_flows),
            of_bits: mean_of(|share| share.of_bits),
        })
    }
}
