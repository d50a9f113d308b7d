//! A component file with its registration, ready to be called in the sandbox.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_plugin::{
    CallCosts, Inspection, Plugin, Registered, Registration, Sandbox, SandboxConfig, WorkerCommand, World,
};

use crate::{cache, command_error::CommandError, folder, terminal};

pub use crate::folder::REGISTRATION;

/// What is granted where there is no registration: everything, since nothing is behind it but what a case has.
const EVERYTHING: &str = "grants:
    clusters: {target: true, host: true, named: ['*']}
    reads: [{}]
    writes: [{}]
    deleteUnmanaged: true
    artifacts: ['*']
    hosts: ['*']
    kubeconfigs: ['*']
";

/// Where a component and its registration are looked for; see [`LoadedComponent::read`].
#[derive(Clone, Copy, Debug)]
pub struct ComponentPaths<'a> {
    /// The component.
    pub file: &'a Path,
    /// Its registration.
    pub registration: Option<&'a Path>,
    /// Folders in which one may lie.
    pub near: &'a [PathBuf],
}

/// A component that can be called.
pub struct LoadedComponent {
    /// The component as the host would register it.
    pub plugin: Plugin,
    /// What it is.
    pub world: World,
    /// What is known of its bytes.
    pub inspection: Inspection,
    /// The types that its registration claims.
    pub types: Vec<String>,
    /// Whether a registration says what it is; else everything is granted.
    pub is_registered: bool,
}

impl LoadedComponent {
    /// Reads a component, and registers it as `registration` says, else the `plugin.yaml` that lies in one of `near`, else with
    /// everything granted. It is called in a process of its own, as the host calls those that do not ship with it.
    ///
    /// # Errors
    /// A file that cannot be read, is no component, or is no registration.
    pub fn read(file: &Path, registration: Option<&Path>, near: &[PathBuf]) -> Result<Self, CommandError> {
        Self::read_for(ComponentPaths { file, registration, near }, None)
    }

    /// The same with what its calls cost written down.
    ///
    /// # Errors
    /// As [`LoadedComponent::read`].
    pub fn measured(of: ComponentPaths<'_>, costs: CallCosts) -> Result<Self, CommandError> {
        Self::read_for(of, Some(costs))
    }

    fn read_for(of: ComponentPaths<'_>, costs: Option<CallCosts>) -> Result<Self, CommandError> {
        let ComponentPaths { file, registration, near } = of;
        let bytes = fs::read(file).map_err(|cause| CommandError::Read { path: file.to_owned(), cause })?;
        let worker = WorkerCommand::current_exe().map_err(CommandError::Program)?;
        let config = SandboxConfig { notice: terminal::notice, costs, ..SandboxConfig::new(worker, cache::folder()) };
        let sandbox = Sandbox::start(config)?;
        Self::in_sandbox(&sandbox, (file, bytes), registration, near)
    }

    /// The same in a sandbox that is there.
    ///
    /// # Errors
    /// As [`LoadedComponent::read`].
    pub fn in_sandbox(
        sandbox: &Arc<Sandbox>,
        (file, bytes): (&Path, Vec<u8>),
        registration: Option<&Path>,
        near: &[PathBuf],
    ) -> Result<Self, CommandError> {
        let refused = |cause| CommandError::Component { path: file.to_owned(), cause };
        let inspection = orangery_plugin::inspect(&bytes).map_err(refused)?;
        inspection.check().map_err(refused)?;
        let near = near.iter().map(|folder| (folder.as_path(), folder.join(REGISTRATION)));
        let found = (registration, near.into_iter().find(|(_, file)| file.is_file()));
        let is_registered = found.0.is_some() || found.1.is_some();
        let registration = match found {
            (Some(file), _) => Registration::parse(&folder::text_of(file)?, &file.display().to_string())?,
            (None, Some((folder, file))) => {
                Registration::parse(&folder::text_within(folder, REGISTRATION)?, &file.display().to_string())?
            }
            (None, None) => everything(&inspection.worlds())?,
        };
        let (world, types) = claim(&registration);
        if !inspection.worlds().contains(&world) {
            return Err(CommandError::OtherWorld { path: file.to_owned(), claimed: world.to_string() });
        }
        let registered = Registered::new(registration, bytes, file.display().to_string());
        Ok(Self { plugin: Plugin::new(registered, sandbox.clone()), world, inspection, types, is_registered })
    }

    /// The first type that it is registered for.
    pub fn first_type(&self) -> &str {
        self.types.first().map_or("example.org/component", String::as_str)
    }
}

/// A registration that grants everything.
fn everything(worlds: &[World]) -> Result<Registration, CommandError> {
    let claim = match worlds.first() {
        Some(World::Templater) => "template: {types: [Component]}",
        Some(World::Gate) => "gate: {types: [example.org/component]}",
        Some(World::Deployer) | None => "deployer: {itemTypes: [example.org/component]}",
    };
    let text = format!(
        "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: component}}\nspec:\n  version: 0.0.0\n  component: \
         {{file: component.wasm}}\n  {claim}\n  {EVERYTHING}"
    );
    Ok(Registration::parse(&text, "the registration that grants everything")?)
}

/// The world that a registration claims its component is of, and the types.
pub(super) fn claim(registration: &Registration) -> (World, Vec<String>) {
    let spec = &registration.spec;
    match (&spec.deployer, &spec.template, &spec.gate) {
        (Some(deployer), _, _) => (World::Deployer, deployer.item_types.clone()),
        (None, Some(template), _) => (World::Templater, template.types.clone()),
        (None, None, gate) => (World::Gate, gate.as_ref().map(|gate| gate.types.clone()).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_253_without_a_registration_everything_is_granted_to_what_the_component_is() {
        for (world, types) in [
            (World::Deployer, "example.org/component"),
            (World::Templater, "Component"),
            (World::Gate, "example.org/component"),
        ] {
            let registration = everything(&[world]).unwrap();
            assert_eq!(claim(&registration), (world, vec![types.to_owned()]));
            let grants = &registration.spec.grants;
            assert_eq!((grants.reads.len(), grants.writes.len(), grants.clusters.target), (1, 1, true));
            assert_eq!((grants.artifacts.as_slice(), grants.delete_unmanaged), (["*".to_owned()].as_slice(), true));
        }
    }
}
