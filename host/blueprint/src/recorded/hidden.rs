//! What of a rendering is secret because of where it stands (C-355).

use std::collections::BTreeSet;

use data_encoding::BASE64;
use orangery_core::{
    masking::{SHORTEST_MASKED, leaves, secret_texts},
    yaml,
};
use orangery_proposal::recorded::is_token;
use serde_json::{Map, Value};

use super::{HostAnswer, HostQuestion, RecordedRendering};
use crate::rendering::ExecutionKind;

/// Puts tokens in the place of what is secret because of where it stands: the state that the last job left, imports that are data of
/// Secrets or were made by templates, what items and sub-installations have exported, the configuration of Targets, credentials that were
/// issued. `plain` are the imports that are none of these. Answers the texts that stood there: they may stand elsewhere as well, where
/// whoever looks for values finds them.
pub fn hide_places(
    recorded: &mut RecordedRendering,
    plain: &BTreeSet<String>,
    token: &dyn Fn(&[u8]) -> String,
) -> Vec<String> {
    let mut places = SecretPlaces { token, values: Vec::new() };
    let RecordedRendering { request, host, .. } = recorded;
    if let Some(state) = &mut request.state {
        places.hide(state);
    }
    if let Value::Object(inputs) = &mut request.inputs {
        match request.execution {
            ExecutionKind::ImportMapping => places.hide_imports(inputs, plain),
            // Templates have made them.
            ExecutionKind::ExportMapping => inputs.values_mut().for_each(|value| places.hide(value)),
            ExecutionKind::Import | ExecutionKind::Deploy | ExecutionKind::Subinstallation | ExecutionKind::Export => {
                if let Some(Value::Object(imports)) = inputs.get_mut("imports") {
                    places.hide_imports(imports, plain);
                }
            }
        }
        if request.execution == ExecutionKind::Export {
            places.hide_exported(inputs);
            inputs
                .get_mut("values")
                .and_then(Value::as_object_mut)
                .into_iter()
                .for_each(|all| places.hide_exported(all));
        }
        inputs.values_mut().for_each(|value| places.hide_targets(value));
    }
    for HostAnswer { ask, answer, .. } in host {
        if matches!(ask, HostQuestion::IssueCredential { .. }) {
            places.hide_config(answer);
        }
    }
    places.values
}

struct SecretPlaces<'a> {
    token: &'a dyn Fn(&[u8]) -> String,
    values: Vec<String>,
}

impl SecretPlaces<'_> {
    /// Hides all texts and numbers of a value, however short.
    fn hide(&mut self, value: &mut Value) {
        let mut texts = Vec::new();
        leaves(value, &mut texts);
        texts.iter().for_each(|text| self.learn(text));
        self.replace(value);
    }

    fn learn(&mut self, text: &str) {
        self.values.extend(secret_texts(text));
        let clear = BASE64.decode(text.as_bytes()).ok().and_then(|clear| String::from_utf8(clear).ok());
        self.values.extend(clear.iter().flat_map(|clear| secret_texts(clear)));
    }

    fn replace(&self, value: &mut Value) {
        match value {
            // What is empty tells nothing.
            Value::String(text) if text.is_empty() || is_token(text) => {}
            Value::String(text) => *text = (self.token)(text.as_bytes()),
            Value::Number(number) => *value = Value::String((self.token)(number.to_string().as_bytes())),
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.replace(element)),
            Value::Object(members) => members.values_mut().for_each(|member| self.replace(member)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Hides what items and sub-installations have exported.
    fn hide_exported(&mut self, parts: &mut Map<String, Value>) {
        for part in ["deployitems", "dataobjects"] {
            parts.get_mut(part).into_iter().for_each(|exported| self.hide(exported));
        }
    }

    fn hide_imports(&mut self, imports: &mut Map<String, Value>, plain: &BTreeSet<String>) {
        for (name, value) in imports {
            if !plain.contains(name) {
                self.hide(value);
            }
        }
    }

    /// Hides the configuration of each Target in a document.
    fn hide_targets(&mut self, document: &mut Value) {
        match document {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.hide_targets(element)),
            Value::Object(members) => {
                let spec = members.get_mut("spec").and_then(Value::as_object_mut);
                if let Some(config) =
                    spec.filter(|spec| spec.contains_key("type")).and_then(|spec| spec.get_mut("config"))
                {
                    self.hide_config(config);
                }
                members.values_mut().for_each(|member| self.hide_targets(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Hides by what a cluster, or something else, is reached. Of a kubeconfig its credentials are looked for where the rest of it stays,
    /// so that templates can read it; where one is too short for that, all of it is hidden.
    fn hide_config(&mut self, config: &mut Value) {
        match config {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.hide_config(element)),
            Value::Object(members) => members.values_mut().for_each(|member| self.hide_config(member)),
            Value::String(text) => match credentials(text) {
                Some(credentials) if credentials.iter().all(|credential| credential.len() >= SHORTEST_MASKED) => {
                    credentials.iter().for_each(|credential| self.learn(credential));
                }
                Some(_) | None => self.hide(config),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => self.hide(config),
        }
    }
}

/// What the users of a kubeconfig have; `None` of a text that is none.
fn credentials(text: &str) -> Option<Vec<String>> {
    let kubeconfig = yaml::decode(text).ok()?;
    let mut credentials = Vec::new();
    for user in kubeconfig.get("users")?.as_array()? {
        leaves(user.get("user").unwrap_or(&Value::Null), &mut credentials);
    }
    credentials.retain(|credential| !credential.is_empty());
    Some(credentials)
}
