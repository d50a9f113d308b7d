//! The few rules that single built-in kinds have.

mod fresh;
mod services;

use serde_json::{Value, json};

pub(super) use self::fresh::complete_new;
use self::{
    fresh::{admit_pod, condition_times, namespace_phase, signing_request, template_generation},
    services::{service, service_type},
};

use crate::{
    builtin,
    cluster::EmbeddedCluster,
    crd,
    identity::AUDIENCE,
    object::{self, at, text},
    policy,
    refusal::{Refusal, StatusCause},
    resource::Served,
};

/// What is wrong with a name, if anything.
pub(super) fn name_problem(served: &Served, name: &str) -> Option<StatusCause> {
    if name.is_empty() {
        return Some(StatusCause::required("metadata.name", "name or generateName is required"));
    }
    let group = served.resource.group.as_str();
    if group == "rbac.authorization.k8s.io" || matches!(served.kind(), "Event") {
        let bad = name.contains(['/', '%']) || matches!(name, "." | "..");
        return bad.then(|| StatusCause::invalid("metadata.name", &json!(name), "may not contain '/' or '%'"));
    }
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let edge = |part: &str| part.starts_with(|c: char| c != '-') && part.ends_with(|c: char| c != '-');
    let is_label = |part: &str| !part.is_empty() && part.chars().all(inner) && edge(part);
    if matches!(served.kind(), "Namespace" | "Service") {
        let why = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let bad = name.len() > 63 || !is_label(name);
        return bad.then(|| StatusCause::invalid("metadata.name", &json!(name), why));
    }
    let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let bad = name.len() > 253 || !name.split('.').all(is_label);
    bad.then(|| StatusCause::invalid("metadata.name", &json!(name), why))
}

/// Judges a new form of a built-in kind, and completes what depends on other fields.
pub(super) fn builtin(
    cluster: &EmbeddedCluster,
    kind: &str,
    old: Option<&Value>,
    new: &mut Value,
    causes: &mut Vec<StatusCause>,
) -> Result<(), Refusal> {
    match kind {
        "Secret" => secret(cluster, new, causes)?,
        "Service" => {
            causes.extend(service_type(new));
            service(cluster, old, new);
        }
        "CertificateSigningRequest" => {
            causes.extend(signing_request(old, new));
            condition_times(old, new, &cluster.stamp());
        }
        "CustomResourceDefinition" => causes.extend(crd::problems(new)),
        "DaemonSet" => template_generation(old, new),
        "Namespace" => {
            let name = object::meta(new, "name").to_owned();
            object::set(new, &["metadata", "labels", "kubernetes.io/metadata.name"], json!(name));
            causes.extend(old.and_then(|_| namespace_phase(new)));
        }
        "Pod" => admit_pod(old, new),
        kind if policy::KINDS.contains(&kind) => causes.extend(policy::problems(new)),
        _ => {}
    }
    let Some(old) = old else { return Ok(()) };
    for field in builtin::immutable_fields(kind) {
        let path: Vec<&str> = field.split('.').collect();
        let (before, after) = (at(old, &path), at(new, &path));
        if before.is_some_and(|before| !before.is_null()) && before != after {
            let after = after.cloned().unwrap_or_default();
            causes.push(StatusCause::invalid(*field, &after, "field is immutable"));
        }
    }
    if matches!(kind, "Secret" | "ConfigMap") && old.get("immutable") == Some(&Value::Bool(true)) {
        for field in ["data", "binaryData", "immutable"] {
            if old.get(field) != new.get(field) {
                causes.push(StatusCause::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    Ok(())
}

fn secret(cluster: &EmbeddedCluster, secret: &mut Value, causes: &mut Vec<StatusCause>) -> Result<(), Refusal> {
    if let Some(Value::Object(plain)) = object::take(secret, &["stringData"]) {
        for (name, value) in plain {
            let Value::String(text) = value else {
                causes.push(StatusCause::invalid_secret(format!("stringData.{name}"), "must be a string"));
                continue;
            };
            object::set(secret, &["data", &name], json!(data_encoding::BASE64.encode(text.as_bytes())));
        }
    }
    for (name, value) in secret.get("data").and_then(Value::as_object).into_iter().flatten() {
        let decodes = value.as_str().is_some_and(|text| data_encoding::BASE64.decode(text.as_bytes()).is_ok());
        if !decodes && !value.is_null() {
            return Err(Refusal::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data in field data.{name}"
            )));
        }
    }
    if text(secret, &["type"]) == Some("kubernetes.io/service-account-token") {
        fill_token(cluster, secret);
    }
    Ok(())
}

/// A token for the service account that the Secret's annotation names, as the token controller would put it in.
fn fill_token(cluster: &EmbeddedCluster, secret: &mut Value) {
    let account = text(secret, &["metadata", "annotations", "kubernetes.io/service-account.name"]).unwrap_or_default();
    if account.is_empty() || at(secret, &["data", "token"]).is_some() {
        return;
    }
    let namespace = object::meta(secret, "namespace").to_owned();
    let token = cluster.identity.account_token((&namespace, account), &[AUDIENCE.to_owned()], None);
    let encode = |text: &str| json!(data_encoding::BASE64.encode(text.as_bytes()));
    object::set(secret, &["data", "token"], encode(&token));
    object::set(secret, &["data", "namespace"], encode(&namespace));
    object::set(secret, &["data", "ca.crt"], encode(cluster.identity.ca_pem()));
}
