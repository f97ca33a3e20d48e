//! The plan: a mask for each value of the few bits that rules look at.

use std::collections::BinaryHeap;

use crate::header_space::Term;

/// The most bits of which all values are planned: those of a port.
const MOST_BITS: usize = 16;

/// Random masks of each number of bits from the best of which a search begins, and
/// searches for each mask. With one search instead of four 1 % to 5 % more flows come out
/// at 100 to 10,000 random ports.
const STARTS: usize = 2;
const SEARCHES: usize = 4;

/// The bits that rules look at, as the bits of a number.
#[derive(Clone, Debug)]
pub(super) struct Universe<const W: usize> {
    /// Word and bit of each, the lowest first.
    bits: Vec<(usize, u32)>,
}

impl<const W: usize> Universe<W> {
    /// Of bits that are few enough.
    pub(super) fn of(looked_at: &[u64; W]) -> Option<Universe<W>> {
        let all = (0..W).flat_map(|word| (0..u64::BITS).map(move |bit| (word, bit)));
        let bits: Vec<_> = all
            .filter(|&(word, bit)| looked_at[word] >> bit & 1 == 1)
            .take(MOST_BITS + 1)
            .collect();
        (bits.len() <= MOST_BITS).then_some(Universe { bits })
    }

    /// A header's point.
    #[inline]
    pub(super) fn compress(&self, header: &[u64; W]) -> u32 {
        let bits = self.bits.iter().zip(0..);
        bits.fold(0, |point, (&(word, bit), place)| {
            point | u32::from(header[word] >> bit & 1 == 1) << place
        })
    }

    /// The bits of a header that a mask over points has.
    #[inline]
    pub(super) fn expand(&self, mask: u32) -> [u64; W] {
        let mut words = [0; W];
        for (place, &(word, bit)) in self.bits.iter().enumerate() {
            words[word] |= u64::from(mask >> place & 1) << bit;
        }
        words
    }

    /// How many points there are.
    fn len(&self) -> usize {
        1 << self.bits.len()
    }

    /// Which points some rule matches.
    fn matched(&self, rules: &[Term<W>]) -> Vec<bool> {
        let mut matched = vec![false; self.len()];
        let all = self.compress(&[u64::MAX; W]);
        for rule in rules {
            let free = all & !self.compress(rule.mask());
            let value = self.compress(rule.value());
            for_each_part(free, |part| matched[at(value | part)] = true);
        }
        matched
    }
}

/// A point or cell as an index.
#[inline]
fn at(point: u32) -> usize {
    point as usize
}

/// Calls a function with each set of bits that `bits` has.
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

/// The mask of each point, or that there is none.
const NONE: u8 = u8::MAX;

/// A mask for each point that no rule matches.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    masks: Vec<u32>,
    /// By point: which of the masks.
    choices: Vec<u8>,
    flows: usize,
}

impl Plan {
    /// Plans at most `most` masks besides the one of all bits.
    pub(super) fn new<const W: usize>(
        universe: &Universe<W>,
        rules: &[Term<W>],
        most: usize,
        exchanges: usize,
    ) -> Plan {
        let matched = universe.matched(rules);
        let mut planner = Planner::new(universe.bits.len(), &matched);
        // The number after the last is that of the mask of all bits.
        let most = most.min(usize::from(NONE) - 1);
        let mut masks = planner.spread(most, rules.len());
        let mut cover = planner.cover(&masks);
        planner.exchange(&mut masks, &mut cover, most, exchanges);
        // Exact flows are of the mask of all bits; matched points have no choice here.
        let mut choices = cover.choices;
        let all = planner.all();
        if cover.exact > 0 {
            let exact = u8::try_from(masks.len()).expect("fewer than 255 masks");
            for &point in &planner.free {
                let choice = &mut choices[at(point)];
                if *choice == NONE {
                    *choice = exact;
                }
            }
        }
        masks.push(all);
        Plan {
            masks,
            choices,
            flows: cover.cells + cover.exact,
        }
    }

    /// The masks, without the one of all bits.
    pub(super) fn masks(&self) -> &[u32] {
        &self.masks[..self.masks.len() - 1]
    }

    /// The mask of a point; `None` if some rule matches it.
    #[inline]
    pub(super) fn mask(&self, point: u32) -> Option<u32> {
        match self.choices[at(point)] {
            NONE => None,
            choice => Some(self.masks[usize::from(choice)]),
        }
    }

    /// Flows that hold all points that no rule matches.
    pub(super) fn flows(&self) -> usize {
        self.flows
    }
}

/// Free cells that hold all points, except those that are left to exact flows.
struct Cover {
    /// By point.
    choices: Vec<u8>,
    cells: usize,
    exact: usize,
    /// By mask: how many flows its cells spare, against exact ones.
    spared: Vec<u32>,
    /// By point: its share of the flow that it is in.
    prices: Vec<f32>,
}

impl Cover {
    fn flows(&self) -> usize {
        self.cells + self.exact
    }
}

/// Working memory of a search for masks.
struct Planner {
    bits: usize,
    /// Points that a rule matches, and the others.
    matched: Vec<u32>,
    free: Vec<u32>,
    /// By cell: when it was last seen to have a matched point, and a free one.
    taken: Vec<u32>,
    seen: Vec<u32>,
    now: u32,
    /// By cell: the sum of its prices.
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

    /// The mask of all bits.
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

    /// Step 1: masks whose free cells hold many points each.
    fn spread(&mut self, most: usize, rules: usize) -> Vec<u32> {
        let mut left = self.free.clone();
        let mut masks = Vec::new();
        // As many points as there are for each rule, at first; a cell that holds one
        // point is no better than an exact flow, in the end.
        #[allow(clippy::cast_precision_loss)] // at most 2^16, and far fewer than 2^52
        let (first, steps) = (
            (left.len() as f64 / rules.max(1) as f64).max(1.0),
            most.saturating_sub(1).max(1) as f64,
        );
        for step in (0..most).map(|step| f64::from(u32::try_from(step).unwrap_or(0))) {
            if left.is_empty() {
                break;
            }
            let price = first.powf(1.0 - step / steps);
            let mut best: (f64, u32) = (0.0, 0);
            for _ in 0..SEARCHES {
                let found = self.climb(|planner, mask| planner.gain(mask, &left, price));
                if found.0 > best.0 {
                    best = found;
                }
            }
            if best.0 > 0.0 {
                let mask = best.1;
                self.take(mask);
                let (taken, now) = (&self.taken, self.now);
                left.retain(|&point| taken[at(point & mask)] == now);
                masks.push(mask);
            }
        }
        masks
    }

    /// Points that are left and that free cells of a mask would hold, less a price for
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

    /// The best mask that is found from the best of some random ones: a bit more or less,
    /// or one for another, as long as the score rises.
    fn climb(&mut self, mut score: impl FnMut(&mut Planner, u32) -> f64) -> (f64, u32) {
        let mut best = (f64::NEG_INFINITY, 0);
        for count in 1..=self.bits {
            for _ in 0..STARTS {
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

    /// Step 2: the cell with the most points that are left, again and again.
    fn cover(&mut self, masks: &[u32]) -> Cover {
        let size = self.sums.len();
        // By mask and cell, points that are left; 0 where a cell is not free.
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
        // By point: how many of the chosen cells hold it, at most one of each mask.
        let mut held = vec![0u8; size];
        while let Some((count, number, cell)) = heap.pop() {
            let left = counts[number][at(cell)];
            if left < count {
                // Other cells took some of its points since.
                if left > 0 {
                    heap.push((left, number, cell));
                }
                continue;
            }
            chosen.push((number, cell));
            for_each_part(self.all() & !masks[number], |part| {
                let point = cell | part;
                if held[at(point)] == 0 {
                    for (counts, mask) in counts.iter_mut().zip(masks) {
                        let left = &mut counts[at(point & mask)];
                        *left = left.saturating_sub(1);
                    }
                }
                held[at(point)] += 1;
            });
        }
        self.without_spare(masks, &mut chosen, &mut held);
        self.priced(masks, &chosen)
    }

    /// Drops cells all of whose points other chosen cells hold, those with the fewest
    /// points first: the last ones are chosen for a point of their own, the earlier ones
    /// may be needless since.
    fn without_spare(&self, masks: &[u32], chosen: &mut Vec<(usize, u32)>, held: &mut [u8]) {
        let mut spare = vec![false; chosen.len()];
        for (place, &(number, cell)) in chosen.iter().enumerate().rev() {
            let open = self.all() & !masks[number];
            let mut least = u8::MAX;
            for_each_part(open, |part| least = least.min(held[at(cell | part)]));
            if least > 1 {
                spare[place] = true;
                for_each_part(open, |part| held[at(cell | part)] -= 1);
            }
        }
        let mut spare = spare.into_iter();
        chosen.retain(|_| spare.next() == Some(false));
    }

    /// Gives every point to the first chosen cell that holds it.
    fn priced(&self, masks: &[u32], chosen: &[(usize, u32)]) -> Cover {
        let size = self.sums.len();
        let mut cover = Cover {
            choices: vec![NONE; size],
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
                if cover.choices[point] == NONE {
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

    /// Step 3: masks that spare few flows give their places to others, as long as flows
    /// become fewer.
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

    /// Flows that a mask would spare: of each free cell the prices of its points, less
    /// the flow that it is itself, where that is more than nothing.
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

/// Random numbers: the same for the same rules.
struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A mask of so many bits among the lowest `all`.
    fn bits(&mut self, count: usize, all: usize) -> u32 {
        let mut mask = 0u32;
        while (mask.count_ones() as usize) < count {
            mask |= 1 << (self.next() % all as u64);
        }
        mask
    }
}
