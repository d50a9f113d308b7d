//! The components of a host: those that ship with it, and those of a folder.

use std::{io, path::Path, sync::Arc};

use clap::ValueEnum;
use orangery_plugin::{
    CallIsolation, PluginSet, PluginSetError, Registered, RegistrationError, Sandbox, SandboxConfig, WorkerCommand,
    read_folder,
};

use crate::cache;

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

impl Bundled {
    fn has(self, name: &str) -> bool {
        self == Bundled::WithMock || name != MOCK
    }
}

/// Registers components that ship with the host and those of `folder`. Each is compiled when it is first called,
/// unless the cache of this user has it; `notice` is told of those that take seconds.
///
/// # Errors
/// [`ComponentsError`]
pub fn load(
    folder: Option<&Path>,
    bundled: Bundled,
    processes: CallProcesses,
    notice: fn(&str),
) -> Result<Arc<PluginSet>, ComponentsError> {
    let worker = WorkerCommand::current_exe().map_err(ComponentsError::Program)?;
    let config = SandboxConfig::new(worker, cache::folder());
    let sandbox = Sandbox::start(SandboxConfig { isolation: processes.into(), notice, ..config })?;
    Ok(Arc::new(PluginSet::load(registered(folder, bundled)?, &sandbox)?))
}

fn registered(folder: Option<&Path>, bundled: Bundled) -> Result<Vec<Registered>, RegistrationError> {
    let builtin = orangery_builtin::components();
    let mut registered = builtin
        .iter()
        .filter(|builtin| bundled.has(builtin.name))
        .map(|builtin| Registered::builtin(builtin.name, builtin.registration, builtin.component))
        .collect::<Result<Vec<_>, _>>()?;
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
        let names = |bundled| -> Vec<String> {
            let registered = registered(Some(folder.path()), bundled).unwrap();
            registered.iter().map(|registered| registered.registration().metadata.name.clone()).collect()
        };
        assert_eq!(names(Bundled::WithMock), ["jinja", "manifest", "mock", "gotemplate", "spiff", "helm", "mine"]);
        assert_eq!(names(Bundled::Productive), ["jinja", "manifest", "gotemplate", "spiff", "helm", "mine"]);
    }
}
