//! [DEC14] §V: what decomposition costs, and what its model says of that.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::{Policy, PolicyTrace};
use classyard_workload::generate::Family;

use super::Study;
use super::claims::Section;
use crate::bench::{generated_policy, generated_trace};
use crate::failure::Failure;

pub(super) mod concurrency;
pub(super) mod latency;
mod measure;
mod model;
pub(super) mod rule_sets;
pub(super) mod split;
pub(super) mod throughput;

/// The engine as it is, and in the form of the paper: all rules in vectors, over
/// all fields.
const ENGINE: &str = "decomposition";
const PAPER_FORM: &str = "decomposition:share=0";

/// Both without grouping and without early termination.
const PLAIN: &str = "decomposition:group=off:stop=off";
const PLAIN_PAPER_FORM: &str = "decomposition:share=0:group=off:stop=off";

/// Numbers of rules in the paper's Fig. 2, and those of a quick reproduction.
const SIZES: [usize; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
const FEW_SIZES: [usize; 4] = [1_000, 2_000, 4_000, 8_000];

/// The rules of Figs. 3 and 4.
const MOST_RULES: usize = 32_000;

/// Headers that are looked up together.
const TOGETHER: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The most threads that are measured, if there are as many processors.
const MOST_THREADS: usize = 16;

impl Study<'_> {
    /// The numbers of rules of this reproduction, ascending.
    fn dec14_sizes(&self) -> Vec<usize> {
        let own: &[usize] = if self.args.quick { &FEW_SIZES } else { &SIZES };
        let mut sizes = self.sizes(own);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The number of rules of Figs. 3 and 4: the greatest one that is at most the
    /// paper's.
    fn dec14_rules(&self) -> usize {
        let sizes = self.dec14_sizes();
        let fitting = sizes.iter().rev().find(|&&size| size <= MOST_RULES);
        fitting.copied().unwrap_or(sizes[0])
    }

    /// A rule set of Table III.
    fn dec14_policy(&self, rules: usize, set: usize) -> Result<Policy, Failure> {
        let seed = self.args.seed.wrapping_add(set as u64);
        let family = Family::OpenFlow15(Box::default());
        generated_policy(family, rules, seed, &mut classyard::NoProgress)
    }

    /// Headers for it.
    fn dec14_trace(&self, policy: &Policy, set: usize) -> Result<PolicyTrace, Failure> {
        let seed = self.args.seed.wrapping_add(set as u64);
        generated_trace(policy, self.headers(), seed, &mut classyard::NoProgress)
    }

    /// How many threads to measure: powers of two up to the processors.
    fn dec14_threads(&self) -> Vec<usize> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let counts = std::iter::successors(Some(1), |threads| Some(2 * threads));
        counts
            .take_while(|&threads| threads == 1 || threads <= processors.min(MOST_THREADS))
            .collect()
    }
}

/// Says that answers were wrong, if they were.
fn wrong_answers(section: &mut Section, wrong: usize) {
    if wrong > 0 {
        let remark = format!(" WRONG: {wrong} answers differ from a scan of the rules.");
        section.method.push_str(&remark);
    }
}
