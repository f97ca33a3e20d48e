//! Several threads that look up headers together, timed by the clock on the wall.
//!
//! A rate of several threads is the number of headers, divided by the elapsed time. It
//! depends on the processors: the process may use fewer than there are threads, or other
//! processes may run on them. [`Clocks`] measures the processors that the threads really
//! had, and [`objection`] returns the reason why a rate does not show what the threads
//! can do.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use classyard::parallel::LookupPool;
use classyard_report::failure::Failure;
use rustix::time::{ClockId, clock_gettime};

/// The maximum number of threads that commands accept.
pub const MAX_THREADS: usize = 256;

/// Parses a number of threads, from 1 to [`MAX_THREADS`], for the argument parser.
///
/// # Errors
/// A message with the text found and the numbers expected.
pub fn thread_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok();
    count
        .filter(|count| (1..=MAX_THREADS).contains(count))
        .ok_or_else(|| format!("`{text}` is not a number of threads; expected 1 to {MAX_THREADS}"))
}

/// The minimum share of the time for which all threads must have had processors, for a
/// rate that counts. With this share, a rate is at most 10 % too low.
pub const MIN_CPU_SHARE: f64 = 0.9;

/// Returns the number of processors that this process may use: the size of its affinity mask,
/// limited by the quota of its control group. The quota is rounded down; the result is at
/// least 1.
#[must_use]
pub fn usable_processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A pool with running threads. They end when the crew is dropped.
pub struct Crew {
    /// `None` only while the crew is dropped.
    pool: Option<LookupPool>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts the workers of a pool. `threads` includes the calling thread.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the system refuses to start a thread.
    pub fn start(threads: usize) -> Result<Crew, Failure> {
        let (pool, workers) = LookupPool::new(threads.saturating_sub(1));
        // If a thread cannot be started, dropping the crew ends the other threads.
        let mut crew = Crew {
            pool: Some(pool),
            threads: Vec::new(),
        };
        for (number, worker) in workers.into_iter().enumerate() {
            let builder = thread::Builder::new().name(format!("lookups {}", number + 1));
            let started = builder.spawn(move || worker.run()).map_err(|error| {
                let message = format!(
                    "thread {} of {threads} cannot be started: {error}",
                    number + 2
                );
                Failure::usage(message).with_help("use fewer threads")
            });
            crew.threads.push(started?);
        }
        Ok(crew)
    }

    /// The pool.
    ///
    /// # Panics
    /// Never: a crew has its pool until it is dropped.
    pub fn pool(&mut self) -> &mut LookupPool {
        self.pool.as_mut().expect("a crew has a pool")
    }

    /// The number of threads, including the thread that calls the pool.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len() + 1
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        drop(self.pool.take());
        for thread in self.threads.drain(..) {
            // A worker does not panic.
            let _ = thread.join();
        }
    }
}

/// Elapsed time, and the CPU time of all threads of this process during that time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Elapsed seconds.
    pub wall: f64,
    /// CPU seconds of all threads.
    pub cpu: f64,
}

impl Clocks {
    /// Runs `work` and returns its result and its times.
    pub fn time<T>(work: impl FnOnce() -> T) -> (T, Clocks) {
        let (began, before) = (Instant::now(), process_cpu_time());
        let result = work();
        let cpu = process_cpu_time().saturating_sub(before);
        let wall = began.elapsed().as_secs_f64().max(1e-9);
        let cpu = cpu.as_secs_f64();
        (result, Clocks { wall, cpu })
    }

    /// Adds the times of another run.
    pub fn add(&mut self, other: Clocks) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }

    /// Returns the share of the elapsed time for which `threads` threads had processors:
    /// 1 if all of them ran all the time, 0.5 for two threads on one processor.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // at most a few hundred threads
    pub fn cpu_share(&self, threads: usize) -> f64 {
        match self.wall > 0.0 {
            true => (self.cpu / (self.wall * threads.max(1) as f64)).min(1.0),
            false => 1.0,
        }
    }
}

/// Returns the CPU time of all threads of this process.
fn process_cpu_time() -> Duration {
    let cpu_clock = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(cpu_clock.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(cpu_clock.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// Returns the reason why a rate of `threads` threads does not show what that many
/// processors can do, or `None` if it does. `processors` is from [`usable_processors`],
/// `share` from [`Clocks::cpu_share`].
#[must_use]
pub fn objection(threads: usize, processors: usize, share: f64) -> Option<String> {
    if threads > processors {
        let them = match processors {
            1 => "1 processor".to_owned(),
            count => format!("{count} processors"),
        };
        return Some(format!(
            "{threads} threads, but the process may use only {them}"
        ));
    }
    (share < MIN_CPU_SHARE).then(|| {
        let name = match threads {
            1 => "the thread".to_owned(),
            count => format!("{count} threads"),
        };
        format!(
            "{name} ran for {:.0} % of the time, at least {:.0} % are needed: other processes used \
             the processors, or the threads waited for work",
            100.0 * share,
            100.0 * MIN_CPU_SHARE
        )
    })
}

/// Returns the first [`objection`] to the rates of several runs, each with its number of
/// threads and its times.
#[must_use]
pub fn first_objection(runs: &[(usize, Clocks)]) -> Option<String> {
    let processors = usable_processors();
    runs.iter()
        .find_map(|(threads, clocks)| objection(*threads, processors, clocks.cpu_share(*threads)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted() {
        assert_eq!(thread_count("1"), Ok(1));
        assert_eq!(thread_count("256"), Ok(256));
        for bad in ["0", "257", "-1", "", "two", "1.5"] {
            let message = thread_count(bad).unwrap_err();
            assert!(message.contains(&format!("`{bad}`")), "{message}");
            assert!(message.contains("1 to 256"), "{message}");
        }
    }

    #[test]
    fn shares_are_of_all_threads() {
        let clocks = Clocks {
            wall: 2.0,
            cpu: 2.0,
        };
        assert_eq!(clocks.cpu_share(1), 1.0);
        assert_eq!(clocks.cpu_share(2), 0.5);
        assert_eq!(clocks.cpu_share(4), 0.25);
        let mut sum = Clocks::default();
        assert_eq!(sum.cpu_share(3), 1.0);
        sum.add(clocks);
        sum.add(Clocks {
            wall: 1.0,
            cpu: 4.0,
        });
        assert_eq!(sum.cpu_share(2), 1.0);
        assert_eq!(sum.cpu_share(3), 6.0 / 9.0);
    }

    #[test]
    fn objections_name_what_is_missing() {
        assert_eq!(objection(2, 2, 0.97), None);
        assert_eq!(objection(1, 1, 1.0), None);
        let few = objection(4, 2, 1.0).unwrap();
        assert!(few.contains("4 threads") && few.contains("only 2 processors"));
        assert!(objection(2, 1, 0.5).unwrap().contains("only 1 processor"));
        let shared = objection(2, 8, 0.504).unwrap();
        assert!(
            shared.contains("2 threads ran for 50 % of the time"),
            "{shared}"
        );
        assert!(
            objection(1, 8, 0.3)
                .unwrap()
                .starts_with("the thread ran for 30 %")
        );
    }

    #[test]
    fn a_crew_looks_up_and_ends() {
        let mut crew = Crew::start(3).unwrap();
        assert_eq!(crew.threads(), 3);
        let schema = classyard::Schema::ipv4_5tuple();
        let linear = classyard::EngineSpec::parse("linear").unwrap();
        let engine = linear.builder().build(&classyard::RuleSet::new(&schema));
        let mut keys = classyard::KeyVec::new(&schema);
        (0..5000).for_each(|port| keys.push(&[1, 2, 3, port, 5]).unwrap());
        let (winners, clocks) = Clocks::time(|| {
            let mut winners = vec![classyard::Winner::MISS; keys.len()];
            let pool = crew.pool();
            pool.classify_batch(&*engine.unwrap(), keys.as_slice(), &mut winners);
            winners
        });
        assert!(winners.iter().all(|winner| winner.is_miss()));
        assert!(clocks.wall > 0.0 && clocks.cpu > 0.0);
    }
}
