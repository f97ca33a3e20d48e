//! Comparisons of fields of fragments.
//!
//! | field | values |
//! |---|---|
//! | `ip frag-off & 0x1fff` | 0: no later fragment |
//! | `ip frag-off & 0x3fff` | 0: no fragment |
//! | `exthdr frag` | `exists`: a fragment of IPv6 |
//! | `frag frag-off` | 0: the first fragment |
//!
//! Other masks and values are conditions.

use super::compared::Compared;
use super::field::fragments;
use super::value::{named, number};
use crate::nftables::tree::{Expression, ExpressionKind, Relation};
use crate::packets::{Families, PacketSet};

/// The mask of the offset in the IPv4 header.
const OFFSET_MASK: u128 = 0x1fff;
/// The mask of the offset and of the flag "more fragments".
const FRAGMENT_MASK: u128 = 0x3fff;

/// Compares a field of fragments. Returns `None` for other fields.
pub(super) fn compare_fragment(
    selector: &str,
    mask: u128,
    relation: Relation,
    right_side: &Expression<'_>,
) -> Option<Compared> {
    let is_offset = selector == "frag frag-off";
    let is_header = selector == "exthdr frag";
    if !is_offset && !is_header && selector != "ip frag-off" {
        return None;
    }
    let family = match selector {
        "ip frag-off" => Families::IPV4,
        _ => Families::IPV6,
    };
    let packets = |low, high| {
        let fragments = fragments(low, high);
        fragments
            .intersect(&PacketSet::of_families(family))
            .expect("one box")
    };
    let unknown = match is_offset {
        true => packets(1, 3),
        false => PacketSet::of_families(family),
    };
    let value = match &right_side.kind {
        ExpressionKind::Word(word) => {
            named(&[("missing", 0), ("exists", 1)], word).or_else(|| number(word))
        }
        _ => None,
    };
    // True if the bits are 0.
    let is_zero = match (value, relation) {
        (Some(0), Relation::Implicit | Relation::Equal | Relation::LessOrEqual) => Some(true),
        (Some(0), Relation::NotEqual | Relation::Greater) => Some(false),
        (Some(1), Relation::Implicit | Relation::Equal) if is_header => Some(false),
        (Some(1), Relation::NotEqual) if is_header => Some(true),
        (Some(1), Relation::Less) => Some(true),
        (Some(1), Relation::GreaterOrEqual) => Some(false),
        _ => None,
    };
    let is_all = mask == u128::MAX;
    let ranges = match selector {
        "exthdr frag" if is_all => Some([(0, 0), (1, 3)]),
        "frag frag-off" if is_all => Some([(1, 1), (2, 3)]),
        "ip frag-off" if mask == OFFSET_MASK => Some([(0, 1), (2, 3)]),
        "ip frag-off" if mask == FRAGMENT_MASK => Some([(0, 0), (1, 3)]),
        _ => None,
    };
    Some(match (ranges, is_zero) {
        (Some([(low, high), _]), Some(true)) => Compared::Packets(packets(low, high)),
        (Some([_, (low, high)]), Some(false)) => Compared::Packets(packets(low, high)),
        _ => Compared::Unknown(unknown),
    })
}
