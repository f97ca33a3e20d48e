//! Progress reports, cancellation and memory accounting of a build.
//!
//! Engines count *steps* of work. A step is about as much work as copying,
//! hashing, placing or comparing one rule, up to a few hundred nanoseconds. The
//! caller's [`Progress`] callback is called every [`Monitor::STEPS`] steps.
//! This is often enough to display progress and to cancel promptly, and the
//! calls take negligible time.

use crate::budget::memory::Memory;
use crate::budget::progress::{NoProgress, Progress, report};
use crate::model::error::BuildError;

/// Reports progress and counts memory, for one build.
pub struct Monitor<'a> {
    progress: &'a mut dyn Progress,
    memory: &'a mut Memory,
    stage: &'static str,
    done: usize,
    total: usize,
    /// Steps since the last report.
    steps: usize,
    /// False if a request to cancel is ignored.
    may_stop: bool,
}

impl<'a> Monitor<'a> {
    /// Steps of work between two reports.
    pub const STEPS: usize = 1 << 12;

    /// The number of steps that a loop may do before it counts them.
    pub const BLOCK: usize = 1 << 10;

    /// Returns a monitor with a progress callback and a memory counter.
    pub fn new(progress: &'a mut dyn Progress, memory: &'a mut Memory) -> Monitor<'a> {
        Monitor {
            progress,
            memory,
            stage: "building",
            done: 0,
            total: 0,
            steps: 0,
            may_stop: true,
        }
    }

    /// Begins a stage of `total` steps and reports it. `stage` is a name for
    /// people, such as "sorting rules".
    ///
    /// # Errors
    /// [`BuildError::Stopped`]
    pub fn begin(&mut self, stage: &'static str, total: usize) -> Result<(), BuildError> {
        self.memory.set_stage(stage);
        (self.stage, self.done, self.total) = (stage, 0, total);
        self.report()
    }

    /// Counts `steps` more steps of the stage as done.
    ///
    /// # Errors
    /// [`BuildError::Stopped`]
    #[inline]
    pub fn advance(&mut self, steps: usize) -> Result<(), BuildError> {
        self.done += steps;
        self.work(steps)
    }

    /// Counts `steps` more steps of the stage as done. Their work must already
    /// be counted with [`work`](Self::work).
    pub fn count_done(&mut self, steps: usize) {
        self.done += steps;
    }

    /// Counts `steps` steps of work without counting them as steps of the
    /// stage.
    ///
    /// # Errors
    /// [`BuildError::Stopped`]
    #[inline]
    pub fn work(&mut self, steps: usize) -> Result<(), BuildError> {
        self.steps += steps;
        if self.steps < Self::STEPS {
            return Ok(());
        }
        self.report()
    }

    /// Ignores later requests to cancel, because the work that has begun cannot
    /// be undone.
    pub(crate) fn past_stopping(&mut self) {
        self.may_stop = false;
    }

    /// Returns the memory counter.
    #[inline]
    pub fn memory(&mut self) -> &mut Memory {
        self.memory
    }

    /// Returns the progress callback and the memory counter, for a nested
    /// build.
    pub(crate) fn parts(&mut self) -> (&mut dyn Progress, &mut Memory) {
        (self.progress, self.memory)
    }

    /// Does work that frees all of its memory at the end, including memory that
    /// it counts with [`Memory::keep`].
    pub(crate) fn aside<T>(
        &mut self,
        work: impl FnOnce(&mut Monitor<'_>) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        let mut memory = self.memory.aside();
        let mut monitor = Monitor {
            progress: &mut *self.progress,
            memory: &mut memory,
            stage: self.stage,
            done: self.done,
            total: self.total,
            steps: self.steps,
            may_stop: self.may_stop,
        };
        let done = work(&mut monitor);
        self.memory.add_aside(&memory);
        done
    }

    #[cold]
    fn report(&mut self) -> Result<(), BuildError> {
        self.steps = 0;
        let done = self.done.min(self.total);
        let reported = report(self.progress, self.stage, done, self.total);
        if self.may_stop { reported } else { Ok(()) }
    }
}

/// Does work of an update, without progress reports and limits.
///
/// # Panics
/// If the work fails, which only a progress callback or a limit can cause.
pub(crate) fn unwatched<T>(work: impl FnOnce(&mut Monitor<'_>) -> Result<T, BuildError>) -> T {
    let mut memory = Memory::unlimited();
    work(&mut Monitor::new(&mut NoProgress, &mut memory)).expect("nothing stops it")
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    /// Records reports, and cancels after `stop_at` reports.
    #[derive(Default)]
    struct Notes {
        reports: Vec<(usize, usize)>,
        stop_at: Option<usize>,
    }

    impl Progress for Notes {
        fn report(&mut self, _: &'static str, done: usize, total: usize) -> ControlFlow<()> {
            self.reports.push((done, total));
            match self.stop_at {
                Some(at) if self.reports.len() > at => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    #[test]
    fn reports_come_after_a_number_of_steps_of_any_kind() {
        let (mut notes, mut memory) = (Notes::default(), Memory::unlimited());
        let mut monitor = Monitor::new(&mut notes, &mut memory);
        let steps = Monitor::STEPS;
        monitor.begin("placing rules", 3 * steps).unwrap();
        for _ in 0..2 * steps {
            monitor.advance(1).unwrap();
        }
        for _ in 0..steps {
            monitor.work(1).unwrap();
        }
        monitor.advance(10 * steps).unwrap();
        let total = 3 * steps;
        let expected = [
            (0, total),
            (steps, total),
            (2 * steps, total),
            (2 * steps, total),
            (total, total),
        ];
        assert_eq!(notes.reports, expected);
    }

    #[test]
    fn work_ends_where_the_callback_cancels_it_unless_it_cannot_stop() {
        for (obeyed, count) in [(true, 3), (false, 6)] {
            let mut notes = Notes {
                stop_at: Some(2),
                ..Notes::default()
            };
            let mut memory = Memory::unlimited();
            let mut monitor = Monitor::new(&mut notes, &mut memory);
            if !obeyed {
                monitor.past_stopping();
            }
            let mut run = || {
                monitor.begin("placing rules", 5)?;
                (0..5).try_for_each(|_| monitor.advance(Monitor::STEPS))
            };
            let stopped = matches!(run(), Err(BuildError::Stopped { .. }));
            assert_eq!((stopped, notes.reports.len()), (obeyed, count));
        }
    }
}
