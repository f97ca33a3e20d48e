//! A builder of rules whose fields are set by name.

use std::sync::Arc;

use crate::model::error::RuleError;
use crate::model::rule::field_value::FieldValue;
use crate::model::rule::{ActionId, FieldMatch, Priority, Rule, RuleId};
use crate::model::schema::{Field, Schema};

#[cfg(test)]
mod tests;

/// A rule's settings before its schema is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) id: Option<u32>,
    pub(crate) priority: Priority,
    pub(crate) action: ActionId,
    pub(crate) cookie: u64,
    fields: Vec<(String, FieldValue)>,
}

impl Draft {
    pub(crate) fn new(id: Option<u32>) -> Draft {
        Draft {
            id,
            ..Draft::default()
        }
    }

    pub(crate) fn field(&mut self, name: &str, value: FieldValue) {
        self.fields.push((name.to_owned(), value));
    }

    /// Returns the rule's id, or an error if it is missing or too large.
    pub(crate) fn id(&self) -> Result<RuleId, RuleError> {
        RuleId::new(self.id.ok_or(RuleError::MissingId)?)
    }

    /// True if a field matches an address of one IP family and has the width of
    /// the other.
    pub(crate) fn is_of_another_family(&self, schema: &Schema) -> bool {
        self.fields.iter().any(|(name, value)| {
            let field = schema.field_named(name).map(|id| schema.field(id));
            field.is_some_and(|field| value.is_of_another_family(field))
        })
    }

    /// Checks that the rule does not have addresses of both families.
    pub(crate) fn check_families(&self) -> Result<(), RuleError> {
        let named = |is: fn(&FieldValue) -> bool| {
            let field = self.fields.iter().find(|(_, value)| is(value));
            field.map(|(name, _)| name.clone())
        };
        match (named(FieldValue::is_ipv4), named(FieldValue::is_ipv6)) {
            (Some(ipv4), Some(ipv6)) => Err(RuleError::MixedFamilies { ipv4, ipv6 }),
            _ => Ok(()),
        }
    }

    /// Returns one match for each field of a schema, in order.
    pub(crate) fn matches(&self, schema: &Schema) -> Result<Vec<FieldMatch>, RuleError> {
        let mut matches: Vec<Option<FieldMatch>> = vec![None; schema.fields().len()];
        for (name, value) in &self.fields {
            let Some(id) = schema.field_named(name) else {
                let names = schema.fields().iter().map(Field::name);
                return Err(RuleError::UnknownField {
                    field: name.clone(),
                    schema: schema.name().to_owned(),
                    known: names.collect::<Vec<_>>().join(", "),
                });
            };
            let slot = &mut matches[id.index()];
            if slot.is_some() {
                return Err(RuleError::RepeatedField {
                    field: name.clone(),
                });
            }
            *slot = Some(value.in_field(schema.field(id))?);
        }
        let any = |field_match: Option<FieldMatch>| field_match.unwrap_or(FieldMatch::Any);
        Ok(matches.into_iter().map(any).collect())
    }
}

/// The setters of [`RuleBuilder`] and `PolicyRule`. Both types have a `draft`.
macro_rules! rule_setters {
    () => {
        /// Sets the priority; higher wins.
        pub fn priority(mut self, priority: u32) -> Self {
            self.draft.priority = Priority(priority);
            self
        }

        /// Sets the action.
        pub fn action(mut self, action: ActionId) -> Self {
            self.draft.action = action;
            self
        }

        /// Sets the cookie: a number for the caller's use.
        pub fn cookie(mut self, cookie: u64) -> Self {
            self.draft.cookie = cookie;
            self
        }

        /// Sets the match of the field with this name.
        pub fn field(mut self, name: &str, value: impl Into<FieldValue>) -> Self {
            self.draft.field(name, value.into());
            self
        }
    };
}
pub(crate) use rule_setters;

/// Builds a [`Rule`] whose fields are set by name; see [`Rule::builder`].
#[derive(Clone, Debug)]
#[must_use = "a rule is made by `build`"]
pub struct RuleBuilder<'s> {
    schema: &'s Arc<Schema>,
    draft: Draft,
}

impl Rule {
    /// Returns a builder of a rule whose fields are set by name. Fields that
    /// are not set match any value. The priority and the action number are 0
    /// unless set.
    ///
    /// [`Rule::new`] takes all fields by position, without name lookups.
    ///
    /// ```
    /// use classyard::{ActionId, Rule, Schema};
    /// use ipnet::IpNet;
    ///
    /// let schema = Schema::ipv4_5tuple();
    /// let servers: IpNet = "10.1.0.0/16".parse()?;
    /// let rule = Rule::builder(&schema)
    ///     .id(7)
    ///     .priority(10)
    ///     .field("dst", servers)
    ///     .field("dport", 8000..=8099)
    ///     .field("proto", 6)
    ///     .action(ActionId(1))
    ///     .build()?;
    /// assert_eq!(rule.view().to_string(), "dst=10.1.0.0/16 dport=8000-8099 proto=tcp");
    ///
    /// let error = Rule::builder(&schema).id(8).field("dport", 70_000).build().unwrap_err();
    /// assert_eq!(error.to_string(), "dport: 70000 does not fit in 16 bits");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(schema: &Arc<Schema>) -> RuleBuilder<'_> {
        RuleBuilder {
            schema,
            draft: Draft::new(None),
        }
    }
}

impl RuleBuilder<'_> {
    /// Sets the rule's id. An id is required. The largest id is
    /// [`RuleId::MAX`].
    pub fn id(mut self, id: u32) -> Self {
        self.draft.id = Some(id);
        self
    }

    rule_setters!();

    /// Packs the rule.
    ///
    /// # Errors
    /// [`RuleError`] if the id is missing, a field is unknown or given twice,
    /// or a value does not fit its field. The error names the field.
    pub fn build(self) -> Result<Rule, RuleError> {
        let id = self.draft.id()?;
        let matches = self.draft.matches(self.schema)?;
        let Draft {
            priority,
            action,
            cookie,
            ..
        } = self.draft;
        let rule = Rule::new(self.schema, id, priority, action, &matches)?;
        Ok(rule.with_cookie(cookie))
    }
}
