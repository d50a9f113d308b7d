//! `orangery interrupt`: ends a running job.

use clap::Args;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use orangery_api::{GROUP, annotation, installation::Installation, job::Job as _, marks::Operation};
use orangery_core::name::{JobId, Kind, Namespace, ObjectName};
use serde_json::json;

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    job_wait::{AwaitedJob, WaitFlags},
    terminal::Terminal,
};

const EXAMPLES: &str = "\
Examples:
  orangery interrupt hello          the deploy items at work fail, and the job ends
  orangery interrupt hello --wait   the same, and wait until it has ended
  orangery interrupt hello-sub-x    only what belongs to a sub-installation

With --wait the exit code is 0 once the job has ended, in whichever phase.";

/// Ends the running job of an installation and of all that belongs to it. Deploy items at work fail; what they have
/// deployed stays.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Interrupt {
    /// The installation, a root or a sub-installation
    pub name: ObjectName,
    /// Whether it waits.
    #[command(flatten)]
    pub waits: WaitFlags,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Interrupt {
    /// Sets the annotation.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let api: Api<Installation> = Api::namespaced(client.clone(), &namespace);
        let mark = json!({"metadata": {"annotations": {(annotation::OPERATION): Operation::Interrupt.to_string()}}});
        let subject = CallSubject {
            kind: &Kind::from_static("Installation"),
            group: GROUP,
            namespace: &namespace,
            name: &self.name,
        };
        let refused = |error| CallError::of(subject, error);
        let before = api.get(&self.name).await.map_err(refused)?;
        let message = if before.job_finished() {
            "no job runs, so nothing is interrupted"
        } else {
            api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&mark)).await.map_err(refused)?;
            "interrupt requested"
        };
        terminal.line(format_args!("installation {namespace}/{}: {message}", self.name))?;
        if self.waits.wait && !before.job_finished() {
            self.wait((client, &namespace), before.job_id(), terminal).await?;
        }
        Ok(Exit::Ok)
    }

    async fn wait(
        &self,
        (client, namespace): (&Client, &Namespace),
        job: &JobId,
        terminal: &mut Terminal,
    ) -> Result<(), CommandError> {
        let awaited = AwaitedJob { client, namespace, name: &self.name, timeout: &self.waits.timeout };
        // Another job may begin at once, as one that was asked for meanwhile does.
        let is_ended = |installation: &Installation| installation.job_finished() || installation.job_id() != job;
        let ended = match awaited.wait(is_ended, terminal).await? {
            Some(_) => "the job has ended",
            None => "deleted",
        };
        terminal.line(format_args!("installation {namespace}/{}: {ended}", self.name))?;
        Ok(())
    }
}
