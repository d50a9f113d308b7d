//! `orangery interrupt`: ends a running job.

use clap::Args;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use orangery_api::{GROUP, annotation, installation::Installation, job::Job as _, marks::Operation};
use orangery_core::name::{Kind, ObjectName};
use serde_json::json;

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    terminal::Terminal,
};

const EXAMPLES: &str = "\
Examples:
  orangery interrupt hello          the deploy items at work fail, and the job ends
  orangery interrupt hello-sub-x    only what belongs to a sub-installation";

/// Ends the running job of an installation and of all that belongs to it. Deploy items at work fail; what they have
/// deployed stays.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Interrupt {
    /// The installation, a root or a sub-installation
    pub name: ObjectName,
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
        Ok(Exit::Ok)
    }
}
