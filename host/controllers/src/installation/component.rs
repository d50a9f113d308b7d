//! The component version of an Installation: what spec and Context say of it is gathered, the room `registry` opens it
//! (`landscaper.md` §5.8, §10).

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, ResourceExt, core::NamespaceResourceScope};
use orangery_api::{
    context::Context,
    installation::{self, ComponentDescriptorSource, Installation},
    overwrites::ComponentVersionOverwrites,
    reference::SecretReference,
};
use orangery_core::{
    component::{
        self, ComponentRequest, ComponentSource, ComponentVersion, Credentials, Overwrite, OverwriteSide, Verification,
        VersionReference,
    },
    error::{Code, Failure, Fault},
    step::{Halt, Step},
};
use orangery_reconcile::Key;
use serde::de::DeserializeOwned;

use crate::{host::Host, object::told};

/// The key of an OCM configuration in its ConfigMap.
const OCM_CONFIG: &str = ".ocmconfig";

/// A component version that is open, and the reference to it as templates see it.
pub(super) struct Opened {
    pub(super) version: Arc<dyn ComponentVersion>,
    pub(super) source: ComponentDescriptorSource,
}

/// How a fault of a component version ends the walk.
pub(super) fn halt(fault: &Fault) -> Halt {
    let problem = fault.problem();
    let failure = Failure::new("ReadComponent", "ComponentNotUsable", problem.message.clone());
    match fault {
        Fault::Later(_) => Halt::Retry(failure),
        Fault::Invalid(_) | Fault::Denied(_) => Halt::Stall(failure.with_code(problem.code.clone())),
    }
}

/// Opens the component version of an Installation; `None` where it names none.
pub(super) async fn open(host: &Host, of: &Installation) -> Step<Option<Opened>> {
    let Some(spec) = &of.spec.component_descriptor else { return Ok(None) };
    let source = match (&spec.reference, &spec.inline) {
        (Some(reference), None) => ComponentSource::Reference(VersionReference {
            repository_context: reference.repository_context.clone(),
            name: reference.component_name.clone(),
            version: reference.version.clone(),
        }),
        (None, Some(descriptor)) => ComponentSource::Inline(descriptor.clone()),
        (None, None) | (Some(_), Some(_)) => {
            let message = "spec.componentDescriptor needs exactly one of ref and inline".to_owned();
            return Err(stall("InvalidComponentDescriptor", message));
        }
    };
    let reading = Reading { host, namespace: of.namespace().unwrap_or_default() };
    let request = reading.request(of, source).await?;
    let version = host.components.open(&request).await.map_err(|fault| halt(&fault))?;
    let source = effective(&request, version.as_ref());
    Ok(Some(Opened { version, source }))
}

/// The reference as it was followed: with the repository of the Context, and what overwrites made of it.
fn effective(request: &ComponentRequest, version: &dyn ComponentVersion) -> ComponentDescriptorSource {
    match &request.source {
        ComponentSource::Inline(_) => described(&request.source),
        ComponentSource::Reference(reference) => {
            let mut reference = version.replaced().unwrap_or(reference).clone();
            reference.repository_context = reference.repository_context.or_else(|| request.repository_context.clone());
            described(&ComponentSource::Reference(reference))
        }
    }
}

/// A component version as `spec.componentDescriptor` has it.
pub(super) fn described(source: &ComponentSource) -> ComponentDescriptorSource {
    match source {
        ComponentSource::Inline(descriptor) => {
            ComponentDescriptorSource { reference: None, inline: Some(descriptor.clone()) }
        }
        ComponentSource::Reference(reference) => ComponentDescriptorSource {
            reference: Some(installation::ComponentVersion {
                repository_context: reference.repository_context.clone(),
                component_name: reference.name.clone(),
                version: reference.version.clone(),
            }),
            inline: None,
        },
    }
}

/// The credentials of a Context.
pub(super) async fn credentials(host: &Host, context: &Key) -> Step<Credentials> {
    let reading = Reading { host, namespace: context.namespace.clone() };
    let context = host.stores.contexts.get(context).as_deref().cloned().unwrap_or_default();
    reading.credentials(&context).await
}

/// Reads what the Context of an Installation names.
struct Reading<'a> {
    host: &'a Host,
    namespace: String,
}

impl Reading<'_> {
    async fn request(&self, of: &Installation, source: ComponentSource) -> Step<ComponentRequest> {
        let key = Key { namespace: self.namespace.clone(), name: of.spec.context.clone() };
        // That it exists was asked before.
        let context = self.host.stores.contexts.get(&key).as_deref().cloned().unwrap_or_default();
        Ok(ComponentRequest {
            source,
            repository_context: context.spec.repository_context.clone(),
            overwrites: self.overwrites(&context).await?,
            credentials: self.credentials(&context).await?,
            verification: self.verification(of, &context).await?,
        })
    }

    async fn overwrites(&self, context: &Context) -> Step<Vec<Overwrite>> {
        let name = &context.spec.component_version_overwrites;
        if name.is_empty() {
            return Ok(Vec::new());
        }
        let named: ComponentVersionOverwrites = self.named(context, &self.namespace, name).await?;
        let side = |side: orangery_api::overwrites::OverwriteReference| OverwriteSide {
            repository_context: side.repository_context,
            component_name: side.component_name,
            version: side.version,
        };
        let rules = named.spec.overwrites.into_iter();
        Ok(rules.map(|rule| Overwrite { source: side(rule.source), substitution: side(rule.substitution) }).collect())
    }

    async fn credentials(&self, context: &Context) -> Step<Credentials> {
        let mut credentials = Credentials::default();
        for reference in &context.spec.registry_pull_secrets {
            let secret: Secret = self.named(context, &self.namespace, &reference.name).await?;
            credentials.pull_secrets.push((reference.name.clone(), content(secret)));
        }
        if let Some(reference) = &context.spec.ocm_config {
            let map: ConfigMap = self.named(context, &self.namespace, &reference.name).await?;
            let text = map.data.unwrap_or_default().remove(OCM_CONFIG).ok_or_else(|| {
                let context = context.name_any();
                let name = &reference.name;
                let message = format!(
                    "ConfigMap {}/{name}, which Context {context} names as ocmConfig, has no key {OCM_CONFIG}; add it",
                    self.namespace
                );
                stall("InvalidContext", message)
            })?;
            credentials.ocm_config = Some((reference.name.clone(), component::Secret(text.into_bytes())));
        }
        Ok(credentials)
    }

    async fn verification(&self, of: &Installation, context: &Context) -> Step<Option<Verification>> {
        let Some(wanted) = &of.spec.verification else { return Ok(None) };
        let signature = wanted.signature_name.clone();
        let Some(keys) = context.spec.verification_signatures.get(&signature) else {
            let known: Vec<&str> = context.spec.verification_signatures.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!(
                "spec.verification asks for the signature {signature:?}, but Context {} has no verificationSignatures of that \
                 name; known are: {known}",
                context.name_any()
            );
            return Err(stall("InvalidContext", message));
        };
        Ok(Some(Verification {
            signature,
            public_key: self.key(context, keys.public_key_secret_reference.as_ref()).await?,
            ca_certificate: self.key(context, keys.ca_certificate_secret_reference.as_ref()).await?,
        }))
    }

    /// The content of one key of a Secret.
    async fn key(&self, context: &Context, reference: Option<&SecretReference>) -> Step<Option<Vec<u8>>> {
        let Some(SecretReference { name, namespace, key }) = reference else { return Ok(None) };
        let namespace = if namespace.is_empty() { &self.namespace } else { namespace };
        let mut data = content(self.named(context, namespace, name).await?);
        match data.remove(key) {
            Some(component::Secret(bytes)) => Ok(Some(bytes)),
            None => {
                let context = context.name_any();
                let message = format!(
                    "Secret {namespace}/{name}, which Context {context} names for a signature, has no key {key:?}; correct the Context"
                );
                Err(stall("InvalidContext", message))
            }
        }
    }

    /// An object that the Context names.
    async fn named<K>(&self, context: &Context, namespace: &str, name: &str) -> Step<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.host.client.clone(), namespace);
        let kind = K::kind(&());
        let found = api.get_opt(name).await.map_err(|error| {
            let message = format!("{kind} {namespace}/{name} could not be read: {}; it is tried again", told(&error));
            Halt::Retry(Failure::new("ReadContext", "ReadFailed", message))
        })?;
        found.ok_or_else(|| {
            let context = context.name_any();
            let message = format!(
                "{kind} {namespace}/{name}, which Context {context} names, does not exist; create it or correct the Context"
            );
            stall("InvalidContext", message)
        })
    }
}

fn content(secret: Secret) -> BTreeMap<String, component::Secret> {
    let data = secret.data.unwrap_or_default();
    data.into_iter().map(|(key, ByteString(bytes))| (key, component::Secret(bytes))).collect()
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("ReadComponent", reason, message).with_code(Code::ConfigurationProblem))
}
