//! `reproduce` on a small scale.

use std::fs;

use crate::support::{Folder, run};

#[test]
fn no_figure_has_more_rules_than_were_asked_for() {
    let folder = Folder::new();
    let out = folder.path("figures");
    run(&format!(
        "reproduce tm19 --sizes 100,200 --profiles acl1,fw1 --headers 300 --out {out} -q"
    ))
    .exits(0)
    .silent();
    let mut figures = 0;
    for file in fs::read_dir(&out).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        figures += 1;
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let heading = lines.next().unwrap();
        let place = heading.iter().position(|&name| name == "rules").unwrap();
        let rules: Vec<usize> = lines.map(|cells| cells[place].parse().unwrap()).collect();
        assert!(!rules.is_empty(), "{path:?}");
        assert!(
            rules.iter().all(|&rules| rules <= 200),
            "{path:?}: {rules:?}"
        );
        assert!(
            rules.iter().any(|&rules| rules > 150),
            "{path:?}: {rules:?}"
        );
    }
    assert_eq!(figures, 3);
    run("reproduce tm19 --sizes 0")
        .exits(2)
        .complains("at least 1 rule");
}
