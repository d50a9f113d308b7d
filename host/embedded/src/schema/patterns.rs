//! The regular expressions of a schema, before any of them is compiled (C-135).

use orangery_expression::{MOST_PLACES, ReadingBudget};
use serde_json::{Map, Value, json};

use crate::refusal::StatusCause;

/// The most regular expressions of the schema of one version.
const MOST_PATTERNS: usize = 1_000;

/// The most bytes of a compiled one.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// The same of all of them together, shared equally.
const MOST_PATTERN_BYTES_IN_ALL: usize = 32 << 20;

/// How many letters of one a message shows.
const LONGEST_SHOWN: usize = 64;

/// What each may take when it is compiled, in bytes, where there are so many.
pub(super) fn bytes_of_each(count: usize) -> usize {
    MOST_PATTERN_BYTES.min(MOST_PATTERN_BYTES_IN_ALL / count.max(1))
}

/// How many a schema has.
pub(super) fn count(root: &Value) -> usize {
    let mut found = Vec::new();
    collect(root, "", &mut found);
    found.iter().filter(|(word, ..)| *word == Word::Pattern).count()
}

/// What is wrong with them, as far as it is told before they are compiled. `field` is where the schema is.
pub(super) fn problems(root: &Value, field: &str) -> Vec<StatusCause> {
    let mut found = Vec::new();
    collect(root, field, &mut found);
    let (mut causes, mut budget, mut count) = (Vec::new(), ReadingBudget::default(), 0);
    for (word, path, value) in found {
        let why = match (word, value.as_str()) {
            (Word::PatternProperties, _) => {
                causes.push(StatusCause::forbidden(path, "patternProperties is not supported"));
                continue;
            }
            (Word::ListOfItems, _) => {
                causes.push(StatusCause::forbidden(path, "items must be a schema object and not an array"));
                continue;
            }
            (Word::Pattern, None) => continue,
            (Word::Pattern, Some(pattern)) => {
                count += 1;
                if count > MOST_PATTERNS {
                    let why = format!("has more than the {MOST_PATTERNS} regular expressions that are allowed");
                    causes.push(StatusCause::invalid(field, root, &why));
                    return causes;
                }
                match budget.read_of_schema(pattern) {
                    Err(why) => why,
                    // What is none is told by whoever compiles it.
                    Ok(None) => continue,
                    Ok(Some(places)) if places <= MOST_PLACES => continue,
                    Ok(Some(places)) => format!(
                        "it has {places} places with its repetitions written out, {MOST_PLACES} are allowed; repeat less, or use \
                         maxLength"
                    ),
                }
            }
        };
        let shown: String = value.as_str().unwrap_or_default().chars().take(LONGEST_SHOWN).collect();
        causes.push(StatusCause::invalid(path, &json!(shown), &why));
        // What it took is gone: those behind it would be told the same.
        return causes;
    }
    causes
}

/// A word of a schema whose value has regular expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Pattern,
    PatternProperties,
    /// A schema for each place of a list.
    ListOfItems,
}

/// All of a schema, with their places as a cluster names them. What is data, as a default, has none.
fn collect<'a>(schema: &'a Value, path: &str, found: &mut Vec<(Word, String, &'a Value)>) {
    let Some(fields) = schema.as_object() else { return };
    for (word, value) in fields {
        let place = format!("{path}.{word}");
        match word.as_str() {
            "pattern" => found.push((Word::Pattern, place, value)),
            "patternProperties" if value.as_object().is_some_and(|map| !map.is_empty()) => {
                found.push((Word::PatternProperties, place, value));
            }
            "items" if value.is_array() => found.push((Word::ListOfItems, place, value)),
            "properties" => {
                for (name, of) in value.as_object().into_iter().flat_map(Map::iter) {
                    collect(of, &format!("{place}[{name}]"), found);
                }
            }
            "items" | "additionalProperties" | "not" => collect(value, &place, found),
            "allOf" | "anyOf" | "oneOf" => {
                for (index, of) in value.as_array().into_iter().flatten().enumerate() {
                    collect(of, &format!("{place}[{index}]"), found);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(patterns: &[&str]) -> Vec<String> {
        let properties: Map<String, Value> =
            patterns.iter().enumerate().map(|(at, of)| (format!("p{at:04}"), json!({"pattern": of}))).collect();
        let causes = problems(&json!({"properties": {"spec": {"anyOf": [{"properties": properties}]}}}), "schema");
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn c_135_limits_crd_patterns_are_bounded_before_they_are_compiled() {
        assert_eq!(refusals(&["^(a+)+$", r"^\d+(\.\d+)*\s*$", "(a", "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"]), [""; 0]);
        let first = "schema.properties[spec].anyOf[0].properties[p0000].pattern: Invalid value: ";
        assert_eq!(
            refusals(&[&"a".repeat(5_000), &"a".repeat(5_000)]),
            [format!(
                "{first}\"{}\": a regular expression has 5000 bytes, 4096 are allowed; write a shorter one",
                "a".repeat(LONGEST_SHOWN)
            )]
        );
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(refusals(&[&deep])[0].contains("more than the 64 levels deep"), "{:?}", refusals(&[&deep]));
        let letters = format!("(?i:[{}])", r"\p{L}".repeat(800));
        assert!(refusals(&[&letters])[0].contains("takes more than the 4000000 steps that are allowed"));
        // All of them together.
        let letters = format!("(?i:[{}])", r"\p{L}".repeat(20));
        let many = refusals(&[letters.as_str(); 500]);
        assert!(many.len() == 1 && many[0].contains("steps that are allowed"), "{many:?}");
        assert_eq!(
            refusals(&["(a{100}){100}"]),
            [format!(
                "{first}\"(a{{100}}){{100}}\": it has 20100 places with its repetitions written out, 4096 are allowed; repeat less, or use \
                 maxLength"
            )]
        );
        assert_eq!(refusals(&["a"; MOST_PATTERNS]), [""; 0]);
        assert_eq!(
            refusals(&["a"; MOST_PATTERNS + 1]),
            ["schema: Invalid value: \"object\": has more than the 1000 regular expressions that are allowed"]
        );
    }

    #[test]
    fn c_135_what_a_cluster_does_not_support_is_refused_and_what_is_data_is_none() {
        let refused = |schema: Value| -> Vec<String> {
            let causes = problems(&schema, "schema");
            causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
        };
        assert_eq!(
            refused(json!({"properties": {"a": {"items": {"patternProperties": {"(": {}}}}}})),
            ["schema.properties[a].items.patternProperties: Forbidden: patternProperties is not supported"]
        );
        assert_eq!(
            refused(json!({"properties": {"a": {"items": [{"pattern": "("}, {"$ref": "#"}]}}})),
            ["schema.properties[a].items: Forbidden: items must be a schema object and not an array"]
        );
        // One that an earlier build has stored is read without them.
        let stored =
            json!({"properties": {"a": {"items": [{"pattern": "("}], "additionalProperties": [{"pattern": "("}]}}});
        let causes = crate::schema::OpenApiSchema::new(stored).validate(&json!({"a": ["b"]}));
        assert_eq!(causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>(), [""; 0]);
        let long = "a".repeat(5_000);
        assert_eq!(refused(json!({"default": {"pattern": long}, "enum": [{"pattern": long}]})), [""; 0]);
        assert_eq!(refused(json!({"properties": {"pattern": {"type": "string"}}, "pattern": 1})), [""; 0]);
    }

    #[test]
    fn c_135_limits_crd_compiled_patterns_share_their_memory() {
        let problem = |patterns: usize, pattern: &str| {
            let properties: Map<String, Value> =
                (0..patterns).map(|at| (format!("p{at}"), json!({"pattern": format!("{pattern}{at}")}))).collect();
            let schema = crate::schema::OpenApiSchema::new(json!({"properties": properties}));
            schema.problems("schema").into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        let large = r"^\p{L}{15}q";
        assert_eq!(problem(2, large), [""; 0]);
        assert_eq!(problem(300, large).len(), 1, "of many each may take less");
        assert_eq!(problem(300, "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"), [""; 0]);
        assert_eq!((bytes_of_each(1), bytes_of_each(64)), (MOST_PATTERN_BYTES, MOST_PATTERN_BYTES_IN_ALL / 64));
    }
}
