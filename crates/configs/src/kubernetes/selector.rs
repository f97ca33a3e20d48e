//! Labels, and selectors of labels.

use std::collections::HashMap;
use std::fmt::Write as _;

use classyard_text::Fault;

use crate::document::Item;

/// The label that each namespace has: its name.
pub(super) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The labels of a pod or namespace.
pub(super) type Labels<'d> = HashMap<&'d str, &'d str>;

/// Returns the labels of an object.
pub(super) fn labels(object: Item<'_>) -> Result<Labels<'_>, Fault<'_>> {
    let labels = object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"));
    let Some(labels) = labels else {
        return Ok(Labels::new());
    };
    let labels = labels.entries()?;
    let labels = labels.map(|(key, value)| Ok((key.scalar_text(), value.string()?)));
    labels.collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator<'d> {
    In(Vec<&'d str>),
    NotIn(Vec<&'d str>),
    Exists,
    DoesNotExist,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement<'d> {
    key: &'d str,
    operator: Operator<'d>,
}

impl Requirement<'_> {
    fn is_met(&self, labels: &Labels<'_>) -> bool {
        let value = labels.get(self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// A selector: requirements that labels must all meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector<'d> {
    requirements: Vec<Requirement<'d>>,
}

impl<'d> Selector<'d> {
    /// The selector of all labels.
    pub(super) const ALL: Selector<'static> = Selector {
        requirements: Vec::new(),
    };

    /// Parses a selector.
    pub(super) fn parse(item: Item<'d>) -> Result<Selector<'d>, Fault<'d>> {
        item.check_keys(&["matchLabels", "matchExpressions"])?;
        let mut requirements = Vec::new();
        if let Some(labels) = item.get("matchLabels") {
            for (key, value) in labels.entries()? {
                requirements.push(Requirement {
                    key: key.scalar_text(),
                    operator: Operator::In(vec![value.string()?]),
                });
            }
        }
        for expression in item.list("matchExpressions")? {
            requirements.push(parse_expression(expression)?);
        }
        Ok(Selector { requirements })
    }

    /// True if all labels are selected.
    pub(super) fn is_all(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if the labels meet all requirements.
    pub(super) fn selects(&self, labels: &Labels<'_>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.is_met(labels))
    }

    /// True or false if this selector selects a namespace with this name, whatever the other
    /// labels of the namespace are. `None` if it depends on them.
    pub(super) fn selects_unknown(&self, namespace: &str) -> Option<bool> {
        let labels = Labels::from([(NAME_LABEL, namespace)]);
        let (of_name, others): (Vec<_>, Vec<_>) = self
            .requirements
            .iter()
            .partition(|requirement| requirement.key == NAME_LABEL);
        let is_met = of_name
            .iter()
            .all(|requirement| requirement.is_met(&labels));
        match is_met {
            false => Some(false),
            true => others.is_empty().then_some(true),
        }
    }

    /// The number of comparisons of one set of labels, at most.
    pub(super) fn cost(&self) -> u64 {
        let costs = self
            .requirements
            .iter()
            .map(|requirement| match &requirement.operator {
                Operator::In(values) | Operator::NotIn(values) => values.len() as u64 + 1,
                Operator::Exists | Operator::DoesNotExist => 1,
            });
        costs.sum::<u64>() + 1
    }

    /// Returns the selector as `kubectl` takes it: `app=web,tier in (a,b),!old`.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for requirement in &self.requirements {
            if !text.is_empty() {
                text.push(',');
            }
            let key = requirement.key;
            let written = match &requirement.operator {
                Operator::In(values) if values.len() == 1 => write!(text, "{key}={}", values[0]),
                Operator::In(values) => write!(text, "{key} in ({})", values.join(",")),
                Operator::NotIn(values) if values.len() == 1 => {
                    write!(text, "{key}!={}", values[0])
                }
                Operator::NotIn(values) => write!(text, "{key} notin ({})", values.join(",")),
                Operator::Exists => write!(text, "{key}"),
                Operator::DoesNotExist => write!(text, "!{key}"),
            };
            written.expect("a String takes all text");
        }
        text
    }
}

fn parse_expression(item: Item<'_>) -> Result<Requirement<'_>, Fault<'_>> {
    item.check_keys(&["key", "operator", "values"])?;
    let key = item.require("key")?.string()?;
    let values = item.list("values")?.into_iter().map(Item::string);
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let operator_item = item.require("operator")?;
    let has_values = !values.is_empty();
    let (operator, needs_values) = match operator_item.string()? {
        "In" => (Operator::In(values), true),
        "NotIn" => (Operator::NotIn(values), true),
        "Exists" => (Operator::Exists, false),
        "DoesNotExist" => (Operator::DoesNotExist, false),
        _ => return Err(operator_item.unexpected("In, NotIn, Exists or DoesNotExist")),
    };
    match (has_values, needs_values) {
        (true, false) => Err(item.fault("values for this operator", "no values")),
        (false, true) => Err(item.fault("no values", "a list of values for this operator")),
        _ => Ok(Requirement { key, operator }),
    }
}
