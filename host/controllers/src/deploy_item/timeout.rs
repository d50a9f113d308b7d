//! How long the item of a job may take, and that it takes no longer whatever its clusters do.

use std::time::Duration;

use jiff::Timestamp;

use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, job::Job as _};
use orangery_core::{
    duration::deadline,
    error::{Code, Failure},
    step::{Halt, Step},
};
use tokio::time::timeout;

use super::gather::ItemReconciliation;
use crate::timeout::{USUAL_TIMEOUT, limit_of};

/// How long a call may take that begins when the time of its item is up, or nearly: what it waited for may have come about.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// How much longer than its requests a call may take before it is cut off, as by a crash.
const CUT_OFF_AFTER: Duration = Duration::from_secs(2);

/// How long the item may take; `None` for ever.
pub(super) fn limit(item: &DeployItem) -> Result<Option<Duration>, Failure> {
    limit_of(item.spec.timeout.as_ref()).map_err(|error| {
        let message = format!("spec.timeout of DeployItem {}: {error}", item.name_any());
        Failure::new("PickUp", "InvalidTimeout", message).with_code(Code::ConfigurationProblem)
    })
}

impl ItemReconciliation {
    /// How much time a call has for its requests; `None` where the item may take for ever.
    pub(super) async fn time_for_requests(&self) -> Option<Duration> {
        let now = self.gathered.host.clock.now();
        let recovers = async || self.gathered.state().await.ok()?.state.progress?.recovers_until;
        let end = match self.deadline? {
            deadline if deadline <= now => recovers().await.unwrap_or(deadline),
            deadline => deadline,
        };
        Some(until(now, end).max(LAST_LOOK))
    }
}

/// How much time the job of an item has left, by its status alone; `None` for ever, or where no job is under way. One that was never
/// picked up counts from when it was handed down (C-157).
pub(super) fn left_of_job(item: &DeployItem, now: Timestamp) -> Option<Duration> {
    let times = item.status.as_ref().filter(|_| !item.job_finished())?.transition_times.as_ref()?;
    let begun = times.init_time.as_ref().or(times.trigger_time.as_ref())?.0;
    Some(until(now, deadline(begun, limit(item).unwrap_or(Some(USUAL_TIMEOUT)))?))
}

/// The shortest time after which an item is looked at again whose time is running out.
const SHORTEST_BACKOFF: Duration = Duration::from_secs(1);

/// When an item at the latest is looked at again that is tried again and has so much time left: what it waits for may come when
/// the pauses between failures are longer than what is left (C-123).
pub(super) fn look_again_in(left: Duration) -> Duration {
    (left / 4).max(SHORTEST_BACKOFF).min(left)
}

/// How long it is until then; nothing where it is over.
fn until(now: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(now)).unwrap_or_default()
}

/// A piece of work whose requests end in time: it is cut off where it does not end soon after them.
///
/// # Errors
/// Those of the work, and that it was cut off.
pub(super) async fn in_time<T>(limit: Option<Duration>, work: impl Future<Output = Step<T>>) -> Step<T> {
    let Some(limit) = limit else { return work.await };
    timeout(limit.saturating_add(CUT_OFF_AFTER), work).await.unwrap_or_else(|_elapsed| {
        let message = "the work was cut off, because it went on when the time for it was up";
        Err(Halt::Retry(Failure::new("Progressing", "CutOff", message).with_code(Code::Timeout)))
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep_until};

    use super::*;

    /// Of five seconds more than an item has, C-39 promises.
    #[tokio::test(start_paused = true)]
    async fn c_39_work_that_goes_on_when_its_time_is_up_is_cut_off_in_five_seconds() {
        assert!(LAST_LOOK.saturating_add(CUT_OFF_AFTER) <= Duration::from_secs(5));
        for limit in [LAST_LOOK, Duration::from_secs(600)] {
            let began = Instant::now();
            let cut = in_time(Some(limit), pending::<Step<()>>()).await;
            let Err(Halt::Retry(failure)) = cut else { panic!("{cut:?}") };
            assert_eq!((failure.reason.as_str(), failure.codes), ("CutOff", [Code::Timeout].into()));
            assert_eq!(began.elapsed(), limit.saturating_add(CUT_OFF_AFTER));
        }
        // What ends with its requests, and what may take for ever, comes to its end.
        let after = async |seconds: u64| {
            sleep_until(Instant::now() + Duration::from_secs(seconds)).await;
            Ok(seconds)
        };
        assert_eq!(in_time(Some(LAST_LOOK), after(3)).await, Ok(3));
        assert_eq!(in_time(None, after(3600)).await, Ok(3600));
    }

    #[test]
    fn c_123_an_item_that_is_tried_again_is_looked_at_as_long_as_it_has_time() {
        let seconds = Duration::from_secs_f64;
        let looks = [600.0, 60.0, 4.0, 2.0, 0.5, 0.0].map(|left| look_again_in(seconds(left)));
        assert_eq!(looks, [150.0, 15.0, 1.0, 1.0, 0.5, 0.0].map(seconds));
    }
}
