//! Text of a peer, made safe for a terminal or a log.

/// Maximum number of characters of a peer's text that are shown.
const MAX_SHOWN: usize = 1000;

/// The text with control characters and invisible direction marks escaped, and cut to a length that
/// fits a log.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MAX_SHOWN));
    for (at, char) in text.chars().enumerate() {
        if at == MAX_SHOWN {
            shown.push_str("...");
            break;
        }
        if is_harmless(char) { shown.push(char) } else { shown.extend(char.escape_default()) }
    }
    shown
}

/// Whether a character only shows itself.
fn is_harmless(char: char) -> bool {
    let directs = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !char.is_control() && !directs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_executed() {
        assert_eq!(printable("a\x1b]0;PWNED\x07\n"), "a\\u{1b}]0;PWNED\\u{7}\\n");
        assert_eq!(printable("\u{202e}gpj.exe"), "\\u{202e}gpj.exe");
        assert_eq!(printable("für 日本"), "für 日本");
        assert_eq!(printable(&"x".repeat(12_000)).len(), MAX_SHOWN + 3);
    }
}
