//! Chooses the processors of the two threads.
//!
//! Without pinning, a scheduler may move both threads to one processor or onto two
//! hardware threads of one core. If the system lets programs choose, each thread
//! gets its own processor.

use std::fmt;

/// The processors of the two threads, by the system's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuPair {
    pub(crate) reader: usize,
    pub(crate) writer: usize,
}

/// The user's choice of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CpuPinning {
    /// A good pair, if there is one.
    #[default]
    Automatic,
    /// Any processors that the system chooses.
    Any,
    /// This pair.
    These(CpuPair),
}

impl CpuPinning {
    /// Parses `auto`, `any` or two numbers, for the argument parser.
    pub(crate) fn parse(text: &str) -> Result<CpuPinning, String> {
        let expected = || {
            format!(
                "`{text}` names no processors; expected the reader's and the writer's number \
                 such as 2,3, or any, or auto"
            )
        };
        match text {
            "auto" => return Ok(CpuPinning::Automatic),
            "any" => return Ok(CpuPinning::Any),
            _ => {}
        }
        let (reader, writer) = text.split_once(',').ok_or_else(expected)?;
        let number = |text: &str| text.trim().parse().map_err(|_| expected());
        let pair = CpuPair {
            reader: number(reader)?,
            writer: number(writer)?,
        };
        if pair.reader == pair.writer {
            return Err("reader and writer need a processor each".to_owned());
        }
        Ok(CpuPinning::These(pair))
    }

    /// Returns the pair to use, or `None` to leave the choice to the system.
    ///
    /// # Errors
    /// A message if the requested pair is not available.
    pub(crate) fn choose(self) -> Result<Option<CpuPair>, String> {
        let allowed = system::allowed();
        let pair = match self {
            CpuPinning::Any => return Ok(None),
            CpuPinning::Automatic => {
                return Ok(choose_of(&allowed.unwrap_or_default(), system::core));
            }
            CpuPinning::These(pair) => pair,
        };
        let Some(allowed) = allowed else {
            return Err("this system does not let programs choose their processors".to_owned());
        };
        for wanted in [pair.reader, pair.writer] {
            if !allowed.contains(&wanted) {
                return Err(format!(
                    "processor {wanted} is not available; available are {}",
                    classyard_report::output::join(&allowed, ", ")
                ));
            }
        }
        Ok(Some(pair))
    }
}

impl CpuPair {
    /// True if both are known to be hardware threads of one core.
    pub(crate) fn share_a_core(self) -> bool {
        let cores = (system::core(self.reader), system::core(self.writer));
        matches!(cores, (Some(one), Some(other)) if one == other)
    }
}

impl fmt::Display for CpuPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}", self.reader, self.writer)
    }
}

/// Chooses the last processor for the reader (interrupts tend to go to the first),
/// and for the writer the last one before it on another core, if any.
fn choose_of(allowed: &[usize], core: impl Fn(usize) -> Option<String>) -> Option<CpuPair> {
    let (&reader, others) = allowed.split_last()?;
    let elsewhere = |other: &&usize| core(**other) != core(reader);
    let writer_cpu = others.iter().rev().find(elsewhere).or(others.last());
    writer_cpu.map(|&writer| CpuPair { reader, writer })
}

/// Pins the calling thread to a processor. If the system refuses, the thread runs
/// anywhere; its share of CPU time is measured in any case.
pub(crate) fn stay_on(processor: usize) {
    system::stay_on(processor);
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Returns the processors that this thread may run on, in order.
    pub(super) fn allowed() -> Option<Vec<usize>> {
        let set = sched_getaffinity(None).ok()?;
        Some(
            (0..CpuSet::MAX_CPU)
                .filter(|&one| set.is_set(one))
                .collect(),
        )
    }

    /// Returns a name of the core that a processor belongs to.
    pub(super) fn core(processor: usize) -> Option<String> {
        let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
        std::fs::read_to_string(path).ok()
    }

    pub(super) fn stay_on(processor: usize) {
        let mut set = CpuSet::new();
        set.set(processor);
        // If pinning is refused, the thread runs on any processor.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Option<Vec<usize>> {
        None
    }

    pub(super) fn core(_processor: usize) -> Option<String> {
        None
    }

    pub(super) fn stay_on(_processor: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinnings_are_read() {
        let pair = CpuPair {
            reader: 3,
            writer: 1,
        };
        assert_eq!(CpuPinning::parse("3,1"), Ok(CpuPinning::These(pair)));
        assert_eq!(CpuPinning::parse("any"), Ok(CpuPinning::Any));
        assert_eq!(CpuPinning::parse("auto"), Ok(CpuPinning::Automatic));
        for bad in ["", "1", "1,", "a,b", "1,2,3", "-1,2"] {
            assert!(
                CpuPinning::parse(bad)
                    .unwrap_err()
                    .contains("names no processors")
            );
        }
        assert!(
            CpuPinning::parse("2,2")
                .unwrap_err()
                .contains("a processor each")
        );
    }

    #[test]
    fn the_pair_is_on_two_cores_where_there_are_two() {
        let pair = |allowed: &[usize], threads: usize| {
            let core = |processor: usize| Some((processor / threads).to_string());
            choose_of(allowed, core).map(|pair| (pair.reader, pair.writer))
        };
        assert_eq!(pair(&[0, 1, 2, 3], 2), Some((3, 1)));
        assert_eq!(pair(&[0, 1, 2, 3], 1), Some((3, 2)));
        assert_eq!(pair(&[0, 1], 2), Some((1, 0)));
        assert_eq!(pair(&[5], 1), None);
        assert_eq!(pair(&[], 1), None);
    }
}
