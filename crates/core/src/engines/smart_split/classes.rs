//! Classes of rules: large or small in the two widest fields.

use crate::model::rule::RuleRef;
use crate::model::ruleset::RuleSet;
use crate::model::schema::{FieldId, Schema};

/// A set of the four classes, with a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subset(u8);

impl Subset {
    pub(super) const ALL: Subset = Subset(15);
    const NONE: Subset = Subset(0);

    fn has(self, class: usize) -> bool {
        self.0 >> class & 1 == 1
    }

    fn or(self, other: Subset) -> Subset {
        Subset(self.0 | other.0)
    }
}

/// The two fields, which determine the class of each rule: 1 if it is large in the
/// first, plus 2 if it is large in the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    fields: [Option<FieldId>; 2],
}

/// True if a rule matches more than 2^(bits / 2) values of a field.
fn is_large(schema: &Schema, rule: &RuleRef<'_>, field: FieldId) -> bool {
    let (low, high) = rule.ends(field);
    (high - low) >> (schema.field(field).width() / 2) > 0
}

impl Classes {
    /// Classes by the two widest fields that have both large and small rules.
    pub(super) fn of(rules: &RuleSet, some: &[u32]) -> Classes {
        let schema = rules.schema();
        let mut fields: Vec<FieldId> = schema.field_ids().collect();
        fields.retain(|&field| {
            let is_large = |at: &&u32| is_large(schema, &rules.rule(**at as usize), field);
            let large = some.iter().filter(is_large).count();
            0 < large && large < some.len()
        });
        fields.sort_by_key(|&field| u32::MAX - schema.field(field).width());
        let mut fields = fields.into_iter();
        Classes {
            fields: [fields.next(), fields.next()],
        }
    }

    fn class(&self, rule: &RuleRef<'_>) -> usize {
        let schema = rule.schema();
        let [first, second] = self.fields.map(|field| {
            let is_large = |field| is_large(schema, rule, field);
            usize::from(field.is_some_and(is_large))
        });
        first | second << 1
    }

    /// True if the subset has a rule's class.
    pub(super) fn has(&self, subset: Subset, rule: &RuleRef<'_>) -> bool {
        subset == Subset::ALL || subset.has(self.class(rule))
    }

    /// Returns the rules of `some` whose class is in the subset.
    pub(super) fn only(&self, rules: &RuleSet, some: &[u32], subset: Subset) -> Vec<u32> {
        let is_in_subset = |at: &u32| self.has(subset, &rules.rule(*at as usize));
        some.iter().copied().filter(is_in_subset).collect()
    }

    /// Returns the ways to divide rules: not at all, by either field, by both. A class
    /// with few rules joins the rules that are large in both fields.
    pub(super) fn ways(&self, rules: &RuleSet, some: &[u32]) -> Vec<Vec<Subset>> {
        let mut counts = [0; 4];
        for &at in some {
            counts[self.class(&rules.rule(at as usize))] += 1;
        }
        let mut ways: Vec<Vec<Subset>> = Vec::new();
        for parts in [
            &[15][..],
            &[0b0101, 0b1010],
            &[0b0011, 0b1100],
            &[1, 2, 4, 8],
        ] {
            let mut way = Vec::new();
            let mut rest_subset = Subset::NONE;
            for &part in parts {
                let part = Subset(part);
                let rules = (0..4).filter(|&class| part.has(class));
                let rules: usize = rules.map(|class| counts[class]).sum();
                if rules > 0 && !part.has(3) {
                    way.push(part);
                } else {
                    rest_subset = rest_subset.or(part);
                }
            }
            let rest_rules = (0..4).filter(|&class| rest_subset.has(class));
            let rest_rules: usize = rest_rules.map(|class| counts[class]).sum();
            // A rest without rules has no tree.
            match way.first_mut() {
                Some(first) if rest_rules == 0 => {
                    *first = first.or(rest_subset);
                }
                _ => way.push(rest_subset),
            }
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        ways
    }
}
