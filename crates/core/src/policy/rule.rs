//! Rules of a policy whose fields are set by name, for any family.

use std::sync::Arc;

use crate::model::error::PartError;
use crate::model::rule::{ActionId, Draft, FieldValue, Priority, Rule, rule_setters};
use crate::model::ruleset::AddError;
use crate::model::schema::Schema;

use super::transaction::Entry;
use super::{PartId, Policy, PolicyTransactionBuf};

/// A rule of a policy whose fields are set by name. [`Policy::add_rule`] adds it to every
/// part that has addresses of its family. For example, a rule with an IPv4 network is
/// only in the IPv4 part; a rule that matches only ports or a protocol is in both parts.
///
/// ```
/// use classyard::{FiveTuple, Limits, NoProgress, EngineSpec, Policy, PolicyRule, Scratch};
/// use ipnet::IpNet;
///
/// let mut policy = Policy::dual_stack();
/// let (allow, deny) = (policy.declare_action("allow"), policy.declare_action("deny"));
/// let servers: IpNet = "2001:db8::/32".parse()?;
/// policy.add_rule(&PolicyRule::new(1).priority(20).field("dst", servers).action(allow))?;
/// policy.add_rule(&PolicyRule::new(2).priority(10).field("dport", 23).action(deny))?;
///
/// let engine = EngineSpec::parse("forest")?;
/// let classifier = policy.build(&engine, &Limits::default(), &mut NoProgress)?;
/// let telnet = FiveTuple::new("10.0.0.1".parse()?, "10.0.0.2".parse()?, 40_000, 23, 6);
/// let verdict = classifier.classify_header(&telnet.unwrap());
/// let decision = policy.decision(verdict.unwrap()).unwrap();
/// assert_eq!(decision.action_name, Some("deny"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a policy or a transaction takes it"]
pub struct PolicyRule {
    draft: Draft,
}

impl PolicyRule {
    /// Returns a rule with this id that matches any header. Its priority and
    /// action number are 0.
    pub fn new(id: u32) -> PolicyRule {
        PolicyRule {
            draft: Draft::new(Some(id)),
        }
    }

    rule_setters!();

    /// Returns the rule's form in each of its parts.
    fn forms<'s>(
        &self,
        schemas: impl Iterator<Item = &'s Arc<Schema>>,
    ) -> Result<Vec<(PartId, Rule)>, AddError> {
        let id = self.draft.id().map_err(AddError::Rule)?;
        self.draft.check_families().map_err(AddError::Rule)?;
        let mut forms = Vec::new();
        let mut schema_of_other_family = None;
        for (index, schema) in schemas.enumerate() {
            if self.draft.is_of_another_family(schema) {
                schema_of_other_family.get_or_insert(schema);
                continue;
            }
            let matches = self.draft.matches(schema).map_err(AddError::Rule)?;
            let Draft {
                priority, action, ..
            } = self.draft;
            let rule = Rule::new(schema, id, priority, action, &matches);
            let rule = rule.map_err(AddError::Rule)?.with_cookie(self.draft.cookie);
            forms.push((PartId::from_index(index), rule));
        }
        match (forms.is_empty(), schema_of_other_family) {
            // The error names the address that fits no part.
            (true, Some(schema)) => {
                let error = self.draft.matches(schema).err();
                Err(error.map_or(AddError::Parts(PartError::Missing), AddError::Rule))
            }
            _ => Ok(forms),
        }
    }
}

impl Policy {
    /// Adds a rule to every part that has addresses of its family.
    ///
    /// # Errors
    /// [`AddError`] if one of these parts lacks a field, a field is given twice, a value
    /// does not fit its field, no part has addresses of the rule's family, or the id is
    /// in use. Nothing is added then.
    pub fn add_rule(&mut self, rule: &PolicyRule) -> Result<(), AddError> {
        let forms = rule.forms(self.schemas())?;
        let forms: Vec<_> = forms
            .iter()
            .map(|(part, rule)| (*part, rule.view()))
            .collect();
        self.add_forms(&forms)
    }
}

impl PolicyTransactionBuf {
    /// Appends an insert of a rule in every part that has addresses of its
    /// family.
    ///
    /// # Errors
    /// [`AddError`] as for [`Policy::add_rule`], except that ids are checked when
    /// the transaction is applied. Nothing is appended then.
    pub fn insert_rule(&mut self, rule: &PolicyRule) -> Result<&mut Self, AddError> {
        let forms = rule.forms(self.schemas.iter())?;
        Ok(self.push_forms(&forms, Entry::Insert))
    }

    /// Appends a replacement of the rule with the same id; its parts may
    /// change.
    ///
    /// # Errors
    /// As for [`insert_rule`](Self::insert_rule).
    pub fn modify_rule(&mut self, rule: &PolicyRule) -> Result<&mut Self, AddError> {
        let forms = rule.forms(self.schemas.iter())?;
        Ok(self.push_forms(&forms, Entry::Modify))
    }
}
