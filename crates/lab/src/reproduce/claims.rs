//! Claims of papers as data, and the rule that computes their verdicts.
//!
//! ```text
//! claim   the paper's statement
//! part    one comparison: a quantity, the paper's value, a threshold
//! case    one measurement of a part: a rule set, a size, a kind of traffic
//! ```
//! A case *holds* if the confidence interval of its measurement lies on the claim's side
//! of the threshold, *fails* if the interval lies on the other side, and is *open*
//! otherwise: nothing was measured, or the interval contains the threshold. The verdict
//! on the claim counts the cases of all its parts:
//!
//! | verdict | cases |
//! |---|---|
//! | holds | every case holds |
//! | holds in part | at least half of the cases hold, but not every one |
//! | does not hold | fewer than half hold, even if every open case did |
//! | not measured | everything else, and a claim without cases |
//!
//! Only [`Claim::verdict`] creates a [`Verdict`].

use std::fmt;

use serde::Serialize;

use super::statistics::median_interval;

/// The smallest acceptable share of its processor's time that a timed thread gets.
pub(super) const MIN_READER_SHARE: f64 = 0.8;

/// The claim's side of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Threshold {
    Above(f64),
    AtLeast(f64),
    Below(f64),
    AtMost(f64),
    /// Both ends are on the claim's side.
    Within(f64, f64),
}

impl Threshold {
    /// Returns a threshold for values from `paper` less a share to `paper` plus the share.
    pub(super) fn near(paper: f64, share: f64) -> Threshold {
        Threshold::Within(paper * (1.0 - share), paper * (1.0 + share))
    }

    /// Compares all values from `low` to `high` with the threshold.
    fn outcome(self, low: f64, high: f64) -> Outcome {
        let (inside, outside) = match self {
            Threshold::Above(limit) => (low > limit, high <= limit),
            Threshold::AtLeast(limit) => (low >= limit, high < limit),
            Threshold::Below(limit) => (high < limit, low >= limit),
            Threshold::AtMost(limit) => (high <= limit, low > limit),
            Threshold::Within(least, greatest) => (
                low >= least && high <= greatest,
                high < least || low > greatest,
            ),
        };
        match (inside, outside) {
            (true, _) => Outcome::Holds,
            (_, true) => Outcome::Fails,
            _ => Outcome::Open,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Threshold::Above(limit) => write!(f, "above {}", Figure(limit)),
            Threshold::AtLeast(limit) => write!(f, "at least {}", Figure(limit)),
            Threshold::Below(limit) => write!(f, "below {}", Figure(limit)),
            Threshold::AtMost(limit) => write!(f, "at most {}", Figure(limit)),
            Threshold::Within(least, greatest) => {
                write!(f, "{} to {}", Figure(least), Figure(greatest))
            }
        }
    }
}

/// The reason why a case has no measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Gap {
    /// A rule set, size, system or kind of traffic that was left out.
    NotRun(&'static str),
    /// The inputs are the user's, and the paper says nothing about them.
    OwnInputs,
    /// The parameters of the traffic or of the model were fitted to this figure.
    Fitted,
    /// Fewer samples than a confidence interval needs.
    FewSamples(usize),
    /// The timed thread had too small a share of its processor.
    ReaderShare(f64),
    /// A run without the rebuild that the paper's run has.
    NoRebuild,
    /// The value is infinite or not a number, since an engine was not built.
    NoValue,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::NotRun(missing) => write!(f, "not measured: {missing}"),
            Gap::OwnInputs => f.write_str("not measured: the paper says nothing about own inputs"),
            Gap::Fitted => f.write_str("fitted to the paper's value, so no test of it"),
            Gap::FewSamples(count) => write!(f, "too few samples for an interval: {count}"),
            Gap::ReaderShare(share) => write!(
                f,
                "a timed thread had {:.0} % of its processor, less than {:.0} %",
                share * 100.0,
                MIN_READER_SHARE * 100.0
            ),
            Gap::NoRebuild => f.write_str("a run had no rebuild, and the paper's has one"),
            Gap::NoValue => f.write_str("no value"),
        }
    }
}

/// The measurement of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Evidence {
    Measured {
        low: f64,
        middle: f64,
        high: f64,
        samples: usize,
    },
    Missing(Gap),
}

/// One measurement of a part.
#[derive(Clone, Debug)]
pub(super) struct Case {
    name: String,
    evidence: Evidence,
}

impl Case {
    /// Returns a case of independent samples: the median, and its 90 % confidence
    /// interval. An infinite sample, or NaN, stands for an engine that was not built.
    pub(super) fn samples(name: impl Into<String>, samples: impl IntoIterator<Item = f64>) -> Case {
        let samples: Vec<f64> = samples.into_iter().collect();
        let evidence = match median_interval(&samples) {
            _ if samples.iter().any(|sample| !sample.is_finite()) => {
                Evidence::Missing(Gap::NoValue)
            }
            None => Evidence::Missing(Gap::FewSamples(samples.len())),
            Some(interval) => Evidence::Measured {
                low: interval.low,
                middle: interval.median,
                high: interval.high,
                samples: samples.len(),
            },
        };
        Case::new(name, evidence)
    }

    /// Returns a case of one value that is the same in every run with the same input: a
    /// count or the result of a formula.
    pub(super) fn exact(name: impl Into<String>, value: f64) -> Case {
        let evidence = match value.is_finite() {
            true => Evidence::Measured {
                low: value,
                middle: value,
                high: value,
                samples: 1,
            },
            false => Evidence::Missing(Gap::NoValue),
        };
        Case::new(name, evidence)
    }

    /// Returns a case without a measurement.
    pub(super) fn missing(name: impl Into<String>, gap: Gap) -> Case {
        Case::new(name, Evidence::Missing(gap))
    }

    fn new(name: impl Into<String>, evidence: Evidence) -> Case {
        let name = name.into();
        Case { name, evidence }
    }

    /// The rule set, size or kind of traffic; empty if the part has a single case.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The measured value with its interval and the number of samples, or the gap.
    pub(super) fn text(&self) -> String {
        match self.evidence {
            Evidence::Missing(gap) => gap.to_string(),
            Evidence::Measured {
                middle, samples: 1, ..
            } => Figure(middle).to_string(),
            Evidence::Measured {
                low,
                middle,
                high,
                samples,
            } => format!(
                "{} [{}, {}], n = {samples}",
                Figure(middle),
                Figure(low),
                Figure(high)
            ),
        }
    }

    /// The least, middle and greatest value of the interval, and the number of samples.
    pub(super) fn interval(&self) -> Option<([f64; 3], usize)> {
        match self.evidence {
            Evidence::Missing(_) => None,
            Evidence::Measured {
                low,
                middle,
                high,
                samples,
            } => Some(([low, middle, high], samples)),
        }
    }

    fn is_missing(&self) -> bool {
        matches!(self.evidence, Evidence::Missing(_))
    }
}

/// A measurement in the report that a comparison uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Source {
    /// The beginning of a table's title; or a picture's name.
    pub(super) title: String,
    /// The beginning of a row of the table; empty for the whole table.
    pub(super) row: String,
}

/// One comparison of a claim.
#[derive(Clone, Debug)]
pub(super) struct Part {
    compared: String,
    paper: Option<f64>,
    threshold: Threshold,
    /// The number of cases that must hold. `None` if each case counts by itself.
    needed: Option<usize>,
    cases: Vec<Case>,
    sources: Vec<Source>,
}

impl Part {
    /// Returns a comparison without cases. `compared` names the quantity and its unit.
    pub(super) fn new(compared: impl Into<String>, threshold: Threshold) -> Part {
        Part {
            compared: compared.into(),
            paper: None,
            threshold,
            needed: None,
            cases: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Sets the paper's value.
    pub(super) fn paper(mut self, value: f64) -> Part {
        self.paper = Some(value);
        self
    }

    /// Adds a case.
    pub(super) fn case(mut self, case: Case) -> Part {
        self.cases.push(case);
        self
    }

    /// Adds cases.
    pub(super) fn cases(mut self, cases: impl IntoIterator<Item = Case>) -> Part {
        self.cases.extend(cases);
        self
    }

    /// Makes the part one case of the claim, which holds if `count` of its own cases hold
    /// and all of them were measured.
    pub(super) fn needing(mut self, count: usize) -> Part {
        self.needed = Some(count);
        self
    }

    /// Links the part to a table of its section, and to the row that begins with `row`.
    pub(super) fn grid(mut self, title: impl Into<String>, row: impl Into<String>) -> Part {
        self.sources.push(Source {
            title: title.into(),
            row: row.into(),
        });
        self
    }

    /// Links the part to a picture of its section.
    pub(super) fn picture(self, name: impl Into<String>) -> Part {
        self.grid(name, "")
    }

    /// The quantity that is compared, with its unit.
    pub(super) fn compared(&self) -> &str {
        &self.compared
    }

    /// The paper's value as text; a dash without one.
    pub(super) fn paper_text(&self) -> String {
        self.paper
            .map_or_else(|| "–".to_owned(), |value| Figure(value).to_string())
    }

    /// The paper's value.
    pub(super) fn paper_value(&self) -> Option<f64> {
        self.paper
    }

    /// The threshold as text, with the number of cases that must hold.
    pub(super) fn threshold_text(&self) -> String {
        match self.needed {
            None => self.threshold.to_string(),
            Some(needed) => format!(
                "{} in {needed} of {} cases",
                self.threshold,
                self.cases.len()
            ),
        }
    }

    /// The cases with their outcomes.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (&Case, Outcome)> {
        self.cases.iter().map(|case| {
            let outcome = match case.interval() {
                Some(([low, _, high], _)) => self.threshold.outcome(low, high),
                None => Outcome::Open,
            };
            (case, outcome)
        })
    }

    /// The measurements that the part uses.
    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The numbers of cases of the claim by outcome.
    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for (_, outcome) in self.outcomes() {
            tally.add(outcome);
        }
        // A comparison without cases is open.
        if self.cases.is_empty() {
            tally.add(Outcome::Open);
            return tally;
        }
        let Some(needed) = self.needed else {
            return tally;
        };
        let mut whole = Tally::default();
        whole.add(match tally {
            tally if tally.holding + tally.open < needed => Outcome::Fails,
            tally if tally.holding >= needed && !self.cases.iter().any(Case::is_missing) => {
                Outcome::Holds
            }
            _ => Outcome::Open,
        });
        whole
    }
}

/// The result of a case, or of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Holds,
    Fails,
    /// Not measured, or the interval contains the threshold.
    Open,
}

impl Outcome {
    /// The outcome in one to three words.
    pub(super) fn word(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::Fails => "does not hold",
            Outcome::Open => "open",
        }
    }
}

/// Numbers of cases by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    pub(super) holding: usize,
    pub(super) failing: usize,
    pub(super) open: usize,
}

impl Tally {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Holds => self.holding += 1,
            Outcome::Fails => self.failing += 1,
            Outcome::Open => self.open += 1,
        }
    }

    fn all(self) -> usize {
        self.holding + self.failing + self.open
    }
}

/// The kind of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Holds,
    InPart,
    Fails,
    NotMeasured,
}

/// The verdict on a claim on this machine. Only [`Claim::verdict`] creates one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    word: Word,
    tally: Tally,
}

impl Verdict {
    /// The rule.
    fn of(tally: Tally) -> Verdict {
        let word = match tally {
            tally if tally.holding + tally.failing == 0 => Word::NotMeasured,
            tally if tally.holding == tally.all() => Word::Holds,
            tally if 2 * tally.holding >= tally.all() => Word::InPart,
            tally if 2 * (tally.holding + tally.open) < tally.all() => Word::Fails,
            _ => Word::NotMeasured,
        };
        Verdict { word, tally }
    }

    /// The verdict in one to four words.
    pub(super) fn word(self) -> &'static str {
        match self.word {
            Word::Holds => "holds",
            Word::InPart => "holds in part",
            Word::Fails => "does not hold here",
            Word::NotMeasured => "not measured",
        }
    }

    /// The verdict in one word, for the page's styles.
    pub(super) fn class(self) -> &'static str {
        match self.word {
            Word::Holds => "holds",
            Word::InPart => "part",
            Word::Fails => "fails",
            Word::NotMeasured => "open",
        }
    }

    /// The numbers of cases behind the verdict.
    pub(super) fn tally(self) -> Tally {
        self.tally
    }

    /// The numbers of cases as text.
    pub(super) fn count_text(self) -> String {
        let Tally {
            holding,
            failing,
            open,
        } = self.tally;
        format!("{holding} hold, {failing} do not, {open} open")
    }
}

/// A claim of a paper, or of ours, with everything that its verdict is computed from.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The place in the paper: `Fig. 5a`.
    pub(super) place: &'static str,
    pub(super) paper: &'static str,
    parts: Vec<Part>,
}

impl Claim {
    /// Returns a claim without comparisons, which is not measured.
    pub(super) fn new(place: &'static str, paper: &'static str) -> Claim {
        Claim {
            place,
            paper,
            parts: Vec::new(),
        }
    }

    /// Adds a comparison.
    pub(super) fn part(mut self, part: Part) -> Claim {
        self.parts.push(part);
        self
    }

    /// Adds a comparison that was not measured.
    pub(super) fn unmeasured(
        self,
        compared: &'static str,
        threshold: Threshold,
        gap: Gap,
    ) -> Claim {
        self.part(Part::new(compared, threshold).case(Case::missing("", gap)))
    }

    /// Returns the claim for own inputs: its comparisons without any measurement.
    pub(super) fn on_own_inputs(mut self) -> Claim {
        for part in &mut self.parts {
            part.needed = None;
            part.cases = vec![Case::missing("", Gap::OwnInputs)];
            part.sources.clear();
        }
        self
    }

    /// The comparisons.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Computes the verdict from the cases of all parts.
    pub(super) fn verdict(&self) -> Verdict {
        let mut tally = Tally::default();
        for part in &self.parts {
            let of_part = part.tally();
            tally.holding += of_part.holding;
            tally.failing += of_part.failing;
            tally.open += of_part.open;
        }
        Verdict::of(tally)
    }
}

/// A number with three significant digits, or all digits before the decimal point.
pub(super) struct Figure(pub(super) f64);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let text = match size {
            _ if size >= 100.0 || size == 0.0 => format!("{:.0}", self.0),
            _ if size >= 10.0 => format!("{:.1}", self.0),
            _ if size >= 1.0 => format!("{:.2}", self.0),
            _ if size >= 0.1 => format!("{:.3}", self.0),
            _ => format!("{:.4}", self.0),
        };
        let trimmed = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        f.write_str(trimmed)
    }
}

/// A table of measured values for readers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Grid {
    pub(super) title: String,
    pub(super) columns: Vec<String>,
    /// The number of leading text columns; the others have numbers.
    #[serde(skip)]
    pub(super) words: usize,
    pub(super) rows: Vec<Vec<String>>,
}

/// A reproduced figure or table of a paper.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// The method of measurement, and its differences from the paper.
    pub(super) method: String,
    pub(super) claims: Vec<Claim>,
    pub(super) grids: Vec<Grid>,
    /// Names of pictures in the folder.
    pub(super) pictures: Vec<String>,
}

/// The place of a measurement within its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The index of a table, and of a row if a row was named.
    Grid(usize, Option<usize>),
    /// The index of a picture.
    Picture(usize),
}

impl Section {
    /// Returns the place of a measurement: the whole table if the row was left out, and
    /// `None` if the section has no such table or picture.
    pub(super) fn place_of(&self, source: &Source) -> Option<Place> {
        if let Some(index) = self.pictures.iter().position(|name| *name == source.title) {
            return Some(Place::Picture(index));
        }
        let index = (self.grids.iter()).position(|grid| grid.title.starts_with(&source.title))?;
        if source.row.is_empty() {
            return Some(Place::Grid(index, None));
        }
        let rows = &self.grids[index].rows;
        let row = rows
            .iter()
            .position(|cells| cells.join(" ").starts_with(&source.row));
        Some(Place::Grid(index, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(cases: impl IntoIterator<Item = Case>) -> &'static str {
        let part = Part::new("ratio", Threshold::Above(1.0)).cases(cases);
        Claim::new("Fig. 1", "faster").part(part).verdict().word()
    }

    fn holding() -> Case {
        Case::samples("", [1.1, 1.2, 1.3, 1.4, 1.5])
    }

    fn failing() -> Case {
        Case::samples("", [0.1, 0.2, 0.3, 0.4, 0.5])
    }

    /// An interval that contains the threshold.
    fn wide() -> Case {
        Case::samples("", [0.9, 1.2, 1.3, 1.4, 1.5])
    }

    fn missing() -> Case {
        Case::missing("", Gap::NotRun("Open vSwitch"))
    }

    #[test]
    fn each_outcome_has_its_verdict() {
        assert_eq!(verdict([holding(), holding()]), "holds");
        assert_eq!(verdict([holding(), failing()]), "holds in part");
        assert_eq!(verdict([failing()]), "does not hold here");
        assert_eq!(verdict([missing()]), "not measured");
        assert_eq!(verdict([wide()]), "not measured");
        assert_eq!(verdict([]), "not measured");
        let empty = Claim::new("Fig. 1", "faster");
        assert_eq!(empty.verdict().word(), "not measured");
    }

    #[test]
    fn half_of_the_cases_are_enough_for_in_part() {
        let third = [holding(), failing(), failing()];
        assert_eq!(verdict(third), "does not hold here");
        let half = [holding(), failing(), holding(), failing()];
        assert_eq!(verdict(half), "holds in part");
        assert_eq!(verdict([holding(), wide()]), "holds in part");
        assert_eq!(verdict([holding(), missing()]), "holds in part");
        // The open case could make it half or less than half.
        assert_eq!(verdict([failing(), wide()]), "not measured");
        let decided = [failing(), failing(), wide()];
        assert_eq!(verdict(decided), "does not hold here");
        assert_eq!(verdict([holding(), wide(), wide()]), "not measured");
    }

    #[test]
    fn an_interval_that_touches_the_threshold() {
        let touching = || Case::samples("", [1.0, 1.2, 1.3, 1.4, 1.5]);
        let outcome = |threshold, case: Case| {
            let part = Part::new("ratio", threshold).case(case);
            part.outcomes().next().unwrap().1
        };
        assert_eq!(outcome(Threshold::Above(1.0), touching()), Outcome::Open);
        assert_eq!(outcome(Threshold::AtLeast(1.0), touching()), Outcome::Holds);
        assert_eq!(outcome(Threshold::Below(1.0), touching()), Outcome::Fails);
        assert_eq!(outcome(Threshold::AtMost(1.0), touching()), Outcome::Open);
        assert_eq!(outcome(Threshold::Above(1.5), touching()), Outcome::Fails);
        assert_eq!(outcome(Threshold::Below(1.5), touching()), Outcome::Open);
        assert_eq!(
            outcome(Threshold::Within(1.0, 1.5), touching()),
            Outcome::Holds
        );
        assert_eq!(
            outcome(Threshold::Within(0.5, 1.0), touching()),
            Outcome::Open
        );
        assert_eq!(
            outcome(Threshold::Within(0.5, 0.9), touching()),
            Outcome::Fails
        );
    }

    #[test]
    fn too_few_samples_and_no_numbers_are_no_evidence() {
        let samples = |samples: &[f64]| verdict([Case::samples("", samples.to_vec())]);
        for count in 0..5 {
            assert_eq!(samples(&vec![2.0; count]), "not measured", "{count}");
        }
        assert_eq!(samples(&[2.0; 5]), "holds");
        assert_eq!(samples(&[2.0, 2.0, 2.0, 2.0, f64::NAN]), "not measured");
        assert_eq!(verdict([Case::exact("", f64::INFINITY)]), "not measured");
        assert_eq!(verdict([Case::exact("", 1.0)]), "does not hold here");
        assert_eq!(verdict([Case::exact("", 1.1)]), "holds");
    }

    #[test]
    fn a_part_may_need_some_of_its_cases_only() {
        let verdict = |cases: Vec<Case>| {
            let part = Part::new("ratio", Threshold::Above(1.0));
            let part = part.cases(cases).needing(2);
            Claim::new("Fig. 1", "mostly").part(part).verdict().word()
        };
        assert_eq!(verdict(vec![holding(), holding(), failing()]), "holds");
        assert_eq!(verdict(vec![holding(), holding(), wide()]), "holds");
        // Two hold, but the third was not measured.
        assert_eq!(
            verdict(vec![holding(), holding(), missing()]),
            "not measured"
        );
        assert_eq!(verdict(vec![holding(), failing(), wide()]), "not measured");
        let one = vec![holding(), failing(), failing()];
        assert_eq!(verdict(one), "does not hold here");
    }

    /// Every claim of up to three parts with up to three cases of any kind.
    #[test]
    fn no_claim_with_an_unmeasured_part_holds() {
        let kinds: [fn() -> Case; 4] = [holding, failing, wide, missing];
        let parts: Vec<Vec<usize>> = (0..5_usize.pow(3))
            .map(|code| [code % 5, code / 5 % 5, code / 25])
            .map(|codes| codes.into_iter().filter(|&code| code < 4).collect())
            .collect();
        let mut claims = 0;
        for first in &parts {
            for second in &parts {
                for needed in [None, Some(1), Some(2)] {
                    let part = |codes: &[usize], needed: Option<usize>| {
                        let cases = codes.iter().map(|&code| kinds[code]());
                        let part = Part::new("ratio", Threshold::Above(1.0)).cases(cases);
                        match needed {
                            Some(count) => part.needing(count),
                            None => part,
                        }
                    };
                    let claim = Claim::new("Fig. 1", "faster");
                    let claim = claim.part(part(first, None)).part(part(second, needed));
                    let is_measured =
                        |codes: &[usize]| !codes.is_empty() && codes.iter().all(|&code| code != 3);
                    if !is_measured(first) || !is_measured(second) {
                        assert_ne!(claim.verdict().word(), "holds", "{first:?} {second:?}");
                    }
                    let all = |wanted| first.iter().chain(second).all(|&code| code == wanted);
                    if all(0) && is_measured(first) && second.len() >= needed.unwrap_or(1) {
                        assert_eq!(claim.verdict().word(), "holds", "{first:?} {second:?}");
                    }
                    claims += 1;
                }
            }
        }
        assert_eq!(claims, 125 * 125 * 3);
    }

    #[test]
    fn measurements_are_found_in_their_section() {
        let section = Section {
            title: String::new(),
            method: String::new(),
            claims: Vec::new(),
            grids: vec![Grid {
                title: "Tables at 64k".to_owned(),
                columns: Vec::new(),
                words: 1,
                rows: vec![vec!["acl1".to_owned()], vec!["acl2".to_owned()]],
            }],
            pictures: vec!["tables.svg".to_owned()],
        };
        let place = |title: &str, row: &str| {
            let part = Part::new("", Threshold::Above(1.0)).grid(title, row);
            section.place_of(&part.sources()[0])
        };
        assert_eq!(place("Tables", ""), Some(Place::Grid(0, None)));
        assert_eq!(place("Tables at", "acl2"), Some(Place::Grid(0, Some(1))));
        assert_eq!(place("Tables", "fw1"), Some(Place::Grid(0, None)));
        assert_eq!(place("tables.svg", ""), Some(Place::Picture(0)));
        assert_eq!(place("Rates", ""), None);
    }

    #[test]
    fn figures_have_three_digits() {
        let texts =
            [1234.5, 12.34, 2.0, 0.1234, 0.01234, 0.0].map(|value| Figure(value).to_string());
        assert_eq!(texts, ["1234", "12.3", "2", "0.123", "0.0123", "0"]);
    }
}
