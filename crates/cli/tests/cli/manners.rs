//! Data on standard output, messages on standard error, colours only on terminals.

use std::fs::File;

use crate::support::{Folder, RULES, example, program, run, words};

const COMMANDS: [&str; 18] = [
    "classify",
    "explain",
    "replay",
    "trace",
    "switch",
    "advise",
    "calibrate",
    "bench",
    "plot",
    "reproduce",
    "check",
    "generate",
    "convert",
    "inspect",
    "engines",
    "profiles",
    "formats",
    "completions",
];

#[test]
fn every_command_has_help_with_an_example() {
    let all = run("--help").exits(0).silent();
    for command in COMMANDS {
        assert!(
            all.stdout.contains(&format!("\n  {command} ")),
            "{command} is not listed"
        );
        run(&format!("{command} --help"))
            .exits(0)
            .silent()
            .prints("Example");
        run(&format!("{command} -h"))
            .exits(0)
            .silent()
            .prints("Usage");
        run(&format!("help {command}"))
            .exits(0)
            .silent()
            .prints("Example");
    }
    run("help generate trace").exits(0).prints("Example");
    run("help nothing").exits(2);
    run("generate trace --help").exits(0).prints("Example");
    run("--version")
        .exits(0)
        .silent()
        .prints(concat!("classyard ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn engines_and_profiles_are_listed_in_every_form() {
    let report = run("engines --format json").exits(0).silent().json();
    let engines = report["engines"].as_array().unwrap();
    assert_eq!(engines.len(), classyard::engine::ENGINES.len());
    assert!(engines.iter().any(|engine| engine["default"] == true));
    let forest = engines.iter().find(|engine| engine["name"] == "forest");
    let options = forest.unwrap()["options"].as_array().unwrap();
    let option = |name: &str| options.iter().find(|o| o["name"] == name).unwrap();
    let bucket = option("bucket");
    assert_eq!(
        (&bucket["type"], &bucket["default"]),
        (&"whole".into(), &2.into())
    );
    assert_eq!((&bucket["min"], &bucket["max"]), (&1.into(), &64.into()));
    let isa = option("isa");
    assert_eq!(isa["choices"].as_array().unwrap().len(), 5);
    // No processor has the vectors of both kinds of processors.
    let unavailable = isa["unavailable"].as_array().unwrap().len();
    assert!((1..=3).contains(&unavailable), "{isa}");
    assert_eq!(option("seed")["default"], "random");
    run("engines")
        .exits(0)
        .prints("forest (the default)")
        .prints(":bucket=2")
        .prints("a whole number from 1 to 64");
    let lines = run("engines --format csv").exits(0);
    assert_eq!(lines.lines().len(), engines.len() + 1);
    let report = run("profiles --format json").exits(0).json();
    // Twelve profiles of five-tuples, five with the fields of OpenFlow.
    assert_eq!(report["profiles"].as_array().unwrap().len(), 12 + 5);
    let report = run("formats --format json").exits(0).json();
    let formats = report["formats"].as_array().unwrap();
    assert!(formats.iter().any(|format| format["name"] == "ovs"));
    run("formats classbench")
        .exits(0)
        .prints("@198.51.100.0/28");
    run("formats clasbench")
        .exits(2)
        .complains("did you mean `classbench`?");
    run("profiles --show nothing")
        .exits(2)
        .complains("no built-in profile");
}

#[test]
fn reports_as_ndjson_are_those_of_json_on_one_line() {
    for command in [
        "engines",
        "profiles",
        "formats",
        "explain",
        "trace",
        "switch check-config CONFIG",
        "inspect --no-engines",
        "check --profiles acl1 --sizes 20 --count 20 -e linear,tss:seed=1",
    ] {
        let command = command.replace("CONFIG", &crate::switch::example("br0.toml"));
        let line = run(&format!("{command} --format ndjson")).exits(0);
        assert_eq!(line.lines().len(), 1, "{command}");
        let (line, whole) = (line.json(), run(&format!("{command} --format json")).json());
        let keys = |report: &serde_json::Value| {
            let keys = report.as_object().unwrap().keys();
            keys.cloned().collect::<Vec<String>>()
        };
        assert_eq!(keys(&line), keys(&whole), "{command}");
    }
}

#[test]
fn former_names_of_flags_are_taken() {
    let folder = Folder::new();
    let new = run("generate --profile acl1 --count 20 --seed 3")
        .exits(0)
        .stdout;
    let old = run("generate -p acl1 --rules 20 -s 3").exits(0).stdout;
    assert_eq!(new, old);
    let svg = folder.path("old.svg");
    run(&format!("inspect --no-engines --svg {svg}")).exits(0);
    assert!(folder.has("old.svg"));
    run("check -p acl1 --sizes 20 --headers-drawn 20 -u 5 -e linear,tss").exits(0);
    run("generate trace --headers 5 --expected").exits(0);
}

#[test]
fn completions_are_made_for_the_shells() {
    for (shell, text) in [
        ("bash", "_classyard"),
        ("zsh", "#compdef"),
        ("fish", "complete -c"),
    ] {
        run(&format!("completions {shell}"))
            .exits(0)
            .silent()
            .prints(text);
    }
    run("completions cmd").exits(2);
}

#[test]
fn colours_are_for_people() {
    let escapes = |variable: Option<(&str, &str)>, arguments: &[&str]| {
        let mut command = program();
        command.args(arguments);
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        [output.stdout, output.stderr].map(|bytes| bytes.contains(&0x1b))
    };
    for arguments in [
        &["classify"][..],
        &["explain", "--header", "srx=1"],
        &["engines"],
    ] {
        assert_eq!(escapes(None, arguments), [false, false], "{arguments:?}");
        assert_eq!(escapes(Some(("NO_COLOR", "1")), arguments), [false, false]);
    }
    let forced = Some(("CLICOLOR_FORCE", "1"));
    assert_eq!(escapes(forced, &["classify"]), [true, false]);
    assert_eq!(
        escapes(forced, &["explain", "--header", "srx=1"]),
        [false, true]
    );
    assert_eq!(
        escapes(forced, &["classify", "--format", "json"]),
        [false, false]
    );
    assert_eq!(
        escapes(forced, &["classify", "--format", "csv"]),
        [false, false]
    );
}

#[test]
fn nothing_asks_for_input_that_it_does_not_read() {
    for command in [
        "classify --format json",
        "explain --format json",
        "inspect --format json",
    ] {
        run(command).exits(0).silent();
    }
}

/// A trace of one header, and rules with a single rule.
const ONE_RULE: &str = "schema ipv4-5tuple\nallow dport=80\n";
const ONE_HEADER: &str = "1 2 3 80 6\n";

#[test]
fn a_full_device_is_an_error_whatever_is_written() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let mut commands: Vec<String> = COMMANDS
        .iter()
        .flat_map(|command| [format!("{command} --help"), format!("{command} -h")])
        .collect();
    commands.extend(
        [
            "--help",
            "-h",
            "--version",
            "-V",
            "generate trace --help",
            "completions bash",
            "engines",
            "profiles",
            "profiles --show acl1",
            "profiles --format csv",
            "formats",
            "formats rules",
            "formats --format csv",
            "generate --profile acl1 -n 10",
            "generate --list-profiles",
            "generate trace -n 10",
            "classify --repeat 1",
            "classify --winners -",
            "classify --fields -",
            "classify --action drop --write -",
            "lint --html -",
            "explain",
            "switch check-config CONFIG",
            "inspect --no-engines",
            "reproduce tm19 --figures tables --sizes 20 --profiles acl1 --out OUT",
            "bench --quick --sizes 20 --profiles acl1 --headers 50",
            "bench --quick --sizes 20 --profiles acl1 --headers 50 --format ndjson",
            "check --profiles acl1 --sizes 20 -n 20",
        ]
        .map(|command| command.replace("OUT", &folder.path("figures")))
        .map(|command| command.replace("CONFIG", &crate::switch::example("br0.toml"))),
    );
    commands.push(format!("convert {rules} - --to ovs"));
    for arguments in &commands {
        let full = File::options().write(true).open("/dev/full");
        let Ok(full) = full else {
            eprintln!("skipped: there is no /dev/full");
            return;
        };
        let output = program().args(words(arguments)).stdout(full).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(
            said.contains("error: standard output: "),
            "{arguments}: {said}"
        );
    }
}

/// Returns the places in a text with `1 rules` and similar errors.
fn disagreements(text: &str) -> Vec<String> {
    const FINE: [&str; 6] = ["has", "is", "was", "matches", "this", "ns"];
    let mut found = Vec::new();
    for line in text.lines() {
        for (at, _) in line.match_indices("1 ") {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || ",.-:/=_".contains(c)) {
                continue;
            }
            let rest = &line[at + 2..];
            let letters = rest.chars().take_while(char::is_ascii_alphabetic).count();
            let (word, after) = rest.split_at(letters);
            let plural = word.len() > 1 && word.ends_with('s') && !word.ends_with("ss");
            if plural && !FINE.contains(&word) && !after.starts_with(['-', '_']) {
                found.push(format!("1 {word} in: {line}"));
            }
        }
    }
    found
}

#[test]
fn one_of_something_is_said_in_the_singular() {
    assert_eq!(disagreements("all 1 packets").len(), 1);
    assert_eq!(disagreements("1 rule, 11 rules, 1 pass, 1 has"), [""; 0]);
    let folder = Folder::new();
    let (rules, trace) = (
        folder.file("rules", ONE_RULE),
        folder.file("trace", ONE_HEADER),
    );
    let two = folder.file("two", format!("{ONE_RULE}drop dport=80\n"));
    let bad = folder.file("bad", format!("{ONE_RULE}allow sprt=1\n"));
    folder.file(
        "one.toml",
        "name = \"one\"\n[[field]]\nname = \"a\"\nwidth = 1\nkind = \"prefix\"\n",
    );
    let bit = folder.file("bit", "schema \"one.toml\"\nallow a=1\n");
    let wide = folder.file(
        "wide",
        "schema \"one.toml\"\nallow a=1\nallow a=2\nallow a=0/2\n",
    );
    let capture = folder.path("one.pcap");
    run(&format!("convert {trace} {capture}")).exits(0);
    let mut said = Vec::new();
    for arguments in [
        format!("classify {rules} -t {trace} --repeat 1"),
        format!("classify {rules} -t {trace} --repeat 1 --top 0"),
        format!("classify {rules} -c {capture} --repeat 1"),
        format!("classify {two} -c {capture} --repeat 1 --top 1"),
        format!("classify {bad} -t {trace} --skip-bad"),
        format!("classify {bad} -t {trace}"),
        format!("classify {rules} -c {}", example("office.pcap")),
        format!("explain {rules} -t {trace}"),
        format!("explain {two} -t {trace}"),
        format!("explain {rules} -c {capture} --packet 2"),
        format!("explain {rules} -t {trace} --line 2"),
        format!("explain {bit} --header a=1"),
        format!("explain {bit} --header a=2"),
        format!("inspect {wide}"),
        format!("inspect {rules}"),
        format!("inspect {two}"),
        format!("inspect {bit}"),
        format!("inspect {two} --limit-rules 1"),
        format!("inspect {rules} --against {two}"),
        format!("check {rules} -t {trace} --updates 1"),
        format!("check {two} -n 1"),
        "check --schemas 1 --updates 1 -e linear".to_owned(),
        "generate --profile acl1 -n 1".to_owned(),
        format!("generate trace {rules} -n 1"),
        format!("generate trace {rules} -n 1 --kind worst"),
        format!("convert {capture} - --to trace --schema ipv6-5tuple"),
        format!("convert {two} - --to ovs"),
        format!("bench {rules} -t {trace} --quick"),
        "bench --quick --profiles acl1 --sizes 1 --headers 1 --updates".to_owned(),
        "bench --quick --profiles acl1 --sizes 1 --headers 1 --mixed 1".to_owned(),
    ] {
        let run = run(&arguments);
        let text = format!("{}\n{}", run.stdout, run.stderr);
        let found = disagreements(&text).into_iter();
        said.extend(found.map(|text| format!("{arguments}: {text}")));
    }
    assert!(said.is_empty(), "{said:#?}");
}
