//! The recorded cases under the profile that the chart begins with, beside which a policy has the network of the tests: each is
//! as it was recorded, or refused by a line that `tests/golden/restricted.yaml` names.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, future::select_ok, stream};
use orangery_tests::{case, cluster::Cluster, tree::any};
use serde_json::{Value, json};

use crate::cases::policies::{policy, put};

/// How many cases run at once, each on a server of its own.
const AT_ONCE: usize = 4;
/// How the table says that a case is as it was recorded.
const PASSES: &str = "passes";
const KINDS: [&str; 3] = ["Installation", "Execution", "DeployItem"];

/// The line of a policy that an object says it was refused by.
fn line_of(object: &Value) -> Option<String> {
    let error = object.pointer("/status/lastError")?;
    let is_refused = error["codes"].as_array()?.iter().any(|code| code == "ERR_POLICY_VIOLATION");
    let message = error["message"].as_str().filter(|_| is_refused)?;
    let line = message.split(" is refused by NamespacePolicy all, line ").nth(1)?;
    Some(line.split([' ', ';']).next().unwrap_or_default().to_owned())
}

/// What becomes of a case: a refusal is told as soon as an object says so.
async fn outcome(folder: PathBuf) -> String {
    let guards = format!("--guards={}", !folder.ends_with("delete-target-missing"));
    let cluster = Arc::new(crate::cluster_with(&[&guards]).await);
    let mut all = policy("all", json!({}));
    all["spec"]["namespaces"] = json!({"names": ["*"]});
    put(&cluster, &all).await;
    let refused = KINDS.map(|of_kind| {
        let cluster = Arc::clone(&cluster);
        let told = async move {
            let mut anyone = any(of_kind, "");
            anyone["metadata"] = json!({});
            cluster.expect_that(&anyone, "nobody was refused", |object| line_of(object).is_some()).await
        };
        tokio::spawn(told)
    });
    let aborts: Vec<_> = refused.iter().map(tokio::task::JoinHandle::abort_handle).collect();
    let known = Arc::clone(&cluster);
    let mut ran = tokio::spawn(async move { case::run(&folder, &known).await });
    let line = tokio::select! {
        Ok((object, _)) = select_ok(refused) => line_of(&object),
        ran = &mut ran => {
            let line = refusal(&cluster).await;
            match ran {
                Err(panicked) if line.is_none() => std::panic::resume_unwind(panicked.into_panic()),
                Ok(()) | Err(_) => line,
            }
        }
    };
    ran.abort();
    aborts.iter().for_each(tokio::task::AbortHandle::abort);
    line.unwrap_or_else(|| PASSES.to_owned())
}

async fn refusal(cluster: &Cluster) -> Option<String> {
    for of_kind in KINDS {
        if let Some(line) = cluster.list(&any(of_kind, "")).await.iter().find_map(line_of) {
            return Some(line);
        }
    }
    None
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_79_each_recorded_case_passes_under_the_restricted_profile_or_is_refused_by_a_named_line() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let table = golden.join("restricted.yaml");
    let folders =
        fs::read_dir(&golden).expect("the recordings can be read").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let outcomes = stream::iter(folders).map(|folder| async { (name(&folder), outcome(folder).await) });
    let found: BTreeMap<String, String> = outcomes.buffered(AT_ONCE).collect().await;
    if std::env::var_os("UPDATE").is_some() {
        let rows: String = found.iter().map(|(case, outcome)| format!("{case}: {outcome}\n")).collect();
        fs::write(&table, rows).expect("the table can be written");
    }
    let expected = fs::read_to_string(&table).expect("the table can be read");
    let expected: BTreeMap<String, String> = expected
        .lines()
        .filter_map(|row| row.split_once(": "))
        .map(|(case, outcome)| (case.to_owned(), outcome.to_owned()))
        .collect();
    assert_eq!(found, expected);
}
