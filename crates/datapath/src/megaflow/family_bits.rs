//! The bits of megaflows for the entries of one family of a flow table.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::agreement::{AgreementTrees, WantedBits};
use super::planned::{PlannedMasks, PlannedRules};
use super::{CommonMatch, FewestMasks, Heuristic, MegaflowBits, MultiBit, Naive, PrefixTree};
use crate::bits::{Known, Words};
use crate::header_space::Term;
use crate::key::KEY_WORDS;

/// A rule with its rank.
pub(crate) type RankedTerm = (u64, Term<KEY_WORDS>);

/// Chooses the bits of megaflows by one algorithm, and follows changes of the entries.
pub(crate) struct FamilyBits {
    algorithm: MegaflowBits,
    /// The number of changes so far.
    changes: u64,
    /// With [`MegaflowBits::Auto`]: the rules.
    trees: AgreementTrees,
    /// With [`MegaflowBits::Auto`]: planned masks, valid until the next change.
    planned: Option<Arc<PlannedMasks>>,
    /// With other algorithms: made when a megaflow needs it, valid until the next change.
    ordered: OnceLock<Mutex<OrderedRules>>,
}

/// The rules in the order of their ranks, and an algorithm for them.
struct OrderedRules {
    ranks: Vec<u64>,
    heuristic: Box<dyn Heuristic<KEY_WORDS> + Send>,
}

impl FamilyBits {
    /// Returns the bits of a family without entries.
    pub(crate) fn new(algorithm: MegaflowBits) -> FamilyBits {
        FamilyBits {
            algorithm,
            changes: 0,
            trees: AgreementTrees::default(),
            planned: None,
            ordered: OnceLock::new(),
        }
    }

    /// Adds an entry, given by the bits that it requires and its rank.
    pub(crate) fn insert(&mut self, required: &[Known], rank: u64) {
        if self.algorithm == MegaflowBits::Auto {
            self.trees.insert(required, rank);
        }
        self.note_change();
    }

    /// Removes an entry that was added with the same bits and rank.
    pub(crate) fn remove(&mut self, required: &[Known], rank: u64) {
        if self.algorithm == MegaflowBits::Auto {
            self.trees.remove(required, rank);
        }
        self.note_change();
    }

    /// Drops what was computed for the entries before a change.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
        self.planned = None;
        self.ordered = OnceLock::new();
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds bits to `wanted` until the packet differs in a wanted bit from each entry that is
    /// better than `winner`, the rank of the entry that wins the packet. `wanted` has the
    /// winner's mask bits. `entries` returns all entries.
    pub(crate) fn exclude_better(
        &self,
        packet: &Words,
        winner: u64,
        wanted: &mut WantedBits<'_>,
        entries: impl FnOnce() -> Vec<RankedTerm>,
    ) {
        if self.algorithm == MegaflowBits::Auto {
            let planned = self.planned.as_ref();
            if !planned.is_some_and(|planned| planned.add_planned(packet, winner, wanted)) {
                self.trees.exclude_better(packet, winner, wanted);
            }
            return;
        }
        let ordered = self
            .ordered
            .get_or_init(|| Mutex::new(OrderedRules::new(self.algorithm, entries())));
        let mut ordered = ordered.lock().unwrap_or_else(PoisonError::into_inner);
        ordered.exclude_better(packet, winner, wanted);
    }

    /// Returns the rules for which masks can be planned, unless masks are planned already.
    /// `always` is the rank of the best entry that matches every packet.
    pub(crate) fn unplanned(&self, always: u64) -> Option<PlannedRules> {
        match self.planned {
            None => PlannedRules::of(&self.trees, always),
            Some(_) => None,
        }
    }

    /// Uses masks that were planned for the present entries.
    pub(crate) fn use_masks(&mut self, masks: &Arc<PlannedMasks>) {
        self.planned = Some(Arc::clone(masks));
    }

    /// Bytes held, without what other algorithms than [`MegaflowBits::Auto`] have computed.
    pub(crate) fn bytes(&self) -> usize {
        let planned = self.planned.as_ref();
        self.trees.bytes() + planned.map_or(0, |planned| planned.bytes())
    }
}

impl OrderedRules {
    fn new(algorithm: MegaflowBits, mut rules: Vec<RankedTerm>) -> OrderedRules {
        rules.sort_unstable_by_key(|&(rank, _)| rank);
        let ranks = rules.iter().map(|&(rank, _)| rank).collect();
        let terms: Arc<[Term<KEY_WORDS>]> = rules.into_iter().map(|(_, term)| term).collect();
        let heuristic: Box<dyn Heuristic<KEY_WORDS> + Send> = match algorithm {
            MegaflowBits::Naive => Box::new(Naive::new(&terms)),
            MegaflowBits::CommonMatch => Box::new(CommonMatch::new(terms)),
            MegaflowBits::PrefixTree => Box::new(PrefixTree::new(&terms)),
            MegaflowBits::FewestMasks => Box::new(FewestMasks::new(terms)),
            MegaflowBits::MultiBit | MegaflowBits::Auto => Box::new(MultiBit::new(terms)),
        };
        OrderedRules { ranks, heuristic }
    }

    fn exclude_better(&mut self, packet: &Words, winner: u64, wanted: &mut WantedBits<'_>) {
        let better_rules = self.ranks.partition_point(|&rank| rank < winner);
        let mut mask = *wanted.mask();
        let result = self.heuristic.tell_apart(packet, better_rules, &mut mask);
        debug_assert!(result.is_ok(), "only brute force has a limit of work");
        for (word, bits) in mask.into_iter().enumerate() {
            wanted.add_exactly(word, bits);
        }
    }
}
