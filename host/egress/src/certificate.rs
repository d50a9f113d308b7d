//! Why a server is not trusted, in the words of whoever can mend it: clients say `client error (Connect)` (C-327).

use std::{error::Error, io};

use orangery_core::error::cleaned;
use rustls::{CertificateError, InvalidMessage, pki_types::ServerName};

/// The most bytes of what is told of a certificate beyond that: its server chooses what stands in it.
const LONGEST_WORDS: usize = 256;

/// Why the certificate of a server is not accepted; the end of a sentence about the certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedCertificate {
    /// Nobody who is trusted vouches for it.
    #[error("is of no certificate authority that is trusted here")]
    Untrusted,
    /// Its time is over.
    #[error("has expired")]
    Expired,
    /// Its time has not come.
    #[error("is not valid yet")]
    NotYetValid,
    /// It is for others.
    #[error("is for other names than {0}")]
    OtherName(String),
    /// It was taken back.
    #[error("has been revoked")]
    Revoked,
    /// Anything else.
    #[error("cannot be used ({0})")]
    Unusable(String),
}

impl RefusedCertificate {
    /// How to mend it. `authority` says how the authority of a server is named to whoever asks.
    pub fn advice<'a>(&self, authority: &'a str) -> &'a str {
        match self {
            Self::Untrusted => authority,
            Self::Expired => "renew it at the server",
            Self::NotYetValid => "set the clocks of the server and of this host right, or give the server another one",
            Self::OtherName(_) => "name the server as its certificate does, or give it one for this name",
            Self::Revoked | Self::Unusable(_) => "give the server another one",
        }
    }
}

impl From<&CertificateError> for RefusedCertificate {
    fn from(error: &CertificateError) -> Self {
        match error {
            // What is signed by another key of the same name is not signed by whom it names.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::NotValidForNameContext { expected, .. } => Self::OtherName(match expected {
                ServerName::DnsName(name) => name.as_ref().to_owned(),
                other => other.to_str().into_owned(),
            }),
            CertificateError::NotValidForName => Self::OtherName("the one that is asked".to_owned()),
            CertificateError::Revoked => Self::Revoked,
            other => Self::Unusable(cleaned(&other.to_string(), LONGEST_WORDS)),
        }
    }
}

/// Why there is no connection by TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsRefusal {
    /// The certificate of the server is not accepted.
    Certificate(RefusedCertificate),
    /// The server does not speak TLS.
    NoTls,
    /// Anything else, as it was told.
    Other(String),
}

/// What lies below the error of a client, where it is one of TLS.
pub fn tls_refusal(error: &(dyn Error + 'static)) -> Option<TlsRefusal> {
    let error = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    Some(match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsRefusal::NoTls,
        rustls::Error::InvalidCertificate(why) => TlsRefusal::Certificate(why.into()),
        other => TlsRefusal::Other(other.to_string()),
    })
}

/// The deepest cause of an error says what is wrong; those above it only say where.
pub fn deepest(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

/// An error and what lies below it. An [`io::Error`] does not name as its source what it is made of.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn Error + 'static) = *error;
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::ExtendedKeyPurpose;

    use super::*;

    /// As clients hand it on.
    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct OfClient(#[source] io::Error);

    fn refused(error: rustls::Error) -> Option<TlsRefusal> {
        tls_refusal(&OfClient(io::Error::other(io::Error::other(error))))
    }

    #[test]
    fn c_327_why_a_certificate_is_not_accepted_is_found_below_the_error_of_a_client() {
        let context = |expected: &'static str| CertificateError::NotValidForNameContext {
            expected: ServerName::try_from(expected).expect("a name"),
            presented: vec!["DnsName(\"of the server's choice\")".to_owned()],
        };
        let cases = [
            (CertificateError::UnknownIssuer, "is of no certificate authority that is trusted here; name it"),
            (CertificateError::BadSignature, "is of no certificate authority that is trusted here; name it"),
            (CertificateError::Expired, "has expired; renew it at the server"),
            (
                CertificateError::NotValidYet,
                "is not valid yet; set the clocks of the server and of this host right, or give the server another one",
            ),
            (
                context("r.example"),
                "is for other names than r.example; name the server as its certificate does, or give it one for this name",
            ),
            (
                context("10.0.0.1"),
                "is for other names than 10.0.0.1; name the server as its certificate does, or give it one for this name",
            ),
            (CertificateError::Revoked, "has been revoked; give the server another one"),
            (CertificateError::BadEncoding, "cannot be used (BadEncoding); give the server another one"),
        ];
        for (error, expected) in cases {
            let error = rustls::Error::InvalidCertificate(error);
            let Some(TlsRefusal::Certificate(refused)) = refused(error) else { panic!("{expected}") };
            assert_eq!(format!("{refused}; {}", refused.advice("name it")), expected);
        }
        let no_tls = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(refused(no_tls), Some(TlsRefusal::NoTls));
        let other = rustls::Error::Other(rustls::OtherError(Arc::new(io::Error::other("odd"))));
        assert_eq!(refused(other.clone()), Some(TlsRefusal::Other(other.to_string())));
        let unreached = OfClient(io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert_eq!((tls_refusal(&unreached), deepest(&unreached).as_str()), (None, "connection refused"));
    }

    #[test]
    fn c_327_limits_certificate_what_is_told_of_one_has_a_length() {
        let presented = (0..100).map(|index| ExtendedKeyPurpose::Other(vec![1, 3, index])).collect();
        let long = CertificateError::InvalidPurposeContext { required: ExtendedKeyPurpose::ServerAuth, presented };
        let RefusedCertificate::Unusable(told) = RefusedCertificate::from(&long) else { panic!("{long}") };
        // And how much more there is.
        assert!(told.starts_with("certificate does not allow") && told.len() < LONGEST_WORDS + 64, "{told}");
    }
}
