//! Differences between two configurations of a running switch.

use super::{Address, ControllerSettings, PortSettings, SwitchSettings};

/// The differences between the settings of a running switch and new settings.
///
/// Changed ports are removed and added, in this order. So are changed controllers, which
/// therefore connect again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Ports to remove.
    pub removed_ports: Vec<PortSettings>,
    /// Ports to add.
    pub added_ports: Vec<PortSettings>,
    /// Controllers to disconnect.
    pub removed_controllers: Vec<ControllerSettings>,
    /// Controllers to connect to.
    pub added_controllers: Vec<ControllerSettings>,
    /// Listeners to close.
    pub removed_listeners: Vec<Address>,
    /// Listeners to open.
    pub added_listeners: Vec<Address>,
    /// The keys of `[switch]` with a new value, which takes effect when the switch is
    /// started again.
    pub restart_keys: Vec<&'static str>,
}

impl Reload {
    /// True if nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Reload::default()
    }
}

/// Returns the differences between two configurations.
pub(super) fn difference(old: &SwitchSettings, new: &SwitchSettings) -> Reload {
    let changes = [
        ("name", old.name != new.name),
        ("datapath-id", old.datapath_id != new.datapath_id),
        ("workers", old.workers != new.workers),
        ("cpus", old.cpus != new.cpus),
        ("engine", old.engine.to_string() != new.engine.to_string()),
        ("poll", old.poll != new.poll),
        ("fail-mode", old.fail_mode != new.fail_mode),
        ("flows", old.flows != new.flows),
        ("run-dir", old.run_dir != new.run_dir),
        (
            "max-packet-ins-per-second",
            old.max_packet_ins_per_second != new.max_packet_ins_per_second,
        ),
        (
            "max-packet-in-burst",
            old.max_packet_in_burst != new.max_packet_in_burst,
        ),
    ];
    let restart_keys = changes.into_iter().filter(|(_, differs)| *differs);
    Reload {
        removed_ports: only_in(&old.ports, &new.ports),
        added_ports: only_in(&new.ports, &old.ports),
        removed_controllers: only_in(&old.controllers, &new.controllers),
        added_controllers: only_in(&new.controllers, &old.controllers),
        removed_listeners: only_in(&old.listeners, &new.listeners),
        added_listeners: only_in(&new.listeners, &old.listeners),
        restart_keys: restart_keys.map(|(key, _)| key).collect(),
    }
}

/// Returns the items of a list that another list lacks.
fn only_in<T: Clone + PartialEq>(list: &[T], other: &[T]) -> Vec<T> {
    let missing = list.iter().filter(|item| !other.contains(item));
    missing.cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn settings(text: &str) -> SwitchSettings {
        SwitchSettings::parse(text, Path::new("/etc/br0.toml")).unwrap()
    }

    const OLD: &str = "\
[[port]]
number = 1
name = \"veth1\"
[[port]]
number = 2
name = \"veth2\"
[[controller]]
address = \"tcp:192.0.2.1:6653\"
[listen]
openflow = [\"tcp:127.0.0.1:6653\"]
";

    #[test]
    fn equal_settings_have_no_difference() {
        assert!(settings(OLD).difference(&settings(OLD)).is_empty());
        let defaults = SwitchSettings::default();
        assert!(defaults.difference(&settings("")).is_empty());
    }

    #[test]
    fn changed_ports_and_controllers_are_removed_and_added() {
        let new = OLD
            .replace("number = 2", "number = 3")
            .replace("6653\"\n[listen]", "6653\"\nmax-backoff = \"1s\"\n[listen]")
            .replace("127.0.0.1", "::1");
        let new = new.replace("tcp:::1:6653", "unix:br0.mgmt");
        let (old, new) = (settings(OLD), settings(&new));
        let reload = old.difference(&new);
        assert_eq!(reload.removed_ports, old.ports[1..]);
        assert_eq!(reload.added_ports, new.ports[1..]);
        assert_eq!(reload.removed_controllers, old.controllers);
        assert_eq!(reload.added_controllers, new.controllers);
        assert_eq!(reload.removed_listeners, old.listeners);
        assert_eq!(reload.added_listeners, new.listeners);
        assert_eq!(reload.restart_keys, [""; 0]);
    }

    /// Each key of `[switch]` with a value that is not the default.
    const CHANGED: [(&str, &str); 10] = [
        ("name", "\"br1\""),
        ("datapath-id", "1"),
        ("workers", "2"),
        ("cpus", "[1]"),
        ("engine", "\"tss\""),
        ("poll", "\"always\""),
        ("flows", "\"br0.flows\""),
        ("run-dir", "\"run\""),
        ("max-packet-ins-per-second", "5"),
        ("max-packet-in-burst", "5"),
    ];

    #[test]
    fn keys_of_the_switch_need_a_restart() {
        for (key, value) in CHANGED {
            let text = format!("[switch]\n{key} = {value}\n");
            let reload = settings("").difference(&settings(&text));
            assert_eq!(reload.restart_keys, [key]);
            assert!(!reload.is_empty());
        }
    }
}
