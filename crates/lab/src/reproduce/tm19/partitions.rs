//! [TM19] Fig. 6: tables of TupleMerge compared with SAX-PAC's sets.
//!
//! [TM19]: classyard::papers#tm19

use classyard::policy::PartId;
use classyard::{EngineSpec, Limits, NoProgress, Policy};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Part, Section, Threshold};
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
pub(super) const FORMS: [&str; 3] = ["tuplemerge", "tuplemerge-offline", "partition-sort:leaf=1"];

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
    let sizes = sizes(study);
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
                let [all, two] = sets(&policy).map_err(|reason| {
                    Failure::usage(format!("{name}: {reason}"))
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
                    all,
                    two,
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
    study.caption(
        "partitions.svg",
        &format!(
            "The paper has ratios of means: TupleMerge has {} times as many tables as SAX-PAC has \
             sets over all fields, and {} times as many as over two fields (§IV.E).",
            RATIOS[ALL_FIELDS], RATIOS[TWO_FIELDS]
        ),
    );
    study.draw("partitions.svg", &chart, &series)?;
    let profile_names: Vec<String> = profiles.iter().map(|(name, _)| name.clone()).collect();
    let coverage = Coverage {
        paper_sizes: &SIZES,
        sizes: &sizes,
        names: &profile_names,
    };
    let mut columns = vec!["profile", "rules"];
    columns.extend(names);
    Ok(Section {
        title: "Sets of rules without overlaps (Fig. 6)".to_owned(),
        method: "SAX-PAC's sets are chosen greedily, best rule first, as `inspect` counts them; \
                 tables are those of the engines; leaf=1 is PartitionSort as in the paper."
            .to_owned(),
        claims: claims(&counts, coverage),
        grids: vec![Grid {
            title: "Sets and tables".to_owned(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            words: 1,
            rows: cells,
        }],
        pictures: vec!["partitions.svg".to_owned()],
    })
}

/// Returns the numbers of SAX-PAC's sets over all fields and over two fields.
///
/// # Errors
/// The reason why the sets cannot be counted.
pub(super) fn sets(policy: &Policy) -> Result<[usize; 2], String> {
    let mut sums = [0; 2];
    for part in policy.parts() {
        let sets = sax_pac::partitions(part, &mut NoProgress).ok_or_else(|| {
            format!(
                "counting the sets of {} rules would take more than half a gigabyte",
                part.len()
            )
        })?;
        sums[0] += sets.over_all_fields;
        sums[1] += sets.over_two_fields;
    }
    Ok(sums)
}

/// Returns the default numbers of rules of a reproduction, or the user's up to the maximum.
pub(super) fn sizes(study: &Study<'_>) -> Vec<usize> {
    let mut sizes = study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES });
    let min_size = *sizes.iter().min().expect("at least one size");
    sizes.retain(|&size| size <= MOST_RULES.max(min_size));
    sizes
}

/// Indices of lines: SAX-PAC's sets over all fields and over two fields, the tables of
/// TupleMerge, and the partitions of PartitionSort.
const ALL_FIELDS: usize = 0;
const TWO_FIELDS: usize = 1;
const TUPLE_MERGE: usize = 2;
const PARTITION_SORT: usize = 4;

/// `counts[line][size]` has a number for each profile. The sizes of the paper's figure are
/// not in its text, so ours take their place.
pub(super) fn claims(counts: &[Vec<Vec<f64>>], coverage: Coverage<'_>) -> Vec<Claim> {
    let ratios = |a: usize, b: usize, place: usize| -> Vec<f64> {
        let pairs = counts[a][place].iter().zip(&counts[b][place]);
        pairs.map(|(a, b)| a / b).collect()
    };
    let pooled = |a: usize, b: usize| {
        let ratios_of_sizes = (0..coverage.sizes.len()).flat_map(|place| ratios(a, b, place));
        coverage.pooled("", ratios_of_sizes.collect())
    };
    let more = |paper: &'static str, sets: usize, ratio: f64| {
        let compared = format!(
            "tables of TupleMerge / sets of SAX-PAC over {}",
            ["all fields", "two fields"][sets]
        );
        let part = |threshold| {
            Part::new(compared.clone(), threshold)
                .paper(ratio)
                .case(pooled(TUPLE_MERGE, sets))
                .grid("Sets and tables", "")
        };
        Claim::new("Fig. 6", paper)
            .part(part(Threshold::Above(1.0)))
            .part(part(Threshold::Within(ratio * 0.5, ratio * 2.0)))
    };
    let by_size = |place| ratios(PARTITION_SORT, TWO_FIELDS, place);
    vec![
        more(
            "TupleMerge needs 2.1 times as many tables as SAX-PAC has sets over all fields.",
            ALL_FIELDS,
            RATIOS[0],
        ),
        more(
            "TupleMerge needs 68 % more tables than SAX-PAC has sets over two fields.",
            TWO_FIELDS,
            RATIOS[1],
        ),
        Claim::new(
            "§IV.E",
            "PartitionSort needs fewer partitions than SAX-PAC has sets over two fields.",
        )
        .part(
            Part::new(
                "partitions of PartitionSort / sets of SAX-PAC over two fields",
                Threshold::Below(1.0),
            )
            .cases(coverage.by_size(|_| true, by_size))
            .cases(coverage.absent_seeds())
            .grid("Sets and tables", ""),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use classyard_workload::generate::Profile;

    use super::*;

    #[test]
    fn a_reversed_ratio_does_not_hold() {
        let names: Vec<String> = Profile::BUILT_IN.map(str::to_owned).to_vec();
        let words = |tables: f64| {
            // All sizes and profiles have the same numbers.
            let counts = [10.0, 12.0, tables, tables, 11.0];
            let counts = counts.map(|count| vec![vec![count; names.len()]; SIZES.len()]);
            let coverage = Coverage {
                paper_sizes: &SIZES,
                sizes: &SIZES,
                names: &names,
            };
            let claims = claims(&counts, coverage);
            let words = claims.iter().map(|claim| claim.verdict().word());
            words.collect::<Vec<_>>()
        };
        assert_eq!(words(21.0), ["holds", "holds", "holds"]);
        // Fewer tables than sets: the ratio is below 1 and below half of the paper's.
        let reversed = "does not hold here";
        assert_eq!(words(8.0), [reversed, reversed, "holds"]);
        assert_eq!(words(60.0), ["holds in part", "holds in part", "holds"]);
    }
}
