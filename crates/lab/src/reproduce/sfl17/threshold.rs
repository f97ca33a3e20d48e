//! [SFL17] Figs. 7 and 8: headers and changes against δ.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::cases::Kind;
use super::update_claims::{EXPERIMENT_DELTA, paper_cell};
use super::{ROLES, RUN_SECONDS, RunPlan, STATIC, Study, buffered, wrong_answers};
use crate::reproduce::claims::{
    Case, Claim, Gap, Grid, MIN_READER_SHARE, Part, Section, Threshold,
};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{Mean, coordinate};

/// The values of δ of a quick reproduction.
const QUICK_DELTAS: [usize; 5] = [0, 5, 10, 20, 100];

/// Changes in a run of any length.
pub(super) const CHANGES_PER_RUN: usize = 100;

/// Seconds of the paper's runs.
const PAPER_SECONDS: [f64; 2] = [10.0, 25.0];

/// The greatest δ for which an update buffer never costs headers in the paper.
const NEVER_SLOWER: usize = 10;

/// The measured values of one point, one for each rule set.
#[derive(Clone, Debug, Default)]
struct Sampled {
    /// Millions of headers.
    headers: Vec<f64>,
    /// Changes made.
    changes: Vec<f64>,
    rebuilds: Vec<usize>,
    /// The least share of its processor's time that a reader had.
    reader_share: f64,
}

/// The values of one engine, one kind of changes and one length of runs.
struct Curve {
    inner: &'static str,
    kind: Kind,
    /// Seconds of the paper's runs.
    seconds: f64,
    /// The engine without a buffer.
    plain: Sampled,
    /// Values for each δ.
    buffered: Vec<(usize, Sampled)>,
    /// Changes issued in each run.
    issued: f64,
}

/// Draws both figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let deltas: Vec<usize> = match study.args.quick {
        true => QUICK_DELTAS.to_vec(),
        false => (0..=100).step_by(5).collect(),
    };
    let durations: &[f64] = if study.args.quick {
        &PAPER_SECONDS[..1]
    } else {
        &PAPER_SECONDS
    };
    let engines = Kind::BOTH.len() * STATIC.len() * durations.len();
    study.expect_points(engines * (deltas.len() + 1) * study.sets());
    let mut section = Section {
        title: "The threshold δ (Figs. 7 and 8)".to_owned(),
        method: format!(
            "{} rules at the beginning, {} rule sets for each point, 90 % confidence intervals, \
             {CHANGES_PER_RUN} changes in runs of {} s{}. {ROLES}",
            study.sizes(&[super::DEFAULT_RULES])[0],
            study.sets(),
            durations
                .iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
                .join(" and "),
            study.shortened(RUN_SECONDS)
        ),
        claims: Vec::new(),
        grids: Vec::new(),
        pictures: Vec::new(),
    };
    let (mut rows, mut wrong) = (Vec::new(), 0);
    let mut curves = Vec::new();
    for &seconds in durations {
        for kind in Kind::BOTH {
            let (mut header_lines, mut change_lines) = (Vec::new(), Vec::new());
            let mut table = Vec::new();
            for inner in STATIC {
                let curve = measure(study, inner, kind, seconds, &deltas, &mut rows, &mut wrong)?;
                let lines = lines(inner, &curve);
                header_lines.extend(lines.0);
                change_lines.extend(lines.1);
                table.extend(table_rows(inner, &curve));
                curves.push(curve);
            }
            for (what, label, mut lines) in [
                ("headers", "million headers", header_lines),
                ("changes", "changes made", change_lines),
            ] {
                let title = format!(
                    "{} against δ, {} in {seconds} s ([SFL17] Figs. 7-8)",
                    if what == "headers" {
                        "Headers"
                    } else {
                        "Changes made"
                    },
                    kind.name()
                );
                let chart = Chart {
                    title: &title,
                    x_label: "δ",
                    y_label: label,
                    log_x: false,
                    log_y: false,
                };
                let name = format!("threshold-{}-{seconds}-{what}.svg", kind.name());
                let share = match what {
                    "headers" => study.run_seconds() / RUN_SECONDS,
                    _ => coordinate(study.issued(CHANGES_PER_RUN)) / coordinate(CHANGES_PER_RUN),
                };
                match paper_values(kind, seconds, what, share) {
                    Some(values) => study.add_paper(&name, &values, &mut lines),
                    None => study.caption(&name, NO_NUMBERS),
                }
                study.draw(&name, &chart, &lines)?;
                section.pictures.push(name);
            }
            section.grids.push(Grid {
                title: format!("{CHANGES_PER_RUN} {} in {seconds} s", kind.name()),
                columns: [
                    "engine",
                    "δ",
                    "million headers",
                    "changes made",
                    "fewest rebuilds of a run",
                ]
                .map(str::to_owned)
                .to_vec(),
                words: 1,
                rows: table,
            });
        }
    }
    let heading = "kind,engine,delta,seconds,set,headers,made,rebuilds";
    study.write_csv("threshold.csv", heading, &rows)?;
    section.claims = claims(&curves);
    wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns engines without a buffer and with a buffer for each δ of a quick reproduction.
pub(super) fn engines() -> Vec<String> {
    let engines = STATIC.iter().flat_map(|inner| {
        let with_buffer = QUICK_DELTAS.map(|delta| buffered(inner, delta));
        std::iter::once((*inner).to_owned()).chain(with_buffer)
    });
    engines.collect()
}

/// Returns the claims without measurements, for a run with own inputs.
pub(super) fn unmeasured_claims() -> Vec<Claim> {
    claims(&[])
}

/// The published form of `sfl` is not run in these figures.
const PUBLISHED: Gap = Gap::NotRun("the published form (form=paper) against δ");

/// A δ that the paper finds good for all engines, and the largest one.
const GOOD_DELTA: usize = 10;
const LARGEST_DELTA: usize = 100;

impl Curve {
    fn label(&self) -> String {
        let (inner, kind, seconds) = (self.inner, self.kind.name(), self.seconds);
        format!("{inner}, {kind} in {seconds} s")
    }

    /// Returns the values for a δ, or the reason why they cannot support a claim.
    fn at(&self, delta: usize) -> Result<&Sampled, Gap> {
        let sampled = self.buffered.iter().find(|(other, _)| *other == delta);
        let Some((_, sampled)) = sampled else {
            return Err(Gap::NotRun("left out"));
        };
        // The paper's runs rebuild if more than δ of their changes are made.
        match CHANGES_PER_RUN > delta && sampled.rebuilds.contains(&0) {
            true => Err(Gap::NoRebuild),
            false => with_share(sampled),
        }
    }

    /// Returns the ratios of the values of a δ to other values, one for each rule set.
    fn ratio(
        &self,
        delta: usize,
        other: Result<&Sampled, Gap>,
        values: fn(&Sampled) -> &[f64],
    ) -> Case {
        let name = format!("{}, δ = {delta}", self.label());
        match (self.at(delta), other) {
            (Ok(own), Ok(other)) => {
                let pairs = values(own).iter().zip(values(other));
                Case::samples(name, pairs.map(|(own, other)| own / other))
            }
            (Err(gap), _) | (_, Err(gap)) => Case::missing(name, gap),
        }
    }
}

/// Returns values if the reader had enough of its processor's time.
fn with_share(sampled: &Sampled) -> Result<&Sampled, Gap> {
    match sampled.reader_share < MIN_READER_SHARE {
        true => Err(Gap::ReaderShare(sampled.reader_share)),
        false => Ok(sampled),
    }
}

const HEADERS: fn(&Sampled) -> &[f64] = |sampled| &sampled.headers;
const CHANGES_MADE: fn(&Sampled) -> &[f64] = |sampled| &sampled.changes;

fn claims(curves: &[Curve]) -> Vec<Claim> {
    let against_plain = |is_wanted: fn(usize) -> bool, values| {
        let mut cases = Vec::new();
        for curve in curves {
            let deltas = curve.buffered.iter().map(|(delta, _)| *delta);
            for delta in deltas.filter(|&delta| is_wanted(delta)) {
                cases.push(curve.ratio(delta, with_share(&curve.plain), values));
            }
        }
        add_absent(cases, curves)
    };
    vec![
        Claim::new(
            "Fig. 7",
            "For δ ≤ 10 engines with an update buffer always classify more headers than without.",
        )
        .part(
            Part::new("headers: with / without", Threshold::Above(1.0))
                .cases(against_plain(|delta| delta <= NEVER_SLOWER, HEADERS))
                .grid("100 insertions", ""),
        ),
        complete(curves),
        Claim::new(
            "Fig. 8",
            "SFL(HyperSplit) and SFL(RFC) need a δ of 10 and 50 to make all changes.",
        )
        .unmeasured(
            "the least δ with which no change is late",
            Threshold::Within(10.0, 50.0),
            PUBLISHED,
        ),
        Claim::new(
            "Fig. 8",
            "For δ > 0 engines with an update buffer always make at least as many changes as \
             without.",
        )
        .part(
            Part::new("changes made: with / without", Threshold::AtLeast(1.0))
                .cases(against_plain(|delta| delta > 0, CHANGES_MADE))
                .grid("100 insertions", ""),
        ),
        too_large(curves),
    ]
}

/// Adds the cases of the paper that no run has: its published form, and its runs of 25 s if
/// they were left out.
fn add_absent(mut cases: Vec<Case>, curves: &[Curve]) -> Vec<Case> {
    cases.push(Case::missing("published form", PUBLISHED));
    for seconds in PAPER_SECONDS {
        let is_run = |curve: &Curve| (curve.seconds - seconds).abs() < f64::EPSILON;
        if !curves.iter().any(is_run) {
            let name = format!("runs of {seconds} s");
            cases.push(Case::missing(name, Gap::NotRun("left out")));
        }
    }
    cases
}

fn complete(curves: &[Curve]) -> Claim {
    let mut cases = Vec::new();
    for curve in curves.iter().filter(|curve| curve.inner == "bit-vector") {
        for &(delta, _) in &curve.buffered {
            let name = format!("{}, δ = {delta}", curve.label());
            cases.push(match curve.at(delta) {
                Ok(own) => Case::samples(name, own.changes.iter().map(|made| made / curve.issued)),
                Err(gap) => Case::missing(name, gap),
            });
        }
    }
    Claim::new(
        "Fig. 8",
        "SFL(bit vector) makes all changes, whatever δ is.",
    )
    .part(
        Part::new("changes: made / issued", Threshold::AtLeast(1.0))
            .paper(1.0)
            .cases(add_absent(cases, curves))
            .grid("100 insertions", ""),
    )
}

fn too_large(curves: &[Curve]) -> Claim {
    let fallen = curves
        .iter()
        .map(|curve| curve.ratio(LARGEST_DELTA, curve.at(GOOD_DELTA), HEADERS));
    let below_plain = curves
        .iter()
        .map(|curve| curve.ratio(LARGEST_DELTA, with_share(&curve.plain), HEADERS));
    let below_plain: Vec<Case> = below_plain.collect();
    Claim::new(
        "Fig. 7",
        "If δ is too large, fewer headers are classified, in the end even fewer than without an \
         update buffer; this is clearest for bit vectors.",
    )
    .part(
        Part::new("headers: δ = 100 / δ = 10", Threshold::Below(1.0))
            .cases(add_absent(fallen.collect(), curves))
            .grid("100 insertions", ""),
    )
    .part(
        Part::new(
            "headers: δ = 100 / without an update buffer",
            Threshold::Below(1.0),
        )
        .cases(below_plain)
        .grid("100 insertions", ""),
    )
}

/// The least δ for which all changes are made in 10 s in the paper (§V.D).
const COMPLETE_DELTAS: [(&str, usize); 2] = [("hyper-split", 10), ("rfc", 50)];

/// The caption of pictures for which the text has no number.
const NO_NUMBERS: &str =
    "The paper draws the same quantity in Fig. 7 and states no number for 25 s.";

/// Returns values of Figs. 7 and 8 that Table II and §V.D have, times a share: the length of
/// a run over the paper's, or the issued changes over the paper's. `what` is `headers` or
/// `changes`.
pub(super) fn paper_values(
    kind: Kind,
    seconds: f64,
    what: &str,
    share: f64,
) -> Option<PaperValues> {
    let issued = coordinate(CHANGES_PER_RUN);
    if seconds > RUN_SECONDS {
        let values = PaperValues::new("all changes, stated in §V.D for bit vectors");
        let level =
            |values: PaperValues| values.level("sfl(bit-vector)", "bit-vector", issued * share);
        return (what == "changes").then(|| level(values.on(super::MACHINE)));
    }
    let mut values = PaperValues::new(
        "from Table II, which has δ = 20 and engines without a buffer, and from §V.D the least δ \
         with which all changes are made; for runs of 10 s, times the length of these runs",
    )
    .on(super::MACHINE);
    for inner in STATIC {
        let pick = |engine: &str| {
            let (headers, made) = paper_cell(engine, kind, CHANGES_PER_RUN)?;
            Some(if what == "headers" { headers } else { made } * share)
        };
        let name = format!("sfl({inner})");
        let (buffered, plain) = (pick(&name)?, pick(inner)?);
        let mut points = vec![(coordinate(EXPERIMENT_DELTA), buffered)];
        let complete = COMPLETE_DELTAS.iter().find(|(other, _)| *other == inner);
        if let Some((_, delta)) = complete.filter(|_| what == "changes") {
            points.push((coordinate(*delta), issued * share));
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        values = values
            .curve(&name, inner, points)
            .level(inner, inner, plain);
    }
    Some(values)
}

#[allow(clippy::too_many_arguments)] // two of them collect values for the whole figure
fn measure(
    study: &mut Study<'_>,
    inner: &'static str,
    kind: Kind,
    seconds: f64,
    deltas: &[usize],
    rows: &mut Vec<String>,
    wrong: &mut usize,
) -> Result<Curve, Failure> {
    let mut sampled = |engine: &str, delta: &str| -> Result<Sampled, Failure> {
        let mut sampled = Sampled {
            reader_share: f64::INFINITY,
            ..Sampled::default()
        };
        for set in 0..study.sets() {
            let outcome = study.simulated(&RunPlan {
                engine,
                kind,
                changes: CHANGES_PER_RUN,
                paper_seconds: seconds,
                set,
            })?;
            *wrong += outcome.wrong;
            rows.push(format!(
                "{},{inner},{delta},{seconds},{set},{},{},{}",
                kind.name(),
                outcome.headers,
                outcome.changes,
                outcome.rebuilds
            ));
            #[allow(clippy::cast_precision_loss)] // far below 2^52
            sampled.headers.push(outcome.headers as f64 / 1e6);
            sampled.changes.push(coordinate(outcome.changes));
            sampled.rebuilds.push(outcome.rebuilds);
            sampled.reader_share = outcome.reader_share.min(sampled.reader_share);
        }
        Ok(sampled)
    };
    let plain = sampled(inner, "none")?;
    let mut with_buffer = Vec::new();
    for &delta in deltas {
        with_buffer.push((delta, sampled(&buffered(inner, delta), &delta.to_string())?));
    }
    Ok(Curve {
        inner,
        kind,
        seconds,
        plain,
        buffered: with_buffer,
        issued: coordinate(study.issued(CHANGES_PER_RUN)),
    })
}

/// Returns lines of headers and of changes: with a buffer, and horizontal lines without.
fn lines(inner: &str, curve: &Curve) -> (Vec<Series>, Vec<Series>) {
    let pick = |values: fn(&Sampled) -> &[f64]| {
        let points = || {
            let points = curve.buffered.iter();
            points.map(|(delta, sampled)| (coordinate(*delta), Mean::of(values(sampled))))
        };
        let name = format!("sfl({inner})");
        let means = points().map(|(x, mean)| (x, mean.mean));
        let mut series = Series::marked(&name, inner, Mark::Square, means);
        let bands = points().map(|(x, mean)| {
            let (low, high) = mean.interval();
            (x, low, high)
        });
        series.band = bands.collect();
        let plain = Mean::of(values(&curve.plain)).mean;
        let level = points().map(|(x, _)| (x, plain));
        vec![series, Series::marked(inner, inner, Mark::Circle, level)]
    };
    (pick(HEADERS), pick(CHANGES_MADE))
}

fn table_rows(inner: &str, curve: &Curve) -> Vec<Vec<String>> {
    let row = |engine: String, delta: String, sampled: &Sampled| {
        vec![
            engine,
            delta,
            format!("{:.2}", Mean::of(&sampled.headers)),
            format!("{:.1}", Mean::of(&sampled.changes)),
            sampled
                .rebuilds
                .iter()
                .min()
                .copied()
                .unwrap_or(0)
                .to_string(),
        ]
    };
    let mut rows = vec![row(inner.to_owned(), String::new(), &curve.plain)];
    for (delta, sampled) in &curve.buffered {
        rows.push(row(format!("sfl({inner})"), delta.to_string(), sampled));
    }
    rows
}
