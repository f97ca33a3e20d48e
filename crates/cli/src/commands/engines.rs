//! `classyard engines`: what there is to choose from.

use std::io::{self, Write};

use classyard::ENGINES;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::style::{BOLD, DIM, paint};
use crate::output::{OutputArgs, Report, csv};

/// The engine that commands take when none is asked for.
pub(crate) const DEFAULT: &str = "forest";

/// List the engines, what each is good for and the options it takes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard engines
  classyard engines --format json

An engine is asked for as NAME or NAME:OPTION=VALUE:..., such as
  classyard classify --engine tuplemerge:c=20")]
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
    dynamic: bool,
    options: Vec<EngineOption>,
}

#[derive(Serialize)]
struct EngineOption {
    name: &'static str,
    help: &'static str,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let engines = ENGINES.iter().map(|engine| Engine {
        name: engine.name,
        default: engine.name == DEFAULT,
        summary: engine.summary,
        paper: engine.paper,
        dynamic: engine.dynamic,
        options: engine
            .options
            .iter()
            .map(|option| EngineOption {
                name: option.name,
                help: option.help,
            })
            .collect(),
    });
    args.output.report(&Engines {
        engines: engines.collect(),
    })
}

impl Report for Engines {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, engine) in self.engines.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let default = if engine.default { " (the default)" } else { "" };
            let updates = if engine.dynamic {
                "takes updates"
            } else {
                "static"
            };
            writeln!(out, "{}{default}", paint(BOLD, engine.name))?;
            writeln!(out, "    {}", engine.summary)?;
            writeln!(
                out,
                "    {}",
                paint(DIM, &format!("{updates}; from {}", engine.paper))
            )?;
            for option in &engine.options {
                writeln!(
                    out,
                    "    {}  {}",
                    paint(BOLD, &format!(":{}=", option.name)),
                    option.help
                )?;
            }
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"name", &"default", &"dynamic", &"paper", &"summary", &"options",
        ])?;
        for engine in &self.engines {
            let options = engine.options.iter().map(|option| option.name);
            let options = options.collect::<Vec<_>>().join(" ");
            out.row(&[
                &engine.name,
                &engine.default,
                &engine.dynamic,
                &engine.paper,
                &engine.summary,
                &options,
            ])?;
        }
        Ok(())
    }
}
