//! The recorded cases and those without code under the profile that the chart begins with, beside which a policy has the network of the tests: each is
//! as it was recorded, or refused by a line that a table `restricted.yaml` beside them names.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, future::select_ok, stream};
use orangery_tests::{
    case,
    cluster::Cluster,
    objects::NAMESPACE,
    recording::{cases, exceptions, folder, play::play, recordings, steps::Recording},
    tree::any,
};
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

/// The objects of this kind in a namespace.
fn of_kind(kind: &str, namespace: &str) -> Value {
    let mut of_kind = any(kind, "");
    of_kind["metadata"] = json!({"namespace": namespace});
    of_kind
}

/// What becomes of a recording.
async fn outcome(case: String) -> String {
    let arguments = exceptions::arguments(&case);
    let played = folder(&case);
    let namespace = Recording::read(&played).namespace;
    outcome_of(&arguments, &namespace, move |cluster| async move { play(&played, &cluster).await }).await
}

/// What becomes of a case without code.
async fn outcome_of_steps(case: String) -> String {
    let steps = steps_of().join(case);
    outcome_of(&[], NAMESPACE, move |cluster| async move { case::run(&steps, &cluster).await }).await
}

/// What becomes of a case in a namespace: a refusal is told as soon as an object says so.
async fn outcome_of<F>(
    arguments: &[String],
    namespace: &str,
    play: impl FnOnce(Arc<Cluster>) -> F + Send + 'static,
) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cluster = Arc::new(crate::cluster_with(&arguments).await);
    let mut all = policy("all", json!({}));
    all["spec"]["namespaces"] = json!({"names": ["*"]});
    put(&cluster, &all).await;
    let refused = KINDS.map(|kind| {
        let (cluster, of_kind) = (Arc::clone(&cluster), of_kind(kind, namespace));
        tokio::spawn(async move {
            cluster.expect_that(&of_kind, "nobody was refused", |object| line_of(object).is_some()).await
        })
    });
    let aborts: Vec<_> = refused.iter().map(tokio::task::JoinHandle::abort_handle).collect();
    let mut ran = tokio::spawn(play(Arc::clone(&cluster)));
    let line = tokio::select! {
        Ok((object, _)) = select_ok(refused) => line_of(&object),
        ran = &mut ran => {
            let line = refusal(&cluster, namespace).await;
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

async fn refusal(cluster: &Cluster, namespace: &str) -> Option<String> {
    for kind in KINDS {
        if let Some(line) = cluster.list(&of_kind(kind, namespace)).await.iter().find_map(line_of) {
            return Some(line);
        }
    }
    None
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_79_each_recorded_case_passes_under_the_restricted_profile_or_is_refused_by_a_named_line() {
    check(
        &recordings().join("restricted.yaml"),
        cases().into_iter().map(|case| async { (case.clone(), outcome(case).await) }),
    )
    .await;
}

/// The folders of the cases without code.
fn steps_of() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/cases/declarative")
}

#[tokio::test]
async fn c_79_each_case_without_code_passes_under_the_restricted_profile_or_is_refused_by_a_named_line() {
    let entries =
        fs::read_dir(steps_of()).expect("the folder can be read").map(|entry| entry.expect("an entry").path());
    let folders = entries.filter(|path| path.is_dir()).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let outcomes = folders.map(|case| async { (case.clone(), outcome_of_steps(case).await) });
    check(&steps_of().join("restricted.yaml"), outcomes).await;
}

/// Holds what becomes of cases against a table.
async fn check(table: &Path, cases: impl Iterator<Item = impl Future<Output = (String, String)>>) {
    let found: BTreeMap<String, String> = stream::iter(cases).buffered(AT_ONCE).collect().await;
    if std::env::var_os("UPDATE").is_some() {
        let rows: String = found.iter().map(|(case, outcome)| format!("{case}: {outcome}\n")).collect();
        fs::write(table, rows).expect("the table can be written");
    }
    let expected = fs::read_to_string(table).expect("the table can be read");
    let expected: BTreeMap<String, String> = expected
        .lines()
        .filter_map(|row| row.split_once(": "))
        .map(|(case, outcome)| (case.to_owned(), outcome.to_owned()))
        .collect();
    assert_eq!(found, expected);
}
