//! Growing a tree: cutting the small fields first, then splitting.

use crate::engine::hyper_split::{Chooser, Cut};
use crate::engine::tree::{Entry, Grid, Span, extend, push};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::rule::Winner;
use crate::schema::{FieldId, Schema, low_ones};

use super::Settings;
use super::fields::{Ends, Fields, Selected, WordsAt, free_bits};
use super::node::{Draft, Leaf, MOST_BITS};

/// Rules by which a field to cut is chosen.
const SAMPLE: usize = 512;

/// A node of so many rules is cut even where that hardly parts them: their
/// addresses share leading bits, and the next cut does.
const MANY: usize = 256;

/// The most inner nodes above a leaf.
pub(super) const MOST_DEPTH: usize = 128;

/// Rules clipped that count as one step of work.
const STEP_CLIPS: usize = 16;

/// Rules by their places, for a [`Grid`].
pub(super) struct Ranked<'a, 'f> {
    pub(super) fields: &'a Fields,
    pub(super) count: usize,
    /// The words of the rule at a place.
    pub(super) words: &'f WordsAt<'a, 'f>,
}

impl crate::engine::tree::Intervals for Ranked<'_, '_> {
    fn schema(&self) -> &Schema {
        &self.fields.schema
    }

    fn count(&self) -> usize {
        self.count
    }

    fn ends(&self, place: usize, field: FieldId) -> Ends {
        self.fields.ends(field.index(), (self.words)(place))
    }

    fn is_interval(&self, place: usize, field: FieldId) -> bool {
        self.fields.is_interval(field.index(), (self.words)(place))
    }
}

/// Rows, the rank and the words of a rule each, one after the other.
pub(super) fn words_of(rows: &[u64], stride: usize, place: usize) -> &[u64] {
    &rows[place * stride + 1..(place + 1) * stride]
}

/// The rank of a row of such rows.
pub(super) fn winner_of(row: &[u64]) -> Winner {
    Winner::from_rank(row[0])
}

/// A block of values that a cut divides: the first, and two to the power of
/// `free` is their number. `None` where the sides of a box are no such block.
type Block = Option<(u128, u32)>;

/// A tree that grows.
pub(super) struct Grow<'a> {
    grid: &'a Grid,
    fields: &'a Fields,
    settings: &'a Settings,
    /// The fields that are cut.
    cuts: Vec<Selected>,
    blocks: Vec<Block>,
    pub(super) draft: Draft,
    /// The rules of the nodes that are to be made, those of the next one last.
    entries: Vec<Entry>,
    /// The box of the next node.
    sides: Vec<Span>,
    chooser: Chooser,
    parts: [Vec<Entry>; 2],
    by_child: Vec<(u32, Entry)>,
    counts: Vec<u32>,
    /// Rules clipped.
    pub(super) clips: usize,
}

impl<'a> Grow<'a> {
    /// Begins with a box.
    pub(super) fn new(
        grid: &'a Grid,
        fields: &'a Fields,
        settings: &'a Settings,
        cuts: Vec<Selected>,
        of_box: &[Ends],
        monitor: &mut Monitor<'_>,
    ) -> Result<Grow<'a>, BuildError> {
        let block = |selected: &Selected| {
            let ends = of_box[selected.field];
            let free = free_bits(ends);
            let whole = ends.1 - ends.0 == low_ones(free);
            whole.then_some((ends.0, free))
        };
        monitor.memory().take(bytes_of::<Span>(fields.len()))?;
        let sides = of_box.iter().enumerate();
        let sides = sides.map(|(field, &ends)| side(grid, field, ends));
        Ok(Grow {
            blocks: cuts.iter().map(block).collect(),
            sides: sides.collect(),
            grid,
            fields,
            settings,
            cuts,
            draft: Draft::default(),
            entries: Vec::new(),
            chooser: Chooser::new(monitor)?,
            parts: [Vec::new(), Vec::new()],
            by_child: Vec::new(),
            counts: Vec::new(),
            clips: 0,
        })
    }

    /// Makes the tree of some places, ascending.
    pub(super) fn tree(
        &mut self,
        places: impl Iterator<Item = u32>,
        most_places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        for place in places {
            let mut entry = Some(self.grid.entry(place));
            for (field, &side) in self.sides.iter().enumerate() {
                entry = entry.and_then(|entry| self.grid.clip(entry, field, side));
            }
            if let Some(entry) = entry {
                push(monitor.memory(), &mut self.entries, entry)?;
            }
            monitor.work(1)?;
        }
        monitor.memory().room(&mut self.draft.nodes)?;
        self.draft.nodes.push(super::node::Node::EMPTY);
        self.node(0, 0, most_places, depth, monitor)?;
        Ok(())
    }

    /// Gives the working memory back, except that of the tree.
    pub(super) fn finish(self, monitor: &mut Monitor<'_>) -> Draft {
        let entries = self.entries.capacity() + self.parts.iter().map(Vec::capacity).sum::<usize>();
        let working = self.chooser.bytes()
            + bytes_of::<Entry>(entries)
            + bytes_of::<(u32, Entry)>(self.by_child.capacity())
            + bytes_of::<Span>(self.fields.len());
        monitor.memory().give_back(working);
        self.draft
    }

    /// Makes a node of the entries from an index on, and takes them away. Returns
    /// how many places fewer than it may have the leaves below it have.
    fn node(
        &mut self,
        at: u32,
        from: usize,
        places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let entries = &self.entries[from..];
        let rules = entries.len();
        // Rules after one that covers the box cannot win here.
        let covering = entries.iter().position(|entry| entry.open == 0);
        let compared = covering.map_or(rules, |at| at + 1);
        if compared > self.settings.binth && depth < MOST_DEPTH {
            if rules > self.settings.change
                && let Some((number, bits)) = self.field_to_cut(from)
            {
                return self.cut(at, from, (number, bits), places, depth, monitor);
            }
            let compared = &self.entries[from..from + compared];
            let cut = self
                .chooser
                .choose(self.grid, compared, &self.sides, monitor)?;
            if let Some(cut) = cut {
                let cut = self.with_one_test(cut);
                self.clip(from, cut, monitor)?;
                let sizes = [0, 1].map(|part| self.parts[part].len());
                let helps = sizes[0] < rules || sizes[1] < rules;
                if helps && sizes[0] + sizes[1] <= places {
                    return self.split(at, from, cut, places, depth, monitor);
                }
            }
        }
        self.leaf(at, from, monitor)?;
        Ok(places.saturating_sub(rules))
    }

    fn leaf(&mut self, at: u32, from: usize, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let leaf = Leaf {
            first: u32::try_from(self.draft.lists.len()).expect("places are bounded"),
            len: u32::try_from(self.entries.len() - from).expect("rules are bounded"),
        };
        for chunk in self.entries[from..].chunks(Monitor::BLOCK) {
            for entry in chunk {
                monitor.memory().room(&mut self.draft.lists)?;
                self.draft.lists.push(entry.place);
            }
            monitor.advance(chunk.len())?;
        }
        monitor.work(1)?;
        self.draft.nodes[at as usize] = super::node::Node::leaf(at, leaf);
        self.entries.truncate(from);
        Ok(())
    }

    /// The selected field, and the number of bits, that part the rules of a node
    /// best; `None` where cutting does not.
    fn field_to_cut(&mut self, from: usize) -> Option<(usize, u32)> {
        let entries = &self.entries[from..];
        let step = entries.len().div_ceil(SAMPLE);
        let sampled = entries.len().div_ceil(step) as u64;
        let most = MOST_BITS.min(entries.len().ilog2());
        let mut best: Option<(u64, usize, u32)> = None;
        for (number, (selected, block)) in self.cuts.iter().zip(&self.blocks).enumerate() {
            let &Some((first, free)) = block else {
                continue;
            };
            let within = self.fields.bits_at_once(selected.field, free);
            let bits = free.saturating_sub(selected.bits).min(within).min(most);
            if bits == 0 {
                continue;
            }
            let below = free - bits;
            self.counts.clear();
            self.counts.resize(1 << bits, 0);
            for entry in entries.iter().step_by(step) {
                let span = self.grid.span(entry.place, selected.field);
                let low = self.grid.starts(selected.field)[span.first as usize].max(first);
                self.counts[child_of(low - first, below)] += 1;
            }
            let squares = self.counts.iter().map(|&count| u64::from(count).pow(2));
            let squares = squares.sum();
            if best.is_none_or(|(least, _, _)| squares < least) {
                best = Some((squares, number, bits));
            }
        }
        let (squares, number, bits) = best?;
        let parts = 4 * squares <= 3 * sampled * sampled;
        (parts || entries.len() >= MANY).then_some((number, bits))
    }

    /// Makes a node that cuts a field in blocks of one size, and its children.
    fn cut(
        &mut self,
        at: u32,
        from: usize,
        (number, bits): (usize, u32),
        places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let field = self.cuts[number].field;
        let block = self.blocks[number];
        let (first, free) = block.expect("it was cut because it is a block");
        let below = free - bits;
        let child = self.draft.alloc(bits, monitor)?;
        self.draft.nodes[at as usize] = self.fields.cut(field, free, bits).with_children(child);
        let last = first | low_ones(free);
        let side_of = |grid: &Grid, child: usize| {
            let low = first | (child as u128) << below;
            side(grid, field, (low, low | low_ones(below)))
        };
        // Rules by child, which are few for each rule.
        self.by_child.clear();
        let (mut known, mut known_side) = (usize::MAX, self.sides[field]);
        for number in from..self.entries.len() {
            let entry = self.entries[number];
            let span = self.grid.span(entry.place, field);
            let starts = self.grid.starts(field);
            let low = starts[span.first as usize].max(first);
            let high = starts
                .get(span.end as usize)
                .map_or(last, |&next| (next - 1).min(last));
            for child in child_of(low - first, below)..=child_of(high - first, below) {
                if child != known {
                    (known, known_side) = (child, side_of(self.grid, child));
                }
                if let Some(entry) = self.grid.clip(entry, field, known_side) {
                    let child = u32::try_from(child).expect("at most 256 children");
                    push(monitor.memory(), &mut self.by_child, (child, entry))?;
                }
            }
            if number % Monitor::BLOCK == 0 {
                monitor.work(Monitor::BLOCK / STEP_CLIPS)?;
            }
        }
        self.clips += self.by_child.len();
        let all = self.by_child.len();
        // The children's rules, those of the first child last.
        self.counts.clear();
        self.counts.resize((1 << bits) + 1, 0);
        for (child, _) in &self.by_child {
            self.counts[*child as usize] += 1;
        }
        self.entries.truncate(from);
        for _ in 0..all {
            push(monitor.memory(), &mut self.entries, Entry::default())?;
        }
        let counts: [u32; 1 << MOST_BITS] =
            std::array::from_fn(|child| self.counts.get(child).copied().unwrap_or(0));
        let mut end = from + all;
        for count in self.counts.iter_mut().take(1 << bits) {
            end -= *count as usize;
            *count = u32::try_from(end - from).expect("places are bounded");
        }
        for &(child, entry) in &self.by_child {
            let to = &mut self.counts[child as usize];
            self.entries[from + *to as usize] = entry;
            *to += 1;
        }
        monitor.work(all / STEP_CLIPS)?;
        let whole_side = self.sides[field];
        let (mut spare, mut left) = (0, all);
        let mut places_left = places;
        for (number_of_child, &count) in counts[..1 << bits].iter().enumerate() {
            let index = child + u32::try_from(number_of_child).expect("at most 256 children");
            let count = count as usize;
            if count == 0 {
                self.draft.nodes[index as usize] = super::node::Node::leaf(index, Leaf::default());
                continue;
            }
            let share = share(places_left, count, left);
            left -= count;
            places_left -= share;
            self.blocks[number] = Some((first | (number_of_child as u128) << below, below));
            self.sides[field] = side_of(self.grid, number_of_child);
            let from = self.entries.len() - count;
            spare = self.node(index, from, share + spare, depth + 1, monitor)?;
        }
        self.blocks[number] = block;
        self.sides[field] = whole_side;
        Ok(spare)
    }

    /// Makes a node that parts its box in two, and its children.
    fn split(
        &mut self,
        at: u32,
        from: usize,
        cut: Cut,
        places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let value = self.grid.starts(cut.field)[cut.at as usize];
        let child = self.draft.alloc(1, monitor)?;
        self.draft.nodes[at as usize] = self.fields.split(cut.field, value).with_children(child);
        self.entries.truncate(from);
        let sizes = [0, 1].map(|part| self.parts[part].len());
        for part in [1, 0] {
            extend(monitor.memory(), &mut self.entries, &self.parts[part])?;
        }
        let whole = self.sides[cut.field];
        // The parts are no blocks, as far as anyone knows.
        let number = self
            .cuts
            .iter()
            .position(|selected| selected.field == cut.field);
        let block = number.and_then(|number| self.blocks[number].take());
        let of_first = share(places, sizes[0], sizes[0] + sizes[1]);
        self.sides[cut.field].end = cut.at;
        let middle = from + sizes[1];
        let spare = self.node(child, middle, of_first, depth + 1, monitor)?;
        self.sides[cut.field] = Span {
            first: cut.at,
            end: whole.end,
        };
        let of_second = places - of_first + spare;
        let spare = self.node(child + 1, from, of_second, depth + 1, monitor)?;
        self.sides[cut.field] = whole;
        if let Some(number) = number {
            self.blocks[number] = block;
        }
        Ok(spare)
    }

    /// Makes the lists of both parts.
    fn clip(&mut self, from: usize, cut: Cut, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let whole = self.sides[cut.field];
        let lower = Span {
            end: cut.at,
            ..whole
        };
        let upper = Span {
            first: cut.at,
            ..whole
        };
        for (list, side) in self.parts.iter_mut().zip([lower, upper]) {
            list.clear();
            for chunk in self.entries[from..].chunks(Monitor::BLOCK) {
                for &entry in chunk {
                    if let Some(entry) = self.grid.clip(entry, cut.field, side) {
                        push(monitor.memory(), list, entry)?;
                    }
                }
                monitor.work(1 + chunk.len() / STEP_CLIPS)?;
            }
        }
        self.clips += 2 * (self.entries.len() - from);
        Ok(())
    }

    /// The same cut, or one near it that a node can test. A node looks at 64 bits
    /// at most, so a wide field is cut by its upper bits unless they are the same
    /// in the whole box.
    fn with_one_test(&self, cut: Cut) -> Cut {
        if !self.fields.is_wide(cut.field) {
            return cut;
        }
        let side = self.sides[cut.field];
        let starts = self.grid.starts(cut.field);
        let value = starts[cut.at as usize];
        let last = starts.get(side.end as usize);
        let last = last.map_or(self.fields.most(cut.field), |next| next - 1);
        let is_same = starts[side.first as usize] >> 64 == last >> 64;
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
}

/// The elementary intervals of a field that have some value of an interval.
fn side(grid: &Grid, field: usize, (low, high): Ends) -> Span {
    let starts = grid.starts(field);
    let upto = |value: u128| starts.partition_point(|&start| start <= value);
    let interval = |number: usize| u32::try_from(number).expect("an interval");
    Span {
        first: interval(upto(low) - 1),
        end: interval(upto(high)),
    }
}

/// The child of a value of a block, which is given from the block's first.
fn child_of(offset: u128, below: u32) -> usize {
    usize::try_from(offset >> below).expect("at most 256 children")
}

/// The share of `all` for `part` of `whole`.
fn share(all: usize, part: usize, whole: usize) -> usize {
    let share = all as u128 * part as u128 / (whole.max(1)) as u128;
    usize::try_from(share).expect("a part of all")
}
