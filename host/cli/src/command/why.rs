//! `orangery why`: what an object waits for, or why it failed.

mod users;

use std::str::FromStr;

use clap::Args;
use kube::Client;
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use serde::Serialize;

pub use self::users::UsedKind;
use crate::{
    call::CallError,
    command::inspect,
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    form::OutputFormat,
    operators,
    terminal::Terminal,
    tree::{CauseChain as Chain, NodeKind, Tree},
};

const HELP: &str = "\
Examples:
  orangery why hello                          an installation
  orangery why deployitem/hello-item-x7f      a deploy item
  orangery why target/cluster                 what uses it, and keeps it from going
  orangery why exec/hello -n demo -o json | jq -r '.chain[-1].name'

Each line is there because of the next. The last one is where the reason lies: with its error in full, and how to mend
it where that is known.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion     orangery.dev/v1alpha1
  kind           Why
  chain          from the object to the one where the reason lies, a list of
                 {kind, namespace, name, title, phase, standing, since, says, others}
  error          of the last one: {operation, reason, message, codes, hint}
  fix            one sentence
of a target, context or secret instead of these three:
  object         {kind, namespace, name, deleting}
  usedBy         a list of {kind, name}

The exit code is 0 whatever the reason is.";

/// Shows what an object waits for, or why it failed, as a chain to where the reason lies; of a Target, Context or Secret
/// what uses it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Why {
    /// The object, such as installation/hello, execution/hello, deployitem/hello-item-x7f, target/cluster, context/default
    /// or secret/kubeconfig; a name alone is that of an installation
    #[arg(value_name = "KIND/NAME")]
    pub subject: ObjectArgument,
    /// How it is written [default: lines]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// An object, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectArgument {
    /// Its kind.
    pub kind: SubjectKind,
    /// Its name.
    pub name: ObjectName,
}

/// What can be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// An object of a tree.
    Node(NodeKind),
    /// An object that others use.
    Used(UsedKind),
}

/// A word that names no kind of them.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is no kind that can be asked about; write installation/NAME, execution/NAME, deployitem/NAME, target/NAME, \
     context/NAME or secret/NAME"
)]
pub struct NoKind(String);

impl FromStr for ObjectArgument {
    type Err = NoKind;

    fn from_str(text: &str) -> Result<Self, NoKind> {
        let (kind, name) = text.split_once('/').unwrap_or(("installation", text));
        let kind = match kind.to_lowercase().as_str() {
            "installation" | "installations" | "inst" => SubjectKind::Node(NodeKind::Installation),
            "execution" | "executions" | "exec" => SubjectKind::Node(NodeKind::Execution),
            "deployitem" | "deployitems" | "di" => SubjectKind::Node(NodeKind::DeployItem),
            "target" | "targets" | "tgt" | "tg" => SubjectKind::Used(UsedKind::Target),
            "context" | "contexts" | "ctx" => SubjectKind::Used(UsedKind::Context),
            "secret" | "secrets" => SubjectKind::Used(UsedKind::Secret),
            _ => return Err(NoKind(kind.to_owned())),
        };
        Ok(Self { kind, name: name.into() })
    }
}

/// The output of `-o json` and `-o yaml`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WhyOutput<'a> {
    api_version: ApiVersion,
    kind: Kind,
    #[serde(flatten)]
    why: &'a Chain<'a>,
}

impl Why {
    /// Reads the objects and shows the chain.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let ObjectArgument { kind, name } = &self.subject;
        let kind = match kind {
            SubjectKind::Node(kind) => kind,
            SubjectKind::Used(kind) => {
                return users::show((*kind, &namespace, name), client, self.output, terminal).await;
            }
        };
        let tree = Tree::of(&inspect::read(client, &namespace).await?);
        let why = chain(client, &tree, (*kind, &namespace, name)).await.ok_or_else(|| CallError::NotFound {
            kind: kind.as_str().to_lowercase().into(),
            namespace: namespace.clone(),
            name: name.clone(),
        })?;
        if let Some(form) = self.output {
            form.write(
                &WhyOutput {
                    api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
                    kind: Kind::from_static("Why"),
                    why: &why,
                },
                terminal,
            )?;
        } else {
            for line in why.lines() {
                terminal.line(line)?;
            }
        }
        Ok(Exit::Ok)
    }
}

/// Why an object of a tree stands as it does, with what is known of operators where the objects say nothing; `None` where there is
/// no such object.
pub(crate) async fn chain<'a>(
    client: &Client,
    tree: &'a Tree,
    (kind, namespace, name): (NodeKind, &Namespace, &ObjectName),
) -> Option<Chain<'a>> {
    let mut why = tree.why(kind, namespace, name)?;
    if why.is_unexplained() {
        // A user that may not list Leases is told what the objects tell.
        let leases = operators::leases(client).await.unwrap_or_default();
        if let Some(known) = operators::absence(&leases) {
            why.conclude(known);
        }
    }
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let read = |text: &str| text.parse::<ObjectArgument>().map(|subject| (subject.kind, subject.name)).ok();
        let node = SubjectKind::Node;
        assert_eq!(read("hello"), Some((node(NodeKind::Installation), "hello".into())));
        assert_eq!(read("exec/hello"), Some((node(NodeKind::Execution), "hello".into())));
        assert_eq!(read("DeployItem/x"), Some((node(NodeKind::DeployItem), "x".into())));
        assert_eq!(read("tg/x"), Some((SubjectKind::Used(UsedKind::Target), "x".into())));
        assert_eq!(read("pod/x"), None);
    }
}
