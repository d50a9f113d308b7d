//! Configurations that are none, have other types, or are large.

use orangery_core::error::Fault;
use orangery_proposal::{
    Proposal,
    check::{Bounds, check},
    recorded::{RecordedAnswer, differences},
};
use serde_json::{Value, json};

use super::session::{ConformanceSession, Shortfall};

/// The most fields of a sample whose types are changed, and how deep they lie.
const MOST_FIELDS: usize = 128;
const DEEPEST_FIELD: usize = 6;

/// A field that no deployer has.
const UNKNOWN: &str = "aFieldThatNobodyKnows";

pub(super) async fn no_configuration(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    for config in [Value::Null, json!([]), json!("text"), json!(42), json!(true), json!({})] {
        match session.answer(&session.with(config.clone()), None).await? {
            Err(Fault::Invalid(_)) => {}
            // A deployer may need nothing of its configuration.
            Ok(_) if config.is_object() => {}
            Ok(_) => {
                return Err(Shortfall::Failed(format!("the configuration {config} is planned, and is to be invalid")));
            }
            Err(fault) => return Err(not_invalid(&format!("the configuration {config}"), &fault)),
        }
    }
    Ok(())
}

fn not_invalid(what: &str, fault: &Fault) -> Shortfall {
    let sort = match fault {
        Fault::Invalid(_) => "invalid",
        Fault::Later(_) => "later",
        Fault::Denied(_) => "denied",
    };
    Shortfall::Failed(format!("{what} is `{sort}`, and only another configuration helps: {fault}"))
}

pub(super) async fn validation(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let Some(schema) = session.deployer.schema().await else {
        return Err(Shortfall::NotApplicable(
            "the component says nothing of configurations without a cluster".to_owned(),
        ));
    };
    schema.map_err(|why| format!("the schema cannot be had: {why}"))?;
    let unanswered = |error: String| format!("there is no answer: {error}");
    let problems = session.deployer.problems(&session.item.config).await.map_err(unanswered)?;
    if let Some(problem) = problems.first() {
        return Err(Shortfall::Failed(format!("the sample, which is planned, is said to be wrong: {problem}")));
    }
    for config in [Value::Null, json!([]), json!("text"), json!(42), json!(true)] {
        if session.deployer.problems(&config).await.map_err(unanswered)?.is_empty() {
            return Err(Shortfall::Failed(format!("nothing is said to be wrong with the configuration {config}")));
        }
    }
    Ok(())
}

pub(super) async fn wrong_types(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    session.proposal().await?;
    let mut places = Vec::new();
    collect(&session.item.config, &mut String::new(), 0, &mut places);
    for place in places.iter().take(MOST_FIELDS) {
        let mut config = session.item.config.clone();
        let Some(value) = config.pointer_mut(place) else { continue };
        *value = of_another_type(value);
        match session.answer(&session.with(config), None).await? {
            Ok(proposal) => is_sound(session, &proposal, place)?,
            Err(Fault::Invalid(problem)) => {
                let at = problem.at.as_deref().unwrap_or_default();
                if at.is_empty() || !(is_within(at, place) || is_within(place, at)) {
                    let found = if at.is_empty() { "no place".to_owned() } else { format!("the place {at}") };
                    let why = format!("{place} of another type is invalid with {found}: {}", problem.message);
                    return Err(Shortfall::Failed(why));
                }
            }
            Err(fault) => return Err(not_invalid(&format!("{place} of another type"), &fault)),
        }
    }
    Ok(())
}

/// Whether what follows from a field of another type is one that the host carries out.
fn is_sound(session: &ConformanceSession<'_>, proposal: &Proposal, place: &str) -> Result<(), Shortfall> {
    match check(proposal, session.deployer.grants(), Bounds::default()) {
        Err(Fault::Invalid(problem)) => Err(Shortfall::Failed(format!(
            "{place} of another type goes into a proposal that the host would refuse: {problem}"
        ))),
        Err(Fault::Later(_) | Fault::Denied(_)) | Ok(()) => Ok(()),
    }
}

/// Whether a JSON pointer leads to this place or into it.
fn is_within(pointer: &str, place: &str) -> bool {
    pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The places of all that has a value, as JSON pointers.
fn collect(value: &Value, place: &mut String, depth: usize, places: &mut Vec<String>) {
    let steps: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (step, value) in steps.into_iter().filter(|(_, value)| !value.is_null() && depth < DEEPEST_FIELD) {
        let length = place.len();
        place.push('/');
        place.push_str(&step);
        places.push(place.clone());
        collect(value, place, depth + 1, places);
        place.truncate(length);
    }
}

fn of_another_type(value: &Value) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) => json!("a text"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({"an": ["object"]}),
    }
}

pub(super) async fn unknown_field(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let first = session.proposal().await?;
    let mut config = session.item.config.clone();
    let Some(fields) = config.as_object_mut() else { return Ok(()) };
    fields.insert(UNKNOWN.to_owned(), json!({"a": [1]}));
    match session.answer(&session.with(config), None).await? {
        Ok(proposal) if proposal == first => Ok(()),
        Ok(proposal) => {
            let [one, other] = [first, proposal].map(|proposal| json!(RecordedAnswer::Proposal(Box::new(proposal))));
            let places = differences(&one, &other, 3).join("; ");
            Err(Shortfall::Failed(format!("a field that nobody knows changes the proposal: {places}")))
        }
        Err(Fault::Invalid(problem)) if problem.to_string().contains(UNKNOWN) => Ok(()),
        Err(Fault::Invalid(problem)) => {
            Err(Shortfall::Failed(format!("a field that nobody knows is invalid and not named: {problem}")))
        }
        Err(fault) => Err(not_invalid("a field that nobody knows", &fault)),
    }
}

pub(super) async fn huge(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let Some(fields) = session.item.config.as_object() else { return Ok(()) };
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let additions = [json!("x".repeat(1 << 20)), json!(vec![json!({"a": "b"}); 10_000]), deep];
    let mut configs: Vec<Value> = Vec::new();
    for value in additions {
        let mut fields = fields.clone();
        fields.insert(UNKNOWN.to_owned(), value);
        configs.push(fields.into());
    }
    for (name, value) in fields {
        let Some(first) = value.as_array().and_then(|items| items.first()) else { continue };
        let mut fields = fields.clone();
        fields.insert(name.clone(), vec![first.clone(); 1_000].into());
        configs.push(fields.into());
    }
    for config in configs {
        if let Err(fault @ (Fault::Later(_) | Fault::Denied(_))) = session.answer(&session.with(config), None).await? {
            return Err(not_invalid("a large configuration", &fault));
        }
    }
    Ok(())
}
