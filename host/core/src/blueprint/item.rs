//! Deploy items as templates render them (`landscaper.md` §4.3).

use std::collections::BTreeMap;

use orangery_expression::Type;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    dag::{Dag, DagError},
    duration::{self, InvalidDuration},
    import::{Imported, TargetObject},
    lenient::{self, DecodeError},
    workflow::condition::{self, Condition, Conditions, Point, Surroundings},
};

/// One rendered deploy item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemTemplate {
    /// Unique in the installation.
    pub name: String,
    /// The deployer type.
    pub type_: String,
    /// The provider configuration.
    pub config: Value,
    /// Labels of the DeployItem.
    pub labels: BTreeMap<String, String>,
    /// The names of the items to finish before.
    pub depends_on: Vec<String>,
    /// In Go's notation, checked.
    pub timeout: Option<String>,
    /// Nothing is done for an unchanged item that succeeded.
    pub update_on_change_only: bool,
    /// Nothing is uninstalled where the target cluster is removed ([`crate::plan::removed`]).
    pub skip_uninstall_if_cluster_removed: bool,
    /// Whether what it deployed stays when it is deleted (WF-27).
    pub keep: bool,
    /// Where to deploy.
    pub target: Option<TargetChoice>,
    /// Whether it takes part, is wanted, is ready and is gone (WF-02 … WF-05).
    pub conditions: Conditions<TargetChoice>,
}

/// How an item names its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// A Target object of the namespace, used as it is.
    Name(String),
    /// A target import.
    Import(String),
    /// An element of a target list import.
    Element(String, i64),
    /// An entry of a target map import.
    Entry(String, String),
}

/// Why rendered items cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// Not the form of a list of items.
    #[error("the rendered deploy items have a wrong form: {0}")]
    Form(DecodeError),
    /// A field that must be set is not.
    #[error("deploy item {name:?} (number {number}) has no {field}; set it")]
    Missing {
        /// Its name.
        name: String,
        /// Its place in the list, from 1.
        number: usize,
        /// The field.
        field: &'static str,
    },
    /// The timeout cannot be read.
    #[error("deploy item {name:?}: timeout {source}")]
    Timeout {
        /// Its name.
        name: String,
        /// Why.
        source: InvalidDuration,
    },
    /// The order of the items is not sound.
    #[error("deploy items: {0}")]
    Order(DagError),
    /// A condition cannot be asked.
    #[error("deploy item {name:?}: {point}: {why}")]
    Condition {
        /// Its name.
        name: String,
        /// Which one.
        point: Point,
        /// What is wrong with it.
        why: String,
    },
    /// `target` says nothing.
    #[error("deploy item {name:?}: `target` is empty; set target.import or target.name, or leave target out")]
    EmptyTarget {
        /// Its name.
        name: String,
    },
    /// No such import, or of another kind.
    #[error("deploy item {name:?}: there is no {kind} import {import:?}; known are: {known}")]
    UnknownImport {
        /// Its name.
        name: String,
        /// `target`, `target list`, `target map`.
        kind: &'static str,
        /// The import.
        import: String,
        /// The imports of that kind.
        known: String,
    },
    /// No such element.
    #[error(
        "deploy item {name:?}: index {index} is out of bounds; the target list {import:?} has {length} elements, counted from 0"
    )]
    Index {
        /// Its name.
        name: String,
        /// The import.
        import: String,
        /// The index.
        index: i64,
        /// How many elements there are.
        length: usize,
    },
    /// No such entry.
    #[error("deploy item {name:?}: the target map {import:?} has no key {key:?}; its keys are: {known}")]
    Key {
        /// Its name.
        name: String,
        /// The import.
        import: String,
        /// The key.
        key: String,
        /// The keys there are.
        known: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Form {
    deploy_items: Vec<ItemForm>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ItemForm {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    config: Value,
    labels: BTreeMap<String, String>,
    depends_on: Vec<String>,
    timeout: Option<String>,
    update_on_change_only: bool,
    on_delete: OnDeleteForm,
    target: Option<TargetForm>,
    activate_when: Option<Value>,
    when: Option<Value>,
    ready_when: Option<Value>,
    deleted_when: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OnDeleteForm {
    skip_uninstall_if_cluster_removed: bool,
    keep: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TargetForm {
    name: String,
    import: String,
    index: Option<i64>,
    key: Option<String>,
}

/// The items of one deploy execution.
pub fn decode_items(output: &Value) -> Result<Vec<ItemTemplate>, ItemError> {
    let form: Form = lenient::decode(output).map_err(ItemError::Form)?;
    form.deploy_items.into_iter().enumerate().map(|(index, form)| item(form, index + 1)).collect()
}

fn item(form: ItemForm, number: usize) -> Result<ItemTemplate, ItemError> {
    let missing = |field| Err(ItemError::Missing { name: form.name.clone(), number, field });
    if form.name.is_empty() {
        return missing("name");
    }
    if form.type_.is_empty() {
        return missing("type");
    }
    if form.config.is_null() {
        return missing("config");
    }
    if let Some(timeout) = &form.timeout {
        duration::limit(timeout).map_err(|source| ItemError::Timeout { name: form.name.clone(), source })?;
    }
    let target = match form.target {
        None => None,
        Some(target) => Some(choice(target, &form.name)?),
    };
    let written = [
        (Point::Activate, form.activate_when),
        (Point::When, form.when),
        (Point::Ready, form.ready_when),
        (Point::Deleted, form.deleted_when),
    ];
    let mut conditions = Vec::new();
    for (point, written) in written {
        conditions.push((point, written.map(|written| condition(&written, &form.name, point)).transpose()?));
    }
    Ok(ItemTemplate {
        name: form.name,
        type_: form.type_,
        config: form.config,
        labels: form.labels,
        depends_on: form.depends_on,
        timeout: form.timeout,
        update_on_change_only: form.update_on_change_only,
        skip_uninstall_if_cluster_removed: form.on_delete.skip_uninstall_if_cluster_removed,
        keep: form.on_delete.keep,
        target,
        conditions: Conditions::of(conditions),
    })
}

fn choice(form: TargetForm, name: &str) -> Result<TargetChoice, ItemError> {
    match form {
        // The index wins over the key, the import over the name.
        TargetForm { import, index: Some(index), .. } => Ok(TargetChoice::Element(import, index)),
        TargetForm { import, key: Some(key), .. } => Ok(TargetChoice::Entry(import, key)),
        TargetForm { import, .. } if !import.is_empty() => Ok(TargetChoice::Import(import)),
        TargetForm { name, .. } if !name.is_empty() => Ok(TargetChoice::Name(name)),
        TargetForm { .. } => Err(ItemError::EmptyTarget { name: name.to_owned() }),
    }
}

/// A condition as templates write it; a text is an expression.
fn condition(written: &Value, name: &str, point: Point) -> Result<Condition<TargetChoice>, ItemError> {
    if let Value::String(source) = written {
        return Ok(Condition::expression(source));
    }
    let form: Condition<TargetForm> = lenient::decode(written).map_err(|error| ItemError::Condition {
        name: name.to_owned(),
        point,
        why: format!("it has a wrong form: {error}"),
    })?;
    form.try_map(|target| choice(target, name))
}

/// What is wrong with a condition as templates write it, if anything is: one sentence that names item and field.
pub fn check_condition(written: &Value, name: &str, point: Point, around: &Surroundings<'_>) -> Result<(), String> {
    let told = |why| ItemError::Condition { name: name.to_owned(), point, why }.to_string();
    let condition = condition(written, name, point).map_err(|error| error.to_string())?;
    condition::check(&condition, point, around).map_err(told)
}

/// The rules over all items of an installation: unique names, known dependencies, no circle (EXE-30 guards what slips
/// through), conditions that can be asked. `imports` are those of the blueprint, with their types.
pub fn check_items(items: &[ItemTemplate], imports: &BTreeMap<String, Type>) -> Result<(), ItemError> {
    let edges = items.iter().map(|item| {
        let before = item.depends_on.iter().map(String::as_str).collect();
        (item.name.as_str(), before)
    });
    let dag = Dag::new(edges).map_err(ItemError::Order)?;
    for item in items.iter().filter(|item| !item.conditions.is_empty()) {
        let around = Surroundings { imports: imports.clone(), open: false, predecessors: dag.all_before(&item.name) };
        condition::check_all(&item.conditions, &around).map_err(|(point, why)| ItemError::Condition {
            name: item.name.clone(),
            point,
            why,
        })?;
    }
    Ok(())
}

impl ItemTemplate {
    /// The name of the Target object it deploys to. An import means the imported object itself, not the copy that the
    /// installation keeps.
    pub fn resolve_target(&self, imports: &BTreeMap<String, Imported>) -> Result<Option<String>, ItemError> {
        self.target.as_ref().map(|choice| self.resolve(choice, imports)).transpose()
    }

    /// Its conditions, with the Target objects that they look at.
    pub fn resolve_conditions(&self, imports: &BTreeMap<String, Imported>) -> Result<Conditions, ItemError> {
        self.conditions.clone().try_map(|choice| self.resolve(&choice, imports))
    }

    /// The name of the Target object that a choice means.
    fn resolve(&self, choice: &TargetChoice, imports: &BTreeMap<String, Imported>) -> Result<String, ItemError> {
        let name = || self.name.clone();
        let unknown = |kind: &'static str, import: &str, same: fn(&Imported) -> bool| {
            let known: Vec<&str> =
                imports.iter().filter(|(_, import)| same(import)).map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ItemError::UnknownImport { name: name(), kind, import: import.to_owned(), known }
        };
        let object = |target: &TargetObject| Ok(target.name.clone());
        match choice {
            TargetChoice::Name(name) => Ok(name.clone()),
            TargetChoice::Import(import) => match imports.get(import) {
                Some(Imported::Target(target)) => object(target),
                Some(Imported::Data(_) | Imported::TargetList(_) | Imported::TargetMap(_)) | None => {
                    Err(unknown("target", import, |import| matches!(import, Imported::Target(_))))
                }
            },
            TargetChoice::Element(import, index) => match imports.get(import) {
                Some(Imported::TargetList(targets)) => {
                    match usize::try_from(*index).ok().and_then(|index| targets.get(index)) {
                        Some(target) => object(target),
                        None => {
                            let (import, length) = (import.clone(), targets.len());
                            Err(ItemError::Index { name: name(), import, index: *index, length })
                        }
                    }
                }
                Some(Imported::Data(_) | Imported::Target(_) | Imported::TargetMap(_)) | None => {
                    Err(unknown("target list", import, |import| matches!(import, Imported::TargetList(_))))
                }
            },
            TargetChoice::Entry(import, key) => match imports.get(import) {
                Some(Imported::TargetMap(targets)) => match targets.get(key) {
                    Some(target) => object(target),
                    None => {
                        let known: Vec<&str> = targets.keys().map(String::as_str).collect();
                        let (import, known) = (import.clone(), known.join(", "));
                        Err(ItemError::Key { name: name(), import, key: key.clone(), known })
                    }
                },
                Some(Imported::Data(_) | Imported::Target(_) | Imported::TargetList(_)) | None => {
                    Err(unknown("target map", import, |import| matches!(import, Imported::TargetMap(_))))
                }
            },
        }
    }
}
