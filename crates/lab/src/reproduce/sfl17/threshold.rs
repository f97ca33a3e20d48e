//! [SFL17] Figs. 7 and 8: headers and changes against δ.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::cases::Kind;
use super::{ROLES, RUN_SECONDS, RunPlan, STATIC, Study, buffered, wrong_answers};
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{Mean, coordinate};

/// The values of δ of a quick reproduction.
const QUICK_DELTAS: [usize; 5] = [0, 5, 10, 20, 100];

/// Changes in a run of any length.
const CHANGES_PER_RUN: usize = 100;

/// Seconds of the paper's runs.
const PAPER_SECONDS: [f64; 2] = [10.0, 25.0];

/// The greatest δ for which an update buffer never costs headers in the paper.
const NEVER_SLOWER: usize = 10;

/// A difference from the same engine without a buffer below this share does not count as
/// slower: runs on the same machine differ by that much.
const NOISE_SHARE: f64 = 0.05;

/// Means of millions of headers, and of changes, for one engine and kind.
struct Curve {
    /// Means of the engine without a buffer.
    plain: (Mean, Mean),
    /// Means for each δ.
    buffered: Vec<(usize, Mean, Mean)>,
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
    let (mut never_slower, mut slower, mut small_delta_points) = (0, Vec::new(), 0);
    let (mut complete, mut cases) = (0, 0);
    let (mut as_many, mut with_delta) = (0, 0);
    let mut findings = Found::default();
    for &seconds in durations {
        for kind in Kind::BOTH {
            let (mut header_lines, mut change_lines) = (Vec::new(), Vec::new());
            let mut table = Vec::new();
            for inner in STATIC {
                let curve = measure(study, inner, kind, seconds, &deltas, &mut rows, &mut wrong)?;
                let lines = lines(inner, &curve);
                header_lines.extend(lines.0);
                change_lines.extend(lines.1);
                for (delta, headers, changes) in &curve.buffered {
                    if *delta <= NEVER_SLOWER {
                        small_delta_points += 1;
                        if headers.mean >= curve.plain.0.mean * (1.0 - NOISE_SHARE) {
                            never_slower += 1;
                        } else {
                            slower.push(format!("{inner}, δ = {delta}, {}", kind.name()));
                        }
                    }
                    if *delta > 0 {
                        with_delta += 1;
                        as_many += usize::from(changes.mean >= curve.plain.1.mean - 1e-9);
                    }
                    if inner == "bit-vector" {
                        cases += 1;
                        let issued = coordinate(study.issued(CHANGES_PER_RUN));
                        complete += usize::from(changes.mean >= issued - 1e-9);
                    }
                }
                let issued = coordinate(study.issued(CHANGES_PER_RUN));
                findings.add(inner, kind, seconds, &curve, issued);
                table.extend(table_rows(inner, &curve));
            }
            for (what, label, lines) in [
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
                study.draw(&name, &chart, &lines)?;
                section.pictures.push(name);
            }
            section.grids.push(Grid {
                title: format!("{CHANGES_PER_RUN} {} in {seconds} s", kind.name()),
                columns: ["engine", "δ", "million headers", "changes made"]
                    .map(str::to_owned)
                    .to_vec(),
                words: 1,
                rows: table,
            });
        }
    }
    let heading = "kind,engine,delta,seconds,set,headers,made";
    study.write_csv("threshold.csv", heading, &rows)?;
    section.claims = vec![
        Claim {
            place: "Fig. 7",
            paper: "For δ ≤ 10 engines with an update buffer always classify more headers than \
                    without.",
            measured: format!(
                "{never_slower} of {small_delta_points} points, not counting differences below \
                 {:.0} %",
                NOISE_SHARE * 100.0
            ),
            verdict: Verdict::for_most(
                never_slower,
                small_delta_points,
                &format!("slower: {}", slower.join("; ")),
            ),
        },
        Claim {
            place: "Fig. 8",
            paper: "SFL(bit vector) makes all changes, whatever δ is.",
            measured: format!("{complete} of {cases} points"),
            verdict: Verdict::for_most(complete, cases, "changes were late at the other points"),
        },
        Claim {
            place: "Fig. 8",
            paper: "SFL(HyperSplit) and SFL(RFC) need a δ of 10 and 50 to make all changes.",
            measured: format!("the least δ that makes all: {}", findings.needed.join("; ")),
            verdict: match (findings.at_once, findings.needed.len()) {
                (once, all) if once == all => Verdict::InPart(
                    "any δ does: no change waits for a rebuild, as sfl is rebuilt beside changes"
                        .to_owned(),
                ),
                (0, _) => Verdict::Holds,
                _ => Verdict::InPart("some make all changes with any δ".to_owned()),
            },
        },
        Claim {
            place: "Fig. 8",
            paper: "For δ > 0 engines with an update buffer always make at least as many changes \
                    as without.",
            measured: format!("{as_many} of {with_delta} points"),
            verdict: Verdict::for_most(as_many, with_delta, "fewer at the other points"),
        },
        Claim {
            place: "Fig. 7",
            paper: "If δ is too large, fewer headers are classified, in the end even fewer than \
                    without an update buffer; this is clearest for bit vectors.",
            measured: format!(
                "at the largest δ {} of {} have fewer than without a buffer; of the most headers of \
                 any δ they have: {}",
                findings.below_plain,
                findings.large.len(),
                findings.large.join("; ")
            ),
            verdict: match (findings.fallen, findings.below_plain, findings.large.len()) {
                (fallen, below, all) if fallen == all && below > 0 => Verdict::Holds,
                (0, ..) => Verdict::Fails(
                    "a hidden rule costs no search behind it here, and waiting rules little"
                        .to_owned(),
                ),
                (_, 0, _) => Verdict::InPart(
                    "fewer in some cases, but never fewer than without a buffer".to_owned(),
                ),
                _ => Verdict::InPart("not for all engines".to_owned()),
            },
        },
    ];
    wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Findings from the curves for the largest and the least δ.
#[derive(Default)]
struct Found {
    /// The least δ with which all changes are made, as text.
    needed: Vec<String>,
    /// The number of curves with all changes made at any δ.
    at_once: usize,
    /// The largest δ's share of the most headers, as text.
    large: Vec<String>,
    /// The number of curves whose largest δ has fewer headers than the most, beyond
    /// noise.
    fallen: usize,
    /// The number of curves whose largest δ has fewer headers than without a buffer.
    below_plain: usize,
}

impl Found {
    fn add(&mut self, inner: &str, kind: Kind, seconds: f64, curve: &Curve, issued: f64) {
        let label = format!("{inner}, {} in {seconds} s", kind.name());
        if inner != "bit-vector" {
            let is_complete = |changes: &Mean| changes.mean >= issued - 1e-9;
            let mut enough = curve
                .buffered
                .iter()
                .filter(|(_, _, changes)| is_complete(changes));
            let min_delta = enough.next().map(|(delta, ..)| *delta);
            self.needed.push(match min_delta {
                Some(delta) => format!("{label}: {delta}"),
                None => format!("{label}: none"),
            });
            self.at_once += usize::from(min_delta == Some(0));
        }
        let headers = curve.buffered.iter().map(|(_, headers, _)| headers.mean);
        let max_headers = headers.fold(0.0, f64::max);
        let last = curve.buffered.last().map_or(0.0, |one| one.1.mean);
        let share = last / max_headers;
        self.large.push(format!("{label}: {:.0} %", share * 100.0));
        self.fallen += usize::from(share < 1.0 - NOISE_SHARE);
        self.below_plain += usize::from(last < curve.plain.0.mean * (1.0 - NOISE_SHARE));
    }
}

#[allow(clippy::too_many_arguments)] // two of them collect values for the whole figure
fn measure(
    study: &mut Study<'_>,
    inner: &str,
    kind: Kind,
    seconds: f64,
    deltas: &[usize],
    rows: &mut Vec<String>,
    wrong: &mut usize,
) -> Result<Curve, Failure> {
    let mut means = |engine: &str, delta: &str| -> Result<(Mean, Mean), Failure> {
        let (mut headers, mut changes) = (Vec::new(), Vec::new());
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
                "{},{inner},{delta},{seconds},{set},{},{}",
                kind.name(),
                outcome.headers,
                outcome.changes
            ));
            #[allow(clippy::cast_precision_loss)] // far below 2^52
            headers.push(outcome.headers as f64 / 1e6);
            changes.push(coordinate(outcome.changes));
        }
        Ok((Mean::of(&headers), Mean::of(&changes)))
    };
    let plain = means(inner, "none")?;
    let mut with_buffer = Vec::new();
    for &delta in deltas {
        let (headers, changes) = means(&buffered(inner, delta), &delta.to_string())?;
        with_buffer.push((delta, headers, changes));
    }
    Ok(Curve {
        plain,
        buffered: with_buffer,
    })
}

/// Returns lines of headers and of changes: with a buffer, and horizontal lines without.
fn lines(inner: &str, curve: &Curve) -> (Vec<Series>, Vec<Series>) {
    let pick = |which: fn(&(usize, Mean, Mean)) -> Mean, plain: Mean| {
        let points = || {
            curve
                .buffered
                .iter()
                .map(|one| (coordinate(one.0), which(one)))
        };
        let name = format!("sfl({inner})");
        let means = points().map(|(x, mean)| (x, mean.mean));
        let mut series = Series::marked(&name, inner, Mark::Square, means);
        let bands = points().map(|(x, mean)| {
            let (low, high) = mean.interval();
            (x, low, high)
        });
        series.band = bands.collect();
        let level = points().map(|(x, _)| (x, plain.mean));
        vec![series, Series::marked(inner, inner, Mark::Circle, level)]
    };
    (
        pick(|one| one.1, curve.plain.0),
        pick(|one| one.2, curve.plain.1),
    )
}

fn table_rows(inner: &str, curve: &Curve) -> Vec<Vec<String>> {
    let row = |engine: String, delta: String, (headers, changes): (Mean, Mean)| {
        vec![
            engine,
            delta,
            format!("{headers:.2}"),
            format!("{changes:.1}"),
        ]
    };
    let mut rows = vec![row(inner.to_owned(), String::new(), curve.plain)];
    for &(delta, headers, changes) in &curve.buffered {
        rows.push(row(
            format!("sfl({inner})"),
            delta.to_string(),
            (headers, changes),
        ));
    }
    rows
}
