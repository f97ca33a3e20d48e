//! Measures lookups by the C functions and the same lookups in Rust, in one run.
//!
//! `cargo run --release -p classyard-capi --example rates [engine=SPEC] [PROFILE[:RULES]...]`
//!
//! Each line has headers per second of thread CPU time, in millions: medians of interleaved
//! rounds over one million headers in batches of 256 keys or in one call. All answers are
//! compared.

#![allow(clippy::print_stdout, unsafe_code)]

use std::error::Error;
use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use classyard::columns::{Column as CoreColumn, Columns};
use classyard::{Classifier, EngineSpec, KeyVec, NoProgress, Policy, RuleId, Scratch, Winner};
use classyard_c::{
    Column, ColumnType, NO_RULE, Output, Reader, Status, Table, cy_classify_columns,
    cy_classify_keys, cy_policy_parse, cy_reader_new, cy_table_new,
};
use classyard_workload::formats::{RuleFormat, write_policy};
use classyard_workload::generate::{Family, GeneratorConfig, Profile, Recipe, generate};
use classyard_workload::traffic::{TrafficConfig, TrafficRecipe, traffic};
use rustix::time::{ClockId, clock_gettime};

const HEADER_COUNT: usize = 1_000_000;
const ROUND_COUNT: usize = 7;
const RULE_SETS: [&str; 6] = [
    "acl1:10k", "fw1:10k", "ipc1:10k", "acl1:64k", "fw1:64k", "ipc1:64k",
];

/// The columns of five-tuples.
struct FiveTuples {
    src: Vec<u32>,
    dst: Vec<u32>,
    sport: Vec<u16>,
    dport: Vec<u16>,
    proto: Vec<u8>,
}

#[allow(clippy::cast_possible_truncation)] // each value fits its field
fn five_tuples(keys: &KeyVec) -> FiveTuples {
    let ids: Vec<_> = keys.schema().field_ids().collect();
    let column = |field: usize| (0..keys.len()).map(move |row| (row, field));
    let get = |(row, field): (usize, usize)| keys.get(row, ids[field]);
    FiveTuples {
        src: column(0).map(|place| get(place) as u32).collect(),
        dst: column(1).map(|place| get(place) as u32).collect(),
        sport: column(2).map(|place| get(place) as u16).collect(),
        dport: column(3).map(|place| get(place) as u16).collect(),
        proto: column(4).map(|place| get(place) as u8).collect(),
    }
}

fn policy(profile: &str, rules: usize) -> Result<Policy, Box<dyn Error>> {
    let profile = Profile::built_in(profile).ok_or_else(|| format!("no profile {profile}"))?;
    let mut recipe = Recipe::new(Family::Ipv4(Arc::new(profile.clone())), rules, 1);
    recipe.config = GeneratorConfig::benchmark(rules, 1);
    recipe.accept_fewer = true;
    Ok(generate(&recipe, &mut NoProgress)?)
}

/// Builds a table from the text of the rules and returns a reader of it, through C.
fn reader(policy: &Policy, engine: &str) -> Result<*mut Reader, Box<dyn Error>> {
    let mut text = Vec::new();
    write_policy(policy, RuleFormat::Rules, &mut text)?;
    let (text, engine) = (CString::new(text)?, CString::new(engine)?);
    let (mut policy, mut table, mut reader) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let length = text.as_bytes().len();
    let none = ptr::null();
    // SAFETY: the texts and places are as the functions document.
    unsafe {
        let parsed = cy_policy_parse(text.as_ptr(), length, none, none, none, &raw mut policy);
        assert_eq!(parsed, Status::Ok);
        assert_eq!(
            cy_table_new(policy, engine.as_ptr(), &raw mut table),
            Status::Ok
        );
        let table: *mut Table = table;
        assert_eq!(cy_reader_new(table, &raw mut reader), Status::Ok);
    }
    Ok(reader)
}

/// Returns the seconds of thread CPU time that some work takes.
fn seconds(work: impl FnOnce()) -> f64 {
    let cpu_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(
            time.tv_sec.unsigned_abs(),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    };
    let begin = cpu_time();
    work();
    (cpu_time() - begin).as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The ways to look up that are compared.
const LOOKUP_WAYS: [&str; 5] = [
    "Rust, keys",
    "Rust, columns",
    "C, keys",
    "C, columns",
    "C, columns, actions",
];

/// Rules, headers, and where lookups write.
struct Bench<'a> {
    keys: &'a KeyVec,
    headers: &'a FiveTuples,
    classifier: Box<dyn Classifier>,
    reader: *mut Reader,
    scratch: Scratch,
    winners: Vec<Winner>,
    rules: Vec<u32>,
    actions: Vec<u32>,
}

impl Bench<'_> {
    fn rust_keys(&mut self) {
        let batches = self.keys.batches(256).zip(self.winners.chunks_mut(256));
        for (keys, winners) in batches {
            self.classifier
                .classify_batch(keys, winners, &mut self.scratch);
        }
    }

    fn rust_columns(&mut self) {
        let columns = [
            CoreColumn::U32(&self.headers.src),
            CoreColumn::U32(&self.headers.dst),
            CoreColumn::U16(&self.headers.sport),
            CoreColumn::U16(&self.headers.dport),
            CoreColumn::U8(&self.headers.proto),
        ];
        let columns = Columns::new(self.keys.schema(), &columns).expect("columns that fit");
        let (winners, scratch) = (&mut self.winners, &mut self.scratch);
        self.classifier.classify_columns(&columns, winners, scratch);
    }

    fn output(&mut self, with_actions: bool) -> Output {
        let actions = self.actions.as_mut_ptr();
        Output {
            rules: self.rules.as_mut_ptr(),
            actions: if with_actions {
                actions
            } else {
                ptr::null_mut()
            },
            cookies: ptr::null_mut(),
        }
    }

    fn c_keys(&mut self) {
        let output = self.output(false);
        let (words, rows) = (self.keys.as_slice().words().as_ptr(), self.keys.len());
        // SAFETY: the arrays have `rows` keys and places.
        let status = unsafe { cy_classify_keys(self.reader, 0, words, rows, &raw const output) };
        assert_eq!(status, Status::Ok);
    }

    fn c_columns(&mut self, with_actions: bool) {
        let output = self.output(with_actions);
        let column = |kind: ColumnType, values: *const _| Column {
            kind: kind as u32,
            size: 0,
            values,
        };
        let columns = [
            column(ColumnType::U32, self.headers.src.as_ptr().cast()),
            column(ColumnType::U32, self.headers.dst.as_ptr().cast()),
            column(ColumnType::U16, self.headers.sport.as_ptr().cast()),
            column(ColumnType::U16, self.headers.dport.as_ptr().cast()),
            column(ColumnType::U8, self.headers.proto.as_ptr().cast()),
        ];
        let (columns, rows) = (columns.as_ptr(), self.keys.len());
        // SAFETY: the arrays have `rows` values and places.
        let status =
            unsafe { cy_classify_columns(self.reader, 0, columns, 5, rows, &raw const output) };
        assert_eq!(status, Status::Ok);
    }

    fn run(&mut self, way: usize) {
        match way {
            0 => self.rust_keys(),
            1 => self.rust_columns(),
            2 => self.c_keys(),
            _ => self.c_columns(way == 4),
        }
    }

    /// Returns the median of each way in seconds. Compares the winners after each round.
    fn medians(&mut self) -> [f64; 5] {
        let mut times = LOOKUP_WAYS.map(|_| Vec::new());
        for _ in 0..ROUND_COUNT {
            for (way, times) in times.iter_mut().enumerate() {
                times.push(seconds(|| self.run(way)));
            }
            let winners = self.winners.iter();
            let ids = winners.map(|winner| winner.rule().map_or(NO_RULE, RuleId::get));
            assert!(ids.eq(self.rules.iter().copied()), "the same winners");
        }
        times.map(median)
    }
}

fn measure(set: &str, engine: &str) -> Result<(), Box<dyn Error>> {
    let (profile, size) = set.split_once(':').unwrap_or((set, "10k"));
    let rules = match size.strip_suffix('k') {
        Some(thousands) => thousands.parse::<usize>()? * 1000,
        None => size.parse()?,
    };
    let policy = policy(profile, rules)?;
    let config = TrafficConfig::new(HEADER_COUNT, 2);
    let recipe = TrafficRecipe::classbench();
    let headers = traffic(&policy, &recipe, &config, None, &mut NoProgress)?;
    let (_, keys) = headers.trace.parts().next().ok_or("a part")?;
    let rows = keys.len();
    let mut bench = Bench {
        keys,
        headers: &five_tuples(keys),
        classifier: EngineSpec::parse(engine)?
            .builder()
            .build(&policy.parts()[0])?,
        reader: reader(&policy, engine)?,
        scratch: Scratch::new(),
        winners: vec![Winner::MISS; rows],
        rules: vec![0; rows],
        actions: vec![0; rows],
    };
    let rates = bench.medians().map(|time| rows as f64 / time / 1e6);
    print!("{set:10}");
    for (way, rate) in LOOKUP_WAYS.iter().zip(&rates) {
        print!("  {way} {rate:.1} ({:.2})", rate / rates[0]);
    }
    println!();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut engine = "forest".to_owned();
    let mut sets = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("engine=") {
            Some(spec) => spec.clone_into(&mut engine),
            None => sets.push(argument),
        }
    }
    if sets.is_empty() {
        sets = RULE_SETS.map(str::to_owned).to_vec();
    }
    sets.iter().try_for_each(|set| measure(set, &engine))
}
