//! The Helm deployer in the sandbox, and the same code as a native program.

use std::{
    collections::BTreeMap,
    env, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use data_encoding::BASE64;
use flate2::read::GzDecoder;
use orangery_blueprint::plugins::Plugins as _;
use orangery_plugin::{PluginSet, Registered, Sandbox, SandboxConfig, WorkerCommand};
use orangery_proposal::{Item, Proposal, deployer::Reads};
use serde_json::{Value, json};

use crate::stock::Told;

const ITEM_TYPE: &str = "landscaper.gardener.cloud/helm";

/// The component.
pub(crate) struct Component(PluginSet);

/// What it has rendered, as the release says it.
pub(crate) struct Rendered {
    manifest: String,
    rendered_hooks: Vec<(String, String)>,
    /// How many there are.
    pub(crate) objects: usize,
    /// How many there are.
    pub(crate) hooks: usize,
}

impl Rendered {
    /// As `helm template` prints it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.manifest.trim());
        for (path, manifest) in &self.rendered_hooks {
            text += &format!("---\n# Source: {path}\n{manifest}\n");
        }
        text
    }
}

impl Component {
    /// Loads the one that ships, which is compiled at the first call, into this cache or into one beside this program.
    pub(crate) fn load(cache: Option<PathBuf>) -> io::Result<Self> {
        let program = env::current_exe()?;
        let folder = program.parent().map(Path::to_path_buf).unwrap_or_default();
        let worker = WorkerCommand { program: folder.join("component-worker"), args: Vec::new() };
        let cache = cache.unwrap_or_else(|| folder.join("compare-cache"));
        let sandbox = Sandbox::start(SandboxConfig::new(worker, Some(cache)));
        let builtin = orangery_builtin::components().iter().filter(|one| one.name == "helm");
        let registered = builtin.map(|one| Registered::builtin(one.name, one.registration, one.component));
        let registered = registered.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let set = PluginSet::load(registered, &sandbox.map_err(io::Error::other)?).map_err(io::Error::other)?;
        Ok(Self(set))
    }

    /// An item that installs a chart, as a release or as plain objects.
    pub(crate) fn item(&self, packed: &[u8], values: &Value, release: bool) -> Item {
        Item {
            namespace: "default".into(),
            name: "compared".into(),
            uid: "9a6f3f6e-0000-4000-8000-000000000000".to_owned(),
            item_type: ITEM_TYPE.to_owned(),
            generation: 1,
            context: "default".to_owned(),
            target: Some("cluster".to_owned()),
            job: "5d5ac0da-df31-4cb2-8a3c-003944f84db9".into(),
            config: json!({
                "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
                "name": "rel", "namespace": "demo", "values": values, "helmDeployment": release,
                "chart": {"archive": {"raw": BASE64.encode(packed)}},
            }),
            annotations: BTreeMap::new(),
            configuration: None,
            status: None,
            checkpoint: None,
            failed: None,
            now: "2026-11-21T02:10:49Z".to_owned(),
            seed: 7,
            secret: None,
            timeout: 600_000,
        }
    }

    /// Plans it in a fresh instance.
    pub(crate) async fn plan(&self, item: &Item, cluster: &Told) -> io::Result<Proposal> {
        let deployer = self
            .0
            .deployer(ITEM_TYPE, &"default".into())
            .ok_or_else(|| io::Error::other("this build has no Helm deployer"))?;
        let reads = Reads::of_clusters(Arc::new(Told(cluster.0.clone())));
        deployer.plan(item, reads).await.map_err(|fault| io::Error::other(fault.to_string()))
    }

    /// How long the same takes natively.
    pub(crate) fn native(&self, program: &Path, item: &Item, cluster: &Told) -> io::Result<Duration> {
        let kinds: Vec<Value> = cluster
            .0
            .iter()
            .map(|kind| json!({"apiVersion": kind.api_version, "kind": kind.kind, "namespaced": kind.namespaced}))
            .collect();
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&crate::json(&json!({"config": item.config, "kinds": kinds})))?;
        }
        let done = child.wait_with_output()?;
        let message = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        message
            .parse()
            .map(Duration::from_nanos)
            .map_err(|_| io::Error::other(format!("{} says {message}", program.display())))
    }
}

/// What the first revision of the proposal says.
pub(crate) fn rendered(proposal: &Proposal) -> io::Result<Rendered> {
    let secret = proposal
        .stages
        .iter()
        .flat_map(|stage| &stage.writes)
        .find_map(|write| write.object.pointer("/data/release").and_then(Value::as_str));
    let secret = secret.ok_or_else(|| io::Error::other("the proposal has no release"))?;
    let packed = BASE64.decode(secret.as_bytes()).map_err(io::Error::other)?;
    let packed = BASE64.decode(&packed).map_err(io::Error::other)?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text)?;
    let release: Value = serde_json::from_str(&text).map_err(io::Error::other)?;
    let string = |of: &Value, field: &str| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let manifest = string(&release, "manifest");
    let hooks = release.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let rendered_hooks: Vec<_> = hooks.iter().map(|hook| (string(hook, "path"), string(hook, "manifest"))).collect();
    Ok(Rendered {
        objects: manifest.matches("# Source: ").count(),
        hooks: rendered_hooks.len(),
        manifest,
        rendered_hooks,
    })
}
