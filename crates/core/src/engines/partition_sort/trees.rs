//! The trees of all partitions, and how rules are inserted and removed.

use std::sync::Arc;

use super::dimension::Dimension;
use super::grow::{Rules, stack};
use super::node::{Below, FANOUT, Node, Nodes, To};
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::packed::PackedRule;
use crate::model::rule::RuleRef;
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::parts::sort::sort_short;
use crate::parts::tuple_space::{Arena, EntryIndex, TableNumber};

/// Nodes, lists of rules, and the data needed to change them.
pub(super) struct Trees<const W: usize> {
    pub(super) schema: Arc<Schema>,
    pub(super) dimensions: Box<[Dimension]>,
    pub(super) arena: Arena<W>,
    pub(super) nodes: Nodes,
    /// The largest number of rules in a list.
    pub(super) leaf: usize,
    /// The path of the current update: nodes, and indices in `next`.
    path: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    node: u32,
    place: usize,
}

impl<const W: usize> Trees<W> {
    pub(super) fn new(schema: &Arc<Schema>, leaf: usize) -> Trees<W> {
        Trees {
            schema: Arc::clone(schema),
            dimensions: Dimension::all(schema),
            arena: Arena::new(schema),
            nodes: Nodes::new(),
            leaf,
            path: Vec::new(),
        }
    }

    pub(super) fn packed(&self, rule: EntryIndex) -> PackedRule<'_> {
        self.arena.packed(&self.schema, rule)
    }

    pub(super) fn rank(&self, rule: EntryIndex) -> u64 {
        self.arena.get(rule).rank
    }

    /// The rules of a list, best first.
    pub(super) fn list(&self, first: EntryIndex) -> impl Iterator<Item = EntryIndex> + '_ {
        let mut next = first;
        std::iter::from_fn(move || {
            (next != EntryIndex::NONE).then(|| {
                let rule = next;
                next = self.arena.get(rule).next;
                rule
            })
        })
    }

    /// Returns the subtree or list of a target, which must not be nothing.
    pub(super) fn below(&self, to: To) -> Below {
        if to.is_node() {
            let node = self.nodes.get(to.as_node());
            Below {
                to,
                best: node.best,
                rule: node.rule,
            }
        } else {
            let rule = to.first();
            Below {
                to,
                best: self.rank(rule),
                rule,
            }
        }
    }

    fn ends(&self, dimension: usize, rule: EntryIndex) -> (u64, u64) {
        self.dimensions[dimension].ends(&self.packed(rule))
    }

    /// True if `to` is a node of that dimension.
    fn is_of(&self, to: To, dimension: u8) -> bool {
        to.is_node() && self.nodes.get(to.as_node()).dimension == dimension
    }

    /// Inserts a stored rule into the tree with the given root. Returns the new root, or
    /// `None` if the rule cannot be sorted there.
    pub(super) fn insert(
        &mut self,
        root: To,
        rule: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<To>, BuildError> {
        self.path.clear();
        let mut target = root;
        // The lower end of the next subtree of the same dimension.
        let mut upper_limit = None;
        while target.is_node() {
            let number = target.as_node();
            let node = self.nodes.get(number);
            let dimension = node.dimension;
            let (low, high) = self.ends(usize::from(dimension), rule);
            let index = node.place(low);
            let next = node.lows().get(index).copied().or(upper_limit);
            if next.is_some_and(|next| next <= high) {
                return Ok(None);
            }
            let child = node.next[index.max(1)];
            if self.is_of(child, dimension) {
                let index = index.max(1);
                self.path.push(Step {
                    node: number,
                    place: index,
                });
                (target, upper_limit) = (child, next);
                continue;
            }
            if index > 0 {
                let before = self.ends(usize::from(dimension), self.below(child).rule);
                if before == (low, high) {
                    self.path.push(Step {
                        node: number,
                        place: index,
                    });
                    (target, upper_limit) = (child, None);
                    continue;
                }
                if before.1 >= low {
                    return Ok(None);
                }
            }
            let list = self.arena.link_list(&[rule]);
            return Ok(Some(self.add_entry(
                number,
                index,
                low,
                To::list(list),
                monitor,
            )?));
        }
        let Some(to) = self.insert_in_list(target, rule, monitor)? else {
            return Ok(None);
        };
        Ok(Some(self.replace(to)))
    }

    /// Adds a rule to a list, or turns the list into nodes. Returns what replaces the
    /// list, or `None` if the rule has no place here.
    fn insert_in_list(
        &mut self,
        list: To,
        rule: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<To>, BuildError> {
        let first = list.first();
        let length = self.list(first).count();
        if length >= self.leaf {
            return self.split_list(first, rule, monitor);
        }
        let rank = self.rank(rule);
        let better = self
            .list(first)
            .take_while(|&other| self.rank(other) < rank);
        Ok(Some(match better.last() {
            None => {
                self.arena.get_mut(rule).next = first;
                To::list(rule)
            }
            Some(before) => {
                let after = self.arena.get(before).next;
                self.arena.get_mut(rule).next = after;
                self.arena.get_mut(before).next = rule;
                list
            }
        }))
    }

    /// Turns a full list and one more rule into nodes. Requires a dimension that has
    /// only equal or disjoint intervals of these rules; takes the dimension with most
    /// different intervals.
    fn split_list(
        &mut self,
        first: EntryIndex,
        rule: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<To>, BuildError> {
        monitor.work(1)?;
        let mut best = (1, 0);
        let mut ends = Vec::new();
        for (number, dimension) in self.dimensions.iter().enumerate() {
            let ends_of = |rule| dimension.ends(&self.packed(rule));
            let new = ends_of(rule);
            // One or two comparisons rule out most dimensions.
            if !(self.list(first)).all(|other| are_sorted(new, ends_of(other))) {
                continue;
            }
            ends.clear();
            ends.extend(self.list(first).chain([rule]).map(ends_of));
            ends.sort_unstable();
            let pairs = || ends.iter().zip(&ends[1..]);
            if pairs().all(|(one, next)| are_sorted(*one, *next)) {
                let classes = 1 + pairs().filter(|(one, next)| one != next).count();
                best = best.max((classes, usize::MAX - number));
            }
        }
        let (1.., number) = (best.0 - 1, usize::MAX - best.1) else {
            return Ok(None);
        };
        monitor.work(self.leaf)?;
        let dimension = self.dimensions[number];
        let mut rules: Vec<_> = self.list(first).chain([rule]).collect();
        sort_short(&mut rules, |&rule| {
            (dimension.ends(&self.packed(rule)).0, self.rank(rule))
        });
        let mut entries = Vec::with_capacity(best.0);
        let low = |trees: &Trees<W>, rule| trees.ends(number, rule).0;
        let mut unlinked = &rules[..];
        while let Some(&head) = unlinked.first() {
            let begin = low(self, head);
            let same_interval = unlinked
                .iter()
                .take_while(|&&rule| low(self, rule) == begin);
            let (class, after) = unlinked.split_at(same_interval.count());
            self.arena.link_list(class);
            entries.push((begin, self.below(To::list(head))));
            unlinked = after;
        }
        let subtree = stack(
            number,
            &dimension,
            &mut entries,
            0,
            &mut self.nodes,
            monitor,
        )?;
        Ok(Some(subtree.to))
    }

    /// Adds an entry after the first `place` entries of a node. Splits full nodes and
    /// continues with their parents. Returns the new root.
    fn add_entry(
        &mut self,
        mut number: u32,
        mut place: usize,
        mut low: u64,
        mut to: To,
        monitor: &mut Monitor<'_>,
    ) -> Result<To, BuildError> {
        loop {
            if self.nodes.get(number).len() < FANOUT {
                self.nodes.get_mut(number).insert(place, low, to);
                self.refresh(number);
                return Ok(self.replace(To::node(number)));
            }
            let (right, right_low) = self.split_node(number, place, low, to, monitor)?;
            let dimension = self.nodes.get(number).dimension;
            match self.path.last().copied() {
                Some(step) if self.nodes.get(step.node).dimension == dimension => {
                    self.path.pop();
                    // The first entry may be new.
                    let left_low = self.nodes.get(number).lows[0];
                    self.nodes.get_mut(step.node).lows[step.place - 1] = left_low;
                    (number, place, low, to) = (step.node, step.place, right_low, To::node(right));
                }
                _ => {
                    let halves = [number, right].map(|half| {
                        let low = self.nodes.get(half).lows[0];
                        (low, self.below(To::node(half)))
                    });
                    let compared = &self.dimensions[usize::from(dimension)];
                    let top = Node::new(dimension, compared, &halves);
                    let top = self.nodes.add(top, monitor)?;
                    return Ok(self.replace(To::node(top)));
                }
            }
        }
    }

    /// Adds an entry to a full node and moves the upper half of the entries to a new
    /// node. Returns the new node and its lowest end.
    fn split_node(
        &mut self,
        number: u32,
        place: usize,
        low: u64,
        to: To,
        monitor: &mut Monitor<'_>,
    ) -> Result<(u32, u64), BuildError> {
        let node = self.nodes.get(number);
        let (dimension, old) = (node.dimension, node.lows().iter().zip(node.children()));
        let mut entries: Vec<_> = old.map(|(&low, &to)| (low, self.below(to))).collect();
        entries.insert(place, (low, self.below(to)));
        let (left, right) = entries.split_at(entries.len().div_ceil(2));
        let compared = &self.dimensions[usize::from(dimension)];
        let (left, right_node) = (
            Node::new(dimension, compared, left),
            Node::new(dimension, compared, right),
        );
        *self.nodes.get_mut(number) = left;
        Ok((self.nodes.add(right_node, monitor)?, right[0].0))
    }

    /// Recomputes a node's best rank and its rule.
    fn refresh(&mut self, number: u32) {
        let children = self.nodes.get(number).children().iter();
        let best = children.map(|&child| self.below(child).best).min();
        let rule = self.below(self.nodes.get(number).children()[0]).rule;
        let node = self.nodes.get_mut(number);
        node.best = best.expect("a node has entries");
        node.rule = rule;
    }

    /// Replaces the child at the end of the path, or the root, by `to`, and updates all
    /// nodes of the path. Returns the new root.
    fn replace(&mut self, to: To) -> To {
        let mut child = to;
        while let Some(Step { node, place }) = self.path.pop() {
            let Below { best, .. } = self.below(child);
            let dimension = self.nodes.get(node).dimension;
            let low = self
                .is_of(child, dimension)
                .then(|| self.nodes.get(child.as_node()).lows[0]);
            let parent = self.nodes.get_mut(node);
            parent.best = parent.best.min(best);
            if parent.next[place] != child {
                parent.set_child(place, child);
            }
            if let Some(low) = low {
                parent.lows[place - 1] = low;
            }
            child = To::node(node);
        }
        child
    }

    /// Removes a rule from the tree with the given root; the rule stays stored. Returns
    /// the new root.
    pub(super) fn remove(&mut self, root: To, rule: EntryIndex) -> To {
        self.path.clear();
        let mut target = root;
        while target.is_node() {
            let node = self.nodes.get(target.as_node());
            let (low, _) = self.ends(usize::from(node.dimension), rule);
            let index = node.place(low);
            self.path.push(Step {
                node: target.as_node(),
                place: index,
            });
            target = node.next[index];
        }
        let mut child = self.remove_from_list(target, rule);
        let rank = self.rank(rule);
        // The lowest end of the subtree below and its dimension. The node above needs
        // the end if it has the same dimension.
        let mut low: Option<(u8, u64)> = None;
        while let Some(Step {
            node: number,
            place,
        }) = self.path.pop()
        {
            let node = self.nodes.get_mut(number);
            if child == To::NOTHING {
                node.remove(place);
            } else {
                if node.next[place] != child {
                    node.set_child(place, child);
                }
                if let Some((dimension, low)) = low
                    && dimension == node.dimension
                {
                    node.lows[place - 1] = low;
                }
            }
            low = Some((node.dimension, node.lows[0]));
            child = if node.len() == 1 {
                // A node with one entry separates nothing.
                let only = node.next[1];
                self.nodes.remove(number);
                only
            } else {
                if node.best == rank || node.rule == rule {
                    self.refresh(number);
                }
                To::node(number)
            };
        }
        child
    }

    /// Removes a rule from its list; returns the rest of the list.
    fn remove_from_list(&mut self, list: To, rule: EntryIndex) -> To {
        let after = self.arena.get(rule).next;
        if list.first() == rule {
            return if after == EntryIndex::NONE {
                To::NOTHING
            } else {
                To::list(after)
            };
        }
        let before = self
            .list(list.first())
            .find(|&other| self.arena.get(other).next == rule);
        let before = before.expect("a rule is in its list");
        self.arena.get_mut(before).next = after;
        list
    }

    /// Bytes held, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes() + self.nodes.bytes() + self.path.capacity() * size_of::<Step>()
    }
}

/// True if two intervals are equal or disjoint.
fn are_sorted(one: (u64, u64), other: (u64, u64)) -> bool {
    one == other || one.1 < other.0 || other.1 < one.0
}

impl<const W: usize> Arena<W> {
    /// Links rules, best first, into a list; returns the first rule.
    fn link_list(&mut self, rules: &[EntryIndex]) -> EntryIndex {
        let mut next = EntryIndex::NONE;
        for &rule in rules.iter().rev() {
            self.get_mut(rule).next = next;
            next = rule;
        }
        next
    }
}

/// The rules of a set. A rule is stored when it is put into a list.
pub(super) struct Source<'a, const W: usize> {
    pub(super) set: &'a RuleSet,
    pub(super) arena: &'a mut Arena<W>,
    /// The partition of the rules that are stored next.
    pub(super) partition: TableNumber,
    /// The record of each rule.
    pub(super) places: Vec<EntryIndex>,
}

impl<const W: usize> Source<'_, W> {
    fn rule(&self, rule: u32) -> RuleRef<'_> {
        self.set.rule(rule as usize)
    }
}

impl<const W: usize> Rules for Source<'_, W> {
    #[inline]
    fn ends(&self, rule: u32, dimension: &Dimension) -> (u64, u64) {
        dimension.ends(&self.rule(rule).into())
    }

    fn rank(&self, rule: u32) -> u64 {
        self.set.winners()[rule as usize].rank()
    }

    fn list(&mut self, rules: &[u32]) -> Below {
        // Records are stored in the order of the list, so reading the list is
        // sequential.
        let mut first = None;
        let mut before = None;
        for &rule in rules {
            let entry = self.arena.add(&self.set.rule(rule as usize));
            self.arena.get_mut(entry).table = self.partition;
            self.places[rule as usize] = entry;
            first.get_or_insert(entry);
            if let Some(before) = before.replace(entry) {
                self.arena.get_mut(before).next = entry;
            }
        }
        let rule = first.expect("a list has rules");
        Below {
            to: To::list(rule),
            best: self.rank(rules[0]),
            rule,
        }
    }
}
