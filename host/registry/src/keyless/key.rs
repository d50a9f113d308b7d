//! Keys of certificates and logs: on the curves P-256 and P-384.

use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, UnparsedPublicKey};

/// What a SubjectPublicKeyInfo in DER begins with, before the point.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P384: &[u8] = &[
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00,
    0x22, 0x03, 0x62, 0x00,
];

/// A key, with the hash that it signs by.
pub(crate) enum EllipticKey<'a> {
    /// SHA-256.
    P256(&'a [u8]),
    /// SHA-384.
    P384(&'a [u8]),
}

impl<'a> EllipticKey<'a> {
    /// The key of a SubjectPublicKeyInfo; `None` where it is another one.
    pub(crate) fn of(info: &'a [u8]) -> Option<Self> {
        info.strip_prefix(P256).map(Self::P256).or_else(|| info.strip_prefix(P384).map(Self::P384))
    }

    /// Whether it made the signature.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature),
            Self::P384(point) => UnparsedPublicKey::new(&ECDSA_P384_SHA384_ASN1, point).verify(message, signature),
        };
        verified.is_ok()
    }
}
