//! Randomness: identities, name suffixes, tokens and keys. A real API server has its own, so has this one.

use uuid::Uuid;

/// A fresh random identity.
#[expect(
    clippy::disallowed_methods,
    reason = "uids and tokens are the server's own randomness, and this is its one source"
)]
pub(crate) fn uuid() -> Uuid {
    Uuid::new_v4()
}

/// Five characters for `generateName`, from the letters that Kubernetes uses (no vowels, so no words).
pub(crate) fn suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = uuid().into_bytes();
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied().unwrap_or(b'x');
    // Bytes 6 and 8 carry the version of the UUID and are left out.
    bytes.iter().take(5).map(letter).map(char::from).collect()
}

/// A secret of 244 random bits as hexadecimal text.
pub(crate) fn secret() -> String {
    format!("{}{}", uuid().simple(), uuid().simple())
}
