//! What really failed: root causes, and what usually helps.

use orangery_api::error::LastError;
use orangery_core::{error::Code, name::Namespace, name::ObjectName};
use serde::Serialize;

use crate::tree::{NodeKind, Tree, TreeNode, Trouble};

/// A node that failed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFailure<'a> {
    /// Where it is: namespace, root installation, sub-installations and deploy item, with slashes between.
    pub path: String,
    /// The object's kind.
    pub kind: NodeKind,
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// Its name.
    pub name: &'a ObjectName,
    /// Why it failed.
    #[serde(flatten)]
    pub trouble: &'a Trouble,
    /// The path of the installation.
    #[serde(skip)]
    installation: String,
    #[serde(skip)]
    title: &'a str,
}

impl NodeFailure<'_> {
    /// What failed, in words.
    pub fn subject(&self) -> String {
        match self.kind {
            NodeKind::Installation => format!("installation {}", self.path),
            NodeKind::Execution => format!("the execution of installation {}", self.installation),
            NodeKind::DeployItem if self.installation.is_empty() => format!("deploy item {}", self.path),
            NodeKind::DeployItem => format!("deploy item {} of installation {}", self.title, self.installation),
        }
    }

    /// The error in full, as text after `error: `: the sentence, then reason and codes, then what usually helps.
    pub fn text(&self) -> String {
        let mut text = format!("{} failed: {}", self.subject(), self.trouble.message.trim_end().replace('\n', "\n  "));
        text.push_str(&format!("\n  reason: {}", self.trouble.reason));
        if !self.trouble.operation.is_empty() {
            text.push_str(&format!(" (in {})", self.trouble.operation));
        }
        if !self.trouble.codes.is_empty() {
            text.push_str(&format!("\n  code:   {}", self.trouble.codes.join(", ")));
        }
        if let Some(hint) = self.trouble.hint {
            text.push_str(&format!("\n  hint:   {hint}"));
        }
        text
    }
}

pub(super) fn causes(tree: &Tree) -> Vec<NodeFailure<'_>> {
    let mut found = Vec::new();
    for root in &tree.roots {
        collect(root, &root.namespace, "", &mut found);
    }
    found
}

/// `above` is the path of what the node belongs to, `installation` that of the nearest installation.
fn collect<'a>(node: &'a TreeNode, above: &str, installation: &str, found: &mut Vec<NodeFailure<'a>>) {
    // An execution has the name of its installation: its own step would say nothing.
    let path = match node.kind {
        NodeKind::Execution if !installation.is_empty() => above.to_owned(),
        NodeKind::Installation | NodeKind::Execution | NodeKind::DeployItem => format!("{above}/{}", node.title),
    };
    let installation = if node.kind == NodeKind::Installation { path.as_str() } else { installation };
    if let Some(trouble) = node.error.as_ref().filter(|_| node.is_cause()) {
        found.push(NodeFailure {
            path: path.clone(),
            kind: node.kind,
            namespace: &node.namespace,
            name: &node.name,
            trouble,
            installation: installation.to_owned(),
            title: &node.title,
        });
    }
    for child in &node.children {
        collect(child, &path, installation, found);
    }
}

/// What usually helps against the first code that anything helps against.
pub(super) fn hint(codes: &[String]) -> Option<&'static str> {
    codes.iter().find_map(|code| of_code(&Code::from(code.as_str())))
}

fn of_code(code: &Code) -> Option<&'static str> {
    match code {
        Code::Unauthorized => Some("check the kubeconfig in the Target, and what its user may do there"),
        Code::Cleanup => Some("look at what holds the objects (finalizers), then: orangery reconcile NAME"),
        // A template that fails is its author's own affair, which is what the original's code means.
        Code::ConfigurationProblem | Code::ForInfoOnly => {
            Some("correct the blueprint or the installation, apply it, then: orangery reconcile NAME")
        }
        Code::Timeout => Some("look at the object that did not become ready, or raise the deploy item's timeout"),
        Code::CyclicDependencies => Some("break the ring: one of its members must not need the next"),
        Code::Forbidden => Some("add the grant to the component's registration, if it is to have it"),
        Code::LimitExceeded => Some("raise the limit in the component's registration, if it is to have more"),
        Code::PolicyViolation => Some("see what counts in the namespace: orangery policy explain NAMESPACE"),
        Code::Webhook => Some("check that the admission webhook that it names answers, or take its configuration away"),
        Code::InternalProblem | Code::Unfinished | Code::NoRetry | Code::Other(_) => None,
    }
}

/// The failure that a status tells.
pub(super) fn trouble(error: &LastError) -> Trouble {
    Trouble {
        operation: error.operation.clone(),
        reason: error.reason.clone(),
        message: error.message.clone(),
        codes: error.codes.clone(),
        hint: hint(&error.codes),
    }
}

/// A failure without a word: only external deployers do that.
pub(super) fn untold() -> Trouble {
    Trouble {
        operation: String::new(),
        reason: "Failed".to_owned(),
        message: "it failed and says nothing about why; look at the logs of its deployer".to_owned(),
        codes: Vec::new(),
        hint: None,
    }
}
