//! The inputs of a root, leaf by leaf, and other values for them.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use orangery_blueprint::import::Imported;
use orangery_cli::{
    command::explain::{ExplainedInput, InputKind},
    offline::Given,
};
use orangery_proposal::field::{FieldStep, fields, put};
use serde_json::{Value, json};

use super::item::ExplainedSource;
use crate::plan::tree::message;

/// The most leaves of inputs that are looked at (C-244).
pub(super) const MOST_INPUTS: usize = 5_000;

/// The parts of a Target that a rendering depends on beside its name: what only servers write is left out.
const TARGET_PARTS: [&str; 2] = ["/metadata", "/spec"];

/// The inputs of a root.
pub(super) struct RootInputs {
    /// Its imports, as they are there.
    imports: BTreeMap<String, Imported>,
    /// What its deploy items, and those below it, have exported.
    given: Given,
    leaves: Vec<InputLeaf>,
    /// Of how many leaves there are more.
    pub(super) left_out: usize,
}

/// One value without parts.
struct InputLeaf {
    input: ExplainedInput,
    place: InputPlace,
    steps: Vec<FieldStep>,
    others: Vec<Value>,
}

/// Where a leaf stands.
#[derive(Clone)]
enum InputPlace {
    Data(String),
    Target(String),
    TargetOfList(String, usize),
    TargetOfMap(String, String),
    /// The names of the sub-installations down to the deploy item, and its name.
    Export(Vec<String>, String),
}

impl RootInputs {
    /// None of an item that stands for itself.
    ///
    /// # Errors
    /// An import cannot be read.
    pub(super) fn of(source: &ExplainedSource<'_>) -> Result<Self, String> {
        let Some(root) = source.root() else {
            let (imports, given) = (BTreeMap::new(), Given::default());
            return Ok(Self { imports, given, leaves: Vec::new(), left_out: 0 });
        };
        let given = source.live.given(&root.name_any());
        let offline = source.offline(source.host.plugins.as_ref(), BTreeMap::new());
        let imports = offline.imports_of(&source.subject(root, given.clone())).map_err(|error| message(&error))?;
        Ok(Self::new(imports, given))
    }

    fn new(imports: BTreeMap<String, Imported>, given: Given) -> Self {
        let mut leaves = Vec::new();
        for (name, imported) in &imports {
            let mut add = |kind, place, value: &Value| add_leaves(&mut leaves, (kind, name, place), value);
            match imported {
                Imported::Data(data) => add(InputKind::Import, InputPlace::Data(name.clone()), &data.value),
                Imported::Target(target) => {
                    add(InputKind::Target, InputPlace::Target(name.clone()), &target.object);
                }
                Imported::TargetList(targets) => {
                    for (number, target) in targets.iter().enumerate() {
                        add(InputKind::Target, InputPlace::TargetOfList(name.clone(), number), &target.object);
                    }
                }
                Imported::TargetMap(targets) => {
                    for (key, target) in targets {
                        add(InputKind::Target, InputPlace::TargetOfMap(name.clone(), key.clone()), &target.object);
                    }
                }
            }
        }
        exports(&given, &mut Vec::new(), &mut leaves);
        let left_out = leaves.len().saturating_sub(MOST_INPUTS);
        leaves.truncate(MOST_INPUTS);
        Self { imports, given, leaves, left_out }
    }

    pub(super) fn count(&self) -> usize {
        self.leaves.len()
    }

    pub(super) fn input(&self, leaf: usize) -> Option<&ExplainedInput> {
        self.leaves.get(leaf).map(|leaf| &leaf.input)
    }

    /// How many other values there are for a leaf.
    pub(super) fn others(&self, leaf: usize) -> usize {
        self.leaves.get(leaf).map_or(0, |leaf| leaf.others.len())
    }

    /// The imports that are changed, and what is exported, with these leaves changed: each with the number of its other value.
    pub(super) fn changed(&self, changes: &[(usize, usize)]) -> (BTreeMap<String, Imported>, Given) {
        let (mut imports, mut given) = (BTreeMap::new(), self.given.clone());
        for (leaf, other) in changes {
            let Some(leaf) = self.leaves.get(*leaf) else { continue };
            let Some(other) = leaf.others.get(*other) else { continue };
            self.put(leaf, other, &mut imports, &mut given);
        }
        (imports, given)
    }

    fn put(&self, leaf: &InputLeaf, other: &Value, imports: &mut BTreeMap<String, Imported>, given: &mut Given) {
        let (place, steps) = (&leaf.place, &leaf.steps);
        let name = match place {
            InputPlace::Export(below, item) => {
                let Some(given) = below.iter().try_fold(given, |given, name| given.subinstallations.get_mut(name))
                else {
                    return;
                };
                if let Some(value) = given.deploy_items.as_mut().and_then(|items| items.get_mut(item)) {
                    put(value, steps, other.clone());
                }
                return;
            }
            InputPlace::Data(name)
            | InputPlace::Target(name)
            | InputPlace::TargetOfList(name, _)
            | InputPlace::TargetOfMap(name, _) => name,
        };
        let Some(imported) = self.imports.get(name) else { return };
        let imported = imports.entry(name.clone()).or_insert_with(|| imported.clone());
        let value = match (imported, place) {
            (Imported::Data(data), InputPlace::Data(_)) => Some(&mut data.value),
            (Imported::Target(target), InputPlace::Target(_)) => Some(&mut target.object),
            (Imported::TargetList(targets), InputPlace::TargetOfList(_, number)) => {
                targets.get_mut(*number).map(|target| &mut target.object)
            }
            (Imported::TargetMap(targets), InputPlace::TargetOfMap(_, key)) => {
                targets.get_mut(key).map(|target| &mut target.object)
            }
            _ => None,
        };
        if let Some(value) = value {
            put(value, steps, other.clone());
        }
    }
}

fn add_leaves(leaves: &mut Vec<InputLeaf>, (kind, name, place): (InputKind, &str, InputPlace), value: &Value) {
    let shown = match &place {
        InputPlace::TargetOfList(_, number) => format!("{name}[{number}]"),
        InputPlace::TargetOfMap(_, key) => format!("{name}.{key}"),
        InputPlace::Data(_) | InputPlace::Target(_) | InputPlace::Export(..) => name.to_owned(),
    };
    let plain = match kind {
        InputKind::Target => orangery_proposal::overlay::plain(value),
        InputKind::Import | InputKind::Export => value.clone(),
    };
    let is_told =
        |pointer: &str| kind != InputKind::Target || TARGET_PARTS.iter().any(|part| pointer.starts_with(part));
    for field in fields(&plain).0 {
        if !is_told(&field.pointer()) {
            continue;
        }
        let input = ExplainedInput { kind, name: shown.clone(), path: field.path.clone() };
        leaves.push(InputLeaf { input, place: place.clone(), steps: field.steps, others: others(&field.value) });
    }
}

/// What deploy items have exported, of those of sub-installations with the names down to them.
fn exports(given: &Given, below: &mut Vec<String>, leaves: &mut Vec<InputLeaf>) {
    for (item, value) in given.deploy_items.iter().flatten().filter(|(_, value)| !value.is_null()) {
        let name = below.iter().map(|name| format!("{name}/")).collect::<String>() + item;
        add_leaves(leaves, (InputKind::Export, &name, InputPlace::Export(below.clone(), item.clone())), value);
    }
    for (name, given) in &given.subinstallations {
        below.push(name.clone());
        exports(given, below, leaves);
        below.pop();
    }
}

/// Other values in the place of one, those first that are like it: what reads it may take not all of them.
pub(super) fn others(value: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for other in candidates(value) {
        if other != *value && !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

fn candidates(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!("x"), json!(1), json!(true)],
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => {
                vec![json!(number.saturating_add(1)), json!(number.saturating_sub(1)), json!(0), json!(1)]
            }
            (None, Some(number)) => vec![json!(number / 2.0), json!(number + 1.0)],
            (None, None) => vec![json!(1)],
        },
        Value::String(text) => texts(text).into_iter().map(Value::String).collect(),
        Value::Array(_) => vec![json!(["x"]), json!([1]), json!([{}])],
        Value::Object(_) => vec![json!({"x": "x"}), json!({"x": 1})],
    }
}

fn texts(text: &str) -> Vec<String> {
    let as_value = match text {
        "true" => Some("false".to_owned()),
        "false" => Some("true".to_owned()),
        _ => text.parse::<i64>().ok().map(|number| number.saturating_add(1).to_string()),
    };
    let mut all: Vec<String> = as_value.into_iter().collect();
    all.push(format!("{text}x"));
    all.extend(next_of(text));
    all.extend([format!("x{text}"), String::new()]);
    all
}

/// The text with another last letter or digit.
fn next_of(text: &str) -> Option<String> {
    let (at, last) = text.char_indices().rev().find(|(_, last)| last.is_ascii_alphanumeric())?;
    let next = match last {
        '9' => '8',
        'z' => 'y',
        'Z' => 'Y',
        other => char::from(u8::try_from(other).ok()?.checked_add(1)?),
    };
    let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
    Some(format!("{before}{next}{after}"))
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::import::{DataValue, TargetObject};

    use super::*;

    fn inputs() -> RootInputs {
        let data = |value: Value| Imported::Data(DataValue { value, ..DataValue::default() });
        let target = |name: &str| TargetObject {
            object: json!({"kind": "Target", "metadata": {"name": name, "uid": "u"}, "spec": {"type": "t"}, "status": {"a": 1}}),
            ..TargetObject::default()
        };
        let imports = BTreeMap::from([
            ("data".to_owned(), data(json!({"a": ["x", 1], "b": true}))),
            ("list".to_owned(), Imported::TargetList(vec![target("one")])),
        ]);
        let exported = |value: Value| Some(serde_json::Map::from_iter([("item".to_owned(), value)]));
        let below = Given { deploy_items: exported(json!({"e": "y"})), ..Given::default() };
        let given = Given {
            deploy_items: exported(Value::Null),
            subinstallations: BTreeMap::from([("sub".to_owned(), below)]),
            ..Given::default()
        };
        RootInputs::new(imports, given)
    }

    #[test]
    fn c_243_inputs_are_the_leaves_of_imports_of_targets_and_of_what_was_exported() {
        let inputs = inputs();
        let shown: Vec<String> = (0..inputs.count())
            .filter_map(|leaf| inputs.input(leaf))
            .map(|ExplainedInput { kind, name, path }| format!("{kind:?} {name} {path}"))
            .collect();
        let expected = [
            "Import data a[0]",
            "Import data a[1]",
            "Import data b",
            "Target list[0] metadata.name",
            "Target list[0] spec.type",
            "Export sub/item e",
        ];
        assert_eq!(shown, expected);
        let (imports, given) = inputs.changed(&[(0, 0), (2, 0), (3, 0), (5, 0)]);
        assert_eq!(imports["data"].value(), json!({"a": ["xx", 1], "b": false}));
        assert_eq!(imports["list"].value()[0]["metadata"]["name"], "onex");
        assert_eq!(given.subinstallations["sub"].deploy_items.as_ref().unwrap()["item"], json!({"e": "yx"}));
        let (imports, given) = inputs.changed(&[(1, 0)]);
        assert_eq!((imports.len(), imports["data"].value()), (1, json!({"a": ["x", 2], "b": true})));
        assert_eq!(given.subinstallations["sub"].deploy_items.as_ref().unwrap()["item"], json!({"e": "y"}));
    }

    #[test]
    fn c_243_another_value_is_like_the_one_that_is_there() {
        assert_eq!(others(&json!("true")), [json!("false"), json!("truex"), json!("truf"), json!("xtrue"), json!("")]);
        assert_eq!(others(&json!("8080"))[0], "8081");
        assert_eq!(others(&json!("1.2.9")), [json!("1.2.9x"), json!("1.2.8"), json!("x1.2.9"), json!("")]);
        assert_eq!(others(&json!("")), [json!("x")]);
        assert_eq!(others(&json!(1)), [json!(2), json!(0)]);
        assert_eq!(others(&json!(0.5))[0], json!(0.25));
        assert_eq!((others(&json!(false)), others(&json!([]))[0].clone()), (vec![json!(true)], json!(["x"])));
    }

    #[test]
    fn c_244_limits_so_many_leaves_of_inputs_are_looked_at() {
        let value: Vec<usize> = (0..MOST_INPUTS + 3).collect();
        let data = Imported::Data(orangery_blueprint::import::DataValue { value: json!(value), ..Default::default() });
        let inputs = RootInputs::new(BTreeMap::from([("a".to_owned(), data)]), Given::default());
        assert_eq!((inputs.count(), inputs.left_out), (MOST_INPUTS, 3));
    }
}
