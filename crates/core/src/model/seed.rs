//! Seeds of hash functions.
//!
//! An attacker who knows an engine's hash function, and who may add rules or send
//! headers, can choose rules or headers that all hash to one bucket. So hash functions
//! start from a random number, which is drawn once in each process and is not known
//! outside of it. All builds in a process use this number, such as the two sides of a
//! live table. An explicit seed makes builds the same in every process, for tests and to
//! reproduce results.
//!
//! The seed affects time and memory, but no answers.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};

/// The seed of an engine's hash functions: an explicit number, or the number
/// that this process drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(Option<u64>);

impl Seed {
    /// The random seed of this process.
    pub const PROCESS: Seed = Seed(None);

    /// Returns a seed for reproducible builds.
    #[must_use]
    pub const fn new(number: u64) -> Seed {
        Seed(Some(number))
    }

    /// Returns the explicit number; `None` for [`PROCESS`](Self::PROCESS).
    #[must_use]
    pub const fn explicit(self) -> Option<u64> {
        self.0
    }

    /// Returns the explicit number, or the number that this process drew. The
    /// drawn number must be kept secret from anyone who writes rules or sends
    /// headers.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.unwrap_or_else(drawn)
    }
}

impl fmt::Display for Seed {
    /// Writes `random`, or the explicit number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("random"),
        }
    }
}

/// Returns the random number of this process. The standard library takes the
/// keys of its hash maps from the operating system; a hash with such keys is
/// equally random.
fn drawn() -> u64 {
    static DRAWN: OnceLock<u64> = OnceLock::new();
    *DRAWN.get_or_init(|| RandomState::new().hash_one(0_u64))
}

/// The 64 bits after the point of the golden ratio, of which SplitMix64 and Fibonacci
/// hashing take multiples.
const GOLDEN_RATIO_BITS: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a hash whose high bits depend on all bits of `number` (Fibonacci hashing, Knuth,
/// "The Art of Computer Programming", §6.4). The hash of 0 is 0, and different numbers have
/// different hashes. It does not protect against chosen numbers.
///
/// ```
/// use classyard::author::fibonacci_hash;
///
/// assert_eq!(fibonacci_hash(0), 0);
/// assert_ne!(fibonacci_hash(1) >> 56, fibonacci_hash(2) >> 56);
/// ```
#[inline(always)]
#[must_use]
pub const fn fibonacci_hash(number: u64) -> u64 {
    number.wrapping_mul(GOLDEN_RATIO_BITS)
}

/// Returns the next number of a pseudorandom sequence: SplitMix64 (Steele et al., "Fast
/// splittable pseudorandom number generators", 2014). Any number may be the first state.
///
/// ```
/// use classyard::author::splitmix;
///
/// let mut state = 1;
/// let numbers = [splitmix(&mut state), splitmix(&mut state)];
/// assert_eq!(numbers[0], 0x910a_2dec_8902_5cc1);
/// assert_ne!(numbers[0], numbers[1]);
/// ```
#[inline]
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN_RATIO_BITS);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hash state of maps whose iteration order has no effect, such as maps of rule
/// ids. The hashes cannot be predicted outside of this process.
#[derive(Clone, Debug)]
pub(crate) struct MapState(SeedableRandomState);

impl Default for MapState {
    fn default() -> MapState {
        static SHARED: OnceLock<(u64, SharedSeed)> = OnceLock::new();
        let (first, shared) = SHARED.get_or_init(|| {
            // Differs from the seed of the engines' hash functions.
            let mut state = !drawn();
            (
                splitmix(&mut state),
                SharedSeed::from_u64(splitmix(&mut state)),
            )
        });
        MapState(SeedableRandomState::with_seed(*first, shared))
    }
}

impl BuildHasher for MapState {
    type Hasher = FoldHasher<'static>;

    #[inline]
    fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_draws_one_seed() {
        assert_eq!(Seed::PROCESS.number(), Seed::PROCESS.number());
        assert_eq!(Seed::PROCESS.explicit(), None);
        assert_eq!(Seed::PROCESS.to_string(), "random");
        let given = Seed::new(7);
        assert_eq!((given.number(), given.explicit()), (7, Some(7)));
        assert_eq!(given.to_string(), "7");
    }

    #[test]
    fn maps_of_one_process_hash_alike_and_not_as_fixed_ones_do() {
        let hash = |number: u32| MapState::default().hash_one(number);
        assert_eq!(hash(1), hash(1));
        let fixed = foldhash::fast::FixedState::default();
        // Four accidental collisions are less likely than a hardware fault.
        assert!((0..4_u32).any(|number| hash(number) != fixed.hash_one(number)));
    }

    /// Runs this test binary again, as separate processes.
    #[test]
    fn processes_draw_different_seeds() {
        let (_, module) = module_path!()
            .split_once("::")
            .expect("a module of the crate");
        let name = format!("{module}::processes_draw_different_seeds");
        if std::env::var_os("CLASSYARD_TELL_SEED").is_some() {
            #[allow(clippy::print_stdout)] // for the parent process
            {
                println!("seed={}", Seed::PROCESS.number());
            }
            return;
        }
        let child_seed = || {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args([&name, "--exact", "--nocapture"]);
            let output = child.env("CLASSYARD_TELL_SEED", "1").output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let (_, after) = text.split_once("seed=").expect("the child tells its seed");
            let digits = after.split(|c: char| !c.is_ascii_digit()).next();
            digits.unwrap().parse::<u64>().unwrap()
        };
        let (first, second) = (child_seed(), child_seed());
        assert_ne!(first, second);
        assert_ne!(first, Seed::PROCESS.number());
    }
}
