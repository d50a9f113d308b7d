//! How the answer of a replayed call differs from the recorded one: what a token stands for may be anything, as long as it is the same
//! wherever the token stands (C-342).

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use serde_json::Value;

use super::{differences, tokens::tokens_in};

/// How `found` differs from the recorded answer to a request: a sentence for each place, at most `most` of them. A token that the request
/// has stands for itself; any other is of a value that the component made up, or made of others, and stands for what `found` has there.
pub fn replayed_differences(request: &Value, recorded: &Value, found: &Value, most: usize) -> Vec<String> {
    let mut tokens = Equated::default();
    known(request, &mut tokens.of_request);
    let mut found = found.clone();
    tokens.equate(recorded, &mut found);
    differences(recorded, &found, most)
}

/// What tokens stand for.
#[derive(Default)]
struct Equated {
    of_request: BTreeSet<String>,
    by_token: BTreeMap<String, String>,
}

impl Equated {
    /// Puts the recorded text in the place of one that it may stand for.
    fn equate(&mut self, recorded: &Value, found: &mut Value) {
        match (recorded, found) {
            (Value::Object(one), Value::Object(other)) => {
                for (name, member) in other {
                    if let Some(recorded) = one.get(name) {
                        self.equate(recorded, member);
                    }
                }
            }
            (Value::Array(one), Value::Array(other)) => {
                one.iter().zip(other).for_each(|(recorded, element)| self.equate(recorded, element));
            }
            (Value::String(one), Value::String(other)) if one != other => {
                let clear = decoded(one).filter(|clear| !tokens_in(clear).is_empty());
                let is_same = match (clear, decoded(other)) {
                    (Some(one), Some(other)) => self.stands_for(&one, &other),
                    _ => self.stands_for(one, other),
                };
                if is_same {
                    other.clone_from(one);
                }
            }
            _ => {}
        }
    }

    /// Whether a recorded text with one token in it may stand for another text.
    fn stands_for(&mut self, recorded: &str, found: &str) -> bool {
        let [(begin, end)] = tokens_in(recorded)[..] else { return false };
        let (before, token, after) = (recorded.get(..begin), recorded.get(begin..end), recorded.get(end..));
        let (Some(before), Some(token), Some(after)) = (before, token, after) else { return false };
        let value = found.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        let Some(value) = value.filter(|value| !value.is_empty() && !self.of_request.contains(token)) else {
            return false;
        };
        self.by_token.entry(token.to_owned()).or_insert_with(|| value.to_owned()) == value
    }
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(BASE64.decode(text.as_bytes()).ok()?).ok()
}

/// The tokens in a document.
fn known(document: &Value, tokens: &mut BTreeSet<String>) {
    match document {
        Value::String(text) => {
            for text in [Some(text.clone()), decoded(text)].into_iter().flatten() {
                let found = tokens_in(&text).into_iter().filter_map(|(begin, end)| text.get(begin..end));
                tokens.extend(found.map(str::to_owned));
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| known(element, tokens)),
        Value::Object(members) => members.values().for_each(|member| known(member, tokens)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KNOWN: &str = "secret-0123456789abcdef";
    const MADE: &str = "secret-aaaaaaaaaaaaaaaa";

    fn differ(recorded: Value, found: Value) -> Vec<String> {
        let request = json!({"reads": [{"answer": {"data": {"a": BASE64.encode(KNOWN.as_bytes())}}}]});
        replayed_differences(&request, &recorded, &found, 9)
    }

    #[test]
    fn c_342_what_the_component_made_up_may_be_anything_that_is_the_same_everywhere() {
        let recorded = json!({"a": MADE, "b": [format!("db://{MADE}@host")], "c": BASE64.encode(MADE.as_bytes())});
        let with = |one: &str, other: &str| json!({"a": one, "b": [format!("db://{other}@host")], "c": BASE64.encode(one.as_bytes())});
        assert_eq!(differ(recorded.clone(), recorded.clone()), [""; 0]);
        assert_eq!(differ(recorded.clone(), with("new", "new")), [""; 0]);
        let expected = format!("/b/0: expected is \"db://{MADE}@host\", answered is \"db://other@host\"");
        assert_eq!(differ(recorded.clone(), with("new", "other")), [expected]);
        assert_eq!(differ(recorded, json!({"a": "", "b": ["x"], "c": 1})).len(), 3);
    }

    #[test]
    fn c_342_what_the_request_has_stands_for_itself_and_two_tokens_for_nothing_else() {
        assert_eq!(differ(json!(KNOWN), json!("another")).len(), 1);
        let two = format!("{MADE} {KNOWN}");
        assert_eq!(differ(json!(two), json!("x y")).len(), 1);
        assert_eq!(differ(json!({"a": "plain"}), json!({"a": "other", "b": 1})).len(), 2);
    }
}
