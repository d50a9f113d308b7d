//! A deployer of one's own: writes a greeting for each person of its configuration, and exports how many there are.

use orangery_sdk::{
    Completion, Deployer, ExportRule, ExportSource, Fault, Gate, Host, Item, ObjectWrite, Problem, Proposal, Stage,
};
use serde_json::{Value, json};

/// The component.
pub struct Greeter;

impl Deployer for Greeter {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        Ok(plan(&item.config()?)?)
    }
}

orangery_sdk::export_deployer!(Greeter);

fn plan(config: &Value) -> Result<Proposal, Problem> {
    let people = config["people"].as_array().ok_or_else(|| {
        Problem::configuration("/people", "people is not a list; write `people: [{name: ada, language: en}]`")
    })?;
    let greetings: Result<Vec<Value>, Problem> = people.iter().enumerate().map(greeting).collect();
    let writes = greetings?.iter().map(ObjectWrite::apply).collect();
    let count = ExportSource::Value(people.len().to_string());
    let completion =
        Completion { exports: vec![ExportRule { key: "greeted".to_owned(), source: count }], ..Completion::default() };
    Ok(Proposal::finish(vec![Stage::new("greetings", writes, Gate::Accepted)], completion))
}

fn greeting((index, person): (usize, &Value)) -> Result<Value, Problem> {
    let name = person["name"].as_str().ok_or_else(|| {
        Problem::configuration(format!("/people/{index}/name"), "a person has no name; write `name: ada`")
    })?;
    let word = match person["language"].as_str() {
        Some("de") => "Guten Tag",
        Some("fr") => "Bonjour",
        Some(_) | None => "Hello",
    };
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("greeting-{name}"), "namespace": "default"},
        "data": {"text": format!("{word}, {name}")},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_person_is_greeted_in_their_language() {
        let config = json!({"people": [{"name": "ada"}, {"name": "emile", "language": "fr"}]});
        let proposal = plan(&config).unwrap();
        let objects =
            proposal.stages[0].writes.iter().map(|write| serde_json::from_str::<Value>(&write.object).unwrap());
        let texts: Vec<Value> = objects.map(|object| object["data"]["text"].clone()).collect();
        assert_eq!(texts, ["Hello, ada", "Bonjour, emile"]);
    }

    #[test]
    fn a_person_without_a_name_is_found() {
        let problem = plan(&json!({"people": [{"name": "ada"}, {}]})).unwrap_err();
        assert_eq!(problem.at.as_deref(), Some("/people/1/name"));
    }
}
