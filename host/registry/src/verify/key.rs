//! Keys, certificates and signatures as component versions have them: PEM and RSA, or none and a bundle of Sigstore.

use data_encoding::{BASE64, HEXLOWER};
use orangery_core::digest::content::{Algorithm, ContentDigest};
use orangery_ocm::{KeySource, KeylessSigner, Signature, SignatureValue, Verification};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey};
use rsa::{BoxedUint, RsaPublicKey, pss, signature::Verifier};
use sha2::{Sha256, Sha512};
use x509_parser::{
    certificate::X509Certificate, prelude::FromDer, public_key::RSAPublicKey, x509::SubjectPublicKeyInfo,
};

use crate::keyless;

/// Media types of a signature in hexadecimal digits: whatever its padding, some tools write the first.
const RAW: [&str; 2] = ["application/vnd.ocm.signature.rsa", "application/vnd.ocm.signature.rsa.pss"];
const PEM: &str = "application/x-pem-file";
/// The algorithm of a signature without a key.
const SIGSTORE: &str = "sigstore";
/// Bits of a modulus.
const SIZES: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Certificates of a chain, from the signer's own to the one that its authority signed.
const MOST_CERTIFICATES: usize = 8;

/// How the digest is padded before it is signed.
#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Pkcs1,
    Pss,
}

impl Padding {
    const ALL: [Self; 2] = [Padding::Pkcs1, Padding::Pss];

    fn name(self) -> &'static str {
        match self {
            Padding::Pkcs1 => "RSASSA-PKCS1-V1_5",
            Padding::Pss => "RSASSA-PSS",
        }
    }

    /// Whether a key of PKCS #1 made the signature.
    fn holds(self, hash: Algorithm, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        match (self, hash) {
            (Padding::Pkcs1, Algorithm::Sha256) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(message, signature).is_ok()
            }
            (Padding::Pkcs1, Algorithm::Sha512) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA512, key).verify(message, signature).is_ok()
            }
            // OCM salts with as much as fits, which ring refuses: the salt's length is taken as it is.
            (Padding::Pss, hash) => {
                let Ok(signature) = pss::Signature::try_from(signature) else { return false };
                let Some(key) = rsa_key(key) else { return false };
                match hash {
                    Algorithm::Sha256 => {
                        pss::VerifyingKey::<Sha256>::new_with_auto_salt_len(key).verify(message, &signature).is_ok()
                    }
                    Algorithm::Sha512 => {
                        pss::VerifyingKey::<Sha512>::new_with_auto_salt_len(key).verify(message, &signature).is_ok()
                    }
                }
            }
        }
    }
}

fn rsa_key(pkcs1: &[u8]) -> Option<RsaPublicKey> {
    let (_, key) = RSAPublicKey::from_der(pkcs1).ok()?;
    // A number begins with a zero where its first bit is set, which is no part of its size.
    let number = |bytes: &[u8]| {
        let digits = bytes.iter().position(|byte| *byte != 0).and_then(|first| bytes.get(first..));
        BoxedUint::from_be_slice_vartime(digits.unwrap_or_default())
    };
    RsaPublicKey::new_with_size_limits(number(key.modulus), number(key.exponent), SIZES).ok()
}

/// A signature, and the certificates that came with it.
struct Signed {
    bytes: Vec<u8>,
    chain: Vec<Vec<u8>>,
}

/// Checks a signature over a message. The error is the end of a sentence that begins with the signature.
pub(super) fn check(
    signature: &Signature,
    wanted: &Verification,
    hash: Algorithm,
    message: &[u8],
) -> Result<(), String> {
    if let Some(signer) = &wanted.keyless {
        let place = name_of(&wanted.keys_of);
        let made = check_keyless(signature, signer, hash, message);
        return made.map_err(|why| format!("{why}; {place} says by whom it has to be made"));
    }
    let algorithm = signature.signature.algorithm.as_str();
    let padding = Padding::ALL.into_iter().find(|padding| padding.name() == algorithm);
    let padding = padding.ok_or_else(|| unknown(algorithm))?;
    let signed = signed(signature, padding)?;
    let source = &wanted.keys_of;
    let key = match (&wanted.public_key, &wanted.ca_certificate) {
        (Some(pem), _) => public_key(pem, source)?,
        (None, Some(pem)) => signer(&signed.chain, pem, source)?,
        (None, None) => {
            let (place, how) = (name_of(source), how_to_correct(source));
            return Err(format!("has neither a public key nor a certificate authority in {place}; {how}"));
        }
    };
    if padding.holds(hash, &key, message, &signed.bytes) {
        return Ok(());
    }
    let (place, how) = (name_of(source), how_to_correct(source));
    Err(format!(
        "was not made with the key of {place} (RSA of 2048 to 8192 bits); sign the component with it, or {how}"
    ))
}

/// The same without a key, as the tools of OCM sign with Sigstore: over the bytes of the digest.
fn check_keyless(signature: &Signature, signer: &KeylessSigner, hash: Algorithm, message: &[u8]) -> Result<(), String> {
    let SignatureValue { algorithm, value, media_type, issuer: _ } = &signature.signature;
    if (algorithm.as_str(), media_type.as_str()) != (SIGSTORE, keyless::BUNDLE) {
        return Err(format!(
            "is of the algorithm {algorithm:?} with the media type {media_type:?}; known is {SIGSTORE} with {}",
            keyless::BUNDLE
        ));
    }
    let bundle = BASE64.decode(value.as_bytes()).map_err(|_| "has a bundle that is not in base64")?;
    let digest = ContentDigest::of(hash, message);
    let digest = HEXLOWER.decode(digest.hex().as_bytes()).map_err(|_| "is for a digest that is none")?;
    keyless::check(&bundle, &digest, signer)
}

/// Where the keys stand, in a message.
fn name_of(source: &KeySource) -> &str {
    match source {
        KeySource::Context => "the Context",
        KeySource::Policy(line) => line,
    }
}

/// How another key is put there.
fn how_to_correct(source: &KeySource) -> &'static str {
    match source {
        KeySource::Context => "name the right key in its verificationSignatures",
        KeySource::Policy(_) => "have an administrator put the right key there",
    }
}

fn unknown(algorithm: &str) -> String {
    let [one, other] = Padding::ALL.map(Padding::name);
    format!("is of the algorithm {algorithm:?}; known are {one} and {other}")
}

fn signed(signature: &Signature, padding: Padding) -> Result<Signed, String> {
    let value = &signature.signature;
    match value.media_type.as_str() {
        kind if RAW.contains(&kind) => {
            let hex = value.value.trim().to_ascii_lowercase();
            let bytes = HEXLOWER.decode(hex.as_bytes());
            Ok(Signed { bytes: bytes.map_err(|_| "is not in hexadecimal digits")?, chain: Vec::new() })
        }
        PEM => {
            let blocks = pem::parse_many(&value.value).map_err(|error| format!("is no PEM: {error}"))?;
            let (found, rest): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| block.tag() == "SIGNATURE");
            let found = found.into_iter().next().ok_or("has no SIGNATURE in its PEM")?;
            let written = found.headers().get("Signature Algorithm");
            if let Some(algorithm) = written.filter(|name| *name != padding.name()) {
                return Err(format!("is of the algorithm {:?}, and its PEM is of {algorithm:?}", padding.name()));
            }
            let chain = rest.into_iter().filter(|block| block.tag() == "CERTIFICATE");
            Ok(Signed { bytes: found.into_contents(), chain: chain.map(pem::Pem::into_contents).collect() })
        }
        other => Err(format!("has the media type {other:?}; known are {} and {PEM}", RAW.join(", "))),
    }
}

/// An RSA key, in the form of PKCS #1, of a PEM with a public key or a certificate.
fn public_key(pem: &[u8], source: &KeySource) -> Result<Vec<u8>, String> {
    let unusable = |why: &str| format!("cannot be checked: the public key of {} {why}", name_of(source));
    let block = pem::parse(pem).map_err(|error| unusable(&format!("is no PEM: {error}")))?;
    let broken = |_| unusable("cannot be read");
    match block.tag() {
        "RSA PUBLIC KEY" => Ok(block.into_contents()),
        "PUBLIC KEY" => {
            let (_, info) = SubjectPublicKeyInfo::from_der(block.contents()).map_err(broken)?;
            Ok(info.subject_public_key.data.to_vec())
        }
        "CERTIFICATE" => {
            let (_, certificate) = X509Certificate::from_der(block.contents()).map_err(broken)?;
            Ok(key_of(&certificate))
        }
        other => Err(unusable(&format!("is a {other}; known are PUBLIC KEY, RSA PUBLIC KEY and CERTIFICATE"))),
    }
}

fn key_of(certificate: &X509Certificate<'_>) -> Vec<u8> {
    certificate.public_key().subject_public_key.data.to_vec()
}

/// The key of the signer's certificate, the first one beside the signature, if the authority stands behind it.
fn signer(chain: &[Vec<u8>], authority: &[u8], source: &KeySource) -> Result<Vec<u8>, String> {
    let place = name_of(source);
    let authority = pem::parse(authority)
        .map_err(|error| format!("cannot be checked: the certificate authority of {place} is no PEM: {error}"))?;
    let broken = |_| "cannot be checked: a certificate cannot be read".to_owned();
    let (_, authority) = X509Certificate::from_der(authority.contents()).map_err(broken)?;
    let mut certificates = Vec::new();
    for der in chain {
        certificates.push(X509Certificate::from_der(der).map_err(broken)?.1);
    }
    let leaf = certificates.first();
    let leaf = leaf.ok_or_else(|| format!("has no certificate beside it, but {place} has only an authority"))?;
    let may_sign = match leaf.extended_key_usage() {
        Ok(Some(usage)) => usage.value.code_signing || usage.value.any,
        Ok(None) => true,
        Err(error) => return Err(format!("cannot be checked: the use of its certificate is told twice: {error}")),
    };
    if !may_sign {
        return Err("has a certificate that is not for signing code".to_owned());
    }
    let mut current = leaf;
    for _ in 0..MOST_CERTIFICATES {
        if !current.validity().is_valid() {
            return Err(format!("has a certificate that is not valid now: {}", current.subject()));
        }
        if is_signed_by(current, &authority) && authority.validity().is_valid() {
            return Ok(key_of(leaf));
        }
        let above = certificates.iter().find(|other| other.is_ca() && is_signed_by(current, other));
        match above {
            Some(above) if above.subject() != current.subject() => current = above,
            Some(_) | None => break,
        }
    }
    Err(format!("has a certificate that the certificate authority of {place} does not stand behind"))
}

fn is_signed_by(certificate: &X509Certificate<'_>, other: &X509Certificate<'_>) -> bool {
    certificate.issuer() == other.subject() && certificate.verify_signature(Some(other.public_key())).is_ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    use super::*;

    fn named(name: &str, is_ca: IsCa) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = is_ca;
        params
    }

    /// Whether an authority stands behind a signer with so many certificates up to the one that it signed.
    fn is_trusted(certificates: usize) -> Result<(), String> {
        let key = || KeyPair::generate().expect("a key");
        let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
        let mut above = CertifiedIssuer::self_signed(named("root", authority()), key()).expect("an authority");
        let root = above.pem();
        let mut chain = Vec::new();
        for index in 1..certificates {
            let params = named(&format!("between {index}"), authority());
            above = CertifiedIssuer::signed_by(params, key(), &above).expect("an authority");
            chain.push(above.der().to_vec());
        }
        let leaf = named("signer", IsCa::NoCa).signed_by(&key(), &above).expect("a certificate");
        chain.insert(0, leaf.der().to_vec());
        signer(&chain, root.as_bytes(), &KeySource::Context).map(drop)
    }

    #[test]
    fn limits_registry_a_signer_is_so_many_certificates_from_its_authority() {
        assert_eq!(is_trusted(1), Ok(()));
        assert_eq!(is_trusted(MOST_CERTIFICATES), Ok(()));
        let message = "has a certificate that the certificate authority of the Context does not stand behind";
        assert_eq!(is_trusted(MOST_CERTIFICATES + 1), Err(message.to_owned()));
    }
}
