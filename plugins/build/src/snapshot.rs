//! Pre-initialises a core module: runs it once, here, and keeps what its memory and globals then hold.
//!
//! What `wasmtime-wizer` does, for modules of one memory that they never share, by an interpreter: a build script that
//! linked wasmtime would have it compiled a second time. The world that the module sees while it runs is a constant
//! ([`world`]), so that the same module gives the same snapshot on every machine.

mod encoding;
mod world;

use wasmi::{Config, Engine, Linker, Module, Store, Val};

use crate::Error;

/// The functions that are run, in this order, and are not part of the result.
const RUN: [&str; 2] = ["_initialize", "prewarm"];

/// The memory and the mutable globals of an instance.
struct State {
    memory: Vec<u8>,
    /// By index, as WebAssembly's own bits.
    globals: Vec<(u32, Value)>,
}

/// A number of WebAssembly; floats by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
}

/// Runs `_initialize` and `prewarm` of a module and answers the module as they leave it.
///
/// # Errors
///
/// [`Error::Snapshot`] where the module cannot be kept so, or fails.
pub(crate) fn snapshot(module: &[u8]) -> Result<Vec<u8>, Error> {
    let plan = encoding::plan(module).map_err(refused)?;
    let state = run(&encoding::opened(module, &plan).map_err(refused)?, &plan)?;
    encoding::closed(module, &plan, &state).map_err(refused)
}

fn refused(why: impl Into<String>) -> Error {
    Error::Snapshot { why: why.into() }
}

fn run(opened: &[u8], plan: &encoding::Plan) -> Result<State, Error> {
    let mut config = Config::default();
    // Go calls deeply while it starts; these are 64 MiB.
    config.set_max_recursion_depth(1 << 16).set_max_stack_height(64 << 20);
    let engine = Engine::new(&config);
    let failed = |error: wasmi::Error| refused(error.to_string());
    let module = Module::new(&engine, opened).map_err(failed)?;
    let mut store = Store::new(&engine, world::World::default());
    let mut linker = Linker::new(&engine);
    world::link(&mut linker, &module).map_err(failed)?;
    let instance = linker.instantiate_and_start(&mut store, &module).map_err(failed)?;
    for name in RUN {
        let function = instance.get_typed_func::<(), ()>(&store, name).map_err(failed)?;
        if let Err(error) = function.call(&mut store, ()) {
            let wrote = store.data().wrote();
            return Err(refused(format!("`{name}` failed: {error}{wrote}")));
        }
    }
    let missing = || refused("the interpreter lost an export");
    let memory = instance.get_memory(&store, &plan.memory).ok_or_else(missing)?;
    let mut globals = Vec::new();
    for index in &plan.globals {
        let global = instance.get_global(&store, &encoding::global(*index)).ok_or_else(missing)?;
        let value = match global.get(&store) {
            Val::I32(value) => Value::I32(value),
            Val::I64(value) => Value::I64(value),
            Val::F32(value) => Value::F32(value.to_bits()),
            Val::F64(value) => Value::F64(value.to_bits()),
            Val::V128(_) | Val::FuncRef(_) | Val::ExternRef(_) => {
                return Err(refused(format!("global {index} is no number")));
            }
        };
        globals.push((*index, value));
    }
    Ok(State { memory: memory.data(&store).to_vec(), globals })
}

#[cfg(test)]
mod tests;
