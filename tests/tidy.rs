//! The repository's own rules, each as a test that prints every violation at once.
//!
//! What a rule means and why it exists stands in `host/README.md`; this suite only keeps it true.

#[cfg(test)]
#[path = "tidy/budgets.rs"]
mod budgets;
#[cfg(test)]
#[path = "tidy/generated.rs"]
mod generated;
#[cfg(test)]
#[path = "tidy/modules.rs"]
mod modules;
#[cfg(test)]
#[path = "tidy/repository.rs"]
mod repository;
#[cfg(test)]
#[path = "tidy/rules.rs"]
mod rules;
#[cfg(test)]
#[path = "tidy/source.rs"]
mod source;
#[cfg(test)]
#[path = "tidy/texts.rs"]
mod texts;
#[cfg(test)]
#[path = "tidy/walls.rs"]
mod walls;
#[cfg(test)]
#[path = "tidy/words.rs"]
mod words;
