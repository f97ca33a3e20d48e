//! `classyard engines`: lists the engines and their options.

use std::io::{self, Write};

use classyard::EngineSpec;
use classyard::engine::{self, OptionKind, OptionValue, Wraps};
use classyard_report::failure::Failure;
use classyard_report::output::style::{BOLD, DIM, paint};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_report::registry::{self, DEFAULT};
use serde::Serialize;

/// List the engines, their strengths and their options
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard engines
  classyard engines --format json

An engine is asked for as NAME or NAME:OPTION=VALUE:..., such as
  classyard classify --engine tuplemerge:c=20
and one that wraps another engine as NAME(INNER) or NAME(INNER):OPTION=VALUE:...

JSON: engines, a list of name, default, summary, paper, dynamic (whether it takes updates; null
where that depends on the engine that it wraps), wraps (nothing, static or any) and options, each
with name, type (whole, decimal, choice or seed), min, max, choices, unavailable (choices that
this processor lacks, each with choice and reason), default and help.")]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Engines {
    engines: Vec<Engine>,
}

#[derive(Serialize)]
struct Engine {
    name: &'static str,
    default: bool,
    summary: &'static str,
    paper: &'static str,
    dynamic: Option<bool>,
    wraps: &'static str,
    options: Vec<EngineOption>,
}

#[derive(Serialize)]
struct EngineOption {
    name: &'static str,
    r#type: &'static str,
    min: Option<Number>,
    max: Option<Number>,
    choices: &'static [&'static str],
    unavailable: Vec<Unavailable>,
    default: Value,
    help: &'static str,
    /// The values, as a phrase.
    #[serde(skip)]
    values: String,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Number {
    Whole(usize),
    Decimal(f64),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Number(Number),
    Word(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(Number::Whole(number)) => number.fmt(f),
            Value::Number(Number::Decimal(number)) => number.fmt(f),
            Value::Word(word) => f.write_str(word),
        }
    }
}

/// An option value that this host does not support.
#[derive(Serialize)]
struct Unavailable {
    choice: &'static str,
    reason: String,
}

impl Engine {
    fn new(engine: &'static engine::Engine) -> Engine {
        let specs = EngineSpec::defaults(registry::engines(), engine);
        let dynamic: Vec<bool> = specs.map(|spec| spec.is_dynamic()).collect();
        let first = dynamic.first().copied();
        Engine {
            name: engine.name,
            default: engine.name == DEFAULT,
            summary: engine.summary,
            paper: engine.paper,
            dynamic: first.filter(|first| dynamic.iter().all(|other| other == first)),
            wraps: match engine.wraps {
                Wraps::Nothing => "nothing",
                Wraps::Static => "static",
                Wraps::Any => "any",
            },
            options: engine.options.iter().map(EngineOption::new).collect(),
        }
    }

    fn updates(&self) -> &'static str {
        match self.dynamic {
            Some(true) => "takes updates",
            Some(false) => "static",
            None => "takes updates if the engine that it wraps does",
        }
    }

    /// Returns the name as written on a command line.
    fn form(&self) -> String {
        match self.wraps {
            "nothing" => self.name.to_owned(),
            _ => format!("{}(INNER)", self.name),
        }
    }
}

impl EngineOption {
    fn new(option: &engine::EngineOption) -> EngineOption {
        let (min, max) = match option.kind {
            OptionKind::Whole { min, max } | OptionKind::WholeOrAuto { min, max } => (
                Some(Number::Whole(min)),
                (max < usize::MAX).then_some(Number::Whole(max)),
            ),
            OptionKind::Decimal { min, max } => {
                (Some(Number::Decimal(min)), Some(Number::Decimal(max)))
            }
            _ => (None, None),
        };
        let unavailable = option.kind.words().iter().filter_map(|word| {
            let reason = option.lacks(&OptionValue::Choice(word))?;
            Some(Unavailable {
                choice: word,
                reason,
            })
        });
        EngineOption {
            name: option.name,
            r#type: option.kind.name(),
            min,
            max,
            choices: option.kind.words(),
            unavailable: unavailable.collect(),
            default: match option.default {
                OptionValue::Whole(number) => Value::Number(Number::Whole(number)),
                OptionValue::Decimal(number) => Value::Number(Number::Decimal(number)),
                other => Value::Word(other.to_string()),
            },
            help: option.help,
            values: option.kind.to_string(),
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.report(&Engines {
        engines: registry::engines().iter().map(Engine::new).collect(),
    })
}

impl Report for Engines {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, engine) in self.engines.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let default = if engine.default { " (the default)" } else { "" };
            writeln!(out, "{}{default}", paint(BOLD, &engine.form()))?;
            writeln!(out, "    {}", engine.summary)?;
            let origin = format!("{}; from {}", engine.updates(), engine.paper);
            writeln!(out, "    {}", paint(DIM, &origin))?;
            for option in &engine.options {
                let name = format!(":{}={}", option.name, option.default);
                writeln!(out, "    {}", paint(BOLD, &name))?;
                writeln!(out, "        {}", option.help)?;
                writeln!(out, "        {}", paint(DIM, &option.values))?;
                for lacking in &option.unavailable {
                    let Unavailable { choice, reason } = lacking;
                    let line = format!("{choice} is not supported here: {reason}");
                    writeln!(out, "        {}", paint(DIM, &line))?;
                }
            }
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"name", &"default", &"dynamic", &"paper", &"summary", &"options",
        ])?;
        for engine in &self.engines {
            let options = engine.options.iter();
            let options = options.map(|option| format!("{}={}", option.name, option.default));
            let options = options.collect::<Vec<_>>().join(" ");
            let dynamic = engine.dynamic.map(|dynamic| dynamic.to_string());
            out.row(&[
                &engine.name,
                &engine.default,
                &dynamic.unwrap_or_default(),
                &engine.paper,
                &engine.summary,
                &options,
            ])?;
        }
        Ok(())
    }
}
