//! A blueprint that is ready to be rendered: its files, what its templates see, and what they may reach
//! (`docs/wire.md` §4.3, §4.4, §5.8).

use std::sync::Arc;

use orangery_blueprint::{
    Blueprint, BlueprintError, FileSystem, FileSystemError,
    plugins::Plugins,
    record::RecordWriter,
    template_engine::{JobRandomness, Kubeconfigs, TemplateContext},
};
use orangery_core::{
    error::{Code, Failure, Fault},
    name::Namespace,
};
use orangery_ocm::{
    Artifacts, ComponentVersion, Components, DescriptorSchema, Files, ResourceReference, Unavailable, list,
};
use serde_json::Value;

use crate::{InputDefinitions, RenderedSubject};

/// The annotation of a blueprint that chooses the schema of descriptors.
const SCHEMA: &str = "ocmSchemaVersion";

/// A component version that is open.
#[derive(Clone)]
pub struct OpenedComponent {
    /// The component version.
    pub version: Arc<dyn ComponentVersion>,
    /// `spec.componentDescriptor` as it was followed: the input `componentDescriptorDef`.
    pub source: Value,
    /// What overwrites made of the reference ([`ComponentRequest::overwritten`]).
    ///
    /// [`ComponentRequest::overwritten`]: orangery_ocm::ComponentRequest::overwritten
    pub overwritten: Option<Result<String, String>>,
}

/// `spec.blueprint` of an installation.
#[derive(Clone, Copy, Debug)]
pub struct BlueprintSource<'a> {
    /// `inline.filesystem`, where the files are written out.
    pub inline: Option<&'a Value>,
    /// `ref.resourceName`, where they are a resource of the component version.
    pub resource: Option<&'a str>,
}

/// What templates reach besides the blueprint's files and its component version.
#[derive(Clone)]
pub struct TemplateAccess {
    /// For which namespace is rendered.
    pub namespace: Namespace,
    /// Components in registries.
    pub artifacts: Arc<dyn Artifacts>,
    /// Credentials.
    pub kubeconfigs: Arc<dyn Kubeconfigs>,
    /// Time and randomness of the job.
    pub rng: JobRandomness,
}

/// A blueprint, and what its templates see and may reach.
pub struct LoadedBlueprint {
    /// The blueprint.
    pub blueprint: Blueprint,
    /// What its templates may reach.
    pub context: TemplateContext,
    /// What they see of the installation.
    pub definitions: InputDefinitions,
    /// The component version that it belongs to.
    pub component: Option<Arc<dyn ComponentVersion>>,
    /// What overwrites made of the reference to it ([`OpenedComponent::overwritten`]).
    pub overwritten: Option<Result<String, String>>,
}

/// Why a blueprint cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// `spec.blueprint` has none of its forms, or both.
    #[error("spec.blueprint needs exactly one of ref and inline")]
    NotOneSource,
    /// A resource of no component version.
    #[error(
        "spec.blueprint.ref names the resource {resource:?}, but the installation has no component version to find it in; set spec.componentDescriptor"
    )]
    NoComponent {
        /// The resource.
        resource: String,
    },
    /// The component version lacks it, or cannot be reached.
    #[error("{0}")]
    Component(Fault),
    /// The files are not written as files are.
    #[error(transparent)]
    Files(#[from] FileSystemError),
    /// The blueprint is invalid.
    #[error(transparent)]
    Blueprint(#[from] Box<BlueprintError>),
    /// An unknown schema of descriptors.
    #[error(
        "the annotation {SCHEMA} of the blueprint is {found:?}; known are {} and {}",
        DescriptorSchema::V2.name(),
        DescriptorSchema::V3Alpha1.name()
    )]
    Schema {
        /// Its name.
        found: String,
    },
}

impl LoadError {
    /// As it is written to `status.lastError`.
    pub fn failure(&self) -> Failure {
        let reason = match self {
            LoadError::Component(fault) => {
                let failure = Failure::new("ReadComponent", "ComponentNotUsable", fault.problem().message.clone());
                return match fault {
                    Fault::Later(_) => failure,
                    Fault::Invalid(problem) | Fault::Denied(problem) => failure.with_code(problem.code.clone()),
                };
            }
            LoadError::NoComponent { .. } => "NoComponentDescriptor",
            LoadError::NotOneSource | LoadError::Files(_) | LoadError::Blueprint(_) | LoadError::Schema { .. } => {
                "InvalidBlueprint"
            }
        };
        Failure::new("ReadBlueprint", reason, self.to_string()).with_code(Code::ConfigurationProblem)
    }

    /// Whether trying again may help without a change of anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, LoadError::Component(Fault::Later(_)))
    }
}

/// The files of a blueprint: written out, or a resource of the component version.
///
/// # Errors
/// [`LoadError`]
pub async fn files(
    source: BlueprintSource<'_>,
    component: Option<&dyn ComponentVersion>,
) -> Result<Arc<dyn Files>, LoadError> {
    match (source.inline, source.resource, component) {
        (Some(tree), None, _) => Ok(Arc::new(FileSystem::parse(tree)?)),
        (None, Some(resource), Some(component)) => {
            component.blueprint(&ResourceReference::named(resource)).await.map_err(LoadError::Component)
        }
        (None, Some(resource), None) => Err(LoadError::NoComponent { resource: resource.to_owned() }),
        (None, None, _) | (Some(_), Some(_), _) => Err(LoadError::NotOneSource),
    }
}

impl LoadedBlueprint {
    /// Reads the blueprint of these files. `spec` is `spec.blueprint`, as templates see it.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn new(
        files: Arc<dyn Files>,
        spec: Value,
        opened: Option<OpenedComponent>,
        reach: TemplateAccess,
    ) -> Result<Self, LoadError> {
        let blueprint = Blueprint::parse(files.as_ref()).map_err(Box::new)?;
        let definitions = definitions(spec, &blueprint, opened.as_ref())?;
        let (component, overwritten) = opened.map(|opened| (opened.version, opened.overwritten)).unzip();
        let components = component.clone().map(ComponentVersion::templates);
        let context = TemplateContext {
            namespace: Some(reach.namespace),
            components: components.unwrap_or_else(|| Arc::new(Unavailable) as Arc<dyn Components>),
            artifacts: reach.artifacts,
            kubeconfigs: reach.kubeconfigs,
            rng: reach.rng,
            ..TemplateContext::of_files(files)
        };
        Ok(Self { blueprint, context, definitions, component, overwritten: overwritten.flatten() })
    }

    /// What is rendered of it in one job.
    pub fn subject<'a>(&'a self, scope: RecordWriter<'a>, plugins: &'a dyn Plugins) -> RenderedSubject<'a> {
        RenderedSubject {
            blueprint: &self.blueprint,
            scope,
            plugins,
            context: &self.context,
            definitions: &self.definitions,
            component: self.component.as_deref(),
        }
    }
}

/// What templates see of the installation itself.
fn definitions(
    spec: Value,
    blueprint: &Blueprint,
    opened: Option<&OpenedComponent>,
) -> Result<InputDefinitions, LoadError> {
    let schema = match blueprint.annotations.get(SCHEMA) {
        Some(name) => Some(DescriptorSchema::named(name).ok_or_else(|| LoadError::Schema { found: name.clone() })?),
        None => opened.map(|opened| opened.version.schema()),
    };
    let descriptors = opened.zip(schema).map(|(opened, schema)| {
        let all = opened.version.descriptors().iter().map(Arc::as_ref);
        (opened.version.descriptor().render(schema), list(all, schema))
    });
    let (descriptor, components) = descriptors.unwrap_or((Value::Null, Value::Null));
    let component_descriptor = opened.map(|opened| opened.source.clone());
    Ok(InputDefinitions { blueprint: spec, component_descriptor, descriptor, components })
}
