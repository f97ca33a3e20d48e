//! [SFL17] Figs. 7 and 8: headers and changes against δ.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::cases::Kind;
use super::threshold_claims::{
    self, CHANGES_MADE, CHANGES_PER_RUN, Curve, DELTA_STEP, HEADERS, LARGEST_DELTA, PAPER_SECONDS,
    PaperPoint, Sampled, paper_point,
};
use super::{Form, ROLES, RUN_SECONDS, RunPlan, STATIC, Study, wrong_answers};
use crate::reproduce::claims::{Claim, Grid, Section};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{Mean, coordinate};

/// The values of δ of a quick reproduction.
const QUICK_DELTAS: [usize; 5] = [0, 5, 10, 20, 100];

/// The values of δ of our form. The paper names 10, 20 and 50 (§V.C and §V.D); with its other
/// values, a full reproduction would take 25 hours, not 16.
const OUR_DELTAS: [usize; 6] = [0, 5, 10, 20, 50, 100];

/// Draws both figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let durations: &[f64] = if study.args.quick {
        &PAPER_SECONDS[..1]
    } else {
        &PAPER_SECONDS
    };
    let runs_of_engine = Form::BOTH.map(|form| deltas(form, study.args.quick).len());
    let runs_of_engine = 1 + runs_of_engine.iter().sum::<usize>();
    let engines = Kind::BOTH.len() * STATIC.len() * durations.len();
    study.expect_points(engines * runs_of_engine * study.sets());
    let mut section = Section {
        title: "The threshold δ (Figs. 7 and 8)".to_owned(),
        method: method(study, durations),
        claims: Vec::new(),
        grids: Vec::new(),
        pictures: Vec::new(),
    };
    let mut runs = Runs::default();
    let mut curves = Vec::new();
    for &seconds in durations {
        for kind in Kind::BOTH {
            let mut of_kind = Vec::new();
            for inner in STATIC {
                of_kind.push(measure(study, inner, kind, seconds, &mut runs)?);
            }
            draw_kind(study, &of_kind, kind, seconds, &mut section)?;
            section.grids.push(grid(&of_kind, kind, seconds));
            curves.extend(of_kind.into_iter().flatten());
        }
    }
    let heading = "kind,engine,form,delta,seconds,set,headers,issued,made,rebuilds,reader_share";
    study.write_csv("threshold.csv", heading, &runs.rows)?;
    section.claims = threshold_claims::claims(&curves);
    wrong_answers(&mut section, runs.wrong);
    Ok(section)
}

/// Returns the values of δ for a form, ascending. The published form has the paper's values.
fn deltas(form: Form, is_quick: bool) -> Vec<usize> {
    match (is_quick, form) {
        (true, _) => QUICK_DELTAS.to_vec(),
        (false, Form::Published) => (0..=LARGEST_DELTA).step_by(DELTA_STEP).collect(),
        (false, Form::Ours) => OUR_DELTAS.to_vec(),
    }
}

fn method(study: &Study<'_>, durations: &[f64]) -> String {
    let durations: Vec<String> = durations.iter().map(f64::to_string).collect();
    let fewer_deltas = match study.args.quick {
        true => "",
        false => " It has fewer values of δ.",
    };
    format!(
        "{} rules at the beginning, {} rule sets for each point, 90 % confidence intervals, \
         {CHANGES_PER_RUN} changes in runs of {} s{}. The published form (form=paper) rebuilds \
         within the change that exceeds δ, so the changes after it wait. Both copies of its live \
         table rebuild, one after the other. Our form is rebuilt while changes continue.\
         {fewer_deltas} {ROLES} The paper's values are from Table II, which has δ = 20, and from \
         the text about Fig. 8.",
        study.sizes(&[super::DEFAULT_RULES])[0],
        study.sets(),
        durations.join(" and "),
        study.shortened(RUN_SECONDS)
    )
}

/// Returns engines without a buffer, and both forms for each δ of a quick reproduction.
pub(super) fn engines() -> Vec<String> {
    let engines = STATIC.iter().flat_map(|inner| {
        let forms = Form::BOTH.into_iter().flat_map(move |form| {
            let deltas = deltas(form, true).into_iter();
            deltas.map(move |delta| form.engine(inner, delta))
        });
        std::iter::once((*inner).to_owned()).chain(forms)
    });
    engines.collect()
}

/// Returns the claims without measurements, for a run with own inputs.
pub(super) fn unmeasured_claims() -> Vec<Claim> {
    threshold_claims::claims(&[])
}

/// The runs of the whole figure.
#[derive(Default)]
struct Runs {
    /// Rows of the CSV file.
    rows: Vec<String>,
    /// Wrong answers.
    wrong: usize,
}

/// Measures one engine without a buffer, and with the buffer of each form.
fn measure(
    study: &mut Study<'_>,
    inner: &'static str,
    kind: Kind,
    seconds: f64,
    runs: &mut Runs,
) -> Result<[Curve; 2], Failure> {
    let issued = study.issued(CHANGES_PER_RUN);
    let is_quick = study.args.quick;
    let mut sampled = |engine: &str, form: &str, delta: &str| -> Result<Sampled, Failure> {
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
            runs.wrong += outcome.wrong;
            runs.rows.push(format!(
                "{},{inner},{form},{delta},{seconds},{set},{},{issued},{},{},{:.3}",
                kind.name(),
                outcome.headers,
                outcome.changes,
                outcome.rebuilds,
                outcome.reader_share
            ));
            #[allow(clippy::cast_precision_loss)] // far below 2^52
            sampled.headers.push(outcome.headers as f64 / 1e6);
            sampled.changes.push(coordinate(outcome.changes));
            sampled.rebuilds.push(outcome.rebuilds);
            sampled.reader_share = outcome.reader_share.min(sampled.reader_share);
        }
        Ok(sampled)
    };
    let plain = sampled(inner, "none", "none")?;
    let mut curve = |form: Form| -> Result<Curve, Failure> {
        let mut buffered = Vec::new();
        for delta in deltas(form, is_quick) {
            let engine = form.engine(inner, delta);
            buffered.push((delta, sampled(&engine, form.option(), &delta.to_string())?));
        }
        Ok(Curve {
            inner,
            form,
            kind,
            seconds,
            plain: plain.clone(),
            buffered,
            issued: coordinate(issued),
        })
    };
    Ok([curve(Form::Published)?, curve(Form::Ours)?])
}

/// Draws the headers and the changes of one kind of changes and one length of runs.
fn draw_kind(
    study: &mut Study<'_>,
    curves: &[[Curve; 2]],
    kind: Kind,
    seconds: f64,
    section: &mut Section,
) -> Result<(), Failure> {
    for (name, title, y_label, values) in [
        ("headers", "Headers", "million headers", HEADERS),
        ("changes", "Changes made", "changes made", CHANGES_MADE),
    ] {
        let title = format!(
            "{title} against δ, {} in {seconds} s ([SFL17] Figs. 7-8)",
            kind.name()
        );
        let chart = Chart {
            title: &title,
            x_label: "δ",
            y_label,
            log_x: false,
            log_y: false,
        };
        let name = format!("threshold-{}-{seconds}-{name}.svg", kind.name());
        let mut lines: Vec<Series> = curves.iter().flat_map(|both| lines(both, values)).collect();
        let is_headers = y_label == "million headers";
        let share = match is_headers {
            true => study.run_seconds() / RUN_SECONDS,
            false => coordinate(study.issued(CHANGES_PER_RUN)) / coordinate(CHANGES_PER_RUN),
        };
        match paper_values(kind, seconds, is_headers, share) {
            Some(values) => study.add_paper(&name, &values, &mut lines),
            None => study.caption(&name, NO_NUMBERS),
        }
        study.draw(&name, &chart, &lines)?;
        section.pictures.push(name);
    }
    Ok(())
}

/// The caption of pictures for which the text has no number.
const NO_NUMBERS: &str =
    "The paper draws the same quantity in Fig. 7 and states no number for 25 s.";

/// Returns values of Figs. 7 and 8 that the text and Table II have, times a share: the length
/// of a run over the paper's, or the issued changes over the paper's. `None` if there are none.
pub(super) fn paper_values(
    kind: Kind,
    seconds: f64,
    is_headers: bool,
    share: f64,
) -> Option<PaperValues> {
    let mut values = PaperValues::new(
        "from Table II, which has δ = 20 and engines without a buffer, and from §V.D, which names \
         the least δ with which all changes are made; times the share of the paper's run that \
         these runs have",
    )
    .on(super::MACHINE);
    for inner in STATIC {
        let value = |delta: Option<usize>| {
            let point = paper_point(inner, delta, kind, seconds);
            let value = if is_headers {
                point.headers
            } else {
                point.changes
            };
            value.map(|value| value * share)
        };
        let deltas = (0..=LARGEST_DELTA).step_by(DELTA_STEP);
        let points = deltas.filter_map(|delta| Some((coordinate(delta), value(Some(delta))?)));
        let points: Vec<(f64, f64)> = points.collect();
        if !points.is_empty() {
            let name = format!("sfl({inner})");
            values = values
                .curve(&name, inner, without_repeats(&points))
                .marked(Mark::Triangle);
        }
        if let Some(value) = value(None) {
            values = values.level(inner, inner, value);
        }
    }
    Some(values).filter(|values| !values.is_empty())
}

/// Returns points without those between two points of the same value.
fn without_repeats(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let is_repeat = |index: usize| {
        let neighbours = [index.checked_sub(1), Some(index + 1)];
        neighbours.iter().all(|other| {
            let other = other.and_then(|other| points.get(other));
            other.is_some_and(|other| (other.1 - points[index].1).abs() < f64::EPSILON)
        })
    };
    let kept = (0..points.len()).filter(|&index| !is_repeat(index));
    kept.map(|index| points[index]).collect()
}

/// Returns a horizontal line without a buffer, and a line for each form.
fn lines(both: &[Curve; 2], values: fn(&Sampled) -> &[f64]) -> Vec<Series> {
    let [Curve { inner, plain, .. }, _] = both;
    let plain = Mean::of(values(plain)).mean;
    let ends = [0, LARGEST_DELTA].map(|delta| (coordinate(delta), plain));
    let mut lines = vec![Series::marked(inner, inner, Mark::Circle, ends)];
    for curve in both {
        let points = curve.buffered.iter();
        let points = points.map(|(delta, run)| (coordinate(*delta), Mean::of(values(run))));
        let points: Vec<(f64, Mean)> = points.collect();
        let (name, mark) = match curve.form {
            Form::Published => (format!("sfl({inner}), published form"), Mark::Triangle),
            Form::Ours => (format!("sfl({inner})"), Mark::Square),
        };
        let means = points.iter().map(|(x, mean)| (*x, mean.mean));
        let mut line = Series::marked(&name, inner, mark, means);
        let bands = points.iter().map(|(x, mean)| {
            let (low, high) = mean.interval();
            (*x, low, high)
        });
        line.band = bands.collect();
        lines.push(line);
    }
    lines
}

/// The index of the column of the paper's headers.
const PAPER_HEADERS_COLUMN: usize = 5;

/// Returns the table of one kind of changes and one length of runs. The columns of the
/// paper have values for the engines that the paper measured: not for our form.
fn grid(curves: &[[Curve; 2]], kind: Kind, seconds: f64) -> Grid {
    let mut rows = Vec::new();
    let issued = curves.first().map_or(0.0, |[curve, _]| curve.issued);
    for both in curves {
        let [Curve { inner, plain, .. }, _] = both;
        let paper = paper_point(inner, None, kind, seconds);
        rows.push(row((*inner).to_owned(), None, plain, paper));
        for curve in both {
            let engine = match curve.form {
                Form::Published => format!("sfl({inner}):form=paper"),
                Form::Ours => format!("sfl({inner})"),
            };
            for (delta, run) in &curve.buffered {
                let paper = match curve.form {
                    Form::Published => paper_point(inner, Some(*delta), kind, seconds),
                    Form::Ours => PaperPoint::default(),
                };
                rows.push(row(engine.clone(), Some(*delta), run, paper));
            }
        }
    }
    let mut columns = vec![
        "engine".to_owned(),
        "δ".to_owned(),
        "million headers".to_owned(),
        format!("changes made of {issued}"),
        "fewest rebuilds of a run".to_owned(),
        format!("paper: million headers in {seconds} s"),
        format!("paper: changes made of {CHANGES_PER_RUN}"),
    ];
    // The paper's headers in 25 s can only be read from its picture.
    if rows.iter().all(|row| row[PAPER_HEADERS_COLUMN].is_empty()) {
        columns.remove(PAPER_HEADERS_COLUMN);
        for row in &mut rows {
            row.remove(PAPER_HEADERS_COLUMN);
        }
    }
    Grid {
        title: format!("{CHANGES_PER_RUN} {} in {seconds} s", kind.name()),
        columns,
        words: 1,
        rows,
    }
}

fn row(engine: String, delta: Option<usize>, run: &Sampled, paper: PaperPoint) -> Vec<String> {
    let in_paper =
        |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
    let fewest_rebuilds = run.rebuilds.iter().min().copied().unwrap_or(0);
    vec![
        engine,
        delta.map_or_else(String::new, |delta| delta.to_string()),
        format!("{:.2}", Mean::of(&run.headers)),
        format!("{:.1}", Mean::of(&run.changes)),
        fewest_rebuilds.to_string(),
        in_paper(paper.headers),
        in_paper(paper.changes),
    ]
}
