//! `orangery targets`: Targets made of what is at hand (C-379).

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use orangery_api::{
    API_VERSION,
    target::{KUBERNETES_CLUSTER, Target},
};
use orangery_cluster::{MOST_KUBECONFIG_BYTES, in_use};
use orangery_core::name::{Namespace, ObjectName, can_be_name};
use serde_json::{Value, json};

use crate::{command_error::CommandError, exit::Exit, form::yaml, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  orangery targets create kubernetes-cluster --name cluster --target-kubeconfig admin.yaml | kubectl apply -f -
  orangery targets create kubernetes-cluster --name cluster --target-kubeconfig admin.yaml --secret access -n demo

The kubeconfig is checked as the operator checks it, and only what its current context names is taken. What is printed holds its
credentials.";

/// Makes Targets.
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct TargetsArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: TargetsCommand,
}

/// What is done with Targets.
#[derive(Clone, Debug, Subcommand)]
pub enum TargetsCommand {
    /// Print the manifests of a Target
    #[command(subcommand)]
    Create(TargetType),
}

/// The types of Targets that can be made.
#[derive(Clone, Debug, Subcommand)]
pub enum TargetType {
    /// A cluster, of a kubeconfig
    #[command(alias = "k8s-cluster")]
    KubernetesCluster(KubernetesClusterTarget),
}

/// Prints a Target of a cluster, of a file with its kubeconfig.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct KubernetesClusterTarget {
    /// The name of the Target
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: ObjectName,
    /// Its namespace [default: none; whoever applies it chooses]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = str::parse::<Namespace>)]
    pub namespace: Option<Namespace>,
    /// The file with the kubeconfig
    #[arg(long, value_name = "FILE")]
    pub target_kubeconfig: PathBuf,
    /// Put the kubeconfig into a Secret of this name, and not into the Target
    #[arg(short, long, value_name = "NAME", value_parser = name)]
    pub secret: Option<ObjectName>,
}

/// A name that an object can have.
fn name(text: &str) -> Result<ObjectName, String> {
    if text.len() <= orangery_core::name::NAME_LENGTH && can_be_name(text) {
        return Ok(text.into());
    }
    Err("no object can have this name: small letters, digits, '-' and '.', and a letter or digit at both ends"
        .to_owned())
}

impl KubernetesClusterTarget {
    /// Prints the manifests.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let path = &self.target_kubeconfig;
        let text = read(path).map_err(|cause| CommandError::Read { path: path.clone(), cause })?;
        let kubeconfig = in_use(&text).map_err(|cause| CommandError::Kubeconfig { path: path.clone(), cause })?;
        let documents = self.documents(&kubeconfig).iter().map(yaml).collect::<Result<Vec<_>, _>>()?;
        terminal.text(&documents.join("---\n"))?;
        Ok(Exit::Ok)
    }

    fn documents(&self, kubeconfig: &str) -> Vec<Value> {
        let metadata = |name: &ObjectName| match &self.namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        };
        let secret = self.secret.as_ref().map(|secret| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": metadata(secret), "type": "Opaque",
                "stringData": {"kubeconfig": kubeconfig},
            })
        });
        let spec = match &self.secret {
            Some(secret) => json!({"type": KUBERNETES_CLUSTER, "secretRef": {"name": secret, "key": "kubeconfig"}}),
            None => json!({"type": KUBERNETES_CLUSTER, "config": {"kubeconfig": kubeconfig}}),
        };
        let kind = <Target as kube::Resource>::kind(&());
        let target = json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata(&self.name), "spec": spec});
        secret.into_iter().chain([target]).collect()
    }
}

/// A file, or as much of it as a kubeconfig may have and one byte more.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let most = u64::try_from(MOST_KUBECONFIG_BYTES).unwrap_or(u64::MAX);
    File::open(path)?.take(most.saturating_add(1)).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;

    use super::*;
    use crate::{
        arguments::{Cli, Command},
        command::Tool,
        terminal::{Appearance, tests::display},
    };

    fn run(content: &str, line: &[&str]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin.yaml");
        fs::write(&file, content).unwrap();
        let begin = ["orangery", "targets", "create", "kubernetes-cluster", "--name", "cluster", "--target-kubeconfig"];
        let words = begin.into_iter().chain([file.to_str().unwrap()]).chain(line.iter().copied());
        let Command::Tool(Tool::Targets(targets)) = Cli::try_parse_from(words).unwrap().command else { unreachable!() };
        let TargetsCommand::Create(TargetType::KubernetesCluster(command)) = targets.command;
        let (mut terminal, out, _) = display(Appearance::PLAIN);
        let ended = command.execute(&mut terminal);
        ended.map(|_| out.text()).map_err(|error| error.to_string().replace(file.to_str().unwrap(), "FILE"))
    }

    fn kubeconfig(user: &Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://a"}}, {"name": "other", "cluster": {"server": "https://b"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": user}],
        })
        .to_string()
    }

    fn documents(text: &str) -> Vec<Value> {
        text.split("---\n").map(|document| orangery_core::yaml::decode(document).unwrap()).collect()
    }

    #[test]
    fn c_379_a_target_has_the_kubeconfig_or_a_secret_with_it() {
        let text = kubeconfig(&json!({"token": "t"}));
        let used = in_use(&text).unwrap();
        assert!(!used.contains("https://b"), "{used}");
        let kind = "landscaper.gardener.cloud/kubernetes-cluster";
        let target = |metadata: Value, spec: Value| json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target", "metadata": metadata, "spec": spec});
        let inline = target(json!({"name": "cluster"}), json!({"type": kind, "config": {"kubeconfig": used}}));
        assert_eq!(documents(&run(&text, &[]).unwrap()), [inline]);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "access", "namespace": "demo"}, "type": "Opaque",
            "stringData": {"kubeconfig": used},
        });
        let spec = json!({"type": kind, "secretRef": {"name": "access", "key": "kubeconfig"}});
        let target = target(json!({"name": "cluster", "namespace": "demo"}), spec);
        assert_eq!(documents(&run(&text, &["--secret", "access", "-n", "demo"]).unwrap()), [secret, target]);
    }

    #[test]
    fn c_379_a_kubeconfig_that_no_target_could_use_is_refused() {
        let runs = run(&kubeconfig(&json!({"exec": {"apiVersion": "v1", "command": "sh"}})), &[]).unwrap_err();
        assert!(runs.starts_with("FILE: exec is not allowed in the kubeconfig of a target"), "{runs}");
        let unreadable = run(": :", &[]).unwrap_err();
        assert!(unreadable.starts_with("FILE: the kubeconfig of the target"), "{unreadable}");
        let large = run(&"#".repeat(MOST_KUBECONFIG_BYTES + 10), &[]).unwrap_err();
        assert!(
            large.starts_with("FILE: the kubeconfig of the target has 1048577 bytes, 1048576 are allowed"),
            "{large}"
        );
        assert_eq!(name("Cluster").map(drop).unwrap_err().split(':').next(), Some("no object can have this name"));
    }
}
