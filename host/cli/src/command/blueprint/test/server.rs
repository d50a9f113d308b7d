//! `orangery blueprint test --server`: the cases, carried out by the operator of a cluster.

use std::{collections::BTreeMap, io, path::PathBuf};

use clap::{Args, value_parser};
use futures::{StreamExt as _, stream};
use orangery_api::installation::{BlueprintSource, InlineBlueprint};
use orangery_blueprint::BlueprintReading;
use orangery_core::name::ObjectName;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{
    blueprint_cases::{BlueprintCaseReport, ServerBlueprint},
    blueprints::FolderFiles,
    command::render::{MOST_INLINE, OfflineVersionFlags},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    terminal::notice,
    timeout::Timeout,
};

/// A server that carries cases out.
#[derive(Clone, Debug, Args)]
pub struct ServerFlags {
    /// Have the operator of a cluster carry the cases out, with objects of generated names, which are deleted afterwards
    #[arg(long, conflicts_with_all = ["update", "plugins"], help_heading = "Server")]
    pub server: bool,
    /// Target of the namespace that is imported in place of what cases have; may be given several times
    #[arg(
        long = "target",
        value_name = "IMPORT=NAME",
        value_parser = target,
        requires = "server",
        help_heading = "Server"
    )]
    pub targets: Vec<(String, ObjectName)>,
    /// How long a case may take, and then its deletion, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "5m", requires = "server", help_heading = "Server")]
    pub timeout: Timeout,
    /// How many cases are under way at once
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "4",
        value_parser = value_parser!(u8).range(1..=32),
        requires = "server",
        help_heading = "Server"
    )]
    pub parallel: u8,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

fn target(text: &str) -> Result<(String, ObjectName), &'static str> {
    match text.split_once('=') {
        Some((import, name)) if !import.is_empty() && !name.is_empty() => Ok((import.to_owned(), name.into())),
        _ => Err("write it as IMPORT=NAME, with the import of the blueprint and the name of a Target"),
    }
}

impl ServerFlags {
    /// Carries these cases of a folder's blueprint out, and tells of each in their order.
    ///
    /// # Errors
    /// No Installation can be made of the blueprint, there is no connection, or the command is stopped twice.
    pub(super) async fn run(
        &self,
        (files, versions): (&FolderFiles, &OfflineVersionFlags),
        cases: &[PathBuf],
    ) -> Result<Vec<BlueprintCaseReport>, CommandError> {
        let filesystem = files.tree(MOST_INLINE).ok_or(CommandError::LargeBlueprint)?;
        let spec = versions.spec(BlueprintSource { reference: None, inline: Some(InlineBlueprint { filesystem }) })?;
        let targets: BTreeMap<String, ObjectName> = self.targets.iter().cloned().collect();
        let client = self.connection.client().await?;
        let namespace = self.scope.namespace(&client);
        let (stop, stopped) = watch::channel(false);
        // What is wrong with it the operator says.
        let exports = BlueprintReading::of(files).blueprint.exports;
        let timeout = self.timeout.clone();
        let blueprint =
            ServerBlueprint { client: &client, namespace: namespace.clone(), spec, exports, targets, timeout, stopped };
        let reports = stream::iter(cases).map(|case| blueprint.run(case)).buffered(self.parallel.into());
        tokio::select! {
            reports = reports.collect() => Ok(reports),
            ended = stopped_twice(&stop) => Err(match ended {
                Ok(()) => CommandError::LeftOnServer { namespace },
                Err(error) => CommandError::EventLoop(error),
            }),
        }
    }
}

/// Tells the cases that the process is to stop, and ends when it is to stop at once.
async fn stopped_twice(stop: &watch::Sender<bool>) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut asked = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    asked().await;
    notice("what the cases have made is deleted now; to leave it and end at once, stop once more");
    stop.send_replace(true);
    asked().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_248_a_target_is_given_by_the_import_that_it_is_for() {
        assert_eq!(target("cluster=a=b"), Ok(("cluster".to_owned(), "a=b".into())));
        for text in ["cluster", "=a", "cluster="] {
            assert!(target(text).unwrap_err().starts_with("write it as IMPORT=NAME"), "{text}");
        }
    }
}
