//! Claims of [FCH14] §5.2 about flows and masks of random ACLs.
//!
//! [FCH14]: classyard::papers#fch14

use super::acl_results::{
    COMMON_MATCH, DECISION_TREE, FEWEST_MASKS, Measured, ORDERS, PAPER_ROWS, Row, Size,
};
use crate::bench::size_name;
use crate::reproduce::claims::{Case, Claim, Gap, Part, Threshold};
use crate::reproduce::statistics::coordinate;

/// The greatest deviation from the paper's values, as a share.
const MAX_DEVIATION: f64 = 0.1;

/// The maximum number of masks that our algorithm may have.
const MAX_MASKS: f64 = 32.0;

/// The tables of the report.
const TABLE: &str = "Cached flows, masks";
const ORDERS_TABLE: &str = "In other orders";

/// Returns the case of a size of the paper, with a sample for each list, in the order of
/// Table 4.
fn case(results: &[Size], paper: &Row, value: impl Fn(&Measured) -> f64) -> Case {
    let name = size_name(paper.0);
    match results.iter().find(|size| size.size == paper.0) {
        Some(size) => Case::samples(name, size.lists.iter().map(value)),
        None => Case::missing(name, Gap::NotRun("left out of this reproduction")),
    }
}

fn flows(list: &Measured, algorithm: usize) -> f64 {
    coordinate(list.scans[0][algorithm].flows)
}

fn masks(list: &Measured, algorithm: usize) -> f64 {
    coordinate(list.scans[0][algorithm].masks)
}

/// Returns all claims.
pub(super) fn claims(results: &[Size]) -> Vec<Claim> {
    let by_size = |value: fn(&Measured) -> f64| {
        let cases = PAPER_ROWS.iter().map(|row| case(results, row, value));
        cases.collect::<Vec<_>>()
    };
    vec![
        near(
            results,
            COMMON_MATCH,
            "Common match caches 93, 552, 3,860, 13,822 and 22,333 flows for 10 to 10,000 random \
             ACLs (±10 % here).",
        ),
        near(
            results,
            DECISION_TREE,
            "The decision tree caches 126, 913, 6,141, 20,060 and 30,947 flows for 10 to 10,000 \
             random ACLs (±10 % here).",
        ),
        Claim::new(
            "§5.2, Fig. 3",
            "Common match results in fewer cache entries than the decision tree.",
        )
        .part(
            Part::new(
                "flows of a list, common match / decision tree",
                Threshold::Below(1.0),
            )
            .cases(by_size(|list| {
                flows(list, COMMON_MATCH) / flows(list, DECISION_TREE)
            }))
            .picture("acls-flows.svg"),
        ),
        unique_masks(results),
        approximate(
            results,
            COMMON_MATCH,
            "Flows of common match have 94 %, 80 % and 57 % of the optimum at 10, 100 and 1,000 \
             ACLs.",
        ),
        approximate(
            results,
            DECISION_TREE,
            "Flows of the decision tree have 16 %, 13 % and 7 % of the optimum at 10, 100 and \
             1,000 ACLs.",
        ),
        ours_flows(results),
        ours_masks(results),
    ]
}

/// Compares the numbers of flows with the paper's.
fn near(results: &[Size], algorithm: usize, paper: &'static str) -> Claim {
    let mut claim = Claim::new("Table 4", paper);
    for row in &PAPER_ROWS {
        let value = coordinate(row.1[algorithm].flows);
        claim = claim.part(
            Part::new(
                format!("flows for {} ACLs", size_name(row.0)),
                Threshold::near(value, MAX_DEVIATION),
            )
            .paper(value)
            .case(case(results, row, |list| flows(list, algorithm)))
            .grid(TABLE, ""),
        );
    }
    claim
}

/// Compares the numbers of masks with each other and with the paper's.
fn unique_masks(results: &[Size]) -> Claim {
    let fewer = PAPER_ROWS.iter().map(|row| {
        let ratio = |list: &Measured| masks(list, DECISION_TREE) / masks(list, COMMON_MATCH);
        case(results, row, ratio)
    });
    let mut claim = Claim::new(
        "Table 4",
        "The decision tree has an advantage in the number of unique masks: 6 to 14, where common \
         match has 76 to 3,563.",
    )
    .part(
        Part::new(
            "masks of a list, decision tree / common match",
            Threshold::Below(1.0),
        )
        .cases(fewer)
        .picture("acls-masks.svg"),
    );
    for (algorithm, name) in [
        (DECISION_TREE, "decision tree"),
        (COMMON_MATCH, "common match"),
    ] {
        for row in &PAPER_ROWS {
            let value = coordinate(row.1[algorithm].masks);
            let part = Part::new(
                format!("masks of the {name} for {} ACLs", size_name(row.0)),
                Threshold::near(value, MAX_DEVIATION),
            );
            let case = case(results, row, |list| masks(list, algorithm));
            claim = claim.part(part.paper(value).case(case).grid(TABLE, ""));
        }
    }
    claim
}

/// Compares shares of the optimum with the paper's, which does not define them.
fn approximate(results: &[Size], algorithm: usize, paper: &'static str) -> Claim {
    let mut claim = Claim::new("Table 4", paper);
    for row in &PAPER_ROWS {
        let Some(shares) = row.2 else { continue };
        let value = shares[algorithm];
        let name = size_name(row.0);
        let case = match results.iter().find(|size| size.size == row.0) {
            Some(size) => {
                let shares = size.shares.iter();
                Case::samples("", shares.map(|shares| shares[algorithm].of_packets))
            }
            None => Case::missing("", Gap::NotRun("left out of this reproduction")),
        };
        claim = claim.part(
            Part::new(
                format!("share of the optimum for {name} ACLs"),
                Threshold::Within(value - MAX_DEVIATION, value + MAX_DEVIATION),
            )
            .paper(value)
            .case(case)
            .grid(TABLE, ""),
        );
    }
    claim
}

/// Compares our numbers of flows with the better of the paper's two algorithms, over all
/// lists and orders.
fn ours_flows(results: &[Size]) -> Claim {
    let mut cases = Vec::new();
    for (order, (rules, packets)) in ORDERS.into_iter().enumerate() {
        for size in results {
            let ratios = size.lists.iter().map(|list| {
                let flows = list.scans[order].map(|scan| coordinate(scan.flows));
                flows[FEWEST_MASKS] / flows[COMMON_MATCH].min(flows[DECISION_TREE])
            });
            let name = format!(
                "{}, rules {}, packets {}",
                size_name(size.size),
                rules.name(),
                packets.name()
            );
            cases.push(Case::exact(name, ratios.fold(0.0, f64::max)));
        }
    }
    Claim::new(
        "ours",
        "(Not the paper's.) Fewest masks never has more flows than the better of common match and \
         the decision tree.",
    )
    .part(
        Part::new(
            "flows, fewest masks / the fewer of both, the most of all lists",
            Threshold::AtMost(1.0),
        )
        .cases(cases)
        .grid(ORDERS_TABLE, ""),
    )
}

fn ours_masks(results: &[Size]) -> Claim {
    let cases = results
        .iter()
        .map(|size| Case::exact(size_name(size.size), coordinate(size.most_masks())));
    Claim::new(
        "ours",
        "(Not the paper's.) Fewest masks has at most 32 masks.",
    )
    .part(
        Part::new(
            "masks of fewest masks, the most of all lists and orders",
            Threshold::AtMost(MAX_MASKS),
        )
        .cases(cases)
        .grid("The plan of fewest masks", ""),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Scan;
    use super::super::approximation::Approximation;
    use super::*;

    /// Five lists for each size with the paper's flows and masks, times `factor`.
    fn results(factor: usize) -> Vec<Size> {
        let size = |row: &Row| {
            let [common, tree] = row.1.map(|scan| Scan {
                flows: scan.flows * factor,
                masks: scan.masks * factor,
                wrong: 0,
            });
            let ours = Scan {
                masks: 32,
                ..common
            };
            let list = Measured {
                scans: [[common, tree, ours]; ORDERS.len()],
                planned: 0,
                plan_seconds: 0.0,
            };
            let share = |of_packets: f64| Approximation {
                of_packets,
                of_flows: 0.0,
                of_bits: 0.0,
            };
            let shares = row.2.map(|[common, tree]| [common, tree, 1.0].map(share));
            Size {
                size: row.0,
                lists: vec![list; 5],
                shares: shares.map_or(Vec::new(), |shares| vec![shares; 5]),
            }
        };
        PAPER_ROWS.iter().map(size).collect()
    }

    fn words(results: &[Size]) -> Vec<&'static str> {
        let claims = claims(results);
        claims.iter().map(|claim| claim.verdict().word()).collect()
    }

    #[test]
    fn the_papers_own_table_bears_its_claims_out() {
        assert_eq!(words(&results(1)), ["holds"; 8]);
    }

    #[test]
    fn other_counts_and_missing_sizes_do_not() {
        let words_of_more = words(&results(2));
        assert_eq!(words_of_more[..2], ["does not hold here"; 2]);
        // With two times the masks: fewer than with common match, but not the paper's number.
        assert_eq!(words_of_more[3], "does not hold here");
        let words_of_one = words(&results(1)[..2]);
        assert_eq!(words_of_one[..4], ["not measured"; 4]);
        // Two of three shares were measured.
        assert_eq!(words_of_one[4], "holds in part");
    }
}
