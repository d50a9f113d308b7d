//! The search at the end of a case finds what operators show that were started beside a server (C-82).

use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::Objects,
    tree::API,
};
use serde_json::json;

#[tokio::test]
#[should_panic(expected = "the log shows a value of a Secret")]
async fn c_82_a_case_fails_in_which_an_operator_of_its_server_logs_a_value() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let _operator = server.operator(&binary, OPERATOR[0], &[]);
    objects.expect(&json!({"apiVersion": API, "kind": "Context", "metadata": {"name": "default"}})).await;
    let other = Objects::of(server.kubeconfig_of("admin", "default")).await;
    let value = json!({"value": "a-canary-of-this-test"});
    other
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"}, "stringData": value}))
        .await;
    crate::cases::secrets::harness::say(binary.folder(), "a-canary-of-this-test");
}
