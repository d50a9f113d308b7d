//! What a job that is gone back to lets be written, and what cannot be as it was (C-360).

use std::collections::BTreeMap;

use clap::ValueEnum;
use orangery_api::{
    installation::{Installation, InstallationSpec},
    job_definition::{DefinedImport, JobDefinition},
};
use orangery_core::name::ObjectName;
use serde::Serialize;
use serde_json::{Value, json};

use crate::definitions::RecordedDefinition;

/// With which imports a job is gone back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ImportChoice {
    /// As they are on record: DataObjects that users have written are written back
    #[default]
    Recorded,
    /// As they are now
    Now,
}

/// What is to be written, and what cannot be as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restoration {
    /// Fields of the spec of the Installation that change.
    pub fields: Vec<String>,
    /// The data of DataObjects, by their names.
    pub data: BTreeMap<ObjectName, Value>,
    /// What cannot be as it was.
    pub not_restored: Vec<NotRestored>,
}

/// Something that is not as it was in the job that is gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRestored {
    /// What, such as `import password (Secret db, key password)`.
    pub what: String,
    /// Why, and what helps.
    pub why: String,
}

impl Restoration {
    /// Of an Installation as it is, and of what the spec of the job imports as it is now, as far as it can be read.
    pub fn of(
        recorded: &RecordedDefinition,
        installation: &Installation,
        now: &JobDefinition<'_>,
        imports: ImportChoice,
    ) -> Self {
        let then = &recorded.definition;
        let mut restoration = Self { fields: changed_fields(&installation.spec, &then.spec), ..Self::default() };
        for (name, import) in &then.imports {
            let current = now.imports.get(name);
            if current.is_some_and(|current| current.digest == import.digest) {
                continue;
            }
            match restored(import, current, imports) {
                Ok(data) => drop(restoration.data.insert(import.name.as_str().into(), data)),
                Err(why) => restoration.not_restored.push(NotRestored { what: title(name, import), why }),
            }
        }
        for changed in &recorded.components {
            let why = format!(
                "{} has deployed it then, and {} in its last job; components are as they are now: to go back with it as well, name the \
                 earlier one by its digest in its Plugin",
                changed.then, changed.last
            );
            restoration.not_restored.push(NotRestored { what: format!("deploy item {}", changed.item), why });
        }
        if names_component(&then.spec) {
            let why =
                "it is read from its registry as that has it now; what has the same name may have another content";
            restoration
                .not_restored
                .push(NotRestored { what: "the component version".to_owned(), why: why.to_owned() });
        }
        restoration
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.data.is_empty()
    }
}

fn title(name: &str, import: &DefinedImport<'_>) -> String {
    let key = if import.key.is_empty() { String::new() } else { format!(", key {}", import.key) };
    format!("import {name} ({} {}{key})", import.kind, import.name)
}

/// The data that is written back, or why none is. The import is another one than then.
fn restored(
    import: &DefinedImport<'_>,
    current: Option<&DefinedImport<'_>>,
    imports: ImportChoice,
) -> Result<Value, String> {
    let other = if current.is_some() { "it is another one than in that job" } else { "it is not there any more" };
    let exported_by = current.map(|current| current.exported_by.as_str()).filter(|by| !by.is_empty());
    let exported_by = exported_by.or(Some(import.exported_by.as_str()).filter(|by| !by.is_empty()));
    match (import.kind.as_str(), exported_by, import.kept()) {
        ("Target", _, _) => Err(format!("{other}, and Targets are taken as they are now, as their credentials change")),
        (_, Some(by), _) => {
            Err(format!("{other}, and the Installation {by} exports it: go back with that one as well"))
        }
        ("DataObject", None, Some(_)) if imports == ImportChoice::Now => {
            Err(format!("{other}, and stays so, as --imports now says"))
        }
        ("DataObject", None, Some(data)) => Ok(data),
        ("DataObject", None, None) => Err(format!("{other}, and values of Secrets are not kept: write it yourself")),
        _ => Err(format!("{other}, and others may use it as well: write it yourself")),
    }
}

/// Whether blueprint or templates come from a component version by its name.
fn names_component(spec: &InstallationSpec) -> bool {
    spec.component_descriptor.as_ref().is_some_and(|of| of.reference.is_some())
}

fn changed_fields(now: &InstallationSpec, then: &InstallationSpec) -> Vec<String> {
    let (now, then) = (json!(now), json!(then));
    let names = now.as_object().into_iter().chain(then.as_object()).flat_map(|fields| fields.keys());
    let mut changed: Vec<String> =
        names.filter(|name| now.get(name) != then.get(name)).map(|name| format!("spec.{name}")).collect();
    changed.sort();
    changed.dedup();
    changed
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use orangery_api::plan::PlanItem;

    use super::*;
    use crate::definitions::ChangedComponent;

    fn import(kind: &str, digest: &str, exported_by: &str, data: Option<Value>) -> DefinedImport<'static> {
        DefinedImport {
            kind: kind.into(),
            name: format!("a-{}", kind.to_lowercase()),
            exported_by: exported_by.to_owned(),
            digest: digest.to_owned(),
            is_kept: data.is_some(),
            data: data.map(Cow::Owned),
            ..DefinedImport::default()
        }
    }

    fn definition(spec: Value, imports: &[(&str, DefinedImport<'static>)]) -> JobDefinition<'static> {
        JobDefinition {
            installation: PlanItem { name: "web".to_owned(), uid: "u".to_owned() },
            spec: Cow::Owned(serde_json::from_value(spec).unwrap()),
            imports: imports.iter().map(|(name, import)| ((*name).to_owned(), import.clone())).collect(),
        }
    }

    fn installation(spec: Value) -> Installation {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "n"}, "spec": spec})).unwrap()
    }

    /// What is written, and why the rest is not, by the import.
    fn of(
        then: DefinedImport<'static>,
        now: Option<DefinedImport<'static>>,
        imports: ImportChoice,
    ) -> Result<Option<Value>, String> {
        let spec = json!({"blueprint": {}});
        let now: Vec<_> = now.into_iter().map(|now| ("i", now)).collect();
        let recorded = RecordedDefinition {
            job: "j".into(),
            definition: definition(spec.clone(), &[("i", then)]),
            components: Vec::new(),
        };
        let mut restoration = Restoration::of(&recorded, &installation(spec.clone()), &definition(spec, &now), imports);
        assert_eq!(restoration.fields, Vec::<String>::new());
        match restoration.not_restored.pop() {
            None => Ok(restoration.data.pop_first().map(|(_, data)| data)),
            Some(NotRestored { what, why }) => Err(format!("{what}: {why}")),
        }
    }

    #[test]
    fn c_360_data_that_users_have_written_is_written_back_and_of_all_else_it_is_said_why_not() {
        let data = |digest: &str| import("DataObject", digest, "", Some(json!(digest)));
        let (recorded, now) = (ImportChoice::Recorded, ImportChoice::Now);
        assert_eq!(of(data("1"), Some(data("1")), recorded), Ok(None));
        assert_eq!(of(data("1"), Some(data("2")), recorded), Ok(Some(json!("1"))));
        assert_eq!(of(data("1"), None, recorded), Ok(Some(json!("1"))));
        let says = |found: Result<Option<Value>, String>, words: &str| {
            let why = found.unwrap_err();
            assert!(why.ends_with(words), "{why}");
        };
        says(
            of(data("1"), Some(data("2")), now),
            "(DataObject a-dataobject): it is another one than in that job, and stays so, as --imports now says",
        );
        let theirs = |digest: &str| import("DataObject", digest, "other", None);
        says(
            of(theirs("1"), Some(theirs("2")), recorded),
            "the Installation other exports it: go back with that one as well",
        );
        says(
            of(data("1"), Some(theirs("2")), recorded),
            "the Installation other exports it: go back with that one as well",
        );
        says(of(theirs("1"), None, recorded), "the Installation other exports it: go back with that one as well");
        says(
            of(import("DataObject", "1", "", None), None, recorded),
            "values of Secrets are not kept: write it yourself",
        );
        for kind in ["Secret", "ConfigMap"] {
            let of = |now| of(import(kind, "1", "", None), now, recorded);
            says(
                of(Some(import(kind, "2", "", None))),
                "it is another one than in that job, and others may use it as well: write it yourself",
            );
            says(of(None), "it is not there any more, and others may use it as well: write it yourself");
        }
        let target = |digest: &str| import("Target", digest, "", None);
        says(
            of(target("1"), Some(target("2")), recorded),
            "and Targets are taken as they are now, as their credentials change",
        );
        assert_eq!(of(target("1"), Some(target("1")), recorded), Ok(None));
    }

    #[test]
    fn c_360_fields_of_the_spec_that_change_are_named_and_so_are_other_components() {
        let reference = json!({"ref": {"componentName": "example.org/c", "version": "1"}});
        let then =
            json!({"blueprint": {"ref": {"resourceName": "b"}}, "componentDescriptor": reference, "maxParallel": 2});
        let now = json!({"blueprint": {"ref": {"resourceName": "b"}}, "maxParallel": 3, "context": "c"});
        let changed = ChangedComponent { item: "a".into(), then: "helm 1 (x)".into(), last: "helm 2 (y)".into() };
        let recorded =
            RecordedDefinition { job: "j".into(), definition: definition(then, &[]), components: vec![changed] };
        let nothing = definition(json!({"blueprint": {}}), &[]);
        let found = Restoration::of(&recorded, &installation(now), &nothing, ImportChoice::Recorded);
        assert_eq!(found.fields, ["spec.componentDescriptor", "spec.context", "spec.maxParallel"]);
        assert!(!found.is_empty());
        let what: Vec<&str> = found.not_restored.iter().map(|of| of.what.as_str()).collect();
        assert_eq!(what, ["deploy item a", "the component version"]);
        let said = &found.not_restored.first().unwrap().why;
        assert!(said.starts_with("helm 1 (x) has deployed it then, and helm 2 (y) in its last job"), "{said}");
    }
}
