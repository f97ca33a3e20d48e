//! Profiles and families of generated rules, by name.

use std::path::Path;
use std::sync::Arc;

use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::generate::{Family, Hostile, Profile, SeedFile};
use classyard_workload::limits::FileLimit;

use super::{did_you_mean, read_text, source_name};
use crate::failure::Failure;
use crate::reporter::Reporter;

/// A family of headers that rules can be generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FamilyName {
    /// IPv4 five-tuples
    Ipv4,
    /// IPv6 five-tuples
    Ipv6,
    /// Both in one priority order
    Dual,
    /// The fifteen fields of OpenFlow; profiles do not apply
    #[value(name = "openflow15")]
    Openflow15,
}

impl FamilyName {
    /// The name on command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FamilyName::Ipv4 => "ipv4",
            FamilyName::Ipv6 => "ipv6",
            FamilyName::Dual => "dual",
            FamilyName::Openflow15 => "openflow15",
        }
    }

    /// The family with a profile.
    pub(crate) fn with(self, profile: Arc<Profile>, ipv6_share: f64) -> Family {
        match self {
            FamilyName::Ipv4 => Family::Ipv4(profile),
            FamilyName::Ipv6 => Family::Ipv6(profile),
            FamilyName::Dual => Family::Dual {
                profile,
                ipv6_share,
            },
            FamilyName::Openflow15 => Family::OpenFlow15(Box::default()),
        }
    }
}

/// The rule sets of a family, by name: one for each profile, but one alone for
/// headers that profiles say nothing about.
///
/// # Errors
/// [`Failure`] when there is no such profile.
pub(crate) fn named_sets(
    family: FamilyName,
    profiles: &[&str],
) -> Result<Vec<(String, Family)>, Failure> {
    let sets = profiles.iter().map(|&name| {
        let made_from = family.with(profile(name)?, 0.5);
        Ok((name.to_owned(), made_from))
    });
    let mut sets: Vec<(String, Family)> = sets.collect::<Result<_, Failure>>()?;
    if family == FamilyName::Openflow15 {
        sets.truncate(1);
        if let Some((name, _)) = sets.first_mut() {
            family.name().clone_into(name);
        }
    }
    Ok(sets)
}

/// The built-in profile of that name, or the one in that TOML file.
pub(crate) fn profile(name: &str) -> Result<Arc<Profile>, Failure> {
    if let Some(profile) = Profile::built_in(name) {
        return Ok(Arc::new(profile.clone()));
    }
    let path = Path::new(name);
    if !path.exists() {
        let hint = did_you_mean(name, Profile::BUILT_IN);
        return Err(Failure::usage(format!(
            "`{name}` is neither a built-in profile nor a file{hint}"
        ))
        .with_help(format!("built in are {}", Profile::BUILT_IN.join(", "))));
    }
    let text = read_text(path, FileLimit::PROFILE)?;
    let profile = Profile::from_toml(&source_name(path), &text)?;
    Ok(Arc::new(profile))
}

/// The profile that a ClassBench parameter file describes.
pub(crate) fn seed_file(
    path: &Path,
    skip_bad: bool,
    reporter: Reporter,
) -> Result<Arc<Profile>, Failure> {
    let options = ReadOptions {
        skip_bad,
        ..ReadOptions::default()
    };
    let text = read_text(path, FileLimit::SEED_FILE)?;
    let loaded = SeedFile::parse(&source_name(path), &text, &options)?;
    reporter.skipped(&loaded.skipped);
    let name = path.file_stem().map_or_else(String::new, |stem| {
        let stem = stem.to_string_lossy();
        stem.strip_suffix("_seed").unwrap_or(&stem).to_owned()
    });
    let profile = Profile::from_seed_file(&name, &loaded.value)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Ok(Arc::new(profile))
}

/// Reads the name of a hostile rule set, for the argument parser.
pub(crate) fn hostile(name: &str) -> Result<Hostile, String> {
    let names = || Hostile::ALL.into_iter().map(Hostile::name);
    Hostile::named(name).ok_or_else(|| {
        let hint = did_you_mean(name, names());
        let known: Vec<&str> = names().collect();
        format!(
            "there is no such hostile rule set{hint}; there are {}",
            known.join(", ")
        )
    })
}

/// The hostile rule sets of these names; `all` for all of them.
pub(crate) fn hostile_sets(names: &[String]) -> Result<Vec<Hostile>, Failure> {
    let mut sets = Vec::new();
    for name in names {
        if name == "all" {
            sets.extend(Hostile::ALL);
        } else {
            let set =
                hostile(name).map_err(|error| Failure::usage(format!("`{name}`: {error}")))?;
            sets.push(set);
        }
    }
    let mut seen = Vec::new();
    sets.retain(|set| {
        let new = !seen.contains(set);
        seen.push(*set);
        new
    });
    Ok(sets)
}
