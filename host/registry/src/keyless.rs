//! Signatures without a key of their own, by Sigstore (C-48): a bundle has a certificate that was good for some minutes, and
//! what a log says of the signature that was made with it. Everything is checked against a trusted root that is at hand; nobody
//! is asked, and no clock is read, since the log says when it was.
//!
//! What is read is less than what there is: bundles of version 0.3 with one certificate, one entry of a log of the first version
//! and a signature over bytes. Whatever is not known is refused.

mod bundle;
mod certificate;
mod der;
mod key;
mod log;
mod root;

use orangery_ocm::KeylessSigner;

pub(crate) use self::key::EllipticKey;

use self::{bundle::Bundle, certificate::SigningCertificate, root::TrustedRoot};

/// The media type of bundles that are read.
pub(crate) const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The most bytes of a bundle.
pub(crate) const MOST_OF_A_BUNDLE: usize = 256 << 10;

/// Checks that somebody signed a message: a bundle in JSON, whatever it may be. The error is the end of a sentence that begins with
/// the signature.
pub fn check(document: &[u8], message: &[u8], signer: &KeylessSigner) -> Result<(), String> {
    let root =
        TrustedRoot::parse(&signer.trusted_root).map_err(|why| format!("cannot be checked: the trusted root {why}"))?;
    let bundle = Bundle::parse(document)?;
    let certificate = SigningCertificate::parse(&bundle.certificate)?;
    certificate.is_of(signer)?;
    bundle.is_for(message)?;
    let logged = bundle.entry.logged(&root)?;
    logged.is_of(&bundle.signature, &bundle.certificate, message)?;
    certificate.is_trusted(&root, logged.at)?;
    if certificate.verifies(message, &bundle.signature) {
        return Ok(());
    }
    Err("does not hold: it was not made with the key of its certificate".to_owned())
}

/// A text of somebody's choice, as a message has it.
fn cut(text: &str) -> String {
    text.chars().take(256).collect()
}

#[cfg(test)]
mod tests;
