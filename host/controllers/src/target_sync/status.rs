//! What is told of a TargetSync: in one write, where there is something new to tell.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{annotation, marks::Marks as _, sync::TargetSync};
use orangery_core::{plan::target_sync::messages, step::Halt};
use orangery_reconcile::NextCall;
use tokio::time::Instant;

use super::SyncCall;
use crate::object::generation_of;

/// How long the words of a server stay in a status while it is asked again and again.
const BETWEEN_WORDS: SignedDuration = SignedDuration::from_secs(30);

impl SyncCall<'_> {
    /// Says what was not well, answers what was asked by annotations, and says when to come again.
    pub(super) async fn finish(mut self) -> Result<NextCall, Halt> {
        if self.outcome.wrote {
            self.memory.wrote(&self.key, Instant::now());
        }
        match &self.outcome.wait {
            None => self.memory.heard(&self.key),
            Some(_) if self.memory.is_silent(&self.key) => self.outcome.errors.push(
                "a cluster has not told for long what it has: what this TargetSync watches is not known, and nothing is changed until \
                 it is; check that the cluster of the kubeconfig answers"
                    .to_owned(),
            ),
            Some(_) => {}
        }
        if self.outcome.wait.is_none() || !self.outcome.errors.is_empty() {
            self.tell().await?;
            self.answer().await?;
        }
        // Others have their turn before what has failed is tried again.
        if self.outcome.again {
            return Ok(NextCall::Again);
        }
        if let Some(failure) = self.outcome.retry {
            return Err(Halt::Retry(failure));
        }
        if let Some(wait) = self.outcome.wait {
            return Err(wait);
        }
        Ok(self.outcome.due.map_or(NextCall::Settled, |due| {
            let left = Duration::try_from(due.duration_since(self.host.clock.now()));
            NextCall::After(left.unwrap_or(Duration::ZERO))
        }))
    }

    async fn tell(&mut self) -> Result<(), Halt> {
        // The server of the other cluster knows the credentials that it was sent, and says what it likes.
        let masker = self.host.secrets.masker(&self.key.namespace);
        let errors: Vec<String> = self.outcome.errors.iter().map(|error| masker.mask(error).into_owned()).collect();
        let mut draft = TargetSync::clone(&self.sync);
        let generation = generation_of(self.sync.as_ref());
        let is_asked = self.sync.annotation(annotation::OPERATION) == Some("reconcile");
        let status = draft.status.get_or_insert_default();
        let errors = messages(&errors);
        let is_news = self.outcome.wrote || self.outcome.rotated || is_asked;
        if !is_news
            && self.sync.status.is_some()
            && status.observed_generation == generation
            && status.last_errors == errors
        {
            return Ok(());
        }
        let now = self.host.now();
        // A server may say another thing each time, and a status that is written calls again at once.
        let is_recent = |last: &Time| now.0.duration_since(last.0) < BETWEEN_WORDS && now.0 >= last.0;
        let is_same_sort =
            !status.last_errors.is_empty() && !errors.is_empty() && status.observed_generation == generation;
        if !is_news
            && self.outcome.retry.is_some()
            && is_same_sort
            && status.last_update_time.as_ref().is_some_and(is_recent)
        {
            return Ok(());
        }
        status.observed_generation = generation;
        status.last_errors = errors;
        if self.outcome.rotated {
            status.last_token_rotation_time = Some(now.clone());
        }
        status.last_update_time = Some(now);
        let writer = self.host.writer(&self.host.stores.target_syncs);
        let written = writer.update_status(&self.sync, &draft).await;
        self.sync = written.map_err(|error| error.halt("UpdateStatus"))?;
        Ok(())
    }

    /// Takes the annotations away by which something was asked that is done.
    async fn answer(&mut self) -> Result<(), Halt> {
        let mut draft = TargetSync::clone(&self.sync);
        let Some(annotations) = &mut draft.metadata.annotations else { return Ok(()) };
        annotations.retain(|key, value| {
            !(key == annotation::OPERATION && value == "reconcile"
                || key == annotation::ROTATE_TOKEN && self.outcome.rotated)
        });
        let writer = self.host.writer(&self.host.stores.target_syncs);
        self.sync = writer.update(&self.sync, &draft).await.map_err(|error| error.halt("UpdateTargetSync"))?;
        Ok(())
    }
}
