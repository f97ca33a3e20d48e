//! Instruction sets that the processor has, and proof values for them.

use std::fmt;

#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::plain;
use super::vector::Kernel;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx2::Avx2, avx512, avx512::Avx512};

/// An instruction set that this processor has. It changes speed, never results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// 512-bit vectors with masks.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// 128-bit vectors.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    /// No vectors; works on every processor.
    Scalar,
}

impl Isa {
    /// The option values that select an instruction set; `auto` selects the best.
    pub(crate) const NAMES: [&'static str; 5] = ["auto", "avx512", "avx2", "neon", "scalar"];

    /// Returns the instruction sets of this processor, best first.
    pub(crate) fn available() -> impl Iterator<Item = Isa> {
        #[cfg(target_arch = "x86_64")]
        let vectors = {
            let avx512 = Avx512::find().map(Isa::Avx512);
            avx512.into_iter().chain(Avx2::find().map(Isa::Avx2))
        };
        #[cfg(target_arch = "aarch64")]
        let vectors = [Isa::Neon(Neon::ALWAYS)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let vectors = [];
        vectors.into_iter().chain([Isa::Scalar])
    }

    /// Runs a kernel with these instructions.
    #[inline(always)]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(proof) => avx512::run(proof, kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(proof) => avx2::run(proof, kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(proof) => kernel.run(proof),
            Isa::Scalar => plain::run(kernel),
        }
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
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => "neon",
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
