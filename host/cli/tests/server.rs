//! The commands against an API server over HTTP: what a real server answers, and the sentences made of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the scaffolding of tests may fail as tests do")]

use std::{
    fs,
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use clap::Parser as _;
use futures::StreamExt as _;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::watcher::watch_object,
};
use orangery_api::{
    annotation,
    deploy_item::DeployItem,
    installation::Installation,
    marks::{Marks as _, Operation},
    stored_state::{STORED_CONTENT, pack},
};
use orangery_cli::{
    Cli, Command, Exit, Terminal,
    apply::apply,
    connection::Connection,
    folder,
    terminal::{Appearance, Size},
};
use orangery_core::digest::sha256;
use orangery_embedded::{Options, Server, Storage};
use serde_json::{Value, json};

/// A writer whose text can be looked at.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Carries a command line out as the binary does, on a terminal or what is none: the exit code, and all that was written.
fn command_on(line: &[String], appearance: Appearance) -> (ExitCode, String) {
    let text = Shown::default();
    let mut terminal = Terminal::new(Box::new(text.clone()), Box::new(text.clone()), appearance);
    let cli = Cli::try_parse_from(line).unwrap();
    let Command::Tool(tool) = cli.command else { panic!("runtime carries this out: {line:?}") };
    let code = tool.execute(&mut terminal);
    (code, String::from_utf8(text.0.lock().unwrap().clone()).unwrap())
}

/// A server, and a folder with its kubeconfig.
struct Fixture {
    _server: Server,
    client: Client,
    folder: tempfile::TempDir,
}

impl Fixture {
    /// A server that does not know our kinds.
    async fn bare() -> Self {
        let options = Options {
            storage: Storage::Memory,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            clock: Arc::new(|| jiff::Timestamp::from_second(1_790_000_000).unwrap()),
        };
        let server = orangery_embedded::start(options).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, server.kubeconfig()).unwrap();
        let client = Connection { kubeconfig: Some(kubeconfig), context: None }.client().await.unwrap();
        Self { _server: server, client, folder }
    }

    /// A server with the definitions that `orangery crd` prints.
    async fn start() -> Self {
        let fixture = Self::bare().await;
        let (code, definitions) = fixture.run("crd").await;
        assert_eq!(code, Exit::Ok.into());
        let applied = fixture.apply(&[("crds.yaml", &definitions)]).await.unwrap();
        assert_eq!(applied.len(), orangery_api::crds().len() + 2 * orangery_api::admission().len());
        fixture
    }

    /// Applies these files: what was applied, in order, or the error without the folder's path.
    async fn apply(&self, files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let manifests = folder::read(&[folder.path().to_owned()]).unwrap();
        let applied = apply(&self.client, &"default".into(), manifests)
            .await
            .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))?;
        Ok(applied.into_iter().map(|object| object.metadata.name.unwrap()).collect())
    }

    /// Runs a command in a thread of its own: it has an event loop of its own.
    async fn run(&self, line: &str) -> (ExitCode, String) {
        self.run_on(line, Appearance::PLAIN).await
    }

    async fn run_on(&self, line: &str, appearance: Appearance) -> (ExitCode, String) {
        let kubeconfig: PathBuf = self.folder.path().join("kubeconfig");
        let words = ["orangery"].into_iter().chain(line.split(' ')).map(str::to_owned);
        let line: Vec<String> = words.chain(["--kubeconfig".to_owned(), path(&kubeconfig)]).collect();
        tokio::task::spawn_blocking(move || command_on(&line, appearance)).await.unwrap()
    }

    fn installations(&self) -> Api<Installation> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn patch(&self, path: &str, patch: Value) {
        let (api, patch) = (self.installations(), Patch::Merge(&patch));
        match path {
            "status" => api.patch_status("hello", &PatchParams::default(), &patch).await.unwrap(),
            _ => api.patch("hello", &PatchParams::default(), &patch).await.unwrap(),
        };
    }

    /// Plays the controller once: starts a job when one is asked for, then ends it like this.
    async fn play(&self, end: Value) {
        let seen = watch_object(self.installations(), "hello");
        futures::pin_mut!(seen);
        while let Some(Ok(Some(installation))) = seen.next().await {
            if installation.operation() == Some(Operation::Reconcile) {
                let token = installation.annotation(annotation::TRIGGER).unwrap();
                self.patch("status", json!({"status": {"jobID": "b", "phase": "Init", "lastHandledTrigger": token}}))
                    .await;
                let request = json!({(annotation::OPERATION): null, (annotation::TRIGGER): null});
                self.patch("", json!({"metadata": {"annotations": request}})).await;
                self.patch("status", json!({"status": end})).await;
                return;
            }
        }
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

const HELLO: &str = "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: hello
spec:
  blueprint: {inline: {filesystem: {}}}
";

fn config_map(name: &str, namespace: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n---\n")
}

#[tokio::test]
async fn what_others_need_is_there_before_it_is_needed() {
    let widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w, namespace: demo}\n";
    let definition = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n";
    let files =
        [("a.yaml", widget), ("b.yaml", &config_map("m", "demo")), ("c.yaml", definition), ("d.yaml", namespace)];
    let fixture = Fixture::bare().await;
    let expected = ["demo", "widgets.example.org", "m", "w"].map(str::to_owned).to_vec();
    assert_eq!(fixture.apply(&files).await, Ok(expected.clone()));
    assert_eq!(fixture.apply(&files).await, Ok(expected), "applying again changes nothing and is no error");
}

#[tokio::test]
async fn a_kind_that_nobody_knows_stops_everything_before_the_first_write() {
    let fixture = Fixture::bare().await;
    let typing_error =
        format!("{}apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {{name: d}}\n", config_map("m", "default"));
    assert_eq!(
        fixture.apply(&[("x.yaml", &typing_error)]).await.unwrap_err(),
        "x.yaml:5: the cluster knows no kind Deploymnet of apps/v1; did you mean Deployment of apps/v1?"
    );
    let maps: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), "default");
    assert_eq!(maps.get_opt("m").await.unwrap(), None);
    assert_eq!(
        fixture.apply(&[("x.yaml", HELLO)]).await.unwrap_err(),
        "x.yaml:1: the cluster knows no kind Installation of landscaper.gardener.cloud/v1alpha1; apply its \
         CustomResourceDefinition first, or correct kind and apiVersion"
    );
}

#[tokio::test]
async fn what_the_server_refuses_is_told_with_the_file() {
    let fixture = Fixture::start().await;
    assert_eq!(
        fixture.apply(&[("x.yaml", &config_map("m", "nowhere"))]).await.unwrap_err(),
        "x.yaml:1: ConfigMap m is to be in the namespace nowhere, which does not exist; add a Namespace object to the \
         folder, or correct metadata.namespace"
    );
    let error = fixture.apply(&[("x.yaml", &HELLO.replace("{inline: {filesystem: {}}}", "7"))]).await.unwrap_err();
    assert!(error.starts_with("x.yaml:1: the cluster refuses Installation hello: "), "{error}");
    assert!(error.contains("spec.blueprint") && error.ends_with("; correct it and try again"), "{error}");
}

#[tokio::test]
async fn a_cluster_without_our_kinds_is_told_how_to_get_them() {
    let (code, written) = Fixture::bare().await.run("inspect").await;
    assert_eq!(code, Exit::Failed.into());
    assert!(written.starts_with("error: the cluster does not know "), "{written}");
    assert!(written.ends_with("; install the kinds: orangery crd | kubectl apply --server-side -f -\n"), "{written}");
}

#[tokio::test]
async fn an_installation_is_shown_and_asked_for_a_job() {
    let fixture = Fixture::start().await;
    fixture.apply(&[("x.yaml", HELLO)]).await.unwrap();
    let (code, written) = fixture.run("inspect").await;
    let idle = "hello  Installation  Idle  awaits a trigger: orangery reconcile hello -n default\n";
    assert_eq!((code, written.as_str()), (Exit::Ok.into(), idle));
    let (code, written) = fixture.run("reconcile hello").await;
    assert_eq!((code, written.as_str()), (Exit::Ok.into(), "installation default/hello: reconcile requested\n"));
    let asked = fixture.installations().get("hello").await.unwrap();
    assert_eq!(asked.operation(), Some(Operation::Reconcile));
    let (_, written) = fixture.run("inspect -A").await;
    assert_eq!(written, "default/hello  Installation  Requested\n");
    let (code, written) = fixture.run("reconcile other").await;
    let missing =
        "error: there is no installation other in namespace default; orangery inspect -A shows all there are\n";
    assert_eq!((code, written.as_str()), (Exit::Failed.into(), missing));
}

#[tokio::test]
async fn a_wait_ends_with_the_job_that_was_asked_for() {
    let fixture = Fixture::start().await;
    fixture.apply(&[("x.yaml", HELLO)]).await.unwrap();
    fixture.patch("status", json!({"status": {"jobID": "a", "jobIDFinished": "a", "phase": "Failed"}})).await;
    let succeeded = fixture.play(json!({"jobIDFinished": "b", "phase": "Succeeded"}));
    let ((code, written), ()) = futures::join!(fixture.run("reconcile hello --wait --timeout 60s"), succeeded);
    assert_eq!((code, written.as_str()), (Exit::Ok.into(), "installation default/hello: Succeeded\n"));
}

#[tokio::test]
async fn c_405_on_a_terminal_the_tree_moves_while_somebody_waits() {
    let fixture = Fixture::start().await;
    fixture.apply(&[("x.yaml", HELLO)]).await.unwrap();
    let size = || Some(Size { columns: NonZeroUsize::new(80)?, rows: NonZeroUsize::new(24)? });
    let terminal = Appearance { size, ..Appearance::PLAIN };
    let succeeded = fixture.play(json!({"jobIDFinished": "b", "phase": "Succeeded"}));
    let waited = fixture.run_on("reconcile hello --wait --timeout 60s", terminal);
    let ((code, written), ()) = futures::join!(waited, succeeded);
    assert_eq!(code, Exit::Ok.into());
    // Whatever was drawn before is taken back; how long it took is told where its begin was seen.
    let last = written.rsplit("\u{1b}[1A\u{1b}[J").next().unwrap();
    let [drawn, end] = last.lines().collect::<Vec<_>>()[..] else { panic!("{written:?}") };
    assert!(drawn.starts_with("hello  Installation  Succeeded"), "{written:?}");
    assert_eq!(end, "installation default/hello: Succeeded");
}

#[tokio::test]
async fn a_job_that_failed_is_told_with_its_cause() {
    let fixture = Fixture::start().await;
    fixture.apply(&[("x.yaml", HELLO)]).await.unwrap();
    let now = "2026-11-21T08:00:00Z";
    let failed = fixture.play(json!({"jobIDFinished": "b", "phase": "Failed", "lastError": {
        "operation": "Init", "reason": "ImportNotFound", "message": "import x is missing", "codes": ["ERR_TIMEOUT"],
        "lastTransitionTime": now, "lastUpdateTime": now,
    }}));
    let ((code, written), ()) = futures::join!(fixture.run("reconcile hello --wait --timeout 60s"), failed);
    assert_eq!(
        (code, written.as_str()),
        (
            Exit::Failed.into(),
            "installation default/hello: Failed
error: installation default/hello failed: import x is missing
  reason: ImportNotFound (in Init)
  code:   ERR_TIMEOUT
  hint:   look at the object that did not become ready, or raise the deploy item's timeout
"
        )
    );
}

#[tokio::test]
async fn a_server_that_is_gone_is_one_sentence() {
    let fixture = Fixture::bare().await;
    let kubeconfig = fixture.folder.path().join("kubeconfig");
    let elsewhere = fs::read_to_string(&kubeconfig).unwrap().lines().fold(String::new(), |text, line| {
        match line.split_once("server:") {
            Some((indent, _)) => format!("{text}{indent}server: https://127.0.0.1:1\n"),
            None => format!("{text}{line}\n"),
        }
    });
    fs::write(&kubeconfig, elsewhere).unwrap();
    let (code, written) = fixture.run("inspect").await;
    assert_eq!(code, Exit::Failed.into());
    assert!(written.starts_with("error: the cluster cannot be reached: "), "{written}");
    assert_eq!(written.lines().count(), 1, "{written}");
}

#[tokio::test]
async fn c_94_a_policy_is_held_against_all_objects_of_an_item_also_those_that_lie_in_secrets() {
    let fixture = Fixture::start().await;
    let object =
        |name: &str| json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "other"}});
    let content = json!({"managedResources": [object("shown"), object("stored")]}).to_string();
    let compressed = pack(content.as_bytes()).unwrap();
    let (first, second) = compressed.split_at(compressed.len() / 2);
    let item = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\nmetadata: {name: large}\nspec: {type: x/y}\n";
    let policy = "apiVersion: orangery.dev/v1alpha1\nkind: NamespacePolicy\nmetadata: {name: p}\n\
                  spec: {namespaces: {names: [default]}, targets: {kinds: {deny: [{kind: ConfigMap}]}}}\n";
    fixture.apply(&[("x.yaml", item)]).await.unwrap();
    fs::write(fixture.folder.path().join("p.yaml"), policy).unwrap();
    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), "default");
    for (name, piece) in [("a", first), ("b", second)] {
        let data = Some([(STORED_CONTENT.to_owned(), ByteString(piece.to_vec()))].into());
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        secrets.create(&PostParams::default(), &Secret { metadata, data, ..Secret::default() }).await.unwrap();
    }
    let large = json!({"digest": sha256(content.as_bytes()), "secrets": ["a", "b"]});
    let status =
        json!({"apiVersion": "a/v1", "kind": "K", "managedResources": [object("shown")], "orangery": {"large": large}});
    let items: Api<DeployItem> = Api::namespaced(fixture.client.clone(), "default");
    let patch = Patch::Merge(json!({"status": {"providerStatus": status}}));
    items.patch_status("large", &PatchParams::default(), &patch).await.unwrap();
    let check = format!("policy check {} --default-policy compatible", path(&fixture.folder.path().join("p.yaml")));
    let (code, written) = fixture.run(&check).await;
    let of = |name: &str| {
        format!("DeployItem default/large: v1 ConfigMap {name} in namespace other is refused by NamespacePolicy p")
    };
    assert_eq!(code, Exit::Failed.into());
    assert!(written.contains(&of("shown")) && written.contains(&of("stored")), "{written}");
    secrets.delete("b", &DeleteParams::default()).await.unwrap();
    let (code, written) = fixture.run(&check).await;
    let unknown = "DeployItem default/large: what it has deployed is not known: Secret b cannot be read: ";
    assert_eq!(code, Exit::Failed.into());
    assert!(written.contains(unknown), "{written}");
}
