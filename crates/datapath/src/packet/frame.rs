//! The bytes of a frame, with free space in front.

/// Free bytes in front of a frame after [`Frame::fill`].
pub const HEADROOM: usize = 64;

/// The bytes of a frame. Inserting or removing bytes moves only the bytes before them, so
/// changes near the beginning are fast. Refilling a frame allocates no memory unless the
/// new frame is longer than all previous frames.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    buffer: Vec<u8>,
    start: usize,
}

impl Frame {
    /// Returns a frame with a copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Frame {
        let mut frame = Frame::default();
        frame.fill(bytes);
        frame
    }

    /// Replaces the frame by a copy of `bytes`.
    pub fn fill(&mut self, bytes: &[u8]) {
        self.start = HEADROOM;
        self.buffer.resize(HEADROOM, 0);
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Returns the bytes, to be changed.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.start..).unwrap_or_default()
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// True if the frame has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Inserts bytes at position `at`.
    ///
    /// # Panics
    /// If the frame has fewer than `at` bytes.
    pub fn insert<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        assert!(at <= self.len(), "a place in the frame");
        if self.start < N {
            // The space in front is used up: add more.
            let added = HEADROOM + N;
            self.buffer.splice(0..0, std::iter::repeat_n(0, added));
            self.start += added;
        }
        let old = self.start;
        self.start -= N;
        self.buffer.copy_within(old..old + at, self.start);
        self.buffer[self.start + at..][..N].copy_from_slice(&bytes);
    }

    /// Removes `count` bytes at position `at`.
    ///
    /// # Panics
    /// If the frame has fewer than `at + count` bytes.
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
            let position = usize::from(turn) % (model.len() + 1);
            frame.insert(position, [turn, 200, turn]);
            model.splice(position..position, [turn, 200, turn]);
            assert_eq!(frame.bytes(), model);
            if turn % 3 == 0 {
                let position = usize::from(turn) * 7 % (model.len() - 2);
                frame.remove(position, 2);
                model.drain(position..position + 2);
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
