//! One pass over a component's bytes: names, counts, bounds. It allocates no more than the names it answers.

use wasmparser::{ComponentExternName, ComponentExternalKind, ComponentTypeRef, Encoding, Parser, Payload};

use crate::{contract::LEVEL_SECTION, error::Error};

/// The largest component.
pub(crate) const MOST_BYTES: u64 = 64 << 20;
/// The most functions of all its modules.
const MOST_FUNCTIONS: u64 = 100_000;
/// The most modules and components in it.
const MOST_PARTS: u64 = 200;
/// The largest single function; larger ones make a compiler slow out of proportion.
const MOST_FUNCTION_BYTES: u64 = 2 << 20;
/// The most names that it imports or exports at the top.
const MOST_NAMES: u64 = 1_000;
/// Bytes of all these names.
const MOST_NAME_BYTES: u64 = 64 << 10;
/// Bytes of the contract level.
const MOST_LEVEL_BYTES: u64 = 64;

/// What a pass found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) functions: u64,
    pub(super) level: Option<String>,
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

pub(super) fn scan(bytes: &[u8]) -> Result<Scan, Error> {
    at_most("bytes", bytes.len() as u64, MOST_BYTES)?;
    if !Parser::is_component(bytes) {
        let what = if Parser::is_core_wasm(bytes) { "it is a core module" } else { "it does not begin as one" };
        return Err(Error::NotAComponent { why: what.to_owned() });
    }
    let mut scan = Scan::default();
    let (mut depth, mut parts, mut name_bytes) = (0_u64, 0_u64, 0_u64);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(broken)? {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => {
                depth += 1;
                parts += 1;
                at_most("modules and components inside", parts, MOST_PARTS)?;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::FunctionSection(functions) => {
                scan.functions += u64::from(functions.count());
                at_most("functions", scan.functions, MOST_FUNCTIONS)?;
            }
            Payload::CodeSectionEntry(body) => {
                at_most("bytes in one function", body.range().len() as u64, MOST_FUNCTION_BYTES)?;
            }
            Payload::CustomSection(section) if section.name() == LEVEL_SECTION => {
                at_most("bytes in the name of its contract level", section.data().len() as u64, MOST_LEVEL_BYTES)?;
                scan.level = Some(String::from_utf8_lossy(section.data()).into_owned());
            }
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports {
                    let import = import.map_err(broken)?;
                    if import_matters(&import.ty) {
                        let name = full_name(&import.name);
                        name_bytes += name.len() as u64;
                        at_most("bytes of names", name_bytes, MOST_NAME_BYTES)?;
                        scan.imports.push(name);
                        at_most("imports", scan.imports.len() as u64, MOST_NAMES)?;
                    }
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports {
                    let export = export.map_err(broken)?;
                    if export.kind == ComponentExternalKind::Instance {
                        let name = full_name(&export.name);
                        name_bytes += name.len() as u64;
                        at_most("bytes of names", name_bytes, MOST_NAME_BYTES)?;
                        scan.exports.push(name);
                        at_most("exports", scan.exports.len() as u64, MOST_NAMES)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(scan)
}

/// Types are imported by name too, but nothing is reached through them.
fn import_matters(what: &ComponentTypeRef) -> bool {
    !matches!(what, ComponentTypeRef::Type(_))
}

fn at_most(what: &'static str, found: u64, allowed: u64) -> Result<(), Error> {
    if found > allowed {
        return Err(Error::TooLarge { what, found, allowed });
    }
    Ok(())
}

/// The name with its whole version, whose end may stand apart; a name that stands for an interface has none.
fn full_name(name: &ComponentExternName<'_>) -> String {
    let suffix = if name.implements.is_none() { name.version_suffix } else { None };
    format!("{}{}", name.name, suffix.unwrap_or_default())
}

fn broken(error: wasmparser::BinaryReaderError) -> Error {
    Error::NotAComponent { why: format!("{} at byte {}", error.message(), error.offset()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], message: &str) {
        assert_eq!(scan(bytes).unwrap_err().to_string(), message);
    }

    const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn what_is_no_component_is_told_what_it_is() {
        check(
            b"",
            "the file is not a WebAssembly component: it does not begin as one; build it for the target wasm32-wasip2",
        );
        check(
            b"\x7fELF",
            "the file is not a WebAssembly component: it does not begin as one; build it for the target wasm32-wasip2",
        );
        check(
            b"\0asm\x01\0\0\0",
            "the file is not a WebAssembly component: it is a core module; build it for the target wasm32-wasip2",
        );
        check(
            &[HEADER, &[1, 0xff]].concat(),
            "the file is not a WebAssembly component: unexpected end-of-file at byte 10; build it for the target wasm32-wasip2",
        );
    }

    #[test]
    fn a_component_is_as_large_as_is_compiled() {
        let mut large = HEADER.to_vec();
        large.resize((MOST_BYTES + 1) as usize, 0);
        check(&large, "the component has 67108865 bytes, and at most 67108864 are compiled; make it smaller");
    }

    #[test]
    fn a_nest_of_components_is_cut() {
        // Section 4 holds a component; each is the whole content of the one before.
        let mut nest = HEADER.to_vec();
        for _ in 0..MOST_PARTS {
            nest = [HEADER, &section(4, &nest)].concat();
        }
        check(
            &nest,
            "the component has 201 modules and components inside, and at most 200 are compiled; make it smaller",
        );
    }

    /// An unsigned number as WebAssembly writes it.
    fn number(mut rest: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while rest >> 7 != 0 {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        [&[id][..], &number(content.len() as u64), content].concat()
    }

    fn with_module(sections: &[u8]) -> Vec<u8> {
        [HEADER, &section(1, &[b"\0asm\x01\0\0\0", sections].concat())].concat()
    }

    #[test]
    fn limits_components_functions_are_counted_and_each_is_measured() {
        let code = |bodies: &[u8], count: u64| {
            let types = section(3, &[number(count), vec![0; count as usize]].concat());
            with_module(&[types, section(10, &[&number(count)[..], bodies].concat())].concat())
        };
        let functions = |count: u64| code(&[2, 0, 0x0b].repeat(count as usize), count);
        assert_eq!(scan(&functions(MOST_FUNCTIONS)).unwrap().functions, 100_000);
        check(
            &functions(MOST_FUNCTIONS + 1),
            "the component has 100001 functions, and at most 100000 are compiled; make it smaller",
        );
        let function =
            |bytes: u64| code(&[&number(bytes)[..], &[0], &vec![1; bytes as usize - 2], &[0x0b]].concat(), 1);
        assert!(scan(&function(MOST_FUNCTION_BYTES)).is_ok());
        check(
            &function(MOST_FUNCTION_BYTES + 1),
            "the component has 2097153 bytes in one function, and at most 2097152 are compiled; make it smaller",
        );
    }

    #[test]
    fn limits_components_imports_and_exports_are_counted() {
        // An instance each, of the first type, under the name `a`.
        let names = |id: u8, entry: &[u8], count: u64| {
            [HEADER, &section(id, &[number(count), entry.repeat(count as usize)].concat())].concat()
        };
        let (import, export) = ([0, 1, b'a', 5, 0], [0, 1, b'a', 5, 0, 0]);
        assert_eq!(scan(&names(10, &import, MOST_NAMES)).unwrap().imports.len(), 1_000);
        check(
            &names(10, &import, MOST_NAMES + 1),
            "the component has 1001 imports, and at most 1000 are compiled; make it smaller",
        );
        assert_eq!(scan(&names(11, &export, MOST_NAMES)).unwrap().exports.len(), 1_000);
        check(
            &names(11, &export, MOST_NAMES + 1),
            "the component has 1001 exports, and at most 1000 are compiled; make it smaller",
        );
    }

    #[test]
    fn c_302_limits_components_names_and_the_contract_level_have_so_many_bytes() {
        let name = vec![b'a'; MOST_NAME_BYTES as usize];
        let named = |length: usize| {
            let import = [&[0][..], &number(length as u64), &name[..length.min(name.len())], &[5, 0]].concat();
            [HEADER, &section(10, &[&[2, 0, 1, b'a', 5, 0][..], &import].concat())].concat()
        };
        assert_eq!(scan(&named(name.len() - 1)).unwrap().imports.len(), 2);
        check(
            &named(name.len()),
            "the component has 65537 bytes of names, and at most 65536 are compiled; make it smaller",
        );
        let level = |length: usize| {
            [HEADER, &section(0, &[&[17][..], b"orangery:contract", &vec![b'7'; length]].concat())].concat()
        };
        assert_eq!(scan(&level(MOST_LEVEL_BYTES as usize)).unwrap().level.map(|level| level.len()), Some(64));
        check(
            &level(65),
            "the component has 65 bytes in the name of its contract level, and at most 64 are compiled; make it smaller",
        );
    }

    #[test]
    fn the_contract_level_is_found_where_a_linker_leaves_it() {
        let section = [&[0, 19, 17][..], b"orangery:contract", b"7"].concat();
        assert_eq!(scan(&[HEADER, &section].concat()).unwrap().level.as_deref(), Some("7"));
        let module = [b"\0asm\x01\0\0\0", &section[..]].concat();
        let nested = [HEADER, &[1, module.len() as u8], &module].concat();
        assert_eq!(scan(&nested).unwrap().level.as_deref(), Some("7"));
    }
}
