//! What is asked of a policy.

use std::fmt;

use orangery_proposal::{ObjectKey, Selection};

/// What something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySubject<'a> {
    /// An Installation: its blueprint and templates.
    Installation,
    /// A deploy item of this type.
    Item(&'a str),
}

/// What is about to be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyRequest<'a> {
    /// An item of an external deployer: nobody can approve what that writes.
    Unapproved,
    /// An item of this type is worked on.
    ItemType(&'a str),
    /// A blueprint, or a component descriptor, that is written into its Installation.
    InlineBlueprint,
    /// A blueprint that is not of a component version whose signature was asked for.
    UnsignedBlueprint,
    /// A component version of this name, without a signature.
    UnsignedComponent(&'a str),
    /// A deploy item of this name that stems from no blueprint whose signature held, or is not as it was made from one.
    UnsignedItem(&'a str),
    /// A component of the operator of this name, whose registration does not name the digest of its content.
    UnpinnedPlugin(&'a str),
    /// A call of a component of this name, whose registration lets it take so much memory.
    PluginMemory {
        /// The name of the component.
        plugin: &'a str,
        /// The limit of its memory.
        mib: u64,
    },
    /// The key by which a signature of a component version is verified.
    Signature {
        /// The name of the component version.
        component: &'a str,
        /// The name of the signature.
        signature: &'a str,
    },
    /// A component that a blueprint brings.
    BlueprintComponent,
    /// A template execution of this type.
    Template(&'a str),
    /// The state of templates in a Secret of this name, which is not as this operator has written it last.
    UnsealedState(&'a str),
    /// The cluster that the operator runs in, without a Target.
    HostCluster,
    /// A cluster at this address: scheme, host and port.
    Server(&'a str),
    /// An object of a target cluster is written or removed.
    Object(&'a ObjectKey),
    /// Whatever matches is deleted, whoever made it.
    Selection(&'a Selection),
    /// Data of Secrets in a DataObject of this name.
    SecretData(&'a str),
    /// Data of Secrets in an object, of this kind and name, whose gate expressions read it.
    SecretDataOfGates(&'a str),
    /// A credential of this kind is issued for a Target.
    Credential(&'a str),
}

impl fmt::Display for PolicyRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text.escape_debug().take(256).collect::<String>();
        let place = |f: &mut fmt::Formatter<'_>, namespace: Option<&str>| match namespace {
            Some(namespace) => write!(f, " in namespace {}", shown(namespace)),
            None => write!(f, " outside of namespaces"),
        };
        match self {
            Self::Unapproved => {
                f.write_str("an item of an external deployer, whose writes nobody can approve (approval: None asks for none),")
            }
            Self::ItemType(of) => write!(f, "an item of type {}", shown(of)),
            Self::InlineBlueprint => f.write_str("a blueprint that is written into its Installation"),
            Self::UnsignedBlueprint => f.write_str(
                "a blueprint that no signature covers (a ref into spec.componentDescriptor with spec.verification would be)",
            ),
            Self::UnsignedComponent(name) => write!(f, "the component {}, which no signature covers", shown(name)),
            Self::UnsignedItem(name) => write!(
                f,
                "the deploy item {}, which is not as an Installation with a signed blueprint has made it",
                shown(name)
            ),
            Self::UnpinnedPlugin(name) => {
                write!(f, "the plugin {}, whose registration names no digest of its component", shown(name))
            }
            Self::PluginMemory { plugin, mib } => {
                write!(f, "a call of the plugin {}, which may take {mib} MiB of memory,", shown(plugin))
            }
            Self::Signature { component, signature } => {
                write!(f, "the signature {} of the component {}", shown(signature), shown(component))
            }
            Self::BlueprintComponent => f.write_str("a component that a blueprint brings (type: Wasm)"),
            Self::Template(of) => write!(f, "a template of type {}", shown(of)),
            Self::UnsealedState(name) => write!(
                f,
                "the state of templates in the Secret {}, which is not as this operator has written it last (where it is deleted, they \
                 begin anew),",
                shown(name)
            ),
            Self::HostCluster => f.write_str("the cluster that the operator runs in"),
            Self::Server(address) => write!(f, "the cluster at {}", shown(address)),
            Self::Object(key) => {
                write!(f, "{} {} {}", shown(&key.api_version), shown(&key.kind), shown(&key.name))?;
                place(f, key.namespace.as_deref())
            }
            Self::Selection(selection) => {
                write!(f, "deleting every {} {}", shown(&selection.api_version), shown(&selection.kind))?;
                place(f, selection.namespace.as_deref())
            }
            Self::SecretData(name) => write!(f, "data of Secrets in the DataObject {}", shown(name)),
            Self::SecretDataOfGates(of) => {
                write!(f, "data of Secrets, which gate expressions read, in the {}", shown(of))
            }
            Self::Credential(of) => write!(f, "a credential of kind {}", shown(of)),
        }
    }
}
