//! What a look writes about its item: the status, the export Secret, kept proposals. Every status write carries the
//! version that was read, so that an item that has changed meanwhile, as by an interrupt, refuses it (C-24, C-25).

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use orangery_api::{
    deploy_item::{DeployItem, DeployItemStatus, DeployerInformation},
    error::LastError,
    job::Job,
    reference::ObjectReference,
};
use orangery_apply::{Ledger, Page};
use orangery_core::{
    error::Failure,
    name::export_secret,
    phase::item::Item as Phase,
    port::BoxFuture,
    step::{Halt, Step},
    walk::Rest,
};
use orangery_proposal::{Proposal, deployer::Deployer, item::Kept};
use orangery_reconcile::Key;
use serde_json::{Value, json};

use super::{keep, provider_status};
use crate::{
    controller_context::ControllerContext,
    job::{self, JobStatus},
    object::owner_reference,
};

/// The key of an export Secret.
const CONFIG: &str = "config";

/// Errors that an item remembers (`landscaper.md` §3.3).
const ERRORS: usize = 5;

/// The item as it is written.
pub(super) struct Book {
    host: Arc<ControllerContext>,
    /// As the server has it.
    pub(super) before: Arc<DeployItem>,
    /// As the next write will have it.
    pub(super) draft: DeployItem,
    pub(super) job: String,
    pub(super) phase: Phase,
    deployer: DeployerInformation,
}

impl Book {
    pub(super) fn open(
        host: &Arc<ControllerContext>,
        item: &Arc<DeployItem>,
        deployer: &Arc<dyn Deployer>,
        job: &str,
    ) -> Self {
        let identity = deployer.identity();
        Self {
            host: Arc::clone(host),
            before: Arc::clone(item),
            draft: DeployItem::clone(item),
            job: job.to_owned(),
            phase: Phase::Progressing,
            deployer: DeployerInformation {
                identity: identity.digest.clone(),
                name: identity.name.clone(),
                version: identity.version.clone(),
            },
        }
    }

    /// The begin of a job: the clock of its timeout starts, errors of the last one are forgotten (C-08).
    pub(super) fn pick_up(&mut self) {
        let now = self.host.now();
        let status = self.draft.status.get_or_insert_default();
        status.begin(&now);
        status.last_reconcile_time = Some(now);
        status.deployer = self.deployer.clone();
        status.last_error = None;
        status.first_error = None;
        status.last_errors.clear();
    }

    /// When the job was picked up.
    pub(super) fn begun(&self) -> Timestamp {
        let times = self.draft.status.as_ref().and_then(|status| status.transition_times.as_ref());
        times.and_then(|times| times.init_time.as_ref()).map_or_else(|| self.host.clock.now(), |time| time.0)
    }

    /// Whether the job is still the item's current one, as far as the store knows.
    pub(super) fn is_current(&self) -> bool {
        is_current(&self.host, &self.before, &self.job)
    }

    /// Where the look rests: phase, job ids, errors, conditions and the page in one write.
    pub(super) async fn rest(mut self, rest: &Rest<Phase>, page: Option<&Page>) -> Step<()> {
        let now = self.host.now();
        let generation = self.before.metadata.generation.unwrap_or_default();
        let status = self.draft.status.get_or_insert_default();
        status.rest(rest, generation, &now);
        if let Some(failure) = &rest.failure {
            remember(status, failure);
        }
        self.write(page).await
    }

    /// What is waited for before the job begins: the item keeps the phase of its last job.
    pub(super) async fn queue_up(mut self, rest: &Rest<Phase>) -> Step<()> {
        let now = self.host.now();
        let generation = self.before.metadata.generation.unwrap_or_default();
        let status = self.draft.status.get_or_insert_default();
        let (phase, last_error) = (status.phase.clone(), status.last_error.clone());
        status.rest(rest, generation, &now);
        (status.phase, status.last_error) = (phase, last_error);
        if self.draft == *self.before { Ok(()) } else { self.write(None).await }
    }

    async fn write(&mut self, page: Option<&Page>) -> Step<()> {
        let before = self.kept();
        if let Some(page) = page {
            self.draft.status.get_or_insert_default().provider_status = provider_status::write(page);
        }
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let answer =
            writer.update_status(&self.before, &self.draft).await.map_err(|error| error.halt("UpdateStatus"))?;
        self.draft = DeployItem::clone(&answer);
        self.before = answer;
        if let Some(page) = page {
            let namespace = self.before.namespace().unwrap_or_default();
            keep::discard(&self.host.client, &namespace, before.as_ref(), page.kept.as_ref()).await;
        }
        Ok(())
    }

    /// Whether the item's status says all of it already: another try of a failed look writes nothing new, and the error
    /// of the last one stays to be seen.
    fn has(&self, page: &Page) -> bool {
        let status = self.before.status.as_ref().and_then(|status| status.provider_status.as_ref());
        self.before.phase() == self.phase.as_str() && status == provider_status::write(page).as_ref()
    }

    /// The proposal that the item's status names.
    fn kept(&self) -> Option<Kept> {
        let status = self.before.status.as_ref()?.provider_status.as_ref();
        provider_status::read(status, &self.job).ok()?.kept
    }

    /// The item is uninstalled: it may go.
    pub(super) async fn release(&self) -> Step<()> {
        job::release(&self.host, &self.host.stores.deploy_items, self.before.as_ref()).await
    }

    /// The item has exports, or has none any more.
    pub(super) async fn refer_to_exports(&mut self, exported: bool) -> Step<()> {
        let namespace = self.before.namespace().unwrap_or_default();
        let name = export_secret(&self.before.name_any());
        let status = self.draft.status.get_or_insert_default();
        let before = status.export_ref.take();
        if exported {
            status.export_ref = Some(ObjectReference { name, namespace });
        } else if let Some(stale) = before {
            match self.secrets().delete(&stale.name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(unexported(&self.before, &error)),
            }
        }
        Ok(())
    }

    async fn write_exports(&self, exports: &Value) -> Step<()> {
        let name = export_secret(&self.before.name_any());
        let data = ByteString(exports.to_string().into_bytes());
        let api = self.secrets();
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                owner_references: Some(vec![owner_reference(self.before.as_ref())]),
                ..ObjectMeta::default()
            },
            data: Some([(CONFIG.to_owned(), data.clone())].into()),
            ..Secret::default()
        };
        match api.create(&PostParams::default(), &secret).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let patch =
                    json!({"metadata": {"ownerReferences": secret.metadata.owner_references}, "data": {CONFIG: data}});
                let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
                patched.map(drop).map_err(|error| unexported(&self.before, &error))
            }
            Err(error) => Err(unexported(&self.before, &error)),
        }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.host.client.clone(), &self.before.namespace().unwrap_or_default())
    }
}

impl Ledger for Book {
    fn record<'a>(&'a mut self, page: &'a Page) -> BoxFuture<'a, Step<()>> {
        Box::pin(async move {
            if self.has(page) {
                return Ok(());
            }
            let rest = Rest { phase: self.phase, ended: false, failure: None, wait: None };
            let now = self.host.now();
            let generation = self.before.metadata.generation.unwrap_or_default();
            self.draft.status.get_or_insert_default().rest(&rest, generation, &now);
            self.write(Some(page)).await
        })
    }

    fn keep<'a>(&'a mut self, proposal: &'a Proposal) -> BoxFuture<'a, Step<Kept>> {
        Box::pin(async move { keep::keep(&self.host.client, &self.before, proposal).await })
    }

    fn export<'a>(&'a mut self, exports: &'a Value) -> BoxFuture<'a, Step<()>> {
        Box::pin(async move { self.write_exports(exports).await })
    }
}

/// Whether a job is still the current one of an item, as far as the store knows: no read of the API.
pub(super) fn is_current(host: &ControllerContext, item: &DeployItem, job: &str) -> bool {
    let newest = host.stores.deploy_items.get(&Key::of(item));
    newest.is_some_and(|newest| {
        newest.metadata.uid == item.metadata.uid && newest.job_id() == job && newest.job_id_finished() != job
    })
}

/// `firstError` and `lastErrors` (`landscaper.md` §3.3); the same error again is the same error.
fn remember(status: &mut DeployItemStatus, failure: &Failure) {
    let Some(error) = status.last_error.clone() else { return };
    status.first_error.get_or_insert_with(|| error.clone());
    if status.last_errors.last().map(LastError::failure).as_ref() != Some(failure) {
        status.last_errors.push(error);
    }
    let surplus = status.last_errors.len().saturating_sub(ERRORS);
    status.last_errors.drain(..surplus);
}

fn unexported(item: &DeployItem, error: &kube::Error) -> Halt {
    let name = item.name_any();
    let message =
        format!("the exports of DeployItem {name} cannot be written to Secret {}: {error}", export_secret(&name));
    Halt::Retry(Failure::new("WriteExports", "ExportsNotWritten", message))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn an_item_remembers_the_first_error_and_the_last_five_different_ones() {
        let mut status = DeployItemStatus::default();
        let now = Time(Timestamp::from_second(0).unwrap());
        for message in ["a", "a", "b", "c", "d", "e", "f", "f"] {
            let failure = Failure::new("O", "R", message);
            status.last_error = Some(LastError::following(status.last_error.as_ref(), &failure, &now));
            remember(&mut status, &failure);
        }
        let messages: Vec<&str> = status.last_errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(messages, ["b", "c", "d", "e", "f"]);
        assert_eq!(status.first_error.unwrap().message, "a");
    }
}
