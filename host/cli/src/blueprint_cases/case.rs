//! One case of a blueprint: what is given, and what has to come of it.

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;
use orangery_blueprint::import::Imported;
use orangery_core::{
    lenient,
    name::{Namespace, ObjectName},
    yaml,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    authoring::cases::Assertion,
    folder,
    offline::{Given, RenderedInstallation, fields, imported},
};

/// The longest file of a case, in bytes.
const LONGEST_CASE: u64 = 1 << 20;

/// As many assertions a case has at most.
const MOST_ASSERTIONS: usize = 1_000;

/// What a case gives and a server has itself.
const OFFLINE: [&str; 5] = ["deployItems", "state", "subinstallations", "now", "seed"];

/// What a case gives of the installation, as the files of `orangery render` have it.
const GIVEN: [&str; 3] = ["deployItems", "state", "subinstallations"];

/// Its other fields.
const OWN: [&str; 9] = ["imports", "name", "namespace", "now", "seed", "fails", "assertions", "snapshot", "server"];

/// Where a case is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CasePlace {
    /// It is rendered here.
    Here,
    /// An operator carries it out.
    Server,
}

impl CasePlace {
    /// What becomes of a blueprint where nothing fails.
    fn success(self) -> &'static str {
        match self {
            CasePlace::Here => "renders",
            CasePlace::Server => "succeeds",
        }
    }

    /// The variables of assertions that nobody can tell there.
    fn untold(self) -> &'static [&'static str] {
        match self {
            CasePlace::Here => &[],
            CasePlace::Server => &["state", "warnings"],
        }
    }
}

/// One case.
#[derive(Debug)]
pub(super) struct BlueprintCase {
    /// The imports, by name.
    pub(super) imports: BTreeMap<String, Imported>,
    /// The same, as they are written.
    import_values: Map<String, Value>,
    /// What deploy items exported, and what executions kept.
    pub(super) given: Given,
    /// The installation's name.
    pub(super) name: ObjectName,
    /// Its namespace.
    pub(super) namespace: Namespace,
    /// The time that templates are told.
    pub(super) now: Timestamp,
    /// What the randomness of templates is made from.
    pub(super) seed: String,
    /// What the error says with which rendering has to fail; `None` where it must not fail.
    fails: Option<String>,
    assertions: Vec<Assertion>,
    /// Whether what is rendered is held against a snapshot.
    pub(super) has_snapshot: bool,
    /// Whether an operator is to carry it out; `None` where that is not said.
    server: Option<bool>,
    /// What of it a server has itself.
    offline: Vec<&'static str>,
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CaseFields {
    imports: Map<String, Value>,
    name: ObjectName,
    namespace: Namespace,
    now: String,
    seed: String,
    fails: Option<String>,
    assertions: Vec<Value>,
    snapshot: bool,
    server: Option<bool>,
}

impl Default for CaseFields {
    fn default() -> Self {
        Self {
            imports: Map::new(),
            name: "blueprint".into(),
            namespace: "default".into(),
            now: "2000-01-01T00:00:00Z".to_owned(),
            seed: String::new(),
            fails: None,
            assertions: Vec::new(),
            snapshot: false,
            server: None,
        }
    }
}

impl BlueprintCase {
    /// Reads a file.
    ///
    /// # Errors
    /// One sentence.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let content = folder::content_of(path, LONGEST_CASE).map_err(|error| format!("it cannot be read: {error}"))?;
        let too_long = || format!("it has more than {} KiB; split it", LONGEST_CASE >> 10);
        let text = String::from_utf8(content.ok_or_else(too_long)?).map_err(|_| "it is no UTF-8; save it as such")?;
        let documents = yaml::documents(&text)
            .map_err(|error| format!("{}:{}: {}; correct the YAML", error.line, error.column, error.reason))?;
        match documents.as_slice() {
            [one] => Self::parse(&one.value),
            all => Err(format!("it has {} documents, and is one case; give each a file of its own", all.len())),
        }
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let form = |error: lenient::DecodeError| format!("{error}; docs/blueprint-tests.md has the form");
        fields(value, &[&OWN[..], &GIVEN[..]].concat()).map_err(form)?;
        let all = value.as_object().cloned().unwrap_or_default();
        let offline = OFFLINE.into_iter().filter(|field| all.contains_key(*field)).collect();
        let given = Value::Object(all.into_iter().filter(|(name, _)| GIVEN.contains(&name.as_str())).collect());
        let given = Given::form(&given).and_then(|()| lenient::decode(&given)).map_err(form)?;
        let fields: CaseFields = lenient::decode(value).map_err(form)?;
        if fields.assertions.len() > MOST_ASSERTIONS {
            let count = fields.assertions.len();
            return Err(format!("it has {count} assertions, {MOST_ASSERTIONS} are allowed; split it"));
        }
        let assertion = |(index, value): (usize, Value)| {
            serde_json::from_value(value)
                .map_err(|error| format!("assertions[{index}] is no {{assert, message}}: {error}"))
        };
        Ok(Self {
            imports: fields.imports.clone().into_iter().map(|(name, value)| (name, imported(value))).collect(),
            import_values: fields.imports,
            given,
            name: fields.name,
            namespace: fields.namespace.parse().map_err(|error| format!("namespace: {error}"))?,
            now: fields.now.parse().map_err(|error| format!("now: {error}; write it as 2000-01-01T00:00:00Z"))?,
            seed: fields.seed,
            fails: fields.fails,
            assertions: fields.assertions.into_iter().enumerate().map(assertion).collect::<Result<_, _>>()?,
            has_snapshot: fields.snapshot,
            server: fields.server,
            offline,
        })
    }

    /// Why no server is to carry it out; `None` where one is.
    pub(super) fn skipped_on_servers(&self) -> Option<String> {
        match self.server {
            Some(true) => None,
            Some(false) => Some("it says server: false".to_owned()),
            None if self.offline.is_empty() => None,
            None => Some(format!(
                "it gives {}, which a server has itself; to have it carried out without, write server: true",
                self.offline.join(", ")
            )),
        }
    }

    /// What is wrong with what came of it, a sentence each.
    pub(super) fn problems(&self, place: CasePlace, outcome: Result<&RenderedInstallation, &str>) -> Vec<String> {
        let mut problems = Vec::new();
        match (&self.fails, outcome) {
            (None, Ok(_)) => {}
            (None, Err(error)) => problems.push(error.to_owned()),
            (Some(text), Ok(_)) => {
                problems.push(format!("it {}, and is expected to fail with {text:?}", place.success()));
            }
            (Some(text), Err(error)) if !error.contains(text.as_str()) => {
                problems.push(format!("it is expected to fail with {text:?}, and fails with: {error}"));
            }
            (Some(_), Err(_)) => {}
        }
        if self.fails.is_none() && outcome.is_err() {
            return problems;
        }
        match self.variables(place, outcome) {
            Ok(variables) => problems.extend(self.assertions.iter().filter_map(|of| of.problem(&variables))),
            Err(error) => problems.push(format!("what is rendered is no JSON: {error}")),
        }
        problems
    }

    /// What assertions name.
    fn variables(
        &self,
        place: CasePlace,
        outcome: Result<&RenderedInstallation, &str>,
    ) -> serde_json::Result<Map<String, Value>> {
        let nothing = RenderedInstallation::default();
        let mut variables = of_installation(place, outcome.unwrap_or(&nothing))?;
        variables.insert("imports".to_owned(), Value::Object(self.import_values.clone()));
        variables.insert("error".to_owned(), outcome.err().map_or(Value::Null, Value::from));
        Ok(variables)
    }
}

/// An installation with its deploy items and sub-installations by their names.
fn of_installation(place: CasePlace, rendered: &RenderedInstallation) -> serde_json::Result<Map<String, Value>> {
    let mut items = Map::new();
    for item in &rendered.deploy_items {
        items.insert(item.name.to_string(), serde_json::to_value(item)?);
    }
    let mut subinstallations = Map::new();
    for sub in &rendered.subinstallations {
        subinstallations.insert(sub.name.clone(), Value::Object(of_installation(place, sub)?));
    }
    let fields = [
        ("items", Value::Object(items)),
        ("subinstallations", Value::Object(subinstallations)),
        ("exports", rendered.exports.clone().map_or(Value::Null, Value::Object)),
        ("waitsFor", Value::from(rendered.waits_for.clone())),
        ("notWanted", Value::from(rendered.not_wanted.clone())),
        ("notWantedSubinstallations", Value::from(rendered.not_wanted_subinstallations.clone())),
        ("state", serde_json::to_value(&rendered.state)?),
        ("warnings", Value::from(rendered.warnings.clone())),
    ];
    let told = fields.into_iter().filter(|(name, _)| !place.untold().contains(name));
    Ok(told.map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<BlueprintCase, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.yaml");
        std::fs::write(&path, text).unwrap();
        BlueprintCase::read(&path)
    }

    fn rendered() -> RenderedInstallation {
        let exports = json!({"gate": "https://a"}).as_object().cloned();
        let sub = RenderedInstallation { name: "sub".to_owned(), exports: exports.clone(), ..Default::default() };
        RenderedInstallation { name: "b".to_owned(), exports, subinstallations: vec![sub], ..Default::default() }
    }

    #[test]
    fn c_303_a_case_passes_where_its_assertions_hold_and_it_fails_as_expected() {
        let case = |text| read(text).unwrap();
        let one = case("imports: {size: 3}\nassertions:\n- assert: exports.gate == 'https://a' && imports.size == 3\n");
        assert_eq!(one.problems(CasePlace::Here, Ok(&rendered())), Vec::<String>::new());
        assert_eq!(one.problems(CasePlace::Here, Err("no such import")), ["no such import"]);
        let sub =
            "assertions:\n- assert: subinstallations.sub.exports.gate == 'b'\n  message: the gate\n- assert: item.a\n";
        let expected = [
            "the gate: `subinstallations.sub.exports.gate == 'b'` does not hold",
            "`item.a` cannot be told: there is no item; known are: error, exports, imports, items, notWanted, \
             notWantedSubinstallations, state, subinstallations, waitsFor, warnings",
        ];
        assert_eq!(case(sub).problems(CasePlace::Here, Ok(&rendered())), expected);
        let fails = case("fails: import\nassertions:\n- assert: error.startsWith('no') && items == {}\n");
        assert_eq!(fails.problems(CasePlace::Here, Err("no such import")), Vec::<String>::new());
        let other = "it is expected to fail with \"import\", and fails with: no engine";
        assert_eq!(fails.problems(CasePlace::Here, Err("no engine")), [other]);
        let renders = "it renders, and is expected to fail with \"import\"";
        assert_eq!(fails.problems(CasePlace::Here, Ok(&rendered()))[0], renders);
    }

    #[test]
    fn c_249_on_a_server_a_case_is_held_against_what_can_be_told_there_or_says_why_it_is_skipped() {
        let skipped = |text| read(text).unwrap().skipped_on_servers();
        assert_eq!([skipped("imports: {a: 1}"), skipped("now: 2001-01-01T00:00:00Z\nserver: true")], [None, None]);
        assert_eq!(skipped("server: false").as_deref(), Some("it says server: false"));
        let given = "it gives deployItems, state, which a server has itself; to have it carried out without, write server: true";
        assert_eq!(skipped("state: {}\ndeployItems: {}").as_deref(), Some(given));
        let case = read("fails: a\nassertions:\n- assert: subinstallations.sub.state == {}\n").unwrap();
        let expected = [
            "it succeeds, and is expected to fail with \"a\"",
            "`subinstallations.sub.state == {}` cannot be told: no such key: state",
        ];
        assert_eq!(case.problems(CasePlace::Server, Ok(&rendered())), expected);
    }

    #[test]
    fn c_303_limits_a_case_that_is_none_says_why() {
        let why = |text: &str| read(text).unwrap_err();
        let known = "imports, name, namespace, now, seed, fails, assertions, snapshot, server, deployItems, state, subinstallations";
        let form = "docs/blueprint-tests.md has the form";
        assert_eq!(why("import: {}"), format!("there is no field \"import\"; fields are: {known}; {form}"));
        assert!(why("a: [").starts_with("1:") && why("a: [").ends_with("; correct the YAML"), "{}", why("a: ["));
        assert_eq!(why("seed: a\n---\nseed: b\n"), "it has 2 documents, and is one case; give each a file of its own");
        assert!(why("now: noon").starts_with("now: "), "{}", why("now: noon"));
        assert!(why("namespace: Team_A").starts_with("namespace: \"Team_A\" cannot be a namespace"));
        assert!(why("assertions: [{assert: a, text: b}]").starts_with("assertions[0] is no {assert, message}: "));
        assert_eq!(why(&"#".repeat((1 << 20) + 1)), "it has more than 1024 KiB; split it");
        let many = format!("assertions: [{}]", "{assert: 'true'},".repeat(1_001));
        assert_eq!(why(&many), "it has 1001 assertions, 1000 are allowed; split it");
    }
}
