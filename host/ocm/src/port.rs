//! What the rest of the host asks of the room `registry`: opening component versions, and what is in them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

use super::{
    AllowedSources, Artifact, Artifacts, Child, ComponentSource, Components, Descriptor, DescriptorSchema, Files,
    KeylessSigner, Overwrite, Replaced, ResourceKey, ResourceReference, SignaturePolicy, VersionReference, replace,
};
use orangery_core::{
    error::{Code, Fault},
    name::Namespace,
    port::BoxFuture,
};

/// A component version to open, with all that an installation and its Context say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentRequest {
    /// Which one.
    pub source: ComponentSource,
    /// `repositoryContext` of the Context: counts where the reference has none.
    pub repository_context: Option<Arc<Value>>,
    /// `componentVersionOverwrites` of the Context, in the order of its list. Not for inline descriptors themselves.
    pub overwrites: Vec<Overwrite>,
    /// With what repositories are reached.
    pub credentials: Credentials,
    /// The signature that must hold; `None` asks for none.
    pub verification: Option<Verification>,
}

impl ComponentRequest {
    /// A request without a Context: no credentials, no overwrites, no verification.
    pub fn of(source: ComponentSource) -> Self {
        Self {
            source,
            repository_context: None,
            overwrites: Vec::new(),
            credentials: Credentials::default(),
            verification: None,
        }
    }

    /// The source as it was followed: with the repository of the Context, and what the overwrites made of it
    /// ([`ComponentVersion::replaced`]).
    pub fn followed(&self, replaced: Option<&VersionReference>) -> ComponentSource {
        match &self.source {
            ComponentSource::Inline(_) => self.source.clone(),
            ComponentSource::Reference(reference) => {
                let mut reference = replaced.unwrap_or(reference).clone();
                reference.repository_context = reference.repository_context.or_else(|| self.repository_context.clone());
                ComponentSource::Reference(reference)
            }
        }
    }

    /// What the overwrites make of a reference, as it is opened: with the repository of the Context where it names none.
    pub fn replaced(&self, reference: &VersionReference) -> Replaced {
        replace(&self.overwrites, &self.within_context(reference))
    }

    fn within_context(&self, reference: &VersionReference) -> VersionReference {
        let context = reference.repository_context.as_ref().or(self.repository_context.as_ref());
        VersionReference { repository_context: context.cloned(), ..reference.clone() }
    }

    /// What the condition `ComponentReferenceOverwrite` says ([`Replaced::report`]); `None` where there are no overwrites, or
    /// no reference that they could replace.
    ///
    /// [`Replaced::report`]: super::Replaced::report
    pub fn overwritten(&self) -> Option<Result<String, String>> {
        let ComponentSource::Reference(reference) = &self.source else { return None };
        if self.overwrites.is_empty() {
            return None;
        }
        Some(self.replaced(reference).report(&self.within_context(reference)))
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Bytes of the credentials of one Context, as texts and as what is read of them (C-280).
pub const MOST_CREDENTIAL_BYTES: u64 = 2 << 20;

/// What the Context gives to reach repositories, as the cluster has it: nobody but the transport reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// `registryPullSecrets`: the name of each Secret and its data (`.dockerconfigjson`, `.ocmcredentialconfig`).
    pub pull_secrets: Vec<(String, BTreeMap<String, Secret>)>,
    /// `ocmConfig`: the name of the ConfigMap and its `.ocmconfig`.
    pub ocm_config: Option<(String, Secret)>,
    /// `configurations.helmChartRepoCredentials`.
    pub chart_repositories: ChartRepositories,
    /// For which namespace content is fetched: what is on its way into memory at once is shared by namespaces (C-133). `None`
    /// stands for the host itself.
    pub namespace: Option<Namespace>,
    /// What may be reached with or without credentials: not of the Context, but of the policies of its namespace.
    pub allowed: AllowedSources,
}

/// Credentials of classic chart repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChartRepositories {
    /// Entry by entry.
    pub logins: Vec<ChartLogin>,
    /// Why they cannot be used: one sentence, told when such a repository is asked.
    pub unusable: Option<String>,
}

/// How one chart repository is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChartLogin {
    /// What the address of its index and of its charts begins with; may be without a scheme.
    pub url: String,
    /// The content of the header `Authorization`.
    pub authorization: Option<Secret>,
    /// Certificate authorities in PEM that are trusted for it as well.
    pub certificates: Option<String>,
    /// Where it stands, for messages, such as `the Context team/usual`.
    pub origin: String,
}

/// A signature that must hold (`spec.verification`, and `verificationSignatures` of the Context).
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The name of the signature.
    pub signature: String,
    /// The public key or certificate, in PEM.
    pub public_key: Option<Vec<u8>>,
    /// The certificate authority that must have signed the signer's certificate, in PEM.
    pub ca_certificate: Option<Vec<u8>>,
    /// The signer without a key of its own that has to have made it; where there is one, no key counts.
    pub keyless: Option<KeylessSigner>,
    /// Where they stand.
    pub keys_of: KeySource,
    /// Of a sub-installation: the component version of the installation that a user made. Its signature covers what it
    /// refers to, so a component version without the signature is accepted as it stands below that one.
    pub above: Option<ComponentSource>,
}

/// Where the keys stand by which a signature is verified, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In the Context of the Installation: `verificationSignatures`.
    Context,
    /// In a policy of an administrator, such as `NamespacePolicy team-a, line spec.signatures.trustedKeys[0]`.
    Policy(String),
}

/// A component in a registry that is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryComponentRequest {
    /// Which one: a tag or a digest.
    pub reference: String,
    /// With what the registry is reached.
    pub credentials: Credentials,
    /// Public keys in PEM, one of which has to have signed it, each with where it stands. None: nobody has to.
    pub keys: Vec<(String, String)>,
    /// The reference by digest of what is there already: its content is not fetched again.
    pub known: Option<String>,
}

/// A component that was found in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryComponent {
    /// Its reference by digest: what was verified.
    pub artifact: String,
    /// Its bytes, checked against their digest; `None` where they were known.
    pub content: Option<Vec<u8>>,
}

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceContent {
    /// Its media type.
    pub media_type: String,
    /// Its bytes, checked against their digest.
    pub bytes: Arc<Vec<u8>>,
}

/// Opens component versions. Implemented in `registry`: what was opened before is not fetched again, in this job or the
/// next.
pub trait ComponentVersions: Send + Sync {
    /// Opens a component version and all that it refers to.
    ///
    /// `Fault::Invalid` where only another installation, Context or repository content helps, `Fault::Later` where a
    /// repository may answer another time; each is one sentence that names component and repository.
    fn open<'a>(&'a self, request: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>>;

    /// What one Context's credentials may read in registries and on web servers. Content that a digest names is not
    /// fetched again.
    fn artifacts(&self, credentials: &Credentials) -> Result<Arc<dyn Artifacts>, Fault>;

    /// A component in a registry, which is found once: what a tag stands for then is verified and read (C-259).
    fn registry_component<'a>(
        &'a self,
        _: &'a RegistryComponentRequest,
    ) -> BoxFuture<'a, Result<RegistryComponent, Fault>> {
        let message = "this host reaches no registries";
        Box::pin(async move { Err(Fault::invalid(Code::ConfigurationProblem, message)) })
    }

    /// Whether component versions have to be signed: who makes requests asks for it.
    fn signature_policy(&self) -> SignaturePolicy;
}

/// A component version that is open: its descriptor and those that it refers to are here, what resources hold is
/// fetched when it is asked for.
pub trait ComponentVersion: Send + Sync {
    /// The descriptor.
    fn descriptor(&self) -> &Arc<Descriptor>;
    /// The descriptors of this and of all component versions it refers to, each once; its own is the first
    /// (`super::list` makes the input `components` of them).
    fn descriptors(&self) -> &[Arc<Descriptor>];
    /// Whether a rule of the overwrites replaced the reference, and what was opened (condition
    /// `ComponentReferenceOverwrite`).
    fn replaced(&self) -> Option<&VersionReference>;
    /// The files of a blueprint resource.
    fn blueprint<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<Arc<dyn Files>, Fault>>;
    /// A JSON schema resource: what `cd://…` in a schema refers to. Its own references are not followed.
    fn json_schema<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<Value, Fault>>;
    /// The content of any resource.
    fn content<'a>(&'a self, resource: &'a ResourceReference) -> BoxFuture<'a, Result<ResourceContent, Fault>>;
    /// The content of a resource of this or of a component version it refers to; `None` where the key names another one.
    fn keyed<'a>(&'a self, key: &'a ResourceKey) -> BoxFuture<'a, Result<Option<Arc<dyn Artifact>>, Fault>>;
    /// What `blueprint.ref` of a sub-installation template means in the sub-installation.
    fn child(&self, reference: &str) -> Result<Child, Fault>;
    /// What templates of the blueprint may ask. Resource content of media type `application/octet-stream` is given in
    /// base64, as the original gives it. `component` answers in schema v2 whatever the blueprint's schema, as the
    /// original does.
    fn templates(self: Arc<Self>) -> Arc<dyn Components>;
    /// The schema of templates' inputs where the blueprint does not say (`ocmSchemaVersion`).
    fn schema(&self) -> DescriptorSchema {
        self.descriptor().schema
    }
}
