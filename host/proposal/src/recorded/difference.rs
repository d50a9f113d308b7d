//! How one document differs from another, place by place.

use serde_json::Value;

/// As many characters of a value are shown.
const CHARACTERS: usize = 120;

/// How `found` differs from `expected`: a sentence for each place, in the order of the places, at most `most` of them; then
/// one that says how many more there are. Empty where they are the same.
pub fn differences(expected: &Value, found: &Value, most: usize) -> Vec<String> {
    let mut all = Vec::new();
    compare(&mut String::new(), Some(expected), Some(found), &mut all);
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    if more > 0 {
        all.push(format!("and {more} more places"));
    }
    all
}

fn compare(place: &mut String, expected: Option<&Value>, found: Option<&Value>, all: &mut Vec<String>) {
    match (expected, found) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                let step = key.replace('~', "~0").replace('/', "~1");
                within(place, &step, |place| compare(place, one.get(key), other.get(key), all));
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                within(place, &index.to_string(), |place| compare(place, one.get(index), other.get(index), all));
            }
        }
        (one, other) if one == other => {}
        (one, other) => {
            let place = if place.is_empty() { "the whole" } else { place };
            all.push(format!("{place}: expected is {}, answered is {}", cut(one), cut(other)));
        }
    }
}

fn within(place: &mut String, step: &str, then: impl FnOnce(&mut String)) {
    let length = place.len();
    place.push('/');
    place.push_str(step);
    then(place);
    place.truncate(length);
}

fn cut(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_250_documents_differ_by_place() {
        let one = json!({"stages": [{"name": "a", "writes": [1, 2]}], "next": {"finish": {}}, "a/b": {"~": 1}});
        let other = json!({"stages": [{"name": "b", "writes": [1]}], "recover": [3], "next": "x", "a/b": {"~": 2}});
        let all = [
            "/a~1b/~0: expected is 1, answered is 2",
            "/next: expected is {\"finish\":{}}, answered is \"x\"",
            "/stages/0/name: expected is \"a\", answered is \"b\"",
            "/stages/0/writes/1: expected is 2, answered is nothing",
            "/recover: expected is nothing, answered is [3]",
        ];
        assert_eq!(differences(&one, &other, 9), all);
        assert_eq!(differences(&one, &other, 2), [all[0], all[1], "and 3 more places"]);
        assert_eq!(differences(&one, &one, 9), Vec::<String>::new());
    }

    #[test]
    fn c_250_a_value_is_cut_and_a_whole_document_has_no_place() {
        let long = json!("é".repeat(200));
        let expected = format!("the whole: expected is \"{}…, answered is null", "é".repeat(CHARACTERS - 1));
        assert_eq!(differences(&long, &Value::Null, 1), [expected]);
    }
}
