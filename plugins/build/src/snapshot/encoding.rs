//! The bytes of a module, taken apart and put together: opened for the run, closed with the state after it.

use wasm_encoder::{
    ConstExpr, DataSection, ExportKind, ExportSection, GlobalSection, GlobalType, MemorySection, MemoryType, Module,
    RawSection, ValType,
};
use wasmparser_for_guests::{DataKind, ExternalKind, ImportSectionReader, Operator, Parser, Payload, TypeRef};

use super::{RUN, State, Value};

/// The most data segments of a result. Validators allow 100,000, and the Go linker uses them all up.
const MOST_SEGMENTS: usize = 10_000;
/// The shortest gap of zeros that begins another segment, at first: a segment costs about as much.
const SHORTEST_GAP: usize = 64;
const PAGE: usize = 64 << 10;

/// What is needed to open and to close a module.
pub(super) struct Plan {
    /// The name that the memory is exported by.
    pub(super) memory: String,
    /// The mutable globals.
    pub(super) globals: Vec<u32>,
}

/// The name of a global while the module is open.
pub(super) fn global(index: u32) -> String {
    format!("snapshot global {index}")
}

type Refusal<T> = Result<T, String>;

fn broken(error: wasmparser_for_guests::BinaryReaderError) -> String {
    format!("the module is broken: {error}")
}

/// Reads a module, and refuses what a snapshot of memory and globals would not be all of.
pub(super) fn plan(module: &[u8]) -> Refusal<Plan> {
    let mut plan = Plan { memory: String::new(), globals: Vec::new() };
    let (mut runs, mut has_data) = (0, false);
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(broken)? {
            Payload::ImportSection(imports) => check_imports(imports)?,
            Payload::MemorySection(memories) if memories.count() != 1 => {
                return Err("it has not exactly one memory".to_owned());
            }
            Payload::StartSection { .. } => return Err("it has a start function".to_owned()),
            Payload::GlobalSection(globals) => {
                for (index, global) in (0..).zip(globals) {
                    if global.map_err(broken)?.ty.mutable {
                        plan.globals.push(index);
                    }
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export.map_err(broken)?;
                    match export.kind {
                        ExternalKind::Memory => plan.memory = export.name.to_owned(),
                        ExternalKind::Func if RUN.contains(&export.name) => runs += 1,
                        _ => {}
                    }
                }
            }
            Payload::DataSection(segments) => {
                has_data = true;
                for segment in segments {
                    if matches!(segment.map_err(broken)?.kind, DataKind::Passive) {
                        return Err("it has a passive data segment".to_owned());
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().map_err(broken)? {
                    if let Some(name) = beyond(&operator.map_err(broken)?) {
                        return Err(format!("it uses {name}"));
                    }
                }
            }
            _ => {}
        }
    }
    if plan.memory.is_empty() {
        return Err("it does not export its memory".to_owned());
    }
    if !has_data {
        return Err("it has no data section, which would take the memory up".to_owned());
    }
    if runs != RUN.len() {
        return Err(format!("it does not export {}", RUN.map(|name| format!("`{name}`")).join(" and ")));
    }
    Ok(plan)
}

/// Only functions may be imported.
fn check_imports(imports: ImportSectionReader<'_>) -> Refusal<()> {
    for import in imports.into_imports() {
        let import = import.map_err(broken)?;
        if !matches!(import.ty, TypeRef::Func(_)) {
            return Err(format!("it imports {:?}, which is no function", import.name));
        }
    }
    Ok(())
}

/// An instruction whose effect lies neither in the memory nor in a global.
fn beyond(operator: &Operator<'_>) -> Option<&'static str> {
    match operator {
        Operator::TableSet { .. } => Some("table.set"),
        Operator::TableGrow { .. } => Some("table.grow"),
        Operator::TableFill { .. } => Some("table.fill"),
        Operator::TableCopy { .. } => Some("table.copy"),
        Operator::TableInit { .. } => Some("table.init"),
        Operator::ElemDrop { .. } => Some("elem.drop"),
        Operator::DataDrop { .. } => Some("data.drop"),
        Operator::MemoryInit { .. } => Some("memory.init"),
        _ => None,
    }
}

/// The module with its mutable globals exported.
pub(super) fn opened(module: &[u8], plan: &Plan) -> Refusal<Vec<u8>> {
    rewritten(module, |payload| {
        Ok(match payload {
            Payload::ExportSection(exports) => {
                let mut section = ExportSection::new();
                for export in exports.clone() {
                    let export = export.map_err(broken)?;
                    section.export(export.name, kind(export.kind)?, export.index);
                }
                for index in &plan.globals {
                    section.export(&global(*index), ExportKind::Global, *index);
                }
                Some(Section::Exports(section))
            }
            _ => None,
        })
    })
}

/// The module as the run has left it.
pub(super) fn closed(module: &[u8], plan: &Plan, state: &State) -> Refusal<Vec<u8>> {
    rewritten(module, |payload| {
        Ok(match payload {
            Payload::MemorySection(memories) => {
                let mut section = MemorySection::new();
                for memory in memories.clone() {
                    let memory = memory.map_err(broken)?;
                    section.memory(MemoryType {
                        minimum: state.memory.len().div_ceil(PAGE) as u64,
                        maximum: memory.maximum,
                        memory64: memory.memory64,
                        shared: memory.shared,
                        page_size_log2: memory.page_size_log2,
                    });
                }
                Some(Section::Memories(section))
            }
            Payload::GlobalSection(globals) => {
                let mut section = GlobalSection::new();
                for (index, global) in (0..).zip(globals.clone()) {
                    let global = global.map_err(broken)?;
                    let kept = state.globals.iter().find(|(kept, _)| *kept == index);
                    match kept {
                        Some((_, value)) => keep(&mut section, *value),
                        None => constant(&mut section, &global)?,
                    }
                }
                Some(Section::Globals(section))
            }
            Payload::ExportSection(exports) => {
                let mut section = ExportSection::new();
                for export in exports.clone() {
                    let export = export.map_err(broken)?;
                    if !RUN.contains(&export.name) {
                        section.export(export.name, kind(export.kind)?, export.index);
                    }
                }
                Some(Section::Exports(section))
            }
            // Nothing names a segment by its number (see `beyond`), so nothing needs their count beforehand.
            Payload::DataCountSection { .. } => Some(Section::None),
            Payload::DataSection(_) => {
                let mut section = DataSection::new();
                for (offset, bytes) in segments(&state.memory, MOST_SEGMENTS) {
                    let offset = u32::try_from(offset).map_err(|_| "its memory is larger than 4 GiB".to_owned())?;
                    section.active(0, &ConstExpr::i32_const(offset.cast_signed()), bytes.iter().copied());
                }
                Some(Section::Data(section))
            }
            _ => None,
        })
    })
    .and_then(|closed| match plan.globals.len() == state.globals.len() {
        true => Ok(closed),
        false => Err("a global has no value".to_owned()),
    })
}

/// A section in place of another one.
enum Section {
    None,
    Memories(MemorySection),
    Globals(GlobalSection),
    Exports(ExportSection),
    Data(DataSection),
}

/// The module with some of its sections replaced. A data section that it lacks is not added.
fn rewritten(module: &[u8], mut replace: impl FnMut(&Payload<'_>) -> Refusal<Option<Section>>) -> Refusal<Vec<u8>> {
    let mut out = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(broken)?;
        match replace(&payload)? {
            Some(Section::None) => {}
            Some(Section::Memories(section)) => drop(out.section(&section)),
            Some(Section::Globals(section)) => drop(out.section(&section)),
            Some(Section::Exports(section)) => drop(out.section(&section)),
            Some(Section::Data(section)) => drop(out.section(&section)),
            None => {
                if let Some((id, range)) = payload.as_section() {
                    let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
                    let data = bounds.and_then(|(start, end)| module.get(start..end));
                    let data = data.ok_or("the module ends within a section")?;
                    out.section(&RawSection { id, data });
                }
            }
        }
    }
    Ok(out.finish())
}

fn kind(kind: ExternalKind) -> Refusal<ExportKind> {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => Ok(ExportKind::Func),
        ExternalKind::Table => Ok(ExportKind::Table),
        ExternalKind::Memory => Ok(ExportKind::Memory),
        ExternalKind::Global => Ok(ExportKind::Global),
        ExternalKind::Tag => Err("it exports an exception".to_owned()),
    }
}

fn keep(section: &mut GlobalSection, value: Value) {
    let (val_type, expression) = match value {
        Value::I32(value) => (ValType::I32, ConstExpr::i32_const(value)),
        Value::I64(value) => (ValType::I64, ConstExpr::i64_const(value)),
        Value::F32(bits) => (ValType::F32, ConstExpr::f32_const(f32::from_bits(bits).into())),
        Value::F64(bits) => (ValType::F64, ConstExpr::f64_const(f64::from_bits(bits).into())),
    };
    section.global(GlobalType { val_type, mutable: true, shared: false }, &expression);
}

/// A global that never changes, as it is written.
fn constant(section: &mut GlobalSection, global: &wasmparser_for_guests::Global<'_>) -> Refusal<()> {
    let val_type = match global.ty.content_type {
        wasmparser_for_guests::ValType::I32 => ValType::I32,
        wasmparser_for_guests::ValType::I64 => ValType::I64,
        wasmparser_for_guests::ValType::F32 => ValType::F32,
        wasmparser_for_guests::ValType::F64 => ValType::F64,
        wasmparser_for_guests::ValType::V128 | wasmparser_for_guests::ValType::Ref(_) => {
            return Err("a global is no number".to_owned());
        }
    };
    let mut reader = global.init_expr.get_binary_reader();
    let length = reader.bytes_remaining();
    let bytes = reader.read_bytes(length).map_err(broken)?;
    // The encoder writes the end of the expression itself.
    let expression = ConstExpr::raw(bytes.iter().copied().take(length.saturating_sub(1)));
    section.global(GlobalType { val_type, mutable: false, shared: global.ty.shared }, &expression);
    Ok(())
}

/// What of a memory is not zero, as at most so many segments: where there would be more, short gaps go into them.
pub(super) fn segments(memory: &[u8], most: usize) -> Vec<(usize, &[u8])> {
    let mut gap = SHORTEST_GAP;
    loop {
        let found = apart(memory, gap);
        if found.len() <= most {
            return found;
        }
        gap *= 2;
    }
}

/// The runs of bytes that gaps of at least so many zeros keep apart.
fn apart(memory: &[u8], gap: usize) -> Vec<(usize, &[u8])> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = memory.iter().skip(at).position(|byte| *byte != 0).map(|more| at + more) {
        let mut end = begin + 1;
        let mut next = end;
        while let Some(byte) = memory.get(next) {
            next += 1;
            if *byte != 0 {
                end = next;
            } else if next - end >= gap {
                break;
            }
        }
        if let Some(bytes) = memory.get(begin..end) {
            found.push((begin, bytes));
        }
        at = next;
    }
    found
}
