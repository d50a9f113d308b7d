//! Scripts of commands drive the pure core, and its report is data: what is printed is compared with the `.out` beside each
//! `.txt`. Adding a case is writing a text file; `UPDATE=1` writes the answers anew, to be read before they are committed.
//!
//! | folder | plays | commands |
//! |---|---|---|
//! | `execution/` | one Execution and its deploy items | `execution.rs` |
//! | `gate_expressions/` | the same with `activateWhen`, `when`, `readyWhen` and `deletedWhen` | `gate_expressions.rs` |
//! | `installation/` | a tree of Installations | `installation.rs` |
//!
//! A script begins with a comment: the rules that it shows, and what happens. Lines that begin with `#` are copied.

#[cfg(test)]
mod execution;
#[cfg(test)]
mod gate_expressions;
#[cfg(test)]
mod installation;
#[cfg(test)]
mod player;
