//! The repository's own rules, each as a test that prints every violation at once.
//!
//! What a rule means and why it exists stands in `docs/style.md`; this suite only keeps it true.

#[cfg(test)]
mod budgets;
#[cfg(test)]
mod chart;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod citations;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod graph;
#[cfg(test)]
mod left_out;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod names;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod source;
#[cfg(test)]
mod strings;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod texts;
#[cfg(test)]
mod vocabulary;
#[cfg(test)]
mod walls;
#[cfg(test)]
mod wit;
#[cfg(test)]
mod words;
