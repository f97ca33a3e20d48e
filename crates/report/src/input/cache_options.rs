//! Caches and lookups with options, as on the command line.
//!
//! ```text
//! spec = NAME { ":" OPTION "=" VALUE }        as for engines: fasttss:threshold=256ms:kicks=4
//! ```

use std::time::Duration;

use classyard_datapath::pipeline::{ActiveFlowSettings, TupleSettings};

use super::count;

/// The values of all options.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheOptions {
    pub(super) active: ActiveFlowSettings,
    pub(super) tuples: TupleSettings,
}

/// An option of caches or lookups.
pub(super) struct CacheOption {
    name: &'static str,
    /// The allowed values, for people.
    values: &'static str,
    default: &'static str,
    help: &'static str,
    /// Sets a value. The error begins with the reason and has no name of the option.
    set: fn(&mut CacheOptions, &str) -> Result<(), String>,
}

/// The options of caches of active flows.
pub(super) const ACTIVE: &[CacheOption] = &[
    CacheOption {
        name: "threshold",
        values: "auto, or a time such as 256ms or 1s",
        default: "auto",
        help: "a flow is active if a packet comes at most this time after the flow's previous \
               packet; auto adapts it, so that the active flows just fill the cache",
        set: |options, text| {
            let threshold = match text {
                "auto" => None,
                text => Some(time(text)?),
            };
            options.active = options.active.threshold(threshold);
            Ok(())
        },
    },
    CacheOption {
        name: "timeout",
        values: "a time such as 500ms or 10s",
        default: "10s",
        help: "flows that are idle for longer are removed",
        set: |options, text| {
            options.active = options.active.timeout(time(text)?);
            Ok(())
        },
    },
    CacheOption {
        name: "kicks",
        values: "0 to 32",
        default: "8",
        help: "the maximum number of flows that are moved to admit one",
        set: |options, text| {
            let kicks = options.active.kicks(count(text)?);
            options.active = kicks.map_err(|error| error.to_string())?;
            Ok(())
        },
    },
    CacheOption {
        name: "latest",
        values: "8 to 16777216",
        default: "four times --cache-flows",
        help: "the number of flows whose latest packets are recorded, 8 bytes each",
        set: |options, text| {
            let latest = options.active.latest(count(text)?);
            options.active = latest.map_err(|error| error.to_string())?;
            Ok(())
        },
    },
];

/// The options of tuples that are sorted at each packet.
pub(super) const TUPLES: &[CacheOption] = &[
    CacheOption {
        name: "lambda",
        values: "1.001 to 1000",
        default: "4",
        help: "a packet adds the buckets of its hash table per megaflow to the weight of the \
               table, at least 1/lambda and at most lambda",
        set: |options, text| {
            let lambda = text.parse().map_err(|_| "it is not a number".to_owned())?;
            let tuples = options.tuples.with_lambda(lambda);
            options.tuples = tuples.map_err(|error| error.to_string())?;
            Ok(())
        },
    },
    CacheOption {
        name: "normalise",
        values: "1 to 4294967295",
        default: "65536",
        help: "the number of packets after which all weights are divided by the largest",
        set: |options, text| {
            let references = u32::try_from(count(text)?)
                .ok()
                .filter(|&number| number > 0);
            let references = references.ok_or("it is out of range")?;
            options.tuples = options.tuples.with_normalise_every(references);
            Ok(())
        },
    },
];

/// Reads a time from 1 ms to a day.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<f64>().ok()?;
        Some(number * seconds)
    });
    match seconds {
        Some(seconds) if (0.001..=86_400.0).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err("it is not a time with a unit from 1ms to 1440m".to_owned()),
    }
}

/// Returns the name of a specification, and its options, which [`read`] reads.
pub(super) fn split(spec: &str) -> (&str, Option<&str>) {
    match spec.split_once(':') {
        Some((name, options)) => (name, Some(options)),
        None => (spec, None),
    }
}

/// Reads the options of `name`, which takes the options of some lists.
pub(super) fn read(
    name: &str,
    given: Option<&str>,
    lists: &[&'static [CacheOption]],
) -> Result<CacheOptions, String> {
    let mut options = CacheOptions::default();
    let mut read_names: Vec<&str> = Vec::new();
    let known = || lists.iter().copied().flatten();
    for text in given.into_iter().flat_map(|given| given.split(':')) {
        let Some((option, value)) = text.split_once('=') else {
            return Err(format!(
                "`{name}`: expected OPTION=VALUE after `:`, found `{text}`"
            ));
        };
        let Some(declared) = known().find(|known| known.name == option) else {
            let names: Vec<&str> = known().map(|known| known.name).collect();
            return Err(match names.is_empty() {
                true => format!("`{name}` has no options; found `{option}`"),
                false => format!(
                    "`{name}` has no option `{option}`; it has {}",
                    names.join(", ")
                ),
            });
        };
        if read_names.contains(&option) {
            return Err(format!("`{name}`: `{option}` is given twice; give it once"));
        }
        read_names.push(option);
        (declared.set)(&mut options, value).map_err(|reason| {
            let values = declared.values;
            format!("`{name}`: expected {values} for `{option}`, found `{value}`: {reason}")
        })?;
    }
    Ok(options)
}

/// Returns a line for each option, for help.
pub(super) fn help(lists: &[&[CacheOption]]) -> String {
    let options = lists.iter().copied().flatten();
    let lines = options.map(|option| {
        let CacheOption {
            name,
            values,
            default,
            help,
            ..
        } = option;
        format!("- {name}: {help} ({values}; default {default})")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&[CacheOption]] = &[ACTIVE, TUPLES];

    fn of(spec: &str) -> Result<CacheOptions, String> {
        let (name, given) = split(spec);
        read(name, given, ALL)
    }

    #[test]
    fn options_set_the_values() {
        let options = of("fasttss:threshold=256ms:timeout=1s:kicks=4:lambda=2.5:normalise=1k");
        let options = options.unwrap();
        let active = ActiveFlowSettings::default()
            .threshold(Some(Duration::from_millis(256)))
            .timeout(Duration::from_secs(1));
        assert_eq!(options.active, active.kicks(4).unwrap());
        let tuples = TupleSettings::default().with_normalise_every(1_000);
        assert_eq!(options.tuples, tuples.with_lambda(2.5).unwrap());
        let options = of("wef:threshold=auto:latest=1M").unwrap();
        let latest = ActiveFlowSettings::default().latest(1_000_000);
        assert_eq!(options.active, latest.unwrap());
        assert_eq!(options.tuples, of("fasttss").unwrap().tuples);
    }

    #[test]
    fn bad_options_are_errors() {
        for (spec, reason) in [
            ("fasttss:", "expected OPTION=VALUE after `:`, found ``"),
            ("fasttss:kicks", "expected OPTION=VALUE"),
            ("fasttss:kick=4", "has no option `kick`; it has threshold,"),
            ("fasttss:kicks=4:kicks=4", "`kicks` is given twice"),
            (
                "fasttss:kicks=33",
                "expected 0 to 32 for `kicks`, found `33`",
            ),
            ("fasttss:kicks=few", "`few` is not a count"),
            ("fasttss:latest=1", "expected 8 to 16777216 for `latest`"),
            ("fasttss:threshold=256", "not a time with a unit"),
            ("fasttss:threshold=0ms", "from 1ms to 1440m"),
            ("fasttss:timeout=auto", "found `auto`"),
            ("fasttss:lambda=1", "expected a number from 1.001 to 1000"),
            ("fasttss:lambda=nan", "expected 1.001 to 1000 for `lambda`"),
            ("fasttss:lambda=four", "not a number"),
            ("fasttss:normalise=0", "out of range"),
            ("fasttss:normalise=5000M", "out of range"),
        ] {
            let error = of(spec).unwrap_err();
            assert!(error.contains(reason), "{spec}: {error}");
        }
        let error = read("emc", Some("kicks=4"), &[]).unwrap_err();
        assert_eq!(error, "`emc` has no options; found `kicks`");
    }

    /// The values and defaults that help shows are right.
    #[test]
    fn help_is_true() {
        let help = help(ALL);
        for option in ALL.iter().copied().flatten() {
            assert!(help.contains(&format!("- {}: ", option.name)));
            let (mut by_default, mut given) = (CacheOptions::default(), CacheOptions::default());
            if let Some((min, max)) = option.values.split_once(" to ") {
                for bound in [min, max] {
                    (option.set)(&mut given, bound).unwrap();
                }
            }
            (option.set)(&mut by_default, "x").unwrap_err();
        }
        for (default, options) in [("timeout=10s", ACTIVE), ("kicks=8", ACTIVE)] {
            let (name, value) = default.split_once('=').unwrap();
            let option = options.iter().find(|option| option.name == name).unwrap();
            assert_eq!(option.default, value);
        }
        let defaults = of("fasttss:lambda=4:normalise=65536").unwrap();
        assert_eq!(defaults.tuples, TupleSettings::default());
    }
}
