//! A third thread that re-optimises the table whenever that is due, as a program
//! with a live table does. It shares the writer's processor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use classyard::Reader;
use classyard::policy::PartId;
use classyard::reoptimise::Drift;
use classyard::reoptimise::LookupPlan;
use classyard::table::RuleReplica;

use super::live::Live;
use super::processors::{CpuPair, stay_on};

/// The time between two checks for drift.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// A plan for a part of the table.
pub(super) type PartPlan = (PartId, LookupPlan);

/// Computes plans until the time is up, and sends them to the writer.
pub(super) fn optimise<L: Live>(
    mut reader: Reader<L::Side>,
    parts: &[PartId],
    processors: Option<CpuPair>,
    plans: &SyncSender<PartPlan>,
    over: &AtomicBool,
) where
    L::Side: RuleReplica,
{
    if let Some(pair) = processors {
        stay_on(pair.writer);
    }
    while !over.load(Ordering::Relaxed) {
        for &part in parts {
            if L::drift(&mut reader, part).is_some_and(|drift: Drift| drift.is_due())
                && let Some(plan) = L::plan(&mut reader, part)
                && plans.send((part, plan)).is_err()
            {
                return;
            }
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}
