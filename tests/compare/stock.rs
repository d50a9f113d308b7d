//! The stock command line of Helm, and the cluster that it is told of.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use orangery_core::{error::Fault, port::BoxFuture};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
};
use serde_json::Value;

/// The version that both are told.
const VERSION: &str = "v1.33.4";

/// The stock command line.
pub(crate) struct Stock {
    program: PathBuf,
    folder: PathBuf,
    /// The API versions that it knows without a cluster.
    known: Vec<String>,
}

/// The kinds that charts have rendered, as `group/version` and kind.
#[derive(Default)]
pub(crate) struct Kinds(BTreeSet<(String, String)>);

/// Kinds that every cluster serves and templates look up.
const USUAL: [(&str, &str); 12] = [
    ("v1", "ConfigMap"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
];

/// Those among them that have no namespaces. What charts bring is taken to have some, which no rendered text shows.
const CLUSTER_WIDE: [&str; 4] = ["CustomResourceDefinition", "MutatingWebhookConfiguration", "Namespace", "Node"];

impl Kinds {
    /// Those of a cluster that nobody has brought kinds to.
    pub(crate) fn usual() -> Self {
        Self(USUAL.map(|(version, kind)| (version.to_owned(), kind.to_owned())).into())
    }

    /// Whether there were kinds in a manifest that were not known.
    pub(crate) fn learn(&mut self, manifest: &str) -> bool {
        let before = self.0.len();
        for document in manifest.split("\n---") {
            let field = |name: &str| {
                let line = document.lines().find_map(|line| line.strip_prefix(name));
                line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
            };
            if let (Some(version), Some(kind)) = (field("apiVersion:"), field("kind:")) {
                self.0.insert((version, kind));
            }
        }
        self.0.len() > before
    }
}

/// All values as they were given: where nobody gives `global`, it is Helm that adds an empty one.
const GIVEN: &str = "\
{{- $given := .Values }}
{{- if not .Values.global }}{{ $given = omit .Values \"global\" }}{{ end -}}
values: {{ $given | toJson }}
";

impl Stock {
    /// Asks it what it knows.
    pub(crate) fn new(program: &Path, folder: &Path) -> io::Result<Self> {
        let mut stock = Self { program: program.to_owned(), folder: folder.to_owned(), known: Vec::new() };
        let probe = folder.join("probe");
        fs::create_dir_all(probe.join("templates"))?;
        fs::write(probe.join("Chart.yaml"), "apiVersion: v2\nname: probe\nversion: 1.0.0\n")?;
        let template = "known: {{ .Capabilities.APIVersions | toJson }}\n";
        fs::write(probe.join("templates/known.yaml"), template)?;
        let message = stock.template(&probe, &[], &Kinds::default())?;
        let known = message.lines().find_map(|line| line.strip_prefix("known: ")).unwrap_or_default();
        stock.known = serde_json::from_str(known).map_err(io::Error::other)?;
        Ok(stock)
    }

    fn run(&self, arguments: &[String]) -> io::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env("HOME", &self.folder).env("KUBECONFIG", "/dev/null");
        let done = command.output()?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
    }

    /// Packs a chart. Answers the archive and the version.
    pub(crate) fn package(&self, chart: &Path) -> io::Result<(PathBuf, String)> {
        let folder = self.folder.join("packed");
        fs::create_dir_all(&folder)?;
        let text = |path: &Path| path.display().to_string();
        let message = self.run(&["package".into(), text(chart), "-d".into(), text(&folder)])?;
        let place = message.rsplit_once(": ").map(|(_, place)| PathBuf::from(place.trim()));
        let place = place.ok_or_else(|| io::Error::other(format!("helm package says {message}")))?;
        let version = self.run(&["show".into(), "chart".into(), text(&place)])?;
        let version = version.lines().find_map(|line| line.strip_prefix("version: ")).unwrap_or_default().to_owned();
        Ok((place, version))
    }

    /// What `helm template` prints.
    pub(crate) fn template(&self, chart: &Path, files: &[PathBuf], kinds: &Kinds) -> io::Result<String> {
        let mut arguments: Vec<String> = ["template", "rel"].map(str::to_owned).to_vec();
        arguments.push(chart.display().to_string());
        arguments.extend(["--namespace", "demo", "--kube-version", VERSION].map(str::to_owned));
        arguments.extend(files.iter().flat_map(|file| ["-f".to_owned(), file.display().to_string()]));
        for (version, kind) in &kinds.0 {
            arguments.extend(["-a".to_owned(), version.clone(), "-a".to_owned(), format!("{version}/{kind}")]);
        }
        self.run(&arguments)
    }

    /// All values of these files, as JSON: the later file counts.
    pub(crate) fn values(&self, files: &[PathBuf]) -> io::Result<Value> {
        let probe = self.folder.join("values");
        fs::create_dir_all(probe.join("templates"))?;
        fs::write(probe.join("Chart.yaml"), "apiVersion: v2\nname: values\nversion: 1.0.0\n")?;
        fs::write(probe.join("templates/values.yaml"), GIVEN)?;
        let message = self.template(&probe, files, &Kinds::default())?;
        let values = message.lines().find_map(|line| line.strip_prefix("values: ")).unwrap_or("{}");
        serde_json::from_str(values).map_err(io::Error::other)
    }

    /// A cluster of that version and with those kinds, and nothing in it.
    pub(crate) fn cluster(&self, kinds: &Kinds) -> Told {
        let resource = |api_version: &str, kind: &str| ApiResource {
            api_version: api_version.into(),
            kind: kind.into(),
            plural: kind.to_lowercase(),
            namespaced: !CLUSTER_WIDE.contains(&kind),
        };
        let mut served: Vec<ApiResource> = kinds.0.iter().map(|(version, kind)| resource(version, kind)).collect();
        for version in &self.known {
            // What the stock command line knows without a cluster has no kinds.
            if !served.iter().any(|one| one.api_version == version.as_str()) {
                served.push(resource(version, "OfNoObject"));
            }
        }
        Told(served)
    }
}

/// A cluster of which only its version and kinds are known.
pub(crate) struct Told(pub(crate) Vec<ApiResource>);

impl Clusters for Told {
    fn get<'a>(&'a self, _: &'a ClusterRef, _: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async { Ok(None) })
    }

    fn get_many<'a>(
        &'a self,
        _: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(async { Ok(vec![None; keys.len()]) })
    }

    fn list<'a>(&'a self, _: &'a ClusterRef, _: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { Ok(VERSION.to_owned()) })
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}
