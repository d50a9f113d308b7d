//! What differs is written again as it was kept, and nothing else: no component is called, and all that is asked of a job is
//! asked of this (C-60).

use std::sync::Arc;

use jiff::Timestamp;
use orangery_api::{deploy_item::DeployItem, job::Job as _, marks::Marks};
use orangery_apply::{DriftFinding, Purpose, TrackedManifest, correct};
use orangery_core::{
    automatic::Schedule,
    error::{Code, Failure},
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{Proposal, drift_rules::DriftPolicy, inventory::LocatedObject};
use orangery_reconcile::Key;
use serde_json::Value;

use super::{
    super::{gather::GatheredItem, on_record::JobState},
    DriftController, report, rules,
};
use crate::{controller_context::ControllerContext, event, object::uid_of};

impl DriftController {
    /// Writes again what is due. Answers when more is.
    pub(super) async fn correct(&self, item: &Arc<DeployItem>, tracked: &TrackedManifest) -> Step<Option<Timestamp>> {
        let (schedule, begin) = (schedule(item)?, last_job_ended(item));
        let schedule = schedule.as_ref().map(|schedule| (schedule, begin));
        let (due, next) = tracked.due(schedule, self.host.clock.now());
        if due.is_empty() {
            return Ok(next);
        }
        let gathered = self.gather(item).await?;
        let held = self.host.corrected_items.begin(&gathered.key);
        let corrected = tokio::select! {
            biased;
            corrected = self.write_again(&gathered, item, tracked, due) => Some(corrected),
            // The job writes all of it, or deletes it.
            () = held.is_over() => None,
        };
        gathered.put_on_record(JobState::after(item), None, (false, None)).await?;
        let Some(corrected) = corrected.transpose()? else { return Ok(None) };
        if !corrected.is_empty() {
            let words: Vec<String> = corrected.iter().map(|(located, was)| report::words(located, was)).collect();
            let note = format!("written again as the last job wrote it: {}", report::list(&words));
            event::tell(&self.host, item.as_ref(), "DriftCorrected", &note);
        }
        let now = self.host.clock.now();
        let (due, next) = tracked.due(schedule, now);
        Ok(if due.is_empty() { next } else { Some(now) })
    }

    async fn write_again(
        &self,
        gathered: &GatheredItem,
        item: &Arc<DeployItem>,
        tracked: &TrackedManifest,
        due: Vec<LocatedObject>,
    ) -> Step<Vec<(LocatedObject, DriftFinding)>> {
        gathered.state_with_target().await?;
        let is_current = fence(&self.host, item);
        let job = gathered.job(Purpose::Install, &is_current);
        let masker = self.host.secrets.masker(&gathered.key.namespace);
        let masked = |text: &str| masker.mask(text).into_owned();
        let check = |part: Proposal| -> BoxFuture<'_, Step<()>> {
            Box::pin(async move { gathered.check_as_it_is(&part).await })
        };
        correct(&job, tracked, due, &check, &masked).await
    }
}

/// The schedule of `continuousReconcile` in the provider configuration of an item that says nothing of drift itself (C-61).
fn schedule(item: &DeployItem) -> Step<Option<Schedule>> {
    if item.spec.drift.is_some() {
        return Ok(None);
    }
    let continuous = item.spec.config.as_ref().and_then(|config| config.get("continuousReconcile"));
    let text = |name: &str| continuous.and_then(|continuous| continuous.get(name)).and_then(Value::as_str);
    let schedule = Schedule::parse(text("cron").unwrap_or(""), text("every"), Schedule::AFTER_SUCCESS);
    schedule.map(Some).map_err(|error| {
        let message = format!("continuousReconcile of the provider configuration: {error}");
        Halt::Stall(Failure::new("Drift", "InvalidSchedule", message).with_code(Code::ConfigurationProblem))
    })
}

/// When the last job has ended, as its status says it: whatever is in memory is gone after a restart.
fn last_job_ended(item: &DeployItem) -> Timestamp {
    let times = item.status.as_ref().and_then(|status| status.transition_times.as_ref());
    times.and_then(|times| times.finished_time.as_ref()).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// Whether anything may be written: the job that wrote the manifest is still the last one, and the item still wants it.
fn fence(host: &Arc<ControllerContext>, item: &Arc<DeployItem>) -> impl Fn() -> bool + Send + Sync + use<> {
    let (host, item) = (Arc::clone(host), Arc::clone(item));
    move || {
        let newest = host.stores.deploy_items.get(&Key::of(item.as_ref()));
        host.may_write()
            && newest.is_some_and(|newest| {
                uid_of(newest.as_ref()) == uid_of(item.as_ref())
                    && newest.finished_job(item.job_id())
                    && !newest.is_deleting()
                    && rules(&newest).is_some_and(|rules| rules.policy == DriftPolicy::Correct)
            })
    }
}
