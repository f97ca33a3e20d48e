//! Time and memory of building as rule sets grow.

use classyard::{EngineSpec, Limits, NoProgress};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, read_policy, write_policy};
use serde::{Deserialize, Serialize};

use crate::bench::{size_name, timed};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// Default numbers of rules.
const SIZES: [usize; 7] = [10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000];

/// Numbers of rules of a quick reproduction.
const FEW_SIZES: [usize; 3] = [10_000, 20_000, 50_000];

pub(super) const ENGINE: &str = "tuplemerge";

/// Costs of building over the rules of one profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Built {
    rules: usize,
    parse_seconds: f64,
    build_seconds: f64,
    index_bytes: usize,
    bytes: usize,
    tables: usize,
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let mut rows = Vec::new();
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    let mut grid = Grid {
        title: format!("Building {ENGINE}"),
        columns: [
            "profile",
            "rules",
            "parse s",
            "build s",
            "index bytes/rule",
            "all bytes/rule",
            "tables",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows: Vec::new(),
    };
    let profiles = study.profiles.clone();
    study.expect_points(profiles.len() * sizes.len());
    // slopes: bytes a rule at the greatest size divided by bytes a rule at the least size
    let mut slopes = Vec::new();
    for (name, profile) in &profiles {
        let (mut time, mut size) = (Vec::new(), Vec::new());
        for &rules in &sizes {
            let point = format!("growth {name} {rules}");
            let built = study.point(&point, |study| {
                let generated = study.policy(profile, rules)?;
                build(name, &generated)
            })?;
            let per_rule = |bytes: usize| coordinate(bytes) / coordinate(built.rules.max(1));
            rows.push(format!(
                "{name},{},{:.4},{:.4},{},{},{}",
                built.rules,
                built.parse_seconds,
                built.build_seconds,
                built.index_bytes,
                built.bytes,
                built.tables
            ));
            grid.rows.push(vec![
                name.clone(),
                size_name(rules),
                format!("{:.3}", built.parse_seconds),
                format!("{:.3}", built.build_seconds),
                format!("{:.1}", per_rule(built.index_bytes)),
                format!("{:.1}", per_rule(built.bytes)),
                built.tables.to_string(),
            ]);
            let seconds = built.parse_seconds + built.build_seconds;
            time.push((coordinate(built.rules), seconds));
            size.push((coordinate(built.rules), coordinate(built.bytes) / 1e6));
        }
        if let [first, .., last] = size.as_slice() {
            slopes.push((last.1 / last.0) / (first.1 / first.0));
        }
        times.push(Series::line(name, time));
        bytes.push(Series::line(name, size));
    }
    let heading = "profile,rules,parse_seconds,build_seconds,index_bytes,bytes,tables";
    study.write_csv("growth.csv", heading, &rows)?;
    let chart = Chart {
        title: "Reading a ClassBench file and building tuplemerge",
        x_label: "rules",
        y_label: "CPU seconds, parsing and building",
        log_x: true,
        log_y: true,
    };
    study.draw("growth.svg", &chart, &times)?;
    let chart = Chart {
        title: "Memory of tuplemerge, rules included",
        x_label: "rules",
        y_label: "megabytes",
        log_x: true,
        log_y: true,
    };
    study.draw("memory.svg", &chart, &bytes)?;
    Ok(Section {
        title: "What building costs as rule sets grow".to_owned(),
        method: "A rule file as ClassBench writes it is read, and tuplemerge is built over its \
                 rules: CPU seconds of one thread, and bytes held."
            .to_owned(),
        claims: vec![claim(slopes)],
        grids: vec![grid],
        pictures: vec!["growth.svg".to_owned(), "memory.svg".to_owned()],
    })
}

/// Returns the claim about memory. `slopes` has a sample for each profile.
pub(super) fn claim(slopes: Vec<f64>) -> Claim {
    Claim::new("§III", "Memory is linear in the number of rules.").part(
        Part::new(
            "bytes a rule: at the greatest size / at the least",
            Threshold::Within(0.5, 2.0),
        )
        .paper(1.0)
        .case(Case::samples("", slopes))
        .picture("memory.svg"),
    )
}

/// Returns the numbers of rules of a reproduction.
pub(super) fn sizes(study: &Study<'_>) -> Vec<usize> {
    study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES })
}

/// Writes rules as a file, reads the file and builds an engine over the rules.
fn build(name: &str, generated: &classyard::Policy) -> Result<Built, Failure> {
    let spec = EngineSpec::parse(ENGINE).expect("a registered engine");
    let spec = spec.seeded(0);
    let mut text = Vec::new();
    write_policy(generated, RuleFormat::Classbench, &mut text)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let text = String::from_utf8(text).expect("the writer writes text");
    let (loaded, parse_seconds) = timed(|| {
        let format = Some(RuleFormat::Classbench);
        read_policy(name, &text, format, None, &ReadOptions::default())
    });
    let policy = loaded?.value;
    let (built, build_seconds) = timed(|| policy.build(&spec, &Limits::default(), &mut NoProgress));
    let built = built?;
    let stats = built.part(classyard::policy::PartId::FIRST).stats();
    Ok(Built {
        rules: policy.len(),
        parse_seconds,
        build_seconds,
        index_bytes: stats.index_bytes,
        bytes: stats.bytes(),
        tables: stats.tables,
    })
}
