//! The components of a host: those that ship with it, and those of a folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use clap::ValueEnum;
use orangery_core::yaml;
use orangery_plugin::{
    CallIsolation, PluginSet, PluginSetError, Registered, Registration, RegistrationError, Sandbox, SandboxConfig,
    WorkerCommand, is_registration, read_folder,
};
use serde_json::{Value, json};

use crate::{cache, exit::Exit, terminal};

/// Why components cannot be used at all. One that cannot be used only fails the items of its own types, later.
#[derive(Debug, thiserror::Error)]
pub enum ComponentsError {
    /// The program does not know where it is, so it cannot start itself as a compiler.
    #[error("the path of this program cannot be found out: {0}; start it by its path")]
    Program(#[source] io::Error),
    /// The sandbox does not start.
    #[error(transparent)]
    Sandbox(#[from] orangery_plugin::Error),
    /// A registration cannot be read.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// Registrations do not go together.
    #[error(transparent)]
    Set(#[from] PluginSetError),
    /// The configuration of the container deployer cannot be used.
    #[error(
        "{path} cannot be used as the configuration of the container deployer: {why}; name a file with `--container-deployer`"
    )]
    ContainerItems {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl ComponentsError {
    /// The exit code that tells of it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Registration(_) | Self::Set(_) | Self::ContainerItems { .. } => Exit::Usage,
            Self::Program(_) | Self::Sandbox(_) => Exit::Failed,
        }
    }
}

/// Whether items of the container deployer are worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContainerItems {
    /// They are somebody else's.
    #[default]
    Elsewhere,
    /// They are, and each is refused: nothing here runs pods.
    Refused,
    /// They are, with this configuration.
    Configured(Value),
}

impl ContainerItems {
    /// As a file configures the deployer; [`ContainerItems::Elsewhere`] without one.
    ///
    /// # Errors
    /// The file cannot be read, or is no such configuration.
    pub fn read(file: Option<&Path>) -> Result<Self, ComponentsError> {
        let Some(path) = file else { return Ok(Self::Elsewhere) };
        let unusable = |why: String| ComponentsError::ContainerItems { path: path.to_path_buf(), why };
        let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        let value = yaml::decode(&text).map_err(|error| unusable(error.to_string()))?;
        let word = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let is_one = word("kind") == "Configuration" && word("apiVersion").starts_with(CONTAINER_GROUP);
        if !is_one {
            return Err(unusable(format!("it is no {CONTAINER_GROUP}/v1alpha1 Configuration")));
        }
        if value.get("targetSelector").and_then(Value::as_array).is_some_and(|selected| !selected.is_empty()) {
            let why = "all items of the type are worked on here, so targetSelector would say what does not hold; leave it out";
            return Err(unusable(why.to_owned()));
        }
        Ok(Self::Configured(value))
    }

    /// For a server that marks pods as ended and runs none of them.
    pub fn simulated() -> Self {
        let image = json!({"image": "simulated.invalid/orangery:1"});
        let program = json!({"image": "simulated.invalid/program:1"});
        Self::Configured(
            json!({"defaultImage": program, "initContainer": image, "waitContainer": image, "stateSecrets": 1}),
        )
    }
}

/// Which of the components that ship with the host are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundled {
    /// Those that deploy something.
    Productive,
    /// The mock deployer as well, which does what the configuration of an item says and deploys nothing: for tests.
    WithMock,
}

/// Which components are called in processes of their own. Such a process has no credentials, no files and no network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CallProcesses {
    /// Those that do not ship with this program.
    #[default]
    Untrusted,
    /// All of them.
    All,
}

impl From<CallProcesses> for CallIsolation {
    fn from(processes: CallProcesses) -> Self {
        match processes {
            CallProcesses::Untrusted => CallIsolation::Untrusted,
            CallProcesses::All => CallIsolation::All,
        }
    }
}

/// The name of the deployer that is for tests.
const MOCK: &str = "mock";

/// The name of the deployer that needs a configuration.
const CONTAINER: &str = "container";

/// The group of that configuration.
const CONTAINER_GROUP: &str = "container.deployer.landscaper.gardener.cloud";

impl Bundled {
    fn has(self, name: &str) -> bool {
        self == Bundled::WithMock || name != MOCK
    }
}

/// The registrations of a host: those that ship with it and those of a folder, which may change.
#[derive(Clone, Debug)]
pub struct RegistrationSource {
    folder: PathBuf,
    bundled: Bundled,
    containers: ContainerItems,
}

/// What is known of files without reading them: when each was written, its size, and its number.
pub type FileStamps = BTreeMap<PathBuf, (Option<SystemTime>, u64, u64)>;

impl RegistrationSource {
    /// Of a folder, as [`load`] has them.
    pub fn of(folder: &Path, bundled: Bundled, containers: ContainerItems) -> Self {
        Self { folder: folder.to_owned(), bundled, containers }
    }

    /// All of them, read anew.
    ///
    /// # Errors
    /// A registration cannot be read.
    pub fn registered(&self) -> Result<Vec<Registered>, RegistrationError> {
        registered(Some(&self.folder), self.bundled, self.containers.clone())
    }

    /// The files of the folder's registrations and of their components. What is no registration yet has none.
    pub fn stamps(&self) -> FileStamps {
        let (registrations, components) = self.files();
        let stamp = |file: PathBuf| {
            let known = fs::metadata(&file).ok()?;
            Some((file, (known.modified().ok(), known.len(), known.ino())))
        };
        registrations.into_iter().chain(components).filter_map(stamp).collect()
    }

    /// The folders that have these files, and those in which these folders will be: all that are there.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let (_, components) = self.files();
        let mut folders = BTreeSet::from([self.folder.clone()]);
        for component in components {
            let above = component.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.folder));
            let own = component.parent().map(Path::to_owned);
            folders.extend(above.map(Path::to_owned).chain(own));
        }
        folders.retain(|folder| folder.is_dir());
        folders
    }

    fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let registrations: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_registration(path)).collect();
        let component = |path: &PathBuf| {
            let text = fs::read_to_string(path).ok()?;
            let component = Registration::parse(&text, "").ok()?.spec.component?;
            Some(self.folder.join(component.file))
        };
        let components = registrations.iter().filter_map(component).collect();
        (registrations, components)
    }
}

/// The components of a command on somebody's own machine: the mock deployer as well, and none that runs pods. What is to be said goes
/// to the terminal.
///
/// # Errors
/// As [`load`].
pub fn of_command(folder: Option<&Path>) -> Result<Arc<PluginSet>, ComponentsError> {
    load(folder, Bundled::WithMock, ContainerItems::Elsewhere, CallProcesses::Untrusted, terminal::notice)
}

/// Registers components that ship with the host and those of `folder`. Each is compiled when it is first called,
/// unless the cache of this user has it; `notice` is told of those that take seconds.
///
/// # Errors
/// [`ComponentsError`]
pub fn load(
    folder: Option<&Path>,
    bundled: Bundled,
    containers: ContainerItems,
    processes: CallProcesses,
    notice: fn(&str),
) -> Result<Arc<PluginSet>, ComponentsError> {
    let worker = WorkerCommand::current_exe().map_err(ComponentsError::Program)?;
    let config = SandboxConfig::new(worker, cache::folder());
    let sandbox = Sandbox::start(SandboxConfig { isolation: processes.into(), notice, ..config })?;
    Ok(Arc::new(PluginSet::load(registered(folder, bundled, containers)?, &sandbox)?))
}

fn registered(
    folder: Option<&Path>,
    bundled: Bundled,
    containers: ContainerItems,
) -> Result<Vec<Registered>, RegistrationError> {
    let builtin = orangery_builtin::components();
    let has = |name: &str| bundled.has(name) && (name != CONTAINER || containers != ContainerItems::Elsewhere);
    let mut registered = builtin
        .iter()
        .filter(|builtin| has(builtin.name))
        .map(|builtin| {
            let registered = Registered::builtin(builtin.name, builtin.registration, builtin.component)?;
            Ok(match &containers {
                ContainerItems::Configured(configuration) if builtin.name == CONTAINER => {
                    registered.configured(configuration.clone())
                }
                ContainerItems::Configured(_) | ContainerItems::Elsewhere | ContainerItems::Refused => registered,
            })
        })
        .collect::<Result<Vec<_>, RegistrationError>>()?;
    if let Some(folder) = folder {
        registered.extend(read_folder(folder)?);
    }
    Ok(registered)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_ships_with_the_host_is_registered_before_what_a_folder_adds() {
        let folder = tempfile::tempdir().unwrap();
        let registration = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: mine}\nspec:\n  \
                            version: 0.1.0\n  component: {file: mine.wasm}\n  deployer: {itemTypes: [example.com/mine]}\n";
        fs::write(folder.path().join("mine.yaml"), registration).unwrap();
        let names = |bundled, containers| -> Vec<String> {
            let registered = registered(Some(folder.path()), bundled, containers).unwrap();
            registered.iter().map(|registered| registered.registration().metadata.name.clone()).collect()
        };
        let with_mock = ["jinja", "manifest", "mock", "gotemplate", "spiff", "helm", "mine"];
        assert_eq!(names(Bundled::WithMock, ContainerItems::Elsewhere), with_mock);
        let productive = ["jinja", "manifest", "gotemplate", "spiff", "helm", "mine"];
        assert_eq!(names(Bundled::Productive, ContainerItems::Elsewhere), productive);
        let with_containers = ["container", "jinja", "manifest", "gotemplate", "spiff", "helm", "mine"];
        assert_eq!(names(Bundled::Productive, ContainerItems::Refused), with_containers);
        assert_eq!(names(Bundled::Productive, ContainerItems::simulated()), with_containers);
    }

    #[test]
    fn c_352_the_files_of_a_folder_are_its_registrations_and_their_components_with_the_folders_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let registration = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: mine}\nspec:\n  \
                            version: 0.1.0\n  component: {file: target/release/mine.wasm}\n  deployer: {itemTypes: [a]}\n";
        fs::write(file("mine.yaml"), registration).unwrap();
        fs::write(file("notes.txt"), "").unwrap();
        let source = RegistrationSource::of(folder.path(), Bundled::Productive, ContainerItems::Elsewhere);
        let files = || source.stamps().into_keys().collect::<Vec<_>>();
        assert_eq!((files(), source.folders()), (vec![file("mine.yaml")], BTreeSet::from([folder.path().to_owned()])));
        fs::create_dir_all(file("target/release")).unwrap();
        fs::write(file("target/release/mine.wasm"), "").unwrap();
        assert_eq!(files(), [file("mine.yaml"), file("target/release/mine.wasm")]);
        let folders = [folder.path().to_owned(), file("target"), file("target/release")];
        assert_eq!(source.folders(), BTreeSet::from(folders));
        let before = source.stamps();
        fs::write(file("target/release/mine.wasm"), "more").unwrap();
        assert_ne!(source.stamps(), before);
    }

    #[test]
    fn c_33_con_18_the_container_deployer_is_there_where_it_is_configured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("containers.yaml");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            ContainerItems::read(Some(&file)).map_err(|error| error.to_string())
        };
        let version = "apiVersion: container.deployer.landscaper.gardener.cloud/v1alpha1";
        let configuration = json!({"apiVersion": "container.deployer.landscaper.gardener.cloud/v1alpha1",
            "kind": "Configuration", "namespace": "jobs"});
        assert_eq!(
            read(&format!("{version}\nkind: Configuration\nnamespace: jobs")),
            Ok(ContainerItems::Configured(configuration))
        );
        assert_eq!(ContainerItems::read(None).unwrap(), ContainerItems::Elsewhere);
        let error = read(&format!("{version}\nkind: ProviderConfiguration")).unwrap_err();
        let why = "it is no container.deployer.landscaper.gardener.cloud/v1alpha1 Configuration";
        assert!(error.contains(why) && error.ends_with("name a file with `--container-deployer`"), "{error}");
        let selects = |of: &str| read(&format!("{version}\nkind: Configuration\ntargetSelector: {of}"));
        assert!(selects("[{annotations: []}]").unwrap_err().contains("leave it out"));
        assert!(selects("[]").is_ok());
    }
}
