use std::{num::NonZeroUsize, sync::Arc};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client, CustomResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use orangery_api::job_history::{ABSENT, RecordedInputs, RecordedKey, RecordedWrite, UNREAD};
use orangery_proposal::ObjectKey;

use super::*;
use crate::{
    controller_context::tests::{host_on, server},
    job_histories::JobHistories,
    seed::HostKey,
};

fn host(client: &Client, most: usize) -> ControllerContext {
    let mut host = Arc::into_inner(host_on(client.clone())).unwrap();
    host.job_histories = JobHistories::keeping(NonZeroUsize::new(most));
    host
}

fn item(name: &str) -> DeployItem {
    let metadata = json!({"namespace": "default", "name": name, "uid": format!("uid-of-{name}")});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}})).unwrap()
}

fn write(verb: &str, name: &str, (before, after): (&str, &str)) -> RecordedWrite {
    let key = ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: name.into() };
    RecordedWrite {
        object: RecordedKey { cluster: "target".to_owned(), key },
        verb: verb.to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
        is_unanswered: false,
        is_after_job: false,
    }
}

fn reported(job: &str, phase: &str, writes: Vec<RecordedWrite>) -> JobReport {
    let inputs = RecordedInputs { item: "i".to_owned(), ..RecordedInputs::default() };
    JobReport {
        job: job.into(),
        phase: phase.to_owned(),
        is_released: false,
        is_after_job: false,
        is_first: job == "first",
        installation: "web".to_owned(),
        begun: "2026-01-01T00:00:00Z".to_owned(),
        content: RecordedJob { writes, inputs, ..RecordedJob::default() },
    }
}

async fn only(client: &Client) -> JobHistory {
    let api: Api<JobHistory> = Api::namespaced(client.clone(), "default");
    let mut all = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn rows(history: &JobHistory) -> Vec<(u64, String, String, String)> {
    let records = history.spec.records.iter();
    let told =
        |record: &JobRecord| (record.number, record.job_id.to_string(), record.phase.clone(), record.summary.clone());
    records.map(told).collect()
}

fn row(number: u64, job: &str, phase: &str, summary: &str) -> (u64, String, String, String) {
    (number, job.to_owned(), phase.to_owned(), summary.to_owned())
}

#[tokio::test]
async fn c_331_c_332_calls_of_a_job_are_one_sealed_record_and_the_last_jobs_are_kept() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let (host, item) = (host(&client, 2), item("item"));
    let created = write("create", "a", (ABSENT, "1"));
    report(&host, &item, reported("first", "Progressing", vec![created.clone()])).await.unwrap();
    assert_eq!(rows(&only(&client).await), [row(1, "first", "Progressing", "1 created")]);
    let replaced = write("replace", "a", ("1", "2"));
    report(&host, &item, reported("first", "Succeeded", vec![replaced.clone()])).await.unwrap();
    let history = only(&client).await;
    assert_eq!(rows(&history), [row(1, "first", "Succeeded", "1 created, 1 written")]);
    assert_eq!(history.spec.records[0].recorded().unwrap().writes, [created, replaced]);
    assert_eq!(history.metadata.owner_references, Some(vec![owner_reference(&item)]));
    // One of a job that nobody has ended is interrupted.
    report(&host, &item, reported("second", "Progressing", vec![write("apply", "a", (UNREAD, "3"))])).await.unwrap();
    report(&host, &item, reported("third", "Failed", vec![])).await.unwrap();
    let history = only(&client).await;
    let expected = [row(2, "second", "Interrupted", "1 written"), row(3, "third", "Failed", "nothing written")];
    assert_eq!(rows(&history), expected);
    let (key, spec) = (host.key.histories(), &history.spec);
    assert!(spec.records.iter().all(|record| key.knows(&"default".into(), spec, record)), "each is sealed");
    let other = HostKey::new(&[9; 32]);
    assert!(!spec.records.iter().any(|record| other.histories().knows(&"default".into(), spec, record)));
}

#[tokio::test]
async fn c_332_what_others_have_written_stays_as_it_is_and_is_never_sealed() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let (host, item) = (host(&client, 9), item("item"));
    report(&host, &item, reported("first", "Succeeded", vec![write("create", "a", (ABSENT, "1"))])).await.unwrap();
    let mut records = only(&client).await.spec.records;
    records[0].phase = "Progressing".to_owned();
    let api: Api<JobHistory> = Api::namespaced(client.clone(), "default");
    let name = only(&client).await.name_any();
    let patch = Patch::Merge(json!({"spec": {"records": records}}));
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    report(&host, &item, reported("first", "Succeeded", vec![])).await.unwrap();
    let history = only(&client).await;
    let (key, spec) = (host.key.histories(), &history.spec);
    let known: Vec<bool> = spec.records.iter().map(|record| key.knows(&"default".into(), spec, record)).collect();
    assert_eq!(known, [false, true]);
    let numbers: Vec<u64> = spec.records.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [1, 1], "what others say is no number of the operator's");
    let writes: Vec<usize> = spec.records.iter().map(|record| record.recorded().unwrap().writes.len()).collect();
    assert_eq!(writes, [1, 0], "nor does it count for what a job has written");
    assert_eq!(rows(&history)[0], row(1, "first", "Progressing", "1 created"), "as others have written it");
}

#[tokio::test]
async fn c_333_what_cannot_be_written_is_kept_and_goes_with_the_next_call() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let (host, item) = (host(&client, 9), item("item"));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = JobHistory::crd().name_any();
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    let created = write("create", "a", (ABSENT, "1"));
    let Err(Halt::Retry(failure)) = report(&host, &item, reported("first", "Succeeded", vec![created.clone()])).await
    else {
        panic!("it was written");
    };
    assert_eq!(failure.reason, "RecordNotWritten");
    assert!(failure.message.contains("--job-records"), "{failure}");
    assert!(!host.job_histories.begin("uid-of-item", &"other".into()));
    definitions.create(&PostParams::default(), &JobHistory::crd()).await.unwrap();
    report(&host, &item, reported("first", "Succeeded", vec![])).await.unwrap();
    assert_eq!(only(&client).await.spec.records[0].recorded().unwrap().writes, [created]);
}

#[tokio::test]
async fn c_334_what_is_done_after_a_job_leaves_how_it_ended() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let (host, item) = (host(&client, 9), item("item"));
    let mut failed = reported("first", "Failed", vec![]);
    failed.content.errors = vec!["ERR_TIMEOUT".to_owned()];
    report(&host, &item, failed).await.unwrap();
    let mut later = reported("first", "Failed", vec![write("replace", "a", ("1", "2"))]);
    (later.is_after_job, later.is_first) = (true, false);
    report(&host, &item, later).await.unwrap();
    let recorded = only(&client).await.spec.records[0].recorded().unwrap();
    assert_eq!((recorded.errors, recorded.writes.len()), (vec!["ERR_TIMEOUT".to_owned()], 1));
}

#[tokio::test]
async fn c_335_limits_job_histories_those_of_items_that_are_gone_stay_and_the_oldest_go() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let host = host(&client, 9);
    let api: Api<JobHistory> = Api::namespaced(client.clone(), "default");
    for number in 0..MOST_ENDED_HISTORIES + 3 {
        let mut ended = JobHistory::new(&format!("old-{number:03}"), JobRecords::default());
        ended.metadata.labels = Some([(ENDED.to_owned(), ended_at(jiff::Timestamp::UNIX_EPOCH))].into());
        api.create(&PostParams::default(), &ended).await.unwrap();
    }
    let released = JobReport { is_released: true, ..reported("first", "Deleted", vec![]) };
    report(&host, &item("item"), released).await.unwrap();
    let left = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(left.len(), MOST_ENDED_HISTORIES);
    assert!(left.iter().all(|history| history.name_any() != "old-000"));
}

#[tokio::test]
async fn c_335_a_history_goes_with_its_item_but_where_that_was_deleted_in_a_job() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let (host, item) = (host(&client, 9), item("item"));
    report(&host, &item, reported("first", "Succeeded", vec![])).await.unwrap();
    assert_eq!(only(&client).await.metadata.owner_references, Some(vec![owner_reference(&item)]));
    report(&host, &item, JobReport { is_released: true, ..reported("second", "Deleted", vec![]) }).await.unwrap();
    let left = only(&client).await.metadata;
    assert_eq!(
        (left.owner_references, left.labels),
        (None, Some([(ENDED.to_owned(), "000000000000".to_owned())].into()))
    );
}

#[tokio::test]
async fn c_331_a_digest_tells_nothing_without_the_key_and_is_of_one_item() {
    let content = json!({"data": {"password": "1"}});
    let host = crate::controller_context::tests::host();
    let made = digest(&host, "u", &content);
    assert_eq!((made.len(), &made), (22, &digest(&host, "u", &content)));
    assert_ne!(made, digest(&host, "v", &content), "of another item");
    assert_ne!(made, digest(&host, "u", &json!({"data": {"password": "2"}})));
}

#[tokio::test]
async fn c_333_a_first_call_that_was_answered_to_nobody_and_writes_of_others_lose_nothing() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let (host, item) = (host(&client, 9), item("item"));
    let [a, b, c] = ["a", "b", "c"].map(|name| write("create", name, (ABSENT, "1")));
    report(&host, &item, reported("first", "Progressing", vec![a.clone()])).await.unwrap();
    // It takes itself for the first call of the first job again.
    report(&host, &item, reported("first", "Progressing", vec![b.clone()])).await.unwrap();
    let api: Api<JobHistory> = Api::namespaced(client.clone(), "default");
    api.delete(&only(&client).await.name_any(), &DeleteParams::default()).await.unwrap();
    let second = JobReport { is_first: false, ..reported("first", "Succeeded", vec![c.clone()]) };
    report(&host, &item, second).await.unwrap();
    let history = only(&client).await;
    assert_eq!(rows(&history), [row(1, "first", "Succeeded", "1 created")], "somebody has deleted the rest");
    let other = DeployItem { metadata: ObjectMeta { uid: Some("other".to_owned()), ..item.metadata.clone() }, ..item };
    report(&host, &other, reported("first", "Succeeded", vec![a, b])).await.unwrap();
    let all = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 2, "an item of the same name has a history of its own");
}

#[tokio::test]
async fn c_331_a_call_that_has_nothing_to_say_writes_nothing_and_no_job_is_on_record_where_none_is_kept() {
    let (_server, client) = server(&[JobHistory::crd()]).await;
    let api: Api<JobHistory> = Api::namespaced(client.clone(), "default");
    let without = host(&client, 0);
    report(&without, &item("item"), reported("first", "Succeeded", vec![])).await.unwrap();
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
    let with = host(&client, 1);
    assert!(with.job_histories.goes_on("uid-of-item", &"first".into()));
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[test]
fn c_333_a_namespace_that_terminates_and_nothing_else_lets_an_item_go_without_a_record() {
    let refused = |reason: &str| {
        let status = json!({
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": "no",
            "details": {"causes": [{"reason": reason, "message": "", "field": ""}]},
        });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    };
    assert!(is_terminating(&refused("NamespaceTerminating")));
    assert!(!is_terminating(&refused("other")), "whose rights do not suffice");
    assert!(!is_terminating(&kube::Error::LinesCodecMaxLineLengthExceeded), "nobody has answered");
}

#[test]
fn c_335_histories_of_items_that_are_gone_are_in_the_order_in_which_these_went() {
    let at = |second: i64| ended_at(jiff::Timestamp::from_second(second).unwrap());
    assert_eq!(at(1_767_225_600), "001767225600");
    assert!(at(999_999_999) < at(1_000_000_000) && at(1_000_000_000) < at(1_000_000_001));
}

#[test]
fn c_331_a_history_has_the_name_of_its_item_as_far_as_there_is_room_for_it() {
    let (long, short) = (item(&"a.".repeat(126)), item("web"));
    assert!(history_name(&short).starts_with("web-") && history_name(&short).len() == 12);
    let name = history_name(&long);
    assert!(name.len() <= 253 && !name.contains(".-"), "{name}");
    assert_ne!(history_name(&item("a")), history_name(&item("b")));
}
