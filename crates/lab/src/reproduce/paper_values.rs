//! The values of papers that pictures show behind ours, each with its place in the paper.

use std::fmt::Display;

use classyard_report::chart::{Mark, Published, Series};
use classyard_report::output::csv::{Writer, optional};

/// The heading of the file of all values.
pub(super) const HEADING: &str = "picture,line,x,value,source";

/// A line of a paper.
#[derive(Clone, Debug)]
struct Line {
    /// The name in the legend; empty for `paper`.
    name: String,
    /// The subject of our line of the same colour.
    of: String,
    kind: Published,
    /// The shape of the outline around a value of a curve.
    mark: Mark,
    values: Vec<(f64, f64)>,
}

/// The values of a paper that one picture shows.
#[derive(Clone, Debug)]
pub(super) struct PaperValues {
    /// The place in the paper, and how the paper gives the values.
    source: &'static str,
    /// The year and the machine of the measurement, if the values depend on them.
    machine: Option<&'static str>,
    lines: Vec<Line>,
}

impl PaperValues {
    /// Creates an empty table. `source` is the place in the paper, and says if the values
    /// are stated, bounds, or computed from stated values.
    pub(super) fn new(source: &'static str) -> PaperValues {
        PaperValues {
            source,
            machine: None,
            lines: Vec::new(),
        }
    }

    /// Sets the year and the machine of values that depend on them, such as `in 2017 on NAME`.
    pub(super) fn on(self, machine: &'static str) -> PaperValues {
        PaperValues {
            machine: Some(machine),
            ..self
        }
    }

    /// Adds a curve in the colour of `of`.
    pub(super) fn curve(
        self,
        name: &str,
        of: &str,
        values: impl IntoIterator<Item = (f64, f64)>,
    ) -> PaperValues {
        self.line(name, of, Published::Curve, values)
    }

    /// Sets the outline around the values of the curve that was added last: the mark of our
    /// curve, if several curves of a colour differ in their marks.
    pub(super) fn marked(mut self, mark: Mark) -> PaperValues {
        if let Some(line) = self.lines.last_mut() {
            line.mark = mark;
        }
        self
    }

    /// Adds a value that is the same for all x.
    pub(super) fn level(self, name: &str, of: &str, value: f64) -> PaperValues {
        self.line(name, of, Published::Level, [(0.0, value)])
    }

    /// Adds places on the horizontal axis.
    pub(super) fn positions(
        self,
        name: &str,
        of: &str,
        places: impl IntoIterator<Item = f64>,
    ) -> PaperValues {
        let places = places.into_iter().map(|x| (x, 0.0));
        self.line(name, of, Published::Position, places)
    }

    /// Adds bars to groups, next to our series `of`. A value's x is the index of its group.
    pub(super) fn bars(
        self,
        of: &str,
        values: impl IntoIterator<Item = (f64, f64)>,
    ) -> PaperValues {
        self.line("", of, Published::Bar, values)
    }

    fn line(
        mut self,
        name: &str,
        of: &str,
        kind: Published,
        values: impl IntoIterator<Item = (f64, f64)>,
    ) -> PaperValues {
        self.lines.push(Line {
            name: name.to_owned(),
            of: of.to_owned(),
            kind,
            mark: Mark::Circle,
            values: values.into_iter().collect(),
        });
        self
    }

    /// Returns true if there are no lines.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the lines of the picture.
    pub(super) fn series(&self) -> impl Iterator<Item = Series> {
        self.lines.iter().map(|line| {
            let name = match line.name.as_str() {
                "" => "paper".to_owned(),
                name => format!("paper: {name}"),
            };
            let values = line.values.iter().copied();
            Series::published(&name, &line.of, (line.kind, line.mark), values)
        })
    }

    /// Returns the text below the picture.
    pub(super) fn caption(&self) -> String {
        let is_bar = |line: &Line| line.kind == Published::Bar;
        let drawn = match self.lines.iter().all(is_bar) {
            true => "Grey bars",
            false => "Dashed lines and rings",
        };
        let mut caption = format!("{drawn} are the paper's values: {}.", self.source);
        if let Some(machine) = self.machine {
            caption.push_str(&format!(
                " The paper measured {machine}: compare shapes and ratios."
            ));
        }
        caption
    }

    /// Returns the rows of the file of all values.
    pub(super) fn rows(&self, picture: &str) -> Vec<String> {
        let mut rows = Vec::new();
        for line in &self.lines {
            let name = match line.name.as_str() {
                "" => &line.of,
                name => name,
            };
            for &(x, y) in &line.values {
                let x = Some(x).filter(|_| line.kind != Published::Level);
                let y = Some(y).filter(|_| line.kind != Published::Position);
                let (x, y) = (optional(x.as_ref()), optional(y.as_ref()));
                let cells: [&dyn Display; 5] = [&picture, &name, &x, &y, &self.source];
                let mut text = Vec::new();
                let written = Writer::new(&mut text).row(&cells);
                written.expect("memory takes every write");
                rows.push(String::from_utf8_lossy(&text).trim_end().to_owned());
            }
        }
        rows
    }
}

#[cfg(test)]
impl PaperValues {
    /// Checks that the lines have these numbers of values, which are positive numbers, and
    /// that no two lines have the same name.
    pub(super) fn check(&self, counts: &[usize]) {
        let (source, lines) = (self.source, &self.lines);
        let found: Vec<usize> = lines.iter().map(|line| line.values.len()).collect();
        assert_eq!(found, counts, "{source}");
        assert!(source.contains('§') || source.contains("Table"), "{source}");
        for (index, line) in lines.iter().enumerate() {
            let is_x = !matches!(line.kind, Published::Level | Published::Bar);
            let is_y = line.kind != Published::Position;
            for (x, y) in &line.values {
                assert!(!is_x || (x.is_finite() && *x >= 0.0), "{source}: x {x}");
                assert!(!is_y || (y.is_finite() && *y > 0.0), "{source}: y {y}");
            }
            let ascends = line.values.is_sorted_by(|a, b| a.0 < b.0);
            assert!(ascends || line.kind == Published::Bar, "{source}: {line:?}");
            let is_same = |other: &Line| match line.kind {
                Published::Bar => other.of == line.of,
                _ => other.name == line.name,
            };
            assert!(!lines[..index].iter().any(is_same), "{source}: {line:?}");
        }
        assert_eq!(self.rows("p.svg").len(), counts.iter().sum::<usize>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_values_that_a_line_has() {
        let values = PaperValues::new("stated in §1, Table 2")
            .on("in 2017 on a machine")
            .curve("", "tss", [(1e3, 2.5), (2e3, 3.0)])
            .level("mean", "forest", 0.5)
            .positions("range", "range", [2.0, 20.0]);
        values.check(&[2, 1, 2]);
        let rows = values.rows("a.svg");
        assert_eq!(
            rows,
            [
                "a.svg,tss,1000,2.5,\"stated in §1, Table 2\"",
                "a.svg,tss,2000,3,\"stated in §1, Table 2\"",
                "a.svg,mean,,0.5,\"stated in §1, Table 2\"",
                "a.svg,range,2,,\"stated in §1, Table 2\"",
                "a.svg,range,20,,\"stated in §1, Table 2\"",
            ]
        );
        let names: Vec<String> = values.series().map(|one| one.name).collect();
        assert_eq!(names, ["paper", "paper: mean", "paper: range"]);
        assert_eq!(
            values.caption(),
            "Dashed lines and rings are the paper's values: stated in §1, Table 2. The paper \
             measured in 2017 on a machine: compare shapes and ratios."
        );
    }

    #[test]
    fn bars_share_a_name() {
        let values = PaperValues::new("stated in Table 1");
        let values = values
            .bars("a", [(0.0, 1.0)])
            .bars("b", [(0.0, 2.0), (1.0, 3.0)]);
        values.check(&[1, 2]);
        assert!(values.series().all(|one| one.name == "paper"));
        let rows = values.rows("b.svg");
        assert_eq!(rows[2], "b.svg,b,1,3,stated in Table 1");
        assert!(values.caption().starts_with("Grey bars are"));
    }
}
