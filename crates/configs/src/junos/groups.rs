//! Statements that are inherited from groups.
//!
//! `apply-groups [ A B ]` below a statement adds what the groups have at the same path. The
//! statement's own words stay first; a group of an inner statement comes before a group of an
//! outer one. A word `<…>` of a group is a pattern of names that exist. Terms and policies
//! of a group follow the statement's own ones.
//!
//! Inheritance that this module does not model is a fault: groups that use groups, two groups
//! that add terms or policies to one list, and a group that adds values to a condition that
//! has own values.

use std::collections::HashSet;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::tree::{Tree, WordId};

/// The maximum number of comparisons of words.
const MAX_STEPS: usize = 1 << 25;

/// The maximum number of problems before reading ends.
const MAX_FAULTS: usize = 1000;

/// The length up to which comparing a name with a pattern counts as one comparison.
const WORD_BYTES: usize = 256;

/// Adds the inherited statements to a tree. Problems are added to `faults`.
pub(super) fn inherit<'t>(
    tree: &mut Tree<'t>,
    faults: &mut Vec<Fault<'t>>,
) -> Result<(), Fault<'t>> {
    let mut applied = Vec::new();
    for word in relevant_words(tree) {
        if let Some(groups) = tree.child(word, "apply-groups") {
            applied.push((tree.path(word).len(), word, groups));
        }
    }
    applied.sort_by_key(|(depth, ..)| std::cmp::Reverse(*depth));
    let mut inheritance = Inheritance {
        tree,
        faults,
        extended_lists: HashSet::new(),
        group: "",
        steps: 0,
    };
    for (_, word, groups) in applied {
        let groups: Vec<WordId> = inheritance.tree.children(groups).collect();
        for group in groups {
            inheritance.apply(word, group)?;
        }
    }
    Ok(())
}

/// True if statements at a path have rules, or definitions that rules use.
fn is_relevant(path: &[&str]) -> bool {
    match path {
        [] => true,
        ["firewall" | "applications" | "interfaces", ..] | ["security" | "policy-options"] => true,
        ["security", second, ..] => matches!(*second, "policies" | "zones" | "address-book"),
        ["policy-options", second, ..] => *second == "prefix-list",
        _ => false,
    }
}

/// Returns the words at relevant paths, the top first.
fn relevant_words(tree: &Tree<'_>) -> Vec<WordId> {
    let mut words = vec![WordId::TOP];
    let mut index = 0;
    while let Some(&word) = words.get(index) {
        let depth = index_depth(tree, word);
        let is_relevant = |child: &WordId| depth > 1 || is_relevant(&tree.path(*child));
        words.extend(tree.children(word).filter(is_relevant));
        index += 1;
    }
    words
}

/// Returns the number of words above a word, at most 2.
fn index_depth(tree: &Tree<'_>, word: WordId) -> usize {
    match word {
        WordId::TOP => 0,
        word if tree.parent(word) == WordId::TOP => 1,
        _ => 2,
    }
}

struct Inheritance<'a, 't> {
    tree: &'a mut Tree<'t>,
    faults: &'a mut Vec<Fault<'t>>,
    /// The lists of terms and policies to which a group has added some.
    extended_lists: HashSet<WordId>,
    /// The name of the group that is being applied.
    group: &'t str,
    /// The number of comparisons of words.
    steps: usize,
}

impl<'t> Inheritance<'_, 't> {
    /// Applies the group that is named by the word `name` to a statement.
    fn apply(&mut self, word: WordId, name: WordId) -> Result<(), Fault<'t>> {
        let text = self.tree.text(name);
        if text == "junos-defaults" || self.is_excepted(word, text) {
            return Ok(());
        }
        let Some(group) = self.tree.at(&["groups", text]) else {
            return self.apply_node_groups(text);
        };
        let mut matches = vec![group];
        for step in self.tree.path(word) {
            let mut next = Vec::new();
            for group_word in matches {
                next.extend(self.tree.child(group_word, step));
                let children: Vec<WordId> = self.tree.children(group_word).collect();
                for child in children {
                    if self.is_match(child, step)? {
                        next.push(child);
                    }
                }
            }
            matches = next;
        }
        let mut extended = Vec::new();
        self.group = text;
        for group_word in matches {
            self.merge(word, group_word, &mut extended)?;
        }
        for list in extended {
            if !self.extended_lists.insert(list) {
                self.report(Fault::unsupported(
                    text,
                    "two groups that add terms or policies to one list",
                    "one group",
                ))?;
            }
        }
        Ok(())
    }

    /// True if the statement, or one above it, excludes a group.
    fn is_excepted(&self, word: WordId, group: &str) -> bool {
        let mut word = word;
        while word != WordId::TOP && !self.excepts(word, group) {
            word = self.tree.parent(word);
        }
        self.excepts(word, group)
    }

    /// True if the statement itself excludes a group.
    fn excepts(&self, word: WordId, group: &str) -> bool {
        let except = self.tree.child(word, "apply-groups-except");
        except.is_some_and(|except| self.tree.child(except, group).is_some())
    }

    /// Reports a group that is not in the file. The name `${node}` stands for the groups of
    /// a cluster's members, which usually have no rules.
    fn apply_node_groups(&mut self, name: &'t str) -> Result<(), Fault<'t>> {
        if !name.contains("${") {
            let message = format!("the group {} is not in the file", quoted(name));
            self.faults
                .push(Fault::new(name, message, "a group of the file"));
            return Ok(());
        }
        let Some(groups) = self.tree.at(&["groups"]) else {
            return Ok(());
        };
        let parts = ["firewall", "applications", "security", "policy-options"];
        let has_rules = self.tree.children(groups).any(|group| {
            self.tree.text(group).starts_with("node")
                && parts
                    .iter()
                    .any(|part| self.tree.child(group, part).is_some())
        });
        if has_rules {
            self.report(Fault::unsupported(
                name,
                "a group whose name is a variable, with rules",
                "a group with a name",
            ))?;
        }
        Ok(())
    }

    /// True if a word of a group is a pattern that matches a name.
    fn is_match(&mut self, group_word: WordId, name: &str) -> Result<bool, Fault<'t>> {
        let pattern = pattern(self.tree.text(group_word));
        let length = pattern.map_or(0, str::len);
        self.step(group_word, 1 + length * name.len() / WORD_BYTES)?;
        let Some(pattern) = pattern else {
            return Ok(false);
        };
        Ok(matches_pattern(pattern.as_bytes(), name.as_bytes()))
    }

    /// Records a problem. Too many problems end reading.
    fn report(&mut self, fault: Fault<'t>) -> Result<(), Fault<'t>> {
        if self.faults.len() >= MAX_FAULTS {
            return Err(fault);
        }
        self.faults.push(fault);
        Ok(())
    }

    /// Counts comparisons.
    fn step(&mut self, group_word: WordId, steps: usize) -> Result<(), Fault<'t>> {
        self.steps = self.steps.saturating_add(steps);
        match self.steps > MAX_STEPS {
            false => Ok(()),
            true => Err(Fault::new(
                self.tree.text(group_word),
                format!("groups need more than {MAX_STEPS} comparisons of words"),
                "fewer groups or patterns",
            )),
        }
    }

    /// Adds the words below a word of a group to a statement.
    fn merge(
        &mut self,
        word: WordId,
        group_word: WordId,
        extended: &mut Vec<WordId>,
    ) -> Result<(), Fault<'t>> {
        if self.excepts(word, self.group) {
            return Ok(());
        }
        let own_words: Vec<WordId> = self.tree.children(word).collect();
        let inherited: Vec<WordId> = self.tree.children(group_word).collect();
        let (patterns, names): (Vec<WordId>, Vec<WordId>) = inherited
            .into_iter()
            .partition(|child| pattern(self.tree.text(*child)).is_some());
        for child in patterns {
            for &own_child in &own_words {
                if self.is_match(child, self.tree.text(own_child))? {
                    self.merge(own_child, child, extended)?;
                }
            }
        }
        for child in names {
            self.merge_child(word, child, !own_words.is_empty(), extended)?;
        }
        Ok(())
    }

    fn merge_child(
        &mut self,
        word: WordId,
        child: WordId,
        has_own: bool,
        extended: &mut Vec<WordId>,
    ) -> Result<(), Fault<'t>> {
        self.step(child, 1)?;
        let text = self.tree.text(child);
        if text == "apply-groups" {
            self.report(Fault::unsupported(
                text,
                "`apply-groups` in a group",
                "groups that do not use groups",
            ))?;
            return Ok(());
        }
        let is_new = self.tree.any_child(word, text).is_none();
        if is_new && index_depth(self.tree, word) < 2 {
            let mut path = self.tree.path(word);
            path.push(text);
            if !is_relevant(&path) {
                return Ok(());
            }
        }
        let above = self.tree.text(self.tree.parent(word));
        if is_new && has_own && matches!(above, "from" | "match") {
            self.report(Fault::unsupported(
                text,
                "a group that adds values to a condition",
                "the values in the statement",
            ))?;
            return Ok(());
        }
        if is_new && has_own && matches!(self.tree.text(word), "term" | "policy") {
            extended.push(word);
            extended.dedup();
        }
        let keyword = self.tree.keyword(child);
        let own_child = self.tree.add(word, text, keyword)?;
        if is_new && let Some(comment) = self.tree.comment(child) {
            self.tree.set_comment(own_child, comment);
        }
        self.merge(own_child, child, extended)
    }
}

/// Returns the pattern between `<` and `>`.
fn pattern(text: &str) -> Option<&str> {
    text.strip_prefix('<')?.strip_suffix('>')
}

/// True if a name matches a pattern: `*` stands for any characters, `?` for one character,
/// `[a-z]` for a character of a set.
pub(super) fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut in_pattern, mut in_name) = (0, 0);
    // The positions after the last `*`, and in the name where it ends.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(in_pattern) {
            Some(b'*') => {
                in_pattern += 1;
                star = Some((in_pattern, in_name));
            }
            _ => match (match_one(pattern, in_pattern, name[in_name]), star) {
                (Some(next), _) => {
                    in_pattern = next;
                    in_name += 1;
                }
                (None, Some((after_star, end))) => {
                    in_pattern = after_star;
                    in_name = end + 1;
                    star = Some((after_star, end + 1));
                }
                (None, None) => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|byte| *byte == b'*')
}

/// Returns the position after the part of a pattern that matches one character.
fn match_one(pattern: &[u8], start: usize, byte: u8) -> Option<usize> {
    let set_end = pattern[start..].iter().position(|end| *end == b']');
    match (*pattern.get(start)?, set_end) {
        (b'[', Some(length)) if length > 1 => {
            let set = &pattern[start + 1..start + length];
            let (set, is_inverse) = match set.split_first() {
                Some((b'!' | b'^', others)) if !others.is_empty() => (others, true),
                _ => (set, false),
            };
            let mut has_byte = set.contains(&byte);
            for range in set.windows(3) {
                has_byte |= range[1] == b'-' && (range[0]..=range[2]).contains(&byte);
            }
            (has_byte != is_inverse).then_some(start + length + 1)
        }
        (b'?', _) => Some(start + 1),
        (own, _) => (own == byte).then_some(start + 1),
    }
}

/// Returns the words at the end of paths that a pattern such as
/// `interfaces <*> unit <*> family inet address <*>` selects.
pub(super) fn select(tree: &Tree<'_>, path: &str) -> Vec<WordId> {
    let mut selected = vec![WordId::TOP];
    for step in path.split_whitespace() {
        let mut next = Vec::new();
        for word in selected {
            match pattern(step) {
                Some(pattern) => next.extend(tree.children(word).filter(|child| {
                    matches_pattern(pattern.as_bytes(), tree.text(*child).as_bytes())
                })),
                None => next.extend(tree.child(word, step)),
            }
        }
        selected = next;
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, is_match) in [
            ("*", "", true),
            ("*", "ge-0/0/0", true),
            ("ge-*", "ge-0/0/0", true),
            ("ge-*", "xe-0/0/0", false),
            ("*.0", "ge-0/0/0.0", true),
            ("*.0", "ge-0/0/0.01", false),
            ("[gx]e-?/*", "xe-0/0/0", true),
            ("[!g]e-*", "ge-0/0/0", false),
            ("[a-f]*1", "e111", true),
            ("[a-f]*1", "z111", false),
            ("[", "[", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("", "", true),
            ("", "a", false),
        ] {
            let matches = matches_pattern(pattern.as_bytes(), name.as_bytes());
            assert_eq!(matches, is_match, "{pattern} {name}");
        }
    }
}
