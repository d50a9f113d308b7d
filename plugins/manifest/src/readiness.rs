//! Readiness checks (`docs/wire.md` §9): the default one over all that was written, then the custom ones.

use orangery_sdk::{
    ClusterRef, Gate, ObjectKey, Problem, Readiness, ReadinessRule, Requirement, Scope, Selection, lenient::Place,
};
use serde_json::{Map, Value};

/// The name of the check that `disableDefault` switches off.
const DEFAULT: &str = "default";

/// How many values an operator takes.
#[derive(Clone, Copy)]
enum Values {
    Any,
    One,
    Some,
}

const OPERATORS: [(&str, Values); 7] = [
    ("exists", Values::Any),
    ("!", Values::Any),
    ("=", Values::One),
    ("==", Values::One),
    ("!=", Values::One),
    ("in", Values::Some),
    ("notin", Values::Some),
];

/// The gate after the objects are written.
pub(crate) fn gate(config: &Place<'_>) -> Result<Gate, Problem> {
    let checks = config.field("readinessChecks")?;
    let mut rules = Vec::new();
    if !checks.as_ref().map_or(Ok(false), |checks| checks.flag_of("disableDefault"))? {
        rules.push(default());
    }
    for check in checks.map_or_else(|| Ok(Vec::new()), |checks| checks.items_of("custom"))? {
        rules.extend(custom(&check)?);
    }
    Ok(if rules.is_empty() { Gate::Accepted } else { Gate::Ready(rules) })
}

fn default() -> Readiness {
    Readiness {
        name: DEFAULT.to_owned(),
        on: ClusterRef::Target,
        scope: Scope::Stage,
        rule: ReadinessRule::Usual,
        timeout: None,
    }
}

/// Whether a check looks at nothing but what the stage wrote.
pub(crate) fn is_default(check: &Readiness) -> bool {
    matches!(check.scope, Scope::Stage)
}

/// One custom check; none where it is disabled, and one for each selector where it has both.
fn custom(check: &Place<'_>) -> Result<Vec<Readiness>, Problem> {
    let name = check.required("name")?.name()?;
    let on = cluster(check)?;
    let rule = ReadinessRule::Requirements(requirements(check)?);
    let scopes: Vec<Scope> = [keys(check)?, labels(check)?].into_iter().flatten().collect();
    if scopes.is_empty() {
        return Err(
            check.problem(format!("the readiness check {name} selects nothing; add resourceSelector or labelSelector"))
        );
    }
    if check.flag_of("disabled")? {
        return Ok(Vec::new());
    }
    let rules = scopes.into_iter().map(|scope| Readiness {
        name: name.to_owned(),
        on: on.clone(),
        scope,
        rule: rule.clone(),
        timeout: None,
    });
    Ok(rules.collect())
}

/// The cluster that `targetName` names, else that of the item's own target.
pub(crate) fn cluster(place: &Place<'_>) -> Result<ClusterRef, Problem> {
    let name = place.text_of("targetName")?;
    Ok(name.map_or(ClusterRef::Target, |name| ClusterRef::Named(name.to_owned())))
}

/// A reference to one object.
pub(crate) fn reference(place: &Place<'_>) -> Result<ObjectKey, Problem> {
    let text = |name: &str| Ok::<_, Problem>(place.required(name)?.name()?.to_owned());
    Ok(ObjectKey {
        api_version: text("apiVersion")?,
        kind: text("kind")?,
        namespace: place.text_of("namespace")?.map(str::to_owned),
        name: text("name")?,
    })
}

/// `resourceSelector`: a list in the code of the original, an object in its documentation.
fn keys(check: &Place<'_>) -> Result<Option<Scope>, Problem> {
    let Some(selector) = check.field("resourceSelector")? else { return Ok(None) };
    let references = if selector.value().is_object() { vec![selector] } else { selector.items()? };
    if references.is_empty() {
        return Ok(None);
    }
    Ok(Some(Scope::Keys(references.iter().map(reference).collect::<Result<_, _>>()?)))
}

/// `labelSelector`: objects of all namespaces.
fn labels(check: &Place<'_>) -> Result<Option<Scope>, Problem> {
    let Some(selector) = check.field("labelSelector")? else { return Ok(None) };
    selector.required("matchLabels")?;
    let labels = selector.texts_of("matchLabels")?.map(|labels| {
        let pairs = labels.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
        pairs.collect::<Vec<_>>().join(",")
    });
    Ok(Some(Scope::Matching(Selection {
        api_version: selector.required("apiVersion")?.name()?.to_owned(),
        kind: selector.required("kind")?.name()?.to_owned(),
        namespace: None,
        names: Vec::new(),
        labels,
        fields: None,
    })))
}

fn requirements(check: &Place<'_>) -> Result<Vec<Requirement>, Problem> {
    check.items_of("requirements")?.iter().map(requirement).collect()
}

fn requirement(place: &Place<'_>) -> Result<Requirement, Problem> {
    let path = place.required("jsonPath")?.name()?.to_owned();
    let operator = place.required("operator")?;
    let takes = operator.one_of(&OPERATORS)?;
    let values = place.items_of("values")?.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let fits = match takes {
        Values::Any => true,
        Values::One => values.len() == 1,
        Values::Some => !values.is_empty(),
    };
    let operator = operator.text()?.to_owned();
    if !fits {
        let wanted = if matches!(takes, Values::One) { "exactly one value" } else { "at least one value" };
        return Err(place.problem(format!("the operator {operator} takes {wanted}; there are {}", values.len())));
    }
    Ok(Requirement { path, operator, values })
}

/// One entry of `values`: any JSON under `value`, which may be null.
fn value(place: &Place<'_>) -> Result<String, Problem> {
    let named = |object: &Map<String, Value>| {
        let found = object.iter().find(|(name, _)| name.eq_ignore_ascii_case("value"));
        found.map(|(_, value)| value.to_string())
    };
    named(place.object()?).ok_or_else(|| place.problem("value is missing; write {value: …}"))
}
