//! Builds the components that this crate embeds, and writes a constant for each.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::ZlibEncoder};
use orangery_build::{
    Error, GoComponent, GoKit, Request, What, digest, go_component, go_kit, guests, report, warn, wit_package,
};

/// The components that are written in Go, their registrations below `plugins`, and what is not there without them.
const IN_GO: &[(&str, &str, &str)] = &[
    ("gotemplate", "go/gotemplate.yaml", "the template type GoTemplate"),
    ("spiff", "go/spiff.yaml", "the template type Spiff"),
    ("helm", "helm/plugin.yaml", "the deployer of landscaper.gardener.cloud/helm"),
];

/// The worlds that projects in Go are written for, and the folders of their contracts below `wit`.
const WORLDS: [(&str, &str); 3] =
    [("deployer", "deployer/0.1.0"), ("templater", "template/0.1.0"), ("gate-engine", "gate/0.1.0")];

/// The text that the crate includes: the list of all components.
#[derive(Default)]
struct Embedded {
    list: String,
}

fn main() -> io::Result<()> {
    // Read now, not when this script was compiled: the repository may have been moved since.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let plugins = here.parent().unwrap_or(&here);
    let mut embedded = Embedded::default();
    let names = in_rust(plugins)?;
    match rust(plugins, &names) {
        Ok(components) => {
            for (name, component) in names.iter().zip(components) {
                embedded.add(name, &plugins.join(name).join("plugin.yaml"), &component)?;
            }
        }
        Err(error) => {
            report(&error);
            return Ok(());
        }
    }
    let mut kits = String::new();
    for (world, contract) in WORLDS {
        match go_kit(&plugins.join("../wit").join(contract), world) {
            Ok(kit) => kits += &embedded_kit(world, &kit)?,
            Err(error) => {
                report(&error);
                return Ok(());
            }
        }
    }
    fs::write(out().join("go_kits.rs"), format!("&[\n{kits}]\n"))?;
    let mut packages = String::new();
    for (_, contract) in WORLDS {
        match wit_package(&plugins.join("../wit").join(contract)) {
            Ok(package) => {
                let kept = out().join(format!("{}.wit.wasm", contract.replace('/', "-")));
                fs::write(&kept, package)?;
                packages += &format!("    ({contract:?}, include_bytes!({:?})),\n", kept.display().to_string());
            }
            Err(error) => {
                report(&error);
                return Ok(());
            }
        }
    }
    fs::write(out().join("wit_packages.rs"), format!("&[\n{packages}]\n"))?;
    for (name, registration, what) in IN_GO {
        let registration = plugins.join(registration);
        match go(&here, name) {
            Ok(component) => embedded.add(name, &registration, &component)?,
            Err(error) if error.is_of_the_machine() => {
                let sentence = format!("{what} is not part of this build: {error}");
                warn(&sentence);
                embedded.lack(name, &registration, &sentence);
            }
            Err(error) => {
                report(&error);
                return Ok(());
            }
        }
    }
    fs::write(out().join("embedded.rs"), format!("&[\n{}]\n", embedded.list))
}

/// The components that are written in Rust: every folder with a package and a registration, sorted by name.
fn in_rust(plugins: &Path) -> io::Result<Vec<String>> {
    // A component is a member of the workspace.
    println!("cargo:rerun-if-changed={}", plugins.join("../Cargo.toml").display());
    let mut names = Vec::new();
    for entry in fs::read_dir(plugins)? {
        let folder = entry?.path();
        let is_component = ["Cargo.toml", "plugin.yaml"].iter().all(|file| folder.join(file).is_file());
        names.extend(folder.file_name().filter(|_| is_component).map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    Ok(names)
}

fn rust(plugins: &Path, names: &[String]) -> Result<Vec<PathBuf>, Error> {
    let workspace = plugins.join("../Cargo.toml");
    let mut watched: Vec<PathBuf> = vec![plugins.join("../wit")];
    for plugin in names.iter().map(String::as_str).chain(["sdk"]) {
        watched.extend([plugins.join(plugin).join("src"), plugins.join(plugin).join("Cargo.toml")]);
    }
    let watch: Vec<&Path> = watched.iter().map(PathBuf::as_path).collect();
    let packages: Vec<String> = names.iter().map(|name| format!("orangery-{name}")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    guests(&Request { manifest: &workspace, what: What::Packages(&packages), watch: &watch })
}

fn go(here: &Path, name: &str) -> Result<PathBuf, Error> {
    let plugins = here.parent().unwrap_or(here);
    let (engines, contracts) = (plugins.join("go"), plugins.with_file_name("wit"));
    let (packages, random) = (engines.join("pkg"), engines.join("random"));
    let additions = engines.join("additions");
    if name == "helm" {
        let deployer = plugins.join("helm");
        return go_component(&GoComponent {
            name,
            main: &deployer.join("component"),
            with: &[&deployer, &packages, &random],
            standins: None,
            additions: Some(&additions),
            tags: &[],
            wit: &contracts.join("deployer/0.1.0"),
            world: "deployer-with-tests",
            snapshot: true,
        });
    }
    go_component(&GoComponent {
        name,
        main: &engines.join("component"),
        with: &[&engines, &packages, &random],
        standins: Some(&engines.join("standins")),
        additions: Some(&additions),
        tags: &[name],
        wit: &contracts.join("template/0.1.0"),
        world: "templater-with-check",
        snapshot: true,
    })
}

/// Writes what projects in Go of a world are built with to where the crate includes it from.
fn embedded_kit(world: &str, kit: &GoKit) -> io::Result<String> {
    let folder = out().join("go").join(world);
    let mut bindings = String::new();
    for (name, text) in &kit.bindings {
        let kept = folder.join("bindings").join(name);
        fs::create_dir_all(kept.parent().unwrap_or(&folder))?;
        let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
        fs::write(&kept, [text.as_slice(), end].concat())?;
        bindings += &format!("({name:?}, include_str!({:?})), ", kept.display().to_string());
    }
    let mut frame = Vec::new();
    for (name, bytes) in [("before", &kit.before), ("after", &kit.after)] {
        let kept = folder.join(name);
        fs::write(&kept, bytes)?;
        frame.push(format!("{name}: include_bytes!({:?})", kept.display().to_string()));
    }
    Ok(format!("    EmbeddedGoKit {{ world: {world:?}, bindings: &[{bindings}], {} }},\n", frame.join(", ")))
}

fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default())
}

impl Embedded {
    /// Packs a component to where the crate includes it from.
    fn add(&mut self, name: &str, registration: &Path, component: &Path) -> io::Result<()> {
        let kept = out().join(format!("{name}.wasm.zlib"));
        let bytes = fs::read(component)?;
        // A higher level takes three times as long for a fiftieth less.
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(&bytes)?;
        fs::write(&kept, encoder.finish()?)?;
        let (kept, size, digest) = (kept.display().to_string(), bytes.len(), digest(&bytes));
        self.register(name, registration, &format!("Ok((include_bytes!({kept:?}), {size}, {digest:?}))"));
        Ok(())
    }

    /// Says what stands in place of a component that could not be built.
    fn lack(&mut self, name: &str, registration: &Path, sentence: &str) {
        self.register(name, registration, &format!("Err({sentence:?})"));
    }

    fn register(&mut self, name: &str, registration: &Path, component: &str) {
        let registration = registration.display().to_string();
        self.list += &format!(
            "    Builtin {{ name: {name:?}, registration: include_str!({registration:?}), component: {component} }},\n"
        );
    }
}
