//! Values that nobody may read in what is shown: they are found in a text by value, in the forms that they come to have on
//! their way into messages, and replaced (C-41).
//!
//! A value is looked for as it is, line by line, and in base64 of both alphabets at each of the three places where it can begin
//! in a longer text; all of them also in the text as it was before it was escaped, as in JSON or in a URL (C-83). Long values
//! are looked for in pieces as well, so that a text that was cut in the middle of one shows no more than a piece.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, Encoding};
use serde_json::{Map, Value};

mod form_index;
mod unescaped;

use form_index::FormIndex;

/// The least bytes of a value that is masked: shorter ones stand in every text by chance.
pub const SHORTEST_MASKED: usize = 8;

/// The least bytes of one line of a value of several lines, and of the pieces of a long one: lines of configurations are
/// often nothing but structure.
pub const SHORTEST_MASKED_LINE: usize = 16;

/// Bytes of the pieces that long values are looked for in.
const PIECE: usize = 48;

/// The most bytes of a value that is looked for whole, beside its lines and pieces.
const LONGEST_WHOLE: usize = 4 << 10;

/// The letters of base64 that belong to two pieces.
const MOST_BETWEEN_PIECES: usize = 4;

/// The most bytes of all values together. Of a text that could hold values beyond that nothing is shown.
pub const MOST_MASKED_BYTES: usize = 256 << 10;

/// What stands in the place of a value.
pub const MASK: &str = "[masked]";

/// What stands in the place of a whole text, where there is more to mask than can be looked for.
const WITHHELD: &str = "[masked: more was read of Secrets for this namespace than can be looked for in a message (256 KiB); use \
                        fewer or smaller ones in it, or another namespace for what fails. The reason and the codes beside it are \
                        shown]";

/// Finds values in texts.
#[derive(Clone, Debug, Default)]
pub struct Masker(Forms);

#[derive(Clone, Debug, Default)]
enum Forms {
    /// Nothing is to be masked.
    #[default]
    Nothing,
    /// These are.
    Found(Box<FormIndex>),
    /// More than can be looked for.
    Everything,
}

impl Masker {
    /// Of these values. Those below [`SHORTEST_MASKED`] do not count.
    pub fn of<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let values: BTreeSet<&str> = values.into_iter().map(str::trim).filter(|value| is_masked(value)).collect();
        if values.iter().map(|value| value.len()).sum::<usize>() > MOST_MASKED_BYTES {
            return Self(Forms::Everything);
        }
        Self::finding(&values)
    }

    /// Of more values than can be looked for: every text is withheld.
    pub fn of_too_many() -> Self {
        Self(Forms::Everything)
    }

    /// Of as many of these values as can be looked for, short ones first. For texts that hold none of them but by mistake:
    /// whoever has many values shall not blind those who read about others.
    pub fn of_as_many_as_can_be<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        Self::finding(&fitting(values, MOST_MASKED_BYTES))
    }

    fn finding(values: &BTreeSet<&str>) -> Self {
        let mut forms = BTreeSet::new();
        values.iter().for_each(|value| collect(value, &mut forms));
        Self(if forms.is_empty() { Forms::Nothing } else { Forms::Found(Box::new(FormIndex::of(&forms))) })
    }

    /// The text with [`MASK`] in the place of each value.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.0 {
            Forms::Everything if !text.is_empty() => Cow::Borrowed(WITHHELD),
            Forms::Nothing | Forms::Found(_) | Forms::Everything => self.replace(text, |_| MASK.to_owned()),
        }
    }

    /// The text with what `token` makes of each value, as it stands there, in its place. Where there are more values than can be
    /// looked for, the whole text counts as one.
    pub fn replace<'t>(&self, text: &'t str, token: impl Fn(&str) -> String) -> Cow<'t, str> {
        let places = match &self.0 {
            Forms::Nothing => Vec::new(),
            Forms::Everything if text.is_empty() => Vec::new(),
            Forms::Everything => return Cow::Owned(token(text)),
            Forms::Found(forms) => found_in(forms, text),
        };
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
        for place in places {
            masked.push_str(text.get(end..place.start).unwrap_or_default());
            masked.push_str(&token(text.get(place.clone()).unwrap_or_default()));
            end = place.end;
        }
        masked.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// Masks the texts within a value, also numbers and the names of members. Members whose names are then the same are
    /// numbered.
    pub fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask(text).into_owned(),
            Value::Number(number) => {
                if let Cow::Owned(masked) = self.mask(&number.to_string()) {
                    *value = Value::String(masked);
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.mask_value(element)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.mask_value(member));
                if members.keys().any(|name| self.finds(name)) {
                    *members = self.with_masked_names(std::mem::take(members));
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn with_masked_names(&self, members: Map<String, Value>) -> Map<String, Value> {
        let (masked, plain): (Vec<_>, Vec<_>) = members.into_iter().partition(|(name, _)| self.finds(name));
        let mut members: Map<String, Value> = plain.into_iter().collect();
        for (number, (name, member)) in masked.into_iter().enumerate() {
            let name = self.mask(&name).into_owned();
            let name = if members.contains_key(&name) { format!("{name} {number}") } else { name };
            members.insert(name, member);
        }
        members
    }

    /// Whether there are more values than can be looked for, so that every text is withheld.
    pub fn withholds(&self) -> bool {
        matches!(self.0, Forms::Everything)
    }

    /// Whether a value stands in the text.
    pub fn finds(&self, text: &str) -> bool {
        match &self.0 {
            Forms::Nothing => false,
            Forms::Found(forms) => {
                let is_in = |bytes: &[u8]| forms.places_in(bytes).next().is_some();
                is_in(text.as_bytes()) || unescaped::seen_in(text, |unescaped| is_in(unescaped.bytes()))
            }
            Forms::Everything => true,
        }
    }
}

/// Where values stand in a text, in order. What touches or overlaps is one place, as pieces of one value do, and so is what
/// nothing but a few letters of base64 part, which belong to two pieces.
fn found_in(forms: &FormIndex, text: &str) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = forms.places_in(text.as_bytes()).collect();
    unescaped::seen_in(text, |unescaped| {
        places.extend(forms.places_in(unescaped.bytes()).map(|found| unescaped.place(found)));
        false
    });
    places.sort_by_key(|place| place.start);
    let is_of_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    places.dedup_by(|next, place| {
        let between = text.as_bytes().get(place.end..next.start).unwrap_or_default();
        let is_one = between.len() <= MOST_BETWEEN_PIECES && between.iter().all(is_of_base64);
        if is_one {
            place.end = place.end.max(next.end);
        }
        is_one
    });
    places
}

/// The values that so many bytes hold, short ones first.
fn fitting<'v>(values: impl IntoIterator<Item = &'v str>, most: usize) -> BTreeSet<&'v str> {
    let values: BTreeSet<&str> = values.into_iter().map(str::trim).filter(|value| is_masked(value)).collect();
    let mut values: Vec<&str> = values.into_iter().collect();
    values.sort_by_key(|value| value.len());
    let mut bytes = 0;
    let fits = |value: &&str| {
        bytes += value.len();
        bytes <= most
    };
    values.into_iter().take_while(fits).collect()
}

/// Whether a value is long enough to be masked.
fn is_masked(value: &str) -> bool {
    value.len() >= SHORTEST_MASKED
}

/// The texts of a value that are to be masked: of a structure those in it, and the text itself.
pub fn secret_texts(content: &str) -> Vec<String> {
    let mut texts = vec![content.to_owned()];
    if let Ok(value) = crate::yaml::decode(content)
        && (value.is_object() || value.is_array())
    {
        leaves(&value, &mut texts);
    }
    texts
}

/// The least bytes of the name of a member that is masked: shorter ones are words.
const SHORTEST_MASKED_NAME: usize = 16;

/// Whether the name of a member may be a value itself, as in a table of tokens: no words are that long and have digits or other
/// signs in them (C-83).
fn is_masked_name(name: &str) -> bool {
    let is_of_words = |letter: char| letter.is_ascii_alphabetic() || "-._/ ".contains(letter);
    name.len() >= SHORTEST_MASKED_NAME && !name.chars().all(is_of_words)
}

/// The texts within a value, and the names of members that may be some.
pub fn leaves(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(elements) => elements.iter().for_each(|element| leaves(element, texts)),
        Value::Object(members) => {
            texts.extend(members.keys().filter(|name| is_masked_name(name)).cloned());
            members.values().for_each(|member| leaves(member, texts));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Collects the forms of a value.
fn collect(value: &str, forms: &mut BTreeSet<String>) {
    if value.len() <= LONGEST_WHOLE {
        encoded(value, forms);
    }
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_MASKED_LINE);
    if value.contains('\n') {
        lines.clone().for_each(|line| encoded(line, forms));
    }
    lines.filter(|line| line.len() > PIECE).flat_map(pieces).for_each(|piece| encoded(piece, forms));
}

/// A line in pieces of [`PIECE`] bytes, cut between letters; the last one is longer where the rest would be too short to be
/// looked for.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let is_last = rest.len() < PIECE + SHORTEST_MASKED_LINE;
        let (piece, after) = rest.split_at(if is_last { rest.len() } else { rest.floor_char_boundary(PIECE) });
        rest = after;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

/// One text as it is and in base64, there also quoted as in JSON, as in an encoded document.
fn encoded(text: &str, forms: &mut BTreeSet<String>) {
    forms.insert(text.to_owned());
    let quoted = Value::String(text.to_owned()).to_string();
    let quoted = quoted.get(1..quoted.len() - 1).unwrap_or(text);
    for alphabet in [BASE64_NOPAD, BASE64URL_NOPAD] {
        for text in [text, quoted] {
            forms.extend((0..3).filter_map(|before| base64_within(&alphabet, text, before)));
        }
    }
}

/// The characters of base64 that a text alone decides where so many bytes stand before it in its group of three.
fn base64_within(alphabet: &Encoding, text: &str, before: usize) -> Option<String> {
    let bytes = [vec![0; before], text.as_bytes().to_vec()].concat();
    let encoded = alphabet.encode(&bytes);
    // The first characters are of what stands before as well, and the last one of what follows.
    let begin = [0, 2, 3].get(before)?;
    let end = bytes.len() * 8 / 6;
    encoded.get(*begin..end).filter(|form| form.len() >= SHORTEST_MASKED).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VALUE: &str = "s3cr3t/valu+ \"é\" of mine";

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Masker::of([VALUE]).mask(text), expected, "{text}");
    }

    #[test]
    fn c_41_a_value_is_masked_in_every_form_that_it_comes_in() {
        check("plain", "plain");
        check(&format!("it is {VALUE}."), "it is [masked].");
        check(&format!("as JSON {}", Value::String(VALUE.to_owned())), "as JSON \"[masked]\"");
        let twice = Value::String(Value::String(VALUE.to_owned()).to_string()).to_string();
        assert!(!Masker::of([VALUE]).mask(&twice).contains("s3cr3t"), "{twice}");
        check(&format!("as Rust {VALUE:?}"), "as Rust \"[masked]\"");
        check("?q=s3cr3t%2Fvalu%2B%20%22%C3%A9%22%20of%20mine&b", "?q=[masked]&b");
        check("?q=s3cr3t%2fvalu%2b+%22%c3%a9%22+of+mine&b", "?q=[masked]&b");
        for before in ["", "a", "ab", "abc"] {
            for alphabet in [BASE64_NOPAD, BASE64URL_NOPAD] {
                let encoded = alphabet.encode(format!("{before}{VALUE}{before}").as_bytes());
                let masked = Masker::of([VALUE]).mask(&encoded).into_owned();
                assert!(masked.contains(MASK) && masked.len() <= MASK.len() + 12, "{before:?}: {encoded} is {masked}");
            }
        }
    }

    #[test]
    fn c_41_each_line_of_a_value_is_masked_and_pieces_of_a_long_one() {
        let long: String = (0..40).map(|number| format!("{number:03}x")).collect();
        let key = format!("-----BEGIN KEY-----\n{long}\nshort\n");
        let masker = Masker::of([key.as_str()]);
        assert_eq!(masker.mask(&format!("a {long} b, short")), "a [masked] b, short");
        assert_eq!(masker.mask("-----BEGIN KEY----- c"), "[masked] c");
        // A text that was cut in the middle shows less than a piece.
        let cut = format!("it is {}", long.get(..100).unwrap());
        assert_eq!(masker.mask(&cut), format!("it is [masked]{}", long.get(96..100).unwrap()));
    }

    #[test]
    fn limits_masking_a_value_that_is_too_long_to_be_looked_for_whole_is_found_by_its_pieces() {
        for length in [LONGEST_WHOLE + 1, LONGEST_WHOLE + PIECE + 5, 3 * LONGEST_WHOLE] {
            let long: String = (0..)
                .flat_map(|number: usize| format!("{number:x}.").into_bytes())
                .take(length)
                .map(char::from)
                .collect();
            let masker = Masker::of([long.as_str()]);
            assert_eq!(masker.mask(&format!("it is {long}.")), "it is [masked].", "{length}");
            for before in ["", "a", "ab"] {
                let encoded = BASE64_NOPAD.encode(format!("{before}{long}").as_bytes());
                let masked = masker.mask(&encoded).into_owned();
                assert!(masked.contains(MASK) && masked.len() <= MASK.len() + 8, "{before:?}: {masked}");
            }
        }
    }

    #[test]
    fn c_51_letters_of_several_bytes_hide_no_piece() {
        // Each piece of 48 bytes would end within a letter.
        let long = format!("x{}", "\u{e9}\u{20ac}\u{1f600}".repeat(40));
        let masker = Masker::of([long.as_str()]);
        for letters in 48..=100 {
            let cut: String = long.chars().take(letters).collect();
            let masked = masker.mask(&cut).into_owned();
            let left = masked.strip_prefix(MASK).unwrap_or_else(|| panic!("{letters}: {masked}"));
            assert!(left.len() < PIECE && !left.contains(MASK), "{letters}: {masked}");
            let base64 = BASE64_NOPAD.encode(cut.as_bytes());
            assert!(masker.mask(&base64).len() < base64.len() / 2 + 2 * PIECE, "{letters}: {}", masker.mask(&base64));
        }
    }

    #[test]
    fn c_52_of_too_many_values_those_that_fit_are_looked_for() {
        let values = ["twelve bytes", " 12345678 ", "short", "12345678", "nine byte"];
        let fits = |most: usize| fitting(values, most).into_iter().collect::<Vec<_>>();
        assert_eq!(fits(7), [""; 0]);
        assert_eq!(fits(16), ["12345678"]);
        assert_eq!(fits(17), ["12345678", "nine byte"]);
        assert_eq!(fits(29), ["12345678", "nine byte", "twelve bytes"]);
        let more = "y".repeat(MOST_MASKED_BYTES);
        let masker = Masker::of_as_many_as_can_be([more.as_str(), "12345678"]);
        assert_eq!((masker.mask("is 12345678, yy"), masker.withholds()), ("is [masked], yy".into(), false));
    }

    #[test]
    fn limits_masking_what_is_short_stays_and_what_is_too_much_is_withheld() {
        assert_eq!(Masker::of(["1234567", "", "true"]).mask("1234567 true"), "1234567 true");
        assert_eq!(Masker::of([" 12345678\n"]).mask("x12345678x"), "x[masked]x");
        let most = "x".repeat(MOST_MASKED_BYTES + 1);
        let masker = Masker::of([most.as_str()]);
        assert_eq!(
            (masker.mask("anything"), masker.mask(""), masker.finds("anything")),
            (WITHHELD.into(), "".into(), true)
        );
        assert!(!Masker::default().finds("anything"));
    }

    #[test]
    fn c_41_the_texts_within_a_value_are_masked() {
        let mut value = json!({"a": [VALUE, 1, {"b": format!("x{VALUE}")}], "c": null});
        Masker::of([VALUE]).mask_value(&mut value);
        assert_eq!(value, json!({"a": [MASK, 1, {"b": format!("x{MASK}")}], "c": null}));
    }

    #[test]
    fn c_83_numbers_and_the_names_of_members_are_masked() {
        let mut value = json!({"12345678": {"password": 1}, "pin": 12_345_678, "more": [-12_345_678, 1234], "x12345678": 2,
            "y12345678": true, "[masked]": 3});
        Masker::of(["12345678", "true"]).mask_value(&mut value);
        let expected = json!({"[masked] 0": {"password": 1}, "pin": MASK, "more": ["-[masked]", 1234], "x[masked]": 2,
            "y[masked]": true, "[masked]": 3});
        assert_eq!(value, expected);
        let mut field = json!({"password": "other", "passwords": ["password"]});
        Masker::of(["password"]).mask_value(&mut field);
        assert_eq!(field, json!({"[masked]": "other", "[masked]s": [MASK]}));
    }

    #[test]
    fn c_83_a_value_is_found_before_whatever_escapes_it_came_through() {
        const PASSWORD: &str = "p@ss!'w<o>r&d\\\"$1";
        let base64 = BASE64_NOPAD.encode(json!({"k": PASSWORD}).to_string().as_bytes());
        for text in [
            // Go: JSON for HTML, %q, a user of a URL, a segment of a path, a query, a template for HTML.
            r#"p@ss!'w\u003co\u003er\u0026d\\\"$1"#,
            r#"p@ss!\x27w<o>r&d\\\"$1"#,
            "p%40ss%21%27w%3Co%3Er&d%5C%22$1",
            "p@ss%21%27w%3Co%3Er&d%5c%22$1",
            "p%40ss%21%27w%3Co%3Er%26d%5C%22%241",
            "p@ss!&#39;w&lt;o&gt;r&amp;d\\&#34;$1",
            // JavaScript: encodeURIComponent, encodeURI. YAML in single quotes.
            "p%40ss!'w%3Co%3Er%26d%5C%22%241",
            "p@ss!'w%3Co%3Er&d%5C%22$1",
            "p@ss!''w<o>r&d\\\"$1",
            // A URL within JSON within JSON.
            r#"\\u0070%40ss!'w%3Co%3Er%26d%5C%22%241"#,
        ] {
            assert_eq!(Masker::of([PASSWORD]).mask(&format!("a {text} b")), "a [masked] b", "{text}");
        }
        assert!(Masker::of([PASSWORD]).finds(&base64), "{base64}");
    }

    #[test]
    fn c_41_of_a_structure_the_texts_in_it_are_masked() {
        assert_eq!(secret_texts("a text"), ["a text"]);
        let tokens = r#"{"tokens": {"4fz3k0q8x1m7p2ab": true, "4fz3k0q8x1m7p2a": true, "certificate-authority-data": true, "abcdefghijklmno_+": 1}}"#;
        assert_eq!(secret_texts(tokens), [tokens, "4fz3k0q8x1m7p2ab", "abcdefghijklmno_+", "1"]);
        let content = "user: admin\npasswords: [one, 23]\n";
        assert_eq!(secret_texts(content), [content, "one", "23", "admin"]);
    }

    proptest::proptest! {
        #[test]
        fn c_41_no_value_is_left_in_any_text(value in "[ -~]{8,40}", around in "[a-z \n]{0,20}") {
            let value = value.trim();
            proptest::prop_assume!(value.len() >= SHORTEST_MASKED && !MASK.contains(value));
            let masker = Masker::of([value]);
            let masked = masker.mask(&format!("{around}{value}{around}{value}")).into_owned();
            proptest::prop_assert!(!masked.contains(value) && masker.finds(value), "{masked}");
        }

        #[test]
        fn c_83_no_value_is_left_in_any_escaped_text(value in "[ -~é\n]{8,40}", sorts in "[jdpux]{1,2}") {
            let value = value.trim();
            proptest::prop_assume!(value.len() >= SHORTEST_MASKED && !MASK.contains(value));
            let escaped = sorts.chars().fold(value.to_owned(), |text, sort| match sort {
                'j' => json!(text).to_string(),
                'd' => format!("{text:?}"),
                'u' => text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
                'x' => text.bytes().map(|byte| format!("%{byte:02x}")).collect(),
                _ => text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect(),
            });
            let masked = Masker::of([value]).mask(&format!("a {escaped} b")).into_owned();
            // But for quotes of it, escaped themselves.
            let is_hidden = masked.contains(MASK) && masked.len() <= "a [masked] b".len() + 2 * 12;
            proptest::prop_assert!(is_hidden, "{sorts}: {escaped} is {masked}");
        }
    }
}
