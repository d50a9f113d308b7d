//! As much DER as it takes to leave one extension out of a certificate.

const SEQUENCE: u8 = 0x30;
/// `[3]`, the extensions of a certificate.
const EXTENSIONS: u8 = 0xa3;

/// An element: its tag, its content, and all of it.
struct DerElement<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

/// The first element, and what comes after it. Lengths are definite, and of at most three bytes.
fn first(input: &[u8]) -> Option<(DerElement<'_>, &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    let whole = input.get(..input.len() - after.len())?;
    Some((DerElement { tag, content, whole }, after))
}

/// The content of one element that is all there is.
fn only(input: &[u8], tag: u8) -> Option<&[u8]> {
    let (element, after) = first(input)?;
    (element.tag == tag && after.is_empty()).then_some(element.content)
}

/// An element of a content.
pub(super) fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let bytes = length.to_be_bytes();
    let digits: Vec<u8> = bytes.iter().copied().skip_while(|digit| *digit == 0).collect();
    let mut whole = vec![tag];
    if length < 0x80 {
        whole.extend(digits.first().or(Some(&0)));
    } else {
        whole.push(0x80 | u8::try_from(digits.len()).unwrap_or(0x7f));
        whole.extend(digits);
    }
    whole.extend(content);
    whole
}

/// A SEQUENCE.
pub(super) fn sequence(content: &[u8]) -> Vec<u8> {
    wrap(SEQUENCE, content)
}

/// The text of an element UTF8String.
pub(super) fn utf8(input: &[u8]) -> Option<&str> {
    only(input, 0x0c).and_then(|text| std::str::from_utf8(text).ok())
}

/// A TBSCertificate without an extension; `oid` is the element that names it.
pub(super) fn without_extension(certificate: &[u8], oid: &[u8]) -> Option<Vec<u8>> {
    let mut rest = only(certificate, SEQUENCE)?;
    let mut kept = Vec::new();
    while !rest.is_empty() {
        let (field, after) = first(rest)?;
        rest = after;
        if field.tag != EXTENSIONS {
            kept.extend(field.whole);
            continue;
        }
        let mut extensions = only(field.content, SEQUENCE)?;
        let mut others = Vec::new();
        while !extensions.is_empty() {
            let (extension, after) = first(extensions)?;
            extensions = after;
            if !extension.content.starts_with(oid) {
                others.extend(extension.whole);
            }
        }
        kept.extend(wrap(EXTENSIONS, &sequence(&others)));
    }
    Some(sequence(&kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_left_out_and_lengths_are_those_of_the_rest() {
        let extension = |oid: u8, size: usize| sequence(&[&[6, 1, oid][..], &wrap(4, &vec![7; size])].concat());
        let certificate = |extensions: &[Vec<u8>]| {
            sequence(&[wrap(2, &[1]), wrap(EXTENSIONS, &sequence(&extensions.concat()))].concat())
        };
        for size in [0, 1, 100, 127, 128, 255, 256, 65_535, 65_536] {
            let all = certificate(&[extension(1, 3), extension(2, size), extension(3, 200)]);
            let rest = certificate(&[extension(1, 3), extension(3, 200)]);
            assert_eq!(without_extension(&all, &[6, 1, 2]), Some(rest.clone()), "{size}");
            assert_eq!(without_extension(&rest, &[6, 1, 2]), Some(rest), "{size}");
            for cut in [1, 2, all.len() / 2, all.len() - 1] {
                assert_eq!(without_extension(&all[..cut], &[6, 1, 2]), None, "{size} {cut}");
            }
        }
        let endless = [0x30, 0x80, 0, 0];
        assert_eq!(without_extension(&endless, &[6, 1, 2]), None);
    }

    #[test]
    fn a_text_is_all_there_is() {
        assert_eq!(utf8(&[0x0c, 2, b'a', b'b']), Some("ab"));
        assert_eq!(utf8(&[0x0c, 2, b'a', b'b', 0]), None);
        assert_eq!(utf8(&[0x0c, 3, b'a', b'b']), None);
        assert_eq!(utf8(&[0x04, 1, b'a']), None);
        assert_eq!(utf8(&[0x0c, 1, 0xff]), None);
    }
}
