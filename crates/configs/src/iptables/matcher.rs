//! A rule while it is read: the packets that its matches select.

use std::collections::HashSet;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::ipset::Sets;
use super::notes::SetNotes;
use super::options::Module;
use crate::builder::{Builder, SourceId};
use crate::packets::{Families, PacketSet, TooManyBoxes};

/// The parts of a file that rules refer to.
pub(super) struct Context<'t> {
    pub(super) sets: Sets<'t>,
    pub(super) notes: SetNotes<'t>,
    /// The matches whose answers the targets of the file may change.
    pub(super) altered: HashSet<&'static str>,
}

/// The packets that a match or an option selects. A rule selects the packets of all its
/// factors.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    packets: PacketSet,
    /// All other packets of the dump's IP version, if the rule needs them.
    others: Option<PacketSet>,
}

/// A rule while it is read.
pub(super) struct Matcher<'a, 'b, 't> {
    pub(super) builder: &'a mut Builder<'b>,
    pub(super) context: &'a mut Context<'t>,
    pub(super) family: Families,
    pub(super) source: SourceId,
    /// The rule, from `-A`.
    pub(super) statement: &'t str,
    /// The protocol that `-p` names without `!`, 0 for all.
    pub(super) protocol: u8,
    /// The matches and options that were read.
    pub(super) factors: Vec<Factor>,
    /// True if the packets that the rule does not select are needed.
    pub(super) needs_others: bool,
}

impl<'t> Matcher<'_, '_, 't> {
    /// Turns an excess of boxes into a fault of the rule.
    pub(super) fn limited(
        &self,
        packets: Result<PacketSet, TooManyBoxes>,
    ) -> Result<PacketSet, Fault<'t>> {
        packets.map_err(|error| {
            Fault::new(
                self.statement,
                error.to_string(),
                "fewer or simpler matches, or several rules",
            )
        })
    }

    /// Requires that a packet is in a set, or with `is_negated` that it is not.
    pub(super) fn require(
        &mut self,
        packets: PacketSet,
        is_negated: bool,
    ) -> Result<(), Fault<'t>> {
        let others = match is_negated || self.needs_others {
            true => {
                let of_family = PacketSet::of_families(self.family);
                Some(self.limited(of_family.subtract(&packets))?)
            }
            false => None,
        };
        let (packets, others) = match (is_negated, others) {
            (true, Some(others)) => (others, Some(packets)),
            (_, others) => (packets, others),
        };
        self.factors.push(Factor { packets, others });
        Ok(())
    }

    /// Requires that a packet is in a set. `find` returns the set, or with `true` its
    /// complement.
    pub(super) fn require_either<E>(
        &mut self,
        mut find: impl FnMut(&mut Context<'t>, bool) -> Result<PacketSet, E>,
    ) -> Result<(), E> {
        let packets = find(self.context, false)?;
        let others = match self.needs_others {
            true => Some(find(self.context, true)?),
            false => None,
        };
        self.factors.push(Factor { packets, others });
        Ok(())
    }

    /// Returns the packets that the rule selects, and the other packets if they are needed and
    /// not too many boxes.
    pub(super) fn product(&mut self) -> Result<(PacketSet, Option<PacketSet>), Fault<'t>> {
        // Small factors come first, as each of the others' terms has the factors before it.
        let mut factors = std::mem::take(&mut self.factors);
        factors.sort_by_key(|factor| factor.packets.boxes().len());
        let mut packets = PacketSet::of_families(self.family);
        let mut others = self.needs_others.then(PacketSet::none);
        for factor in &factors {
            if let (Some(terms), Some(of_factor)) = (others.take(), &factor.others) {
                let term = packets.intersect(of_factor);
                others = term.and_then(|term| terms.union(term)).ok();
            }
            packets = self.limited(packets.intersect(&factor.packets))?;
        }
        Ok((packets, others))
    }

    /// Returns the packets for which a condition holds that no field can express.
    pub(super) fn opaque_condition(
        &mut self,
        text: &'t str,
        is_stateless: bool,
    ) -> Result<PacketSet, Fault<'t>> {
        match is_stateless {
            true => self.builder.condition(self.source, text),
            false => self.builder.stateful_condition(self.source, text),
        }
    }

    /// Like [`opaque_condition`](Self::opaque_condition) for a condition that depends on the
    /// packet, with a text that is not in the file.
    pub(super) fn named_condition(
        &mut self,
        text: &str,
        part: &'t str,
    ) -> Result<PacketSet, Fault<'t>> {
        let condition = self.builder.condition(self.source, text);
        condition.map_err(|fault| Fault::new(part, fault.found(), "a file with fewer of them"))
    }

    pub(super) fn refuse_negation(&self, module: &Module<'_, 't>) -> Result<(), Fault<'t>> {
        match module.options.iter().find(|option| option.is_negated) {
            Some(option) => Err(Fault::new(
                option.text,
                format!("`!` before {}", quoted(option.name)),
                "the option without `!`",
            )),
            None => Ok(()),
        }
    }
}
