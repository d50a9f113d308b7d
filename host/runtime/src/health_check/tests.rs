use kube::runtime::wait::await_condition;
use orangery_api::health::LsHealthCheckContent;
use serde_json::json;

use super::*;
use crate::fixture::{Still, server};

fn deployment(generation: i64, observed: i64, wanted: Option<i32>, updated: i32, available: i32) -> Deployment {
    let status = json!({"observedGeneration": observed, "updatedReplicas": updated, "availableReplicas": available});
    let spec = json!({"replicas": wanted, "selector": {}, "template": {}});
    let metadata = json!({"name": "orangery", "generation": generation});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

#[test]
fn c_377_a_deployment_is_well_when_all_its_pods_run_in_their_newest_form() {
    let of = |known: Option<Deployment>| KnownDeployment { known, ..KnownDeployment::default() }.check("n/d");
    let not_all = Err("not all pods are running or at the latest state for deployment n/d ".to_owned());
    assert_eq!(of(Some(deployment(2, 2, Some(3), 3, 3))), Ok(()));
    assert_eq!(of(Some(deployment(1, 1, None, 1, 1))), Ok(()), "one is wanted where nothing is said");
    assert_eq!(of(Some(deployment(1, 1, Some(0), 0, 0))), Ok(()));
    assert_eq!(of(Some(deployment(2, 1, Some(3), 3, 3))), not_all, "its newest form was not seen yet");
    assert_eq!(of(Some(deployment(2, 2, Some(3), 2, 3))), not_all);
    assert_eq!(of(Some(deployment(2, 2, Some(3), 3, 2))), not_all);
    assert_eq!(of(None), Err("deployment n/d could not be be fetched".to_owned()));
}

#[test]
fn c_377_a_deployment_that_cannot_be_watched_is_not_taken_for_well() {
    let mut known = KnownDeployment::default();
    let events = [Ok(Event::Init), Ok(Event::InitApply(deployment(1, 1, None, 1, 1))), Ok(Event::InitDone)];
    events.into_iter().for_each(|event| known.hear(event));
    assert_eq!(known.check("n/d"), Ok(()));
    known.hear(Err(watcher::Error::NoResourceVersion));
    assert!(known.check("n/d").is_err());
    known.hear(Ok(Event::Init));
    known.hear(Ok(Event::InitDone));
    assert!(known.check("n/d").is_err(), "it is gone");
}

#[tokio::test]
async fn c_377_the_health_check_fails_when_two_looks_fail_and_is_well_again_with_one() {
    let (_server, client) = server().await;
    crate::definitions::Definitions::Install.ensure(&client).await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let checks: Api<LsHealthCheck> = Api::default_namespaced(client.clone());
    let config = HealthCheckConfig { name: "landscaper".into(), deployments: vec!["orangery".into()] };
    let kept = tokio::spawn(keep_health_check(client.clone(), Arc::new(Still), config, Duration::from_millis(5)));
    let says = |wanted: &'static str| {
        await_condition(checks.clone(), "landscaper", move |check: Option<&LsHealthCheck>| {
            check.is_some_and(|check| check.spec.health == wanted)
        })
    };
    says("Failed").await.unwrap();
    let check = checks.get("landscaper").await.unwrap();
    let description = "deployment default/orangery could not be be fetched".to_owned();
    let failed = LsHealthCheckContent { health: "Failed".to_owned(), last_update_time: Time(Still::TIME), description };
    assert_eq!(check.spec, failed);
    let labels = json!({"app": "orangery"});
    let made = json!({
        "metadata": {"name": "orangery"},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    });
    let made = deployments.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    let status = json!({"status": {
        "observedGeneration": made.metadata.generation, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
        "readyReplicas": 1,
    }});
    deployments.patch_status("orangery", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    says("Ok").await.unwrap();
    assert_eq!(checks.get("landscaper").await.unwrap().spec.description, "ok");
    kept.abort();
}
