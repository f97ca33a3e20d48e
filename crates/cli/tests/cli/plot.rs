//! `plot`: draws the results of `bench`.

use crate::support::{Folder, run, run_with, words};

/// Returns a row as bench writes it, with additional keys.
fn row(set: &str, engine: &str, rules: u32, lookups: f64, more: &str) -> String {
    format!(
        r#"{{"set": "{set}", "engine": "{engine}", "rules": {rules}, "wrong": 0,
            "batch_headers_per_second": {{"min": 1.0, "median": {lookups}, "max": 1e9}}{more}}}"#
    )
}

fn json(rows: &[String]) -> String {
    format!("[{}]", rows.join(","))
}

const UPDATES: &str = r#", "updates_per_second": {"min": 1.0, "median": 2e6, "max": 3e6}"#;
const PEER: &str = r#", "peer": {"name": "rte_acl"}"#;

/// Returns the texts of a picture, in order.
fn texts(svg: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for text in svg.split("<text").skip(1) {
        let text = text.split_once('>').unwrap().1;
        texts.push(text.split("</text>").next().unwrap().trim().to_owned());
    }
    texts
}

#[test]
fn what_bench_measured_is_drawn() {
    let folder = Folder::new();
    let out = folder.path("bench.svg");
    let alone = "bench --quick --profiles acl1,fw1 --sizes 100,1k -e forest,tuplemerge --updates";
    let alone = run(&format!("{alone} --format json")).exits(0).stdout;
    let mixed = "bench --quick --profiles acl1 --sizes 100,1k -e forest --mixed 0,1k,max";
    let mixed = run(&format!("{mixed} --format csv")).exits(0).stdout;
    let files = [
        folder.file("alone.json", alone),
        folder.file("mixed", mixed),
    ];
    run(&format!("plot {} --out {out}", files.join(" ")))
        .exits(0)
        .complains("wrote ");
    let texts = texts(&folder.read("bench.svg"));
    for text in [
        "Lookups against rules",
        "Lookups against updates, measured separately",
        "Lookups with concurrent updates (mixed load)",
        "Latency of batches with concurrent updates (mixed load)",
        "forest",
        "tuplemerge",
        "forest, 1k",
        "100 rules",
        "2 sets",
        "hollow, at the left end: no writer",
    ] {
        assert!(
            texts.iter().any(|one| one == text),
            "no {text:?} in {texts:?}"
        );
    }
}

#[test]
fn json_and_csv_are_the_same_picture() {
    let folder = Folder::new();
    let measured = json(&[
        row("acl1 1k", "forest", 1_000, 2e7, UPDATES),
        row("fw1 1k", "forest", 1_000, 1e7, UPDATES),
        row("acl1 10k", "forest", 9_990, 9e6, UPDATES),
    ]);
    let csv = "set,engine,rules,batch_median,updates_median,wrong,peer,failed\n\
               acl1 1k,forest,1000,20000000,2000000,0,,\n\
               fw1 1k,forest,1000,10000000,2000000,0,,\n\
               acl1 10k,forest,9990,9000000,2000000,0,,\n";
    let out = folder.path("a.svg");
    let plot = format!("plot - --out {out}");
    run_with(&words(&plot), measured.as_bytes()).exits(0);
    let first = folder.read("a.svg");
    run_with(&words(&plot), csv.as_bytes()).exits(0);
    assert_eq!(first, folder.read("a.svg"));
    assert!(texts(&first).iter().any(|text| text == "10k: 1 set"));
}

#[test]
fn a_peers_best_stands_for_it() {
    let folder = Folder::new();
    let (out, results) = (
        folder.path("a.svg"),
        folder.file(
            "results",
            json(&[
                row("acl1 1k", "forest", 1_000, 2e7, ""),
                row("acl1 1k", "rte_acl:sse", 1_000, 1e7, PEER),
                row("acl1 1k", "rte_acl:avx2", 1_000, 3e7, PEER),
                row("fw1 1k", "forest", 1_000, 2e7, ""),
                r#"{"set": "fw1 1k", "engine": "rte_acl", "rules": 1000, "failed": "no"}"#
                    .to_owned(),
            ]),
        ),
    );
    run(&format!("plot {results} -o {out}"))
        .exits(0)
        .complains("left out, because they failed: rte_acl on fw1 1k");
    let texts = texts(&folder.read("a.svg"));
    assert!(texts.iter().any(|text| text == "rte_acl"), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("avx2")), "{texts:?}");
    assert!(
        texts
            .iter()
            .any(|text| text == "hollow: measured on fewer sets")
    );
    assert!(
        !texts.iter().any(|text| text.contains("updates")),
        "none were measured"
    );
    run(&format!("plot {results} -o {out} --only rte_acl")).exits(0);
    let svg = folder.read("a.svg");
    assert!(svg.contains("rte_acl") && !svg.contains("forest"));
    run(&format!("plot {results} -o {out} --only forrest"))
        .exits(2)
        .complains("no results of `forrest`")
        .complains("there are forest, rte_acl");
}

#[test]
fn what_cannot_be_drawn_is_explained() {
    let folder = Folder::new();
    let out = folder.path("a.svg");
    let wrong = row("a", "forest", 3, 1.0, "").replace("\"wrong\": 0", "\"wrong\": 2");
    let lacking = r#"[{"set": "a", "engine": "forest", "rules": 3, "wrong": 0}]"#;
    for (name, text, complaint) in [
        (
            "wrong",
            json(&[wrong]),
            "left out, because they gave wrong answers: forest on a",
        ),
        (
            "lacking",
            lacking.to_owned(),
            "forest on a has no rate of lookups",
        ),
        ("object", "{}".to_owned(), "not a result of bench"),
        (
            "rules",
            "allow src=10.0.0.0/8\nx,y\n".to_owned(),
            "not a result of bench",
        ),
        ("none", "[]".to_owned(), "there are no results to draw"),
    ] {
        let file = folder.file(name, text);
        run(&format!("plot {file} -o {out}"))
            .exits(2)
            .complains(complaint);
        assert!(!folder.has("a.svg"), "{name}");
    }
    run(&format!("plot -o {out}")).exits(2);
    let fine = folder.file("fine", json(&[row("a", "forest", 3, 1.0, "")]));
    run(&format!("plot {fine} -o {}/no/a.svg", folder.path("")))
        .exits(2)
        .complains("no/a.svg");
    run(&format!("plot {}", folder.path("fin")))
        .exits(2)
        .complains("did you mean");
}

/// Returns the names in the legends with their colours, in order.
fn legend(svg: &str) -> Vec<(String, String)> {
    let lines = svg.split("<polyline ").skip(1);
    let entries = lines.filter_map(|line| {
        let (attributes, rest) = line.split_once("/>")?;
        let is_legend =
            attributes.contains("opacity=\"1\"") && attributes.contains("stroke-width=\"3\"");
        let stroke = attributes.split("stroke=\"").nth(1)?.split('"').next()?;
        let text = rest.split("<text").nth(1)?.split_once('>')?.1;
        let name = text.split("</text>").next()?.trim();
        is_legend.then(|| (name.to_owned(), stroke.to_owned()))
    });
    entries.collect()
}

#[test]
fn an_engine_has_its_colour_whatever_stands_beside_it() {
    let folder = Folder::new();
    let out = folder.path("a.svg");
    let mut engines = [
        ("forest", ""),
        ("tss", UPDATES),
        ("tuplemerge", UPDATES),
        ("rte_acl", PEER),
        ("tss:mask=addresses", UPDATES),
        ("of-mine", ""),
    ];
    let mut seen: Vec<(String, String)> = Vec::new();
    for turn in 0..engines.len() {
        engines.rotate_left(1);
        // With fewer and fewer engines, so that names appear next to different names.
        let chosen = &engines[..engines.len() - turn];
        let rows = chosen.iter().flat_map(|&(engine, more)| {
            [1_000, 2_000].map(|rules| row("acl1", engine, rules, 1e7, more))
        });
        let results = folder.file("results", json(&rows.collect::<Vec<_>>()));
        run(&format!("plot {results} -o {out}")).exits(0);
        let found = legend(&folder.read("a.svg"));
        assert!(found.len() >= chosen.len(), "{found:?}");
        seen.extend(found);
    }
    seen.sort();
    seen.dedup();
    // Each name has one colour, and each colour one name.
    assert_eq!(seen.len(), engines.len(), "{seen:?}");
    let mut colours: Vec<_> = seen.iter().map(|(_, colour)| colour).collect();
    colours.sort();
    colours.dedup();
    assert_eq!(colours.len(), engines.len(), "{seen:?}");
}
