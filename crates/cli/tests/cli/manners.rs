//! Data on standard output, talk on standard error, colours only for people.

use crate::support::{program, run};

const COMMANDS: [&str; 12] = [
    "classify",
    "explain",
    "bench",
    "plot",
    "reproduce",
    "check",
    "generate",
    "convert",
    "inspect",
    "engines",
    "profiles",
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
    }
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
    assert_eq!(engines.len(), classyard::ENGINES.len());
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
    assert_eq!(isa["choices"].as_array().unwrap().len(), 4);
    assert!(isa["unavailable"].as_array().unwrap().len() <= 2, "{isa}");
    assert_eq!(option("seed")["default"], "random");
    run("engines")
        .exits(0)
        .prints("forest (the default)")
        .prints(":bucket=2")
        .prints("a whole number from 1 to 64");
    let lines = run("engines --format csv").exits(0);
    assert_eq!(lines.lines().len(), engines.len() + 1);
    let report = run("profiles --format json").exits(0).json();
    assert_eq!(report["profiles"].as_array().unwrap().len(), 12);
    run("profiles --show nothing")
        .exits(2)
        .complains("no built-in profile");
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
