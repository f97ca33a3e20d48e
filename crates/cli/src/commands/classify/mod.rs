//! `classyard classify`: which rule each header hits, how often and how fast.
//!
//! A capture is read packet by packet. It is held in memory only if it has few
//! packets or `--repeat` requires passes over all headers.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use classyard::{EngineSpec, Policy, PolicyClassifier, PolicyTrace, Progress as _};
use classyard_lab::cores::{Clocks, Crew, thread_count};
use classyard_report::engine_choice::EngineChoice;
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::headers::{Headers, HeadersArgs};
use classyard_report::input::rules::{LoadedRules, RulesArgs};
use classyard_report::input::span;
use classyard_report::interrupt::{self, SoftStop};
use classyard_report::output::style::counted;
use classyard_report::output::{Format, OutputArgs, json, stdout};
use classyard_report::reporter::Reporter;
use classyard_workload::capture;
use classyard_workload::packet::LinkType;

mod count;
mod fields;
mod hits;
mod input_report;
mod logs_report;
mod lookups;
mod outcome;
mod outlet;
mod outputs;
mod packets;
mod parquet;
mod parquet_args;
mod report;
mod selection;
mod tally;
mod winners;

pub(in crate::commands) use count::{RuleHits, rule_hits};
use hits::Written;
use input_report::InputReport;
use lookups::{Lookups, Rate};
use outputs::Outputs;
use packets::{Chunk, MAX_HELD_PACKETS, Message, PacketStream};
use parquet_args::ParquetArgs;
use report::ClassifyReport;
use selection::RuleSelector;
use tally::Tally;

/// Classify packets or headers: which rule each one hits, how often, how fast
///
/// Without files, classifies the embedded example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard classify
      the embedded example: an office's traffic and its firewall
  classyard classify fw.rules -c dump.pcapng.gz
      packets of a capture against rules
  classyard classify -r acl1.txt -t acl1_trace.txt --engine tss --format json
      a ClassBench trace, looked up by another engine
  classyard classify -r fw.rules -c dump.pcap --winners - --quiet | sort | uniq -c
      only the winners, one line per packet
  classyard classify fw.rules -c dump.pcapng.gz --rule 41 --write hits.pcap
      the packets that rule 41 decides, unchanged
  classyard classify fw.rules -c dump.pcap --action drop --fields - | column -t
      a line for each dropped packet: its time, its fields and the rule
  classyard classify -r acl1.txt -t acl1_trace.txt --threads 2
      each batch is split over two threads
  classyard classify -r fw.rules --parquet 'logs/*.parquet' --columns vpc -o hits.parquet
      AWS flow logs: the rule of each row, and rows that the firewall decided otherwise
  tcpdump -w - | classyard classify -r fw.rules -c - --every 5s
      live: the counts so far, every five seconds")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    #[command(flatten)]
    headers: HeadersArgs,

    #[command(flatten)]
    parquet: ParquetArgs,

    #[command(flatten)]
    reading: RulesArgs,

    /// The engine for the lookups: NAME or NAME:OPTION=VALUE:... (see `classyard
    /// engines`), or auto for the fastest by prediction (see `classyard advise`)
    #[arg(short, long, value_name = "SPEC", value_parser = EngineChoice::parse)]
    engine: Option<EngineChoice>,

    #[command(flatten)]
    limits: BuildLimits,

    /// Time exactly N passes over the headers, which are held in memory
    ///
    /// By default, passes are repeated for a quarter of a second, at least three
    /// times unless they take long. Captures of more than 262,144 packets are then
    /// not held in memory: their headers are looked up once, while they are read.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,

    /// Look headers up on N threads
    ///
    /// The rate is headers per second of elapsed time. If the process may use fewer
    /// processors, or the threads had them for less than 90 % of the time, the report
    /// says so.
    #[arg(long, value_name = "N", value_parser = thread_count, default_value_t = 1)]
    threads: usize,

    /// Write the winner of each header to a file, - for standard output
    ///
    /// One line per header, in order: the winning rule's number in file order, from
    /// 0, or `-` if no rule matches. For a capture, one line per packet, with `x` for
    /// a packet that has no header for these rules (such as ARP with five-tuples).
    /// With - no report is printed.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    winners: Option<PathBuf>,

    /// Copy the packets that --rule and --action select to a pcap file, - for standard
    /// output
    ///
    /// The copy keeps bytes, times, lengths and the link type. With - no report is
    /// printed.
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with_all = ["trace", "repeat"],
        help_heading = "Output"
    )]
    write: Option<PathBuf>,

    /// Write a line for each packet or header to a file, - for standard output
    ///
    /// Columns are the number from 1, the time and the length of a packet, the fields of
    /// the header, and the winning rule with its line, name and action. Lines are
    /// separated by tabs, or as --format says: CSV, or a JSON object on each line.
    /// --rule and --action select lines. With - no report is printed.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "repeat",
        help_heading = "Output"
    )]
    fields: Option<PathBuf>,

    /// Select the packets that this rule decides, for --write and --fields
    ///
    /// The number that the report shows, `line:N`, `line:N:COLUMN`, `id:N`, `name:NAME`,
    /// `none` for packets that no rule matches, or `no-header` for packets that have no
    /// header for these rules. Several rules and actions select the packets of all.
    #[arg(
        long,
        value_name = "RULE",
        value_parser = RuleSelector::parse,
        value_delimiter = ',',
        help_heading = "Output"
    )]
    rule: Vec<RuleSelector>,

    /// Select the packets that rules with this action decide, for --write and --fields
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    action: Vec<String>,

    /// While a capture is read, report the counts so far at this interval (5s, 500ms,
    /// ...)
    ///
    /// For captures that take long or come from a pipe that stays open: `tcpdump -w -
    /// | classyard classify -r fw.rules -c - --every 5s`. With --format json each
    /// report is one line, including the last.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = span,
        requires = "capture",
        conflicts_with_all = ["trace", "repeat"],
        help_heading = "Output"
    )]
    every: Option<Duration>,

    /// List the N rules with the most hits; 0 for none
    ///
    /// The default is 20 in a table and in reports of --every, and all in JSON and
    /// CSV.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "all",
        help_heading = "Output"
    )]
    top: Option<usize>,

    /// List all rules that were hit, and all that never were
    #[arg(long, help_heading = "Output")]
    all: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// The default number of rules in a table.
const DEFAULT_TOP_RULES: usize = 20;

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    if !args.parquet.parquet.is_empty() {
        return parquet::run(args, reporter);
    }
    check_files(args, reporter)?;
    let rules = args.rules.path();
    let began = Instant::now();
    let rules = match args.headers.trace {
        Some(_) => args.reading.load(rules, reporter)?,
        None => args.reading.load_for_packets(rules, reporter)?,
    };
    let rules_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let input = Input::open(args, &rules.policy, reporter)?;
    let open_seconds = began.elapsed().as_secs_f64();

    let (spec, classifier, build_seconds) = build(args, &rules, reporter)?;

    let began = Instant::now();
    let mut lookup_run = LookupRun::new(args, &rules, &classifier, reporter)?;
    let input = lookup_run.run(input)?;
    let LookupRun {
        tally,
        passes,
        spent,
        usable,
        written,
        ..
    } = lookup_run;
    // If data goes to standard output, nothing is reported.
    let Some(input) = input else {
        if let Some(Written { file, packets }) = &written {
            reporter.note(&format!("{} to {file}", counted(*packets, "packet")));
        }
        return interrupt::outcome().and(usable);
    };
    let headers = input.headers;
    let mut report = ClassifyReport::new(&rules, input, &tally, args.top_rules(), args.all);
    report.engine =
        report::EngineReport::new(&spec, args.engine.is_some(), &rules.policy, &classifier);
    report.written = written;
    report.rate = Some(Rate::new(&passes, headers, args.threads));
    report.seconds = report::Seconds {
        read_rules: rules_seconds,
        read_headers: open_seconds + (began.elapsed().as_secs_f64() - spent).max(0.0),
        build: build_seconds,
        classify: passes.iter().map(|clocks| clocks.wall).sum(),
    };
    args.write_report(&report)?;
    interrupt::outcome().and(usable)
}

/// Builds the engines of the rules. Returns the chosen engine, the engines, and the seconds that
/// this took.
fn build(
    args: &Args,
    rules: &LoadedRules,
    reporter: Reporter,
) -> Result<(EngineSpec, PolicyClassifier, f64), Failure> {
    let began = Instant::now();
    let (spec, classifier) = EngineChoice::build(
        args.engine.as_ref(),
        rules.policy.parts(),
        &args.limits,
        reporter,
        |spec, limits, progress| rules.policy.build(spec, limits, progress),
    )?;
    Ok((spec, classifier, began.elapsed().as_secs_f64()))
}

/// Refuses files that do not go together.
fn check_files(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let rules = args.rules.path();
    let [capture, trace] = args.headers.files();
    only_one_from_stdin(&[("rules", rules), capture, trace])?;
    if rules.is_none() && !args.headers.is_empty() {
        reporter.note("no rules given, so the embedded example's rules are used");
    }
    if rules.is_some() && args.headers.is_empty() {
        return Err(Failure::usage("there is nothing to classify").with_help(
            "give a --capture, a --trace or --parquet; `classyard generate trace` makes a trace",
        ));
    }
    outputs::check(args)
}

impl Args {
    /// Returns the number of rules that the last report lists.
    fn top_rules(&self) -> usize {
        match (self.top, self.all, self.output.format) {
            (Some(top), _, _) => top,
            (None, false, Format::Table) => DEFAULT_TOP_RULES,
            _ => usize::MAX,
        }
    }

    /// Writes the last report; as one line if earlier reports are lines.
    fn write_report(&self, report: &ClassifyReport) -> Result<(), Failure> {
        if self.every.is_none() || self.output.format != Format::Json {
            return self.output.report(report);
        }
        let mut out = stdout();
        json::write_line(report, &mut out)?;
        Ok(out.flush()?)
    }
}

/// The input to classify.
enum Input {
    /// Headers in memory.
    Trace(Headers),
    /// Packets that are still to be read.
    Capture(PacketStream),
}

impl Input {
    fn open(args: &Args, policy: &Policy, reporter: Reporter) -> Result<Input, Failure> {
        if let Some(path) = &args.headers.trace {
            let headers = args
                .headers
                .load_trace(path, policy, &args.reading, reporter)?;
            return Ok(Input::Trace(headers));
        }
        // Repeated passes need all headers in memory.
        let (default, held) = match args.repeat {
            Some(_) => (capture::ReadOptions::DEFAULT, usize::MAX),
            None => (capture::ReadOptions::STREAMED, MAX_HELD_PACKETS),
        };
        let capture = args.headers.open_capture(&args.reading.bytes, default)?;
        let packets = PacketStream::new(capture, policy, held, outputs::kept(args))?;
        Ok(Input::Capture(packets))
    }
}

/// Looks up headers while reading them, and counts the winners.
struct LookupRun<'a> {
    args: &'a Args,
    rules: &'a LoadedRules,
    classifier: &'a PolicyClassifier,
    reporter: Reporter,
    crew: Crew,
    tally: Tally<'a>,
    outputs: Outputs<'a>,
    /// The packets that were written to a capture file.
    written: Option<Written>,
    /// The times of each pass over all headers.
    passes: Vec<Clocks>,
    /// The total time of lookups in seconds, timed passes or not.
    spent: f64,
    /// An error if no packet of the capture has a header for the rules.
    usable: Result<(), Failure>,
}

impl<'a> LookupRun<'a> {
    fn new(
        args: &'a Args,
        rules: &'a LoadedRules,
        classifier: &'a PolicyClassifier,
        reporter: Reporter,
    ) -> Result<LookupRun<'a>, Failure> {
        Ok(LookupRun {
            args,
            rules,
            classifier,
            reporter,
            crew: Crew::start(args.threads)?,
            tally: Tally::new(&rules.policy),
            outputs: Outputs::create(args, rules)?,
            written: None,
            passes: Vec::new(),
            spent: 0.0,
            usable: Ok(()),
        })
    }

    /// True if data goes to standard output, so that no report does.
    fn only_data(&self) -> bool {
        outputs::only_data(self.args)
    }

    /// Looks all headers up. Returns a description of the input, unless data goes to
    /// standard output.
    fn run(&mut self, input: Input) -> Result<Option<InputReport>, Failure> {
        let (report, link) = match input {
            Input::Trace(mut headers) => {
                let report = InputReport::trace(&headers);
                let empty = PolicyTrace::new(self.rules.policy.schemas());
                let chunk = Chunk {
                    trace: std::mem::replace(&mut headers.trace, empty),
                    packets: None,
                };
                self.look_up_timed(&chunk)?;
                (report, LinkType::Ethernet)
            }
            Input::Capture(packets) => {
                // Ctrl-C ends the capture; the command then reports the counts so far.
                let soft_stop = SoftStop::hold();
                let packets = match self.args.every {
                    Some(every) => self.live(packets, every)?,
                    None => self.stream(packets)?,
                };
                drop(soft_stop);
                packets.warn(self.reporter);
                self.usable = packets.check();
                (packets.report(), packets.link())
            }
        };
        self.written = self.outputs.finish(link)?;
        Ok((!self.only_data()).then_some(report))
    }

    /// Reads and looks up chunk by chunk.
    fn stream(&mut self, mut packets: PacketStream) -> Result<PacketStream, Failure> {
        let (chunk, last) = packets.next_chunk()?;
        if last {
            self.look_up_timed(&chunk)?;
            return Ok(packets);
        }
        let mut progress = self.reporter.progress();
        let mut next = Some((chunk, last));
        while let Some((chunk, last)) = next.take() {
            self.look_up_chunk(&chunk)?;
            // Free the chunk before the next one is read.
            drop(chunk);
            if let Some(extent) = packets.extent() {
                let _ = progress.report("classifying", extent.read(), extent.length);
            }
            if !last {
                next = Some(packets.next_chunk()?);
            }
        }
        Ok(packets)
    }

    /// Reads in another thread and reports at each interval.
    fn live(&mut self, packets: PacketStream, every: Duration) -> Result<PacketStream, Failure> {
        let began = Instant::now();
        let mut next = began + every;
        let (mut count, mut bytes) = (0, 0);
        let receiver = packets.in_background();
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            let (chunk, packets) = match receiver.recv_timeout(wait) {
                Ok(Message::More(chunk)) => (Some(chunk), None),
                Ok(Message::Last(chunk, packets)) => (Some(chunk), Some(packets)),
                Ok(Message::Failed(error)) => return Err(error.into()),
                Err(RecvTimeoutError::Timeout) => (None, None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::usage("the capture can no longer be read"));
                }
            };
            if let Some(chunk) = &chunk {
                self.look_up_chunk(chunk)?;
                if let Some(column) = &chunk.packets {
                    count += column.with_header.len() as u64;
                    bytes += column.bytes;
                }
            }
            if let Some(packets) = packets {
                return Ok(*packets);
            }
            if Instant::now() >= next {
                let headers = usize::try_from(self.tally.total.headers).unwrap_or(usize::MAX);
                let input = InputReport::so_far(count, bytes, headers);
                self.interim(input, began.elapsed().as_secs_f64())?;
                // Missed reports are skipped.
                while next <= Instant::now() {
                    next += every;
                }
            }
        }
    }

    /// Reports the counts so far.
    fn interim(&mut self, input: InputReport, seconds: f64) -> Result<(), Failure> {
        self.outputs.flush()?;
        let top = match (self.args.top, self.args.all) {
            (Some(top), _) => top,
            (None, false) => DEFAULT_TOP_RULES,
            (None, true) => usize::MAX,
        };
        let report = ClassifyReport::new(self.rules, input, &self.tally, top, false);
        let is_json = matches!(self.args.output.format, Format::Json | Format::Ndjson);
        let mut out = stdout();
        report.interim(seconds, is_json, &mut out)?;
        Ok(out.flush()?)
    }

    /// Looks up all headers, several times for timing.
    fn look_up_timed(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        // Nothing is timed if nothing is reported.
        let repeat = match self.only_data() {
            true => Some(0),
            false => self.args.repeat,
        };
        let began = Instant::now();
        let mut progress = self.reporter.progress();
        let crew = &mut self.crew;
        let lookups = Lookups::run(self.classifier, &chunk.trace, repeat, crew, &mut progress);
        drop(progress);
        self.spent += began.elapsed().as_secs_f64();
        self.passes = lookups.passes().to_vec();
        self.count(chunk, &lookups)
    }

    /// Looks up the headers of one chunk, once.
    fn look_up_chunk(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let lookups = Lookups::once(self.classifier, &chunk.trace, &mut self.crew);
        let mut clocks = Clocks::default();
        lookups.passes().iter().for_each(|pass| clocks.add(*pass));
        self.spent += clocks.wall;
        match self.passes.first_mut() {
            Some(all) => all.add(clocks),
            None => self.passes.push(clocks),
        }
        self.count(chunk, &lookups)
    }

    fn count(&mut self, chunk: &Chunk, lookups: &Lookups) -> Result<(), Failure> {
        self.outputs.write(chunk, lookups)?;
        if !self.only_data() {
            self.tally.add(chunk, lookups);
        }
        Ok(())
    }
}
