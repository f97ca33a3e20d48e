//! The reader of configuration files.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::TableSettings;
use classyard_text::Problem;
use classyard_text::Problems;
use classyard_text::line::{counted, quoted};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::address::Address;
use super::error::ConfigError;
use super::faults::{Faults, Mistake};
use super::port::{self, DeviceParts, MAX_PORT_NUMBER, PortSettings};
use super::section::{At, Section, check_keys, found, number, text, whole};
use super::values::{datapath_id, duration, path, switch_name};
use super::{ControllerSettings, FailMode, MAX_WORKERS, Poll, SwitchSettings};
use crate::tls::{self, TlsSettings};

/// The largest number of bytes of a configuration file.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// The largest number of a CPU, one less than the CPUs that Linux lets a thread choose from.
const MAX_CPU: u64 = 1_023;

/// The largest number of packets in a second, or in a burst, to controllers.
const MAX_PACKET_INS: u64 = 10_000_000;

const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(100);
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(3_600);
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(3_600);

/// The tables of a file.
const TABLES: [&str; 5] = ["switch", "port", "controller", "listen", "tls"];

/// The keys of `[switch]`.
pub(super) const SWITCH_KEYS: [&str; 11] = [
    "name",
    "datapath-id",
    "workers",
    "cpus",
    "engine",
    "poll",
    "fail-mode",
    "flows",
    "run-dir",
    "max-packet-ins-per-second",
    "max-packet-in-burst",
];

/// The keys of `[[port]]`.
pub(super) const PORT_KEYS: [&str; 6] = ["number", "name", "type", "interface", "receive", "send"];

/// The keys of `[[controller]]`.
pub(super) const CONTROLLER_KEYS: [&str; 3] = ["address", "probe-interval", "max-backoff"];

/// The keys of `[listen]`.
pub(super) const LISTEN_KEYS: [&str; 1] = ["openflow"];

/// The keys of `[tls]`.
pub(super) const TLS_KEYS: [&str; 3] = ["private-key", "certificate", "ca-certificate"];

/// Reads the text of a file.
pub(super) fn text_of(path: &Path) -> Result<String, ConfigError> {
    let io_error = |error| ConfigError::Io {
        file: path.display().to_string(),
        error,
    };
    let file = File::open(path).map_err(io_error)?;
    let mut bytes = Vec::new();
    let limited = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    if limited.map_err(io_error)? as u64 > MAX_FILE_BYTES {
        return Err(too_long(path));
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid_bytes, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        let before = &bytes[..valid_bytes];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n');
        let good = String::from_utf8_lossy(&before[start.map_or(0, |at| at + 1)..]);
        let message = format!("the byte 0x{:02x}, which is not UTF-8", bytes[valid_bytes]);
        let mut problems = Problems::new(&path.display().to_string());
        problems.push(Problem::at(
            line,
            &good,
            "",
            message,
            "text in UTF-8".to_owned(),
        ));
        ConfigError::Bad(problems)
    })
}

fn too_long(path: &Path) -> ConfigError {
    ConfigError::TooLong {
        file: path.display().to_string(),
        max_bytes: MAX_FILE_BYTES,
    }
}

/// Parses the text of the file at `path`.
pub(super) fn parse(text: &str, path: &Path) -> Result<SwitchSettings, ConfigError> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(too_long(path));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut faults = Faults::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let message = error.message().replace('\n', "; ");
        let mistake = match message.split_once(", expected ") {
            Some((found, expected)) => Mistake::new(found, expected),
            None if message == "duplicate key" => Mistake::new(message, "each key once"),
            None => Mistake::new(message, "TOML"),
        };
        faults.push(error.span().unwrap_or(0..0), mistake);
    }
    if errors.is_empty() {
        let folder = path.parent().unwrap_or(Path::new(""));
        let settings = Reader {
            folder,
            has_tls: table.get_ref().contains_key("tls"),
            faults: &mut faults,
        }
        .file(table.get_ref());
        if faults.is_empty() {
            return Ok(settings);
        }
    }
    Err(ConfigError::Bad(faults.locate(&path.display().to_string())))
}

/// The values of one kind that must be distinct, each with the offset of the first.
struct Distinct<K>(HashMap<K, usize>);

impl<K: Eq + Hash> Distinct<K> {
    fn new() -> Distinct<K> {
        Distinct(HashMap::new())
    }

    /// Adds a value at `span`. Returns false and reports the value if it was added before.
    /// `name` describes it, and `expected` is the remedy.
    fn add(
        &mut self,
        value: K,
        span: Range<usize>,
        (name, expected): (&str, &str),
        faults: &mut Faults<'_>,
    ) -> bool {
        match self.0.get(&value) {
            Some(first_offset) => {
                let line = faults.line_number(*first_offset);
                let message = format!("{name} is used twice, first in line {line}");
                faults.push(span, Mistake::new(message, expected));
                false
            }
            None => {
                self.0.insert(value, span.start);
                true
            }
        }
    }
}

/// The values of ports that must be distinct.
struct SeenPorts {
    numbers: Distinct<u32>,
    names: Distinct<String>,
    interfaces: Distinct<String>,
    files: Distinct<PathBuf>,
}

/// Reads the tables of a file, and collects mistakes. After a mistake it continues with a
/// default, so that all mistakes are found.
struct Reader<'a, 't> {
    folder: &'a Path,
    /// True if the file has the table `[tls]`.
    has_tls: bool,
    faults: &'a mut Faults<'t>,
}

impl Reader<'_, '_> {
    fn file(&mut self, table: &DeTable<'_>) -> SwitchSettings {
        let mut settings = SwitchSettings::default();
        check_keys(table, "", &TABLES, self.faults);
        if let Some((table, place)) = self.single(table, "switch") {
            let section = Section::new(table, place, "[switch]", &SWITCH_KEYS, self.faults);
            self.switch(&section, &mut settings);
        }
        settings.ports = self.ports(table);
        settings.controllers = self.controllers(table);
        if let Some((table, place)) = self.single(table, "listen") {
            let section = Section::new(table, place, "[listen]", &LISTEN_KEYS, self.faults);
            settings.listeners = self.listeners(&section);
        }
        if let Some((table, place)) = self.single(table, "tls") {
            let section = Section::new(table, place, "[tls]", &TLS_KEYS, self.faults);
            settings.tls = self.tls(&section);
        }
        settings
    }

    /// Returns the table `[name]`, if there is one.
    fn single<'v>(
        &mut self,
        table: &'v DeTable<'v>,
        name: &str,
    ) -> Option<(&'v DeTable<'v>, Range<usize>)> {
        let value = table.get(name)?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            let mistake = Mistake::new(found(value), format!("one table `[{name}]`"));
            self.faults.push(value.span(), mistake);
        }
        Some((table?, value.span()))
    }

    /// Returns the tables `[[name]]`.
    fn several<'v>(
        &mut self,
        table: &'v DeTable<'v>,
        name: &str,
    ) -> Vec<(&'v DeTable<'v>, Range<usize>)> {
        let Some(value) = table.get(name) else {
            return Vec::new();
        };
        let expected = || format!("`[[{name}]]` with two brackets before each {name}");
        let Some(array) = value.get_ref().as_array() else {
            let mistake = Mistake::new(found(value), expected());
            self.faults.push(value.span(), mistake);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for entry in array {
            match entry.get_ref().as_table() {
                Some(table) => tables.push((table, entry.span())),
                None => {
                    let mistake = Mistake::new(found(entry), expected());
                    self.faults.push(entry.span(), mistake);
                }
            }
        }
        tables
    }

    fn switch(&mut self, section: &Section<'_>, settings: &mut SwitchSettings) {
        let (folder, faults) = (self.folder, &mut *self.faults);
        let set_path = |value: &Spanned<DeValue<'_>>| path(&text(value, "a path")?, folder);
        let name = section.read("name", faults, |value| {
            let name = text(value, "the name of the switch")?;
            switch_name(&name).map(|()| name)
        });
        set(&mut settings.name, name);
        let id = section.read("datapath-id", faults, datapath_id_of);
        settings.datapath_id = id.map(|id| id.value);
        let workers = section.read("workers", faults, |value| {
            number(value, "a number of workers", 1, MAX_WORKERS as u64)
        });
        let workers_are_known = workers.is_some() || !section.has("workers");
        set(&mut settings.workers, workers);
        let poll = section.read("poll", faults, |value| {
            word(value, &[Poll::Sleep, Poll::Always], Poll::word)
        });
        set(&mut settings.poll, poll);
        let engine = section.read("engine", faults, engine_of);
        set(&mut settings.engine, engine);
        let fail_mode = section.read("fail-mode", faults, fail_mode_of);
        set(&mut settings.fail_mode, fail_mode);
        let flows = section.read("flows", faults, set_path);
        settings.flows = flows.map(|flows| flows.value);
        let run_dir = section.read("run-dir", faults, set_path);
        set(&mut settings.run_dir, run_dir);
        for (key, noun, limit) in [
            (
                "max-packet-ins-per-second",
                "a number of packets in a second",
                &mut settings.max_packet_ins_per_second,
            ),
            (
                "max-packet-in-burst",
                "a number of packets in a burst",
                &mut settings.max_packet_in_burst,
            ),
        ] {
            let read = section.read(key, faults, |value| number(value, noun, 1, MAX_PACKET_INS));
            set(limit, read);
        }
        let workers = workers_are_known.then_some(settings.workers);
        settings.cpus = self.cpus(section, workers);
    }

    /// Reads the CPUs of workers. `workers` is `None` if their number is wrong.
    fn cpus(&mut self, section: &Section<'_>, workers: Option<usize>) -> Vec<usize> {
        let expected = "a list of the CPUs of the workers, such as [2, 3]";
        let list = section.list("cpus", expected, self.faults, |value| {
            number::<usize>(value, "the number of a CPU", 0, MAX_CPU)
        });
        let Some(At { value: cpus, span }) = list else {
            return Vec::new();
        };
        let mut distinct = Distinct::new();
        for cpu in &cpus {
            let noun = format!("CPU {}", cpu.value);
            distinct.add(
                cpu.value,
                cpu.span.clone(),
                (&noun, "another CPU"),
                self.faults,
            );
        }
        let cpu_count = section.list_length("cpus");
        if let Some(workers) = workers
            && cpu_count > 0
            && cpu_count != workers
        {
            let (cpus, all) = (cpu_text(cpu_count), counted(workers, "worker"));
            let expected = format!("`workers = {cpu_count}`, or {}", cpu_text(workers));
            let mistake = Mistake::new(format!("{cpus} for {all}"), expected);
            self.faults.push(span, mistake);
        }
        cpus.into_iter().map(|cpu| cpu.value).collect()
    }

    fn ports(&mut self, table: &DeTable<'_>) -> Vec<PortSettings> {
        let mut seen = SeenPorts {
            numbers: Distinct::new(),
            names: Distinct::new(),
            interfaces: Distinct::new(),
            files: Distinct::new(),
        };
        let tables = self.several(table, "port").into_iter();
        let ports = tables.filter_map(|(table, place)| {
            let section = Section::new(table, place, "[[port]]", &PORT_KEYS, self.faults);
            self.port(&section, &mut seen)
        });
        ports.collect()
    }

    fn port(&mut self, section: &Section<'_>, seen: &mut SeenPorts) -> Option<PortSettings> {
        let port_number = section.required("number", "number = 1", self.faults, |value| {
            number::<u32>(value, "the number of a port", 1, u64::from(MAX_PORT_NUMBER))
        });
        let name = section.required("name", "name = \"eth0\"", self.faults, |value| {
            let name = text(value, "the name of the port")?;
            port::check_name(&name).map(|()| name)
        });
        if let Some(At { value, span }) = &port_number {
            let texts = (&*format!("port number {value}"), "another number");
            seen.numbers.add(*value, span.clone(), texts, self.faults);
        }
        let new_name = name.as_ref().filter(|At { value, span }| {
            let texts = (&*format!("the port name {}", quoted(value)), "another name");
            seen.names
                .add(value.clone(), span.clone(), texts, self.faults)
        });
        let device = self.device(section, name.as_ref())?;
        // If the name is used twice, that is the only report.
        let interface_span = section.span("interface");
        let interface_span = interface_span.or(new_name.map(|name| name.span.clone()));
        if let Some(interface) = device.interface()
            && let Some(span) = interface_span
        {
            let noun = format!("the interface {}", quoted(interface));
            let texts = (&*noun, "another interface");
            seen.interfaces
                .add(interface.to_owned(), span, texts, self.faults);
        }
        if let Some(file) = device.send_file()
            && let Some(span) = section.span("send")
        {
            let noun = format!("the file {}", quoted(&file.display().to_string()));
            seen.files
                .add(file.to_owned(), span, (&*noun, "another file"), self.faults);
        }
        Some(PortSettings {
            number: port_number?.value,
            name: name?.value,
            device,
        })
    }

    /// Reads the device of a port with this name. `name` is `None` if it is wrong.
    fn device(
        &mut self,
        section: &Section<'_>,
        name: Option<&At<String>>,
    ) -> Option<port::DeviceSettings> {
        let (folder, faults) = (self.folder, &mut *self.faults);
        let file = |value: &Spanned<DeValue<'_>>| path(&text(value, "a path")?, folder);
        let kind = section.read("type", faults, |value| {
            text(value, &format!("one of `{}`", port::TYPES.join("`, `")))
        });
        let interface = section.read("interface", faults, |value| {
            text(value, "the name of a network interface")
        });
        let receive = section.read("receive", faults, file);
        let send = section.read("send", faults, file);
        let keys = ["type", "interface", "receive", "send"];
        let read_count = [kind.is_some(), interface.is_some()].into_iter();
        let read_count = read_count.chain([receive.is_some(), send.is_some()]);
        let read_count = read_count.filter(|is_read| *is_read).count();
        if read_count < keys.iter().filter(|key| section.has(key)).count() {
            return None;
        }
        let parts = DeviceParts {
            interface: value_of(interface),
            receive: value_of(receive),
            send: value_of(send),
        };
        let kind = value_of(kind).unwrap_or_else(|| port::TYPES[0].to_owned());
        // Any valid name avoids errors that follow from a wrong one.
        let name = name.map_or("name", |name| &name.value);
        match port::device(&kind, name, parts) {
            Ok(device) => Some(device),
            Err((key, mistake)) => {
                let span = section.span(key).unwrap_or(section.place.clone());
                self.faults.push(span, mistake);
                None
            }
        }
    }

    fn controllers(&mut self, table: &DeTable<'_>) -> Vec<ControllerSettings> {
        let mut distinct = Distinct::new();
        let mut controllers = Vec::new();
        for (table, place) in self.several(table, "controller") {
            let (folder, faults) = (self.folder, &mut *self.faults);
            let name = "[[controller]]";
            let section = Section::new(table, place, name, &CONTROLLER_KEYS, faults);
            let example = "address = \"tcp:192.0.2.1:6653\"";
            let address = section.required("address", example, faults, |value| {
                Address::of_controller(&text(value, "an address")?, folder)
            });
            let probe_interval = section.read("probe-interval", faults, |value| {
                let text = text(value, "a duration such as 5s")?;
                duration(&text, MIN_PROBE_INTERVAL, MAX_PROBE_INTERVAL)
            });
            let max_backoff = section.read("max-backoff", faults, |value| {
                let text = text(value, "a duration such as 8s")?;
                duration(&text, MIN_BACKOFF, MAX_BACKOFF)
            });
            let Some(address) = address else {
                continue;
            };
            self.check_tls(&address);
            let (At { value, span }, faults) = (address, &mut *self.faults);
            let noun = format!("the controller {}", quoted(&value.to_string()));
            distinct.add(value.clone(), span, (&noun, "each address once"), faults);
            let mut controller = ControllerSettings::new(value);
            set(&mut controller.probe_interval, probe_interval);
            set(&mut controller.max_backoff, max_backoff);
            controllers.push(controller);
        }
        controllers
    }

    /// Reads the names of the PEM files. Nothing is opened.
    fn tls(&mut self, section: &Section<'_>) -> Option<TlsSettings> {
        if !tls::IS_SUPPORTED {
            let fault = "`[tls]` needs TLS, and this program was built without TLS";
            let remedy = "a build with the feature `tls`, which is on by default";
            let mistake = Mistake::unsupported(fault, remedy);
            self.faults.push(section.place.clone(), mistake);
        }
        let (folder, faults) = (self.folder, &mut *self.faults);
        let [private_key, certificate, ca_certificate] = TLS_KEYS.map(|key| {
            section.required(key, &format!("{key} = \"FILE.pem\""), faults, |value| {
                path(&text(value, "the path of a PEM file")?, folder)
            })
        });
        Some(TlsSettings {
            private_key: private_key?.value,
            certificate: certificate?.value,
            ca_certificate: ca_certificate?.value,
        })
    }

    /// Reports an address of TLS in a file without the table `[tls]`.
    fn check_tls(&mut self, address: &At<Address>) {
        if matches!(address.value, Address::Ssl { .. }) && !self.has_tls {
            let fault = "`ssl:` needs a private key and certificates";
            let remedy = "a table `[tls]` with `private-key`, `certificate` and `ca-certificate`";
            let mistake = Mistake::new(fault, remedy);
            self.faults.push(address.span.clone(), mistake);
        }
    }

    fn listeners(&mut self, section: &Section<'_>) -> Vec<Address> {
        let (folder, faults) = (self.folder, &mut *self.faults);
        let expected = "a list of addresses, such as [\"tcp:127.0.0.1:6653\"]";
        let list = section.list("openflow", expected, faults, |value| {
            Address::of_listener(&text(value, "an address")?, folder)
        });
        let addresses = value_of(list).unwrap_or_default();
        let mut distinct = Distinct::new();
        for address in &addresses {
            self.check_tls(address);
            let noun = format!("the address {}", quoted(&address.value.to_string()));
            distinct.add(
                address.value.clone(),
                address.span.clone(),
                (&noun, "each address once"),
                self.faults,
            );
        }
        addresses.into_iter().map(|address| address.value).collect()
    }
}

/// Replaces a default by a value that was read.
fn set<T>(target: &mut T, read: Option<At<T>>) {
    if let Some(read) = read {
        *target = read.value;
    }
}

fn value_of<T>(read: Option<At<T>>) -> Option<T> {
    read.map(|read| read.value)
}

fn cpu_text(count: usize) -> String {
    counted(count, "CPU")
}

/// Reads a word from a list.
fn word<T: Copy>(
    value: &Spanned<DeValue<'_>>,
    choices: &[T],
    word_of: fn(T) -> &'static str,
) -> Result<T, Mistake> {
    let given = value.get_ref().as_str();
    let mut known = choices.iter().copied();
    known
        .find(|choice| Some(word_of(*choice)) == given)
        .ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|choice| word_of(*choice)).collect();
            Mistake::new(found(value), format!("`{}`", words.join("` or `")))
        })
}

fn datapath_id_of(value: &Spanned<DeValue<'_>>) -> Result<u64, Mistake> {
    let id = match value.get_ref().as_str() {
        Some(text) => datapath_id(text),
        None => whole(value),
    };
    id.filter(|id| *id != 0).ok_or_else(|| {
        let expected = "a datapath id except 0: a whole number, 16 hexadecimal digits in quotes, \
                        or \"00:00:00:00:00:00:00:01\"";
        Mistake::new(found(value), expected)
    })
}

fn fail_mode_of(value: &Spanned<DeValue<'_>>) -> Result<FailMode, Mistake> {
    if value.get_ref().as_str() == Some("standalone") {
        let message = "`standalone` is not supported yet";
        return Err(Mistake::unsupported(message, "`secure`"));
    }
    word(value, &[FailMode::Secure], FailMode::word)
}

fn engine_of(value: &Spanned<DeValue<'_>>) -> Result<EngineSpec, Mistake> {
    let text = text(value, "an engine")?;
    let expected = "an engine that takes updates, as `classyard engines` lists them";
    let spec =
        EngineSpec::parse(&text).map_err(|error| Mistake::new(error.to_string(), expected))?;
    match TableSettings::new(spec.clone()) {
        Ok(_) => Ok(spec),
        Err(error) => Err(Mistake::new(error.to_string(), expected)),
    }
}
