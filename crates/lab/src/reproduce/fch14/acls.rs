//! [FCH14] Table 4 and Fig. 3: flows of random ACLs.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use classyard_datapath::lab::megaflow::table::Table;
use classyard_datapath::lab::megaflow::{CommonMatch, FewestMasks, PrefixTree};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::approximation::{self, Approximation};
use super::{Order, PORT_COUNT, Scan, exact, scan, too_much};
use crate::bench::{size_name, timed};
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{coordinate, mean};

/// A row of the paper's Table 4: ACLs, then flows and masks of common match and of the
/// decision tree, and the share of the optimum, which the paper has only up to 1,000
/// ACLs.
type Row = (usize, [Scan; 2], Option<[f64; 2]>);

const PAPER_ROWS: [Row; 5] = [
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

/// The greatest deviation from the paper's values, as a share.
const MAX_DEVIATION: f64 = 0.1;

/// The maximum number of masks that our algorithm may have.
const MOST_MASKS: usize = 32;

/// The maximum number of ACLs for which flows are compared with the optimum, as in the
/// paper; and the number of flows compared for each algorithm, also in a quick run.
const MAX_COMPARED_ACLS: usize = 1_000;
const COMPARED_FLOWS: usize = 300;
const FEW_FLOWS: usize = 40;

/// The maximum number of ACLs of a small list, and the factor for the number of small
/// lists: their flows differ most from list to list, and take the least time.
const SMALL_ACLS: usize = 100;
const SMALL_LISTS_FACTOR: usize = 4;

/// The names of the algorithms, and their indices.
const NAMES: [&str; 3] = ["common match", "decision tree", "fewest masks (ours)"];
const COMMON_MATCH: usize = 0;
const DECISION_TREE: usize = 1;
const FEWEST_MASKS: usize = 2;

/// Orders of rules and packets: the first is used for Table 4 here.
const ORDERS: [(Order, Order); 4] = [
    (Order::Ascending, Order::Random),
    (Order::Ascending, Order::Ascending),
    (Order::Random, Order::Random),
    (Order::Random, Order::Ascending),
];

/// One list of ports.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measured {
    /// Results by order and algorithm. The last two algorithms do not depend on the order
    /// of rules.
    scans: [[Scan; NAMES.len()]; ORDERS.len()],
    /// Flows of our algorithm for any order of packets, with the flows of ACLs.
    planned: usize,
    plan_seconds: f64,
}

/// Creates the tables.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = study.fch14_sizes();
    let lists_of = |study: &Study<'_>, size: usize| match size <= SMALL_ACLS {
        true => SMALL_LISTS_FACTOR * study.lists(),
        false => study.lists(),
    };
    let points = sizes.iter().map(|&size| lists_of(study, size) + 1);
    study.expect_points(points.sum());
    let mut results = Vec::new();
    let mut shares = Vec::new();
    for &size in &sizes {
        let mut lists = Vec::new();
        for list in 0..lists_of(study, size) {
            let point = format!("acls {size}, list {list}");
            lists.push(study.point(&point, |study| {
                let ports = study.fch14_ports(size, list);
                measure(&ports, study.list_seed(list))
            })?);
        }
        if size <= MAX_COMPARED_ACLS {
            shares.push(study.point(&format!("optimum {size}"), |study| {
                let ports = study.fch14_ports(size, 0);
                let max_flows = if study.args.quick {
                    FEW_FLOWS
                } else {
                    COMPARED_FLOWS
                };
                compare(&ports, study.list_seed(0), max_flows)
            })?);
        }
        results.push(Size { size, lists });
    }
    write(study, &results)?;
    let pictures = pictures(study, &results)?;
    let mut section = Section {
        title: "Flows and masks of random ACLs (Table 4, Fig. 3)".to_owned(),
        method: format!(
            "Distinct random ports are blocked, all {PORT_COUNT} ports are sent, and every packet \
             that is not in the cache adds the flow that an algorithm computes for it; the mean of \
             {} lists, and of {} up to {SMALL_ACLS} ACLs. The paper does not say in which order \
             rules and packets come. Common match depends on both: rules in ascending order of \
             ports with packets in random order come nearest to its counts, and are taken for \
             Table 4; the other orders are in a table of their own. A flow of each blocked port is \
             counted, as in the paper. Where no bit is common to all rules, common match goes on \
             as multi-bit common match, and un-wildcards the most significant bit of each group. \
             Approx. is the share of the packets of the most general flow that the computed one \
             holds, in the mean over {} packets of the first list, evenly chosen, of those that \
             are not blocked; the most general flow is found by trying all masks. Beside it is the \
             mean over as many cached flows, and of these the share of bits.",
            study.lists(),
            SMALL_LISTS_FACTOR * study.lists(),
            if study.args.quick {
                FEW_FLOWS
            } else {
                COMPARED_FLOWS
            },
        ),
        claims: claims(&results, &shares),
        grids: vec![grid(&results, &shares), orders(&results), plans(&results)],
        pictures,
    };
    let scans = results.iter().flat_map(|size| &size.lists);
    let wrong: usize = scans
        .flat_map(|list| list.scans.iter().flatten())
        .map(|scan| scan.wrong)
        .sum();
    if wrong > 0 {
        let remark = format!(" WRONG: caches decided {wrong} packets otherwise than the table.");
        section.method.push_str(&remark);
    }
    Ok(section)
}

/// Measures all algorithms over one list, in all orders.
fn measure(ports: &[u16], seed: u64) -> Result<Measured, Failure> {
    let mut scans = [[Scan::default(); NAMES.len()]; ORDERS.len()];
    let ascending = exact(&Order::Ascending.of(ports.to_vec(), seed));
    let (fewest, plan_seconds) = timed(|| FewestMasks::new(Arc::clone(&ascending)));
    let planned = fewest.planned_flows().unwrap_or(0) + ports.len();
    for ((rules, packets), scans) in ORDERS.into_iter().zip(&mut scans) {
        let rules = exact(&rules.of(ports.to_vec(), seed));
        let table = Table::new(Arc::clone(&rules));
        let packets = packets.packets(seed.wrapping_add(1 << 32));
        let mut common = CommonMatch::new(Arc::clone(&rules));
        scans[COMMON_MATCH] = scan(&table, &packets, &mut common).map_err(too_much)?;
        let mut tree = PrefixTree::new(&rules);
        scans[DECISION_TREE] = scan(&table, &packets, &mut tree).map_err(too_much)?;
        let mut fewest = fewest.clone();
        scans[FEWEST_MASKS] = scan(&table, &packets, &mut fewest).map_err(too_much)?;
    }
    Ok(Measured {
        scans,
        planned,
        plan_seconds,
    })
}

/// Shares of the optimum for each algorithm.
type Shares = [Approximation; NAMES.len()];

fn compare(ports: &[u16], seed: u64, max_flows: usize) -> Result<Shares, Failure> {
    let (rules, packets) = ORDERS[0];
    let rules = exact(&rules.of(ports.to_vec(), seed));
    let packets = packets.packets(seed.wrapping_add(1 << 32));
    let mut common = CommonMatch::new(Arc::clone(&rules));
    let mut fewest = FewestMasks::new(Arc::clone(&rules));
    Ok([
        approximation::measure(&rules, &packets, &mut common, max_flows).map_err(too_much)?,
        approximation::measure(&rules, &packets, &mut PrefixTree::new(&rules), max_flows)
            .map_err(too_much)?,
        approximation::measure(&rules, &packets, &mut fewest, max_flows).map_err(too_much)?,
    ])
}

/// Results of all lists with one number of ACLs.
struct Size {
    size: usize,
    lists: Vec<Measured>,
}

impl Size {
    fn mean(&self, value: impl Fn(&Measured) -> usize) -> f64 {
        let values: Vec<f64> = self
            .lists
            .iter()
            .map(|list| coordinate(value(list)))
            .collect();
        mean(&values)
    }

    fn flows(&self, order: usize, algorithm: usize) -> f64 {
        self.mean(|list| list.scans[order][algorithm].flows)
    }

    fn masks(&self, order: usize, algorithm: usize) -> f64 {
        self.mean(|list| list.scans[order][algorithm].masks)
    }

    fn most_masks(&self) -> usize {
        let lists = self.lists.iter().flat_map(|list| &list.scans);
        lists
            .map(|scans| scans[FEWEST_MASKS].masks)
            .max()
            .unwrap_or(0)
    }

    fn paper(&self) -> Option<&'static Row> {
        PAPER_ROWS.iter().find(|paper| paper.0 == self.size)
    }

    /// The number of lists for which our algorithm has at most as many flows as the
    /// better of the paper's two.
    fn not_more(&self, order: usize) -> usize {
        let lists = self.lists.iter().map(|list| &list.scans[order]);
        let better = lists.filter(|scans| {
            let fewest = scans[COMMON_MATCH].flows.min(scans[DECISION_TREE].flows);
            scans[FEWEST_MASKS].flows <= fewest
        });
        better.count()
    }
}

fn grid(results: &[Size], shares: &[Shares]) -> Grid {
    let mut rows = Vec::new();
    for (place, size) in results.iter().enumerate() {
        let paper = size.paper();
        for (algorithm, name) in NAMES.into_iter().enumerate() {
            let of_paper = paper.and_then(|paper| paper.1.get(algorithm));
            let paper_share = paper.and_then(|paper| paper.2?.get(algorithm).copied());
            let share = shares.get(place).map(|shares| shares[algorithm]);
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            rows.push(vec![
                name.to_owned(),
                size_name(size.size),
                format!("{:.0}", size.flows(0, algorithm)),
                or_dash(of_paper.map(|scan| scan.flows.to_string())),
                format!("{:.0}", size.masks(0, algorithm)),
                or_dash(of_paper.map(|scan| scan.masks.to_string())),
                or_dash(share.map(|share| format!("{:.3}", share.of_packets))),
                or_dash(paper_share.map(|share| format!("{share:.3}"))),
                or_dash(share.map(|share| format!("{:.3}", share.of_flows))),
                or_dash(share.map(|share| format!("{:.3}", share.of_bits))),
            ]);
        }
    }
    Grid {
        title: "Cached flows, masks and the share of the optimum".to_owned(),
        columns: [
            "algorithm",
            "ACLs",
            "flows",
            "the paper's",
            "masks",
            "the paper's",
            "Approx.",
            "the paper's",
            "over cached flows",
            "fewest bits over bits",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows,
    }
}

fn orders(results: &[Size]) -> Grid {
    let mut rows = Vec::new();
    for size in results {
        for (place, (rules, packets)) in ORDERS.into_iter().enumerate() {
            let mut row = vec![
                rules.name().to_owned(),
                packets.name().to_owned(),
                size_name(size.size),
            ];
            for algorithm in 0..NAMES.len() {
                row.push(format!("{:.0}", size.flows(place, algorithm)));
                row.push(format!("{:.0}", size.masks(place, algorithm)));
            }
            rows.push(row);
        }
    }
    let mut columns = ["rules", "packets", "ACLs"].map(str::to_owned).to_vec();
    for name in NAMES {
        columns.push(format!("{name}: flows"));
        columns.push("masks".to_owned());
    }
    Grid {
        title: "In other orders of rules and packets".to_owned(),
        columns,
        words: 2,
        rows,
    }
}

fn plans(results: &[Size]) -> Grid {
    let rows = results.iter().map(|size| {
        let seconds: Vec<f64> = size.lists.iter().map(|list| list.plan_seconds).collect();
        vec![
            size_name(size.size),
            format!("{:.0}", size.mean(|list| list.planned)),
            format!("{:.0}", size.flows(0, FEWEST_MASKS)),
            size.most_masks().to_string(),
            format!("{:.2}", mean(&seconds)),
        ]
    });
    Grid {
        title: "The plan of fewest masks (ours)".to_owned(),
        columns: [
            "ACLs",
            "flows planned",
            "flows cached",
            "most masks",
            "seconds of CPU time to plan",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 0,
        rows: rows.collect(),
    }
}

fn claims(results: &[Size], shares: &[Shares]) -> Vec<Claim> {
    let mut claims = vec![near(results, COMMON_MATCH), near(results, DECISION_TREE)];
    let fewer = results
        .iter()
        .filter(|size| size.flows(0, COMMON_MATCH) < size.flows(0, DECISION_TREE));
    let fewer = fewer.count();
    claims.push(Claim {
        place: "§5.2, Fig. 3",
        paper: "Common match results in fewer cache entries than the decision tree.",
        measured: format!("at {fewer} of {} numbers of ACLs", results.len()),
        verdict: Verdict::for_most(fewer, results.len(), "see the table"),
    });
    let texts = results.iter().map(|size| {
        let (common, tree) = (size.masks(0, COMMON_MATCH), size.masks(0, DECISION_TREE));
        format!("{common:.0} and {tree:.0} at {}", size_name(size.size))
    });
    let fewer_masks = results.iter().filter(|size| {
        size.masks(0, DECISION_TREE) <= 17.0
            && size.masks(0, DECISION_TREE) < size.masks(0, COMMON_MATCH)
    });
    claims.push(Claim {
        place: "Table 4",
        paper: "The decision tree has an advantage in the number of unique masks: 6 to 14, \
                where common match has 76 to 3,563.",
        measured: texts.collect::<Vec<_>>().join(", "),
        verdict: Verdict::for_most(fewer_masks.count(), results.len(), "see the table"),
    });
    for (algorithm, paper) in [
        (
            COMMON_MATCH,
            "Flows of common match have 94 %, 80 % and 57 % of the optimum at 10, 100 and 1,000 \
             ACLs.",
        ),
        (
            DECISION_TREE,
            "Flows of the decision tree have 16 %, 13 % and 7 % of the optimum at 10, 100 and \
             1,000 ACLs.",
        ),
    ] {
        claims.push(approximate(results, shares, algorithm, paper));
    }
    claims.push(ours_flows(results));
    let max_masks = results.iter().map(Size::most_masks).max().unwrap_or(0);
    claims.push(Claim {
        place: "ours",
        paper: "(Not the paper's.) Fewest masks has at most 32 masks.",
        measured: format!("{max_masks} at most, in any order and of any list"),
        verdict: Verdict::of(max_masks <= MOST_MASKS, "see the table"),
    });
    claims
}

/// Compares the numbers of flows with the paper's.
fn near(results: &[Size], algorithm: usize) -> Claim {
    let compared: Vec<(String, bool)> = results
        .iter()
        .filter_map(|size| {
            let paper = coordinate(size.paper()?.1[algorithm].flows);
            let off = size.flows(0, algorithm) / paper - 1.0;
            let text = format!("{:+.1} % at {}", 100.0 * off, size_name(size.size));
            Some((text, off.abs() <= MAX_DEVIATION))
        })
        .collect();
    let texts: Vec<&str> = compared.iter().map(|(text, _)| text.as_str()).collect();
    let deviating = compared.iter().filter(|(_, is_near)| !is_near);
    let deviating: Vec<&str> = deviating.map(|(text, _)| text.as_str()).collect();
    Claim {
        place: "Table 4",
        paper: match algorithm {
            COMMON_MATCH => {
                "Common match caches 93, 552, 3,860, 13,822 and 22,333 flows for 10 to 10,000 \
                 random ACLs (±10 % here)."
            }
            _ => {
                "The decision tree caches 126, 913, 6,141, 20,060 and 30,947 flows for 10 to \
                 10,000 random ACLs (±10 % here)."
            }
        },
        measured: texts.join(", "),
        verdict: match compared.is_empty() {
            true => Verdict::NotMeasured("no number of ACLs is one of the paper's".to_owned()),
            false => {
                let holding = compared.len() - deviating.len();
                Verdict::for_most(holding, compared.len(), &deviating.join(", "))
            }
        },
    }
}

fn approximate(
    results: &[Size],
    shares: &[Shares],
    algorithm: usize,
    paper: &'static str,
) -> Claim {
    let compared: Vec<(String, bool)> = results
        .iter()
        .zip(shares)
        .filter_map(|(size, shares)| {
            let paper = size.paper()?.2?[algorithm];
            let share = shares[algorithm].of_packets;
            let text = format!("{:.0} % at {}", 100.0 * share, size_name(size.size));
            Some((text, (share - paper).abs() <= MAX_DEVIATION))
        })
        .collect();
    let texts: Vec<&str> = compared.iter().map(|(text, _)| text.as_str()).collect();
    let holding = compared.iter().filter(|(_, is_near)| *is_near).count();
    Claim {
        place: "Table 4",
        paper,
        measured: texts.join(", "),
        verdict: match compared.is_empty() {
            true => Verdict::NotMeasured("no number of ACLs is one of the paper's".to_owned()),
            false => Verdict::for_most(
                holding,
                compared.len(),
                "more than 10 points from the paper's, which does not define the share",
            ),
        },
    }
}

/// Compares our numbers of flows with the better of the paper's two algorithms.
fn ours_flows(results: &[Size]) -> Claim {
    let (mut holding, mut lists) = (0, 0);
    let mut texts = Vec::new();
    let mut more_flows = Vec::new();
    for (place, (rules, packets)) in ORDERS.into_iter().enumerate() {
        let (mut order_holding, mut order_lists) = (0, 0);
        for size in results {
            order_holding += size.not_more(place);
            order_lists += size.lists.len();
            let fewest = size
                .flows(place, COMMON_MATCH)
                .min(size.flows(place, DECISION_TREE));
            let ratio = size.flows(place, FEWEST_MASKS) / fewest;
            if size.not_more(place) < size.lists.len() {
                more_flows.push(format!(
                    "{} of {} lists of {} with rules {} and packets {}, {:+.1} % in the mean",
                    size.lists.len() - size.not_more(place),
                    size.lists.len(),
                    size_name(size.size),
                    rules.name(),
                    packets.name(),
                    100.0 * (ratio - 1.0)
                ));
            }
        }
        texts.push(format!(
            "{order_holding} of {order_lists} lists with rules {} and packets {}",
            rules.name(),
            packets.name()
        ));
        holding += order_holding;
        lists += order_lists;
    }
    Claim {
        place: "ours",
        paper: "(Not the paper's.) Fewest masks never has more flows than the better of common \
                match and the decision tree.",
        measured: texts.join("; "),
        verdict: Verdict::for_most(
            holding,
            lists,
            &format!("more flows in {}", more_flows.join("; ")),
        ),
    }
}

fn write(study: &mut Study<'_>, results: &[Size]) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for size in results {
        for (list, measured) in size.lists.iter().enumerate() {
            for ((rules, packets), scans) in ORDERS.into_iter().zip(&measured.scans) {
                for (name, scan) in NAMES.into_iter().zip(scans) {
                    rows.push(format!(
                        "{},{list},{},{},{name},{},{},{}",
                        size.size,
                        rules.name(),
                        packets.name(),
                        scan.flows,
                        scan.masks,
                        scan.wrong
                    ));
                }
            }
        }
    }
    let heading = "acls,list,rules,packets,algorithm,flows,masks,wrong";
    study.write_csv("acls.csv", heading, &rows)
}

fn pictures(study: &mut Study<'_>, results: &[Size]) -> Result<Vec<String>, Failure> {
    let marks = [Mark::Circle, Mark::Square, Mark::Triangle];
    let mut names = Vec::new();
    for (what, label) in [("flows", "cached flows"), ("masks", "masks")] {
        let title = format!("{label} against ACLs ([FCH14] Fig. 3, Table 4)");
        let chart = Chart {
            title: &title,
            x_label: "random ACLs",
            y_label: label,
            log_x: true,
            log_y: true,
        };
        let mut series = Vec::new();
        for (algorithm, (name, mark)) in NAMES.into_iter().zip(marks).enumerate() {
            let points = results.iter().map(|size| {
                let value = match what {
                    "flows" => size.flows(0, algorithm),
                    _ => size.masks(0, algorithm),
                };
                (coordinate(size.size), value.max(1.0))
            });
            series.push(Series::marked(name, name, mark, points));
            let paper = PAPER_ROWS.iter().filter_map(|(size, scans, _)| {
                let scan = scans.get(algorithm)?;
                let value = if what == "flows" {
                    scan.flows
                } else {
                    scan.masks
                };
                Some((coordinate(*size), coordinate(value)))
            });
            let paper: Vec<(f64, f64)> = paper.collect();
            if !paper.is_empty() {
                let of_paper = format!("{name}, the paper's");
                series.push(Series::marked(&of_paper, &of_paper, Mark::Cross, paper));
            }
        }
        let name = format!("acls-{what}.svg");
        study.draw(&name, &chart, &series)?;
        names.push(name);
    }
    Ok(names)
}
