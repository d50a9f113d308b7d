//! What lives for a job alone ends with it where it fails or its time is up, before its status says so (C-277).

use std::time::Duration;

use orangery_apply::{Purpose, end_ephemeral};
use orangery_core::step::{Halt, Step, Verdict};

use crate::deploy_item::{gather::ItemReconciliation, timeout::in_time};

/// How long the end of what lives for a job alone may take to begin.
const TIME_TO_END: Duration = Duration::from_secs(10);

impl ItemReconciliation {
    /// Ends what lives for the job alone where the job ends otherwise than well. What cannot be ended now is told, and ended by the
    /// next job.
    pub(super) async fn end_with_job(&mut self, result: &Step<Verdict>) {
        if !matches!(result, Ok(Verdict::Failed(_)) | Err(Halt::Stall(_))) {
            return;
        }
        let Some(mut state) = self.state.take() else { return };
        self.gathered.clusters.call().end_in(Some(TIME_TO_END));
        let is_current = self.status.fence();
        let job = self.gathered.job(Purpose::Install, &is_current);
        let ended = in_time(Some(TIME_TO_END), Box::pin(end_ephemeral(&job, &mut state))).await;
        if let Err(Halt::Retry(failure) | Halt::Stall(failure)) = ended {
            state.notes.push(failure.message);
        }
        self.tell_what_stays(&mut state);
        self.state = Some(state);
    }
}
