//! The configuration of an item, and that of the deployer.

use orangery_sdk::{
    Fault, Item, Problem,
    lenient::{Place, check_continuous_reconcile},
};
use serde_json::{Value, json};

/// The group of both configurations and of the status.
pub(crate) const GROUP: &str = "container.deployer.landscaper.gardener.cloud";

/// How many Secrets, of 1 MiB each, are made for the state of a run where the deployer's configuration does not say it.
const STATE_SECRETS: u64 = 4;

/// The most that it may say.
const MOST_STATE_SECRETS: u64 = 8;

/// What a deploy item asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderConfiguration {
    /// The image of the program; `None` leaves it to the deployer.
    pub(crate) image: Option<String>,
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
    /// Any JSON.
    pub(crate) imports: Option<Value>,
    pub(crate) blueprint: Option<Blueprint>,
    /// As an installation has it.
    pub(crate) descriptor: Option<Value>,
    pub(crate) pull_secrets: Vec<SecretName>,
    /// The namespace of the target's cluster that the pod is in; `None` runs it where the deployer does.
    pub(crate) target_namespace: Option<String>,
}

/// The files for `CONTENT_PATH`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Blueprint {
    /// The name of a resource of the component version.
    Resource(String),
    /// Text by the path of its file.
    Files(Vec<(String, String)>),
}

/// A Secret with credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ProviderConfiguration {
    /// Reads the configuration of an item.
    pub(crate) fn read(config: &Value) -> Result<Self, Problem> {
        let config = Place::root(config);
        config.version(GROUP, &["v1alpha1"])?;
        check_continuous_reconcile(&config)?;
        let descriptor = config.field("componentDescriptor")?;
        let blueprint = config.field("blueprint")?.map(|place| blueprint(&place, descriptor.is_some())).transpose()?;
        Ok(Self {
            image: config.text_of("image")?.filter(|image| !image.is_empty()).map(str::to_owned),
            command: texts(&config, "command")?,
            args: texts(&config, "args")?,
            imports: config.field("importValues")?.map(|place| place.value().clone()),
            blueprint,
            descriptor: descriptor.map(|place| source(&place)).transpose()?,
            pull_secrets: config.items_of("registryPullSecrets")?.iter().map(secret_name).collect::<Result<_, _>>()?,
            target_namespace: config.field("pod")?.map(|place| target_namespace(&place)).transpose()?.flatten(),
        })
    }
}

/// Where the pod runs: `{"cluster": "target", "namespace": …}`. Without it, and on the cluster `host`, the deployer says it.
fn target_namespace(place: &Place<'_>) -> Result<Option<String>, Problem> {
    let namespace = place.field("namespace")?.map(|place| place.name().map(str::to_owned)).transpose()?;
    match (place.text_of("cluster")?, namespace) {
        (Some("target"), namespace) => Ok(Some(namespace.unwrap_or_else(|| "default".to_owned()))),
        (None | Some("host"), None) => Ok(None),
        (None | Some("host"), Some(_)) => Err(place.problem(
            "the namespace of pods on the cluster of the operator is what its administrator says; leave it out, or write cluster: target",
        )),
        (Some(other), _) => Err(place.problem(format!("{other:?} is no cluster that pods run on; write host or target"))),
    }
}

fn secret_name(place: &Place<'_>) -> Result<SecretName, Problem> {
    let text = |field: &str| Ok::<_, Problem>(place.required(field)?.name()?.to_owned());
    Ok(SecretName { name: text("name")?, namespace: text("namespace")? })
}

fn texts(place: &Place<'_>, field: &str) -> Result<Vec<String>, Problem> {
    place.items_of(field)?.iter().map(|item| item.text().map(str::to_owned)).collect()
}

/// What names a component version, as it stands.
fn source(place: &Place<'_>) -> Result<Value, Problem> {
    match (place.field("ref")?, place.field("inline")?) {
        (Some(reference), None) => {
            for field in ["componentName", "version"] {
                reference.required(field)?.name()?;
            }
            Ok(json!({"ref": reference.value()}))
        }
        (None, Some(descriptor)) => {
            descriptor.object()?;
            Ok(json!({"inline": descriptor.value()}))
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(place.problem("a component descriptor is either ref or inline; write one of them"))
        }
    }
}

fn blueprint(place: &Place<'_>, has_descriptor: bool) -> Result<Blueprint, Problem> {
    match (place.field("ref")?, place.field("inline")?) {
        (Some(reference), None) if has_descriptor => {
            Ok(Blueprint::Resource(reference.required("resourceName")?.name()?.to_owned()))
        }
        (Some(reference), None) => {
            Err(reference.problem("a blueprint by ref is a resource of a component version; add componentDescriptor"))
        }
        (None, Some(inline)) => {
            let mut files = Vec::new();
            collect(&inline.required("filesystem")?, "", &mut files)?;
            Ok(Blueprint::Files(files))
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(place.problem("a blueprint is either ref or inline; write one of them"))
        }
    }
}

/// The files of a file system that is written into a configuration: text, or folders of the same.
fn collect(folder: &Place<'_>, path: &str, files: &mut Vec<(String, String)>) -> Result<(), Problem> {
    for (name, content) in folder.object()? {
        let is_usable = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
        if !is_usable {
            return Err(folder.problem(format!("{name:?} is no name of a file; write one without a slash")));
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        match content {
            Value::String(text) => files.push((path, text.clone())),
            Value::Object(_) => collect(&folder.required(name)?, &path, files)?,
            _ => return Err(folder.problem(format!("{path} is neither text nor a folder of files"))),
        }
    }
    Ok(())
}

/// One of the two containers of the deployer itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnContainer {
    pub(crate) image: String,
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) pull_policy: String,
}

/// What whoever operates the host says of this deployer: `kind: Configuration` of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeployerConfiguration {
    /// Goes into labels.
    pub(crate) identity: String,
    /// Where pods run; `None` is the namespace of the item.
    pub(crate) namespace: Option<String>,
    /// The image of an item that names none.
    pub(crate) default_image: Option<String>,
    pub(crate) init: OwnContainer,
    pub(crate) wait: OwnContainer,
    /// Whether pods stay when they have ended, to be looked at.
    pub(crate) keeps_pods: bool,
    /// How many Secrets are made for the state of a run.
    pub(crate) state_secrets: u64,
}

impl DeployerConfiguration {
    /// Reads the configuration of the deployer.
    ///
    /// # Errors
    /// There is none, or it cannot be read: no user can mend that.
    pub(crate) fn read(item: &Item) -> Result<Self, Fault> {
        let told = |why: String| {
            let message = format!("{why}; the operator is given that as --container-deployer FILE");
            Problem { code: orangery_sdk::CONFIGURATION_PROBLEM.to_owned(), message, at: None }
        };
        let Some(text) = &item.configuration else {
            let message = "containers need a cluster that runs pods, and this host has no configuration of the container deployer: \
                           `orangery run` is given one by --container-deployer FILE; `orangery up` runs no containers, and plays \
                           them with --simulate-workloads";
            return Err(Problem { message: message.to_owned(), ..told(String::new()) }.into());
        };
        let unread = |why: String| told(format!("the configuration of the container deployer cannot be used: {why}"));
        let value: Value = serde_json::from_str(text).map_err(|error| unread(format!("it is not JSON: {error}")))?;
        Self::of(&Place::root(&value)).map_err(|problem| unread(problem.to_string()).into())
    }

    fn of(config: &Place<'_>) -> Result<Self, Problem> {
        let text =
            |name: &str| Ok::<_, Problem>(config.text_of(name)?.filter(|text| !text.is_empty()).map(str::to_owned));
        let image =
            config.field("defaultImage")?.map(|place| place.text_of("image").map(|text| text.map(str::to_owned)));
        let state_secrets = match config.field("stateSecrets")? {
            None => STATE_SECRETS,
            Some(place) => place
                .value()
                .as_u64()
                .filter(|count| (1..=MOST_STATE_SECRETS).contains(count))
                .ok_or_else(|| place.problem(format!("stateSecrets is a number from 1 to {MOST_STATE_SECRETS}")))?,
        };
        Ok(Self {
            identity: text("identity")?.unwrap_or_default(),
            namespace: text("namespace")?,
            default_image: image.transpose()?.flatten().filter(|image| !image.is_empty()),
            init: own_container(config, "initContainer", "init")?,
            wait: own_container(config, "waitContainer", "wait")?,
            keeps_pods: config.field("debug")?.map(|debug| debug.flag_of("keepPod")).transpose()?.unwrap_or(false),
            state_secrets,
        })
    }
}

fn own_container(config: &Place<'_>, field: &str, word: &str) -> Result<OwnContainer, Problem> {
    let place = config.required(field)?;
    let args = texts(&place, "args")?;
    Ok(OwnContainer {
        image: place.required("image")?.name()?.to_owned(),
        command: texts(&place, "command")?,
        args: if args.is_empty() { vec!["container".to_owned(), word.to_owned()] } else { args },
        pull_policy: place
            .text_of("imagePullPolicy")?
            .filter(|policy| !policy.is_empty())
            .unwrap_or("IfNotPresent")
            .to_owned(),
    })
}

/// The JSON Schema of the configuration of an item.
pub(crate) fn schema() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"const": format!("{GROUP}/v1alpha1")},
            "kind": {"const": "ProviderConfiguration"},
            "image": {"type": "string"},
            "command": texts,
            "args": texts,
            "importValues": {},
            "blueprint": {"type": "object"},
            "componentDescriptor": {"type": "object"},
            "registryPullSecrets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "namespace"],
                    "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}},
                },
            },
            "continuousReconcile": {"type": "object"},
            "pod": {
                "type": "object",
                "properties": {"cluster": {"enum": ["host", "target"]}, "namespace": {"type": "string"}},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: Value) -> Result<ProviderConfiguration, String> {
        let mut config = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProviderConfiguration"});
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        ProviderConfiguration::read(&config).map_err(|problem| problem.to_string())
    }

    #[test]
    fn con_01_what_is_wrong_is_told_with_its_place() {
        let message = |fields: Value| read(fields).unwrap_err();
        assert_eq!(
            message(json!({"registryPullSecrets": [{"namespace": "a"}]})),
            "name is missing; add it (at /registryPullSecrets/0/name)"
        );
        assert_eq!(
            message(json!({"blueprint": {"ref": {"resourceName": "b"}}})),
            "a blueprint by ref is a resource of a component version; add componentDescriptor (at /blueprint/ref)"
        );
        assert_eq!(
            message(json!({"componentDescriptor": {}})),
            "a component descriptor is either ref or inline; write one of them (at /componentDescriptor)"
        );
        assert_eq!(
            message(json!({"blueprint": {"inline": {"filesystem": {"a": {"..": "x"}}}}})),
            "\"..\" is no name of a file; write one without a slash (at /blueprint/inline/filesystem/a)"
        );
    }

    #[test]
    fn con_02_import_values_may_be_anything_and_files_have_their_paths() {
        let config = read(json!({"importValues": "abc", "blueprint": {"inline": {"filesystem":
            {"blueprint.yaml": "a: 1", "docs": {"a.md": "x"}}}}}))
        .unwrap();
        assert_eq!(config.imports, Some(json!("abc")));
        let files =
            [("blueprint.yaml", "a: 1"), ("docs/a.md", "x")].map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(config.blueprint, Some(Blueprint::Files(files.into())));
    }

    #[test]
    fn con_22_a_pod_on_the_cluster_of_the_target_is_asked_for() {
        let place = |pod: Value| read(json!({"pod": pod})).map(|config| config.target_namespace);
        assert_eq!(place(json!({"cluster": "target", "namespace": "tasks"})), Ok(Some("tasks".to_owned())));
        assert_eq!(place(json!({"cluster": "target"})), Ok(Some("default".to_owned())));
        assert_eq!([place(json!({"cluster": "host"})), place(json!({}))], [Ok(None), Ok(None)]);
        assert_eq!(
            place(json!({"cluster": "moon"})).unwrap_err(),
            "\"moon\" is no cluster that pods run on; write host or target (at /pod)"
        );
        assert_eq!(
            place(json!({"namespace": "a"})).unwrap_err(),
            "the namespace of pods on the cluster of the operator is what its administrator says; leave it out, or write cluster: \
             target (at /pod)"
        );
    }

    #[test]
    fn limits_state_secrets_so_many_are_made_at_most() {
        let of = |count: u64| {
            let own = json!({"image": "i"});
            let config = json!({"initContainer": own, "waitContainer": own, "stateSecrets": count});
            DeployerConfiguration::of(&Place::root(&config))
                .map(|read| read.state_secrets)
                .map_err(|problem| problem.message)
        };
        assert_eq!(of(MOST_STATE_SECRETS), Ok(MOST_STATE_SECRETS));
        assert_eq!(of(MOST_STATE_SECRETS + 1), Err(format!("stateSecrets is a number from 1 to {MOST_STATE_SECRETS}")));
        assert_eq!(of(0), Err(format!("stateSecrets is a number from 1 to {MOST_STATE_SECRETS}")));
    }
}
