//! Creating, reading, replacing, listing, deleting.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use serde_json::{Value, json};

use crate::scaffold::*;

#[tokio::test]
async fn an_object_is_created_read_replaced_and_deleted() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let made = create(&maps, config_map("one", json!({"a": "1"}))).await.unwrap();
    assert_eq!(made.creation_timestamp().unwrap().0.to_string(), "2027-01-15T08:00:00Z");
    let mut read = maps.get("one").await.unwrap();
    assert_eq!(read, made);
    read.data["data"]["a"] = json!("2");
    let replaced = maps.replace("one", &PostParams::default(), &read).await.unwrap();
    assert_eq!((replaced.data["data"].clone(), replaced.uid()), (json!({"a": "2"}), made.uid()));
    let again = maps.replace("one", &PostParams::default(), &replaced).await.unwrap();
    assert_eq!(again.resource_version(), replaced.resource_version(), "a replacement that changes nothing is no write");
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(maps.get("one").await), (404, "configmaps \"one\" not found".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn c_154_limits_what_could_not_be_read_back_is_refused_and_what_is_taken_can_be_listed_and_deleted() {
    let (server, client) = serve_things().await;
    let things = things(&client, "ns");
    create(&things, thing("t", json!({"size": 1}))).await.unwrap();
    let mut refused = Vec::new();
    for levels in 110..=124 {
        let status = (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        let patch = Patch::Merge(json!({"status": status}));
        match things.patch_status("t", &PatchParams::default(), &patch).await {
            Ok(_) => assert_eq!(refused, [], "{levels} levels"),
            answer => refused.push(refusal(answer)),
        }
    }
    let why = "Thing.example.com \"t\" is invalid: metadata.managedFields: Forbidden: the values of the object stand 126 levels deep in \
               each other with these, and 125 are allowed; make what stands in it less deep";
    assert_eq!(refused.first(), Some(&(422, why.to_owned())));
    assert_eq!(things.list_metadata(&ListParams::default()).await.unwrap().items.len(), 1);
    things.delete("t", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(things.get("t").await).0, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_replacement_of_an_old_version_is_a_conflict() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let old = create(&maps, config_map("one", json!({"a": "1"}))).await.unwrap();
    let mut new = old.clone();
    new.data["data"]["a"] = json!("2");
    maps.replace("one", &PostParams::default(), &new).await.unwrap();
    let (code, message) = refusal(maps.replace("one", &PostParams::default(), &new).await);
    assert_eq!(code, 409);
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"one\": the object has been modified; please apply your changes to the latest version and try again"
    );
    server.stop().await;
}

#[tokio::test]
async fn creates_are_refused_in_the_words_of_kubernetes() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    create(&maps, config_map("one", json!({}))).await.unwrap();
    let taken = refusal(create(&maps, config_map("one", json!({}))).await);
    assert_eq!(taken, (409, "configmaps \"one\" already exists".to_owned()));
    let nowhere = refusal(create(&config_maps(&client, "nowhere"), config_map("one", json!({}))).await);
    assert_eq!(nowhere, (404, "namespaces \"nowhere\" not found".to_owned()));
    let (code, message) = refusal(create(&maps, config_map("No Name", json!({}))).await);
    assert_eq!(code, 422);
    assert!(
        message.starts_with(
            "ConfigMap \"No Name\" is invalid: metadata.name: Invalid value: \"No Name\": a lowercase RFC 1123"
        ),
        "{message}"
    );
    let wrong = refusal(create(&maps, config_map("two", json!({"a": 1}))).await);
    let why = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into the field data.a of type string";
    assert_eq!(wrong, (400, why.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_generated_name_begins_with_its_prefix() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let object = || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}});
    let (one, two) = (create(&maps, object()).await.unwrap(), create(&maps, object()).await.unwrap());
    assert_ne!(one.name_any(), two.name_any());
    assert!(one.name_any().starts_with("x-") && one.name_any().len() == 7, "{}", one.name_any());
    server.stop().await;
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let object: DynamicObject = serde_json::from_value(config_map("one", json!({"a": "1"}))).unwrap();
    assert_eq!(maps.create(&dry, &object).await.unwrap().data["data"], json!({"a": "1"}));
    assert_eq!(maps.get_opt("one").await.unwrap(), None);
    let delete = DeleteParams { dry_run: true, ..DeleteParams::default() };
    maps.create(&PostParams::default(), &object).await.unwrap();
    maps.delete("one", &delete).await.unwrap();
    assert!(maps.get_opt("one").await.unwrap().is_some());
    server.stop().await;
}

#[tokio::test]
async fn a_list_comes_in_pages_and_is_selected() {
    let (server, client) = serve().await;
    namespace(&client, "ns").await;
    let maps = config_maps(&client, "ns");
    furnished(&maps).await;
    for name in ["a", "b", "c", "d"] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"even": (name == "b" || name == "d").to_string()});
        create(&maps, object).await.unwrap();
    }
    let labelled = ListParams::default().labels("even in (true,false)");
    let first = maps.list(&labelled.clone().limit(3)).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let second = maps.list(&labelled.limit(3).continue_token(&token)).await.unwrap();
    let names =
        |list: &kube::core::ObjectList<DynamicObject>| list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    assert_eq!((names(&first), names(&second)), (vec!["a".into(), "b".into(), "c".into()], vec!["d".into()]));
    assert_eq!(first.metadata.resource_version, second.metadata.resource_version);
    assert_eq!(names(&maps.list(&ListParams::default().labels("even=true")).await.unwrap()), ["b", "d"]);
    assert_eq!(names(&maps.list(&ListParams::default().fields("metadata.name=c")).await.unwrap()), ["c"]);
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("even")).await.unwrap();
    assert_eq!(names(&maps.list(&ListParams::default().labels("even")).await.unwrap()), Vec::<String>::new());
    server.stop().await;
}

/// The namespace's own config map is there when its content is furnished.
async fn furnished(maps: &Api<DynamicObject>) {
    becomes(maps, "kube-root-ca.crt", |_| true).await;
}

#[tokio::test]
async fn a_deletion_keeps_to_its_preconditions() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let made = create(&maps, config_map("one", json!({}))).await.unwrap();
    let with = |uid: &str| DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    let (code, message) = refusal(maps.delete("one", &with("other")).await);
    assert_eq!(code, 409);
    assert!(message.contains("Precondition failed: UID in precondition: other, UID in object meta: "), "{message}");
    let answer = maps.delete("one", &with(&made.uid().unwrap())).await.unwrap();
    assert_eq!(answer.right().unwrap().details.unwrap().uid, made.uid().unwrap());
    server.stop().await;
}

#[tokio::test]
async fn a_secret_takes_plain_text_and_keeps_it_encoded() {
    let (server, client) = serve().await;
    let secrets = dynamic(&client, "", "v1", "Secret", Some("default"));
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let made = create(&secrets, object).await.unwrap();
    assert_eq!(made.data, json!({"data": {"k": "dg=="}, "type": "Opaque"}));
    let mut frozen = made.clone();
    frozen.data["immutable"] = json!(true);
    let mut changed = secrets.replace("s", &PostParams::default(), &frozen).await.unwrap();
    changed.data["data"]["k"] = json!("dw==");
    let refused = refusal(secrets.replace("s", &PostParams::default(), &changed).await);
    let why = "Secret \"s\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
    assert_eq!(refused, (422, why.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn generation_grows_with_the_spec_of_a_built_in_kind() {
    let (server, client) = serve().await;
    let deployments = dynamic(&client, "apps", "v1", "Deployment", Some("default"));
    let object: Value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let mut made = create(&deployments, object).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    made.labels_mut().insert("l".to_owned(), "1".to_owned());
    made = deployments.replace("d", &PostParams::default(), &made).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    made.data["spec"]["replicas"] = json!(3);
    made = deployments.replace("d", &PostParams::default(), &made).await.unwrap();
    assert_eq!(made.metadata.generation, Some(2));
    made.data["status"] = json!({"replicas": 3});
    let bytes = serde_json::to_vec(&made).unwrap();
    let with_status = deployments
        .replace_status("d", &PostParams::default(), &serde_json::from_slice(&bytes).unwrap())
        .await
        .unwrap();
    assert_eq!(
        (with_status.metadata.generation, with_status.data["status"].clone()),
        (Some(2), json!({"replicas": 3}))
    );
    made.data["spec"]["selector"] = json!({"matchLabels": {"a": "c"}});
    made.metadata.resource_version = None;
    assert_eq!(refusal(deployments.replace("d", &PostParams::default(), &made).await).0, 422);
    server.stop().await;
}

#[tokio::test]
async fn deletion_waits_for_finalizers() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let mut object = config_map("one", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&maps, object).await.unwrap();
    let marked = maps.delete("one", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    let mut more = marked.clone();
    more.finalizers_mut().push("example.com/more".to_owned());
    let why = "ConfigMap \"one\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/more\"}";
    assert_eq!(refusal(maps.replace("one", &PostParams::default(), &more).await), (422, why.to_owned()));
    let mut free = marked;
    free.finalizers_mut().clear();
    maps.replace("one", &PostParams::default(), &free).await.unwrap();
    assert_eq!(maps.get_opt("one").await.unwrap(), None);
    server.stop().await;
}

#[tokio::test]
async fn propagation_is_as_asked() {
    let policies = [PropagationPolicy::Background, PropagationPolicy::Foreground, PropagationPolicy::Orphan];
    for policy in policies {
        let (server, client) = serve().await;
        let maps = config_maps(&client, "default");
        let owner = create(&maps, config_map("owner", json!({}))).await.unwrap();
        let mut owned = config_map("owned", json!({}));
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": owner.uid(), "blockOwnerDeletion": true}]);
        create(&maps, owned).await.unwrap();
        let orphan = matches!(policy, PropagationPolicy::Orphan);
        let how = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        maps.delete("owner", &how).await.unwrap();
        gone(&maps, "owner").await;
        if orphan {
            let left = maps.get("owned").await.unwrap();
            assert_eq!(left.owner_references(), []);
        } else {
            gone(&maps, "owned").await;
        }
        server.stop().await;
    }
}
