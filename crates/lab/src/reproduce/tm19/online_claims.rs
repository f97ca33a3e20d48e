//! Claims of [TM19] in §IV.B and §IV.C, compared with the measured values.
//!
//! [TM19]: classyard::papers#tm19

use super::coverage::Coverage;
use super::online_engines::{Measured, PARTITION_SORT, TUPLE_MERGE, TUPLE_SPACE};
use super::sheet::Sheet;
use crate::reproduce::claims::{Case, Claim, Gap, Part, Threshold};
use crate::reproduce::statistics::coordinate;

/// The paper's ratios of times and of memory: PS over TM, TSS over TM, and so on.
pub(super) const UPDATE_PS: f64 = 1.30;
pub(super) const LOOKUP_PS: f64 = 1.342;
pub(super) const LOOKUP_TSS: f64 = 7.43;
pub(super) const UPDATE_TSS: f64 = 1.39;
const MEMORY_PS: f64 = 2.71;
const MEMORY_TSS: f64 = 1.93;
const LOOKUP_TSS_PS: f64 = 5.31;
const UPDATE_PS_TSS: f64 = 1.77;

/// The paper's largest and smallest numbers of rules.
pub(super) const LARGEST: usize = 256_000;
const SMALLEST: usize = 1_000;

/// The seeds with the slowest lookups in the paper, and the number of seeds for which
/// TupleMerge is faster.
const SLOWEST: [&str; 2] = ["acl2", "fw1"];
const FASTER_SEEDS: usize = 10;

/// A ratio is the paper's if it is at least the paper's less a tenth and at most twice the
/// paper's: above that, the other engine is a slower or larger one here than in the paper.
fn of_paper(ratio: f64) -> Threshold {
    Threshold::Within(ratio * 0.9, ratio * 2.0)
}

/// Titles of tables in the report.
const UPDATE_GRID: &str = "Time of an update";
const LOOKUP_GRID: &str = "Time of a lookup";
const MEMORY_GRID: &str = "Memory of the search structure";

/// The values of one kind, and the size and seeds that they are of.
#[derive(Clone, Copy)]
struct View<'a> {
    sheet: &'a Sheet,
    coverage: Coverage<'a>,
    /// The quantity, and the title of its table.
    what: &'static str,
    grid: &'static str,
}

impl View<'_> {
    /// Returns the claim's direction and size of an average ratio over all rule sets.
    fn average(&self, claim: Claim, engines: &str, (a, b): (usize, usize), paper: f64) -> Claim {
        let case = || {
            let ratios = self.sheet.ratios(a, b, |_| true);
            self.coverage.pooled("", ratios)
        };
        let compared = format!("{}, {engines}, over all rule sets", self.what);
        claim
            .part(
                Part::new(compared.clone(), Threshold::Above(1.0))
                    .paper(paper)
                    .case(case())
                    .grid(self.grid, ""),
            )
            .part(
                Part::new(compared, of_paper(paper))
                    .paper(paper)
                    .case(case())
                    .grid(self.grid, ""),
            )
    }

    /// Returns a comparison of two engines at the largest size.
    fn at_largest(
        &self,
        engines: &str,
        (a, b): (usize, usize),
        threshold: Threshold,
        paper: f64,
    ) -> Part {
        let ratios = |place: usize| self.sheet.ratios(a, b, |at| at.1 == place);
        Part::new(format!("{} at 256k, {engines}", self.what), threshold)
            .paper(paper)
            .case(self.coverage.at_size(LARGEST, "", ratios))
            .grid(self.grid, "")
    }

    /// Returns PS over TM at each size.
    fn at_every_size(&self) -> Part {
        let sheet = self.sheet;
        let ratios = move |place| sheet.ratios(PARTITION_SORT, TUPLE_MERGE, |at| at.1 == place);
        Part::new(format!("{}, PS / TM", self.what), Threshold::Above(1.0))
            .cases(self.coverage.by_size(|_| true, ratios))
            .grid(self.grid, "")
    }

    /// Returns PS over TM for each seed at the largest size.
    fn for_every_seed(&self) -> Part {
        let sheet = self.sheet;
        let ratios = move |number, place| {
            sheet.ratios(PARTITION_SORT, TUPLE_MERGE, |at| at == (number, place))
        };
        Part::new(
            format!("{} at 256k, PS / TM, seed by seed", self.what),
            Threshold::Above(1.0),
        )
        .cases(self.coverage.by_seed(LARGEST, ratios))
        .grid("Each profile at", "")
    }

    /// Returns for each of the slowest seeds its time over the greatest time of another seed.
    fn slowest(&self, engine: usize) -> Vec<Case> {
        let engine_name = ["TM", "PS"][usize::from(engine == PARTITION_SORT)];
        let is_complete = self.coverage.has_seeds();
        let cases = SLOWEST.map(|seed| {
            let name = format!("{seed}, {engine_name}");
            let places = self.coverage.place(LARGEST).zip(self.coverage.number(seed));
            let Some((place, seed_number)) = places.filter(|_| is_complete) else {
                return Case::missing(name, Gap::NotRun("all seeds at 256k"));
            };
            let times = |number| self.sheet.values(engine, |at| at == (number, place));
            let times_of_others: Vec<Vec<f64>> = (0..self.coverage.names.len())
                .filter(|&number| !SLOWEST.contains(&self.coverage.names[number].as_str()))
                .map(times)
                .collect();
            let ratios = times(seed_number)
                .into_iter()
                .enumerate()
                .map(|(list, time)| {
                    let list_times = times_of_others.iter().filter_map(|times| times.get(list));
                    time / list_times.copied().fold(0.0, f64::max)
                });
            Case::samples(name, ratios.collect::<Vec<_>>())
        });
        cases.to_vec()
    }
}

/// Returns all claims.
pub(super) fn claims(measured: &Measured, coverage: Coverage<'_>) -> Vec<Claim> {
    let view = |sheet, what, grid| View {
        sheet,
        coverage,
        what,
        grid,
    };
    let updates = view(&measured.updates, "time of an update", UPDATE_GRID);
    let lookups = view(&measured.lookups, "time of a lookup", LOOKUP_GRID);
    let memory = view(&measured.index_bytes, "memory", MEMORY_GRID);
    let mut claims = against_partition_sort(&updates, &lookups, &memory);
    claims.extend(against_tuple_space(&updates, &lookups, &memory));
    claims
}

fn against_partition_sort(updates: &View<'_>, lookups: &View<'_>, memory: &View<'_>) -> Vec<Claim> {
    let mut claims = updates_against_partition_sort(updates);
    claims.extend(lookups_against_partition_sort(lookups));
    claims.push(memory.average(
        Claim::new(
            "§IV.B",
            "Memory: PartitionSort takes 2.71 times as much as TupleMerge (12.19 MiB and 4.47 MiB \
             at 256k rules).",
        ),
        "PS / TM",
        PS_TM,
        MEMORY_PS,
    ));
    claims.push(linear(memory));
    claims
}

/// PartitionSort and TupleMerge, whose values are compared most.
const PS_TM: (usize, usize) = (PARTITION_SORT, TUPLE_MERGE);

fn updates_against_partition_sort(updates: &View<'_>) -> Vec<Claim> {
    let faster = Threshold::Above(1.0);
    let claim = Claim::new;
    vec![
        updates.average(
            claim(
                "§IV.B",
                "Updates: TupleMerge is 30 % faster than PartitionSort (relative time 1.30, mean \
                 over all seeds and sizes).",
            ),
            "PS / TM",
            PS_TM,
            UPDATE_PS,
        ),
        claim(
            "Fig. 3",
            "Updates: TupleMerge is faster than PartitionSort at all sizes and, at the largest, \
             for all 12 seeds.",
        )
        .part(updates.at_every_size())
        .part(updates.for_every_seed()),
        claim(
            "Fig. 3b",
            "Updates at 256k rules: TupleMerge 1.78 µs on average, PartitionSort 2.27 µs, tuple \
             space search 1.28 µs.",
        )
        .part(updates.at_largest("PS / TM", PS_TM, faster, 2.27 / 1.78))
        .part(updates.at_largest(
            "TM / TSS",
            (TUPLE_MERGE, TUPLE_SPACE),
            faster,
            1.78 / 1.28,
        )),
    ]
}

fn lookups_against_partition_sort(lookups: &View<'_>) -> Vec<Claim> {
    let faster = Threshold::Above(1.0);
    let claim = Claim::new;
    let slowest = Part::new(
        "time of a lookup at 256k, ACL2 or FW1 / the slowest other seed",
        faster,
    );
    let slowest = slowest
        .cases(lookups.slowest(TUPLE_MERGE))
        .cases(lookups.slowest(PARTITION_SORT))
        .grid("Each profile at", "");
    vec![
        lookups.average(
            claim(
                "§IV.B",
                "Lookups: TupleMerge is 34.2 % faster than PartitionSort (relative time 1.342, \
                 mean over all seeds and sizes).",
            ),
            "PS / TM",
            PS_TM,
            LOOKUP_PS,
        ),
        claim(
            "Fig. 4",
            "Lookups: TupleMerge is faster than PartitionSort at all sizes and, at the largest, \
             for 10 of 12 seeds. ACL2 and FW1 are the slowest.",
        )
        .part(lookups.at_every_size())
        .part(lookups.for_every_seed().needing(FASTER_SEEDS))
        .part(slowest),
        gap(lookups),
        claim(
            "Fig. 4b",
            "Lookups at 256k rules: TupleMerge 0.64 µs on average, PartitionSort 0.65 µs.",
        )
        .part(lookups.at_largest("PS / TM", PS_TM, faster, 0.65 / 0.64)),
    ]
}

fn against_tuple_space(updates: &View<'_>, lookups: &View<'_>, memory: &View<'_>) -> Vec<Claim> {
    let claim = Claim::new;
    vec![
        lookups.average(
            claim(
                "§IV.C",
                "Lookups: TupleMerge is on average 7.43 times as fast as tuple space search (0.64 \
                 µs and 2.93 µs at 256k rules).",
            ),
            "TSS / TM",
            (TUPLE_SPACE, TUPLE_MERGE),
            LOOKUP_TSS,
        ),
        updates.average(
            claim(
                "§IV.C",
                "Updates: TupleMerge is on average 39 % slower than tuple space search.",
            ),
            "TM / TSS",
            (TUPLE_MERGE, TUPLE_SPACE),
            UPDATE_TSS,
        ),
        memory.average(
            claim(
                "§IV.C",
                "Memory: TupleMerge takes 1.93 times less than tuple space search.",
            ),
            "TSS / TM",
            (TUPLE_SPACE, TUPLE_MERGE),
            MEMORY_TSS,
        ),
        claim(
            "§I.B",
            "On the largest rule lists, PartitionSort is 5.31 times as fast as tuple space search \
             at lookups, and its updates take 77 % longer.",
        )
        .part(lookups.at_largest(
            "TSS / PS",
            (TUPLE_SPACE, PARTITION_SORT),
            of_paper(LOOKUP_TSS_PS),
            LOOKUP_TSS_PS,
        ))
        .part(updates.at_largest(
            "PS / TSS",
            (PARTITION_SORT, TUPLE_SPACE),
            of_paper(UPDATE_PS_TSS),
            UPDATE_PS_TSS,
        )),
    ]
}

/// The claim that the gap of lookups grows.
fn gap(lookups: &View<'_>) -> Claim {
    let places = lookups.coverage.place(SMALLEST);
    let places = places.zip(lookups.coverage.place(LARGEST));
    let case = match places {
        None => Case::missing("", Gap::NotRun("1k and 256k rules")),
        Some((first, last)) => {
            let ratios = |place: usize| {
                let within = |at: (usize, usize)| at.1 == place;
                lookups.sheet.ratios(PARTITION_SORT, TUPLE_MERGE, within)
            };
            let pairs = ratios(last).into_iter().zip(ratios(first));
            Case::samples(
                "",
                pairs.map(|(last, first)| last / first).collect::<Vec<_>>(),
            )
        }
    };
    Claim::new(
        "Fig. 4a",
        "Lookups: the gap between TupleMerge and PartitionSort generally grows with the number of \
         rules.",
    )
    .part(
        Part::new(
            "time of a lookup, PS / TM: at 256k / at 1k",
            Threshold::Above(1.0),
        )
        .case(case)
        .picture("online-lookup-relative.svg"),
    )
}

/// The claim about memory that is linear.
fn linear(memory: &View<'_>) -> Claim {
    let places = memory.coverage.place(SMALLEST);
    let places = places.zip(memory.coverage.place(LARGEST));
    let times_rules = coordinate(LARGEST) / coordinate(SMALLEST);
    let cases = [("TM", TUPLE_MERGE), ("PS", PARTITION_SORT)].map(|(name, engine)| {
        let Some(places) = places else {
            return Case::missing(name, Gap::NotRun("1k and 256k rules"));
        };
        let growth = memory.sheet.growth(engine, places).into_iter();
        Case::samples(name, growth.map(|times| times / times_rules))
    });
    Claim::new(
        "§IV.B",
        "Memory: both TupleMerge and PartitionSort need memory linear in the number of rules.",
    )
    .part(
        Part::new("bytes a rule: at 256k / at 1k", Threshold::Within(0.5, 2.0))
            .paper(1.0)
            .cases(cases)
            .grid(MEMORY_GRID, ""),
    )
}

#[cfg(test)]
mod tests {
    use classyard_workload::generate::Profile;

    use super::super::tables::SIZES;
    use super::*;

    fn names() -> Vec<String> {
        Profile::BUILT_IN.map(str::to_owned).to_vec()
    }

    /// Five rule sets for each profile and size: times by the profile's name and the place
    /// of the size, and bytes by the place of the size.
    fn measured(
        updates: [f64; 6],
        lookups: impl Fn(&str, usize) -> [f64; 6],
        bytes: impl Fn(usize) -> [f64; 6],
    ) -> Measured {
        let mut measured = Measured::default();
        for (number, name) in Profile::BUILT_IN.iter().enumerate() {
            for place in 0..SIZES.len() {
                for _ in 0..5 {
                    let cell = (number, place);
                    measured.updates.add(cell, updates.to_vec());
                    measured.lookups.add(cell, lookups(name, place).to_vec());
                    measured.index_bytes.add(cell, bytes(place).to_vec());
                }
            }
        }
        measured
    }

    /// Times and bytes like the paper's.
    fn paper() -> Measured {
        let lookups = |name: &str, place: usize| {
            let is_slow = SLOWEST.contains(&name);
            let slow = if is_slow { 3.0 } else { 1.0 };
            let gap = match place {
                _ if is_slow && place == 8 => 0.9,
                0 => 1.3,
                _ => 1.4,
            };
            [400.0, 400.0 * gap, 3000.0, 1.0, 1.0, 1.0].map(|time| time * slow)
        };
        let bytes = |place: usize| {
            let rules = coordinate(SIZES[place]);
            [rules, rules * 2.72, rules * 1.93, 1.0, 1.0, 1.0]
        };
        measured([1780.0, 2314.0, 1280.0, 1.0, 1.0, 1.0], lookups, bytes)
    }

    fn words(measured: &Measured, sizes: &[usize]) -> Vec<(&'static str, &'static str)> {
        let coverage = Coverage {
            paper_sizes: &SIZES,
            sizes,
            names: &names(),
        };
        let claims = claims(measured, coverage);
        let words = claims
            .iter()
            .map(|claim| (claim.place, claim.verdict().word()));
        words.collect()
    }

    #[test]
    fn the_papers_own_figures_bear_its_claims_out() {
        for (place, word) in words(&paper(), &SIZES) {
            assert_eq!(word, "holds", "{place}");
        }
    }

    #[test]
    fn opposite_figures_contradict_them() {
        let times = [3.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        let bytes = |place: usize| {
            let squared = coordinate(SIZES[place]).powi(2);
            [3.0 * squared, squared, squared, 1.0, 1.0, 1.0]
        };
        let opposite = measured(times, |_, _| times, bytes);
        for (place, word) in words(&opposite, &SIZES) {
            // TM is slower than TSS here. Fig. 3b has another part, which holds.
            let expected = match place {
                "Fig. 3b" => "holds in part",
                _ => "does not hold here",
            };
            if place != "§IV.C" {
                assert_eq!(word, expected, "{place}");
            }
        }
    }

    #[test]
    fn a_reproduction_without_the_largest_size_does_not_judge_it() {
        for (place, word) in words(&paper(), &SIZES[..3]) {
            assert_eq!(word, "not measured", "{place}");
        }
    }
}
