//! `orangery wit`: the contracts between host and components.

use std::{fs, path::PathBuf};

use clap::Args;

use crate::{command_error::CommandError, exit::Exit, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  orangery wit              print every file, each under its name
  orangery wit --out wit    write them into a folder, for wit-bindgen
  orangery wit --version    print which versions of them this program has";

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
}

impl Wit {
    /// Prints the files, or writes them.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
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

    #[test]
    fn the_contracts_are_written_as_they_are_printed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut terminal, listed, _) = display(Appearance::PLAIN);
        wit(Some(folder.path().to_owned()), None).execute(&mut terminal).unwrap();
        let written: String = listed
            .text()
            .lines()
            .map(|path| {
                let name = path.strip_prefix(&format!("{}/", folder.path().display())).unwrap();
                format!("// wit/{name}\n{}\n", fs::read_to_string(path).unwrap())
            })
            .collect();
        let (mut terminal, printed, _) = display(Appearance::PLAIN);
        wit(None, None).execute(&mut terminal).unwrap();
        assert_eq!(written, printed.text());
        assert!(written.contains("package orangery:deployer@"), "{written}");
    }

    fn wit(out: Option<PathBuf>, version: Option<Option<String>>) -> Wit {
        Wit { out, version }
    }

    /// What is printed of a version.
    fn printed(version: Option<&str>) -> Result<String, CommandError> {
        let (mut terminal, printed, _) = display(Appearance::PLAIN);
        wit(None, Some(version.map(str::to_owned))).execute(&mut terminal)?;
        Ok(printed.text())
    }

    #[test]
    fn c_227_the_versions_are_told_and_the_contracts_of_one_are_printed() {
        let versions = "orangery:deployer 0.1.0\norangery:template 0.1.0\norangery:gate 0.1.0\nlevel 1\n";
        assert_eq!(printed(None).unwrap(), versions);
        let (mut terminal, all, _) = display(Appearance::PLAIN);
        wit(None, None).execute(&mut terminal).unwrap();
        assert_eq!(printed(Some("0.1.0")).unwrap(), all.text());
        let error = printed(Some("0.2.0")).unwrap_err();
        let sentence =
            "this program has no contract of version 0.2.0; print those that it has with: orangery wit --version";
        assert_eq!((error.to_string().as_str(), error.exit()), (sentence, Exit::Usage));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let (mut terminal, ..) = display(Appearance::PLAIN);
        let error = wit(Some(file.clone()), None).execute(&mut terminal).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}/", file.display())), "{error}");
        assert_eq!(error.exit(), Exit::Failed);
    }
}
