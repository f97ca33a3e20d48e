//! Profiles and families of generated rules, by name.

use std::path::Path;
use std::sync::Arc;

use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::generate::{Family, FlowTable, Hostile, Profile, SeedFile};
use classyard_workload::limits::FileLimit;

use super::{read_text, source_name};
use crate::failure::Failure;
use crate::reporter::Reporter;
use crate::suggestion::did_you_mean;

/// A family of headers that rules can be generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FamilyName {
    /// IPv4 five-tuples
    Ipv4,
    /// IPv6 five-tuples
    Ipv6,
    /// IPv4 and IPv6 five-tuples in one priority order
    Dual,
    /// The fifteen fields of OpenFlow; profiles of five-tuples do not apply
    #[value(name = "openflow15")]
    Openflow15,
}

impl FamilyName {
    /// Returns the name used on command lines.
    pub fn name(self) -> &'static str {
        match self {
            FamilyName::Ipv4 => "ipv4",
            FamilyName::Ipv6 => "ipv6",
            FamilyName::Dual => "dual",
            FamilyName::Openflow15 => "openflow15",
        }
    }

    /// Returns the family with a profile.
    pub fn with(self, profile: Arc<Profile>, ipv6_share: f64) -> Family {
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

/// The set of random values in all fields of OpenFlow.
pub const OPENFLOW15: &str = "openflow15";

/// A summary of [`OPENFLOW15`].
pub const OPENFLOW15_SUMMARY: &str =
    "OpenFlow: random values in all fifteen fields, as in [DEC14] Table III";

/// Returns the rule set over OpenFlow fields that has this name.
pub fn openflow_set(name: &str) -> Option<Family> {
    match name {
        OPENFLOW15 => Some(Family::OpenFlow15(Box::default())),
        name => FlowTable::named(name).map(Family::FlowTable),
    }
}

/// Returns the names of all profiles that apply to a family.
pub fn profiles_of(family: FamilyName) -> Vec<&'static str> {
    match family {
        FamilyName::Openflow15 => {
            let tables = FlowTable::ALL.map(FlowTable::name);
            std::iter::once(OPENFLOW15).chain(tables).collect()
        }
        _ => Profile::BUILT_IN.to_vec(),
    }
}

/// Returns the rule sets of a family, one for each profile name. Profiles over
/// OpenFlow fields ignore the family. Profiles of five-tuples do not apply to
/// `openflow15`, so that family has one set for all of them.
///
/// # Errors
/// [`Failure`] if a profile does not exist.
pub fn named_sets(family: FamilyName, profiles: &[&str]) -> Result<Vec<(String, Family)>, Failure> {
    let mut sets: Vec<(String, Family)> = Vec::new();
    for &name in profiles {
        let (name, made_from) = match openflow_set(name) {
            Some(set) => (name, set),
            None => match family.with(profile(name)?, 0.5) {
                set @ Family::OpenFlow15(_) => (OPENFLOW15, set),
                set => (name, set),
            },
        };
        if sets.iter().all(|(known, _)| known != name) {
            sets.push((name.to_owned(), made_from));
        }
    }
    Ok(sets)
}

/// Returns the built-in profile `name`, or the profile in the TOML file `name`.
pub fn profile(name: &str) -> Result<Arc<Profile>, Failure> {
    if let Some(profile) = Profile::built_in(name) {
        return Ok(Arc::new(profile.clone()));
    }
    let path = Path::new(name);
    if !path.exists() {
        if openflow_set(name).is_some() {
            return Err(Failure::usage(format!(
                "`{name}` has the fields of OpenFlow; expected a profile of five-tuples"
            ))
            .with_help(format!(
                "profiles of five-tuples are {}",
                Profile::BUILT_IN.join(", ")
            )));
        }
        let openflow = profiles_of(FamilyName::Openflow15);
        let hint = did_you_mean(name, Profile::BUILT_IN.into_iter().chain(openflow));
        return Err(Failure::usage(format!(
            "`{name}` is neither a built-in profile nor a file{hint}"
        ))
        .with_help(format!(
            "built-in profiles are {}",
            Profile::BUILT_IN.join(", ")
        )));
    }
    let text = read_text(path, FileLimit::PROFILE)?;
    let profile = Profile::from_toml(&source_name(path), &text)?;
    Ok(Arc::new(profile))
}

/// Reads the profile in a ClassBench parameter file.
pub fn seed_file(path: &Path, skip_bad: bool, reporter: Reporter) -> Result<Arc<Profile>, Failure> {
    let options = ReadOptions::default().with_skip_bad(skip_bad);
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

/// Parses the name of a hostile rule set, for the argument parser.
pub fn hostile(name: &str) -> Result<Hostile, String> {
    let names = || Hostile::ALL.into_iter().map(Hostile::name);
    Hostile::named(name).ok_or_else(|| {
        let hint = did_you_mean(name, names());
        let known: Vec<&str> = names().collect();
        format!(
            "unknown hostile rule set{hint}; expected {}",
            known.join(", ")
        )
    })
}

/// Returns the hostile rule sets with these names; `all` names all of them.
pub fn hostile_sets(names: &[String]) -> Result<Vec<Hostile>, Failure> {
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
