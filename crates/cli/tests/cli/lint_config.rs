//! `lint` with a configuration file.

use std::process::Stdio;

use crate::support::{Folder, Run, program, run, words};

/// A dead rule, and a redundant one.
const RULES: &str = "schema ipv4-5tuple\n\
    deny src=10.0.0.0/8\n\
    permit src=10.1.0.0/16\n\
    permit dport=80\n\
    permit\n";

/// Runs `lint` in a folder.
fn lint_in(folder: &Folder, arguments: &str) -> Run {
    let output = program()
        .arg("lint")
        .args(words(arguments))
        .current_dir(folder.path("."))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_file_of_the_current_folder_is_read() {
    let folder = Folder::new();
    folder.file("fw.rules", RULES);
    lint_in(&folder, "fw.rules")
        .exits(1)
        .silent()
        .prints("4 rules, 1 dead, 1 redundant");
    folder.file("classyard.toml", "[lint]\nselect = [\"dead\"]\n");
    let run = lint_in(&folder, "fw.rules").exits(1);
    run.complains("note: settings are from classyard.toml")
        .prints("4 rules, 1 dead, 0 redundant");
    // Options of the command line win.
    for select in ["--select redundant", "--no-config --select redundant"] {
        lint_in(&folder, &format!("fw.rules {select}"))
            .exits(1)
            .prints("4 rules, 0 dead, 1 redundant");
    }
    lint_in(&folder, "fw.rules --no-config")
        .exits(1)
        .silent()
        .prints("1 dead, 1 redundant");
    lint_in(&folder, "fw.rules -q").exits(1).silent();
}

#[test]
fn options_of_the_command_line_win() {
    let folder = Folder::new();
    folder.file("fw.rules", RULES);
    folder.file(
        "classyard.toml",
        "[lint]\nselect = [\"dead\"]\nignore = [\"redundant\"]\nsteps = 1\n",
    );
    lint_in(&folder, "fw.rules --select redundant,dead --steps 1M")
        .exits(1)
        .prints("1 dead, 1 redundant");
    lint_in(&folder, "fw.rules --ignore dead")
        .exits(0)
        .prints("0 dead, 0 redundant");
    folder.file("strict.toml", "[lint]\nstrict = true\n");
    let save = "*filter\n:INPUT DROP [0:0]\n-A INPUT -m limit --limit 3/min -j ACCEPT\nCOMMIT\n";
    folder.file("fw.save", save);
    lint_in(&folder, "fw.save --no-config").exits(0);
    lint_in(&folder, "fw.save --config strict.toml")
        .exits(2)
        .complains("a condition that is not modelled");
}

#[test]
fn findings_are_allowed_by_the_rule_or_the_line() {
    let folder = Folder::new();
    folder.file("fw.rules", RULES);
    folder.file("other.rules", RULES);
    folder.file(
        "classyard.toml",
        "[lint]\nallow = [\n\
         \x20 { file = \"fw.rules\", rule = \"permit  src=10.1.0.0/16\", kind = \"dead\", why = \"customer\" },\n\
         \x20 { file = \"fw.rules\", line = 4, kind = [\"redundant\"], why = \"counters\" },\n]\n",
    );
    let run = lint_in(&folder, "fw.rules other.rules").exits(1);
    run.prints("fw.rules: 4 rules, 0 dead, 0 redundant, 2 allowed by the configuration")
        .prints("other.rules: 4 rules, 1 dead, 1 redundant\n");
    let report = lint_in(&folder, "fw.rules --format json").exits(0).json();
    assert_eq!(report["files"][0]["allowed_by_config"], 2);
    assert_eq!(report["files"][0]["allowed"], 0);
    // The text of a rule survives a new line, its number does not: the entry is reported.
    folder.file("fw.rules", RULES.replacen('\n', "\n# new\n", 1));
    lint_in(&folder, "fw.rules")
        .exits(1)
        .prints("fw.rules:5: redundant")
        .prints("0 dead, 1 redundant, 1 allowed by the configuration")
        .complains("classyard.toml:4: allows no finding");
    // An entry of a kind that is not searched for is not reported.
    let run = lint_in(&folder, "fw.rules --select dead").exits(0);
    assert!(!run.stderr.contains("allows no finding"), "{}", run.stderr);
    let run = lint_in(&folder, "other.rules").exits(1);
    assert!(!run.stderr.contains("allows no finding"), "{}", run.stderr);
    let out = folder.path("page.html");
    lint_in(&folder, &format!("fw.rules --html {out}")).exits(1);
    assert!(
        folder
            .read("page.html")
            .contains("customer (classyard.toml:3)")
    );
}

#[test]
fn files_are_relative_to_the_configuration() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let text = "[[lint.allow]]\nfile = \"fw.rules\"\nrule = \"permit src=10.1.0.0/16\"\n\
        kind = [\"dead\", \"partly-dead\"]\nwhy = \"customer\"\n";
    let config = folder.file("rules.toml", text);
    run(&format!("lint {rules} --config {config} --select dead"))
        .exits(0)
        .prints("0 dead, 0 redundant, 1 allowed by the configuration");
    let any_file = folder.file("any.toml", text.replace("file = \"fw.rules\"\n", ""));
    run(&format!("lint {rules} --config {any_file} --select dead")).exits(0);
}

#[test]
fn mistakes_are_errors_with_their_place() {
    let folder = Folder::new();
    let rules = folder.file("fw.rules", RULES);
    let config = folder.file("c.toml", "[lint]\nselekt = [\"dead\"]\nsteps = \"x\"\n");
    run(&format!("lint {rules} --config {config}"))
        .exits(2)
        .complains("c.toml:2:1")
        .complains("unknown key `selekt` in `[lint]`; did you mean `select`?")
        .complains("c.toml:3:9");
    let missing = folder.path("missing.toml");
    run(&format!("lint {rules} --config {missing}"))
        .exits(2)
        .complains("missing.toml");
    run(&format!("lint {rules} --config {config} --no-config")).exits(2);
}
