//! Whole statuses and events, as short values that are the same in each run: of what times, names and hashes there are it is
//! only said that they are there.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{World, name_of};

/// A status as the tests compare it: one line for each condition and error, no times.
fn short(status: &Value) -> Value {
    let members = status.as_object().cloned().unwrap_or_default();
    let members = members.into_iter().filter(|(key, _)| key != "phaseTransitionTime");
    Value::Object(members.map(|(key, value)| (key.clone(), member(&key, &value))).collect())
}

fn member(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("conditions", Value::Array(conditions)) => conditions.iter().map(condition).collect(),
        ("waitingFor", Value::Array(waits)) => waits.iter().map(wait).collect(),
        ("lastError" | "firstError", error) => self::error(error),
        ("lastErrors", Value::Array(errors)) => errors.iter().map(self::error).collect(),
        ("transitionTimes", Value::Object(times)) => times.keys().cloned().collect(),
        // What the host keeps is sealed, with the uids of clusters and the number of the write.
        ("orangery", Value::Object(members)) => {
            let of_run = ["clusters", "credentials", "job", "number", "seal"];
            let kept = members.iter().filter(|(key, _)| !of_run.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), member(key, value))).collect::<Map<_, _>>())
        }
        (_, Value::Object(members)) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), member(key, value))).collect::<Map<_, _>>())
        }
        (_, Value::Array(elements)) => elements.iter().map(|element| member("", element)).collect(),
        (key, Value::String(_)) if key.ends_with("Time") => json!("TIME"),
        ("uid", Value::String(_)) => json!("UID"),
        (_, Value::String(text)) if is_hash(text) => json!("HASH"),
        _ => value.clone(),
    }
}

/// Of SHA-1, in hexadecimal or in base32, or of SHA-256.
fn is_hash(text: &str) -> bool {
    let all = |allowed: fn(char) -> bool| text.chars().all(allowed);
    match text.len() {
        32 => all(|one| one.is_ascii_lowercase() || ('2'..='7').contains(&one)),
        40 | 64 => all(|one| one.is_ascii_hexdigit()),
        _ => false,
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// `Ready=False Failed: boom (2)`: of which generation it speaks stands last.
fn condition(value: &Value) -> Value {
    let [kind, status, reason, message] = ["type", "status", "reason", "message"].map(|key| text(value, key));
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    json!(format!("{kind}={status} {reason}{message} ({})", value["observedGeneration"]))
}

/// `DeployItem default/a Finished`
fn wait(value: &Value) -> Value {
    let [kind, namespace, name, until] = ["kind", "namespace", "name", "until"].map(|key| text(value, key));
    json!(format!("{kind} {namespace}/{name} {until}"))
}

/// `Progressing/DeployItemsFailed: boom [ERR_TIMEOUT]`
fn error(value: &Value) -> Value {
    let codes: Vec<&str> = value["codes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let [operation, reason, message] = ["operation", "reason", "message"].map(|key| text(value, key));
    json!(format!("{operation}/{reason}: {message} [{}]", codes.join(" ")))
}

impl World {
    /// What the generated names stand for: `<template>` of a sub-installation, `<item>` of a deploy item.
    async fn generated(&self) -> BTreeMap<String, String> {
        let of = |object: &Value, field: &str, key: &str| {
            let named = object["metadata"][field][key].as_str()?;
            Some((name_of(object), format!("<{named}>")))
        };
        let subs = self.list("Installation").await;
        let subs =
            subs.iter().filter_map(|sub| of(sub, "annotations", "landscaper.gardener.cloud/subinstallation-name"));
        let items = self.list("DeployItem").await;
        let items = items.iter().filter_map(|item| of(item, "labels", "execution.landscaper.gardener.cloud/name"));
        subs.chain(items).collect()
    }

    /// A value with what stands for generated names in their place.
    async fn named(&self, value: &Value) -> Value {
        let generated = self.generated().await;
        let text = generated.iter().rev().fold(value.to_string(), |text, (name, of)| text.replace(name, of));
        serde_json::from_str(&text).unwrap()
    }

    /// The whole status of an object.
    pub(crate) async fn status(&self, kind: &str, name: &str) -> Value {
        let object = self.find(kind, name).await.unwrap_or_else(|| panic!("{kind} {name} is not there"));
        self.whole(&object).await
    }

    /// The whole status of an object that was read.
    pub(crate) async fn whole(&self, object: &Value) -> Value {
        short(&self.named(&object["status"]).await)
    }

    /// Waits until the events about an object are these, each as `Warning Reason: note`, in the order of the texts.
    pub(crate) async fn has_events(&self, kind: &str, name: &str, expected: &[&str]) {
        let found = async || {
            let events = self.list("Event").await;
            let about = events.iter().filter(|event| event["regarding"]["kind"] == kind);
            let about = about.filter(|event| event["regarding"]["name"] == name);
            let line =
                |event: &Value| format!("{} {}: {}", text(event, "type"), text(event, "reason"), text(event, "note"));
            let mut lines: Vec<String> = about.map(line).collect();
            lines.sort();
            self.named(&json!(lines)).await
        };
        let is_there = async || (found().await == json!(expected)).then_some(());
        match self.in_time(is_there).await {
            Some(()) => {}
            None => panic!("the events of {kind} {name} are {:#}, and not {expected:#?}", found().await),
        }
    }
}
