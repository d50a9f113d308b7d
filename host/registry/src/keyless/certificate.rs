//! The certificate of the key that signed: whose it is, who gave it, and that this was told to a log (RFC 6962).

use std::time::Duration;

use jiff::Timestamp;
use orangery_ocm::KeylessSigner;
use ring::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath, anchor_from_trusted_cert, ring as algorithms};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension, SignedCertificateTimestamp},
    prelude::FromDer,
    time::ASN1Time,
};

use super::{
    cut, der,
    key::EllipticKey,
    root::{TrustedAuthority, TrustedLog, TrustedRoot},
};

/// Extensions of Fulcio: who knows the identity, as a text of DER and, before that, as it is.
const ISSUER: &str = "1.3.6.1.4.1.57264.1.8";
const OLD_ISSUER: &str = "1.3.6.1.4.1.57264.1.1";
/// `id-kp-codeSigning`.
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];
/// The element that names the extension with the times at which logs were told.
const TOLD: &[u8] = &[0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xd6, 0x79, 0x02, 0x04, 0x02];
/// ECDSA with SHA-256, in the numbers of TLS.
const ECDSA_SHA256: (u8, u8) = (4, 3);
const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[
    algorithms::ECDSA_P256_SHA256,
    algorithms::ECDSA_P256_SHA384,
    algorithms::ECDSA_P384_SHA256,
    algorithms::ECDSA_P384_SHA384,
];

/// A certificate for signing.
pub(super) struct SigningCertificate<'a> {
    raw: &'a [u8],
    parsed: X509Certificate<'a>,
}

impl<'a> SigningCertificate<'a> {
    /// The error is the end of a sentence that begins with the signature.
    pub(super) fn parse(raw: &'a [u8]) -> Result<Self, String> {
        let Ok(([], parsed)) = X509Certificate::from_der(raw) else {
            return Err("has a certificate that cannot be read".to_owned());
        };
        if parsed.extensions_map().is_err() {
            return Err("has a certificate in which an extension stands twice".to_owned());
        }
        Ok(Self { raw, parsed })
    }

    /// Whether the identity in it is the one that is trusted.
    pub(super) fn is_of(&self, signer: &KeylessSigner) -> Result<(), String> {
        let identity = self
            .identity()
            .ok_or("has a certificate without exactly one identity that is a URI or an email address")?;
        let issuer = self
            .issuer()
            .ok_or("has a certificate that does not say who knows its identity (its OpenID Connect issuer)")?;
        if issuer == signer.issuer && signer.identity.matches(identity) {
            return Ok(());
        }
        let (identity, issuer) = (cut(identity), cut(issuer));
        Err(format!(
            "was made by {identity:?} as {issuer:?} knows it, and trusted is {} as {} knows it",
            signer.identity, signer.issuer
        ))
    }

    fn identity(&self) -> Option<&'a str> {
        let mut extensions = self.parsed.extensions().iter();
        let names = extensions.find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
            _ => None,
        })?;
        let [GeneralName::URI(identity) | GeneralName::RFC822Name(identity)] = names.as_slice() else { return None };
        // What neither a URI nor an email address has would be any letter of a pattern.
        (!identity.is_empty() && identity.bytes().all(|byte| byte.is_ascii_graphic())).then_some(*identity)
    }

    fn issuer(&self) -> Option<&'a str> {
        let extension = |oid: &str| {
            let mut extensions = self.parsed.extensions().iter();
            extensions.find(|extension| extension.oid.to_id_string() == oid).map(|extension| extension.value)
        };
        match extension(ISSUER) {
            Some(text) => der::utf8(text),
            None => std::str::from_utf8(extension(OLD_ISSUER)?).ok(),
        }
    }

    /// Whether an authority gave it for signing, for a time, and told a log.
    pub(super) fn is_trusted(&self, root: &TrustedRoot, at: Timestamp) -> Result<(), String> {
        let usage = self.parsed.key_usage().ok().flatten();
        if !usage.is_some_and(|usage| usage.value.digital_signature()) {
            return Err("has a certificate that is not for signatures (its key usage)".to_owned());
        }
        let authorities = root.certificate_authorities.iter().filter(|authority| authority.valid_for.includes(at));
        let mut why = format!("no authority of the trusted root counts at {at}");
        for authority in authorities {
            match self.issued_by(authority, at) {
                Ok(issuer) => return self.was_told(&issuer, root),
                Err(error) => why = error,
            }
        }
        Err(format!("has a certificate that nobody trusted gave: {why}"))
    }

    /// The key of who signed it, a SubjectPublicKeyInfo in DER, where that leads to the authority.
    fn issued_by(&self, authority: &TrustedAuthority, at: Timestamp) -> Result<Vec<u8>, String> {
        let broken = |error: webpki::Error| format!("a certificate cannot be read ({error})");
        let (own, between) = authority.certificates().ok_or("an authority of the trusted root has no certificate")?;
        let deepest = deepest_below(own, at)?;
        let own = CertificateDer::from(own);
        let anchors = [anchor_from_trusted_cert(&own).map_err(broken)?];
        let between: Vec<_> = between.map(CertificateDer::from).collect();
        let certificate = CertificateDer::from(self.raw);
        let certificate = EndEntityCert::try_from(&certificate).map_err(broken)?;
        let seconds = u64::try_from(at.as_second()).unwrap_or_default();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let usage = KeyUsage::required(CODE_SIGNING);
        let path = certificate.verify_for_usage(ALGORITHMS, &anchors, &between, at, usage, None, None);
        let path = path.map_err(|error| format!("{error} at {seconds}"))?;
        if path.intermediate_certificates().count() > deepest {
            return Err("there are more certificates below an authority than it allows (its path length)".to_owned());
        }
        Ok(issuer_of(&path))
    }

    /// Whether a trusted log was told of it before it was given.
    fn was_told(&self, issuer: &[u8], root: &TrustedRoot) -> Result<(), String> {
        let refused = |why: &str| format!("has a certificate of which no trusted log was told (SCT): {why}");
        let mut extensions = self.parsed.extensions().iter();
        let told = extensions.find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SCT(told) => Some(told.as_slice()),
            _ => None,
        });
        let [told] = told.unwrap_or_default() else { return Err(refused("it does not name exactly one")) };
        let SignedCertificateTimestamp { version, id, timestamp, extensions, signature } = told;
        if version.0 != 0 || (signature.hash_alg_id, signature.sign_alg_id) != ECDSA_SHA256 {
            return Err(refused("what the log signed is of a form that is not known"));
        }
        let at = i64::try_from(*timestamp).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
        let at = at.ok_or_else(|| refused("the time there is not"))?;
        let key = TrustedLog::key(&root.ctlogs, id.key_id, at).and_then(EllipticKey::of);
        let key = key.ok_or_else(|| refused("the trusted root does not have the log for that time"))?;
        let certificate = der::without_extension(self.parsed.tbs_certificate.as_ref(), TOLD);
        let certificate = certificate.ok_or_else(|| refused("it cannot be taken apart"))?;
        let mut signed = vec![0, 0];
        signed.extend(timestamp.to_be_bytes());
        signed.extend([0, 1]);
        signed.extend(digest(&SHA256, issuer).as_ref());
        signed.extend(certificate.len().to_be_bytes().iter().skip(5));
        signed.extend(&certificate);
        signed.extend(extensions.0.len().to_be_bytes().iter().skip(6));
        signed.extend(extensions.0);
        if key.verifies(&signed, signature.data) {
            return Ok(());
        }
        Err(refused("the log did not sign it"))
    }

    /// Whether its key made a signature.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        EllipticKey::of(self.parsed.public_key().raw).is_some_and(|key| key.verifies(message, signature))
    }
}

/// How many certificates may be between the one of an authority and one that it stands behind: what a path of certificates says of
/// all but its end, which is this one.
fn deepest_below(own: &[u8], at: Timestamp) -> Result<usize, String> {
    let unusable = |why: &str| format!("the certificate of an authority of the trusted root {why}");
    let (_, own) = X509Certificate::from_der(own).map_err(|_| unusable("cannot be read"))?;
    let time = ASN1Time::from_timestamp(at.as_second()).map_err(|_| unusable("is for no such time"))?;
    if !own.validity().is_valid_at(time) {
        return Err(unusable(&format!("is not valid at {at}")));
    }
    let constraints = own.basic_constraints().ok().flatten().map(|extension| extension.value);
    let constraints = constraints.filter(|constraints| constraints.ca);
    let constraints = constraints.ok_or_else(|| unusable("is not one of an authority"))?;
    let most = constraints.path_len_constraint.map(usize::try_from);
    Ok(most.and_then(Result::ok).unwrap_or(usize::MAX))
}

fn issuer_of(path: &VerifiedPath<'_>) -> Vec<u8> {
    match path.intermediate_certificates().next() {
        Some(issuer) => issuer.subject_public_key_info().as_ref().to_vec(),
        None => der::sequence(&path.anchor().subject_public_key_info),
    }
}
