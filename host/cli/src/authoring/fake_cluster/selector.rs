//! Selectors in the text form of Kubernetes.

use serde_json::Value;

/// Whether an object has the labels of one selector and the fields of the other, such as `app=web,tier in (a, b),!old` and
/// `metadata.name=web`.
///
/// # Errors
/// One sentence about a selector that makes no sense.
pub(super) fn selects(labels: Option<&str>, fields: Option<&str>, object: &Value) -> Result<bool, String> {
    let label = |name: &str| object.pointer("/metadata/labels").and_then(|labels| labels.get(name));
    let field = |path: &str| path.split('.').try_fold(object, |value, step| value.get(step));
    Ok(all_hold(labels, label)? && all_hold(fields, field)?)
}

fn all_hold<'a>(selector: Option<&str>, value: impl Fn(&str) -> Option<&'a Value>) -> Result<bool, String> {
    let Some(selector) = selector else { return Ok(true) };
    for part in parts(selector).filter(|part| !part.is_empty()) {
        if !holds(part, |name| value(name).and_then(Value::as_str))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The parts between the commas that stand in no brackets.
fn parts(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = selector.split(move |letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    parts.map(str::trim)
}

fn holds<'a>(part: &str, value: impl Fn(&str) -> Option<&'a str>) -> Result<bool, String> {
    let nonsense =
        || format!("{part:?} is no term of a selector; write a=b, a!=b, a in (b, c), a notin (b, c), a or !a");
    let is_name = |name: &str| !name.is_empty() && !name.contains([' ', '(', ')', '!', '=', ',']);
    let named = |name: &str| Some(name.trim()).filter(|name| is_name(name)).map(&value).ok_or_else(nonsense);
    if let Some((head, listed)) = part.strip_suffix(')').and_then(|listed| listed.split_once('(')) {
        let (name, operator) = head.trim().rsplit_once(char::is_whitespace).ok_or_else(nonsense)?;
        let found = named(name)?;
        let is_listed = found.is_some_and(|found| listed.split(',').any(|one| one.trim() == found));
        return match operator {
            "in" => Ok(is_listed),
            "notin" => Ok(!is_listed),
            _ => Err(nonsense()),
        };
    }
    if let Some((name, wanted)) = part.split_once("!=") {
        return Ok(named(name)? != Some(wanted.trim()));
    }
    if let Some((name, wanted)) = part.split_once('=') {
        return Ok(named(name)? == Some(wanted.strip_prefix('=').unwrap_or(wanted).trim()));
    }
    match part.strip_prefix('!') {
        Some(name) => Ok(named(name)?.is_none()),
        None => Ok(named(part)?.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_252_selectors_select_as_those_of_kubernetes() {
        let object =
            json!({"metadata": {"name": "x", "labels": {"app": "web", "tier": "a"}}, "spec": {"nodeName": "n"}});
        let by_labels = |selector: &str| selects(Some(selector), None, &object);
        for selector in
            ["", "app", "app=web", "app==web,tier in (b, a)", "tier notin (b,c),!old", "old!=x", "old notin (a)"]
        {
            assert_eq!(by_labels(selector), Ok(true), "{selector}");
        }
        for selector in ["old", "app=db", "app!=web", "tier in (b, c)", "!app", "app,tier=b"] {
            assert_eq!(by_labels(selector), Ok(false), "{selector}");
        }
        for selector in ["app in", "app has (b)", "(a)", "=x", "a b"] {
            assert!(by_labels(selector).unwrap_err().contains("is no term of a selector"), "{selector}");
        }
        let by_fields = |selector: &str| selects(None, Some(selector), &object);
        assert_eq!(by_fields("metadata.name=x,spec.nodeName!=m"), Ok(true));
        assert_eq!(by_fields("metadata.name=y"), Ok(false));
    }
}
