//! `orangery plugin inspect`: what a component is and needs, without running it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use orangery_plugin::{Inspection, Offer, Registration};
use orangery_proposal::grant::Grants;
use serde::Serialize;

use crate::{
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery plugin inspect mine.wasm
  orangery plugin inspect mine.wasm --registration mine.yaml

Without a registration, nothing is granted. The exit code is 1 when this host would not load the component.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  digest, size, functions
  level         the contract level it says it was built for
  worlds        a list of deployer, templater
  imports       a list of {interface, offer, grant}; offer is harmless, granted, notGranted,
                unserved or unknown, and grant the missing field of the registration
  exports       a list of names
  unusable      why this host would not load it";

/// Shows what a component is: its world, its imports held against the grants, its size and digest. Nothing of it runs.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginInspect {
    /// The component (.wasm)
    pub file: PathBuf,
    /// Its registration (.yaml), for the grants
    #[arg(long, value_name = "FILE")]
    pub registration: Option<PathBuf>,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PluginInspectOutput<'a> {
    digest: &'a str,
    size: u64,
    functions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'a str>,
    worlds: Vec<String>,
    imports: Vec<Import<'a>>,
    exports: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
}

/// One import.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Import<'a> {
    interface: &'a str,
    offer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<&'static str>,
}

impl PluginInspect {
    /// Reads the files and shows what is known.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let bytes = read(&self.file)?;
        let grants = match &self.registration {
            Some(path) => grants(path)?,
            None => Grants::default(),
        };
        let refused = |cause| CommandError::Component { path: self.file.clone(), cause };
        let inspection = orangery_plugin::inspect(&bytes).map_err(refused)?;
        match self.output {
            Some(form) => {
                form.write(&document(&inspection, &grants), terminal)?;
                Ok(if inspection.check().is_ok() { Exit::Ok } else { Exit::Failed })
            }
            None => {
                text(&inspection, &grants, terminal.ink()).lines().try_for_each(|line| terminal.painted(line))?;
                inspection.check().map_err(refused)?;
                Ok(Exit::Ok)
            }
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|cause| CommandError::Read { path: path.to_owned(), cause })
}

fn grants(registration: &Path) -> Result<Grants, CommandError> {
    let text = read(registration)?;
    let registration = Registration::parse(&String::from_utf8_lossy(&text), &registration.display().to_string())?;
    Ok(registration.spec.grants)
}

fn document<'a>(inspection: &'a Inspection, grants: &Grants) -> PluginInspectOutput<'a> {
    let offers = inspection.needs(grants).into_iter().map(|need| need.offer);
    let imports = inspection.imports.iter().zip(offers).map(|(interface, offer)| {
        let (offer, grant) = offer.words();
        Import { interface, offer, grant }
    });
    PluginInspectOutput {
        digest: &inspection.digest,
        size: inspection.size,
        functions: inspection.functions,
        level: inspection.level.as_deref(),
        worlds: inspection.worlds().iter().map(ToString::to_string).collect(),
        imports: imports.collect(),
        exports: &inspection.exports,
        unusable: inspection.check().err().map(|error| error.to_string()),
    }
}

fn text(inspection: &Inspection, grants: &Grants, ink: Ink) -> String {
    let worlds: Vec<String> = inspection.worlds().iter().map(ToString::to_string).collect();
    let mut text = String::new();
    let mut row = |name: &str, value: &str| text.push_str(&format!("{name:<10}{value}\n"));
    row("world", &if worlds.is_empty() { "none that this host knows".to_owned() } else { worlds.join(", ") });
    row(
        "contract",
        &match &inspection.level {
            Some(level) => format!("level {}", level.escape_debug()),
            None => "no level given".to_owned(),
        },
    );
    row("size", &format!("{} in {} functions", size(inspection.size), inspection.functions));
    row("digest", &inspection.digest);
    for (index, export) in inspection.exports.iter().enumerate() {
        row(if index == 0 { "exports" } else { "" }, &export.escape_debug().to_string());
    }
    let needs = inspection.needs(grants);
    let width = needs.iter().map(|need| need.interface.chars().count()).max().unwrap_or_default().min(WIDEST);
    for (index, need) in needs.iter().enumerate() {
        let paint = match need.offer {
            Offer::Harmless => Paint::Dim,
            Offer::Granted => Paint::Good,
            Offer::NotGranted(_) | Offer::Unserved => Paint::Busy,
            Offer::Unknown => Paint::Bad,
        };
        let offer = ink.paint(paint, &need.offer.to_string());
        row(
            if index == 0 { "imports" } else { "" },
            &format!("{:<width$}  {offer}", need.interface.escape_debug().to_string()),
        );
    }
    text
}

/// The widest column of names, in characters; what is longer shifts what follows.
const WIDEST: usize = 200;

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KiB", bytes.div_ceil(KIB)),
        _ => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::terminal::{Appearance, tests::display};

    /// A component with nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    /// Looks into a component: the end, and the output with the folder's path as `DIR`.
    fn inspected(
        component: &[u8],
        registration: Option<&str>,
        output: Option<OutputFormat>,
    ) -> (Result<Exit, String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let (mut terminal, out, _) = display(Appearance::PLAIN);
        let registration = registration.map(|text| write("mine.yaml", text.as_bytes()));
        let end = PluginInspect { file: write("mine.wasm", component), registration, output }.execute(&mut terminal);
        let hide = |text: String| text.replace(&folder.path().display().to_string(), "DIR");
        (end.map_err(|error| hide(error.to_string())), hide(out.text()))
    }

    fn manifest() -> orangery_builtin::Builtin {
        *orangery_builtin::components().iter().find(|builtin| builtin.name == "manifest").unwrap()
    }

    fn manifest_bytes() -> Vec<u8> {
        let (packed, size, _) = manifest().component.unwrap();
        orangery_plugin::unpack(packed, size).unwrap()
    }

    fn line<'a>(text: &'a str, part: &str) -> &'a str {
        text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part} in\n{text}"))
    }

    #[test]
    fn a_component_is_shown_with_its_imports_held_against_the_grants() {
        let (end, text) = inspected(&manifest_bytes(), Some(manifest().registration), None);
        assert_eq!(end, Ok(Exit::Ok));
        assert_eq!(line(&text, "world"), "world     deployer");
        assert_eq!(line(&text, "contract"), "contract  level 1");
        assert_eq!(line(&text, "exports"), "exports   orangery:deployer/deploy@0.1.0");
        assert!(line(&text, "digest").starts_with("digest    sha256:"), "{text}");
    }

    #[test]
    fn without_a_registration_nothing_is_granted() {
        let (_, text) = inspected(&manifest_bytes(), None, Some(OutputFormat::Json));
        let document: Value = serde_json::from_str(&text).unwrap();
        let offers: Vec<&str> =
            document["imports"].as_array().unwrap().iter().map(|import| import["offer"].as_str().unwrap()).collect();
        assert!(!offers.contains(&"granted") && !offers.contains(&"unknown"), "{text}");
        assert_eq!(document["worlds"], serde_json::json!(["deployer"]));
        assert_eq!(document["unusable"], Value::Null);
    }

    #[test]
    fn a_component_that_this_host_would_not_load_is_shown_all_the_same() {
        let (end, text) = inspected(EMPTY, None, None);
        assert_eq!(line(&text, "world"), "world     none that this host knows");
        assert_eq!(line(&text, "size"), "size      8 bytes in 0 functions");
        let error = end.unwrap_err();
        assert!(error.starts_with("DIR/mine.wasm: the component does not export "), "{error}");
        assert_eq!(inspected(EMPTY, None, Some(OutputFormat::Json)).0, Ok(Exit::Failed));
    }

    #[test]
    fn what_is_no_component_and_what_is_no_registration_is_one_sentence() {
        let error = inspected(b"hello", None, None).0.unwrap_err();
        assert!(error.starts_with("DIR/mine.wasm: the file is not a WebAssembly component"), "{error}");
        let error = inspected(EMPTY, Some("kind: Pod\n"), None).0.unwrap_err();
        assert!(error.starts_with("DIR/mine.yaml"), "{error}");
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!([12, 1 << 10, 1_500_000].map(size), ["12 bytes", "1 KiB", "1.4 MiB"]);
    }
}
