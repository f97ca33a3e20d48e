//! [DEC14] Fig. 2, Tables V and VI: the time of a lookup against the number of rules, one
//! header at a time, and the model's predictions.
//!
//! [DEC14]: classyard::papers#dec14

use super::measure::Lookups;
use super::model::{self, Fitted, Mode, PAPER_ERROR, error, measured, worked};
use super::{ENGINE, PAPER_FORM, PAPER_LATENCY_NS, Study};
use crate::bench::size_name;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;
use classyard::machine::Machine;
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

/// The number of small rule sets to which the constants are fitted, as in the paper.
const FITTED_SETS: usize = 2;

/// The structures over these rule sets to whose times the constants are fitted: the
/// default form, two other limits on lists, and the form without grouping.
const STRUCTURES: [&str; 4] = [
    ENGINE,
    "decomposition:share=2",
    "decomposition:share=32",
    "decomposition:group=off",
];

/// Sizes between the paper's, for which predictions are only compared with measurements.
const BETWEEN: [usize; 5] = [3_000, 6_000, 12_000, 24_000, 64_000];
const FEW_BETWEEN: [usize; 2] = [3_000, 6_000];

/// The constants, and the data to which they were fitted.
pub(super) struct Model {
    pub(super) machine: Machine,
    pub(super) sizes: Vec<usize>,
    single: Fitted,
    batch: Fitted,
    /// Structures to which the constants were fitted, with their times and counts.
    fits: Vec<(String, Lookups)>,
}

impl Model {
    /// Fits the constants to the smallest rule sets.
    pub(super) fn fit(study: &mut Study<'_>) -> Result<Model, Failure> {
        let mut sizes = study.dec14_sizes();
        sizes.truncate(FITTED_SETS);
        let mut fits = Vec::new();
        study.expect_points(sizes.len() * STRUCTURES.len());
        for &size in &sizes {
            for engine in STRUCTURES {
                let lookups = study.dec14_lookups(engine, size)?;
                fits.push((engine.to_owned(), lookups));
            }
        }
        let machine = Machine::default();
        let fitted = |mode: Mode| {
            let points = fits
                .iter()
                .map(|(_, lookups)| (worked(lookups, mode, &machine), measured(lookups, mode)));
            Fitted::to(&points.collect::<Vec<_>>())
        };
        Ok(Model {
            single: fitted(Mode::Single),
            batch: fitted(Mode::Batch),
            machine,
            sizes,
            fits,
        })
    }

    pub(super) fn constants(&self, mode: Mode) -> Fitted {
        match mode {
            Mode::Single => self.single,
            Mode::Batch => self.batch,
        }
    }

    /// Returns the predicted time of a lookup.
    pub(super) fn predict(&self, lookups: &Lookups, mode: Mode) -> f64 {
        self.constants(mode)
            .predict(worked(lookups, mode, &self.machine))
    }
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let model = Model::fit(study)?;
    let papers = study.dec14_sizes();
    let mut sizes = papers.clone();
    if study.args.sizes.is_empty() {
        let between: &[usize] = if study.args.quick {
            &FEW_BETWEEN
        } else {
            &BETWEEN
        };
        sizes.extend(between);
        sizes.sort_unstable();
    }
    study.expect_points(sizes.len() + papers.len());
    let mut grid = Grid {
        title: "Nanoseconds a lookup, measured and predicted".to_owned(),
        columns: [
            "rules",
            "used to fit",
            "one by one",
            "predicted",
            "error",
            "in batches",
            "predicted",
            "error",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows: Vec::new(),
    };
    let (mut lines, mut predictions, mut wrong) = (Vec::new(), Vec::new(), 0);
    let mut series: [Vec<(f64, f64)>; 4] = Default::default();
    let mut singles = Vec::new();
    for &rules in &sizes {
        let lookups = study.dec14_lookups(ENGINE, rules)?;
        wrong += lookups.wrong;
        let fitted = model.sizes.contains(&rules);
        let mut row = vec![
            size_name(rules),
            if fitted { "yes" } else { "no" }.to_owned(),
        ];
        let mut line = format!("{rules},{fitted}");
        for (mode, column) in [(Mode::Single, 0), (Mode::Batch, 2)] {
            let (measured_ns, predicted) =
                (measured(&lookups, mode), model.predict(&lookups, mode));
            let off = error(predicted, measured_ns);
            if !fitted {
                let passes = match mode {
                    Mode::Single => lookups.single_passes(),
                    Mode::Batch => lookups.batch_passes(),
                };
                let name = format!("{} rules, {mode:?}", size_name(rules));
                predictions.push(Case::samples(name, passes.iter().map(|ns| predicted / ns)));
            }
            row.extend([
                format!("{measured_ns:.1}"),
                format!("{predicted:.1}"),
                format!("{:+.1} %", 100.0 * off),
            ]);
            line.push_str(&format!(",{measured_ns:.2},{predicted:.2},{off:.4}"));
            series[column].push((coordinate(rules), measured_ns));
            series[column + 1].push((coordinate(rules), predicted));
        }
        singles.push((rules, lookups.single_passes().to_vec()));
        grid.rows.push(row);
        lines.push(line);
    }
    let heading = "rules,fitted,single_ns,single_predicted_ns,single_error,batch_ns,\
                   batch_predicted_ns,batch_error";
    study.write_csv("latency.csv", heading, &lines)?;
    let (mut paper_form, mut paper_points) = (Vec::new(), Vec::new());
    for &rules in &papers {
        let lookups = study.dec14_lookups(PAPER_FORM, rules)?;
        wrong += lookups.wrong;
        paper_form.push((rules, lookups.single_passes().to_vec()));
        paper_points.push((coordinate(rules), measured(&lookups, Mode::Single)));
    }
    let [single, single_predicted, batch, batch_predicted] = series;
    let mut charts = vec![
        Series::marked("one by one", "one", Mark::Circle, single),
        Series::marked(
            "one by one, predicted",
            "one",
            Mark::Cross,
            single_predicted,
        ),
        Series::marked("in batches", "batch", Mark::Circle, batch),
        Series::marked(
            "in batches, predicted",
            "batch",
            Mark::Cross,
            batch_predicted,
        ),
        Series::marked("share=0, one by one", "paper", Mark::Square, paper_points),
    ];
    let chart = Chart {
        title: "Time of a lookup against rules ([DEC14] Fig. 2)",
        x_label: "rules",
        y_label: "nanoseconds a header",
        log_x: true,
        log_y: true,
    };
    study.add_paper("latency.svg", &super::paper_latency(), &mut charts);
    study.draw("latency.svg", &chart, &charts)?;
    let mut section = Section {
        title: "Time against rules, and the model (Fig. 2, Tables V and VI)".to_owned(),
        method: format!(
            "Medians of CPU time. The engine counts in its structure what lookups of 256 headers do; \
             what that costs was fitted to rule sets with other seeds; the machine's curves say what \
             a line takes that lies in so many bytes; a factor for either kind of lookup is fitted \
             to {} structures over the {} smallest rule sets and predicts the others. The processor's counters of cache accesses are not to be had \
             by a program: accesses are counted in the structure.",
            model.fits.len(),
            model.sizes.len()
        ),
        claims: Vec::new(),
        grids: vec![grid, fitted_grid(&model), counted_grid(study, &model)?],
        pictures: vec!["latency.svg".to_owned()],
    };
    section.claims = claims(predictions, &singles, &paper_form);
    super::wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns the counterpart of Tables V and VI.
fn fitted_grid(model: &Model) -> Grid {
    let row = |name: &str, mode: Mode| {
        let factor = model.constants(mode).factor;
        vec![name.to_owned(), format!("{factor:.3}")]
    };
    Grid {
        title: "Fitted constants (Tables V and VI)".to_owned(),
        columns: ["lookups", "λ: measured time over the time of the work"]
            .map(str::to_owned)
            .to_vec(),
        words: 1,
        rows: vec![
            row("one by one", Mode::Single),
            row("in batches", Mode::Batch),
        ],
    }
}

/// Returns the engine's counts by part of the structure, and the caches that hold the
/// parts.
fn counted_grid(study: &mut Study<'_>, model: &Model) -> Result<Grid, Failure> {
    let mut rows = Vec::new();
    for rules in study.dec14_sizes() {
        let lookups = study.dec14_lookups(ENGINE, rules)?;
        let levels = model.machine.levels(&model::reads(&lookups.counts));
        let number = |name: &str| format!("{:.1}", model::count(&lookups.counts, name));
        let mut row = vec![size_name(rules), number("instructions a lookup")];
        row.extend(model::lines(&lookups.counts).map(|(_, lines, _)| format!("{lines:.1}")));
        row.extend(levels.caches.map(|lines| format!("{lines:.2}")));
        row.push(format!("{:.2}", levels.memory));
        rows.push(row);
    }
    Ok(Grid {
        title: "Counted for a lookup (V of the paper's eq. 1 to 4)".to_owned(),
        columns: [
            "rules",
            "instructions",
            "lines of searches",
            "of lists",
            "of vectors",
            "of rules",
            "found in L1",
            "in L2",
            "in L3",
            "in memory",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows,
    })
}

/// Times of each pass with one header at a time, for a number of rules.
type Singles = (usize, Vec<f64>);

/// The number of rules of the paper's latency.
const PAPER_RULES: usize = 32_000;

/// Returns the claims; without lookups, none is measured.
pub(super) fn claims(
    predictions: Vec<Case>,
    singles: &[Singles],
    paper_form: &[Singles],
) -> Vec<Claim> {
    let growth = |name, points: &[Singles]| match points {
        [first, .., last] => {
            let times_rules = coordinate(last.0) / coordinate(first.0);
            let pairs = last.1.iter().zip(&first.1);
            Case::samples(name, pairs.map(|(last, first)| last / first / times_rules))
        }
        _ => Case::missing(name, Gap::NotRun("a second number of rules")),
    };
    let of_paper = singles.iter().find(|(rules, _)| *rules == PAPER_RULES);
    let latency = match of_paper {
        Some((_, passes)) => Case::samples("one core", passes.iter().copied()),
        None => Case::missing("one core", Gap::NotRun("32k rules")),
    };
    let table = "Nanoseconds a lookup";
    vec![
        Claim::new(
            "Fig. 2",
            "As the number of rules increases, the latency of a packet increases sublinearly.",
        )
        .part(
            Part::new(
                "times the latency / times the rules, from the fewest rules to the most",
                Threshold::Below(1.0),
            )
            .case(growth("share=0, as in the paper", paper_form))
            .case(growth("with lists, our default", singles))
            .picture("latency.svg"),
        ),
        Claim::new(
            "Fig. 2",
            "Less than 150 ns a packet for up to 32 K rules (on 16 cores, time divided by packets).",
        )
        .part(
            Part::new("ns a packet with 32k rules", Threshold::Below(PAPER_LATENCY_NS))
                .paper(PAPER_LATENCY_NS)
                .case(latency)
                .grid(table, ""),
        ),
        Claim::new(
            "Fig. 2",
            "The predicted latency has an error of less than ±10 %; here the model counts in the \
             structure.",
        )
        .part(
            Part::new(
                "predicted / measured time of rule sets that were not used to fit",
                Threshold::Within(1.0 - PAPER_ERROR, 1.0 + PAPER_ERROR),
            )
            .paper(1.0)
            .cases(predictions)
            .grid(table, ""),
        ),
    ]
}
