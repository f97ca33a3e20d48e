//! The numbers of headers that rules decide, for other commands.

use classyard::Progress as _;
use classyard_lab::cores::Crew;
use classyard_report::engine_choice::EngineChoice;
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use classyard_report::input::headers::HeadersArgs;
use classyard_report::input::rules::{LoadedRules, RulesArgs};
use classyard_report::input::source_name;
use classyard_report::interrupt;
use classyard_report::reporter::Reporter;
use classyard_workload::capture;

use super::lookups::Lookups;
use super::packets::{Chunk, Kept, MAX_HELD_PACKETS, PacketStream};
use super::tally::Tally;

/// The numbers of headers of a capture or a trace that rules decide.
pub(in crate::commands) struct RuleHits {
    /// The capture or the trace.
    pub(in crate::commands) source: String,
    /// All headers.
    pub(in crate::commands) headers: u64,
    /// The headers that each rule decides, in file order.
    pub(in crate::commands) by_rule: Vec<u64>,
}

/// Counts the headers of a capture or a trace that each rule decides.
pub(in crate::commands) fn rule_hits(
    headers: &HeadersArgs,
    reading: &RulesArgs,
    rules: &LoadedRules,
    reporter: Reporter,
) -> Result<RuleHits, Failure> {
    let policy = &rules.policy;
    let (_, classifier) = EngineChoice::build(
        None,
        policy.parts(),
        &BuildLimits::default(),
        reporter,
        |spec, limits, progress| policy.build(spec, limits, progress),
    )?;
    let mut crew = Crew::start(1)?;
    let mut tally = Tally::new(policy);
    let mut count = |chunk: &Chunk| {
        let lookups = Lookups::once(&classifier, &chunk.trace, &mut crew);
        tally.add(chunk, &lookups);
    };
    let source = match (&headers.trace, &headers.capture) {
        (Some(path), _) => {
            let loaded = headers.load_trace(path, policy, reading, reporter)?;
            count(&Chunk {
                trace: loaded.trace,
                packets: None,
            });
            loaded.source
        }
        (None, path) => {
            let capture = headers.open_capture(&reading.bytes, capture::ReadOptions::STREAMED)?;
            let mut packets = PacketStream::new(capture, policy, MAX_HELD_PACKETS, Kept::Nothing)?;
            let mut progress = reporter.progress();
            loop {
                let (chunk, is_last) = packets.next_chunk()?;
                count(&chunk);
                if is_last {
                    break;
                }
                if let Some(extent) = packets.extent() {
                    let _ = progress.report("classifying", extent.read(), extent.length);
                }
            }
            drop(progress);
            packets.warn(reporter);
            packets.check()?;
            path.as_deref().map_or_else(String::new, source_name)
        }
    };
    interrupt::outcome()?;
    Ok(RuleHits {
        source,
        headers: tally.total.headers,
        by_rule: tally.rules.iter().map(|count| count.headers).collect(),
    })
}
