//! Grows the tree.

use super::node::{Field, Node, Nodes};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::parts::ranked::RankedRules;
use crate::parts::tree::split::{Chooser, Cut};
use crate::parts::tree::{
    Entry, Grid, Grown, Lists, Outline, Sharing, Span, TreeNodes, extend, push,
};

/// The name of the build's stage.
const SPLITTING: &str = "splitting nodes";

/// The largest number of places of all lists: they are numbered with 32 bits.
const MAX_PLACES: usize = u32::MAX as usize;

/// The largest number of nodes, which are also numbered with 32 bits, less a pair.
const MAX_NODES: usize = u32::MAX as usize - 2;

/// A limit on the work of a build: clipped rules for each place that may be stored.
const CLIPS_PER_PLACE: usize = 64;

/// Clipped rules that count as one step of work. It sets how often a build reports
/// progress.
const CLIPS_PER_STEP: usize = 16;

/// Limits on a tree.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Nodes of at most this number of rules are not split.
    pub(super) binth: usize,
    /// The largest number of places in all lists.
    pub(super) places: usize,
}

impl Bounds {
    pub(super) fn new(spec: &EngineSpec, rules: usize) -> Bounds {
        let max_places = rules.saturating_mul(spec.options().whole("places"));
        Bounds {
            binth: spec.options().whole("binth"),
            places: max_places.min(MAX_PLACES),
        }
    }
}

/// A node that is to be split, or to become a leaf. The rules and box of the next
/// task are last in `entries` and `sides`.
struct Task {
    node: u32,
    /// The index of its first rule.
    entries: usize,
    /// The largest number of places of the leaves below.
    places: usize,
    /// Its share of all rules, to report progress.
    share: usize,
    depth: usize,
    /// The share of random rules' headers that reach the node.
    weight: f64,
}

/// A tree that is being grown. The node to split next is last.
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
    /// The number of rules that may still be clipped.
    clips: usize,
}

impl<'a> Grow<'a> {
    /// Grows the tree over all rules.
    pub(super) fn tree(
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
            lists: Lists::default(),
            sharing: Sharing::default(),
            outline: Outline::default(),
            chooser: Chooser::new(monitor)?,
            tasks: Vec::new(),
            entries: Vec::new(),
            sides: Vec::new(),
            parts: [Vec::new(), Vec::new()],
            clips: bounds.places.saturating_mul(CLIPS_PER_PLACE),
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

    /// Starts with the root, its rules and its box.
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
        // A pair of siblings is in one cache line; the root has no sibling.
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

    /// Makes a node: splits it, or makes it a leaf. Returns the number of places that
    /// a leaf does not use.
    fn grow(&mut self, task: &Task, monitor: &mut Monitor<'_>) -> Result<usize, BuildError> {
        let rules = self.entries.len() - task.entries;
        if rules > self.bounds.binth
            && self.clips >= 2 * rules
            && self.nodes.len() < MAX_NODES
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
        monitor.work(1 + rules / CLIPS_PER_STEP)?;
        Ok(task.places.saturating_sub(rules))
    }

    /// Returns the best cut of a node.
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

    /// Returns the cut, or a nearby cut that one node can test. A node compares at
    /// most 64 bits. So a wide field is cut by its upper bits, unless these are equal
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
        let position_of = |value: u128| starts.partition_point(|&start| start < value);
        let lower = position_of(value >> 64 << 64);
        let position = match lower > side.first as usize {
            true => lower,
            false => position_of(((value >> 64) + 1) << 64),
        };
        Cut {
            at: u32::try_from(position).expect("an interval"),
            ..cut
        }
    }

    /// Makes the lists of rules for the two parts.
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
                monitor.work(1 + entries.len() / CLIPS_PER_STEP)?;
                if list.last().is_some_and(|last| last.open == 0) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Makes an inner node, and tasks for its children.
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
        // A rule in both parts counts as half a rule in each.
        #[allow(clippy::cast_precision_loss)] // shares
        let weights = sizes.map(|size| {
            let total = sizes[0] + sizes[1];
            let shared = total.saturating_sub(rules);
            (2 * size - shared.min(size)) as f64 / (2 * total - 2 * shared.min(total)).max(1) as f64
        });
        // The task of the larger part is last, so this part is made first and is
        // nearer to the node.
        let order = if sizes[0] < sizes[1] { [0, 1] } else { [1, 0] };
        let (mut places, mut share) = (task.places, task.share);
        let mut rules_left = sizes[0] + sizes[1];
        for (turn, part) in order.into_iter().enumerate() {
            if turn == 1 {
                for field in 0..self.grid.fields() {
                    let side = self.sides[sides + field];
                    push(monitor.memory(), &mut self.sides, side)?;
                }
            }
            let top = self.sides.len() - self.grid.fields();
            self.sides[top + cut.field] = halves[part];
            let of_part = |total: usize| match rules_left {
                0 => total,
                rules_left => {
                    let of_part = total as u128 * sizes[part] as u128 / rules_left as u128;
                    usize::try_from(of_part).expect("a part")
                }
            };
            let new = Task {
                node: child + u32::from(part == 1),
                entries: self.entries.len(),
                places: of_part(places),
                share: of_part(share),
                depth: task.depth + 1,
                weight: task.weight * weights[part],
            };
            places -= new.places;
            share -= new.share;
            rules_left -= sizes[part];
            push(monitor.memory(), &mut self.tasks, new)?;
            extend(monitor.memory(), &mut self.entries, &self.parts[part])?;
        }
        Ok(())
    }

    /// Returns the two parts of the last task's box in the field that is cut.
    fn halves(&self, cut: Cut) -> [Span; 2] {
        let side = self.sides[self.sides.len() - self.grid.fields() + cut.field];
        let (first, at, end) = (side.first, cut.at, side.end);
        debug_assert!(first < at && at < end, "{side:?} is cut at {at}");
        [Span { first, end: at }, Span { first: at, end }]
    }

    /// Gives back all working memory.
    fn finish(mut self, monitor: &mut Monitor<'_>) -> Result<Grown<Nodes>, BuildError> {
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
            copies: self.bounds.places.saturating_mul(CLIPS_PER_PLACE) - self.clips,
        })
    }
}
