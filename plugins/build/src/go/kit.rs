//! What a project in Go is built with where none of this is: the bindings of a contract, and the frame of its components.
//!
//! A component is made of a module by what stands around it: types, the adapter of WASI preview 1, and what joins them. That
//! depends on the contract alone. So it is made here once, around a module that imports and exports all that one may.

use std::path::Path;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasm_encoder::{
    CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection, Instruction,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wasmparser_for_guests::{ExternalKind, Parser, Payload};
use wit_bindgen_core::{
    abi::guest_export_needs_post_return,
    wit_parser::{
        LiftLowerAbi, ManglingAndAbi, Resolve, ResourceIntrinsic, TypeDefKind, WasmExport, WasmExportKind, WasmImport,
        WorldId, WorldItem, WorldKey, abi::WasmType,
    },
};

use super::{bindings::Bindings, encode};
use crate::Error;

/// What projects in Go of one world are built with.
pub struct GoKit {
    /// Go files by their path in the package `main`, a module called `wit_component`.
    pub bindings: Vec<(String, Vec<u8>)>,
    /// What stands in a component before its module.
    pub before: Vec<u8>,
    /// What stands behind it.
    pub after: Vec<u8>,
}

const MANGLING: ManglingAndAbi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);

/// The bindings and the frame of a world.
///
/// # Errors
///
/// [`Error::Component`] where the contract cannot be read.
pub fn go_kit(wit: &Path, world: &str) -> Result<GoKit, Error> {
    let bindings = Bindings::generate(wit, world)?;
    let broken = |error: &dyn std::fmt::Display| Error::Component { why: format!("{}: {error:#}", wit.display()) };
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|error| broken(&error))?;
    let world = resolve.select_world(&[package], Some(world)).map_err(|error| broken(&error))?;
    let mut placeholder = Placeholder::default();
    placeholder.of_wasi().map_err(|error| broken(&error))?;
    placeholder.of_world(&resolve, world);
    let component = encode(&placeholder.finish(), &bindings)?;
    for payload in Parser::new(0).parse_all(&component) {
        // The first module is the one that was given.
        if let Payload::ModuleSection { unchecked_range, .. } = payload.map_err(|error| broken(&error))? {
            let (begin, end) = (unchecked_range.start as usize, unchecked_range.end as usize);
            let mut header = vec![1];
            leb128(&mut header, end - begin);
            let before = component.get(..begin - header.len()).unwrap_or_default().to_vec();
            let after = component.get(end..).unwrap_or_default().to_vec();
            return Ok(GoKit { bindings: bindings.files, before, after });
        }
    }
    Err(broken(&"the component has no module"))
}

fn leb128(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// A module that imports and exports all that one of a world may, and does nothing.
#[derive(Default)]
struct Placeholder {
    types: TypeSection,
    imports: ImportSection,
    imported: u32,
    functions: FunctionSection,
    exports: ExportSection,
    code: CodeSection,
    defined: u32,
}

impl Placeholder {
    fn import(&mut self, (module, name): (&str, &str), params: Vec<ValType>, results: Vec<ValType>) {
        let of = self.types.len();
        self.types.ty().function(params, results);
        self.imports.import(module, name, EntityType::Function(of));
        self.imported += 1;
    }

    fn export(&mut self, name: &str, params: Vec<ValType>, results: Vec<ValType>) {
        let of = self.types.len();
        self.types.ty().function(params, results);
        self.functions.function(of);
        let mut body = Function::new([]);
        body.instruction(&Instruction::Unreachable).instruction(&Instruction::End);
        self.code.function(&body);
        self.exports.export(name, ExportKind::Func, self.imported + self.defined);
        self.defined += 1;
    }

    /// Imports all that the adapter of WASI preview 1 has, twice: the linker of Go imports some functions twice, of which the encoder
    /// calls the second one `… [v2]`.
    fn of_wasi(&mut self) -> Result<(), wasmparser_for_guests::BinaryReaderError> {
        let (mut types, mut of_functions, mut exported) = (Vec::new(), Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER) {
            match payload? {
                Payload::TypeSection(section) => {
                    for of in section.into_iter_err_on_gc_types() {
                        types.push(of?);
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        if let wasmparser_for_guests::TypeRef::Func(of) = import?.ty {
                            of_functions.push(of);
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    for of in section {
                        of_functions.push(of?);
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.kind == ExternalKind::Func && !export.name.starts_with("cabi_") {
                            exported.push((export.name.to_owned(), export.index));
                        }
                    }
                }
                _ => {}
            }
        }
        for (name, index) in exported {
            let of = of_functions.get(index as usize).and_then(|of| types.get(*of as usize));
            if let Some(of) = of {
                let values = |of: &[wasmparser_for_guests::ValType]| of.iter().copied().map(number).collect();
                for _ in 0..2 {
                    let named = (WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, name.as_str());
                    self.import(named, values(of.params()), values(of.results()));
                }
            }
        }
        Ok(())
    }

    fn of_world(&mut self, resolve: &Resolve, world: WorldId) {
        let Some(world) = resolve.worlds.get(world) else { return };
        let interfaces = |items: Vec<(&WorldKey, &WorldItem)>| {
            let ids = items.into_iter().filter_map(|(key, item)| match item {
                WorldItem::Interface { id, .. } => Some((key.clone(), *id)),
                WorldItem::Function(_) | WorldItem::Type { .. } => None,
            });
            ids.collect::<Vec<_>>()
        };
        for (key, id) in interfaces(world.imports.iter().collect()) {
            let Some(interface) = resolve.interfaces.get(id) else { continue };
            for func in interface.functions.values() {
                let signature = resolve.wasm_signature(MANGLING.import_variant(), func);
                let named = resolve.wasm_import_name(MANGLING, WasmImport::Func { interface: Some(&key), func });
                self.import((&named.0, &named.1), numbers(&signature.params), numbers(&signature.results));
            }
            for of in interface.types.values() {
                if resolve.types.get(*of).is_some_and(|of| matches!(of.kind, TypeDefKind::Resource)) {
                    let (interface, resource, intrinsic) = (Some(&key), *of, ResourceIntrinsic::ImportedDrop);
                    let import = WasmImport::ResourceIntrinsic { interface, resource, intrinsic };
                    let named = resolve.wasm_import_name(MANGLING, import);
                    self.import((&named.0, &named.1), vec![ValType::I32], Vec::new());
                }
            }
        }
        for (key, id) in interfaces(world.exports.iter().collect()) {
            let Some(interface) = resolve.interfaces.get(id) else { continue };
            for func in interface.functions.values() {
                let signature = resolve.wasm_signature(MANGLING.export_variant(), func);
                let name =
                    |kind| resolve.wasm_export_name(MANGLING, WasmExport::Func { interface: Some(&key), func, kind });
                self.export(&name(WasmExportKind::Normal), numbers(&signature.params), numbers(&signature.results));
                if guest_export_needs_post_return(resolve, func) {
                    self.export(&name(WasmExportKind::PostReturn), numbers(&signature.results), Vec::new());
                }
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.export("cabi_realloc", vec![ValType::I32; 4], vec![ValType::I32]);
        self.export("_initialize", Vec::new(), Vec::new());
        let mut memories = MemorySection::new();
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        self.exports.export("memory", ExportKind::Memory, 0);
        let mut module = Module::new();
        module.section(&self.types).section(&self.imports).section(&self.functions).section(&memories);
        module.section(&self.exports).section(&self.code);
        module.finish()
    }
}

fn numbers(of: &[WasmType]) -> Vec<ValType> {
    let value = |of: &WasmType| match of {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
        WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
        WasmType::F32 => ValType::F32,
        WasmType::F64 => ValType::F64,
    };
    of.iter().map(value).collect()
}

/// A type of a function of the adapter, which passes numbers alone.
fn number(of: wasmparser_for_guests::ValType) -> ValType {
    match of {
        wasmparser_for_guests::ValType::I64 => ValType::I64,
        wasmparser_for_guests::ValType::F32 => ValType::F32,
        wasmparser_for_guests::ValType::F64 => ValType::F64,
        wasmparser_for_guests::ValType::I32
        | wasmparser_for_guests::ValType::V128
        | wasmparser_for_guests::ValType::Ref(_) => ValType::I32,
    }
}
