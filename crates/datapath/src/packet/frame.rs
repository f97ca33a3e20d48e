//! The bytes of a frame, with room in front.

/// Bytes that are free in front of a frame that has just come in.
pub const HEADROOM: usize = 64;

/// A frame. Bytes can be inserted and removed near its beginning by moving only what
/// is before them. Filled again and again it allocates nothing, once it has held the
/// longest frame.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    buffer: Vec<u8>,
    start: usize,
}

impl Frame {
    /// A copy of these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Frame {
        let mut frame = Frame::default();
        frame.fill(bytes);
        frame
    }

    /// Becomes a copy of these bytes.
    pub fn fill(&mut self, bytes: &[u8]) {
        self.start = HEADROOM;
        self.buffer.resize(HEADROOM, 0);
        self.buffer.extend_from_slice(bytes);
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// The bytes, to be changed.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.start..).unwrap_or_default()
    }

    /// The number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Inserts bytes.
    ///
    /// # Panics
    /// When the frame is not that long.
    pub fn insert<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        assert!(at <= self.len(), "a place in the frame");
        if self.start < N {
            // All the room was used: make some again, behind what was free.
            let more = HEADROOM + N;
            self.buffer.splice(0..0, std::iter::repeat_n(0, more));
            self.start += more;
        }
        let old = self.start;
        self.start -= N;
        self.buffer.copy_within(old..old + at, self.start);
        self.buffer[self.start + at..][..N].copy_from_slice(&bytes);
    }

    /// Removes bytes.
    ///
    /// # Panics
    /// When the frame is not that long.
    pub fn remove(&mut self, at: usize, count: usize) {
        assert!(at + count <= self.len(), "bytes of the frame");
        self.buffer
            .copy_within(self.start..self.start + at, self.start + count);
        self.start += count;
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Frame) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Frame {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_inserted_and_removed_anywhere_and_often() {
        let mut frame = Frame::new(&[0, 1, 2, 3, 4, 5, 6, 7]);
        let mut model = frame.bytes().to_vec();
        for turn in 0_u8..200 {
            let at = usize::from(turn) % (model.len() + 1);
            frame.insert(at, [turn, 200, turn]);
            model.splice(at..at, [turn, 200, turn]);
            assert_eq!(frame.bytes(), model);
            if turn % 3 == 0 {
                let at = usize::from(turn) * 7 % (model.len() - 2);
                frame.remove(at, 2);
                model.drain(at..at + 2);
                assert_eq!(frame.bytes(), model);
            }
        }
        frame.fill(&[9]);
        assert_eq!((frame.bytes(), frame.len()), (&[9][..], 1));
        assert!(Frame::default().is_empty());
    }

    #[test]
    fn a_frame_that_is_filled_again_keeps_its_memory() {
        let mut frame = Frame::new(&[0; 1500]);
        let before = frame.buffer.capacity();
        frame.insert(12, [1, 2, 3, 4]);
        frame.fill(&[0; 1500]);
        assert_eq!(frame.buffer.capacity(), before);
    }
}
