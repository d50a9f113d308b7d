//! What the operator says about registries, and what a pull may take.

use std::{collections::BTreeSet, time::Duration};

use rustls::pki_types::{CertificateDer, pem::PemObject};

/// The most bytes of blobs that are on their way into memory at once, where there is enough.
const MOST_FETCHED_AT_ONCE: u64 = 256 << 20;

/// The most bytes of memory that component versions take at once, where there is enough.
const MOST_OF_VERSIONS: u64 = 256 << 20;

/// How long a blob waits until there is room for it in memory.
const LONGEST_WAIT: Duration = Duration::from_secs(2 * 60);

/// How long a blob may hold room in memory that others wait for, whatever comes of it.
const LONGEST_GRACE: Duration = Duration::from_secs(30);

/// How much longer for each MiB that has come of it.
const LONGEST_OF_A_MIB: Duration = Duration::from_secs(1);

/// Redirects that are followed for one answer.
const MOST_REDIRECTS: usize = 5;

/// What a pull may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullLimits {
    /// Bytes of one manifest.
    pub manifest: u64,
    /// Bytes of one blob.
    pub blob: u64,
    /// Bytes of blobs that are on their way into memory at once; a larger one is refused (C-88).
    pub at_once: u64,
    /// Bytes of memory that component versions take at once: the descriptors and blueprints of those that are open, and descriptors
    /// that are kept (C-320).
    pub component_versions: u64,
    /// Until there is room for a blob that is on its way into memory.
    pub wait: Duration,
    /// How long such a blob may hold room that others wait for.
    pub grace: Duration,
    /// How much longer for each MiB that has come of it.
    pub of_a_mib: Duration,
    /// Until a connection is there.
    pub connect: Duration,
    /// Until the next bytes come.
    pub idle: Duration,
    /// Until a manifest is complete, credentials and redirects included.
    pub manifest_time: Duration,
    /// Until a blob is complete.
    pub blob_time: Duration,
    /// Redirects that are followed for one answer.
    pub redirects: usize,
}

impl Default for PullLimits {
    fn default() -> Self {
        Self {
            manifest: 4 << 20,
            // Content of components is handed on as a whole: it is in memory once.
            blob: 128 << 20,
            at_once: MOST_FETCHED_AT_ONCE,
            component_versions: MOST_OF_VERSIONS,
            wait: LONGEST_WAIT,
            grace: LONGEST_GRACE,
            of_a_mib: LONGEST_OF_A_MIB,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            manifest_time: Duration::from_secs(60),
            blob_time: Duration::from_secs(15 * 60),
            redirects: MOST_REDIRECTS,
        }
    }
}

/// What the operator says about registries.
#[derive(Clone, Debug, Default)]
pub struct RegistrySettings {
    /// What a pull may take.
    pub limits: PullLimits,
    /// Authorities that are accepted beside those of this machine.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Registries that may be asked without TLS, as `host` or `host:port`; this machine may always be.
    pub plain_http: BTreeSet<String>,
}

impl RegistrySettings {
    /// Accepts the certificate authorities of a PEM file as well. The error is one sentence.
    pub fn with_certificates(mut self, pem: &[u8]) -> Result<Self, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = read.map_err(|error| format!("the certificates are no PEM: {error}"))?;
        if found.is_empty() {
            return Err("there is no certificate in it; it has to begin with -----BEGIN CERTIFICATE-----".to_owned());
        }
        self.certificates.extend(found);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_are_none_are_told() {
        for pem in ["", "x", "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----"] {
            assert!(RegistrySettings::default().with_certificates(pem.as_bytes()).is_err(), "{pem}");
        }
    }
}
