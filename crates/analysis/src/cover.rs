//! Is a box covered by other boxes?
//!
//! # Idea
//! Subtract from the box the candidate that shares most of it. What remains are at most two
//! pieces for each axis, below and above the candidate. Each piece is examined in the same
//! way, with the candidates that overlap it. A piece that no candidate overlaps is not
//! covered: any header of it is a witness.
//!
//! ```text
//! examine(piece, candidates):
//!     no candidate            → not covered, with a witness
//!     one contains the piece  → covered
//!     otherwise               → examine(every piece of piece − largest candidate)
//! ```
//!
//! # Cost
//! One candidate compared with one piece is a *step*. The problem is NP-hard in the number
//! of axes, so a search stops at a limit of steps, and the answer is then unknown. Pieces
//! and candidate lists are on stacks of bounded size.

use std::ops::Range;

use crate::boxes::{Boxes, covers, intersect, overlap, shared_ranks};

/// The maximum number of candidates in the lists of all waiting pieces.
const MAX_LISTED_CANDIDATES: usize = 1 << 22;

/// The answer of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// A piece of the box that no candidate overlaps.
    Uncovered(Box<[u32]>),
    /// The candidates that cover the box together, ascending. Some may not be needed.
    Covered(Vec<u32>),
    /// The search reached its limit.
    Unknown,
}

/// A limit on the work of several searches: the number of steps that are left.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u64,
}

impl Steps {
    /// Returns a limit of `left` steps.
    pub(crate) fn new(left: u64) -> Steps {
        Steps { left }
    }

    /// Takes at most `max` steps out, as a limit of their own.
    pub(crate) fn portion(&mut self, max: u64) -> Steps {
        let portion = max.min(self.left);
        self.left -= portion;
        Steps::new(portion)
    }

    /// Adds the steps that are left of a portion.
    pub(crate) fn give_back(&mut self, portion: &Steps) {
        self.left += portion.left;
    }

    /// Subtracts steps; false if fewer are left.
    pub(crate) fn take(&mut self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let enough = steps <= self.left;
        self.left = self.left.saturating_sub(steps);
        enough
    }
}

/// The working memory of searches.
#[derive(Debug, Default)]
pub(crate) struct CoverSearch {
    /// Bounds of the waiting pieces, one after the other.
    bounds: Vec<u32>,
    /// Candidates of the waiting pieces, one list after the other.
    candidates: Vec<u32>,
    /// The first candidate of each waiting piece.
    list_starts: Vec<usize>,
    /// Candidates that cover examined pieces.
    blocking: Vec<u32>,
    /// The pieces of one subtraction: bounds, and the candidates of each in `listed`.
    parts: Vec<(Vec<u32>, Range<usize>)>,
    listed: Vec<u32>,
}

impl CoverSearch {
    /// Searches for a header of the box `bounds` that is in none of the candidates.
    pub(crate) fn search(
        &mut self,
        boxes: &Boxes,
        bounds: &[u32],
        candidates: &[u32],
        steps: &mut Steps,
    ) -> Cover {
        let mut uncovered = None;
        let ended = self.examine(boxes, bounds, candidates, steps, |piece| {
            uncovered = Some(piece.into());
            false
        });
        match (uncovered, ended) {
            (Some(piece), _) => Cover::Uncovered(piece),
            (None, true) => {
                self.blocking.sort_unstable();
                self.blocking.dedup();
                Cover::Covered(std::mem::take(&mut self.blocking))
            }
            (None, false) => Cover::Unknown,
        }
    }

    /// Calls `each_uncovered` with disjoint pieces that together are the part of the box
    /// `bounds` outside of all candidates, until it returns false. Returns false if the
    /// limit of steps ended the search.
    pub(crate) fn examine(
        &mut self,
        boxes: &Boxes,
        bounds: &[u32],
        candidates: &[u32],
        steps: &mut Steps,
        mut each_uncovered: impl FnMut(&[u32]) -> bool,
    ) -> bool {
        self.bounds.clear();
        self.candidates.clear();
        self.list_starts.clear();
        self.blocking.clear();
        self.push(boxes, bounds, candidates);
        let width = bounds.len();
        while let Some(list_start) = self.list_starts.pop() {
            let piece = self.bounds.split_off(self.bounds.len() - width);
            let list = self.candidates.split_off(list_start);
            if list.is_empty() {
                if !each_uncovered(&piece) {
                    return true;
                }
                continue;
            }
            if !steps.take(list.len()) || self.candidates.len() > MAX_LISTED_CANDIDATES {
                return false;
            }
            let whole = |&&number: &&u32| covers(boxes.bounds(number), &piece);
            if let Some(&number) = list.iter().find(whole) {
                self.blocking.push(number);
                continue;
            }
            let largest = largest(boxes, &piece, &list);
            self.blocking.push(largest);
            if !steps.take(width * list.len()) {
                return false;
            }
            self.subtract(boxes, piece, boxes.bounds(largest), list);
        }
        true
    }

    /// Adds a piece and the candidates that overlap it.
    fn push(&mut self, boxes: &Boxes, piece: &[u32], candidates: &[u32]) {
        self.list_starts.push(self.candidates.len());
        self.bounds.extend_from_slice(piece);
        let overlapping = candidates
            .iter()
            .filter(|&&number| overlap(boxes.bounds(number), piece));
        self.candidates.extend(overlapping);
    }

    /// Adds the pieces of `piece` outside of `cut`. The piece with the fewest candidates is
    /// examined first: it is the likeliest to have a witness. All candidates of `list` overlap
    /// `piece`, and so does `cut`.
    fn subtract(&mut self, boxes: &Boxes, mut piece: Vec<u32>, cut: &[u32], mut list: Vec<u32>) {
        self.listed.clear();
        for axis in 0..piece.len() / 2 {
            let (low, high) = (2 * axis, 2 * axis + 1);
            // All candidates of the list overlap the piece, so this axis decides which of them
            // overlap a part of it.
            if piece[low] < cut[low] {
                let below = |number: &&u32| boxes.bounds(**number)[low] < cut[low];
                let mut lower_part = piece.clone();
                lower_part[high] = cut[low] - 1;
                self.add_part(lower_part, list.iter().filter(below));
            }
            if piece[high] > cut[high] {
                let above = |number: &&u32| boxes.bounds(**number)[high] > cut[high];
                let mut upper_part = piece.clone();
                upper_part[low] = cut[high] + 1;
                self.add_part(upper_part, list.iter().filter(above));
            }
            let is_narrowed = piece[low] < cut[low] || piece[high] > cut[high];
            if is_narrowed {
                piece[low] = piece[low].max(cut[low]);
                piece[high] = piece[high].min(cut[high]);
                list.retain(|&number| {
                    let ends = &boxes.bounds(number)[low..=high];
                    ends[0] <= piece[high] && piece[low] <= ends[1]
                });
            }
        }
        self.parts
            .sort_by_key(|(_, listed)| std::cmp::Reverse(listed.len()));
        for (part, listed) in self.parts.drain(..) {
            self.list_starts.push(self.candidates.len());
            self.bounds.extend_from_slice(&part);
            self.candidates.extend_from_slice(&self.listed[listed]);
        }
    }

    /// Adds a piece of a subtraction, with the candidates that overlap it.
    fn add_part<'l>(&mut self, part: Vec<u32>, candidates: impl Iterator<Item = &'l u32>) {
        let start = self.listed.len();
        self.listed.extend(candidates);
        self.parts.push((part, start..self.listed.len()));
    }

    /// Removes from `owners` the rules that are not needed to cover the boxes `targets`, and
    /// returns true if all that remain are needed. False means that a search reached its
    /// limit. `owners` are places of rules that cover the targets together.
    pub(crate) fn reduce(
        &mut self,
        boxes: &Boxes,
        targets: &[Box<[u32]>],
        owners: &mut Vec<u32>,
        steps: &mut Steps,
    ) -> bool {
        let mut all_needed = true;
        // The worst rule first, so that the best rules stay.
        for index in (0..owners.len()).rev() {
            let other_owners = owners
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != index);
            let candidates: Vec<u32> = other_owners
                .flat_map(|(_, &owner)| boxes.of(owner))
                .collect();
            let mut covered = true;
            for target in targets {
                match self.search(boxes, target, &candidates, steps) {
                    Cover::Covered(_) => {}
                    Cover::Uncovered(_) => covered = false,
                    Cover::Unknown => {
                        all_needed = false;
                        covered = false;
                    }
                }
                if !covered {
                    break;
                }
            }
            if covered {
                owners.remove(index);
            }
        }
        all_needed
    }
}

/// Returns the candidate that shares most of the piece.
fn largest(boxes: &Boxes, piece: &[u32], list: &[u32]) -> u32 {
    let shares = list
        .iter()
        .map(|&number| (shared_ranks(piece, boxes.bounds(number)), number));
    let largest = shares.max_by(|a, b| a.0.total_cmp(&b.0));
    largest.expect("a list of candidates").1
}

/// Returns the common part of two boxes that overlap.
pub(crate) fn common(a: &[u32], b: &[u32]) -> Box<[u32]> {
    let mut bounds: Box<[u32]> = a.into();
    intersect(&mut bounds, b);
    bounds
}
