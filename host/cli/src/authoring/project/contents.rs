//! The texts of projects: templates with the words of a project between `@`, the contracts, and the SDK.

use orangery_plugin::{WIT, World};

use super::{Language, Project, ProjectKind};

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../templates/", $path))
    };
}

macro_rules! sdk {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../../plugins/sdk/src/", $path)))),+]
    };
}

/// The sources of the SDK by their path in `src`.
const SDK: &[(&str, &str)] = sdk![
    "bindings.rs",
    "bindings/deployer.rs",
    "bindings/gate.rs",
    "bindings/template.rs",
    "cases.rs",
    "deployer.rs",
    "gate.rs",
    "json.rs",
    "lenient.rs",
    "lib.rs",
    "proposal.rs",
    "recorded.rs",
    "recorded/template.rs",
    "template.rs",
];

/// The README of the SDK, which its documentation includes.
const SDK_README: &str = include_str!("../../../../../plugins/sdk/README.md");

/// What bindings in Go import: the types of the contract, and memory for what the host writes.
const GO_PACKAGES: &[(&str, &str)] = &[
    ("pkg/go.mod", include_str!("../../../../../plugins/go/pkg/go.mod")),
    ("pkg/wit/runtime/empty.s", include_str!("../../../../../plugins/go/pkg/wit/runtime/empty.s")),
    ("pkg/wit/runtime/runtime.go", include_str!("../../../../../plugins/go/pkg/wit/runtime/runtime.go")),
    ("pkg/wit/types/types.go", include_str!("../../../../../plugins/go/pkg/wit/types/types.go")),
];

/// What differs from kind to kind.
struct KindTexts {
    registration: &'static str,
    cases: [(&'static str, &'static str); 4],
    rust: &'static str,
    /// The file of its own, and the text.
    go: (&'static str, &'static str),
    python: &'static str,
    javascript: &'static str,
    /// The function of the SDK that runs the cases.
    check: &'static str,
    /// What it is, in words.
    what: &'static str,
    /// What a folder has that uses it.
    usage: &'static str,
}

/// What the contract calls the world that a component is built for.
pub(crate) fn wit_world(world: World) -> &'static str {
    match world {
        World::Deployer => "deployer",
        World::Templater => "templater",
        World::Gate => "gate-engine",
    }
}

/// The folder of its contract.
fn package(kind: ProjectKind) -> &'static str {
    match kind {
        ProjectKind::Deployer => "deployer",
        ProjectKind::Template => "template",
        ProjectKind::Gate => "gate",
    }
}

fn texts(kind: ProjectKind) -> KindTexts {
    match kind {
        ProjectKind::Deployer => KindTexts {
            registration: template!("any/deployer.yaml.tmpl"),
            cases: [
                ("cases/hello/request.json", template!("any/deployer-request.json.tmpl")),
                ("cases/hello/response.json", template!("any/deployer-response.json.tmpl")),
                ("cases/wrong/request.json", template!("any/deployer-wrong-request.json.tmpl")),
                ("cases/wrong/response.json", template!("any/deployer-wrong-response.json.tmpl")),
            ],
            rust: template!("rust/deployer.rs.tmpl"),
            go: ("export_orangery_deployer_deploy/plan.go", template!("go/deployer.go.tmpl")),
            python: template!("python/deployer.py.tmpl"),
            javascript: template!("javascript/deployer.js.tmpl"),
            check: "check_deployer",
            what: "a deployer, which plans deploy items",
            usage: "an Installation whose deploy items are of the type `example.org/@name@` and have `apiVersion` and `kind` in their `config`",
        },
        ProjectKind::Template => KindTexts {
            registration: template!("any/template.yaml.tmpl"),
            cases: [
                ("cases/hello/request.json", template!("any/template-request.json.tmpl")),
                ("cases/hello/response.json", template!("any/template-response.json.tmpl")),
                ("cases/wrong/request.json", template!("any/template-wrong-request.json.tmpl")),
                ("cases/wrong/response.json", template!("any/template-wrong-response.json.tmpl")),
            ],
            rust: template!("rust/template.rs.tmpl"),
            go: ("export_orangery_template_template/render.go", template!("go/template.go.tmpl")),
            python: template!("python/template.py.tmpl"),
            javascript: template!("javascript/template.js.tmpl"),
            check: "check_engine",
            what: "a template engine, which renders executions of blueprints",
            usage: "an Installation whose blueprint has executions of `type: @name@`",
        },
        ProjectKind::Gate => KindTexts {
            registration: template!("any/gate.yaml.tmpl"),
            cases: [
                ("cases/hello/request.json", template!("any/gate-request.json.tmpl")),
                ("cases/hello/response.json", template!("any/gate-response.json.tmpl")),
                ("cases/wrong/request.json", template!("any/gate-wrong-request.json.tmpl")),
                ("cases/wrong/response.json", template!("any/gate-wrong-response.json.tmpl")),
            ],
            rust: template!("rust/gate.rs.tmpl"),
            go: ("export_orangery_gate_gate/evaluate.go", template!("go/gate.go.tmpl")),
            python: template!("python/gate.py.tmpl"),
            javascript: template!("javascript/gate.js.tmpl"),
            check: "check_gate",
            what: "an evaluator of gate expressions",
            usage: "an Installation with deploy items that have `readyWhen: {component: {type: example.org/@name@}}`",
        },
    }
}

/// The files of a project.
pub(super) fn files(project: &Project) -> Vec<(String, String)> {
    let texts = texts(project.kind);
    let mut files: Vec<(String, String)> = Vec::new();
    let mut write = |path: &str, text: &str| files.push((path.to_owned(), filled(project, &texts, text)));
    write("plugin.yaml", texts.registration);
    write("README.md", template!("any/README.md.tmpl"));
    texts.cases.iter().for_each(|(path, text)| write(path, text));
    if project.kind == ProjectKind::Deployer {
        write("samples/hello.yaml", template!("any/sample.yaml.tmpl"));
    }
    match project.language {
        Language::Rust => {
            write("Cargo.toml", template!("rust/Cargo.toml.tmpl"));
            write(".gitignore", template!("rust/gitignore.tmpl"));
            write("src/lib.rs", texts.rust);
            write("tests/cases.rs", template!("rust/cases.rs.tmpl"));
            write("sdk/Cargo.toml", template!("rust/sdk-Cargo.toml.tmpl"));
        }
        Language::Go => {
            write("go.mod", template!("go/go.mod.tmpl"));
            write(".gitignore", template!("go/gitignore.tmpl"));
            write(texts.go.0, texts.go.1);
        }
        Language::Python => {
            write("requirements.txt", template!("python/requirements.txt.tmpl"));
            write(".gitignore", template!("python/gitignore.tmpl"));
            write("app.py", texts.python);
        }
        Language::Javascript => {
            write("package.json", template!("javascript/package.json.tmpl"));
            write(".gitignore", template!("javascript/gitignore.tmpl"));
            write("build.js", template!("javascript/build.js.tmpl"));
            write("component.js", texts.javascript);
        }
    }
    files.extend(whole(project));
    files
}

/// The path of a contract's file without its version: a project has one, the newest.
fn unversioned(path: &str) -> Option<String> {
    let (package, rest) = path.split_once('/')?;
    let (_, file) = rest.split_once('/')?;
    Some(format!("{package}/{file}"))
}

/// What is copied as it is: the contracts, of Rust the SDK, and of Go the bindings.
fn whole(project: &Project) -> Vec<(String, String)> {
    let owned = |path: String, text: &str| (path, text.to_owned());
    if project.language == Language::Rust {
        let sources = SDK.iter().map(|(path, text)| owned(format!("sdk/src/{path}"), text));
        let contracts = WIT.iter().map(|(path, text)| owned(format!("sdk/wit/{path}"), text));
        return sources.chain(contracts).chain([owned("sdk/README.md".to_owned(), SDK_README)]).collect();
    }
    let folder = format!("{}/", package(project.kind));
    let of_kind = WIT.iter().filter_map(|(path, text)| {
        let path = unversioned(path)?;
        Some(owned(format!("wit/{}", path.strip_prefix(&folder)?), text))
    });
    if project.language != Language::Go {
        return of_kind.collect();
    }
    let kit = orangery_builtin::go_kit(wit_world(project.kind.world()));
    let bindings = kit.into_iter().flat_map(|kit| kit.bindings).chain(GO_PACKAGES);
    of_kind.chain(bindings.map(|(path, text)| owned((*path).to_owned(), text))).collect()
}

/// A template with the words of the project.
fn filled(project: &Project, texts: &KindTexts, text: &str) -> String {
    let build: Vec<String> = project.build_commands().iter().map(|command| format!("    {command}")).collect();
    let conform = match project.kind {
        ProjectKind::Deployer => format!(
            "\nAsk what every deployer has to be able to do, with the configurations in `samples`:\n\n    orangery plugin conform {}\n",
            project.component()
        ),
        ProjectKind::Template | ProjectKind::Gate => String::new(),
    };
    // An interpreter is part of the component, and takes its memory in each call.
    let memory = match project.language {
        Language::Rust => "16",
        Language::Go | Language::Python | Language::Javascript => "128",
    };
    let words = [
        ("@what@", texts.what),
        ("@use@", texts.usage),
        ("@check@", texts.check),
        ("@build@", &build.join("\n")),
        ("@conform@", &conform),
        ("@memory@", memory),
        ("@component@", &project.component()),
        ("@world@", wit_world(project.kind.world())),
        ("@crate@", &project.name.module()),
        ("@version@", env!("CARGO_PKG_VERSION")),
        ("@name@", project.name.as_str()),
    ];
    words.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn sources(folder: &Path, below: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{below}{}", path.file_name().unwrap().to_string_lossy());
            match path.is_dir() {
                true => sources(&path, &format!("{name}/"), found),
                false => drop(found.insert(name)),
            }
        }
    }

    #[test]
    fn c_257_a_project_in_rust_has_the_whole_sdk_with_the_dependencies_of_the_workspace() {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/sdk");
        let mut found = BTreeSet::new();
        sources(&sdk.join("src"), "", &mut found);
        let written: BTreeSet<String> = SDK.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(written, found);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let workspace = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"));
        let template = template!("rust/sdk-Cargo.toml.tmpl");
        let dependency = |line: &&str| line.contains(" = ") && workspace.lines().any(|other| other == *line);
        let same: Vec<&str> = template.lines().filter(dependency).filter_map(|line| line.split(' ').next()).collect();
        for name in ["serde", "serde_json", "wit-bindgen", "yaml_serde"] {
            assert!(same.contains(&name), "{name} differs from the workspace");
            assert!(read(&sdk.join("Cargo.toml")).contains(&format!("{name}.workspace = true")), "{name}");
        }
        let own = read(&sdk.join("Cargo.toml"));
        let (of_sdk, _) = own.split_once("[dev-dependencies]").unwrap();
        assert_eq!(of_sdk.matches(".workspace = true").count(), 4 + 5, "a dependency of the SDK is not written");
    }
}
