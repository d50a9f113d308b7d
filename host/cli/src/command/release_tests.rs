//! `orangery test`: the tests of a release, such as the hooks `test` of Helm.
//!
//! What they are is asked of the deployers (`wit/deployer/tests.wit`), which read it from the cluster; so they are run
//! without the chart, and of releases that Helm has installed as well.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams, TypeMeta},
    core::GroupVersionKind,
    discovery::{Scope as Reach, pinned_kind},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use orangery_core::name::{Namespace, ObjectName};
use orangery_plugin::{TestCase, TestSubject};
use orangery_proposal::{
    deployer::Reads,
    health::{WorkloadState, run},
};

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    components::{self, Bundled},
    connection::{Connection, NamespaceScope, reads::cluster_reads},
    exit::Exit,
    terminal::{self, Terminal},
    timeout::{Timeout, within},
};

const EXAMPLES: &str = "\
Examples:
  orangery test web                     the tests of the release web, one after the other
  orangery test web -n shop --timeout 1m

The cluster is the one that the release is installed on: that of the item's Target. Jobs and Pods are waited for to their
end. Before a test runs, what is left of an earlier run is deleted; afterwards it stays, unless its chart says otherwise
(helm.sh/hook-delete-policy). The first test that fails ends the command, with exit code 1.";

/// Runs the hooks `test` of a release, as `helm test` does.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Test {
    /// The release: `name` in the configuration of the deploy item
    pub release: String,
    /// How long all of them may take, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub timeout: Timeout,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Test {
    /// Runs the tests, and tells of each.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let cases = self.cases(client, &namespace).await?;
        if cases.is_empty() {
            terminal.line(format_args!("release {namespace}/{}: it has no tests", self.release))?;
            return Ok(Exit::Ok);
        }
        let tests = async {
            for case in cases {
                let failed = self.test(client, &namespace, case, terminal).await?;
                if failed {
                    return Ok(Exit::Failed);
                }
            }
            Ok(Exit::Ok)
        };
        let (name, timeout) = (self.release.clone(), self.timeout.clone());
        within(&self.timeout, tests).await.unwrap_or(Err(CommandError::Untested {
            namespace: namespace.clone(),
            name: name.into(),
            timeout,
        }))
    }

    /// The tests that the first deployer finds which knows the release.
    async fn cases(&self, client: &Client, namespace: &Namespace) -> Result<Vec<TestCase>, CommandError> {
        let plugins = components::load(self.plugins.as_deref(), Bundled::WithMock, terminal::notice)?;
        let subject = TestSubject { namespace: namespace.to_owned(), name: self.release.clone() };
        let reads = Reads::of_clusters(Arc::new(cluster_reads(client.clone())));
        for deployer in plugins.deployers() {
            let found = deployer.find_tests(&subject, reads.clone()).await;
            if let Some(cases) = found.map_err(CommandError::NoTests)? {
                return Ok(cases);
            }
        }
        Err(CommandError::NoRelease { namespace: subject.namespace, name: subject.name.into() })
    }

    /// Runs one test. Answers whether it failed.
    async fn test(
        &self,
        client: &Client,
        namespace: &Namespace,
        case: TestCase,
        terminal: &mut Terminal,
    ) -> Result<bool, CommandError> {
        let TestCase { source, object, delete_before, delete_after_success, delete_after_failure } = case;
        let unusable = |error| CommandError::NotAnObject { file: source.clone(), cause: error };
        let object: DynamicObject = serde_json::from_value(object).map_err(unusable)?;
        let types = object.types.clone().unwrap_or_default();
        let (name, kind) = (object.name_any(), types.kind.as_str());
        let subject = CallSubject {
            kind: &kind.into(),
            group: types.api_version.as_str(),
            namespace,
            name: &ObjectName::from(&name),
        };
        let refused = |error| CommandError::from(CallError::of(subject, error));
        let api = api(client, namespace, &object, &types).await.map_err(refused)?;
        if delete_before {
            delete(&api, &name).await.map_err(refused)?;
        }
        api.create(&PostParams::default(), &object).await.map_err(refused)?;
        let outcome = settled(&api, &name, &types).await?;
        let failed = match &outcome {
            WorkloadState::Failed(why) => {
                terminal.error(format_args!("{kind} {namespace}/{name} ({source}) has failed: {why}"));
                true
            }
            WorkloadState::Succeeded | WorkloadState::Unfinished => {
                terminal.line(format_args!("{kind} {namespace}/{name}: succeeded"))?;
                false
            }
        };
        let goes = if failed { delete_after_failure } else { delete_after_success };
        if goes {
            delete(&api, &name).await.map_err(refused)?;
        }
        Ok(failed)
    }
}

async fn api(
    client: &Client,
    namespace: &Namespace,
    object: &DynamicObject,
    types: &TypeMeta,
) -> kube::Result<Api<DynamicObject>> {
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let (kind, capabilities) = pinned_kind(client, &GroupVersionKind::gvk(group, version, &types.kind)).await?;
    Ok(match capabilities.scope {
        Reach::Cluster => Api::all_with(client.clone(), &kind),
        Reach::Namespaced => {
            let own = object.namespace();
            Api::namespaced_with(client.clone(), own.as_deref().unwrap_or(namespace), &kind)
        }
    })
}

/// Deletes what is there, and waits until it is gone.
async fn delete(api: &Api<DynamicObject>, name: &str) -> kube::Result<()> {
    let Some(left) = api.get_opt(name).await? else { return Ok(()) };
    api.delete(name, &DeleteParams::background()).await.map(drop)?;
    let gone = await_condition(api.clone(), name, is_deleted(&left.uid().unwrap_or_default())).await;
    gone.map(drop).map_err(|error| kube::Error::Service(Box::new(error)))
}

/// How a test ended. What is neither a Job nor a Pod is done when it is there.
async fn settled(api: &Api<DynamicObject>, name: &str, types: &TypeMeta) -> Result<WorkloadState, CommandError> {
    let of = types.clone();
    // What a watch answers does not say its kind.
    let classified = move |object: &DynamicObject| {
        let object = DynamicObject { types: Some(of.clone()), ..object.clone() };
        run(&serde_json::to_value(object).unwrap_or_default())
    };
    let is_run = matches!((types.api_version.as_str(), types.kind.as_str()), ("batch/v1", "Job") | ("v1", "Pod"));
    if !is_run {
        return Ok(WorkloadState::Succeeded);
    }
    let ended =
        |object: Option<&DynamicObject>| object.is_some_and(|object| classified(object) != WorkloadState::Unfinished);
    let object = await_condition(api.clone(), name, ended).await;
    let object = object.map_err(|error| CallError::Unreachable { cause: error.to_string() })?;
    Ok(object.as_ref().map_or(WorkloadState::Unfinished, classified))
}
