//! Real components through `host/plugin`: built-in ones by their golden cases, hostile ones of `guests/` by their end.
//!
//! Each test names its guest; `tidy` fails where a guest has no test.

#[cfg(test)]
mod bundled;
#[cfg(test)]
mod charts;
#[cfg(test)]
mod compiler_process;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod deployed_tests;
#[cfg(test)]
mod engines;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod languages;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod malformed_components;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod template_context;
