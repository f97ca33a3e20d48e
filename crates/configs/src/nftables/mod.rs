//! nftables: `nft list ruleset` and files for `nft -f`, and `nft -j list ruleset`.
//!
//! Both forms are read into one [`tree`](self::tree), and one translation makes packets
//! from it.
//!
//! | part | modelled |
//! |---|---|
//! | tables | `ip`, `ip6`, `inet` |
//! | base chains | lists: `CHAIN`, or `TABLE/CHAIN` if another chain has the name |
//! | other chains | their rules, at the rules that jump to them |
//! | fields | addresses, protocol, ports, TCP flags, ICMP, `ct state`, fragments, interfaces |
//! | constants | numbers, names, prefixes, ranges, sets, maps of verdicts, concatenations |
//! | verdicts | `accept`, `drop`, `reject`, `jump`, `goto`, `return`, `continue`, `queue` |
//! | translations | `dnat`, `snat`, `masquerade`, `redirect`: actions of these names |
//! | other fields, sets that change | a condition with the text of the comparison |
//! | `limit`, `quota`, `ct count`, `meter`, `tproxy`, `numgen`, times | a condition of the rule |
//! | `log`, `counter`, `notrack`, marks, `add @set` | no effect on the decision |
//!
//! Not modelled, and reported by name: tables of `arp`, `bridge` and `netdev`, `include`,
//! commands that change single objects of a ruleset, statements that change addresses or
//! ports, `flow`, `dup`, `fwd`, `synproxy` and `xt`.
//!
//! A field implies its protocol: `tcp dport` matches TCP only, and no later fragments.

mod build;
mod host_bits;
mod json;
mod packets;
mod position;
mod show;
mod text;
mod tree;

use classyard_workload::diagnostic::ReadError;

use self::position::Positions;
use crate::builder::Builder;

/// The maximum number of operands of one operator in JSON.
const MAX_OPERANDS: usize = 16;

/// A comment that `nft` prints before tables with matches that it does not print.
const MANAGED_TABLE: &str = "is managed by iptables-nft";

/// True if a text is a ruleset, in text or JSON.
pub(crate) fn is_format(text: &str) -> bool {
    let text = without_mark(text);
    json::is_format(text) || text::is_format(text)
}

/// Reads a ruleset.
pub(crate) fn read(file: &str, builder: &mut Builder<'_>) -> Result<(), ReadError> {
    let file = without_mark(file);
    let is_json = file.trim_start().starts_with('{');
    let (mut ruleset, faults) = match is_json {
        true => json::read(file),
        false => text::read(file),
    };
    let positions = Positions::new(file);
    for fault in faults {
        positions.report(builder, fault);
    }
    if !is_json && file.contains(MANAGED_TABLE) {
        builder.note(
            "`nft` does not print all matches of tables that iptables-nft manages: read the \
             output of `iptables-save` instead"
                .to_owned(),
        );
    }
    packets::add_ruleset(&mut ruleset, &positions, is_json, builder)?;
    host_bits::note(&ruleset, &positions, builder);
    Ok(())
}

/// Returns a text without a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
