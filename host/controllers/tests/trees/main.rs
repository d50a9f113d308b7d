//! Trees of Installations, Executions and deploy items on an API server over HTTP: the real controllers gather, decide and apply.
//! Templates are rendered in memory, deploy items belong to an external deployer, which the tests play.

#[cfg(test)]
mod deletion;
#[cfg(test)]
mod execution;
#[cfg(test)]
mod gate_expressions;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod installation;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod on_change;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod world;
