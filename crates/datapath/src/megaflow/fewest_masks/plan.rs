//! The plan: a mask for each value of the few bits in the rules' masks.

use std::collections::BinaryHeap;

use crate::header_space::Term;
use classyard::author::splitmix;

/// The maximum number of bits whose values are all planned: the bits of a port.
const MOST_BITS: usize = 16;

/// Each search starts from the best of [`STARTS_PER_WEIGHT`] random masks for each number
/// of bits. There are [`SEARCHES_PER_MASK`] searches for each mask; with one instead of
/// four there are 1 % to 5 % more flows at 100 to 10,000 random ports.
const STARTS_PER_WEIGHT: usize = 2;
const SEARCHES_PER_MASK: usize = 4;

/// A mask for each header that no rule matches, planned in advance.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoints<const W: usize> {
    universe: Universe<W>,
    plan: Plan,
}

impl<const W: usize> PlannedPoints<W> {
    /// Plans at most `most` masks for rules whose mask bits are `looked_at`, not counting the
    /// mask of all these bits, and tries a number of exchanges. Returns `None` if there are
    /// more than 16 bits.
    pub(crate) fn new(
        looked_at: &[u64; W],
        rules: &[Term<W>],
        most: usize,
        exchanges: usize,
    ) -> Option<PlannedPoints<W>> {
        let universe = Universe::of(looked_at)?;
        let plan = Plan::new(&universe, rules, most, exchanges);
        Some(PlannedPoints { universe, plan })
    }

    /// Returns the planned mask of a header, or `None` if some rule matches it.
    #[inline]
    pub(crate) fn mask(&self, header: &[u64; W]) -> Option<[u64; W]> {
        let mask = self.plan.mask(self.universe.compress(header))?;
        Some(self.universe.expand(mask))
    }

    /// Iterates over the masks without the mask of all bits.
    pub(super) fn masks(&self) -> impl Iterator<Item = [u64; W]> {
        let masks = self.plan.masks().iter();
        masks.map(|&mask| self.universe.expand(mask))
    }

    /// Returns the number of flows that cover all headers that no rule matches.
    pub(super) fn flows(&self) -> usize {
        self.plan.flows
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        4 * self.plan.masks.len() + self.plan.choices.len()
    }
}

/// The rules' mask bits, packed as the bits of a number.
#[derive(Clone, Debug)]
struct Universe<const W: usize> {
    /// Word and bit of each bit, the lowest first.
    bits: Vec<(usize, u32)>,
}

impl<const W: usize> Universe<W> {
    /// Returns the universe of some bits, or `None` above [`MOST_BITS`].
    fn of(looked_at: &[u64; W]) -> Option<Universe<W>> {
        let word_bits = (0..W).flat_map(|word| (0..u64::BITS).map(move |bit| (word, bit)));
        let bits: Vec<_> = word_bits
            .filter(|&(word, bit)| looked_at[word] >> bit & 1 == 1)
            .take(MOST_BITS + 1)
            .collect();
        (bits.len() <= MOST_BITS).then_some(Universe { bits })
    }

    /// Returns a header's point.
    #[inline]
    fn compress(&self, header: &[u64; W]) -> u32 {
        let bits = self.bits.iter().zip(0..);
        bits.fold(0, |point, (&(word, bit), place)| {
            point | u32::from(header[word] >> bit & 1 == 1) << place
        })
    }

    /// Returns the bits of a header that correspond to a mask over points.
    #[inline]
    fn expand(&self, mask: u32) -> [u64; W] {
        let mut words = [0; W];
        for (place, &(word, bit)) in self.bits.iter().enumerate() {
            words[word] |= u64::from(mask >> place & 1) << bit;
        }
        words
    }

    /// Returns the number of points.
    fn len(&self) -> usize {
        1 << self.bits.len()
    }

    /// Returns for each point whether some rule matches it.
    fn matched(&self, rules: &[Term<W>]) -> Vec<bool> {
        let mut matched = vec![false; self.len()];
        let mask = self.compress(&[u64::MAX; W]);
        for rule in rules {
            let free = mask & !self.compress(rule.mask());
            let value = self.compress(rule.value());
            for_each_part(free, |part| matched[at(value | part)] = true);
        }
        matched
    }
}

/// Converts a point or cell to an index.
#[inline]
fn at(point: u32) -> usize {
    point as usize
}

/// Calls a function with each subset of `bits`.
fn for_each_part(bits: u32, mut call: impl FnMut(u32)) {
    let mut part = 0u32;
    loop {
        call(part);
        part = part.wrapping_sub(bits) & bits;
        if part == 0 {
            break;
        }
    }
}

/// Stands for the mask of a point without one.
const NO_MASK: u8 = u8::MAX;

/// A mask for each point that no rule matches.
#[derive(Clone, Debug)]
struct Plan {
    masks: Vec<u32>,
    /// The index of the mask, by point.
    choices: Vec<u8>,
    flows: usize,
}

impl Plan {
    /// Plans at most `most` masks, not counting the mask of all bits.
    fn new<const W: usize>(
        universe: &Universe<W>,
        rules: &[Term<W>],
        most: usize,
        exchanges: usize,
    ) -> Plan {
        let matched = universe.matched(rules);
        let mut planner = Planner::new(universe.bits.len(), &matched);
        // The index after the last mask is used for the mask of all bits.
        let max_masks = most.min(usize::from(NO_MASK) - 1);
        let mut masks = planner.spread(max_masks, rules.len());
        let mut cover = planner.cover(&masks);
        planner.exchange(&mut masks, &mut cover, max_masks, exchanges);
        // Exact flows use the mask of all bits; matched points have no mask here.
        let mut choices = cover.choices;
        let mask_of_all = planner.all();
        if cover.exact > 0 {
            let exact = u8::try_from(masks.len()).expect("fewer than 255 masks");
            for &point in &planner.free {
                let choice = &mut choices[at(point)];
                if *choice == NO_MASK {
                    *choice = exact;
                }
            }
        }
        masks.push(mask_of_all);
        Plan {
            masks,
            choices,
            flows: cover.cells + cover.exact,
        }
    }

    /// Returns the masks without the mask of all bits.
    fn masks(&self) -> &[u32] {
        &self.masks[..self.masks.len() - 1]
    }

    /// Returns the mask of a point, or `None` if some rule matches it.
    #[inline]
    fn mask(&self, point: u32) -> Option<u32> {
        match self.choices[at(point)] {
            NO_MASK => None,
            choice => Some(self.masks[usize::from(choice)]),
        }
    }
}

/// Free cells that hold all free points, except the points with exact flows.
struct Cover {
    /// The index of the mask, by point.
    choices: Vec<u8>,
    cells: usize,
    exact: usize,
    /// The number of flows that the cells of a mask save compared with exact flows, by
    /// mask.
    spared: Vec<u32>,
    /// The point's share of its flow, by point.
    prices: Vec<f32>,
}

impl Cover {
    fn flows(&self) -> usize {
        self.cells + self.exact
    }
}

/// State of a search for masks.
struct Planner {
    bits: usize,
    /// Points that a rule matches, and points that no rule matches.
    matched: Vec<u32>,
    free: Vec<u32>,
    /// By cell, the value of `now` when it last had a matched point, and when it last had
    /// a free point.
    taken: Vec<u32>,
    seen: Vec<u32>,
    now: u32,
    /// The sum of prices, by cell.
    sums: Vec<f32>,
    random: Random,
}

impl Planner {
    fn new(bits: usize, matched: &[bool]) -> Planner {
        let points = 0..u32::try_from(matched.len()).expect("at most 2^16 points");
        let (taken, free) = points.partition(|&point| matched[at(point)]);
        Planner {
            bits,
            matched: taken,
            free,
            taken: vec![0; matched.len()],
            seen: vec![0; matched.len()],
            now: 0,
            sums: vec![0.0; matched.len()],
            random: Random(1),
        }
    }

    /// Returns the mask of all bits.
    fn all(&self) -> u32 {
        (1 << self.bits) - 1
    }

    /// Marks the cells of a mask that have a matched point.
    fn take(&mut self, mask: u32) {
        self.now += 1;
        for &point in &self.matched {
            self.taken[at(point & mask)] = self.now;
        }
    }

    /// Step 1: chooses masks whose free cells hold many points each.
    fn spread(&mut self, most: usize, rules: usize) -> Vec<u32> {
        let mut remaining = self.free.clone();
        let mut masks = Vec::new();
        // The price of a cell starts at the number of points per rule. It ends at 1,
        // since an exact flow is as good as a cell with one point.
        #[allow(clippy::cast_precision_loss)] // at most 2^16, and far fewer than 2^52
        let (first, steps) = (
            (remaining.len() as f64 / rules.max(1) as f64).max(1.0),
            most.saturating_sub(1).max(1) as f64,
        );
        for step in (0..most).map(|step| f64::from(u32::try_from(step).unwrap_or(0))) {
            if remaining.is_empty() {
                break;
            }
            let price = first.powf(1.0 - step / steps);
            let mut best: (f64, u32) = (0.0, 0);
            for _ in 0..SEARCHES_PER_MASK {
                let candidate = self.climb(|planner, mask| planner.gain(mask, &remaining, price));
                if candidate.0 > best.0 {
                    best = candidate;
                }
            }
            if best.0 > 0.0 {
                let mask = best.1;
                self.take(mask);
                let (taken, now) = (&self.taken, self.now);
                remaining.retain(|&point| taken[at(point & mask)] == now);
                masks.push(mask);
            }
        }
        masks
    }

    /// Returns the number of `left` points in free cells of a mask, minus a price for
    /// each of these cells.
    fn gain(&mut self, mask: u32, left: &[u32], price: f64) -> f64 {
        self.take(mask);
        let (mut points, mut cells) = (0u32, 0u32);
        for &point in left {
            let cell = at(point & mask);
            if self.taken[cell] != self.now {
                points += 1;
                if self.seen[cell] != self.now {
                    self.seen[cell] = self.now;
                    cells += 1;
                }
            }
        }
        match cells {
            0 => f64::NEG_INFINITY,
            _ => f64::from(points) - price * f64::from(cells),
        }
    }

    /// Returns the best mask found by hill climbing. It starts from the best of some
    /// random masks, and adds, removes or exchanges a bit while the score rises.
    fn climb(&mut self, mut score: impl FnMut(&mut Planner, u32) -> f64) -> (f64, u32) {
        let mut best = (f64::NEG_INFINITY, 0);
        for count in 1..=self.bits {
            for _ in 0..STARTS_PER_WEIGHT {
                let mask = self.random.bits(count, self.bits);
                let score = score(self, mask);
                if score > best.0 {
                    best = (score, mask);
                }
            }
        }
        loop {
            let before = best;
            for one in (0..self.bits).map(|bit| 1u32 << bit) {
                let mut attempt = |planner: &mut Planner, mask: u32| {
                    let score = score(planner, mask);
                    if score > best.0 {
                        best = (score, mask);
                    }
                };
                attempt(self, before.1 ^ one);
                if before.1 & one != 0 {
                    for other in (0..self.bits).map(|bit| 1u32 << bit) {
                        if before.1 & other == 0 {
                            attempt(self, before.1 ^ one ^ other);
                        }
                    }
                }
            }
            if best.1 == before.1 {
                return best;
            }
        }
    }

    /// Step 2: repeatedly chooses the free cell with the most points not yet held.
    fn cover(&mut self, masks: &[u32]) -> Cover {
        let size = self.sums.len();
        // Points not yet held, by mask and cell; 0 if the cell is not free.
        let mut counts: Vec<Vec<u32>> = Vec::new();
        let mut heap = BinaryHeap::new();
        for (number, &mask) in masks.iter().enumerate() {
            let mut cells = vec![0u32; size];
            for &point in &self.free {
                cells[at(point & mask)] += 1;
            }
            for &point in &self.matched {
                cells[at(point & mask)] = 0;
            }
            for_each_part(mask, |cell| {
                if cells[at(cell)] > 0 {
                    heap.push((cells[at(cell)], number, cell));
                }
            });
            counts.push(cells);
        }
        let mut chosen: Vec<(usize, u32)> = Vec::new();
        // The number of chosen cells that hold the point, by point; at most one per mask.
        let mut held = vec![0u8; size];
        while let Some((count, number, cell)) = heap.pop() {
            let remaining = counts[number][at(cell)];
            if remaining < count {
                // Some of its points are now held by cells chosen since.
                if remaining > 0 {
                    heap.push((remaining, number, cell));
                }
                continue;
            }
            chosen.push((number, cell));
            for_each_part(self.all() & !masks[number], |part| {
                let point = cell | part;
                if held[at(point)] == 0 {
                    for (counts, mask) in counts.iter_mut().zip(masks) {
                        let remaining = &mut counts[at(point & mask)];
                        *remaining = remaining.saturating_sub(1);
                    }
                }
                held[at(point)] += 1;
            });
        }
        self.without_spare(masks, &mut chosen, &mut held);
        self.priced(masks, &chosen)
    }

    /// Drops cells whose points are all held by other chosen cells, starting with the
    /// smallest cells. When a cell was chosen it held a point of its own, but later cells
    /// may hold that point too.
    fn without_spare(&self, masks: &[u32], chosen: &mut Vec<(usize, u32)>, held: &mut [u8]) {
        let mut spare = vec![false; chosen.len()];
        for (place, &(number, cell)) in chosen.iter().enumerate().rev() {
            let open = self.all() & !masks[number];
            let mut min_cells = u8::MAX;
            for_each_part(open, |part| {
                min_cells = min_cells.min(held[at(cell | part)]);
            });
            if min_cells > 1 {
                spare[place] = true;
                for_each_part(open, |part| held[at(cell | part)] -= 1);
            }
        }
        let mut spare = spare.into_iter();
        chosen.retain(|_| spare.next() == Some(false));
    }

    /// Assigns every point to the first chosen cell that holds it.
    fn priced(&self, masks: &[u32], chosen: &[(usize, u32)]) -> Cover {
        let size = self.sums.len();
        let mut cover = Cover {
            choices: vec![NO_MASK; size],
            cells: chosen.len(),
            exact: self.free.len(),
            spared: vec![0; masks.len()],
            prices: vec![1.0; size],
        };
        let mut points = Vec::new();
        for &(number, cell) in chosen {
            points.clear();
            for_each_part(self.all() & !masks[number], |part| {
                let point = at(cell | part);
                if cover.choices[point] == NO_MASK {
                    points.push(point);
                }
            });
            let choice = u8::try_from(number).expect("fewer than 255 masks");
            #[allow(clippy::cast_precision_loss)] // at most 2^16
            let price = 1.0 / points.len().max(1) as f32;
            for &point in &points {
                cover.choices[point] = choice;
                cover.prices[point] = price;
            }
            cover.exact -= points.len();
            cover.spared[number] += u32::try_from(points.len()).unwrap_or(0).saturating_sub(1);
        }
        cover
    }

    /// Step 3: replaces masks that save few flows, and keeps a change if the number of
    /// flows falls.
    fn exchange(&mut self, masks: &mut Vec<u32>, cover: &mut Cover, most: usize, exchanges: usize) {
        let mut refused = 0;
        for _ in 0..exchanges {
            if masks.is_empty() || cover.cells == 0 {
                return;
            }
            let mut attempt = masks.clone();
            let mut prices = std::mem::take(&mut cover.prices);
            if masks.len() >= most {
                let mut order: Vec<usize> = (0..masks.len()).collect();
                order.sort_by_key(|&number| cover.spared[number]);
                attempt.remove(order[refused % order.len()]);
                prices = self.cover(&attempt).prices;
            }
            let (_, mask) = self.climb(|planner, mask| match attempt.contains(&mask) {
                true => f64::NEG_INFINITY,
                false => planner.value(mask, &prices),
            });
            attempt.push(mask);
            let new = self.cover(&attempt);
            if new.flows() < cover.flows() {
                (*masks, *cover) = (attempt, new);
                refused = 0;
            } else {
                cover.prices = prices;
                refused += 1;
            }
        }
    }

    /// Returns the number of flows that a mask would save: for each free cell the sum of
    /// its points' prices minus 1, if positive.
    fn value(&mut self, mask: u32, prices: &[f32]) -> f64 {
        self.take(mask);
        for &point in &self.free {
            let cell = at(point & mask);
            if self.taken[cell] != self.now {
                self.sums[cell] += prices[at(point)];
            }
        }
        let mut value = 0.0;
        let sums = &mut self.sums;
        for_each_part(mask, |cell| {
            let sum = std::mem::take(&mut sums[at(cell)]);
            value += f64::from(sum - 1.0).max(0.0);
        });
        value
    }
}

/// Random numbers, the same for the same rules.
struct Random(u64);

impl Random {
    /// Returns the next number of SplitMix64.
    fn next(&mut self) -> u64 {
        splitmix(&mut self.0)
    }

    /// Returns a mask of `count` bits among the lowest `all`.
    fn bits(&mut self, count: usize, all: usize) -> u32 {
        let mut mask = 0u32;
        while (mask.count_ones() as usize) < count {
            mask |= 1 << (self.next() % all as u64);
        }
        mask
    }
}
