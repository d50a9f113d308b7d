//! What deploy items stem from, where signatures are required (C-75): a blueprint whose signature held. A mark on the Execution
//! says so, and one on each of its items. Others may write what they like there: a mark has a seal of the operator, over the
//! spec, its place and the key by which the blueprint was verified, and each is looked at where the spec is used.

use data_encoding::BASE64;
use orangery_api::{annotation, deploy_item::DeployItem, execution::Execution, marks::Marks};
use orangery_core::{
    digest::{compact, sha256},
    step::Step,
};
use orangery_policy::{EffectivePolicy, PolicyRequest, PolicySubject};
use orangery_reconcile::{Key, Watched};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{controller_context::ControllerContext, namespace_policy::refused};

/// A blueprint whose signature held by a key of the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedOrigin {
    /// The name of the component version by which the key was looked up.
    component: String,
    signature: String,
    /// `sha256:…` of the key.
    key: String,
}

/// The mark as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginMark {
    component: String,
    signature: String,
    seal: String,
}

/// What has a mark.
pub(crate) trait Marked: Watched + Marks {
    /// Its spec.
    fn spec(&self) -> serde_json::Result<Value>;
}

impl Marked for Execution {
    fn spec(&self) -> serde_json::Result<Value> {
        serde_json::to_value(&self.spec)
    }
}

impl Marked for DeployItem {
    fn spec(&self) -> serde_json::Result<Value> {
        serde_json::to_value(&self.spec)
    }
}

impl SignedOrigin {
    pub(crate) fn new(component: String, signature: String, pem: &str) -> Self {
        Self { component, signature, key: sha256(pem.trim().as_bytes()) }
    }

    /// Marks an object whose spec comes from here; nothing of it may be changed afterwards.
    pub(crate) fn mark<K: Marked>(&self, host: &ControllerContext, object: &mut K) {
        let Some(sealed) = self.sealed(object) else { return };
        let Self { component, signature, key: _ } = self.clone();
        let mark = OriginMark { component, signature, seal: BASE64.encode(&host.key.seals().sign(&sealed)) };
        if let Ok(mark) = serde_json::to_string(&mark) {
            object.meta_mut().annotations.get_or_insert_default().insert(annotation::SIGNED_ORIGIN.to_owned(), mark);
        }
    }

    /// The origin that an object is marked with, where signatures are required; `None` where they are not.
    ///
    /// # Errors
    /// A policy refuses what has no mark, one of somebody else or of another spec, and one by a key that does not count.
    pub(crate) fn of<K: Marked>(
        host: &ControllerContext,
        rules: &EffectivePolicy,
        subject: PolicySubject<'_>,
        object: &K,
    ) -> Step<Option<Self>> {
        if !rules.requires_signatures() {
            return Ok(None);
        }
        let mark = object.annotation(annotation::SIGNED_ORIGIN);
        if let Some(OriginMark { component, signature, seal }) = mark.and_then(|mark| serde_json::from_str(mark).ok()) {
            let key = rules.trusted_key(&component, &signature).map_err(|violation| refused(&violation))?;
            let origin = key.map(|pem| Self::new(component, signature, pem));
            let is_sealed = |origin: &Self| {
                let (sealed, tag) = (origin.sealed(object), BASE64.decode(seal.as_bytes()).ok());
                sealed.zip(tag).is_some_and(|(sealed, tag)| host.key.seals().verify(&sealed, &tag))
            };
            if let Some(origin) = origin.filter(is_sealed) {
                return Ok(Some(origin));
            }
        }
        let name = Key::of(object).name;
        let checked = rules.check(subject, PolicyRequest::UnsignedItem(&name));
        checked.map_err(|violation| refused(&violation)).map(|()| None)
    }

    /// What a seal is over. The spec is in its canonical form: a server may write numbers otherwise.
    fn sealed<K: Marked>(&self, object: &K) -> Option<Vec<u8>> {
        let Key { namespace, name } = Key::of(object);
        let Self { component, signature, key } = self;
        let kind = K::kind(&());
        let place = (&kind, &namespace, &name);
        let spec = compact(&object.spec().ok()?);
        serde_json::to_vec(&("signed origin", place, component, signature, key, spec)).ok()
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::step::Halt;
    use orangery_policy::Policy;
    use serde_json::json;

    use super::*;
    use crate::controller_context::tests::host;

    const PEM: &str = "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n";
    const OTHER: &str = "-----BEGIN PUBLIC KEY-----\nAQ==\n-----END PUBLIC KEY-----\n";

    fn item(name: &str, config: Value) -> DeployItem {
        let metadata = json!({"name": name, "namespace": "n"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "x/y", "config": config}})).unwrap()
    }

    /// Whether an object counts as signed under a policy; the line that refuses it.
    fn counts<K: Marked>(host: &ControllerContext, signatures: Value, object: &K) -> Result<bool, String> {
        let policy = Policy::read("p", &json!({"namespaces": {"names": ["*"]}, "signatures": signatures}));
        host.policies.put_policy("p".to_owned(), policy);
        let rules = host.policies.of(&Key::of(object).namespace).unwrap();
        match SignedOrigin::of(host, &rules, PolicySubject::Item("x/y"), object) {
            Ok(origin) => Ok(origin.is_some()),
            Err(Halt::Stall(failure)) => {
                let line = failure.message.split("line ").nth(1).unwrap();
                Err(line.split([';', ' ']).next().unwrap().to_owned())
            }
            Err(halt) => panic!("{halt:?}"),
        }
    }

    fn required(key: &str) -> Value {
        json!({"required": true, "trustedKeys": [{"components": ["example.org/*"], "publicKey": key}]})
    }

    #[tokio::test]
    async fn c_75_a_mark_is_good_for_one_object_as_it_was_made_and_a_key_that_counts() {
        let (host, origin) = (host(), SignedOrigin::new("example.org/app".into(), "release".into(), PEM));
        let mut made = item("a", json!({"number": 1.0, "text": "x"}));
        origin.mark(&host, &mut made);
        assert_eq!(counts(&host, required(PEM), &made), Ok(true));
        let refused = Err("spec.signatures.required".to_owned());
        let changed = |change: fn(&mut DeployItem)| {
            let mut changed = made.clone();
            change(&mut changed);
            counts(&host, required(PEM), &changed)
        };
        assert_eq!(changed(|item| item.metadata.name = Some("b".into())), refused, "another item");
        assert_eq!(changed(|item| item.metadata.namespace = Some("m".into())), refused, "another namespace");
        assert_eq!(changed(|item| item.spec.config = Some(json!({}))), refused, "another configuration");
        assert_eq!(changed(|item| item.spec.context = "other".into()), refused, "another Context");
        assert_eq!(changed(|item| item.spec.on_delete = Some(Default::default())), refused);
        assert_eq!(changed(|item| item.metadata.annotations = None), refused);
        // As a server of Kubernetes writes the same number.
        assert_eq!(changed(|item| item.spec.config = Some(json!({"text": "x", "number": 1}))), Ok(true));
        assert_eq!(counts(&host, required(OTHER), &made), refused, "the key was replaced");
        let elsewhere = json!({"required": true, "trustedKeys": [{"components": ["b"], "publicKey": PEM}]});
        assert_eq!(counts(&host, elsewhere, &made), Err("spec.signatures.trustedKeys".to_owned()));
        assert_eq!(counts(&host, json!({}), &item("bare", json!({}))), Ok(false), "nothing is asked");
    }

    #[tokio::test]
    async fn c_75_a_mark_that_somebody_made_up_or_took_from_another_kind_is_none() {
        let (host, origin) = (host(), SignedOrigin::new("example.org/app".into(), "release".into(), PEM));
        let refused = Err("spec.signatures.required".to_owned());
        let mut execution = Execution::default();
        execution.metadata.name = Some("a".into());
        execution.metadata.namespace = Some("n".into());
        origin.mark(&host, &mut execution);
        assert_eq!(counts(&host, required(PEM), &execution), Ok(true));
        let mut other = item("a", json!({}));
        other.metadata.annotations = execution.metadata.annotations.clone();
        assert_eq!(counts(&host, required(PEM), &other), refused);
        for mark in ["", "{}", "null", r#"{"component":"example.org/app","signature":"release","seal":""}"#] {
            let marks = [(annotation::SIGNED_ORIGIN.to_owned(), mark.to_owned())];
            other.metadata.annotations = Some(marks.into());
            assert_eq!(counts(&host, required(PEM), &other), refused, "{mark}");
        }
    }
}
