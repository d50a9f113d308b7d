//! The subobjects of an Installation: its sub-installations and its Execution.

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{execution::Execution, installation::Installation};
use orangery_core::plan::installation::RelatedObject;

use super::{
    super::reconciliation::InstallationReconciliation,
    related::{related_execution, related_object},
};
use crate::tree::children;

impl InstallationReconciliation<'_> {
    /// The sub-installations, sorted by name.
    pub(in crate::installation) fn subinstallations(&self) -> Vec<Arc<Installation>> {
        children(&self.host.stores, &self.key)
    }

    /// The Execution of this Installation, which has its name.
    pub(in crate::installation) fn execution(&self) -> Option<Arc<Execution>> {
        self.host.stores.executions.get(&self.key)
    }

    /// How all subobjects stand.
    pub(in crate::installation) fn related(&self) -> Vec<RelatedObject> {
        self.subinstallations().iter().map(|sub| related_object(sub)).chain(self.related_execution()).collect()
    }

    /// How the Execution stands.
    pub(in crate::installation) fn related_execution(&self) -> Option<RelatedObject> {
        self.execution().map(|execution| related_execution(&execution))
    }

    /// Whether a subobject works for this job.
    pub(in crate::installation) fn has_working_children(&self) -> bool {
        self.related().iter().any(|related_object| related_object.ids.running() == Some(&self.workflow.job))
    }

    /// The subobjects that this job made and that are there no more, each with its kind.
    pub(in crate::installation) fn missing(&self) -> Vec<String> {
        let Some(status) = &self.draft.status else { return Vec::new() };
        let subs: Vec<String> = self.subinstallations().iter().map(|sub| sub.name_any()).collect();
        let made = status.sub_inst_cache.iter().flat_map(|cache| &cache.active_subs);
        let lost = made.filter(|made| !subs.iter().any(|sub| made.object_name == sub.as_str()));
        let lost = lost.map(|lost| format!("installation {}", lost.object_name));
        lost.chain(self.missing_execution()).collect()
    }

    /// The Execution, with its kind, if this job made it and it is there no more.
    pub(in crate::installation) fn missing_execution(&self) -> Vec<String> {
        let made = self.draft.status.iter().filter_map(|status| status.execution_ref.as_ref());
        made.filter(|_| self.execution().is_none()).map(|lost| format!("execution {}", lost.name)).collect()
    }
}
