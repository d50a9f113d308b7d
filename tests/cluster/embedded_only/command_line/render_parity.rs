//! What `orangery render` prints is, byte for byte, what the operator makes: every folder of `examples/` with
//! Installations, and every recorded case. New ones are tested as soon as they are there.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use orangery_api::{
    annotation,
    execution::{DeployItemTemplate, Execution},
    label,
};
use orangery_core::name::{self, StateOwner};
use orangery_tests::{
    binary::{Binary, Ended},
    cluster::Cluster,
    fail,
    objects::NAMESPACE,
    recording::{
        self,
        steps::{Recording, Step},
    },
    repository,
    tree::{blueprint, installation, subinstallation},
    yaml,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::offline::{document, write};

const LANDSCAPER: &str = "landscaper.gardener.cloud/v1alpha1";

fn of_kind(kind: &str) -> Value {
    json!({"apiVersion": LANDSCAPER, "kind": kind, "metadata": {"namespace": "default"}})
}

/// What is expected to be printed, in the order of its fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Expected {
    name: String,
    deploy_items: Vec<DeployItemTemplate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subinstallations: Vec<Expected>,
    #[serde(skip_serializing_if = "Value::is_null")]
    exports: Value,
    #[serde(skip_serializing_if = "Map::is_empty")]
    state: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: &'static str,
    kind: &'static str,
    installations: Vec<Expected>,
}

/// What is exported and bound to nothing, which no cluster has.
const GOES_NOWHERE: [(&str, &str); 1] = [("known", "a")];

/// What a cluster has once everything in it is final.
struct Deployed {
    installations: Vec<Value>,
    executions: Vec<Value>,
    data_objects: Vec<Value>,
    targets: Vec<Value>,
    secrets: Vec<Value>,
    /// What the operator has logged.
    log: String,
}

fn named<'a>(objects: &'a [Value], name: &str) -> Option<&'a Value> {
    objects.iter().find(|of| of["metadata"]["name"] == name)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Deployed {
    async fn of(cluster: &Cluster) -> Self {
        Self {
            installations: cluster.list(&of_kind("Installation")).await,
            executions: cluster.list(&of_kind("Execution")).await,
            data_objects: cluster.list(&of_kind("DataObject")).await,
            targets: cluster.list(&of_kind("Target")).await,
            secrets: cluster.list(&json!({"apiVersion": "v1", "kind": "Secret"})).await,
            log: cluster.log(),
        }
    }

    /// What the operator has warned of an Installation, each once, in the order in which it came up.
    fn warnings(&self, object: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        for line in self.log.lines() {
            let told = line
                .split_once(&format!(" installation={object} about="))
                .and_then(|(_, told)| told.split_once(" warning="));
            let Some((place, text)) = told else { continue };
            let warning = format!("{place}: {text}");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }

    /// The sub-installations: their names in the blueprint, and those of their objects.
    fn children(&self, parent: &str) -> BTreeMap<&str, &str> {
        let owned = self.installations.iter().filter(|of| of["metadata"]["ownerReferences"][0]["name"] == parent);
        let names = owned.map(|of| {
            let template = &of["metadata"]["annotations"][annotation::SUBINSTALLATION_NAME];
            (text(template), text(&of["metadata"]["name"]))
        });
        names.collect()
    }

    /// What `--values` takes of an Installation and of those below it.
    fn values(&self, name: &str) -> Value {
        let reference = named(&self.executions, name).map(|of| text(&of["status"]["exportRef"]["name"]));
        let exported = reference.and_then(|name| named(&self.data_objects, name));
        let children = self.children(name).into_iter().map(|(template, object)| {
            let mut values = self.values(object);
            values["objectName"] = json!(object);
            (template.to_owned(), values)
        });
        let children: Map<String, Value> = children.collect();
        json!({"deployItems": exported.map_or_else(|| json!({}), |of| of["data"].clone()), "subinstallations": children})
    }

    /// What must be printed of an Installation.
    fn expected(&self, printed: &Value, object: &str, parent: Option<&str>) -> Expected {
        let below = printed["subinstallations"].as_array().cloned().unwrap_or_default();
        let children = self.children(object);
        assert_eq!(below.len(), children.len(), "{object} has {children:?}");
        let child = |child: &Value| {
            let name = children.get(text(&child["name"])).copied();
            self.expected(child, name.unwrap_or_else(|| fail(&format!("nobody made {child}"))), Some(object))
        };
        Expected {
            name: text(&printed["name"]).to_owned(),
            deploy_items: named(&self.executions, object).map(items).unwrap_or_default(),
            subinstallations: below.iter().map(child).collect(),
            exports: self.exports(object, parent),
            state: self.states(&printed["state"], object),
            warnings: self.warnings(object),
        }
    }

    fn exports(&self, object: &str, parent: Option<&str>) -> Value {
        let installation = named(&self.installations, object).expect("it was deployed");
        let context = parent.map(name::installation_context).unwrap_or_default();
        let mut expected = json!({});
        for (list, key) in [("data", "dataRef"), ("targets", "target")] {
            for export in installation["spec"]["exports"][list].as_array().into_iter().flatten() {
                let object = name::object_name(&context, text(&export[key]));
                let exported = match list {
                    "data" => named(&self.data_objects, &object).map(|of| of["data"].clone()),
                    _ => named(&self.targets, &object).map(|of| of["spec"].clone()),
                };
                expected[text(&export["name"])] = exported.unwrap_or_else(|| fail(&format!("{object} is not there")));
            }
        }
        let blueprint = text(&installation["spec"]["blueprint"]["inline"]["filesystem"]["blueprint.yaml"]);
        for (name, value) in GOES_NOWHERE {
            if blueprint.contains(&format!(r#""name":"{name}""#)) {
                expected[name] = json!(value);
            }
        }
        expected
    }

    /// The states in the Secrets of an Installation: those that were printed, and no others.
    fn states(&self, printed: &Value, object: &str) -> Map<String, Value> {
        let lists = [
            ("deployExecutions", StateOwner::Deploy),
            ("exportExecutions", StateOwner::Export),
            ("subinstallationExecutions", StateOwner::Subinstallation),
        ];
        let mut states = Map::new();
        let mut found = 0;
        for (list, owner) in lists {
            let mut of_list = Map::new();
            for execution in printed[list].as_object().into_iter().flat_map(Map::keys) {
                let own = named(&self.secrets, &name::state_secret(object, owner, execution));
                // Alone with its name, a sub-installation execution has the Secret of a deploy execution.
                let shared = || named(&self.secrets, &name::state_secret(object, StateOwner::Deploy, execution));
                let secret = own.or_else(shared).unwrap_or_else(|| fail(&format!("{execution} has no Secret")));
                let content = BASE64.decode(text(&secret["data"]["config"]).as_bytes()).expect("base64");
                let stored = String::from_utf8(content).expect("text");
                let value: Value = serde_json::from_str(&stored).expect("a state is JSON");
                assert_eq!(stored.trim_end_matches('\n'), value.to_string(), "as it is printed");
                of_list.insert(execution.clone(), value);
                found += 1;
            }
            if !of_list.is_empty() {
                states.insert(list.to_owned(), Value::Object(of_list));
            }
        }
        let owned = self.secrets.iter().filter(|secret| {
            let owner = &secret["metadata"]["ownerReferences"][0];
            owner["kind"] == "Installation" && owner["name"] == object
        });
        assert_eq!(owned.count(), found, "the states of {object}");
        states
    }
}

/// The items of an Execution, as they are on the wire.
fn items(execution: &Value) -> Vec<DeployItemTemplate> {
    let execution: Execution = serde_json::from_value(execution.clone()).expect("an Execution");
    execution.spec.items().expect("its items")
}

/// The Installations among these objects, by name.
fn roots(documents: &[Value]) -> Vec<&str> {
    let roots = documents.iter().filter(|of| of["kind"] == "Installation");
    roots.map(|of| text(&of["metadata"]["name"])).collect()
}

/// Runs `render` over these objects and the Targets of the cluster, with what deploy items exported there.
async fn render(binary: &Binary, deployed: &Deployed, documents: &[Value], flags: &[&str]) -> Ended {
    let is_own = |of: &&Value| of["metadata"]["labels"][label::SOURCE].is_null();
    let targets = deployed.targets.iter().filter(is_own);
    let others = documents.iter().filter(|of| of["kind"] != "Target");
    for (index, object) in others.chain(targets).enumerate() {
        write(binary, &format!("manifests/{index:02}.json"), object.to_string());
    }
    let values: Map<String, Value> =
        roots(documents).iter().map(|root| ((*root).to_owned(), deployed.values(root))).collect();
    write(binary, "values.json", Value::Object(values).to_string());
    let line = ["render", "manifests", "--values", "values.json", "-o", "json"];
    binary.run(&[line.as_slice(), flags].concat()).await
}

/// Holds what is printed of these objects against what the cluster has made of them.
pub(crate) async fn check(binary: &Binary, cluster: &Cluster, documents: &[Value], flags: &[&str]) {
    let roots = roots(documents);
    for root in &roots {
        let mut succeeded = of_kind("Installation");
        succeeded["metadata"]["name"] = json!(root);
        succeeded["status"] = json!({"phase": "Succeeded"});
        cluster.expect(&succeeded).await;
    }
    let deployed = Deployed::of(cluster).await;
    let ended = render(binary, &deployed, documents, flags).await;
    let printed = document(&ended);
    let printed = printed["installations"].as_array().expect("a list");
    assert_eq!(printed.len(), roots.len());
    let installations = printed.iter().map(|of| deployed.expected(of, text(&of["name"]), None)).collect();
    let expected = Document { api_version: "orangery.dev/v1alpha1", kind: "RenderedInstallations", installations };
    let expected = serde_json::to_string_pretty(&expected).expect("JSON") + "\n";
    assert_eq!(ended.stdout, expected);
    assert_eq!(render(binary, &deployed, documents, flags).await.stdout, expected, "a second time");
}

/// Holds the sentence of `render` against those that the cluster has for the Installations that failed; whether it
/// failed at all.
async fn check_failed(binary: &Binary, cluster: &Cluster, documents: &[Value]) -> bool {
    let deployed = Deployed::of(cluster).await;
    let ended = render(binary, &deployed, documents, &[]).await;
    if ended.code == Some(0) {
        return false;
    }
    let messages: Vec<&str> =
        deployed.installations.iter().map(|of| text(&of["status"]["lastError"]["message"])).collect();
    // Further lines of a message are indented, so that none begins as one of the command's own.
    let indented = |line: &str| if line.starts_with(' ') { line.to_owned() } else { format!("  {line}") };
    let printed = |message: &str| -> String {
        let lines: Vec<String> = message.trim_end().lines().map(indented).collect();
        lines.join("\n").trim_start().to_owned()
    };
    let is_told = messages.iter().any(|message| !message.is_empty() && ended.stderr.contains(&printed(message)));
    assert!(is_told, "{}\nis none of {messages:#?}", ended.stderr);
    true
}

/// The folders below one, sorted.
fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).expect("the folder can be read").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The objects in the manifests of a folder.
fn manifests(folder: &Path) -> Vec<Value> {
    let entries = fs::read_dir(folder).expect("the folder can be read").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    files.sort();
    files.iter().flat_map(|file| yaml::read(file)).collect()
}

/// There is nothing wrong with rendering them.
const EXAMPLES_THAT_FAIL_TO_DEPLOY: [&str; 1] = ["continue-on-failure"];

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn the_examples_render_as_the_operator_renders_them() {
    let mut tested = Vec::new();
    for folder in folders(&repository().join("examples")) {
        let documents = manifests(&folder);
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        if roots(&documents).is_empty() || EXAMPLES_THAT_FAIL_TO_DEPLOY.contains(&name.as_str()) {
            continue;
        }
        let plugins = folder.join("plugins").is_dir().then(|| super::examples::plugins(&name));
        let plugins = plugins.as_ref().map(|folder| folder.path().to_string_lossy().into_owned());
        let flags: Vec<&str> = plugins.iter().flat_map(|folder| ["--plugins", folder]).collect();
        let binary = crate::binary().await;
        let path = folder.to_string_lossy();
        let cluster =
            Cluster::start(&binary, &[&["--ephemeral", "--simulate-workloads", &path], flags.as_slice()].concat())
                .await;
        check(&binary, &cluster, &documents, &flags).await;
        tested.push(name);
    }
    assert!(tested.len() > 4, "only {tested:?}");
}

#[tokio::test]
async fn what_the_operator_warns_of_is_printed() {
    let exports = r#"{"exports": {"known": "a", "stray": "b", "other": "c"}}"#;
    let fields = json!({
        "exports": [{"name": "known", "type": "data", "schema": {"type": "string"}}],
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": exports}],
    });
    let below = blueprint(json!({"subinstallations": [subinstallation("below", &blueprint(fields.clone()))]}));
    let documents = [installation("warned", &blueprint(fields)), installation("above", &below)];
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
    for document in &documents {
        cluster.apply(document).await;
    }
    check(&binary, &cluster, &documents, &[]).await;
    let deployed = Deployed::of(&cluster).await;
    let child = deployed.children("above")["below"];
    let counts = ["warned", "above", child].map(|object| deployed.warnings(object).len());
    assert_eq!(counts, [2, 0, 2], "{}", deployed.log);
}

#[tokio::test]
async fn the_examples_of_errors_fail_with_the_sentence_of_the_operator() {
    for folder in folders(&repository().join("examples/errors")) {
        let binary = crate::binary().await;
        let cluster = Cluster::start(&binary, &["--ephemeral", &folder.to_string_lossy()]).await;
        let is_failed = |of: &Value| of["status"]["phase"] == "Failed";
        cluster.expect_that(&of_kind("Installation"), "did not fail", is_failed).await;
        assert!(check_failed(&binary, &cluster, &manifests(&folder)).await, "{}", folder.display());
    }
}

/// The items of this case have the id of their job, which is another one where they are only rendered.
const WITH_JOB: &str = "target-list-ref-order";

/// What a recorded case applies, and the Installations whose end is waited for then, where nothing comes after that.
fn one_job(recording: &Recording) -> Option<(Vec<&str>, Vec<&str>)> {
    let all: Vec<&Step> = recording.steps.iter().filter(|step| **step != Step::Rest).collect();
    let mut steps = all.as_slice();
    let (mut inputs, mut ended) = (Vec::new(), Vec::new());
    while let [Step::Apply(file), rest @ ..] = steps {
        inputs.push(file.as_str());
        steps = rest;
    }
    while let [Step::WaitFinished(finished), rest @ ..] = steps {
        ended.push(finished.name.as_str());
        steps = rest;
    }
    matches!(steps, [Step::Dump(_)]).then_some((inputs, ended))
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn recorded_cases_render_as_the_operator_renders_them() {
    let (mut succeeded, mut failed) = (0, 0);
    for case in recording::cases().into_iter().filter(|case| case != WITH_JOB) {
        let folder = recording::folder(&case);
        let recorded = Recording::read(&folder);
        let Some((inputs, ended)) = one_job(&recorded) else { continue };
        let binary = crate::binary().await;
        let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
        let documents: Vec<Value> =
            inputs.iter().flat_map(|file| recording::input(&folder.join(file), NAMESPACE, &cluster)).collect();
        if roots(&documents) != ended {
            continue;
        }
        for document in &documents {
            cluster.apply(document).await;
        }
        for name in ended {
            let has_ended = |of: &Value| {
                of["metadata"]["name"] == *name
                    && of["status"]["jobID"].is_string()
                    && of["status"]["jobID"] == of["status"]["jobIDFinished"]
            };
            cluster.expect_that(&of_kind("Installation"), "did not end its job", has_ended).await;
        }
        let installations = cluster.list(&of_kind("Installation")).await;
        if installations.iter().all(|of| of["status"]["phase"] == "Succeeded") {
            check(&binary, &cluster, &documents, &[]).await;
            succeeded += 1;
        } else {
            // What fails while it is progressing was rendered before.
            let is_of_rendering = |of: &Value| {
                of["status"]["phase"] == "Failed" && of["status"]["lastError"]["operation"] != "Progressing"
            };
            let is_refused = check_failed(&binary, &cluster, &documents).await;
            assert_eq!(is_refused, installations.iter().any(is_of_rendering), "{case}");
            failed += 1;
        }
    }
    assert!(succeeded > 8 && failed > 8, "only {succeeded} that succeed and {failed} that fail");
}
