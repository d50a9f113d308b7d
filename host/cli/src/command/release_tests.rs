//! `orangery test`: the tests of a release, such as the hooks `test` of Helm.
//!
//! What they are is asked of the deployers (`wit/deployer/0.1.0/tests.wit`), which read it from the cluster; so they are run
//! without the chart, and of releases that Helm has installed as well.

mod accepted;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams, Preconditions, TypeMeta},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use orangery_api::annotation::TEST_OF;
use orangery_cluster::in_the_name_of;
use orangery_core::name::{Namespace, ObjectName};
use orangery_plugin::{TestCase, TestSubject};
use orangery_proposal::{
    deployer::Reads,
    health::{WorkloadState, run},
};

use self::accepted::{AcceptedTest, TestBounds};
use crate::{
    call::CallError,
    command_error::CommandError,
    components,
    connection::{Connection, NamespaceScope, reads::cluster_reads},
    exit::Exit,
    terminal::Terminal,
    timeout::{Timeout, within},
};

const EXAMPLES: &str = "\
Examples:
  orangery test web                     the tests of the release web, one after the other
  orangery test web -n shop --timeout 1m

The cluster is the one that the release is installed on: that of the item's Target. Jobs and Pods are waited for to their
end. Before a test runs, what is left of an earlier run is deleted; afterwards it stays, unless its chart says otherwise
(helm.sh/hook-delete-policy). The first test that fails ends the command, with exit code 1.

Whoever may write Secrets in the namespace decides what the tests are, and they are created with your rights. So all are
looked at before the first one is: one that is outside of the namespace, belongs to no namespace, or gives rights, ends the
command. With --service-account the API server holds them to what that account of the namespace may do.";

/// The annotation of Helm that says when a hook runs.
const HOOK: &str = "helm.sh/hook";

/// Runs the hooks `test` of a release, as `helm test` does.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Test {
    /// The release: `name` in the configuration of the deploy item
    pub release: String,
    /// How long all of them may take, such as 90s or 1h30m, or none
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub timeout: Timeout,
    /// Create and delete as this service account of the namespace instead of with your own rights, which have to include
    /// that (impersonate)
    #[arg(long, value_name = "NAME", value_parser = str::parse::<ObjectName>)]
    pub service_account: Option<ObjectName>,
    /// Also objects outside of the namespace, objects of no namespace, roles and bindings: what the release says is trusted
    #[arg(long)]
    pub allow_any_object: bool,
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
        let tests = self.run(client, &namespace, cases, terminal);
        let (name, timeout) = (self.release.clone(), self.timeout.clone());
        within(&self.timeout, tests).await.unwrap_or(Err(CommandError::Untested {
            namespace: namespace.clone(),
            name: name.into(),
            timeout,
        }))
    }

    /// The tests that the first deployer finds which knows the release.
    async fn cases(&self, client: &Client, namespace: &Namespace) -> Result<Vec<TestCase>, CommandError> {
        let plugins = components::of_command(self.plugins.as_deref())?;
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

    /// Runs tests one after the other, once all are accepted.
    async fn run(
        &self,
        client: &Client,
        namespace: &Namespace,
        cases: Vec<TestCase>,
        terminal: &mut Terminal,
    ) -> Result<Exit, CommandError> {
        let client = self.acting(client, namespace)?;
        let bounds = if self.allow_any_object { TestBounds::Open } else { TestBounds::Namespace };
        let mut accepted = Vec::with_capacity(cases.len());
        for case in cases {
            accepted.push(AcceptedTest::of(&client, (namespace, bounds), case).await?);
        }
        for test in accepted {
            let failed = self.test(test, terminal).await?;
            if failed {
                return Ok(Exit::Failed);
            }
        }
        Ok(Exit::Ok)
    }

    /// The client that creates and deletes.
    fn acting(&self, client: &Client, namespace: &Namespace) -> Result<Client, CommandError> {
        let Some(account) = &self.service_account else { return Ok(client.clone()) };
        let user = format!("system:serviceaccount:{namespace}:{account}");
        in_the_name_of(&user, client).map_err(|_invalid| CommandError::NotAnAccount { name: account.clone() })
    }

    /// Runs one test. Answers whether it failed.
    async fn test(&self, test: AcceptedTest, terminal: &mut Terminal) -> Result<bool, CommandError> {
        let AcceptedTest { source, object, types, api, place, deletions } = &test;
        let refused = |error| test.refused(error);
        let name = object.name_any();
        if deletions.before
            && let Some(left) = api.get_opt(&name).await.map_err(refused)?
        {
            if !is_left_by_test(&left, &self.release) {
                return Err(CommandError::NotATest { place: place.clone(), release: self.release.as_str().into() });
            }
            delete(api, &left).await.map_err(refused)?;
        }
        let mut marked = object.clone();
        marked.annotations_mut().insert(TEST_OF.to_owned(), self.release.clone());
        let created = api.create(&PostParams::default(), &marked).await.map_err(refused)?;
        let outcome = settled(api, &name, types).await?;
        let failed = match &outcome {
            WorkloadState::Failed(why) => {
                terminal.error(format_args!("{place} ({source}) has failed: {why}"));
                true
            }
            WorkloadState::Succeeded | WorkloadState::Unfinished => {
                terminal.line(format_args!("{place}: succeeded"))?;
                false
            }
        };
        let goes = if failed { deletions.after_failure } else { deletions.after_success };
        if goes {
            delete(api, &created).await.map_err(refused)?;
        }
        Ok(failed)
    }
}

/// Whether an object is a test of this release: this command has made it for the release, or Helm as the hook `test` of one.
fn is_left_by_test(object: &DynamicObject, release: &str) -> bool {
    let annotation = |key: &str| object.annotations().get(key).map(String::as_str);
    match annotation(TEST_OF) {
        Some(of) => of == release,
        None => annotation(HOOK)
            .is_some_and(|events| events.split(',').any(|event| matches!(event.trim(), "test" | "test-success"))),
    }
}

/// Deletes this very object, and waits until it is gone.
async fn delete(api: &Api<DynamicObject>, object: &DynamicObject) -> kube::Result<()> {
    let uid = object.uid();
    let only = Preconditions { uid: uid.clone(), resource_version: None };
    let name = object.name_any();
    match api.delete(&name, &DeleteParams::background().preconditions(only)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        answer => answer.map(drop)?,
    }
    let gone = await_condition(api.clone(), &name, is_deleted(&uid.unwrap_or_default())).await;
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
