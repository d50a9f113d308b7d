//! `orangery wit`: the contracts between host and components.

use std::{fs, path::PathBuf};

use clap::Args;
use orangery_registry::{oci::ArtifactReference, wasm::ComponentFacts};

use crate::{command_error::CommandError, exit::Exit, registries::RegistryFlags, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  orangery wit              print every file, each under its name
  orangery wit --out wit    write them into a folder, for wit-bindgen
  orangery wit --version    print which versions of them this program has
  orangery wit --push registry.example/wit
                            push them as packages of WIT, which wkg reads: registry.example/wit/orangery/deployer:0.1.0";

/// Prints the contracts (WIT) that components are written against.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Wit {
    /// Write the files into this folder instead, and print their paths
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print the versions of the contracts instead; with one, the contracts of this version
    #[arg(long, value_name = "VERSION")]
    pub version: Option<Option<String>>,
    /// Push the contracts into a registry instead, as packages of WIT below this repository, and print their references
    #[arg(long, value_name = "REPOSITORY", conflicts_with = "out")]
    pub push: Option<String>,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryFlags,
}

impl Wit {
    /// Prints the files, writes them, or pushes their packages.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let of = match &self.version {
            None => None,
            Some(Some(version)) => Some(version.as_str()),
            Some(None) => return versions(terminal),
        };
        let is_meant = |name: &str| of.is_none_or(|version| name.split('/').nth(1) == Some(version));
        let mut files = orangery_plugin::WIT.iter().filter(|(name, _)| is_meant(name)).peekable();
        if let (None, Some(version)) = (files.peek(), of) {
            return Err(CommandError::NoContract { version: version.to_owned() });
        }
        if let Some(repository) = &self.push {
            return self.push(repository, is_meant, terminal).await;
        }
        for (name, content) in files {
            match &self.out {
                None => terminal.text(&format!("// wit/{name}\n{content}\n"))?,
                Some(folder) => {
                    let path = folder.join(name);
                    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
                    made.and_then(|()| fs::write(&path, content))
                        .map_err(|cause| CommandError::Write { path: path.clone(), cause })?;
                    terminal.line(path.display())?;
                }
            }
        }
        Ok(Exit::Ok)
    }
}

/// What a package says about when it was made: the same contract is the same artifact.
const ALWAYS: &str = "1970-01-01T00:00:00Z";

impl Wit {
    /// Pushes each package that is meant to where a client of packages of WIT looks for it.
    async fn push(
        &self,
        repository: &str,
        is_meant: impl Fn(&str) -> bool,
        terminal: &mut Terminal,
    ) -> Result<Exit, CommandError> {
        let registry = self.registry.open()?;
        for (folder, bytes) in orangery_builtin::wit_packages().iter().filter(|(folder, _)| is_meant(folder)) {
            let (package, version) = folder.split_once('/').unwrap_or((folder, ""));
            let reference: ArtifactReference = format!("{repository}/orangery/{package}:{version}").parse()?;
            let facts = ComponentFacts {
                imports: Vec::new(),
                exports: interfaces(folder),
                created: ALWAYS.to_owned(),
                annotations: Vec::new(),
            };
            let pushed = registry.components().push(&reference, bytes.to_vec(), &facts).await;
            terminal.line(pushed.map_err(CommandError::Registry)?.reference())?;
        }
        Ok(Exit::Ok)
    }
}

/// The interfaces of a version of a contract, as WIT names them.
fn interfaces(folder: &str) -> Vec<String> {
    let (package, version) = folder.split_once('/').unwrap_or((folder, ""));
    let files =
        orangery_plugin::WIT.iter().filter(|(path, _)| path.rsplit_once('/').is_some_and(|(of, _)| of == folder));
    let declared = files.flat_map(|(_, text)| text.lines()).filter_map(|line| line.strip_prefix("interface "));
    declared.map(|rest| format!("orangery:{package}/{}@{version}", rest.trim_end_matches([' ', '{']))).collect()
}

/// Prints the versions of the contracts, and the level of what is built against them.
fn versions(terminal: &mut Terminal) -> Result<Exit, CommandError> {
    for (package, version) in orangery_plugin::contract_versions() {
        terminal.line(format_args!("{package} {version}"))?;
    }
    terminal.line(format_args!("level {}", orangery_plugin::LEVEL))?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Appearance, tests::display};

    #[tokio::test]
    async fn the_contracts_are_written_as_they_are_printed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut terminal, listed, _) = display(Appearance::PLAIN);
        wit(Some(folder.path().to_owned()), None).execute(&mut terminal).await.unwrap();
        let written: String = listed
            .text()
            .lines()
            .map(|path| {
                let name = path.strip_prefix(&format!("{}/", folder.path().display())).unwrap();
                format!("// wit/{name}\n{}\n", fs::read_to_string(path).unwrap())
            })
            .collect();
        let (mut terminal, printed, _) = display(Appearance::PLAIN);
        wit(None, None).execute(&mut terminal).await.unwrap();
        assert_eq!(written, printed.text());
        assert!(written.contains("package orangery:deployer@"), "{written}");
    }

    fn wit(out: Option<PathBuf>, version: Option<Option<String>>) -> Wit {
        let registry = RegistryFlags { config: None, certificates: Vec::new(), plain_http: Vec::new() };
        Wit { out, version, push: None, registry }
    }

    /// What is printed of a version.
    async fn printed(version: Option<&str>) -> Result<String, CommandError> {
        let (mut terminal, printed, _) = display(Appearance::PLAIN);
        wit(None, Some(version.map(str::to_owned))).execute(&mut terminal).await?;
        Ok(printed.text())
    }

    #[tokio::test]
    async fn c_227_the_versions_are_told_and_the_contracts_of_one_are_printed() {
        let versions = "orangery:deployer 0.1.0\norangery:template 0.1.0\norangery:gate 0.1.0\nlevel 1\n";
        assert_eq!(printed(None).await.unwrap(), versions);
        let (mut terminal, all, _) = display(Appearance::PLAIN);
        wit(None, None).execute(&mut terminal).await.unwrap();
        assert_eq!(printed(Some("0.1.0")).await.unwrap(), all.text());
        let error = printed(Some("0.2.0")).await.unwrap_err();
        let sentence =
            "this program has no contract of version 0.2.0; print those that it has with: orangery wit --version";
        assert_eq!((error.to_string().as_str(), error.exit()), (sentence, Exit::Usage));
    }

    #[test]
    fn c_354_a_package_exports_the_interfaces_of_its_contract() {
        let gate = ["orangery:gate/gate@0.1.0".to_owned()];
        assert_eq!(interfaces("gate/0.1.0"), gate);
        assert!(interfaces("deployer/0.1.0").contains(&"orangery:deployer/cluster@0.1.0".to_owned()));
        assert_eq!(interfaces("deployer"), Vec::<String>::new());
        let names: Vec<&str> = orangery_builtin::wit_packages().iter().map(|(folder, _)| *folder).collect();
        assert_eq!(names, ["deployer/0.1.0", "template/0.1.0", "gate/0.1.0"]);
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let (mut terminal, ..) = display(Appearance::PLAIN);
        let error = wit(Some(file.clone()), None).execute(&mut terminal).await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}/", file.display())), "{error}");
        assert_eq!(error.exit(), Exit::Failed);
    }
}
