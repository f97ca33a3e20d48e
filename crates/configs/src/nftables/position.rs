//! Positions of parts of a file. JSON of a ruleset is one line of any length, so columns
//! are computed with an index.

use classyard_text::Fault;

use crate::builder::Builder;

/// The number of bytes between two entries of the index of characters.
const BLOCK_BYTES: usize = 1024;

/// A file with an index of its lines and characters.
#[derive(Debug)]
pub(super) struct Positions<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// The number of characters before each block.
    characters: Vec<usize>,
}

impl<'t> Positions<'t> {
    pub(super) fn new(text: &'t str) -> Positions<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(offset, _)| offset + 1));
        let mut count = 0;
        let blocks = text.as_bytes().chunks(BLOCK_BYTES).map(|block| {
            let before = count;
            count += characters(block);
            before
        });
        Positions {
            text,
            characters: blocks.collect(),
            line_starts: line_starts.collect(),
        }
    }

    /// Returns the number of the line that has the start of a part, the line, and the
    /// column of the part.
    pub(super) fn of(&self, part: &str) -> (usize, &'t str, usize) {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let offset = offset.min(self.text.len());
        let number = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[number - 1];
        let end = self
            .line_starts
            .get(number)
            .map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end).unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        let column = self.characters_before(offset) - self.characters_before(start) + 1;
        (number, line, column)
    }

    fn characters_before(&self, offset: usize) -> usize {
        let block = offset / BLOCK_BYTES;
        match self.characters.get(block) {
            Some(count) => count + characters(&self.text.as_bytes()[block * BLOCK_BYTES..offset]),
            None => match self.characters.last() {
                Some(count) => {
                    let start = (self.characters.len() - 1) * BLOCK_BYTES;
                    count + characters(&self.text.as_bytes()[start..offset])
                }
                None => 0,
            },
        }
    }

    /// Records a problem.
    pub(super) fn report(&self, builder: &mut Builder<'_>, fault: Fault<'_>) {
        let (number, line, _) = self.of(fault.part());
        builder.problem(fault, number, line);
    }
}

/// Returns the number of characters that start in some bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}
