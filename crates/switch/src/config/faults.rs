//! Mistakes in a configuration file, with their positions.

use std::ops::Range;

use classyard_text::line::lines;
use classyard_text::{Problem, Problems};

/// A mistake, without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The text found, or a description of the mistake.
    pub(super) found: String,
    /// The expected text, or a remedy.
    pub(super) expected: String,
    /// True if this version does not support the text, although it is well formed.
    pub(super) is_unsupported: bool,
}

impl Mistake {
    /// Returns a mistake.
    pub(super) fn new(found: impl Into<String>, expected: impl Into<String>) -> Mistake {
        Mistake {
            found: found.into(),
            expected: expected.into(),
            is_unsupported: false,
        }
    }

    /// Returns a mistake for text that this version does not support.
    pub(super) fn unsupported(found: impl Into<String>, expected: impl Into<String>) -> Mistake {
        Mistake {
            is_unsupported: true,
            ..Mistake::new(found, expected)
        }
    }
}

/// The mistakes of one text, with their byte ranges.
pub(super) struct Faults<'t> {
    text: &'t str,
    mistakes: Vec<(Range<usize>, Mistake)>,
}

impl<'t> Faults<'t> {
    /// Returns an empty list for a text.
    pub(super) fn new(text: &'t str) -> Faults<'t> {
        Faults {
            text,
            mistakes: Vec::new(),
        }
    }

    /// Adds a mistake at a range of bytes.
    pub(super) fn push(&mut self, span: Range<usize>, mistake: Mistake) {
        self.mistakes.push((span, mistake));
    }

    /// True without mistakes.
    pub(super) fn is_empty(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Returns the number of the line of a byte, counted from 1.
    pub(super) fn line_number(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Returns the mistakes as problems of the file `source`, in the order of the file.
    pub(super) fn locate(mut self, source: &str) -> Problems {
        self.mistakes.sort_by_key(|(span, _)| span.start);
        let text = self.text;
        let mut problems = Problems::new(source);
        let offset = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
        let mut lines = lines(text).peekable();
        let mut current = (1, text);
        for (span, mistake) in self.mistakes {
            while let Some(next) = lines.next_if(|(_, line)| offset(line) <= span.start) {
                current = next;
            }
            let (number, line) = current;
            let line_start = offset(line);
            let part_start = span.start.saturating_sub(line_start).min(line.len());
            let part_end = span.end.saturating_sub(line_start);
            let part_end = part_end.clamp(part_start, line.len());
            let part = line.get(part_start..part_end);
            let part = part.unwrap_or(&line[line.len()..]);
            let reason = mistake.is_unsupported.then(|| mistake.found.clone());
            let problem = Problem::at(number, line, part, mistake.found, mistake.expected);
            problems.push(Problem { reason, ..problem });
        }
        problems
    }
}
