//! The suite of each kind over an API server and HTTP: the real controllers gather, decide and apply.

#[cfg(test)]
mod completing;
#[cfg(test)]
mod computations;
#[cfg(test)]
mod context;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod deploy_item;
#[cfg(test)]
mod execution;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod installation;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod target_sync;
#[cfg(test)]
mod world;
