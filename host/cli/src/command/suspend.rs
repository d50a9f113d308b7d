//! `orangery suspend` and `orangery resume`: whether jobs of a root begin (C-306).

use clap::Args;
use kube::{
    Api, Client, Resource as _,
    api::{Patch, PatchParams},
};
use orangery_api::{
    GROUP, annotation,
    convert::{is_requested, is_suspended},
    installation::Installation,
    job::Job as _,
    label,
    marks::Marks as _,
};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde_json::{Value, json};

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    job_wait::{AwaitedJob, WaitFlags},
    terminal::Terminal,
};

const SUSPENDS: &str = "\
Examples:
  orangery suspend hello       no job of hello begins, whatever asks for one
  orangery resume hello        what was asked for meanwhile begins
  orangery resume hello --wait wait for the end of the job that begins

A job that runs goes on to its end; orangery interrupt ends it. A suspended installation is deleted as any other.
What a deploy item corrects between jobs, as drift, is corrected all the same.";

/// Has no job of an installation begin until it is resumed. A job that runs goes on.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{SUSPENDS}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Suspend {
    /// Which one.
    #[command(flatten)]
    pub root: RootInstallation,
}

/// Has jobs of an installation begin again, first the one that was asked for meanwhile.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{SUSPENDS}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Resume {
    /// Which one.
    #[command(flatten)]
    pub root: RootInstallation,
    /// Whether it waits.
    #[command(flatten)]
    pub waits: WaitFlags,
}

/// A root, by its name.
#[derive(Clone, Debug, Args)]
pub struct RootInstallation {
    /// The installation, a root
    pub name: ObjectName,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Suspend {
    /// Sets the annotation.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.root.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.root.scope.namespace(client);
        let before = self.root.read(client, &namespace, "suspend").await?;
        let message = if is_suspended(&before) {
            "it is suspended already"
        } else {
            self.root.mark(client, &namespace, json!("true")).await?;
            if before.job_finished() {
                "suspended"
            } else {
                "suspended; the job that runs goes on, and none begins after it"
            }
        };
        self.root.tell(&namespace, message, terminal)
    }
}

impl Resume {
    /// Removes the annotation.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.root.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.root.scope.namespace(client);
        let before = self.root.read(client, &namespace, "resume").await?;
        if before.annotation(annotation::SUSPEND).is_none() {
            return self.root.tell(&namespace, "it is not suspended", terminal);
        }
        let after = self.root.mark(client, &namespace, Value::Null).await?;
        if !is_requested(&after) {
            return self.root.tell(&namespace, "resumed", terminal);
        }
        let told = self.root.tell(&namespace, "resumed; a job was asked for meanwhile, and begins", terminal)?;
        if !self.waits.wait {
            return Ok(told);
        }
        let job = AwaitedJob { client, namespace: &namespace, name: &self.root.name, timeout: &self.waits.timeout };
        let is_ended = |now: &Installation| now.job_id() != before.job_id() && now.job_finished();
        job.end(is_ended, terminal).await
    }
}

impl RootInstallation {
    async fn read(
        &self,
        client: &Client,
        namespace: &Namespace,
        command: &'static str,
    ) -> Result<Installation, CommandError> {
        let api: Api<Installation> = Api::namespaced(client.clone(), namespace);
        let found = api.get(&self.name).await.map_err(|error| self.refused(namespace, error))?;
        let parent = found.parent_installation().or_else(|| found.label(label::ENCOMPASSED_BY)).map(str::to_owned);
        match parent {
            None => Ok(found),
            Some(parent) => {
                let (namespace, name) = (namespace.to_owned(), self.name.clone());
                Err(CommandError::NotRoot { command, namespace, name, parent })
            }
        }
    }

    async fn mark(&self, client: &Client, namespace: &Namespace, value: Value) -> Result<Installation, CommandError> {
        let api: Api<Installation> = Api::namespaced(client.clone(), namespace);
        let mark = Patch::Merge(json!({"metadata": {"annotations": {(annotation::SUSPEND): value}}}));
        let written = api.patch(&self.name, &PatchParams::default(), &mark).await;
        written.map_err(|error| self.refused(namespace, error))
    }

    fn refused(&self, namespace: &Namespace, error: kube::Error) -> CommandError {
        let kind = Kind::from(Installation::kind(&()).into_owned());
        CallError::of(CallSubject { kind: &kind, group: GROUP, namespace, name: &self.name }, error).into()
    }

    fn tell(&self, namespace: &Namespace, message: &str, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        terminal.line(format_args!("installation {namespace}/{}: {message}", self.name))?;
        Ok(Exit::Ok)
    }
}
