//! Compares operations with a search over all headers of a small universe.

use proptest::prelude::*;

use super::*;

/// Bits of the universe: half of them in each of two words, at opposite ends.
const BITS: usize = 6;

/// A limit that no test reaches.
const TERM_LIMIT: usize = 100_000;

/// Spreads bits over two words: in word 0 from the lowest bit up, in word 1 from the
/// highest bit down.
fn place(bits: u64) -> [u64; 2] {
    let mut words = [0; 2];
    for bit in 0..BITS {
        if bits >> bit & 1 == 1 {
            words[bit % 2] |= match bit % 2 {
                0 => 1 << (bit / 2),
                _ => 1 << (63 - bit / 2),
            };
        }
    }
    words
}

fn universe() -> impl Iterator<Item = [u64; 2]> {
    (0..1 << BITS).map(place)
}

fn any_term() -> impl Strategy<Value = Term<2>> {
    (0u64..1 << BITS, 0u64..1 << BITS)
        .prop_map(|(value, mask)| Term::new(place(value), place(mask)))
}

fn any_space() -> impl Strategy<Value = Space<2>> {
    prop::collection::vec(any_term(), 0..5).prop_map(Space::from_iter)
}

fn disjoint(space: &Space<2>) -> bool {
    let terms = space.terms();
    (0..terms.len()).all(|one| (0..one).all(|two| !terms[one].overlaps(&terms[two])))
}

proptest! {
    #[test]
    fn terms_are_sets(one in any_term(), two in any_term()) {
        let common = one.intersection(&two);
        let difference: Space<2> = one.difference(&two).collect();
        let complement: Space<2> = one.complement().collect();
        prop_assert!(disjoint(&difference) && disjoint(&complement));
        prop_assert_eq!(complement.terms().len(), one.bits() as usize);
        let (mut both, mut only_two) = (false, false);
        for point in universe() {
            let (in_one, in_two) = (one.contains(&point), two.contains(&point));
            both |= in_one && in_two;
            only_two |= in_two && !in_one;
            prop_assert_eq!(common.is_some_and(|term| term.contains(&point)), in_one && in_two);
            prop_assert_eq!(difference.contains(&point), in_one && !in_two);
            prop_assert_eq!(complement.contains(&point), !in_one);
            prop_assert_eq!(one.differing(&point) == [0; 2], in_one);
        }
        prop_assert_eq!(one.overlaps(&two), both);
        prop_assert_eq!(one.covers(&two), !only_two);
        prop_assert_eq!(one == two, one.covers(&two) && two.covers(&one));
    }

    #[test]
    fn spaces_are_sets(one in any_space(), two in any_space()) {
        let union = one.union(&two, TERM_LIMIT).unwrap();
        let common = one.intersection(&two, TERM_LIMIT).unwrap();
        let difference = one.difference(&two, TERM_LIMIT).unwrap();
        let complement = one.complement(TERM_LIMIT).unwrap();
        let kept = one.clone().without_covered();
        prop_assert!(disjoint(&complement));
        prop_assert!(kept.terms().len() <= one.terms().len());
        let (mut both, mut only_two, mut some) = (false, false, false);
        for point in universe() {
            let (in_one, in_two) = (one.contains(&point), two.contains(&point));
            both |= in_one && in_two;
            only_two |= in_two && !in_one;
            some |= in_one;
            prop_assert_eq!(union.contains(&point), in_one || in_two);
            prop_assert_eq!(common.contains(&point), in_one && in_two);
            prop_assert_eq!(difference.contains(&point), in_one && !in_two);
            prop_assert_eq!(complement.contains(&point), !in_one);
            prop_assert_eq!(kept.contains(&point), in_one);
        }
        prop_assert_eq!(one.overlaps(&two), both);
        prop_assert_eq!(one.covers(&two, TERM_LIMIT).unwrap(), !only_two);
        prop_assert_eq!(one.is_empty(), !some);
        let terms = kept.terms();
        let covered = |term: &Term<2>| terms.iter().filter(|other| other.covers(term)).count();
        prop_assert!(terms.iter().all(|term| covered(term) == 1));
    }

    #[test]
    fn setting_bits_is_a_map(
        space in any_space(),
        term in any_term(),
        value in 0u64..1 << BITS,
        mask in 0u64..1 << BITS,
    ) {
        let (value, mask) = (place(value), place(mask));
        let set = |point: [u64; 2]| -> [u64; 2] {
            [0, 1].map(|word| point[word] & !mask[word] | value[word] & mask[word])
        };
        let after = space.with_bits(&value, &mask);
        let image: Vec<[u64; 2]> = universe().filter(|p| space.contains(p)).map(set).collect();
        let before = term.before_bits(&value, &mask);
        for point in universe() {
            prop_assert_eq!(after.contains(&point), image.contains(&point));
            let is_before = before.is_some_and(|before| before.contains(&point));
            prop_assert_eq!(is_before, term.contains(&set(point)));
        }
    }
}

/// Parses a pattern such as `1x0x`, the highest bit first.
fn pattern(text: &str) -> Term<1> {
    let (mut value, mut mask) = (0, 0);
    for letter in text.chars() {
        value = value << 1 | u64::from(letter == '1');
        mask = mask << 1 | u64::from(letter != 'x');
    }
    Term::new([value], [mask])
}

/// [FCH14] §3.2: C − A − B.
///
/// [FCH14]: classyard::papers#fch14
#[test]
fn the_example_of_the_paper() {
    let (a, b) = (pattern("0101"), pattern("0110"));
    let left = Space::any().without(&a, TERM_LIMIT).unwrap();
    let left = left.without(&b, TERM_LIMIT).unwrap();
    let paper = ["1xxx", "x0xx", "xx11", "xx00"].map(pattern);
    let paper = Space::from_iter(paper);
    for point in 0..16 {
        assert_eq!(left.contains(&[point]), paper.contains(&[point]));
        assert_eq!(left.contains(&[point]), ![5, 6].contains(&point));
    }
    assert!(left.covers(&paper, TERM_LIMIT).unwrap() && paper.covers(&left, TERM_LIMIT).unwrap());
}

#[test]
fn limits_are_met_with_an_error() {
    let a = pattern("0101");
    let four = a.complement().collect::<Space<1>>();
    assert_eq!(four.terms().len(), 4);
    assert_eq!(Space::any().without(&a, 4), Ok(four.clone()));
    let error = Space::any().without(&a, 3).unwrap_err();
    assert_eq!(error, TooManyTerms { most: 3 });
    assert_eq!(
        error.to_string(),
        "a header space needs more than 3 terms, its limit"
    );
    assert!(four.union(&four, 7).is_err());
    assert!(four.intersection(&four, 3).is_err());
    assert_eq!(
        four.union(&four, 8)
            .unwrap()
            .without_covered()
            .terms()
            .len(),
        4
    );
}

#[test]
fn texts_are_short() {
    assert_eq!(Term::<2>::ANY.to_string(), "any");
    let two = Term::new([0x10, 0xff], [0xf0, 0x0f]);
    assert_eq!(two.to_string(), "0:0x10/0xf0,1:0xf/0xf");
    assert_eq!(Space::<2>::empty().to_string(), "none");
    let union = Space::from_iter([two, Term::ANY]);
    assert_eq!(union.to_string(), "0:0x10/0xf0,1:0xf/0xf ∪ any");
}
