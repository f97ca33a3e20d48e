//! Configuration files, good and bad.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::read::{CONTROLLER_KEYS, LISTEN_KEYS, PORT_KEYS, SWITCH_KEYS, TLS_KEYS};
use super::*;

fn parse(text: &str) -> Result<SwitchSettings, String> {
    let settings = SwitchSettings::parse(text, Path::new("/etc/classyard/br0.toml"));
    settings.map_err(|error| error.to_string())
}

/// Fails the test unless the mistakes of a file are `expected`: in each line the position,
/// the text found, and the beginning of the expected text.
#[track_caller]
fn assert_mistakes(text: &str, expected: &[&str]) {
    let error = parse(text).unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{error}");
    for (line, expected) in lines.iter().zip(expected) {
        let line = line.strip_prefix("/etc/classyard/br0.toml:").unwrap();
        assert!(line.starts_with(expected), "{line}\nexpected {expected}");
    }
}

#[test]
fn an_empty_file_has_the_defaults() {
    for text in ["", "# nothing\n", "[switch]\n[listen]\nopenflow = []\n"] {
        let settings = parse(text).unwrap();
        assert_eq!(settings.name, "br0");
        assert_eq!((settings.workers, settings.cpus), (1, vec![]));
        assert_eq!(settings.datapath_id, None);
        assert_eq!(settings.engine.to_string(), "forest");
        assert_eq!(
            (settings.poll, settings.fail_mode),
            (Poll::Sleep, FailMode::Secure)
        );
        assert_eq!(
            (settings.flows, settings.run_dir),
            (None, default_run_dir())
        );
        let limits = (
            settings.max_packet_ins_per_second,
            settings.max_packet_in_burst,
        );
        assert_eq!(limits, (10_000, 1_000));
        assert!(settings.ports.is_empty() && settings.controllers.is_empty());
        assert!(settings.listeners.is_empty());
    }
}

#[test]
fn all_values_are_read() {
    let text = "\u{feff}[switch]\r\nname = \"br-1\"\r\ndatapath-id = 0x1f\r\nworkers = 2\r\n\
                cpus = [3, 2]\r\nengine = \"tuplemerge:c=20\"\r\npoll = \"always\"\r\n\
                fail-mode = \"secure\"\r\nflows = \"br.flows\"\r\nrun-dir = \"/srv/run\"\r\n\
                max-packet-ins-per-second = 5\r\nmax-packet-in-burst = 6\r\n\
                [[port]]\r\nnumber = 0xffffff00\r\nname = \"a b\"\r\ntype = \"pcap\"\r\n\
                receive = \"in.pcap\"\r\nsend = \"/srv/out.pcap\"\r\n\
                [[controller]]\r\naddress = \"unix:c.sock\"\r\nprobe-interval = \"500ms\"\r\n\
                max-backoff = \"1m\"\r\n[listen]\r\nopenflow = [\"tcp:[::1]:6653\"]\r\n";
    let settings = parse(text).unwrap();
    assert_eq!(
        (settings.name.as_str(), settings.datapath_id),
        ("br-1", Some(0x1f))
    );
    assert_eq!((settings.workers, settings.cpus), (2, vec![3, 2]));
    assert_eq!(settings.engine.to_string(), "tuplemerge:c=20");
    assert_eq!(settings.poll, Poll::Always);
    assert_eq!(settings.flows, Some("/etc/classyard/br.flows".into()));
    assert_eq!(settings.run_dir, PathBuf::from("/srv/run"));
    let limits = (
        settings.max_packet_ins_per_second,
        settings.max_packet_in_burst,
    );
    assert_eq!(limits, (5, 6));
    let port = PortSettings {
        number: MAX_PORT_NUMBER,
        name: "a b".to_owned(),
        device: DeviceSettings::Pcap {
            receive: Some("/etc/classyard/in.pcap".into()),
            send: Some("/srv/out.pcap".into()),
        },
    };
    assert_eq!(settings.ports, [port]);
    let controller = ControllerSettings {
        address: Address::Unix("/etc/classyard/c.sock".into()),
        probe_interval: Duration::from_millis(500),
        max_backoff: Duration::from_secs(60),
    };
    assert_eq!(settings.controllers, [controller]);
    let listener = Address::Tcp {
        host: "::1".to_owned(),
        port: 6653,
    };
    assert_eq!(settings.listeners, [listener]);
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_mistakes(
        "[switch]\nwokers = 2\nxyz = 1\n[swich]\n[[ports]]\n",
        &[
            "2:1: unknown key `wokers` in `[switch]`; expected `workers`, the nearest known key",
            "3:1: unknown key `xyz` in `[switch]`; expected one of `name`, `datapath-id`, ",
            "4:2: unknown key `swich`; expected `switch`, the nearest known key",
            "5:3: unknown key `ports`; expected `port`, the nearest known key",
        ],
    );
    assert_mistakes(
        "[[port]]\nnumber = 1\nname = \"a\"\nmtu = 9000\n[[controller]]\n\
         address = \"tcp:a:1\"\nrole = \"equal\"\n[listen]\nhttp = \"127.0.0.1:80\"\n",
        &[
            "4:1: unknown key `mtu` in `[[port]]`; expected one of `number`, `name`, `type`, ",
            "7:1: unknown key `role` in `[[controller]]`; expected one of `address`, ",
            "9:1: unknown key `http` in `[listen]`; expected `openflow`",
        ],
    );
}

#[test]
fn tables_have_one_bracket_or_two() {
    assert_mistakes(
        "[[switch]]\n[port]\n[controller]\n[[listen]]\n",
        &[
            "1:1: a list; expected one table `[switch]`",
            "2:1: a table; expected `[[port]]` with two brackets before each port",
            "3:1: a table; expected `[[controller]]` with two brackets before each controller",
            "4:1: a list; expected one table `[listen]`",
        ],
    );
    assert_mistakes(
        "switch = 1\nport = [true]\ncontroller = \"x\"\nlisten = 2020-01-01\n",
        &[
            "1:10: `1`; expected one table `[switch]`",
            "2:9: `true`; expected `[[port]]` with two brackets",
            "3:14: `x`; expected `[[controller]]` with two brackets",
            "4:10: a date; expected one table `[listen]`",
        ],
    );
}

#[test]
fn values_of_the_switch_are_checked() {
    assert_mistakes(
        "[switch]\nname = \"a b\"\ndatapath-id = \"1\"\nworkers = 65\ncpus = [2, 2, -1, 1024]\n\
         engine = \"forst\"\npoll = \"busy\"\nfail-mode = \"standalone\"\nflows = \"\"\n\
         run-dir = 1\nmax-packet-ins-per-second = 0\nmax-packet-in-burst = 1.5\n",
        &[
            "2:8: `a b`; expected a name of 1 to 15 letters, digits, `_`, `-` and `.`",
            "3:15: `1`; expected a datapath id except 0: a whole number, 16 hexadecimal digits",
            "4:11: `65`; expected a number of workers, 1 to 64",
            "5:12: CPU 2 is used twice, first in line 5; expected another CPU",
            "5:15: `-1`; expected the number of a CPU, 0 to 1023",
            "5:19: `1024`; expected the number of a CPU, 0 to 1023",
            "6:10: `forst`, column 1: there is no engine `forst`; there are linear, forest, ",
            "7:8: `busy`; expected `sleep` or `always`",
            "8:13: `standalone` is not supported yet; expected `secure`",
            "9:9: ``; expected a path in quotes",
            "10:11: `1`; expected a path in quotes",
            "11:29: `0`; expected a number of packets in a second, 1 to 10000000",
            "12:23: `1.5`; expected a number of packets in a burst, 1 to 10000000",
        ],
    );
    assert_mistakes(
        "[switch]\nworkers = 0\ncpus = [1, 2]\nengine = \"rfc\"\nfail-mode = \"open\"\n\
         datapath-id = 0\n",
        &[
            "2:11: `0`; expected a number of workers, 1 to 64",
            "4:10: engine `rfc` takes no updates, so there can be no live table of it",
            "5:13: `open`; expected `secure`",
            "6:15: `0`; expected a datapath id except 0",
        ],
    );
    assert_mistakes(
        "[switch]\ncpus = [1, 2]\nengine = \"forest:bucket=99\"\n",
        &[
            "2:8: 2 CPUs for 1 worker; expected `workers = 2`, or 1 CPU",
            "3:10: `forest:bucket=99`, column 15: engine `forest`: expected a whole number",
        ],
    );
    assert_mistakes(
        "[switch]\nworkers = 3\ncpus = [1]\nname = 1\n",
        &[
            "3:8: 1 CPU for 3 workers; expected `workers = 1`, or 3 CPUs",
            "4:8: `1`; expected the name of the switch in quotes",
        ],
    );
    assert_mistakes(
        "[switch]\ncpus = 1\n",
        &["2:8: `1`; expected a list of the CPUs of the workers, such as [2, 3]"],
    );
}

#[test]
fn ports_are_checked_and_distinct() {
    assert_mistakes(
        "[[port]]\n[[port]]\nnumber = 0\nname = \"\"\n[[port]]\nnumber = 1\nname = \"veth1\"\n\
         [[port]]\nnumber = 1\nname = \"veth1\"\n[[port]]\nnumber = 2\nname = \"other\"\n\
         interface = \"veth1\"\n",
        &[
            "1:1: `number` is missing; expected `number = 1`",
            "1:1: `name` is missing; expected `name = \"eth0\"`",
            "3:10: `0`; expected the number of a port, 1 to 4294967040",
            "4:8: ``; expected the name of a port: 1 to 15 bytes",
            "9:10: port number 1 is used twice, first in line 6; expected another number",
            "10:8: the port name `veth1` is used twice, first in line 7; expected another name",
            "14:13: the interface `veth1` is used twice, first in line 7; expected another",
        ],
    );
    // The name of the third port is an interface of the first.
    assert_mistakes(
        "[[port]]\nnumber = 1\nname = \"a\"\ninterface = \"eth0\"\n[[port]]\nnumber = 2\n\
         name = \"eth0\"\ntype = \"tap\"\n",
        &["7:8: the interface `eth0` is used twice, first in line 4; expected another interface"],
    );
    // A port of memory may have the name of an interface.
    let text = "[[port]]\nnumber = 1\nname = \"a\"\ninterface = \"b\"\n[[port]]\nnumber = 2\n\
                name = \"b\"\ntype = \"memory\"\n";
    assert_eq!(parse(text).unwrap().ports.len(), 2);
}

#[test]
fn a_device_has_only_keys_that_it_uses() {
    assert_mistakes(
        "[[port]]\nnumber = 1\nname = \"a\"\ntype = \"pcap\"\n\
         [[port]]\nnumber = 2\nname = \"b\"\ntype = \"dpdk\"\n\
         [[port]]\nnumber = 3\nname = \"c\"\ntype = \"memory\"\ninterface = \"c\"\n\
         [[port]]\nnumber = 4\nname = \"d\"\nreceive = \"x\"\n\
         [[port]]\nnumber = 5\nname = \"e\"\ntype = \"tap\"\nsend = \"x\"\n\
         [[port]]\nnumber = 6\nname = \"f g\"\n\
         [[port]]\nnumber = 7\nname = \"h\"\ntype = 7\ninterface = \"a/b\"\n\
         [[port]]\nnumber = 8\nname = \"i\"\ninterface = \"a/b\"\n",
        &[
            "4:8: a port of type pcap without a file; expected `receive = \"FILE\"`, `send = ",
            "8:8: `dpdk`; expected one of `interface`, `tap`, `pcap`, `memory`",
            "13:13: `interface` on a port of type memory; expected `type = \"interface\"` or",
            "17:11: `receive` on a port of type interface; expected `type = \"pcap\"`, or no",
            "22:8: `send` on a port of type tap; expected `type = \"pcap\"`, or no `send`",
            "25:8: no interface can be named `f g`; expected `interface = \"NAME\"` in addition",
            "29:8: `7`; expected one of `interface`, `tap`, `pcap`, `memory` in quotes",
            "34:13: `a/b`; expected the name of a network interface: 1 to 15 bytes",
        ],
    );
    assert_mistakes(
        "[[port]]\nnumber = 1\nname = \"a\"\ntype = \"pcap\"\nsend = \"x\"\n\
         [[port]]\nnumber = 2\nname = \"b\"\ntype = \"pcap\"\nreceive = \"x\"\nsend = \"x\"\n",
        &["11:8: the file `/etc/classyard/x` is used twice, first in line 5; expected another"],
    );
}

#[test]
fn controllers_and_listeners_are_checked_and_distinct() {
    assert_mistakes(
        "[[controller]]\n[[controller]]\naddress = \"tls:a:1\"\n[[controller]]\n\
         address = \"tcp:a:1\"\nprobe-interval = 5\nmax-backoff = \"5\"\n[[controller]]\n\
         address = \"tcp:a:1\"\n[[controller]]\naddress = \"ptcp:6653\"\nmax-backoff = \"2h\"\n",
        &[
            "1:1: `address` is missing; expected `address = \"tcp:192.0.2.1:6653\"`",
            "3:11: `tls:a:1`; expected `ssl:HOST:PORT`, the name of TLS in Open vSwitch",
            "6:18: `5`; expected a duration such as 5s in quotes",
            "7:15: `5`; expected a duration with its unit from \"100ms\" to \"3600s\"",
            "9:11: the controller `tcp:a:1` is used twice, first in line 5; expected each",
            "11:11: `ptcp:6653`; expected an address to connect to; addresses to listen on",
            "12:15: `2h`; expected a duration with its unit",
        ],
    );
    assert_mistakes(
        "[listen]\nopenflow = [\n  \"tcp:127.0.0.1:1\",\n  \"unix:a\",\n  \"unix:a\",\n  1,\n  \
         \"tcp:host:1\",\n]\n",
        &[
            "5:3: the address `unix:/etc/classyard/a` is used twice, first in line 4; expected",
            "6:3: `1`; expected an address in quotes",
            "7:3: `host` is not an IP address; expected an address of this host",
        ],
    );
    assert_mistakes(
        "[listen]\nopenflow = \"tcp:127.0.0.1:1\"\n",
        &["2:12: `tcp:127.0.0.1:1`; expected a list of addresses"],
    );
}

#[cfg(feature = "tls")]
#[test]
fn addresses_of_tls_need_files() {
    let files = "[tls]\nprivate-key = \"k.pem\"\ncertificate = \"/c.pem\"\n\
                 ca-certificate = \"ca.pem\"\n";
    let addresses = "[[controller]]\naddress = \"ssl:192.0.2.1\"\n[listen]\n\
                     openflow = [\"pssl:6653\"]\n";
    let settings = parse(&format!("{addresses}{files}")).unwrap();
    let tls = TlsSettings {
        private_key: "/etc/classyard/k.pem".into(),
        certificate: "/c.pem".into(),
        ca_certificate: "/etc/classyard/ca.pem".into(),
    };
    assert_eq!(settings.tls, Some(tls));
    assert_eq!(settings.listeners[0].to_string(), "ssl:0.0.0.0:6653");
    let remedy = "`ssl:` needs a private key and certificates; expected a table `[tls]` with";
    assert_mistakes(
        addresses,
        &[&format!("2:11: {remedy}"), &format!("4:13: {remedy}")],
    );
    assert_mistakes(
        &format!("{addresses}[tls]\ncertificate = 1\nca-cert = \"ca.pem\"\n"),
        &[
            "5:1: `private-key` is missing; expected `private-key = \"FILE.pem\"`",
            "5:1: `ca-certificate` is missing; expected",
            "6:15: `1`; expected the path of a PEM file in quotes",
            "7:1: unknown key `ca-cert` in `[tls]`; expected `ca-certificate`, the nearest",
        ],
    );
}

#[cfg(not(feature = "tls"))]
#[test]
fn files_of_tls_name_the_feature() {
    let expected = "`[tls]` needs TLS, and this program was built without TLS; expected a build";
    let files = "[tls]\nprivate-key = \"k\"\ncertificate = \"c\"\nca-certificate = \"a\"\n";
    assert_mistakes(files, &[&format!("1:1: {expected}")]);
}

#[test]
fn text_that_is_no_toml_has_line_and_column() {
    assert_mistakes(
        "[switch]\nname = \"br0\nworkers = 2\nworkers = 3\n",
        &[
            "2:12: invalid basic string; expected `\"`",
            "4:1: duplicate key; expected each key once",
        ],
    );
    let many = "[switch\n".repeat(30);
    let error = parse(&many).unwrap_err();
    assert!(error.contains("br0.toml:1:8: "), "{error}");
    assert!(error.lines().count() <= 21, "{error}");
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let folder = std::env::temp_dir().join(format!("classyard-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("br0.toml");
    let read = || SwitchSettings::read(&file).unwrap_err().to_string();
    let name = file.display().to_string();
    assert!(
        read().starts_with(&format!("{name}: No such file")),
        "{}",
        read()
    );
    std::fs::write(&file, b"# a\n[switch]\nname = \"\xff\"\n").unwrap();
    let expected = format!("{name}:3:9: the byte 0xff, which is not UTF-8; expected text in UTF-8");
    assert_eq!(read(), expected);
    let max_bytes = usize::try_from(MAX_FILE_BYTES).unwrap();
    std::fs::write(&file, vec![b'\n'; max_bytes]).unwrap();
    assert!(SwitchSettings::read(&file).is_ok());
    std::fs::write(&file, vec![b'\n'; max_bytes + 1]).unwrap();
    let expected = "more than 1048576 bytes, the limit for a configuration file";
    assert_eq!(read(), format!("{name}: {expected}"));
    assert!(
        parse(&"\n".repeat(max_bytes + 1))
            .unwrap_err()
            .contains(expected)
    );
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(SwitchSettings::read(&std::env::temp_dir()).is_err());
}

/// Files that end early, or lack a line or a character, are read or have mistakes in lines
/// that exist.
#[test]
fn damaged_files_are_read_or_have_mistakes() {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/switch/br0.toml"
    );
    let example = std::fs::read_to_string(example).unwrap();
    assert!(example.is_ascii());
    let ends = (0..example.len()).map(|end| example[..end].to_owned());
    let gaps = (0..example.len()).map(|gap| {
        let (before, after) = example.split_at(gap);
        format!("{before}{}", &after[1..])
    });
    let wide = (0..example.len()).map(|gap| {
        let (before, after) = example.split_at(gap);
        format!("{before}\u{20ac}{after}")
    });
    let line_count = example.lines().count();
    let lacking = (0..line_count).map(|gap| {
        let lines = example.lines().enumerate();
        let lines = lines.filter(|(number, _)| *number != gap);
        lines.map(|(_, line)| format!("{line}\r\n")).collect()
    });
    let mut bad_count = 0;
    for text in ends.chain(gaps).chain(wide).chain(lacking) {
        let text: String = text;
        let read = SwitchSettings::parse(&text, Path::new("br0.toml"));
        let Err(ConfigError::Bad(problems)) = read else {
            continue;
        };
        bad_count += 1;
        for problem in problems.shown() {
            assert!(
                problem.line <= text.lines().count().max(1),
                "{problem}\n{text}"
            );
        }
    }
    assert!(bad_count > 1_000, "{bad_count}");
}

/// The page on the switch describes all keys in tables, and its configuration is valid.
#[test]
fn the_page_on_the_switch_is_true() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/switch.md");
    let page = std::fs::read_to_string(page).unwrap();
    let tables: [(&str, &[&str]); 5] = [
        ("[switch]", &SWITCH_KEYS),
        ("[[port]]", &PORT_KEYS),
        ("[[controller]]", &CONTROLLER_KEYS),
        ("[listen]", &LISTEN_KEYS),
        ("[tls]", &TLS_KEYS),
    ];
    for (table, keys) in tables {
        let (_, section) = page.split_once(&format!("\n### `{table}`\n")).unwrap();
        let (_, rows) = section.split_once("|---|---|---|---|\n").unwrap();
        let rows = rows.lines().map_while(|line| line.strip_prefix("| `"));
        let described: Vec<&str> = rows.map(|row| row.split('`').next().unwrap()).collect();
        assert_eq!(described, keys, "{table}");
    }
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```\n").unwrap();
    let settings = parse(example).unwrap();
    assert_eq!((settings.ports.len(), settings.controllers.len()), (2, 1));
    let defaults = SwitchSettings::default();
    for (key, default) in [
        ("name", format!("`{}`", defaults.name)),
        ("workers", defaults.workers.to_string()),
        ("engine", format!("`{}`", defaults.engine)),
        ("poll", format!("`{}`", defaults.poll.word())),
        ("fail-mode", format!("`{}`", defaults.fail_mode.word())),
        ("max-packet-ins-per-second", "10,000".to_owned()),
        ("max-packet-in-burst", "1,000".to_owned()),
        (
            "probe-interval",
            format!("`{}`", duration_text(ControllerSettings::PROBE_INTERVAL)),
        ),
        (
            "max-backoff",
            format!("`{}`", duration_text(ControllerSettings::MAX_BACKOFF)),
        ),
    ] {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{key}` |")));
        let cells: Vec<&str> = row.unwrap().split(" | ").collect();
        assert_eq!(cells[2], default, "{key}");
    }
}
