//! NFKC, of the stretches that need it.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The text in NFKC: itself where it is so already, otherwise written to `normal`.
///
/// An ASCII character stays as it is and composes with nothing before it, so a text can be cut in front of each, and
/// the pieces normalised one by one. Only what is not ASCII, with the character before it, is looked at, and copied
/// through the normaliser only if a look does not tell that it is in order.
pub(super) fn nfkc<'a>(text: &'a str, normal: &'a mut String) -> &'a str {
    let bytes = text.as_bytes();
    normal.clear();
    // What `normal` has, and how far was looked.
    let (mut copied, mut at) = (0, 0);
    while let Some(beyond) = bytes[at..].iter().position(|byte| !byte.is_ascii()) {
        let start = (at + beyond).saturating_sub(1).max(at);
        let run = bytes[at + beyond..].iter().position(u8::is_ascii);
        let end = run.map_or(bytes.len(), |run| at + beyond + run);
        let piece = &text[start..end];
        if is_nfkc_quick(piece.chars()) != IsNormalized::Yes {
            normal.push_str(&text[copied..start]);
            normal.extend(piece.nfkc());
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return text;
    }
    normal.push_str(&text[copied..]);
    normal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is worth mixing: ASCII, marks, what composes and decomposes, Hangul, compatibility characters.
    const LETTERS: [char; 24] = [
        'a', 'e', ' ', '\n', 'é', '\u{301}', '\u{323}', '\u{308}', '\u{345}', 'ﬁ', 'Ａ', '２', 'ｶ',
        '\u{ff9e}', '\u{1100}', '\u{1161}', '\u{11a8}', '가', '\u{212b}', '…', '東', '\u{a0}', '\u{1e9b}',
        '😀',
    ];

    proptest! {
        #[test]
        fn normalising_in_pieces_is_normalising(
            letters in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..24),
        ) {
            let text: String = letters.into_iter().collect();
            let whole: String = text.nfkc().collect();
            let mut normal = "left over".to_owned();
            prop_assert_eq!(nfkc(&text, &mut normal), whole);
        }

        #[test]
        fn normalising_any_text_in_pieces_is_normalising(text in any::<String>()) {
            let whole: String = text.nfkc().collect();
            let mut normal = String::new();
            prop_assert_eq!(nfkc(&text, &mut normal), whole);
        }
    }

    #[test]
    fn text_in_order_is_not_copied() {
        for text in ["", "plain ASCII", "Élève «déjà» 東京 — naïve 가나"] {
            let mut normal = String::new();
            assert_eq!(nfkc(text, &mut normal).as_ptr(), text.as_ptr(), "{text}");
            assert_eq!(normal.capacity(), 0);
        }
    }
}
