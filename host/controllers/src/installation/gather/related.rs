//! How siblings and subobjects stand, for an Installation that waits for them (INS-21, INS-27 … INS-35).

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{convert::is_requested, execution::Execution, installation::Installation, job::Job, marks::Marks};
use orangery_core::{
    job::JobIds,
    name::Kind,
    phase::{execution::Execution as ExecutionPhase, installation::Installation as Phase},
    plan::installation::{ChildState, RelatedObject},
};

use crate::job::failure_of;

/// How an Installation stands.
pub(in crate::installation) fn related_object(installation: &Installation) -> RelatedObject {
    RelatedObject {
        kind: Kind::from_static("Installation"),
        name: installation.name_any(),
        ids: JobIds::new(installation.job_id(), installation.job_id_finished()),
        standing: ChildState::of(Phase::parse(installation.phase())),
        failure: failure_of(installation.last_error()),
        requested: is_requested(installation),
        deleting: installation.is_deleting(),
    }
}

/// How Installations stand.
pub(in crate::installation) fn related(
    installations: impl IntoIterator<Item = Arc<Installation>>,
) -> Vec<RelatedObject> {
    installations.into_iter().map(|installation| related_object(&installation)).collect()
}

/// How an Execution stands.
pub(in crate::installation) fn related_execution(execution: &Execution) -> RelatedObject {
    RelatedObject {
        kind: Kind::from_static("Execution"),
        name: execution.name_any(),
        ids: JobIds::new(execution.job_id(), execution.job_id_finished()),
        standing: ChildState::of(ExecutionPhase::parse(execution.phase())),
        failure: failure_of(execution.last_error()),
        requested: false,
        deleting: execution.is_deleting(),
    }
}
