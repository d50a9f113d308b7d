//! Credentials are issued against servers: a Kubernetes API server for tokens, and one that answers as a garden does.

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddr},
        sync::Arc,
    };

    use axum::{Json, Router, extract::Path, http::StatusCode, response::IntoResponse, routing::post};
    use data_encoding::BASE64;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
    use kube::{
        Api, Client, Config, ResourceExt,
        api::PostParams,
        config::{KubeConfigOptions, Kubeconfig},
    };
    use orangery_cluster::{Credential, Subject, issue_credential};
    use orangery_core::error::{Code, Fault};
    use orangery_embedded::{Options, Server, Storage, start};
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    async fn server() -> Server {
        let options = Options {
            storage: Storage::Memory,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            clock: Arc::new(|| Timestamp::from_second(1_800_000_000).unwrap()),
        };
        start(options).await.unwrap()
    }

    async fn client(kubeconfig: &str) -> Client {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    fn wanted(subject: Subject, name: &str) -> Credential {
        Credential { subject, name: name.into(), namespace: "default".into(), seconds: 3600 }
    }

    #[tokio::test]
    async fn a_service_account_kubeconfig_reaches_its_cluster_as_the_service_account() {
        let server = server().await;
        let administrator = server.kubeconfig();
        let accounts: Api<ServiceAccount> = Api::namespaced(client(&administrator).await, "default");
        let robot = serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap();
        accounts.create(&PostParams::default(), &robot).await.unwrap();
        let issued =
            issue_credential(&administrator, &Arc::default(), &None, &wanted(Subject::ServiceAccount, "robot"))
                .await
                .ok()
                .unwrap();
        assert_eq!(issued.expires, "2027-01-15T09:00:00Z");
        let kubeconfig = issued.kubeconfig;
        assert_eq!(Kubeconfig::from_yaml(&kubeconfig).unwrap().auth_infos[0].name, "robot");
        // The server takes the token.
        let maps: Api<ConfigMap> = Api::namespaced(client(&kubeconfig).await, "default");
        let made = serde_json::from_value(json!({"metadata": {"name": "by-robot"}})).unwrap();
        assert_eq!(maps.create(&PostParams::default(), &made).await.unwrap().name_any(), "by-robot");
        server.stop().await;
    }

    #[tokio::test]
    async fn what_does_not_exist_or_is_too_short_fails_with_the_words_of_the_server() {
        let server = server().await;
        let fault =
            issue_credential(&server.kubeconfig(), &Arc::default(), &None, &wanted(Subject::ServiceAccount, "nobody"))
                .await
                .err()
                .unwrap();
        let message = fault.to_string();
        assert!(matches!(&fault, Fault::Invalid(problem) if problem.code == Code::ConfigurationProblem), "{fault:?}");
        assert!(message.contains("nobody") && message.ends_with("create it and reconcile again"), "{message}");
        let short = Credential { seconds: 1, ..wanted(Subject::ServiceAccount, "default") };
        let fault = issue_credential(&server.kubeconfig(), &Arc::default(), &None, &short).await.err().unwrap();
        assert!(fault.to_string().contains("less than 10 minutes"), "{fault}");
        server.stop().await;
    }

    /// A garden that knows the shoot `red`, and answers what it was asked in the kubeconfig.
    async fn garden() -> String {
        async fn answer(
            Path((namespace, shoot)): Path<(String, String)>,
            Json(asked): Json<Value>,
        ) -> impl IntoResponse {
            if shoot != "red" {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "InternalError", "message": "etcd is down"});
                return (StatusCode::INTERNAL_SERVER_ERROR, Json(status));
            }
            let kubeconfig = BASE64.encode(json!({"namespace": namespace, "asked": asked}).to_string().as_bytes());
            let status = json!({"kubeconfig": kubeconfig, "expirationTimestamp": "2027-01-01T00:00:00Z"});
            (StatusCode::CREATED, Json(json!({"status": status})))
        }
        let path = "/apis/core.gardener.cloud/v1beta1/namespaces/{namespace}/shoots/{shoot}/adminkubeconfig";
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().route(path, post(answer))).await });
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        })
        .to_string()
    }

    #[tokio::test]
    async fn a_shoot_admin_kubeconfig_is_what_the_garden_answers() {
        let issued = issue_credential(&garden().await, &Arc::default(), &None, &wanted(Subject::ShootAdmin, "red"))
            .await
            .ok()
            .unwrap();
        let asked = json!({
            "apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "AdminKubeconfigRequest",
            "metadata": {"name": "red", "namespace": "default"}, "spec": {"expirationSeconds": 3600},
        });
        let message: Value = serde_json::from_str(&issued.kubeconfig).unwrap();
        assert_eq!(message, json!({"namespace": "default", "asked": asked}));
        assert_eq!(issued.expires, "2027-01-01T00:00:00Z");
    }

    #[tokio::test]
    async fn a_garden_that_cannot_answer_now_is_asked_again_later() {
        let fault = issue_credential(&garden().await, &Arc::default(), &None, &wanted(Subject::ShootAdmin, "blue"))
            .await
            .err()
            .unwrap();
        assert!(matches!(fault, Fault::Later(_)), "{fault:?}");
        assert!(fault.to_string().contains("etcd is down"), "{fault}");
    }
}
