//! SecretTokens that stand for values of Secrets in recordings (C-340).
//!
//! A token is the same for the same text, tells nothing of it to who has not the operator's key, and may stand where a name or a part of
//! a URL may. What is base64 of a text with values in it is base64 of that text with tokens afterwards, so that a component finds in a
//! recording what it would have found, with other values.

use data_encoding::{BASE64, HEXLOWER};
use orangery_core::{
    digest::derived,
    masking::{Masker, leaves, secret_texts},
    name::Namespace,
    yaml,
};
use serde_json::{Map, Value};

/// How a token begins.
const BEGIN: &str = "secret-";

/// The letters after that.
const LETTERS: usize = 16;

/// What keeps a whole object in an annotation.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The begin of what is packed by gzip and by zstd, in which no value can be looked for.
const PACKED: [&[u8]; 2] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"];

/// How often a text may be base64 of another one.
const MOST_UNFOLDED: usize = 3;

/// Puts tokens in the place of values.
#[derive(Clone, Copy)]
pub struct SecretTokens<'a> {
    /// Finds the values.
    pub masker: &'a Masker,
    /// What tokens are derived with.
    pub key: &'a [u8; 32],
    /// The namespace: values of others have other tokens.
    pub namespace: &'a Namespace,
}

impl SecretTokens<'_> {
    /// The token of a text.
    pub fn token(&self, text: &[u8]) -> String {
        let derived = derived(self.key, &[b"recorded value of a Secret", self.namespace.as_bytes(), text]);
        let letters = HEXLOWER.encode(&derived);
        format!("{BEGIN}{}", letters.get(..LETTERS).unwrap_or_default())
    }

    /// Puts tokens in the place of values in a document: of all data of Secrets in it, and of what the masker finds elsewhere, in
    /// names of members as well.
    pub fn hide(&self, document: &mut Value) {
        match document {
            Value::String(text) => *text = self.hidden(text, 0),
            Value::Number(number) => {
                let text = number.to_string();
                if self.masker.finds(&text) {
                    *document = Value::String(self.token(text.as_bytes()));
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.hide(element)),
            Value::Object(members) => self.hide_members(members),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The same in a checkpoint; one that is no text becomes a token as a whole.
    pub fn hide_bytes(&self, bytes: &mut Vec<u8>) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            *bytes = self.token(bytes).into_bytes();
            return;
        };
        let hidden = match serde_json::from_str::<Value>(text) {
            Ok(read) => {
                let mut hidden = read.clone();
                self.hide(&mut hidden);
                if hidden == read { text.to_owned() } else { hidden.to_string() }
            }
            Err(_) => self.hidden(text, 0),
        };
        *bytes = hidden.into_bytes();
    }

    fn hide_members(&self, members: &mut Map<String, Value>) {
        let is_secret = is_secret(members);
        for (name, member) in members.iter_mut() {
            match (is_secret, name.as_str()) {
                (true, "data") => self.hide_data(member, |text| self.encoded_token(text)),
                (true, "stringData") => self.hide_data(member, |text| self.token(text.as_bytes())),
                (_, LAST_APPLIED) => *member = Value::String(self.token(member.to_string().as_bytes())),
                _ => self.hide(member),
            }
        }
        if members.keys().any(|name| self.masker.finds(name)) {
            let hidden = std::mem::take(members).into_iter();
            *members = hidden.map(|(name, member)| (self.hidden(&name, 0), member)).collect();
        }
    }

    /// All entries of a Secret, however short; what is empty tells nothing.
    fn hide_data(&self, data: &mut Value, token: impl Fn(&str) -> String) {
        let Value::Object(entries) = data else { return self.hide(data) };
        for entry in entries.values_mut() {
            match entry {
                Value::String(text) if text.is_empty() => {}
                Value::String(text) if is_encoded_token(text) => {}
                Value::String(text) => *text = token(text),
                Value::Null => {}
                other => *other = Value::String(self.token(other.to_string().as_bytes())),
            }
        }
    }

    /// The token of what a text in base64 says, in base64.
    fn encoded_token(&self, text: &str) -> String {
        match BASE64.decode(text.as_bytes()) {
            Ok(clear) => BASE64.encode(self.token(&clear).as_bytes()),
            Err(_) => self.token(text.as_bytes()),
        }
    }

    fn hidden(&self, text: &str, unfolded: usize) -> String {
        if let Some(bytes) = unfoldable(text) {
            if PACKED.iter().any(|begin| bytes.starts_with(begin)) || unfolded == MOST_UNFOLDED {
                return self.token(text.as_bytes());
            }
            if let Ok(clear) = std::str::from_utf8(&bytes) {
                let hidden = self.hidden(clear, unfolded + 1);
                if hidden != clear {
                    return BASE64.encode(hidden.as_bytes());
                }
            }
        }
        let hidden = self.masker.replace(text, |value| self.token(value.as_bytes())).into_owned();
        // Where a value is found in no place of its own, nothing of the text is kept.
        if self.masker.finds(&hidden) { self.token(text.as_bytes()) } else { hidden }
    }
}

/// The shortest text that is looked at as base64: shorter ones are words.
const SHORTEST_ENCODED: usize = 8;

/// What a text says, where it may be base64.
fn unfoldable(text: &str) -> Option<Vec<u8>> {
    (text.len() >= SHORTEST_ENCODED).then(|| BASE64.decode(text.as_bytes()).ok()).flatten()
}

fn is_encoded_token(text: &str) -> bool {
    BASE64.decode(text.as_bytes()).is_ok_and(|clear| std::str::from_utf8(&clear).is_ok_and(is_token))
}

fn is_secret(members: &Map<String, Value>) -> bool {
    members.get("kind").and_then(Value::as_str) == Some("Secret")
}

/// Whether a text is a token and nothing else.
pub fn is_token(text: &str) -> bool {
    text.strip_prefix(BEGIN).is_some_and(|letters| letters.len() == LETTERS && letters.bytes().all(is_letter))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Where the tokens in a text begin and end.
pub(super) fn tokens_in(text: &str) -> Vec<(usize, usize)> {
    let ends = text.match_indices(BEGIN).map(|(at, _)| (at, at + BEGIN.len() + LETTERS));
    ends.filter(|(at, end)| text.get(*at..*end).is_some_and(is_token)).collect()
}

/// The values of the Secrets in a document, and in the texts in it that are documents themselves.
pub fn values_of_secrets(document: &Value) -> Vec<String> {
    let mut values = Vec::new();
    collect(document, &mut values);
    values
}

fn collect(document: &Value, values: &mut Vec<String>) {
    match document {
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, values)),
        Value::Object(members) => {
            if is_secret(members) {
                let entries =
                    |name: &str| members.get(name).and_then(Value::as_object).into_iter().flat_map(Map::values);
                for entry in entries("data").filter_map(Value::as_str) {
                    let clear = BASE64.decode(entry.as_bytes()).ok().and_then(|clear| String::from_utf8(clear).ok());
                    match clear {
                        Some(clear) => values.extend(secret_texts(&clear)),
                        None => values.push(entry.to_owned()),
                    }
                }
                entries("stringData").for_each(|entry| leaves(entry, values));
            }
            members.values().for_each(|member| collect(member, values));
        }
        Value::String(text) if text.contains("Secret") => {
            let documents = yaml::documents(text).unwrap_or_default();
            // A text that is no document is a text.
            let structures = documents.into_iter().map(|document| document.value).filter(|value| !value.is_string());
            structures.for_each(|structure| collect(&structure, values));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: [u8; 32] = [7; 32];
    const VALUE: &str = "hunter2-hunter2";

    fn hidden(masker: &Masker, mut document: Value) -> Value {
        SecretTokens { masker, key: &KEY, namespace: &"n".into() }.hide(&mut document);
        document
    }

    fn token(text: &str) -> String {
        SecretTokens { masker: &Masker::default(), key: &KEY, namespace: &"n".into() }.token(text.as_bytes())
    }

    #[test]
    fn c_340_a_token_is_that_of_its_text_its_namespace_and_the_key() {
        let of = |key: [u8; 32], namespace: &str, text: &str| {
            SecretTokens { masker: &Masker::default(), key: &key, namespace: &namespace.into() }.token(text.as_bytes())
        };
        let one = of(KEY, "n", VALUE);
        assert_eq!((one.as_str(), is_token(&one)), (token(VALUE).as_str(), true));
        let others = [of([8; 32], "n", VALUE), of(KEY, "m", VALUE), of(KEY, "n", "another")];
        assert!(!others.contains(&one) && !one.contains(VALUE), "{one} {others:?}");
        for text in ["secret-0123456789abcde", "secret-0123456789abcdeF", "x", "secret-0123456789abcdef0"] {
            assert!(!is_token(text), "{text}");
        }
        assert_eq!(tokens_in("a secret-0123456789abcdef, secret-0123"), [(2, 25)]);
    }

    #[test]
    fn c_340_a_value_is_a_token_wherever_it_stands_and_base64_stays_base64() {
        let masker = Masker::of([VALUE, "12345678"]);
        let base64 = |text: &str| BASE64.encode(text.as_bytes());
        let url = format!("db://{VALUE}@host");
        let document = json!({
            "plain": VALUE, "url": url, "encoded": base64(&url), "twice": base64(&base64(&url)), "pin": 12_345_678,
            "list": [VALUE, true, null], VALUE: "name", "other": "nothing",
        });
        let (token, pin) = (token(VALUE), token("12345678"));
        let url = format!("db://{token}@host");
        let expected = json!({
            "plain": token, "url": url, "encoded": base64(&url), "twice": base64(&base64(&url)), "pin": pin,
            "list": [token, true, null], token.as_str(): "name", "other": "nothing",
        });
        assert_eq!(hidden(&masker, document), expected);
    }

    #[test]
    fn c_340_all_data_of_secrets_is_hidden_however_short_and_what_was_applied_last() {
        let base64 = |text: &str| BASE64.encode(text.as_bytes());
        let document = json!({"items": [{
            "kind": "Secret",
            "metadata": {"name": "s", "annotations": {LAST_APPLIED: "{\"data\":{\"a\":\"YWI=\"}}", "b": "c"}},
            "data": {"a": base64("ab"), "b": "no base64", "empty": "", "none": null, "n": 7},
            "stringData": {"c": "cd"},
        }, {"kind": "ConfigMap", "data": {"a": "ab"}}]});
        let expected = json!({"items": [{
            "kind": "Secret",
            "metadata": {"name": "s", "annotations": {LAST_APPLIED: token("\"{\\\"data\\\":{\\\"a\\\":\\\"YWI=\\\"}}\""), "b": "c"}},
            "data": {"a": base64(&token("ab")), "b": token("no base64"), "empty": "", "none": null, "n": token("7")},
            "stringData": {"c": token("cd")},
        }, {"kind": "ConfigMap", "data": {"a": "ab"}}]});
        let once = hidden(&Masker::default(), document);
        assert_eq!(once, expected);
        assert_eq!(hidden(&Masker::default(), once)["items"][0]["data"]["a"], expected["items"][0]["data"]["a"]);
    }

    #[test]
    fn c_340_limits_recording_what_is_packed_is_hidden_as_a_whole_and_so_is_what_is_folded_too_often() {
        let packed = BASE64.encode(b"\x1f\x8b\x08 anything");
        let document = json!({"a": packed, "b": BASE64.encode(packed.as_bytes())});
        let twice = BASE64.encode(token(&packed).as_bytes());
        assert_eq!(hidden(&Masker::default(), document), json!({"a": token(&packed), "b": twice}));
        let deep = (0..9).fold("some text".to_owned(), |text, _| BASE64.encode(text.as_bytes()));
        assert_ne!(hidden(&Masker::default(), json!(deep)), json!(deep));
    }

    #[test]
    fn c_340_checkpoints_are_hidden_as_texts_and_others_as_a_whole() {
        let masker = Masker::of([VALUE]);
        let bytes = |content: &[u8]| {
            let mut bytes = content.to_vec();
            SecretTokens { masker: &masker, key: &KEY, namespace: &"n".into() }.hide_bytes(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        let (json, plain) = (format!("{{ \"a\": \"{VALUE}\" }}"), format!("it is {VALUE}"));
        assert_eq!(bytes(json.as_bytes()), json!({"a": token(VALUE)}).to_string());
        assert_eq!(bytes(plain.as_bytes()), format!("it is {}", token(VALUE)));
        assert_eq!(bytes(b"{ \"a\": 1 }"), "{ \"a\": 1 }");
        let opaque = bytes(b"\xff\xfe");
        assert!(is_token(&opaque), "{opaque}");
    }

    #[test]
    fn c_340_the_values_of_secrets_are_found_in_documents_and_in_texts_that_are_some() {
        let secret = json!({"kind": "Secret", "data": {"a": BASE64.encode(b"one: value-one"), "b": "!"}, "stringData": {"c": "three"}});
        let text = "kind: Secret\nstringData: {d: four}\n---\nkind: ConfigMap\ndata: {e: five}\n";
        let document = json!({"answer": [secret], "config": {"manifest": text, "note": "a Secret"}});
        assert_eq!(values_of_secrets(&document), ["one: value-one", "value-one", "!", "three", "four"]);
        assert_eq!(values_of_secrets(&json!({"kind": "ConfigMap", "data": {"a": "b"}})), [""; 0]);
    }
}
