//! Megaflows as rules of an engine that finds the row of a packet.
//!
//! # Idea
//! A megaflow is a value under a mask, like a rule. An engine that merges masks looks a
//! packet up in fewer hash tables than there are masks. It returns the best of all
//! matching rules, which is more than necessary: any megaflow that covers a packet is
//! right.
//!
//! ```text
//! key ─▶ fields of the schema ─▶ engine ─▶ rule = megaflow ─▶ row of a mask's table
//!                                                                │
//!                                              does it cover the key? ─▶ state
//! ```
//! Rows stay in the tables of their masks. The engine's result is compared with the row,
//! so the index may leave bits out. It leaves out registers, which are 0 in received
//! packets.
//!
//! # Schema
//! The fields that masks use, each with any mask bits. If the mask of a new megaflow uses
//! another field, the engine is rebuilt over wider keys, at most once for each of
//! [`PIECES`]. So keys are as narrow as in a flow table.
//!
//! # Cost
//! A lookup: the engine's lookup, and a row. Adding and removing: an engine update. After
//! [`REBUILD_CHANGES_PER_RULE`] changes for each rule of the last build, the engine is
//! [rebuilt](classyard::DynamicClassifier::rebuild) immediately, since some engines are
//! fitted to their rules.

use std::sync::Arc;

use classyard::schema::{FieldRole, Part};
use classyard::{
    ActionId, BuildError, Classifier, EngineSpec, FieldMatch, KeySlice, Limits, MatchKind,
    NoProgress, Priority, Rule, RuleId, RuleSet, Schema, Scratch, Transaction, Winner,
};

use super::search::Search;
use super::tables::Row;
use super::{Found, Megaflow, Megaflows};
use crate::bits::Words;
use crate::cache::microflow::MegaflowId;
use crate::projection::Moves;
use crate::table_settings::TableError;

/// The engine is rebuilt after this number of changes for each rule of the last build,
/// counted as at least [`MIN_REBUILD_RULES`] rules. Measured in
/// `bench/records/constants.md` (An engine for megaflows).
const REBUILD_CHANGES_PER_RULE: usize = 4;
const MIN_REBUILD_RULES: usize = 64;

/// A field of the index.
struct Piece {
    name: &'static str,
    /// Bits of a packet's key.
    part: Part,
    kind: MatchKind,
    role: FieldRole,
}

/// All of a packet's key except the registers. Addresses are divided into pieces whose
/// masks are prefixes, for IPv4 or IPv6; the roles mark IPv4's addresses for engines.
const PIECES: [Piece; 29] = [
    ternary("metadata", 0, 0, 64),
    ternary("tunnel_id", 1, 0, 64),
    ternary("in_port", 2, 0, 32),
    ternary("in_phy_port", 2, 32, 32),
    ternary("eth_dst", 3, 0, 48),
    ternary("vlan_vid", 3, 48, 13),
    ternary("vlan_pcp", 3, 61, 3),
    ternary("eth_src", 4, 0, 48),
    ternary("eth_type", 4, 48, 16),
    ternary("mpls", 5, 0, 24),
    ternary("ip_proto", 5, 24, 8),
    ternary("ip_dscp", 5, 32, 6),
    ternary("ip_ecn", 5, 38, 2),
    ternary("ipv6_flabel", 5, 40, 20),
    ternary("source_port", 6, 0, 16).of(FieldRole::SourcePort),
    ternary("destination_port", 6, 16, 16).of(FieldRole::DestinationPort),
    ternary("ipv6_exthdr", 6, 32, 9),
    ternary("presence", 6, 41, 5),
    prefix("source", 7, 0, 32).of(FieldRole::SourceAddress),
    prefix("ipv6_src_1", 7, 32, 32),
    prefix("ipv6_src_2", 8, 0, 64),
    prefix("destination", 9, 0, 32).of(FieldRole::DestinationAddress),
    prefix("ipv6_dst_1", 9, 32, 32),
    prefix("ipv6_dst_2", 10, 0, 64),
    ternary("arp_sha", 11, 0, 48),
    ternary("nd_target_1", 11, 48, 16),
    ternary("arp_tha", 12, 0, 48),
    ternary("nd_target_2", 12, 48, 16),
    ternary("nd_link_layer", 13, 0, 48),
];

const fn ternary(name: &'static str, word: usize, shift: u32, width: u32) -> Piece {
    Piece {
        name,
        part: Part { word, shift, width },
        kind: MatchKind::Ternary,
        role: FieldRole::Plain,
    }
}

const fn prefix(name: &'static str, word: usize, shift: u32, width: u32) -> Piece {
    let mut piece = ternary(name, word, shift, width);
    piece.kind = MatchKind::Prefix;
    piece
}

impl Piece {
    const fn of(mut self, role: FieldRole) -> Piece {
        self.role = role;
        self
    }
}

/// A set of pieces, by their indexes in [`PIECES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PieceSet(u32);

const _: () = assert!(PIECES.len() <= 32);

impl PieceSet {
    /// The pieces of every index. A schema has at least one field, and almost every mask
    /// uses these.
    const FIRST: PieceSet = {
        let (mut set, mut number) = (0, 0);
        while number < PIECES.len() {
            let Part { word, shift, .. } = PIECES[number].part;
            if matches!((word, shift), (4, 48) | (6, 41)) {
                set |= 1 << number;
            }
            number += 1;
        }
        PieceSet(set)
    };

    /// All pieces.
    const ALL: PieceSet = PieceSet(u32::MAX >> (32 - PIECES.len()));

    /// Returns the pieces where a mask has bits.
    fn of(mask: &Words) -> PieceSet {
        let pieces = PIECES.iter().enumerate();
        let pieces = pieces.filter(|(_, piece)| piece.part.get(mask) != 0);
        PieceSet(pieces.fold(0, |set, (number, _)| set | 1 << number))
    }

    fn and(self, other: PieceSet) -> PieceSet {
        PieceSet(self.0 | other.0)
    }

    fn pieces(self) -> impl Iterator<Item = &'static Piece> {
        let pieces = PIECES.iter().enumerate();
        let pieces = pieces.filter(move |(number, _)| self.0 >> number & 1 == 1);
        pieces.map(|(_, piece)| piece)
    }

    fn schema(self) -> Arc<Schema> {
        let fields = self.pieces().map(|piece| {
            let field = classyard::Field::new(piece.name, piece.part.width, piece.kind);
            field.with_role(piece.role)
        });
        let schema = Schema::new("megaflows", fields.collect());
        schema.expect("each set of pieces with a piece has a schema")
    }
}

/// An engine over megaflows.
pub(super) struct Index {
    spec: EngineSpec,
    pieces: PieceSet,
    moves: Moves,
    engine: Box<dyn Classifier>,
    rules: usize,
    /// Changes since the engine was built or rebuilt.
    changes: usize,
    buffers: Buffers,
}

/// Buffers for lookups.
#[derive(Default)]
struct Buffers {
    words: Vec<u64>,
    winners: Vec<Winner>,
    scratch: Scratch,
}

impl Index {
    /// Checks that an engine can find megaflows.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates, does not support the fields of
    /// megaflows, or has an option that this host lacks.
    pub(super) fn check(spec: &EngineSpec) -> Result<(), BuildError> {
        if !spec.is_dynamic() {
            return Err(classyard::engine::takes_no_updates(&spec.to_string()));
        }
        spec.available()?;
        spec.accepts(&PieceSet::ALL.schema())?;
        Ok(())
    }

    /// Returns an index without megaflows.
    ///
    /// # Errors
    /// The error of an engine that cannot be built.
    pub(super) fn new(spec: EngineSpec) -> Result<Index, TableError> {
        Index::build(spec, PieceSet::FIRST, std::iter::empty())
    }

    fn build<'m>(
        spec: EngineSpec,
        pieces: PieceSet,
        megaflows: impl Iterator<Item = Megaflow<'m>>,
    ) -> Result<Index, TableError> {
        let schema = pieces.schema();
        let mut rules = RuleSet::new(&schema);
        for megaflow in megaflows {
            let rule = rule(&schema, pieces, megaflow);
            rules.push(rule.view()).map_err(TableError::Update)?;
        }
        let engine = spec.build(&rules, &Limits::default(), &mut NoProgress)?;
        let targets = schema.field_ids().map(|id| schema.placement(id).low);
        Ok(Index {
            moves: Moves::new(
                pieces.pieces().map(|piece| piece.part).zip(targets),
                schema.key_words(),
            ),
            pieces,
            engine,
            rules: rules.len(),
            changes: 0,
            spec,
            buffers: Buffers::default(),
        })
    }

    fn apply(&mut self, change: &Transaction<'_>) -> Result<(), TableError> {
        self.changes += change.changes().len();
        let Some(engine) = self.engine.as_dynamic() else {
            return Err(classyard::engine::takes_no_updates(&self.spec.to_string()).into());
        };
        engine.apply(change).map_err(TableError::Update)
    }

    /// Returns the number of megaflows.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.engine
            .dynamic()
            .map_or(0, classyard::DynamicClassifier::rules)
    }

    /// True if the index has a megaflow.
    pub(super) fn has(&self, megaflow: MegaflowId) -> bool {
        let engine = self.engine.dynamic();
        engine.is_some_and(|engine| engine.contains(id(megaflow)))
    }

    /// Looks up keys. Their winners are then in the buffers.
    fn look_up<'k>(&mut self, keys: impl Iterator<Item = &'k Words>) {
        let Buffers {
            words,
            winners,
            scratch,
        } = &mut self.buffers;
        let width = self.engine.schema().key_words();
        words.clear();
        winners.clear();
        for key in keys {
            let start = words.len();
            words.resize(start + width, 0);
            self.moves.project(key, &mut words[start..]);
            winners.push(Winner::MISS);
        }
        let keys = KeySlice::new(words, width);
        self.engine.classify_batch(keys, winners, scratch);
    }
}

impl Search for Index {
    fn find<'k, P>(
        &mut self,
        megaflows: &mut Megaflows<P>,
        _: bool,
        key: impl Fn(usize) -> &'k Words,
        packet_indices: &mut Vec<usize>,
        mut found: impl FnMut(usize, MegaflowId, Found) -> bool,
    ) -> u64 {
        let probes = packet_indices.len() as u64;
        self.look_up(packet_indices.iter().map(|&packet_index| key(packet_index)));
        let mut winners = self.buffers.winners.iter();
        packet_indices.retain(|&packet_index| {
            let winner = winners.next().and_then(|winner| winner.rule());
            let Some(megaflow) = winner.and_then(|rule| MegaflowId::new(rule.get())) else {
                return true;
            };
            // The row is compared with the key, since the index leaves out some bits.
            match megaflows.check(megaflow, key(packet_index)) {
                Found::Nothing => true,
                result => {
                    found(packet_index, megaflow, result);
                    false
                }
            }
        });
        probes
    }

    fn table_added(&mut self) {}

    fn table_replaced(&mut self, _: usize) {}

    /// Adds a megaflow, or replaces the megaflow in its row. If its mask uses another
    /// field, rebuilds the engine from all rows.
    fn row_added<P>(
        &mut self,
        megaflows: &Megaflows<P>,
        table: usize,
        row: Row,
    ) -> Result<(), TableError> {
        let megaflow = megaflows.megaflow(table, row);
        let pieces = self.pieces.and(PieceSet::of(megaflow.2));
        if pieces != self.pieces {
            *self = Index::build(self.spec.clone(), pieces, megaflows.megaflows())?;
            return Ok(());
        }
        let rule = rule(self.engine.schema(), self.pieces, megaflow);
        let mut change = Transaction::new();
        match self.has(megaflow.0) {
            true => change.modify(rule.view()),
            false => change.insert(rule.view()),
        };
        self.apply(&change)
    }

    fn row_removed(&mut self, megaflow: MegaflowId) -> Result<(), TableError> {
        self.apply(Transaction::new().remove(id(megaflow)))
    }

    /// Rebuilds the engine if many rules have changed since it was built. This is rare,
    /// since packets wait for it.
    fn tick<P>(&mut self, _: &Megaflows<P>, _: f64) -> Result<(), TableError> {
        if self.changes >= self.rules.max(MIN_REBUILD_RULES) * REBUILD_CHANGES_PER_RULE {
            if let Some(engine) = self.engine.as_dynamic() {
                engine.rebuild(&mut NoProgress)?;
                self.rules = engine.rules();
            }
            self.changes = 0;
        }
        Ok(())
    }

    /// Returns the bytes of the engine. This is slow.
    fn bytes(&self) -> usize {
        self.engine.stats().bytes()
    }
}

/// Returns the rule of a megaflow. All rules have the same priority, since any megaflow
/// that covers a packet is right.
fn rule(schema: &Arc<Schema>, pieces: PieceSet, (megaflow, key, mask): Megaflow<'_>) -> Rule {
    let matches = pieces.pieces().map(|piece| FieldMatch::Ternary {
        value: u128::from(piece.part.get(&key)),
        mask: u128::from(piece.part.get(mask)),
    });
    let matches: Vec<FieldMatch> = matches.collect();
    let rule = Rule::new(schema, id(megaflow), Priority(0), ActionId(0), &matches);
    rule.expect("a match for each field, of its width")
}

/// Returns the id of a megaflow's rule: it has the number of the megaflow.
fn id(megaflow: MegaflowId) -> RuleId {
    RuleId::new(megaflow.number()).expect("a megaflow has no number above those of rules")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::key::PacketKey;

    /// Every bit of every field of received packets is in exactly one piece.
    #[test]
    fn pieces_are_all_of_a_key_but_registers() {
        let (mut pieces, mut fields) = ([0_u64; crate::KEY_WORDS], [0_u64; crate::KEY_WORDS]);
        for piece in &PIECES {
            assert_eq!(
                pieces[piece.part.word] & piece.part.mask(),
                0,
                "{}",
                piece.name
            );
            pieces[piece.part.word] |= piece.part.mask();
        }
        let presence = PacketKey::presence_place();
        fields[presence.word] |= presence.mask();
        for field in Field::all().filter(|field| (*field as usize) < Field::Reg0 as usize) {
            PacketKey::place(field).set_bits(&mut fields, u128::MAX);
        }
        assert_eq!(pieces, fields);
        let first: Vec<&str> = PieceSet::FIRST.pieces().map(|piece| piece.name).collect();
        assert_eq!(first, ["eth_type", "presence"]);
        assert_eq!(PieceSet::ALL.schema().fields().len(), PIECES.len());
    }
}
