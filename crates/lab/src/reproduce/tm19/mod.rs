//! [TM19] §IV: the simulation of algorithms; §V: engines in a virtual switch.
//!
//! [TM19]: classyard::papers#tm19

use std::time::Duration;

use classyard_report::failure::Failure;
use classyard_report::input::span;

use super::figure::{Figure, OwnFigure};
use super::inputs::LOOKUP_INPUTS;
use super::request::{Common, Paper, Request, at_least_one, sizes};
use super::study::OPEN_VSWITCH_OPTION;
use crate::bench::PeerSpec;

pub(super) mod collision_limit;
mod coverage;
pub(super) mod growth;
pub(super) mod offline;
pub(super) mod online;
mod online_claims;
mod online_engines;
mod own;
pub(super) mod partitions;
pub(super) mod section5;
mod sheet;
pub(super) mod tables;

/// The year of the paper, and the machine of its simulations (§IV.A).
const SIMULATOR_MACHINE: &str = "in 2019 on an Intel Xeon with 4 cores at 2.8 GHz";

/// Section IV, the simulation of algorithms.
const SIMULATION: Paper = Paper {
    key: "tm19",
    name: "tm19",
    title: "TupleMerge [TM19], measured with classyard",
    headers: 200_000,
    is_stored_by_set: true,
};

/// The figures of section IV.
const SIMULATION_FIGURES: &[Figure] = &[
    Figure {
        name: "tables",
        draw: tables::draw,
        own: Some(OwnFigure {
            accepts: own::WITHOUT_LOOKUPS,
            needs_updates: false,
            draw: own::draw_tables,
        }),
    },
    Figure {
        name: "online",
        draw: online::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: true,
            draw: own::draw_online,
        }),
    },
    Figure {
        name: "offline",
        draw: offline::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_offline,
        }),
    },
    Figure {
        name: "partitions",
        draw: partitions::draw,
        own: Some(OwnFigure {
            accepts: own::WITHOUT_LOOKUPS,
            needs_updates: false,
            draw: own::draw_partitions,
        }),
    },
    Figure {
        name: "collision-limit",
        draw: collision_limit::draw,
        own: Some(OwnFigure {
            accepts: own::WITHOUT_ENGINES,
            needs_updates: false,
            draw: own::draw_collision_limit,
        }),
    },
    Figure {
        name: "growth",
        draw: growth::draw,
        own: Some(OwnFigure {
            accepts: own::WITHOUT_LOOKUPS,
            needs_updates: false,
            draw: own::draw_growth,
        }),
    },
];

/// Section V, engines in a virtual switch.
const SWITCH: Paper = Paper {
    name: "tm19 --section 5",
    title: "TupleMerge in a virtual switch [TM19, §V], measured with classyard",
    ..SIMULATION
};

/// The figures of section V.
const SWITCH_FIGURES: &[Figure] = &[
    Figure {
        name: "pipeline-tables",
        draw: section5::tables::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: true,
            draw: section5::own::draw_tables,
        }),
    },
    Figure {
        name: "pipeline-throughput",
        draw: section5::throughput::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: true,
            draw: section5::own::draw_throughput,
        }),
    },
    Figure {
        name: "pipeline-times",
        draw: section5::times::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: true,
            draw: section5::own::draw_times,
        }),
    },
    Figure {
        name: "pipeline-cache",
        draw: section5::cache::draw,
        own: None,
    },
    Figure {
        name: "pipeline-frameworks",
        draw: section5::frameworks::draw,
        own: None,
    },
    Figure {
        name: "pipeline-seeds",
        draw: section5::seeds::draw,
        own: None,
    },
];

/// A section of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PaperSection {
    /// The simulation of algorithms
    #[value(name = "4")]
    Simulation,
    /// Engines in a virtual switch
    #[value(name = "5")]
    Switch,
}

/// Daly et al., TupleMerge, ToN 2019
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  tables           tables against rules (Fig. 2)
  online           updates, single lookups and memory (Figs. 1, 3 and 4)
  offline          SmartSplit and TupleMerge over all rules at once (Fig. 5)
  partitions       tables against SAX-PAC's sets of rules without overlaps (Fig. 6)
  collision-limit  search time against the collision limit (Figs. 7 and 8)
  growth           time and memory of building as rule sets grow

Figures with --section 5 (in a virtual switch):
  pipeline-tables      tables alone and in a pipeline (Fig. 10)
  pipeline-throughput  packets a second against rules (Fig. 11)
  pipeline-times       times of single packets (Fig. 12)
  pipeline-cache       the front-end cache, and ours (Table V)
  pipeline-frameworks  engines with caches, and Open vSwitch (Fig. 13)
  pipeline-seeds       seed by seed at the greatest size (Figs. 14 and 15)

Examples:
  classyard reproduce tm19
  classyard reproduce tm19 --section 5 --quick -o switch
  classyard reproduce tm19 --section 5 -r acl.rules -c dump.pcap -o own
      an own access list in the switch, with the headers of a capture
  classyard reproduce tm19 --section 5 --figures pipeline-frameworks,pipeline-seeds \
      --open-vswitch bench/peers/ovs/run -o switch
  classyard reproduce tm19 --figures tables --sizes 1k,4k,16k,64k,256k -o figures")]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,

    /// The section: 4, the simulation of algorithms, or 5, engines as the access list of
    /// a virtual switch
    #[arg(long, value_enum, value_name = "NUMBER", default_value = "4")]
    section: PaperSection,

    /// Numbers of rules, of every figure
    ///
    /// Defaults: tables and online 1k, 2k, 4k, ... 256k; offline up to 64k; partitions up
    /// to 16k; collision-limit 1k, 8k and 64k; growth 10k, 20k, 50k, ... 1M. Greater sizes
    /// are left out of offline, partitions and collision-limit. With --section 5: 2, 16,
    /// 128, 500, 1k, 2k, ... 64k; at most 65,535.
    #[arg(long, value_delimiter = ',', value_parser = sizes, value_name = "COUNTS")]
    sizes: Vec<usize>,

    /// Profiles: built-in names or TOML files [default: all built-in ones]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    profiles: Vec<String>,

    /// Headers in each trace [default: 200k, quick 20k]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    headers: Option<usize>,

    /// Rule sets for each profile and size of online and offline [default: 5, quick 1] and of
    /// section 5 [default: 1]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    sets: Option<usize>,

    /// Insertions of the updates of section 4, and the same number of deletions [default:
    /// 500k, quick 20k]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    changes: Option<usize>,

    /// Give up building an engine of section 4's offline, or of growth with own inputs, after
    /// this time [default: 5m, quick 10s]
    #[arg(long, value_parser = span, value_name = "TIME")]
    build_time: Option<Duration>,

    /// Measure Open vSwitch too, interleaved with the engines, for Figs. 13 to 15 of section 5
    ///
    /// PROGRAM is bench/peers/ovs/run of the repository, or a program with the same commands.
    /// bench/peers/ovs/README.md has its options and the packages that it needs. It starts
    /// before the first measurement.
    #[arg(long, value_parser = open_vswitch, value_name = "PROGRAM[:OPTION=VALUE,...]")]
    open_vswitch: Option<PeerSpec>,
}

/// The figures of section 5 that have Open vSwitch.
const OPEN_VSWITCH_FIGURES: [&str; 2] = ["pipeline-frameworks", "pipeline-seeds"];

/// Reads the program that measures Open vSwitch, for the argument parser.
fn open_vswitch(text: &str) -> Result<PeerSpec, String> {
    PeerSpec::parse(&format!("open-vswitch={text}"))
}

impl Args {
    pub(super) fn figures(&self) -> &'static [Figure] {
        match self.section {
            PaperSection::Simulation => SIMULATION_FIGURES,
            PaperSection::Switch => SWITCH_FIGURES,
        }
    }

    pub(super) fn request(&self) -> Result<Request, Failure> {
        let paper = match self.section {
            PaperSection::Simulation => &SIMULATION,
            PaperSection::Switch => &SWITCH,
        };
        let request = Request {
            sizes: self.sizes.clone(),
            profiles: self.profiles.clone(),
            headers: self.headers,
            sets: self.sets,
            changes: self.changes,
            build_time: self.build_time,
            open_vswitch: self.open_vswitch.clone(),
            ..Request::new(paper, &self.common)
        };
        match self.section {
            PaperSection::Switch => self.check_switch(&request)?,
            PaperSection::Simulation if self.open_vswitch.is_some() => {
                return Err(Failure::usage(format!(
                    "{OPEN_VSWITCH_OPTION} is for section 5 of tm19; nothing in section 4 depends \
                     on it"
                ))
                .with_help(format!(
                    "add --section 5, or leave {OPEN_VSWITCH_OPTION} out"
                )));
            }
            PaperSection::Simulation => {}
        }
        Ok(request)
    }

    /// Checks that the options apply to section 5, and that a flow table can have the
    /// rules.
    fn check_switch(&self, request: &Request) -> Result<(), Failure> {
        let options = [
            ("--changes", self.changes.is_some()),
            ("--build-time", self.build_time.is_some()),
        ];
        if let Some((option, _)) = options.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format!(
                "{option} is for section 4 of tm19; nothing in section 5 depends on it"
            ))
            .with_help(format!("leave {option} out")));
        }
        let has_open_vswitch = request.figures.is_empty()
            || (request.figures.iter())
                .any(|figure| OPEN_VSWITCH_FIGURES.contains(&figure.as_str()));
        if self.open_vswitch.is_some() && !has_open_vswitch {
            return Err(Failure::usage(format!(
                "{OPEN_VSWITCH_OPTION} is for the figures {}; --figures names neither",
                OPEN_VSWITCH_FIGURES.join(" and ")
            ))
            .with_help(format!("leave {OPEN_VSWITCH_OPTION} out")));
        }
        let max_rules = section5::MAX_RULES;
        let what = format!("a flow table has priorities for at most {max_rules} rules");
        let help = "the paper's greatest size in section 5 is 64k";
        request.check_sizes(max_rules, &what, help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_all_values_of_the_paper() {
        tables::paper_values().check(&[1; 2]);
        offline::paper_values().check(&[1; 2]);
        collision_limit::paper_values().check(&[1; 2]);
        for file in ["update", "lookup"] {
            online::paper_ratios(file).check(&[1; 2]);
            online::paper_means(file).check(&[1; 3]);
        }
    }
}
