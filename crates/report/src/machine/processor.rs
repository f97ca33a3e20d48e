//! The name of this machine's processor.

use std::fs;

/// Returns the processor's name, or its architecture if the system reports no name.
pub fn processor() -> String {
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named(&information).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the processor's name from Linux's `/proc/cpuinfo`: x86 has a name, ARM
/// has numbers for its manufacturer and its part.
fn named(information: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = information.lines().filter_map(|line| line.split_once(':'));
        let line = lines.find(|(name, _)| name.trim() == key);
        line.map(|(_, value)| value.trim().to_owned())
    };
    let numbers = || {
        let (maker, part) = (value("CPU implementer")?, value("CPU part")?);
        let architecture = std::env::consts::ARCH;
        Some(format!("{architecture} implementer {maker} part {part}"))
    };
    let name = value("model name").filter(|name| !name.is_empty());
    name.or_else(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_names_or_numbers() {
        let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9R14\n";
        assert_eq!(named(x86).as_deref(), Some("AMD EPYC 9R14"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert!(named(arm).unwrap().ends_with("implementer 0x41 part 0xd40"));
        assert_eq!(named(""), None);
        assert!(!processor().is_empty());
    }
}
