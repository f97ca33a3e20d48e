//! Claims of [SFL17] Figs. 7 and 8, and the values that they compare.
//!
//! [SFL17]: classyard::papers#sfl17

use super::cases::Kind;
use super::update_claims::{EXPERIMENT_DELTA, paper_cell};
use super::{Form, RUN_SECONDS};
use crate::reproduce::claims::{Case, Claim, Gap, MIN_READER_SHARE, Part, Threshold};
use crate::reproduce::statistics::coordinate;

/// Changes in a run of any length.
pub(super) const CHANGES_PER_RUN: usize = 100;

/// Seconds of the paper's runs.
pub(super) const PAPER_SECONDS: [f64; 2] = [RUN_SECONDS, 25.0];

/// The paper's values of δ are 0 to 100 in steps of 5 (§V.D).
pub(super) const LARGEST_DELTA: usize = 100;
pub(super) const DELTA_STEP: usize = 5;

/// The greatest δ for which an update buffer never costs headers in the paper.
const GOOD_DELTA: usize = 10;

/// For each engine, the least δ with which all changes are made in the paper (§V.D, Fig. 8).
const PAPER_LEAST_DELTAS: [(&str, usize); 3] =
    [("hyper-split", 10), ("rfc", 50), ("bit-vector", 0)];

/// The measured values of one point, one for each rule set.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    /// Millions of headers.
    pub(super) headers: Vec<f64>,
    /// Changes made.
    pub(super) changes: Vec<f64>,
    pub(super) rebuilds: Vec<usize>,
    /// The least share of its processor's time that a reader had.
    pub(super) reader_share: f64,
}

/// The values of one engine and form, one kind of changes and one length of runs.
pub(super) struct Curve {
    pub(super) inner: &'static str,
    pub(super) form: Form,
    pub(super) kind: Kind,
    /// Seconds of the paper's runs.
    pub(super) seconds: f64,
    /// The engine without a buffer.
    pub(super) plain: Sampled,
    /// Values for each δ, ascending from 0.
    pub(super) buffered: Vec<(usize, Sampled)>,
    /// Changes issued in each run.
    pub(super) issued: f64,
}

/// The paper's values of one point, if its text or its Table II has them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PaperPoint {
    /// Millions of headers.
    pub(super) headers: Option<f64>,
    /// Changes made of [`CHANGES_PER_RUN`].
    pub(super) changes: Option<f64>,
}

/// Returns the least δ with which an engine makes all changes in the paper.
fn paper_least_delta(inner: &str) -> Option<usize> {
    let mut deltas = PAPER_LEAST_DELTAS.iter();
    deltas.find_map(|(name, delta)| (*name == inner).then_some(*delta))
}

/// Returns the paper's values of an engine without a buffer, or with a buffer for δ changes.
///
/// Table II has the runs of 10 s without a buffer, and with a δ of 20. For other runs, §V.D
/// names the values of δ with which all changes are made.
pub(super) fn paper_point(
    inner: &str,
    delta: Option<usize>,
    kind: Kind,
    seconds: f64,
) -> PaperPoint {
    let engine = match delta {
        None => inner.to_owned(),
        Some(_) => format!("sfl({inner})"),
    };
    let has_delta = delta.is_none_or(|delta| delta == EXPERIMENT_DELTA);
    let is_in_table = has_delta && is_equal(seconds, RUN_SECONDS);
    let cell = paper_cell(&engine, kind, CHANGES_PER_RUN).filter(|_| is_in_table);
    if let Some((headers, changes)) = cell {
        return PaperPoint {
            headers: Some(headers),
            changes: Some(changes),
        };
    }
    let makes_all = match delta {
        // Figs. 8a and 8d: both variants of the bit vector search make all changes.
        None => inner == "bit-vector",
        Some(delta) => paper_least_delta(inner).is_some_and(|least| delta >= least),
    };
    PaperPoint {
        headers: None,
        changes: makes_all.then_some(coordinate(CHANGES_PER_RUN)),
    }
}

/// Returns true if two lengths of runs in seconds are the same.
fn is_equal(seconds: f64, other: f64) -> bool {
    (seconds - other).abs() < f64::EPSILON
}

/// Returns values if the reader had enough of its processor's time.
fn with_share(sampled: &Sampled) -> Result<&Sampled, Gap> {
    match sampled.reader_share < MIN_READER_SHARE {
        true => Err(Gap::ReaderShare(sampled.reader_share)),
        false => Ok(sampled),
    }
}

pub(super) const HEADERS: fn(&Sampled) -> &[f64] = |sampled| &sampled.headers;
pub(super) const CHANGES_MADE: fn(&Sampled) -> &[f64] = |sampled| &sampled.changes;

impl Curve {
    fn label(&self) -> String {
        let (inner, kind, form) = (self.inner, self.kind.name(), self.form.name());
        format!("{inner}, {kind} in {} s, {form}", self.seconds)
    }

    fn deltas(&self) -> impl Iterator<Item = usize> {
        self.buffered.iter().map(|(delta, _)| *delta)
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
    fn ratios(
        &self,
        delta: usize,
        other: Result<&Sampled, Gap>,
        values: fn(&Sampled) -> &[f64],
    ) -> Result<Vec<f64>, Gap> {
        let pairs = values(self.at(delta)?).iter().zip(values(other?));
        Ok(pairs.map(|(own, other)| own / other).collect())
    }

    /// Returns the same ratios as a case.
    fn ratio(
        &self,
        delta: usize,
        other: Result<&Sampled, Gap>,
        values: fn(&Sampled) -> &[f64],
    ) -> Case {
        let name = format!("{}, δ = {delta}", self.label());
        case(name, self.ratios(delta, other, values))
    }

    /// Returns the headers with the largest δ divided by the headers with a good δ.
    fn decreases(&self) -> Result<Vec<f64>, Gap> {
        self.ratios(LARGEST_DELTA, self.at(GOOD_DELTA), HEADERS)
    }

    /// Returns, for each rule set, the least δ with which all changes are made. All changes
    /// are made with every greater δ too.
    fn least_deltas(&self) -> Result<Vec<f64>, Gap> {
        let runs = self.deltas().map(|delta| Ok((delta, self.at(delta)?)));
        let runs: Vec<(usize, &Sampled)> = runs.collect::<Result<_, Gap>>()?;
        let sets = runs.first().map_or(0, |(_, run)| run.changes.len());
        let deltas = (0..sets).map(|set| {
            let is_late = |(_, run): &(usize, &Sampled)| run.changes[set] < self.issued;
            let last_late = runs.iter().rposition(is_late);
            let first_complete = last_late.map_or(0, |index| index + 1);
            // Changes are late with the largest δ too.
            let Some((delta, _)) = runs.get(first_complete) else {
                return Err(Gap::NoValue);
            };
            match last_late {
                Some(index) if delta - runs[index].0 > DELTA_STEP => {
                    Err(Gap::NotRun("values of δ in steps of 5"))
                }
                _ => Ok(coordinate(*delta)),
            }
        });
        deltas.collect()
    }
}

/// Returns a case of samples, or of the reason why there are none.
fn case(name: String, samples: Result<Vec<f64>, Gap>) -> Case {
    match samples {
        Ok(samples) => Case::samples(name, samples),
        Err(gap) => Case::missing(name, gap),
    }
}

/// Returns all claims.
pub(super) fn claims(curves: &[Curve]) -> Vec<Claim> {
    vec![
        never_slower(curves),
        complete(curves),
        least(curves),
        never_fewer_changes(curves),
        too_large(curves),
    ]
}

/// Returns cases of every curve, and an open case for runs that were left out.
fn of_each<'a>(
    curves: &'a [Curve],
    is_wanted: impl Fn(&Curve) -> bool,
    cases: impl Fn(&'a Curve) -> Vec<Case>,
) -> Vec<Case> {
    let wanted = curves.iter().filter(|curve| is_wanted(curve));
    let mut cases: Vec<Case> = wanted.flat_map(cases).collect();
    for seconds in PAPER_SECONDS {
        if !curves.iter().any(|curve| is_equal(curve.seconds, seconds)) {
            let name = format!("runs of {seconds} s");
            cases.push(Case::missing(name, Gap::NotRun("left out")));
        }
    }
    cases
}

/// Returns a case for each curve and each δ of `is_wanted`: values with an update buffer
/// divided by values without.
fn against_plain(
    curves: &[Curve],
    is_wanted: fn(usize) -> bool,
    values: fn(&Sampled) -> &[f64],
) -> Vec<Case> {
    of_each(
        curves,
        |_| true,
        |curve| {
            let deltas = curve.deltas().filter(|&delta| is_wanted(delta));
            let plain = || with_share(&curve.plain);
            deltas
                .map(|delta| curve.ratio(delta, plain(), values))
                .collect()
        },
    )
}

fn never_slower(curves: &[Curve]) -> Claim {
    Claim::new(
        "Fig. 7",
        "For δ ≤ 10 engines with an update buffer always classify more headers than without.",
    )
    .part(
        Part::new("headers: with / without", Threshold::Above(1.0))
            .cases(against_plain(curves, |delta| delta <= GOOD_DELTA, HEADERS))
            .grid("100 insertions", ""),
    )
}

fn complete(curves: &[Curve]) -> Claim {
    let is_bit_vector = |curve: &Curve| curve.inner == "bit-vector";
    let cases = of_each(curves, is_bit_vector, |curve| {
        let shares = |delta| {
            let run = curve.at(delta)?;
            Ok(run.changes.iter().map(|made| made / curve.issued).collect())
        };
        let cases = curve.deltas().map(|delta| {
            let name = format!("{}, δ = {delta}", curve.label());
            case(name, shares(delta))
        });
        cases.collect()
    });
    Claim::new(
        "Fig. 8",
        "SFL(bit vector) makes all changes, whatever δ is.",
    )
    .part(
        Part::new("changes: made / issued", Threshold::AtLeast(1.0))
            .paper(1.0)
            .cases(cases)
            .grid("100 insertions", "sfl(bit-vector)"),
    )
}

/// The claim about the published form. Our form is rebuilt while changes continue, so none
/// of them waits for a rebuild.
fn least(curves: &[Curve]) -> Claim {
    let mut claim = Claim::new(
        "Fig. 8",
        "SFL(HyperSplit) and SFL(RFC) need a δ of 10 and 50 to make all changes.",
    );
    let waiting = PAPER_LEAST_DELTAS.iter().filter(|(_, delta)| *delta > 0);
    for &(inner, paper_delta) in waiting {
        let is_wanted = |curve: &Curve| curve.inner == inner && curve.form == Form::Published;
        let cases = of_each(curves, is_wanted, |curve| {
            vec![case(curve.label(), curve.least_deltas())]
        });
        let (paper, step) = (coordinate(paper_delta), coordinate(DELTA_STEP));
        let compared = format!("least δ with which all changes are made: sfl({inner})");
        claim = claim.part(
            Part::new(compared, Threshold::Within(paper - step, paper + step))
                .paper(paper)
                .cases(cases)
                .grid("100 insertions", format!("sfl({inner}):form=paper")),
        );
    }
    claim
}

fn never_fewer_changes(curves: &[Curve]) -> Claim {
    Claim::new(
        "Fig. 8",
        "For δ > 0 engines with an update buffer always make at least as many changes as \
         without.",
    )
    .part(
        Part::new("changes made: with / without", Threshold::AtLeast(1.0))
            .cases(against_plain(curves, |delta| delta > 0, CHANGES_MADE))
            .grid("100 insertions", ""),
    )
}

fn too_large(curves: &[Curve]) -> Claim {
    let decreased = of_each(
        curves,
        |_| true,
        |curve| {
            let name = format!("{}, δ = {LARGEST_DELTA}", curve.label());
            vec![case(name, curve.decreases())]
        },
    );
    let below_plain = of_each(
        curves,
        |_| true,
        |curve| vec![curve.ratio(LARGEST_DELTA, with_share(&curve.plain), HEADERS)],
    );
    Claim::new(
        "Fig. 7",
        "If δ is too large, fewer headers are classified, in the end even fewer than without an \
         update buffer; this is clearest for bit vectors.",
    )
    .part(
        Part::new("headers: δ = 100 / δ = 10", Threshold::Below(1.0))
            .cases(decreased)
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
    .part(
        Part::new(
            "headers, δ = 100 / δ = 10: bit-vector / the other engine",
            Threshold::Below(1.0),
        )
        .cases(clearest(curves))
        .grid("100 insertions", "sfl(bit-vector)"),
    )
}

/// Returns for each curve of another engine the decrease of bit vectors divided by its
/// decrease.
fn clearest(curves: &[Curve]) -> Vec<Case> {
    let is_other = |curve: &Curve| curve.inner != "bit-vector";
    of_each(curves, is_other, |other| {
        let matching = curves.iter().find(|curve| {
            (curve.inner, curve.form, curve.kind) == ("bit-vector", other.form, other.kind)
                && is_equal(curve.seconds, other.seconds)
        });
        let ratios = || {
            let bit_vector = matching.ok_or(Gap::NotRun("left out"))?.decreases()?;
            let pairs = bit_vector.into_iter().zip(other.decreases()?);
            Ok(pairs.map(|(own, other)| own / other).collect())
        };
        vec![case(other.label(), ratios())]
    })
}

#[cfg(test)]
mod tests {
    use super::super::STATIC;
    use super::*;

    /// Rule sets of each point.
    const SETS: usize = 5;

    /// One point of a made-up curve: the engine, the form, and δ; `None` without a buffer.
    type Point = (&'static str, Form, Option<usize>);

    /// Returns a point with the same values for each rule set.
    fn sampled((headers, changes): (f64, f64)) -> Sampled {
        Sampled {
            headers: vec![headers; SETS],
            changes: vec![changes; SETS],
            rebuilds: vec![1; SETS],
            reader_share: 1.0,
        }
    }

    /// Returns the curves of a full reproduction. `values` returns the millions of headers
    /// and the changes made.
    fn curves(values: impl Fn(Point) -> (f64, f64)) -> Vec<Curve> {
        let mut curves = Vec::new();
        for seconds in PAPER_SECONDS {
            for kind in Kind::BOTH {
                for inner in STATIC {
                    for form in Form::BOTH {
                        let deltas = (0..=LARGEST_DELTA).step_by(DELTA_STEP);
                        let point = |delta| sampled(values((inner, form, delta)));
                        let buffered = deltas.map(|delta| (delta, point(Some(delta))));
                        curves.push(Curve {
                            inner,
                            form,
                            kind,
                            seconds,
                            plain: point(None),
                            buffered: buffered.collect(),
                            issued: coordinate(CHANGES_PER_RUN),
                        });
                    }
                }
            }
        }
        curves
    }

    /// Values as the paper describes them: the most headers at δ = 10, the fewest at
    /// δ = 100, and all changes made from the paper's δ on.
    fn paper((inner, _, delta): Point) -> (f64, f64) {
        let Some(delta) = delta else {
            return (10.0, if inner == "bit-vector" { 100.0 } else { 40.0 });
        };
        let loss = if inner == "bit-vector" { 0.13 } else { 0.12 };
        let headers = 20.0 - loss * coordinate(delta.saturating_sub(GOOD_DELTA));
        let least = paper_least_delta(inner).unwrap();
        (headers, if delta >= least { 100.0 } else { 80.0 })
    }

    fn words(curves: &[Curve]) -> Vec<&'static str> {
        let claims = claims(curves);
        claims.iter().map(|claim| claim.verdict().word()).collect()
    }

    /// Returns the outcomes of the cases of one part of a claim, without the open cases of
    /// runs that were left out.
    fn outcomes(curves: &[Curve], claim: usize, part: usize) -> Vec<&'static str> {
        let claims = claims(curves);
        let outcomes = claims[claim].parts()[part].outcomes();
        outcomes.map(|(_, outcome)| outcome.word()).collect()
    }

    /// Changes the runs of one form.
    fn change(curves: &mut [Curve], form: Form, change: impl Fn(usize, &mut Sampled)) {
        for curve in curves.iter_mut().filter(|curve| curve.form == form) {
            for (delta, run) in &mut curve.buffered {
                change(*delta, run);
            }
        }
    }

    #[test]
    fn values_as_in_the_paper_bear_out_every_claim() {
        assert_eq!(words(&curves(paper)), ["holds"; 5]);
    }

    #[test]
    fn the_opposite_of_the_paper_bears_out_no_claim() {
        let opposite = |(inner, _, delta): Point| match delta {
            None => (30.0, 100.0),
            // Bit vectors lose the least.
            Some(100) if inner == "bit-vector" => (60.0, 90.0),
            Some(100) => (40.0, 90.0),
            Some(_) => (20.0, 90.0),
        };
        let curves = curves(opposite);
        let words = words(&curves);
        let fails = "does not hold here";
        // No δ makes all changes, so the least such δ has no value.
        assert_eq!(words, [fails, fails, "not measured", fails, fails]);
    }

    #[test]
    fn a_delta_that_is_too_small_or_too_large_fails() {
        let with_least = |least: usize| {
            curves(move |(_, _, delta)| {
                let is_late = delta.is_some_and(|delta| delta < least);
                (10.0, if is_late { 99.0 } else { 100.0 })
            })
        };
        const LEAST: usize = 2;
        // Two kinds of changes and two lengths of runs.
        let [holds, fails] = [["holds"; 4], ["does not hold"; 4]];
        for (least, hyper_split, rfc) in [
            (0, fails, fails),
            (5, holds, fails),
            (10, holds, fails),
            (15, holds, fails),
            (20, fails, fails),
            (45, fails, holds),
            (55, fails, holds),
            (60, fails, fails),
        ] {
            let curves = with_least(least);
            assert_eq!(outcomes(&curves, LEAST, 0), hyper_split, "{least}");
            assert_eq!(outcomes(&curves, LEAST, 1), rfc, "{least}");
        }
    }

    #[test]
    fn a_late_change_at_a_greater_delta_counts() {
        let mut curves = curves(paper);
        change(&mut curves, Form::Published, |delta, run| {
            if delta == 30 {
                run.changes = vec![99.0; SETS];
            }
        });
        let claims = claims(&curves);
        let hyper_split = &claims[2].parts()[0];
        for (case, outcome) in hyper_split.outcomes() {
            assert_eq!(case.text(), "35 [35, 35], n = 5");
            assert_eq!(outcome.word(), "does not hold");
        }
    }

    #[test]
    fn the_least_delta_needs_its_neighbours() {
        let mut curves = curves(paper);
        for curve in &mut curves {
            let is_kept = |delta: &usize| [0, 10, 50, 100].contains(delta);
            curve.buffered.retain(|(delta, _)| is_kept(delta));
        }
        for part in [0, 1] {
            assert_eq!(outcomes(&curves, 2, part), ["open"; 4]);
        }
        assert_eq!(words(&curves)[2], "not measured");
    }

    #[test]
    fn our_form_is_no_evidence_for_the_least_delta() {
        let mut curves = curves(paper);
        change(&mut curves, Form::Ours, |_, run| {
            run.changes = vec![1.0; SETS];
        });
        assert_eq!(words(&curves)[2], "holds");
        curves.retain(|curve| curve.form == Form::Ours);
        assert_eq!(words(&curves)[2], "not measured");
    }

    #[test]
    fn each_form_counts_in_the_other_claims() {
        for form in Form::BOTH {
            let mut curves = curves(paper);
            change(&mut curves, form, |delta, run| {
                run.headers = vec![if delta < LARGEST_DELTA { 1.0 } else { 2.0 }; SETS];
                run.changes = vec![1.0; SETS];
            });
            let words = words(&curves);
            for claim in [0, 1, 3, 4] {
                assert_eq!(words[claim], "holds in part", "{claim} {form:?}");
            }
        }
    }

    #[test]
    fn runs_without_rebuilds_are_open() {
        for form in Form::BOTH {
            let mut curves = curves(paper);
            change(&mut curves, form, |_, run| run.rebuilds[0] = 0);
            let words = words(&curves);
            for claim in [0, 1, 3, 4] {
                assert_eq!(words[claim], "holds in part", "{claim} {form:?}");
            }
            let least = match form {
                Form::Published => "not measured",
                Form::Ours => "holds",
            };
            assert_eq!(words[2], least);
            curves.retain(|curve| curve.form == form);
            // A δ of 100 needs no rebuild for 100 changes.
            let with_largest = outcomes(&curves, 1, 0);
            let open_count = with_largest.iter().filter(|word| **word == "open").count();
            assert_eq!((with_largest.len(), open_count), (4 * 21, 4 * 20));
        }
    }

    #[test]
    fn runs_of_a_busy_reader_and_runs_left_out_are_open() {
        let mut busy = curves(paper);
        for form in Form::BOTH {
            change(&mut busy, form, |_, run| run.reader_share = 0.79);
        }
        assert_eq!(words(&busy), ["not measured"; 5]);
        let mut short = curves(paper);
        short.retain(|curve| is_equal(curve.seconds, PAPER_SECONDS[0]));
        assert_eq!(words(&short), ["holds in part"; 5]);
        assert_eq!(words(&[]), ["not measured"; 5]);
    }

    #[test]
    fn the_papers_points_are_in_its_table_and_text() {
        let point = |inner, delta, seconds| {
            let point = paper_point(inner, delta, Kind::Insert, seconds);
            (point.headers, point.changes)
        };
        // Table II.
        assert_eq!(point("rfc", None, 10.0), (Some(16.0), Some(44.1)));
        assert_eq!(point("rfc", Some(20), 10.0), (Some(43.6), Some(75.7)));
        // The text about Fig. 8.
        assert_eq!(point("rfc", Some(45), 10.0), (None, None));
        assert_eq!(point("rfc", Some(50), 10.0), (None, Some(100.0)));
        assert_eq!(point("rfc", Some(20), 25.0), (None, None));
        assert_eq!(point("hyper-split", Some(10), 25.0), (None, Some(100.0)));
        assert_eq!(point("bit-vector", None, 25.0), (None, Some(100.0)));
        assert_eq!(point("hyper-split", None, 25.0), (None, None));
    }
}
