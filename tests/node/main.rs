//! The operator as the chart installs it, on a node that runs its pods: `tests/node/up.sh` starts it, of what `tests/node/build.sh` has
//! built. Everything else of a cluster is tested by `cluster` and `kube`, which need no pods.

#[cfg(test)]
mod objects;
#[cfg(test)]
mod tests;
