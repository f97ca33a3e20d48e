//! Fingerprints: a word that says much about a wide key, and the same of a rule.
//!
//! # Idea
//! Most rules that a key meets in a bucket differ from it in some field, and for
//! keys of many words finding that out reads most of a rule. So a key has a
//! *fingerprint* of 64 bits, a few of which are a hash of some bits of a field,
//! and a rule has the fingerprint of its own value and *care* bits, which are set
//! where all bits that were hashed are exact in the rule:
//! ```text
//! key           │ in_port │ metadata │ … │ src/8 │ src/16 │ … │ dport │
//! fingerprint   │   h h   │   h h    │ … │  h h  │  h h   │ … │  h h  │
//! care          │   1 1   │   0 0    │ … │  1 1  │  0 0   │ … │  1 1  │
//! ```
//! A rule that matches a key never differs from its fingerprint in a care bit.
//! One that does not match is told by two words, except for one in 2^b, where b is
//! the number of bits of those chunks in which the two differ.
//!
//! # Which bits are hashed
//! A *chunk* is some neighbouring bits of a field: all bits of an exact field that
//! lie in one lane of 16 bits of a key word; a quarter of a field of prefixes,
//! since short prefixes leave the others open; a half of a short range. Bits go to
//! chunks one after the other, each to the chunk that tells the most pairs of
//! sampled rules apart that the bits before it did not.
//!
//! A hash is multiply-shift (Dietzfelbinger et al. 1997, §3): the chunk, shifted
//! to the top of 16 bits, times a random odd number; its upper bits. So all
//! chunks of a word that lie in different lanes are hashed by one multiplication
//! of 16-bit lanes, a *round*.

use super::active::ActiveKeys;
use crate::rule::RuleRef;
use crate::schema::{MatchKind, Part, Schema};
use crate::seed::splitmix;
use crate::simd::Isa;

/// Bits of a lane.
const LANE: u32 = 16;

/// Lanes of a word.
const LANES: usize = 4;

/// Bits of a fingerprint that come from one lane.
const ROOM: u32 = LANE;

/// The most bits of one chunk's hash: more are better spent on other chunks.
const MOST_BITS: u32 = 8;

/// The most chunks that are looked at.
const MOST_CHUNKS: usize = 128;

/// Pairs of rules by which bits are given to chunks.
const PAIRS: usize = 1024;

/// Each pair is the closest of so many: those that meet in a bucket are closer than
/// others.
const CLOSEST_OF: usize = 16;

/// Hashed bits of a key word.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    word: usize,
    /// The lowest bit in the word.
    shift: u32,
    /// 1 to 16 bits, all in one lane.
    width: u32,
    /// An odd number, shifted so that the chunk's highest bit comes to the top of
    /// 16 bits.
    factor: u16,
    /// The hash is so many upper bits of the product.
    bits: u32,
    /// Where in the fingerprint the hash has its lowest bit.
    at: u32,
}

impl Chunk {
    /// The bits of the word.
    fn mask(&self) -> u64 {
        (u64::MAX >> (64 - self.width)) << self.shift
    }

    /// The bits, shifted down.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // at most 16 bits
    fn of(&self, word: u64) -> u16 {
        (word >> self.shift & (u64::MAX >> (64 - self.width))) as u16
    }

    #[inline(always)]
    fn hash(&self, word: u64) -> u64 {
        let product = self.of(word).wrapping_mul(self.factor);
        u64::from(product >> (LANE - self.bits)) << self.at
    }

    /// The bits of the hash.
    fn care(&self) -> u64 {
        (u64::MAX >> (64 - self.bits)) << self.at
    }

    /// The lane in which it lies.
    #[cfg(target_arch = "x86_64")]
    fn lane(&self) -> usize {
        (self.shift / LANE) as usize
    }
}

/// Chunks of one word that are hashed by one multiplication of lanes. A chunk of
/// lane `n` of the rotated word is hashed to lane `n` of the fingerprint.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
struct Round {
    word: usize,
    /// Bits to rotate the word to the right by.
    rotate: u32,
    /// The bits of the rotated word.
    mask: u64,
    /// What each lane is multiplied by, and shifted down by after that.
    factors: u64,
    shifts: u64,
    /// The bits that are left.
    select: u64,
}

#[cfg(target_arch = "x86_64")]
impl Round {
    /// What the hash of a chunk needs, if its lane is free.
    fn add(&mut self, chunk: &Chunk) -> bool {
        let lane = chunk.at / ROOM;
        let inside = chunk.shift % LANE;
        let up = lane * LANE;
        let bits = (u64::MAX >> (64 - chunk.width)) << (up + inside);
        if self.select >> up & u64::from(u16::MAX) != 0 {
            return false;
        }
        self.mask |= bits;
        self.factors |= u64::from(chunk.factor >> inside) << up;
        self.shifts |= u64::from(LANE - chunk.bits - chunk.at % ROOM) << up;
        self.select |= chunk.care();
        true
    }
}

/// How fingerprints of a schema's keys and rules are made.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    /// In the order of key words.
    chunks: Vec<Chunk>,
    #[cfg(target_arch = "x86_64")]
    rounds: Vec<Round>,
}

/// Some neighbouring bits of a word, in one lane.
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

/// The chunks of a part of a field, the leading bits first.
fn chunks_of(part: &Part, kind: MatchKind) -> impl Iterator<Item = Bits> + use<> {
    let Part { word, shift, width } = *part;
    let count = match kind {
        MatchKind::Exact => 1,
        MatchKind::Range if width <= LANE => 2,
        MatchKind::Prefix | MatchKind::Range | MatchKind::Ternary => 4,
    };
    let length = width.div_ceil(count);
    let pieces = (0..count).filter_map(move |chunk| {
        let end = width.checked_sub(chunk * length)?;
        let start = end.saturating_sub(length);
        (end > start).then_some((shift + start, shift + end))
    });
    // Cut where lanes end.
    pieces.flat_map(move |(start, end)| {
        (start / LANE..end.div_ceil(LANE)).rev().map(move |lane| {
            let (from, to) = (start.max(lane * LANE), end.min((lane + 1) * LANE));
            Bits {
                word,
                shift: from,
                width: to - from,
            }
        })
    })
}

/// The chunks of a schema, the first of all fields first.
fn all_chunks(schema: &Schema) -> Vec<Bits> {
    // Each with its number in its field.
    let mut all: Vec<(usize, Bits)> = Vec::new();
    for id in schema.field_ids() {
        let placement = schema.placement(id);
        let kind = schema.field(id).kind();
        let parts = placement.high.iter().chain([&placement.low]);
        let chunks = parts.flat_map(|part| chunks_of(part, kind));
        all.extend(chunks.enumerate());
    }
    all.sort_by_key(|&(number, _)| number);
    all.truncate(MOST_CHUNKS);
    all.into_iter().map(|(_, bits)| bits).collect()
}

/// In which chunks a header of a rule differs from another rule, one bit each.
fn differences(chunks: &[Bits], header: &RuleRef<'_>, rule: &RuleRef<'_>, state: &mut u64) -> u128 {
    let mut differs = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        let bits = chunk.mask();
        let exact = header.mask()[chunk.word];
        let key = header.value()[chunk.word] & exact | splitmix(state) & !exact;
        let cares = bits & !rule.mask()[chunk.word] == 0;
        let unlike = (key ^ rule.value()[chunk.word]) & bits != 0;
        differs |= u128::from(cares & unlike) << at;
    }
    differs
}

/// Gives the bits of a fingerprint to chunks: for each chunk its bits, and the lane
/// of the fingerprint in which they are.
fn share_out(chunks: &[Bits], pairs: &[u128]) -> Vec<(u32, usize)> {
    let mut sizes = vec![(0, 0); chunks.len()];
    let mut room = [ROOM; LANES];
    // For each pair, the probability that nothing tells it apart yet.
    let mut alike = vec![1.0_f32; pairs.len()];
    loop {
        let mut gains = vec![0.0_f32; chunks.len()];
        for (pair, alike) in pairs.iter().zip(&alike) {
            let mut left = *pair;
            while left != 0 {
                gains[left.trailing_zeros() as usize] += alike;
                left &= left - 1;
            }
        }
        let most_room = (0..LANES).max_by_key(|&lane| (room[lane], LANES - lane));
        let mut best: Option<(usize, usize)> = None;
        for (at, chunk) in chunks.iter().enumerate() {
            let (bits, lane) = sizes[at];
            let own = (chunk.shift / LANE) as usize;
            let lane = match bits {
                // Where it is, unless there is hardly any room.
                0 if room[own] >= 2 => own,
                0 => most_room.expect("some lane"),
                _ => lane,
            };
            let free = room[lane] > 0 && bits < chunk.width.min(MOST_BITS);
            let better = best.is_none_or(|(other, _)| {
                let order = gains[at].total_cmp(&gains[other]);
                order.then(sizes[other].0.cmp(&bits)).is_gt()
            });
            if free && better {
                best = Some((at, lane));
            }
        }
        let Some((at, lane)) = best else {
            return sizes;
        };
        sizes[at] = (sizes[at].0 + 1, lane);
        room[lane] -= 1;
        for (pair, alike) in pairs.iter().zip(&mut alike) {
            if pair >> at & 1 != 0 {
                *alike *= 0.5;
            }
        }
    }
}

impl Fingerprint {
    /// For the keys of a schema, and rules like these, which may be none. The seed
    /// decides the hash functions.
    pub(crate) fn new<'a>(
        schema: &Schema,
        rules: impl ExactSizeIterator<Item = RuleRef<'a>>,
        seed: u64,
    ) -> Fingerprint {
        let all = all_chunks(schema);
        let mut state = seed;
        let step = rules.len().div_ceil(PAIRS).max(1);
        let rules: Vec<RuleRef<'_>> = rules.step_by(step).collect();
        let mut pairs = Vec::with_capacity(rules.len());
        for header in &rules {
            let close = (0..CLOSEST_OF).map(|_| {
                let other = splitmix(&mut state) % rules.len() as u64;
                let other = &rules[usize::try_from(other).expect("a position")];
                differences(&all, header, other, &mut state)
            });
            // Rules that match are told apart by nothing.
            let close = close.filter(|differs| *differs != 0);
            pairs.extend(close.min_by_key(|differs| differs.count_ones()));
        }
        let sizes = share_out(&all, &pairs);
        let mut used = [0; LANES];
        let sized = all.iter().zip(sizes).filter(|(_, (bits, _))| *bits > 0);
        let mut chunks: Vec<Chunk> = sized
            .map(|(chunk, (bits, lane))| {
                let at = u32::try_from(lane).expect("a lane") * ROOM + used[lane];
                used[lane] += bits;
                let odd = (splitmix(&mut state) | 1) & u64::from(u16::MAX);
                let factor = odd << (LANE - chunk.width) & u64::from(u16::MAX);
                Chunk {
                    word: chunk.word,
                    shift: chunk.shift,
                    width: chunk.width,
                    factor: u16::try_from(factor).expect("16 bits"),
                    bits,
                    at,
                }
            })
            .collect();
        chunks.sort_by_key(|chunk| chunk.word);
        Fingerprint {
            #[cfg(target_arch = "x86_64")]
            rounds: rounds_of(&chunks),
            chunks,
        }
    }

    /// For the keys of a schema, whatever the rules.
    pub(crate) fn blind(schema: &Schema, seed: u64) -> Fingerprint {
        Fingerprint::new(schema, std::iter::empty(), seed)
    }

    /// The fingerprint of a key.
    #[inline]
    pub(crate) fn of_key(&self, key: &[u64]) -> u64 {
        let hashes = self.chunks.iter().map(|chunk| chunk.hash(key[chunk.word]));
        hashes.fold(0, |print, hash| print | hash)
    }

    /// The fingerprint of a rule and its care bits, from its value and the bits
    /// that are exact in it.
    pub(crate) fn of_rule(&self, value: &[u64], exact: &[u64]) -> (u64, u64) {
        let cared = self
            .chunks
            .iter()
            .filter(|chunk| chunk.mask() & !exact[chunk.word] == 0);
        cared.fold((0, 0), |(print, care), chunk| {
            (print | chunk.hash(value[chunk.word]), care | chunk.care())
        })
    }

    /// Gives each key of a batch its fingerprint. With AVX-512 the batch must have
    /// [columns](ActiveKeys::make_columns).
    pub(crate) fn take<const W: usize>(&self, isa: Isa, keys: &mut ActiveKeys<'_, W>) {
        assert!(
            self.chunks.iter().all(|chunk| chunk.word < W),
            "words of a key"
        );
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) => x86::take(proof, &self.rounds, keys),
            _ => {
                let (rows, prints) = keys.rows_and_prints();
                for (row, print) in rows.iter().zip(prints) {
                    *print = self.of_key(row);
                }
            }
        }
    }
}

/// The rounds in which chunks are hashed.
#[cfg(target_arch = "x86_64")]
fn rounds_of(chunks: &[Chunk]) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for chunk in chunks {
        let (from, to) = (chunk.lane(), (chunk.at / ROOM) as usize);
        let rotate = LANE * u32::try_from((from + LANES - to) % LANES).expect("a lane");
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
                select: 0,
            };
            assert!(round.add(chunk), "all lanes are free");
            rounds.push(round);
        }
    }
    rounds
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_loadu_si512, _mm512_mullo_epi16, _mm512_or_si512,
        _mm512_rorv_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_srlv_epi16,
        _mm512_storeu_si512,
    };

    use super::super::active::Keys;
    use super::{ActiveKeys, Round};
    use crate::simd::Avx512;

    pub(super) fn take<const W: usize>(_: Avx512, rounds: &[Round], keys: &mut ActiveKeys<'_, W>) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { take_avx512(rounds, keys) }
    }

    /// Eight keys at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    fn take_avx512<const W: usize>(rounds: &[Round], keys: &mut ActiveKeys<'_, W>) {
        let all = |word: u64| _mm512_set1_epi64(word.cast_signed());
        let len = keys.len();
        let (columns, prints) = keys.columns_and_prints();
        for (prints, from) in prints.chunks_mut(8).zip((0..len).step_by(8)) {
            let mut print = _mm512_setzero_si512();
            for round in rounds {
                let word = &columns[round.word][from..from + 8];
                // SAFETY: eight words are read from a slice of eight.
                let word = unsafe { _mm512_loadu_si512(word.as_ptr().cast()) };
                let word = _mm512_rorv_epi64(word, all(round.rotate.into()));
                let bits = _mm512_and_si512(word, all(round.mask));
                let product = _mm512_mullo_epi16(bits, all(round.factors));
                let hash = _mm512_srlv_epi16(product, all(round.shifts));
                print = _mm512_or_si512(print, _mm512_and_si512(hash, all(round.select)));
            }
            // SAFETY: eight words are written to a slice of eight.
            unsafe { _mm512_storeu_si512(prints.as_mut_ptr().cast(), print) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::BATCH;
    use crate::engine::forest::kernels::active::{Keys, Workspace};
    use crate::rule::{ActionId, FieldMatch, Priority, RuleId, Winner};
    use crate::ruleset::RuleSet;
    use crate::schema::{Field, low_ones};

    #[test]
    fn chunks_share_out_the_word() {
        let one = Field::new("bit", 1, MatchKind::Exact);
        let narrow = Schema::new("narrow", vec![one]).unwrap();
        let wide = (0..16).map(|n| Field::new(&format!("f{n}"), 64, MatchKind::Ternary));
        let wide = Schema::new("wide", wide.collect()).unwrap();
        let two = Field::new("long", 100, MatchKind::Prefix);
        let two = Schema::new("two", vec![two]).unwrap();
        for (schema, bits) in [
            (&narrow, 1),
            // Its seven chunks have 8 bits each at most, where there is room.
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
                assert!(chunk.bits <= chunk.width.min(MOST_BITS));
                // It lies in one lane, and its highest bit comes to the top of 16.
                assert!(chunk.shift % LANE + chunk.width <= LANE);
                assert_eq!(LANE - chunk.width, chunk.factor.trailing_zeros());
            }
            assert_eq!(used.count_ones(), bits, "{schema:?}");
        }
        // Each field of the fifteen has a part.
        let schema = Schema::openflow15();
        let prints = Fingerprint::blind(&schema, 7);
        for id in schema.field_ids() {
            let mut exact = [0; 6];
            schema
                .placement(id)
                .set(&mut exact, schema.field(id).max_value());
            assert_ne!(prints.of_rule(&[0; 6], &exact).1, 0);
            // Most other values have another hash.
            let others = (1..=100).filter(|n| {
                let mut key = [0; 6];
                let value = (n * 0x9e37_79b9_7f4a_7c15) & schema.field(id).max_value();
                schema.placement(id).set(&mut key, value);
                prints.of_key(&key) != prints.of_key(&[0; 6])
            });
            assert!(others.count() > 60, "{}", schema.field(id).name());
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
            let (key, other, some, more) = (word(), word(), word(), word());
            let mask: [u64; 6] = std::array::from_fn(|at| match some[at] % 3 {
                0 => u64::MAX,
                1 => u64::MAX << (more[at] % 64),
                _ => some[at] | more[at],
            });
            let value: [u64; 6] = std::array::from_fn(|at| key[at] & mask[at]);
            let (print, care) = prints.of_rule(&value, &mask);
            assert_eq!(print & !care, 0);
            assert_eq!((prints.of_key(&key) ^ print) & care, 0);
            cared += usize::from(care != 0);
            unlike += usize::from((prints.of_key(&other) ^ print) & care != 0);
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
        for (field, least) in [(2, 16), (4, 8), (6, 3), (9, 16)] {
            let rules = rules(field);
            let prints = Fingerprint::new(&schema, rules.iter(), 7);
            let rule = rules.rule(0);
            let (_, care) = prints.of_rule(rule.value(), rule.mask());
            assert!(care.count_ones() >= least, "{care:b} of field {field}");
        }
    }

    #[test]
    fn every_instruction_set_takes_the_same_at_every_length() {
        let schema = Schema::openflow15();
        check_takes::<6>(&Fingerprint::blind(&schema, 11));
        // Bits that are given by rules lie in other lanes.
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
                    assert_eq!(keys.print(position), print, "{isa}, {len} keys");
                }
            }
        }
    }
}
