//! Copies of policies with other matches.

use classyard::policy::PartId;
use classyard::{FieldMatch, Policy, RuleRef};

/// Returns the rules of a policy over [`Policy::acl`]. `change` changes the matches of a form of
/// a rule and returns its part, or `None` to leave the form out. A rule without forms is left
/// out.
pub(crate) fn copied(
    policy: &Policy,
    change: impl Fn(PartId, &mut Vec<FieldMatch>) -> Option<PartId>,
) -> Policy {
    let mut copy = Policy::acl();
    for &id in policy.ids() {
        let form = |(part, rule): (PartId, RuleRef<'_>)| {
            let mut matches = rule.fields();
            let part = change(part, &mut matches)?;
            Some((part, matches, rule.priority(), rule.action()))
        };
        let forms: Vec<_> = policy.rule(id).filter_map(form).collect();
        let Some(&(_, _, priority, action)) = forms.first() else {
            continue;
        };
        let action = policy.action_name(action).unwrap_or_default();
        let action = copy.declare_action(action);
        let forms: Vec<_> = forms.iter().map(|form| (form.0, &form.1[..])).collect();
        let added = copy.add(id, priority, action, &forms);
        added.expect("a rule of a policy");
        if let Some(name) = policy.rule_name(id) {
            copy.set_rule_name(id, name);
        }
    }
    copy
}
