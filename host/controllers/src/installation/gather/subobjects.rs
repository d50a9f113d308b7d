//! The subobjects of an Installation: its sub-installations and its Execution.

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{execution::Execution, installation::Installation, label};
use orangery_core::{plan::installation::RelatedObject, step::Step};
use orangery_reconcile::{FoundObjects, Key};

use super::{
    super::reconciliation::InstallationReconciliation,
    related::{related, related_execution, related_object},
};
use crate::{job::Subobjects, refresh, tree::children};

impl InstallationReconciliation<'_> {
    /// The sub-installations, sorted by name.
    pub(in crate::installation) fn subinstallations(&self) -> FoundObjects<Installation> {
        children(&self.host.stores, &self.key)
    }

    /// The Execution of this Installation, which has its name.
    pub(in crate::installation) fn execution(&self) -> Option<Arc<Execution>> {
        self.host.stores.executions.get(&self.key)
    }

    /// How all subobjects stand.
    pub(in crate::installation) fn related(&self) -> Vec<RelatedObject> {
        let mut subs = related(self.subinstallations());
        for sub in &mut subs {
            let key = Key::new(&self.key.namespace, sub.name.as_str());
            sub.ids = self.handed_to_subinstallations.ids(&key, sub.ids.clone());
        }
        subs.into_iter().chain(self.related_execution()).collect()
    }

    /// How the Execution stands.
    pub(in crate::installation) fn related_execution(&self) -> Option<RelatedObject> {
        let mut execution = related_execution(self.execution()?.as_ref());
        execution.ids = self.handed_to_execution.ids(&self.key, execution.ids);
        Some(execution)
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

impl Subobjects for InstallationReconciliation<'_> {
    fn are_working(&self) -> bool {
        self.related().iter().any(|related_object| related_object.ids.running() == Some(&self.workflow.job))
    }

    async fn read(&self) -> Step<()> {
        let (host, stores, job) = (self.host.as_ref(), &self.host.stores, &self.workflow.job);
        let is_unsure = |related_object: &RelatedObject| related_object.may_have_got(job);
        let subs = self.subinstallations();
        if subs.iter().any(|sub| is_unsure(&related_object(&sub))) {
            let below = (label::ENCOMPASSED_BY, self.key.name.as_str());
            refresh::list(host, &stores.installations, subs, &self.key.namespace, below).await?;
        }
        if self.related_execution().as_ref().is_some_and(is_unsure) {
            refresh::read(host, &stores.executions, &self.key).await?;
        }
        Ok(())
    }
}
