//! The flags that choose a pipeline's flow caches.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use classyard_datapath::pipeline::{
    ActiveFlowSettings, CacheSettings, Clock, Finder, KINDS, Kind, Pipeline, ProactiveError, Worker,
};

use super::cache_options::{self, ACTIVE, CacheOptions, TUPLES};
use super::count;
use crate::failure::Failure;
use crate::registry;

/// Flow caches before the tables.
#[derive(Debug, clap::Args)]
pub struct CacheArgs {
    /// Both levels of caches by the name of a scheme: fasttss, as fasttss or
    /// fasttss:OPTION=VALUE:...
    #[arg(long, value_name = "SPEC", value_parser = scheme, long_help = scheme_help(), conflicts_with_all = ["cache", "megaflow_engine"], help_heading = "Flow caches")]
    caches: Option<CacheOptions>,

    /// The microflow cache (single flows): adaptive, wef, cuckoo, emc, heavy-hitter,
    /// or none
    ///
    /// wef and cuckoo take the options threshold, timeout, kicks and latest of --caches:
    /// wef:threshold=256ms:kicks=4.
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

    /// Lookup of megaflows: sorted (a hash table per mask, most hits first),
    /// sorted-tuples (the same, sorted at each packet), or an engine that takes updates,
    /// as NAME or NAME:OPTION=VALUE:... (see `classyard engines`)
    ///
    /// sorted-tuples takes the options lambda and normalise of --caches:
    /// sorted-tuples:lambda=8.
    #[arg(long, default_value = Finder::SORTED, value_name = "SPEC", value_parser = finder, help_heading = "Flow caches")]
    megaflow_engine: Finder,

    /// Store megaflows for all packets before the first one; an error if these are more
    /// than COUNT
    ///
    /// The megaflows are the entries of the cross product of all tables (Shelly et al.,
    /// 2014), whose number grows with the product of the sizes of the tables. So this is
    /// for small pipelines. --megaflows and --masks must have room for them. The report
    /// has their number. Example: --proactive=50k --masks 128
    #[arg(long, value_name = "COUNT", num_args = 0..=1, require_equals = true, default_missing_value = "10k", value_parser = proactive, help_heading = "Flow caches")]
    proactive: Option<usize>,

    /// Use the caches even if they cost more time than they save
    #[arg(long, help_heading = "Flow caches")]
    always_cache: bool,
}

/// Returns the time since the first call, as a clock for caches.
pub fn clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// A kind of cache with its settings, or none.
#[derive(Clone, Copy, Debug)]
struct Choice(Option<(Kind, ActiveFlowSettings)>);

/// The name of the caches of [FTS25].
const FASTTSS: &str = "fasttss";

fn kind(text: &str) -> Result<Choice, String> {
    let (name, given) = cache_options::split(text);
    if text == "none" {
        return Ok(Choice(None));
    }
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(format!(
            "unknown cache `{name}`; expected {}, or none",
            names.join(", ")
        ));
    };
    let options: &[&[_]] = match kind.is_of_active_flows() {
        true => &[ACTIVE],
        false => &[],
    };
    let options = cache_options::read(name, given, options)?;
    Ok(Choice(Some((*kind, options.active))))
}

fn scheme(text: &str) -> Result<CacheOptions, String> {
    match cache_options::split(text) {
        (FASTTSS, given) => cache_options::read(FASTTSS, given, &[ACTIVE, TUPLES]),
        (name, _) => Err(format!("unknown scheme `{name}`; expected {FASTTSS}")),
    }
}

/// Returns the long help of `--caches`.
fn scheme_help() -> String {
    format!(
        "Both levels of caches by the name of a scheme: {FASTTSS}, as {FASTTSS} or \
         {FASTTSS}:OPTION=VALUE:...\n\n\
         FastTSS (Xiong et al., 2025) is --cache wef, which admits only active flows, with \
         --megaflow-engine {}, hash tables of megaflows that each packet sorts. The sizes are \
         those of --cache-flows, --megaflows and --masks. Example: \
         {FASTTSS}:threshold=256ms:timeout=1s:kicks=4:lambda=4\n\n{}",
        Finder::SORTED_TUPLES,
        cache_options::help(&[ACTIVE, TUPLES])
    )
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

fn proactive(text: &str) -> Result<usize, String> {
    match count(text)? {
        entries @ 1..=8_388_608 => Ok(entries),
        _ => Err(format!("`{text}`; expected 1 to 8388608 megaflows")),
    }
}

fn finder(text: &str) -> Result<Finder, String> {
    if text == Finder::SORTED {
        return Ok(Finder::default());
    }
    if let (Finder::SORTED_TUPLES, given) = cache_options::split(text) {
        let options = cache_options::read(Finder::SORTED_TUPLES, given, &[TUPLES])?;
        return Ok(Finder::sorted_tuples(options.tuples));
    }
    let spec = registry::parse(text)
        .map_err(|error| format!("{error}; or sorted, or {}", Finder::SORTED_TUPLES))?;
    Finder::engine(spec).map_err(|error| error.to_string())
}

impl CacheArgs {
    /// Checks that the flags agree.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a flag needs megaflows and there are none.
    pub fn check(&self) -> Result<(), Failure> {
        if self.megaflows > 0 {
            return Ok(());
        }
        if self.proactive.is_some() {
            let message = "--proactive needs megaflows, but --megaflows is 0";
            return Err(Failure::usage(message).with_help("omit --megaflows or --proactive"));
        }
        if self.caches.is_none() {
            return Ok(());
        }
        let message = format!("--caches {FASTTSS} needs megaflows, but --megaflows is 0");
        Err(Failure::usage(message)
            .with_help("omit --megaflows, or replace --caches with --cache wef"))
    }

    /// Returns the settings of one worker's caches, or `None` without caches. Seeds
    /// differ from run to run.
    fn settings(&self) -> Option<CacheSettings> {
        let Choice(kind) = self.cache;
        if self.caches.is_none() && kind.is_none() && self.megaflows == 0 {
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
        let settings = settings.and_then(|settings| match (self.caches, kind) {
            (Some(CacheOptions { active, tuples }), _) => {
                settings.fast_tss(self.cache_flows, active, tuples)
            }
            (None, Some((kind, active))) => settings
                .active_flows(active)
                .microflows(kind, self.cache_flows),
            (None, None) => Ok(settings),
        });
        Some(settings.expect("options have the ranges of the settings"))
    }

    /// True if workers have megaflows.
    pub fn has_megaflows(&self) -> bool {
        self.settings().is_some()
    }

    /// Creates a worker that always uses these caches, whether they save time or not,
    /// so that their contents can be reported.
    ///
    /// # Errors
    /// As [`worker`](Self::worker).
    pub fn patient_worker(&self, pipeline: &mut Pipeline) -> Result<Worker, Failure> {
        let settings = self.settings();
        self.worker_with(settings.map(|settings| settings.clock(None)), pipeline)
    }

    /// Creates a worker with these caches.
    ///
    /// # Errors
    /// [`Failure::Usage`] if megaflows are to be stored before the first packet, and there are
    /// too many.
    pub fn worker(&self, pipeline: &mut Pipeline) -> Result<Worker, Failure> {
        self.worker_with(self.settings(), pipeline)
    }

    fn worker_with(
        &self,
        settings: Option<CacheSettings>,
        pipeline: &mut Pipeline,
    ) -> Result<Worker, Failure> {
        let Some(settings) = settings else {
            return Ok(pipeline.worker());
        };
        let mut worker = pipeline.cached_worker(settings);
        if let Some(max_entries) = self.proactive {
            let stored = pipeline.store_megaflows(&mut worker, max_entries);
            stored.map_err(|error| self.refused(&error))?;
        }
        Ok(worker)
    }

    /// Returns the failure of storing megaflows before the first packet.
    fn refused(&self, error: &ProactiveError) -> Failure {
        let help = match error {
            ProactiveError::Entries(_) => {
                "allow more with --proactive=COUNT, or omit --proactive: packets then learn the \
                 megaflows that they need"
            }
            ProactiveError::Megaflows { .. } => "allow more with --megaflows COUNT",
            ProactiveError::Masks { .. } if self.masks < 128 => {
                "allow more with --masks COUNT, up to 128"
            }
            _ => "omit --proactive: packets then learn the megaflows that they need",
        };
        Failure::usage(format!("--proactive: {error}")).with_help(help)
    }
}
