//! The cost of work on a processor.
//!
//! # Idea
//! This is the cost model of [DEC14] §IV. The [`Work`] of an operation is its
//! numbers of instructions, mispredicted branches and cache-line reads. A
//! [`Machine`] has the time for each of them. Engines compute their work from
//! their own structures; the time depends on the processor. The time of a read
//! depends on the cache that the data in use fits into. So each read has a
//! *working set*: the bytes of the data in use. There are two kinds of reads.
//! The address of a *dependent* read is known only after the previous read.
//! *Overlapped* reads were prefetched or are in flight together.
//!
//! ```text
//! ns(work) = instructions · instruction_ns + mispredictions · misprediction_ns
//!          + Σ lines · dependent(working set) + Σ lines · overlapped(working set)
//! ```
//!
//! [`Machine::default`] is the machine to which the first estimates were
//! fitted; `classyard calibrate` measures another machine. The model's error
//! for an engine on a machine is corrected by a [factor](Machine::factor) for
//! each engine and operation: 1 unless calibration sets it.
//!
//! # Where we differ from the paper, and why
//! [DEC14] counts hits in each cache and multiplies by the cache's latency. We
//! use curves over the size of the working set, for two reasons. A working set
//! of twice the second cache's size hits this cache in half of the reads. And
//! memory pages have an effect on the time of a read. [`Machine::levels`]
//! counts reads by cache, as the paper does, for explanations.
//!
//! # References
//! [DEC14] §IV.
//!
//! [DEC14]: crate::papers#dec14

#![allow(clippy::cast_precision_loss)] // estimates

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Mul};

use thiserror::Error;

/// The work of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Instructions, in units of mixed straight-line code: arithmetic,
    /// comparisons and loads from the first-level cache; several instructions
    /// run in parallel.
    pub instructions: f64,
    /// Mispredicted branches.
    pub mispredictions: f64,
    reads: Vec<LineReads>,
}

/// Reads of cache lines from the same data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineReads {
    /// The number of lines.
    pub lines: f64,
    /// The working set: bytes of all data in use while the lines are read.
    pub working_set: usize,
    /// True if the lines are prefetched or in flight together.
    pub overlapped: bool,
}

impl Work {
    /// Returns work of `instructions` instructions, without mispredictions and
    /// reads.
    #[must_use]
    pub fn of(instructions: f64) -> Work {
        Work {
            instructions,
            ..Work::default()
        }
    }

    /// Adds `branches` mispredicted branches.
    #[must_use]
    pub fn mispredicting(mut self, branches: f64) -> Work {
        self.mispredictions += branches;
        self
    }

    /// Adds dependent reads of `lines` cache lines from a working set of
    /// `working_set` bytes. The address of each line is known only after the
    /// previous read.
    #[must_use]
    pub fn reading(self, lines: f64, working_set: usize) -> Work {
        self.with(LineReads {
            lines,
            working_set,
            overlapped: false,
        })
    }

    /// Adds overlapped reads of `lines` cache lines from a working set of
    /// `working_set` bytes. These lines are prefetched or in flight together.
    #[must_use]
    pub fn reading_ahead(self, lines: f64, working_set: usize) -> Work {
        self.with(LineReads {
            lines,
            working_set,
            overlapped: true,
        })
    }

    /// Adds reads. If the work has reads of the same kind and working set, adds
    /// the numbers of lines.
    #[must_use]
    pub fn with(mut self, read: LineReads) -> Work {
        let is_same_kind = |known: &&mut LineReads| {
            (known.working_set, known.overlapped) == (read.working_set, read.overlapped)
        };
        match self.reads.iter_mut().find(is_same_kind) {
            Some(known) => known.lines += read.lines,
            None => self.reads.push(read),
        }
        self
    }

    /// Returns the reads: one entry for each kind and working set.
    #[must_use]
    pub fn reads(&self) -> &[LineReads] {
        &self.reads
    }
}

impl Add for Work {
    type Output = Work;

    fn add(mut self, other: Work) -> Work {
        self += other;
        self
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        let mut sum = std::mem::take(self);
        sum.instructions += other.instructions;
        sum.mispredictions += other.mispredictions;
        for read in other.reads {
            sum = sum.with(read);
        }
        *self = sum;
    }
}

impl Mul<f64> for Work {
    type Output = Work;

    fn mul(mut self, times: f64) -> Work {
        self.instructions *= times;
        self.mispredictions *= times;
        for read in &mut self.reads {
            read.lines *= times;
        }
        self
    }
}

/// The nanoseconds for reading a cache line, as a function of the bytes in use.
/// Between two points, the curve is linear in the logarithm of the bytes. It is
/// constant before the first point and after the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

/// A machine description is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A curve has no points.
    #[error("a curve needs at least one point")]
    NoPoints,
    /// A point has invalid numbers, or is below the previous point.
    #[error("point {number}, {bytes} bytes at {ns} ns: {expected}")]
    BadPoint {
        /// The point's number, from 1.
        number: usize,
        /// The point's working set in bytes.
        bytes: f64,
        /// The point's time in nanoseconds.
        ns: f64,
        /// The violated requirement.
        expected: &'static str,
    },
    /// A price or factor is not a positive number below its limit.
    #[error("{name} is {found}; expected a number above 0 and below {limit}")]
    BadPrice {
        /// The name of the price or factor.
        name: &'static str,
        /// The invalid number.
        found: f64,
        /// The exclusive upper limit.
        limit: f64,
    },
}

impl Curve {
    /// Returns a curve through points. A point has bytes and nanoseconds.
    ///
    /// # Errors
    /// [`MachineError`] unless there is at least one point, bytes increase from
    /// point to point, and nanoseconds are positive and do not decrease.
    pub fn new(points: &[(f64, f64)]) -> Result<Curve, MachineError> {
        let mut before = (0.0, 0.0);
        for (at, &(bytes, ns)) in points.iter().enumerate() {
            let bad = |expected| MachineError::BadPoint {
                number: at + 1,
                bytes,
                ns,
                expected,
            };
            if !(bytes.is_finite() && bytes >= 1.0 && ns > 0.0 && ns < MOST_NS) {
                return Err(bad(
                    "expected bytes of at least 1 and a time above 0 and below 1e9 ns",
                ));
            }
            if bytes <= before.0 || ns < before.1 {
                return Err(bad(
                    "expected more bytes than the point before, and no less time",
                ));
            }
            before = (bytes, ns);
        }
        if points.is_empty() {
            return Err(MachineError::NoPoints);
        }
        Ok(Curve {
            points: points.to_vec(),
        })
    }

    /// Returns the points in ascending order of bytes.
    #[must_use]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Returns the nanoseconds for reading a line from `bytes` bytes in use.
    #[must_use]
    pub fn at(&self, bytes: usize) -> f64 {
        let bytes = (bytes as f64).max(1.0);
        let above = self.points.partition_point(|point| point.0 < bytes);
        let Some(&above_point) = self.points.get(above) else {
            return self.points[self.points.len() - 1].1;
        };
        if above == 0 {
            return above_point.1;
        }
        let below_point = self.points[above - 1];
        let way = (bytes / below_point.0).ln() / (above_point.0 / below_point.0).ln();
        below_point.1 + way * (above_point.1 - below_point.1)
    }
}

/// The exclusive upper limit of all prices and of the times of a curve, in
/// nanoseconds.
const MOST_NS: f64 = 1e9;

/// An operation of an engine for which machines have a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Looking up a header in a batch.
    Batch,
    /// Looking up a header alone.
    Single,
    /// Inserting or removing a rule.
    Update,
    /// Building the engine.
    Build,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 4] = [
        Operation::Batch,
        Operation::Single,
        Operation::Update,
        Operation::Build,
    ];

    /// Returns the operation's name: `batch`, `single`, `update` or `build`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Batch => "batch",
            Operation::Single => "single",
            Operation::Update => "update",
            Operation::Build => "build",
        }
    }
}

/// The numbers of lines read from each level of the memory hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    /// Lines read from the first, second and third cache.
    pub caches: [f64; 3],
    /// Lines read from main memory.
    pub memory: f64,
}

/// A processor: the time of each kind of work in nanoseconds, the cache sizes,
/// and the factors of engines.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    instruction_ns: f64,
    misprediction_ns: f64,
    dependent: Curve,
    overlapped: Curve,
    caches: [usize; 3],
    factors: BTreeMap<(String, Operation), f64>,
}

/// The reference machine. The work of the engines was fitted to measurements on
/// this machine: a virtual machine with an AMD EPYC of family 26 (Zen 5, 2.6
/// GHz, two processors). The numbers are medians of four runs of `classyard
/// calibrate` in November 2026.
impl Default for Machine {
    // As `classyard calibrate` measured them; `bench/README.md` (Estimates) describes
    // the machine.
    fn default() -> Machine {
        let dependent = [
            (32e3, 1.1),
            (64e3, 3.3),
            (512e3, 3.7),
            (1e6, 6.0),
            (2e6, 9.6),
            (4e6, 11.1),
            (8e6, 12.0),
            (16e6, 21.0),
            (32e6, 116.0),
            (64e6, 142.0),
            (256e6, 159.0),
        ];
        let overlapped = [
            (512e3, 0.5),
            (1e6, 0.7),
            (2e6, 0.84),
            (8e6, 0.92),
            (16e6, 2.5),
            (32e6, 8.2),
            (64e6, 9.7),
            (256e6, 11.0),
        ];
        let curve = |points: &[(f64, f64)]| Curve::new(points).expect("increasing points");
        Machine {
            instruction_ns: 0.0645,
            misprediction_ns: 5.55,
            dependent: curve(&dependent),
            overlapped: curve(&overlapped),
            caches: [48 << 10, 1 << 20, 32 << 20],
            factors: BTreeMap::new(),
        }
    }
}

impl Machine {
    /// Returns a machine with the given prices and no factors.
    ///
    /// # Errors
    /// [`MachineError::BadPrice`] if a price is not a positive number.
    pub fn new(
        instruction_ns: f64,
        misprediction_ns: f64,
        dependent: Curve,
        overlapped: Curve,
        caches: [usize; 3],
    ) -> Result<Machine, MachineError> {
        Ok(Machine {
            instruction_ns: price("instruction_ns", instruction_ns, MOST_NS)?,
            misprediction_ns: price("misprediction_ns", misprediction_ns, MOST_NS)?,
            dependent,
            overlapped,
            caches,
            factors: BTreeMap::new(),
        })
    }

    /// Returns the nanoseconds for an instruction of straight-line code.
    #[must_use]
    pub fn instruction_ns(&self) -> f64 {
        self.instruction_ns
    }

    /// Returns the nanoseconds for a mispredicted branch.
    #[must_use]
    pub fn misprediction_ns(&self) -> f64 {
        self.misprediction_ns
    }

    /// Returns the time of a dependent read, as a function of the bytes in use.
    #[must_use]
    pub fn dependent(&self) -> &Curve {
        &self.dependent
    }

    /// Returns the time of an overlapped read, as a function of the bytes in
    /// use.
    #[must_use]
    pub fn overlapped(&self) -> &Curve {
        &self.overlapped
    }

    /// Returns the sizes of the three caches in bytes, nearest first. For a
    /// cache that cores share, this is one core's share.
    #[must_use]
    pub fn caches(&self) -> [usize; 3] {
        self.caches
    }

    /// Returns the nanoseconds for reading a prefetched cache line from `bytes`
    /// bytes in use.
    #[must_use]
    pub fn prefetched_line_ns(&self, bytes: usize) -> f64 {
        self.overlapped.at(bytes)
    }

    /// Returns the nanoseconds for a dependent read of a cache line from
    /// `bytes` bytes in use.
    #[must_use]
    pub fn dependent_line_ns(&self, bytes: usize) -> f64 {
        self.dependent.at(bytes)
    }

    /// Returns the ratio of measured to computed time of an engine's operation;
    /// 1 if it was not measured.
    #[must_use]
    pub fn factor(&self, engine: &str, operation: Operation) -> f64 {
        let factor = self.factors.get(&(engine.to_owned(), operation));
        factor.copied().unwrap_or(1.0)
    }

    /// Returns the factors that were set, by engine and operation.
    pub fn factors(&self) -> impl Iterator<Item = (&str, Operation, f64)> {
        let factors = self.factors.iter();
        factors.map(|((engine, operation), factor)| (engine.as_str(), *operation, *factor))
    }

    /// Sets the ratio of measured to computed time of an engine's operation.
    ///
    /// # Errors
    /// [`MachineError::BadPrice`] unless the factor is above 0 and below 1000.
    pub fn set_factor(
        &mut self,
        engine: &str,
        operation: Operation,
        factor: f64,
    ) -> Result<(), MachineError> {
        let factor = price("factor", factor, 1000.0)?;
        self.factors.insert((engine.to_owned(), operation), factor);
        Ok(())
    }

    /// Returns the computed time of work in nanoseconds, without factors.
    #[must_use]
    pub fn ns(&self, work: &Work) -> f64 {
        let reads = work.reads.iter().map(|read| {
            let curve = if read.overlapped {
                &self.overlapped
            } else {
                &self.dependent
            };
            read.lines * curve.at(read.working_set)
        });
        work.instructions * self.instruction_ns
            + work.mispredictions * self.misprediction_ns
            + reads.sum::<f64>()
    }

    /// Returns the numbers of lines that work reads from each cache and from
    /// memory. The function assumes that the data in use fills the nearest
    /// cache first, then the next one.
    #[must_use]
    pub fn levels(&self, work: &Work) -> Levels {
        let mut levels = Levels::default();
        for read in &work.reads {
            let bytes = (read.working_set as f64).max(1.0);
            let mut held = 0.0_f64;
            for (lines, cache) in levels.caches.iter_mut().zip(self.caches) {
                let share = (cache as f64 / bytes).min(1.0).max(held);
                *lines += read.lines * (share - held);
                held = share;
            }
            levels.memory += read.lines * (1.0 - held);
        }
        levels
    }
}

fn price(name: &'static str, found: f64, limit: f64) -> Result<f64, MachineError> {
    if found > 0.0 && found < limit {
        Ok(found)
    } else {
        Err(MachineError::BadPrice { name, found, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_memory_is_slower() {
        let machine = Machine::default();
        for curve in [machine.dependent(), machine.overlapped()] {
            let sizes = (0..40).map(|power| curve.at(1 << power));
            assert!(sizes.clone().zip(sizes.skip(1)).all(|(a, b)| a <= b));
            assert_eq!(curve.at(0), curve.at(1000));
        }
        assert!((machine.prefetched_line_ns(1_000_000) - 0.7).abs() < 1e-9);
        let bytes = 100_000_000;
        assert!(machine.dependent_line_ns(bytes) > 4.0 * machine.prefetched_line_ns(bytes));
    }

    #[test]
    fn curves_go_through_their_points() {
        let points = [(10.0, 1.0), (1000.0, 3.0)];
        let curve = Curve::new(&points).unwrap();
        let values = [1, 10, 100, 1000, 5000].map(|bytes| curve.at(bytes));
        for (found, expected) in values.into_iter().zip([1.0, 1.0, 2.0, 3.0, 3.0]) {
            assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
        }
        assert_eq!(curve.points(), points);
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        assert_eq!(Curve::new(&[]), Err(MachineError::NoPoints));
        let bad: [&[(f64, f64)]; 6] = [
            &[(0.0, 1.0)],
            &[(10.0, 0.0)],
            &[(10.0, f64::NAN)],
            &[(f64::INFINITY, 1.0)],
            &[(10.0, 2.0), (10.0, 2.0)],
            &[(10.0, 2.0), (20.0, 1.0)],
        ];
        for points in bad {
            let error = Curve::new(points).unwrap_err();
            let MachineError::BadPoint { number, .. } = error else {
                panic!("{points:?}: {error}");
            };
            assert_eq!(number, points.len());
        }
        let flat = Curve::new(&[(1.0, 1.0)]).unwrap();
        for (price, other) in [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, 1e9)] {
            let machine = Machine::new(price, other, flat.clone(), flat.clone(), [1, 2, 3]);
            assert!(matches!(machine, Err(MachineError::BadPrice { .. })));
        }
    }

    #[test]
    fn work_is_added_and_scaled() {
        let machine = Machine::default();
        let walk = Work::of(20.0).mispredicting(2.0).reading(3.0, 1 << 20);
        let scan = Work::of(5.0)
            .reading_ahead(4.0, 1 << 20)
            .reading(1.0, 1 << 20);
        let combined = walk.clone() + scan.clone();
        assert_eq!(combined.reads().len(), 2);
        let sum = machine.ns(&walk) + machine.ns(&scan);
        assert!((machine.ns(&combined) - sum).abs() < 1e-9);
        assert!((machine.ns(&(combined * 3.0)) - 3.0 * sum).abs() < 1e-9);
        assert_eq!(machine.ns(&Work::default()), 0.0);
    }

    #[test]
    fn levels_have_every_line_once() {
        let flat = Curve::new(&[(1.0, 1.0)]).unwrap();
        let machine = Machine::new(1.0, 1.0, flat.clone(), flat, [1000, 4000, 16_000]).unwrap();
        let work = Work::of(1.0).reading(8.0, 500).reading_ahead(80.0, 32_000);
        let levels = machine.levels(&work);
        let expected = [8.0 + 2.5, 7.5, 30.0, 40.0];
        let lines = [
            levels.caches[0],
            levels.caches[1],
            levels.caches[2],
            levels.memory,
        ];
        for (found, expected) in lines.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{levels:?}");
        }
    }

    #[test]
    fn factors_are_kept_by_engine_and_operation() {
        let mut machine = Machine::default();
        machine.set_factor("tss", Operation::Batch, 1.5).unwrap();
        assert_eq!(machine.factor("tss", Operation::Batch), 1.5);
        assert_eq!(machine.factor("tss", Operation::Single), 1.0);
        assert_eq!(machine.factor("forest", Operation::Batch), 1.0);
        assert!(
            machine
                .set_factor("tss", Operation::Batch, f64::NAN)
                .is_err()
        );
        let factors: Vec<_> = machine.factors().collect();
        assert_eq!(factors, [("tss", Operation::Batch, 1.5)]);
    }
}
