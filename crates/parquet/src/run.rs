//! Lookup of all rows of logs, on one or several threads.
//!
//! A unit is a row group of the results: one row group of a log if columns are kept, otherwise
//! row groups of a million rows together. Threads take units in order. A thread decodes the unit
//! batch by batch, looks the headers up and encodes the winners in memory. When all earlier units
//! are written, it copies the kept columns to the file of results, byte by byte, and appends the
//! winners. So the results do not depend on the number of threads, and each thread holds one
//! batch of decoded columns and the winners of one unit.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use classyard::Progress;

use crate::comparison::Meanings;
use crate::error::LogError;
use crate::logs::{Group, Logs};
use crate::lookups::Lookups;
use crate::results::{Encoder, KeptGroup, ResultFile};
use crate::summary::{Example, MAX_EXAMPLES, Summary};
use crate::totals::Totals;
use crate::unit::{UnitReader, UnitResult};

impl Logs {
    /// Looks up all rows, and counts them by their rule. If the logs were opened with results,
    /// writes the results to `out`: kept columns, `matched`, `rule` and `action`, with the rows
    /// in the order of files and rows. Without files, nothing is written to `out`.
    ///
    /// `progress` receives the number of rows so far and of all rows.
    ///
    /// # Errors
    /// [`LogError`] of the first unit with an error. `out` may then have a part of the results.
    pub fn classify<W: Write + Send>(
        &self,
        lookups: &Lookups<'_>,
        out: Option<W>,
        progress: &mut (dyn Progress + Send),
    ) -> Result<Summary, LogError> {
        let (file, encoder) = match (self.schema(), out) {
            (Some(schema), Some(out)) => {
                let created = ResultFile::create(out, schema).map_err(LogError::output)?;
                (Some(created.0), Some(created.1))
            }
            _ => (None, None),
        };
        let units = self.units();
        let run = Run {
            logs: self,
            lookups,
            meanings: Meanings::new(lookups.verdicts, lookups.actions),
            units: &units,
            encoder: encoder.as_ref(),
            next_unit: AtomicUsize::new(0),
            order: Mutex::new(Order {
                next: 0,
                file,
                rows: 0,
                examples: Vec::new(),
                error: None,
                progress,
            }),
            turn: Condvar::new(),
        };
        let totals = run.on_threads(lookups.threads.min(units.len()).max(1))?;
        let order = run
            .order
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = order.error {
            return Err(error);
        }
        if let Some(file) = order.file {
            file.finish()?;
        }
        let has_verdicts = self.wanted().verdict.is_some();
        Ok(Summary::new(totals, has_verdicts, order.examples))
    }
}

/// The state that threads share.
struct Run<'a, W: Write + Send> {
    logs: &'a Logs,
    lookups: &'a Lookups<'a>,
    meanings: Meanings<'a>,
    units: &'a [Vec<Group>],
    encoder: Option<&'a Encoder>,
    next_unit: AtomicUsize,
    order: Mutex<Order<'a, W>>,
    /// Notified when a unit is complete or a thread has failed.
    turn: Condvar,
}

/// The state that changes in the order of units.
struct Order<'a, W: Write + Send> {
    /// The unit that is completed next.
    next: usize,
    file: Option<ResultFile<W>>,
    rows: u64,
    examples: Vec<Example>,
    /// The first error; no further unit is completed.
    error: Option<LogError>,
    progress: &'a mut (dyn Progress + Send),
}

impl<W: Write + Send> Run<'_, W> {
    /// Processes all units. Returns the counts of each thread.
    fn on_threads(&self, threads: usize) -> Result<Vec<Totals>, LogError> {
        if threads == 1 {
            return Ok(vec![self.on_this_thread()]);
        }
        thread::scope(|scope| {
            let mut running = Vec::new();
            for number in 1..=threads {
                let builder = thread::Builder::new().name(format!("logs {number}"));
                let spawned = builder.spawn_scoped(scope, || self.on_this_thread());
                running.push(spawned.map_err(|error| {
                    // The threads that run end after their unit.
                    self.next_unit.store(self.units.len(), Ordering::Relaxed);
                    LogError::Thread { number, error }
                })?);
            }
            let totals = running.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            Ok(totals.collect())
        })
    }

    fn on_this_thread(&self) -> Totals {
        let mut totals = Totals::default();
        let mut reader = UnitReader::new(self.logs, self.lookups, &self.meanings);
        loop {
            let number = self.next_unit.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = self.units.get(number) else {
                return totals;
            };
            // If this thread panics, the others must not wait for its unit.
            let guard = EndOnPanic(self);
            let result = reader.read(unit, self.encoder, &mut totals);
            let is_complete = self.complete(number, unit, result, &reader);
            drop(guard);
            if !is_complete {
                return totals;
            }
        }
    }

    /// Waits for all earlier units, and writes the results of a unit. Returns false if this or an
    /// earlier unit has failed.
    fn complete(
        &self,
        number: usize,
        unit: &[Group],
        result: Result<UnitResult, LogError>,
        reader: &UnitReader<'_>,
    ) -> bool {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        while order.next != number && order.error.is_none() {
            order = self
                .turn
                .wait(order)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if order.error.is_some() {
            return false;
        }
        let result = result.and_then(|result| self.append(&mut order, unit, result, reader));
        order.next += 1;
        if let Err(error) = result {
            order.error = Some(error);
        }
        self.turn.notify_all();
        order.error.is_none()
    }

    fn append(
        &self,
        order: &mut Order<'_, W>,
        unit: &[Group],
        result: UnitResult,
        reader: &UnitReader<'_>,
    ) -> Result<(), LogError> {
        let missing = MAX_EXAMPLES - order.examples.len();
        order
            .examples
            .extend(result.examples.into_iter().take(missing));
        if let (Some(file), Some(chunks), Some(schema)) =
            (&mut order.file, result.chunks, self.logs.schema())
        {
            let [first, ..] = unit else { return Ok(()) };
            let open = reader.open_file(first.file).filter(|_| schema.has_kept());
            match open {
                None => file.append(None, chunks)?,
                Some(open) => {
                    let path = &self.logs.file(first.file).path;
                    let kept = KeptGroup {
                        path,
                        open,
                        group: first.group,
                        roots: &schema.check(path, open)?,
                    };
                    file.append(Some(&kept), chunks)?;
                }
            }
        }
        order.rows += unit.iter().map(|group| group.rows).sum::<u64>();
        let size = |rows| usize::try_from(rows).unwrap_or(usize::MAX);
        let (done, total) = (size(order.rows), size(self.logs.rows()));
        match order.progress.report("classifying", done, total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(LogError::Cancelled),
        }
    }
}

/// Ends all threads if it is dropped by a panic.
struct EndOnPanic<'r, 'a, W: Write + Send>(&'r Run<'a, W>);

impl<W: Write + Send> Drop for EndOnPanic<'_, '_, W> {
    fn drop(&mut self) {
        if thread::panicking() {
            let order = self.0.order.lock();
            let mut order = order.unwrap_or_else(PoisonError::into_inner);
            order.error.get_or_insert(LogError::Cancelled);
            self.0.turn.notify_all();
        }
    }
}
