//! By whose key a component version is verified.

use std::sync::{Arc, Mutex};

use orangery_core::{error::Fault, port::BoxFuture};
use orangery_ocm::{Artifacts, ComponentVersion, ComponentVersions, SignaturePolicy, VersionReference};
use orangery_policy::{Policy, PolicySet, Profile};
use serde_json::{Value, json};

use super::*;
use crate::controller_context::tests::host_with;

const PEM: &str = "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n";

/// A host without any check of signatures of its own. It keeps how a component version was to be verified, and has none.
#[derive(Default)]
struct Unverified {
    asked: Mutex<Vec<Option<Verification>>>,
}

impl ComponentVersions for Unverified {
    fn open<'a>(&'a self, request: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>> {
        self.asked.lock().unwrap().push(request.verification.clone());
        Box::pin(async { Err(Fault::invalid(Code::ConfigurationProblem, "there is none")) })
    }

    fn artifacts(&self, _: &Credentials) -> Result<Arc<dyn Artifacts>, Fault> {
        Err(Fault::invalid(Code::ConfigurationProblem, "there are none"))
    }

    fn signature_policy(&self) -> SignaturePolicy {
        SignaturePolicy::Disabled
    }
}

/// How the component version of an Installation is verified under these rules; the line that refuses it.
async fn verified(signatures: Value, asks: bool) -> Result<Option<Verification>, String> {
    let components = Arc::new(Unverified::default());
    let host = host_with(Arc::<Unverified>::clone(&components));
    let policy = json!({"namespaces": {"names": ["*"]}, "signatures": signatures});
    host.policies.put_policy("p".to_owned(), Policy::read("p", &policy));
    let mut spec = json!({
        "componentDescriptor": {"ref": {"componentName": "example.org/app", "version": "1.0.0"}},
        "blueprint": {"ref": {"resourceName": "blueprint"}},
    });
    if asks {
        spec["verification"] = json!({"signatureName": "release"});
    }
    let of = json!({"metadata": {"name": "x", "namespace": "n", "uid": "u"}, "spec": spec});
    let Err(Halt::Stall(failure)) = open(&host, &serde_json::from_value(of).unwrap()).await else {
        panic!("it was opened")
    };
    let asked = components.asked.lock().unwrap().pop();
    asked.ok_or_else(|| {
        let line = failure.message.split("line ").nth(1).unwrap_or(&failure.message);
        line.split([';', ' ']).next().unwrap_or_default().to_owned()
    })
}

#[tokio::test]
async fn c_47_what_an_administrator_has_a_key_for_is_verified_by_it_wherever_it_is_asked_for() {
    let by_policy = Some(Verification {
        signature: "release".to_owned(),
        public_key: Some(PEM.as_bytes().to_vec()),
        ca_certificate: None,
        keyless: None,
        keys_of: KeySource::Policy("NamespacePolicy p, line spec.signatures.trustedKeys[0]".to_owned()),
        above: None,
    });
    let keys = json!([{"components": ["example.org/*"], "publicKey": PEM}]);
    assert_eq!(verified(json!({"trustedKeys": keys}), true).await, Ok(by_policy.clone()));
    assert_eq!(verified(json!({"trustedKeys": keys}), false).await, Ok(None));
    assert_eq!(verified(json!({}), true).await, Ok(None), "the host verifies nothing");
    assert_eq!(verified(json!({"required": true, "trustedKeys": keys}), true).await, Ok(by_policy));
}

#[tokio::test]
async fn c_47_where_signatures_are_required_no_key_of_the_tenant_counts_also_where_there_is_no_other() {
    let refused = |line: &str| Err(format!("spec.signatures.{line}"));
    assert_eq!(verified(json!({"required": true}), true).await, refused("trustedKeys"));
    assert_eq!(verified(json!({"required": true}), false).await, refused("required"));
    let elsewhere = json!([{"components": ["example.com/*"], "publicKey": PEM}]);
    assert_eq!(verified(json!({"trustedKeys": elsewhere}), true).await, refused("trustedKeys"));
}

/// An overwrite that counts for the repository of the Context alone replaces what names no repository: the key is that for the
/// name that is opened, and not for the one that was written.
#[test]
fn c_106_the_key_is_that_for_the_name_which_is_opened() {
    let keys = json!([{"components": ["example.org/ours/*"], "publicKey": PEM}]);
    let policy = json!({"namespaces": {"names": ["n"]}, "signatures": {"trustedKeys": keys}});
    let set = PolicySet::new(Profile::Compatible, [Policy::read("p", &policy)]);
    let rules = set.of(&"n".into(), &BTreeMap::new());
    let context = json!({"type": "OCIRegistry", "baseUrl": "registry.example"});
    let asked = |name: &str, by: &str| {
        let (name, version) = (name.to_owned(), "1.0.0".to_owned());
        let reference = VersionReference { repository_context: None, name, version };
        let rule = json!([{"source": {"repositoryContext": context}, "substitution": {"componentName": by}}]);
        let source = ComponentSource::Reference(reference);
        let request = ComponentRequest {
            repository_context: Some(context.clone().into()),
            overwrites: serde_json::from_value(rule).unwrap(),
            ..ComponentRequest::of(source.clone())
        };
        let named = |above| trusted(&rules, &request, "release", above).map(|(_, origin)| origin.is_some()).ok();
        (named(None), named(Some(source)))
    };
    assert_eq!(asked("example.org/ours/app", "example.org/theirs/app"), (None, None), "the key is not for that name");
    assert_eq!(asked("example.org/theirs/app", "example.org/ours/app"), (Some(true), Some(true)));
}
