//! Instruction sets that the processor has, and proof values for them.

use std::fmt;

/// Proof that the processor has AVX-512 (F, BW, DQ, VL), BMI1, BMI2 and POPCNT.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

/// Proof that the processor has AVX2, BMI1 and BMI2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    fn new() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx512(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    fn new() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        has.then_some(Avx2(()))
    }
}

/// Returns a mask of `there` lowest bits, at most eight.
///
/// Uses this instruction instead of a shift: compilers shift only the lower
/// part of a register, so the result depends on the register's previous
/// contents; in a loop, on the previous iteration.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi2")]
#[allow(clippy::cast_possible_truncation)] // at most eight
pub(crate) fn first_bits(count: usize) -> u8 {
    std::arch::x86_64::_bzhi_u32(0xff, count.min(8) as u32) as u8
}

/// Returns a mask of `there` lowest bits, at most 32.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi2")]
#[allow(clippy::cast_possible_truncation)] // at most 32
pub(crate) fn first_of_32(count: usize) -> u32 {
    std::arch::x86_64::_bzhi_u32(u32::MAX, count.min(32) as u32)
}

/// Returns a mask of `there` lowest bits; `there` must be at most four.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi2")]
#[allow(clippy::cast_possible_truncation)] // at most four
pub(crate) fn first_four(count: usize) -> u8 {
    std::arch::x86_64::_bzhi_u32(0xf, count as u32) as u8
}

/// An instruction set that this processor has. It changes speed, never results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// 512-bit vectors with masks.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// No vectors; works on every processor.
    Scalar,
}

impl Isa {
    /// The option values that select an instruction set; `auto` selects the best.
    pub(crate) const NAMES: [&'static str; 4] = ["auto", "avx512", "avx2", "scalar"];

    /// Returns the instruction sets of this processor, best first.
    pub(crate) fn available() -> impl Iterator<Item = Isa> {
        #[cfg(target_arch = "x86_64")]
        let vectors = {
            let avx512 = Avx512::new().map(Isa::Avx512);
            avx512.into_iter().chain(Avx2::new().map(Isa::Avx2))
        };
        #[cfg(not(target_arch = "x86_64"))]
        let vectors = std::iter::empty();
        vectors.chain([Isa::Scalar])
    }

    /// Returns the instruction set for a name in [`NAMES`](Self::NAMES), if
    /// this processor has it.
    pub(crate) fn named(name: &str) -> Option<Isa> {
        Isa::available().find(|isa| name == "auto" || isa.name() == name)
    }

    /// Returns the reason why this processor cannot run the named instructions,
    /// or `None` if it can.
    pub(crate) fn lacks(name: &str) -> Option<String> {
        if Isa::named(name).is_some() {
            return None;
        }
        let available: Vec<String> = Isa::available().map(|isa| isa.to_string()).collect();
        Some(format!("this processor has {}", available.join(", ")))
    }

    /// Returns the name among [`NAMES`](Self::NAMES).
    pub(crate) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => "avx2",
            Isa::Scalar => "scalar",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_what_there_is() {
        assert_eq!(Isa::named("auto"), Isa::available().next());
        assert_eq!(Isa::named("scalar"), Some(Isa::Scalar));
        assert_eq!(Isa::named("sse9"), None);
        for isa in Isa::available() {
            assert_eq!(Isa::named(&isa.to_string()), Some(isa));
            assert!(Isa::NAMES.contains(&isa.to_string().as_str()));
        }
    }
}
