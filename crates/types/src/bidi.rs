//! Characters that change the order in which text is shown.

/// Whether this is one of Unicode's controls of bidirectional text (its property `Bidi_Control`). They are invisible, and
/// with them a name can look like another one.
pub const fn is_bidi_control(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::is_bidi_control;

    #[test]
    fn only_controls_are_controls() {
        assert!(['\u{61c}', '\u{200f}', '\u{202e}', '\u{2069}'].into_iter().all(is_bidi_control));
        // Joiners belong to the spelling of words, and letters of all directions are letters.
        assert!(!['a', '\u{5d0}', '\u{200d}', '\u{2065}', '\u{206a}'].into_iter().any(is_bidi_control));
    }
}
