//! Lookups on several threads, against one thread, by elapsed time.

use std::io::{self, Write};

use classyard::{PolicyClassifier, PolicyTrace, Winner};
use classyard_report::failure::Failure;
use classyard_report::output::csv;
use serde::Serialize;

use super::measure::{Spread, as_rate};
use crate::cores::{Clocks, Crew, first_objection, usable_processors};

/// The minimum elapsed time of each run in seconds, and in a smoke test. Starting and
/// ending a pass takes some 0.1 ms, so runs consist of several passes.
const RUN_SECONDS: f64 = 0.1;
const QUICK_RUN_SECONDS: f64 = 0.002;

/// Rates of several threads and of one thread, in headers per second of elapsed time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ThreadRates {
    /// The number of threads.
    threads: usize,
    /// The number of processors that the process may use.
    processors: usize,
    /// The rate of all threads together.
    headers_per_second: Spread,
    /// The rate of one thread, in runs between the runs of all threads.
    alone_headers_per_second: Spread,
    /// The share of the elapsed time for which all threads had processors.
    cpu_share: f64,
    /// The share for the runs of one thread.
    alone_cpu_share: f64,
    /// The ratio of the two medians; absent if the threads did not have their processors.
    scaling: Option<f64>,
    /// The reason why `scaling` is absent.
    no_scaling: Option<String>,
}

/// The two sides of a comparison.
pub(crate) struct ThreadPlan {
    alone: Crew,
    together: Crew,
    seconds: f64,
}

impl ThreadPlan {
    /// Starts the threads of a measurement.
    ///
    /// # Errors
    /// [`Failure`] if a thread cannot be started.
    pub(crate) fn start(threads: usize, quick: bool) -> Result<ThreadPlan, Failure> {
        Ok(ThreadPlan {
            alone: Crew::start(1)?,
            together: Crew::start(threads)?,
            seconds: match quick {
                true => QUICK_RUN_SECONDS,
                false => RUN_SECONDS,
            },
        })
    }

    /// Measures an engine, with interleaved runs of one and of all threads. Also returns
    /// the number of answers that differ from `answers`, which are in the trace's order.
    pub(super) fn measure(
        &mut self,
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        repeats: usize,
        answers: &[Winner],
    ) -> (ThreadRates, usize) {
        let lengths = trace.parts().map(|(_, keys)| keys.len());
        let mut winners: Vec<Vec<Winner>> =
            lengths.map(|length| vec![Winner::MISS; length]).collect();
        let mut sides = [Side::default(), Side::default()];
        for _ in 0..repeats {
            for (side, crew) in sides.iter_mut().zip([&mut self.alone, &mut self.together]) {
                // The first pass wakes the threads and warms the caches.
                pass(crew, classifier, trace, &mut winners);
                side.run(crew, classifier, trace, &mut winners, self.seconds);
            }
        }
        let mut in_order = vec![Winner::MISS; trace.len()];
        (self.together.pool()).classify(classifier, trace, &mut in_order);
        let differing = in_order.iter().zip(answers).filter(|(a, b)| a != b);
        let differing = differing.count();
        let [alone, together] = sides;
        let threads = self.together.threads();
        (ThreadRates::new(threads, &alone, &together), differing)
    }
}

/// The runs of one side.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    clocks: Clocks,
}

impl Side {
    fn run(
        &mut self,
        crew: &mut Crew,
        classifier: &PolicyClassifier,
        trace: &PolicyTrace,
        winners: &mut [Vec<Winner>],
        seconds: f64,
    ) {
        let (mut headers, mut clocks) = (0, Clocks::default());
        while headers == 0 || clocks.wall < seconds {
            let ((), pass_clocks) = Clocks::time(|| pass(crew, classifier, trace, winners));
            clocks.add(pass_clocks);
            headers += trace.len().max(1);
        }
        self.rates.push(as_rate(headers, clocks.wall));
        self.clocks.add(clocks);
    }
}

/// Looks up all headers once.
fn pass(
    crew: &mut Crew,
    classifier: &PolicyClassifier,
    trace: &PolicyTrace,
    winners: &mut [Vec<Winner>],
) {
    let parts = classifier.parts().iter().zip(trace.parts()).zip(winners);
    for ((classifier, (_, keys)), winners) in parts {
        let pool = crew.pool();
        pool.classify_batch(classifier.as_ref(), keys.as_slice(), winners);
    }
}

impl ThreadRates {
    fn new(threads: usize, alone: &Side, together: &Side) -> ThreadRates {
        let spread = |side: &Side| Spread::of(&side.rates).expect("at least one repeat");
        let rates = [spread(together), spread(alone)];
        let processors = usable_processors();
        let shares = [
            together.clocks.cpu_share(threads),
            alone.clocks.cpu_share(1),
        ];
        let no_scaling = first_objection(&[(threads, together.clocks), (1, alone.clocks)]);
        ThreadRates {
            threads,
            processors,
            headers_per_second: rates[0],
            alone_headers_per_second: rates[1],
            cpu_share: shares[0],
            alone_cpu_share: shares[1],
            scaling: no_scaling
                .is_none()
                .then(|| rates[0].median / rates[1].median),
            no_scaling,
        }
    }

    /// The columns of CSV.
    pub(super) const COLUMNS: [&'static str; 9] = [
        "threads",
        "processors",
        "threads_min",
        "threads_median",
        "threads_max",
        "alone_median",
        "cpu_share",
        "scaling",
        "no_scaling",
    ];

    /// Returns the cells of [`COLUMNS`](Self::COLUMNS).
    pub(super) fn cells(&self) -> [String; 9] {
        let rate = |rate: f64| format!("{rate:.0}");
        [
            self.threads.to_string(),
            self.processors.to_string(),
            rate(self.headers_per_second.min),
            rate(self.headers_per_second.median),
            rate(self.headers_per_second.max),
            rate(self.alone_headers_per_second.median),
            format!("{:.3}", self.cpu_share),
            csv::optional(self.scaling.map(|ratio| format!("{ratio:.3}")).as_ref()),
            csv::optional(self.no_scaling.as_ref()),
        ]
    }

    /// The number of threads.
    pub(super) fn count(&self) -> usize {
        self.threads
    }

    /// Returns the cells of a table: the rate of all threads, of one thread, and the ratio.
    pub(super) fn table_cells(&self) -> [String; 3] {
        let millions = |spread: Spread| format!("{:.2}", spread.median / 1e6);
        let scaling = match self.scaling {
            Some(ratio) => format!("{ratio:.2}x"),
            None => "none".to_owned(),
        };
        [
            millions(self.headers_per_second),
            millions(self.alone_headers_per_second),
            scaling,
        ]
    }
}

/// Writes the meaning of the rates of several threads, and the reasons for missing ratios.
/// Each row has a set, an engine and their rates.
pub(super) fn write<'a>(
    rows: impl IntoIterator<Item = (&'a str, &'a str, &'a ThreadRates)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut rows = rows.into_iter().peekable();
    let Some((_, _, first)) = rows.peek() else {
        return Ok(());
    };
    writeln!(
        out,
        "threads: medians of interleaved runs of {} threads and of one, by elapsed time; the process \
         may use {}",
        first.threads,
        match first.processors {
            1 => "1 processor".to_owned(),
            count => format!("{count} processors"),
        }
    )?;
    rows.try_for_each(|(set, engine, rates)| match &rates.no_scaling {
        None => Ok(()),
        Some(reason) => writeln!(out, "{set}, {engine}: no scaling: {reason}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(rates: &[f64], wall: f64, cpu: f64) -> Side {
        Side {
            rates: rates.to_vec(),
            clocks: Clocks { wall, cpu },
        }
    }

    /// Two threads on one processor: each of them has half of the time, so that rates of
    /// CPU time would double.
    #[test]
    fn two_threads_on_one_processor_have_no_ratio() {
        let alone = side(&[10e6, 11e6], 1.0, 0.99);
        let rates = ThreadRates::new(2, &alone, &side(&[10e6, 11e6], 1.0, 0.995));
        assert_eq!(rates.scaling, None);
        assert!(rates.no_scaling.is_some());
        assert_eq!(rates.cells()[7], "");
        assert_eq!(rates.table_cells()[2], "none");
    }

    #[test]
    fn a_ratio_needs_the_processors_in_both_runs() {
        let processors = usable_processors();
        let own = side(&[10e6], 1.0, 1.0);
        #[allow(clippy::cast_precision_loss)] // processors
        let all = processors as f64;
        let together = side(&[19e6], 1.0, 0.98 * all);
        let rates = ThreadRates::new(processors, &own, &together);
        assert_eq!(rates.scaling, Some(1.9));
        assert_eq!(rates.no_scaling, None);
        // One thread was interrupted: the ratio would be too high.
        let rates = ThreadRates::new(processors, &side(&[10e6], 1.0, 0.6), &together);
        assert_eq!(rates.scaling, None);
        let reason = rates.no_scaling.unwrap();
        assert!(reason.contains("ran for 60 % of the time"), "{reason}");
        // More threads than processors.
        let rates = ThreadRates::new(processors + 1, &own, &together);
        assert!(rates.no_scaling.unwrap().contains("may use only"));
    }
}
