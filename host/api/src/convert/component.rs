//! The component version of an Installation: what its spec and its Context say of it (`docs/wire.md` §5.8, §10).
//!
//! [`ContextNames`] says which objects a Context names; who has read them as [`ContextObjects`] gets from [`ContextInputs`] the
//! request that the room `registry` opens.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use orangery_core::{
    listing,
    name::{Kind, Namespace, ObjectName},
};
use orangery_ocm::{
    ChartLogin, ChartRepositories, ComponentRequest, ComponentSource, Credentials, KeySource, MOST_CREDENTIAL_BYTES,
    Overwrite, OverwriteSide, Secret, Verification, VersionReference,
};

pub use self::charts::CHART_CREDENTIALS;
use self::charts::{ChartAuth, auths};
use crate::{
    context::Context,
    installation::{self, ComponentDescriptorSource, ComponentVersion},
    overwrites::{ComponentVersionOverwrites, OverwriteReference},
    reference::SecretReference,
};

mod charts;

/// The key of an OCM configuration in its ConfigMap.
const OCM_CONFIG: &str = ".ocmconfig";

/// `spec.componentDescriptor` has none of its forms, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.componentDescriptor needs exactly one of ref and inline")]
pub struct NotOneSource;

impl TryFrom<&ComponentDescriptorSource> for ComponentSource {
    type Error = NotOneSource;

    fn try_from(spec: &ComponentDescriptorSource) -> Result<Self, NotOneSource> {
        match (&spec.reference, &spec.inline) {
            (Some(reference), None) => Ok(ComponentSource::Reference(VersionReference {
                repository_context: reference.repository_context.clone().map(Into::into),
                name: reference.component_name.clone(),
                version: reference.version.clone(),
            })),
            (None, Some(descriptor)) => Ok(ComponentSource::Inline(descriptor.clone().into())),
            (None, None) | (Some(_), Some(_)) => Err(NotOneSource),
        }
    }
}

impl From<&ComponentSource> for ComponentDescriptorSource {
    fn from(source: &ComponentSource) -> Self {
        match source {
            ComponentSource::Inline(descriptor) => Self { reference: None, inline: Some(descriptor.as_ref().clone()) },
            ComponentSource::Reference(reference) => Self {
                reference: Some(ComponentVersion {
                    repository_context: reference.repository_context.as_deref().cloned(),
                    component_name: reference.name.clone(),
                    version: reference.version.clone(),
                }),
                inline: None,
            },
        }
    }
}

/// Why what a Context names cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// An object that is not there.
    #[error("{kind} {object}, which Context {context} names, does not exist; create it or correct the Context")]
    NotFound {
        /// Its kind.
        kind: Kind,
        /// `namespace/name`
        object: String,
        /// The Context.
        context: String,
    },
    /// A ConfigMap without an OCM configuration.
    #[error("ConfigMap {object}, which Context {context} names as ocmConfig, has no key {OCM_CONFIG}; add it")]
    NoOcmConfig {
        /// `namespace/name` of the ConfigMap.
        object: String,
        /// The Context.
        context: String,
    },
    /// A Secret without the key that a signature needs.
    #[error("Secret {object}, which Context {context} names for a signature, has no key {key:?}; correct the Context")]
    NoKey {
        /// `namespace/name` of the Secret.
        object: String,
        /// The Context.
        context: String,
        /// The key.
        key: String,
    },
    /// A Secret without the header for a chart repository.
    #[error(
        "Secret {object}, which Context {context} names in helmChartRepoCredentials, has no key {key:?}; put the header there, \
         such as Basic and user:password in base64"
    )]
    NoAuthHeader {
        /// `namespace/name` of the Secret.
        object: String,
        /// The Context.
        context: String,
        /// The key.
        key: String,
    },
    /// A Secret of another namespace: who may write a Context need not be allowed to read there.
    #[error(
        "Context {context} names the Secret {object} for a signature, which is of another namespace; put the key into a Secret \
         of the namespace {namespace}, and leave the namespace of the reference out"
    )]
    OtherNamespace {
        /// `namespace/name` of the Secret.
        object: String,
        /// The Context.
        context: String,
        /// The namespace of the Context.
        namespace: Namespace,
    },
    /// Secrets and an OCM configuration that are too long together.
    #[error(
        "what Context {context} has or names for credentials, or its overwrites, has more than {MOST_CREDENTIAL_BYTES} bytes together; keep Secrets and an \
         ocmConfig with nothing but credentials"
    )]
    TooLong {
        /// The Context.
        context: String,
    },
    /// A signature that the Context does not know.
    #[error(
        "spec.verification asks for the signature {signature:?}, but Context {context} has no verificationSignatures of that \
         name; known are: {known}"
    )]
    UnknownSignature {
        /// The signature.
        signature: String,
        /// The Context.
        context: String,
        /// The names that it has.
        known: String,
    },
}

/// The objects that a Context names, as far as one Installation needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextNames {
    /// Secrets, by namespace and name.
    pub secrets: BTreeSet<(Namespace, ObjectName)>,
    /// The ConfigMap with the OCM configuration, in the namespace of the Context.
    pub ocm_config: Option<String>,
    /// The ComponentVersionOverwrites, in the namespace of the Context.
    pub overwrites: Option<String>,
}

impl ContextNames {
    /// What is needed to reach repositories.
    pub fn of_credentials(context: &Context, namespace: &Namespace) -> Self {
        let secrets = context.spec.registry_pull_secrets.iter().map(|secret| secret.name.clone());
        let of_charts = auths(context).unwrap_or_default().into_iter().filter_map(|auth| Some(auth.secret_ref?.name));
        Self {
            secrets: secrets.chain(of_charts).map(|name| (namespace.to_owned(), name.into())).collect(),
            ocm_config: context.spec.ocm_config.as_ref().map(|reference| reference.name.clone()),
            overwrites: None,
        }
    }

    /// What is needed to open a component version.
    pub fn of(context: &Context, namespace: &Namespace, verification: Option<&installation::Verification>) -> Self {
        let mut names = Self::of_credentials(context, namespace);
        let overwrites = &context.spec.component_version_overwrites;
        names.overwrites = (!overwrites.is_empty()).then(|| overwrites.clone());
        let keys = verification.and_then(|of| context.spec.verification_signatures.get(&of.signature_name));
        let keys = keys.into_iter().flat_map(|keys| {
            [keys.public_key_secret_reference.as_ref(), keys.ca_certificate_secret_reference.as_ref()]
        });
        let own = keys.flatten().filter(|key| is_of(key, namespace));
        names.secrets.extend(own.map(|key| (namespace.to_owned(), key.name.clone())));
        names
    }
}

/// Whether a Secret is of the namespace of the Context that names it.
fn is_of(key: &SecretReference, namespace: &Namespace) -> bool {
    key.namespace.is_empty() || key.namespace == *namespace
}

/// The objects of [`ContextNames`] that exist.
#[derive(Clone, Debug, Default)]
pub struct ContextObjects {
    /// The data of Secrets, by namespace and name.
    pub secrets: BTreeMap<(Namespace, ObjectName), BTreeMap<String, Secret>>,
    /// The data of the ConfigMap with the OCM configuration.
    pub ocm_config: Option<BTreeMap<String, String>>,
    /// The overwrites.
    pub overwrites: Option<ComponentVersionOverwrites>,
}

/// A Context with the objects that it names.
#[derive(Clone, Copy)]
pub struct ContextInputs<'a> {
    /// The Context.
    pub context: &'a Context,
    /// Its namespace, and that of the Installation.
    pub namespace: &'a Namespace,
    /// The objects.
    pub objects: &'a ContextObjects,
}

impl ContextInputs<'_> {
    /// The request for the component version of an Installation. `above` is, of a sub-installation, what the root says in
    /// `spec.componentDescriptor` ([`Verification::above`]).
    ///
    /// # Errors
    /// [`ContextError`]
    pub fn request(
        &self,
        source: ComponentSource,
        verification: Option<&installation::Verification>,
        above: Option<ComponentSource>,
    ) -> Result<ComponentRequest, ContextError> {
        Ok(ComponentRequest {
            source,
            repository_context: self.context.spec.repository_context.clone().map(Into::into),
            overwrites: self.overwrites()?,
            credentials: self.credentials()?,
            verification: verification.map(|wanted| self.verification(wanted, above)).transpose()?,
        })
    }

    /// With what repositories are reached.
    ///
    /// # Errors
    /// [`ContextError`]
    pub fn credentials(&self) -> Result<Credentials, ContextError> {
        let mut credentials = Credentials { namespace: Some(self.namespace.clone()), ..Credentials::default() };
        let mut named = BTreeSet::new();
        for reference in &self.context.spec.registry_pull_secrets {
            let secret = self.secret(&(self.namespace.to_owned(), ObjectName::from(&reference.name)))?;
            // One that is named again adds nothing.
            if named.insert(&reference.name) {
                credentials.pull_secrets.push((reference.name.clone(), secret.clone()));
            }
        }
        if let Some(reference) = &self.context.spec.ocm_config {
            let object = format!("{}/{}", self.namespace, reference.name);
            let content = self
                .objects
                .ocm_config
                .as_ref()
                .ok_or_else(|| self.not_found(Kind::from_static("ConfigMap"), &object))?;
            let text = content
                .get(OCM_CONFIG)
                .ok_or_else(|| ContextError::NoOcmConfig { object, context: self.context.name_any() })?;
            credentials.ocm_config = Some((reference.name.clone(), Secret(text.clone().into_bytes())));
        }
        credentials.chart_repositories = self.chart_repositories();
        Ok(credentials)
    }

    /// `helmChartRepoCredentials`. What is wrong with them keeps nobody from reading elsewhere.
    fn chart_repositories(&self) -> ChartRepositories {
        let origin = format!("Context {}/{}", self.namespace, self.context.name_any());
        let read = auths(self.context).map_err(|why| format!("helmChartRepoCredentials of {origin} {why}"));
        let logins = read.and_then(|auths| {
            let mut bytes = 0;
            let login = |auth: ChartAuth| {
                let login = self.chart_login(auth, &origin).map_err(|error| error.to_string())?;
                bytes += login.authorization.as_ref().map_or(0, |Secret(header)| header.len() as u64);
                if bytes > MOST_CREDENTIAL_BYTES {
                    let most = MOST_CREDENTIAL_BYTES;
                    return Err(format!(
                        "helmChartRepoCredentials of {origin} have headers of more than {most} bytes together; a Secret that \
                         several entries name counts for each of them"
                    ));
                }
                Ok(login)
            };
            auths.into_iter().map(login).collect::<Result<Vec<_>, _>>()
        });
        match logins {
            Ok(logins) => ChartRepositories { logins, unusable: None },
            Err(why) => ChartRepositories { logins: Vec::new(), unusable: Some(why) },
        }
    }

    fn chart_login(&self, auth: ChartAuth, origin: &str) -> Result<ChartLogin, ContextError> {
        let authorization = match auth.secret_ref {
            None => {
                Some(auth.auth_header).filter(|header| !header.is_empty()).map(|header| Secret(header.into_bytes()))
            }
            Some(reference) => {
                let key = if reference.key.is_empty() { charts::USUAL_KEY.to_owned() } else { reference.key };
                let (namespace, context) = (self.namespace.to_owned(), self.context.name_any());
                let secret = self.secret(&(namespace, ObjectName::from(&reference.name)))?;
                let object = format!("{}/{}", self.namespace, reference.name);
                Some(secret.get(&key).cloned().ok_or(ContextError::NoAuthHeader { object, context, key })?)
            }
        };
        let certificates = Some(auth.custom_ca_data).filter(|pem| !pem.is_empty());
        Ok(ChartLogin { url: auth.url, authorization, certificates, origin: origin.to_owned() })
    }

    fn overwrites(&self) -> Result<Vec<Overwrite>, ContextError> {
        let name = &self.context.spec.component_version_overwrites;
        if name.is_empty() {
            return Ok(Vec::new());
        }
        let object = format!("{}/{name}", self.namespace);
        let found = self.objects.overwrites.as_ref();
        let found = found.ok_or_else(|| self.not_found(Kind::from_static("ComponentVersionOverwrites"), &object))?;
        let side = |side: &OverwriteReference| OverwriteSide {
            repository_context: side.repository_context.clone().map(Into::into),
            component_name: side.component_name.clone(),
            version: side.version.clone(),
        };
        let rules = found.spec.overwrites.iter();
        Ok(rules.map(|rule| Overwrite { source: side(&rule.source), substitution: side(&rule.substitution) }).collect())
    }

    fn verification(
        &self,
        wanted: &installation::Verification,
        above: Option<ComponentSource>,
    ) -> Result<Verification, ContextError> {
        let signature = wanted.signature_name.clone();
        let signatures = &self.context.spec.verification_signatures;
        let Some(keys) = signatures.get(&signature) else {
            let known = listing::listed(signatures.keys());
            return Err(ContextError::UnknownSignature { signature, context: self.context.name_any(), known });
        };
        Ok(Verification {
            signature,
            public_key: self.key(keys.public_key_secret_reference.as_ref())?,
            ca_certificate: self.key(keys.ca_certificate_secret_reference.as_ref())?,
            keyless: None,
            keys_of: KeySource::Context,
            above,
        })
    }

    /// The content of one key of a Secret.
    fn key(&self, reference: Option<&SecretReference>) -> Result<Option<Vec<u8>>, ContextError> {
        let Some(reference) = reference else { return Ok(None) };
        if !is_of(reference, self.namespace) {
            let (object, context) = (format!("{}/{}", reference.namespace, reference.name), self.context.name_any());
            return Err(ContextError::OtherNamespace { object, context, namespace: self.namespace.to_owned() });
        }
        let name = (self.namespace.to_owned(), reference.name.clone());
        match self.secret(&name)?.get(&reference.key) {
            Some(Secret(bytes)) => Ok(Some(bytes.clone())),
            None => {
                let (object, key) = (format!("{}/{}", name.0, name.1), reference.key.clone());
                Err(ContextError::NoKey { object, context: self.context.name_any(), key })
            }
        }
    }

    fn secret(&self, name: &(Namespace, ObjectName)) -> Result<&BTreeMap<String, Secret>, ContextError> {
        let object = format!("{}/{}", name.0, name.1);
        self.objects.secrets.get(name).ok_or_else(|| self.not_found(Kind::from_static("Secret"), &object))
    }

    fn not_found(&self, kind: Kind, object: &str) -> ContextError {
        ContextError::NotFound { kind, object: object.to_owned(), context: self.context.name_any() }
    }
}

#[cfg(test)]
mod tests;
