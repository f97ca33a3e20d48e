//! The cached megaflows of a worker and their decisions, for reports.

use super::caches::Caches;
use super::learn::{Decision, Program};
use super::status::Megaflow;
use crate::cache::store::StorePlace;
use crate::pipeline::run::tally::Tally;

/// A place in the list of a worker's megaflows. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MegaflowPlace(StorePlace);

/// A megaflow of a worker's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedMegaflow {
    /// The covered packets, and their path.
    pub megaflow: Megaflow,
    /// The actions of the path; `None` if the path is closed.
    pub decision: Option<Decision>,
    /// True if a change made the megaflow stale, so that the tables process its packets.
    pub is_stale: bool,
    /// The packets of all megaflows of the worker with the same path, since the path was
    /// opened.
    pub path_packets: u64,
}

/// A part of the list of a worker's megaflows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MegaflowPart {
    /// The megaflows. There may be none before the end of the list.
    pub megaflows: Vec<CachedMegaflow>,
    /// The place of the next part; `None` at the end.
    pub next: Option<MegaflowPlace>,
}

impl Caches {
    /// Returns the megaflows among `max_rows` rows of the store, beginning at a place.
    pub(in crate::pipeline) fn list(
        &self,
        tally: &Tally,
        place: MegaflowPlace,
        max_rows: usize,
    ) -> MegaflowPart {
        let mut megaflows = Vec::new();
        let next = self.store.list(place.0, max_rows, |listed| {
            let (path, program) = self.store.paths().get(listed.path);
            let steps = path.steps.iter();
            megaflows.push(CachedMegaflow {
                megaflow: Megaflow {
                    key: listed.key,
                    mask: *listed.mask,
                    steps: steps.map(|step| (step.table, step.winner.rule())).collect(),
                    rest: path.rest,
                },
                decision: program.map(Program::decision),
                is_stale: listed.is_stale,
                path_packets: tally.path_packets(listed.path),
            });
        });
        MegaflowPart {
            megaflows,
            next: next.map(MegaflowPlace),
        }
    }
}
