//! Grows a tree: cuts the small fields first, then splits.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::rule::Winner;
use crate::model::schema::{FieldId, Schema, low_ones};
use crate::parts::tree::split::{Chooser, Cut};
use crate::parts::tree::{Entry, Grid, Span, extend, push};

use super::Settings;
use super::fields::{Ends, Fields, Selected, WordsAt, free_bits};
use super::node::{Draft, Leaf, MAX_CUT_BITS};

/// The number of rules that are sampled to choose a field to cut. Measured in
/// `bench/records/constants.md` (CutSplit).
const SAMPLE_RULES: usize = 512;

/// A node with this number of rules is cut even if the cut hardly separates them. Their
/// addresses share leading bits, and the next cut separates them. Measured in
/// `bench/records/constants.md` (CutSplit).
const ALWAYS_CUT_RULES: usize = 256;

/// The largest number of inner nodes above a leaf. It bounds the work of a lookup.
pub(super) const MAX_DEPTH: usize = 128;

/// Clipped rules that count as one step of work. It sets how often a build reports
/// progress.
const CLIPS_PER_STEP: usize = 16;

/// Rules by their places, for a [`Grid`].
pub(super) struct Ranked<'a, 'f> {
    pub(super) fields: &'a Fields,
    pub(super) count: usize,
    /// The words of the rule at a place.
    pub(super) words: &'f WordsAt<'a, 'f>,
}

impl crate::parts::tree::Intervals for Ranked<'_, '_> {
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

/// Returns the words of the rule at a place. `rows` has the rank and words of each
/// rule.
pub(super) fn words_of(rows: &[u64], stride: usize, place: usize) -> &[u64] {
    &rows[place * stride + 1..(place + 1) * stride]
}

/// Returns the winner for such a row.
pub(super) fn winner_of(row: &[u64]) -> Winner {
    Winner::from_rank(row[0])
}

/// A block of values that a cut divides: its first value, and the binary logarithm of
/// its size. `None` if the box is not an aligned block in the field.
type Block = Option<(u128, u32)>;

/// A tree that is being grown.
pub(super) struct Grow<'a> {
    grid: &'a Grid,
    fields: &'a Fields,
    settings: &'a Settings,
    /// The fields that are cut.
    cuts: Vec<Selected>,
    blocks: Vec<Block>,
    pub(super) draft: Draft,
    /// The rules of the nodes that are still to be made. The rules of the next node
    /// are last.
    entries: Vec<Entry>,
    /// The box of the next node.
    sides: Vec<Span>,
    chooser: Chooser,
    parts: [Vec<Entry>; 2],
    by_child: Vec<(u32, Entry)>,
    counts: Vec<u32>,
    /// The number of clipped rules.
    pub(super) clips: usize,
}

impl<'a> Grow<'a> {
    /// Starts with the box of the root.
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

    /// Grows the tree of some places, in ascending order.
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

    /// Gives back the working memory, except the memory of the tree.
    pub(super) fn finish(self, monitor: &mut Monitor<'_>) -> Draft {
        let entries = self.entries.capacity() + self.parts.iter().map(Vec::capacity).sum::<usize>();
        let working = self.chooser.bytes()
            + bytes_of::<Entry>(entries)
            + bytes_of::<(u32, Entry)>(self.by_child.capacity())
            + bytes_of::<Span>(self.fields.len());
        monitor.memory().give_back(working);
        self.draft
    }

    /// Makes a node of the entries from `first_entry`, and removes these entries.
    /// Returns the number of unused places: `places` less the places in leaves below
    /// the node.
    fn node(
        &mut self,
        node_index: u32,
        first_entry: usize,
        places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let entries = &self.entries[first_entry..];
        let rules = entries.len();
        // Rules after a rule that covers the box cannot win here.
        let covering = entries.iter().position(|entry| entry.open == 0);
        let compared = covering.map_or(rules, |at| at + 1);
        if compared > self.settings.binth && depth < MAX_DEPTH {
            if rules > self.settings.change
                && let Some((number, bits)) = self.field_to_cut(first_entry)
            {
                return self.cut(
                    node_index,
                    first_entry,
                    (number, bits),
                    places,
                    depth,
                    monitor,
                );
            }
            let compared = &self.entries[first_entry..first_entry + compared];
            let cut = self
                .chooser
                .choose(self.grid, compared, &self.sides, monitor)?;
            if let Some(cut) = cut {
                let cut = self.with_one_test(cut);
                self.clip(first_entry, cut, monitor)?;
                let sizes = [0, 1].map(|part| self.parts[part].len());
                let helps = sizes[0] < rules || sizes[1] < rules;
                if helps && sizes[0] + sizes[1] <= places {
                    return self.split(node_index, first_entry, cut, places, depth, monitor);
                }
            }
        }
        self.leaf(node_index, first_entry, monitor)?;
        Ok(places.saturating_sub(rules))
    }

    fn leaf(
        &mut self,
        node_index: u32,
        first_entry: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let leaf = Leaf {
            first: u32::try_from(self.draft.lists.len()).expect("places are bounded"),
            len: u32::try_from(self.entries.len() - first_entry).expect("rules are bounded"),
        };
        for chunk in self.entries[first_entry..].chunks(Monitor::BLOCK) {
            for entry in chunk {
                monitor.memory().room(&mut self.draft.lists)?;
                self.draft.lists.push(entry.place);
            }
            monitor.advance(chunk.len())?;
        }
        monitor.work(1)?;
        self.draft.nodes[node_index as usize] = super::node::Node::leaf(node_index, leaf);
        self.entries.truncate(first_entry);
        Ok(())
    }

    /// Returns the selected field and the number of bits that separate the rules of a
    /// node best, or `None` if no cut separates them.
    fn field_to_cut(&mut self, first_entry: usize) -> Option<(usize, u32)> {
        let entries = &self.entries[first_entry..];
        let step = entries.len().div_ceil(SAMPLE_RULES);
        let sampled = entries.len().div_ceil(step) as u64;
        let max_bits = MAX_CUT_BITS.min(entries.len().ilog2());
        let mut best: Option<(u64, usize, u32)> = None;
        for (number, (selected, block)) in self.cuts.iter().zip(&self.blocks).enumerate() {
            let &Some((first, free)) = block else {
                continue;
            };
            let within = self.fields.bits_at_once(selected.field, free);
            let bits = free.saturating_sub(selected.bits).min(within).min(max_bits);
            if bits == 0 {
                continue;
            }
            let child_bits = free - bits;
            self.counts.clear();
            self.counts.resize(1 << bits, 0);
            for entry in entries.iter().step_by(step) {
                let span = self.grid.span(entry.place, selected.field);
                let low = self.grid.starts(selected.field)[span.first as usize].max(first);
                self.counts[child_of(low - first, child_bits)] += 1;
            }
            let squares = self.counts.iter().map(|&count| u64::from(count).pow(2));
            let squares = squares.sum();
            if best.is_none_or(|(least_squares, _, _)| squares < least_squares) {
                best = Some((squares, number, bits));
            }
        }
        let (squares, number, bits) = best?;
        let parts = 4 * squares <= 3 * sampled * sampled;
        (parts || entries.len() >= ALWAYS_CUT_RULES).then_some((number, bits))
    }

    /// Makes a node that cuts a field into blocks of equal size, and its children.
    fn cut(
        &mut self,
        node_index: u32,
        first_entry: usize,
        (number, bits): (usize, u32),
        places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let field = self.cuts[number].field;
        let block = self.blocks[number];
        let (first, free) = block.expect("it was cut because it is a block");
        let child_bits = free - bits;
        let child = self.draft.alloc(bits, monitor)?;
        self.draft.nodes[node_index as usize] =
            self.fields.cut(field, free, bits).with_children(child);
        let last = first | low_ones(free);
        let side_of = |grid: &Grid, child: usize| {
            let low = first | (child as u128) << child_bits;
            side(grid, field, (low, low | low_ones(child_bits)))
        };
        // Each rule is in few children, so rules are listed with their children.
        self.by_child.clear();
        let (mut last_child, mut last_side) = (usize::MAX, self.sides[field]);
        for number in first_entry..self.entries.len() {
            let entry = self.entries[number];
            let span = self.grid.span(entry.place, field);
            let starts = self.grid.starts(field);
            let low = starts[span.first as usize].max(first);
            let high = starts
                .get(span.end as usize)
                .map_or(last, |&next| (next - 1).min(last));
            for child in child_of(low - first, child_bits)..=child_of(high - first, child_bits) {
                if child != last_child {
                    (last_child, last_side) = (child, side_of(self.grid, child));
                }
                if let Some(entry) = self.grid.clip(entry, field, last_side) {
                    let child = u32::try_from(child).expect("at most 256 children");
                    push(monitor.memory(), &mut self.by_child, (child, entry))?;
                }
            }
            if number % Monitor::BLOCK == 0 {
                monitor.work(Monitor::BLOCK / CLIPS_PER_STEP)?;
            }
        }
        self.clips += self.by_child.len();
        let total_entries = self.by_child.len();
        // Orders the rules by child, the rules of the first child last.
        self.counts.clear();
        self.counts.resize((1 << bits) + 1, 0);
        for (child, _) in &self.by_child {
            self.counts[*child as usize] += 1;
        }
        self.entries.truncate(first_entry);
        for _ in 0..total_entries {
            push(monitor.memory(), &mut self.entries, Entry::default())?;
        }
        let counts: [u32; 1 << MAX_CUT_BITS] =
            std::array::from_fn(|child| self.counts.get(child).copied().unwrap_or(0));
        let mut next_end = first_entry + total_entries;
        for count in self.counts.iter_mut().take(1 << bits) {
            next_end -= *count as usize;
            *count = u32::try_from(next_end - first_entry).expect("places are bounded");
        }
        for &(child, entry) in &self.by_child {
            let offset = &mut self.counts[child as usize];
            self.entries[first_entry + *offset as usize] = entry;
            *offset += 1;
        }
        monitor.work(total_entries / CLIPS_PER_STEP)?;
        let whole_side = self.sides[field];
        let (mut spare, mut entries_left) = (0, total_entries);
        let mut places_left = places;
        for (number_of_child, &count) in counts[..1 << bits].iter().enumerate() {
            let index = child + u32::try_from(number_of_child).expect("at most 256 children");
            let count = count as usize;
            if count == 0 {
                self.draft.nodes[index as usize] = super::node::Node::leaf(index, Leaf::default());
                continue;
            }
            let share = share(places_left, count, entries_left);
            entries_left -= count;
            places_left -= share;
            self.blocks[number] =
                Some((first | (number_of_child as u128) << child_bits, child_bits));
            self.sides[field] = side_of(self.grid, number_of_child);
            let first_child_entry = self.entries.len() - count;
            spare = self.node(index, first_child_entry, share + spare, depth + 1, monitor)?;
        }
        self.blocks[number] = block;
        self.sides[field] = whole_side;
        Ok(spare)
    }

    /// Makes a node that splits its box in two, and its children.
    fn split(
        &mut self,
        node_index: u32,
        first_entry: usize,
        cut: Cut,
        places: usize,
        depth: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let value = self.grid.starts(cut.field)[cut.at as usize];
        let child = self.draft.alloc(1, monitor)?;
        self.draft.nodes[node_index as usize] =
            self.fields.split(cut.field, value).with_children(child);
        self.entries.truncate(first_entry);
        let sizes = [0, 1].map(|part| self.parts[part].len());
        for part in [1, 0] {
            extend(monitor.memory(), &mut self.entries, &self.parts[part])?;
        }
        let whole = self.sides[cut.field];
        // The two parts may not be aligned blocks, so the field is not cut below.
        let number = self
            .cuts
            .iter()
            .position(|selected| selected.field == cut.field);
        let block = number.and_then(|number| self.blocks[number].take());
        let of_first = share(places, sizes[0], sizes[0] + sizes[1]);
        self.sides[cut.field].end = cut.at;
        let middle = first_entry + sizes[1];
        let spare = self.node(child, middle, of_first, depth + 1, monitor)?;
        self.sides[cut.field] = Span {
            first: cut.at,
            end: whole.end,
        };
        let of_second = places - of_first + spare;
        let spare = self.node(child + 1, first_entry, of_second, depth + 1, monitor)?;
        self.sides[cut.field] = whole;
        if let Some(number) = number {
            self.blocks[number] = block;
        }
        Ok(spare)
    }

    /// Makes the lists of rules for the two parts of a split.
    fn clip(
        &mut self,
        first_entry: usize,
        cut: Cut,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
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
            for chunk in self.entries[first_entry..].chunks(Monitor::BLOCK) {
                for &entry in chunk {
                    if let Some(entry) = self.grid.clip(entry, cut.field, side) {
                        push(monitor.memory(), list, entry)?;
                    }
                }
                monitor.work(1 + chunk.len() / CLIPS_PER_STEP)?;
            }
        }
        self.clips += 2 * (self.entries.len() - first_entry);
        Ok(())
    }

    /// Returns the cut, or a nearby cut that one node can test. A node compares at
    /// most 64 bits. So a wide field is cut by its upper bits, unless these are equal
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
}

/// Returns the elementary intervals of a field that overlap an interval of values.
fn side(grid: &Grid, field: usize, (low, high): Ends) -> Span {
    let starts = grid.starts(field);
    let upto = |value: u128| starts.partition_point(|&start| start <= value);
    let interval = |number: usize| u32::try_from(number).expect("an interval");
    Span {
        first: interval(upto(low) - 1),
        end: interval(upto(high)),
    }
}

/// Returns the child for a value, given as its offset from the block's first value.
fn child_of(offset: u128, below: u32) -> usize {
    usize::try_from(offset >> below).expect("at most 256 children")
}

/// Returns the share of `total` for `part` of `whole`.
fn share(total: usize, part: usize, whole: usize) -> usize {
    let share = total as u128 * part as u128 / (whole.max(1)) as u128;
    usize::try_from(share).expect("a part of all")
}
