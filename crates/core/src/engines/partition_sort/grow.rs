//! Growing the tree of a partition from known rules, with all that can be sorted.

use super::dimension::Dimension;
use super::node::{Below, FANOUT, Node, Nodes};
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::parts::sort::{sort_by_key, sort_short};

/// Access to rules by number.
pub(super) trait Rules {
    /// The ends of a rule's interval, aligned.
    fn ends(&self, rule: u32, dimension: &Dimension) -> (u64, u64);

    /// A rule's rank; smaller is better.
    fn rank(&self, rule: u32) -> u64;

    /// Makes a list of rules, which are sorted best first.
    fn list(&mut self, rules: &[u32]) -> Below;
}

/// A rule with its interval in a dimension.
#[derive(Clone, Copy, Debug)]
struct Interval {
    low: u64,
    high: u64,
    rule: u32,
}

impl Interval {
    /// The sort key: the upper end, then the lower end.
    fn ends(&self) -> (u64, u64) {
        (self.high, self.low)
    }
}

/// The rules that share an interval.
#[derive(Clone, Copy, Debug)]
struct Class {
    low: u64,
    high: u64,
    /// The position of the first rule, and the number of rules.
    first: u32,
    rules: u32,
    /// The largest weight of disjoint classes among the classes up to this one.
    total: u64,
    chosen: bool,
}

/// A dimension, and the rules that it can sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    /// The weight of the rules.
    total: u64,
    classes: usize,
    rules: usize,
    /// The index of the dimension from the end, so that ties go to the first dimension.
    from_last: usize,
}

/// Grows one tree after the other.
pub(super) struct Grow<'a> {
    dimensions: &'a [Dimension],
    /// The largest number of rules in a list.
    leaf: usize,
    intervals: Vec<Interval>,
    classes: Vec<Class>,
    entries: Vec<(u64, Below)>,
    /// Rules that the current tree does not take.
    left: Vec<u32>,
}

impl<'a> Grow<'a> {
    /// Allocates for up to `rules` rules.
    pub(super) fn new(
        dimensions: &'a [Dimension],
        leaf: usize,
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grow<'a>, BuildError> {
        monitor.memory().take(Grow::bytes_for(rules))?;
        Ok(Grow {
            dimensions,
            leaf,
            intervals: Vec::with_capacity(rules),
            classes: Vec::new(),
            entries: Vec::new(),
            left: Vec::with_capacity(rules),
        })
    }

    fn bytes_for(rules: usize) -> usize {
        rules.saturating_mul(size_of::<Interval>() + size_of::<u32>())
    }

    /// Frees the memory.
    pub(super) fn finish(self, monitor: &mut Monitor<'_>) {
        let grown = self.classes.capacity() * size_of::<Class>()
            + self.entries.capacity() * size_of::<(u64, Below)>();
        let bytes = Grow::bytes_for(self.intervals.capacity()) + grown;
        drop(self);
        monitor.memory().give_back(bytes);
    }

    /// Makes a tree of some of the rules, and leaves the other rules in `rules`, which
    /// must not be empty. The tree has at least one rule.
    pub(super) fn partition(
        &mut self,
        rules: &mut Vec<u32>,
        source: &mut impl Rules,
        nodes: &mut Nodes,
        monitor: &mut Monitor<'_>,
    ) -> Result<Below, BuildError> {
        self.left.clear();
        let subtree = self.tree(rules, source, nodes, monitor)?;
        rules.clear();
        rules.extend_from_slice(&self.left);
        Ok(subtree)
    }

    /// Makes a tree of some of the rules. Appends the other rules to `self.left`.
    fn tree(
        &mut self,
        rules: &mut [u32],
        source: &mut impl Rules,
        nodes: &mut Nodes,
        monitor: &mut Monitor<'_>,
    ) -> Result<Below, BuildError> {
        let mut count = rules.len();
        while count > self.leaf {
            let choice = self.choose(&rules[..count], source, monitor)?;
            let Some(choice) = choice.filter(|choice| choice.rules > self.leaf) else {
                break;
            };
            let dimension = self.dimensions.len() - 1 - choice.from_last;
            count = self.keep(&mut rules[..count], dimension, source, monitor)?;
            if choice.classes > 1 {
                return self.group(&mut rules[..count], dimension, source, nodes, monitor);
            }
        }
        let rules = &mut rules[..count];
        if count > self.leaf {
            rules.select_nth_unstable_by_key(self.leaf, |&rule| source.rank(rule));
            monitor.work(count / INTERVALS_PER_STEP)?;
        }
        let (list, left) = rules.split_at_mut(count.min(self.leaf));
        sort_short(list, |&rule| source.rank(rule));
        self.left.extend_from_slice(left);
        monitor.advance(list.len())?;
        Ok(source.list(list))
    }

    /// Returns the dimension that keeps the most weight, or `None` if all rules agree in
    /// all.
    fn choose(
        &mut self,
        rules: &[u32],
        source: &impl Rules,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Choice>, BuildError> {
        let mut best = None;
        for number in 0..self.dimensions.len() {
            let has_classes = self.classify(rules, number, source, monitor)?;
            best = best.max(has_classes.then(|| self.chosen(number)));
        }
        Ok(best)
    }

    /// Divides rules into classes in a dimension. Returns true if there are several
    /// classes.
    fn classify(
        &mut self,
        rules: &[u32],
        number: usize,
        source: &impl Rules,
        monitor: &mut Monitor<'_>,
    ) -> Result<bool, BuildError> {
        let dimension = &self.dimensions[number];
        let first = source.ends(rules[0], dimension);
        self.intervals.clear();
        let mut all_equal = true;
        for some in rules.chunks(Monitor::BLOCK) {
            self.intervals.extend(some.iter().map(|&rule| {
                let (low, high) = source.ends(rule, dimension);
                all_equal &= (low, high) == first;
                Interval { low, high, rule }
            }));
            monitor.work(some.len() / INTERVALS_PER_STEP)?;
        }
        if all_equal {
            return Ok(false);
        }
        sort_by_key(&mut self.intervals, Interval::ends, monitor)?;
        self.classes.clear();
        let mut total = 0;
        for interval in &self.intervals {
            let Interval { low, high, .. } = *interval;
            if let Some(last) = self.classes.last_mut()
                && (last.low, last.high) == (low, high)
            {
                last.rules += 1;
                continue;
            }
            total = total_with(&mut self.classes, total, self.leaf);
            monitor.memory().room(&mut self.classes)?;
            let first = (self.classes.last()).map_or(0, |last| last.first + last.rules);
            self.classes.push(Class {
                low,
                high,
                first,
                rules: 1,
                total: 0,
                chosen: false,
            });
        }
        total_with(&mut self.classes, total, self.leaf);
        monitor.work(self.classes.len() / INTERVALS_PER_STEP)?;
        Ok(true)
    }

    /// Marks the disjoint classes with the largest weight.
    fn chosen(&mut self, number: usize) -> Choice {
        let mut choice = Choice {
            total: self.classes.last().map_or(0, |last| last.total),
            classes: 0,
            rules: 0,
            from_last: self.dimensions.len() - 1 - number,
        };
        let mut unexamined = self.classes.len();
        while unexamined > 0 {
            let class = self.classes[unexamined - 1];
            let before = if unexamined > 1 {
                self.classes[unexamined - 2].total
            } else {
                0
            };
            if class.total == before {
                unexamined -= 1;
                continue;
            }
            self.classes[unexamined - 1].chosen = true;
            choice.classes += 1;
            choice.rules += class.rules as usize;
            unexamined = apart_from(&self.classes[..unexamined - 1], class.low);
        }
        choice
    }

    /// Moves the rules that a dimension keeps to the front, sorted by interval. Appends
    /// the other rules to `self.left`. Returns the number of rules kept.
    fn keep(
        &mut self,
        rules: &mut [u32],
        number: usize,
        source: &impl Rules,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        self.classify(rules, number, source, monitor)?;
        self.chosen(number);
        let mut kept_count = 0;
        for class in &self.classes {
            let first = class.first as usize;
            let members = &self.intervals[first..first + class.rules as usize];
            if class.chosen {
                for (place, member) in rules[kept_count..].iter_mut().zip(members) {
                    *place = member.rule;
                }
                kept_count += members.len();
            } else {
                self.left.extend(members.iter().map(|member| member.rule));
            }
        }
        Ok(kept_count)
    }

    /// Makes a tree for each class of a dimension, and nodes above them. The rules of a
    /// class must be adjacent.
    fn group(
        &mut self,
        rules: &mut [u32],
        dimension: usize,
        source: &mut impl Rules,
        nodes: &mut Nodes,
        monitor: &mut Monitor<'_>,
    ) -> Result<Below, BuildError> {
        let compared = &self.dimensions[dimension];
        let base = self.entries.len();
        let mut ungrouped = rules;
        while let Some(&first) = ungrouped.first() {
            let ends = source.ends(first, compared);
            let class_size = ungrouped
                .iter()
                .take_while(|&&rule| source.ends(rule, compared) == ends);
            let class_size = class_size.count();
            let (class, after) = ungrouped.split_at_mut(class_size);
            let subtree = self.tree(class, source, nodes, monitor)?;
            monitor.memory().room(&mut self.entries)?;
            self.entries.push((ends.0, subtree));
            ungrouped = after;
        }
        stack(dimension, compared, &mut self.entries, base, nodes, monitor)
    }
}

/// The number of intervals read in one step of work. It sets how often a build reports
/// progress.
const INTERVALS_PER_STEP: usize = 4;

/// Replaces the entries from `base` on by nodes that lead to them, until one is left.
pub(super) fn stack(
    number: usize,
    dimension: &Dimension,
    entries: &mut Vec<(u64, Below)>,
    base: usize,
    nodes: &mut Nodes,
    monitor: &mut Monitor<'_>,
) -> Result<Below, BuildError> {
    let number = u8::try_from(number).expect("a schema has at most 128 dimensions");
    while entries.len() - base > 1 {
        let count = entries.len() - base;
        let node_count = count.div_ceil(FANOUT);
        for made in 0..node_count {
            let [from, to] = [made, made + 1].map(|made| base + made * count / node_count);
            let node = Node::new(number, dimension, &entries[from..to]);
            let subtree = Below {
                best: node.best,
                rule: node.rule,
                to: super::node::To::node(nodes.add(node, monitor)?),
            };
            entries[base + made] = (entries[from].0, subtree);
        }
        entries.truncate(base + node_count);
    }
    let (_, subtree) = entries.pop().expect("a group has entries");
    Ok(subtree)
}

/// Returns the number of classes, sorted by upper end, that end below a value.
fn apart_from(classes: &[Class], low: u64) -> usize {
    classes.partition_point(|class| class.high < low)
}

/// Completes the last class, which has all its rules. `before` is the largest weight
/// without it. Returns the largest weight with it.
fn total_with(classes: &mut [Class], before: u64, leaf: usize) -> u64 {
    let Some((last, others)) = classes.split_last_mut() else {
        return 0;
    };
    let apart = apart_from(others, last.low);
    let disjoint_total = if apart > 0 {
        others[apart - 1].total
    } else {
        0
    };
    last.total = before.max(disjoint_total + weight(last.rules as usize, leaf));
    last.total
}

/// Returns the weight of a class. Rules beyond `leaf` weigh less: another dimension must
/// separate them, and some of them will be lost.
fn weight(rules: usize, leaf: usize) -> u64 {
    let sure = rules.min(leaf);
    (4 * sure + 3 * (rules - sure)) as u64
}
