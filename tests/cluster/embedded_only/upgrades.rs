//! Jobs that an operator of an earlier build began (ORC-06). Each folder of `tests/upgrades` is of one version; before a release
//! its own is recorded:
//!
//! ```text
//! RECORD=0.2.0 cargo test --workspace --test cluster -- upgrades
//! ```
//!
//! Two builds beside each other are played by `-- freezes` with `OLDER`, the path of an older binary: its operator freezes, and
//! the one under test goes on. With `RECORD` that binary is recorded.

use std::{env, fs, path::PathBuf};

use orangery_tests::{
    crash_points::{Deed, Scenario},
    repository,
    tree::{blueprint, deploys, executions, imports_cluster, installation, mocks, on_cluster, subinstallation},
    upgrades,
};
use serde_json::{Value, json};

/// An Installation `tree` of items, with a sub-installation of one item. Nothing of it has a deadline: it lies still for years.
fn tree(mut items: Vec<Value>, content: &str) -> Value {
    let mut leaf = deploys("leaf", &[], content);
    for item in items.iter_mut().chain([&mut leaf]) {
        item["timeout"] = json!("none");
    }
    let leaf = json!({"imports": imports_cluster(), "deployExecutions": executions(&[leaf])});
    let sub = on_cluster(subinstallation("sub", &blueprint(leaf)));
    let fields = json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(&items),
        "subinstallations": [sub],
    });
    on_cluster(installation("tree", &blueprint(fields)))
}

fn whole(content: &str) -> Value {
    let items = [deploys("base", &[], content), mocks("middle", &["base"], "Succeeded", content)];
    tree([&items[..], &[deploys("top", &["middle"], content)]].concat(), content)
}

/// What is recorded, and the name of it.
fn scenarios() -> [(&'static str, Scenario); 3] {
    let less = tree(vec![mocks("middle", &[], "Succeeded", "2"), deploys("new", &["middle"], "2")], "2");
    [
        ("first-job", Scenario { before: None, deed: Deed::Apply(whole("1")) }),
        ("update", Scenario { before: Some(whole("1")), deed: Deed::Apply(less) }),
        ("deletion", Scenario { before: Some(whole("1")), deed: Deed::Delete }),
    ]
}

/// The quarters of its writes after which each scenario is left.
const SHARES: [usize; 3] = [1, 2, 3];

fn file(version: &str, name: &str, share: usize) -> PathBuf {
    repository().join("tests/upgrades").join(version).join(format!("{name}-{share}.tar.gz"))
}

#[tokio::test]
async fn orc_06_jobs_of_earlier_builds_come_to_their_end() {
    if let Ok(version) = env::var("RECORD") {
        for (name, scenario) in scenarios() {
            for share in SHARES {
                upgrades::record(&scenario, share, &file(&version, name, share), crate::binary).await;
            }
        }
    }
    let versions = fs::read_dir(repository().join("tests/upgrades")).expect("there are recordings");
    let mut played = 0;
    for version in versions.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_dir()) {
        let version = version.file_name().to_string_lossy().into_owned();
        for (name, scenario) in scenarios() {
            let files = SHARES.map(|share| file(&version, name, share));
            upgrades::go_on(&scenario, &files, crate::binary).await;
            played += files.len();
        }
    }
    assert!(played > 0, "nothing was recorded");
    println!("{played} recordings");
}
