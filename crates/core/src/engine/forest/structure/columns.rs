//! The columns of a run, with one rule more or one rule less.
//!
//! Most runs have a few rules, and to call `memmove` for each half of each
//! column would take longer than all else that an update does. So columns of up
//! to four words are copied by code made for their length.

/// Copies the columns of `len` words that begin at `from` to `to`, each with a
/// word of `row` put in at `at`. The two places are the same or do not overlap.
#[inline]
pub(super) fn widen(words: &mut [u64], from: usize, to: usize, len: usize, at: usize, row: &[u64]) {
    match len {
        1 => widen_short::<1, 2>(words, from, to, at, row),
        2 => widen_short::<2, 3>(words, from, to, at, row),
        3 => widen_short::<3, 4>(words, from, to, at, row),
        _ => {
            // Where they stay, columns only move up, and the last goes first.
            for (column, &word) in row.iter().enumerate().rev() {
                let (from, to) = (from + column * len, to + column * (len + 1));
                words.copy_within(from + at..from + len, to + at + 1);
                words[to + at] = word;
                words.copy_within(from..from + at, to);
            }
        }
    }
}

/// Takes a word out of each column of `len` words that begin at `start`. What is
/// left moves together.
#[inline]
pub(super) fn narrow(words: &mut [u64], start: usize, columns: usize, len: usize, at: usize) {
    match len {
        2 => narrow_short::<2, 1>(words, start, columns, at),
        3 => narrow_short::<3, 2>(words, start, columns, at),
        4 => narrow_short::<4, 3>(words, start, columns, at),
        _ => {
            // Columns only move down, and the first goes first.
            for column in 0..columns {
                let (from, to) = (start + column * len, start + column * (len - 1));
                words.copy_within(from..from + at, to);
                words.copy_within(from + at + 1..from + len, to + at);
            }
        }
    }
}

/// A column, read before anything is written.
#[inline]
fn read<const N: usize>(words: &[u64], from: usize) -> [u64; N] {
    words[from..from + N].try_into().expect("N words")
}

#[inline]
fn widen_short<const N: usize, const M: usize>(
    words: &mut [u64],
    from: usize,
    to: usize,
    at: usize,
    row: &[u64],
) {
    for (column, &word) in row.iter().enumerate().rev() {
        let old: [u64; N] = read(words, from + column * N);
        let new: [u64; M] = std::array::from_fn(|n| match n {
            n if n < at => old[n.min(N - 1)],
            n if n == at => word,
            _ => old[n - 1],
        });
        words[to + column * M..][..M].copy_from_slice(&new);
    }
}

#[inline]
fn narrow_short<const N: usize, const M: usize>(
    words: &mut [u64],
    start: usize,
    columns: usize,
    at: usize,
) {
    for column in 0..columns {
        let old: [u64; N] = read(words, start + column * N);
        let new: [u64; M] = std::array::from_fn(|n| if n < at { old[n] } else { old[n + 1] });
        words[start + column * M..][..M].copy_from_slice(&new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Column by column, in vectors: the words of a run of that many rules.
    fn run(columns: usize, len: usize) -> Vec<Vec<u64>> {
        let column = |column: usize| (0..len).map(|rule| (100 * column + rule) as u64).collect();
        (0..columns).map(column).collect()
    }

    #[test]
    fn a_rule_comes_and_goes_at_every_place_of_every_length() {
        for columns in 1..8 {
            for len in 1..12 {
                for at in 0..=len {
                    let row: Vec<u64> = (0..columns).map(|column| 7000 + column as u64).collect();
                    let old = run(columns, len);
                    let mut new = old.clone();
                    for (column, &word) in new.iter_mut().zip(&row) {
                        column.insert(at, word);
                    }
                    let (held, wanted) = (old.concat(), new.concat());
                    // Behind it, in front of it, and where it is.
                    let far = held.len() + columns;
                    for (from, to) in [(0, far), (far, 0), (0, 0)] {
                        let mut words = vec![0; from.max(to) + wanted.len()];
                        words[from..from + held.len()].copy_from_slice(&held);
                        widen(&mut words, from, to, len, at, &row);
                        assert_eq!(
                            words[to..to + wanted.len()],
                            wanted,
                            "{len} {at} {from} {to}"
                        );
                        narrow(&mut words, to, columns, len + 1, at);
                        assert_eq!(words[to..to + held.len()], held, "{len} {at} {from} {to}");
                    }
                }
            }
        }
    }
}
