//! Truncated and changed files never panic.

use super::realistic::ROUTER;
use super::support::Random;
use classyard_configs::{Conditions, ConfigFormat, read};
use classyard_workload::diagnostic::ReadOptions;

/// The number of changed files.
const CHANGED_FILES: usize = 4000;

/// The maximum number of rules of a changed file.
const MAX_RULES: usize = 1 << 14;

fn read_any(text: &str) {
    for skip_bad in [false, true] {
        let options = ReadOptions::DEFAULT
            .with_limit(MAX_RULES)
            .with_skip_bad(skip_bad);
        let mut conditions = Conditions::default();
        let config = read(
            "fw",
            text,
            ConfigFormat::Iptables,
            &options,
            &mut conditions,
        );
        if let Err(error) = config {
            assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn truncated_files_are_read_or_refused() {
    for end in (0..=ROUTER.len()).step_by(7) {
        read_any(&ROUTER[..end]);
    }
    for start in (0..=ROUTER.len()).step_by(13) {
        read_any(&ROUTER[start..]);
    }
}

#[test]
fn changed_files_are_read_or_refused() {
    let mut random = Random(7);
    let words: Vec<&str> = ROUTER.split_ascii_whitespace().collect();
    let characters: Vec<char> = "!-+,:/*\"\\ \n[]0129.aé\u{0}\r\t=#".chars().collect();
    let lines: Vec<&str> = ROUTER.lines().collect();
    for _ in 0..CHANGED_FILES {
        let mut changed: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        for _ in 0..=random.below(4) {
            let index = random.below(changed.len());
            let line = &mut changed[index];
            match random.below(4) {
                0 => {
                    let mut text: Vec<char> = line.chars().collect();
                    let position = random.below(text.len() + 1);
                    text.insert(position, random.pick(&characters));
                    *line = text.into_iter().collect();
                }
                1 => {
                    let mut text: Vec<char> = line.chars().collect();
                    if !text.is_empty() {
                        text.remove(random.below(text.len()));
                    }
                    *line = text.into_iter().collect();
                }
                2 => {
                    let mut text: Vec<&str> = line.split(' ').collect();
                    let position = random.below(text.len());
                    text[position] = words[random.below(words.len())];
                    *line = text.join(" ");
                }
                _ => {
                    let other = random.below(lines.len());
                    changed.swap(index, other);
                }
            }
        }
        read_any(&changed.join("\n"));
    }
}
