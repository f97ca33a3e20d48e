//! The rules that decide the headers of a box.

use std::collections::{BTreeMap, BTreeSet};

use classyard::policy::PartId;
use classyard::{BuildError, Policy, Progress, RuleId};

use crate::cover::{CoverSearch, Steps, common};
use crate::error::AnalysisError;
use crate::part::{AnalysedPart, overlapping};

/// The settings of [`query()`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct QuerySettings {
    /// The maximum number of steps. A step compares one rule with a part of another rule; a
    /// million take some 10 ms. The default is 2 billion.
    pub max_steps: u64,
}

impl Default for QuerySettings {
    fn default() -> QuerySettings {
        QuerySettings {
            max_steps: 2_000_000_000,
        }
    }
}

/// Headers that one rule decides.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The part that the headers belong to.
    pub part: PartId,
    /// The rule. `None` if no rule matches.
    pub rule: Option<RuleId>,
    /// An example: a value for each field.
    pub header: Vec<u128>,
    /// The number of these headers divided by the number of all selected headers.
    pub share: f64,
}

/// The result of [`query()`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    answers: Vec<Answer>,
    undecided: Vec<Option<RuleId>>,
}

impl Query {
    /// Returns the rules that decide headers, best first in each part. The headers that no
    /// rule matches come last.
    #[must_use]
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Returns rules that may decide headers, or more of them than the answers say: a search
    /// reached the limit of steps, or a rule needs too many boxes. `None` stands for headers
    /// that no rule matches.
    #[must_use]
    pub fn undecided(&self) -> &[Option<RuleId>] {
        &self.undecided
    }
}

/// Returns the rules that decide the headers of `selection`. Its rules match these headers. No
/// two of its rules may match one header, because shares would count it twice.
///
/// ```
/// use classyard::prelude::*;
/// use classyard::NoProgress;
/// use classyard_analysis::{QuerySettings, query};
///
/// let policy = |ranges: &[(u128, u128)]| {
///     let mut policy = Policy::single(&Schema::ipv4_5tuple());
///     let part = policy.part_ids().next().unwrap();
///     for (id, &(low, high)) in ranges.iter().enumerate() {
///         let mut matches = [FieldMatch::Any; 5];
///         matches[3] = FieldMatch::Range { low, high };
///         let priority = Priority(10 - u32::try_from(id).unwrap());
///         policy.add(RuleId::from_index(id), priority, ActionId(0), &[(part, &matches)]).unwrap();
///     }
///     policy
/// };
/// let rules = policy(&[(80, 89), (0, 65535)]);
/// let result = query(&rules, &policy(&[(85, 94)]), &QuerySettings::default(), &mut NoProgress)?;
/// let shares: Vec<f64> = result.answers().iter().map(|answer| answer.share).collect();
/// assert_eq!(shares, [0.5, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the schemas of both policies differ.
///
/// # Errors
/// [`AnalysisError`] if the rules need too much memory, or `progress` cancelled.
pub fn query(
    policy: &Policy,
    selection: &Policy,
    settings: &QuerySettings,
    progress: &mut dyn Progress,
) -> Result<Query, AnalysisError> {
    assert!(policy.schemas().eq(selection.schemas()), "equal schemas");
    let mut result = Query::default();
    let mut steps = Steps::new(settings.max_steps);
    for part_id in policy.part_ids() {
        let selection = selection.part(part_id);
        if selection.is_empty() {
            continue;
        }
        let overlapping = overlapping(policy.part(part_id), selection);
        let part = AnalysedPart::new(&[&overlapping, selection])?;
        let mut examination = Examination {
            part: &part,
            part_id,
            search: CoverSearch::default(),
            found: BTreeMap::new(),
            undecided: BTreeSet::new(),
        };
        examination.run(&mut steps, progress)?;
        result.answers.extend(examination.found.into_values());
        let undecided = examination.undecided.into_iter();
        let id = |place: u32| (place != NO_RULE).then(|| part.rule(place).id());
        result.undecided.extend(undecided.map(id));
    }
    Ok(result)
}

/// The place that stands for headers that no rule matches: behind all rules.
const NO_RULE: u32 = u32::MAX;

/// The examination of one part.
struct Examination<'a> {
    part: &'a AnalysedPart<'a>,
    part_id: PartId,
    search: CoverSearch,
    /// By place.
    found: BTreeMap<u32, Answer>,
    /// Places.
    undecided: BTreeSet<u32>,
}

impl Examination<'_> {
    fn run(&mut self, steps: &mut Steps, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let boxes = self.part.boxes();
        let mut selections = self.part.places(1);
        if !selections.all(|place| boxes.is_exact(place)) {
            // Some boxes have more headers than the selection.
            self.undecided.extend(self.part.places(0));
            self.undecided.insert(NO_RULE);
            return Ok(());
        }
        let selected = self.part.boxes_at(self.part.places(1));
        let shares = selected
            .clone()
            .map(|number| self.part.space().share(boxes.bounds(number)));
        let whole: f64 = shares.sum();
        for number in selected {
            let bounds = boxes.bounds(number);
            let all_boxes = self.part.boxes_at(self.part.places(0));
            let overlapping = self.part.until_cover(bounds, all_boxes.clone(), |_| true);
            let rule_boxes = &overlapping.boxes;
            for (done, &other) in rule_boxes.iter().enumerate() {
                let stage = "examining rules";
                classyard::progress::report(progress, stage, done, rule_boxes.len())?;
                let target = common(bounds, boxes.bounds(other));
                self.add(boxes.owner(other), &target, 0..other, whole, steps);
            }
            if !overlapping.one_covers {
                self.add(NO_RULE, bounds, all_boxes, whole, steps);
            }
        }
        Ok(())
    }

    /// Adds the headers of `target` outside of the boxes `better` to the answer of a place.
    fn add(
        &mut self,
        place: u32,
        target: &[u32],
        better: std::ops::Range<u32>,
        whole: f64,
        steps: &mut Steps,
    ) {
        let (part, part_id, found) = (self.part, self.part_id, &mut self.found);
        let (boxes, space) = (part.boxes(), part.space());
        let candidates = part.candidates(target, better, |_| true);
        if candidates.one_covers {
            return;
        }
        let rules = part.places(0);
        let is_exact = place == NO_RULE || boxes.is_exact(place);
        if !is_exact || boxes.has_inexact(rules.start..place.min(rules.end), target) {
            self.undecided.insert(place);
            return;
        }
        let list = &candidates.boxes;
        let complete = self.search.examine(boxes, target, list, steps, |piece| {
            let answer = found.entry(place).or_insert_with(|| Answer {
                part: part_id,
                rule: (place != NO_RULE).then(|| part.rule(place).id()),
                header: space.header(piece.chunks_exact(2).map(|ends| ends[0])),
                share: 0.0,
            });
            answer.share += space.share(piece) / whole;
            space.prefer(&mut answer.header, piece);
            true
        });
        if !complete {
            self.undecided.insert(place);
        }
    }
}
