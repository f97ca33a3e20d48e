//! Lists of rules that decide connections: replies to permitted packets are permitted.

use classyard_workload::diagnostic::ReadError;

use crate::builder::{Builder, PERMIT};
use crate::document::Item;
use crate::packets::{Field, PacketSet, Values};

/// The states `established` and `related`.
const REPLY_STATES: (u8, u8) = (1, 2);

/// Adds the implied rule that permits replies. It is the first rule of a list.
pub(crate) fn permit_replies(
    item: Item<'_>,
    list: &str,
    of_list: &PacketSet,
    builder: &mut Builder<'_>,
) -> Result<(), ReadError> {
    let source = item.source(builder, "permit established and related packets", list);
    builder.source_mut(source).is_implied = true;
    let (low, high) = REPLY_STATES;
    let replies = PacketSet::of(Field::State, [Values::range(low, high)]);
    let packets = of_list.intersect(&replies).expect("one list and one state");
    builder.add(source, packets, PERMIT)
}
