//! The right side of eq. 7: the throughput of an ideal execution, T_peak ([DEC14] §V.E).
//!
//! [DEC14]: classyard::papers#dec14

use classyard_report::failure::Failure;

use super::clock;
use super::equations::{Design, PAPER_GROUPS, Processor, equation_7_peak};
use super::forecast::rule_fields;
use super::measure::Lookups;
use super::{Study, model};
use crate::bench::size_name;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Threshold};
use crate::reproduce::statistics::coordinate;

/// The maximum number of instructions that a core executes in a cycle, as the paper
/// assumes (§V.E).
const INSTRUCTIONS_PER_CYCLE: f64 = 4.0;

/// The accepted shares of the peak; the paper has 49 %.
const MIN_SHARE: f64 = 0.3;
const MAX_SHARE: f64 = 1.0;
const PAPER_SHARE: f64 = 0.49;

/// The inputs of the peak.
pub(super) struct Peak {
    /// The clock rate in GHz, or the reason why it was refused.
    clock: Result<f64, String>,
    /// Instructions of a lookup by the engine's estimate.
    estimated: f64,
    /// Instructions of a header in a batch by the processor's count.
    counted: Option<f64>,
    /// The reason why the processor did not count.
    refusal: Option<String>,
    /// V_peak by the operations of Table VII, and the number of rules.
    best: f64,
    rules: usize,
    /// Nanoseconds of a header in a batch, for each pass.
    passes: Vec<f64>,
}

impl Peak {
    /// Measures the clock rate, and takes the instructions from measured lookups.
    pub(super) fn of(study: &mut Study<'_>, lookups: &Lookups) -> Result<Peak, Failure> {
        let chains = study.point("clock of two chains", |_| Ok(clock::measure()))?;
        let rules = study.dec14_rules();
        let design = Design::new(&rule_fields(), &PAPER_GROUPS, coordinate(rules));
        Ok(Peak {
            clock: clock::judged(chains),
            estimated: model::count(&lookups.counts, "instructions a lookup"),
            counted: lookups.events.batch.map(|counted| counted.instructions),
            refusal: lookups.events.refusal.clone(),
            best: design.best_instructions(),
            rules,
            passes: lookups.batch_passes().to_vec(),
        })
    }

    /// Returns headers a second by eq. 7; `None` if the clock rate is unknown.
    fn rate(&self, instructions: f64) -> Option<f64> {
        let clock_ghz = *self.clock.as_ref().ok()?;
        let processor = Processor {
            clock_ghz,
            instructions_per_cycle: INSTRUCTIONS_PER_CYCLE,
            cores: 1.0,
            word_bits: 64.0,
        };
        Some(equation_7_peak(instructions.max(1.0), &processor))
    }

    /// Returns million headers a second with the counted instructions, or else with the
    /// estimated instructions; `None` if the clock rate is unknown.
    pub(super) fn million_a_second(&self) -> Option<f64> {
        let rate = self.rate(self.counted.unwrap_or(self.estimated));
        rate.map(|rate| rate / 1e6)
    }

    /// Describes the inputs for the report.
    pub(super) fn method(&self) -> String {
        let clock = match &self.clock {
            Ok(clock_ghz) => format!("the clock ({clock_ghz:.2} GHz here)"),
            Err(refusal) => format!("the clock (unknown here, so there is no peak: {refusal})"),
        };
        let instructions = match (self.counted, &self.refusal) {
            (Some(_), _) => "Instructions are counted by the processor.".to_owned(),
            (None, refusal) => format!(
                "The processor's counters are not available ({}): instructions are estimates, \
                 operations that the engine counts times the instructions of each operation.",
                refusal.as_deref().unwrap_or("unknown reason")
            ),
        };
        format!(
            "The peak is that of the paper's eq. 7: {clock} times {INSTRUCTIONS_PER_CYCLE} \
             instructions a cycle, over the instructions of a lookup; nothing waits for memory or \
             for another instruction. {instructions}"
        )
    }

    /// Returns the peaks, each with the source of its instructions.
    pub(super) fn grid(&self) -> Grid {
        let mean_ns = self.passes.iter().sum::<f64>() / coordinate(self.passes.len().max(1));
        let row = |source: String, instructions: Option<f64>| {
            let rate = instructions.and_then(|instructions| self.rate(instructions));
            let text = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
            vec![
                source,
                text(instructions.map(|instructions| format!("{instructions:.0}"))),
                text(rate.map(|rate| format!("{:.2}", rate / 1e6))),
                text(rate.map(|rate| format!("{:.0} %", 1e11 / mean_ns / rate))),
            ]
        };
        let best = format!(
            "the best lookup of the paper's code (V_peak), {} rules",
            size_name(self.rules)
        );
        Grid {
            title: "Throughput of an ideal execution (eq. 7)".to_owned(),
            columns: ["instructions", "a lookup", "peak, M/s", "measured / peak"]
                .map(str::to_owned)
                .to_vec(),
            words: 1,
            rows: vec![
                row("counted by the processor".to_owned(), self.counted),
                row("estimated by the engine".to_owned(), Some(self.estimated)),
                row(best, Some(self.best)),
            ],
        }
    }

    /// Returns the paper's claim. It is measured only with a plausible clock rate and
    /// counted instructions.
    pub(super) fn claim(&self) -> Claim {
        let peak = self.counted.and_then(|counted| self.rate(counted));
        let case = match peak {
            Some(peak) => Case::samples("", self.passes.iter().map(|ns| 1e9 / ns / peak)),
            None => Case::missing(
                "",
                Gap::NotRun("the processor's clock, or its count of instructions"),
            ),
        };
        claim(case)
    }
}

/// Returns the paper's claim without a measurement.
pub(super) fn unmeasured_claim() -> Claim {
    claim(Case::missing("", Gap::NotRun("the peak")))
}

fn claim(case: Case) -> Claim {
    Claim::new(
        "Fig. 4",
        "Measured throughput is about 49 % of the peak of an ideal execution.",
    )
    .part(
        Part::new("throughput / peak", Threshold::Within(MIN_SHARE, MAX_SHARE))
            .paper(PAPER_SHARE)
            .case(case)
            .grid("Throughput of an ideal execution", "counted"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(clock: Result<f64, String>, counted: Option<f64>) -> Peak {
        Peak {
            clock,
            estimated: 500.0,
            counted,
            refusal: counted.is_none().then(|| "no such device".to_owned()),
            best: 2000.0,
            rules: 32_000,
            passes: vec![100.0; 5],
        }
    }

    /// 2.5 GHz · 4 / 500 instructions are 20 million a second; 100 ns are half of that.
    #[test]
    fn counted_instructions_give_a_verdict() {
        let counted = peak(Ok(2.5), Some(500.0));
        assert_eq!(counted.million_a_second(), Some(20.0));
        assert_eq!(counted.claim().verdict().word(), "holds");
        assert_eq!(counted.grid().rows[0][1..], ["500", "20.00", "50 %"]);
        // 4 million a second at most; 10 million are more than the ideal execution.
        let too_fast = peak(Ok(2.5), Some(2500.0));
        assert_eq!(too_fast.claim().verdict().word(), "does not hold here");
    }

    #[test]
    fn estimates_and_an_unknown_clock_give_none() {
        let estimated = peak(Ok(2.5), None);
        assert_eq!(estimated.claim().verdict().word(), "not measured");
        assert_eq!(estimated.million_a_second(), Some(20.0));
        assert!(estimated.method().contains("no such device"));
        assert!(estimated.method().contains("are estimates"));
        let unknown = peak(Err("29 GHz".to_owned()), Some(500.0));
        assert_eq!(unknown.claim().verdict().word(), "not measured");
        assert_eq!(unknown.million_a_second(), None);
        assert!(unknown.method().contains("no peak: 29 GHz"));
        assert_eq!(unknown.grid().rows[0][1..], ["500", "–", "–"]);
    }
}
