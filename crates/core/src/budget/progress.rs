//! Progress callbacks for long work, and cancellation.

use std::ops::ControlFlow;

use crate::model::error::BuildError;

/// Progress callback: receives the progress of long work and can cancel it. The callback
/// also implements time limits, since the library reads no clock.
pub trait Progress {
    /// Reports that `done` of `total` steps of a stage are done. Called after
    /// every [`Monitor::STEPS`](crate::budget::monitor::Monitor::STEPS) steps of work:
    /// at least every 100 ms, usually every few milliseconds.
    fn report(&mut self, stage: &'static str, done: usize, total: usize) -> ControlFlow<()>;
}

/// Ignores all reports and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Calls the progress callback and turns a cancellation into an error.
///
/// # Errors
/// [`BuildError::Stopped`]
pub fn report(
    progress: &mut dyn Progress,
    stage: &'static str,
    done: usize,
    total: usize,
) -> Result<(), BuildError> {
    match progress.report(stage, done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(BuildError::Stopped { stage, done, total }),
    }
}
