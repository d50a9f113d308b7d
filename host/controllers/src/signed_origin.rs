//! What deploy items stem from, where signatures are required (C-75): a blueprint whose signature held. A mark on the Execution
//! says so, and one on each of its items. Others may write what they like there: a mark has a seal of the operator, over the
//! spec, its place and the key by which the blueprint was verified, and each is looked at where the spec is used. It is also
//! over the uid and the generation, which only the server counts: what was put back is no longer as it was made (C-69).

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_api::{annotation, deploy_item::DeployItem, execution::Execution, marks::Marks};
use orangery_core::{
    digest::{compact, sha256},
    step::Step,
};
use orangery_policy::{EffectivePolicy, PolicyRequest, PolicySubject, TrustedSigner};
use orangery_reconcile::{Key, Watched, WriteError, Writer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    controller_context::ControllerContext,
    namespace_policy::refused,
    object::{generation_of, uid_of},
};

/// A blueprint whose signature held by a key of the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedOrigin {
    /// The name of the component version by which the key was looked up.
    component: String,
    signature: String,
    /// `sha256:…` of the key, or of who signs without one.
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
    pub(crate) fn new(component: String, signature: String, signer: TrustedSigner<'_>) -> Self {
        Self { component, signature, key: sha256(signer.text().as_bytes()) }
    }

    /// Marks an object whose spec comes from here, as it is once it is written over `before`; nothing of the spec may be
    /// changed afterwards.
    pub(crate) fn mark<K: Marked>(&self, host: &ControllerContext, before: &K, object: &mut K) {
        let is_changed = before.spec().ok() != object.spec().ok();
        self.mark_at(host, generation_of(before).saturating_add(i64::from(is_changed)), object);
    }

    fn mark_at<K: Marked>(&self, host: &ControllerContext, generation: i64, object: &mut K) {
        let Some(sealed) = self.sealed(object, generation) else { return };
        let Self { component, signature, key: _ } = self.clone();
        let mark = OriginMark { component, signature, seal: BASE64.encode(&host.key.seals().sign(&sealed)) };
        if let Ok(mark) = serde_json::to_string(&mark) {
            object.meta_mut().annotations.get_or_insert_default().insert(annotation::SIGNED_ORIGIN.to_owned(), mark);
        }
    }

    /// Marks what was `written` for `wanted` anew, where the server gave it a uid or a generation that its mark is not for: a
    /// new object is written twice, and a crash in between leaves one without a mark, for the next job to mark.
    ///
    /// # Errors
    /// [`WriteError`]
    pub(crate) async fn mark_written<K: Marked>(
        &self,
        host: &ControllerContext,
        writer: &Writer<K>,
        wanted: &K,
        written: Arc<K>,
    ) -> Result<(), WriteError> {
        let mut marked = wanted.clone();
        marked.meta_mut().clone_from(written.meta());
        self.mark_at(host, generation_of(written.as_ref()), &mut marked);
        let mut after = K::clone(&written);
        after.meta_mut().annotations.clone_from(&marked.meta().annotations);
        writer.update(&written, &after).await.map(drop)
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
            let origin = key.map(|key| Self::new(component, signature, key.signer));
            let tag = BASE64.decode(seal.as_bytes()).ok();
            // A server counts the call to delete as one more generation.
            let before_deletion = object.is_deleting().then(|| generation_of(object).saturating_sub(1));
            let is_sealed = |origin: &Self| {
                // Only the operator can look at a seal; whoever plans with a mark says so.
                if !host.key.is_operators() {
                    return true;
                }
                let generations = before_deletion.into_iter().chain([generation_of(object)]);
                let mut sealed = generations.filter_map(|generation| origin.sealed(object, generation));
                tag.as_ref().is_some_and(|tag| sealed.any(|sealed| host.key.seals().verify(&sealed, tag)))
            };
            if let Some(origin) = origin.filter(is_sealed) {
                return Ok(Some(origin));
            }
        }
        let name = Key::of(object).name;
        let checked = rules.check(subject, PolicyRequest::UnsignedItem(&name));
        checked.map_err(|violation| refused(&violation)).map(|()| None)
    }

    /// What a seal is over. The spec is in its canonical form: a server may write numbers otherwise. `None` before a server
    /// has made the object.
    fn sealed<K: Marked>(&self, object: &K, generation: i64) -> Option<Vec<u8>> {
        let uid = Some(uid_of(object)).filter(|uid| !uid.is_empty())?;
        let Key { namespace, name } = Key::of(object);
        let Self { component, signature, key } = self;
        let kind = K::kind(&());
        let place = (&kind, &namespace, &name, uid, generation);
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
        let metadata = json!({"name": name, "namespace": "n", "uid": "u", "generation": 2});
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
        let (host, origin) =
            (host(), SignedOrigin::new("example.org/app".into(), "release".into(), TrustedSigner::PublicKey(PEM)));
        let mut made = item("a", json!({"number": 1.0, "text": "x"}));
        origin.mark(&host, &made.clone(), &mut made);
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
    async fn c_69_a_mark_is_good_for_one_generation_of_one_object() {
        let (host, origin) =
            (host(), SignedOrigin::new("example.org/app".into(), "release".into(), TrustedSigner::PublicKey(PEM)));
        let refused = Err("spec.signatures.required".to_owned());
        let deleted = |item: &mut DeployItem| {
            item.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        };
        let first = item("a", json!({"version": 1}));
        let mut second = item("a", json!({"version": 2}));
        origin.mark(&host, &first, &mut second);
        let at = |generation: i64, uid: &str, change: &dyn Fn(&mut DeployItem)| {
            let mut stored = second.clone();
            (stored.metadata.generation, stored.metadata.uid) = (Some(generation), Some(uid.to_owned()));
            change(&mut stored);
            counts(&host, required(PEM), &stored)
        };
        assert_eq!(at(3, "u", &|_| ()), Ok(true), "as it is written over another spec");
        assert_eq!(at(2, "u", &|_| ()), refused);
        assert_eq!(at(5, "u", &|_| ()), refused, "put back after another one was written");
        assert_eq!(at(3, "v", &|_| ()), refused, "made anew under its name");
        assert_eq!(at(4, "u", &deleted), Ok(true), "the call to delete counts as one");
        assert_eq!(at(3, "u", &deleted), Ok(true), "written while it is being deleted");
        assert_eq!(at(5, "u", &deleted), refused, "put back before or after the call to delete");
        let mut unmade = item("a", json!({}));
        unmade.metadata.uid = None;
        origin.mark(&host, &unmade.clone(), &mut unmade);
        assert_eq!(unmade.metadata.annotations, None, "nothing is known of it that a mark could be for");
    }

    #[tokio::test]
    async fn c_87_a_command_without_the_key_of_the_operator_takes_marks_as_they_are_and_refuses_what_has_none() {
        let mut planning = Arc::into_inner(host()).unwrap();
        planning.key = crate::HostKey::unknown(&[1; 32]);
        let mut made = item("a", json!({}));
        let refused = Err("spec.signatures.required".to_owned());
        assert_eq!(counts(&planning, required(PEM), &made), refused);
        SignedOrigin::new("example.org/app".into(), "release".into(), TrustedSigner::PublicKey(PEM)).mark(
            &host(),
            &made.clone(),
            &mut made,
        );
        assert_eq!(counts(&planning, required(PEM), &made), Ok(true));
        let elsewhere = json!({"required": true, "trustedKeys": [{"components": ["b"], "publicKey": PEM}]});
        assert_eq!(counts(&planning, elsewhere, &made), Err("spec.signatures.trustedKeys".to_owned()));
    }

    #[tokio::test]
    async fn c_75_a_mark_that_somebody_made_up_or_took_from_another_kind_is_none() {
        let (host, origin) =
            (host(), SignedOrigin::new("example.org/app".into(), "release".into(), TrustedSigner::PublicKey(PEM)));
        let refused = Err("spec.signatures.required".to_owned());
        let mut execution = Execution::default();
        execution.metadata.name = Some("a".into());
        execution.metadata.namespace = Some("n".into());
        execution.metadata.uid = Some("u".into());
        origin.mark(&host, &execution.clone(), &mut execution);
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
