//! Real components through `host/plugin`: built-in ones by their golden cases, hostile ones of `guests/` by their end.
//!
//! Each test names its guest; `tidy` fails where a guest has no test.

#[cfg(test)]
#[path = "wasm/charts.rs"]
mod charts;
#[cfg(test)]
#[path = "wasm/conditions.rs"]
mod conditions;
#[cfg(test)]
#[path = "wasm/crashes.rs"]
mod crashes;
#[cfg(test)]
#[path = "wasm/engines.rs"]
mod engines;
#[cfg(test)]
#[path = "wasm/golden.rs"]
mod golden;
#[cfg(test)]
#[path = "wasm/grants.rs"]
mod grants;
#[cfg(test)]
#[path = "wasm/languages.rs"]
mod languages;
#[cfg(test)]
#[path = "wasm/lies.rs"]
mod lies;
#[cfg(test)]
#[path = "wasm/limits.rs"]
mod limits;
#[cfg(test)]
#[path = "wasm/neighbours.rs"]
mod neighbours;
#[cfg(test)]
#[path = "wasm/own.rs"]
mod own;
#[cfg(test)]
#[path = "wasm/stage.rs"]
mod stage;
#[cfg(test)]
#[path = "wasm/surroundings.rs"]
mod surroundings;
