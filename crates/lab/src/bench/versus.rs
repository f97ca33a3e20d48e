//! Compares our engines with each peer's best.

use std::io::{self, Write};

use classyard_report::output::table::{Side, Table};

use super::measure::geometric_mean;
use super::row::{Failed, Measurement, Row};

/// Marks the fastest row of each peer on one rule set, over all its algorithms and
/// options. Rows with wrong answers do not count.
pub(super) fn mark_best(rows: &mut [Row]) {
    let peers = peers(rows.iter().filter_map(Row::measured));
    for peer in peers {
        let right = rows.iter_mut().filter_map(|row| match row {
            Row::Measured(row) if row.wrong == 0 => Some(row),
            _ => None,
        });
        let its = right.filter(|row| row.peer.as_ref().is_some_and(|one| one.name == peer));
        let best = its.max_by(|a, b| batch(a).total_cmp(&batch(b)));
        if let Some(origin) = best.and_then(|row| row.peer.as_mut()) {
            origin.best = true;
        }
    }
}

/// Writes, for each peer, the ratios of our engines to its best row on each rule
/// set, and their means over sets of a size.
pub(super) fn write(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let measured: Vec<&Measurement> = rows.iter().filter_map(Row::measured).collect();
    for peer in peers(measured.iter().copied()) {
        let pairs = pairs(&measured, &peer);
        writeln!(out)?;
        write_sets(&pairs, &peer, out)?;
        writeln!(out)?;
        write_means(&pairs, &peer, out)?;
        let failed: Vec<&str> = rows
            .iter()
            .filter_map(Row::failure)
            .filter(|failed| failed.peer == peer && lacks(&pairs, failed))
            .map(|failed| failed.set.as_str())
            .collect();
        if !failed.is_empty() {
            writeln!(out, "left out, because {peer} fails: {}", failed.join(", "))?;
        }
    }
    Ok(())
}

/// One of our engines and a peer's best row on the same rule set.
struct Pair<'a> {
    ours: &'a Measurement,
    best: &'a Measurement,
}

impl Pair<'_> {
    fn ratio(&self) -> f64 {
        batch(self.ours) / batch(self.best)
    }
}

fn pairs<'a>(measured: &[&'a Measurement], peer: &str) -> Vec<Pair<'a>> {
    let is_best = |row: &&&Measurement| {
        let origin = row.peer.as_ref();
        origin.is_some_and(|origin| origin.best && origin.name == peer)
    };
    let mut pairs = Vec::new();
    for &best in measured.iter().filter(is_best) {
        let ours = measured.iter().filter(|row| row.peer.is_none());
        let same_set = ours.filter(|row| row.set == best.set);
        pairs.extend(same_set.map(|&ours| Pair { ours, best }));
    }
    pairs
}

fn lacks(pairs: &[Pair<'_>], failed: &Failed) -> bool {
    pairs.iter().all(|pair| pair.best.set != failed.set)
}

fn write_sets(pairs: &[Pair<'_>], peer: &str, out: &mut dyn Write) -> io::Result<()> {
    let best = format!("best of {peer}");
    let mut columns = vec![
        ("set", Side::Left),
        (best.as_str(), Side::Left),
        ("M/s", Side::Right),
    ];
    let engines = first_seen(pairs.iter().map(|pair| pair.ours.engine.as_str()));
    columns.extend(engines.iter().map(|&engine| (engine, Side::Right)));
    let mut table = Table::new(&columns);
    for set in first_seen(pairs.iter().map(|pair| pair.ours.set.as_str())) {
        let set_pairs: Vec<_> = pairs.iter().filter(|pair| pair.ours.set == set).collect();
        let Some(Pair { best, .. }) = set_pairs.first() else {
            continue;
        };
        let rate = format!("{:.2}", batch(best) / 1e6);
        let mut cells = vec![set.to_owned(), best.engine.clone(), rate];
        for engine in &engines {
            let pair = set_pairs.iter().find(|pair| pair.ours.engine == *engine);
            cells.push(pair.map_or("-".to_owned(), |pair| format!("{:.2}x", pair.ratio())));
        }
        table.row(cells);
    }
    table.write(out)
}

fn write_means(pairs: &[Pair<'_>], peer: &str, out: &mut dyn Write) -> io::Result<()> {
    for engine in first_seen(pairs.iter().map(|pair| pair.ours.engine.as_str())) {
        for size in first_seen(pairs.iter().map(|pair| pair.ours.size.as_str())) {
            let mut ratios: Vec<(f64, &str)> = pairs
                .iter()
                .filter(|pair| pair.ours.engine == engine && pair.ours.size == size)
                .map(|pair| (pair.ratio(), pair.ours.set.as_str()))
                .collect();
            ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
            let values: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
            let (Some(mean), Some(least), Some(most)) =
                (geometric_mean(&values), ratios.first(), ratios.last())
            else {
                continue;
            };
            writeln!(
                out,
                "{engine} / best of {peer}, batches, {size}: geometric mean {mean:.2}x of {}, \
                 min {:.2}x ({}), max {:.2}x ({})",
                match values.len() {
                    1 => "1 set".to_owned(),
                    sets => format!("{sets} sets"),
                },
                least.0,
                least.1,
                most.0,
                most.1
            )?;
        }
    }
    Ok(())
}

fn batch(row: &Measurement) -> f64 {
    row.batch_headers_per_second.median
}

fn peers<'a>(rows: impl Iterator<Item = &'a Measurement>) -> Vec<String> {
    let names = rows.filter_map(|row| row.peer.as_ref());
    let names = first_seen(names.map(|origin| origin.name.as_str()));
    names.into_iter().map(str::to_owned).collect()
}

/// Returns each value once, in the order of first appearance.
fn first_seen<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
