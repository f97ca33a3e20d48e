//! [DEC14] Fig. 4 and Table VII: throughput with and without grouping and early
//! termination, and the throughput of an ideal execution.
//!
//! [DEC14]: classyard::papers#dec14

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::equations::{Processor, equation_7_peak};
use super::measure::Lookups;
use super::peak::Peak;
use super::{ENGINE, PAPER_FORM, PLAIN, PLAIN_PAPER_FORM, Study, TOGETHER, model};
use crate::bench::{Spread, size_name};
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::coordinate;

/// The engines of the figure: both forms, each with and without both optimisations.
pub(super) const ENGINES: [(&str, &str); 4] = [
    (ENGINE, "lists, optimised"),
    (PLAIN, "lists, not optimised"),
    (PAPER_FORM, "share=0, optimised"),
    (PLAIN_PAPER_FORM, "share=0, not optimised"),
];

/// Grouping alone, and early termination alone.
const GROUPED: &str = "decomposition:share=0:stop=off";
const STOPPING: &str = "decomposition:share=0:group=off";

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let rules = study.dec14_rules();
    let threads = study.dec14_threads();
    study.expect_points(ENGINES.len() + 3 + threads.len() + 1);
    let mut measured: Vec<(&str, Lookups)> = Vec::new();
    for (engine, _) in ENGINES {
        measured.push((engine, study.dec14_lookups(engine, rules)?));
    }
    for engine in [GROUPED, STOPPING] {
        measured.push((engine, study.dec14_lookups(engine, rules)?));
    }
    let wrong = measured.iter().map(|(_, lookups)| lookups.wrong).sum();
    let lookups_of = |engine: &str| {
        let entry = measured.iter().find(|(name, _)| *name == engine);
        &entry.expect("an engine that was measured").1
    };
    let mut series = Vec::new();
    let mut lines = Vec::new();
    for (engine, name) in ENGINES {
        let points = TOGETHER.iter().zip(&lookups_of(engine).ns);
        let points: Vec<(f64, f64)> = points
            .map(|(&together, ns)| (coordinate(together), 1e3 / ns))
            .collect();
        lines.extend(
            points
                .iter()
                .map(|(together, rate)| format!("{rules},{engine},{together},1,{rate:.4}")),
        );
        let mark = if engine.contains("stop=off") {
            Mark::Cross
        } else {
            Mark::Circle
        };
        let colour = if engine.contains("share=0") {
            "paper"
        } else {
            "lists"
        };
        series.push(Series::marked(name, colour, mark, points));
    }
    let (mut scaling, mut scaling_cases) = (Vec::new(), Vec::new());
    for &count in threads.iter().filter(|&&count| count > 1) {
        let parallel = study.dec14_parallel(ENGINE, rules, count)?;
        let case = format!("{count} cores");
        if parallel.objection.is_some() {
            scaling_cases.push(Case::missing(case, super::NO_PROCESSORS));
            continue;
        }
        let shares = parallel
            .ratios
            .iter()
            .map(|ratio| ratio / coordinate(count));
        scaling_cases.push(Case::samples(case, shares));
        let ratio = Spread::of(&parallel.ratios).map_or(0.0, |spread| spread.median);
        scaling.push((count, ratio, parallel.rate));
        let rate = parallel.rate / 1e6;
        lines.push(format!("{rules},{ENGINE},256,{count},{rate:.4}"));
    }
    let peak = Peak::of(study, lookups_of(ENGINE))?;
    if let Some(rate) = peak.million_a_second() {
        let ends = [TOGETHER[0], TOGETHER[TOGETHER.len() - 1]].map(coordinate);
        series.push(Series::marked(
            "peak of an ideal execution",
            "peak",
            Mark::Plus,
            ends.map(|end| (end, rate)),
        ));
    }
    study.write_csv(
        "throughput.csv",
        "rules,engine,together,threads,million_headers_per_second",
        &lines,
    )?;
    let chart = Chart {
        title: "Headers looked up together on one core ([DEC14] Fig. 4)",
        x_label: "headers together",
        y_label: "million headers a second",
        log_x: true,
        log_y: true,
    };
    study.add_paper("throughput.svg", &paper_values(), &mut series);
    study.draw("throughput.svg", &chart, &series)?;
    let mut section = Section {
        title: "Throughput, optimisations and peak (Fig. 4, Table VII)".to_owned(),
        method: format!(
            "{} rules, one core, except for threads, whose rates are headers per second of elapsed \
             time. Not optimised is group=off:stop=off. \
             share=0 is the form of the paper: all rules in vectors, over all fields. {}",
            size_name(rules),
            peak.method()
        ),
        claims: Vec::new(),
        grids: vec![
            rates_grid(&measured, rules),
            operations_grid(lookups_of(ENGINE), lookups_of(PAPER_FORM)),
            threads_grid(&scaling),
            peak.grid(),
        ],
        pictures: vec!["throughput.svg".to_owned()],
    };
    section.claims = claims(lookups_of, scaling_cases, peak.claim());
    super::wrong_answers(&mut section, wrong);
    Ok(section)
}

/// The paper's clock rate in GHz, cores, and instructions: in a cycle, and of the best
/// lookup (§V.A, §V.E).
const PAPER_GHZ: f64 = 2.4;
const PAPER_CORES: f64 = 16.0;
const PAPER_INSTRUCTIONS_PER_CYCLE: f64 = 4.0;
const PAPER_BEST_INSTRUCTIONS: f64 = 2_275.0;

/// Returns the values of Fig. 4 that the text has, of the AMD processors.
pub(super) fn paper_values() -> PaperValues {
    let processor = Processor {
        clock_ghz: PAPER_GHZ,
        instructions_per_cycle: PAPER_INSTRUCTIONS_PER_CYCLE,
        cores: PAPER_CORES,
        word_bits: 64.0,
    };
    let peak = equation_7_peak(PAPER_BEST_INSTRUCTIONS, &processor) / 1e6;
    PaperValues::new(
        "33 million packets a second stated in §V.E for 32k rules, and the peak by eq. 7 with the \
         numbers of §V.A and §V.E",
    )
    .on(super::MACHINES)
    .curve(
        "optimised, all cores",
        "paper",
        [(super::PAPER_TOGETHER, super::PAPER_MPPS)],
    )
    .level("peak, all cores", "peak", peak)
}

/// The gap of claims about the paper's processor.
const SIXTEEN_CORES: Gap = Gap::NotRun("sixteen cores");

/// Returns the claims; without lookups, none is measured.
pub(super) fn claims<'a>(
    lookups_of: impl Fn(&str) -> &'a Lookups,
    scaling: Vec<Case>,
    peak: Claim,
) -> Vec<Claim> {
    // The time without optimisations over the time with them, for each pass.
    let speed_up = |name, plain: &str, optimised: &str| {
        let pairs = lookups_of(plain).batch_passes().iter();
        let pairs = pairs.zip(lookups_of(optimised).batch_passes());
        Case::samples(name, pairs.map(|(plain, optimised)| plain / optimised))
    };
    vec![
        Claim::new(
            "Fig. 4",
            "Grouping and early termination make classification up to 1.5 times as fast.",
        )
        .part(
            Part::new(
                "time of a lookup, without / with optimisations",
                Threshold::AtLeast(1.5),
            )
            .paper(1.5)
            .case(speed_up(
                "share=0, as in the paper",
                PLAIN_PAPER_FORM,
                PAPER_FORM,
            ))
            .case(speed_up("with lists, our default", PLAIN, ENGINE))
            .picture("throughput.svg"),
        ),
        Claim::new(
            "§V.E",
            "Grouping shortens the search of fifteen fields by nearly half, and early termination \
             saves memory accesses, above all with many rules.",
        )
        .part(
            Part::new(
                "time of a lookup with share=0, without / with one optimisation",
                Threshold::Above(1.0),
            )
            .case(speed_up("grouping", PLAIN_PAPER_FORM, GROUPED))
            .case(speed_up("early termination", PLAIN_PAPER_FORM, STOPPING))
            .picture("throughput.svg"),
        ),
        peak,
        Claim::new(
            "Fig. 4, §VI",
            "33 million packets a second with 32 K rules on sixteen cores.",
        )
        .unmeasured(
            "million headers a second",
            Threshold::AtLeast(super::PAPER_MPPS),
            SIXTEEN_CORES,
        ),
        Claim::new("§V.E", "Throughput is scalable with the number of cores.").part(
            Part::new(
                "headers a second, all cores / one core, over the number of cores",
                Threshold::AtLeast(0.95),
            )
            .cases(scaling),
        ),
    ]
}

fn rates_grid(measured: &[(&str, Lookups)], rules: usize) -> Grid {
    let rows = measured.iter().map(|(engine, lookups)| {
        let last = lookups.ns[TOGETHER.len() - 1];
        let count = |name: &str| format!("{:.1}", model::count(&lookups.counts, name));
        vec![
            (*engine).to_owned(),
            format!("{:.2}", 1e3 / lookups.ns[0]),
            format!("{:.2}", 1e3 / last),
            format!("{last:.0}"),
            count("blocks of vectors a lookup"),
            count("rules compared a lookup"),
            format!("{:.1}", coordinate(lookups.bytes) / 1e6),
        ]
    });
    Grid {
        title: format!("Lookups over {} rules", size_name(rules)),
        columns: [
            "engine",
            "M/s one by one",
            "M/s in batches",
            "ns in batches",
            "blocks joined",
            "rules compared",
            "MB",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows: rows.collect(),
    }
}

/// Returns the counterpart of Table VII, with the frequency of each operation.
fn operations_grid(lists: &Lookups, paper_form: &Lookups) -> Grid {
    let operation = |name: &str, paper: &str, price: &str, times: &str| {
        let count = |lookups: &Lookups| model::count(&lookups.counts, times);
        vec![
            name.to_owned(),
            paper.to_owned(),
            format!("{:.0}", model::count(&lists.counts, price)),
            format!("{:.2}", count(lists)),
            format!("{:.2}", count(paper_form)),
        ]
    };
    Grid {
        title: "Instructions of each operation (Table VII), and how often a lookup does it"
            .to_owned(),
        columns: [
            "operation",
            "the paper",
            "here",
            "times a lookup",
            "with share=0",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows: vec![
            operation(
                "search a tree level",
                "23",
                "instructions of a tree node",
                "range tree nodes a lookup",
            ),
            operation(
                "search a hash table",
                "76",
                "instructions of a hash table",
                "hash tables a lookup",
            ),
            operation(
                "search a table of all values",
                "-",
                "instructions of a table",
                "tables of all values a lookup",
            ),
            operation(
                "merge a block of all vectors",
                "115",
                "instructions of a step",
                "joining steps a lookup",
            ),
            operation(
                "look at a tag",
                "-",
                "instructions of an entry",
                "entries a lookup",
            ),
            operation(
                "compare a rule",
                "-",
                "instructions of a comparison",
                "rules compared a lookup",
            ),
        ],
    }
}

fn threads_grid(scaling: &[(usize, f64, f64)]) -> Grid {
    let rows = scaling.iter().map(|(threads, ratio, rate)| {
        vec![
            threads.to_string(),
            format!("{:.2}", rate / 1e6),
            format!("{ratio:.3}"),
        ]
    });
    Grid {
        title: "Threads that share one structure".to_owned(),
        columns: ["threads", "M/s together", "times one alone"]
            .map(str::to_owned)
            .to_vec(),
        words: 0,
        rows: rows.collect(),
    }
}
