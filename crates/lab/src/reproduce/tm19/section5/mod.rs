//! [TM19] §V: engines as the access list of a virtual switch.
//!
//! # The pipeline
//! The paper has its engines in VPP's node for access lists, between input and a node
//! that forwards. The pipeline here has the same stages:
//! ```text
//! frame ─▶ parse ─▶ table 0: the access list ─▶ table 1: from port 1 to port 2 ─▶ nothing
//!                   every rule, and the default    one entry
//!                   rule, go to table 1
//! ```
//! Every rule accepts, as in the paper, so each packet passes all stages.
//!
//! # The measurements
//! Figs. 10, 11, 13, 14 and 15 use the same rule sets, so one measurement of a rule set
//! without caches ([`measure::Point`]) has the values of all of them. Table V and Figs. 13, 14
//! and 15 share the measurement with caches ([`cached::Point`]). Fig. 12 ([`times`]) has its
//! own.
//!
//! | module | content |
//! |---|---|
//! | `acl` | a pipeline of a rule set |
//! | `frames` | the frames of both workloads |
//! | `runner` | a worker that processes vectors |
//! | `check` | compares all engines before anything is timed |
//! | `measure` | one rule set: tables and rates |
//! | `fragments` | tables of rules with forms for fragments |
//! | `open_vswitch` | Open vSwitch over one rule set, interleaved with our workers |
//! | `cached` | one rule set: rates with and without flow caches, and of Open vSwitch |
//! | `sheets`, `cached_sheets` | the values of all rule sets, without and with caches |
//! | `columns`, `switch_tables` | rates in tables and CSV files; the table of Open vSwitch |
//! | `own` | the figures with an own access list, headers and engines |
//! | `tables`, `throughput`, `times`, `cache`, `frameworks`, `seeds` | the figures |
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::Mark;

mod acl;
pub(in crate::reproduce) mod cache;
mod cached;
mod cached_sheets;
mod check;
mod columns;
mod fragments;
mod frames;
pub(in crate::reproduce) mod frameworks;
mod measure;
mod open_vswitch;
pub(in crate::reproduce) mod own;
mod runner;
pub(in crate::reproduce) mod seeds;
mod sheets;
mod switch_tables;
pub(in crate::reproduce) mod tables;
pub(in crate::reproduce) mod throughput;
pub(in crate::reproduce) mod times;

/// A contender: the engine, and its name in pictures.
struct Contender {
    engine: &'static str,
    label: &'static str,
}

const CONTENDERS: [Contender; 7] = [
    Contender {
        engine: "linear",
        label: "linear (LS)",
    },
    Contender {
        engine: "tss",
        label: "tss (VPP TSS)",
    },
    Contender {
        engine: "tuplemerge",
        label: "tuplemerge (VPP TM)",
    },
    Contender {
        engine: "forest",
        label: "forest (ours)",
    },
    Contender {
        engine: "tss",
        label: "tss, single ports (OVS TSS)",
    },
    Contender {
        engine: "tuplemerge",
        label: "tuplemerge, single ports",
    },
    Contender {
        engine: "forest",
        label: "no rules",
    },
];

/// Indices in [`CONTENDERS`]. Two contenders have OVS's rules, with a single port in
/// place of every range of ports; the last one has the default rule only, and shows the
/// cost of everything except the access list.
const LINEAR_SEARCH: usize = 0;
const TUPLE_SPACE: usize = 1;
const TUPLE_MERGE: usize = 2;
const FOREST: usize = 3;
const OVS_TUPLE_SPACE: usize = 4;
const OVS_TUPLE_MERGE: usize = 5;
const NO_RULES: usize = 6;

/// The contenders over unchanged rules.
const ENGINES: [usize; 4] = [LINEAR_SEARCH, TUPLE_SPACE, TUPLE_MERGE, FOREST];

/// The traffic: headers of rules, and headers that match only the default rule if
/// possible.
const SYNTHETIC_TRAFFIC: usize = 0;
const DEFAULT_RULE_TRAFFIC: usize = 1;
const WORKLOADS: [(&str, Mark); 2] = [
    ("synthetic", Mark::Circle),
    ("default rule", Mark::Triangle),
];

/// Default numbers of rules: the paper's, from 2 to 64k.
const SIZES: [usize; 11] = [
    2, 16, 128, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000,
];

/// Numbers of rules of a quick reproduction.
const FEW_SIZES: [usize; 4] = [16, 500, 4_000, 16_000];

/// The greatest number of rules of a table: each has its own priority, and the default
/// rule has 0.
pub(in crate::reproduce) const MAX_RULES: usize = 65_535;

/// The year of the paper, and the machine of its switches (§V.A).
const MACHINE: &str = "in 2019 on one core of two Intel Xeon E5-2690 at 2.6 GHz";

/// The number of packets in a vector, as in VPP.
const VECTOR_PACKETS: usize = 256;

/// Millions of packets a second.
fn mpps(rate: f64) -> f64 {
    rate / 1e6
}

/// The report's description of pipelines and frames.
const SETUP: &str = "Frames of 64 bytes (60 and the checksum, which is not there) are copied into \
                     packets and parsed, looked up in table 0, which has the access list, and in \
                     table 1, which sends what comes in by port 1 out by port 2; there they end. \
                     All rules accept. Vectors of 256 packets, one core, CPU time, no flow caches; \
                     there is no network card, so no rate is limited by a link, which ends at \
                     14.88 million packets a second in the paper. OpenFlow has no ranges: a range \
                     of ports is several flow entries.";

/// The report's description of the traffic.
const TRAFFIC: &str = "Synthetic traffic: a corner of a rule for each packet, all rules equally \
                       likely. The paper's real traffic is a trace of a backbone, which is not \
                       here. A stand-in takes its place, called the default rule's: as the paper \
                       says of the trace, its packets have nothing to do with the rules. 19 of 20 \
                       packets are of flows with random addresses, mostly TCP to or from a few \
                       ports, drawn anew (64 times at most) where a rule but the default one \
                       matches them; the flow of rank k is as frequent as 1/k. The others are \
                       packets of the synthetic traffic. Many of the larger rule sets have rules \
                       for all addresses, so that no header is left to the default rule: there \
                       packets match a few such rules of low priority in its place, as the table \
                       shows.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_all_values_of_the_paper() {
        cache::paper_values().check(&[7; 4]);
        throughput::paper_values().check(&[1]);
        for engine in [LINEAR_SEARCH, TUPLE_SPACE, TUPLE_MERGE] {
            times::paper_values(engine).unwrap().check(&[2]);
        }
        assert!(times::paper_values(FOREST).is_none());
    }
}
