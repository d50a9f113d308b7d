//! Credentials for the clusters behind targets, as templates ask for them.
//!
//! A template names a target by handing on the Target object that it imported. Only its name counts: what the host acts
//! on is the Target of that name in the namespace of the Installation, whatever a template wrote into the object. One that
//! the Installation does not import is refused, as a blueprint uses what it was given and nothing else (C-38).

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use orangery_blueprint::template_engine::Kubeconfigs;
use orangery_cluster::{Credential, IssuedCredential, Subject, issue_credential};
use orangery_core::{
    digest::sha256,
    error::{Code, Fault, Problem},
    lenient, memory,
    name::{Namespace, ObjectName},
    port::BoxFuture,
    step::Halt,
};
use orangery_policy::{PolicyRequest, Violation};
use orangery_reconcile::Key;
use orangery_turns::HeldBytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::dependencies::imported_targets;
use crate::{controller_context::ControllerContext, secret_values::SecretSource, target_access::Targets};

/// Issues credentials for the templates of one job; the same is issued once.
pub(in crate::installation) struct TargetKubeconfigs {
    host: Arc<ControllerContext>,
    /// The Installation, which is looked up when a credential is asked for: it may be long.
    installation: Key,
    /// The object that asks, in messages.
    whose: String,
    /// Protects what was issued in this job and is kept. Held for one look-up or one change.
    issued: Mutex<KeptCredentials>,
    /// Whether a policy has refused one.
    is_refused: AtomicBool,
}

/// Credentials that were issued in one job, as far as namespaces have room for them: the same is asked for once. One that has none is
/// issued whenever it is asked for (C-286).
struct KeptCredentials {
    /// By target and what was wanted.
    by_request: BTreeMap<(String, Credential), IssuedCredential>,
    /// What all of them take.
    held: HeldBytes,
}

impl KeptCredentials {
    fn keep(&mut self, request: (String, Credential), issued: IssuedCredential) {
        let (target, Credential { name, namespace, .. }) = &request;
        let texts = [target.as_str(), name, namespace, &issued.kubeconfig, &issued.expires];
        let bytes: u64 = texts.into_iter().map(|text| memory::of_text(text.len())).sum();
        if self.held.set(self.held.bytes().saturating_add(bytes)) {
            self.by_request.insert(request, issued);
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Arguments {
    name: ObjectName,
    namespace: Namespace,
    expiration_seconds: i64,
    target: TargetForm,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TargetForm {
    metadata: MetadataForm,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataForm {
    name: ObjectName,
    namespace: Namespace,
}

impl TargetKubeconfigs {
    /// For an Installation.
    pub(in crate::installation) fn new(host: &Arc<ControllerContext>, installation: Key) -> Self {
        let whose = format!("a template of Installation {}", installation.name);
        let held = host.issued.none_of(&Some(installation.namespace.clone()));
        let issued = Mutex::new(KeptCredentials { by_request: BTreeMap::new(), held });
        Self { host: Arc::clone(host), installation, whose, issued, is_refused: AtomicBool::default() }
    }

    /// Whether a policy has refused a credential of this job.
    pub(in crate::installation) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    async fn issued(&self, credential_kind: &str, arguments: &Value) -> Result<IssuedCredential, Fault> {
        let namespace = &self.installation.namespace;
        let (target, wanted) = wanted(credential_kind, arguments, namespace)?;
        let stores = &self.host.stores;
        let imported = stores.installations.get(&self.installation).map(|of| imported_targets(stores, &of));
        if !imported.is_some_and(|imported| imported.contains(target.as_str())) {
            return Err(Fault::denied(format!(
                "{} asks for a credential of Target {namespace}/{target}, which the installation does not import; import it",
                self.whose
            )));
        }
        let key = (target, wanted);
        if let Some(issued) = self.kept().by_request.get(&key) {
            return Ok(issued.clone());
        }
        let targets = Targets { host: &self.host, namespace, whose: &self.whose };
        targets.allowed(PolicyRequest::Credential(credential_kind)).map_err(fault)?;
        let kubeconfig = targets.kubeconfig(&key.0).await.map_err(fault)?;
        let networks = self.host.policies.networks(namespace, &kubeconfig).map_err(fault)?;
        let issued = issue_credential(&kubeconfig.text, &networks, &Some(namespace.clone()), &key.1).await?;
        // A digest, as names are as long as a template makes them.
        let source = SecretSource::Issued(sha256(format!("{key:?} of {}", self.whose).as_bytes()));
        self.host.secrets.learn_kubeconfig(namespace, source, &issued.kubeconfig);
        self.kept().keep(key, issued.clone());
        Ok(issued)
    }

    fn kept(&self) -> MutexGuard<'_, KeptCredentials> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the target, and what is wanted of it.
fn wanted(credential_kind: &str, arguments: &Value, here: &Namespace) -> Result<(String, Credential), Fault> {
    let invalid = |message: String| Fault::invalid(Code::ConfigurationProblem, message);
    let subject = match credential_kind {
        "serviceAccount" => Subject::ServiceAccount,
        "shootAdmin" => Subject::ShootAdmin,
        other => {
            let message =
                format!("there are no credentials of kind {other:?}; known are serviceAccount and shootAdmin");
            return Err(Fault::denied(message));
        }
    };
    let arguments: Arguments = lenient::decode(arguments)
        .map_err(|error| invalid(format!("the arguments for a credential have a wrong form: {error}")))?;
    let MetadataForm { name: target, namespace } = arguments.target.metadata;
    if target.is_empty() {
        return Err(invalid(
            "the target for a credential has no metadata.name; hand on a target import, such as .imports.cluster, as it is"
                .to_owned(),
        ));
    }
    if !namespace.is_empty() && namespace != *here {
        let message = format!(
            "Target {namespace}/{target} is in another namespace than the installation, which is in {here}; import a Target of {here}"
        );
        return Err(Fault::denied(message));
    }
    let Arguments { name, namespace, expiration_seconds: seconds, .. } = arguments;
    Ok((target.into(), Credential { subject, name, namespace, seconds }))
}

fn fault(halt: Halt) -> Fault {
    match halt {
        Halt::Wait(wait) => Fault::later(Code::Unfinished, wait.to_string()),
        Halt::Retry(failure) => Fault::later(Code::InternalProblem, failure.message),
        Halt::Stall(failure) if failure.codes.contains(&Violation::CODE) => {
            Fault::Denied(Problem { code: Violation::CODE, message: failure.message, at: None })
        }
        Halt::Stall(failure) => Fault::invalid(Code::ConfigurationProblem, failure.message),
    }
}

impl Kubeconfigs for TargetKubeconfigs {
    fn issue_credential<'a>(
        &'a self,
        credential_kind: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let issued = self.issued(credential_kind, arguments).await;
            if issued.as_ref().is_err_and(|fault| fault.problem().code == Violation::CODE) {
                self.is_refused.store(true, Ordering::Relaxed);
            }
            let issued = issued?;
            Ok(json!({"kubeconfig": issued.encoded(), "expirationTimestamp": issued.expires}))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller_context::tests::host;

    fn asked(kind: &str, target: Value) -> Result<(String, Credential), String> {
        let arguments = json!({"name": "robot", "namespace": "apps", "expirationSeconds": 600, "target": target});
        wanted(kind, &arguments, &"here".into()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_target_is_known_by_its_name_and_by_nothing_that_a_template_writes_into_it() {
        let target =
            json!({"metadata": {"name": "t", "namespace": "here"}, "spec": {"config": {"kubeconfig": "mine"}}});
        let credential = |subject| Credential { subject, name: "robot".into(), namespace: "apps".into(), seconds: 600 };
        assert_eq!(asked("serviceAccount", target.clone()), Ok(("t".to_owned(), credential(Subject::ServiceAccount))));
        assert_eq!(asked("shootAdmin", target), Ok(("t".to_owned(), credential(Subject::ShootAdmin))));
    }

    #[tokio::test]
    async fn c_286_limits_credentials_that_were_issued_share_a_memory_and_one_without_room_is_not_kept() {
        let host = host();
        let asking = || TargetKubeconfigs::new(&host, Key::new("n", "x"));
        let issued = || IssuedCredential { kubeconfig: "k".repeat(128 << 10), expires: String::new() };
        let request = |number: u64| {
            let (subject, name) = (Subject::ServiceAccount, number.to_string().into());
            ("t".to_owned(), Credential { subject, name, namespace: "n".into(), seconds: 600 })
        };
        let (job, another) = (asking(), asking());
        let most = host.issued.most_of_one() / (128 << 10);
        (0..2 * most).for_each(|number| job.kept().keep(request(number), issued()));
        let kept: Vec<u64> =
            (0..2 * most).filter(|number| job.kept().by_request.contains_key(&request(*number))).collect();
        assert_eq!(kept, (0..most - 1).collect::<Vec<_>>(), "half of it for one namespace, with what leads to them");
        another.kept().keep(request(0), issued());
        assert!(another.kept().by_request.is_empty(), "whichever of its jobs they are for");
        drop(job);
        assert_eq!(host.issued.taken(), 0);
        another.kept().keep(request(0), issued());
        assert_eq!(another.kept().by_request.len(), 1);
    }

    #[test]
    fn what_is_no_target_of_this_namespace_is_refused() {
        let elsewhere = asked("serviceAccount", json!({"metadata": {"name": "t", "namespace": "there"}}));
        assert_eq!(
            elsewhere.unwrap_err(),
            "Target there/t is in another namespace than the installation, which is in here; import a Target of here"
        );
        let made_up = asked("serviceAccount", json!({"spec": {"config": {"kubeconfig": "mine"}}}));
        assert!(made_up.unwrap_err().starts_with("the target for a credential has no metadata.name"));
        assert_eq!(
            asked("root", json!({})).unwrap_err(),
            "there are no credentials of kind \"root\"; known are serviceAccount and shootAdmin"
        );
    }
}
