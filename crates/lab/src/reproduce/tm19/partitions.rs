//! [TM19] Fig. 6: tables of TupleMerge compared with SAX-PAC's sets.
//!
//! [TM19]: classyard::papers#tm19

use classyard::policy::PartId;
use classyard::{EngineSpec, Limits, NoProgress};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{coordinate, mean};
use crate::sax_pac;

/// Default numbers of rules. The time to count sets grows with the square of the number
/// of rules.
const SIZES: [usize; 5] = [1_000, 2_000, 4_000, 8_000, 16_000];

/// The maximum, unless `--sizes` has only larger sizes.
const MOST_RULES: usize = 16_000;

/// Numbers of rules of a quick reproduction.
const FEW_SIZES: [usize; 2] = [1_000, 4_000];

/// The engines whose tables or partitions are counted: both forms of TupleMerge, and
/// PartitionSort as in the paper.
const FORMS: [&str; 3] = ["tuplemerge", "tuplemerge-offline", "partition-sort:leaf=1"];

/// The paper's ratios of tables to sets, over all fields and over two fields.
const RATIOS: [f64; 2] = [2.1, 1.68];

/// The numbers of sets and tables over one rule set.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Counted {
    rules: usize,
    all: usize,
    two: usize,
    tables: [usize; 3],
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut sizes = study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES });
    let min_size = *sizes.iter().min().expect("at least one size");
    sizes.retain(|&size| size <= MOST_RULES.max(min_size));
    let profiles = study.profiles.clone();
    study.expect_points(profiles.len() * sizes.len());
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    // counts[line][size] = one number for each profile
    let mut counts = vec![vec![Vec::new(); sizes.len()]; 5];
    for (name, profile) in &profiles {
        for (place, &size) in sizes.iter().enumerate() {
            let point = format!("partitions {name} {size}");
            let counted = study.point(&point, |study| {
                let policy = study.policy(profile, size)?;
                let partitions = sax_pac::partitions(policy.part(PartId::FIRST), &mut NoProgress);
                let partitions = partitions.ok_or_else(|| {
                    Failure::usage(format!(
                        "counting sets of {size} rules of {name} would take more than half a \
                         gigabyte"
                    ))
                    .with_help("--sizes limits the numbers of rules")
                })?;
                let tables = FORMS.map(|form| -> Result<usize, Failure> {
                    let spec = EngineSpec::parse(form).expect("a registered engine");
                    let spec = spec.seeded(0);
                    let built = policy.build(&spec, &Limits::default(), &mut NoProgress)?;
                    Ok(built.part(PartId::FIRST).stats().tables)
                });
                let [online, offline, sorted] = tables;
                Ok(Counted {
                    rules: policy.len(),
                    all: partitions.over_all_fields,
                    two: partitions.over_two_fields,
                    tables: [online?, offline?, sorted?],
                })
            })?;
            let Counted {
                rules,
                all,
                two,
                tables: [online, offline, sorted],
            } = counted;
            rows.push(format!(
                "{name},{rules},{all},{two},{online},{offline},{sorted}"
            ));
            let numbers = [all, two, online, offline, sorted];
            let mut row = vec![name.clone(), size_name(size)];
            row.extend(numbers.map(|number| number.to_string()));
            cells.push(row);
            for (line, number) in counts.iter_mut().zip(numbers) {
                line[place].push(coordinate(number));
            }
        }
    }
    let heading = "profile,rules,over_all_fields,over_two_fields,tuplemerge,tuplemerge_offline,\
                   partition_sort";
    study.write_csv("partitions.csv", heading, &rows)?;
    let names = [
        "SAX-PAC, all fields",
        "SAX-PAC, two fields",
        FORMS[0],
        FORMS[1],
        FORMS[2],
    ];
    let series = names.iter().zip(&counts).map(|(name, counts)| {
        let counted = sizes.iter().zip(counts);
        Series::line(
            name,
            counted.map(|(&size, counts)| (coordinate(size), mean(counts))),
        )
    });
    let series: Vec<Series> = series.collect();
    let chart = Chart {
        title: "Sets without overlaps and tables, mean over profiles ([TM19] Fig. 6)",
        x_label: "rules",
        y_label: "sets or tables",
        log_x: true,
        log_y: true,
    };
    study.draw("partitions.svg", &chart, &series)?;
    // The ratio of tables to sets, as a mean over all rule sets.
    let ratio = |sets: usize| {
        let pairs = counts[2]
            .iter()
            .flatten()
            .zip(counts[sets].iter().flatten());
        mean(
            &pairs
                .map(|(tables, sets)| tables / sets)
                .collect::<Vec<_>>(),
        )
    };
    let ratios = [ratio(0), ratio(1)];
    let claim = |which: usize, paper: &'static str| Claim {
        place: "Fig. 6",
        paper,
        measured: format!("{:.2} times as many, mean over rule sets", ratios[which]),
        verdict: match ratios[which] / RATIOS[which] {
            times if (0.5..=2.0).contains(&times) => Verdict::Holds,
            times => Verdict::InPart(format!("{times:.1} times the paper's ratio")),
        },
    };
    let sets = counts[1].iter().flatten();
    let fewer = counts[4].iter().flatten().zip(sets.clone());
    let fewer = fewer.filter(|(sorted, two)| sorted <= two).count();
    let rule_sets = sets.count();
    let mut columns = vec!["profile", "rules"];
    columns.extend(names);
    Ok(Section {
        title: "Sets of rules without overlaps (Fig. 6)".to_owned(),
        method: "SAX-PAC's sets are chosen greedily, best rule first, as `inspect` counts them; \
                 tables are those of the engines; leaf=1 is PartitionSort as in the paper."
            .to_owned(),
        claims: vec![
            claim(
                0,
                "TupleMerge needs 2.1 times as many tables as SAX-PAC has sets over all fields.",
            ),
            claim(
                1,
                "TupleMerge needs 68 % more tables than SAX-PAC has sets over two fields.",
            ),
            Claim {
                place: "§IV.E",
                paper: "PartitionSort needs fewer partitions than SAX-PAC has sets over two \
                        fields.",
                measured: format!("no more over {fewer} of {rule_sets} rule sets"),
                verdict: Verdict::for_most(fewer, rule_sets, "more over the others"),
            },
        ],
        grids: vec![Grid {
            title: "Sets and tables".to_owned(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            words: 1,
            rows: cells,
        }],
        pictures: vec!["partitions.svg".to_owned()],
    })
}
