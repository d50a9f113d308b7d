//! Projects in Go: `go build` for WASI preview 1, in the frame of the contract's components.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use orangery_builtin::EmbeddedGoKit;

use super::{BuildError, ProjectFolder, toolchain::LanguageTool};
use crate::authoring::project::wit_world;

const GO: LanguageTool =
    LanguageTool { program: "go", language: "Go", fix: "install Go 1.26 or later: https://go.dev/dl" };

/// A small reactor, the same wherever it is built, that may ask the runtime for memory (`plugins/go/README.md`, pitfall 2).
const FLAGS: [&str; 3] = ["-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -checklinkname=0 -buildid="];

/// The ending of what Go makes, which is no component yet: a draft, so that a watch takes it for no save.
const MODULE: &str = "module.draft";

/// The id of a section of a component that holds a module.
const MODULE_SECTION: u8 = 1;
/// The id of a section of a module that has its imports.
const IMPORT_SECTION: u8 = 2;
/// Bytes that a module begins with.
const PREAMBLE: usize = 8;

pub(super) fn build(project: &ProjectFolder) -> Result<(), BuildError> {
    let go = GO.find()?;
    let Some(kit) = orangery_builtin::go_kit(wit_world(project.world)) else {
        let fix = "this program has nothing to make a component of this world in Go with; report it as a defect";
        return Err(BuildError::NotBuilt { path: project.component(), fix });
    };
    let (module, draft) = (project.beside(MODULE), project.draft());
    let mut command = Command::new(go);
    command.env("GOOS", "wasip1").env("GOARCH", "wasm").arg("build").args(FLAGS).arg("-o");
    project.run(command.arg::<&Path>(&module).arg("."))?;
    let (module, whole) = (project.within(&module), project.within(&draft));
    let failed = |path: &PathBuf, cause| BuildError::File { path: path.clone(), cause };
    let made = fs::read(&module).map_err(|cause| failed(&module, cause))?;
    let Some(component) = framed(kit, &made) else {
        let fix = "what go has made is no module that this program knows; install Go 1.26 or later: https://go.dev/dl";
        return Err(BuildError::NotBuilt { path: project.component(), fix });
    };
    fs::write(&whole, component).map_err(|cause| failed(&whole, cause))?;
    fs::remove_file(&module).map_err(|cause| failed(&module, cause))?;
    project.place(&draft)
}

/// A component: the module in its frame; `None` where it is none that Go makes. What the module has that the frame does not know is
/// found when the component is looked at and compiled.
fn framed(kit: &EmbeddedGoKit, module: &[u8]) -> Option<Vec<u8>> {
    let module = with_names_of_imports(module)?;
    let mut component = kit.before.to_vec();
    component.push(MODULE_SECTION);
    push_number(&mut component, module.len());
    component.extend_from_slice(&module);
    component.extend_from_slice(kit.after);
    Some(component)
}

/// The same module, whose imports have a name each: the linker of Go imports some functions twice, which components do not allow.
/// The second one is called `… [v2]`, as in the frame.
fn with_names_of_imports(module: &[u8]) -> Option<Vec<u8>> {
    let (preamble, mut rest) = module.split_at_checked(PREAMBLE)?;
    let mut named = preamble.to_vec();
    while let Some((&id, behind)) = rest.split_first() {
        rest = behind;
        let size = number(&mut rest)?;
        let content = bytes(&mut rest, size)?;
        let content = if id == IMPORT_SECTION { numbered(content)? } else { content.to_vec() };
        named.push(id);
        push_number(&mut named, content.len());
        named.extend(content);
    }
    Some(named)
}

/// The content of a section of imports, all of them functions.
fn numbered(mut section: &[u8]) -> Option<Vec<u8>> {
    let count = number(&mut section)?;
    let (mut numbered, mut seen) = (Vec::new(), BTreeMap::<Vec<u8>, usize>::new());
    push_number(&mut numbered, count);
    for _ in 0..count {
        let mut name = Vec::new();
        for _ in 0..2 {
            let length = number(&mut section)?;
            name.push(bytes(&mut section, length)?.to_vec());
        }
        let times = seen.entry(name.join(&0)).or_default();
        *times += 1;
        if *times > 1 {
            name.last_mut()?.extend(format!(" [v{times}]").into_bytes());
        }
        for part in name {
            push_number(&mut numbered, part.len());
            numbered.extend(part);
        }
        let [0] = bytes(&mut section, 1)? else { return None };
        numbered.push(0);
        push_number(&mut numbered, number(&mut section)?);
    }
    section.is_empty().then_some(numbered)
}

/// Takes so many bytes.
fn bytes<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

/// Takes a number as WebAssembly writes it, of 32 bits.
fn number(from: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14, 21, 28] {
        let [byte] = *bytes(from, 1)? else { return None };
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn push_number(to: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with imports of these names, and a section of 200 bytes.
    fn module(names: &[&str]) -> Vec<u8> {
        let mut imports = vec![u8::try_from(names.len()).unwrap()];
        for name in names {
            imports.extend([1, b'w', u8::try_from(name.len()).unwrap()]);
            imports.extend(name.as_bytes());
            imports.extend([0, 3]);
        }
        let mut module = b"\0asm\x01\0\0\0\x02".to_vec();
        push_number(&mut module, imports.len());
        module.extend(imports);
        module.extend([10, 0xc8, 1]);
        module.extend([7; 200]);
        module
    }

    #[test]
    fn c_350_a_module_of_go_stands_in_the_frame_of_its_world() {
        let kit = EmbeddedGoKit { world: "a", bindings: &[], before: b"<", after: b">" };
        let named = module(&["a", "b", "a [v2]"]);
        let mut expected = b"<\x01".to_vec();
        push_number(&mut expected, named.len());
        expected.extend([named.as_slice(), b">"].concat());
        assert_eq!(framed(&kit, &module(&["a", "b", "a"])), Some(expected));
        for world in ["deployer", "templater", "gate-engine"] {
            let kit = orangery_builtin::go_kit(world).unwrap();
            assert!(kit.before.starts_with(b"\0asm\x0d\0\x01\0") && !kit.after.is_empty(), "{world}");
        }
        assert_eq!(orangery_builtin::go_kit("other"), None);
    }

    #[test]
    fn c_350_what_is_no_module_of_go_is_put_into_no_frame() {
        let whole = module(&["a"]);
        assert!((0..whole.len()).filter(|end| *end != PREAMBLE).all(|end| {
            // Between two sections it is whole.
            with_names_of_imports(&whole[..end]).is_none() || end == whole.len() - 203
        }));
        let mut memory = whole.clone();
        let kind = memory.len() - 205;
        memory[kind] = 2;
        assert_eq!(with_names_of_imports(&memory), None);
        assert_eq!(number(&mut [0x80; 6].as_slice()), None);
    }
}
