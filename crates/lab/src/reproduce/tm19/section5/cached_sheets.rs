//! Measured values of all rule sets with and without caches: Table V, and the contenders of
//! Figs. 13 to 15 with their caches.

use classyard_report::failure::Failure;
use classyard_workload::generate::Profile;

use super::super::coverage::LEFT_OUT;
use super::cached::{CACHED, Front, Point, measure};
use super::open_vswitch::SwitchRun;
use super::sheets::{names, points};
use super::{CONTENDERS, FOREST, TUPLE_MERGE, TUPLE_SPACE, mpps};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Gap};
use crate::reproduce::statistics::{coordinate, mean};
use crate::reproduce::tm19::sheet::At;

/// The paper's sizes, and the sizes of a quick reproduction.
pub(super) const SIZES: [usize; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
const FEW_SIZES: [usize; 2] = [1_000, 16_000];

/// Indices of caches in the turns of a point.
pub(super) const NO_CACHE: usize = 0;
pub(super) const PAPER_CACHE: usize = 1;
pub(super) const OUR_CACHE: usize = 2;

/// The name of Open vSwitch in tables and pictures.
const OPEN_VSWITCH_LABEL: &str = "Open vSwitch (OVS TSS)";

/// The reason why a case has no measurement of Open vSwitch.
pub(super) const NO_OPEN_VSWITCH: Gap =
    Gap::NotRun("Open vSwitch, which --open-vswitch PROGRAM measures");

/// A mean over sizes needs all sizes of the paper.
const ALL_SIZES: Gap = Gap::NotRun("all sizes of the paper");

/// A contender with its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    /// The index of an engine in [`CONTENDERS`], and of its cache.
    Engine(usize, usize),
    OpenVswitch,
}

/// The paper's contenders.
pub(super) const VPP_TUPLE_MERGE: Cached = Cached::Engine(TUPLE_MERGE, PAPER_CACHE);
pub(super) const VPP_TUPLE_SPACE: Cached = Cached::Engine(TUPLE_SPACE, PAPER_CACHE);

/// The contenders in tables and pictures.
const SHOWN: [Cached; 4] = [
    VPP_TUPLE_MERGE,
    VPP_TUPLE_SPACE,
    Cached::OpenVswitch,
    Cached::Engine(FOREST, OUR_CACHE),
];

impl Cached {
    /// The name without its cache.
    pub(super) fn label(self) -> &'static str {
        match self {
            Cached::Engine(contender, _) => CONTENDERS[contender].label,
            Cached::OpenVswitch => OPEN_VSWITCH_LABEL,
        }
    }

    /// The name of its cache.
    pub(super) fn cache(self) -> &'static str {
        match self {
            Cached::Engine(_, front) => Front::ALL[front].name(),
            Cached::OpenVswitch => "EMC and megaflows",
        }
    }

    /// Returns the packets a second of each turn; `None` if it was not measured.
    fn turns(self, point: &Point, workload: usize) -> Option<Vec<f64>> {
        match self {
            Cached::Engine(contender, front) => {
                Some(point.turns[workload][engine(contender)][front].clone())
            }
            Cached::OpenVswitch => Some(point.open_vswitch.as_ref()?[workload].rates()),
        }
    }

    /// Returns the packets a second: the median of the turns.
    pub(super) fn rate(self, point: &Point, workload: usize) -> Option<f64> {
        match self {
            Cached::Engine(contender, front) => {
                Some(point.rate(workload, engine(contender), front))
            }
            Cached::OpenVswitch => {
                let run = &point.open_vswitch.as_ref()?[workload];
                Some(run.median(|turn| turn.packets_per_second))
            }
        }
    }
}

/// Two contenders whose rates are divided.
type Pair = (Cached, Cached);

/// The measured values of all rule sets.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) sizes: Vec<usize>,
    pub(super) names: Vec<String>,
    pub(super) points: Vec<(At, Point)>,
    /// The name and version of Open vSwitch, if it was measured.
    pub(super) open_vswitch: Option<String>,
}

/// Returns the numbers of rules of a reproduction, ascending.
pub(super) fn sizes(study: &Study<'_>) -> Vec<usize> {
    let default_sizes: &[usize] = if study.args.quick { &FEW_SIZES } else { &SIZES };
    let mut sizes = study.sizes(default_sizes);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Measures all rule sets of these sizes, or returns stored measurements.
pub(super) fn measured(study: &mut Study<'_>, sizes: Vec<usize>) -> Result<Measured, Failure> {
    let switch = study.open_vswitch.as_ref();
    let open_vswitch = switch.map(|switch| switch.borrow().version().to_owned());
    let what = match &open_vswitch {
        None => "pipeline cache".to_owned(),
        Some(version) => format!("pipeline cache and {version}"),
    };
    Ok(Measured {
        points: points(study, &what, &sizes, measure)?,
        names: names(study),
        sizes,
        open_vswitch,
    })
}

/// Returns the index of a contender in a point.
pub(super) fn engine(contender: usize) -> usize {
    let index = CACHED.iter().position(|&other| other == contender);
    index.expect("one of those that get caches")
}

/// Returns the ratio of throughput with a cache to throughput without.
pub(super) fn gain(point: &Point, workload: usize, engine: usize, front: usize) -> f64 {
    point.rate(workload, engine, front) / point.rate(workload, engine, NO_CACHE)
}

impl Measured {
    /// Returns the contenders that were measured.
    pub(super) fn shown(&self) -> Vec<Cached> {
        let shown = SHOWN.into_iter();
        let is_measured = |cached: &Cached| match cached {
            Cached::OpenVswitch => self.open_vswitch.is_some(),
            Cached::Engine(..) => true,
        };
        shown.filter(is_measured).collect()
    }

    /// Returns the mean over rule sets of a size.
    pub(super) fn mean(&self, place: usize, value: impl Fn(&Point) -> f64) -> f64 {
        let points = self.points.iter().filter(|(at, _)| at.1 == place);
        mean(&points.map(|(_, point)| value(point)).collect::<Vec<_>>())
    }

    /// Returns the mean throughput of a size, in millions of packets a second.
    pub(super) fn rate(&self, place: usize, workload: usize, cached: Cached) -> f64 {
        self.mean(place, |point| {
            mpps(cached.rate(point, workload).unwrap_or(f64::NAN))
        })
    }

    /// Returns the mean throughput over rule sets of a profile and a size, in millions of
    /// packets a second.
    pub(super) fn rate_of(&self, at: At, workload: usize, cached: Cached) -> f64 {
        let points = self.points.iter().filter(|(other, _)| *other == at);
        let rates = points.filter_map(|(_, point)| cached.rate(point, workload));
        mean(&rates.map(mpps).collect::<Vec<_>>())
    }

    /// Returns the mean over rule sets of a profile and a size of two contenders' ratio.
    pub(super) fn mean_ratio(&self, at: At, workload: usize, pair: Pair) -> f64 {
        let points = self.points.iter().filter(|(other, _)| *other == at);
        let ratios = points.filter_map(|(_, point)| ratio(point, workload, pair));
        mean(&ratios.collect::<Vec<_>>())
    }

    /// Returns the ratio of throughput with a cache to throughput without, as a mean over
    /// rule sets.
    pub(super) fn gain(
        &self,
        place: usize,
        workload: usize,
        contender: usize,
        front: usize,
    ) -> f64 {
        let engine = engine(contender);
        self.mean(place, |point| gain(point, workload, engine, front))
    }

    /// Returns the mean over sizes, as in the last column of Table V.
    pub(super) fn average(&self, workload: usize, contender: usize, front: usize) -> f64 {
        let gains = (0..self.sizes.len())
            .map(|place| self.gain(place, workload, contender, front))
            .collect::<Vec<_>>();
        mean(&gains)
    }

    /// Returns the mean share of packets that a cache knew.
    pub(super) fn known(
        &self,
        place: usize,
        workload: usize,
        contender: usize,
        front: usize,
    ) -> f64 {
        let engine = engine(contender);
        self.mean(place, |point| point.known[workload][engine][front])
    }

    /// Returns the mean number of flows of the traffic.
    pub(super) fn flows(&self, place: usize, workload: usize) -> f64 {
        self.mean(place, |point| coordinate(point.flows[workload]))
    }

    /// Returns the runs of Open vSwitch with a workload, with their profiles and sizes.
    pub(super) fn switch_runs(&self, workload: usize) -> impl Iterator<Item = (At, &SwitchRun)> {
        let points = self.points.iter();
        points.filter_map(move |(at, point)| Some((*at, &point.open_vswitch.as_ref()?[workload])))
    }

    /// Returns the index of a size.
    pub(super) fn place(&self, size: usize) -> Option<usize> {
        self.sizes.iter().position(|&other| other == size)
    }

    /// Returns a case of a value of all rule sets, if all sizes of the paper were measured.
    /// `None` stands for Open vSwitch that was not measured.
    pub(super) fn pooled(
        &self,
        name: impl Into<String>,
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Case {
        let values: Option<Vec<f64>> = self.points.iter().map(|(_, point)| value(point)).collect();
        match values {
            None => Case::missing(name, NO_OPEN_VSWITCH),
            Some(_) if !SIZES.iter().all(|&size| self.place(size).is_some()) => {
                Case::missing(name, ALL_SIZES)
            }
            Some(values) => Case::samples(name, values),
        }
    }

    /// Returns a case of the ratios of two contenders' rates over the rule sets of a size.
    pub(super) fn at_size(
        &self,
        name: impl Into<String>,
        workload: usize,
        pair: Pair,
        size: usize,
    ) -> Case {
        let Some(place) = self.place(size) else {
            return Case::missing(name, self.gap(pair));
        };
        let points = self.points.iter().filter(|(at, _)| at.1 == place);
        let ratios: Option<Vec<f64>> = points
            .map(|(_, point)| ratio(point, workload, pair))
            .collect();
        match ratios {
            None => Case::missing(name, NO_OPEN_VSWITCH),
            Some(ratios) => Case::samples(name, ratios),
        }
    }

    /// Returns a case of two contenders for each of the paper's seeds at one size, except
    /// the seed `left_out`. The samples of a seed are its rule sets, or the turns of a single
    /// rule set.
    pub(super) fn by_seed(
        &self,
        workload: usize,
        pair: Pair,
        size: usize,
        left_out: Option<&str>,
    ) -> Vec<Case> {
        let seeds = Profile::BUILT_IN.iter();
        let seeds = seeds.filter(|&&seed| left_out != Some(seed));
        let cases = seeds.map(|&seed| {
            let number = self.names.iter().position(|name| name == seed);
            let Some(at) = number.zip(self.place(size)) else {
                return Case::missing(seed, self.gap(pair));
            };
            match self.seed_ratios(at, workload, pair) {
                None => Case::missing(seed, NO_OPEN_VSWITCH),
                Some(ratios) => Case::samples(seed, ratios),
            }
        });
        cases.collect()
    }

    fn seed_ratios(&self, at: At, workload: usize, pair: Pair) -> Option<Vec<f64>> {
        let points = self.points.iter().filter(|(other, _)| *other == at);
        let points: Vec<&Point> = points.map(|(_, point)| point).collect();
        match points[..] {
            [point] => {
                let turns = pair.0.turns(point, workload)?.into_iter();
                let turns = turns.zip(pair.1.turns(point, workload)?);
                Some(turns.map(|(a, b)| a / b).collect())
            }
            _ => points
                .into_iter()
                .map(|point| ratio(point, workload, pair))
                .collect(),
        }
    }

    /// Returns a contender's rate at one size divided by its rate at another size, for each
    /// rule set.
    pub(super) fn growth(
        &self,
        workload: usize,
        contender: usize,
        front: usize,
        (from, to): (usize, usize),
    ) -> Vec<f64> {
        let rates = |place: usize| {
            let points = self.points.iter().filter(move |(at, _)| at.1 == place);
            points.map(move |(_, point)| point.rate(workload, engine(contender), front))
        };
        rates(to)
            .zip(rates(from))
            .map(|(last, first)| last / first)
            .collect()
    }

    /// The reason why a size or a seed has no measurement of two contenders.
    fn gap(&self, pair: Pair) -> Gap {
        let needs_switch = [pair.0, pair.1].contains(&Cached::OpenVswitch);
        match needs_switch && self.open_vswitch.is_none() {
            true => NO_OPEN_VSWITCH,
            false => LEFT_OUT,
        }
    }
}

/// Returns the ratio of two contenders' rates; `None` if one was not measured.
pub(super) fn ratio(point: &Point, workload: usize, (a, b): Pair) -> Option<f64> {
    Some(a.rate(point, workload)? / b.rate(point, workload)?)
}

#[cfg(test)]
impl Measured {
    /// Creates a rule set of each built-in profile for each size. `rates` receives the
    /// workload, the index of the profile and the index of the size, and returns millions of
    /// packets a second of `tuplemerge` and `tss` with the paper's cache, and of Open
    /// vSwitch if it was measured. Each of five turns is up to 2 % slower or faster.
    pub(super) fn of_rates(
        sizes: &[usize],
        rates: impl Fn(usize, usize, usize) -> ([f64; 2], Option<f64>),
    ) -> Measured {
        let turns = |rate: f64| [0.98, 0.99, 1.0, 1.01, 1.02].map(|share| share * rate * 1e6);
        let mut measured = Measured {
            sizes: sizes.to_vec(),
            names: Profile::BUILT_IN.map(str::to_owned).to_vec(),
            ..Measured::default()
        };
        for place in 0..sizes.len() {
            for number in 0..measured.names.len() {
                let of_workload = [0, 1].map(|workload| rates(workload, number, place));
                let switch = [0, 1].map(|workload: usize| of_workload[workload].1.map(turns));
                let mut point = Point::of_rates(of_workload.map(|([tm, tss], _)| {
                    let mut rates = [[1.0; 3]; CACHED.len()];
                    rates[engine(TUPLE_MERGE)][PAPER_CACHE] = tm;
                    rates[engine(TUPLE_SPACE)][PAPER_CACHE] = tss;
                    rates
                }));
                for engines in point.turns.iter_mut().flatten().flatten() {
                    *engines = turns(engines[0] / 1e6).to_vec();
                }
                if let [Some(synthetic), Some(real)] = switch {
                    point.open_vswitch = Some([synthetic, real].map(SwitchRun::of_rates));
                    measured.open_vswitch = Some("Open vSwitch 3".to_owned());
                }
                measured.points.push(((number, place), point));
            }
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::super::SYNTHETIC_TRAFFIC;
    use super::*;

    const PAIR: Pair = (VPP_TUPLE_MERGE, Cached::OpenVswitch);

    #[test]
    fn one_rule_set_has_its_turns_as_samples() {
        let measured = Measured::of_rates(&[64_000], |_, _, _| ([6.0, 1.0], Some(2.0)));
        let mut cases = measured.by_seed(SYNTHETIC_TRAFFIC, PAIR, 64_000, Some("acl1"));
        assert_eq!(cases.len(), 11);
        let ([low, middle, high], samples) = cases.remove(0).interval().unwrap();
        assert_eq!(samples, 5);
        for value in [low, middle, high] {
            assert!((value - 3.0).abs() < 1e-9, "{value}");
        }
        let case = measured.at_size("", SYNTHETIC_TRAFFIC, PAIR, 64_000);
        assert_eq!(case.interval().unwrap().1, 12);
    }

    #[test]
    fn gaps_name_the_option_or_the_size() {
        let with = Measured::of_rates(&[64_000], |_, _, _| ([6.0, 1.0], Some(2.0)));
        let without = Measured::of_rates(&[64_000], |_, _, _| ([6.0, 1.0], None));
        let texts = |measured: &Measured| {
            [1_000, 64_000].map(|size| measured.at_size("", 0, PAIR, size).text())
        };
        assert!(texts(&with)[0].contains("left out"), "{:?}", texts(&with));
        let option = "not measured: Open vSwitch, which --open-vswitch PROGRAM measures";
        assert_eq!(texts(&without), [option; 2]);
        assert_eq!(without.by_seed(0, PAIR, 64_000, None)[3].text(), option);
        let pooled = with.pooled("", |point| ratio(point, 0, PAIR));
        assert!(pooled.text().contains("all sizes"), "{}", pooled.text());
        assert_eq!(with.shown().len(), without.shown().len() + 1);
    }
}
