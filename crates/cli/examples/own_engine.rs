//! An engine of your own in the classyard command line: all commands, checks and
//! benchmarks support it alongside the library's engines.
//!
//! ```text
//! cargo run --release --example own_engine -- engines
//! cargo run --release --example own_engine -- check --engines stride,forest
//! cargo run --release --example own_engine -- bench --engines stride:bits=12,tss
//! ```
//!
//! The engine, `stride`, takes no updates. It reads some leading bits of one field,
//! by default the first, and has a list of the possible rules for each value of
//! these bits.

use std::process::ExitCode;
use std::sync::LazyLock;

use classyard::author::{bytes_of, grown};
use classyard::classifier::{Metric, Probe};
use classyard::engine::adapter::{Algorithm, EveryWidth, build_static};
use classyard::engine::{BuildRequest, ENGINES, Engine, EngineOption, Wraps};
use classyard::error::Refusal;
use classyard::estimate::{Costs, Shape};
use classyard::machine::Work;
use classyard::{BuildError, EngineSpec, FieldId, LookupTrace, RuleId, RuleSet, Winner};

const STRIDE: Engine = Engine {
    name: "stride",
    summary: "a list of rules for each value of some leading bits of a field",
    paper: "none; an example",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole("bits", (1, 16), 8, "leading bits that choose a list"),
        EngineOption::whole("field", (0, 63), 0, "the index of the field, from 0"),
    ],
    dynamic: Engine::takes_no_updates,
    accepts: |spec, schema| {
        let field = spec.options().whole("field");
        if field < schema.fields().len() {
            return Ok(());
        }
        let last = schema.fields().len() - 1;
        Err(Refusal {
            engine: spec.to_string(),
            field: schema.fields()[last].name().to_owned(),
            reason: format!("it is field {last}, the last, and field {field} is asked for"),
            instead: format!("choose `field` from 0 to {last}"),
        })
    },
    build: build_static::<AnyWidth>,
    estimate,
};

/// A rule is in the list of each value that its range includes. The number of these
/// lists follows from the field's bits.
#[allow(clippy::cast_precision_loss)] // an estimate
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let (schema, options) = (shape.schema(), spec.options());
    let field = schema.field_ids().nth(options.whole("field"));
    let field = field.expect("the specification was checked");
    let width = schema.field(field).width();
    let bits = u32::try_from(options.whole("bits")).expect("at most 16");
    let bits = bits.min(width);
    let mut entries = 0;
    for tuple in shape.tuples() {
        let exact = schema.get_field(&tuple.mask, field).count_ones();
        entries += tuple.rules << bits.saturating_sub(exact);
    }
    let lists = 1_usize << bits;
    let row = schema.rule_words() * size_of::<u64>() + size_of::<Winner>() + size_of::<u32>();
    let mean = entries.div_ceil(lists);
    let longest = entries as f64 / lists as f64;
    let lookup = Work::of(100.0 + 10.0 * longest);
    Ok(Costs {
        bytes: lists * (bytes_of::<u32>(grown(mean)) + size_of::<Vec<u32>>())
            + shape.rules() * (row + 1),
        build: Work::of(1000.0 * shape.rules() as f64 + 30.0 * entries as f64),
        batch: lookup.clone(),
        single: lookup,
        update: None,
    })
}

struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = Stride;
}

struct Stride {
    rules: RuleSet,
    field: FieldId,
    /// The field's bits below the leading ones.
    shift: u32,
    /// The positions of rules, best first, for each value of the leading bits.
    lists: Vec<Vec<u32>>,
    /// True if the rule at a position is deleted and must be skipped.
    hidden: Vec<bool>,
}

impl Stride {
    /// Returns the index of a key's list.
    fn list(&self, key: &[u64]) -> usize {
        let value = self.rules.schema().get_field(key, self.field);
        usize::try_from(value >> self.shift).expect("at most 16 bits")
    }

    /// Returns the rules of a list that could improve a candidate, best first.
    fn better(&self, list: usize, best: Winner) -> impl Iterator<Item = usize> {
        let list = self.lists[list].iter().map(|&at| at as usize);
        list.filter(|&at| !self.hidden[at])
            .take_while(move |&at| self.rules.rule(at).winner().beats(best))
    }
}

impl<const W: usize> Algorithm<W> for Stride {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<Stride, BuildError> {
        let (rules, options) = (request.rules, request.spec.options());
        let field = rules.schema().field_ids().nth(options.whole("field"));
        let field = field.expect("the specification was checked");
        let width = rules.schema().field(field).width();
        let bits = u32::try_from(options.whole("bits"))
            .expect("at most 16")
            .min(width);
        let shift = width - bits;
        // Memory is reserved in the monitor before it is allocated, and work is
        // reported as it is done. So limits are enforced, and users see the progress
        // and can cancel.
        let mut monitor = request.monitor();
        monitor.begin("filling lists", rules.len())?;
        let heads = bytes_of::<Vec<u32>>(1 << bits);
        let copies = rules.bytes() + bytes_of::<bool>(rules.len());
        monitor.memory().keep(heads + copies)?;
        monitor.memory().take(bytes_of::<u32>(rules.len()))?;
        let mut lists = vec![Vec::new(); 1 << bits];
        for at in rules.by_rank() {
            let (low, high) = rules.rule(at as usize).ends(field);
            let list = |end: u128| usize::try_from(end >> shift).expect("at most 16 bits");
            for list in &mut lists[list(low)..=list(high)] {
                monitor.memory().room_to_keep(list)?;
                list.push(at);
                monitor.work(1)?;
            }
            monitor.count_done(1);
        }
        Ok(Stride {
            hidden: vec![false; rules.len()],
            rules: rules.clone(),
            field,
            shift,
            lists,
        })
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let first = self
            .better(self.list(key), best)
            .map(|at| self.rules.rule(at))
            .find(|rule| rule.matches(key));
        first.map_or(best, |rule| rule.winner())
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        // The outcome depends on at most these bits.
        mask.fill(u64::MAX);
        self.improve(key, best)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let winner = self.improve(key, Winner::MISS);
        let list = self.list(key);
        let compared = self
            .better(list, Winner::MISS)
            .map(|at| self.rules.rule(at));
        let compared = compared.take_while(|rule| !winner.beats(rule.winner()));
        let (schema, mut mask) = (self.rules.schema(), vec![0; W]);
        let bits = schema.field(self.field).max_value() >> self.shift << self.shift;
        let set = schema.set_field(&mut mask, self.field, bits);
        set.expect("a value of the field");
        LookupTrace {
            probes: vec![Probe {
                table: list,
                mask,
                rules: self.lists[list].len(),
                compared: compared.map(|rule| rule.id()).collect(),
                winner,
            }],
            tables: self.lists.len(),
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.hidden.iter().filter(|hidden| !**hidden).count()
    }

    fn tables(&self) -> usize {
        self.lists.len()
    }

    fn bytes(&self) -> usize {
        let lists = self.lists.iter().map(|list| 4 * list.capacity());
        lists.sum::<usize>()
            + self.lists.capacity() * size_of::<Vec<u32>>()
            + self.hidden.capacity()
            + self.rules.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let longest = self.lists.iter().map(Vec::len).max();
        vec![Metric::count(
            "rules in the longest list",
            longest.unwrap_or(0),
        )]
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        let Some(at) = self.rules.position(id) else {
            return Some(false);
        };
        Some(!std::mem::replace(&mut self.hidden[at], true))
    }
}

/// The library's engines and this one.
static ALL: LazyLock<Vec<Engine>> = LazyLock::new(|| [ENGINES, &[STRIDE]].concat());

fn main() -> ExitCode {
    classyard_cli::run(&ALL, std::env::args_os())
}
