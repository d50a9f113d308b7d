//! Between the wire and the words of the core.

mod automatic;
mod binding;
mod component;
mod record;
mod request;
mod template;

use kube::Resource;
use orangery_blueprint::import::{DataValue, SecretData, TargetObject};
use serde_json::Value;

pub use self::{
    component::{CHART_CREDENTIALS, ContextError, ContextInputs, ContextNames, ContextObjects, NotOneSource},
    record::{export_occupant, original, write_data_object, write_target},
    request::{is_requested, is_suspended, request_facts},
    template::{deploy_item, origin, subinstallation},
};
use crate::{data_object::DataObject, label, marks::Marks, target::Target};
use orangery_core::name::{JobId, ObjectName};

/// A DataObject as it is imported, with its data in clear.
pub fn data_value(object: &DataObject, value: Value) -> DataValue {
    DataValue {
        value,
        hash: object.annotation(crate::annotation::HASH).map(str::to_owned),
        owner: object.parent_installation().map(str::to_owned),
        secret: match object.label(label::SECRET_DATA) {
            None => None,
            Some(label::SECRET_DATA_WHOLE) => Some(SecretData::Whole),
            Some(_) => Some(SecretData::Partly),
        },
    }
}

impl From<&Target> for TargetObject {
    fn from(target: &Target) -> Self {
        let meta = target.meta();
        let label = |key: &str| target.label(key).map(str::to_owned);
        Self {
            name: meta.name.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            target_type: target.spec.type_.clone(),
            owner: target.parent_installation().map(str::to_owned),
            index: target.label(label::INDEX).and_then(|index| index.parse().ok()),
            map_key: label(label::TARGET_MAP_KEY),
            job: target.label(label::JOB_ID).map(JobId::from),
            copy_of: original(target).map(ObjectName::from),
            object: object(target),
        }
    }
}

/// A Target as templates see it: the whole object without `managedFields`.
pub fn object(target: &Target) -> Value {
    let mut target = target.clone();
    target.metadata.managed_fields = None;
    serde_json::to_value(target).expect("a target has string keys only")
}

#[cfg(test)]
mod tests;
