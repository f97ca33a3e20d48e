//! Known words and files that are similar to a mistyped one.

use std::fs;
use std::path::Path;

/// Returns the word of a list that is most similar to `word`, if any is similar
/// enough.
fn similar<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = words
        .into_iter()
        .map(|known| (strsim::jaro_winkler(word, known), known));
    let (score, best) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.8).then_some(best)
}

/// Returns the file in the same folder whose name is most similar to a missing
/// file's.
pub(crate) fn similar_file(missing: &str) -> Option<String> {
    let missing = Path::new(missing);
    let folder = match missing.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return None,
    };
    let names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let missing_name = missing.file_name()?.to_str()?;
    let similar_name = similar(missing_name, names.iter().map(String::as_str))?;
    Some(missing.with_file_name(similar_name).display().to_string())
}

/// Returns `; did you mean …?`, or an empty text.
pub fn did_you_mean<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    match similar(word, words) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}
