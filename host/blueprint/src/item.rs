//! Deploy items as templates render them (`docs/wire.md` §4.3).

use std::{collections::BTreeMap, sync::Arc};

use orangery_expression::Type;
use serde::Deserialize;
use serde_json::Value;

use super::choice::{ChoiceError, TargetChoice, TargetChoiceFields, choice, gates};
use crate::{
    gate::{self, ExpressionScope, GateExpressions, Predecessors},
    import::Imported,
};
use orangery_core::{
    dag::{Dag, DagError},
    duration::{self, InvalidDuration},
    lenient::{self, DecodeError},
    workflow::GateKind,
};
use orangery_proposal::drift_rules::DriftRules;

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
    /// Nothing is uninstalled where the target cluster is removed ([`crate::removed`]).
    pub skip_uninstall_if_cluster_removed: bool,
    /// Whether what it deployed stays when it is deleted (WF-27).
    pub keep: bool,
    /// What is done about drift.
    pub drift: Option<DriftRules>,
    /// Where to deploy.
    pub target: Option<TargetChoice>,
    /// Whether it takes part, is wanted, is ready and is gone (WF-02 … WF-05).
    pub gates: GateExpressions<TargetChoice>,
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
    /// A gate expression cannot be asked.
    #[error("deploy item {name:?}: {gate}: {why}")]
    Gate {
        /// Its name.
        name: String,
        /// Which one.
        gate: GateKind,
        /// What is wrong with it.
        why: String,
    },
    /// No such target.
    #[error("deploy item {name:?}: {source}")]
    Target {
        /// Its name.
        name: String,
        /// Why.
        source: ChoiceError,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ItemTemplateFields {
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
    drift: Option<DriftRules>,
    target: Option<TargetChoiceFields>,
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

/// The items of one deploy execution.
pub fn decode_items(output: &Value) -> Result<Vec<ItemTemplate>, ItemError> {
    let form: ItemTemplateFields = lenient::decode(output).map_err(ItemError::Form)?;
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
        Some(target) => Some(choice(target).map_err(|source| ItemError::Target { name: form.name.clone(), source })?),
    };
    let written = [
        (GateKind::Activate, form.activate_when),
        (GateKind::When, form.when),
        (GateKind::Ready, form.ready_when),
        (GateKind::Deleted, form.deleted_when),
    ];
    let gates = gates(written).map_err(|(gate, why)| ItemError::Gate { name: form.name.clone(), gate, why })?;
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
        drift: form.drift,
        target,
        gates,
    })
}

/// The rules over all items of an installation: unique names, known dependencies, no circle (EXE-30 guards what slips
/// through), gate expressions that can be asked. `imports` are those of the blueprint, with their types.
pub fn check_items(items: &[ItemTemplate], imports: &Arc<BTreeMap<String, Type>>) -> Result<(), ItemError> {
    let edges = items.iter().map(|item| {
        let before = item.depends_on.iter().map(String::as_str).collect();
        (item.name.as_str(), before)
    });
    let dag = Dag::new(edges).map_err(ItemError::Order)?;
    for item in items.iter().filter(|item| !item.gates.is_empty()) {
        let predecessors = Some(Predecessors::Of(&dag, &item.name));
        let around = ExpressionScope { imports: Some(Arc::clone(imports)), predecessors };
        gate::check_all(&item.gates, &around).map_err(|(gate, why)| ItemError::Gate {
            name: item.name.clone(),
            gate,
            why,
        })?;
    }
    Ok(())
}

impl ItemTemplate {
    /// The name of the Target object it deploys to. An import means the imported object itself, not the copy that the
    /// installation keeps.
    pub fn resolve_target(&self, imports: &BTreeMap<String, Imported>) -> Result<Option<String>, ItemError> {
        self.target.as_ref().map(|choice| choice.resolve(imports)).transpose().map_err(|source| self.no_target(source))
    }

    /// Its gate expressions, with the Target objects that they look at.
    pub fn resolve_gates(&self, imports: &BTreeMap<String, Imported>) -> Result<GateExpressions, ItemError> {
        self.gates.clone().try_map(|choice| choice.resolve(imports)).map_err(|source| self.no_target(source))
    }

    fn no_target(&self, source: ChoiceError) -> ItemError {
        ItemError::Target { name: self.name.clone(), source }
    }
}
