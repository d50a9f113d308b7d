//! How long the item of a job may take.

use std::time::Duration;

use kube::ResourceExt;
use orangery_api::deploy_item::DeployItem;
use orangery_core::error::{Code, Failure};

use crate::timeout::limit_of;

/// How long the item may take; `None` for ever.
pub(super) fn limit(item: &DeployItem) -> Result<Option<Duration>, Failure> {
    limit_of(item.spec.timeout.as_ref()).map_err(|error| {
        let message = format!("spec.timeout of DeployItem {}: {error}", item.name_any());
        Failure::new("PickUp", "InvalidTimeout", message).with_code(Code::ConfigurationProblem)
    })
}
