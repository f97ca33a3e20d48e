//! [TM19] Fig. 2: the number of tables against the number of rules.
//!
//! [TM19]: classyard::papers#tm19

use classyard::{BuildError, EngineSpec, Limits, NoProgress, Policy};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;

use super::coverage::Coverage;
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{coordinate, mean};

/// The paper's engines, and our variants of them.
pub(super) const ENGINES: [&str; 8] = [
    "tss",
    "tss:mask=addresses",
    "tuplemerge",
    "partition-sort:leaf=1",
    "partition-sort",
    "tuplemerge:order=worst-first",
    "tuplemerge-offline",
    "tuplemerge-vpp",
];

/// Indices in [`ENGINES`]: tuple space search over the addresses, as in the paper's
/// simulator; TupleMerge; PartitionSort as in the paper.
const TUPLE_SPACE: usize = 1;
const TUPLE_MERGE: usize = 2;
const PARTITION_SORT: usize = 3;

/// Seeds for which TupleMerge needs the most tables in the paper, and these numbers.
const WORST: [(&str, f64); 2] = [("acl2", 131.0), ("fw1", 53.0)];

/// The paper's maximum of TupleMerge's tables over the other seeds.
const MOST_TABLES: f64 = 38.0;

/// The paper's largest number of rules.
const LARGEST: usize = 256_000;

/// The ratio of tables that we take for "far fewer".
const FAR_FEWER_RATIO: f64 = 2.0;

/// Default numbers of rules, which are the paper's.
pub(super) const SIZES: [usize; 9] = [
    1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000,
];

/// Numbers of rules of a quick reproduction.
const FEW_SIZES: [usize; 3] = [1_000, 4_000, 16_000];

/// Returns the numbers of rules of a reproduction.
pub(super) fn sizes(study: &Study<'_>) -> Vec<usize> {
    study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES })
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let mut rows = Vec::new();
    // counts[engine][size] = one number for each profile
    let mut counts = vec![vec![Vec::new(); sizes.len()]; ENGINES.len()];
    let mut grid = Grid {
        title: "Tables".to_owned(),
        columns: vec!["profile".to_owned(), "rules".to_owned()],
        words: 1,
        rows: Vec::new(),
    };
    grid.columns.extend(ENGINES.map(str::to_owned));
    let profiles = study.profiles.clone();
    study.expect_points(profiles.len() * sizes.len());
    for (name, profile) in &profiles {
        for (size_index, &size) in sizes.iter().enumerate() {
            let point = format!("tables {name} {size}");
            let (rules, tables) = study.point(&point, |study| {
                let policy = study.policy(profile, size)?;
                let tables = ENGINES.map(|engine| -> Result<usize, Failure> {
                    // A fixed seed gives the same numbers of tables in every process.
                    let spec = EngineSpec::parse(engine).expect("a registered engine");
                    let spec = spec.seeded(0);
                    Ok(count(&policy, &spec)?)
                });
                let tables: Result<Vec<usize>, Failure> = tables.into_iter().collect();
                Ok((policy.len(), tables?))
            })?;
            let mut cells = vec![name.clone(), size_name(size)];
            for (engine_index, (engine, &tables)) in ENGINES.iter().zip(&tables).enumerate() {
                rows.push(format!("{name},{rules},{engine},{tables}"));
                counts[engine_index][size_index].push(coordinate(tables));
                cells.push(tables.to_string());
            }
            grid.rows.push(cells);
        }
    }
    for (size_index, &size) in sizes.iter().enumerate() {
        let mut cells = vec!["mean".to_owned(), size_name(size)];
        cells.extend(
            counts
                .iter()
                .map(|sizes| format!("{:.1}", mean(&sizes[size_index]))),
        );
        grid.rows.push(cells);
    }
    study.write_csv("tables.csv", "profile,rules,engine,tables", &rows)?;
    let mut series: Vec<Series> = ENGINES
        .iter()
        .zip(&counts)
        .map(|(engine, counts)| {
            let counted = sizes.iter().zip(counts);
            let means = counted.map(|(&size, counts)| (coordinate(size), mean(counts)));
            Series::line(engine, means)
        })
        .collect();
    let chart = Chart {
        title: "Tables against rules, mean over profiles ([TM19] Fig. 2)",
        x_label: "rules",
        y_label: "tables",
        log_x: true,
        log_y: true,
    };
    study.add_paper("tables.svg", &paper_values(), &mut series);
    study.draw("tables.svg", &chart, &series)?;
    let names: Vec<String> = profiles.iter().map(|(name, _)| name.clone()).collect();
    let coverage = Coverage {
        paper_sizes: &SIZES,
        sizes: &sizes,
        names: &names,
    };
    Ok(Section {
        title: "Tables against rules (Fig. 2)".to_owned(),
        method: "Rules are generated from each profile as ClassBench does, and every engine is \
                 built over them; the picture has the mean over profiles. The TSS of the claims is \
                 tss:mask=addresses: the simulator that the paper's authors published has only the \
                 addresses in the masks of tuple space search. The tables of partition-sort are \
                 its partitions; leaf=1 sorts all rules, as in the paper."
            .to_owned(),
        claims: claims(&counts, coverage),
        grids: vec![grid],
        pictures: vec!["tables.svg".to_owned()],
    })
}

/// The paper's mean numbers of tables with its largest number of rules.
const PAPER_TABLES: [(usize, f64); 2] = [(TUPLE_MERGE, 30.0), (PARTITION_SORT, 11.0)];

/// Returns the values of Fig. 2 that the text has.
pub(super) fn paper_values() -> PaperValues {
    let values = PaperValues::new("stated in §IV.B as means for 256k rules");
    PAPER_TABLES
        .iter()
        .fold(values, |values, &(engine, tables)| {
            let name = ENGINES[engine];
            values.curve(name, name, [(coordinate(LARGEST), tables)])
        })
}

/// Returns the number of an engine's tables.
pub(super) fn count(policy: &Policy, engine: &EngineSpec) -> Result<usize, BuildError> {
    let built = policy.build(engine, &Limits::default(), &mut NoProgress)?;
    Ok(built.parts().iter().map(|part| part.stats().tables).sum())
}

/// `counts[engine][size]` has a number for each profile.
pub(super) fn claims(counts: &[Vec<Vec<f64>>], coverage: Coverage<'_>) -> Vec<Claim> {
    let ratios = |a: usize, b: usize| {
        move |place: usize| -> Vec<f64> {
            let pairs = counts[a][place].iter().zip(&counts[b][place]);
            pairs.map(|(a, b)| a / b).collect()
        }
    };
    vec![
        Claim::new(
            "Fig. 2",
            "TupleMerge needs far fewer tables than tuple space search, at every number of rules.",
        )
        .part(
            Part::new("tables, TSS / TM", Threshold::AtLeast(FAR_FEWER_RATIO))
                .cases(coverage.by_size(|_| true, ratios(TUPLE_SPACE, TUPLE_MERGE)))
                .grid("Tables", "mean"),
        ),
        Claim::new(
            "Fig. 2, §IV.B",
            "TupleMerge typically needs a few more partitions than PartitionSort: 30 and 11 on \
             average at 256k rules.",
        )
        .part(
            Part::new("tables, TM / PS", Threshold::Above(1.0))
                .paper(30.0 / 11.0)
                .cases(coverage.by_size(|_| true, ratios(TUPLE_MERGE, PARTITION_SORT)))
                .grid("Tables", "mean"),
        ),
        worst(&counts[TUPLE_MERGE], coverage),
    ]
}

/// The claim about the seeds with the most tables. `counts[size]` has a number of tables
/// for each profile.
fn worst(counts: &[Vec<f64>], coverage: Coverage<'_>) -> Claim {
    let place = coverage.place(LARGEST).filter(|_| coverage.has_seeds());
    let of_seed = |place: usize, seed: &str| {
        let number = coverage.number(seed);
        number.map_or(f64::NAN, |number| counts[place][number])
    };
    // The most tables of the seeds that are not among the worst in the paper.
    let max_other_tables = |place: usize| {
        let seeds = coverage.names.iter().zip(&counts[place]);
        let other_seeds = seeds.filter(|(name, _)| !WORST.iter().any(|(worst, _)| worst == name));
        other_seeds.map(|(_, tables)| *tables).fold(0.0, f64::max)
    };
    let case = |name: &str, value: &dyn Fn(usize) -> f64| match place {
        Some(place) => Case::exact(name, value(place)),
        None => Case::missing(name, Gap::NotRun("all seeds at 256k rules")),
    };
    let mut claim = Claim::new(
        "§IV.B",
        "At 256k rules the worst seeds are ACL2 with 131 tables of TupleMerge and FW1 with 53; the \
         other ten have at most 38.",
    );
    for (seed, paper) in WORST {
        claim = claim.part(
            Part::new(
                format!("tables at 256k, {seed} / the most of the other ten"),
                Threshold::Above(1.0),
            )
            .paper(paper / MOST_TABLES)
            .case(case(seed, &|place| {
                of_seed(place, seed) / max_other_tables(place)
            }))
            .grid("Tables", seed),
        );
    }
    claim.part(
        Part::new(
            "tables at 256k, the most of the other ten",
            Threshold::AtMost(MOST_TABLES),
        )
        .paper(MOST_TABLES)
        .case(case("", &max_other_tables))
        .grid("Tables", ""),
    )
}

#[cfg(test)]
mod tests {
    use classyard_workload::generate::Profile;

    use super::*;

    #[test]
    fn the_worst_seeds_are_the_papers_or_the_claim_fails() {
        let names: Vec<String> = Profile::BUILT_IN.map(str::to_owned).to_vec();
        let verdict = |tables: &[(&str, f64)], sizes: &[usize]| {
            let of_seed = |name: &String| {
                let entry = tables.iter().find(|(seed, _)| seed == name);
                entry.map_or(30.0, |entry| entry.1)
            };
            let counts = vec![names.iter().map(of_seed).collect(); sizes.len()];
            let coverage = Coverage {
                paper_sizes: &SIZES,
                sizes,
                names: &names,
            };
            worst(&counts, coverage).verdict().word()
        };
        let paper = [("acl2", 131.0), ("fw1", 53.0)];
        assert_eq!(verdict(&paper, &SIZES), "holds");
        assert_eq!(verdict(&paper, &[1_000]), "not measured");
        let another = [("acl2", 70.0), ("fw1", 39.0), ("acl4", 60.0)];
        assert_eq!(verdict(&another, &SIZES), "does not hold here");
        let fewer = [("acl2", 70.0), ("fw1", 29.0)];
        assert_eq!(verdict(&fewer, &SIZES), "holds in part");
    }
}
