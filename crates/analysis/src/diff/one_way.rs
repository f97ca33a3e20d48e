//! Headers with an action in one policy that another policy does not give them.
//!
//! This is one direction of a comparison, perhaps for selected headers only: a difference
//! counts if its first action is the one in question.

use classyard::policy::PartId;
use classyard::{Policy, Progress};

use crate::boxes::overlap;
use crate::cover::{Steps, common};
use crate::error::AnalysisError;
use crate::part::{AnalysedPart, overlapping};

use super::{Comparison, Diff, DiffSettings, Undecided, check_schemas, common_actions};

/// The differences that a comparison searches for.
#[derive(Debug)]
pub(super) struct Scope {
    /// If given, only headers with this action in the first policy and another one in the
    /// second policy. A number as in [`common_actions`].
    pub(super) action: Option<u32>,
    /// The boxes of the selected headers. `None` selects all headers.
    selection: Option<Vec<Box<[u32]>>>,
    /// The number of selected headers divided by the number of all headers.
    pub(super) share: f64,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope {
            action: None,
            selection: None,
            share: 1.0,
        }
    }
}

impl Scope {
    /// Returns a scope of all headers.
    fn with_action(action: u32) -> Scope {
        Scope {
            action: Some(action),
            ..Scope::default()
        }
    }

    /// Returns the scope of the third list: its rules match the headers. `None` if a rule needs
    /// too many boxes.
    fn selected_by_third_list(part: &AnalysedPart<'_>, action: u32) -> Option<Scope> {
        let (boxes, mut places) = (part.boxes(), part.places(2));
        if !places.all(|place| boxes.is_exact(place)) {
            return None;
        }
        let numbers = part.boxes_at(part.places(2));
        let selected = numbers.map(|number| boxes.bounds(number));
        let shares = selected.clone().map(|bounds| part.space().share(bounds));
        Some(Scope {
            action: Some(action),
            share: shares.sum(),
            selection: Some(selected.map(Box::from).collect()),
        })
    }

    /// Returns the boxes of the selected headers that a rule matches.
    pub(super) fn boxes_within(&self, part: &AnalysedPart<'_>, place: u32) -> Vec<Box<[u32]>> {
        let boxes = part.boxes();
        let rule_boxes = boxes.of(place).map(|number| boxes.bounds(number));
        let Some(selection) = &self.selection else {
            return rule_boxes.map(Box::from).collect();
        };
        let within = rule_boxes.flat_map(|bounds| {
            let overlapping = selection
                .iter()
                .filter(|selected| overlap(selected, bounds));
            overlapping.map(|selected| common(selected, bounds))
        });
        within.collect()
    }
}

/// Returns the headers to which the first policy gives an action and the second policy does
/// not. Actions are compared by name. The result has no differences if and only if everything
/// with this action in the first policy has it in the second policy too.
///
/// Only headers that a rule of `selection` matches are examined. It has the schemas of the
/// policies. No two of its rules may match one header, because shares would count it twice.
///
/// ```
/// use classyard::prelude::*;
/// use classyard::NoProgress;
/// use classyard_analysis::{DiffSettings, outside};
///
/// let policy = |rules: &[(u128, u128, &str)]| {
///     let mut policy = Policy::single(&Schema::ipv4_5tuple());
///     let part = policy.part_ids().next().unwrap();
///     for (id, &(low, high, action)) in rules.iter().enumerate() {
///         let mut matches = [FieldMatch::Any; 5];
///         matches[3] = FieldMatch::Range { low, high };
///         let action = policy.declare_action(action);
///         let priority = Priority(10 - u32::try_from(id).unwrap());
///         policy.add(RuleId::from_index(id), priority, action, &[(part, &matches)]).unwrap();
///     }
///     policy
/// };
/// let rules = policy(&[(80, 89, "permit")]);
/// let allowed = policy(&[(85, 85, "deny"), (0, 1023, "permit")]);
/// let settings = DiffSettings::default();
/// let result = outside(&rules, &allowed, "permit", None, &settings, &mut NoProgress)?;
/// let [difference] = result.differences() else { unreachable!() };
/// assert_eq!(difference.header[3], 85);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If `selection` has other schemas than the policies.
///
/// # Errors
/// As for [`diff()`](super::diff()).
pub fn outside(
    first: &Policy,
    second: &Policy,
    action: &str,
    selection: Option<&Policy>,
    settings: &DiffSettings,
    progress: &mut dyn Progress,
) -> Result<Diff, AnalysisError> {
    check_schemas(first, second)?;
    if let Some(selection) = selection {
        assert!(first.schemas().eq(selection.schemas()), "equal schemas");
    }
    let mut result = Diff::default();
    let mut steps = Steps::new(settings.max_steps);
    let Some(action) = first.action_named(action) else {
        return Ok(result);
    };
    for part_id in first.part_ids() {
        let parts = [first, second].map(|policy| policy.part(part_id));
        let selected = match selection {
            None => None,
            Some(selection) if selection.part(part_id).is_empty() => continue,
            Some(selection) => {
                let selecting = selection.part(part_id);
                let [first, second] = parts.map(|rules| overlapping(rules, selecting));
                Some((first, second, selecting))
            }
        };
        let part = match &selected {
            None => AnalysedPart::new(&parts)?,
            Some((first, second, selecting)) => AnalysedPart::new(&[first, second, selecting])?,
        };
        let mut first_places = part.places(0);
        let Some(example) = first_places.find(|&place| part.action(place) == action) else {
            continue;
        };
        let actions = common_actions([first, second], &part);
        let action = actions[example as usize];
        let scope = match &selected {
            None => Some(Scope::with_action(action)),
            Some(_) => Scope::selected_by_third_list(&part, action),
        };
        let Some(scope) = scope else {
            result.undecided.extend(undecided(part_id, &part, example));
            continue;
        };
        let mut comparison = Comparison::new(part_id, &part, actions, &scope);
        comparison.compare(settings, &mut steps, &mut result, progress)?;
        if result.is_cut {
            break;
        }
    }
    Ok(result)
}

/// Returns the rules of the first list with the action of the rule at `example`.
fn undecided(part_id: PartId, part: &AnalysedPart<'_>, example: u32) -> Vec<Undecided> {
    let action = part.action(example);
    let places = part.places(0).filter(|&place| part.action(place) == action);
    let undecided = places.map(|place| Undecided {
        part: part_id,
        policy: 0,
        rule: part.rule(place).id(),
    });
    undecided.collect()
}
