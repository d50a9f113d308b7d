//! What the host has to write where others read, and nobody but the operator is to read: AES-256-GCM under a key of the
//! operator, bound to what it is written for (C-85).
//!
//! The nonce is an HMAC of the subject and the content, under a key of its own. So one nonce is of one content, without a
//! counter that would have to survive a restart, and what says the same is written in the same way: nothing is written anew.

use data_encoding::BASE64;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};

/// What the key for nonces is derived with, and the one for contents.
const NONCES: &[u8] = b"orangery.dev nonces of hidden content";
const CONTENTS: &[u8] = b"orangery.dev keys of hidden content";

/// The key of what is encrypted.
#[derive(Clone)]
pub(crate) struct EncryptionKey {
    nonces: hmac::Key,
    contents: LessSafeKey,
}

impl EncryptionKey {
    /// The key that follows from the one of the operator.
    pub(crate) fn of(operator: &hmac::Key) -> Self {
        let nonces = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(operator, NONCES).as_ref());
        let contents = UnboundKey::new(&AES_256_GCM, hmac::sign(operator, CONTENTS).as_ref());
        Self { nonces, contents: LessSafeKey::new(contents.expect("an HMAC-SHA256 is as long as a key of AES-256")) }
    }

    /// Encrypts a content, in base64, for a subject: decrypted it is for that one alone. The same is encrypted to the same.
    pub(crate) fn encrypt(&self, subject: &str, content: &[u8]) -> String {
        let nonce = self.nonce(subject, content);
        let mut encrypted = content.to_vec();
        let sealed = self.contents.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(subject.as_bytes()),
            &mut encrypted,
        );
        sealed.expect("what fits into an object is shorter than the 64 GiB of a content");
        BASE64.encode(&[nonce.as_slice(), &encrypted].concat())
    }

    /// What was encrypted for a subject; `None` where it was not, or by another operator.
    pub(crate) fn decrypt(&self, subject: &str, encrypted: &str) -> Option<Vec<u8>> {
        let encrypted = BASE64.decode(encrypted.as_bytes()).ok()?;
        let (nonce, encrypted) = encrypted.split_first_chunk::<NONCE_LEN>()?;
        let mut content = encrypted.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.contents.open_in_place(nonce, Aad::from(subject.as_bytes()), &mut content);
        opened.ok().map(|content| content.to_vec())
    }

    fn nonce(&self, subject: &str, content: &[u8]) -> [u8; NONCE_LEN] {
        let mut context = hmac::Context::with_key(&self.nonces);
        context.update(&subject.len().to_le_bytes());
        context.update(subject.as_bytes());
        context.update(content);
        let (mut nonce, tag) = ([0; NONCE_LEN], context.sign());
        nonce.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: u8) -> EncryptionKey {
        EncryptionKey::of(&hmac::Key::new(hmac::HMAC_SHA256, &[of; 32]))
    }

    #[test]
    fn c_85_only_the_operator_reads_it_and_only_for_what_it_was_written_for() {
        let encrypted = key(1).encrypt("a/b", b"hunter2");
        assert_eq!(key(1).decrypt("a/b", &encrypted).as_deref(), Some(b"hunter2".as_slice()));
        assert_eq!(key(1).encrypt("a/b", b"hunter2"), encrypted, "what says the same is the same");
        assert_eq!(key(1).decrypt("a/c", &encrypted), None, "of another object");
        assert_eq!(key(2).decrypt("a/b", &encrypted), None, "of another operator");
        let other =
            [key(1).encrypt("a/c", b"hunter2"), key(1).encrypt("a/b", b"hunter3"), key(2).encrypt("a/b", b"hunter2")];
        assert!(other.iter().all(|other| other.get(..16) != encrypted.get(..16)), "each has its nonce");
    }

    #[test]
    fn c_85_what_somebody_changed_is_not_read() {
        let encrypted = key(1).encrypt("s", b"hunter2");
        let bytes = BASE64.decode(encrypted.as_bytes()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).decrypt("s", &BASE64.encode(&changed)), None, "byte {at}");
        }
        for broken in ["", "!", "aGk=", encrypted.get(..encrypted.len() - 4).unwrap()] {
            assert_eq!(key(1).decrypt("s", broken), None, "{broken}");
        }
    }
}
