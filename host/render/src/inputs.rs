//! What every execution is given (`docs/wire.md` §4.3).

use std::collections::BTreeMap;

use orangery_blueprint::export;
use orangery_core::memory;
use serde_json::{Map, Value};

/// What templates see of the installation itself and of the component version that its blueprint belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputDefinitions {
    /// `spec.blueprint`: the inputs `blueprint` and `blueprintDef`.
    pub blueprint: Value,
    /// `spec.componentDescriptor`, where there is one: the input `componentDescriptorDef`.
    pub component_descriptor: Option<Value>,
    /// The descriptor of the component version, or null: the input `cd`.
    pub descriptor: Value,
    /// The descriptors of all component versions that it refers to, itself included: the input `components`.
    pub components: Value,
}

impl InputDefinitions {
    /// Bytes of memory that they take as inputs.
    pub(crate) fn memory(&self) -> u64 {
        let blueprint = memory::of(&self.blueprint).saturating_mul(2);
        let component_descriptor = self.component_descriptor.as_ref().map_or(0, memory::of);
        [memory::of(&self.descriptor), memory::of(&self.components), component_descriptor]
            .into_iter()
            .fold(blueprint, u64::saturating_add)
    }

    /// The inputs that all executions of the blueprint have.
    pub(crate) fn inputs(&self, imports: &Map<String, Value>) -> Map<String, Value> {
        let mut inputs = Map::new();
        inputs.insert("cd".to_owned(), self.descriptor.clone());
        inputs.insert("components".to_owned(), self.components.clone());
        inputs.insert("blueprint".to_owned(), self.blueprint.clone());
        inputs.insert("blueprintDef".to_owned(), self.blueprint.clone());
        if let Some(descriptor) = &self.component_descriptor {
            inputs.insert("componentDescriptorDef".to_owned(), descriptor.clone());
        }
        inputs.insert("imports".to_owned(), Value::Object(imports.clone()));
        inputs
    }
}

/// What export executions see besides: `values`, and its parts at the top too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportValues {
    /// The exports of the deploy items, by item; `None` where there are no items.
    pub deploy_items: Option<Value>,
    /// The data that lives in the installation's own context, by key.
    pub data_objects: BTreeMap<String, Value>,
    /// The Targets that live there, by key, as whole objects.
    pub targets: BTreeMap<String, Value>,
}

impl ExportValues {
    pub(crate) fn inputs(self) -> Map<String, Value> {
        export::inputs(self.deploy_items, self.data_objects, self.targets)
    }
}
