//! Texts of files, safe to show on a page.

use std::fmt::Write as _;

/// The maximum number of characters of one text on a page.
const MAX_TEXT_CHARS: usize = 1_000;

/// Returns a text for the content or a quoted attribute of an element. Control characters and
/// characters that change the direction of text or have no width become visible: `\u{202e}`. Of
/// a long text, only the start is shown, with the number of characters left out.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars();
    for character in characters.by_ref().take(MAX_TEXT_CHARS) {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(' '),
            character if is_hidden(character) => {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
            }
            character => escaped.push(character),
        }
    }
    match characters.count() {
        0 => {}
        count => {
            let _ = write!(escaped, "… <i>({count} more characters)</i>");
        }
    }
    escaped
}

/// True for characters that are not visible themselves but may change what a reader sees.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_become_elements() {
        assert_eq!(
            escaped("<script>a('b') && \"c\"\n</script>"),
            "&lt;script&gt;a(&#39;b&#39;) &amp;&amp; &quot;c&quot; &lt;/script&gt;"
        );
    }

    #[test]
    fn hidden_characters_are_visible() {
        assert_eq!(escaped("a\u{202e}b\u{7}"), "a\\u{202e}b\\u{7}");
    }

    #[test]
    fn long_texts_are_cut() {
        let text = "<".repeat(MAX_TEXT_CHARS + 7);
        let expected = "&lt;".repeat(MAX_TEXT_CHARS) + "… <i>(7 more characters)</i>";
        assert_eq!(escaped(&text), expected);
    }
}
