//! `orangery crd`: the custom resource definitions, and the policies for their objects.

use clap::Args;
use kube::{Client, ResourceExt as _};
use orangery_api::Admission;

use crate::{
    command_error::CommandError,
    connection::Connection,
    crds::{AppliedCrd, apply_crd},
    exit::Exit,
    form::yaml,
    terminal::Terminal,
};

const EXAMPLES: &str = "\
Examples:
  orangery crd | kubectl apply --server-side -f -     definitions and admission policies
  orangery crd --apply                                the definitions alone, as before an upgrade

The chart applies them before an upgrade of its release, and brings the admission policies with it.";

/// Prints the custom resource definitions, and the admission policies for their objects, as YAML.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Crd {
    /// Apply the definitions to a cluster, and print what became of each; those of a newer version stay as they are
    #[arg(long)]
    pub apply: bool,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Crd {
    /// Prints or applies them.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        if self.apply {
            return Self::applied(&self.connection.client().await?, terminal).await;
        }
        for definition in orangery_api::crds() {
            terminal.text(&format!("---\n{}", yaml(&definition)?))?;
        }
        for Admission { policy, binding } in orangery_api::admission() {
            terminal.text(&format!("---\n{}---\n{}", yaml(&policy)?, yaml(&binding)?))?;
        }
        Ok(Exit::Ok)
    }

    async fn applied(client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        for crd in orangery_api::crds() {
            let name = crd.name_any();
            let became = match apply_crd(client, &crd).await? {
                AppliedCrd::Applied => "is up to date".to_owned(),
                AppliedCrd::Newer { version } => format!("is of version {version}, which is newer, and stays"),
            };
            terminal.line(format_args!("{name} {became}"))?;
        }
        Ok(Exit::Ok)
    }
}
