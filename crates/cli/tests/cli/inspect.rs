//! `inspect` counts and draws.

use crate::support::{Folder, example, run};

#[test]
fn the_example_is_counted() {
    let report = run("inspect --format json").exits(0).silent().json();
    assert_eq!(report["rules"], 148);
    assert_eq!(report["schema"], "dual-5tuple");
    let actions = report["actions"].as_array().unwrap();
    assert_eq!(actions[0]["action"], "allow");
    assert_eq!(actions[0]["rules"], 80);
    assert_eq!(report["shadowed"]["examined"], 148);
    let parts = report["parts"].as_array().unwrap();
    assert_eq!(
        (&parts[0]["rules"], &parts[1]["rules"]),
        (&100.into(), &54.into())
    );
    for part in parts {
        assert_eq!(part["overlaps"]["exact"], true);
        assert!(part["tuples"].as_u64().unwrap() > 30);
        let sets = |name: &str| part["partitions"][name].as_u64().unwrap();
        assert!((2..=part["rules"].as_u64().unwrap()).contains(&sets("over_all_fields")));
        assert!(sets("over_all_fields") <= sets("over_two_fields"));
        assert!(sets("largest_over_two_fields") > 1);
        assert!(part["matches"].as_f64().unwrap() > 1.0);
        let shares = part["protocols"].as_array().unwrap().iter();
        let sum: f64 = shares.map(|row| row["share"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
    assert_eq!(
        report["engines"].as_array().unwrap().len(),
        classyard::EngineSpec::all().count()
    );
    let forest = &report["engines"][1];
    assert_eq!(forest["engine"], "forest");
    let metrics = forest["metrics"].as_array().unwrap();
    assert!(
        metrics
            .iter()
            .any(|row| row["name"] == "runs" && row["schema"] == "ipv6-5tuple")
    );
    run("inspect")
        .exits(0)
        .prints("prefix lengths")
        .prints("tables of the root")
        .prints("Overlaps");
    run("inspect --format csv")
        .exits(0)
        .prints("ipv6-5tuple,rules,,54")
        .prints("ipv6-5tuple,partitions,two,");
}

#[test]
fn what_engines_would_cost_is_told_without_building() {
    let report = run("inspect --format json --no-engines").exits(0).json();
    assert!(report["engines"].as_array().unwrap().is_empty());
    let estimates = report["estimates"].as_array().unwrap();
    assert_eq!(estimates.len(), classyard::EngineSpec::all().count());
    let built = run("inspect --format json").exits(0).json();
    for (row, built) in estimates.iter().zip(built["engines"].as_array().unwrap()) {
        assert_eq!(row["engine"], built["engine"]);
        assert!(row["refused"].is_null());
        let estimate = &row["estimate"];
        let [found, expected] = [estimate, built].map(|row| row["bytes"].as_f64().unwrap());
        assert!(found < 2.0 * expected && expected < 2.0 * found, "{row}");
        for time in ["build_seconds", "lookup_ns"] {
            assert!(estimate[time].as_f64().unwrap() > 0.0, "{row}");
        }
        let spec = classyard::EngineSpec::parse(row["engine"].as_str().unwrap()).unwrap();
        let update = estimate["update_ns"].as_f64();
        assert_eq!(
            update.is_some_and(|time| time > 0.0),
            spec.is_dynamic(),
            "{row}"
        );
    }
    run("inspect --no-engines")
        .exits(0)
        .prints("estimated without building");
    run("inspect --no-engines --format csv")
        .exits(0)
        .prints("all,estimated_bytes,forest,");
}

#[test]
fn shadowed_rules_are_found() {
    let folder = Folder::new();
    let rules = folder.file(
        "rules",
        "schema ipv4-5tuple\n\
         allow src=10.0.0.0/8 name=wide\n\
         drop src=10.1.0.0/16 dport=80 name=hidden\n\
         allow src=10.0.0.0/8 name=again\n\
         drop src=11.0.0.0/8\n",
    );
    let report = run(&format!("inspect {rules} --format json --no-engines"))
        .exits(0)
        .json();
    let shadowed = &report["shadowed"];
    assert_eq!(shadowed["shadowed"], 2);
    assert_eq!(shadowed["duplicates"], 1);
    assert_eq!(shadowed["other_action"], 1);
    assert_eq!(shadowed["rules"][0]["rule"], 1);
    assert_eq!(shadowed["rules"][0]["by"], 0);
    assert_eq!(shadowed["rules"][0]["name"], "hidden");
    assert_eq!(shadowed["rules"][0]["by_name"], "wide");
    let rows = run(&format!("inspect {rules} --format csv --no-engines")).csv();
    let covered = rows.iter().filter(|row| row[1] == "covered_by");
    let covered: Vec<_> = covered.map(|row| (&row[2][..], &row[3][..])).collect();
    assert_eq!(covered, [("1", "0"), ("2", "0")]);
    let many = "allow src=10.1.0.0/16 dport=80\n".repeat(12);
    let many = folder.file(
        "many",
        format!("schema ipv4-5tuple\nallow name=all\n{many}"),
    );
    run(&format!("inspect {many} --no-engines"))
        .exits(0)
        .prints("0 all")
        .prints("and 2 more rules");
    run(&format!("inspect {rules}"))
        .exits(0)
        .prints("hidden")
        .prints("0 wide")
        .prints("allow instead of drop")
        .prints("duplicate");
}

#[test]
fn rules_that_differ_in_what_is_left_out_are_counted() {
    let folder = Folder::new();
    let line = |flags: &str| {
        format!("@10.0.0.0/8\t192.0.2.0/24\t0 : 65535\t443 : 443\t0x06/0xFF\t{flags}\n")
    };
    let first = line("0x0200/0x0200");
    for (others, expected) in [
        (vec![], None),
        (vec!["0x0200/0x0200"], None),
        (
            vec!["0x1000/0x1000", "0x0200/0x0200"],
            Some("1 rule differs from another only in columns that were left out of the file"),
        ),
        (
            vec!["0x1000/0x1000", "0x0000/0x0200"],
            Some("2 rules differ from another only in columns that were left out of the file"),
        ),
    ] {
        let others: Vec<String> = others.into_iter().map(line).collect();
        let rules = folder.file("flags.rules", first.clone() + &others.concat());
        // All of them are duplicates of the first rule.
        let report = run(&format!("inspect {rules} --format json --no-engines")).exits(0);
        assert_eq!(report.json()["shadowed"]["duplicates"], others.len());
        let table = run(&format!("inspect {rules} --no-engines")).exits(0);
        let table = table.complains("TCP flags, which are not among the five fields");
        match expected {
            Some(text) => assert!(table.stdout.contains(text), "{}", table.stdout),
            None => assert!(!table.stdout.contains("left out"), "{}", table.stdout),
        }
    }
}

#[test]
fn pictures_are_whole_and_stand_alone() {
    let folder = Folder::new();
    for (name, flags) in [
        ("example", String::new()),
        ("flows", {
            let file = folder.path("flows.rules");
            run(&format!("generate --family openflow15 -n 50 -o {file} -q")).exits(0);
            file
        }),
    ] {
        let picture = folder.path("picture.svg");
        run(&format!("inspect {flags} --svg {picture} --no-engines"))
            .exits(0)
            .complains("picture written");
        let svg = folder.read("picture.svg");
        assert!(svg.starts_with("<svg xmlns="), "{name}");
        assert!(svg.ends_with("</svg>\n"), "{name}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert_eq!(
            svg.matches("http").count(),
            1,
            "only the name space: {name}"
        );
    }
    run("inspect --svg -")
        .exits(2)
        .complains("a file of its own");
}

#[test]
fn a_set_is_like_itself_and_less_like_another() {
    let folder = Folder::new();
    let (one, two) = (folder.path("one"), folder.path("two"));
    run(&format!("generate -p acl1 -n 300 -o {one} -q")).exits(0);
    run(&format!("generate -p fw1 -n 300 -o {two} -q")).exits(0);
    let distances = |other: &str| {
        let report = run(&format!("inspect {one} --against {other} --format json"));
        let report = report.exits(0).json();
        let rows = report["parts"][0]["distances"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| row["distance"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(distances(&one), [0.0, 0.0, 0.0]);
    assert!(distances(&two).iter().all(|distance| *distance > 0.0));
    run(&format!("inspect {one} --against {two}"))
        .exits(0)
        .prints("matches per header");
    let flows = folder.path("flows.rules");
    run(&format!("generate --family openflow15 -n 50 -o {flows} -q")).exits(0);
    run(&format!("inspect {one} --against {flows}"))
        .exits(2)
        .complains("no schema in common");
}

#[test]
fn empty_sets_are_no_trouble() {
    let folder = Folder::new();
    let rules = folder.file("empty.rules", "schema ipv4-5tuple\n");
    let picture = folder.path("empty.svg");
    run(&format!("inspect {rules} --svg {picture}"))
        .exits(0)
        .prints("0 rules");
    let rules = example("office.rules");
    run(&format!("inspect {rules} --headers 10")).exits(0);
}
