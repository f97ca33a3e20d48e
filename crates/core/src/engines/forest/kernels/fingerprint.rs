//! Fingerprints: a word of hashes of a wide key, and the matching word of a rule.
//!
//! # Idea
//! Most rules in a key's bucket differ from it in some field. For keys of many
//! words, finding the difference reads most of a rule. So a key has a *fingerprint*
//! of 64 bits; a few of its bits are a hash of some bits of a field. A rule has the
//! fingerprint of its value, and *care* bits, which are set if all hashed bits are
//! exact in the rule:
//! ```text
//! key           │ in_port │ metadata │ … │ src/8 │ src/16 │ … │ dport │
//! fingerprint   │   h h   │   h h    │ … │  h h  │  h h   │ … │  h h  │
//! care          │   1 1   │   0 0    │ … │  1 1  │  0 0   │ … │  1 1  │
//! ```
//! A rule that matches a key always agrees with its fingerprint in all care bits.
//! Comparing two words rejects all rules that do not match, except one in 2^b, where
//! b is the number of fingerprint bits of the chunks that differ.
//!
//! # Hashed bits
//! A *chunk* is a few neighbouring bits of a field: all bits of an exact field that
//! are in one 16-bit lane of a key word; a quarter of a prefix field, since short
//! prefixes leave later bits open; or half of a short range. Fingerprint bits are
//! assigned one by one, each to the chunk that distinguishes the most pairs of
//! sampled rules that earlier bits did not.
//!
//! A hash is multiply-shift (Dietzfelbinger et al. 1997, §3): the chunk, shifted to
//! the top of 16 bits, is multiplied by a random odd number, and the upper bits of
//! the product are the hash. So one multiplication of 16-bit lanes, a *round*,
//! hashes all chunks of a word that are in different lanes.

use super::active::ActiveKeys;
use crate::model::rule::RuleRef;
use crate::model::schema::{MatchKind, Part, Schema};
use crate::model::seed::splitmix;
use crate::parts::simd::Isa;
use crate::parts::simd::vector::{Kernel, Simd, Vector};

/// The number of bits in a lane.
const LANE_BITS: u32 = 16;

/// The number of lanes in a word.
const LANE_COUNT: usize = 4;

/// The number of fingerprint bits for chunks hashed to one lane.
const PRINT_LANE_BITS: u32 = LANE_BITS;

/// The most bits of one chunk's hash; more bits are better used for other chunks.
/// Measured in `bench/records/constants.md` (Forest, wide rules).
const MAX_CHUNK_BITS: u32 = 8;

/// The most chunks considered: one bit each in the differences of a pair. Bounds the
/// work of assigning bits.
const MAX_CHUNKS: usize = 128;

/// The most pairs of rules that decide the assignment of bits. Measured in
/// `bench/records/constants.md` (Forest, wide rules).
const MAX_PAIRS: usize = 1024;

/// Each pair is the closest of this number of random pairs, since rules in one bucket are closer
/// than others. Measured in `bench/records/constants.md` (Forest, wide rules).
const CLOSEST_OF: usize = 16;

/// Hashed bits of a key word.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    word: usize,
    /// The lowest bit in the word.
    shift: u32,
    /// 1 to 16 bits, all in one lane.
    width: u32,
    /// An odd number, shifted so that the chunk's highest bit comes to the top of 16
    /// bits.
    factor: u16,
    /// The number of upper bits of the product in the hash.
    bits: u32,
    /// The position of the hash's lowest bit in the fingerprint.
    at: u32,
}

impl Chunk {
    /// The chunk's bits in the word.
    fn mask(&self) -> u64 {
        (u64::MAX >> (64 - self.width)) << self.shift
    }

    /// Returns the chunk's bits, shifted down.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // at most 16 bits
    fn of(&self, word: u64) -> u16 {
        (word >> self.shift & (u64::MAX >> (64 - self.width))) as u16
    }

    #[inline(always)]
    fn hash(&self, word: u64) -> u64 {
        let product = self.of(word).wrapping_mul(self.factor);
        u64::from(product >> (LANE_BITS - self.bits)) << self.at
    }

    /// The hash's bits in the fingerprint.
    fn care(&self) -> u64 {
        (u64::MAX >> (64 - self.bits)) << self.at
    }

    /// The lane of the chunk.
    fn lane(&self) -> usize {
        (self.shift / LANE_BITS) as usize
    }
}

/// Chunks of one word that are hashed by one multiplication of lanes. A chunk of
/// lane `n` of the rotated word is hashed to lane `n` of the fingerprint.
#[derive(Clone, Copy, Debug)]
struct Round {
    word: usize,
    /// Bits to rotate the word to the right by.
    rotate: u32,
    /// The chunks' bits in the rotated word.
    mask: u64,
    /// The multiplier of each lane.
    factors: u64,
    /// For each lane, 2^(16 − n) if its product is shifted by n bits: the upper half of
    /// the product with this is shifted so. 0 if n is 0.
    shifts: u64,
    /// All bits of the lanes whose products are not shifted.
    kept: u64,
    /// The hashes' bits in the fingerprint.
    select: u64,
}

impl Round {
    /// Adds a chunk and returns true, if its lane is free.
    fn add(&mut self, chunk: &Chunk) -> bool {
        let lane = chunk.at / PRINT_LANE_BITS;
        let inside = chunk.shift % LANE_BITS;
        let up = lane * LANE_BITS;
        let bits = (u64::MAX >> (64 - chunk.width)) << (up + inside);
        if self.select >> up & u64::from(u16::MAX) != 0 {
            return false;
        }
        self.mask |= bits;
        self.factors |= u64::from(chunk.factor >> inside) << up;
        match LANE_BITS - chunk.bits - chunk.at % PRINT_LANE_BITS {
            0 => self.kept |= u64::from(u16::MAX) << up,
            shift => self.shifts |= (1 << (LANE_BITS - shift)) << up,
        }
        self.select |= chunk.care();
        true
    }
}

/// The hash functions for fingerprints of a schema's keys and rules.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    /// Sorted by key word.
    chunks: Vec<Chunk>,
    rounds: Vec<Round>,
}

/// A few neighbouring bits of a word, in one lane.
#[derive(Clone, Copy, Debug)]
struct Bits {
    word: usize,
    shift: u32,
    width: u32,
}

impl Bits {
    fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.width)) << self.shift
    }
}

/// Returns the chunks of a part of a field, leading bits first.
fn chunks_of(part: &Part, kind: MatchKind) -> impl Iterator<Item = Bits> + use<> {
    let Part { word, shift, width } = *part;
    let count = match kind {
        MatchKind::Exact => 1,
        MatchKind::Range if width <= LANE_BITS => 2,
        MatchKind::Prefix | MatchKind::Range | MatchKind::Ternary => 4,
    };
    let length = width.div_ceil(count);
    let pieces = (0..count).filter_map(move |chunk| {
        let piece_end = width.checked_sub(chunk * length)?;
        let start = piece_end.saturating_sub(length);
        (piece_end > start).then_some((shift + start, shift + piece_end))
    });
    // Cut at the ends of lanes.
    pieces.flat_map(move |(start, end)| {
        (start / LANE_BITS..end.div_ceil(LANE_BITS))
            .rev()
            .map(move |lane| {
                let (start, end) = (start.max(lane * LANE_BITS), end.min((lane + 1) * LANE_BITS));
                Bits {
                    word,
                    shift: start,
                    width: end - start,
                }
            })
    })
}

/// Returns the chunks of a schema: first the first chunk of each field.
fn all_chunks(schema: &Schema) -> Vec<Bits> {
    // Each chunk with its number in its field.
    let mut numbered: Vec<(usize, Bits)> = Vec::new();
    for id in schema.field_ids() {
        let placement = schema.placement(id);
        let kind = schema.field(id).kind();
        let parts = placement.high.iter().chain([&placement.low]);
        let chunks = parts.flat_map(|part| chunks_of(part, kind));
        numbered.extend(chunks.enumerate());
    }
    numbered.sort_by_key(|&(number, _)| number);
    numbered.truncate(MAX_CHUNKS);
    numbered.into_iter().map(|(_, bits)| bits).collect()
}

/// Compares a header of a rule with another rule. Returns a bit for each chunk that
/// differs.
fn differences(chunks: &[Bits], header: &RuleRef<'_>, rule: &RuleRef<'_>, state: &mut u64) -> u128 {
    let mut differs = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let bits = chunk.mask();
        let exact = header.mask()[chunk.word];
        let key = header.value()[chunk.word] & exact | splitmix(state) & !exact;
        let cares = bits & !rule.mask()[chunk.word] == 0;
        let unlike = (key ^ rule.value()[chunk.word]) & bits != 0;
        differs |= u128::from(cares & unlike) << index;
    }
    differs
}

/// Assigns the bits of a fingerprint to chunks. Returns, for each chunk, its number
/// of bits and their lane in the fingerprint.
fn share_out(chunks: &[Bits], pairs: &[u128]) -> Vec<(u32, usize)> {
    let mut sizes = vec![(0, 0); chunks.len()];
    let mut free_bits = [PRINT_LANE_BITS; LANE_COUNT];
    // For each pair, the probability that no earlier bit distinguishes it.
    let mut alike = vec![1.0_f32; pairs.len()];
    loop {
        let mut gains = vec![0.0_f32; chunks.len()];
        for (pair, alike) in pairs.iter().zip(&alike) {
            let mut chunks_left = *pair;
            while chunks_left != 0 {
                gains[chunks_left.trailing_zeros() as usize] += alike;
                chunks_left &= chunks_left - 1;
            }
        }
        let freest_lane = (0..LANE_COUNT).max_by_key(|&lane| (free_bits[lane], LANE_COUNT - lane));
        let mut best: Option<(usize, usize)> = None;
        for (index, chunk) in chunks.iter().enumerate() {
            let (bits, lane) = sizes[index];
            let own_lane = (chunk.shift / LANE_BITS) as usize;
            let lane = match bits {
                // The chunk's own lane, unless it is almost full.
                0 if free_bits[own_lane] >= 2 => own_lane,
                0 => freest_lane.expect("some lane"),
                _ => lane,
            };
            let is_possible = free_bits[lane] > 0 && bits < chunk.width.min(MAX_CHUNK_BITS);
            let better = best.is_none_or(|(best_index, _)| {
                let order = gains[index].total_cmp(&gains[best_index]);
                order.then(sizes[best_index].0.cmp(&bits)).is_gt()
            });
            if is_possible && better {
                best = Some((index, lane));
            }
        }
        let Some((index, lane)) = best else {
            return sizes;
        };
        sizes[index] = (sizes[index].0 + 1, lane);
        free_bits[lane] -= 1;
        for (pair, alike) in pairs.iter().zip(&mut alike) {
            if pair >> index & 1 != 0 {
                *alike *= 0.5;
            }
        }
    }
}

impl Fingerprint {
    /// Chooses chunks for keys of a schema and rules like `rules`, which may be empty.
    /// The seed determines the hash functions.
    pub(crate) fn new<'a>(
        schema: &Schema,
        rules: impl ExactSizeIterator<Item = RuleRef<'a>>,
        seed: u64,
    ) -> Fingerprint {
        let candidates = all_chunks(schema);
        let mut state = seed;
        let step = rules.len().div_ceil(MAX_PAIRS).max(1);
        let rules: Vec<RuleRef<'_>> = rules.step_by(step).collect();
        let mut pairs = Vec::with_capacity(rules.len());
        for header in &rules {
            let differing = (0..CLOSEST_OF).map(|_| {
                let partner = splitmix(&mut state) % rules.len() as u64;
                let partner = &rules[usize::try_from(partner).expect("a position")];
                differences(&candidates, header, partner, &mut state)
            });
            // Fingerprints cannot separate two rules that both match a header.
            let differing = differing.filter(|differs| *differs != 0);
            pairs.extend(differing.min_by_key(|differs| differs.count_ones()));
        }
        let sizes = share_out(&candidates, &pairs);
        let mut used = [0; LANE_COUNT];
        let sized = candidates
            .iter()
            .zip(sizes)
            .filter(|(_, (bits, _))| *bits > 0);
        let mut chunks: Vec<Chunk> = sized
            .map(|(chunk, (bits, lane))| {
                let lowest_bit =
                    u32::try_from(lane).expect("a lane") * PRINT_LANE_BITS + used[lane];
                used[lane] += bits;
                let odd = (splitmix(&mut state) | 1) & u64::from(u16::MAX);
                let factor = odd << (LANE_BITS - chunk.width) & u64::from(u16::MAX);
                Chunk {
                    word: chunk.word,
                    shift: chunk.shift,
                    width: chunk.width,
                    factor: u16::try_from(factor).expect("16 bits"),
                    bits,
                    at: lowest_bit,
                }
            })
            .collect();
        chunks.sort_by_key(|chunk| chunk.word);
        Fingerprint {
            rounds: rounds_of(&chunks),
            chunks,
        }
    }

    /// Chooses chunks for keys of a schema without rules.
    pub(crate) fn blind(schema: &Schema, seed: u64) -> Fingerprint {
        Fingerprint::new(schema, std::iter::empty(), seed)
    }

    /// Returns the fingerprint of a key.
    #[inline]
    pub(crate) fn of_key(&self, key: &[u64]) -> u64 {
        let hashes = self.chunks.iter().map(|chunk| chunk.hash(key[chunk.word]));
        hashes.fold(0, |print, hash| print | hash)
    }

    /// Returns the fingerprint of a rule and its care bits, from its value and exact
    /// bits.
    pub(crate) fn of_rule(&self, value: &[u64], exact: &[u64]) -> (u64, u64) {
        let cared = self
            .chunks
            .iter()
            .filter(|chunk| chunk.mask() & !exact[chunk.word] == 0);
        cared.fold((0, 0), |(print, care), chunk| {
            (print | chunk.hash(value[chunk.word]), care | chunk.care())
        })
    }

    /// Sets the fingerprint of each key of a batch, which must have
    /// [columns](ActiveKeys::make_columns).
    pub(crate) fn take<const W: usize>(&self, isa: Isa, keys: &mut ActiveKeys<'_, W>) {
        assert!(
            self.chunks.iter().all(|chunk| chunk.word < W),
            "words of a key"
        );
        isa.run(Take {
            fingerprint: self,
            keys,
        });
    }
}

/// Groups chunks into rounds.
fn rounds_of(chunks: &[Chunk]) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for chunk in chunks {
        let (from, to) = (chunk.lane(), (chunk.at / PRINT_LANE_BITS) as usize);
        let rotate =
            LANE_BITS * u32::try_from((from + LANE_COUNT - to) % LANE_COUNT).expect("a lane");
        let mut fitting = rounds
            .iter_mut()
            .filter(|round| (round.word, round.rotate) == (chunk.word, rotate));
        if !fitting.any(|round| round.add(chunk)) {
            let mut round = Round {
                word: chunk.word,
                rotate,
                mask: 0,
                factors: 0,
                shifts: 0,
                kept: 0,
                select: 0,
            };
            assert!(round.add(chunk), "all lanes are free");
            rounds.push(round);
        }
    }
    rounds
}

/// Takes the fingerprints of a batch's keys.
struct Take<'f, 'k, 'a, const W: usize> {
    fingerprint: &'f Fingerprint,
    keys: &'k mut ActiveKeys<'a, W>,
}

impl<const W: usize> Kernel for Take<'_, '_, '_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Take { fingerprint, keys } = self;
        if S::Full::LANE_COUNT == 1 {
            let (rows, prints) = keys.rows_and_prints();
            for (row, print) in rows.iter().zip(prints) {
                *print = fingerprint.of_key(row);
            }
            return;
        }
        let len = keys.rows().len();
        let (columns, prints) = keys.columns_and_prints();
        for from in (0..len).step_by(S::Full::LANE_COUNT) {
            let mut print = S::Full::splat(simd, 0);
            for round in &fingerprint.rounds {
                let word = S::Full::load(simd, &columns[round.word][from..]);
                let rotated = word
                    .shift_right_by(round.rotate)
                    .or(word.shift_left_by(u64::BITS - round.rotate));
                let bits = rotated.and(S::Full::splat(simd, round.mask));
                let products = bits.multiply_u16(S::Full::splat(simd, round.factors));
                let shifted = products.multiply_high_u16(S::Full::splat(simd, round.shifts));
                let kept = products.and(S::Full::splat(simd, round.kept));
                let hash = shifted.or(kept).and(S::Full::splat(simd, round.select));
                print = print.or(hash);
            }
            print.store(&mut prints[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::classifier::BATCH;
    use crate::engines::forest::kernels::active::Workspace;
    use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, Winner};
    use crate::model::ruleset::RuleSet;
    use crate::model::schema::{Field, low_ones};
    use crate::model::seed::fibonacci_hash;

    #[test]
    fn chunks_share_out_the_word() {
        let bit_field = Field::new("bit", 1, MatchKind::Exact);
        let narrow = Schema::new("narrow", vec![bit_field]).unwrap();
        let wide = (0..16).map(|n| Field::new(&format!("f{n}"), 64, MatchKind::Ternary));
        let wide = Schema::new("wide", wide.collect()).unwrap();
        let two = Field::new("long", 100, MatchKind::Prefix);
        let two = Schema::new("two", vec![two]).unwrap();
        for (schema, bits) in [
            (&narrow, 1),
            // Each of its seven chunks has at most 8 bits, if its lane has room.
            (&two, 52),
            (&wide, 64),
            (&Schema::ipv6_5tuple(), 64),
            (&Schema::openflow15(), 64),
        ] {
            let chunks = Fingerprint::blind(schema, 7).chunks;
            let mut used = 0_u64;
            for chunk in &chunks {
                assert_eq!(used & chunk.care(), 0, "a place of its own");
                used |= chunk.care();
                assert!(chunk.bits <= chunk.width.min(MAX_CHUNK_BITS));
                // The chunk is in one lane, and its highest bit comes to the top of
                // 16 bits.
                assert!(chunk.shift % LANE_BITS + chunk.width <= LANE_BITS);
                assert_eq!(LANE_BITS - chunk.width, chunk.factor.trailing_zeros());
            }
            assert_eq!(used.count_ones(), bits, "{schema:?}");
        }
        // Each of the fifteen fields has some bits.
        let schema = Schema::openflow15();
        let prints = Fingerprint::blind(&schema, 7);
        for id in schema.field_ids() {
            let mut exact = [0; 6];
            schema
                .placement(id)
                .set(&mut exact, schema.field(id).max_value());
            assert_ne!(prints.of_rule(&[0; 6], &exact).1, 0);
            // Most other values have another hash.
            let differing = (1..=100).filter(|n| {
                let mut key = [0; 6];
                let value = u128::from(fibonacci_hash(*n)) & schema.field(id).max_value();
                schema.placement(id).set(&mut key, value);
                prints.of_key(&key) != prints.of_key(&[0; 6])
            });
            assert!(differing.count() > 60, "{}", schema.field(id).name());
        }
    }

    #[test]
    fn a_rule_differs_from_no_key_that_matches() {
        let schema = Schema::openflow15();
        let prints = Fingerprint::blind(&schema, 3);
        let mut state = 5;
        let (mut cared, mut unlike) = (0, 0);
        for _ in 0..2000 {
            let mut word = || std::array::from_fn::<u64, 6, _>(|_| splitmix(&mut state));
            let (key, other_key, random, second_random) = (word(), word(), word(), word());
            let mask: [u64; 6] = std::array::from_fn(|index| match random[index] % 3 {
                0 => u64::MAX,
                1 => u64::MAX << (second_random[index] % 64),
                _ => random[index] | second_random[index],
            });
            let value: [u64; 6] = std::array::from_fn(|index| key[index] & mask[index]);
            let (print, care) = prints.of_rule(&value, &mask);
            assert_eq!(print & !care, 0);
            assert_eq!((prints.of_key(&key) ^ print) & care, 0);
            cared += usize::from(care != 0);
            unlike += usize::from((prints.of_key(&other_key) ^ print) & care != 0);
        }
        assert!(cared > 1900 && unlike > 1700, "{cared}, {unlike}");
    }

    #[test]
    fn bits_go_where_rules_differ() {
        let schema = Schema::openflow15();
        let wild = vec![FieldMatch::Any; 15];
        let rules = |field: usize| {
            let mut rules = RuleSet::new(&schema);
            for index in 0..500 {
                let mut fields = wild.clone();
                let mut state = index;
                let width = schema.fields()[field].width();
                let value = u128::from(splitmix(&mut state)) & low_ones(width);
                fields[field] = FieldMatch::Exact(value);
                let id = RuleId::from_index(usize::try_from(index).unwrap());
                rules.add(id, Priority(1), ActionId(0), &fields).unwrap();
            }
            rules
        };
        for (field, min_bits) in [(2, 16), (4, 8), (6, 3), (9, 16)] {
            let rules = rules(field);
            let prints = Fingerprint::new(&schema, rules.iter(), 7);
            let rule = rules.rule(0);
            let (_, care) = prints.of_rule(rule.value(), rule.mask());
            assert!(care.count_ones() >= min_bits, "{care:b} of field {field}");
        }
    }

    #[test]
    fn every_instruction_set_takes_the_same_at_every_length() {
        let schema = Schema::openflow15();
        check_takes::<6>(&Fingerprint::blind(&schema, 11));
        // Bits assigned by rules are in other lanes.
        let mut rules = RuleSet::new(&schema);
        let mut state = 3;
        for index in 0..200 {
            let fields: Vec<FieldMatch> = (schema.fields().iter())
                .map(|field| match splitmix(&mut state) % 3 {
                    0 => FieldMatch::Any,
                    _ => FieldMatch::Exact(u128::from(splitmix(&mut state)) & field.max_value()),
                })
                .collect();
            let id = RuleId::from_index(index);
            rules.add(id, Priority(1), ActionId(0), &fields).unwrap();
        }
        check_takes::<6>(&Fingerprint::new(&schema, rules.iter(), 11));
        let wide = (0..16).map(|n| Field::new(&format!("f{n}"), 60, MatchKind::Ternary));
        let wide = Schema::new("wide", wide.collect()).unwrap();
        check_takes::<16>(&Fingerprint::blind(&wide, 5));
    }

    fn check_takes<const W: usize>(prints: &Fingerprint) {
        let mut state = 5;
        for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
            let rows: Vec<[u64; W]> = (0..len)
                .map(|_| std::array::from_fn(|_| splitmix(&mut state)))
                .collect();
            for isa in Isa::available() {
                let mut winners = vec![Winner::MISS; len];
                let mut workspace = Workspace::default();
                let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                keys.make_columns(isa);
                prints.take(isa, &mut keys);
                for (row, position) in rows.iter().zip(0..=u8::MAX) {
                    let print = prints.of_key(row);
                    assert_eq!(keys.keys().print(position), print, "{isa}, {len} keys");
                }
            }
        }
    }
}
