//! The flags that choose a pipeline's flow caches.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use classyard_datapath::pipeline::Finder;
use classyard_datapath::pipeline::{CacheSettings, Clock, Pipeline, Worker};
use classyard_datapath::pipeline::{KINDS, Kind};

use super::count;
use crate::registry;

/// Flow caches before the tables.
#[derive(Debug, clap::Args)]
pub struct CacheArgs {
    /// The microflow cache (single flows): adaptive, wef, cuckoo, emc, heavy-hitter,
    /// or none
    #[arg(long, default_value = "adaptive", value_name = "KIND", value_parser = kind, help_heading = "Flow caches")]
    cache: Choice,

    /// Flows in the microflow cache
    #[arg(long, default_value = "128k", value_name = "COUNT", value_parser = flows, help_heading = "Flow caches")]
    cache_flows: usize,

    /// Maximum number of megaflows; 0 for no megaflow cache
    ///
    /// The microflow cache points to megaflows. Without a megaflow cache there are as
    /// many megaflows as --cache-flows.
    #[arg(long, default_value = "128k", value_name = "COUNT", value_parser = megaflows, help_heading = "Flow caches")]
    megaflows: usize,

    /// Maximum number of masks of megaflows
    #[arg(long, default_value = "32", value_name = "COUNT", value_parser = clap::value_parser!(u8).range(2..=128), help_heading = "Flow caches")]
    masks: u8,

    /// Lookup of megaflows: sorted (a hash table per mask, most hits first), or an
    /// engine that takes updates, as NAME or NAME:OPTION=VALUE:... (see `classyard
    /// engines`)
    #[arg(long, default_value = Finder::SORTED, value_name = "SPEC", value_parser = finder, help_heading = "Flow caches")]
    megaflow_engine: Finder,

    /// Use the caches even if they cost more time than they save
    #[arg(long, help_heading = "Flow caches")]
    always_cache: bool,
}

/// Returns the time since the first call, as a clock for caches.
pub fn clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// A kind of cache, or none.
#[derive(Clone, Copy, Debug)]
struct Choice(Option<Kind>);

fn kind(text: &str) -> Result<Choice, String> {
    if text == "none" {
        return Ok(Choice(None));
    }
    let cache_kind = KINDS.iter().find(|kind| kind.name == text);
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let cache_kind = cache_kind.ok_or_else(|| {
        format!(
            "unknown cache `{text}`; expected {}, or none",
            names.join(", ")
        )
    });
    cache_kind.map(|kind| Choice(Some(*kind)))
}

fn flows(text: &str) -> Result<usize, String> {
    match count(text)? {
        flows @ 1..=4_194_304 => Ok(flows),
        _ => Err(format!("`{text}`; expected 1 to 4194304 flows")),
    }
}

fn megaflows(text: &str) -> Result<usize, String> {
    match count(text)? {
        megaflows @ 0..=8_388_608 => Ok(megaflows),
        _ => Err(format!("`{text}`; expected at most 8388608 megaflows")),
    }
}

fn finder(text: &str) -> Result<Finder, String> {
    if text == Finder::SORTED {
        return Ok(Finder::default());
    }
    let spec = registry::parse(text).map_err(|error| format!("{error}; or sorted"))?;
    Finder::engine(spec).map_err(|error| error.to_string())
}

impl CacheArgs {
    /// Returns the settings of one worker's caches, or `None` without caches. Seeds
    /// differ from run to run.
    fn settings(&self) -> Option<CacheSettings> {
        let Choice(kind) = self.cache;
        if kind.is_none() && self.megaflows == 0 {
            return None;
        }
        let max_megaflows = match self.megaflows {
            0 => self.cache_flows,
            megaflows => megaflows,
        };
        let settings = CacheSettings::new()
            .megaflows(self.megaflows > 0)
            .finder(self.megaflow_engine.clone())
            .clock((!self.always_cache).then_some(clock as Clock))
            .max_megaflows(max_megaflows)
            .and_then(|settings| settings.max_masks(usize::from(self.masks)));
        let settings = settings.and_then(|settings| match kind {
            Some(kind) => settings.microflows(kind, self.cache_flows),
            None => Ok(settings),
        });
        Some(settings.expect("options have the ranges of the settings"))
    }

    /// True if workers have megaflows.
    pub fn has_megaflows(&self) -> bool {
        self.settings().is_some()
    }

    /// Creates a worker that always uses these caches, whether they save time or not,
    /// so that their contents can be reported.
    pub fn patient_worker(&self, pipeline: &mut Pipeline) -> Worker {
        match self.settings() {
            Some(settings) => pipeline.cached_worker(settings.clock(None)),
            None => pipeline.worker(),
        }
    }

    /// Creates a worker with these caches.
    pub fn worker(&self, pipeline: &mut Pipeline) -> Worker {
        match self.settings() {
            Some(settings) => pipeline.cached_worker(settings),
            None => pipeline.worker(),
        }
    }
}
