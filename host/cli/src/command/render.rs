//! `orangery render`: what installations would make, without a cluster.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt as _;
use orangery_api::installation::{
    BlueprintReference, BlueprintSource, ComponentDescriptorSource, InlineBlueprint, Installation, InstallationSpec,
};
use orangery_blueprint::template_engine::JobRandomness;
use orangery_core::{
    name::{ApiVersion, Kind, Namespace, ObjectName},
    yaml,
};
use orangery_ocm::Files;
use serde::Serialize;
use serde_json::Value;

use crate::{
    blueprints::{BlueprintsError, FolderFiles, archive_of_blueprint, folder_of_blueprint},
    command_error::CommandError,
    components,
    exit::Exit,
    folder::{self, FolderError},
    form::OutputFormat,
    offline::{
        Given, NamespaceObjects, Offline, OfflineVersions, RenderSubject, RenderedInstallation, descriptor, imports,
        seed,
    },
    repositories::{RepositoryFlags, folders},
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery render my-blueprint -i imports.yaml          a folder with blueprint.yaml
  orangery render my-blueprint.tgz -i imports.yaml      an archive of one, as a component version has it
  orangery render examples/data-flow -i imports.yaml    Installations of manifests, with what they import
  orangery render my-blueprint -i imports.yaml --values exports.yaml -o json

The same code renders in the operator. Printed are deploy items as the Execution has them, sub-installations as far as
their imports are known, exports, and what executions keep. Values of Secrets that templates use are printed as well.

imports.yaml gives imports by name; a Target is the whole object, a target list or map one of whole objects:
  imports:
    replicas: 3
    cluster: {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Target, metadata: {name: c}, spec: {type: …}}

exports.yaml gives what deploy items exported, so that exports can be rendered, and with them what imports them;
state.yaml gives what executions kept. Of several Installations each has its name above. Targets of a sub-installation
of a sub-installation are named after its object; objectName says its name, where it has one already:
  deployItems: {item: {key: value}}
  state: {deployExecutions: {default: {password: p}}}
  subinstallations: {sub: {objectName: sub-x7k2p, deployItems: {…}}}

A component version is opened as the operator opens it: by spec.componentDescriptor, with the Context, the Secrets and
the ConfigMaps among the manifests. A folder or an archive belongs to the one of --component-descriptor.

Rendering twice prints the same: time and randomness are those of --now and --seed.";

/// Renders installations without a cluster, and prints what they would make. Nothing is sent.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Render {
    /// A folder with blueprint.yaml or an archive of one, or a file or folder of manifests with Installations
    #[arg(value_name = "BLUEPRINT")]
    pub path: PathBuf,
    /// File with imports (YAML)
    #[arg(short, long, value_name = "FILE")]
    pub imports: Option<PathBuf>,
    /// File with what deploy items exported (YAML)
    #[arg(long, value_name = "FILE")]
    pub values: Option<PathBuf>,
    /// File with what executions kept from the last job (YAML)
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Namespace of the installation
    #[arg(short, long, default_value = "default", value_parser = str::parse::<Namespace>)]
    pub namespace: Namespace,
    /// Name of the installation of a folder or an archive
    #[arg(long, default_value = "blueprint")]
    pub name: ObjectName,
    /// The time that templates are told
    #[arg(long, value_name = "TIME", default_value = "2000-01-01T00:00:00Z")]
    pub now: Timestamp,
    /// What the randomness of templates is made from; any text
    #[arg(long, default_value = "")]
    pub seed: String,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// How it is written
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = OutputFormat::Yaml)]
    pub output: OutputFormat,
    /// What it is made with of component versions.
    #[command(flatten)]
    pub versions: OfflineVersionFlags,
}

/// The component version that a blueprint belongs to, and where others come from.
#[derive(Clone, Debug, Args)]
pub struct OfflineVersionFlags {
    /// File with the descriptor of the component version that a folder or an archive belongs to (YAML)
    #[arg(long, value_name = "FILE", help_heading = "Component versions")]
    pub component_descriptor: Option<PathBuf>,
    /// Repository where nothing else names one, as repositoryContext of a Context has it (YAML)
    #[arg(long, value_name = "YAML", value_parser = repository_context, help_heading = "Component versions")]
    pub repository_context: Option<Value>,
    /// Where component versions come from; the folders of BLUEPRINT and of the descriptor count like those of
    /// --components.
    #[command(flatten)]
    pub repositories: RepositoryFlags,
}

impl OfflineVersionFlags {
    /// Opens all that the blueprint at `path` may reach.
    pub(crate) fn open(&self, path: &Path) -> Result<OfflineVersions, CommandError> {
        let beside: Vec<PathBuf> =
            self.component_descriptor.iter().map(PathBuf::as_path).chain([path]).map(Path::to_owned).collect();
        let repositories = self.repositories.open(&folders(&beside))?;
        Ok(OfflineVersions { repositories, repository_context: self.repository_context.clone() })
    }

    /// The Installation of a blueprint that is here, as templates see it.
    pub(crate) fn spec(&self, blueprint: BlueprintSource) -> Result<InstallationSpec, CommandError> {
        let inline = self.component_descriptor.as_deref().map(descriptor).transpose()?;
        let component_descriptor = inline.map(|of| ComponentDescriptorSource { reference: None, inline: Some(of) });
        Ok(InstallationSpec { component_descriptor, blueprint, ..InstallationSpec::default() })
    }

    /// What templates see as the blueprint of a folder: its files, as an Installation without a component version has
    /// them, else a resource.
    pub(crate) fn of_folder(&self, files: &FolderFiles) -> BlueprintSource {
        match files.tree(MOST_INLINE).filter(|_| self.component_descriptor.is_none()) {
            Some(filesystem) => BlueprintSource { reference: None, inline: Some(InlineBlueprint { filesystem }) },
            None => resource(),
        }
    }
}

fn repository_context(text: &str) -> Result<Value, String> {
    let value = yaml::decode(text).map_err(|error| error.to_string())?;
    let form = "write it as {type: OCIRegistry, baseUrl: HOST} or {type: CommonTransportFormat, filePath: FILE}";
    if value.is_object() { Ok(value) } else { Err(form.to_owned()) }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RenderOutput {
    api_version: ApiVersion,
    kind: Kind,
    installations: Vec<RenderedInstallation>,
}

/// The most bytes of files that an object of a cluster can hold.
pub(crate) const MOST_INLINE: u64 = 1 << 20;
/// The resource that an archive stands for, and a folder that no object can hold.
const RESOURCE: &str = "blueprint";

impl Render {
    /// Renders, and prints what came of it.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let given = self.imports.as_deref().map(imports).transpose()?.unwrap_or_default();
        let (world, subjects) = self.subjects()?;
        let versions = self.versions.open(&self.path)?;
        let plugins = components::of_command(self.plugins.as_deref())?;
        let mut offline = Offline {
            plugins: plugins.as_ref(),
            versions,
            rng: JobRandomness { now: self.now, seed: seed(&self.seed) },
            namespace: self.namespace,
            world,
            imports: given,
            rendered: 0,
            opaque: None,
        };
        let installations = offline.roots(subjects).await?;
        let document = RenderOutput {
            api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
            kind: Kind::from_static("RenderedInstallations"),
            installations,
        };
        self.output.write(&document, terminal)?;
        Ok(Exit::Ok)
    }

    fn subjects(&self) -> Result<(NamespaceObjects, Vec<RenderSubject>), CommandError> {
        if let Some(folder) = folder_of_blueprint(&self.path) {
            let files = FolderFiles::new(&folder);
            let source = self.versions.of_folder(&files);
            return Ok((NamespaceObjects::default(), vec![self.of_files(Arc::new(files), source)?]));
        }
        if let Some(files) = archive_of_blueprint(&self.path)? {
            return Ok((NamespaceObjects::default(), vec![self.of_files(Arc::new(files), resource())?]));
        }
        if let Some(path) = &self.versions.component_descriptor {
            return Err(CommandError::NotOfAFolder { path: path.clone() });
        }
        let manifests = folder::read(std::slice::from_ref(&self.path));
        let manifests = manifests.map_err(|error| none(&self.path, error))?;
        let (world, installations) = NamespaceObjects::of(&manifests)?;
        if installations.is_empty() {
            return Err(BlueprintsError::None { path: self.path.clone() }.into());
        }
        let names: Vec<String> = installations.iter().map(|of| of.name_any()).collect();
        let mut given = self.named(&names)?;
        let subject = |of: Installation| {
            let name = of.name_any();
            RenderSubject { given: given.remove(&name).unwrap_or_default(), name, spec: of.spec, files: None }
        };
        Ok((world, installations.into_iter().map(subject).collect()))
    }

    /// What is given of each of these Installations.
    fn named(&self, names: &[String]) -> Result<BTreeMap<String, Given>, CommandError> {
        let mut all: BTreeMap<String, Given> = BTreeMap::new();
        for path in [&self.values, &self.state].into_iter().flatten() {
            for (name, given) in Given::read_named(path)? {
                if !names.contains(&name) {
                    let known = names.join(", ");
                    return Err(CommandError::NotGivenOf { path: path.clone(), name, known });
                }
                all.entry(name).or_default().merge(given);
            }
        }
        Ok(all)
    }

    fn of_files(&self, files: Arc<dyn Files>, blueprint: BlueprintSource) -> Result<RenderSubject, CommandError> {
        let mut given = Given::default();
        for path in [&self.values, &self.state].into_iter().flatten() {
            given.merge(Given::read(path)?);
        }
        let spec = self.versions.spec(blueprint)?;
        Ok(RenderSubject { name: self.name.to_string(), spec, files: Some(files), given })
    }
}

fn resource() -> BlueprintSource {
    BlueprintSource { reference: Some(BlueprintReference { resource_name: RESOURCE.to_owned() }), inline: None }
}

/// A folder without any object holds no blueprint either.
fn none(path: &Path, error: FolderError) -> CommandError {
    match error {
        FolderError::Empty { .. } | FolderError::NoObject { .. } => {
            BlueprintsError::None { path: path.to_owned() }.into()
        }
        other => other.into(),
    }
}
