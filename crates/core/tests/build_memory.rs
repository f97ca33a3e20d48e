//! Memory of builds: the counted peak agrees with the allocator and is limited
//! before allocation. A stopped or refused build leaves nothing allocated.

use std::ops::ControlFlow;
use std::sync::Arc;

use classyard::author::{Memory, Monitor};
use classyard::classifier::MetricValue;
use classyard::{
    ActionId, BuildError, Classifier, EngineSpec, Field, FieldMatch, Limits, MatchKind, NoProgress,
    Priority, Progress, RuleId, RuleSet, Schema, Stats,
};

mod allocations;

use allocations::{bytes, requests};

/// Bytes that may be allocated before they are counted, plus a share of the
/// counted bytes. Structures of small allocations are counted every few hundred
/// rules, and the smallest structures are not counted.
fn slack(bytes: usize) -> usize {
    (64 << 10) + bytes / 10
}

/// A pseudorandom number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) % bound
    }

    fn bits(&mut self) -> u128 {
        (0..6).fold(0, |bits, _| bits << 24 | u128::from(self.below(1 << 24)))
    }
}

/// Returns a typical match of a field: few lengths and masks, many values.
fn field_match(field: &Field, random: &mut Random) -> FieldMatch {
    let (width, max_value) = (field.width(), field.max_value());
    if random.below(4) == 0 {
        return FieldMatch::Any;
    }
    match field.kind() {
        MatchKind::Exact => FieldMatch::Exact((random.bits() % 200) & max_value),
        MatchKind::Prefix => {
            let length = width - u32::try_from(random.below(4)).unwrap() * (width / 8).max(1);
            let value = random.bits() & max_value;
            FieldMatch::Prefix {
                value: value >> (width - length) << (width - length),
                length,
            }
        }
        MatchKind::Range => {
            let (a, b) = (random.bits() & max_value, random.bits() & max_value);
            FieldMatch::Range {
                low: a.min(b),
                high: a.max(b),
            }
        }
        MatchKind::Ternary => {
            let mask = random.bits() & random.bits() & max_value;
            FieldMatch::Ternary {
                value: random.bits() & mask,
                mask,
            }
        }
    }
}

fn rules(schema: &Arc<Schema>, count: usize) -> RuleSet {
    let mut random = Random(count as u64);
    let mut rules = RuleSet::new(schema);
    rules.reserve(count);
    for number in 0..count {
        let fields = schema.field_ids().map(|id| schema.field(id));
        let matches: Vec<FieldMatch> = fields
            .map(|field| field_match(field, &mut random))
            .collect();
        let priority = Priority(u32::try_from(random.below(1000)).unwrap());
        let id = RuleId::from_index(number);
        rules.add(id, priority, ActionId(0), &matches).unwrap();
    }
    rules
}

/// Returns schemas with keys of 1, 2, 5, 12 and 16 words. In the last two,
/// hardly any two rules have the same mask.
fn schemas() -> Vec<Arc<Schema>> {
    let one = vec![
        Field::new("port", 16, MatchKind::Range),
        Field::new("address", 32, MatchKind::Prefix),
    ];
    let wide = |fields: usize| {
        let field = |number| Field::new(&format!("f{number}"), 64, MatchKind::Ternary);
        Schema::new("wide", (0..fields).map(field).collect()).unwrap()
    };
    vec![
        Schema::new("one", one).unwrap(),
        Schema::ipv4_5tuple(),
        Schema::ipv6_5tuple(),
        Schema::openflow15(),
        wide(16),
    ]
}

fn counted(classifier: &dyn Classifier) -> usize {
    match classifier.stats().metric(Stats::PEAK_BYTES) {
        Some(MetricValue::Bytes(peak)) => peak,
        other => panic!("{other:?} instead of peak bytes"),
    }
}

/// Returns all engines, with a fixed seed since the numbers depend on hashing.
/// Engines that wrap others build these as usual, so each is tried with one
/// inner engine.
fn specs() -> impl Iterator<Item = EngineSpec> {
    let (alone, wrapping): (Vec<_>, Vec<_>) =
        EngineSpec::all().partition(|spec| spec.inner().is_none());
    let mut wrapping = wrapping;
    wrapping.dedup_by_key(|spec| spec.engine().name);
    let specs = alone.into_iter().chain(wrapping);
    specs.map(|spec| spec.seeded(7))
}

/// Engines that are rebuilt for each change take time and memory that grow
/// faster than the number of rules. They get fewer rules.
fn is_slow(spec: &EngineSpec) -> bool {
    !spec.is_dynamic() || spec.inner().is_some()
}

#[test]
fn peak_bytes_are_counted_and_limited() {
    assert!(requests(|| drop(vec![0_u8; 100])) > 0, "the counter counts");
    for schema in schemas() {
        for (count, few) in [(0, 0), (1, 1), (1000, 600), (9000, 2000)] {
            let (many, few) = (rules(&schema, count), rules(&schema, few));
            for spec in specs() {
                let rules = if is_slow(&spec) { &few } else { &many };
                let what = format!("{spec}, {} rules of {}", rules.len(), schema.name());
                let build = |limits: &Limits| spec.build(rules, limits, &mut NoProgress);
                let (built, real) = bytes(|| build(&Limits::default()).unwrap());
                let counted = counted(built.as_ref());
                drop(built);
                assert!(
                    real.peak <= counted + slack(counted),
                    "{what}: {counted} bytes are counted, {} were taken",
                    real.peak
                );
                assert!(
                    counted <= real.peak + real.peak / 2,
                    "{what}: {counted} bytes are counted, only {} were taken",
                    real.peak
                );
                let enough = Limits::default().with_peak_bytes(counted);
                let again = build(&enough);
                assert!(again.is_ok(), "{what}: {:?}", again.err());
                for share in [2, 10] {
                    let limit = counted / share;
                    let few = Limits::default().with_peak_bytes(limit);
                    let (refused, real) = bytes(|| build(&few).err());
                    let is_refused = matches!(
                        refused,
                        Some(BuildError::TooManyPeakBytes { needed, limit: said, .. })
                            if needed > limit && said == limit
                    );
                    assert!(is_refused || counted == 0, "{what}: {refused:?}");
                    assert!(
                        real.peak <= limit + slack(limit),
                        "{what}: {} bytes were taken, the limit is {limit}",
                        real.peak
                    );
                    drop(refused);
                }
            }
        }
    }
}

/// The limit on the finished engine's bytes is checked during the build.
#[test]
fn a_build_that_would_hold_too_much_ends_early() {
    for schema in schemas() {
        let rules = rules(&schema, 3000);
        for spec in specs() {
            let built = spec.build(&rules, &Limits::default(), &mut NoProgress);
            let built = built.unwrap();
            let (held, peak) = (built.stats().bytes(), counted(built.as_ref()));
            drop(built);
            let limits = |bytes| Limits::default().with_bytes(bytes);
            let enough = spec.build(&rules, &limits(held), &mut NoProgress);
            assert!(enough.is_ok(), "{spec}: {:?}", enough.err());
            let build = || spec.build(&rules, &limits(held / 8), &mut NoProgress).err();
            let (refused, real) = bytes(build);
            let is_refused = matches!(refused, Some(BuildError::TooManyBytes { .. }));
            assert!(is_refused, "{spec}: {refused:?}");
            let max_peak = peak / 2 + slack(0);
            assert!(
                real.peak <= max_peak,
                "{spec}: {} bytes of {peak}",
                real.peak
            );
        }
    }
}

/// Stops a build at a given report. Records the maximum number of steps of a
/// stage between two reports, and the first and last report of each stage.
struct StopAt {
    left: usize,
    reports: usize,
    last: (&'static str, usize),
    longest: usize,
    stages: Vec<(&'static str, [usize; 2])>,
}

impl StopAt {
    fn new(left: usize) -> StopAt {
        StopAt {
            left,
            reports: 0,
            last: ("", 0),
            longest: 0,
            stages: Vec::new(),
        }
    }

    /// Returns the reports to stop at: the first and last of each stage, and
    /// some between.
    fn stops(&self) -> Vec<usize> {
        let ends = self.stages.iter().flat_map(|(_, ends)| *ends);
        let between = (0..self.reports).step_by((self.reports / 4).max(1));
        let mut stops: Vec<usize> = ends.chain(between).collect();
        stops.sort_unstable();
        stops.dedup();
        stops
    }
}

impl Progress for StopAt {
    fn report(&mut self, stage: &'static str, done: usize, total: usize) -> ControlFlow<()> {
        assert!(done <= total, "{done} of {total} while {stage}");
        // This stage counts the rules of a whole table at a time, and reports
        // the work in between.
        if self.last.0 == stage && done >= self.last.1 && stage != "selecting tables" {
            self.longest = self.longest.max(done - self.last.1);
        }
        match self.stages.iter_mut().find(|(name, _)| *name == stage) {
            Some((_, [_, last])) => *last = self.reports,
            None => self.stages.push((stage, [self.reports; 2])),
        }
        self.last = (stage, done);
        self.reports += 1;
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        ControlFlow::Continue(())
    }
}

/// A build copies, places or marks at most [`Monitor::STEPS`] rules, plus one
/// run of rules, between two reports. A build stopped at any report leaves
/// nothing allocated.
#[test]
fn builds_report_often_and_can_be_stopped_at_each_report() {
    for schema in schemas() {
        let (many, few) = (rules(&schema, 6000), rules(&schema, 4200));
        for spec in specs() {
            let rules = if is_slow(&spec) { &few } else { &many };
            let what = format!("{spec} of {}", schema.name());
            let mut observer = StopAt::new(usize::MAX);
            let built = spec.build(rules, &Limits::default(), &mut observer);
            drop(built.unwrap());
            let (reports, longest) = (observer.reports, observer.longest);
            assert!(
                (1..=Monitor::STEPS + 1024).contains(&longest),
                "{what}: {longest} rules between two reports"
            );
            // Rules are copied, then sorted or placed.
            assert!(
                reports > rules.len() / Monitor::STEPS + 2,
                "{what}: {reports}"
            );
            assert!(!observer.stages.is_empty(), "{what}");
            for at in observer.stops() {
                let build = || {
                    let mut observer = StopAt::new(at);
                    spec.build(rules, &Limits::default(), &mut observer).err()
                };
                let (stopped, real) = bytes(build);
                let is_stopped = matches!(stopped, Some(BuildError::Stopped { .. }));
                assert!(
                    is_stopped,
                    "{what}: {stopped:?} at report {at} of {reports}"
                );
                assert_eq!(real.left, 0, "{what}: bytes left after report {at}");
            }
        }
    }
}

/// Plans of re-optimisable engines are counted, limited and stopped like
/// builds.
#[test]
fn plans_are_watched_like_builds() {
    for schema in schemas() {
        let (many, few) = (rules(&schema, 6000), rules(&schema, 2000));
        for spec in specs() {
            let rules = if is_slow(&spec) { &few } else { &many };
            let built = spec.build(rules, &Limits::default(), &mut NoProgress);
            let mut built = built.unwrap();
            let dynamic = built.as_dynamic();
            let Some(fitted) = dynamic.as_deref().and_then(|engine| engine.reoptimise()) else {
                continue;
            };
            let what = format!("{spec} of {}", schema.name());
            let snapshot = fitted.snapshot();
            let mut memory = Memory::unlimited();
            let mut observer = StopAt::new(usize::MAX);
            let (plan, real) = bytes(|| snapshot.compute_within(&mut memory, &mut observer));
            assert!(plan.unwrap().is_some());
            let (peak, reports) = (memory.peak(), observer.reports);
            assert!(
                real.peak <= peak + slack(peak) && peak <= real.peak + real.peak / 2,
                "{what}: {peak} bytes are counted, {} were taken",
                real.peak
            );
            assert!(reports >= rules.len() / Monitor::STEPS, "{what}: {reports}");
            let limits = Limits::default().with_peak_bytes(peak / 2);
            let mut memory = Memory::new(&limits);
            let refused = bytes(|| snapshot.compute_within(&mut memory, &mut NoProgress).err());
            let (error, real) = refused;
            let is_refused = matches!(error, Some(BuildError::TooManyPeakBytes { .. }));
            assert!(is_refused, "{what}: {error:?}");
            assert!(
                real.peak <= peak / 2 + slack(peak / 2),
                "{what}: {}",
                real.peak
            );
            for at in observer.stops() {
                let stop = || snapshot.compute(&mut StopAt::new(at)).err();
                let (stopped, real) = bytes(stop);
                assert!(
                    matches!(stopped, Some(BuildError::Stopped { .. })),
                    "{what}"
                );
                assert_eq!(real.left, 0, "{what}: bytes left after report {at}");
            }
        }
    }
}
