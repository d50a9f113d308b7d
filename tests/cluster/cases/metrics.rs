//! Figures of the operator for Prometheus, and who may read them (C-147).

use std::sync::Arc;

use orangery_tests::{
    proxy::Sound,
    world::{MOCK, World},
    yaml,
};

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
