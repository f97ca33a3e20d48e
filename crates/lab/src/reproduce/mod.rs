//! `classyard reproduce`: measures the figures and tables of papers again.

use std::path::PathBuf;
use std::time::Duration;

mod claims;
mod dec14;
mod fch14;
mod fts25;
mod html;
mod machine;
mod points;
mod sfl17;
mod statistics;
mod study;
mod tm19;

use claims::Section;
use classyard_report::failure::Failure;
use classyard_report::input::{count, span};
use classyard_report::reporter::Reporter;
use study::Study;

/// Measure the figures and tables of a paper again
///
/// Each figure is an SVG picture and a CSV file with its data. At the end report.html has
/// all pictures and tables, and lists for each claim of the paper what was measured and
/// whether the claim holds. Every measurement is kept in points.ndjson: to continue an
/// interrupted reproduction, give the same command again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures of tm19 (TupleMerge, ToN 2019):
  tables           tables against rules (Fig. 2)
  online           updates, single lookups and memory (Figs. 1, 3 and 4)
  offline          SmartSplit and TupleMerge over all rules at once (Fig. 5)
  partitions       tables against SAX-PAC's sets of rules without overlaps (Fig. 6)
  collision-limit  search time against the collision limit (Figs. 7 and 8)
  growth           time and memory of building as rule sets grow

Figures of tm19 --section 5 (in a virtual switch):
  pipeline-tables      tables alone and in a pipeline (Fig. 10)
  pipeline-throughput  packets a second against rules (Fig. 11)
  pipeline-times       times of single packets (Fig. 12)
  pipeline-cache       the front-end cache, and ours (Table V)
  pipeline-frameworks  rules of VPP and of Open vSwitch (Fig. 13)
  pipeline-seeds       seed by seed at the greatest size (Figs. 14 and 15)

Figures of sfl17 (The Small, the Fast and the Lazy, 2017):
  operations       changes and lookups, each for itself (Fig. 5)
  updates          headers and changes in 10 seconds (Table II, Fig. 6)
  threshold        the same against δ (Figs. 7 and 8)

Figures of dec14 (decomposition on multi-core processors, 2014):
  rule-sets        unique rules of each field (Table III)
  latency          time against rules, and the model's prediction (Fig. 2, Tables V and VI)
  concurrency      latency against headers together and threads (Fig. 3)
  throughput       with and without optimisations, and the peak (Fig. 4, Table VII)
  split            one rule set split over cores, winners merged

Figures of fch14 (Flow Caching for High Entropy Packet Fields, 2014):
  acls             cached flows and masks of random ACLs (Table 4, Fig. 3)
  providers        lists of ports like those of two providers (Table 5)
  cost             what computing flows adds to classification (Table 6)
  cross-product    all flows of a pipeline ahead of time (Fig. 2)

Figures of fts25 (FastTSS, 2025):
  tables              hit rates and search lengths by formula (Tables 1 and 2)
  wildcarding-flows   flows that share an entry, over time (Fig. 9)
  hit-rates           hit rates by size, threshold, scheme and bytes (Figs. 10 to 12)
  search-length       average search length, and eqs. 5 to 8 (Figs. 13 and 14)

Examples:
  classyard reproduce sfl17 --quick
  classyard reproduce dec14 --quick
  classyard reproduce fch14 --quick
  classyard reproduce fts25 --quick
  classyard reproduce tm19
  classyard reproduce tm19 --section 5 --quick -o switch
  classyard reproduce tm19 --figures tables --sizes 1k,4k,16k,64k,256k -o figures
  classyard reproduce sfl17 --figures updates --sets 3 --run 2s")]
pub struct Args {
    /// The paper
    #[arg(value_enum)]
    paper: Paper,

    /// The section of tm19: 4, the simulation of algorithms, or 5, engines as the access
    /// list of a virtual switch [default: 4]
    #[arg(long, value_enum, value_name = "NUMBER")]
    section: Option<PaperSection>,

    /// The folder to write to; it is created if missing
    #[arg(
        short,
        long,
        alias = "out",
        default_value = "reproduced",
        value_name = "DIR",
        help_heading = "Output"
    )]
    output: PathBuf,

    /// The figures to draw [default: all of the paper]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    figures: Vec<String>,

    /// Fewer rule sets, sizes and points, and shorter runs: a few minutes
    #[arg(long)]
    quick: bool,

    /// Measure everything again and discard the measurements in the folder
    #[arg(long)]
    restart: bool,

    /// Numbers of rules, of every figure
    ///
    /// Defaults: tm19's tables and online 1k, 2k, 4k, ... 256k; offline up to 64k;
    /// partitions up to 16k; collision-limit 1k, 8k and 64k; growth 10k, 20k, 50k, ...
    /// 1M. Greater sizes are left out of offline, partitions and collision-limit. tm19
    /// --section 5: 2, 16, 128, 500, 1k, 2k, ... 64k; at most 65,535. sfl17: 2k, as in
    /// the paper; only the first size counts. dec14: 1k, 2k, ... 32k; the model is fitted
    /// to the first two. fch14's ACLs: 10, 100, 1k, 5k and 10k; at most 65,536.
    #[arg(long, value_delimiter = ',', value_parser = sizes, value_name = "COUNTS")]
    sizes: Vec<usize>,

    /// Profiles: built-in names or TOML files [default: all built-in ones]. dec14 and
    /// fch14 have rule sets of their own
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    profiles: Vec<String>,

    /// Headers in each trace [default: tm19 200k, sfl17 and dec14 100k, fch14's cost
    /// 10M, quick 20k; fts25 15,420,235 packets, quick 2M]
    #[arg(long, value_parser = some, value_name = "COUNT")]
    headers: Option<usize>,

    /// Rule sets for each point of sfl17, taken from the profiles in rotation [default:
    /// 10, quick 2], for each profile and size of tm19's online and offline [default: 5,
    /// quick 1] and of its section 5 [default: 1], and lists of ports of fch14's acls
    /// [default: 5, quick 1]
    #[arg(long, value_parser = some, value_name = "COUNT")]
    sets: Option<usize>,

    /// Insertions of tm19's updates, and the same number of deletions [default: 500k,
    /// quick 20k]
    #[arg(long, value_parser = some, value_name = "COUNT")]
    changes: Option<usize>,

    /// Give up building an engine of tm19's offline after this time [default: 5m,
    /// quick 10s]
    #[arg(long, value_parser = span, value_name = "TIME")]
    build_time: Option<Duration>,

    /// Length of a run of sfl17's simulator, 10 seconds in the paper; the rate of changes
    /// is the paper's [default: 10s, quick 600ms]
    #[arg(long, value_parser = run_time, value_name = "TIME")]
    run: Option<Duration>,

    /// Seed of the random numbers
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Paper {
    /// Daly et al., TupleMerge, ToN 2019
    Tm19,
    /// The Small, the Fast and the Lazy (SFL), 2017
    Sfl17,
    /// Qu et al., decomposition on multi-core processors, 2014
    Dec14,
    /// Flow Caching for High Entropy Packet Fields, 2014
    Fch14,
    /// Xiong et al., FastTSS, 2025
    Fts25,
}

/// A section of [TM19].
///
/// [TM19]: classyard::papers#tm19
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PaperSection {
    /// The simulation of algorithms
    #[value(name = "4")]
    Simulation,
    /// Engines in a virtual switch
    #[value(name = "5")]
    Switch,
}

/// A figure or table of a paper, or several that are measured together.
struct Figure {
    name: &'static str,
    draw: fn(&mut Study<'_>) -> Result<Section, Failure>,
}

impl Paper {
    fn key(self) -> &'static str {
        match self {
            Paper::Tm19 => "tm19",
            Paper::Sfl17 => "sfl17",
            Paper::Dec14 => "dec14",
            Paper::Fch14 => "fch14",
            Paper::Fts25 => "fts25",
        }
    }

    fn title(self, section: Option<PaperSection>) -> &'static str {
        match self {
            Paper::Tm19 if section == Some(PaperSection::Switch) => {
                "TupleMerge in a virtual switch [TM19, §V], measured with classyard"
            }
            Paper::Tm19 => "TupleMerge [TM19], measured with classyard",
            Paper::Sfl17 => "The Small, the Fast and the Lazy [SFL17], measured with classyard",
            Paper::Dec14 => {
                "Decomposition on multi-core processors [DEC14], measured with classyard"
            }
            Paper::Fch14 => {
                "Flow caching for high entropy packet fields [FCH14], measured with classyard"
            }
            Paper::Fts25 => "FastTSS [FTS25], measured with classyard",
        }
    }

    fn figures(self, section: Option<PaperSection>) -> &'static [Figure] {
        match self {
            Paper::Tm19 if section == Some(PaperSection::Switch) => &[
                Figure {
                    name: "pipeline-tables",
                    draw: tm19::section5::tables::draw,
                },
                Figure {
                    name: "pipeline-throughput",
                    draw: tm19::section5::throughput::draw,
                },
                Figure {
                    name: "pipeline-times",
                    draw: tm19::section5::times::draw,
                },
                Figure {
                    name: "pipeline-cache",
                    draw: tm19::section5::cache::draw,
                },
                Figure {
                    name: "pipeline-frameworks",
                    draw: tm19::section5::frameworks::draw,
                },
                Figure {
                    name: "pipeline-seeds",
                    draw: tm19::section5::seeds::draw,
                },
            ],
            Paper::Tm19 => &[
                Figure {
                    name: "tables",
                    draw: tm19::tables::draw,
                },
                Figure {
                    name: "online",
                    draw: tm19::online::draw,
                },
                Figure {
                    name: "offline",
                    draw: tm19::offline::draw,
                },
                Figure {
                    name: "partitions",
                    draw: tm19::partitions::draw,
                },
                Figure {
                    name: "collision-limit",
                    draw: tm19::collision_limit::draw,
                },
                Figure {
                    name: "growth",
                    draw: tm19::growth::draw,
                },
            ],
            Paper::Sfl17 => &[
                Figure {
                    name: "operations",
                    draw: sfl17::operations::draw,
                },
                Figure {
                    name: "updates",
                    draw: sfl17::updates::draw,
                },
                Figure {
                    name: "threshold",
                    draw: sfl17::threshold::draw,
                },
            ],
            Paper::Dec14 => &[
                Figure {
                    name: "rule-sets",
                    draw: dec14::rule_sets::draw,
                },
                Figure {
                    name: "latency",
                    draw: dec14::latency::draw,
                },
                Figure {
                    name: "concurrency",
                    draw: dec14::concurrency::draw,
                },
                Figure {
                    name: "throughput",
                    draw: dec14::throughput::draw,
                },
                Figure {
                    name: "split",
                    draw: dec14::split::draw,
                },
            ],
            Paper::Fch14 => &[
                Figure {
                    name: "acls",
                    draw: fch14::acls::draw,
                },
                Figure {
                    name: "providers",
                    draw: fch14::providers::draw,
                },
                Figure {
                    name: "cost",
                    draw: fch14::cost::draw,
                },
                Figure {
                    name: "cross-product",
                    draw: fch14::cross_product::draw,
                },
            ],
            Paper::Fts25 => &[
                Figure {
                    name: "tables",
                    draw: fts25::tables::draw,
                },
                Figure {
                    name: "wildcarding-flows",
                    draw: fts25::flows::draw,
                },
                Figure {
                    name: "hit-rates",
                    draw: fts25::hit_rates::draw,
                },
                Figure {
                    name: "search-length",
                    draw: fts25::search_length::draw,
                },
            ],
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    check_section(args)?;
    let figures = chosen(args)?;
    if args.paper == Paper::Dec14 && !args.profiles.is_empty() {
        return Err(Failure::usage(
            "dec14 has rule sets of its own, those of the paper's Table III",
        )
        .with_help("leave --profiles out; --sizes and --seed make other rule sets"));
    }
    if args.paper == Paper::Fch14 {
        check_ports(args)?;
    }
    if args.paper == Paper::Fts25 && !(args.profiles.is_empty() && args.sizes.is_empty()) {
        return Err(Failure::usage(
            "fts25 has traffic of its own, like the paper's traces, and no rules",
        )
        .with_help(
            "leave --profiles and --sizes out; --headers is for the packets of each trace",
        ));
    }
    let mut study = Study::new(args, reporter)?;
    let mut sections = Vec::new();
    for figure in figures {
        study.begin(figure.name);
        sections.push((figure.draw)(&mut study)?);
    }
    study.end(&sections)
}

/// Checks that lists of ports can have the given sizes.
fn check_ports(args: &Args) -> Result<(), Failure> {
    if !args.profiles.is_empty() {
        return Err(Failure::usage("fch14 has lists of ports, and no profiles")
            .with_help("leave --profiles out; --sizes and --seed make other lists"));
    }
    match args.sizes.iter().find(|&&size| size > fch14::PORT_COUNT) {
        Some(size) => Err(Failure::usage(format!(
            "--sizes {size}: there are {} ports",
            fch14::PORT_COUNT
        ))
        .with_help("the paper has at most 10k ACLs")),
        None => Ok(()),
    }
}

/// Checks that the paper has the section, and that the options apply to it.
fn check_section(args: &Args) -> Result<(), Failure> {
    let Some(section) = args.section else {
        return Ok(());
    };
    if args.paper != Paper::Tm19 {
        return Err(Failure::usage(format!(
            "--section is for tm19; {} is reproduced as a whole",
            args.paper.key()
        ))
        .with_help("leave --section out; --figures chooses some of the figures"));
    }
    if section == PaperSection::Simulation {
        return Ok(());
    }
    let foreign_options = [
        ("--changes", "section 4 of tm19", args.changes.is_some()),
        (
            "--build-time",
            "section 4 of tm19",
            args.build_time.is_some(),
        ),
        ("--run", "sfl17", args.run.is_some()),
    ];
    if let Some((option, owner, _)) = foreign_options.iter().find(|(.., is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "{option} is for {owner}; nothing in section 5 depends on it"
        ))
        .with_help(format!("leave {option} out")));
    }
    let max_rules = tm19::section5::MOST_RULES;
    match args.sizes.iter().find(|&&size| size > max_rules) {
        Some(size) => Err(Failure::usage(format!(
            "--sizes {size}: a flow table has priorities for at most {max_rules} rules"
        ))
        .with_help("the paper's greatest size in section 5 is 64k")),
        None => Ok(()),
    }
}

/// Returns the figures of `--figures`, in the order of the paper.
fn chosen(args: &Args) -> Result<Vec<&'static Figure>, Failure> {
    let figures = args.paper.figures(args.section);
    let is_unknown = |name: &&String| !figures.iter().any(|figure| figure.name == name.as_str());
    if let Some(name) = args.figures.iter().find(is_unknown) {
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        return Err(Failure::usage(format!(
            "{}{} has no figure `{name}`; expected some of {}",
            args.paper.key(),
            match args.section {
                Some(PaperSection::Switch) => " --section 5",
                _ => "",
            },
            names.join(", ")
        )));
    }
    let is_chosen = |figure: &&Figure| {
        let names = args.figures.iter();
        args.figures.is_empty() || names.into_iter().any(|name| name == figure.name)
    };
    Ok(figures.iter().filter(is_chosen).collect())
}

/// Reads a number of rules, for the argument parser.
fn sizes(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("figures need at least 1 rule".to_owned()),
        size => Ok(size),
    }
}

/// Reads a count of at least 1, for the argument parser.
fn some(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("expected at least 1".to_owned()),
        count => Ok(count),
    }
}

/// Reads the length of a run, for the argument parser.
fn run_time(text: &str) -> Result<Duration, String> {
    match span(text)? {
        run if run < Duration::from_millis(10) => Err("expected at least 10ms".to_owned()),
        run if run > Duration::from_secs(3_600) => Err("expected at most 1h".to_owned()),
        run => Ok(run),
    }
}
