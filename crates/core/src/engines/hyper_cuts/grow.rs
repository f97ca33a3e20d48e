//! Grows the tree.

use super::boxes::Parts;
use super::choose::{Budget, Chooser, More, cuts, for_each_child};
use super::node::{self, Cut, Field, MAX_CUT_BITS, MAX_CUT_FIELDS, Node, Nodes};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::seed::fibonacci_hash;
use crate::parts::ranked::RankedRules;
use crate::parts::tree::{Entry, Grid, Grown, Lists, Outline, Sharing, Side, extend, push};

/// The name of the build's stage.
const CUTTING: &str = "cutting nodes";

/// The largest number of places of all lists, and of nodes: they are numbered with 32
/// bits.
const MAX_PLACES: usize = u32::MAX as usize - (1 << MAX_CUT_BITS);

/// A limit on the work of a build: copies of rules for each place that may be stored.
const COPIES_PER_PLACE: usize = 64;

/// Copies that count as one step of work. It sets how often a build reports progress.
const COPIES_PER_STEP: usize = 16;

/// The number of best rules of a node that each other rule is compared with. One of
/// them may cover the rule. It bounds the work of a build.
const MAX_COMPARED_RULES: usize = 32;

/// A limit on copies before equal children are merged, divided by the number of free
/// places. It bounds the memory of a build.
const UNMERGED_FACTOR: usize = 4;

/// Limits on a tree.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Nodes of at most this number of rules are not cut.
    pub(crate) binth: usize,
    /// The largest number of children of a node, divided by the square root of its
    /// rules.
    pub(crate) spfac: usize,
    /// The largest number of nodes and of places in all lists, together.
    pub(crate) places: usize,
}

impl Bounds {
    pub(crate) fn new(spec: &EngineSpec, rules: usize) -> Bounds {
        let option = |name| spec.options().whole(name);
        Bounds {
            binth: option("binth"),
            spfac: option("spfac"),
            places: rules.saturating_mul(option("places")).min(MAX_PLACES),
        }
    }
}

/// A node that is to be cut, or to become a leaf. The rules and box of the next task
/// are last in `entries` and `sides`.
struct Task {
    node: u32,
    /// The index of its first rule.
    entries: usize,
    /// The largest number of nodes and places below.
    places: usize,
    /// Its share of all rules, to report progress.
    share: usize,
    depth: usize,
    /// The share of random rules' headers that reach the node.
    weight: f64,
}

/// A child of the node that is being cut.
#[derive(Clone, Copy)]
struct Child {
    /// The indices of its first rule, and after its last rule.
    first: usize,
    end: usize,
    /// The share of the node's rules whose headers reach the child.
    weight: f64,
    /// True if a rule covers the child, and so ends its list.
    is_closed: bool,
    /// The number of an earlier child with the same rules, or its own number.
    same: u32,
}

impl Child {
    const EMPTY: Child = Child {
        first: 0,
        end: 0,
        weight: 0.0,
        is_closed: false,
        same: 0,
    };

    fn rules(&self) -> usize {
        self.end - self.first
    }
}

/// A tree that is being grown. The node to cut next is last.
pub(crate) struct Grow<'a> {
    rules: &'a RankedRules,
    limits: &'a Limits,
    bounds: Bounds,
    grid: Grid,
    fields: Vec<Field>,
    nodes: Vec<Node>,
    /// Nodes that will be copies of other nodes.
    same: Vec<[u32; 2]>,
    lists: Lists,
    sharing: Sharing,
    chooser: Chooser,
    outline: Outline,
    tasks: Vec<Task>,
    entries: Vec<Entry>,
    /// The sides of the boxes of all tasks.
    sides: Vec<Side>,
    steps: Vec<More>,
    cuts: Vec<Cut>,
    children: Vec<Child>,
    /// The rules of the children.
    copied: Vec<Entry>,
    /// Children by hash.
    by_hash: Vec<(u64, u32)>,
    /// The number of copies that may still be made.
    copies: usize,
}

impl<'a> Grow<'a> {
    /// Grows the tree over all rules.
    pub(crate) fn tree(
        rules: &'a RankedRules,
        limits: &'a Limits,
        bounds: Bounds,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grown<Nodes>, BuildError> {
        let grid = Grid::new(rules, monitor)?;
        let schema = rules.schema();
        let fields = schema.field_ids().map(|id| Field::of(schema, id));
        let mut growing = Grow {
            rules,
            limits,
            bounds,
            fields: fields.collect(),
            grid,
            nodes: Vec::new(),
            same: Vec::new(),
            lists: Lists::default(),
            sharing: Sharing::default(),
            chooser: Chooser::default(),
            outline: Outline::default(),
            tasks: Vec::new(),
            entries: Vec::new(),
            sides: Vec::new(),
            steps: Vec::new(),
            cuts: Vec::with_capacity(MAX_CUT_FIELDS),
            children: Vec::new(),
            copied: Vec::new(),
            by_hash: Vec::new(),
            copies: bounds.places.saturating_mul(COPIES_PER_PLACE),
        };
        monitor.begin(CUTTING, rules.len())?;
        growing.begin(monitor)?;
        let mut spare = 0;
        while let Some(mut task) = growing.tasks.pop() {
            task.places = task.places.saturating_add(spare);
            spare = growing.grow(&task, monitor)?;
        }
        growing.finish(monitor)
    }

    /// Starts with the root, its rules and its box.
    fn begin(&mut self, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        for (number, field) in self.fields.iter().enumerate() {
            let side = Side::around(&self.grid, number, 0, field.most);
            push(monitor.memory(), &mut self.sides, side)?;
        }
        for place in (0..=u32::MAX).take(self.rules.len()) {
            let mut entry = self.grid.entry(place);
            entry.shadows = entry.open == 0;
            push(monitor.memory(), &mut self.entries, entry)?;
            monitor.work(1)?;
            if entry.open == 0 {
                break;
            }
        }
        monitor.memory().room_to_keep(&mut self.nodes)?;
        self.nodes.push(Node::EMPTY);
        let root = Task {
            node: 0,
            entries: 0,
            places: self.bounds.places,
            share: self.rules.len(),
            depth: 0,
            weight: 1.0,
        };
        push(monitor.memory(), &mut self.tasks, root)
    }

    /// Makes a node: cuts it, or makes it a leaf. Returns the number of places that a
    /// leaf does not use.
    fn grow(&mut self, task: &Task, monitor: &mut Monitor<'_>) -> Result<usize, BuildError> {
        self.compact(task, monitor)?;
        self.leave_covered_out(task, monitor)?;
        let rules = self.entries.len() - task.entries;
        if rules > self.bounds.binth && self.cut(task, monitor)? {
            return Ok(0);
        }
        let list = (self.lists).add(&self.entries[task.entries..], &mut self.sharing, monitor)?;
        self.nodes[task.node as usize] = Node::leaf(list);
        self.entries.truncate(task.entries);
        self.sides.truncate(self.sides.len() - self.fields.len());
        self.outline.add_leaf(task.depth, rules, task.weight);
        let bytes = self.rules.bytes() + bytes_of::<Node>(self.nodes.len());
        let bytes = bytes.saturating_add(bytes_of::<u32>(self.lists.places()));
        self.limits.check_bytes(bytes)?;
        let mut share = task.share;
        while share > 0 {
            let part = share.min(Monitor::BLOCK);
            monitor.advance(part)?;
            share -= part;
        }
        monitor.work(1 + rules / COPIES_PER_STEP)?;
        Ok(task.places.saturating_sub(rules))
    }

    /// Makes the last box as small as its rules allow. A header of the rest of the
    /// box matches none of the rules, so it may be sent to any child.
    fn compact(&mut self, task: &Task, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let sides = self.sides.len() - self.fields.len();
        let entries = &mut self.entries[task.entries..];
        let mut closed = entries.iter().fold(u64::MAX, |all, entry| all & entry.open);
        if entries.is_empty() {
            return Ok(());
        }
        while closed != 0 {
            let field = closed.trailing_zeros() as usize;
            closed &= closed - 1;
            let side = &mut self.sides[sides + field];
            let mut hull = self.grid.span(entries[0].place, field).within(side.span);
            for entry in entries.iter() {
                let span = self.grid.span(entry.place, field).within(side.span);
                hull.first = hull.first.min(span.first);
                hull.end = hull.end.max(span.end);
            }
            let [low, high] = self.grid.values(field, hull);
            let new = Side::around(&self.grid, field, low.max(side.base), high.min(side.last()));
            if new.free < side.free {
                *side = new;
                for entry in entries.iter_mut() {
                    let covers = self.grid.covers(entry.place, field, side.span);
                    entry.open &= !(u64::from(covers) << field);
                }
            }
            monitor.work(1 + entries.len() / COPIES_PER_STEP)?;
        }
        if let Some(at) = entries.iter().position(|entry| entry.open == 0) {
            entries[at].shadows = true;
            self.entries.truncate(task.entries + at + 1);
        }
        Ok(())
    }

    /// Drops rules that are covered within the box by a rule among the best.
    fn leave_covered_out(
        &mut self,
        task: &Task,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let sides = &self.sides[self.sides.len() - self.fields.len()..];
        let entries = &mut self.entries[task.entries..];
        let mut retained = 0;
        for at in 0..entries.len() {
            let entry = entries[at];
            let best = retained.min(MAX_COMPARED_RULES);
            let covers = |better: &&mut Entry| covers(&self.grid, sides, better, &entry);
            match entries[..best].iter_mut().find(covers) {
                Some(better) => better.shadows = true,
                None => {
                    entries[retained] = entry;
                    retained += 1;
                }
            }
            if at % Monitor::BLOCK == 0 {
                let rules = (entries.len() - at).min(Monitor::BLOCK);
                monitor.work(1 + rules * best / (4 * COPIES_PER_STEP))?;
            }
        }
        self.entries.truncate(task.entries + retained);
        Ok(())
    }

    /// Cuts a node. Returns false if no cut helps, or all need too many places.
    fn cut(&mut self, task: &Task, monitor: &mut Monitor<'_>) -> Result<bool, BuildError> {
        let entries = &self.entries[task.entries..];
        let rules = entries.len();
        let nodes_left = MAX_PLACES.saturating_sub(self.nodes.len());
        let places = task.places.min(self.copies).min(nodes_left);
        if places <= rules {
            return Ok(false);
        }
        let sides = &self.sides[self.sides.len() - self.fields.len()..];
        let max_children =
            (self.bounds.spfac as u128 * self.bounds.spfac as u128 * rules as u128).isqrt();
        let budget = Budget {
            bits: max_children.max(2).ilog2().min(MAX_CUT_BITS),
            places,
        };
        let steps = (self.chooser).choose(&self.grid, entries, sides, budget, monitor)?;
        self.steps.clear();
        extend(monitor.memory(), &mut self.steps, steps)?;
        // The sample may underestimate the copies. Then fewer cuts are tried.
        while !self.steps.is_empty() {
            let sides = &self.sides[self.sides.len() - self.fields.len()..];
            cuts(&self.steps, sides, &mut self.cuts);
            if self.copy(task, places, monitor)? {
                self.merge(monitor)?;
                if self.split(task, places, monitor)? {
                    return Ok(true);
                }
            }
            self.steps.pop();
        }
        Ok(false)
    }

    /// Copies the rules of a node to its children. Returns false if there are too
    /// many copies.
    fn copy(
        &mut self,
        task: &Task,
        places: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<bool, BuildError> {
        let children = 1_usize << self.cuts.iter().map(|cut| cut.bits).sum::<u32>();
        let max_copies = places.saturating_mul(UNMERGED_FACTOR).min(self.copies);
        self.children.clear();
        for _ in 0..children {
            push(monitor.memory(), &mut self.children, Child::EMPTY)?;
        }
        let entries = &self.entries[task.entries..];
        let sides = &self.sides[self.sides.len() - self.fields.len()..];
        let placing = Placing {
            grid: &self.grid,
            sides,
            cuts: &self.cuts,
        };
        let mut copies = 0;
        for entries in entries.chunks(Monitor::BLOCK) {
            let before = copies;
            for entry in entries {
                placing.place(entry, |child, of_rule, is_closed| {
                    let child = &mut self.children[child];
                    child.weight += 1.0 / of_rule;
                    if !child.is_closed {
                        child.end += 1;
                        child.is_closed = is_closed;
                        copies += 1;
                    }
                });
                if copies > max_copies {
                    break;
                }
            }
            monitor.work(1 + (entries.len() + copies - before) / COPIES_PER_STEP)?;
            if copies > max_copies {
                self.copies = self.copies.saturating_sub(copies);
                return Ok(false);
            }
        }
        self.copies -= copies;
        let mut first = 0;
        for child in &mut self.children {
            let rules = child.end;
            (child.first, child.end, child.is_closed) = (first, first, false);
            first += rules;
        }
        self.copied.clear();
        let none = Entry {
            place: 0,
            shadows: false,
            open: 0,
        };
        while self.copied.len() < copies {
            push(monitor.memory(), &mut self.copied, none)?;
        }
        for entries in entries.chunks(Monitor::BLOCK) {
            for entry in entries {
                placing.place_open(entry, |child, open| {
                    let child = &mut self.children[child];
                    if child.is_closed {
                        self.copied[child.end - 1].shadows = true;
                        return;
                    }
                    child.is_closed = open == 0;
                    self.copied[child.end] = Entry { open, ..*entry };
                    child.end += 1;
                });
            }
            monitor.work(1 + entries.len() / COPIES_PER_STEP)?;
        }
        Ok(true)
    }

    /// Finds children with the same rules.
    fn merge(&mut self, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        self.by_hash.clear();
        for at in 0..self.children.len() {
            let child = self.children[at];
            let mut hash = 0;
            for entry in &self.copied[child.first..child.end] {
                hash = fibonacci_hash(hash ^ u64::from(entry.place));
                hash ^= hash >> 29;
            }
            let number = u32::try_from(at).expect("at most 12 bits");
            self.children[at].same = number;
            if child.rules() > 0 {
                push(monitor.memory(), &mut self.by_hash, (hash, number))?;
            }
        }
        self.by_hash.sort_unstable();
        for at in 1..self.by_hash.len() {
            let ((hash, number), (before, earlier)) = (self.by_hash[at], self.by_hash[at - 1]);
            let earlier = self.children[earlier as usize].same;
            if hash == before && self.have_same_rules(number, earlier) {
                self.children[number as usize].same = earlier;
            }
        }
        monitor.work(1 + (self.copied.len() + self.children.len()) / COPIES_PER_STEP)
    }

    fn have_same_rules(&self, one: u32, other: u32) -> bool {
        let rule_places = |child: u32| {
            let child = self.children[child as usize];
            let entries = self.copied[child.first..child.end].iter();
            entries.map(|entry| entry.place)
        };
        rule_places(one).eq(rule_places(other))
    }

    /// Makes an inner node, and tasks for its children. Returns false if there are
    /// not enough places for their rules.
    fn split(
        &mut self,
        task: &Task,
        places: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<bool, BuildError> {
        let rules = self.entries.len() - task.entries;
        let count = self.children.len();
        // A child with all rules must have a smaller box, so it is not merged.
        let mut copies = 0;
        for (at, child) in (0..).zip(&mut self.children) {
            if child.rules() == rules {
                child.same = at;
            }
            if child.same == at {
                copies += child.rules();
            }
        }
        let all_have_all = self.children.iter().all(|child| child.rules() == rules);
        if all_have_all || copies.saturating_add(count) > places {
            return Ok(false);
        }
        let first = u32::try_from(self.nodes.len()).expect("nodes are bounded");
        self.nodes[task.node as usize] = node::inner(&self.fields, &self.cuts, first);
        for _ in 0..count {
            monitor.memory().room_to_keep(&mut self.nodes)?;
            self.nodes.push(Node::EMPTY);
        }
        let fields = self.fields.len();
        self.entries.truncate(task.entries);
        let mut whole = Vec::with_capacity(fields);
        whole.extend_from_slice(&self.sides[self.sides.len() - fields..]);
        self.sides.truncate(self.sides.len() - fields);
        let weights: f64 = self.children.iter().map(|child| child.weight).sum();
        let (mut left, mut share) = (task.places - count.min(task.places), task.share);
        let mut to_come = copies;
        for at in 0..count {
            let child = self.children[at];
            let number = first + u32::try_from(at).expect("at most 12 bits");
            if child.rules() == 0 {
                let weight = task.weight * child.weight / weights;
                self.outline.add_leaf(task.depth + 1, 0, weight);
                continue;
            }
            if child.same as usize != at {
                push(
                    monitor.memory(),
                    &mut self.same,
                    [number, first + child.same],
                )?;
                continue;
            }
            let begin = self.entries.len();
            extend(
                monitor.memory(),
                &mut self.entries,
                &self.copied[child.first..child.end],
            )?;
            for &side in &whole {
                push(monitor.memory(), &mut self.sides, side)?;
            }
            let weight = self.place_box(at, begin);
            let of_child = |all: usize| {
                let of_child = all as u128 * child.rules() as u128 / to_come as u128;
                usize::try_from(of_child).expect("a part")
            };
            let new = Task {
                node: number,
                entries: begin,
                places: of_child(left),
                share: of_child(share),
                depth: task.depth + 1,
                weight: task.weight * weight / weights,
            };
            left -= new.places;
            share -= new.share;
            to_come -= child.rules();
            push(monitor.memory(), &mut self.tasks, new)?;
            monitor.work(1 + child.rules() / COPIES_PER_STEP)?;
        }
        Ok(true)
    }

    /// Changes the last box to the box of a child and of all children merged with it.
    /// Returns their weight.
    fn place_box(&mut self, at: usize, entries: usize) -> f64 {
        let mut weight = 0.0;
        let mut hulls = [[usize::MAX, 0]; MAX_CUT_FIELDS];
        let mut merged = 0;
        for number in at..self.children.len() {
            let child = self.children[number];
            if child.same as usize != at {
                continue;
            }
            weight += child.weight;
            merged += 1;
            let mut remaining = number;
            for (cut, hull) in self.cuts.iter().zip(&mut hulls).rev() {
                let part = remaining & (cut.count() - 1);
                remaining >>= cut.bits;
                *hull = [hull[0].min(part), hull[1].max(part)];
            }
            let merged_rules = &self.copied[child.first..child.end];
            for (entry, merged_rule) in self.entries[entries..].iter_mut().zip(merged_rules) {
                entry.shadows |= merged_rule.shadows;
            }
        }
        let sides = self.sides.len() - self.fields.len();
        for (hull, cut) in hulls.iter().zip(&self.cuts) {
            let side = &mut self.sides[sides + cut.field];
            *side = cut.hull(&self.grid, side, *hull);
            if merged > 1 {
                for entry in &mut self.entries[entries..] {
                    let covers = self.grid.covers(entry.place, cut.field, side.span);
                    entry.open &= !(1 << cut.field);
                    entry.open |= u64::from(!covers) << cut.field;
                }
            }
        }
        weight
    }

    /// Gives back all working memory.
    fn finish(mut self, monitor: &mut Monitor<'_>) -> Result<Grown<Nodes>, BuildError> {
        // The original of a copy comes earlier in `same`, or is not a copy.
        for &[node, original] in &self.same {
            self.nodes[node as usize] = self.nodes[original as usize];
        }
        let working = self.grid.bytes()
            + self.chooser.bytes()
            + bytes_of::<[u32; 2]>(self.same.capacity())
            + bytes_of::<Task>(self.tasks.capacity())
            + bytes_of::<Entry>(self.entries.capacity() + self.copied.capacity())
            + bytes_of::<Side>(self.sides.capacity())
            + bytes_of::<More>(self.steps.capacity())
            + bytes_of::<Child>(self.children.capacity())
            + bytes_of::<(u64, u32)>(self.by_hash.capacity());
        drop((self.grid, self.chooser, self.same, self.tasks));
        drop((self.entries, self.copied, self.sides, self.steps));
        drop((self.children, self.by_hash));
        monitor.memory().give_back(working);
        self.lists.finish(self.sharing, monitor)?;
        let (old, new) = (self.nodes.capacity(), self.nodes.len());
        if old > new {
            let bytes = bytes_of::<Node>;
            monitor.memory().replace(bytes(old), bytes(new))?;
            self.nodes.shrink_to_fit();
        }
        Ok(Grown {
            nodes: Nodes { nodes: self.nodes },
            outline: self.outline,
            lists: self.lists,
            copies: self.bounds.places.saturating_mul(COPIES_PER_PLACE) - self.copies,
        })
    }
}

/// True if a better rule matches all headers of a box that another rule matches.
fn covers(grid: &Grid, sides: &[Side], better: &Entry, covered: &Entry) -> bool {
    let mut open = better.open;
    if open & !covered.open != 0 {
        return false;
    }
    while open != 0 {
        let field = open.trailing_zeros() as usize;
        open &= open - 1;
        let span = grid.span(covered.place, field).within(sides[field].span);
        if !grid.covers(better.place, field, span) {
            return false;
        }
    }
    true
}

/// Finds the children that a rule is in.
struct Placing<'a> {
    grid: &'a Grid,
    sides: &'a [Side],
    cuts: &'a [Cut],
}

impl Placing<'_> {
    #[inline(always)]
    fn of(
        &self,
        entry: &Entry,
        mut show: impl FnMut(usize, &[Parts; MAX_CUT_FIELDS], &[u32; MAX_CUT_FIELDS]),
    ) {
        let mut parts = [Parts::ONE; MAX_CUT_FIELDS];
        let mut bits = [0; MAX_CUT_FIELDS];
        let mut ranges = [[0, 0]; MAX_CUT_FIELDS];
        for (at, cut) in self.cuts.iter().enumerate() {
            parts[at] = cut.parts(self.grid, &self.sides[cut.field], entry);
            (ranges[at], bits[at]) = (parts[at].parts, cut.bits);
        }
        for_each_child(&ranges, &bits, |child| show(child, &parts, &bits));
    }

    /// Calls `show` for each child, with the number of children of the rule, and
    /// whether the rule covers the child.
    #[inline(always)]
    fn place(&self, entry: &Entry, mut show: impl FnMut(usize, f64, bool)) {
        self.of(entry, |child, parts, bits| {
            let of_rule = parts.iter().map(|of| of.parts[1] - of.parts[0] + 1);
            #[allow(clippy::cast_precision_loss)] // a share
            let of_rule = of_rule.product::<usize>() as f64;
            show(child, of_rule, self.open(entry, child, parts, bits) == 0);
        });
    }

    /// Calls `show` for each child, with the fields that the rule does not cover.
    #[inline(always)]
    fn place_open(&self, entry: &Entry, mut show: impl FnMut(usize, u64)) {
        self.of(entry, |child, parts, bits| {
            show(child, self.open(entry, child, parts, bits));
        });
    }

    #[inline(always)]
    fn open(
        &self,
        entry: &Entry,
        child: usize,
        parts: &[Parts; MAX_CUT_FIELDS],
        bits: &[u32; MAX_CUT_FIELDS],
    ) -> u64 {
        let (mut open, mut rest) = (entry.open, child);
        for at in (0..MAX_CUT_FIELDS).rev() {
            if let Some(cut) = self.cuts.get(at) {
                let part = rest & (cut.count() - 1);
                open &= !(u64::from(parts[at].covers(part)) << cut.field);
            }
            rest >>= bits[at];
        }
        open
    }
}
