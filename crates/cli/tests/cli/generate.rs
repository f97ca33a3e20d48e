//! `generate` makes the same rules and headers from the same flags.

use crate::support::{Folder, RULES, example, run};

#[test]
fn the_same_flags_give_the_same_rules() {
    let arguments = "generate --profile acl1 -n 300 --seed 5";
    let first = run(arguments).exits(0).complains("300 rules generated");
    assert_eq!(first.lines().len(), 300);
    assert!(first.lines().iter().all(|line| line.starts_with('@')));
    assert_eq!(run(arguments).stdout, first.stdout);
    assert_ne!(
        run("generate --profile acl1 -n 300 --seed 6").stdout,
        first.stdout
    );
    let scoped = "generate --profile acl1 -n 300 --seed 5 --smoothing 8 --address-scope -0.5 \
        --port-scope 0.5";
    assert_ne!(run(scoped).exits(0).stdout, first.stdout);
}

#[test]
fn families_and_formats_go_together() {
    let folder = Folder::new();
    for (family, format, schema) in [
        ("ipv4", "classbench", "ipv4-5tuple"),
        ("ipv4", "ovs", "openflow15"),
        ("ipv6", "rules", "ipv6-5tuple"),
        ("ipv6", "classbench", "ipv6-5tuple"),
        ("dual", "rules", "dual-5tuple"),
        ("openflow15", "rules", "openflow15"),
    ] {
        let file = folder.path("rules");
        let arguments = format!("generate -p fw3 --family {family} -n 100 --to {format} -o {file}");
        run(&arguments).exits(0);
        let schema = match format {
            "ovs" => String::new(),
            _ => format!("--schema {schema}"),
        };
        let report = run(&format!(
            "inspect {file} {schema} --no-engines --format json -q"
        ));
        let report = report.exits(0).json();
        assert!(
            report["rules"].as_u64().unwrap() >= 100,
            "{family} {format}"
        );
    }
    run("generate -p fw3 --family openflow15 --to classbench -n 10")
        .exits(2)
        .complains("cannot be written as classbench");
}

#[test]
fn profiles_come_from_files_as_well() {
    let folder = Folder::new();
    let text = run("profiles --show ipc1").exits(0).stdout;
    let own = folder.file("own.toml", text);
    let mine = run(&format!("generate --profile {own} -n 50"))
        .exits(0)
        .stdout;
    assert_eq!(mine, run("generate --profile ipc1 -n 50").stdout);
    run("generate --list-profiles").exits(0).prints("ipc2");
    let broken = folder.file("broken.toml", "name = 3\n");
    run(&format!("generate --profile {broken}"))
        .exits(2)
        .complains("broken.toml");
    let broken = folder.file("seed", "-scale\nmany\n#\n");
    run(&format!("generate --seed-file {broken}"))
        .exits(2)
        .complains("seed:");
}

#[test]
fn bad_settings_are_refused() {
    run("generate")
        .exits(2)
        .complains("nothing to generate from");
    run("generate --profile acll")
        .exits(2)
        .complains("did you mean");
    run("generate --profile acl1 -n 1x")
        .exits(2)
        .complains("is not a count");
    run("generate --profile acl1 --smoothing 65")
        .exits(2)
        .complains("0 to 64");
    run("generate --profile acl1 --address-scope 2")
        .exits(2)
        .complains("-1 to 1");
    run("generate --profile acl1 -o /nowhere/at/all")
        .exits(2)
        .complains("/nowhere/at/all");
}

#[test]
fn traces_of_every_kind_have_the_wanted_length() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    for kind in [
        "classbench",
        "uniform",
        "zipf",
        "flows",
        "corners",
        "miss",
        "random",
    ] {
        let arguments = format!("generate trace -r {rules} -k {kind} -n 500 --seed 3");
        let first = run(&arguments).exits(0).complains("500 headers written");
        assert_eq!(first.lines().len(), 500, "{kind}");
        assert_eq!(run(&arguments).stdout, first.stdout, "{kind}");
        if kind == "miss" {
            let trace = folder.file("trace", &first.stdout);
            let winners = run(&format!("classify -r {rules} -t {trace} --winners -"));
            assert_eq!(winners.stdout, "-\n".repeat(500));
        }
    }
    let all = example("office.rules");
    run(&format!("generate trace -r {all} --kind miss"))
        .exits(2)
        .complains("matches every header");
}

#[test]
fn flows_become_packets_with_times() {
    let folder = Folder::new();
    let packets = folder.path("flows.pcap");
    run(&format!("generate trace --kind flows -n 200 -o {packets}")).exits(0);
    let rules = example("office.rules");
    let run = run(&format!("classify -r {rules} -c {packets} --format json"));
    assert_eq!(run.exits(0).json()["input"]["packets"]["count"], 200);
}
