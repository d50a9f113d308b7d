//! Data of Secrets in DataObjects, which are marked (C-41), and in what gate expressions read: encrypted with the operator's key
//! where a policy says so (C-81).

use std::{borrow::Cow, collections::BTreeMap};

use kube::ResourceExt as _;
use orangery_api::{
    annotation,
    data_object::{DataObject, ENCRYPTED},
    label,
    marks::Marks as _,
};
use orangery_blueprint::{import::SecretData, record::UndecryptableData};
use orangery_core::{digest::stored_hash, error::Failure, name::Namespace, step::Step};
use orangery_policy::{PolicyRequest, PolicySubject, SecretDataRule};
use orangery_reconcile::Key;
use serde_json::{Value, json};

use crate::{encryption::EncryptionKey, namespace_policy::NamespacePolicies, stores::StoredKind};

/// The value of the label [`label::SECRET_DATA`].
pub(crate) fn mark(secret: SecretData) -> &'static str {
    match secret {
        SecretData::Whole => label::SECRET_DATA_WHOLE,
        SecretData::Partly => label::SECRET_DATA_PARTLY,
    }
}

/// Whether a DataObject that is about to be written is to be encrypted.
///
/// # Errors
/// A policy refuses data of Secrets in DataObjects, or it is not known yet what counts.
pub(crate) fn is_encrypted(policies: &NamespacePolicies, key: &Key, secret: Option<SecretData>) -> Step<bool> {
    Ok(secret.is_some() && encrypts(policies, &key.namespace, PolicyRequest::SecretData(&key.name))?)
}

/// Whether data of Secrets, which is about to be written as this request says, is to be encrypted.
fn encrypts(policies: &NamespacePolicies, namespace: &Namespace, request: PolicyRequest<'_>) -> Step<bool> {
    policies.check(namespace, PolicySubject::Installation, request)?;
    Ok(policies.of(namespace)?.secret_data() == SecretDataRule::Encrypted)
}

/// What was encrypted for a subject of one of these owners.
fn decrypted<'o>(
    key: &EncryptionKey,
    encrypted: &str,
    owners: impl Iterator<Item = &'o str>,
    subject: impl Fn(&str) -> String,
) -> Option<Value> {
    let opened = owners.take(MOST_OWNERS).find_map(|owner| key.decrypt(&subject(owner), encrypted));
    opened.and_then(|clear| serde_json::from_slice(&clear).ok())
}

/// Encrypts the data of a DataObject that has its name, its namespace and the uid of its owner. Its hash is that of what is
/// written then: one of the data would let whoever reads it try values.
pub(crate) fn encrypt(key: &EncryptionKey, object: &mut DataObject, owner: &str) {
    let encrypted = key.encrypt(&subject(object, owner), object.spec.data.to_string().as_bytes());
    object.spec.data = json!({ENCRYPTED: encrypted});
    let hash = stored_hash(&object.spec.data);
    object.metadata.annotations.get_or_insert_default().insert(annotation::HASH.to_owned(), hash);
}

/// What gate expressions read of imports, as it may stand in an object that others read: data of Secrets as the policy of the
/// namespace has it. `owner` is the uid of the Installation that writes it.
///
/// # Errors
/// As of [`is_encrypted`].
pub(crate) fn hide_imports(
    (policies, key): (&NamespacePolicies, &EncryptionKey),
    holder: &ImportsHolder<'_>,
    owner: &str,
    secret: impl Fn(&Value) -> Option<SecretData>,
    imports: BTreeMap<String, Value>,
) -> Step<BTreeMap<String, Value>> {
    let hide = |(name, value): (String, Value)| {
        let named = format!("{} {}", holder.kind.name(), holder.key.name);
        let request = PolicyRequest::SecretDataOfGates(&named);
        if secret(&value).is_none() || !encrypts(policies, &holder.key.namespace, request)? {
            return Ok((name, value));
        }
        let hidden = key.encrypt(&holder.subject(&name, owner), value.to_string().as_bytes());
        Ok((name, json!({ENCRYPTED: hidden})))
    };
    imports.into_iter().map(hide).collect()
}

/// The same in clear; `None` where none of it is encrypted.
///
/// # Errors
/// One of them is encrypted, and not by this operator for this object of one of its owners.
pub(crate) fn clear_imports(
    key: &EncryptionKey,
    holder: &ImportsHolder<'_>,
    owners: &[&str],
    imports: &BTreeMap<String, Value>,
) -> Option<Result<BTreeMap<String, Value>, Failure>> {
    imports.values().find_map(encrypted)?;
    let clear = |(name, value): (&String, &Value)| {
        let Some(hidden) = encrypted(value) else { return Ok((name.clone(), value.clone())) };
        let clear = decrypted(key, hidden, owners.iter().copied(), |owner| holder.subject(name, owner));
        clear.map(|clear| (name.clone(), clear)).ok_or_else(|| holder.undecryptable(name))
    };
    Some(imports.iter().map(clear).collect())
}

fn encrypted(value: &Value) -> Option<&str> {
    value.as_object().filter(|members| members.len() == 1)?.get(ENCRYPTED)?.as_str()
}

/// The object that holds what gate expressions read.
pub(crate) struct ImportsHolder<'a> {
    /// An Installation, or an Execution, which has the name of its Installation.
    pub(crate) kind: StoredKind,
    pub(crate) key: &'a Key,
}

impl ImportsHolder<'_> {
    /// What an import is encrypted for: one object of one owner.
    fn subject(&self, import: &str, owner: &str) -> String {
        let Self { kind, key: Key { namespace, name } } = self;
        let kind = kind.name();
        format!("import {import:?} of {kind} {namespace:?} {name:?} of {owner}")
    }

    fn undecryptable(&self, import: &str) -> Failure {
        let Self { kind, key: Key { name, .. } } = self;
        let kind = kind.name();
        let message = format!(
            "what gate expressions read of the import {import} is encrypted in {kind} {name}, and this operator cannot decrypt it: \
             it was copied or edited, or written under another key of the operator; run Installation {name} again, which \
             writes it anew"
        );
        Failure::new("ReadImports", UndecryptableData::REASON, message)
    }
}

/// The data of a DataObject in clear.
///
/// # Errors
/// It is encrypted, and not by this operator for this object of one of its owners.
pub(crate) fn clear_data<'a>(key: &EncryptionKey, object: &'a DataObject) -> Result<Cow<'a, Value>, UndecryptableData> {
    let Some(encrypted) = object.encrypted() else { return Ok(Cow::Borrowed(&object.spec.data)) };
    let owners = object.metadata.owner_references.iter().flatten().map(|owner| owner.uid.as_str());
    let clear = decrypted(key, encrypted, owners, |owner| subject(object, owner));
    clear.map(Cow::Owned).ok_or_else(|| UndecryptableData {
        name: object.name_any(),
        source_label: object.label(label::SOURCE).map(str::to_owned),
    })
}

/// The most owners of a DataObject that are tried: it has one.
const MOST_OWNERS: usize = 4;

/// What data is encrypted for: one object of one owner.
fn subject(object: &DataObject, owner: &str) -> String {
    let (namespace, name) = (object.metadata.namespace.as_deref(), object.metadata.name.as_deref());
    format!("DataObject {namespace:?} {name:?} of {owner}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;
    use crate::seed::HostKey;

    const CONTENT: &str = "hunter2";

    fn object(name: &str, owner: &str) -> DataObject {
        let metadata = json!({
            "name": name, "namespace": "a", "labels": {"data.landscaper.gardener.cloud/source": "Inst.x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner}],
        });
        serde_json::from_value(json!({"metadata": metadata, "data": {"password": CONTENT}})).unwrap()
    }

    #[test]
    fn c_81_encrypted_data_says_nothing_and_is_read_where_it_was_written() {
        let key = HostKey::new(&[1; 32]);
        let mut written = object("d", "u");
        encrypt(key.encryption(), &mut written, "u");
        let text = serde_json::to_string(&written).unwrap();
        assert!(!text.contains(CONTENT) && !text.contains(&stored_hash(&json!({"password": CONTENT}))), "{text}");
        assert_eq!(clear_data(key.encryption(), &written).unwrap().as_ref(), &json!({"password": CONTENT}));
        let mut again = object("d", "u");
        encrypt(key.encryption(), &mut again, "u");
        assert_eq!(again, written, "what says the same is written in the same way");
        let readable = object("d", "u");
        assert_eq!(clear_data(key.encryption(), &readable).unwrap().as_ref(), &json!({"password": CONTENT}));
    }

    #[test]
    fn limits_masking_data_is_not_decrypted_for_any_number_of_owners() {
        let key = HostKey::new(&[1; 32]);
        let mut written = object("d", "u");
        encrypt(key.encryption(), &mut written, "u");
        let own = written.metadata.owner_references.take().unwrap().remove(0);
        let among = |others: usize| {
            let other = |number: usize| OwnerReference { uid: format!("other-{number}"), ..own.clone() };
            let mut object = written.clone();
            object.metadata.owner_references = Some((0..others).map(other).chain([own.clone()]).collect());
            clear_data(key.encryption(), &object).map(Cow::into_owned).ok()
        };
        assert_eq!(among(MOST_OWNERS - 1), Some(json!({"password": CONTENT})));
        assert_eq!(among(MOST_OWNERS), None);
    }

    #[test]
    fn c_81_what_gate_expressions_read_is_decrypted_for_the_object_that_holds_it_alone() {
        let keys = [1, 2].map(|key| HostKey::new(&[key; 32]));
        let named = |name: &'static str| Key { namespace: "a".into(), name: name.into() };
        let (here, elsewhere) = (named("x"), named("y"));
        let holder = |kind, key| ImportsHolder { kind, key };
        let hidden =
            keys[0].encryption().encrypt(&holder(StoredKind::Execution, &here).subject("pw", "u"), br#""hunter2""#);
        let written =
            |name: &str| BTreeMap::from([(name.to_owned(), json!({ENCRYPTED: hidden})), ("n".to_owned(), json!(1))]);
        let clear = |key: &HostKey, holder: ImportsHolder<'_>, owners: &[&str], name| {
            clear_imports(key.encryption(), &holder, owners, &written(name)).unwrap()
        };
        let expected = BTreeMap::from([("pw".to_owned(), json!(CONTENT)), ("n".to_owned(), json!(1))]);
        assert_eq!(clear(&keys[0], holder(StoredKind::Execution, &here), &["v", "u"], "pw"), Ok(expected));
        let others = [
            clear(&keys[1], holder(StoredKind::Execution, &here), &["u"], "pw"),
            clear(&keys[0], holder(StoredKind::Installation, &here), &["u"], "pw"),
            clear(&keys[0], holder(StoredKind::Execution, &elsewhere), &["u"], "pw"),
            clear(&keys[0], holder(StoredKind::Execution, &here), &["v"], "pw"),
            clear(&keys[0], holder(StoredKind::Execution, &here), &["1", "2", "3", "4", "u"], "pw"),
            clear(&keys[0], holder(StoredKind::Execution, &here), &["u"], "other"),
        ];
        for refused in others {
            assert_eq!(refused.unwrap_err().reason, UndecryptableData::REASON);
        }
        let readable = BTreeMap::from([("pw".to_owned(), json!(CONTENT))]);
        assert_eq!(clear_imports(keys[0].encryption(), &holder(StoredKind::Execution, &here), &["u"], &readable), None);
    }

    #[test]
    fn c_81_what_was_moved_edited_forged_or_is_of_another_key_is_told_by_name() {
        let keys = [1, 2].map(|key| HostKey::new(&[key; 32]));
        let mut written = object("d", "u");
        encrypt(keys[0].encryption(), &mut written, "u");
        let data = written.spec.data.clone();
        let with = |name: &str, owner: &str, data: Value| {
            let mut object = object(name, owner);
            object.spec.data = data;
            object
        };
        let mut elsewhere = written.clone();
        elsewhere.metadata.namespace = Some("b".to_owned());
        let mut orphan = written.clone();
        orphan.metadata.owner_references = None;
        let text = data[ENCRYPTED].as_str().unwrap();
        let cut = json!({ENCRYPTED: text.get(..text.len() - 4)});
        let others = [
            (with("e", "u", data.clone()), "e"),
            (with("d", "v", data.clone()), "d"),
            (elsewhere, "d"),
            (orphan, "d"),
            (with("d", "u", cut), "d"),
            (with("d", "u", json!({ENCRYPTED: text, "more": 1})), "d"),
            (with("d", "u", json!({ENCRYPTED: {"deep": [text]}})), "d"),
            (with("d", "u", json!({ENCRYPTED: ""})), "d"),
        ];
        let error = |name: &str| UndecryptableData { name: name.to_owned(), source_label: Some("Inst.x".to_owned()) };
        for (object, name) in others {
            assert_eq!(clear_data(keys[0].encryption(), &object), Err(error(name)), "{object:?}");
        }
        assert_eq!(clear_data(keys[1].encryption(), &written), Err(error("d")), "another key");
    }
}
