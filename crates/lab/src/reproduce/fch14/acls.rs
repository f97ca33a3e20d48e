//! [FCH14] Table 4 and Fig. 3: flows of random ACLs.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use classyard_datapath::lab::megaflow::simulator::Table;
use classyard_datapath::lab::megaflow::{CommonMatch, FewestMasks, PrefixTree};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::acl_claims;
use super::acl_results::{
    COMMON_MATCH, DECISION_TREE, FEWEST_MASKS, Measured, NAMES, ORDERS, PAPER_ROWS, Shares, Size,
};
use super::approximation;
use super::{Order, PORT_COUNT, Scan, exact, scan, too_much};
use crate::bench::{size_name, timed};
use crate::reproduce::Study;
use crate::reproduce::claims::{Grid, Section};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{coordinate, mean};

/// The maximum number of ACLs for which flows are compared with the optimum, as in the
/// paper; and the number of flows compared for each algorithm, also in a quick run.
const MAX_COMPARED_ACLS: usize = 1_000;
const COMPARED_FLOWS: usize = 300;
const FEW_FLOWS: usize = 40;

/// The maximum number of ACLs of a small list, and the factor for the number of small
/// lists: their flows differ most from list to list, and take the least time.
const SMALL_ACLS: usize = 100;
const SMALL_LISTS_FACTOR: usize = 5;

/// Creates the tables.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = study.fch14_sizes();
    let lists_of = |study: &Study<'_>, size: usize| match size <= SMALL_ACLS {
        true => SMALL_LISTS_FACTOR * study.lists(),
        false => study.lists(),
    };
    let points = sizes
        .iter()
        .map(|&size| lists_of(study, size) + study.lists());
    study.expect_points(points.sum());
    let mut results = Vec::new();
    for &size in &sizes {
        let mut lists = Vec::new();
        for list in 0..lists_of(study, size) {
            let point = format!("acls {size}, list {list}");
            lists.push(study.point(&point, |study| {
                let ports = study.fch14_ports(size, list);
                measure(&ports, study.list_seed(list))
            })?);
        }
        let compared = if size <= MAX_COMPARED_ACLS {
            study.lists()
        } else {
            0
        };
        let mut shares = Vec::new();
        for list in 0..compared {
            shares.push(
                study.point(&format!("optimum {size}, list {list}"), |study| {
                    let ports = study.fch14_ports(size, list);
                    let max_flows = if study.args.quick {
                        FEW_FLOWS
                    } else {
                        COMPARED_FLOWS
                    };
                    compare(&ports, study.list_seed(list), max_flows)
                })?,
            );
        }
        results.push(Size {
            size,
            lists,
            shares,
        });
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
             holds, in the mean over {} packets of each of {} lists, evenly chosen, of those that \
             are not blocked; the most general flow is found by trying all masks. Beside it is the \
             mean over as many cached flows, and of these the share of bits.",
            study.lists(),
            SMALL_LISTS_FACTOR * study.lists(),
            if study.args.quick {
                FEW_FLOWS
            } else {
                COMPARED_FLOWS
            },
            study.lists(),
        ),
        claims: acl_claims::claims(&results),
        grids: vec![grid(&results), orders(&results), plans(&results)],
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

fn grid(results: &[Size]) -> Grid {
    let mut rows = Vec::new();
    for size in results {
        let paper = size.paper();
        for (algorithm, name) in NAMES.into_iter().enumerate() {
            let of_paper = paper.and_then(|paper| paper.1.get(algorithm));
            let paper_share = paper.and_then(|paper| paper.2?.get(algorithm).copied());
            let share = size.share(algorithm);
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
        }
        let name = format!("acls-{what}.svg");
        study.add_paper(&name, &paper_values(what), &mut series);
        study.draw(&name, &chart, &series)?;
        names.push(name);
    }
    Ok(names)
}

/// Returns the curves of Table 4: flows or masks.
pub(super) fn paper_values(what: &str) -> PaperValues {
    let curve = |algorithm: usize| {
        PAPER_ROWS.iter().map(move |(size, scans, _)| {
            let Scan { flows, masks, .. } = scans[algorithm];
            let value = if what == "flows" { flows } else { masks };
            (coordinate(*size), coordinate(value))
        })
    };
    let values = PaperValues::new("stated in Table 4");
    [COMMON_MATCH, DECISION_TREE]
        .into_iter()
        .fold(values, |values, algorithm| {
            values.curve(NAMES[algorithm], NAMES[algorithm], curve(algorithm))
        })
}
