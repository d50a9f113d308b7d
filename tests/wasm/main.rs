//! Real components through `host/plugin`: built-in ones by their golden cases, hostile ones of `guests/` by their end.
//!
//! Each test names its guest; `tidy` fails where a guest has no test. The cases run twice: with calls in this process, and with
//! calls in processes of their own.

#[cfg(test)]
mod compiler_process;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod hostile_workers;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod tutorial;
#[cfg(test)]
mod workers;

#[cfg(test)]
#[path = "."]
#[expect(clippy::duplicate_mod, reason = "the same cases, with calls made in two ways")]
mod inside {
    /// Where calls of all components run.
    const ISOLATION: orangery_plugin::CallIsolation = orangery_plugin::CallIsolation::Nothing;

    mod bundled;
    mod charts;
    mod conformance;
    mod crashes;
    mod deployed_tests;
    mod engines;
    pub(crate) mod fixtures;
    mod gates;
    mod golden;
    mod grants;
    mod languages;
    mod limits;
    mod malformed_components;
    mod neighbours;
    mod reloads;
    mod template_context;
}

#[cfg(test)]
#[path = "."]
#[expect(clippy::duplicate_mod, reason = "the same cases, with calls made in two ways")]
mod in_workers {
    /// Where calls of all components run.
    const ISOLATION: orangery_plugin::CallIsolation = orangery_plugin::CallIsolation::All;

    mod bundled;
    mod charts;
    mod conformance;
    mod crashes;
    mod deployed_tests;
    mod engines;
    pub(crate) mod fixtures;
    mod gates;
    mod golden;
    mod grants;
    mod languages;
    mod limits;
    mod malformed_components;
    mod neighbours;
    mod reloads;
    mod template_context;
}
