//! Custom kinds: defaults, pruning, validation, status, conditions of definitions.

use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::scaffold::*;

#[tokio::test]
async fn a_definition_is_established_at_once_and_its_names_are_its_own() {
    let (server, client) = serve_things().await;
    let made = definitions(&client).get("things.example.com").await.unwrap();
    let conditions: Vec<(&str, &str)> = made.data["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| (condition["type"].as_str().unwrap(), condition["status"].as_str().unwrap()))
        .collect();
    assert_eq!(conditions, [("NamesAccepted", "True"), ("Established", "True")]);
    assert_eq!(made.data["status"]["storedVersions"], json!(["v1"]));
    let mut rival = definition();
    rival["metadata"]["name"] = json!("rivals.example.com");
    rival["spec"]["names"] = json!({"plural": "rivals", "kind": "Rival", "shortNames": ["th"]});
    let refused = create(&definitions(&client), rival).await.unwrap();
    assert_eq!(refused.data["status"]["conditions"][0]["message"], json!("\"th\" is already in use"));
    server.stop().await;
}

#[tokio::test]
async fn a_definition_that_makes_no_sense_is_refused() {
    let (server, client) = serve().await;
    let mut nameless = definition();
    nameless["metadata"]["name"] = json!("other.example.com");
    let (code, message) = refusal(create(&definitions(&client), nameless).await);
    assert_eq!(code, 422);
    assert!(
        message.contains(
            "metadata.name: Invalid value: \"other.example.com\": must be spec.names.plural+\".\"+spec.group"
        ),
        "{message}"
    );
    let mut without_schema = definition();
    without_schema["spec"]["versions"][0]["schema"] = json!(null);
    let (_, message) = refusal(create(&definitions(&client), without_schema).await);
    assert!(
        message.contains("spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"),
        "{message}"
    );
    server.stop().await;
}

#[tokio::test]
async fn c_135_a_definition_whose_patterns_take_too_much_is_refused_and_what_was_stored_stays() {
    let (server, client) = serve_things().await;
    let changed = |word: &str, value: &Value| {
        let mut changed = definition();
        changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mode"][word] =
            value.clone();
        changed
    };
    let place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[mode]";
    for (word, value, why) in [
        ("pattern", json!("(a{100}){100}"), "pattern: Invalid value: \"(a{100}){100}\": it has 20100 places"),
        ("pattern", json!("a".repeat(5_000)), "a regular expression has 5000 bytes, 4096 are allowed"),
        ("patternProperties", json!({"a": {}}), "patternProperties: Forbidden: patternProperties is not supported"),
        ("items", json!([{"pattern": "a"}]), "items: Forbidden: items must be a schema object and not an array"),
    ] {
        let mut other = changed(word, &value);
        other["metadata"]["name"] = json!("others.example.com");
        other["spec"]["names"] = json!({"plural": "others", "kind": "Other"});
        let (code, message) = refusal(create(&definitions(&client), other).await);
        assert!(code == 422 && message.contains(why) && message.contains(place), "{code}: {message}");
        let patch = Patch::Merge(changed(word, &value));
        let (code, message) =
            refusal(definitions(&client).patch("things.example.com", &PatchParams::default(), &patch).await);
        assert!(code == 422 && message.contains(why), "{code}: {message}");
    }
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}});
    create(&things(&client, "default"), thing).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn scope_and_kind_of_a_definition_cannot_be_changed() {
    let (server, client) = serve_things().await;
    let api = definitions(&client);
    for (patch, why) in [
        (json!({"spec": {"scope": "Cluster"}}), "spec.scope: Invalid value: \"Cluster\": field is immutable"),
        (
            json!({"spec": {"names": {"kind": "Other"}}}),
            "spec.names.kind: Invalid value: \"Other\": field is immutable",
        ),
    ] {
        let refused = refusal(api.patch("things.example.com", &PatchParams::default(), &Patch::Merge(patch)).await);
        let message = format!("CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: {why}");
        assert_eq!(refused, (422, message));
    }
    create(&things(&client, "ns"), thing("t", json!({"size": 1}))).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn objects_are_completed_pruned_and_judged() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    let made = create(&api, thing("t", json!({"size": 1, "unknown": true}))).await.unwrap();
    assert_eq!(made.data, json!({"spec": {"size": 1, "mode": "a"}}));
    let cases = [
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (json!({"size": 0}), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (json!({"size": 1, "mode": "c"}), "spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\""),
    ];
    for (spec, why) in cases {
        let refused = refusal(create(&api, thing("bad", spec)).await);
        assert_eq!(refused, (422, format!("Thing.example.com \"bad\" is invalid: {why}")));
    }
    server.stop().await;
}

#[tokio::test]
async fn the_status_is_written_on_its_own() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    let mut object = thing("t", json!({"size": 1}));
    object["status"] = json!({"phase": "early"});
    let mut made = create(&api, object).await.unwrap();
    assert_eq!(made.data.get("status"), None, "a status given at creation is dropped");
    made.data["status"] = json!({"phase": "x"});
    made.data["spec"]["size"] = json!(9);
    let with_status = api.replace_status("t", &PostParams::default(), &made).await.unwrap();
    assert_eq!(with_status.data, json!({"spec": {"size": 1, "mode": "a"}, "status": {"phase": "x"}}));
    assert_eq!(with_status.metadata.generation, Some(1));
    let patch = Patch::Merge(json!({"spec": {"size": 2}, "status": {"phase": "y"}}));
    let patched = api.patch("t", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data, json!({"spec": {"size": 2, "mode": "a"}, "status": {"phase": "x"}}));
    assert_eq!(patched.metadata.generation, Some(2));
    let unversioned = thing("t", json!({"size": 3}));
    let refused =
        refusal(api.replace("t", &PostParams::default(), &serde_json::from_value(unversioned).unwrap()).await);
    let why = "Thing.example.com \"t\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(refused, (422, why.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn all_served_versions_show_the_same_objects() {
    let (server, client) = serve().await;
    let mut two = definition();
    let mut beta = two["spec"]["versions"][0].clone();
    beta["name"] = json!("v1beta1");
    beta["storage"] = json!(false);
    two["spec"]["versions"].as_array_mut().unwrap().push(beta);
    create(&definitions(&client), two).await.unwrap();
    let old = dynamic(&client, "example.com", "v1beta1", "Thing", Some("default"));
    let object =
        json!({"apiVersion": "example.com/v1beta1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}});
    create(&old, object).await.unwrap();
    let new = things(&client, "default").get("t").await.unwrap();
    assert_eq!(
        (new.types.unwrap().api_version, new.data["spec"]["size"].clone()),
        ("example.com/v1".to_owned(), json!(1))
    );
    let listed = old.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].name_any(), "t");
    server.stop().await;
}
