//! Where Orangery is another than the original on purpose: what is expected in the place of what was recorded.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    difference::{ANY, step},
    recordings,
    steps::{Named, Recording, Step, documents},
};

/// Maps that are made where something is put into them that was not recorded.
const METADATA: [&str; 2] = ["annotations", "labels"];

/// What is expected in the place of something that was recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct Exception {
    /// The cases, or `*` for all that have it.
    cases: Vec<String>,
    /// Labels of dumps; all where there are none.
    #[serde(default)]
    dumps: Vec<String>,
    #[serde(flatten)]
    place: Place,
    /// Why.
    reason: String,
}

/// What it is about.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Place {
    /// A field of objects, or whole objects.
    Object(Change),
    /// The phase at the end of a job that is waited for.
    Finished(Change),
    /// Whether a namespace is there.
    Namespace(Change),
    /// The order of phases of objects.
    Phases(Change),
    /// Arguments of the operator.
    Arguments(Vec<String>),
    /// An object that has to be there before a file is applied.
    Waits(Wait),
}

/// What the recorder waited for without writing it down.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// The file that is applied then.
    before: String,
    /// What is there by then.
    object: Named,
}

/// A change of what is expected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// The kind and the stable name, which may have `*`; of a namespace its name.
    of: String,
    /// JSON pointers to values that the object has, null for none, `<any>` for one that is there.
    #[serde(default, rename = "where")]
    when: Map<String, Value>,
    /// The kind and the stable name of an object that is in the same dump.
    #[serde(default)]
    beside: String,
    /// A JSON pointer, whose parts may be `*`; all of the object without it.
    #[serde(default)]
    field: String,
    /// What was recorded, null for nothing; without it whatever was. Of phases one that another takes the place of.
    #[serde(default, deserialize_with = "given")]
    recorded: Option<Value>,
    /// What is expected, null for nothing; `<value of POINTER>` is a value of the same object.
    #[serde(default)]
    ours: Value,
}

fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Those of `tests/golden/exceptions.yaml`.
pub fn all() -> Vec<Exception> {
    read(&recordings().join("exceptions.yaml"))
}

/// What is expected of the case of a folder.
pub fn expected(folder: &Path) -> Recording {
    let mut recording = Recording::read(folder);
    for exception in all() {
        if exception.is_of(&recording.case) {
            exception.apply(&mut recording);
        }
    }
    recording
}

/// The arguments that the operator has in a case.
pub fn arguments(case: &str) -> Vec<String> {
    all()
        .iter()
        .filter(|exception| exception.is_of(case))
        .flat_map(|exception| exception.arguments().to_vec())
        .collect()
}

fn read(file: &Path) -> Vec<Exception> {
    let read = |document: Value| {
        let rows = document.as_array().cloned().unwrap_or_default();
        rows.into_iter().map(|row| {
            let read = serde_json::from_value(row.clone());
            read.unwrap_or_else(|error| crate::fail(&format!("{}: {error}: {row}", file.display())))
        })
    };
    documents(file).into_iter().flat_map(read).collect()
}

impl Exception {
    /// The names of the cases, `*` for all.
    pub fn cases(&self) -> &[String] {
        &self.cases
    }

    /// Whether it speaks of a case.
    pub fn is_of(&self, case: &str) -> bool {
        self.cases.iter().any(|of| of == case || of == "*")
    }

    /// One line that names it.
    pub fn title(&self) -> String {
        format!("{:?}: {}", self.place, self.reason)
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The arguments that the operator needs.
    pub fn arguments(&self) -> &[String] {
        match &self.place {
            Place::Arguments(arguments) => arguments,
            _ => &[],
        }
    }

    /// Puts what is expected in the place of what was recorded; how often.
    pub fn apply(&self, recording: &mut Recording) -> usize {
        match &self.place {
            Place::Object(change) => {
                let is_meant = |label: &String| self.dumps.is_empty() || self.dumps.contains(label);
                let dumps = recording.dumps.iter_mut().filter(|(label, _)| is_meant(label));
                dumps.map(|(_, objects)| change.in_objects(objects)).sum()
            }
            Place::Finished(change) => recording.steps.iter_mut().map(|step| change.in_wait(step)).sum(),
            Place::Namespace(change) => recording.steps.iter_mut().map(|step| change.in_namespace(step)).sum(),
            Place::Phases(change) => change.in_phases(recording),
            Place::Arguments(arguments) => arguments.len(),
            Place::Waits(wait) => wait.in_steps(&mut recording.steps),
        }
    }
}

impl Wait {
    fn in_steps(&self, steps: &mut Vec<Step>) -> usize {
        let is_meant = |step: &Step| matches!(step, Step::Apply(file) if *file == self.before);
        let Some(place) = steps.iter().position(is_meant) else { return 0 };
        steps.insert(place, Step::WaitThere(self.object.clone()));
        1
    }
}

impl Change {
    fn in_objects(&self, objects: &mut Vec<Value>) -> usize {
        if self.field.is_empty() && self.recorded == Some(Value::Null) {
            objects.push(self.ours.clone());
            return 1;
        }
        if !self.beside.is_empty() && !objects.iter().any(|object| matches(&self.beside, &title(object))) {
            return 0;
        }
        let before = objects.len();
        if self.field.is_empty() {
            objects.retain(|object| !self.is_of(object));
            return before - objects.len();
        }
        let meant = objects.iter_mut().filter(|object| self.is_of(object));
        let parts: Vec<&str> = self.field.split('/').skip(1).collect();
        let changed = meant.map(|object| {
            let ours = filled(&self.ours, object);
            self.in_value(object, &parts, &ours)
        });
        changed.sum()
    }

    fn is_of(&self, object: &Value) -> bool {
        let has = |(pointer, value): (&String, &Value)| match object.pointer(pointer) {
            Some(found) => value == ANY || value == found,
            None => value.is_null(),
        };
        matches(&self.of, &title(object)) && self.when.iter().all(has)
    }

    fn in_value(&self, value: &mut Value, parts: &[&str], ours: &Value) -> usize {
        match (value, parts) {
            (Value::Object(fields), ["*"]) => {
                let names: Vec<String> = fields.keys().map(|field| step(field)).collect();
                names.iter().map(|field| self.in_field(fields, field.trim_start_matches('/'), ours)).sum()
            }
            (Value::Object(fields), [field]) => self.in_field(fields, field, ours),
            (Value::Object(fields), ["*", rest @ ..]) => {
                fields.values_mut().map(|value| self.in_value(value, rest, ours)).sum()
            }
            (Value::Object(fields), [field, rest @ ..]) => {
                if self.recorded == Some(Value::Null) && METADATA.contains(field) && !fields.contains_key(*field) {
                    fields.insert((*field).to_owned(), json!({}));
                }
                fields.get_mut(&unescaped(field)).map(|value| self.in_value(value, rest, ours)).unwrap_or_default()
            }
            (Value::Array(entries), ["*", rest @ ..]) if !rest.is_empty() => {
                entries.iter_mut().map(|value| self.in_value(value, rest, ours)).sum()
            }
            (Value::Array(entries), [index, rest @ ..]) if !rest.is_empty() => {
                let entry = index.parse::<usize>().ok().and_then(|index| entries.get_mut(index));
                entry.map(|value| self.in_value(value, rest, ours)).unwrap_or_default()
            }
            _ => 0,
        }
    }

    fn in_field(&self, fields: &mut Map<String, Value>, field: &str, ours: &Value) -> usize {
        let field = unescaped(field);
        let current = fields.get(&field).cloned();
        if current.as_ref() == Some(ours) {
            return 0;
        }
        let is_meant = match &self.recorded {
            Some(Value::Null) => current.is_none(),
            Some(recorded) => current.as_ref() == Some(recorded),
            None => current.is_some(),
        };
        if !is_meant {
            return 0;
        }
        if ours.is_null() {
            fields.remove(&field);
        } else {
            fields.insert(field, ours.clone());
        }
        1
    }

    fn in_wait(&self, step: &mut Step) -> usize {
        let Step::WaitFinished(finished) = step else { return 0 };
        let is_recorded = self.recorded.as_ref().is_none_or(|recorded| *recorded == *finished.phase);
        if !matches(&self.of, &format!("{} {}", finished.kind, finished.name)) || !is_recorded {
            return 0;
        }
        finished.phase = self.ours.as_str().unwrap_or_default().to_owned();
        1
    }

    fn in_namespace(&self, step: &mut Step) -> usize {
        let Step::Namespace(namespace) = step else { return 0 };
        if !matches(&self.of, &namespace.name) {
            return 0;
        }
        namespace.exists = self.ours == json!(true);
        1
    }

    fn in_phases(&self, recording: &mut Recording) -> usize {
        if let (Some(Value::String(recorded)), Value::String(ours)) = (&self.recorded, &self.ours) {
            let mut replaced = 0;
            for (_, phases) in recording.phases.iter_mut().filter(|(of, _)| matches(&self.of, of)) {
                for phase in phases.iter_mut().filter(|phase| phase.as_str() == recorded.as_str()) {
                    phase.clone_from(ours);
                    replaced += 1;
                }
            }
            return replaced;
        }
        let ours: Option<Vec<String>> = serde_json::from_value(self.ours.clone()).ok();
        let Some(ours) = ours else {
            let before = recording.phases.len();
            recording.phases.retain(|of, _| !matches(&self.of, of));
            return before - recording.phases.len();
        };
        if self.recorded == Some(Value::Null) {
            return recording.phases.insert(self.of.clone(), ours).map_or(1, |_| 0);
        }
        let mut replaced = 0;
        for (_, phases) in recording.phases.iter_mut().filter(|(of, phases)| matches(&self.of, of) && **phases != ours)
        {
            phases.clone_from(&ours);
            replaced += 1;
        }
        replaced
    }
}

/// The kind and the stable name.
fn title(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

/// A value in which each `<value of POINTER>` is that of the object.
fn filled(value: &Value, object: &Value) -> Value {
    match value {
        Value::String(text) => filled_text(text, object),
        Value::Array(entries) => entries.iter().map(|entry| filled(entry, object)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(field, value)| (field.clone(), filled(value, object))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn filled_text(text: &str, object: &Value) -> Value {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, (pointer, behind))) =
        rest.split_once("<value of ").and_then(|(before, after)| Some((before, after.split_once('>')?)))
    {
        let value = object.pointer(pointer).cloned().unwrap_or_default();
        if done.is_empty() && before.is_empty() && behind.is_empty() {
            return value;
        }
        done += before;
        done += &value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        rest = behind;
    }
    Value::String(done + rest)
}

fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Whether a text is as a pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|text| {
            text.char_indices()
                .map(|(index, _)| index)
                .chain([text.len()])
                .any(|index| text.get(index..).is_some_and(|text| matches(rest, text)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn exception(text: Value) -> Exception {
        serde_json::from_value(text).unwrap()
    }

    fn recording() -> Recording {
        let object = |name: &str, generation: u64| {
            json!({
                "kind": "Execution",
                "metadata": {"name": name, "annotations": {"a/b": "x"}},
                "status": {"observedGeneration": generation, "conditions": [{"type": "A"}, {"type": "B"}]},
            })
        };
        let phases = BTreeMap::from([("Execution one".to_owned(), vec!["Init".to_owned()])]);
        let dumps = BTreeMap::from([("final".to_owned(), vec![object("one", 0), object("two", 2)])]);
        Recording { case: "case".to_owned(), namespace: "n".to_owned(), steps: Vec::new(), dumps, phases }
    }

    /// How often an exception is used, and what is expected then.
    fn applied(text: Value) -> (usize, Vec<Value>) {
        let mut recording = recording();
        let used = exception(text).apply(&mut recording);
        (used, recording.dumps["final"].clone())
    }

    #[test]
    fn a_field_is_changed_where_it_is_as_recorded() {
        let change = |object: Value| json!({"cases": ["case"], "object": object, "reason": "because"});
        let of = "Execution *";
        let field = "/status/observedGeneration";
        let (used, objects) = applied(change(json!({"of": of, "field": field, "recorded": 0, "ours": 1})));
        assert_eq!((used, &objects[0]["status"]["observedGeneration"]), (1, &json!(1)));
        assert_eq!(objects[1], recording().dumps["final"][1]);
        assert_eq!(applied(change(json!({"of": of, "field": field, "recorded": 1, "ours": 2}))).0, 0);
        assert_eq!(applied(change(json!({"of": of, "field": field, "recorded": null, "ours": 2}))).0, 0);
        assert_eq!(applied(change(json!({"of": "Execution t*", "field": field}))).0, 1);
        let only = json!({"/metadata/name": "two"});
        assert_eq!(applied(change(json!({"of": of, "where": only, "field": field, "ours": 3}))).0, 1);
        let (used, objects) = applied(change(json!({"of": of, "field": "/metadata/annotations/a~1b"})));
        assert_eq!((used, &objects[1]["metadata"]["annotations"]), (2, &json!({})));
        let (used, objects) = applied(change(json!({"of": of, "field": "/status/conditions/*/type", "ours": "C"})));
        assert_eq!((used, &objects[0]["status"]["conditions"][1]), (4, &json!({"type": "C"})));
    }

    #[test]
    fn what_is_expected_may_be_made_of_the_object() {
        let change = |object: Value| json!({"cases": ["case"], "object": object, "reason": "because"});
        let value = "<value of /status/conditions/1/type> of <value of /metadata/name>";
        let field = "/metadata/labels/new";
        let new = json!({"of": "Execution *", "field": field, "recorded": null, "ours": value});
        let (used, objects) = applied(change(new.clone()));
        assert_eq!((used, &objects[1]["metadata"]["labels"]), (2, &json!({"new": "B of two"})));
        let whole =
            json!({"of": "Execution two", "field": "/status/observedGeneration", "ours": ["<value of /status>"]});
        assert_eq!(
            applied(change(whole)).1[1]["status"]["observedGeneration"],
            json!([recording().dumps["final"][1]["status"]])
        );
        for (beside, used) in [("Execution two", 2), ("Execution three", 0)] {
            let mut new = new.clone();
            new["beside"] = json!(beside);
            assert_eq!(applied(change(new)).0, used);
        }
        for (value, used) in [(json!("<any>"), 2), (json!(null), 0), (json!("one"), 1)] {
            let mut new = new.clone();
            new["where"] = json!({"/metadata/name": value});
            assert_eq!(applied(change(new)).0, used);
        }
    }

    #[test]
    fn what_changes_nothing_is_not_used() {
        let change = |object: Value| json!({"cases": ["case"], "object": object, "reason": "because"});
        let same = json!({"of": "Execution one", "field": "/status/observedGeneration", "ours": 0});
        assert_eq!(applied(change(same)), (0, recording().dumps["final"].clone()));
        let phases =
            json!({"cases": ["case"], "phases": {"of": "Execution one", "ours": ["Init"]}, "reason": "because"});
        assert_eq!(applied(phases).0, 0);
    }

    #[test]
    fn a_case_waits_where_the_recorder_did() {
        let object = json!({"kind": "ConfigMap", "name": "c"});
        let text =
            |file: &str| json!({"cases": ["case"], "waits": {"before": file, "object": object}, "reason": "because"});
        let mut recording = recording();
        recording.steps = ["a", "b"].map(|file| Step::Apply(file.to_owned())).to_vec();
        assert_eq!(exception(text("c")).apply(&mut recording), 0);
        assert_eq!(exception(text("b")).apply(&mut recording), 1);
        let there = Step::WaitThere(Named { kind: "ConfigMap".to_owned(), name: "c".to_owned() });
        assert_eq!(recording.steps, [Step::Apply("a".to_owned()), there, Step::Apply("b".to_owned())]);
    }

    #[test]
    fn objects_are_added_and_taken_away() {
        let change = |object: Value| json!({"cases": ["*"], "object": object, "reason": "because"});
        assert_eq!(applied(change(json!({"of": "Execution *e"}))), (1, vec![recording().dumps["final"][1].clone()]));
        let more = json!({"kind": "Secret", "metadata": {"name": "s"}});
        let (used, objects) = applied(change(json!({"of": "Secret s", "recorded": null, "ours": more})));
        assert_eq!((used, &objects[2]), (1, &more));
        let mut elsewhere = change(json!({"of": "Execution *"}));
        elsewhere["dumps"] = json!(["other"]);
        assert_eq!(applied(elsewhere).0, 0);
    }

    #[test]
    fn phases_are_replaced() {
        let mut recording = recording();
        let text = json!({"cases": ["*"], "phases": {"of": "Execution one", "ours": ["Failed"]}, "reason": "because"});
        assert_eq!(exception(text).apply(&mut recording), 1);
        assert_eq!(recording.phases["Execution one"], ["Failed"]);
        let text = json!({"of": "Execution *", "recorded": "Failed", "ours": "Gone"});
        let text = json!({"cases": ["*"], "phases": text, "reason": "because"});
        assert_eq!(exception(text).apply(&mut recording), 1);
        assert_eq!(recording.phases["Execution one"], ["Gone"]);
    }
}
