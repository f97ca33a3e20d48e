//! [FCH14] Table 5: flows of lists like those of two cloud providers.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use classyard_datapath::lab::header_space::Term;
use classyard_datapath::lab::megaflow::simulator::Table;
use classyard_datapath::lab::megaflow::{CommonMatch, FewestMasks, PrefixTree};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::{Order, Scan, lists, scan, too_much};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The paper's flows and masks for its providers: of common match and of the decision
/// tree.
const PAPER: [[(usize, usize); 2]; 2] = [[(194, 153), (178, 15)], [(9_124, 846), (3_009, 12)]];

/// Results of one list for each algorithm.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    common: Scan,
    tree: Scan,
    ours: Scan,
}

/// Creates the table.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let lists = [
        (
            format!("long, {} entries", lists::LONG_ENTRIES),
            lists::long(),
        ),
        (
            format!("short, {} entries", lists::SHORT_ENTRIES),
            lists::short(),
        ),
    ];
    study.expect_points(lists.len());
    let mut results = Vec::new();
    for (name, rules) in &lists {
        results.push(study.point(&format!("provider {name}"), |study| {
            measure(rules, study.list_seed(0))
        })?);
    }
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for ((name, _), measured) in lists.iter().zip(&results) {
        let scans = [
            ("common match", measured.common),
            ("decision tree", measured.tree),
            ("fewest masks (ours)", measured.ours),
        ];
        for (algorithm, scan) in scans {
            rows.push(vec![
                name.clone(),
                algorithm.to_owned(),
                scan.flows.to_string(),
                scan.masks.to_string(),
            ]);
            let list = name.replace(',', "");
            lines.push(format!("{list},{algorithm},{},{}", scan.flows, scan.masks));
        }
    }
    let names = ["Provider 1", "Provider 2"].into_iter().zip(PAPER);
    let paper = names.flat_map(|(name, [common, tree])| {
        [("common match", common), ("decision tree", tree)].map(|(algorithm, scan)| {
            vec![
                name.to_owned(),
                algorithm.to_owned(),
                scan.0.to_string(),
                scan.1.to_string(),
            ]
        })
    });
    let paper = paper.collect();
    study.write_csv("providers.csv", "list,algorithm,flows,masks", &lines)?;
    let columns = || {
        ["list", "algorithm", "flows", "masks"]
            .map(str::to_owned)
            .to_vec()
    };
    let wrong: usize = results
        .iter()
        .map(|one| one.common.wrong + one.tree.wrong + one.ours.wrong)
        .sum();
    let mut section = Section {
        title: "Lists of ports like those of cloud providers (Table 5)".to_owned(),
        method: "The paper's lists are private. STAND-INS take their place: a short list of 32 ports \
                 of well-known services, and a long one of ports and ranges in a few clusters, \
                 most of them low, which are 1,038 values under masks. Flow counts can be compared in \
                 kind only. The paper's own rows seem to be exchanged: it says that Provider 1 has \
                 1,038 ports and 194 flows, but where all ports are sent each exact port is a flow. \
                 Rules are in ascending order, packets in random order."
            .to_owned(),
        claims: claims(&results),
        grids: vec![
            Grid {
                title: "Stand-ins".to_owned(),
                columns: columns(),
                words: 2,
                rows,
            },
            Grid {
                title: "The paper's Table 5".to_owned(),
                columns: columns(),
                words: 2,
                rows: paper,
            },
        ],
        pictures: Vec::new(),
    };
    if wrong > 0 {
        let remark = format!(" WRONG: caches decided {wrong} packets otherwise than the table.");
        section.method.push_str(&remark);
    }
    Ok(section)
}

fn measure(rules: &Arc<[Term<1>]>, seed: u64) -> Result<Measured, Failure> {
    let table = Table::new(Arc::clone(rules));
    let packets = Order::Random.packets(seed);
    let mut common = CommonMatch::new(Arc::clone(rules));
    let mut fewest = FewestMasks::new(Arc::clone(rules));
    Ok(Measured {
        common: scan(&table, &packets, &mut common).map_err(too_much)?,
        tree: scan(&table, &packets, &mut PrefixTree::new(rules)).map_err(too_much)?,
        ours: scan(&table, &packets, &mut fewest).map_err(too_much)?,
    })
}

/// The lists that the paper measured are private.
const PRIVATE: Gap = Gap::NotRun("the providers' own lists, which are private");

/// Masks of the decision tree for one field of 16 bits, at most.
const MAX_TREE_MASKS: f64 = 17.0;

pub(super) fn claims(results: &[Measured]) -> Vec<Claim> {
    let stand_ins = |value: fn(&Measured) -> f64| {
        let names = ["long stand-in", "short stand-in"].into_iter();
        let cases = names
            .zip(results)
            .map(|(name, one)| Case::exact(name, value(one)));
        cases.collect::<Vec<_>>()
    };
    let providers = || ["Provider 1", "Provider 2"].map(|name| Case::missing(name, PRIVATE));
    vec![
        Claim::new(
            "Table 5",
            "Where rules are at one end of the field, the decision tree caches fewer flows than \
             common match.",
        )
        .part(
            Part::new("flows, decision tree / common match", Threshold::Below(1.0))
                .cases(stand_ins(|one| {
                    coordinate(one.tree.flows) / coordinate(one.common.flows)
                }))
                .cases(providers())
                .grid("Stand-ins", ""),
        ),
        Claim::new(
            "Table 5",
            "The decision tree has 15 and 12 masks, common match 153 and 846.",
        )
        .part(
            Part::new(
                "masks of the decision tree",
                Threshold::AtMost(MAX_TREE_MASKS),
            )
            .cases(stand_ins(|one| coordinate(one.tree.masks)))
            .cases(providers())
            .grid("Stand-ins", ""),
        ),
        Claim::new(
            "ours",
            "(Not the paper's.) Fewest masks has at most as many flows as the better of both, and \
             32 masks.",
        )
        .part(
            Part::new(
                "flows, fewest masks / the fewer of both",
                Threshold::AtMost(1.0),
            )
            .cases(stand_ins(|one| {
                coordinate(one.ours.flows) / coordinate(one.common.flows.min(one.tree.flows))
            }))
            .grid("Stand-ins", ""),
        )
        .part(
            Part::new("masks of fewest masks", Threshold::AtMost(32.0))
                .cases(stand_ins(|one| coordinate(one.ours.masks)))
                .grid("Stand-ins", ""),
        ),
    ]
}
