//! The megaflows of a running switch.

use classyard_datapath::pipeline::CachedMegaflow;
use serde::{Deserialize, Serialize};

use super::trace::TraceMegaflow;

/// The largest number of megaflows in a list.
pub const MAX_LISTED_MEGAFLOWS: usize = 1 << 16;

/// Cached megaflows of a running switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MegaflowList {
    /// The workers, by number.
    pub workers: Vec<WorkerMegaflows>,
    /// The listed megaflows, by worker.
    pub megaflows: Vec<MegaflowStatus>,
}

/// The number of megaflows of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerMegaflows {
    /// The number of the worker, from 0.
    pub worker: usize,
    /// The megaflows in its cache when the list was begun.
    pub megaflows: usize,
    /// The megaflows that the list lacks, since it has reached its limit.
    pub left_out: usize,
}

/// A cached megaflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MegaflowStatus {
    /// The number of the worker, from 0.
    pub worker: usize,
    /// The covered packets, and the tables that they skip.
    #[serde(flatten)]
    pub megaflow: TraceMegaflow,
    /// The actions, in the syntax of `ovs-ofctl`; `drop` if there are none and the packets do not
    /// continue at a table.
    pub actions: String,
    /// True if a change made the megaflow stale, so that the tables process its packets.
    pub stale: bool,
    /// The packets of all megaflows of the worker with the same tables and flows.
    pub path_packets: u64,
}

impl MegaflowStatus {
    /// Describes a megaflow of a worker.
    pub(crate) fn new(worker: usize, cached: &CachedMegaflow) -> MegaflowStatus {
        let actions = cached.decision.as_ref().map(ToString::to_string);
        let actions = actions.unwrap_or_default();
        MegaflowStatus {
            worker,
            megaflow: TraceMegaflow::new(&cached.megaflow),
            actions: match actions.is_empty() && cached.megaflow.rest.is_none() {
                true => "drop".to_owned(),
                false => actions,
            },
            stale: cached.is_stale,
            path_packets: cached.path_packets,
        }
    }
}
