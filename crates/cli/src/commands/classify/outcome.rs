//! The outcome of each header, or of each packet of a capture.

use classyard::{Policy, Winner};

use super::lookups::Lookups;
use super::packets::Chunk;

/// The outcome of a header or a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The rule at this position in file order wins.
    Rule(usize),
    /// No rule matches.
    Miss,
    /// The packet has no header for these rules.
    NoHeader,
}

/// Returns the outcome of each packet of a chunk in order, or of each header if the chunk does
/// not come from packets.
pub(super) fn outcomes<'a>(
    policy: &'a Policy,
    chunk: &'a Chunk,
    lookups: &'a Lookups,
) -> impl Iterator<Item = Outcome> + 'a {
    let mut winners = lookups.in_order(&chunk.trace);
    let with_header = chunk.packets.as_ref().map(|packets| &packets.with_header);
    let count = with_header.map_or(chunk.trace.len(), Vec::len);
    (0..count).map(move |index| {
        if with_header.is_some_and(|with_header| !with_header[index]) {
            return Outcome::NoHeader;
        }
        let winner = winners.next().and_then(Winner::rule);
        let position = winner.and_then(|id| policy.position(id));
        position.map_or(Outcome::Miss, Outcome::Rule)
    })
}
