//! Output on terminals of different widths.

use crate::support::run_on_terminal;

/// Commands whose output is the same each time.
const STEADY: [&str; 6] = [
    "--help",
    "bench --help",
    "profiles",
    "engines",
    "inspect --no-engines",
    "inspect --no-engines --headers 10",
];

#[test]
fn a_terminal_that_does_not_know_its_width_has_80_columns() {
    for arguments in STEADY {
        let unknown = run_on_terminal(arguments, 0, 0);
        assert_eq!(unknown, run_on_terminal(arguments, 80, 24), "{arguments}");
        assert!(unknown.lines().any(|line| line.chars().count() > 40));
    }
    // Wider terminals are used fully.
    for arguments in ["--help", "bench --help"] {
        let wide = run_on_terminal(arguments, 200, 24);
        assert_ne!(run_on_terminal(arguments, 80, 24), wide, "{arguments}");
    }
}

#[test]
fn a_narrow_terminal_loses_the_bars_before_rules_are_broken() {
    let rows = |columns| {
        let output = run_on_terminal("classify --top 5 --repeat 1", columns, 24);
        // Shares are followed by a column; warnings may have a percentage as well.
        let lines = output.lines().filter(|line| line.contains(" %  "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let wide = rows(400);
    assert!(wide.iter().any(|line| line.contains('█')), "{wide:#?}");
    let widest = |rows: &[String]| rows.iter().map(|row| row.chars().count()).max().unwrap();
    // Slightly too narrow for the bars.
    let columns = u16::try_from(widest(&wide) - 4).unwrap();
    let narrow = rows(columns);
    assert!(widest(&narrow) <= usize::from(columns));
    let first = |rows: &[String]| {
        let hit = rows
            .iter()
            .find(|row| row.contains("src=") || row.contains("dst="));
        let words = hit
            .unwrap()
            .split_whitespace()
            .filter(|word| word.contains('='));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(first(&narrow), first(&wide));
    assert!(!narrow[0].contains('█'), "{narrow:#?}");
}

#[test]
fn words_stay_whole_on_the_narrowest_terminal() {
    for columns in [1, 5, 20] {
        let output = run_on_terminal("profiles", columns, 24);
        assert!(output.contains("acl1"), "{columns}:\n{output}");
        assert!(output.contains("profile"), "{columns}:\n{output}");
    }
}
