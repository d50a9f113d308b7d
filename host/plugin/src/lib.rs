//! The sandbox: loads, limits and calls WebAssembly components.
