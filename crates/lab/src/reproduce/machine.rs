//! The machine that a reproduction ran on, beyond its processor's name.

use std::fs;

/// Returns names and values that the system reports: processors, caches, memory, system.
pub(super) fn facts() -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Ok(count) = std::thread::available_parallelism() {
        facts.push(("processors", count.to_string()));
    }
    let caches = caches();
    if !caches.is_empty() {
        facts.push(("caches", caches.join(", ")));
    }
    let information = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(memory) = memory(&information) {
        facts.push(("memory", memory));
    }
    let line = |path: &str| {
        fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let kernel = line("/proc/sys/kernel/osrelease");
    let system = match kernel {
        Some(kernel) => format!(
            "{} {kernel}, {}",
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        None => format!("{}, {}", std::env::consts::OS, std::env::consts::ARCH),
    };
    facts.push(("system", system));
    facts
}

/// Returns the data and unified caches of the first processor, from the nearest to the
/// farthest.
fn caches() -> Vec<String> {
    let cache = |index: usize| {
        let value = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            let text = fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned())
        };
        let kind = match value("type")?.as_str() {
            "Data" => "d",
            "Instruction" => return Some(None),
            _ => "",
        };
        Some(Some(format!(
            "L{}{kind} {}",
            value("level")?,
            value("size")?
        )))
    };
    (0..).map_while(cache).flatten().collect()
}

/// Returns the total memory that Linux reports, in GiB.
fn memory(information: &str) -> Option<String> {
    let line = information
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{} GiB", (kibibytes + (1 << 19)) >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_rounded_to_gibibytes() {
        let text = "MemTotal:       24675532 kB\nMemFree:        1 kB\n";
        assert_eq!(memory(text).as_deref(), Some("24 GiB"));
        assert_eq!(memory("MemFree: 1 kB"), None);
        assert_eq!(memory("MemTotal: many kB"), None);
    }

    #[test]
    fn the_system_is_always_named() {
        assert_eq!(facts().last().unwrap().0, "system");
    }
}
