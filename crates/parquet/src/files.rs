//! The files that names, folders and patterns stand for.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use glob::MatchOptions;

use crate::error::LogError;

/// The maximum number of levels of folders.
const MAX_LEVELS: usize = 32;

/// Returns the files that names stand for: files, folders with all `*.parquet` files below them,
/// and patterns with `*`, `?`, `[...]` and `**`. Files of one name are in sorted order, and no
/// file is twice.
///
/// In folders, files and folders are left out whose names begin with `.` or `_`, such as
/// `_SUCCESS` and `_temporary`.
///
/// # Errors
/// [`LogError`] if a name or pattern stands for no file, or a folder cannot be read.
pub fn find_files(names: &[String]) -> Result<Vec<PathBuf>, LogError> {
    let mut files = Vec::new();
    for name in names {
        let path = Path::new(name);
        // A name with brackets can be the name of a file.
        if path.exists() || !name.contains(['*', '?', '[']) {
            add(path, &mut files)?;
            continue;
        }
        let mut matches = matches(name)?;
        matches.sort();
        for path in matches {
            add(&path, &mut files)?;
        }
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    Ok(files)
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>, LogError> {
    let options = MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..MatchOptions::new()
    };
    let paths = glob::glob_with(pattern, options).map_err(|error| LogError::BadPattern {
        pattern: pattern.to_owned(),
        error: error.to_string(),
    })?;
    let paths = paths.map(|path| {
        path.map_err(|error| {
            let file = error.path().to_owned();
            LogError::io(&file)(error.into())
        })
    });
    let paths = paths.collect::<Result<Vec<_>, _>>()?;
    match paths.is_empty() {
        true => Err(LogError::NoMatch {
            pattern: pattern.to_owned(),
        }),
        false => Ok(paths),
    }
}

/// Adds a file, or all files below a folder.
fn add(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), LogError> {
    let metadata = fs::metadata(path).map_err(LogError::io(path))?;
    if !metadata.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let count = files.len();
    add_folder(path, MAX_LEVELS, files)?;
    match files.len() > count {
        true => Ok(()),
        false => Err(LogError::NoFiles {
            folder: path.to_owned(),
        }),
    }
}

fn add_folder(folder: &Path, levels: usize, files: &mut Vec<PathBuf>) -> Result<(), LogError> {
    if levels == 0 {
        return Err(LogError::TooDeep {
            folder: folder.to_owned(),
            limit: MAX_LEVELS,
        });
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(LogError::io(folder))? {
        let path = entry.map_err(LogError::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !name.starts_with(b".") && !name.starts_with(b"_") {
            entries.push(path);
        }
    }
    entries.sort();
    for path in entries {
        let metadata = fs::metadata(&path).map_err(LogError::io(&path))?;
        if metadata.is_dir() {
            add_folder(&path, levels - 1, files)?;
        } else if path.as_os_str().as_encoded_bytes().ends_with(b".parquet") {
            files.push(path);
        }
    }
    Ok(())
}
