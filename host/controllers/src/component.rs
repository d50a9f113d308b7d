//! The component version of an Installation: what spec and Context say of it is gathered, the crate `registry` opens it.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, ResourceExt, core::NamespaceResourceScope};
use orangery_api::{
    context::Context,
    convert::{CHART_CREDENTIALS, ContextError, ContextInputs, ContextNames, ContextObjects},
    installation::{ComponentDescriptorSource, Installation},
    overwrites::ComponentVersionOverwrites,
};
use orangery_core::{
    error::{Code, Failure},
    memory,
    name::{Namespace, ObjectName},
    step::{Halt, Step},
};
use orangery_ocm::{
    ComponentRequest, ComponentSource, Credentials, Descriptor, KeySource, MOST_CREDENTIAL_BYTES, Verification,
};
use orangery_policy::{EffectivePolicy, PolicyRequest, PolicySubject, TrustedSigner};
use orangery_reconcile::{Key, reserve_for_reading};
use orangery_render::{LoadError, OpenedComponent};
use orangery_turns::{lending, off_the_executor};
use serde::de::DeserializeOwned;

use crate::{
    controller_context::ControllerContext,
    namespace_policy::refused,
    object::message_of,
    object_access::check_name,
    signed_origin::SignedOrigin,
    tree::{ancestors, parent},
};

/// How often what a Context names is in memory: as it was read, and as what it is for gets it.
const COPIES_OF_CREDENTIALS: u64 = 2;

/// The component version of an Installation.
pub(crate) struct InstallationComponent {
    pub(crate) opened: OpenedComponent,
    /// Whose signature held, where it did by a key of the policies.
    pub(crate) origin: Option<SignedOrigin>,
}

/// Opens the component version of an Installation; `None` where it names none.
pub(crate) async fn open(host: &ControllerContext, of: &Installation) -> Step<Option<InstallationComponent>> {
    let source = source_of(of)?;
    // That the Context exists was asked before.
    let key = Key { name: of.spec.context.clone().into(), ..Key::of(of) };
    let rules = host.policies.of(&key.namespace)?;
    check_source(&rules, of)?;
    let policy = host.components.signature_policy();
    let verifies = policy.verifies(source.is_some(), of.spec.verification.is_some());
    // What an administrator has a key for is verified wherever it is asked for.
    let verifies = verifies.map_err(|error| stall("NotSigned", &error))? || rules.decides_on_keys();
    let Some(source) = source else { return Ok(None) };
    let context = context_of(host, &key).await?;
    let verification = of.spec.verification.as_ref().filter(|_| verifies);
    let above = if verifies { above(host, of, &key.namespace)? } else { None };
    // Keys of a policy take the place of those that the Context names.
    let (by_policy, by_context) = if rules.decides_on_keys() { (verification, None) } else { (None, verification) };
    let objects =
        gather(host, &ContextNames::of(&context, &key.namespace, by_context), (&context, &key.namespace)).await?;
    let inputs = ContextInputs { context: &context, namespace: &key.namespace, objects: &objects };
    let mut request = inputs.request(source, by_context, above.clone()).map_err(|error| invalid(&error))?;
    let mut origin = None;
    if let Some(wanted) = by_policy {
        let (verification, verified) = trusted(&rules, &request, &wanted.signature_name, above)?;
        (request.verification, origin) = (Some(verification), verified);
    }
    request.credentials.allowed = rules.sources(&key.namespace, PolicySubject::Installation);
    let opened = host.components.open(&request).await;
    let version = opened.map_err(|fault| load_halt(&LoadError::Component(fault)))?;
    let source = ComponentDescriptorSource::from(&request.followed(version.replaced()));
    let source = serde_json::to_value(source).unwrap_or_default();
    let opened = OpenedComponent { version, source, overwritten: request.overwritten() };
    Ok(Some(InstallationComponent { opened, origin }))
}

/// Whether the policies of its namespace allow that a job of an Installation begins, and where its blueprint comes from (C-47,
/// C-49). At each use: a policy may change during a job.
pub(crate) fn check_source(rules: &EffectivePolicy, of: &Installation) -> Step<()> {
    let mut asked = of.policy_requests().into_iter();
    let checked = asked.try_for_each(|request| rules.check(PolicySubject::Installation, request));
    checked.map_err(|violation| refused(&violation))
}

/// A signature that must hold by a key of the policies. What stands below a root is verified by its signature, so it is the
/// root's name that the key is looked up by; of a reference that the Context replaces, it is the name that is opened.
fn trusted(
    rules: &EffectivePolicy,
    request: &ComponentRequest,
    signature: &str,
    above: Option<ComponentSource>,
) -> Step<(Verification, Option<SignedOrigin>)> {
    let component = match above.as_ref().unwrap_or(&request.source) {
        ComponentSource::Reference(reference) => request.replaced(reference).reference.name,
        ComponentSource::Inline(document) => {
            let parsed = Descriptor::parse(document);
            parsed.map_err(|error| stall("InvalidComponentDescriptor", &error))?.name.clone()
        }
    };
    let key = rules.trusted_key(&component, signature).map_err(|violation| refused(&violation))?;
    let (public_key, keyless) = match key.as_ref().map(|key| key.signer) {
        Some(TrustedSigner::PublicKey(pem)) => (Some(pem.as_bytes().to_vec()), None),
        Some(TrustedSigner::Keyless(rule)) => (None, rule.signer()),
        None => (None, None),
    };
    let origin = key.as_ref().map(|key| SignedOrigin::new(component.clone(), signature.to_owned(), key.signer));
    let keys_of = key.map_or(KeySource::Context, |key| KeySource::Policy(key.line));
    let verification =
        Verification { signature: signature.to_owned(), public_key, ca_certificate: None, keyless, keys_of, above };
    Ok((verification, origin))
}

/// What `spec.componentDescriptor` of an Installation names; `None` where it has none.
fn source_of(of: &Installation) -> Step<Option<ComponentSource>> {
    let source = of.spec.component_descriptor.as_ref().map(ComponentSource::try_from).transpose();
    source.map_err(|error| stall("InvalidComponentDescriptor", &error))
}

/// What the root of a sub-installation names: its signature covers what is below it.
fn above(host: &ControllerContext, of: &Installation, namespace: &Namespace) -> Step<Option<ComponentSource>> {
    let mut above = None;
    for found in ancestors(&host.stores, &Key::new(namespace, parent(of))) {
        above = source_of(&found)?.or(above);
    }
    Ok(above)
}

/// The request for a component version that no Installation names, by its Context alone. Where everything has to be signed,
/// there is none: nothing says by whom.
pub(crate) async fn request(
    host: &ControllerContext,
    key: &Key,
    source: ComponentSource,
    subject: PolicySubject<'_>,
) -> Step<ComponentRequest> {
    let rules = host.policies.of(&key.namespace)?;
    let name = match &source {
        ComponentSource::Reference(reference) => reference.name.as_str(),
        ComponentSource::Inline(_) => "that is written inline",
    };
    rules.check(subject, PolicyRequest::UnsignedComponent(name)).map_err(|violation| refused(&violation))?;
    let verifies = host.components.signature_policy().verifies(true, false);
    verifies.map_err(|error| stall("NotSigned", &error))?;
    let context = context_of(host, key).await?;
    let objects = gather(host, &ContextNames::of(&context, &key.namespace, None), (&context, &key.namespace)).await?;
    let inputs = ContextInputs { context: &context, namespace: &key.namespace, objects: &objects };
    let mut request = inputs.request(source, None, None).map_err(|error| invalid(&error))?;
    request.credentials.allowed = rules.sources(&key.namespace, subject);
    Ok(request)
}

/// The credentials of a Context, for what the policy of its namespace allows.
pub(crate) async fn credentials(host: &ControllerContext, key: &Key, subject: PolicySubject<'_>) -> Step<Credentials> {
    let context = context_of(host, key).await?;
    let objects =
        gather(host, &ContextNames::of_credentials(&context, &key.namespace), (&context, &key.namespace)).await?;
    let inputs = ContextInputs { context: &context, namespace: &key.namespace, objects: &objects };
    let mut credentials = inputs.credentials().map_err(|error| invalid(&error))?;
    credentials.allowed = host.policies.of(&key.namespace)?.sources(&key.namespace, subject);
    Ok(credentials)
}

/// Reads what a Context names. Thousands of objects take long, and nobody waits for that who has a slot to wait for.
async fn gather(host: &ControllerContext, names: &ContextNames, of: (&Context, &Namespace)) -> Step<ContextObjects> {
    lending(read_named(host, names, of)).await
}

/// The same. Its credentials have a sum, and count with what calls read (C-280).
async fn read_named(
    host: &ControllerContext,
    names: &ContextNames,
    (context, namespace): (&Context, &Namespace),
) -> Step<ContextObjects> {
    let mut objects = ContextObjects::default();
    let has_any = !names.secrets.is_empty() || names.ocm_config.is_some() || names.overwrites.is_some();
    let most = MOST_CREDENTIAL_BYTES * COPIES_OF_CREDENTIALS;
    let reserved = if has_any { Some(reserve_for_reading(namespace, most).await) } else { None };
    // Whoever waits for memory has no turn, and whoever has a turn waits for none.
    let _turn = if has_any { Some(host.named_reads.acquire(&Some(namespace.clone())).await) } else { None };
    let mut bytes = 0;
    let mut count = |more: u64| {
        bytes += more;
        let fits = bytes <= MOST_CREDENTIAL_BYTES;
        if fits { Ok(bytes) } else { Err(invalid(&ContextError::TooLong { context: context.name_any() })) }
    };
    if let Some(name) = &names.overwrites {
        objects.overwrites = named::<ComponentVersionOverwrites>(host, namespace, &name.into()).await?;
        count(objects.overwrites.iter().map(ComponentVersionOverwrites::memory).sum())?;
    }
    for (namespace, name) in &names.secrets {
        if let Some(secret) = named::<Secret>(host, namespace, name).await? {
            let content = content(secret);
            count(content.values().map(|orangery_ocm::Secret(bytes)| bytes.len() as u64).sum())?;
            objects.secrets.insert((namespace.clone(), name.clone()), content);
        }
    }
    if let Some(name) = &names.ocm_config {
        let map: Option<ConfigMap> = named(host, namespace, &name.into()).await?;
        objects.ocm_config = map.map(|map| map.data.unwrap_or_default());
        count(objects.ocm_config.iter().flat_map(BTreeMap::values).map(|text| text.len() as u64).sum())?;
    }
    let bytes = count(0)?;
    for ((namespace, name), content) in &objects.secrets {
        host.secrets
            .learn_secret(&Key::new(namespace, name), content.values().map(|orangery_ocm::Secret(bytes)| bytes));
    }
    if let Some(reserved) = reserved {
        reserved.takes(bytes * COPIES_OF_CREDENTIALS).await;
    }
    Ok(objects)
}

/// An object that a Context names; `None` where it does not exist.
async fn named<K>(host: &ControllerContext, namespace: &Namespace, name: &ObjectName) -> Step<Option<K>>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    check_name::<K>(namespace, name)?;
    let api: Api<K> = Api::namespaced(host.client.clone(), namespace);
    api.get_opt(name).await.map_err(|error| {
        let kind = K::kind(&());
        let message = format!("{kind} {namespace}/{name} could not be read: {}; it is tried again", message_of(&error));
        Halt::Retry(Failure::new("ReadContext", "ReadFailed", message))
    })
}

pub(crate) fn content(secret: Secret) -> BTreeMap<String, orangery_ocm::Secret> {
    let data = secret.data.unwrap_or_default();
    data.into_iter().map(|(key, ByteString(bytes))| (key, orangery_ocm::Secret(bytes))).collect()
}

/// What counts of a Context, an empty one where it does not exist: that it does is asked before. A long one is made whole off the
/// executor, and counts until the call ends; what nobody reads here is dropped at once (C-285).
async fn context_of(host: &ControllerContext, key: &Key) -> Step<Context> {
    let contexts = &host.stores.contexts;
    let bytes = contexts.memory(key);
    let found = if bytes == 0 {
        contexts.get(key)
    } else {
        let reserved = reserve_for_reading(&key.namespace, bytes).await;
        let found = off_the_executor(|| contexts.get(key));
        reserved.takes(bytes).await;
        found
    };
    let Some(found) = found else { return Ok(Context::default()) };
    let mut context = Arc::unwrap_or_clone(found);
    context.spec.configurations.retain(|name, _| name == CHART_CREDENTIALS);
    if context.spec.configurations.values().any(|written| memory::of(written) > MOST_CREDENTIAL_BYTES) {
        return Err(invalid(&ContextError::TooLong { context: key.name.to_string() }));
    }
    Ok(context)
}

/// How a blueprint that cannot be loaded ends the walk.
pub(crate) fn load_halt(error: &LoadError) -> Halt {
    if error.is_transient() { Halt::Retry(error.failure()) } else { Halt::Stall(error.failure()) }
}

fn invalid(error: &ContextError) -> Halt {
    stall("InvalidContext", error)
}

fn stall(reason: &str, error: &impl std::error::Error) -> Halt {
    Halt::Stall(Failure::new("ReadComponent", reason, error.to_string()).with_code(Code::ConfigurationProblem))
}

#[cfg(test)]
mod tests;
