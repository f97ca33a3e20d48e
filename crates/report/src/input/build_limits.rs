//! The flags that limit memory and time when engines are built.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use classyard::{BuildError, Limits, Progress};

use super::limits::size;
use super::span;
use crate::failure::Failure;

/// The flags of every command that builds engines for its user.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct BuildLimits {
    /// Refuse engines that hold more bytes than SIZE (64M, 2G, ...)
    ///
    /// Counts the rules and all structures built from them. Some engines have an
    /// option for a limit of their own; `classyard engines` lists it.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Engine")]
    limit_engine_bytes: Option<u64>,

    /// Refuse engines whose memory peak during building exceeds SIZE bytes
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Engine")]
    limit_peak_bytes: Option<u64>,

    /// Stop building an engine after this time (500ms, 60s, 5m)
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Engine")]
    limit_build_time: Option<Duration>,
}

/// The reason why an engine is not built.
#[derive(Debug)]
pub enum Refused {
    /// The library refused.
    Build(BuildError),
    /// Building took too long.
    Time {
        /// The time limit.
        limit: Duration,
        /// The stage that was under way.
        stage: &'static str,
        /// The completed steps of the stage.
        done: usize,
        /// The number of steps of the stage.
        total: usize,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Build(error) => error.fmt(f),
            Refused::Time {
                limit,
                stage,
                done,
                total,
            } => write!(
                f,
                "building took longer than the limit of {} s: stopped while {stage}, at {done} of \
                 {total}",
                limit.as_secs_f64()
            ),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        match refused {
            Refused::Build(error) => error.into(),
            Refused::Time { .. } => Failure::usage(refused.to_string())
                .with_help("raise --limit-build-time, or choose an engine that builds faster"),
        }
    }
}

impl BuildLimits {
    /// Limits the build time only.
    pub fn of_time(limit: Duration) -> BuildLimits {
        BuildLimits {
            limit_build_time: Some(limit),
            ..BuildLimits::default()
        }
    }

    /// Adds a limit on engine bytes unless there is one already.
    pub fn with_engine_bytes(self, bytes: u64) -> BuildLimits {
        BuildLimits {
            limit_engine_bytes: self.limit_engine_bytes.or(Some(bytes)),
            ..self
        }
    }

    /// Returns the limits on bytes.
    pub fn limits(&self) -> Limits {
        let max_bytes = |bytes: Option<u64>| {
            bytes.map_or(usize::MAX, |bytes| {
                usize::try_from(bytes).unwrap_or(usize::MAX)
            })
        };
        Limits::default()
            .with_bytes(max_bytes(self.limit_engine_bytes))
            .with_peak_bytes(max_bytes(self.limit_peak_bytes))
    }

    /// Builds within the limits.
    ///
    /// # Errors
    /// [`Refused`] if the engine exceeds a limit or the library refuses to build it.
    pub fn build<T>(
        &self,
        progress: &mut dyn Progress,
        build: impl FnOnce(&Limits, &mut dyn Progress) -> Result<T, BuildError>,
    ) -> Result<T, Refused> {
        let limits = self.limits();
        let mut deadline = Deadline {
            progress,
            until: self.limit_build_time.map(|limit| Instant::now() + limit),
            over: false,
        };
        let built = build(&limits, &mut deadline);
        built.map_err(|error| match (error, self.limit_build_time) {
            (BuildError::Stopped { stage, done, total }, Some(limit)) if deadline.over => {
                Refused::Time {
                    limit,
                    stage,
                    done,
                    total,
                }
            }
            (error, _) => Refused::Build(error),
        })
    }
}

/// Passes progress on, and stops the work at the deadline.
struct Deadline<'a> {
    progress: &'a mut dyn Progress,
    until: Option<Instant>,
    over: bool,
}

impl Progress for Deadline<'_> {
    fn report(&mut self, stage: &'static str, done: usize, total: usize) -> ControlFlow<()> {
        if self.until.is_some_and(|until| Instant::now() > until) {
            self.over = true;
            return ControlFlow::Break(());
        }
        self.progress.report(stage, done, total)
    }
}

#[cfg(test)]
mod tests {
    use classyard::NoProgress;

    use super::*;

    /// Reports progress until it is stopped.
    fn endless(_: &Limits, progress: &mut dyn Progress) -> Result<(), BuildError> {
        loop {
            classyard::classifier::report(progress, "sorting rules", 3, 4)?;
        }
    }

    #[test]
    fn what_takes_too_long_is_stopped_and_says_how_far_it_was() {
        let limits = BuildLimits {
            limit_build_time: Some(Duration::from_millis(20)),
            ..BuildLimits::default()
        };
        let refused = limits.build(&mut NoProgress, endless).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "building took longer than the limit of 0.02 s: stopped while sorting rules, at 3 of 4"
        );
    }

    /// Cancelling by the callback is not reported as a limit.
    #[test]
    fn a_callback_that_cancels_earlier_is_named() {
        struct Impatient;
        impl Progress for Impatient {
            fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
                ControlFlow::Break(())
            }
        }
        let limits = BuildLimits {
            limit_build_time: Some(Duration::from_secs(3600)),
            ..BuildLimits::default()
        };
        let refused = limits.build(&mut Impatient, endless).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "stopped while sorting rules, at 3 of 4"
        );
    }

    #[test]
    fn bytes_are_passed_on() {
        let limits = BuildLimits {
            limit_engine_bytes: Some(7),
            limit_peak_bytes: Some(9),
            limit_build_time: None,
        };
        let passed = limits
            .build(&mut NoProgress, |limits, _| Ok(*limits))
            .unwrap();
        assert_eq!((passed.bytes, passed.peak_bytes), (7, 9));
        let none = BuildLimits::default();
        let passed = none
            .build(&mut NoProgress, |limits, _| Ok(*limits))
            .unwrap();
        assert_eq!(passed, Limits::default());
    }
}
