//! What work costs on a processor.
//!
//! # Idea
//! The cost model of [DEC14] §IV: an operation is so many instructions,
//! mispredicted branches and reads of cache lines, which is its [`Work`], and a
//! [`Machine`] says how long each of these takes. Engines know their work from
//! their own structures; what it costs is the processor's. Reads cost what the
//! cache costs in which the data that is in use fits, so each has its *working
//! set*, and comes as one of two kinds: *dependent* reads, whose address is known
//! only when the read before is done, and *overlapped* ones, which were
//! prefetched or are under way together.
//!
//! ```text
//! ns(work) = instructions · instruction_ns + mispredictions · misprediction_ns
//!          + Σ lines · dependent(working set) + Σ lines · overlapped(working set)
//! ```
//!
//! [`Machine::default`] is the machine on which the first estimates were fitted;
//! `classyard calibrate` measures another one. What the model does not know of an
//! engine on a machine goes into a [factor](Machine::factor) for each engine and
//! operation, 1 unless calibration says otherwise.
//!
//! # Where we differ from the paper, and why
//! [DEC14] counts hits in each cache and multiplies with its latency. Ours are
//! curves over the size of the working set: a set of twice the second cache's
//! size is in that cache half of the time, and pages of memory count as well.
//! [`Machine::levels`] counts reads by cache, as the paper does, to explain.
//!
//! # References
//! [DEC14] §IV.
//!
//! [DEC14]: crate::papers#dec14

#![allow(clippy::cast_precision_loss)] // estimates

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Mul};

use thiserror::Error;

/// What an operation does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Instructions, in units of mixed straight code: arithmetic, comparisons
    /// and loads from the first cache, several of which run at once.
    pub instructions: f64,
    /// Branches that the processor does not foresee.
    pub mispredictions: f64,
    reads: Vec<LineReads>,
}

/// Cache lines that are read from the same data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineReads {
    /// How many.
    pub lines: f64,
    /// Bytes of all the data that is in use while they are read.
    pub working_set: usize,
    /// Whether they were prefetched, or are under way together.
    pub overlapped: bool,
}

impl Work {
    /// Instructions alone.
    #[must_use]
    pub fn of(instructions: f64) -> Work {
        Work {
            instructions,
            ..Work::default()
        }
    }

    /// With more branches that the processor does not foresee.
    #[must_use]
    pub fn mispredicting(mut self, branches: f64) -> Work {
        self.mispredictions += branches;
        self
    }

    /// With lines read one after the other, each at an address that the one
    /// before says, of `working_set` bytes.
    #[must_use]
    pub fn reading(self, lines: f64, working_set: usize) -> Work {
        self.with(LineReads {
            lines,
            working_set,
            overlapped: false,
        })
    }

    /// With lines that were prefetched or are read together, of `working_set`
    /// bytes.
    #[must_use]
    pub fn reading_ahead(self, lines: f64, working_set: usize) -> Work {
        self.with(LineReads {
            lines,
            working_set,
            overlapped: true,
        })
    }

    /// With more reads. Those of the same kind and data are joined.
    #[must_use]
    pub fn with(mut self, read: LineReads) -> Work {
        let same = |other: &&mut LineReads| {
            (other.working_set, other.overlapped) == (read.working_set, read.overlapped)
        };
        match self.reads.iter_mut().find(same) {
            Some(other) => other.lines += read.lines,
            None => self.reads.push(read),
        }
        self
    }

    /// The reads, one entry for each kind and size of data.
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

/// Nanoseconds for a line, by the bytes of the data that is in use: straight
/// between its points, over the logarithm of bytes, and flat beyond them.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

/// Why a machine cannot be described so.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A curve without points.
    #[error("a curve needs at least one point")]
    NoPoints,
    /// A point that is no size and time, or smaller than the one before.
    #[error("point {number}, {bytes} bytes at {ns} ns: {expected}")]
    BadPoint {
        /// Which point, from 1.
        number: usize,
        /// Its working set.
        bytes: f64,
        /// Its time.
        ns: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A price or factor that is no positive number.
    #[error("{name} is {found}; expected a number above 0 and below {limit}")]
    BadPrice {
        /// Which.
        name: &'static str,
        /// What it was.
        found: f64,
        /// What it must be below.
        limit: f64,
    },
}

impl Curve {
    /// A curve through points of bytes and nanoseconds.
    ///
    /// # Errors
    /// [`MachineError`] unless there are points, bytes increase from point to
    /// point, and nanoseconds are positive and do not decrease.
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

    /// The points, by increasing bytes.
    #[must_use]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Nanoseconds for a line of so many bytes.
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
        let below = self.points[above - 1];
        let way = (bytes / below.0).ln() / (above_point.0 / below.0).ln();
        below.1 + way * (above_point.1 - below.1)
    }
}

/// The longest that anything may take.
const MOST_NS: f64 = 1e9;

/// What an engine does, as far as machines have factors for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A header of a batch.
    Batch,
    /// A header looked up alone.
    Single,
    /// A rule inserted or removed.
    Update,
    /// Building.
    Build,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] = [
        Operation::Batch,
        Operation::Single,
        Operation::Update,
        Operation::Build,
    ];

    /// Its name: `batch`, `single`, `update` or `build`.
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

/// Where a line is found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    /// Lines of the first, second and third cache.
    pub caches: [f64; 3],
    /// Lines of memory.
    pub memory: f64,
}

/// What work costs on a processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    instruction_ns: f64,
    misprediction_ns: f64,
    dependent: Curve,
    overlapped: Curve,
    caches: [usize; 3],
    factors: BTreeMap<(String, Operation), f64>,
}

/// The machine to which work was fitted: a virtual one with an AMD EPYC of family 26
/// (Zen 5, 2.6 GHz, two processors), as `classyard calibrate` measured it in November
/// 2026, the median of four runs.
impl Default for Machine {
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
    /// A machine with prices of its own, and no factors.
    ///
    /// # Errors
    /// [`MachineError::BadPrice`] for a price that is no positive number.
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

    /// Nanoseconds for an instruction of straight code.
    #[must_use]
    pub fn instruction_ns(&self) -> f64 {
        self.instruction_ns
    }

    /// Nanoseconds for a branch that was not foreseen.
    #[must_use]
    pub fn misprediction_ns(&self) -> f64 {
        self.misprediction_ns
    }

    /// What reading a line takes whose address was not known before.
    #[must_use]
    pub fn dependent(&self) -> &Curve {
        &self.dependent
    }

    /// What reading a line takes that was prefetched.
    #[must_use]
    pub fn overlapped(&self) -> &Curve {
        &self.overlapped
    }

    /// Bytes of the three caches, the nearest first; a core's share of a shared
    /// one.
    #[must_use]
    pub fn caches(&self) -> [usize; 3] {
        self.caches
    }

    /// What reading a cache line takes, in nanoseconds, when it was prefetched and
    /// lies anywhere in `bytes` bytes that are in use.
    #[must_use]
    pub fn prefetched_line_ns(&self, bytes: usize) -> f64 {
        self.overlapped.at(bytes)
    }

    /// The same when nothing said early where it would be.
    #[must_use]
    pub fn dependent_line_ns(&self, bytes: usize) -> f64 {
        self.dependent.at(bytes)
    }

    /// By how much an engine takes longer here than its work says; 1 if nobody
    /// measured that.
    #[must_use]
    pub fn factor(&self, engine: &str, operation: Operation) -> f64 {
        let factor = self.factors.get(&(engine.to_owned(), operation));
        factor.copied().unwrap_or(1.0)
    }

    /// The factors that were set, by engine and operation.
    pub fn factors(&self) -> impl Iterator<Item = (&str, Operation, f64)> {
        let factors = self.factors.iter();
        factors.map(|((engine, operation), factor)| (engine.as_str(), *operation, *factor))
    }

    /// Sets by how much an engine takes longer than its work says.
    ///
    /// # Errors
    /// [`MachineError::BadPrice`] unless it is above 0 and below 1000.
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

    /// What work takes, in nanoseconds.
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

    /// Where work finds the lines that it reads, if what is in use fills the
    /// caches from the nearest on.
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
        let found = [1, 10, 100, 1000, 5000].map(|bytes| curve.at(bytes));
        for (found, expected) in found.into_iter().zip([1.0, 1.0, 2.0, 3.0, 3.0]) {
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
        let both = walk.clone() + scan.clone();
        assert_eq!(both.reads().len(), 2);
        let sum = machine.ns(&walk) + machine.ns(&scan);
        assert!((machine.ns(&both) - sum).abs() < 1e-9);
        assert!((machine.ns(&(both * 3.0)) - 3.0 * sum).abs() < 1e-9);
        assert_eq!(machine.ns(&Work::default()), 0.0);
    }

    #[test]
    fn levels_have_every_line_once() {
        let flat = Curve::new(&[(1.0, 1.0)]).unwrap();
        let machine = Machine::new(1.0, 1.0, flat.clone(), flat, [1000, 4000, 16_000]).unwrap();
        let work = Work::of(1.0).reading(8.0, 500).reading_ahead(80.0, 32_000);
        let levels = machine.levels(&work);
        let expected = [8.0 + 2.5, 7.5, 30.0, 40.0];
        let found = [
            levels.caches[0],
            levels.caches[1],
            levels.caches[2],
            levels.memory,
        ];
        for (found, expected) in found.into_iter().zip(expected) {
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
        let all: Vec<_> = machine.factors().collect();
        assert_eq!(all, [("tss", Operation::Batch, 1.5)]);
    }
}
