//! Whether a cache pays for itself.
//!
//! A cache costs every packet that is looked up in it, and saves something for those that
//! it knows. Where it costs more than it saves, packets pass it by; now and then it is
//! tried again, after more and more time. Nothing here reads a clock: costs are those of
//! the cache's work, weighed by what it takes on a common processor.

/// Vectors over which a cache is judged.
const WINDOW: u32 = 64;

/// Vectors of a trial before it counts: what was not known is learned meanwhile.
const WARM_UP: u32 = 64;

/// Vectors that pass a cache by before it is tried again: at first, and at most.
const REST: (u32, u32) = (256, 16_384);

/// Decides whether vectors are looked up in a cache.
#[derive(Clone, Debug)]
pub(super) struct Governor {
    state: State,
    /// Vectors that pass by next time.
    rest: u32,
    cost: f64,
    saved: f64,
    /// Never passed by.
    always: bool,
    by_passed: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Looked up; so many vectors until it is judged.
    On { left: u32, counts_from: u32 },
    /// Passed by; so many vectors until it is tried.
    Off { left: u32 },
}

impl Governor {
    pub(super) fn new(always: bool) -> Governor {
        Governor {
            state: Governor::trial(),
            rest: REST.0,
            cost: 0.0,
            saved: 0.0,
            always,
            by_passed: 0,
        }
    }

    fn trial() -> State {
        State::On {
            left: WARM_UP + WINDOW,
            counts_from: WINDOW,
        }
    }

    /// Whether the next vector is looked up.
    pub(super) fn begin(&mut self) -> bool {
        match &mut self.state {
            State::On { .. } => true,
            State::Off { left: 0 } => {
                self.state = Governor::trial();
                true
            }
            State::Off { left } => {
                *left -= 1;
                self.by_passed += 1;
                false
            }
        }
    }

    /// What a vector's lookups cost, and what they saved, both in nanoseconds.
    pub(super) fn end(&mut self, cost: f64, saved: f64) {
        let State::On { left, counts_from } = &mut self.state else {
            return;
        };
        if *left <= *counts_from {
            self.cost += cost;
            self.saved += saved;
        }
        *left -= 1;
        if *left > 0 {
            return;
        }
        let pays = self.saved >= self.cost || self.always;
        (self.cost, self.saved) = (0.0, 0.0);
        if pays {
            self.rest = REST.0;
            self.state = State::On {
                left: WINDOW,
                counts_from: WINDOW,
            };
        } else {
            self.state = State::Off { left: self.rest };
            self.rest = (self.rest * 2).min(REST.1);
        }
    }

    /// Vectors that have passed by.
    pub(super) fn by_passed(&self) -> u64 {
        self.by_passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of some vectors are looked up, if each saves so much at a cost of 1.
    fn looked_up(governor: &mut Governor, vectors: u32, saved: f64) -> u32 {
        let mut count = 0;
        for _ in 0..vectors {
            if governor.begin() {
                count += 1;
                governor.end(1.0, saved);
            }
        }
        count
    }

    #[test]
    fn a_cache_that_does_not_pay_is_passed_by_and_tried_again() {
        let mut governor = Governor::new(false);
        assert_eq!(looked_up(&mut governor, 10_000, 2.0), 10_000);
        let tried = looked_up(&mut governor, 1_000_000, 0.5);
        assert!((128..20_000).contains(&tried), "{tried}");
        assert!(governor.by_passed() > 900_000);
        // It pays again: that is noticed within the longest rest.
        looked_up(&mut governor, 16_384 + 200, 2.0);
        assert_eq!(looked_up(&mut governor, 1000, 2.0), 1000);
    }

    #[test]
    fn a_cache_that_is_always_asked_is() {
        let mut governor = Governor::new(true);
        assert_eq!(looked_up(&mut governor, 10_000, 0.0), 10_000);
        assert_eq!(governor.by_passed(), 0);
    }
}
