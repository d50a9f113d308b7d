//! Cases that the operator of a server carries out: each with objects of its own, which are deleted afterwards.

mod objects;
mod view;

use std::{collections::BTreeMap, path::Path};

use kube::{Api, Client};
use orangery_api::{GROUP, installation::Installation, installation::InstallationSpec, job::Job as _};
use orangery_blueprint::ExportDefinition;
use orangery_core::{
    error::cleaned,
    name::{Kind, Namespace, ObjectName},
};
use tokio::sync::watch;

use self::objects::CaseObjects;
use super::{
    case::{BlueprintCase, CasePlace},
    report::BlueprintCaseReport,
};
use crate::{
    call::{CallError, CallSubject},
    command::{inspect, why},
    offline::RenderedInstallation,
    timeout::{Timeout, within},
    tree::{NodeKind, Tree},
    watched,
};

const INSTALLATION: &Kind = &Kind::from_static("Installation");

/// A blueprint whose cases a server carries out.
pub(crate) struct ServerBlueprint<'a> {
    /// The server.
    pub(crate) client: &'a Client,
    /// The namespace of all objects.
    pub(crate) namespace: Namespace,
    /// The Installation that it is the blueprint of, without imports and exports.
    pub(crate) spec: InstallationSpec,
    /// What it exports.
    pub(crate) exports: Vec<ExportDefinition>,
    /// Targets of the namespace by the imports that they take the place of.
    pub(crate) targets: BTreeMap<String, ObjectName>,
    /// How long a case may take, and its clean-up.
    pub(crate) timeout: Timeout,
    /// Whether the cases are to end.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// What came of a case.
enum CaseEnd {
    /// The job succeeded.
    Succeeded(Box<RenderedInstallation>),
    /// The job failed, and why.
    Failed(String),
    /// It did not come to its end.
    Unfinished(Vec<String>),
}

impl From<CallError> for CaseEnd {
    fn from(error: CallError) -> Self {
        CaseEnd::Unfinished(vec![error.to_string()])
    }
}

impl ServerBlueprint<'_> {
    /// Carries one case out, holds what came of it against what it expects, and deletes what it has made.
    pub(crate) async fn run(&self, file: &Path) -> BlueprintCaseReport {
        let mut report = BlueprintCaseReport::of(file);
        let case = match BlueprintCase::read(file) {
            Ok(case) => case,
            Err(problem) => {
                report.problems.push(problem);
                return report;
            }
        };
        report.skipped = case.skipped_on_servers();
        // No lock of it is held while the case is under way.
        let is_stopped = *self.stopped.borrow();
        if report.skipped.is_none() {
            report.problems = match is_stopped {
                true => vec!["it is not begun: the command was stopped".to_owned()],
                false => self.problems(&case).await,
            };
        }
        report
    }

    async fn problems(&self, case: &BlueprintCase) -> Vec<String> {
        let objects = match CaseObjects::begin(self, case).await {
            Ok(objects) => objects,
            Err(error) => return vec![error.to_string()],
        };
        let end = self.end(case, &objects).await.unwrap_or_else(CaseEnd::from);
        let is_finished = !matches!(end, CaseEnd::Unfinished(_));
        let mut problems = match end {
            CaseEnd::Succeeded(rendered) => case.problems(CasePlace::Server, Ok(&rendered)),
            CaseEnd::Failed(error) => case.problems(CasePlace::Server, Err(&error)),
            CaseEnd::Unfinished(problems) => problems,
        };
        problems.extend(objects.remove(is_finished).await);
        problems
    }

    /// Has the job run, and waits for its end.
    async fn end(&self, case: &BlueprintCase, objects: &CaseObjects<'_>) -> Result<CaseEnd, CallError> {
        objects.fill(case).await?;
        let job = async {
            tokio::select! {
                ended = within(&self.timeout, self.finished(&objects.name)) => ended.transpose(),
                () = self.is_stopped() => Ok(None),
            }
        };
        match job.await? {
            Some(Some(installation)) if installation.phase() == "Succeeded" => {
                Ok(CaseEnd::Succeeded(Box::new(view::of(self.client, &self.namespace, &installation).await?)))
            }
            Some(Some(_)) => Ok(CaseEnd::Failed(self.failure(&objects.name).await?)),
            Some(None) => Ok(CaseEnd::Unfinished(vec![format!("somebody else has deleted {}", objects.place())])),
            None if *self.stopped.borrow() => {
                Ok(CaseEnd::Unfinished(vec!["the command was stopped before its job ended".to_owned()]))
            }
            None => {
                let mut lines = vec![format!("its job did not end within {}:", self.timeout)];
                lines.extend(self.chain(&objects.name).await?);
                Ok(CaseEnd::Unfinished(lines))
            }
        }
    }

    fn subject<'a>(&'a self, name: &'a ObjectName) -> CallSubject<'a> {
        CallSubject { kind: INSTALLATION, group: GROUP, namespace: &self.namespace, name }
    }

    fn installations(&self) -> Api<Installation> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The Installation when its job has ended; `None` where it is gone.
    async fn finished(&self, name: &ObjectName) -> Result<Option<Installation>, CallError> {
        let seen = |seen: Option<Installation>| match seen {
            Some(installation) if installation.job_id().is_empty() || !installation.job_finished() => None,
            ended => Some(ended),
        };
        watched::until(&self.installations(), self.subject(name), seen).await
    }

    async fn is_stopped(&self) {
        let mut stopped = self.stopped.clone();
        if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Why it failed, in one text.
    async fn failure(&self, name: &ObjectName) -> Result<String, CallError> {
        let tree = Tree::of(&inspect::read(self.client, &self.namespace).await?);
        let tree = tree.of_installation(&self.namespace, name).unwrap_or_default();
        let causes = tree.causes().into_iter();
        let causes: Vec<String> = causes
            .map(|cause| format!("{} failed: {}", cause.subject(), cleaned(&cause.trouble.message, usize::MAX)))
            .collect();
        Ok(if causes.is_empty() { "its job failed, and nothing says why".to_owned() } else { causes.join("; ") })
    }

    /// What it waits for, as `orangery why` tells it.
    async fn chain(&self, name: &ObjectName) -> Result<Vec<String>, CallError> {
        let tree = Tree::of(&inspect::read(self.client, &self.namespace).await?);
        let chain = why::chain(self.client, &tree, (NodeKind::Installation, &self.namespace, name)).await;
        Ok(chain.map(|chain| chain.lines()).unwrap_or_default())
    }
}
