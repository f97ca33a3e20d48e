//! Growing the tree of a partition over rules that are known up front: as many of
//! them as can be sorted.

use super::dimension::Dimension;
use super::node::{Below, FANOUT, Node, Nodes};
use crate::error::BuildError;
use crate::monitor::Monitor;
use crate::sort::{sort_by_key, sort_short};

/// Rules by number, wherever they are.
pub(super) trait Rules {
    /// The ends of a rule's interval, aligned.
    fn ends(&self, rule: u32, dimension: &Dimension) -> (u64, u64);

    /// A rule's rank; the smaller is the better.
    fn rank(&self, rule: u32) -> u64;

    /// Makes a list of rules, which come best first.
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
    /// The upper end before the lower one.
    fn ends(&self) -> (u64, u64) {
        (self.high, self.low)
    }
}

/// The rules that share an interval.
#[derive(Clone, Copy, Debug)]
struct Class {
    low: u64,
    high: u64,
    /// How many rules are before it, and how many it has.
    first: u32,
    rules: u32,
    /// The most weight of classes up to this one that are apart from each other.
    total: u64,
    chosen: bool,
}

/// Which rules of a dimension can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    /// The weight of the rules.
    total: u64,
    classes: usize,
    rules: usize,
    /// The dimension, counted from the last one: of equal ones the first is best.
    from_last: usize,
}

/// Grows trees, one after the other.
pub(super) struct Grow<'a> {
    dimensions: &'a [Dimension],
    /// The most rules of a list.
    leaf: usize,
    intervals: Vec<Interval>,
    classes: Vec<Class>,
    entries: Vec<(u64, Below)>,
    /// Rules that found no place.
    left: Vec<u32>,
}

impl<'a> Grow<'a> {
    /// For up to `rules` rules.
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

    /// Gives the memory back.
    pub(super) fn finish(self, monitor: &mut Monitor<'_>) {
        let grown = self.classes.capacity() * size_of::<Class>()
            + self.entries.capacity() * size_of::<(u64, Below)>();
        let bytes = Grow::bytes_for(self.intervals.capacity()) + grown;
        drop(self);
        monitor.memory().give_back(bytes);
    }

    /// Makes a tree of some of the rules, at least of one. The others stay in
    /// `rules`, which must have some.
    pub(super) fn partition(
        &mut self,
        rules: &mut Vec<u32>,
        source: &mut impl Rules,
        nodes: &mut Nodes,
        monitor: &mut Monitor<'_>,
    ) -> Result<Below, BuildError> {
        self.left.clear();
        let below = self.tree(rules, source, nodes, monitor)?;
        rules.clear();
        rules.extend_from_slice(&self.left);
        Ok(below)
    }

    /// A tree of some of the rules; the others are left.
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
            monitor.work(count / SIMPLE)?;
        }
        let (list, left) = rules.split_at_mut(count.min(self.leaf));
        sort_short(list, |&rule| source.rank(rule));
        self.left.extend_from_slice(left);
        monitor.advance(list.len())?;
        Ok(source.list(list))
    }

    /// The dimension that keeps the most weight of rules, if any tells two apart.
    fn choose(
        &mut self,
        rules: &[u32],
        source: &impl Rules,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Choice>, BuildError> {
        let mut best = None;
        for number in 0..self.dimensions.len() {
            let found = self.classify(rules, number, source, monitor)?;
            best = best.max(found.then(|| self.chosen(number)));
        }
        Ok(best)
    }

    /// Divides rules into classes in a dimension. Says whether there are several.
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
        let mut same = true;
        for some in rules.chunks(Monitor::BLOCK) {
            self.intervals.extend(some.iter().map(|&rule| {
                let (low, high) = source.ends(rule, dimension);
                same &= (low, high) == first;
                Interval { low, high, rule }
            }));
            monitor.work(some.len() / SIMPLE)?;
        }
        if same {
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
        monitor.work(self.classes.len() / SIMPLE)?;
        Ok(true)
    }

    /// Marks the classes that keep the most weight.
    fn chosen(&mut self, number: usize) -> Choice {
        let mut choice = Choice {
            total: self.classes.last().map_or(0, |last| last.total),
            classes: 0,
            rules: 0,
            from_last: self.dimensions.len() - 1 - number,
        };
        let mut end = self.classes.len();
        while end > 0 {
            let class = self.classes[end - 1];
            let before = if end > 1 {
                self.classes[end - 2].total
            } else {
                0
            };
            if class.total == before {
                end -= 1;
                continue;
            }
            self.classes[end - 1].chosen = true;
            choice.classes += 1;
            choice.rules += class.rules as usize;
            end = apart_from(&self.classes[..end - 1], class.low);
        }
        choice
    }

    /// Moves the rules that a dimension keeps to the front, in the order of their
    /// intervals. The others are left. Returns the number of the first.
    fn keep(
        &mut self,
        rules: &mut [u32],
        number: usize,
        source: &impl Rules,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        self.classify(rules, number, source, monitor)?;
        self.chosen(number);
        let mut kept = 0;
        for class in &self.classes {
            let first = class.first as usize;
            let members = &self.intervals[first..first + class.rules as usize];
            if class.chosen {
                for (place, member) in rules[kept..].iter_mut().zip(members) {
                    *place = member.rule;
                }
                kept += members.len();
            } else {
                self.left.extend(members.iter().map(|member| member.rule));
            }
        }
        Ok(kept)
    }

    /// Nodes for the classes of a dimension, which come one after the other, and
    /// a tree for each of them.
    fn group(
        &mut self,
        rules: &mut [u32],
        dimension: usize,
        source: &mut impl Rules,
        nodes: &mut Nodes,
        monitor: &mut Monitor<'_>,
    ) -> Result<Below, BuildError> {
        let of = &self.dimensions[dimension];
        let base = self.entries.len();
        let mut rest = rules;
        while let Some(&first) = rest.first() {
            let ends = source.ends(first, of);
            let same = rest
                .iter()
                .take_while(|&&rule| source.ends(rule, of) == ends);
            let same = same.count();
            let (class, after) = rest.split_at_mut(same);
            let below = self.tree(class, source, nodes, monitor)?;
            monitor.memory().room(&mut self.entries)?;
            self.entries.push((ends.0, below));
            rest = after;
        }
        stack(dimension, of, &mut self.entries, base, nodes, monitor)
    }
}

/// Reading an interval is this part of a step's work.
const SIMPLE: usize = 4;

/// Replaces entries, from one on, by nodes that lead to them, until there is one.
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
        let wanted = count.div_ceil(FANOUT);
        for made in 0..wanted {
            let [from, to] = [made, made + 1].map(|made| base + made * count / wanted);
            let node = Node::new(number, dimension, &entries[from..to]);
            let below = Below {
                best: node.best,
                rule: node.rule,
                to: super::node::To::node(nodes.add(node, monitor)?),
            };
            entries[base + made] = (entries[from].0, below);
        }
        entries.truncate(base + wanted);
    }
    let (_, below) = entries.pop().expect("a group has entries");
    Ok(below)
}

/// How many of the classes, which come by their upper ends, lie below a value.
fn apart_from(classes: &[Class], low: u64) -> usize {
    classes.partition_point(|class| class.high < low)
}

/// Completes the last class, whose rules are all there; `before` is the most weight
/// without it. Returns the most weight with it.
fn total_with(classes: &mut [Class], before: u64, leaf: usize) -> u64 {
    let Some((last, others)) = classes.split_last_mut() else {
        return 0;
    };
    let apart = apart_from(others, last.low);
    let below = if apart > 0 {
        others[apart - 1].total
    } else {
        0
    };
    last.total = before.max(below + weight(last.rules as usize, leaf));
    last.total
}

/// What keeping a class is worth: rules beyond those of a list have to be told
/// apart by another dimension, which loses some of them.
fn weight(rules: usize, leaf: usize) -> u64 {
    let sure = rules.min(leaf);
    (4 * sure + 3 * (rules - sure)) as u64
}
