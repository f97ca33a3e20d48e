//! [DEC14] §IV.C: eqs. 1 to 7 of the paper, our counts in the built structure, and measured
//! time, against N and against P.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::Schema;
use classyard::machine::{Machine, Work};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use classyard_workload::generate::OpenFlowRules;

use super::calibration::{TimedPoint, fit_accesses, fit_delays};
use super::clock;
use super::concurrency::{chunk_ns, place, predicted};
use super::equations::{
    Accesses, Delays, Design, PAPER_GROUPS, Processor, RuleField, Search, access_ns, equation_1,
    equation_5, equation_6, equation_7, equations_2_to_4, executed_ns, theoretical_accesses,
};
use super::latency::Model;
use super::measure::Lookups;
use super::model::{Mode, PAPER_ERROR, error};
use super::{PAPER_FORM, Study, TOGETHER};
use crate::bench::size_name;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The number of smallest rule sets to which the constants are fitted (§V.B).
const FITTED_SETS: usize = 2;

/// The packets of the points to which constants are fitted: the fewest and the most of the
/// paper (§V.D).
const FITTED_PACKETS: [usize; 2] = [1, 64];

/// The most packets of the paper (§V.D).
pub(super) const MOST_PACKETS: usize = 64;

/// Instructions a cycle, I, and bits of a word, Γ (Table IV).
const INSTRUCTIONS_PER_CYCLE: f64 = 1.0;
const WORD_BITS: f64 = 64.0;

/// A set larger than the curves of [`Machine`]; reading it takes the time of memory.
const MEMORY_SET_BYTES: usize = 1 << 30;

/// The equations with the constants of this machine.
pub(super) struct Forecast {
    fields: Vec<RuleField>,
    processor: Processor,
    /// The reason why the clock rate is unknown.
    clock_refusal: Option<String>,
    accesses: Accesses,
    /// True if λ_1 and α are fitted to counts of the processor.
    are_accesses_counted: bool,
    /// The delays of one header, and the delays of several headers together.
    pub(super) alone: Delays,
    pub(super) together: Delays,
}

/// The delays of eq. 5 without any fit, and the shares of eqs. 2 to 4.
struct Unfitted {
    lambda: [f64; 3],
    accesses: [f64; 4],
    latency_ns: f64,
}

impl Forecast {
    /// Fits the constants to the smallest rule sets.
    pub(super) fn fit(study: &mut Study<'_>, sizes: &[usize]) -> Result<Forecast, Failure> {
        let chains = study.point("clock of two chains", |_| Ok(clock::measure()))?;
        let clock = clock::judged(chains);
        let mut forecast = Forecast {
            fields: rule_fields(),
            processor: Processor {
                // If the rate is unknown, it is a part of η_1.
                clock_ghz: clock.as_ref().map_or(1.0, |rate| *rate),
                instructions_per_cycle: INSTRUCTIONS_PER_CYCLE,
                cores: 1.0,
                word_bits: WORD_BITS,
            },
            clock_refusal: clock.err(),
            accesses: Accesses {
                lambda: 1.0,
                alpha: 0.0,
            },
            are_accesses_counted: false,
            alone: fit_delays(&[]),
            together: fit_delays(&[]),
        };
        let mut sets = Vec::new();
        for &rules in sizes.iter().take(FITTED_SETS) {
            sets.push((rules, study.dec14_lookups(PAPER_FORM, rules)?));
        }
        let counts = sets.iter().filter_map(|(rules, lookups)| {
            let reads = lookups.events.single?.l1_reads?;
            Some((forecast.theoretical(*rules), reads))
        });
        if let [few, many] = counts.collect::<Vec<_>>()[..]
            && let Some(accesses) = fit_accesses([few, many])
        {
            forecast.accesses = accesses;
            forecast.are_accesses_counted = true;
        }
        let points = |packets: usize| -> Vec<TimedPoint> {
            let sets = sets.iter();
            sets.map(|(rules, lookups)| forecast.timed_point(*rules, packets, lookups))
                .collect()
        };
        let [one, many] = FITTED_PACKETS.map(points);
        // One header on one core has no contention: without its term, η_0 is 0.
        let without_contention = one.iter().map(|point| TimedPoint {
            rules_times_packets: 0.0,
            ..*point
        });
        forecast.alone = fit_delays(&without_contention.collect::<Vec<_>>());
        forecast.together = fit_delays(&[one, many].concat());
        Ok(forecast)
    }

    /// Returns the forecast for rules of other fields, with the same constants.
    pub(super) fn with_fields(&self, fields: Vec<RuleField>) -> Forecast {
        Forecast {
            fields,
            clock_refusal: self.clock_refusal.clone(),
            ..*self
        }
    }

    pub(super) fn design(&self, rules: usize) -> Design {
        // A group of the paper needs two of its fields.
        let has_fields = |group: &&[&str]| {
            let fields = self.fields.iter();
            let in_group = fields.filter(|field| group.contains(&field.name.as_str()));
            in_group.count() > 1
        };
        let groups: Vec<&[&str]> = PAPER_GROUPS.into_iter().filter(has_fields).collect();
        Design::new(&self.fields, &groups, coordinate(rules))
    }

    fn theoretical(&self, rules: usize) -> f64 {
        theoretical_accesses(&self.design(rules), &self.processor)
    }

    /// Returns V_1.
    pub(super) fn l1_accesses(&self, rules: usize) -> f64 {
        equation_1(self.theoretical(rules), self.accesses)
    }

    fn timed_point(&self, rules: usize, packets: usize, lookups: &Lookups) -> TimedPoint {
        TimedPoint {
            executed_ns: executed_ns(self.design(rules).instructions(), &self.processor),
            l1_accesses: self.l1_accesses(rules),
            rules_times_packets: coordinate(rules) * coordinate(packets),
            measured_ns: latency_ns(lookups, packets),
        }
    }

    /// Returns L_0 by eq. 6: nanoseconds until all of `packets` packets are done.
    pub(super) fn latency_ns(&self, rules: usize, packets: usize, delays: &Delays) -> f64 {
        equation_6(
            self.design(rules).instructions(),
            self.l1_accesses(rules),
            // β_1 + Σ β_n · λ_n was fitted as a single constant.
            [0.0; 3],
            delays,
            &self.processor,
            coordinate(rules) * coordinate(packets),
        )
    }

    /// Returns eqs. 1 to 5 with nothing fitted, for one packet: λ_1, η_1 and I are 1, α and
    /// η_0 are 0. β_n is the additional time of an overlapped read from memory n, and λ_n
    /// the share of the vectors that the nearer caches have no room for.
    fn unfitted(&self, rules: usize, machine: &Machine) -> Unfitted {
        let design = self.design(rules);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bytes
        let bytes = design.vector_bytes() as usize;
        let levels = machine.levels(&Work::default().reading_ahead(1.0, bytes));
        let lambda = [
            1.0 - levels.caches[0],
            levels.caches[2] + levels.memory,
            levels.memory,
        ];
        let accesses = equations_2_to_4(self.theoretical(rules), lambda);
        let [l1, l2, l3] = machine.caches();
        let ns = [l1, l2, l3, MEMORY_SET_BYTES].map(|set| machine.prefetched_line_ns(set));
        let delays = Delays {
            beta: [ns[0], ns[1] - ns[0], ns[2] - ns[1], ns[3] - ns[2]],
            eta_0: 0.0,
            eta_1: 1.0,
        };
        let instructions = design.instructions();
        Unfitted {
            lambda,
            accesses,
            latency_ns: equation_5(instructions, accesses, &delays, &self.processor, 0.0),
        }
    }
}

/// Returns the fields of Tables I and III.
pub(super) fn rule_fields() -> Vec<RuleField> {
    let schema = Schema::openflow15();
    let ratios = OpenFlowRules::default().ratios;
    let fields = schema.fields().iter().zip(ratios);
    fields
        .map(|(field, ratio)| RuleField {
            name: field.name().to_owned(),
            width_bits: field.width(),
            ratio,
            search: Search::of(field.kind()),
        })
        .collect()
}

/// Returns L: the measured nanoseconds until all of `packets` packets are done.
pub(super) fn latency_ns(lookups: &Lookups, packets: usize) -> f64 {
    lookups.ns[place(packets)] * coordinate(packets)
}

/// Measured and predicted times of one point.
pub(super) struct Compared {
    rules: usize,
    packets: usize,
    is_fitted: bool,
    instructions: f64,
    l1_accesses: f64,
    measured_ns: f64,
    equations_ns: f64,
    counts_ns: f64,
    /// Eq. 6 over the time of each pass.
    ratios: Vec<f64>,
}

/// Returns the point of `packets` packets, with the prediction from our counts. `delays`
/// are the forecast's delays for the point.
fn compared(
    forecast: &Forecast,
    delays: &Delays,
    lookups: &Lookups,
    [rules, packets]: [usize; 2],
    fitted_sizes: &[usize],
    counts_ns: f64,
) -> Compared {
    let equations_ns = forecast.latency_ns(rules, packets, delays);
    let passes = lookups.passes.get(place(packets)).into_iter().flatten();
    let ratios = passes.map(|ns| equations_ns / (ns * coordinate(packets)));
    Compared {
        rules,
        packets,
        is_fitted: fitted_sizes.contains(&rules) && FITTED_PACKETS.contains(&packets),
        instructions: forecast.design(rules).instructions(),
        l1_accesses: forecast.l1_accesses(rules),
        measured_ns: latency_ns(lookups, packets),
        equations_ns,
        counts_ns,
        ratios: ratios.collect(),
    }
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = study.dec14_sizes();
    let most_rules = study.dec14_rules();
    study.expect_points(1 + FITTED_SETS + sizes.len() + 1);
    let forecast = Forecast::fit(study, &sizes)?;
    let model = Model::fit(study)?;
    let chunk_ns = chunk_ns(study, &model)?;
    let fitted_sizes = &sizes[..FITTED_SETS.min(sizes.len())];
    let (mut by_rules, mut by_packets, mut wrong) = (Vec::new(), Vec::new(), 0);
    let mut l1_cases = Vec::new();
    let mut refusal = None;
    for &rules in &sizes {
        let lookups = study.dec14_lookups(PAPER_FORM, rules)?;
        wrong += lookups.wrong;
        let counts_ns = model.predict(&lookups, Mode::Single);
        let point = compared(
            &forecast,
            &forecast.alone,
            &lookups,
            [rules, 1],
            fitted_sizes,
            counts_ns,
        );
        by_rules.push(point);
        if !fitted_sizes.contains(&rules) {
            let name = format!("{} rules", size_name(rules));
            l1_cases.push(l1_case(name, &forecast, rules, &lookups));
        }
        refusal = refusal.or(lookups.events.refusal);
    }
    let lookups = study.dec14_lookups(PAPER_FORM, most_rules)?;
    for packets in TOGETHER.into_iter().filter(|&one| one <= MOST_PACKETS) {
        let each = predicted(&model, &lookups, packets, chunk_ns);
        let point = [most_rules, packets];
        let counts_ns = each * coordinate(packets);
        by_packets.push(compared(
            &forecast,
            &forecast.together,
            &lookups,
            point,
            fitted_sizes,
            counts_ns,
        ));
    }
    write_points(study, &by_rules, &by_packets)?;
    draw_charts(study, &by_rules, &by_packets)?;
    let mut section = Section {
        title: "The paper's equations (§IV.C)".to_owned(),
        method: method(&forecast, refusal.as_deref()),
        claims: claims(&by_rules, &by_packets, l1_cases),
        grids: vec![
            rules_grid(&by_rules),
            packets_grid(&by_packets, most_rules),
            constants_grid(&forecast),
            accesses_grid(&forecast, &sizes),
        ],
        pictures: vec![
            "equations-rules.svg".to_owned(),
            "equations-packets.svg".to_owned(),
        ],
    };
    super::wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns the comparison of eq. 1 with the processor's count.
fn l1_case(name: String, forecast: &Forecast, rules: usize, lookups: &Lookups) -> Case {
    let counted = lookups.events.single.and_then(|counted| counted.l1_reads);
    match counted {
        Some(reads) if forecast.are_accesses_counted => {
            Case::exact(name, forecast.l1_accesses(rules) / reads)
        }
        _ => Case::missing(name, Gap::NotRun("the processor's count of reads from L1")),
    }
}

/// Describes the inputs of the equations.
fn method(forecast: &Forecast, counter_refusal: Option<&str>) -> String {
    let clock = match &forecast.clock_refusal {
        None => format!(
            "The clock rate of {:.2} GHz is measured by two chains of dependent instructions.",
            forecast.processor.clock_ghz
        ),
        Some(refusal) => format!(
            "The clock rate is unknown and part of η_1: {refusal}. Eq. 5 without a fit is left \
             out."
        ),
    };
    let accesses = match (forecast.are_accesses_counted, counter_refusal) {
        (true, _) => "λ_1 and α are fitted to the processor's counts of reads from L1, as in \
                      Table V."
            .to_owned(),
        (false, refusal) => format!(
            "The processor's counters are not available ({}), so λ_1 is 1 and α is 0, and \
             V_inst and V_1 are estimates by the equations.",
            refusal.unwrap_or("reads from L1 are not counted")
        ),
    };
    format!(
        "The equations get N, Table III's ρ, the paper's grouping (six trees, three hash tables), \
         M = 2, µ = 0.5, I = {INSTRUCTIONS_PER_CYCLE}, Γ = {WORD_BITS} bits and C = 1 core; no structure is built. \
         {clock} {accesses} η_1 and β_1 + Σ β_n λ_n are fitted to the two smallest \
         rule sets: for the times of one header alone to P = 1, without contention (η_0 = 0); for \
         the times of P headers, together with η_0, to P = 1 and P = 64. Measured are lookups with share=0, \
         the form of the paper: P headers together on one core, CPU time until all P are done. \
         Our structure differs from the paper's: it skips blocks of vectors without a rule, and \
         chooses its superfields by itself. Our counts come from the built structure, with the \
         model of Fig. 2."
    )
}

/// Writes the data.
fn write_points(
    study: &mut Study<'_>,
    by_rules: &[Compared],
    by_packets: &[Compared],
) -> Result<(), Failure> {
    let lines = by_rules.iter().chain(by_packets).map(|point| {
        format!(
            "{},{},{},{:.1},{:.1},{:.2},{:.2},{:.4},{:.2},{:.4}",
            point.rules,
            point.packets,
            point.is_fitted,
            point.instructions,
            point.l1_accesses,
            point.measured_ns,
            point.equations_ns,
            error(point.equations_ns, point.measured_ns),
            point.counts_ns,
            error(point.counts_ns, point.measured_ns),
        )
    });
    let heading = "rules,p,fitted,v_inst,v_1,latency_ns,equations_ns,equations_error,counts_ns,\
                   counts_error";
    study.write_csv("equations.csv", heading, &lines.collect::<Vec<_>>())
}

/// Draws measured and predicted times against N and against P.
fn draw_charts(
    study: &mut Study<'_>,
    by_rules: &[Compared],
    by_packets: &[Compared],
) -> Result<(), Failure> {
    let series = |points: &[Compared], x: fn(&Compared) -> usize| {
        let line = |y: fn(&Compared) -> f64| -> Vec<(f64, f64)> {
            let points = points.iter();
            points
                .map(|point| (coordinate(x(point)), y(point)))
                .collect()
        };
        vec![
            Series::marked("measured", "one", Mark::Circle, line(|one| one.measured_ns)),
            Series::marked("eq. 6", "two", Mark::Cross, line(|one| one.equations_ns)),
            Series::marked("our counts", "three", Mark::Plus, line(|one| one.counts_ns)),
        ]
    };
    let chart = |title, x_label| Chart {
        title,
        x_label,
        y_label: "nanoseconds until all are done",
        log_x: true,
        log_y: true,
    };
    let against_rules = chart(
        "Eq. 6 and our counts against rules, P = 1 ([DEC14] §IV.C)",
        "rules",
    );
    let against_packets = chart(
        "Eq. 6 and our counts against headers together ([DEC14] §IV.C)",
        "headers together",
    );
    let mut rules = series(by_rules, |point| point.rules);
    study.add_paper("equations-rules.svg", &super::paper_latency(), &mut rules);
    study.draw("equations-rules.svg", &against_rules, &rules)?;
    let mut packets = series(by_packets, |point| point.packets);
    let paper = super::paper_concurrency(1.0);
    study.add_paper("equations-packets.svg", &paper, &mut packets);
    study.draw("equations-packets.svg", &against_packets, &packets)
}

/// Returns the texts of a predicted time and of its error.
fn prediction(predicted: f64, measured: f64) -> [String; 2] {
    [
        format!("{predicted:.1}"),
        format!("{:+.1} %", 100.0 * error(predicted, measured)),
    ]
}

fn yes_or_no(is_true: bool) -> String {
    if is_true { "yes" } else { "no" }.to_owned()
}

fn grid<const COLUMNS: usize>(
    title: String,
    columns: [&str; COLUMNS],
    words: usize,
    rows: Vec<Vec<String>>,
) -> Grid {
    Grid {
        title,
        columns: columns.map(str::to_owned).to_vec(),
        words,
        rows,
    }
}

/// The beginnings of titles to which claims refer.
const RULES_TITLE: &str = "Time of one header by eq. 6";
const PACKETS_TITLE: &str = "Time until all of P headers are done by eq. 6";
const ACCESSES_TITLE: &str = "Eqs. 1 to 5 without a fit";

fn rules_grid(points: &[Compared]) -> Grid {
    let rows = points.iter().map(|point| {
        let mut row = vec![
            size_name(point.rules),
            yes_or_no(point.is_fitted),
            format!("{:.0}", point.instructions),
            format!("{:.0}", point.l1_accesses),
            format!("{:.1}", point.measured_ns),
        ];
        row.extend(prediction(point.equations_ns, point.measured_ns));
        row.extend(prediction(point.counts_ns, point.measured_ns));
        row
    });
    let columns = [
        "rules",
        "used to fit",
        "V_inst",
        "V_1 (eq. 1)",
        "ns measured",
        "eq. 6",
        "error",
        "our counts",
        "error",
    ];
    grid(
        format!("{RULES_TITLE} and by our counts, share=0, P = 1"),
        columns,
        1,
        rows.collect(),
    )
}

fn packets_grid(points: &[Compared], rules: usize) -> Grid {
    let rows = points.iter().map(|point| {
        let packets = coordinate(point.packets);
        let rate = |ns: f64| format!("{:.2}", equation_7(packets, ns) / 1e6);
        let mut row = vec![
            point.packets.to_string(),
            yes_or_no(point.is_fitted),
            format!("{:.1}", point.measured_ns),
        ];
        row.extend(prediction(point.equations_ns, point.measured_ns));
        row.extend(prediction(point.counts_ns, point.measured_ns));
        row.extend([rate(point.measured_ns), rate(point.equations_ns)]);
        row
    });
    let columns = [
        "P",
        "used to fit",
        "ns measured",
        "eq. 6",
        "error",
        "our counts",
        "error",
        "M/s measured",
        "M/s by eq. 7",
    ];
    grid(
        format!(
            "{PACKETS_TITLE} and by our counts, share=0, {} rules",
            size_name(rules)
        ),
        columns,
        0,
        rows.collect(),
    )
}

/// Returns the constants here and on the paper's two platforms (Tables IV to VI).
fn constants_grid(forecast: &Forecast) -> Grid {
    let clock = match forecast.clock_refusal {
        None => format!("{:.2}", forecast.processor.clock_ghz),
        Some(_) => "unknown".to_owned(),
    };
    let source = if forecast.are_accesses_counted {
        "counted"
    } else {
        "assumed"
    };
    let Forecast {
        alone, together, ..
    } = forecast;
    let both = |text: fn(&Delays) -> String| format!("{}; {}", text(alone), text(together));
    let access_text = both(|delays| format!("{:.5}", access_ns(delays, [0.0; 3])));
    let rows = [
        ["f, GHz", &clock, "2.4", "2.3"],
        ["C", "1", "16", "16"],
        [
            "λ_1",
            &format!("{:.3}, {source}", forecast.accesses.lambda),
            "1.30",
            "1.21",
        ],
        [
            "α",
            &format!("{:.1}, {source}", forecast.accesses.alpha),
            "508",
            "183",
        ],
        ["β_1 + Σ β_n λ_n, ns", &access_text, "0.00146", "0.00178"],
        [
            "η_0, ns",
            &both(|delays| format!("{:.6}", delays.eta_0)),
            "98.7, unit unclear",
            "95.7, unit unclear",
        ],
        [
            "η_1",
            &both(|delays| format!("{:.4}", delays.eta_1)),
            "25.4, unit unclear",
            "17.9, unit unclear",
        ],
    ];
    let rows = rows.map(|row| row.map(str::to_owned).to_vec());
    grid(
        "Constants of the equations (Tables IV to VI); fitted for P = 1; for all P".to_owned(),
        ["constant", "here", "AMD in the paper", "Intel in the paper"],
        2,
        rows.to_vec(),
    )
}

/// Returns the accesses by eqs. 1 to 4, and the time by eq. 5, with nothing fitted.
fn accesses_grid(forecast: &Forecast, sizes: &[usize]) -> Grid {
    let machine = Machine::default();
    let rows = sizes.iter().map(|&rules| {
        let unfitted = forecast.unfitted(rules, &machine);
        let mut row = vec![
            size_name(rules),
            format!("{:.1}", forecast.design(rules).vector_bytes() / 1e6),
        ];
        row.extend(unfitted.lambda.map(|share| format!("{share:.3}")));
        row.extend(unfitted.accesses.map(|accesses| format!("{accesses:.0}")));
        row.push(match forecast.clock_refusal {
            None => format!("{:.0}", unfitted.latency_ns),
            Some(_) => "–".to_owned(),
        });
        row
    });
    let columns = [
        "rules",
        "MB of vectors",
        "λ_2",
        "λ_3",
        "λ_4",
        "V_1",
        "V_2",
        "V_3",
        "V_4",
        "ns by eq. 5",
    ];
    grid(
        format!("{ACCESSES_TITLE}: λ_n by the sizes of caches, λ_1 = η_1 = 1, α = η_0 = 0"),
        columns,
        1,
        rows.collect(),
    )
}

/// Returns the claims; without points, none is measured.
pub(super) fn claims(
    by_rules: &[Compared],
    by_packets: &[Compared],
    l1_cases: Vec<Case>,
) -> Vec<Claim> {
    let within = Threshold::Within(1.0 - PAPER_ERROR, 1.0 + PAPER_ERROR);
    let cases = |points: &[Compared], name: fn(&Compared) -> String| -> Vec<Case> {
        let points = points.iter().filter(|point| !point.is_fitted);
        let cases = points.map(|point| Case::samples(name(point), point.ratios.iter().copied()));
        cases.collect()
    };
    let compared = "eq. 6 / measured time of points that were not used to fit";
    let rules_cases = cases(by_rules, |point| {
        format!("{} rules", size_name(point.rules))
    });
    let packets_cases = cases(by_packets, |point| format!("P = {}", point.packets));
    vec![
        Claim::new(
            "Fig. 2",
            "The latency predicted by eq. 6, from N and ρ alone, has an error of less than \
             ±10 %.",
        )
        .part(
            Part::new(compared, within)
                .paper(1.0)
                .cases(rules_cases)
                .grid(RULES_TITLE, "")
                .picture("equations-rules.svg"),
        ),
        Claim::new(
            "Fig. 3",
            "Eq. 6, from N, ρ and P alone, predicts the latency with an error of less than \
             ±10 % for P up to 64.",
        )
        .part(
            Part::new(compared, within)
                .paper(1.0)
                .cases(packets_cases)
                .grid(PACKETS_TITLE, "")
                .picture("equations-packets.svg"),
        ),
        Claim::new(
            "§V.B",
            "Eq. 1, fitted to two rule sets, estimates the accesses to L1 accurately enough.",
        )
        .part(
            Part::new("V_1 by eq. 1 / the processor's count", within)
                .cases(l1_cases)
                .grid(RULES_TITLE, ""),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_the_fields_of_table_i() {
        let fields = rule_fields();
        let widths: Vec<u32> = fields.iter().map(|field| field.width_bits).collect();
        assert_eq!(
            widths,
            [32, 64, 48, 48, 16, 12, 3, 20, 3, 32, 32, 8, 6, 16, 16]
        );
        let trees = fields.iter().filter(|field| field.search == Search::Tree);
        let trees: Vec<&str> = trees.map(|field| field.name.as_str()).collect();
        assert_eq!(trees, ["src", "dst", "sport", "dport"]);
        // All names of the paper's groups are names of fields.
        let design = Design::new(&fields, &PAPER_GROUPS, 1000.0);
        assert_eq!(design.superfields[0].width_bits, 42);
        assert_eq!(design.superfields[1].width_bits, 58);
        assert_eq!(design.superfields.len(), 9);
    }

    fn forecast(clock_ghz: f64) -> Forecast {
        Forecast {
            fields: rule_fields(),
            processor: Processor {
                clock_ghz,
                instructions_per_cycle: 1.0,
                cores: 1.0,
                word_bits: 64.0,
            },
            clock_refusal: None,
            accesses: Accesses {
                lambda: 1.0,
                alpha: 0.0,
            },
            are_accesses_counted: false,
            alone: fit_delays(&[]),
            together: Delays {
                beta: [0.1, 0.0, 0.0, 0.0],
                eta_0: 0.001,
                eta_1: 0.5,
            },
        }
    }

    #[test]
    fn latency_grows_by_the_same_time_with_each_packet() {
        let forecast = forecast(2.0);
        let ns = [1, 2, 3].map(|packets| forecast.latency_ns(1024, packets, &forecast.together));
        assert!((ns[1] - ns[0] - 1.024).abs() < 1e-9);
        assert!((ns[2] - ns[1] - 1.024).abs() < 1e-9);
        // 0.5 · V_inst / 2 GHz + 0.1 · 271.356 + 1.024.
        let executed = forecast.design(1024).instructions() / 4.0;
        assert!((ns[0] - executed - 27.1356 - 1.024).abs() < 1e-3, "{ns:?}");
    }

    #[test]
    fn more_rules_are_read_from_farther_memory() {
        let forecast = forecast(2.0);
        let machine = Machine::default();
        let [few, many] = [100, 32_000].map(|rules| forecast.unfitted(rules, &machine));
        // The vectors of 100 rules fit into L1; the vectors of 32,000 rules fit into no cache.
        assert_eq!(few.lambda, [0.0; 3]);
        assert!(many.lambda[2] > 0.5, "{:?}", many.lambda);
        assert!(
            many.lambda
                .is_sorted_by(|nearer, farther| nearer >= farther)
        );
        assert!(many.latency_ns > few.latency_ns);
    }
}
