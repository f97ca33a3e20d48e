//! The megaflows of the workers, for people.

use classyard_datapath::pipeline::{MegaflowPart, MegaflowPlace};
use tokio::sync::oneshot;

use super::connection::Shared;
use super::status;
use crate::control::{MAX_LISTED_MEGAFLOWS, MegaflowList, MegaflowStatus, WorkerMegaflows};
use crate::worker::Command;

/// Lists at most `limit` megaflows. The workers share the limit; what one does not need is for
/// the later ones. A worker lists a few megaflows at a time, and processes packets before the
/// next.
///
/// # Errors
/// The limit is larger than [`MAX_LISTED_MEGAFLOWS`].
pub(super) async fn list(state: &Shared, limit: usize) -> Result<MegaflowList, String> {
    if limit > MAX_LISTED_MEGAFLOWS {
        return Err(format!(
            "limit {limit}; at most {MAX_LISTED_MEGAFLOWS} megaflows are listed"
        ));
    }
    let caches = status::caches(state).await;
    let mut list = MegaflowList::default();
    let workers = caches.len();
    for (worker, caches) in caches.iter().enumerate() {
        let room = limit - list.megaflows.len();
        let share = room.div_ceil(workers - worker);
        let begin = list.megaflows.len();
        add(state, worker, share, &mut list.megaflows).await;
        let listed_count = list.megaflows.len() - begin;
        let megaflows = caches.as_ref().map_or(0, |caches| caches.megaflows);
        list.workers.push(WorkerMegaflows {
            worker,
            megaflows: megaflows.max(listed_count),
            left_out: match listed_count == share {
                true => megaflows.saturating_sub(listed_count),
                false => 0,
            },
        });
    }
    Ok(list)
}

/// Appends at most `limit` megaflows of a worker.
async fn add(state: &Shared, worker: usize, limit: usize, megaflows: &mut Vec<MegaflowStatus>) {
    let max_len = megaflows.len() + limit;
    let mut next_place = Some(MegaflowPlace::default());
    while let Some(begin) = next_place.filter(|_| megaflows.len() < max_len) {
        let part = part(state, worker, begin).await;
        let room = max_len - megaflows.len();
        let fitting = part.megaflows.iter().take(room);
        megaflows.extend(fitting.map(|megaflow| MegaflowStatus::new(worker, megaflow)));
        next_place = part.next;
    }
}

/// Waits for a part of a worker's list. A worker that has ended has an empty list.
async fn part(state: &Shared, worker: usize, place: MegaflowPlace) -> MegaflowPart {
    let (sender, answer) = oneshot::channel();
    if let Some(worker) = state.borrow_mut().workers.get_mut(worker) {
        worker.end.command(Command::Megaflows(place, sender));
        worker.hand_over();
    }
    answer.await.unwrap_or_default()
}
