//! The program's command line, for reports that show how to repeat a run.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

static WORDS: OnceLock<String> = OnceLock::new();

/// Stores the words of a command line, beginning with the program. Later calls have
/// no effect.
pub fn keep(words: &[OsString]) {
    WORDS.get_or_init(|| joined(words));
}

/// Returns the words quoted for a shell, the program without its folder.
pub fn text() -> &'static str {
    WORDS.get().map_or("", String::as_str)
}

fn joined(words: &[OsString]) -> String {
    let words = words.iter().enumerate().map(|(index, word)| {
        let name = Path::new(word).file_name().filter(|_| index == 0);
        quoted(&name.unwrap_or(word).to_string_lossy())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell if needed.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_a_shell_takes_them() {
        let words = [
            "/usr/bin/classyard",
            "bench",
            "-r",
            "my acl",
            "it's",
            "",
            "a:b=1,2",
        ];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        assert_eq!(
            joined(&words),
            r"classyard bench -r 'my acl' 'it'\''s' '' a:b=1,2"
        );
    }
}
