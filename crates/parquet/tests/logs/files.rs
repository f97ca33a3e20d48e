//! Names, folders and patterns.

use std::fs;

use classyard_parquet::{LogError, find_files};

use crate::Folder;

fn found(folder: &Folder, name: &str) -> Result<Vec<String>, LogError> {
    let name = folder.path(name).to_str().unwrap().to_owned();
    let files = find_files(&[name])?;
    let inside = |path: &std::path::PathBuf| {
        let inside = path.strip_prefix(&folder.0).unwrap();
        inside.to_str().unwrap().to_owned()
    };
    Ok(files.iter().map(inside).collect())
}

#[test]
fn folders_and_patterns_stand_for_sorted_files() {
    let folder = Folder::new();
    for name in [
        "year=2026/month=02/b.parquet",
        "year=2026/month=01/a.parquet",
        "year=2026/month=01/_temporary/x.parquet",
        "year=2026/month=01/.hidden.parquet",
        "year=2026/month=01/_SUCCESS",
        "year=2026/notes.txt",
        "c[1].parquet",
        "z.parquet",
    ] {
        let path = folder.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let both = [
        "year=2026/month=01/a.parquet",
        "year=2026/month=02/b.parquet",
    ];
    assert_eq!(found(&folder, "year=2026").unwrap(), both);
    assert_eq!(found(&folder, "year=*").unwrap(), both);
    assert_eq!(
        found(&folder, "year=2026/month=0[12]/*.parquet").unwrap(),
        both
    );
    let any_depth = [both[0], both[1], "z.parquet"];
    assert_eq!(found(&folder, "**/[a-bz].parquet").unwrap(), any_depth);
    assert_eq!(found(&folder, "c[1].parquet").unwrap(), ["c[1].parquet"]);
    // A file is in the list once.
    let z = folder.path("z.parquet").to_str().unwrap().to_owned();
    assert_eq!(find_files(&[z.clone(), z]).unwrap().len(), 1);
}

#[test]
fn a_name_without_files_is_an_error() {
    let folder = Folder::new();
    fs::create_dir(folder.path("empty")).unwrap();
    let message = |name| found(&folder, name).unwrap_err().to_string();
    assert!(message("*.parquet").starts_with("no file matches `"));
    assert!(message("empty").contains("ends with .parquet"));
    assert!(message("missing.parquet").contains("missing.parquet: No such file"));
    assert!(message("a**b").contains("is not a pattern of file names: "));
}
