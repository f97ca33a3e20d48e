//! Growing the tree.

use super::choose::{Chooser, Cut};
use super::node::{Field, Node, Nodes};
use crate::engine::EngineSpec;
use crate::engine::ranked::RankedRules;
use crate::engine::tree::{Entry, Grid, Lists, Outline, Sharing, Span, extend, push};
use crate::error::BuildError;
use crate::limits::Limits;
use crate::memory::bytes_of;
use crate::monitor::Monitor;

/// What progress observers are told.
const SPLITTING: &str = "splitting nodes";

/// The most places of all lists: they are numbered with 32 bits.
const MOST_PLACES: usize = u32::MAX as usize;

/// The most nodes, which are numbered with 32 bits as well, less a pair.
const MOST_NODES: usize = u32::MAX as usize - 2;

/// A bound on the work of building, in rules clipped for each that may be stored.
const CLIPS: usize = 64;

/// Rules clipped that count as one step of work.
const STEP_CLIPS: usize = 16;

/// What bounds a tree.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Nodes of at most so many rules are not split.
    pub(super) binth: usize,
    /// Places that the lists of all leaves may have together.
    pub(super) places: usize,
}

impl Bounds {
    pub(super) fn new(spec: &EngineSpec, rules: usize) -> Bounds {
        let places = rules.saturating_mul(spec.options().whole("places"));
        Bounds {
            binth: spec.options().whole("binth"),
            places: places.min(MOST_PLACES),
        }
    }
}

/// A node that is to be split, or a leaf. Its rules and its box are the last
/// ones that are there.
struct Task {
    node: u32,
    /// Where its rules begin.
    entries: usize,
    /// Places that the leaves below may have.
    places: usize,
    /// The share of all rules for which it stands, to report progress.
    share: usize,
    depth: usize,
    /// The share of headers of random rules that come here.
    weight: f64,
}

/// A tree, and the work that it took.
pub(super) struct Grown {
    pub(super) nodes: Nodes,
    pub(super) outline: Outline,
    pub(super) lists: Lists,
    /// Rules clipped.
    pub(super) clips: usize,
}

/// A tree that grows, the nodes that are to be split first last.
pub(super) struct Grow<'a> {
    rules: &'a RankedRules,
    limits: &'a Limits,
    bounds: Bounds,
    grid: Grid,
    fields: Vec<Field>,
    nodes: Vec<Node>,
    lists: Lists,
    sharing: Sharing,
    outline: Outline,
    chooser: Chooser,
    tasks: Vec<Task>,
    entries: Vec<Entry>,
    /// The sides of the boxes of all tasks.
    sides: Vec<Span>,
    parts: [Vec<Entry>; 2],
    /// Rules that may be clipped yet.
    clips: usize,
}

impl<'a> Grow<'a> {
    /// The tree over all rules.
    pub(super) fn tree(
        rules: &'a RankedRules,
        limits: &'a Limits,
        bounds: Bounds,
        monitor: &mut Monitor<'_>,
    ) -> Result<Grown, BuildError> {
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
            lists: Lists::default(),
            sharing: Sharing::default(),
            outline: Outline::default(),
            chooser: Chooser::new(monitor)?,
            tasks: Vec::new(),
            entries: Vec::new(),
            sides: Vec::new(),
            parts: [Vec::new(), Vec::new()],
            clips: bounds.places.saturating_mul(CLIPS),
        };
        monitor.begin(SPLITTING, rules.len())?;
        growing.begin(monitor)?;
        let mut spare = 0;
        while let Some(mut task) = growing.tasks.pop() {
            task.places = task.places.saturating_add(spare);
            spare = growing.grow(&task, monitor)?;
        }
        growing.finish(monitor)
    }

    /// The root, its rules and its box.
    fn begin(&mut self, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        for side in self.grid.everything() {
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
        // A pair of siblings stands in one cache line; the root has no sibling.
        for _ in 0..2 {
            monitor.memory().room_to_keep(&mut self.nodes)?;
            self.nodes.push(Node::EMPTY);
        }
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

    /// Makes a node: splits it, or makes it a leaf. Returns how many places fewer
    /// than it may have a leaf has.
    fn grow(&mut self, task: &Task, monitor: &mut Monitor<'_>) -> Result<usize, BuildError> {
        let rules = self.entries.len() - task.entries;
        if rules > self.bounds.binth
            && self.clips >= 2 * rules
            && self.nodes.len() < MOST_NODES
            && let Some(cut) = self.choose(task, monitor)?
        {
            self.clips -= 2 * rules;
            self.clip(task, cut, monitor)?;
            let sizes = [0, 1].map(|part| self.parts[part].len());
            let helps = sizes[0] < rules || sizes[1] < rules;
            if helps && sizes[0] + sizes[1] <= task.places {
                self.split(task, cut, sizes, monitor)?;
                return Ok(0);
            }
        }
        let list = (self.lists).add(&self.entries[task.entries..], &mut self.sharing, monitor)?;
        self.nodes[task.node as usize] = Node::leaf(task.node, list);
        self.entries.truncate(task.entries);
        self.sides.truncate(self.sides.len() - self.grid.fields());
        self.outline.add_leaf(task.depth, rules, task.weight);
        let bytes = self.rules.bytes() + Nodes::bytes_of(self.nodes.len());
        let bytes = bytes.saturating_add(bytes_of::<u32>(self.lists.places()));
        self.limits.check_bytes(bytes)?;
        let mut share = task.share;
        while share > 0 {
            let part = share.min(Monitor::BLOCK);
            monitor.advance(part)?;
            share -= part;
        }
        monitor.work(1 + rules / STEP_CLIPS)?;
        Ok(task.places.saturating_sub(rules))
    }

    /// The best cut of a node.
    fn choose(
        &mut self,
        task: &Task,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Cut>, BuildError> {
        let sides = &self.sides[self.sides.len() - self.grid.fields()..];
        let entries = &self.entries[task.entries..];
        let cut = self.chooser.choose(&self.grid, entries, sides, monitor)?;
        Ok(cut.map(|cut| self.with_one_test(cut)))
    }

    /// The same cut, or one near it that a node can test. A node looks at 64 bits
    /// at most, so a wide field is cut by its upper bits unless they are the same
    /// in the whole box.
    fn with_one_test(&self, cut: Cut) -> Cut {
        if !self.fields[cut.field].is_wide() {
            return cut;
        }
        let side = self.sides[self.sides.len() - self.grid.fields() + cut.field];
        let starts = self.grid.starts(cut.field);
        let upper = |interval: u32| starts[interval as usize] >> 64;
        let value = starts[cut.at as usize];
        let last = starts.get(side.end as usize);
        let last = last.map_or(self.fields[cut.field].most, |next| next - 1);
        let is_same = upper(side.first) == last >> 64;
        if is_same || value == value >> 64 << 64 {
            return cut;
        }
        let at = |value: u128| starts.partition_point(|&start| start < value);
        let below = at(value >> 64 << 64);
        let at = match below > side.first as usize {
            true => below,
            false => at(((value >> 64) + 1) << 64),
        };
        Cut {
            at: u32::try_from(at).expect("an interval"),
            ..cut
        }
    }

    /// Makes the lists of both parts.
    fn clip(&mut self, task: &Task, cut: Cut, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let halves = self.halves(cut);
        let entries = &self.entries[task.entries..];
        for (list, side) in self.parts.iter_mut().zip(halves) {
            list.clear();
            for entries in entries.chunks(Monitor::BLOCK) {
                for &entry in entries {
                    if let Some(mut entry) = self.grid.clip(entry, cut.field, side) {
                        entry.shadows |= entry.open == 0;
                        push(monitor.memory(), list, entry)?;
                        if entry.open == 0 {
                            break;
                        }
                    }
                }
                monitor.work(1 + entries.len() / STEP_CLIPS)?;
                if list.last().is_some_and(|last| last.open == 0) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Makes an inner node, and its children the next to be made.
    fn split(
        &mut self,
        task: &Task,
        cut: Cut,
        sizes: [usize; 2],
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let value = self.grid.starts(cut.field)[cut.at as usize];
        let child = u32::try_from(self.nodes.len()).expect("nodes are bounded");
        self.nodes[task.node as usize] = self.fields[cut.field].node(value, child);
        for _ in 0..2 {
            monitor.memory().room_to_keep(&mut self.nodes)?;
            self.nodes.push(Node::EMPTY);
        }
        let rules = self.entries.len() - task.entries;
        self.entries.truncate(task.entries);
        let halves = self.halves(cut);
        let sides = self.sides.len() - self.grid.fields();
        // A rule in both parts counts half in each.
        #[allow(clippy::cast_precision_loss)] // shares
        let of_rules = sizes.map(|size| {
            let all = sizes[0] + sizes[1];
            let both = all.saturating_sub(rules);
            (2 * size - both.min(size)) as f64 / (2 * all - 2 * both.min(all)).max(1) as f64
        });
        // The larger part is the last, so it is made first and stands nearer.
        let order = if sizes[0] < sizes[1] { [0, 1] } else { [1, 0] };
        let (mut places, mut share) = (task.places, task.share);
        let mut left = sizes[0] + sizes[1];
        for (turn, part) in order.into_iter().enumerate() {
            if turn == 1 {
                for field in 0..self.grid.fields() {
                    let side = self.sides[sides + field];
                    push(monitor.memory(), &mut self.sides, side)?;
                }
            }
            let top = self.sides.len() - self.grid.fields();
            self.sides[top + cut.field] = halves[part];
            let of_part = |all: usize| match left {
                0 => all,
                left => {
                    let of_part = all as u128 * sizes[part] as u128 / left as u128;
                    usize::try_from(of_part).expect("a part")
                }
            };
            let new = Task {
                node: child + u32::from(part == 1),
                entries: self.entries.len(),
                places: of_part(places),
                share: of_part(share),
                depth: task.depth + 1,
                weight: task.weight * of_rules[part],
            };
            places -= new.places;
            share -= new.share;
            left -= sizes[part];
            push(monitor.memory(), &mut self.tasks, new)?;
            extend(monitor.memory(), &mut self.entries, &self.parts[part])?;
        }
        Ok(())
    }

    /// The two parts of the last task's box in the field that is cut.
    fn halves(&self, cut: Cut) -> [Span; 2] {
        let side = self.sides[self.sides.len() - self.grid.fields() + cut.field];
        let (first, at, end) = (side.first, cut.at, side.end);
        debug_assert!(first < at && at < end, "{side:?} is cut at {at}");
        [Span { first, end: at }, Span { first: at, end }]
    }

    /// Gives all working memory back.
    fn finish(mut self, monitor: &mut Monitor<'_>) -> Result<Grown, BuildError> {
        let parts = self
            .parts
            .iter()
            .map(|part| bytes_of::<Entry>(part.capacity()));
        let working = self.grid.bytes()
            + self.chooser.bytes()
            + bytes_of::<Task>(self.tasks.capacity())
            + bytes_of::<Entry>(self.entries.capacity())
            + bytes_of::<Span>(self.sides.capacity())
            + parts.sum::<usize>();
        drop((self.grid, self.chooser, self.tasks, self.entries));
        drop((self.sides, self.parts));
        monitor.memory().give_back(working);
        self.lists.finish(self.sharing, monitor)?;
        monitor.memory().keep(Nodes::bytes_of(self.nodes.len()))?;
        let nodes = Nodes::new(&self.nodes);
        monitor
            .memory()
            .drop_kept(bytes_of::<Node>(self.nodes.capacity()));
        Ok(Grown {
            outline: self.outline,
            nodes,
            lists: self.lists,
            clips: self.bounds.places.saturating_mul(CLIPS) - self.clips,
        })
    }
}
