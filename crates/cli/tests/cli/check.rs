//! `check` finds that engines are equal, and finds wrong answers.

use std::process::Command;

use classyard::EngineSpec;

use crate::support::{Folder, RULES, TRACE, classbench, example, run};

#[test]
fn all_engines_agree_on_the_example() {
    let (rules, packets) = (example("office.rules"), example("office.pcap"));
    let arguments = format!("check -r {rules} -c {packets} -n 100 --format json");
    let report = run(&arguments).exits(0).silent().json();
    let compared = report["cases"][0]["engines"].as_array().unwrap().len();
    assert_eq!(compared, classyard::EngineSpec::all().count());
    // Engines without updates would be reported separately.
    let dynamic = EngineSpec::all().filter(EngineSpec::is_dynamic);
    let dynamic: Vec<String> = dynamic.map(|spec| spec.to_string()).collect();
    let arguments = format!(
        "check -r {rules} -c {packets} -n 5k --updates 500 --format json -e {}",
        dynamic.join(",")
    );
    let report = run(&arguments).exits(0).silent().json();
    assert_eq!(report["equal"], true);
    let case = &report["cases"][0];
    assert_eq!(case["headers"], 6927);
    assert_eq!(case["engines"].as_array().unwrap().len(), dynamic.len());
    let compared = &case["compared"];
    for key in [
        "batch_lookups",
        "single_lookups",
        "masked_lookups",
        "masks_proved",
    ] {
        assert!(compared[key].as_u64().unwrap() > 0, "no {key}");
    }
    assert!(compared["changes"].as_u64().unwrap() >= 500);
}

#[test]
fn generated_rules_of_every_family_are_checked() {
    let arguments = "check --profiles acl3,ipc1 --sizes 200,300 \
        --families ipv4,ipv6,dual,openflow15 --updates 200 -n 1000 --format csv";
    let run = run(arguments).exits(0);
    // Profiles do not apply to the fifteen fields.
    assert_eq!(run.lines().len(), 1 + 3 * 2 * 2 + 2);
    assert!(
        run.lines()[1..].iter().all(|line| line.contains(",true,")),
        "{}",
        run.stdout
    );
}

#[test]
fn the_table_says_what_was_compared() {
    run("check --profiles fw1 --sizes 100 -n 500")
        .exits(0)
        .silent()
        .prints("all engines agree")
        .prints("batch lookups")
        .prints("fw1 ipv4 100");
}

#[test]
fn expected_answers_are_held_against_the_engines() {
    let folder = Folder::new();
    let rules = folder.file("rules", RULES);
    let with = |answers: [&str; 4]| {
        let lines = TRACE.lines().zip(answers);
        lines
            .map(|(line, answer)| format!("{line} {answer}\n"))
            .collect::<String>()
    };
    let right = folder.file("right", with(["0", "1", "-1", "2"]));
    run(&format!("check -r {rules} -x {right}"))
        .exits(0)
        .prints("4 expected answers");
    let wrong = folder.file("wrong", with(["0", "1", "2", "2"]));
    let run_wrong = run(&format!("check -r {rules} -x {wrong}")).exits(1);
    for text in [
        "answers differ",
        "header 2",
        "the expected answer is another",
        "to repeat: classyard check --rules",
        "right: miss",
    ] {
        assert!(
            run_wrong.stdout.contains(text),
            "no {text:?} in:\n{}",
            run_wrong.stdout
        );
    }
    let report = run(&format!("check -r {rules} -x {wrong} --format json"))
        .exits(1)
        .json();
    assert_eq!(report["equal"], false);
    assert!(report["cases"][0]["disagreement"].is_string());
    let beyond = folder.file("beyond", with(["0", "1", "-1", "9"]));
    run(&format!("check -r {rules} -x {beyond}"))
        .exits(2)
        .complains("expects rule 9, but there are only 3");
    let none = folder.file("none", TRACE);
    run(&format!("check -r {rules} -x {none}"))
        .exits(2)
        .complains("none:1:");
}

#[test]
fn generated_answers_are_right() {
    let folder = Folder::new();
    let (rules, answers) = (folder.path("rules"), folder.path("answers"));
    run(&format!(
        "generate --profile acl2 --family dual -n 500 -o {rules} -q"
    ))
    .exits(0);
    let trace = format!("generate trace -r {rules} -k corners -n 2k --expected -o {answers} -q");
    run(&trace).exits(0);
    run(&format!("check -r {rules} -x {answers}"))
        .exits(0)
        .prints("2,000 expected answers");
}

#[test]
fn engines_are_chosen_and_checked_by_name() {
    let arguments = "check --profiles acl1 --sizes 100 -n 100 --format json";
    let engines = |list: &str| {
        let report = run(&format!("{arguments} --engines {list}"))
            .exits(0)
            .json();
        report["engines"].as_array().unwrap().len()
    };
    assert_eq!(engines("all"), classyard::EngineSpec::all().count());
    assert_eq!(engines("linear,tuplemerge:c=3,linear"), 2);
    run(&format!("{arguments} --engines liner"))
        .exits(2)
        .complains("did you mean `linear`?");
    run("check --profiles acl9")
        .exits(2)
        .complains("built-in profiles are acl1");
    run("check --profiles acl1 --sizes ten")
        .exits(2)
        .complains("is not a count");
}

#[test]
fn random_schemas_are_checked_by_their_seeds() {
    let arguments = "check --schemas 3 --updates 300 --engines linear,tss,linear --seed";
    let report = run(&format!("{arguments} 11 --format json"))
        .exits(0)
        .silent()
        .json();
    assert_eq!(report["equal"], true);
    assert_eq!(report["engines"].as_array().unwrap().len(), 2);
    assert!(report["disagreement"].is_null());
    let rounds = report["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 3);
    let lookups = |round: &serde_json::Value| round["lookups"].as_u64().unwrap();
    assert_eq!(
        report["lookups"].as_u64().unwrap(),
        rounds.iter().map(lookups).sum::<u64>()
    );
    for key in [
        "batch_lookups",
        "single_lookups",
        "masked_lookups",
        "chained_lookups",
        "flips",
        "rebuilds",
        "reoptimisations",
    ] {
        assert!(report["compared"][key].as_u64().unwrap() > 0, "no {key}");
    }
    // The third round equals the first round with its seed.
    let again = run(&format!("{arguments} 13 --format json"))
        .exits(0)
        .json();
    let again = &again["rounds"][0];
    assert_eq!(again["seed"], 13);
    for key in ["fields", "bits", "rules", "changes", "lookups"] {
        assert_eq!(again[key], rounds[2][key], "{key}");
    }
    let table = run(&format!("{arguments} 11")).exits(0).silent();
    table
        .prints("3 of 3, seeds 11 to 13")
        .prints("all engines agree in 3 schemas");
    let csv = run(&format!("{arguments} 11 --format csv")).exits(0);
    assert_eq!(csv.lines().len(), 1 + 3);
    run("check --schemas 3 --profiles all")
        .exits(2)
        .complains("cannot be used with");
}

#[test]
fn classbench_answers_are_found_again() {
    let Some(folder) = classbench() else {
        eprintln!("skipped: no folder shared/classbench above this crate");
        return;
    };
    let unpack = |path: std::path::PathBuf| {
        let output = Command::new("xz").arg("-dc").arg(path).output();
        output
            .ok()
            .filter(|output| output.status.success())
            .map(|output| output.stdout)
    };
    let mut checked = 0;
    let here = Folder::new();
    for name in ["acl1_1k", "fw1_1k", "ipc1_1k", "acl2_10k"] {
        let rules = unpack(folder.join(format!("rulesets/{name}.rules.xz")));
        let expected = unpack(folder.join(format!("expected/{name}.expected.xz")));
        let (Some(rules), Some(expected)) = (rules, expected) else {
            eprintln!("skipped: {name} cannot be unpacked with xz");
            continue;
        };
        let (rules, expected) = (here.file("rules", rules), here.file("expected", expected));
        let arguments = format!("check -r {rules} -x {expected} --engines linear,tss,tuplemerge");
        run(&arguments).exits(0).prints("20,000 expected answers");
        checked += 1;
    }
    eprintln!("{checked} files of expected answers checked");
}
