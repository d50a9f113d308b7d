use kube::CustomResourceExt as _;
use orangery_api::plan::{PlanApproval, PlanItem, PlannedWrites, StoredPlan};

use super::*;
use crate::controller_context::tests::{host_on, server};

fn item() -> DeployItem {
    let metadata = json!({"namespace": "default", "name": "item", "uid": "u"});
    serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}})).unwrap()
}

fn content(job: &JobId, number: u32) -> PlanContent {
    let StoredPlan { content, plan_hash } = PlannedWrites::default().stored().unwrap();
    let item = PlanItem { name: "item".to_owned(), uid: "u".to_owned() };
    PlanContent { item, job_id: job.clone(), number, content, plan_hash, ..PlanContent::default() }
}

#[tokio::test]
async fn c_317_limits_plans_of_a_job_have_a_number_and_old_ones_go() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item) = (host_on(client.clone()), item());
    let of = |job| ItemPlans { host: &host, item: &item, job };
    let (first, second): (JobId, JobId) = ("first".into(), "second".into());
    for number in 1..=12 {
        assert_eq!(of(&first).known().await.unwrap().1, number);
        of(&first).make(number, content(&first, number), PlanTurn::Now).await.unwrap();
    }
    let api: Api<Plan> = Api::namespaced(client, "default");
    let numbers = async || -> Vec<u32> {
        let listed = api.list(&ListParams::default()).await.unwrap().items;
        let mut numbers: Vec<u32> = listed.into_iter().map(|plan| plan.spec.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers().await, [9, 10, 11, 12], "the newest and those before it");
    assert_eq!(of(&second).known().await, Ok((Vec::new(), 1)), "another job begins anew");
    let name = of(&first)
        .make(MOST_PLANS_OF_A_JOB - 1, content(&first, MOST_PLANS_OF_A_JOB - 1), PlanTurn::Now)
        .await
        .unwrap();
    assert!(name.ends_with("-63") && of(&first).known().await.is_ok());
    of(&first).make(MOST_PLANS_OF_A_JOB, content(&first, MOST_PLANS_OF_A_JOB), PlanTurn::Now).await.unwrap();
    let Err(Halt::Stall(failure)) = of(&first).known().await else { panic!("there may be more") };
    assert!(failure.message.contains("has changed 64 times in this job"), "{failure}");
}

#[tokio::test]
async fn c_312_c_317_limits_plans_what_somebody_says_of_one_is_cut_and_others_plans_are_not_read() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item, job) = (host_on(client.clone()), item(), JobId::from("j"));
    let plans = ItemPlans { host: &host, item: &item, job: &job };
    let name = plans.make(1, content(&job, 1), PlanTurn::Now).await.unwrap();
    let api: Api<Plan> = Api::namespaced(client, "default");
    let mut plan = api.get(&name).await.unwrap();
    let said = PlanApproval {
        decision: PlanDecision::Reject,
        plan_hash: plan.spec.plan_hash.clone(),
        by: "a".repeat(1_000),
        reason: "r".repeat(1_000),
    };
    plan.status.get_or_insert_default().approval = Some(said);
    let cut = "ar".chars().map(|letter| letter.to_string().repeat(256)).collect::<Vec<_>>();
    let read = plans.read(&plan).unwrap();
    assert_eq!(read.decision, ApprovalDecision::Rejected { by: cut[0].clone(), reason: cut[1].clone() });
    // Of another item, job or operator, or changed since.
    let changes: [fn(&mut PlanContent); 4] = [
        |spec| spec.item.uid.push('x'),
        |spec| spec.job_id = "x".into(),
        |spec| spec.summary.push('x'),
        |spec| spec.made_from.component.push('x'),
    ];
    for change in changes {
        let mut other = plan.clone();
        change(&mut other.spec);
        assert_eq!(plans.read(&other), None);
    }
    let other = ItemPlans { host: &host, item: &item, job: &"k".into() };
    assert_eq!(other.read(&plan), None);
}

#[tokio::test]
async fn c_311_when_a_job_has_ended_its_plans_say_so_once() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item, job) = (host_on(client.clone()), item(), JobId::from("j"));
    let plans = ItemPlans { host: &host, item: &item, job: &job };
    let api: Api<Plan> = Api::namespaced(client, "default");
    let mut names = Vec::new();
    for number in 1..=4 {
        names.push(plans.make(number, content(&job, number), PlanTurn::Now).await.unwrap());
    }
    let [applying, open, rejected, stale] = &names[..] else { unreachable!() };
    plans.tell(applying, phase::APPLYING, ("Approved", "it is being carried out")).await;
    plans.tell(stale, phase::STALE, ("Changed", "another one has taken its place")).await;
    let hash = api.get(rejected).await.unwrap().spec.plan_hash;
    let said = json!({"status": {"approval": {"decision": "Reject", "planHash": hash}}});
    api.patch_status(rejected, &PatchParams::default(), &Patch::Merge(said)).await.unwrap();
    let told = async || {
        let mut told = Vec::new();
        for name in &names {
            let plan = api.get(name).await.unwrap();
            let why = plan.status.as_ref().unwrap().conditions.first().unwrap().message.clone();
            told.push((plan.phase().to_owned(), why, plan.metadata.resource_version.clone()));
        }
        told
    };
    plans.end().await;
    let first = told().await;
    let said: Vec<(&str, &str)> = first.iter().map(|(phase, why, _)| (phase.as_str(), why.as_str())).collect();
    let expected = [
        (phase::APPLIED, "its job has ended"),
        (phase::STALE, "its job has ended without it"),
        (phase::REJECTED, "it is rejected, and its job has ended"),
        (phase::STALE, "another one has taken its place"),
    ];
    assert_eq!(said, expected, "{open}");
    plans.end().await;
    assert_eq!(told().await, first, "nothing is written again");
}

#[tokio::test]
async fn c_331_the_plans_of_a_job_that_somebody_has_approved_are_on_record() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item) = (host_on(client.clone()), item());
    let (job, other): (JobId, JobId) = ("j".into(), "k".into());
    let of = |job| ItemPlans { host: &host, item: &item, job };
    let api: Api<Plan> = Api::namespaced(client, "default");
    let decide = async |name: &str, approval: serde_json::Value| {
        let said = json!({"status": {"approval": approval}});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(said)).await.unwrap();
    };
    let mut names = Vec::new();
    for number in 1..=3 {
        names.push(of(&job).make(number, content(&job, number), PlanTurn::Now).await.unwrap());
    }
    names.push(of(&other).make(1, content(&other, 1), PlanTurn::Now).await.unwrap());
    let hash = api.get(&names[0]).await.unwrap().spec.plan_hash;
    assert_eq!(of(&job).approved().await, [], "nobody has said anything");
    decide(&names[0], json!({"decision": "Approve", "planHash": hash, "by": "a".repeat(1_000)})).await;
    decide(&names[1], json!({"decision": "Reject", "planHash": hash})).await;
    decide(&names[2], json!({"decision": "Approve", "planHash": "another"})).await;
    decide(&names[3], json!({"decision": "Approve", "planHash": hash})).await;
    let plan =
        |name: &str, by: &str| RecordedPlan { name: name.to_owned(), plan_hash: hash.clone(), by: by.to_owned() };
    assert_eq!(of(&job).approved().await, [plan(&names[0], &"a".repeat(256))]);
    assert_eq!(of(&other).approved().await, [plan(&names[3], "")]);
}

#[tokio::test]
async fn c_311_what_is_said_of_a_plan_has_its_item_called_while_its_job_is_under_way() {
    let host = crate::controller_context::tests::host();
    let plan = |owner: &str| -> PartialObjectMeta<Plan> {
        let owner = json!({"apiVersion": orangery_api::API_VERSION, "kind": "DeployItem", "name": owner, "uid": "u"});
        let metadata = json!({"name": "p", "namespace": "n", "ownerReferences": [owner]});
        let plan = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plan", "metadata": metadata});
        serde_json::from_value(plan).unwrap()
    };
    for (name, finished) in [("works", "a"), ("done", "b")] {
        let metadata = json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
        let status = json!({"jobID": "b", "jobIDFinished": finished});
        let item = json!({"metadata": metadata, "spec": {"type": "t"}, "status": status});
        drop(host.stores.deploy_items.upsert(serde_json::from_value(item).unwrap()));
    }
    let queue = Queue::default();
    for owner in ["works", "done", "nobody"] {
        wake(&host, &queue, &plan(owner));
    }
    assert_eq!(queue.queued(), [Key::new("n", "works")]);
}

#[tokio::test]
async fn c_367_what_the_author_says_of_a_plan_does_not_count_where_another_one_has_to_and_he_is_told_once() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item, job) = (host_on(client.clone()), item(), JobId::from("j"));
    let plans = ItemPlans { host: &host, item: &item, job: &job };
    let spec = PlanContent { author: "anna".to_owned(), requires_other_approver: true, ..content(&job, 1) };
    let name = plans.make(1, spec, PlanTurn::Now).await.unwrap();
    let api: Api<Plan> = Api::namespaced(client, "default");
    let said_by = async |by: &str| {
        let hash = api.get(&name).await.unwrap().spec.plan_hash;
        let said = json!({"status": {"approval": {"decision": "Approve", "planHash": hash, "by": by}}});
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(said)).await.unwrap();
        let known = plans.known().await.unwrap().0.remove(0);
        (known.decision, known.is_misdecided)
    };
    assert_eq!(said_by("anna").await, (ApprovalDecision::Open, true));
    assert_eq!(said_by("").await, (ApprovalDecision::Open, true), "it may be the same one");
    plans.tell_misdecided(&name).await;
    assert_eq!(said_by("anna").await, (ApprovalDecision::Open, false), "that is told once");
    assert_eq!(said_by("berta").await, (ApprovalDecision::Approved, false));
    // Where nobody asks for another one, everybody may.
    let own = PlanContent { author: "anna".to_owned(), ..content(&job, 2) };
    let own = Plan::new("own", own);
    assert!(own.may_be_decided_by("anna") && own.may_be_decided_by(""));
    let unknown = PlanContent { requires_other_approver: true, ..content(&job, 3) };
    assert!(!Plan::new("unknown", unknown).may_be_decided_by("berta"), "the author may be the same one");
}

#[tokio::test]
async fn c_366_open_plans_of_ended_jobs_say_that_they_do_not_count_and_those_of_others_are_left_alone() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item) = (host_on(client.clone()), item());
    let (ended, running): (JobId, JobId) = ("ended".into(), "running".into());
    let of = |job| ItemPlans { host: &host, item: &item, job };
    let api: Api<Plan> = Api::namespaced(client, "default");
    let open = of(&ended).make(1, content(&ended, 1), PlanTurn::Ahead).await.unwrap();
    let applied = of(&ended).make(2, content(&ended, 2), PlanTurn::Now).await.unwrap();
    of(&ended).tell(&applied, phase::APPLIED, ("JobEnded", "its job has ended")).await;
    let next = of(&running).make(1, content(&running, 1), PlanTurn::Ahead).await.unwrap();
    let mut forged = Plan::new("forged", content(&ended, 3));
    forged.metadata.labels = api.get(&open).await.unwrap().metadata.labels;
    api.create(&PostParams::default(), &forged).await.unwrap();
    of(&ended).end_all_but(Some(&running)).await;
    let mut phases = Vec::new();
    for name in [&open, &applied, &next, "forged"] {
        phases.push(api.get(name).await.unwrap().phase().to_owned());
    }
    assert_eq!(phases, [phase::STALE, phase::APPLIED, phase::READY, phase::READY]);
    of(&ended).end_all_but(None).await;
    assert_eq!(api.get(&next).await.unwrap().phase(), phase::STALE);
}

#[tokio::test]
async fn c_366_an_item_with_plans_that_an_earlier_operator_has_made_ahead_is_called_once() {
    let host = crate::controller_context::tests::host();
    let owner = json!({"apiVersion": orangery_api::API_VERSION, "kind": "DeployItem", "name": "item", "uid": "u"});
    let metadata =
        json!({"name": "p", "namespace": "n", "ownerReferences": [owner], "labels": {(PLANNED_AHEAD): "true"}});
    let plan = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plan", "metadata": metadata});
    let plan: PartialObjectMeta<Plan> = serde_json::from_value(plan).unwrap();
    let (queue, key) = (Queue::default(), Key::new("n", "item"));
    wake(&host, &queue, &plan);
    assert_eq!((queue.queued(), host.planned_ahead.job_of(&key)), (Vec::new(), None), "there is no such item");
    let metadata = json!({"name": "item", "namespace": "n", "uid": "u", "resourceVersion": "1"});
    let item = json!({"metadata": metadata, "spec": {"type": "t"}});
    drop(host.stores.deploy_items.upsert(serde_json::from_value(item).unwrap()));
    wake(&host, &queue, &plan);
    assert_eq!(queue.queued(), [key]);
    let again = Queue::default();
    wake(&host, &again, &plan);
    assert_eq!(again.queued(), []);
}

#[tokio::test]
async fn c_366_a_plan_that_is_made_ahead_says_so_and_counts_as_any_other() {
    let (_server, client) = server(&[Plan::crd()]).await;
    let (host, item, job) = (host_on(client.clone()), item(), JobId::from("j"));
    let plans = ItemPlans { host: &host, item: &item, job: &job };
    let api: Api<Plan> = Api::namespaced(client, "default");
    let mut labels = Vec::new();
    for (number, turn) in [(1, PlanTurn::Ahead), (2, PlanTurn::Now)] {
        let name = plans.make(number, content(&job, number), turn).await.unwrap();
        let plan = api.get(&name).await.unwrap();
        labels.push((plan.labels().get(PLANNED_AHEAD).cloned(), plan.labels().get(PLANNED_ITEM).cloned()));
    }
    let item = Some("u".to_owned());
    assert_eq!(labels, [(Some("true".to_owned()), item.clone()), (None, item)]);
    let (known, next) = plans.known().await.unwrap();
    assert_eq!((known.len(), next), (2, 3));
}
