//! The settings of the one engine (`docs/sandbox.md`).

use std::{env, num::NonZeroUsize};

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, ResourcesRequired};

use crate::{
    budget::{MAX_MEMORY_MIB, MAX_TABLE_ELEMENTS},
    cost::CodeCounts,
    error::Error,
};

/// Enough for Helm's 1,000 nested templates (`plugins/go/README.md`, pitfall 6).
const WASM_STACK: usize = 2 << 20;
/// The stack of a call: the guest's, and what host functions need above it.
const FIBER_STACK: usize = 3 << 20;
const MOST_FRAMES: NonZeroUsize = NonZeroUsize::new(20).expect("20 is not zero");

/// What a slot keeps between calls, overwritten instead of given back: a page fault costs more than its bytes. With these
/// three, a warm call of a small component takes 32 µs instead of 58 (2 busy processors, Linux 6.18).
const KEPT_STACK: usize = 32 << 10;
const KEPT_TABLE: usize = 64 << 10;
/// Only where the kernel tells which pages were written (6.7 and later); else all of it would be overwritten each time.
const KEPT_MEMORY: usize = 512 << 10;

/// What one component may have of each.
const MOST_CORE_INSTANCES: u32 = 60;
const MOST_MEMORIES: u32 = 8;
const MOST_TABLES: u32 = 40;

/// Where instances come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// Slots reserved at the start: an instance costs microseconds.
    Pooling,
    /// Memory is mapped for each instance: this machine refused the reservation.
    OnDemand {
        /// The machine's own words.
        reason: String,
    },
}

/// What code is compiled for. The compiler's process and the host use the same, so that one loads what the other made.
pub(crate) fn settings(counts: CodeCounts) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(counts == CodeCounts::Fuel)
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        // Off, 48.0.8 panics while it compiles nested components (`docs/sandbox.md`).
        .wasm_multi_memory(true)
        .wasm_extended_const(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(FIBER_STACK)
        .async_stack_zeroing(true)
        .wasm_backtrace_max_frames(Some(MOST_FRAMES));
    compile_portably(&mut config);
    config
}

/// What x86-64 processors have had since 2009 (x86-64-v2) and code of components uses.
const USUAL_FEATURES: &[&str] = &["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"];

/// Has code made for every processor of the architecture, so that an image brings it for all nodes (C-186). On one that
/// lacks what the others have, code is made for that one.
fn compile_portably(config: &mut Config) {
    let features = if cfg!(target_arch = "x86_64") { USUAL_FEATURES } else { &[] };
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    if !cfg!(target_os = "linux") || !has_usual_features() || config.target(&target).is_err() {
        return;
    }
    for feature in features {
        #[expect(unsafe_code, reason = "the compiler is told which features of the processor it may use")]
        // SAFETY: this processor has them; and code for others is not loaded, as the engine holds the features of code against
        // those of the processor.
        unsafe {
            config.cranelift_flag_enable(feature);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_usual_features() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("sse3") && has!("ssse3") && has!("sse4.1") && has!("sse4.2") && has!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_usual_features() -> bool {
    true
}

/// An engine with a pool for this many calls, or without one where the machine refuses the reservation.
pub(crate) fn start(calls: u32, counts: CodeCounts) -> Result<(Engine, Allocator), Error> {
    start_with(pool(calls), counts)
}

/// An engine of a process that makes one call at a time, for a component that needs so much: what is reserved counts as the
/// memory of the process.
pub(crate) fn one_call_engine(needed: Option<ResourcesRequired>, counts: CodeCounts) -> Result<Engine, Error> {
    let mut pool = pool(1);
    let (memories, tables) =
        needed.map_or((MOST_MEMORIES, MOST_TABLES), |needed| (needed.num_memories, needed.num_tables));
    pool.total_core_instances(MOST_CORE_INSTANCES)
        .total_memories(memories.clamp(1, MOST_MEMORIES))
        .total_tables(tables.clamp(1, MOST_TABLES));
    Ok(start_with(pool, counts)?.0)
}

fn start_with(pool: PoolingAllocationConfig, counts: CodeCounts) -> Result<(Engine, Allocator), Error> {
    let mut pooled = settings(counts);
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    match Engine::new(&pooled) {
        Ok(engine) => Ok((engine, Allocator::Pooling)),
        Err(refusal) => {
            let engine = Engine::new(&settings(counts)).map_err(|error| Error::Engine { why: format!("{error:#}") })?;
            Ok((engine, Allocator::OnDemand { reason: format!("{refusal:#}") }))
        }
    }
}

fn pool(calls: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(20))
        .total_memories(calls.saturating_mul(4))
        .total_tables(calls.saturating_mul(4))
        .total_stacks(calls)
        .max_memory_size((MAX_MEMORY_MIB << 20) as usize)
        .max_core_instances_per_component(MOST_CORE_INSTANCES)
        .max_memories_per_component(MOST_MEMORIES)
        .max_tables_per_component(MOST_TABLES)
        .table_elements(MAX_TABLE_ELEMENTS as usize)
        .max_component_instance_size(8 << 20)
        .max_core_instance_size(4 << 20)
        .async_stack_keep_resident(KEPT_STACK)
        .table_keep_resident(KEPT_TABLE);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Auto).linear_memory_keep_resident(KEPT_MEMORY);
    }
    pool
}

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, Module, Store, WasmBacktrace};

    use super::*;

    /// Calls itself as often as it is told, and then traps.
    const RECURSES: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x05\x01\x60\x01\x7f\0\
        \x03\x02\x01\0\
        \x07\x05\x01\x01f\0\0\
        \x0a\x12\x01\x10\0\x20\0\x04\x40\x20\0\x41\x01\x6b\x10\0\x05\0\x0b\x0b";

    /// Where the processor has more than the usual features, which is what the compiler uses by itself.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn c_186_code_is_compile_portably_of_the_architecture() {
        let flags = |config: &Config| {
            let engine = Engine::new(config).unwrap();
            let mut hasher = std::hash::DefaultHasher::new();
            std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut hasher);
            std::hash::Hasher::finish(&hasher)
        };
        let (mut usual, mut of_this_one) = (Config::new(), Config::new());
        compile_portably(&mut usual);
        of_this_one.target("x86_64-unknown-linux-gnu").unwrap();
        // SAFETY: nothing is compiled.
        #[expect(unsafe_code, reason = "as above")]
        let more = unsafe { of_this_one.cranelift_flag_enable("has_avx") };
        let (has_avx, differs) = (std::arch::is_x86_feature_detected!("avx"), flags(&usual) != flags(more));
        assert!(differs, "code would be for processors with AVX");
        if has_avx {
            assert_ne!(flags(&usual), flags(&Config::new()), "code would be for processors like this one");
            assert_ne!(flags(&settings(CodeCounts::Nothing)), flags(&Config::new()));
        }
    }

    #[test]
    fn limits_components_frames_of_a_trap() {
        let engine = Engine::new(&settings(CodeCounts::Nothing)).unwrap();
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(1);
        let instance = Instance::new(&mut store, &Module::new(&engine, RECURSES).unwrap(), &[]).unwrap();
        let recurse = instance.get_typed_func::<i32, ()>(&mut store, "f").unwrap();
        let mut frames = |depth| {
            let error = recurse.call(&mut store, depth).unwrap_err();
            error.downcast_ref::<WasmBacktrace>().unwrap().frames().len()
        };
        assert_eq!([frames(5), frames(19), frames(30)], [6, 20, 20]);
    }
}
