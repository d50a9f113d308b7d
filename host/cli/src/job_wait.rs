//! Waiting for the end of a job that a command has asked for, with the tree as it moves (C-405).

use std::{future, io, time::Duration};

use clap::Args;
use kube::{Api, Client};
use orangery_api::{GROUP, installation::Installation, job::Job as _};
use orangery_core::name::{Kind, Namespace, ObjectName};
use tokio::time::{Instant, sleep};

use crate::{
    call::CallSubject,
    command::inspect,
    command_error::CommandError,
    exit::Exit,
    terminal::Terminal,
    timeout::{Timeout, within},
    tree::{Tree, live::Live},
    tree_watch::TreeWatch,
    watched,
};

const INSTALLATION: &Kind = &Kind::from_static("Installation");

/// The least time between two drawings: faster than an eye follows only costs.
const PACE: Duration = Duration::from_millis(100);

/// Whether a command waits for what it asks for, and how long: the same options wherever a job begins or goes on.
#[derive(Clone, Debug, Args)]
pub struct WaitFlags {
    /// Wait until the job has ended, and show its tree on a terminal
    #[arg(long)]
    pub wait: bool,
    /// With --wait: how long, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "wait")]
    pub timeout: Timeout,
}

/// How long the tree may take to be read when the job has ended: how it ended is known, and is told without it.
const LONGEST_READ: Duration = Duration::from_secs(2);

/// The installation whose job is waited for.
#[derive(Clone, Copy)]
pub struct AwaitedJob<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// The namespace.
    pub namespace: &'a Namespace,
    /// The installation.
    pub name: &'a ObjectName,
    /// How long is waited.
    pub timeout: &'a Timeout,
}

impl AwaitedJob<'_> {
    /// Waits until `is_ended` holds of the installation, or it is gone, then tells how it ended: the exit code is that of the job.
    ///
    /// # Errors
    /// [`CommandError::TimedOut`], and those of the server.
    pub async fn end(
        &self,
        is_ended: impl Fn(&Installation) -> bool,
        terminal: &mut Terminal,
    ) -> Result<Exit, CommandError> {
        let AwaitedJob { namespace, name, .. } = self;
        let Some(installation) = self.wait(is_ended, terminal).await? else {
            terminal.line(format_args!("installation {namespace}/{name}: deleted"))?;
            return Ok(Exit::Ok);
        };
        terminal.line(format_args!("installation {namespace}/{name}: {}", installation.phase()))?;
        if installation.phase() == "Succeeded" {
            return Ok(Exit::Ok);
        }
        for cause in self.last_tree().await.unwrap_or_default().causes() {
            terminal.error(cause.text());
        }
        Ok(Exit::Failed)
    }

    /// The tree at the end; `None` where it cannot be read, or not soon.
    async fn last_tree(&self) -> Option<Tree> {
        let objects = tokio::time::timeout(LONGEST_READ, inspect::read(self.client, self.namespace)).await;
        Some(Tree::of(&objects.ok()?.ok()?).of_installation(self.namespace, self.name).unwrap_or_default())
    }

    /// Waits until `is_ended` holds of the installation: as it is then, or `None` where it is gone. Meanwhile its tree is drawn on a
    /// terminal.
    ///
    /// # Errors
    /// [`CommandError::TimedOut`], and those of the server.
    pub async fn wait(
        &self,
        is_ended: impl Fn(&Installation) -> bool,
        terminal: &mut Terminal,
    ) -> Result<Option<Box<Installation>>, CommandError> {
        let AwaitedJob { client, namespace, name, timeout } = *self;
        let api: Api<Installation> = Api::namespaced(client.clone(), namespace);
        let subject = CallSubject { kind: INSTALLATION, group: GROUP, namespace, name };
        let mut phase = String::new();
        let seen = |seen: Option<Installation>| match seen {
            None => Some(None),
            Some(installation) if is_ended(&installation) => Some(Some(Box::new(installation))),
            Some(installation) => {
                installation.phase().clone_into(&mut phase);
                None
            }
        };
        let ended = within(timeout, watched::until(&api, subject, seen));
        let waited = match terminal.size() {
            None => ended.await,
            Some(_) => {
                let mut drawing = JobDrawing::new(*self);
                let waited = tokio::select! {
                    ended = ended => ended,
                    written = drawing.draw(terminal) => return Err(written.into()),
                };
                drawing.finish(terminal).await;
                waited
            }
        };
        match waited {
            Some(end) => Ok(end?),
            None => {
                let (namespace, name, timeout) = (namespace.clone(), name.clone(), timeout.clone());
                Err(CommandError::TimedOut { namespace, name, timeout, phase })
            }
        }
    }
}

/// A tree that is drawn while somebody waits.
struct JobDrawing<'a> {
    of: AwaitedJob<'a>,
    live: Live,
    began: Instant,
}

impl<'a> JobDrawing<'a> {
    fn new(of: AwaitedJob<'a>) -> Self {
        Self { of, live: Live::new(of.namespace.clone()), began: Instant::now() }
    }

    /// Draws until it is dropped. Whoever may not watch the tree waits without it: what is waited for is one object alone.
    async fn draw(&mut self, terminal: &mut Terminal) -> io::Error {
        let mut watch = TreeWatch::of(self.of.client, self.of.namespace);
        while watch.changed().await.is_ok() {
            let tree = Tree::of(&watch.objects()).of_installation(self.of.namespace, self.of.name);
            if let Err(error) = self.live.show(terminal, tree.unwrap_or_default(), self.began.elapsed()) {
                return error;
            }
            sleep(PACE).await;
        }
        future::pending().await
    }

    /// Draws it as it is at the end, where that can be read. The verdict is known, and waits for no drawing.
    async fn finish(mut self, terminal: &mut Terminal) {
        if let Some(tree) = self.of.last_tree().await {
            let _not_drawn = self.live.finish(terminal, tree, self.began.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        command::tests::server,
        terminal::{Appearance, Size, tests::display},
    };

    #[tokio::test]
    async fn c_405_a_verdict_is_told_whether_the_tree_can_be_read_or_not() {
        let (client, sent) = server(|line| {
            let installation = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
                "metadata": {"name": "hello", "namespace": "default", "resourceVersion": "7"}, "spec": {"blueprint": {}},
                "status": {"phase": "Failed", "jobID": "j", "jobIDFinished": "j"}});
            match line.contains("fieldSelector") {
                true => (
                    200,
                    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "InstallationList",
                    "metadata": {"resourceVersion": "7"}, "items": [installation]}),
                ),
                false => {
                    (500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": "down", "reason": "x"}))
                }
            }
        });
        let (namespace, name) = ("default".into(), "hello".into());
        let timeout = "10s".parse().unwrap();
        let job = AwaitedJob { client: &client, namespace: &namespace, name: &name, timeout: &timeout };
        for size in [|| None, || Some(Size { columns: std::num::NonZeroUsize::MIN, rows: std::num::NonZeroUsize::MIN })]
        {
            let (mut terminal, out, _) = display(Appearance { size, ..Appearance::PLAIN });
            let end = job.end(|_| true, &mut terminal).await;
            assert_eq!((end.unwrap(), out.text().as_str()), (Exit::Failed, "installation default/hello: Failed\n"));
        }
        let is_tree = |line: &String| !line.contains("fieldSelector") && line.contains("/installations");
        assert!(sent.lock().unwrap().iter().any(is_tree), "the tree was never asked for");
    }
}
