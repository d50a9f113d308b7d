//! `orangery reconcile`: starts a job at a root installation, and waits for its end if asked to.
//!
//! The request carries a token that the controller echoes in `status.lastHandledTrigger` when it starts the job, so that
//! no verdict is ever taken from a job before it (`docs/rules.md`, Conditions). The token is the resource version that
//! the request is made under: no other change of the object can have the same.

use clap::Args;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use orangery_api::{
    GROUP, annotation,
    convert::is_suspended,
    installation::Installation,
    job::Job as _,
    label,
    marks::{Marks as _, Operation},
};
use serde_json::json;

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    job_wait::{AwaitedJob, WaitFlags},
    terminal::Terminal,
};
use orangery_core::name::{JobId, Kind, Namespace, ObjectName};

const INSTALLATION: &Kind = &Kind::from_static("Installation");

const EXAMPLES: &str = "\
Examples:
  orangery reconcile hello                       ask for a job, and return
  orangery reconcile hello --wait --timeout 5m   wait for its end: exit code 0, 1 or 3

A job that runs already is not disturbed: the new one follows it.";

/// Starts a job at a root installation: everything that belongs to it is deployed anew.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Reconcile {
    /// The root installation
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

/// What was asked for, by which the job is known.
#[derive(Clone, Debug)]
pub struct Request {
    /// The job of before.
    pub before: JobId,
    /// The annotation `orangery.dev/trigger`.
    pub token: String,
}

impl Reconcile {
    /// Asks for the job, and waits.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let api: Api<Installation> = Api::namespaced(client.clone(), &namespace);
        let request = self.request(&api, &namespace).await?;
        if !self.waits.wait {
            terminal.line(format_args!("installation {namespace}/{}: reconcile requested", self.name))?;
            return Ok(Exit::Ok);
        }
        let job = AwaitedJob { client, namespace: &namespace, name: &self.name, timeout: &self.waits.timeout };
        request.wait_for(job, terminal).await
    }

    fn subject<'a>(&'a self, namespace: &'a Namespace) -> CallSubject<'a> {
        CallSubject { kind: INSTALLATION, group: GROUP, namespace, name: &self.name }
    }

    /// Sets the annotations under the version read; whoever changed the object in between is read again.
    async fn request(&self, api: &Api<Installation>, namespace: &Namespace) -> Result<Request, CommandError> {
        loop {
            let installation =
                api.get(&self.name).await.map_err(|error| CallError::of(self.subject(namespace), error))?;
            let parent = installation.parent_installation().or_else(|| installation.label(label::ENCOMPASSED_BY));
            if let Some(parent) = parent {
                let (namespace, name, parent) = (namespace.to_owned(), self.name.clone(), parent.to_owned());
                return Err(CommandError::NotRoot { command: "reconcile", namespace, name, parent });
            }
            if is_suspended(&installation) {
                return Err(CommandError::Suspended { namespace: namespace.to_owned(), name: self.name.clone() });
            }
            let token = installation.resource_version().unwrap_or_default();
            let mark = json!({"metadata": {
                "resourceVersion": token,
                "annotations": {
                    (annotation::OPERATION): Operation::Reconcile.to_string(),
                    (annotation::TRIGGER): token,
                },
            }});
            match api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&mark)).await {
                Ok(_) => return Ok(Request { before: installation.job_id().clone(), token }),
                Err(error) => match CallError::of(self.subject(namespace), error) {
                    CallError::Conflict { .. } => {}
                    refused => return Err(refused.into()),
                },
            }
        }
    }
}

impl Request {
    /// Waits for the end of the job that was asked for.
    ///
    /// # Errors
    /// [`CommandError::TimedOut`], and those of the server.
    pub async fn wait_for(&self, job: AwaitedJob<'_>, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        job.end(|installation| self.is_finished(installation), terminal).await
    }

    /// Whether the job asked for, and no other, has ended.
    fn is_finished(&self, installation: &Installation) -> bool {
        let handled = installation.status.as_ref().map_or("", |status| &status.last_handled_trigger);
        // Taken without an echo: the next job has begun already, or somebody asked after us, whose job answers us too.
        let is_standing = installation.operation() == Some(Operation::Reconcile)
            && installation.annotation(annotation::TRIGGER) == Some(&self.token);
        (handled == self.token || !is_standing) && *installation.job_id() != self.before && installation.job_finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDING: &str = "reconcile 7";

    #[track_caller]
    fn check(request: &str, status: serde_json::Value, is_finished: bool) {
        let (operation, token) = request.split_once(' ').unwrap();
        let installation: Installation = serde_json::from_value(json!({
            "metadata": {"name": "hello", "annotations": {
                (annotation::OPERATION): operation, (annotation::TRIGGER): token,
            }},
            "spec": {"blueprint": {}},
            "status": status,
        }))
        .unwrap();
        let request = Request { before: "a".into(), token: "7".to_owned() };
        assert_eq!(request.is_finished(&installation), is_finished, "{status}");
    }

    #[test]
    fn no_verdict_is_taken_from_a_job_before() {
        check(STANDING, json!({"jobID": "a", "jobIDFinished": "a", "phase": "Succeeded"}), false);
        check(STANDING, json!({"jobID": "b", "jobIDFinished": "b", "lastHandledTrigger": "5"}), false);
        check(STANDING, json!({"jobID": "b", "jobIDFinished": "a", "lastHandledTrigger": "7"}), false);
        check(STANDING, json!({"jobID": "b", "jobIDFinished": "b", "lastHandledTrigger": "7"}), true);
    }

    #[test]
    fn a_request_overtaken_by_another_ends_with_that_one() {
        check("reconcile 9", json!({"jobID": "a", "jobIDFinished": "a"}), false);
        check("reconcile 9", json!({"jobID": "b", "jobIDFinished": "a", "lastHandledTrigger": "9"}), false);
        check("reconcile 9", json!({"jobID": "b", "jobIDFinished": "b", "lastHandledTrigger": "9"}), true);
    }

    #[test]
    fn a_request_taken_without_an_echo_ends_with_the_next_job() {
        check("done 7", json!({"jobID": "c", "jobIDFinished": "a"}), false);
        check("done 7", json!({"jobID": "c", "jobIDFinished": "c"}), true);
    }
}
