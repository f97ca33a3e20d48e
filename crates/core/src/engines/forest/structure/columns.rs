//! Inserts or removes one rule in the columns of a run.
//!
//! Most runs have a few rules. Calling `memmove` for each half of each column would
//! take longer than the rest of an update. So columns of up to four words are copied
//! by code that is specialised for their length.

use crate::engines::forest::rows::RunLayout;

/// Copies a run of `len` rules from `from` to `to` and inserts a row at `at`. The
/// first `heads` words of a rule are in columns, the others rule by rule. The two
/// positions are equal or the runs do not overlap.
#[inline]
pub(super) fn widen(
    words: &mut [u64],
    from: usize,
    to: usize,
    len: usize,
    at: usize,
    row: &[u64],
    heads: usize,
) {
    let (row, body) = row.split_at(heads);
    if !body.is_empty() {
        // If the run stays in place, rules only move up, so the last rules are
        // copied first.
        let each = body.len();
        let (old, new) = (from + heads * len, to + heads * (len + 1));
        let middle = old + at * each;
        words.copy_within(middle..old + len * each, new + (at + 1) * each);
        words[new + at * each..][..each].copy_from_slice(body);
        words.copy_within(old..middle, new);
    }
    widen_columns(words, from, to, len, at, row);
}

fn widen_columns(words: &mut [u64], from: usize, to: usize, len: usize, at: usize, row: &[u64]) {
    match len {
        1 => widen_short::<1, 2>(words, from, to, at, row),
        2 => widen_short::<2, 3>(words, from, to, at, row),
        3 => widen_short::<3, 4>(words, from, to, at, row),
        _ => {
            // If the run stays in place, columns only move up, so the last column is
            // copied first.
            for (column, &word) in row.iter().enumerate().rev() {
                let (from, to) = (from + column * len, to + column * (len + 1));
                words.copy_within(from + at..from + len, to + at + 1);
                words[to + at] = word;
                words.copy_within(from..from + at, to);
            }
        }
    }
}

/// Copies a run of `len` rules from `from` to `to` without the rule at `at`. The two
/// positions are equal or the runs do not overlap.
#[inline]
pub(super) fn narrow(
    words: &mut [u64],
    from: usize,
    to: usize,
    layout: RunLayout,
    len: usize,
    at: usize,
) {
    let RunLayout { columns, heads } = layout;
    narrow_columns(words, from, to, heads, len, at);
    let each = columns - heads;
    if each > 0 {
        // Rules only move down, so the first rules are copied first.
        let (old, new) = (from + heads * len, to + heads * (len - 1));
        let middle = old + at * each;
        words.copy_within(old..middle, new);
        words.copy_within(middle + each..old + len * each, new + at * each);
    }
}

fn narrow_columns(
    words: &mut [u64],
    from: usize,
    to: usize,
    columns: usize,
    len: usize,
    at: usize,
) {
    match len {
        2 => narrow_short::<2, 1>(words, from, to, columns, at),
        3 => narrow_short::<3, 2>(words, from, to, columns, at),
        4 => narrow_short::<4, 3>(words, from, to, columns, at),
        _ => {
            // Columns only move down, so the first column is copied first.
            for column in 0..columns {
                let (from, to) = (from + column * len, to + column * (len - 1));
                words.copy_within(from..from + at, to);
                words.copy_within(from + at + 1..from + len, to + at);
            }
        }
    }
}

/// Returns a column, so that it is read before anything is written.
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
    from: usize,
    to: usize,
    columns: usize,
    at: usize,
) {
    for column in 0..columns {
        let old: [u64; N] = read(words, from + column * N);
        let new: [u64; M] = std::array::from_fn(|n| if n < at { old[n] } else { old[n + 1] });
        words[to + column * M..][..M].copy_from_slice(&new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a run of `len` rules.
    fn rows(columns: usize, len: usize) -> Vec<Vec<u64>> {
        let row = |rule: usize| {
            (0..columns)
                .map(|column| (100 * column + rule) as u64)
                .collect()
        };
        (0..len).map(row).collect()
    }

    /// The words of a run.
    fn run(rows: &[Vec<u64>], heads: usize) -> Vec<u64> {
        let head = |column: usize| rows.iter().map(move |row| row[column]);
        let bodies = rows.iter().flat_map(|row| row[heads..].iter().copied());
        (0..heads).flat_map(head).chain(bodies).collect()
    }

    #[test]
    fn a_rule_comes_and_goes_at_every_place_of_every_length() {
        for (columns, heads) in (1..8)
            .map(|heads| (heads, heads))
            .chain([(8, 3), (4, 3), (17, 3)])
        {
            for len in 1..12 {
                for at in 0..=len {
                    let row: Vec<u64> = (0..columns).map(|column| 7000 + column as u64).collect();
                    let mut expected = rows(columns, len);
                    let held = run(&expected, heads);
                    expected.insert(at, row.clone());
                    let expected = run(&expected, heads);
                    // To a higher position, to a lower position, and in place.
                    let distance = held.len() + columns;
                    for (from, to) in [(0, distance), (distance, 0), (0, 0)] {
                        let mut words = vec![0; from.max(to) + expected.len()];
                        words[from..from + held.len()].copy_from_slice(&held);
                        widen(&mut words, from, to, len, at, &row, heads);
                        assert_eq!(
                            words[to..to + expected.len()],
                            expected,
                            "{len} {at} {from} {to}"
                        );
                        let layout = RunLayout { columns, heads };
                        for back in [to, from] {
                            let mut words = words.clone();
                            narrow(&mut words, to, back, layout, len + 1, at);
                            assert_eq!(
                                words[back..back + held.len()],
                                held,
                                "{len} {at} {from} {to} {back}"
                            );
                        }
                    }
                }
            }
        }
    }
}
