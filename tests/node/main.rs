//! The operator as the chart installs it, on a node that runs its pods: `tests/node/up.sh` starts it, of what `tests/node/build.sh` has
//! built. Everything else of a cluster is tested by `cluster` and `kube`, which need no pods.
//!
//! `ORANGERY_RELEASE`, the folder of a release, has its image and its chart tested in place of the binary under test.

#[cfg(test)]
mod container_ends;
#[cfg(test)]
mod containers;
#[cfg(test)]
mod installed;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod tests;
