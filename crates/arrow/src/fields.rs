//! The fields of a policy: all names of fields in its parts, and whether rules depend on them.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, Policy, RuleRef, Schema};

use crate::family::Family;

/// The fields that headers of a policy have. A record batch must have a column or a constant
/// for each field that a rule depends on; without one, all other fields are 0, which changes
/// no winner.
#[derive(Clone, Debug)]
pub struct HeaderFields {
    parts: Vec<PartFields>,
    names: Vec<NamedField>,
}

/// The fields of one part.
#[derive(Clone, Debug)]
pub(crate) struct PartFields {
    pub(crate) part: PartId,
    pub(crate) schema: Arc<Schema>,
    /// The family of the part's addresses; `None` if it has no addresses.
    pub(crate) family: Option<Family>,
    /// The position of each field in [`HeaderFields::named`].
    pub(crate) names: Vec<usize>,
}

/// The fields with one name, in all parts.
#[derive(Clone, Debug)]
pub(crate) struct NamedField {
    pub(crate) name: String,
    pub(crate) is_address: bool,
    pub(crate) format: ValueFormat,
    /// The largest width of the field in bits.
    pub(crate) width: u32,
    /// True if the value decides something: a rule depends on it.
    pub(crate) is_needed: bool,
}

impl HeaderFields {
    /// Returns the fields of a policy. A rule depends on each field that it does not match
    /// with a wildcard.
    #[must_use]
    pub fn of(policy: &Policy) -> HeaderFields {
        let mut fields = HeaderFields::without_rules(policy);
        for part in policy.part_ids() {
            for rule in policy.part(part).iter() {
                fields.add_rule(part, rule);
            }
        }
        fields
    }

    fn without_rules(policy: &Policy) -> HeaderFields {
        let mut fields = HeaderFields {
            parts: Vec::new(),
            names: Vec::new(),
        };
        for part in policy.part_ids() {
            let schema = Arc::clone(policy.part(part).schema());
            let names = schema.fields().iter();
            let names = names.map(|field| fields.position(field)).collect();
            fields.parts.push(PartFields {
                part,
                names,
                family: Family::of_schema(&schema),
                schema,
            });
        }
        fields
    }

    /// Returns the position of the field's name, which is added if it is new.
    fn position(&mut self, field: &classyard::Field) -> usize {
        let mut names = self.names.iter();
        if let Some(position) = names.position(|named| named.name == field.name()) {
            let named = &mut self.names[position];
            named.width = named.width.max(field.width());
            return position;
        }
        self.names.push(NamedField {
            name: field.name().to_owned(),
            is_address: Family::of_field(field).is_some(),
            format: field.format(),
            width: field.width(),
            is_needed: false,
        });
        self.names.len() - 1
    }

    /// Notes the fields that a rule depends on, such as a rule that was inserted into a live
    /// table. Fields stay noted when rules are removed.
    ///
    /// # Panics
    /// If the part does not exist, or the rule has fewer fields than the part.
    pub fn add_rule(&mut self, part: PartId, rule: RuleRef<'_>) {
        let part = &self.parts[part.index()];
        for (id, &name) in part.schema.field_ids().zip(&part.names) {
            if rule.field(id) != FieldMatch::Any {
                self.names[name].is_needed = true;
            }
        }
    }

    /// Does [`add_rule`](Self::add_rule) for the matches of a rule, in the order of the
    /// schema.
    ///
    /// # Panics
    /// If the part does not exist.
    pub fn add_matches(&mut self, part: PartId, matches: &[FieldMatch]) {
        for (matched, &name) in matches.iter().zip(&self.parts[part.index()].names) {
            if *matched != FieldMatch::Any {
                self.names[name].is_needed = true;
            }
        }
    }

    /// True if there is no field that all rules match with a wildcard.
    #[must_use]
    pub fn are_all_needed(&self) -> bool {
        self.names.iter().all(|field| field.is_needed)
    }

    /// Notes that headers need a value for every field.
    #[must_use]
    pub fn all_needed(mut self) -> HeaderFields {
        self.names
            .iter_mut()
            .for_each(|field| field.is_needed = true);
        self
    }

    /// Returns the names of all fields, each once, in the order of the first part.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|field| field.name.as_str())
    }

    pub(crate) fn named(&self) -> &[NamedField] {
        &self.names
    }

    pub(crate) fn parts(&self) -> &[PartFields] {
        &self.parts
    }

    /// Returns the part that headers with addresses of a family belong to, if there is one.
    pub(crate) fn part_of(&self, family: Option<Family>) -> Option<&PartFields> {
        let mut parts = self.parts.iter();
        match family {
            None => parts.next(),
            family => parts.find(|part| part.family.is_none() || part.family == family),
        }
    }
}
