//! Configurations of firewalls, read as each of the formats.

use classyard_configs::{Conditions, Config, ConfigFormat, WriteOptions, read, write};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

const STRICT: ReadOptions = ReadOptions::DEFAULT.with_limit(10_000);

const LENIENT: ReadOptions = STRICT.with_skip_bad(true);

/// Reads a text as every format. If the strict reader finds no error, the lenient reader must
/// read the same rules.
pub(crate) fn configs(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = ConfigFormat::detect(&text);
    for format in ConfigFormat::ALL {
        let read = |options: &ReadOptions| -> Result<Config, ReadError> {
            read("fuzz", &text, format, options, &mut Conditions::default())
        };
        let (strict, lenient) = (read(&STRICT), read(&LENIENT));
        match (strict, lenient) {
            (Ok(strict), lenient) => {
                let lenient = lenient.expect("lenient refuses what strict takes");
                check(&strict);
                assert_eq!(strict.policy.len(), lenient.policy.len());
                assert_eq!(strict.sources, lenient.sources);
            }
            (Err(_), Ok(lenient)) => {
                assert!(
                    lenient.skipped.total() > 0,
                    "{format}: strict refuses a good text"
                );
                check(&lenient);
            }
            (Err(_), Err(_)) => {}
        }
    }
}

/// Checks that every rule has a statement, and every statement a line.
fn check(config: &Config) {
    assert_eq!(config.policy.len(), config.source_of_rule.len());
    for position in 0..config.policy.len() {
        let source = config.source(position);
        assert!(source.line > 0 && source.column > 0, "{source:?}");
    }
    check_written(config);
    for list in &config.lists {
        let only = config
            .clone()
            .with_only_list(list)
            .expect("a list of the file");
        assert!(only.policy.len() <= config.policy.len());
    }
}

/// Checks that what is written can be read, as rules for the same lists.
fn check_written(config: &Config) {
    let options = WriteOptions {
        lists: &config.lists,
        default_action: Some("deny"),
        statement_of_rule: Some(&config.source_of_rule),
        ..WriteOptions::default()
    };
    for format in ConfigFormat::ALL {
        let Ok(written) = write(&config.policy, format, &options) else {
            continue;
        };
        let again = read(
            "written",
            &written.text,
            format,
            &ReadOptions::DEFAULT,
            &mut Conditions::default(),
        );
        let again = again.unwrap_or_else(|error| panic!("{format}: {error}\n{}", written.text));
        let detected = ConfigFormat::detect(&written.text);
        assert_eq!(detected, Some(format), "{}", written.text);
        let is_one_list = config.lists.len() <= 1;
        assert!(
            is_one_list || again.lists.len() <= config.lists.len(),
            "{}",
            written.text
        );
    }
}
