//! Why nothing came from a registry: what happened, and which fault that is, in one place.
//!
//! Nothing a registry writes into a body or a redirect is repeated: it may echo a credential.

use std::time::Duration;

use orangery_core::{
    digest::content::ContentDigest,
    error::{Code, Fault, Problem},
    listing,
    name::Namespace,
};
use orangery_egress::RefusedCertificate;

use super::keyring::CredentialsOwner;

/// How a certificate authority of one's own is named (C-327).
const AUTHORITY_OF_A_REGISTRY: &str = "if it is of an authority of your own, have an administrator name its file with --registry-ca (components.registryCA of the chart)";

/// The same for chart repositories, where whoever writes the Context can.
const AUTHORITY_OF_A_CHART_REPOSITORY: &str =
    "if it is of an authority of your own, write that as customCAData into helmChartRepoCredentials of the Context";

/// Why one exchange gave nothing to use.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeRefusal {
    #[error("the registry answered {status} to a request {}", without_right(tried, withheld.as_deref(), *owner))]
    Unauthorized { status: u16, tried: Vec<String>, withheld: Option<String>, owner: CredentialsOwner },
    #[error(
        "the registry does not have it (404 to a request {}); check name and version, and whether {} credentials that may \
         see it",
        with(tried, *owner),
        owner.has()
    )]
    NotFound { tried: Vec<String>, owner: CredentialsOwner },
    #[error("the registry takes no more requests for {} s, as it has asked for (Retry-After)", .0.as_secs())]
    Limited(Duration),
    #[error("the registry takes no more requests at the moment (429) and does not say for how long")]
    LimitedForAWhile,
    #[error("the registry {}", answered(*status, codes_told))]
    Status { status: u16, codes_told: Vec<String> },
    #[error("the registry cannot be reached: {0}")]
    Unreachable(String),
    #[error("{0}")]
    Denied(String),
    #[error("{0}")]
    NotAllowed(String),
    #[error("{0}")]
    Led(String),
    #[error("the certificate of {host} {why}; {}", why.advice(AUTHORITY_OF_A_REGISTRY))]
    Certificate { host: String, why: RefusedCertificate },
    #[error("the certificate of {host} {why}; {}", why.advice(AUTHORITY_OF_A_CHART_REPOSITORY))]
    CertificateOfCharts { host: String, why: RefusedCertificate },
    #[error("the host does not speak TLS; if that is intended, name it with --plain-http-registry {host}")]
    NoTls { host: String },
    #[error("http:// is refused for {host}; use https://, or name the registry with --plain-http-registry {host}")]
    PlainHttp { host: String },
    #[error(
        "the registry was asked with TLS and leads to {host} without; it has to lead to https://, or name that host with \
         --plain-http-registry {host}"
    )]
    OutOfTls { host: String },
    #[error("nothing came for {} s while {doing}", after.as_secs())]
    Silent { after: Duration, doing: &'static str },
    #[error("it was not complete after {} s", .0.as_secs())]
    Slow(Duration),
    #[error("there was no room for it within {} s, for others are on their way; it is asked for again", .0.as_secs())]
    NoRoom(Duration),
    #[error("{got} bytes of it came within {} s while others waited for room; it is asked for again", after.as_secs())]
    Dripping { got: u64, after: Duration },
    #[error("the connection ended after {got} bytes{}", of(expected))]
    Cut { got: u64, expected: Option<u64> },
    #[error(
        "namespace {namespace} would have more than {most_mib} MiB fetched within an hour, which {line} refuses; ask again in \
         {} s, or have an administrator allow more there",
        left.as_secs()
    )]
    Quota { namespace: Namespace, most_mib: u32, line: String, left: Duration },
    #[error("it has more than {most} bytes, which is the limit{}", message_of(size))]
    TooBig { most: u64, size: Option<u64> },
    #[error("it has {got} bytes and was announced with {expected}; push it again")]
    WrongSize { expected: u64, got: u64 },
    #[error("the content is not what its digest names: it is {got} and not {expected}; push it again")]
    WrongDigest { expected: ContentDigest, got: ContentDigest },
    #[error("the registry redirects {0}")]
    Redirect(String),
    #[error("{0}")]
    Malformed(String),
    #[error("the token service of the registry {0}")]
    TokenService(String),
    #[error("it cannot be kept on this machine: {0}")]
    Sink(std::io::Error),
}

impl ExchangeRefusal {
    /// As a fault; `subject` says what was wanted, such as `the manifest of registry.example/a:1`.
    pub(super) fn fault(self, subject: &str) -> Fault {
        let message = format!("cannot get {subject}: {self}");
        self.with_message(message)
    }

    /// The same of what was to be pushed.
    pub(super) fn fault_of_push(self, subject: &str) -> Fault {
        let message = format!("cannot push {subject}: {self}");
        self.with_message(message)
    }

    fn with_message(self, message: String) -> Fault {
        let configuration = Code::ConfigurationProblem;
        match self {
            ExchangeRefusal::Limited(_) | ExchangeRefusal::LimitedForAWhile => Fault::later(configuration, message),
            ExchangeRefusal::Status { status, .. } if is_passing(status) => Fault::later(configuration, message),
            ExchangeRefusal::Unreachable(_) | ExchangeRefusal::Cut { .. } => Fault::later(configuration, message),
            ExchangeRefusal::Silent { .. } | ExchangeRefusal::Slow(_) => Fault::later(Code::Timeout, message),
            ExchangeRefusal::NoRoom(_) | ExchangeRefusal::Dripping { .. } => Fault::later(Code::Timeout, message),
            ExchangeRefusal::Sink(_) => Fault::later(Code::InternalProblem, message),
            ExchangeRefusal::Quota { .. } | ExchangeRefusal::Led(_) | ExchangeRefusal::NotAllowed(_) => {
                Fault::Denied(Problem { code: Code::PolicyViolation, message, at: None })
            }
            ExchangeRefusal::Denied(_) => Fault::Denied(Problem { code: Code::Forbidden, message, at: None }),
            ExchangeRefusal::Unauthorized { .. } => Fault::invalid(Code::Unauthorized, message),
            ExchangeRefusal::TooBig { .. } => Fault::invalid(Code::LimitExceeded, message),
            _ => Fault::invalid(configuration, message),
        }
    }

    /// The same for what is named by a version, and is pushed by people at any time: that it is not there may pass (C-148).
    pub(super) fn fault_until_pushed(self, subject: &str) -> Fault {
        let is_missing = matches!(self, ExchangeRefusal::NotFound { .. });
        match self.fault(subject) {
            Fault::Invalid(problem) if is_missing => Fault::Later(problem),
            fault @ (Fault::Invalid(_) | Fault::Later(_) | Fault::Denied(_)) => fault,
        }
    }
}

/// Whether a server that answers this may answer otherwise later.
pub(super) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

fn without_right(tried: &[String], withheld: Option<&str>, owner: CredentialsOwner) -> String {
    match withheld {
        Some(why) if tried.is_empty() => format!("without credentials, as {why}"),
        _ => format!("{}; {}", with(tried, owner), owner.advice()),
    }
}

fn with(tried: &[String], owner: CredentialsOwner) -> String {
    match tried {
        [] => format!("without credentials, as {} none for it", owner.has()),
        [only] => format!("with the credentials in {only}"),
        all => format!("with each of the credentials in {}", listing::joined(all)),
    }
}

fn answered(status: u16, codes: &[String]) -> String {
    let codes = if codes.is_empty() { String::new() } else { format!(" ({})", listing::joined(codes)) };
    if is_passing(status) {
        format!("is not available at the moment: it answered {status}{codes}")
    } else {
        format!("answered {status}{codes}")
    }
}

fn of(expected: &Option<u64>) -> String {
    expected.map(|expected| format!(" of {expected}")).unwrap_or_default()
}

fn message_of(size: &Option<u64>) -> String {
    size.map(|size| format!(": it is announced with {size}")).unwrap_or_default()
}
