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
//! fingerprint   │  h h h  │  h h h   │ … │ h h h │ h h h  │ … │  h h  │
//! care          │  1 1 1  │  0 0 0   │ … │ 1 1 1 │ 0 0 0  │ … │  1 1  │
//! ```
//! A rule that matches a key never differs from its fingerprint in a care bit.
//! One that does not match is told by two words, except for one in 2^b, where b is
//! the number of bits of those chunks in which the two differ.
//!
//! # Which bits are hashed
//! A *chunk* is some neighbouring bits of a field: all bits that one word of the
//! key has of an exact field; a quarter of a field of prefixes, since short
//! prefixes leave the others open; a half of a short range. Chunks get one bit
//! after the other in turns, the first chunks of all fields first, until the
//! word is full.
//!
//! A hash is multiply-shift (Dietzfelbinger et al. 1997, §3): the chunk, shifted
//! to the top of the word, times a random odd number; its upper bits.

use super::active::ActiveKeys;
use crate::schema::{MatchKind, Part, Schema};
use crate::seed::splitmix;
use crate::simd::Isa;

/// The most bits of one chunk's hash: more are better spent on other chunks.
const MOST_BITS: u32 = 8;

/// Hashed bits of a key word.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    word: usize,
    /// The bits of the word.
    mask: u64,
    /// What the bits are multiplied by: an odd number, shifted so that the
    /// chunk's highest bit comes to the top.
    factor: u64,
    /// The hash is so many upper bits of the product.
    bits: u32,
    /// Where in the fingerprint the hash has its lowest bit.
    at: u32,
}

impl Chunk {
    #[inline(always)]
    fn hash(&self, word: u64) -> u64 {
        ((word & self.mask).wrapping_mul(self.factor) >> (64 - self.bits)) << self.at
    }

    /// The bits of the hash.
    fn care(&self) -> u64 {
        (u64::MAX >> (64 - self.bits)) << self.at
    }
}

/// How fingerprints of a schema's keys and rules are made.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    /// In the order of key words.
    chunks: Vec<Chunk>,
}

/// Some neighbouring bits of a word.
struct Bits {
    word: usize,
    shift: u32,
    width: u32,
}

/// The chunks of a part of a field, the leading bits first.
fn chunks_of(part: &Part, kind: MatchKind) -> impl Iterator<Item = Bits> + use<> {
    let Part { word, shift, width } = *part;
    let count = match kind {
        MatchKind::Exact => 1,
        MatchKind::Range if width <= 16 => 2,
        MatchKind::Prefix | MatchKind::Range | MatchKind::Ternary => 4,
    };
    let length = width.div_ceil(count);
    (0..count).filter_map(move |chunk| {
        let end = width.checked_sub(chunk * length)?;
        let start = end.saturating_sub(length);
        (end > start).then_some(Bits {
            word,
            shift: shift + start,
            width: end - start,
        })
    })
}

impl Fingerprint {
    /// For the keys of a schema. The seed decides the hash functions.
    pub(crate) fn new(schema: &Schema, seed: u64) -> Fingerprint {
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
        let mut sizes = vec![0; all.len()];
        let mut left = u64::BITS;
        let mut more = true;
        while left > 0 && more {
            more = false;
            for ((_, bits), size) in all.iter().zip(&mut sizes) {
                if left > 0 && *size < bits.width.min(MOST_BITS) {
                    *size += 1;
                    left -= 1;
                    more = true;
                }
            }
        }
        let mut state = seed;
        let mut at = 0;
        let sized = all.iter().zip(sizes).filter(|(_, size)| *size > 0);
        let mut chunks: Vec<Chunk> = sized
            .map(|((_, bits), size)| {
                let chunk = Chunk {
                    word: bits.word,
                    mask: (u64::MAX >> (64 - bits.width)) << bits.shift,
                    factor: (splitmix(&mut state) | 1) << (64 - bits.width - bits.shift),
                    bits: size,
                    at,
                };
                at += size;
                chunk
            })
            .collect();
        chunks.sort_by_key(|chunk| chunk.word);
        Fingerprint { chunks }
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
            .filter(|chunk| chunk.mask & !exact[chunk.word] == 0);
        cared.fold((0, 0), |(print, care), chunk| {
            (print | chunk.hash(value[chunk.word]), care | chunk.care())
        })
    }

    /// Gives each key of a batch its fingerprint.
    pub(crate) fn take<const W: usize>(&self, isa: Isa, keys: &mut ActiveKeys<'_, W>) {
        assert!(
            self.chunks.iter().all(|chunk| chunk.word < W),
            "words of a key"
        );
        let (rows, prints) = keys.rows_and_prints();
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) => x86::take(proof, &self.chunks, rows, prints),
            _ => {
                for (row, print) in rows.iter().zip(prints) {
                    *print = self.of_key(row);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_cvtsi32_si128, _mm512_and_si512, _mm512_mullo_epi64, _mm512_or_si512, _mm512_set_epi64,
        _mm512_set1_epi64, _mm512_setzero_si512, _mm512_sll_epi64, _mm512_srl_epi64,
        _mm512_storeu_si512,
    };

    use super::Chunk;
    use crate::simd::Avx512;

    pub(super) fn take<const W: usize>(
        _: Avx512,
        chunks: &[Chunk],
        rows: &[[u64; W]],
        prints: &mut [u64],
    ) {
        // SAFETY: holding an `Avx512` means that the processor has the features.
        unsafe { take_avx512(chunks, rows, prints) }
    }

    /// Eight keys at a time; the last eight may have been done before.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    fn take_avx512<const W: usize>(chunks: &[Chunk], rows: &[[u64; W]], prints: &mut [u64]) {
        for (rows, prints) in rows.chunks(8).zip(prints.chunks_mut(8)) {
            let last = rows.len() - 1;
            let eight: [&[u64; W]; 8] = std::array::from_fn(|at| &rows[at.min(last)]);
            let mut print = _mm512_setzero_si512();
            let mut word = usize::MAX;
            let mut key = print;
            for chunk in chunks {
                if chunk.word != word {
                    word = chunk.word;
                    let [a, b, c, d, e, f, g, h] = eight.map(|row| row[word].cast_signed());
                    key = _mm512_set_epi64(h, g, f, e, d, c, b, a);
                }
                let bits = _mm512_and_si512(key, _mm512_set1_epi64(chunk.mask.cast_signed()));
                let factor = _mm512_set1_epi64(chunk.factor.cast_signed());
                let product = _mm512_mullo_epi64(bits, factor);
                let down = _mm_cvtsi32_si128(64 - chunk.bits.cast_signed());
                let up = _mm_cvtsi32_si128(chunk.at.cast_signed());
                let hash = _mm512_sll_epi64(_mm512_srl_epi64(product, down), up);
                print = _mm512_or_si512(print, hash);
            }
            let mut all = [0u64; 8];
            // SAFETY: eight words are written to an array of eight.
            unsafe { _mm512_storeu_si512(all.as_mut_ptr().cast(), print) };
            prints.copy_from_slice(&all[..prints.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::BATCH;
    use crate::engine::forest::kernels::active::{Keys, Workspace};
    use crate::rule::Winner;
    use crate::schema::Field;

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
            (&two, 64),
            (&wide, 64),
            (&Schema::ipv6_5tuple(), 64),
            (&Schema::openflow15(), 64),
        ] {
            let chunks = Fingerprint::new(schema, 7).chunks;
            let mut used = 0_u64;
            for chunk in &chunks {
                assert_eq!(used & chunk.care(), 0, "a place of its own");
                used |= chunk.care();
                assert!(chunk.bits <= chunk.mask.count_ones().min(MOST_BITS));
                // The chunk's highest bit comes to the top.
                assert_eq!(chunk.mask.leading_zeros(), chunk.factor.trailing_zeros());
            }
            assert_eq!(used.count_ones(), bits, "{schema:?}");
        }
        // Each field of the fifteen has a part.
        let schema = Schema::openflow15();
        let prints = Fingerprint::new(&schema, 7);
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
        let prints = Fingerprint::new(&schema, 3);
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
    fn every_instruction_set_takes_the_same_at_every_length() {
        let prints = Fingerprint::new(&Schema::openflow15(), 11);
        let mut state = 5;
        for len in (0..=2 * 8 + 1).chain([BATCH - 1, BATCH]) {
            let rows: Vec<[u64; 6]> = (0..len)
                .map(|_| std::array::from_fn(|_| splitmix(&mut state)))
                .collect();
            for isa in Isa::available() {
                let mut winners = vec![Winner::MISS; len];
                let mut workspace = Workspace::default();
                let mut keys = ActiveKeys::new(&rows, &mut winners, &mut workspace);
                prints.take(isa, &mut keys);
                for (row, position) in rows.iter().zip(0..=u8::MAX) {
                    assert_eq!(
                        keys.print(position),
                        prints.of_key(row),
                        "{isa}, {len} keys"
                    );
                }
            }
        }
    }
}
