//! Figures of the operator for Prometheus, and who may read them (C-147).

use std::sync::Arc;

use orangery_tests::{
    objects::NAMESPACE,
    proxy::Sound,
    tree::{blueprint, executions, in_phase, installation, mocks},
    world::{MOCK, World},
    yaml,
};
use serde_json::json;

#[tokio::test]
async fn c_147_metrics_are_for_bearers_of_a_token_that_the_server_knows() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK, "--metrics-authentication=token"]);
    world.ready().await;
    let code = async |token: Option<&str>| match world.metrics(token).await {
        Err(kube::Error::Api(status)) => status.code,
        answered => panic!("{token:?}: {answered:?}"),
    };
    assert_eq!([code(None).await, code(Some("of-nobody-here")).await], [401, 401]);
    let kubeconfig = yaml::documents(world.objects.kubeconfig()).remove(0);
    let token = kubeconfig["users"][0]["user"]["token"].as_str().expect("a token");
    let text = world.metrics(Some(token)).await.expect("metrics");
    assert!(text.contains("orangery_lease_held 1"), "{text}");
    world.end().await;
}

#[tokio::test]
async fn c_392_what_a_job_did_shows_in_the_metrics_and_no_object_is_named() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK]);
    world.ready().await;
    let items = executions(&[mocks("item-of-a-tenant", &[], "Succeeded", "x")]);
    let root = installation("root-of-a-tenant", &blueprint(json!({"deployExecutions": items})));
    world.objects.apply(&root).await;
    world.objects.expect(&in_phase("Installation", "root-of-a-tenant", "Succeeded")).await;
    let page = world.metrics(None).await.expect("metrics");
    let expected = [
        r#"orangery_jobs_total{kind="Installation",result="Succeeded"} 1"#,
        r#"orangery_jobs_total{kind="Execution",result="Succeeded"} 1"#,
        r#"orangery_jobs_total{kind="DeployItem",result="Succeeded"} 1"#,
        r#"orangery_objects{kind="Installation",phase="Succeeded"} 1"#,
        r#"orangery_job_duration_seconds_count{kind="Installation",result="Succeeded"} 1"#,
        r#"orangery_plugin_limits_met_total{plugin="mock",limit="memoryMiB"} 0"#,
        r#"orangery_plugin_ended_calls_total{plugin="jinja",result="crash"} 0"#,
    ];
    let missing: Vec<&str> = expected.into_iter().filter(|line| !page.lines().any(|of| of == *line)).collect();
    assert!(missing.is_empty(), "{missing:?} in {page}");
    assert!(page.contains(r#"orangery_plugin_call_duration_seconds_count{plugin="mock"} "#), "{page}");
    let named = ["-of-a-tenant", NAMESPACE]
        .map(|name| page.contains(&format!("{name}\"")) || page.contains(&format!("\"{name}")));
    assert_eq!(named, [false, false], "{page}");
    world.end().await;
}
