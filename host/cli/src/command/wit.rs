//! `orangery wit`: the contracts between host and components.

use std::{fs, path::PathBuf};

use clap::Args;

use crate::{command_error::CommandError, exit::Exit, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  orangery wit              print every file, each under its name
  orangery wit --out wit    write them into a folder, for wit-bindgen";

/// Prints the contracts (WIT) that components are written against.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Wit {
    /// Write the files into this folder instead, and print their paths
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

impl Wit {
    /// Prints the files, or writes them.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        for (name, content) in orangery_plugin::WIT {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Appearance, tests::display};

    #[test]
    fn the_contracts_are_written_as_they_are_printed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut terminal, listed, _) = display(Appearance::PLAIN);
        Wit { out: Some(folder.path().to_owned()) }.execute(&mut terminal).unwrap();
        let written: String = listed
            .text()
            .lines()
            .map(|path| {
                let name = path.strip_prefix(&format!("{}/", folder.path().display())).unwrap();
                format!("// wit/{name}\n{}\n", fs::read_to_string(path).unwrap())
            })
            .collect();
        let (mut terminal, printed, _) = display(Appearance::PLAIN);
        Wit { out: None }.execute(&mut terminal).unwrap();
        assert_eq!(written, printed.text());
        assert!(written.contains("package orangery:deployer@"), "{written}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let (mut terminal, ..) = display(Appearance::PLAIN);
        let error = Wit { out: Some(file.clone()) }.execute(&mut terminal).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}/", file.display())), "{error}");
        assert_eq!(error.exit(), Exit::Failed);
    }
}
