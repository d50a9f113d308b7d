//! What clients see beside objects: tokens, discovery, tables, documents, counters. In process, through the router.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::scaffold::*;

async fn ask(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn get(router: &Router, path: &str, accept: &str) -> Value {
    let (status, body) = ask(router, Request::get(path).header("accept", accept).body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn nobody_gets_in_without_a_known_token() {
    let (server, client) = serve().await;
    let stranger = client_with(&server, "wrong").await;
    let refused = refusal(config_maps(&stranger, "default").get("x").await);
    assert_eq!(refused, (401, "Unauthorized".to_owned()));
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    server.stop().await;
}

#[tokio::test]
async fn a_service_account_has_tokens_that_let_it_in() {
    let (server, client) = serve().await;
    let accounts = dynamic(&client, "", "v1", "ServiceAccount", Some("default"));
    becomes(&accounts, "default", |_| true).await;
    let request = Request::post("/api/v1/namespaces/default/serviceaccounts/default/token")
        .body(Body::from(r#"{"spec":{"expirationSeconds":600}}"#));
    let (status, body) = ask(&server.router(), request.unwrap()).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &answer["status"]["expirationTimestamp"]),
        (StatusCode::CREATED, &json!("2027-01-15T08:10:00Z"))
    );
    let robot = client_with(&server, answer["status"]["token"].as_str().unwrap()).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = create(&dynamic(&robot, "authentication.k8s.io", "v1", "SelfSubjectReview", None), review).await.unwrap();
    assert_eq!(who.data["status"]["userInfo"]["username"], json!("system:serviceaccount:default:default"));
    server.stop().await;
}

#[tokio::test]
async fn a_token_for_a_foreign_audience_lets_nobody_in_and_is_known_under_that_audience() {
    let (server, client) = serve().await;
    let accounts = dynamic(&client, "", "v1", "ServiceAccount", Some("default"));
    becomes(&accounts, "default", |_| true).await;
    let request = Request::post("/api/v1/namespaces/default/serviceaccounts/default/token")
        .body(Body::from(r#"{"spec":{"audiences":["vault"]}}"#));
    let (status, body) = ask(&server.router(), request.unwrap()).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &answer["spec"]["audiences"]), (StatusCode::CREATED, &json!(["vault"])));
    let token = answer["status"]["token"].as_str().unwrap();
    let robot = client_with(&server, token).await;
    let refused = refusal(config_maps(&robot, "default").get("x").await);
    assert_eq!(refused, (401, "Unauthorized".to_owned()));
    let reviews = dynamic(&client, "authentication.k8s.io", "v1", "TokenReview", None);
    let reviewed = async |audiences: Value| {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences}});
        create(&reviews, review).await.unwrap().data["status"].clone()
    };
    let unknown = json!({
        "authenticated": false,
        "error": "the token is not known, it has expired, or it was made for another audience",
    });
    for audiences in [Value::Null, json!([]), json!(["other"])] {
        assert_eq!(reviewed(audiences.clone()).await, unknown, "{audiences}");
    }
    let name = "system:serviceaccount:default:default";
    let known = reviewed(json!(["other", "vault"])).await;
    assert_eq!((&known["authenticated"], &known["user"]["username"]), (&json!(true), &json!(name)));
    assert_eq!(known["audiences"], json!(["vault"]), "those that both have");
    server.stop().await;
}

#[tokio::test]
async fn a_request_in_the_name_of_another_user_is_of_that_user() {
    let (server, _client) = serve().await;
    let review = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#;
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    let request = request.header("Impersonate-User", "system:serviceaccount:a:robot").body(Body::from(review)).unwrap();
    let (status, body) = ask(&server.router(), request).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    let expected = json!({"username": "system:serviceaccount:a:robot", "groups": ["system:serviceaccounts", "system:authenticated"]});
    assert_eq!((status, &answer["status"]["userInfo"]), (StatusCode::CREATED, &expected));
    server.stop().await;
}

#[tokio::test]
async fn discovery_tells_the_same_in_both_forms() {
    let (server, _client) = serve_things().await;
    let router = server.router();
    let plain = get(&router, "/apis/example.com/v1", "application/json").await;
    assert_eq!(
        plain["resources"],
        json!([
            {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "shortNames": ["th"],
             "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]},
            {"name": "things/status", "singularName": "", "namespaced": true, "group": "example.com", "version": "v1",
             "kind": "Thing", "verbs": ["get", "patch", "update"]},
        ])
    );
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let aggregated = get(&router, "/apis", v2).await;
    let group = aggregated["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "example.com");
    assert_eq!(group.unwrap()["versions"][0]["resources"][0]["resource"], json!("things"));
    let groups = get(&router, "/apis", "application/json").await;
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "example.com"));
    assert_eq!(get(&router, "/api", "application/json").await["versions"], json!(["v1"]));
    server.stop().await;
}

#[tokio::test]
async fn a_table_shows_the_columns_of_the_kind() {
    let (server, client) = serve_things().await;
    create(&things(&client, "ns"), thing("t", json!({"size": 3}))).await.unwrap();
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = get(&server.router(), "/apis/example.com/v1/namespaces/ns/things", accept).await;
    let titles: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!((titles, &table["rows"][0]["cells"]), (vec!["Name", "Size"], &json!(["t", 3])));
    assert_eq!(table["rows"][0]["object"]["kind"], json!("PartialObjectMetadata"));
    server.stop().await;
}

/// The cells of the row `w` of a table, without the age.
async fn row(server: &orangery_embedded::Server, path: &str) -> Vec<Value> {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = get(&server.router(), path, accept).await;
    let titles = table["columnDefinitions"].as_array().unwrap().iter();
    let rows = table["rows"].as_array().unwrap();
    let cells = rows.iter().map(|row| row["cells"].as_array().unwrap()).find(|cells| cells[0] == "w");
    let text = titles.zip(cells.unwrap());
    let text = text.filter(|(title, _)| title["priority"] == 0 && title["name"] != "Age");
    text.map(|(_, cell)| cell.clone()).collect()
}

#[tokio::test]
async fn the_tables_of_workloads_say_what_has_become_of_them() {
    let (mut server, client) = serve().await;
    server.simulate_workloads();
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w"},
        "spec": {"restartPolicy": "Never", "containers": containers}});
    let pods = dynamic(&client, "", "v1", "Pod", Some("default"));
    create(&pods, pod).await.unwrap();
    becomes(&pods, "w", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(
        row(&server, "/api/v1/namespaces/default/pods").await,
        ["w", "0/1", "Completed"].map(|cell| json!(cell)).into_iter().chain([json!(0)]).collect::<Vec<_>>()
    );
    let job = |annotations: Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w", "annotations": annotations},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}})
    };
    let jobs = dynamic(&client, "batch", "v1", "Job", Some("default"));
    create(&jobs, job(json!({"simulate.orangery.dev/fail": "no disk"}))).await.unwrap();
    becomes(&jobs, "w", |job| job["status"]["failed"].is_number()).await;
    assert_eq!(
        row(&server, "/apis/batch/v1/namespaces/default/jobs").await,
        ["w", "Failed", "0/1"].map(|cell| json!(cell))
    );
    let services = dynamic(&client, "", "v1", "Service", Some("default"));
    let spec = json!({"type": "LoadBalancer", "clusterIP": "10.96.3.4", "ports": [{"port": 80}]});
    create(&services, json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": spec}))
        .await
        .unwrap();
    becomes(&services, "w", |service| service["status"]["loadBalancer"]["ingress"].is_array()).await;
    let text = ["w", "LoadBalancer", "10.96.3.4", "198.18.3.4", "80/TCP"].map(|cell| json!(cell));
    assert_eq!(row(&server, "/api/v1/namespaces/default/services").await, text);
    server.stop().await;
}

#[tokio::test]
async fn a_pod_on_no_node_has_said_nothing() {
    let (server, client) = serve().await;
    let pod = |name: &str, node: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = dynamic(&client, "", "v1", "Pod", Some("default"));
    create(&pods, pod("nowhere", json!(null))).await.unwrap();
    create(&pods, pod("somewhere", json!("n"))).await.unwrap();
    let log =
        |name: &str| Request::get(format!("/api/v1/namespaces/default/pods/{name}/log")).body(Body::empty()).unwrap();
    assert_eq!(ask(&server.router(), log("nowhere")).await, (StatusCode::OK, String::new()));
    assert_eq!(ask(&server.router(), log("somewhere")).await.0, StatusCode::BAD_REQUEST);
    server.stop().await;
}

#[tokio::test]
async fn a_service_is_of_a_type_that_there_is() {
    let (server, client) = serve().await;
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "Nonsense"}});
    let refused = refusal(create(&dynamic(&client, "", "v1", "Service", Some("default")), service).await);
    let why = "Service \"s\" is invalid: spec.type: Unsupported value: \"Nonsense\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"";
    assert_eq!(refused, (422, why.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn strict_validation_refuses_and_warnings_tell_of_unknown_fields() {
    let (server, _client) = serve_things().await;
    let post = |path: &str| {
        let body = thing("t", json!({"size": 1, "oops": 1})).to_string();
        Request::post(format!("/apis/example.com/v1/namespaces/ns/things{path}")).body(Body::from(body)).unwrap()
    };
    let (status, body) = ask(&server.router(), post("?fieldValidation=Strict")).await;
    let refused: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &refused["message"]),
        (StatusCode::BAD_REQUEST, &json!("strict decoding error: unknown field \"spec.oops\""))
    );
    let response = server.router().oneshot(post("?fieldValidation=Warn")).await.unwrap();
    assert_eq!(response.headers()["warning"], "299 - \"unknown field \\\"spec.oops\\\"\"");
    server.stop().await;
}

#[tokio::test]
async fn documents_exist_for_every_group_and_version() {
    let (server, _client) = serve_things().await;
    let router = server.router();
    let index = get(&router, "/openapi/v3", "application/json").await;
    for (_, place) in index["paths"].as_object().unwrap() {
        get(&router, place["serverRelativeURL"].as_str().unwrap(), "application/json").await;
    }
    let document = get(&router, "/openapi/v3/apis/example.com/v1", "application/json").await;
    let schema = &document["components"]["schemas"]["com.example.v1.Thing"];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "example.com", "version": "v1", "kind": "Thing"}])
    );
    server.stop().await;
}

#[tokio::test]
async fn requests_are_counted() {
    let (server, client) = serve().await;
    create(&config_maps(&client, "default"), config_map("one", json!({}))).await.unwrap();
    let (_, text) = ask(&server.router(), Request::get("/metrics").body(Body::empty()).unwrap()).await;
    let line = "apiserver_request_total{verb=\"POST\",group=\"\",version=\"v1\",resource=\"configmaps\",subresource=\"\",code=\"201\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn an_event_is_found_under_both_groups() {
    let (server, client) = serve().await;
    let events = dynamic(&client, "events.k8s.io", "v1", "Event", Some("default"));
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "hello",
        "eventTime": "2027-01-15T08:00:00.000000Z", "reason": "R", "type": "Normal",
        "regarding": {"kind": "ConfigMap", "name": "one", "namespace": "default"}});
    assert_eq!(create(&events, event).await.unwrap().data["note"], json!("hello"));
    let core = dynamic(&client, "", "v1", "Event", Some("default"));
    let found = core.list(&kube::api::ListParams::default().fields("involvedObject.name=one")).await.unwrap();
    assert_eq!(found.items[0].data["message"], json!("hello"));
    server.stop().await;
}

#[tokio::test]
async fn a_path_that_names_nothing_is_not_found() {
    let (server, _client) = serve().await;
    for path in
        ["/api/v1/nothings", "/apis/none.example/v1/things", "/api/v1/pods/x", "/api/v1/namespaces/default/nodes", "/x"]
    {
        let (status, body) = ask(&server.router(), Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["kind"], json!("Status"));
    }
    server.stop().await;
}

#[tokio::test]
async fn c_300_limits_embedded_requests_are_counted_by_the_subresources_that_there_are() {
    let (server, _client) = serve().await;
    let router = server.router();
    let get =
        |path: &str| Request::get(format!("/api/v1/namespaces/default/pods/p/{path}")).body(Body::empty()).unwrap();
    for path in ["unknown", "other%22%0aone", "status"] {
        assert_eq!(ask(&router, get(path)).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let (_, text) = ask(&router, Request::get("/metrics").body(Body::empty()).unwrap()).await;
    let of_pods = |subresource: &str, count: usize| {
        format!(
            "apiserver_request_total{{verb=\"GET\",group=\"\",version=\"v1\",resource=\"pods\",subresource=\"{subresource}\",code=\"404\"}} {count}"
        )
    };
    let found: Vec<&str> = text.lines().filter(|line| line.contains(",resource=\"pods\",")).collect();
    assert_eq!(found, [of_pods("other", 2), of_pods("status", 1)]);
    server.stop().await;
}

#[tokio::test]
async fn c_300_a_refusal_quotes_no_value_of_a_secret() {
    let (server, _client) = serve().await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"pin": 12_345_678}});
    let request = Request::post("/api/v1/namespaces/default/secrets").header("content-type", "application/json");
    let (status, text) = ask(&server.router(), request.body(Body::from(secret.to_string())).unwrap()).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    let sentence = "Secret \"s\" is invalid: stringData.pin: Invalid value: must be a string";
    assert_eq!((status, &answer["message"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!(sentence)));
    assert!(!text.contains("12345678"), "{text}");
    server.stop().await;
}
