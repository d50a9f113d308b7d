//! A deployer that reads all that there is to read and answers by every word. Its configuration says how it ends.

use orangery_contract_guests as _;

wit_bindgen::generate!({ world: "deployer-with-tests", path: "../../wit/deployer/0.1.0" });

use exports::orangery::deployer::{
    deploy::{self, Item},
    tests::{self, Subject, Test},
    uninstall, validate,
};
use orangery::deployer::{
    artifacts, cluster, log,
    plan::{
        Completion, DeletionGroup, DeletionScope, ExportRule, ExportSource, Follow, Gate, Injection, Next,
        ObjectRemoval, ObjectWrite, Ownership, PathSource, Proposal, Readiness, ReadinessRule, Requirement, Scope,
        SecretContent, Stage, Write,
    },
    types::{ClusterRef, Fault, ObjectKey, Problem, Selection},
};

struct Guest;

/// The resource `chart` of a component version, as `getResourceKey` names it.
const RESOURCE_KEY: &str =
    "eyJjb21wb25lbnQiOnsibmFtZSI6ImV4YW1wbGUub3JnL3Nob3AiLCJ2ZXJzaW9uIjoiMSJ9LCJyZXNvdXJjZSI6eyJuYW1lIjoiY2hhcnQifX0=";
/// That component version, as an installation names it.
const VERSION: &str = r#"{"ref":{"componentName":"example.org/shop","version":"1"}}"#;

fn text(of: &str) -> String {
    of.to_string()
}

fn key(kind: &str, name: &str) -> ObjectKey {
    let api_version = if kind == "Job" { "batch/v1" } else { "v1" };
    ObjectKey { api_version: text(api_version), kind: text(kind), namespace: Some(text("default")), name: text(name) }
}

fn selection(names: &[&str], labels: Option<&str>, fields: Option<&str>) -> Selection {
    Selection {
        api_version: text("v1"),
        kind: text("ConfigMap"),
        namespace: Some(text("default")),
        names: names.iter().map(|name| text(name)).collect(),
        labels: labels.map(text),
        fields: fields.map(text),
    }
}

fn object(kind: &str, name: &str) -> String {
    let api_version = if kind == "Job" { "batch/v1" } else { "v1" };
    [
        "{\"apiVersion\":\"",
        api_version,
        "\",\"kind\":\"",
        kind,
        "\",\"metadata\":{\"name\":\"",
        name,
        "\",\"namespace\":\"default\"}}",
    ]
    .concat()
}

fn write(name: &str, how: Write, owned: Ownership, on: ClusterRef) -> ObjectWrite {
    let object = object("ConfigMap", name);
    ObjectWrite { object, inject: vec![], on, how, owned, at_creation: None, before_deletion: None }
}

/// What was read, one after the other.
fn read(of: &Item) -> Result<Vec<String>, Fault> {
    for (at, message) in [
        (log::Level::Trace, "trace"),
        (log::Level::Debug, "debug"),
        (log::Level::Info, "info"),
        (log::Level::Warn, "warn"),
        (log::Level::Error, "error"),
    ] {
        log::log(at, message, &[(text("item"), of.name.clone())]);
    }
    let target = ClusterRef::Target;
    let mut answers = vec![
        cluster::get(&target, &key("ConfigMap", "a"))?.unwrap_or_default(),
        cluster::version(&target)?,
        cluster::version(&ClusterRef::Host)?,
        cluster::version(&ClusterRef::Named(text("other")))?,
    ];
    let many = cluster::get_many(&target, &[key("ConfigMap", "a"), key("ConfigMap", "b")])?;
    answers.extend(many.into_iter().map(Option::unwrap_or_default));
    answers.extend(cluster::list(&target, &selection(&["a"], Some("app=web"), Some("metadata.name=a")))?);
    for served in cluster::discover(&target)? {
        let namespaced = text(if served.namespaced { "namespaced" } else { "cluster-scoped" });
        answers.extend([served.api_version, served.kind, served.plural, namespaced]);
    }
    for artifact in [
        artifacts::oci("registry.example/a:1")?,
        artifacts::url("https://files.example/a")?,
        artifacts::helm_repository("https://charts.example", "a", "1.0.0")?,
        artifacts::component_resource(RESOURCE_KEY)?,
        artifacts::component_descriptors(VERSION)?,
    ] {
        let content = artifact.read(1, 2)?;
        let layer = artifact.layer("text/x-layer")?.map(|layer| layer.digest()).unwrap_or_default();
        let size = artifact.size().to_string();
        answers.extend([
            artifact.digest(),
            artifact.media_type(),
            size,
            String::from_utf8_lossy(&content).into_owned(),
        ]);
        answers.push(layer);
    }
    Ok(answers)
}

/// All that an item has, in the order of the contract.
fn texts_of(of: &Item) -> Vec<String> {
    let failed = of.failed.as_ref().map(|failed| {
        let name = failed.key.as_ref().map(|key| key.name.clone()).unwrap_or_default();
        [failed.stage.as_str(), name.as_str(), failed.problem.code.as_str(), failed.problem.message.as_str()].join("/")
    });
    let annotations = of.annotations.iter().map(|(name, value)| [name.as_str(), value.as_str()].join("="));
    vec![
        of.namespace.clone(),
        of.name.clone(),
        of.uid.clone(),
        of.item_type.clone(),
        of.generation.to_string(),
        of.context.clone(),
        of.target.clone().unwrap_or_default(),
        of.job.clone(),
        annotations.collect::<Vec<_>>().join(","),
        of.configuration.clone().unwrap_or_default(),
        of.status.clone().unwrap_or_default(),
        of.checkpoint.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default(),
        failed.unwrap_or_default(),
        of.now.clone(),
        of.seed.to_string(),
        of.timeout.to_string(),
    ]
}

/// A list of texts as JSON.
fn json(texts: &[String]) -> String {
    let quoted = texts.iter().map(|text| {
        let mut quoted = String::from("\"");
        for letter in text.chars() {
            if matches!(letter, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(letter);
        }
        quoted.push('"');
        quoted
    });
    ["[", quoted.collect::<Vec<_>>().join(",").as_str(), "]"].concat()
}

fn stage(name: &str, gate: Gate) -> Stage {
    Stage { name: text(name), removals: vec![], writes: vec![], gate, timeout: Some(60_000) }
}

fn writes() -> Stage {
    let mut first = write("apply", Write::Apply, Ownership::Managed, ClusterRef::Target);
    first.at_creation = Some(text("{\"data\":{\"made\":\"once\"}}"));
    first.before_deletion = Some(text("{\"data\":{\"gone\":\"soon\"}}"));
    let mut secret = write("secret", Write::Create, Ownership::Ephemeral, ClusterRef::Target);
    secret.object = object("Secret", "secret");
    secret.inject = vec![
        Injection { at: text("/data/kubeconfig"), content: SecretContent::Kubeconfig(ClusterRef::Target) },
        Injection { at: text("/data/target"), content: SecretContent::TargetDocument(ClusterRef::Target) },
    ];
    let merged = Write::Merge(object("ConfigMap", "merge"));
    let writes = vec![
        first,
        secret,
        write("replace", Write::Replace, Ownership::Fallback, ClusterRef::Host),
        write("patch", Write::Patch, Ownership::Kept, ClusterRef::Named(text("other"))),
        write("merge", merged, Ownership::Managed, ClusterRef::Target),
        write("fill", Write::Fill, Ownership::Managed, ClusterRef::Target),
        write("overlay", Write::Overlay, Ownership::Managed, ClusterRef::Target),
        write("apply-as", Write::ApplyAs(text("helm")), Ownership::Managed, ClusterRef::Target),
    ];
    Stage { writes, ..stage("writes", Gate::Accepted) }
}

fn stages() -> Vec<Stage> {
    let removal = ObjectRemoval { key: key("ConfigMap", "old"), on: ClusterRef::Target, force: true };
    let check = |name: &str, scope, rule| Readiness {
        name: text(name),
        on: ClusterRef::Target,
        scope,
        rule,
        timeout: Some(30_000),
    };
    let requirement = Requirement { path: text(".data.made"), operator: text("in"), values: vec![text("\"once\"")] };
    let ready = vec![
        check("usual", Scope::Stage, ReadinessRule::Usual),
        check("fields", Scope::Keys(vec![key("ConfigMap", "a")]), ReadinessRule::Requirements(vec![requirement])),
        check(
            "expression",
            Scope::Matching(selection(&[], Some("app=web"), None)),
            ReadinessRule::Expression(text("has(object.data)")),
        ),
    ];
    vec![
        writes(),
        Stage { removals: vec![removal], ..stage("removals", Gate::Gone) },
        stage("ready", Gate::Ready(ready)),
        stage("completed", Gate::Completed(vec![key("Job", "a")])),
    ]
}

fn exports() -> Vec<ExportRule> {
    let then = Follow { api_version: text("v1"), kind: text("ConfigMap"), path: text(".data.k") };
    let source =
        PathSource { on: ClusterRef::Target, key: key("ConfigMap", "a"), path: text(".data.k"), then: Some(then) };
    vec![
        ExportRule { key: text("known.value"), source: ExportSource::Value(text("7")) },
        ExportRule { key: text("read"), source: ExportSource::Path(source) },
    ]
}

fn orders() -> Vec<DeletionGroup> {
    let group = |what| DeletionGroup { on: ClusterRef::Target, what, force: false };
    vec![
        group(vec![DeletionScope::Namespaced, DeletionScope::Managed(selection(&["a"], None, None))]),
        group(vec![DeletionScope::ClusterScoped, DeletionScope::CustomResourceDefinitions]),
        DeletionGroup { force: true, ..group(vec![DeletionScope::Matching(selection(&[], Some("app=web"), None))]) },
    ]
}

fn problem(at: &str) -> Problem {
    Problem { code: text("ERR_CONFIGURATION_PROBLEM"), message: text("as configured"), at: Some(text(at)) }
}

fn plan(of: &Item, stages: Vec<Stage>) -> Result<Proposal, Fault> {
    let checkpoint = b"next".to_vec();
    let next = match of.config.as_str() {
        "\"invalid\"" => return Err(Fault::Invalid(problem("/a"))),
        "\"later\"" => return Err(Fault::Later(problem("/b"))),
        "\"denied\"" => return Err(Fault::Denied(problem("/c"))),
        "\"fail\"" => Next::Fail(problem("/d")),
        "\"continueWith\"" => Next::ContinueWith(checkpoint),
        "\"againIn\"" => Next::AgainIn((5_000, checkpoint)),
        _ => Next::Finish(Completion { exports: exports(), afterwards: vec![stage("afterwards", Gate::Accepted)] }),
    };
    let status = ["{\"told\":", json(&texts_of(of)).as_str(), ",\"read\":", json(&read(of)?).as_str(), "}"].concat();
    Ok(Proposal {
        stages,
        next,
        recover: Some(b"recover".to_vec()),
        status: Some(status),
        deletion_order: orders(),
        pruning_order: orders(),
    })
}

impl deploy::Guest for Guest {
    fn plan(of: Item) -> Result<Proposal, Fault> {
        plan(&of, stages())
    }
}

impl uninstall::Guest for Guest {
    fn plan(of: Item) -> Result<Proposal, Fault> {
        plan(&of, vec![])
    }
}

impl validate::Guest for Guest {
    fn schema() -> String {
        text("{\"type\":\"string\"}")
    }

    fn check(config: String) -> Vec<Problem> {
        if config == "\"good\"" { vec![] } else { vec![problem("/config")] }
    }
}

impl tests::Guest for Guest {
    fn find(of: Subject) -> Result<Option<Vec<Test>>, Fault> {
        if of.namespace != "default" {
            return Ok(None);
        }
        Ok(Some(vec![Test {
            source: text("templates/test.yaml"),
            object: object("Pod", &of.name),
            delete_before: true,
            delete_after_success: true,
            delete_after_failure: false,
        }]))
    }
}

export!(Guest);
