//! Files that are small on disk and huge in memory: each is either refused or read
//! within a bound on memory.
//!
//! The program runs with a limited address space, so exceeding the bound aborts it
//! on any machine.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Folder, RULES, Run, TRACE, example, program, run, words};

/// Runs the program with at most `mebibytes` MiB of address space, and room for the program.
fn run_within(mebibytes: u64, arguments: &str) -> Run {
    let program_file = std::fs::metadata(program().get_program()).expect("the program exists");
    let kibibytes = mebibytes * 1024 + program_file.len().div_ceil(1024);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\""])
        .arg(kibibytes.to_string())
        .arg(program().get_program())
        .args(words(arguments))
        // The limit is on addresses. For a thread's arena glibc may reserve 64 MiB of them.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::null());
    let output = command.output().expect("there is a shell");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    Run {
        code: code.unwrap_or_else(|| panic!("{arguments}: {}: {stderr}", output.status)),
        stdout: String::from_utf8(output.stdout).expect("output is text"),
        stderr,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).expect("memory takes everything");
    packer.finish().expect("memory takes everything")
}

/// Writes a gzip file: `start`, then `mebibytes` MiB of repeated `pattern`.
/// Concatenated gzip members are one valid file, so only one MiB is packed.
fn bomb(folder: &Folder, name: &str, start: &[u8], pattern: &[u8], mebibytes: usize) -> String {
    let mut bytes = pattern.repeat((1 << 20) / pattern.len() + 1);
    bytes.truncate((1 << 20) / pattern.len() * pattern.len());
    let member = gzip(&bytes);
    let path = folder.path(name);
    let mut file = BufWriter::new(File::create(&path).expect("the file can be made"));
    file.write_all(&gzip(start)).expect("the disk has room");
    for _ in 0..mebibytes {
        file.write_all(&member).expect("the disk has room");
    }
    file.flush().expect("the disk has room");
    path
}

/// Returns the header of a little-endian pcap file of Ethernet frames.
fn pcap_header(snap_length: u32) -> Vec<u8> {
    let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend(snap_length.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header
}

#[test]
fn rules_that_unpack_to_more_than_the_limit_are_refused() {
    let folder = Folder::new();
    let rules = bomb(
        &folder,
        "rules.gz",
        b"schema ipv4-5tuple\n",
        b"drop # x\n",
        1100,
    );
    run_within(1250, &format!("inspect {rules}"))
        .exits(2)
        .complains("rules.gz: more than 1073741824 bytes")
        .complains("--limit-bytes");
    run_within(50, &format!("inspect {rules} --limit-bytes 16M"))
        .exits(2)
        .complains("more than 16777216 bytes");
    // The limit can be raised, and a file of exactly the limit is accepted.
    let small = folder.file("small.rules", RULES);
    let size = RULES.len();
    run_within(50, &format!("inspect {small} --limit-bytes {size}")).exits(0);
    run_within(50, &format!("inspect {small} --limit-bytes {}", size - 1))
        .exits(2)
        .complains(&format!("more than {} bytes", size - 1));
}

#[test]
fn more_rules_than_the_limit_are_refused_before_any_is_held() {
    let folder = Folder::new();
    let rules = bomb(&folder, "rules.gz", b"schema ipv4-5tuple\n", b"drop\n", 100);
    run_within(250, &format!("inspect {rules}"))
        .exits(2)
        .complains("rules.gz:16777218: more than 16777216 rules")
        .complains("--limit-rules");
    let line = b"@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\n";
    let rules = bomb(&folder, "classbench.gz", b"", line, 50);
    run_within(150, &format!("inspect {rules} --limit-rules 500k"))
        .exits(2)
        .complains("more than 500000 rules");
}

#[test]
fn traces_are_bounded_in_bytes_and_in_headers() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let trace = bomb(&folder, "trace.gz", b"", TRACE.as_bytes(), 200);
    let arguments = format!("classify -r {rules} -t {trace}");
    run_within(150, &format!("{arguments} --limit-bytes 32M"))
        .exits(2)
        .complains("more than 33554432 bytes")
        .complains("--limit-bytes");
    run_within(300, &format!("{arguments} --limit-headers 100k"))
        .exits(2)
        .complains("trace.gz:100001: more than 100000 headers")
        .complains("--limit-headers");
}

#[test]
fn the_length_that_a_record_claims_is_not_believed() {
    let folder = Folder::new();
    let rules = example("office.rules");
    for length in [400_000_000_u32, 4_000_000_000] {
        let mut start = pcap_header(u32::MAX);
        for field in [1, 2, length, length] {
            start.extend(field.to_le_bytes());
        }
        let capture = bomb(&folder, "claims.pcap.gz", &start, &[0], 500);
        for command in ["classify", "explain --packet 1000000000"] {
            let run = run_within(
                150,
                &format!("{command} -r {rules} -c {capture} --limit-headers 500k"),
            );
            let run = match length {
                // Millions of empty packets follow the long packet.
                400_000_000 => run.exits(2).complains("more than 500000 packets"),
                _ if command == "classify" => run.exits(0),
                _ => run.exits(2).complains("has no packet"),
            };
            if length == 4_000_000_000 {
                run.complains("the file ends inside a packet");
            }
        }
    }
    // A pcapng file with such a length: a section, an interface, a packet block.
    let mut start = vec![
        0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
    ];
    start.extend([0xff; 8]);
    start.extend(28_u32.to_le_bytes());
    for field in [1_u32, 20, 1, 0, 20] {
        start.extend(field.to_le_bytes());
    }
    for field in [6_u32, 400_000_000, 0, 0, 0, 399_999_968, 399_999_968] {
        start.extend(field.to_le_bytes());
    }
    let capture = bomb(&folder, "claims.pcapng.gz", &start, &[0], 500);
    for command in ["classify", "explain"] {
        let run = run_within(50, &format!("{command} -r {rules} -c {capture}"));
        run.complains("skipped a packet of 399999968 bytes; at most 262144 are read")
            .complains("--limit-record");
    }
}

#[test]
fn captures_that_are_held_in_memory_are_bounded() {
    let folder = Folder::new();
    let rules = example("office.rules");
    // Zeros are packets without bytes.
    let capture = bomb(&folder, "zeros.pcap.gz", &pcap_header(65_535), &[0], 300);
    let arguments = format!("explain -r {rules} -c {capture} --packet 1000000000");
    run_within(1150, &arguments)
        .exits(2)
        .complains("more than 16777216 packets")
        .complains("--limit-headers");
    run_within(50, &format!("{arguments} --limit-headers 100k"))
        .exits(2)
        .complains("more than 100000 packets");
    run_within(150, &format!("{arguments} --limit-bytes 10M"))
        .exits(2)
        .complains("more than 10485760 bytes");
    // Packets after the requested one are not read.
    let office = example("office.pcap");
    run_within(
        100,
        &format!("explain -r {rules} -c {office} --packet 5 --limit-headers 5"),
    )
    .exits(0)
    .silent();
    // `classify` does not hold the packets in memory.
    run_within(
        100,
        &format!("classify -r {rules} -c {capture} --format json"),
    )
    .exits(2)
    .prints("\"count\": 19660800")
    .complains("has a header for these rules: 19660800 unreadable");
}

#[test]
fn schemas_profiles_and_seed_files_are_bounded() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let field = b"[[field]]\nname = \"a\"\nwidth = 1\nkind = \"exact\"\n";
    let schema = bomb(&folder, "schema.toml", b"name = \"wide\"\n", field, 45);
    run_within(50, &format!("inspect {rules} --schema {schema}"))
        .exits(2)
        .complains("schema.toml: more than 1048576 bytes")
        .complains("a schema file");
    let named = folder.file("named.rules", "schema \"schema.toml\"\nallow a=1\n");
    run_within(50, &format!("inspect {named}"))
        .exits(2)
        .complains("schema.toml: more than 1048576 bytes");
    run_within(50, &format!("generate --profile {schema} -n 10 -o -"))
        .exits(2)
        .complains("schema.toml: more than 1048576 bytes")
        .complains("a profile");
    // A file within the limit is still refused if it has too many fields.
    let many = [b"name = \"wide\"\n".to_vec(), field.repeat(20_000)].concat();
    let many = folder.file("many.toml", many);
    run_within(50, &format!("inspect {rules} --schema {many}")).exits(2);
    let seed = bomb(&folder, "acl_seed", b"-scale\n", b"0.1 0.2\n", 100);
    run_within(100, &format!("generate --seed-file {seed} -n 10 -o -"))
        .exits(2)
        .complains("acl_seed: more than 16777216 bytes");
}

/// Tests each command that builds an engine for its user.
#[test]
fn what_engines_may_take_is_limited() {
    for (command, limit, reason) in [
        ("classify", "--limit-engine-bytes 1K", "the limit is 1024"),
        (
            "classify",
            "--limit-peak-bytes 2K",
            "the limit on peak bytes is 2048",
        ),
        (
            "explain --packet 1",
            "--limit-engine-bytes 1K",
            "the limit is 1024",
        ),
        (
            "bench -e forest --sizes 100 --quick",
            "--limit-engine-bytes 1K",
            "the limit is 1024",
        ),
    ] {
        run(&format!("{command} {limit}"))
            .exits(2)
            .complains(reason);
    }
    run("classify --limit-build-time 3")
        .exits(2)
        .complains("`3` is not a time");
    run("classify --limit-engine-bytes 1G --limit-peak-bytes 1G --limit-build-time 5m").exits(0);
    // Other engines are still counted.
    let built = run("inspect --limit-engine-bytes 20K --format json").exits(0);
    let rows = built.json()["engines"].as_array().unwrap().len();
    assert!((1..classyard::EngineSpec::all().count()).contains(&rows));
    run("inspect --limit-engine-bytes 20K")
        .exits(0)
        .complains("sfl(bit-vector): the engine needs");
}

#[test]
fn an_engine_that_is_refused_is_a_row_of_the_benchmark() {
    let command = "bench -e bit-vector:mebibytes=1,forest --profiles acl1 --sizes 4k --quick";
    let rows = run(&format!("{command} --format json")).exits(0).json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["engine"], &rows[0]["wrong"]),
        (&"forest".into(), &0.into())
    );
    assert_eq!(rows[1]["engine"], "bit-vector:mebibytes=1");
    let reason = rows[1]["failed"].as_str().unwrap();
    assert!(reason.contains("the limit is 1048576"), "{reason}");
    run(command)
        .exits(0)
        .prints("bit-vector:mebibytes=1 fails on acl1 4k: the engine needs");
}

/// Two groups of 256 addresses multiply, so a statement has 65,536 rules and seventeen have more
/// than a configuration may have.
#[test]
fn groups_that_multiply_to_more_rules_than_the_limit_are_refused() {
    let folder = Folder::new();
    let addresses = |first: usize, line: &dyn Fn(&str) -> String| -> String {
        let host = |last| format!("10.{first}.{}.{last}", 2 * last % 256);
        (0..256).map(|last| line(&host(last))).collect()
    };
    let junos_list = |first| addresses(first, &|host| format!("{host}/32;\n"));
    let terms = (0..17).map(|port| {
        format!(
            "term t{port} {{ from {{ source-prefix-list a; destination-prefix-list b; \
             destination-port {port}; }} then accept; }}\n"
        )
    });
    let junos = format!(
        "policy-options {{ prefix-list a {{ {} }} prefix-list b {{ {} }} }}\n\
         firewall {{ family inet {{ filter f {{\n{}}} }} }}\n",
        junos_list(1),
        junos_list(2),
        terms.collect::<String>()
    );
    let group = |name, first| {
        let members = addresses(first, &|host| format!(" network-object host {host}\n"));
        format!("object-group network {name}\n{members}")
    };
    let entries = (1..18).map(|port| {
        format!("access-list out extended permit tcp object-group A object-group B eq {port}\n")
    });
    let asa = format!(
        "ASA Version 9.16(1)\n{}{}{}access-group out in interface inside\n",
        group("A", 1),
        group("B", 2),
        entries.collect::<String>()
    );
    for (name, text) in [("junos.conf", junos), ("asa.cfg", asa)] {
        let path = folder.path(name);
        std::fs::write(&path, text).expect("the disk has room");
        let run = run_within(700, &format!("lint {path}"));
        assert_eq!(run.code, 2, "{}", run.stderr);
        let expected = "more than 1048576 rules; raise the limit or split the file";
        assert!(run.stderr.contains(expected), "{}", run.stderr);
        let run = run_within(700, &format!("lint --limit-rules 70k {path}"));
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(
            run.stderr.contains("more than 70000 rules"),
            "{}",
            run.stderr
        );
    }
}
