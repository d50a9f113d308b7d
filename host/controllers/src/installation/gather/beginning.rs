//! What decides whether a job may begin: the Context and the siblings (INS-20, INS-21).

use orangery_api::context::DEFAULT_CONTEXT;
use orangery_blueprint::sibling::circle;
use orangery_core::{
    plan::beginning::{ContextState, SiblingFacts},
    step::Step,
};
use orangery_reconcile::Key;

use super::{
    super::{dependencies::CONTEXT, reconciliation::InstallationReconciliation},
    related::related,
    siblings,
};
use crate::default_context;

impl InstallationReconciliation<'_> {
    /// The Context.
    pub(in crate::installation) async fn context(&self) -> Step<ContextState> {
        let name = &self.draft.spec.context;
        let key = Key { namespace: self.key.namespace.clone(), name: name.clone().into() };
        if name == DEFAULT_CONTEXT && self.host.stores.contexts.get(&key).is_none() {
            // Made for every namespace; where that has failed it is tried again here, and told.
            default_context::ensure(self.host, &key.namespace).await.map_err(|error| error.halt("CreateContext"))?;
            return Ok(ContextState::Awaited);
        }
        let found = CONTEXT.find(self.host, &key).await?.is_some();
        Ok(if found { ContextState::Found } else { ContextState::Missing })
    }

    /// The siblings whose exports are imported here.
    pub(in crate::installation) fn siblings(&self) -> SiblingFacts {
        let root = self.draft.is_root();
        if self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_imports) {
            return SiblingFacts { root, circle: None, predecessors: Vec::new() };
        }
        let stores = &self.host.stores;
        let circle = if root { circle(&self.key.name, &siblings::ancestors(stores, &self.draft)) } else { None };
        SiblingFacts { root, circle, predecessors: related(siblings::predecessors(stores, &self.draft)) }
    }
}
