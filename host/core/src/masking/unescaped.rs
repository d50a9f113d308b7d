//! Texts as they were before somebody escaped them, and where each byte of them stands in the text as it is. So that a value
//! is found in whatever form of an escape, and in a mixture of forms, without a list of them.

use std::ops::Range;

/// Undoes one sort of escape at the begin of some bytes: adds what it stands for, and answers how many bytes it has; 0 where
/// there is none.
type Undo = fn(&[u8], &mut Vec<u8>) -> usize;

/// How often a text may have been quoted within a quoted text.
const QUOTED_WITHIN: usize = 3;

/// A text as it was.
pub(super) struct Unescaped {
    bytes: Vec<u8>,
    /// Where each byte begins in the text as it is, and where the text ends.
    begins: Vec<usize>,
}

impl Unescaped {
    fn of(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), begins: (0..=text.len()).collect() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where some bytes stand in the text as it is.
    pub(super) fn place(&self, found: Range<usize>) -> Range<usize> {
        let begin = |at: usize| self.begins.get(at).copied().unwrap_or_default();
        begin(found.start)..begin(found.end)
    }

    /// The same before these escapes; `None` where there are none.
    fn before(&self, undo: Undo) -> Option<Self> {
        let (mut bytes, mut begins) = (Vec::with_capacity(self.bytes.len()), Vec::with_capacity(self.begins.len()));
        let (mut at, mut is_changed) = (0, false);
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let length = undo(rest, &mut bytes);
            is_changed |= length > 0;
            if length == 0 {
                bytes.extend(rest.first());
            }
            begins.resize(bytes.len(), self.place(at..at).start);
            at += length.max(1);
        }
        begins.push(self.place(at..at).start);
        is_changed.then_some(Self { bytes, begins })
    }
}

/// Shows a text as it was before each escape that it has, until somebody has seen enough: quoted as in JSON, Rust or Go, also
/// within a quoted text; in it percent-encoded, for HTML, and in single quotes of YAML. The text as it is is not among them.
pub(super) fn seen_in(text: &str, mut sees: impl FnMut(&Unescaped) -> bool) -> bool {
    if !text.contains(['\\', '%', '&', '+', '\'']) {
        return false;
    }
    let mut quoted = Some(Unescaped::of(text));
    for level in 0..=QUOTED_WITHIN {
        let Some(of) = quoted else { return false };
        if (level > 0 && sees(&of)) || seen_within(&of, &mut sees) {
            return true;
        }
        quoted = of.before(quote);
    }
    false
}

fn seen_within(of: &Unescaped, sees: &mut impl FnMut(&Unescaped) -> bool) -> bool {
    let once = of.before(percent);
    let blanks = of.before(blank);
    let query = blanks.as_ref().and_then(|blanks| blanks.before(percent));
    let (twice, quoted) = once.as_ref().map(|once| (once.before(percent), once.before(quote))).unwrap_or_default();
    [once, blanks, query, twice, quoted, of.before(entity), of.before(doubled)].iter().flatten().any(sees)
}

/// `\n`, `\"`, `\u00e9` also in pairs, `\u{e9}`, `\x41`.
fn quote(rest: &[u8], to: &mut Vec<u8>) -> usize {
    let [b'\\', escaped, after @ ..] = rest else { return 0 };
    let plain = match escaped {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\'' | b'\\' | b'/' => *escaped,
        b'x' => {
            let Some(byte) = after.get(..2).and_then(hexadecimal) else { return 0 };
            to.extend(u8::try_from(byte));
            return 4;
        }
        b'u' => return unicode(after, to),
        _ => return 0,
    };
    to.push(plain);
    2
}

fn unicode(after: &[u8], to: &mut Vec<u8>) -> usize {
    let (code, length) = if let Some(braced) = after.strip_prefix(b"{") {
        let Some(end) = braced.iter().take(7).position(|byte| *byte == b'}') else { return 0 };
        (braced.get(..end).and_then(hexadecimal), 4 + end)
    } else {
        let unit = |at: usize| after.get(at..at + 4).and_then(hexadecimal);
        let low = unit(6).filter(|low| after.get(4..6) == Some(b"\\u") && (0xdc00..0xe000).contains(low));
        match (unit(0), low) {
            (Some(high @ 0xd800..0xdc00), Some(low)) => (Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12),
            (unit, _) => (unit, 6),
        }
    };
    let Some(letter) = code.and_then(char::from_u32) else { return 0 };
    to.extend(letter.encode_utf8(&mut [0; 4]).bytes());
    length
}

/// `%41`, of either case.
fn percent(rest: &[u8], to: &mut Vec<u8>) -> usize {
    let Some(byte) = rest.strip_prefix(b"%").and_then(|after| hexadecimal(after.get(..2)?)) else { return 0 };
    to.extend(u8::try_from(byte));
    3
}

/// `+` in a query.
fn blank(rest: &[u8], to: &mut Vec<u8>) -> usize {
    if rest.first() != Some(&b'+') {
        return 0;
    }
    to.push(b' ');
    1
}

/// `&lt;`
fn entity(rest: &[u8], to: &mut Vec<u8>) -> usize {
    const ENTITIES: [(&[u8], u8); 7] = [
        (b"&lt;", b'<'),
        (b"&gt;", b'>'),
        (b"&amp;", b'&'),
        (b"&quot;", b'"'),
        (b"&#34;", b'"'),
        (b"&#39;", b'\''),
        (b"&apos;", b'\''),
    ];
    let Some((entity, plain)) = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) else { return 0 };
    to.push(*plain);
    entity.len()
}

/// `''` within single quotes of YAML.
fn doubled(rest: &[u8], to: &mut Vec<u8>) -> usize {
    if !rest.starts_with(b"''") {
        return 0;
    }
    to.push(b'\'');
    2
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that are seen.
    fn seen(text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        seen_in(text, |unescaped| {
            seen.push(String::from_utf8_lossy(unescaped.bytes()).into_owned());
            false
        });
        seen
    }

    #[test]
    fn c_83_each_sort_of_escape_is_undone() {
        assert_eq!(seen("plain"), [""; 0]);
        assert_eq!(seen(r#"\u003ca\u00E9\ud83d\ude00\u{e9}\x41\n\""#), ["<aé😀éA\n\""]);
        assert_eq!(seen("a%2Fb%2f"), ["a/b/"]);
        assert_eq!(seen("a%2Bb+c"), ["a+b+c", "a%2Bb c", "a+b c"]);
        assert_eq!(seen("&lt;&amp;&#39;"), ["<&'"]);
        assert_eq!(seen("it''s"), ["it's"]);
        // Quoted twice, and percent-encoded before and after it.
        assert_eq!(seen(r#"\\\"a"#), [r#"\"a"#, r#""a"#]);
        assert_eq!(seen("%5C%22%2541"), [r#"\"%41"#, r#"\"A"#, r#""%41"#]);
        assert_eq!(seen(r"\u0025\u0034\u0031"), ["%41", "A"]);
    }

    #[test]
    fn c_83_what_is_no_escape_stays() {
        for text in [r"\u12", r"\ud800", r"\u{110000}", r"\u{", r"\xg0", r"\q", "%4", "%zz", "&what;", "\\"] {
            assert_eq!(seen(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn c_83_a_place_takes_in_whole_escapes() {
        let mut places = Vec::new();
        seen_in(r"x\u00e9%41y", |unescaped| {
            let found = unescaped.bytes().windows(3).position(|bytes| bytes == "éA".as_bytes());
            places.extend(found.map(|at| unescaped.place(at..at + 3)));
            false
        });
        places.dedup();
        assert_eq!(places, std::slice::from_ref(&(1..10)));
    }
}
