//! `go-component FOLDER FILE`: makes a component of the world `templater` of a Go module, as `examples/own-template/go` is one.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use orangery_build::{GoComponent, go_component_in};

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            // Nobody else can be told when nobody reads it.
            let _unread = writeln!(io::stderr(), "error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, file] = arguments.as_slice() else {
        return Err("name the folder of a Go module, and the file for its component".to_owned());
    };
    let whole = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let repository = whole(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))?;
    let main = whole(folder)?;
    let request = GoComponent {
        name: "component",
        main: &main,
        with: &[&repository.join("plugins/go/pkg")],
        standins: None,
        additions: None,
        tags: &[],
        wit: &repository.join("wit/template/0.1.0"),
        world: "templater",
        snapshot: false,
    };
    let kept = repository.join("target/guests/go");
    let component = go_component_in(&request, &kept).map_err(|error| error.to_string())?;
    fs::copy(component, file).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}
