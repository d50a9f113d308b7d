//! Digests that name content, such as `sha256:…`: read, compared, and made while the content passes by.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256, Sha512};

/// How a digest is made: what registries and component descriptors use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// `sha256`
    Sha256,
    /// `sha512`
    Sha512,
}

impl Algorithm {
    /// The word before the colon.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    /// The length of a digest in hexadecimal digits.
    fn digits(self) -> usize {
        match self {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }
}

/// `sha256:…` or `sha512:…` in lower case. Two values are equal when they name the same content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentDigest {
    algorithm: Algorithm,
    hex: String,
}

/// Why a text is no digest: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no digest: expected sha256: and 64 or sha512: and 128 hexadecimal digits in lower case")]
pub struct NotADigest(String);

impl ContentDigest {
    /// The digest of bytes that are at hand.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// How it was made.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The hexadecimal digits: only `0`–`9` and `a`–`f`, so they may stand in a path or in a URL.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl FromStr for ContentDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let refused = || NotADigest(text.chars().take(160).collect());
        let (name, hex) = text.split_once(':').ok_or_else(refused)?;
        let known = [Algorithm::Sha256, Algorithm::Sha512].into_iter().find(|algorithm| algorithm.name() == name);
        let algorithm = known.ok_or_else(refused)?;
        let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if hex.len() != algorithm.digits() || !is_hex {
            return Err(refused());
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes a digest of content that comes in pieces.
#[derive(Clone)]
pub struct Hasher {
    state: DigestState,
}

#[derive(Clone)]
enum DigestState {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    /// Of no content yet.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::Sha256 => DigestState::Sha256(Sha256::new()),
            Algorithm::Sha512 => DigestState::Sha512(Sha512::new()),
        };
        Self { state }
    }

    /// The next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            DigestState::Sha256(state) => state.update(bytes),
            DigestState::Sha512(state) => state.update(bytes),
        }
    }

    /// The digest of all pieces.
    pub fn finish(self) -> ContentDigest {
        match self.state {
            DigestState::Sha256(state) => {
                ContentDigest { algorithm: Algorithm::Sha256, hex: HEXLOWER.encode(&state.finalize()) }
            }
            DigestState::Sha512(state) => {
                ContentDigest { algorithm: Algorithm::Sha512, hex: HEXLOWER.encode(&state.finalize()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf abc | sha256sum`, and the same with sha512sum.
    const ABC: [&str; 2] = [
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ];

    #[test]
    fn a_digest_is_the_same_however_the_content_is_cut() {
        for text in ABC {
            let digest: ContentDigest = text.parse().expect("a digest");
            let mut hasher = Hasher::new(digest.algorithm());
            hasher.update(b"a");
            hasher.update(b"");
            hasher.update(b"bc");
            assert_eq!(hasher.finish(), digest);
            assert_eq!(ContentDigest::of(digest.algorithm(), b"abc").to_string(), text);
        }
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let bad =
            ["", "sha256", "sha256:", "md5:900150983cd24fb0d6963f7d28e17f72", hex, "sha512:ba78", "sha256:../../x"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("sha256:{}", hex.to_uppercase()), format!("sha256:{hex}0"), format!("SHA256:{hex}")]);
        for text in bad {
            assert_eq!(text.parse::<ContentDigest>(), Err(NotADigest(text)));
        }
    }
}
