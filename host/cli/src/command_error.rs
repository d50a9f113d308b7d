//! Why a command ends without doing what it is for, and with which exit code.

use std::{io, path::PathBuf};

use orangery_api::plan::PlanContentError;
use orangery_cluster::KubeconfigError;
use orangery_core::{error::Fault, name::Namespace, name::ObjectName};
use orangery_plugin::RegistrationError;
use orangery_registry::oci::NotAReference;

use crate::{
    authoring::{build::BuildError, project::ProjectError},
    blueprints::BlueprintsError,
    call::CallError,
    components::ComponentsError,
    connection::ConnectionError,
    crds::CrdError,
    exit::Exit,
    folder::FolderError,
    offline::{GivenError, OfflineError, WorldError},
    records::JobRecordError,
    repositories::RepositoriesError,
    timeout::Timeout,
};

/// Why a command of this crate ends without doing what it is for: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No connection to a cluster.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A call to the cluster.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A custom resource definition.
    #[error(transparent)]
    Crd(#[from] CrdError),
    /// A sub-installation was to be reconciled.
    #[error(
        "{namespace}/{name} is a sub-installation, and jobs begin at roots; {command} the one above it: orangery {command} \
         {parent} -n {namespace}"
    )]
    NotRoot {
        /// The command.
        command: &'static str,
        /// Its namespace.
        namespace: Namespace,
        /// Its name.
        name: ObjectName,
        /// The installation above it.
        parent: String,
    },
    /// Jobs of what was to be reconciled are suspended.
    #[error(
        "installation {namespace}/{name} is suspended, so no job begins; resume it first: orangery resume {name} -n {namespace}"
    )]
    Suspended {
        /// Its namespace.
        namespace: Namespace,
        /// Its name.
        name: ObjectName,
    },
    /// There is no Plan to say something of.
    #[error(
        "in namespace {namespace} is no Plan {name}, and none below an Installation of this name waits to be approved; orangery approve -n \
         {namespace} lists those that do"
    )]
    NoPlan {
        /// Its namespace.
        namespace: Namespace,
        /// What was asked for.
        name: ObjectName,
    },
    /// A Plan is not open any more.
    #[error("plan {plan} is {phase}{why}; there is nothing to approve or to reject in it")]
    PlanEnded {
        /// Its name.
        plan: ObjectName,
        /// Its phase.
        phase: String,
        /// Why, as the sentence goes on; empty where it is not said.
        why: String,
    },
    /// A Plan cannot be read.
    #[error("plan {plan} cannot be shown: {cause}; nothing is said of it, and an operator carries nothing of it out")]
    PlanContent {
        /// Its name.
        plan: String,
        /// Why.
        cause: PlanContentError,
    },
    /// Records of jobs cannot be shown.
    #[error(transparent)]
    Record(#[from] JobRecordError),
    /// What was waited for did not happen in time.
    #[error(
        "installation {namespace}/{name} is not final after {timeout}{}; it goes on by itself: orangery inspect {name} -n \
         {namespace} shows where",
        in_phase(phase)
    )]
    TimedOut {
        /// Its namespace.
        namespace: Namespace,
        /// Its name.
        name: ObjectName,
        /// What `--timeout` says.
        timeout: Timeout,
        /// The phase seen last; empty where none was seen.
        phase: String,
    },
    /// No revision of a release is deployed.
    #[error("no revision of a release {name} is deployed in namespace {namespace}; helm list -A shows all there are")]
    NoRelease {
        /// The namespace looked into.
        namespace: Namespace,
        /// The release.
        name: ObjectName,
    },
    /// A deployer cannot say what the tests of a release are.
    #[error("{}", .0.problem().message)]
    NoTests(Fault),
    /// A test is no object of Kubernetes.
    #[error("the test of {file} is no object: {cause}; correct it, and deploy the release again")]
    NotAnObject {
        /// Where the test comes from.
        file: String,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// A test asks for more than a release may have of the rights of whoever calls.
    #[error(
        "the test {place} of {file} {why}, so no test is run: what a release says would be done with your rights; pass \
         --allow-any-object if you have looked at it and want that"
    )]
    TestOutOfBounds {
        /// Where the test comes from.
        file: String,
        /// The object.
        place: String,
        /// What is out of bounds.
        why: String,
    },
    /// A test has no name, or one that cannot be asked for.
    #[error("the test of {file} cannot be run: {why}; correct it, and deploy the release again")]
    TestWithoutName {
        /// Where the test comes from.
        file: String,
        /// Which name.
        why: &'static str,
    },
    /// Something has the name of a test.
    #[error(
        "{place} is there and is no test of release {release}, so it is not deleted; rename it or the test, or delete it \
         yourself"
    )]
    NotATest {
        /// The object.
        place: String,
        /// The release.
        release: ObjectName,
    },
    /// An operator would put back what is taken off.
    #[error(
        "the operator {holder} holds the Lease {namespace}/{lease}, renewed last at {renewed}, and would put guards back; uninstall it \
         first, or name the Lease of your operator by --lease where that one is somebody else's"
    )]
    OperatorRuns {
        /// The process that holds the Lease.
        holder: String,
        /// Its namespace.
        namespace: Namespace,
        /// The name of the Lease.
        lease: ObjectName,
        /// When it was renewed.
        renewed: String,
    },
    /// A service account that nobody can be.
    #[error("{name:?} is no name of a service account; correct --service-account")]
    NotAnAccount {
        /// The name.
        name: ObjectName,
    },
    /// Tests of a release did not end in time.
    #[error("the tests of release {namespace}/{name} did not end within {timeout}; they go on by themselves")]
    Untested {
        /// Its namespace.
        namespace: Namespace,
        /// Its name.
        name: ObjectName,
        /// What `--timeout` says.
        timeout: Timeout,
    },
    /// A file that the command names cannot be read.
    #[error("{} cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A file has no kubeconfig that a Target could use.
    #[error("{}: {cause}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: KubeconfigError,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {cause}; choose another folder, or make room and permissions", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// There is an archive already.
    #[error("{} is there already; name another one with --into", path.display())]
    ArchiveExists {
        /// The file.
        path: PathBuf,
    },
    /// Nobody tells what happens to the files of a project.
    #[error("{} cannot be watched: {cause}; raise fs.inotify.max_user_watches and max_user_instances (sysctl), or call orangery plugin build", path.display())]
    Unwatched {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A file is no component, or one that this host would not run.
    #[error("{}: {cause}", path.display())]
    Component {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: orangery_plugin::Error,
    },
    /// A component is registered for what it is not.
    #[error("{} exports nothing of a {claimed}, which its registration claims it is; correct one of them", path.display())]
    OtherWorld {
        /// The component.
        path: PathBuf,
        /// What the registration claims.
        claimed: String,
    },
    /// A component is no deployer.
    #[error("{} is no deployer, and the kit asks deployers alone; test it with: orangery plugin test", path.display())]
    NoDeployer {
        /// The component.
        path: PathBuf,
    },
    /// There is no contract of a version.
    #[error("this program has no contract of version {version}; print those that it has with: orangery wit --version")]
    NoContract {
        /// What was asked for.
        version: String,
    },
    /// A folder of cases has none.
    #[error("{} holds no case; a case is a folder with request.json in it: docs/plugins/testing.md", path.display())]
    NoCases {
        /// The folder.
        path: PathBuf,
    },
    /// A blueprint has no cases.
    #[error("{} holds no case; a case is a YAML file in it: docs/blueprint-tests.md", path.display())]
    NoBlueprintCases {
        /// The folder of its cases.
        path: PathBuf,
    },
    /// A blueprint has too many cases.
    #[error("{} has {count} cases, {most} are allowed; split the blueprint, or name another folder", path.display())]
    ManyBlueprintCases {
        /// The folder of its cases.
        path: PathBuf,
        /// How many it has.
        count: usize,
        /// How many it may have.
        most: usize,
    },
    /// No Installation can hold a blueprint.
    #[error(
        "no Installation can hold the files of the blueprint, which is what --server makes of it: they have more than 1 MiB, there are \
         too many, or one cannot be read; remove what is not the blueprint's"
    )]
    LargeBlueprint,
    /// Cases on a server were stopped twice.
    #[error(
        "stopped before what the cases have made was deleted; then: kubectl -n {namespace} delete installations,dataobjects,targets -l \
         orangery.dev/blueprint-test"
    )]
    LeftOnServer {
        /// Where it is left.
        namespace: Namespace,
    },
    /// A folder of samples has none.
    #[error("{} holds no sample; put a provider configuration into it that the deployer plans, as YAML", path.display())]
    NoSamples {
        /// The folder.
        path: PathBuf,
    },
    /// A sample cannot be used.
    #[error("{} cannot be used: {why}; correct it", path.display())]
    Sample {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A registry does not give or take something, or a signature does not hold.
    #[error("{}", .0.problem().message)]
    Registry(Fault),
    /// A text names no artifact.
    #[error(transparent)]
    Reference(#[from] NotAReference),
    /// A key cannot be used.
    #[error("{}: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// A sentence.
        why: String,
    },
    /// A public key cannot be used.
    #[error("{0}")]
    PublicKey(String),
    /// A project cannot be written.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A project cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file is no registration of a component.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// No blueprint can be looked at.
    #[error(transparent)]
    Blueprints(#[from] BlueprintsError),
    /// Manifests cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A manifest has a wrong form.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A file that gives values cannot be used.
    #[error(transparent)]
    Given(#[from] GivenError),
    /// Values of an installation that is not rendered.
    #[error("{} gives values of the installation {name:?}, which is not rendered; rendered are: {known}", path.display())]
    NotGivenOf {
        /// The file.
        path: PathBuf,
        /// The installation.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A descriptor for Installations, which name their own.
    #[error(
        "--component-descriptor {} is for a folder with blueprint.yaml or an archive of one; an Installation names its component version in spec.componentDescriptor",
        path.display()
    )]
    NotOfAFolder {
        /// The descriptor.
        path: PathBuf,
    },
    /// Component versions cannot be opened as the flags say.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// An installation cannot be rendered.
    #[error("installation {0}")]
    Offline(#[from] OfflineError),
    /// The components cannot be used at all.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// The sandbox cannot compile.
    #[error(transparent)]
    Sandbox(#[from] orangery_plugin::Error),
    /// There is no folder for the cache.
    #[error("there is no home folder to keep compiled components in; name one with --into FOLDER")]
    NoCache,
    /// The program's own path is not known.
    #[error("the program cannot find itself to compile in a process of its own: {0}; start it by its full path")]
    Program(#[source] io::Error),
    /// Something cannot be put into words of JSON or YAML.
    #[error("the output cannot be written as {form}: {cause}; this is a defect of orangery, please report it")]
    Form {
        /// `JSON` or `YAML`.
        form: &'static str,
        /// Why.
        cause: String,
    },
    /// Stdout cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
    /// The process has no means to wait for a cluster.
    #[error("the process cannot start its event loop: {0}; it may have reached its limit of open files")]
    EventLoop(#[source] io::Error),
}

fn in_phase(phase: &str) -> String {
    if phase.is_empty() { String::new() } else { format!(", in phase {phase}") }
}

impl CommandError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            CommandError::Build(error) => error.exit(),
            CommandError::Components(error) => error.exit(),
            CommandError::Project(error) => error.exit(),
            CommandError::TimedOut { .. } | CommandError::Untested { .. } => Exit::TimedOut,
            CommandError::NotRoot { .. }
            | CommandError::Read { .. }
            | CommandError::Kubeconfig { .. }
            | CommandError::Registration(_)
            | CommandError::Blueprints(_)
            | CommandError::Folder(_)
            | CommandError::World(_)
            | CommandError::Given(_)
            | CommandError::NotGivenOf { .. }
            | CommandError::NotOfAFolder { .. }
            | CommandError::Repositories(_)
            | CommandError::OtherWorld { .. }
            | CommandError::NoDeployer { .. }
            | CommandError::NoContract { .. }
            | CommandError::NoCases { .. }
            | CommandError::NoBlueprintCases { .. }
            | CommandError::ManyBlueprintCases { .. }
            | CommandError::LargeBlueprint
            | CommandError::NoSamples { .. }
            | CommandError::Sample { .. }
            | CommandError::Reference(_)
            | CommandError::Key { .. }
            | CommandError::PublicKey(_)
            | CommandError::NoCache
            | CommandError::NotAnAccount { .. }
            | CommandError::ArchiveExists { .. }
            | CommandError::Connection(_) => Exit::Usage,
            CommandError::Call(_)
            | CommandError::Crd(_)
            | CommandError::LeftOnServer { .. }
            | CommandError::Suspended { .. }
            | CommandError::NoPlan { .. }
            | CommandError::PlanEnded { .. }
            | CommandError::PlanContent { .. }
            | CommandError::Record(_)
            | CommandError::NoRelease { .. }
            | CommandError::OperatorRuns { .. }
            | CommandError::NoTests(_)
            | CommandError::Registry(_)
            | CommandError::NotAnObject { .. }
            | CommandError::TestOutOfBounds { .. }
            | CommandError::TestWithoutName { .. }
            | CommandError::NotATest { .. }
            | CommandError::Offline(_)
            | CommandError::Write { .. }
            | CommandError::Unwatched { .. }
            | CommandError::Component { .. }
            | CommandError::Sandbox(_)
            | CommandError::Program(_)
            | CommandError::Form { .. }
            | CommandError::Output(_)
            | CommandError::EventLoop(_) => Exit::Failed,
        }
    }
}
