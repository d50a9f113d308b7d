//! `orangery render`: what installations would make, without a cluster.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::ResourceExt as _;
use orangery_api::installation::Installation;
use orangery_core::{
    binding::Exports,
    blueprint::FileSystem,
    digest,
    port::{Files, JobChance},
};
use orangery_render::Definitions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    blueprints::{FolderFiles, folder_of_blueprint},
    command::{
        CommandError,
        inspect::{json as to_json, yaml as to_yaml},
    },
    components,
    exit::Exit,
    folder,
    offline::{Given, Offline, OfflineError, Rendered, Subject, Why, World, imports},
    terminal::{self, Terminal},
};

const HELP: &str = "\
Examples:
  orangery render my-blueprint -i imports.yaml          a folder with blueprint.yaml
  orangery render examples/data-flow -i imports.yaml    Installations of manifests, with what they import
  orangery render my-blueprint -i imports.yaml --values exports.yaml -o json

The same code renders in the operator. Printed are deploy items as the Execution has them, sub-installations as far as
their imports are known, exports, and what executions keep. Values of Secrets that templates use are printed as well.

imports.yaml gives imports by name; a Target is the whole object, a target list or map one of whole objects:
  imports:
    replicas: 3
    cluster: {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Target, metadata: {name: c}, spec: {type: …}}

exports.yaml gives what deploy items exported, so that exports can be rendered, and with them what imports them;
state.yaml gives what executions kept. Of several Installations each has its name above:
  deployItems: {item: {key: value}}
  state: {deployExecutions: {default: {password: p}}}
  subinstallations: {sub: {deployItems: {…}}}

Rendering twice prints the same: time and randomness are those of --now and --seed.";

/// Renders installations without a cluster, and prints what they would make. Nothing is sent.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Render {
    /// A folder with blueprint.yaml, or a file or folder of manifests with Installations
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
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// Name of the installation of a folder with blueprint.yaml
    #[arg(long, default_value = "blueprint")]
    pub name: String,
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
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = Form::Yaml)]
    pub output: Form,
}

/// How the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people and programs
    Yaml,
    /// For programs
    Json,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: &'static str,
    kind: &'static str,
    installations: Vec<Rendered>,
}

impl Render {
    /// Renders, and prints what came of it.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let given = self.imports.as_deref().map(imports).transpose()?.unwrap_or_default();
        let (world, subjects) = self.subjects()?;
        let plugins = components::load(self.plugins.as_deref(), terminal::notice)?;
        let mut offline = Offline {
            plugins: plugins.as_ref(),
            chance: JobChance { now: self.now, seed: seed(&self.seed) },
            namespace: self.namespace,
            world,
            imports: given,
        };
        let installations = offline.roots(subjects).await?;
        let document = Document { api_version: "orangery.dev/v1alpha1", kind: "RenderedInstallations", installations };
        match self.output {
            Form::Json => terminal.line(to_json(&document)?)?,
            Form::Yaml => terminal.text(&to_yaml(&document)?)?,
        }
        Ok(Exit::Ok)
    }

    /// What is given of each Installation; that of a folder has no name above it.
    fn given(&self, name: Option<&str>) -> Result<Given, CommandError> {
        let mut given = Given::default();
        for path in [&self.values, &self.state].into_iter().flatten() {
            match name {
                None => given.merge(Given::read(path)?),
                Some(name) => given.merge(Given::read_named(path)?.remove(name).unwrap_or_default()),
            }
        }
        Ok(given)
    }

    fn subjects(&self) -> Result<(World, Vec<Subject>), CommandError> {
        if let Some(folder) = folder_of_blueprint(&self.path) {
            return Ok((World::default(), vec![self.of_folder(Arc::new(FolderFiles::new(&folder)))?]));
        }
        let manifests = folder::read(std::slice::from_ref(&self.path))?;
        let (world, installations) = World::of(&manifests)?;
        if installations.is_empty() {
            return Err(crate::blueprints::BlueprintsError::None { path: self.path.clone() }.into());
        }
        let subjects = installations.iter().map(|of| self.of_installation(of));
        Ok((world, subjects.collect::<Result<_, _>>()?))
    }

    fn of_folder(&self, files: Arc<dyn Files>) -> Result<Subject, CommandError> {
        Ok(Subject {
            name: self.name.clone(),
            files: Some(files),
            definitions: definitions(json!({"inline": {}}), None),
            imports: None,
            import_mappings: BTreeMap::new(),
            exports: Exports::default(),
            export_mappings: BTreeMap::new(),
            given: self.given(None)?,
        })
    }

    fn of_installation(&self, of: &Installation) -> Result<Subject, CommandError> {
        let name = of.name_any();
        let spec = &of.spec;
        let files = match &spec.blueprint.inline {
            None => None,
            Some(inline) => {
                let failed = |error| OfflineError { path: name.clone(), why: Why::Files(error) };
                Some(Arc::new(FileSystem::parse(&inline.filesystem).map_err(failed)?) as Arc<dyn Files>)
            }
        };
        let value = |value: serde_json::Result<Value>| value.unwrap_or_default();
        let descriptor = spec.component_descriptor.as_ref().map(|of| value(serde_json::to_value(of)));
        Ok(Subject {
            files,
            definitions: definitions(value(serde_json::to_value(&spec.blueprint)), descriptor),
            imports: Some((&spec.imports).into()),
            import_mappings: spec.import_data_mappings.clone(),
            exports: (&spec.exports).into(),
            export_mappings: spec.export_data_mappings.clone(),
            given: self.given(Some(&name))?,
            name,
        })
    }
}

fn definitions(blueprint: Value, component_descriptor: Option<Value>) -> Definitions {
    Definitions { blueprint, component_descriptor, descriptor: Value::Null, components: Value::Array(Vec::new()) }
}

/// The randomness that a text stands for. Who renders here knows it anyway.
fn seed(text: &str) -> [u8; 32] {
    let digest = digest::sha256(text.as_bytes());
    let mut seed = [0; 32];
    seed.iter_mut().zip(digest.bytes().rev()).for_each(|(to, from)| *to = from);
    seed
}
