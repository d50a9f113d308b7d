//! The snapshot of a small module, and of those that cannot have one.

use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ExportKind, ExportSection, Function, FunctionSection, GlobalSection,
    GlobalType, ImportSection, InstructionSink, MemArg, MemorySection, MemoryType, Module as Encoded, TypeSection,
    ValType,
};
use wasmi::{Engine, Linker, Module, Store};

use super::{encoding::segments, snapshot};

const AT: MemArg = MemArg { offset: 0, align: 0, memory_index: 0 };

fn body(write: impl FnOnce(&mut InstructionSink<'_>)) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    write(&mut code);
    code.end();
    function
}

/// A module of one page of memory with `abc` at 8 and a global of 1. `_initialize` adds 41 to the global; the rest is given.
fn module(prewarm: &Function) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([], []);
    types.ty().function([], [ValType::I64]);
    let mut imports = ImportSection::new();
    imports.import("elsewhere", "call", wasm_encoder::EntityType::Function(0));
    let mut functions = FunctionSection::new();
    functions.function(0).function(0).function(1);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut globals = GlobalSection::new();
    let global = |mutable| GlobalType { val_type: ValType::I64, mutable, shared: false };
    globals.global(global(false), &ConstExpr::i64_const(7)).global(global(true), &ConstExpr::i64_const(1));
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    for (name, index) in [("_initialize", 1), ("prewarm", 2), ("sum", 3)] {
        exports.export(name, ExportKind::Func, index);
    }
    let mut code = CodeSection::new();
    code.function(&body(|code| {
        code.global_get(1).i64_const(41).i64_add().global_set(1);
    }));
    code.function(prewarm);
    code.function(&body(|code| {
        code.global_get(0).global_get(1).i64_add();
    }));
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(8), *b"abc");
    let mut module = Encoded::new();
    module.section(&types).section(&imports).section(&functions).section(&memories).section(&globals);
    module.section(&exports).section(&code).section(&data);
    module.finish()
}

#[test]
fn a_snapshot_begins_where_the_run_has_ended() {
    // Overwrites the `b`, grows by a page, and writes into it.
    let prewarm = body(|code| {
        code.i32_const(9).i32_const(i32::from(b'B')).i32_store8(AT).i32_const(1).memory_grow(0).drop();
        code.i32_const(70_000).i32_const(i32::from(b'!')).i32_store8(AT);
    });
    let module = module(&prewarm);
    let result = snapshot(&module).expect("a snapshot");
    assert_eq!(snapshot(&module).expect("a snapshot"), result);

    let engine = Engine::default();
    let woken = Module::new(&engine, &result).expect("the result is a module");
    let names: Vec<&str> = woken.exports().map(|export| export.name()).collect();
    assert_eq!(names, ["memory", "sum"]);
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    linker.func_wrap("elsewhere", "call", || {}).expect("it is linked");
    let instance = linker.instantiate_and_start(&mut store, &woken).expect("it starts");
    let sum = instance.get_typed_func::<(), i64>(&store, "sum").expect("the export");
    assert_eq!(sum.call(&mut store, ()).expect("it runs"), 7 + 42);
    let memory = instance.get_memory(&store, "memory").expect("the memory").data(&store);
    assert_eq!(memory.len(), 2 << 16);
    assert_eq!(segments(memory, 100), [(8, &b"aBc"[..]), (70_000, &b"!"[..])]);
}

#[test]
fn what_a_snapshot_would_not_be_all_of_is_refused() {
    let refusal = |module: &[u8]| snapshot(module).expect_err("no snapshot").to_string();
    assert_eq!(
        refusal(&module(&body(|code| {
            code.call(0);
        }))),
        "a module cannot be pre-initialised: `prewarm` failed: it calls elsewhere call, which is not there yet"
    );
    assert_eq!(
        refusal(&module(&body(|code| {
            code.i32_const(0).i32_const(0).i32_const(0).memory_init(0, 0);
        }))),
        "a module cannot be pre-initialised: it uses memory.init"
    );
    assert_eq!(refusal(b"\0asm\x01\0\0\0"), "a module cannot be pre-initialised: it does not export its memory");
}

#[test]
fn segments_are_kept_apart_by_long_gaps_alone() {
    let mut memory = vec![0; 1000];
    for at in [10, 12, 100, 900, 999] {
        memory[at] = 1;
    }
    let places = |most| -> Vec<(usize, usize)> {
        segments(&memory, most).into_iter().map(|(at, bytes)| (at, bytes.len())).collect()
    };
    assert_eq!(places(10), [(10, 3), (100, 1), (900, 1), (999, 1)]);
    assert_eq!(places(3), [(10, 91), (900, 100)]);
    assert_eq!(places(1), [(10, 990)]);
    assert_eq!(segments(&[0; 100], 1), []);
}
