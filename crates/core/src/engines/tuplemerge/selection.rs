//! Tuple selection: the mask of a new table ([TM19] §III.C.2).
//!
//! A new table for a rule takes the rule's mask without some bits, so that similar rules
//! fit as well:
//!
//! 1. If the lengths of source and destination address differ much, the rule mainly
//!    selects by the longer address: the shorter address and its port are dropped.
//! 2. Long prefixes lose a few bits, the longer the more. Ports, protocols and other
//!    fields do not change.
//!
//! The number of bits removed, by the length of a prefix in a field of 32 bits:
//!
//! | length | paper | VPP, new table | VPP, split |
//! |---|---|---|---|
//! | 32 | 4 | 6 | 3 |
//! | 25-31 | 3 | 5 | 2 |
//! | 17-24 | 2 | 4 | 1 |
//! | 9-16 | 1 | 2 | 1 |
//! | 0-8 | 0 | 0 | 0 |
//!
//! Fields of another width use the same proportions: an IPv6 prefix of full length loses
//! 16 bits in the paper's form. VPP shortens IPv6 prefixes to the borders of networks:
//! /128 to /64, and /64 to /56.
//!
//! [TM19]: crate::papers#tm19

use crate::model::schema::{FieldId, FieldRole, MatchKind, Placement, Schema};

/// The largest difference of address lengths at which both addresses are used, for
/// fields of 32 bits ([TM19] §III.C.2).
///
/// [TM19]: crate::papers#tm19
const MAX_LENGTH_DIFFERENCE: u32 = 4;

/// The number of bits that long prefixes lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relaxation {
    /// As in [TM19] §III.C.2.
    ///
    /// [TM19]: crate::papers#tm19
    Paper,
    /// As in VPP's implementation by the paper's authors (§III.D.1).
    Vpp,
}

/// Bits removed from a prefix of full length, and from one longer than three, two and
/// one quarters of its field.
type Steps = [u32; 4];

/// [TM19] §III.C.2.
///
/// [TM19]: crate::papers#tm19
const PAPER: Steps = [4, 3, 2, 1];

// As in VPP's implementation by the authors of [TM19] (§III.D.1).
const VPP_NEW: Steps = [6, 5, 4, 2];
const VPP_SPLIT: Steps = [3, 2, 1, 1];

#[derive(Clone, Debug)]
struct Address {
    placement: Placement,
    width: u32,
    port: Option<Placement>,
}

/// The fields of a schema that tuple selection uses.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    relaxation: Relaxation,
    pair: Option<[Address; 2]>,
    prefixes: Vec<(Placement, u32)>,
}

impl Selection {
    pub(super) fn new(schema: &Schema, relaxation: Relaxation) -> Selection {
        let address = |address, port| {
            let field: FieldId = schema.field_with_role(address)?;
            let port = schema.field_with_role(port);
            Some(Address {
                placement: *schema.placement(field),
                width: schema.field(field).width(),
                port: port.map(|port| *schema.placement(port)),
            })
        };
        let source = address(FieldRole::SourceAddress, FieldRole::SourcePort);
        let destination = address(FieldRole::DestinationAddress, FieldRole::DestinationPort);
        let prefixes = schema
            .field_ids()
            .filter(|&id| schema.field(id).kind() == MatchKind::Prefix)
            .map(|id| (*schema.placement(id), schema.field(id).width()));
        Selection {
            relaxation,
            pair: source.zip(destination).map(|(s, d)| [s, d]),
            prefixes: prefixes.collect(),
        }
    }

    /// Relaxes the mask of a rule to the mask of a new table for the rule.
    pub(super) fn select(&self, mask: &mut [u64]) {
        if let Some([source, destination]) = &self.pair {
            let length = |address: &Address| address.placement.get(mask).count_ones();
            let close = MAX_LENGTH_DIFFERENCE * (source.width.min(destination.width) / 32).max(1);
            let (source_length, destination_length) = (length(source), length(destination));
            if source_length.abs_diff(destination_length) > close {
                let shorter = if source_length < destination_length {
                    source
                } else {
                    destination
                };
                shorter.placement.set(mask, 0);
                if let Some(port) = &shorter.port {
                    port.set(mask, 0);
                }
            }
        }
        self.relax(mask, self.new_table_steps());
    }

    /// Relaxes the bits that colliding rules share to the mask of the table that takes
    /// some of the rules.
    pub(super) fn relax_split(&self, mask: &mut [u64]) {
        if self.relaxation == Relaxation::Vpp {
            self.relax(mask, &VPP_SPLIT);
        }
    }

    fn new_table_steps(&self) -> &'static Steps {
        match self.relaxation {
            Relaxation::Paper => &PAPER,
            Relaxation::Vpp => &VPP_NEW,
        }
    }

    fn relax(&self, mask: &mut [u64], steps: &Steps) {
        for (placement, width) in &self.prefixes {
            let length = placement.get(mask).count_ones();
            let shorter = match (self.relaxation, width) {
                (Relaxation::Vpp, 128) => at_network_borders(length),
                _ => length - removed(length, *width, steps),
            };
            let shortened = leading_bits(placement.get(mask), shorter);
            placement.set(mask, shortened);
        }
    }
}

/// Returns the highest `count` one bits: of a prefix mask a shorter prefix, of a mask
/// with holes a part.
pub(super) fn leading_bits(mask: u128, count: u32) -> u128 {
    let mut leading = mask;
    for _ in count..mask.count_ones() {
        leading &= leading - 1;
    }
    leading
}

/// Returns the number of bits that a prefix loses.
fn removed(length: u32, width: u32, steps: &Steps) -> u32 {
    let step = match length {
        _ if length == width => steps[0],
        _ if length * 4 > width * 3 => steps[1],
        _ if length * 4 > width * 2 => steps[2],
        _ if length * 4 > width => steps[3],
        _ => 0,
    };
    step * width / 32
}

/// For IPv6: shortens a host to its subnet, and a subnet to its site.
fn at_network_borders(length: u32) -> u32 {
    match length {
        128 => 64,
        64 => 56,
        _ => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::schema::prefix_mask;

    fn tuple(selection: &Selection, schema: &Schema, lengths: [u32; 5]) -> [u32; 5] {
        let mut mask = [0u64; 2];
        for (id, length) in schema.field_ids().zip(lengths) {
            let width = schema.field(id).width();
            schema
                .placement(id)
                .set(&mut mask, prefix_mask(width, length));
        }
        selection.select(&mut mask);
        let mut out = [0; 5];
        for (id, out) in schema.field_ids().zip(&mut out) {
            *out = schema.placement(id).get(&mask).count_ones();
        }
        out
    }

    #[test]
    fn bits_go_as_the_paper_says() {
        let schema = Schema::ipv4_5tuple();
        let selection = Selection::new(&schema, Relaxation::Paper);
        let select = |lengths| tuple(&selection, &schema, lengths);
        assert_eq!(select([32, 32, 16, 16, 8]), [28, 28, 16, 16, 8]);
        assert_eq!(select([28, 32, 0, 16, 8]), [25, 28, 0, 16, 8]);
        assert_eq!(select([24, 24, 0, 0, 8]), [22, 22, 0, 0, 8]);
        assert_eq!(select([16, 16, 0, 0, 0]), [15, 15, 0, 0, 0]);
        assert_eq!(select([8, 8, 0, 0, 0]), [8, 8, 0, 0, 0]);
        // Lengths differ much: the shorter address and its port are dropped.
        assert_eq!(select([8, 32, 16, 16, 8]), [0, 28, 0, 16, 8]);
        assert_eq!(select([32, 27, 16, 16, 8]), [28, 0, 16, 0, 8]);
    }

    /// A table's mask must be part of the rule's mask, or lookups would not find the
    /// rule.
    #[test]
    fn a_mask_with_holes_loses_bits_and_gains_none() {
        assert_eq!(leading_bits(0b1111_0000, 3), 0b1110_0000);
        assert_eq!(leading_bits(0b1010_0101, 3), 0b1010_0100);
        assert_eq!(leading_bits(0b1010_0101, 0), 0);
        let schema = Schema::ipv4_5tuple();
        let source = *schema.placement(schema.field_named("src").unwrap());
        for relaxation in [Relaxation::Paper, Relaxation::Vpp] {
            let selection = Selection::new(&schema, relaxation);
            for holes in [
                0x00ff_ff0f,
                0xff00_ffff,
                0xffff_fffe,
                0x8000_0001,
                0xffff_ff01,
            ] {
                for relax in [Selection::select, Selection::relax_split] {
                    let mut mask = [0u64; 2];
                    source.set(&mut mask, holes);
                    relax(&selection, &mut mask);
                    let selected = source.get(&mask);
                    assert_eq!(selected & !holes, 0, "{holes:#x} becomes {selected:#x}");
                }
            }
        }
    }

    #[test]
    fn vpp_takes_larger_steps() {
        let schema = Schema::ipv4_5tuple();
        let selection = Selection::new(&schema, Relaxation::Vpp);
        assert_eq!(
            tuple(&selection, &schema, [32, 30, 16, 16, 8]),
            [26, 25, 16, 16, 8]
        );
        assert_eq!(at_network_borders(128), 64);
        assert_eq!(at_network_borders(64), 56);
        assert_eq!(at_network_borders(48), 48);
    }
}
