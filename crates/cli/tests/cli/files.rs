//! The sources of rules and headers, the same for every command.

use crate::support::{Folder, RULES, TRACE, run, run_with, words};

#[test]
fn rules_are_given_with_or_without_their_flag() {
    let folder = Folder::new();
    let (rules, trace) = (folder.file("rules", RULES), folder.file("trace", TRACE));
    for (command, more) in [
        ("classify", format!("-t {trace} --winners -")),
        ("explain", format!("-t {trace} -e linear --format json")),
        ("check", format!("-t {trace} -e linear,tss -q --format csv")),
        ("inspect", "--no-engines --format json".to_owned()),
        (
            "bench",
            format!("-t {trace} --quick -e linear --format csv"),
        ),
        (
            "generate trace",
            "-n 20 --seed 3 --engine linear".to_owned(),
        ),
    ] {
        let plain = |output: String| {
            // Times differ from run to run.
            let lines = output.lines().filter(|line| !line.contains("seconds"));
            let cells = lines.map(|line| line.split(',').take(3).collect::<Vec<_>>().join(","));
            cells.collect::<Vec<_>>().join("\n")
        };
        let flag = run(&format!("{command} -r {rules} {more}")).exits(0).stdout;
        let long = run(&format!("{command} {more} --rules {rules}"))
            .exits(0)
            .stdout;
        let bare = run(&format!("{command} {rules} {more}")).exits(0).stdout;
        assert!(!flag.is_empty());
        assert_eq!(plain(bare), plain(flag.clone()), "{command}");
        assert_eq!(plain(long), plain(flag), "{command}");
        run(&format!("{command} {rules} -r {rules} {more}"))
            .exits(2)
            .complains("cannot be used with");
    }
    run(&format!("bench {rules} --sizes 1k"))
        .exits(2)
        .complains("cannot be used with");
    run(&format!("bench -t {trace}"))
        .exits(2)
        .complains("--rules");
}

#[test]
fn only_one_file_is_standard_input() {
    for (arguments, names) in [
        ("classify -r - -c -", "rules and capture"),
        ("classify - -t -", "rules and trace"),
        ("explain -r - -t -", "rules and trace"),
        ("explain - -c -", "rules and capture"),
        ("check -r - -t -", "rules and trace"),
        ("check - -c -", "rules and capture"),
        ("check -r - -x -", "rules and expected answers"),
        ("inspect - --against -", "rules and the other rules"),
        ("bench -r - -t -", "rules and trace"),
        ("plot - other -", "file 1 and file 3"),
    ] {
        let refused = run_with(&words(arguments), RULES.as_bytes()).exits(2);
        let message = format!("{names} both come from standard input; only one can");
        assert_eq!(refused.complains(&message).stdout, "", "{arguments}");
    }
}
