//! The same [`cases`] on a real kube-apiserver with etcd, the operator with no more rights than the chart gives it.
//! `tests/kube/build.sh` builds the servers; without them all of it is ignored.

#[cfg(test)]
#[cfg(not(without_kube))]
mod cases;
#[cfg(test)]
#[cfg(not(without_kube))]
mod fixtures;
#[cfg(test)]
mod ignored;
#[cfg(test)]
#[cfg(not(without_kube))]
mod kube_only;

#[cfg(test)]
#[cfg(not(without_kube))]
use fixtures::{binary, cluster, cluster_of, cluster_with, cluster_with_workloads};

/// What serves the cases.
#[cfg(test)]
#[cfg(not(without_kube))]
fn ground() -> orangery_tests::world::Ground {
    orangery_tests::world::Ground::Kube(orangery_tests::kube::Programs::find())
}

// All of them, ignored.
#[cfg(test)]
#[cfg(without_kube)]
include!(concat!(env!("OUT_DIR"), "/ignored.rs"));

/// What is told of this suite where it is left out is what it has.
#[cfg(test)]
#[cfg(not(without_kube))]
#[test]
fn the_sources_name_every_test() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster");
    let modules = ["cases", "kube_only"].map(|module| ignored::names(&here.join(module).with_extension("rs"), module));
    let mut named: Vec<String> =
        modules.into_iter().flat_map(|names| names.expect("the sources can be read")).collect();
    named.sort();
    let program = std::env::current_exe().expect("this program has a path");
    let listed = std::process::Command::new(program).args(["--list", "--format=terse"]).output().expect("it starts");
    let listed = String::from_utf8(listed.stdout).expect("names are text");
    let listed = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut listed: Vec<&str> =
        listed.filter(|name| ["cases::", "kube_only::"].iter().any(|of| name.starts_with(of))).collect();
    listed.sort_unstable();
    assert_eq!(named, listed);
}
