//! `orangery test`: the hooks `test` of a release, as `helm test` runs them.
//!
//! What they are stands in the release itself, in the Secret of its revision that is deployed; so they are run without the
//! chart, and of releases that Helm has installed as well.

use clap::Args;
use data_encoding::BASE64;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, PostParams, TypeMeta},
    core::GroupVersionKind,
    discovery::{Scope as Reach, pinned_kind},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use orangery_core::yaml;
use orangery_proposal::health::{WorkloadState, run};
use serde::Deserialize;

use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
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
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// A release, as far as its tests are concerned.
#[derive(Deserialize)]
struct Release {
    #[serde(default)]
    hooks: Vec<Hook>,
}

/// A hook of a release, as Helm stores it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Hook {
    name: String,
    kind: String,
    path: String,
    manifest: String,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    weight: i64,
    #[serde(default)]
    delete_policies: Vec<String>,
}

/// The longest release, unpacked.
const LONGEST: u64 = 64 << 20;

impl Test {
    /// Runs the tests, and tells of each.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client).to_owned();
        let hooks = self.hooks(client, &namespace).await?;
        if hooks.is_empty() {
            terminal.line(format_args!("release {namespace}/{}: it has no tests", self.release))?;
            return Ok(Exit::Ok);
        }
        let tests = async {
            for hook in &hooks {
                let failed = self.test(client, &namespace, hook, terminal).await?;
                if failed {
                    return Ok(Exit::Failed);
                }
            }
            Ok(Exit::Ok)
        };
        let (name, timeout) = (self.release.clone(), self.timeout.clone());
        within(&self.timeout, tests).await.unwrap_or(Err(CommandError::Untested {
            namespace: namespace.clone(),
            name,
            timeout,
        }))
    }

    /// The tests of the revision that is deployed, in the order in which they run.
    async fn hooks(&self, client: &Client, namespace: &str) -> Result<Vec<Hook>, CommandError> {
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let deployed = ListParams::default().labels(&format!("owner=helm,name={},status=deployed", self.release));
        let subject = CallSubject { kind: "Secret", group: "", namespace, name: "" };
        let found = api.list(&deployed).await.map_err(|error| CallError::of(subject, error))?;
        let number = |secret: &Secret| secret.labels().get("version").and_then(|text| text.parse::<u64>().ok());
        let newest = found
            .items
            .into_iter()
            .max_by_key(number)
            .ok_or_else(|| CommandError::NoRelease { namespace: namespace.to_owned(), name: self.release.clone() })?;
        let packed = newest.data.as_ref().and_then(|data| data.get("release")).map_or(&[][..], |data| &data.0);
        tests(packed)
            .map_err(|why| CommandError::NotARelease { secret: format!("{namespace}/{}", newest.name_any()), why })
    }

    /// Runs one test. Answers whether it failed.
    async fn test(
        &self,
        client: &Client,
        namespace: &str,
        hook: &Hook,
        terminal: &mut Terminal,
    ) -> Result<bool, CommandError> {
        let unusable = |why: String| CommandError::NotARelease { secret: hook.path.clone(), why };
        let read =
            yaml::decode(&hook.manifest).map_err(|error| unusable(format!("its manifest is no YAML: {error}")))?;
        let object: DynamicObject =
            serde_json::from_value(read).map_err(|error| unusable(format!("its manifest is no object: {error}")))?;
        let types = object.types.clone().unwrap_or_default();
        let subject = |name| CallSubject { kind: &hook.kind, group: types.api_version.as_str(), namespace, name };
        let refused = |error| CommandError::from(CallError::of(subject(&hook.name), error));
        let api = api(client, namespace, &object, &types).await.map_err(refused)?;
        let policies = &hook.delete_policies;
        let has = |policy: &str| policies.iter().any(|one| one == policy);
        if policies.is_empty() || has("before-hook-creation") {
            delete(&api, &hook.name).await.map_err(refused)?;
        }
        api.create(&PostParams::default(), &object).await.map_err(refused)?;
        let outcome = settled(&api, &hook.name, &types).await?;
        let failed = match &outcome {
            WorkloadState::Failed(why) => {
                terminal
                    .error(format_args!("{} {namespace}/{} ({}) has failed: {why}", hook.kind, hook.name, hook.path));
                true
            }
            WorkloadState::Succeeded | WorkloadState::Unfinished => {
                terminal.line(format_args!("{} {namespace}/{}: succeeded", hook.kind, hook.name))?;
                false
            }
        };
        if has(if failed { "hook-failed" } else { "hook-succeeded" }) {
            delete(&api, &hook.name).await.map_err(refused)?;
        }
        Ok(failed)
    }
}

/// The tests in a release as Helm packs it: JSON, gzip, base64. The error is the end of a sentence about it.
fn tests(packed: &[u8]) -> Result<Vec<Hook>, String> {
    let bytes = BASE64.decode(packed).map_err(|error| format!("it is no base64: {error}"))?;
    let unpacked = std::io::Read::take(GzDecoder::new(bytes.as_slice()), LONGEST);
    let release: Release =
        serde_json::from_reader(unpacked).map_err(|error| format!("it cannot be unpacked: {error}"))?;
    let mut hooks = release.hooks;
    // `test-success` is what Helm 2 called them.
    hooks.retain(|hook| hook.events.iter().any(|event| event == "test" || event == "test-success"));
    hooks.sort_by(|one, other| (one.weight, &one.name).cmp(&(other.weight, &other.name)));
    Ok(hooks)
}

async fn api(
    client: &Client,
    namespace: &str,
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
    let judged = move |object: &DynamicObject| {
        let object = DynamicObject { types: Some(of.clone()), ..object.clone() };
        run(&serde_json::to_value(object).unwrap_or_default())
    };
    let is_run = matches!((types.api_version.as_str(), types.kind.as_str()), ("batch/v1", "Job") | ("v1", "Pod"));
    if !is_run {
        return Ok(WorkloadState::Succeeded);
    }
    let ended =
        |object: Option<&DynamicObject>| object.is_some_and(|object| judged(object) != WorkloadState::Unfinished);
    let object = await_condition(api.clone(), name, ended).await;
    let object = object.map_err(|error| CallError::Unreachable { cause: error.to_string() })?;
    Ok(object.as_ref().map_or(WorkloadState::Unfinished, judged))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::{Value, json};

    use super::*;

    fn packed(release: &Value) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(release.to_string().as_bytes()).unwrap();
        BASE64.encode(&packed.finish().unwrap()).into_bytes()
    }

    #[test]
    fn tests_run_by_weight_and_name() {
        let hook = |name: &str, events: Value, weight: i64| json!({"name": name, "kind": "Job", "path": "p", "manifest": "", "events": events, "weight": weight});
        let release = json!({"name": "web", "hooks": [
            hook("b", json!(["test"]), 0), hook("c", json!(["test-success"]), -5), hook("a", json!(["test", "pre-install"]), 0),
            hook("d", json!(["pre-install"]), 0), {"name": "e", "kind": "Job", "path": "p", "manifest": ""},
        ]});
        let names: Vec<_> = tests(&packed(&release)).unwrap().into_iter().map(|hook| hook.name).collect();
        assert_eq!(names, ["c", "a", "b"]);
        assert_eq!(tests(&packed(&json!({"name": "web"}))), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_release_is_told() {
        assert!(tests(b"%").unwrap_err().starts_with("it is no base64: "));
        assert!(tests(BASE64.encode(b"text").as_bytes()).unwrap_err().starts_with("it cannot be unpacked: "));
    }
}
