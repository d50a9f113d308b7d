//! The objects that a script of Installations is played over.

use std::collections::BTreeMap;

use orangery_blueprint::{
    binding::{DataExport, DataImport, ExportBindings, ImportBindings},
    import::{self, DataValue, ImportError, Imported, Sources, TargetObject},
    record::{RecordWriter, UndecryptableData},
    sibling::{Sibling, predecessors, successors},
};
use orangery_core::{
    automatic::AutomaticRecord,
    condition::Condition,
    error::Failure,
    job::JobIds,
    name::{JobId, Kind, Namespace},
    phase::{Phase as _, execution::Execution as ExecutionPhase, installation::Installation as Phase},
    plan::installation::{ChildState, Existing, RelatedObject},
};
use serde_json::{Value, json};

use super::object_in;

/// What a blueprint says of a sub-installation, and a manifest of a root.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Template {
    pub(super) name: String,
    imports: Vec<String>,
    exports: Vec<String>,
    /// Whether there is an Execution.
    pub(super) deploys: bool,
    /// `reconcilePolicy`
    pub(super) on_change: bool,
    pub(super) on_spec_change: bool,
    /// `importPolicy: Wait`
    pub(super) waits: bool,
}

impl Template {
    pub(super) fn of(name: &str, fields: &[&str]) -> Self {
        let mut template = Self { name: name.to_owned(), ..Self::default() };
        let list = |names: &str| names.split(',').map(str::to_owned).collect();
        let mut rest = fields;
        loop {
            rest = match rest {
                [] => return template,
                ["imports", names, rest @ ..] => {
                    template.imports = list(names);
                    rest
                }
                ["exports", names, rest @ ..] => {
                    template.exports = list(names);
                    rest
                }
                ["deploys", rest @ ..] => {
                    template.deploys = true;
                    rest
                }
                ["policy", "OnChange", rest @ ..] => {
                    (template.on_change, template.on_spec_change) = (true, true);
                    rest
                }
                ["policy", "OnSpecChange", rest @ ..] => {
                    template.on_spec_change = true;
                    rest
                }
                ["waits", rest @ ..] => {
                    template.waits = true;
                    rest
                }
                other => unreachable!("an installation has no {other:?}"),
            };
        }
    }

    fn imports(&self) -> ImportBindings {
        let import = |key: &String| DataImport {
            name: key.clone(),
            data_ref: key.clone(),
            secret_ref: None,
            config_map_ref: None,
        };
        ImportBindings { data: self.imports.iter().map(import).collect(), targets: Vec::new() }
    }

    fn exports(&self) -> ExportBindings {
        let export = |key: &String| DataExport { name: key.clone(), data_ref: key.clone() };
        ExportBindings { data: self.exports.iter().map(export).collect(), targets: Vec::new() }
    }
}

/// When jobs start by themselves: how often after failures, and the intervals.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Automatic {
    pub(super) failed: Option<(u32, String)>,
    pub(super) succeeded: Option<String>,
}

/// An Installation.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Installation {
    pub(super) name: String,
    pub(super) parent: Option<String>,
    pub(super) fields: Template,
    pub(super) generation: i64,
    /// The generation at the end of the last job.
    pub(super) observed: i64,
    /// Generation and hash of the imports when `Init` read them.
    pub(super) at_init: (i64, String),
    /// The hash of the imports that the last job is marked with.
    pub(super) marked: String,
    pub(super) ids: JobIds,
    pub(super) phase: Option<Phase>,
    pub(super) failure: Option<Failure>,
    pub(super) conditions: Vec<Condition>,
    /// The children that the job made.
    pub(super) made: Vec<String>,
    pub(super) requested: bool,
    pub(super) interrupt: bool,
    /// The job that was interrupted.
    pub(super) interrupted: Option<JobId>,
    pub(super) deleting: bool,
    pub(super) ignores_successors: bool,
    pub(super) automatic: Automatic,
    pub(super) record: Option<AutomaticRecord>,
}

impl Installation {
    /// Whether its policy asks for a job because its spec has changed.
    pub(super) fn asks_for_its_change(&self) -> bool {
        self.fields.on_spec_change && self.generation != self.observed
    }

    /// Hands it a job: the phase stays until the job rests.
    pub(super) fn trigger(&mut self, job: &JobId) {
        hand_down(&mut self.ids, job);
    }
}

/// An Execution, as far as its Installation sees it.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Leaf {
    ids: JobIds,
    phase: Option<ExecutionPhase>,
    failure: Option<Failure>,
    pub(super) deleting: bool,
}

impl Leaf {
    /// Passes a job to it where it wants it; whether it does.
    pub(super) fn trigger(&mut self, job: &JobId, deletes: bool) -> bool {
        let first = if deletes { ExecutionPhase::INIT_DELETE } else { ExecutionPhase::INIT };
        let wants = self.ids.wants(job, self.phase, first);
        if wants {
            hand_down(&mut self.ids, job);
        }
        wants
    }
}

/// The write that hands a job down. What has ended this very job before it was deleted gets it once more.
fn hand_down(ids: &mut JobIds, job: &JobId) {
    let finished = ids.finished.take().filter(|finished| *finished != *job);
    *ids = JobIds { job: Some(job.clone()), finished };
}

/// All objects of a script.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Tree {
    pub(super) installations: BTreeMap<String, Installation>,
    /// The Executions, by the Installation that they belong to.
    pub(super) executions: BTreeMap<String, Leaf>,
    /// The templates of blueprints, by the Installation that has the blueprint.
    pub(super) templates: BTreeMap<String, Vec<Template>>,
    /// DataObjects by name.
    pub(super) data: BTreeMap<String, DataValue>,
}

impl Tree {
    pub(super) fn add(&mut self, name: &str, parent: Option<&str>, template: &Template) {
        let installation = Installation {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            fields: template.clone(),
            generation: 1,
            ..Installation::default()
        };
        let before = self.installations.insert(name.to_owned(), installation);
        assert!(before.is_none(), "{name} is there already");
    }

    /// Takes an Installation away, with the objects that it owns.
    pub(super) fn remove(&mut self, name: &str) {
        drop(self.installations.remove(name).expect("an installation of this name"));
        self.data.retain(|_, data| data.owner.as_deref() != Some(name));
    }

    pub(super) fn get(&self, name: &str) -> &Installation {
        self.installations.get(name).expect("an installation of this name")
    }

    pub(super) fn get_mut(&mut self, name: &str) -> &mut Installation {
        self.installations.get_mut(name).expect("an installation of this name")
    }

    /// What becomes of the Execution of an Installation.
    pub(super) fn execution(&mut self, name: &str, words: &[&str]) {
        let execution = self.executions.get_mut(name).expect("an Execution of this name");
        match words {
            ["gone" | "lost"] => drop(self.executions.remove(name)),
            ["ok"] => {
                assert!(execution.ids.running().is_some(), "the Execution of {name} has no job");
                execution.ids.finished = execution.ids.job.clone();
                (execution.phase, execution.failure) = (Some(ExecutionPhase::Succeeded), None);
            }
            ["failed", message @ ..] => {
                assert!(execution.ids.running().is_some(), "the Execution of {name} has no job");
                execution.ids.finished = execution.ids.job.clone();
                let failed = if execution.deleting { ExecutionPhase::DeleteFailed } else { ExecutionPhase::Failed };
                let failure = Failure::new("Progressing", "DeployItemsFailed", message.join(" "));
                (execution.phase, execution.failure) = (Some(failed), Some(failure));
            }
            other => unreachable!("nothing becomes {other:?}"),
        }
    }

    /// The sub-installations of an Installation, sorted.
    pub(super) fn children(&self, name: &str) -> Vec<String> {
        let children = self.installations.values().filter(|of| of.parent.as_deref() == Some(name));
        children.map(|child| child.name.clone()).collect()
    }

    /// The sub-installations as the plan compares them with the templates.
    pub(super) fn existing(&self, name: &str) -> Vec<Existing> {
        let children = self.installations.values().filter(|of| of.parent.as_deref() == Some(name));
        let existing = children.map(|child| Existing {
            object: child.name.clone(),
            template: Some(child.fields.name.clone()),
            deleting: child.deleting,
        });
        existing.collect()
    }

    pub(super) fn related_object(&self, name: &str) -> RelatedObject {
        let of = self.get(name);
        RelatedObject {
            kind: Kind::from_static("Installation"),
            name: name.to_owned(),
            ids: of.ids.clone(),
            standing: ChildState::of(of.phase),
            failure: of.failure.clone(),
            requested: of.requested || of.asks_for_its_change(),
            deleting: of.deleting,
        }
    }

    /// All subobjects.
    pub(super) fn related(&self, name: &str) -> Vec<RelatedObject> {
        let execution = self.executions.get(name).map(|execution| RelatedObject {
            kind: Kind::from_static("Execution"),
            name: name.to_owned(),
            ids: execution.ids.clone(),
            standing: ChildState::of(execution.phase),
            failure: execution.failure.clone(),
            requested: false,
            deleting: execution.deleting,
        });
        self.children(name).iter().map(|child| self.related_object(child)).chain(execution).collect()
    }

    /// The subobjects that the job made and that are there no more.
    pub(super) fn missing(&self, name: &str) -> Vec<String> {
        let of = self.get(name);
        let lost = of.made.iter().filter(|child| !self.installations.contains_key(*child));
        let execution = of.fields.deploys && !self.executions.contains_key(name);
        lost.map(|child| format!("installation {child}"))
            .chain(execution.then(|| format!("execution {name}")))
            .collect()
    }

    /// The siblings of an Installation, itself included, with what they import and export.
    fn siblings(&self, of: &Installation) -> Vec<(&str, ImportBindings, ExportBindings)> {
        let siblings = self.installations.values().filter(|other| other.parent == of.parent);
        siblings.map(|other| (other.name.as_str(), other.fields.imports(), other.fields.exports())).collect()
    }

    /// The names of the siblings that it imports from.
    pub(super) fn exporters(&self, of: &Installation) -> Vec<String> {
        let siblings = self.siblings(of);
        let all: Vec<Sibling<'_>> =
            siblings.iter().map(|(name, imports, exports)| Sibling { name, imports, exports }).collect();
        let (imports, exports) = (of.fields.imports(), of.fields.exports());
        let own = Sibling { name: &of.name, imports: &imports, exports: &exports };
        predecessors(own, &all).into_iter().map(str::to_owned).collect()
    }

    /// The names of the siblings that import from it.
    pub(super) fn importers(&self, of: &Installation) -> Vec<String> {
        let siblings = self.siblings(of);
        let all: Vec<Sibling<'_>> =
            siblings.iter().map(|(name, imports, exports)| Sibling { name, imports, exports }).collect();
        let (imports, exports) = (of.fields.imports(), of.fields.exports());
        let own = Sibling { name: &of.name, imports: &imports, exports: &exports };
        successors(own, &all).into_iter().map(str::to_owned).collect()
    }

    pub(super) fn predecessors(&self, of: &Installation) -> Vec<RelatedObject> {
        self.exporters(of).iter().map(|name| self.related_object(name)).collect()
    }

    /// The imports of an Installation, as they are now.
    pub(super) fn imported(&self, of: &Installation) -> Result<BTreeMap<String, Imported>, ImportError> {
        let job = of.ids.job.clone().unwrap_or_default();
        let scope = RecordWriter {
            namespace: &Namespace::from_static("default"),
            installation: &of.name,
            parent: of.parent.as_deref(),
            job: &job,
        };
        import::read(&of.fields.imports(), &scope, self)
    }

    /// The hash that a job of a root under `OnChange` is marked with.
    pub(super) fn mark(&self, name: &str) -> String {
        let of = self.get(name);
        let imported = self.imported(of).ok().filter(|_| of.fields.on_change);
        imported.map(|imported| import::content_hash(&imported)).unwrap_or_default()
    }

    /// A DataObject of this name.
    pub(super) fn put(&mut self, name: &str, value: &str, owner: Option<&str>) {
        let data = DataValue { value: json!(value), owner: owner.map(str::to_owned), ..DataValue::default() };
        self.data.insert(name.to_owned(), data);
    }

    /// What a job imports, where its sub-installations find it.
    pub(super) fn keep_imports(&mut self, name: &str, imported: &BTreeMap<String, Imported>) {
        for (key, import) in imported {
            let data = DataValue { value: import.value(), owner: Some(name.to_owned()), ..DataValue::default() };
            self.data.insert(object_in(Some(name), key), data);
        }
    }

    /// The exports of the job before, which `Init` deletes.
    pub(super) fn delete_exports(&mut self, name: &str) {
        let of = self.get(name).clone();
        for key in &of.fields.exports {
            drop(self.data.remove(&object_in(of.parent.as_deref(), key)));
        }
    }

    /// Writes the exports: what a child exports under the same key, or else what follows from the imports.
    pub(super) fn export(&mut self, name: &str) -> Vec<(String, String)> {
        let of = self.get(name).clone();
        let imports = self.imported(&of).map(|imported| import::values(&imported)).unwrap_or_default();
        let imports: Vec<String> = imports.values().map(|value| text(value).to_owned()).collect();
        let mut exports = Vec::new();
        for key in &of.fields.exports {
            let of_child = self.data.get(&object_in(Some(name), key)).map(|data| text(&data.value).to_owned());
            let value = of_child.unwrap_or_else(|| format!("{key}({})", imports.join(",")));
            self.put(&object_in(of.parent.as_deref(), key), &value, Some(name));
            exports.push((key.clone(), value));
        }
        exports
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Sources for Tree {
    fn data_object(&self, name: &str) -> Result<Option<DataValue>, UndecryptableData> {
        Ok(self.data.get(name).cloned())
    }

    fn target(&self, _: &str) -> Option<TargetObject> {
        None
    }

    fn kept_targets<'a>(&'a self, _: &'a str, _: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a> {
        Box::new(std::iter::empty())
    }

    fn secret(&self, _: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        None
    }

    fn config_map(&self, _: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        None
    }

    fn installation_exists(&self, name: &str) -> bool {
        self.installations.contains_key(name)
    }
}
