//! What registries answered to whom, beside the blobs: it counts where the registry gives no answer, such as after a
//! restart while it is away.
//!
//! The name of an answer is made of the question, the fingerprint of the credentials and a key that is made at random for
//! the folder: from the names alone nobody guesses credentials or questions, and who has other credentials finds nothing.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use data_encoding::HEXLOWER;
use orangery_core::digest::content::{Algorithm, ContentDigest};
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};

use super::{Bytes, ContentCache};

/// The file of the key.
pub(super) const KEY: &str = "key";
const KEY_BYTES: usize = 32;

/// The key of a folder; made where there is none. Answers of another key are never found again.
pub(super) fn key(folder: &Path) -> io::Result<hmac::Key> {
    let path = folder.join(KEY);
    let bytes = match fs::read(&path) {
        Ok(bytes) if bytes.len() == KEY_BYTES => bytes,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(_) | Err(_) => {
            let mut bytes = vec![0; KEY_BYTES];
            let is_made = SystemRandom::new().fill(&mut bytes);
            is_made.map_err(|_| io::Error::other("the system gives no random numbers"))?;
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            bytes
        }
    };
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

impl ContentCache {
    /// What was answered to this question, asked with these credentials.
    pub(crate) async fn answer(&self, question: &str, asker: &ContentDigest) -> Option<Vec<u8>> {
        self.read(&self.named(question, asker), whole).await
    }

    /// Keeps an answer.
    pub(crate) async fn keep_answer(&self, question: &str, asker: &ContentDigest, answer: &[u8]) {
        let mut bytes = ContentDigest::of(Algorithm::Sha256, answer).hex().as_bytes().to_vec();
        bytes.extend_from_slice(answer);
        if let Err(error) = self.write(&self.named(question, asker), &Bytes::new(bytes)).await {
            tracing::warn!(question, %error, "an answer cannot be kept in the cache");
        }
    }

    /// Forgets an answer: the registry gave another one.
    pub(crate) fn forget_answer(&self, question: &str, asker: &ContentDigest) {
        self.forget(&self.named(question, asker));
    }

    /// A name that only the same question of the same asker has.
    pub(crate) fn named(&self, question: &str, asker: &ContentDigest) -> String {
        let name = hmac::sign(&self.key, format!("{}\n{question}", asker.hex()).as_bytes());
        format!("{}.answer", HEXLOWER.encode(name.as_ref()))
    }
}

/// The answer without its check sum, which it must have.
fn whole(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let answer = if bytes.len() < 64 { return None } else { bytes.split_off(64) };
    (ContentDigest::of(Algorithm::Sha256, &answer).hex().as_bytes() == bytes.as_slice()).then_some(answer)
}
