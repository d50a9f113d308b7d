//! The tools of languages: where they are, and how they are run.

use std::{
    env, io,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use super::{BuildError, ProjectFolder};

/// A tool of a language.
pub(super) struct LanguageTool {
    /// Its program.
    pub(super) program: &'static str,
    /// The language, as people write it.
    pub(super) language: &'static str,
    /// How to get it.
    pub(super) fix: &'static str,
}

impl LanguageTool {
    /// Where the path has it.
    pub(super) fn find(&self) -> Result<PathBuf, BuildError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path).map(|folder| folder.join(self.program)).find(|place| place.is_file());
        let Self { program, language, fix } = *self;
        found.ok_or(BuildError::NoTool { program, language, fix })
    }
}

impl ProjectFolder {
    /// Runs a tool in the folder. All that it says goes to the standard error.
    pub(super) fn run(&self, command: &mut Command) -> Result<(), BuildError> {
        self.captured(command.stdout(io::stderr())).map(drop)
    }

    /// The same with its standard output, unless that is said to go elsewhere.
    pub(super) fn captured(&self, command: &mut Command) -> Result<Output, BuildError> {
        command.current_dir(&self.folder).stdin(Stdio::null()).stderr(Stdio::inherit());
        let line = line(command);
        let done = command.spawn().and_then(Child::wait_with_output);
        let done = match done {
            Ok(done) => done,
            Err(cause) => return Err(BuildError::Start { line, cause }),
        };
        match done.status.success() {
            true => Ok(done),
            false => Err(BuildError::Failed { line, how: done.status.to_string(), component: self.component() }),
        }
    }
}

/// A command as people would type it: the name of its program, and its arguments.
fn line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    [name].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use orangery_plugin::World;

    use super::*;
    use crate::authoring::project::Language;

    #[test]
    fn c_350_a_tool_that_is_missing_is_named_with_how_to_get_it() {
        let tool = LanguageTool { program: "no-such-tool", language: "Rust", fix: "get it" };
        let sentence = "no-such-tool is not on the path, and builds projects in Rust; get it";
        assert_eq!(tool.find().unwrap_err().to_string(), sentence);
        assert!(LanguageTool { program: "sh", ..tool }.find().unwrap().is_file());
    }

    #[test]
    fn c_350_a_tool_that_fails_is_named_with_its_command() {
        let project = ProjectFolder {
            folder: PathBuf::from("/"),
            language: Language::Rust,
            component: PathBuf::from("a.wasm"),
            world: World::Gate,
        };
        let run = |script: &str| project.captured(Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()));
        let sentence =
            "sh -c exit 3 ended with exit status: 3; correct what it says above: /a.wasm is what it was before";
        assert_eq!(run("exit 3").unwrap_err().to_string(), sentence);
        assert_eq!(run("pwd").unwrap().stdout, b"/\n", "it runs in the folder");
        let absent = project.run(&mut Command::new(Path::new("/nowhere/tool"))).unwrap_err().to_string();
        assert!(absent.starts_with("tool did not start: No such file"), "{absent}");
    }
}
