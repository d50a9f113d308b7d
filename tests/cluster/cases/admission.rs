//! What is refused at admission, rule by rule (`docs/wire.md` §3.8): over HTTP, with the sentence that a user reads.

use orangery_tests::{
    cluster::Cluster,
    fail,
    objects::NAMESPACE,
    tree::{deploys, in_phase},
};
use serde_json::{Value, json};

const SKIP: &str = "validation.landscaper.gardener.cloud/skip-validation";

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// An Installation with these fields beside a blueprint.
fn installation(name: &str, fields: Value) -> Value {
    let mut spec = json!({"blueprint": {"inline": {"filesystem": {"blueprint.yaml": "kind: Blueprint\n"}}}});
    if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        spec.extend(fields);
    }
    object("Installation", name, spec)
}

fn execution(items: Value) -> Value {
    object("Execution", "bad", json!({"deployItems": items}))
}

/// The sentence with which a policy denies an object, without what stands before it.
async fn denied(cluster: &Cluster, object: &Value) -> String {
    let refused = match cluster.try_apply(object).await {
        Err(kube::Error::Api(status)) => status,
        other => fail(&format!("{object} was not refused: {other:?}")),
    };
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"), "{}", refused.message);
    let parts = refused.message.split_once(" denied request: ");
    parts.map(|(_, sentence)| sentence.to_owned()).unwrap_or_else(|| fail(&refused.message))
}

async fn check(cases: &[(Value, &str)]) {
    let cluster = crate::cluster().await;
    for (object, sentence) in cases {
        assert_eq!(&denied(&cluster, object).await, sentence, "{object}");
    }
}

#[tokio::test]
async fn an_installation_has_a_name_that_its_context_can_have() {
    let long = "a".repeat(59);
    let fix = "; take at most 58 lower-case letters, digits and dashes, with a letter or a digit at both ends";
    check(&[
        (installation(&long, json!({})), &format!("metadata.name: is no name for an Installation: {long}{fix}")),
        (installation("a.b", json!({})), &format!("metadata.name: is no name for an Installation: a.b{fix}")),
    ])
    .await;
    let cluster = crate::cluster().await;
    let mut generated = installation("x", json!({}));
    let prefix = "p".repeat(54);
    generated["metadata"] = json!({"name": "x", "generateName": prefix});
    let sentence = "metadata.generateName: is too long: ";
    assert!(denied(&cluster, &generated).await.starts_with(sentence));
    cluster.apply(&installation(&"a".repeat(58), json!({}))).await;
}

/// Longer lists than a policy looks through, of names as long as they may be, are taken by both servers.
#[tokio::test]
async fn c_90_an_installation_has_500_imports_and_as_many_exports() {
    let cluster = crate::cluster().await;
    let long = |kind: &str, number: usize| format!("{kind}-{number:0>width$}", width = 62 - kind.len());
    for count in [100, 250, 500] {
        let targets = (0..count).map(|number| match number % 4 {
            0 => json!({"name": long("target", number), "target": long("t", number)}),
            1 => json!({"name": long("target", number), "targets": [long("t", number), long("u", number)]}),
            2 => json!({"name": long("target", number), "targetMap": {long("k", number): long("t", number), "b": "c"}}),
            _ => json!({"name": long("target", number), "targetMapRef": long("t", number)}),
        });
        let exports = (0..count).map(|number| json!({"name": long("data", number), "dataRef": long("d", number)}));
        let mut many = installation(
            &format!("many-{count}"),
            json!({"imports": {"targets": targets.collect::<Vec<_>>()}, "exports": {"data": exports.collect::<Vec<_>>()}}),
        );
        cluster.apply(&many).await;
        if count <= 250 {
            many["metadata"]["name"] = json!("twice");
            let first = long("target", 0);
            many["spec"]["imports"]["targets"][count - 1]["name"] = json!(first);
            let fix = "; keep one of them: data and targets share their names";
            let sentence = format!("spec.imports: several imports are called {first}{fix}");
            assert_eq!(denied(&cluster, &many).await, sentence);
        }
    }
}

#[tokio::test]
async fn c_90_an_execution_has_500_items_that_depend_on_each_other() {
    let cluster = crate::cluster().await;
    let name = |number: usize| format!("item-{number:0>47}");
    let item = |number: usize, before: usize| {
        let before: Vec<String> = (number.saturating_sub(before)..number).map(name).collect();
        json!({"name": name(number), "type": "t", "dependsOn": before, "config": {"apiVersion": "example.com/v1", "kind": "Anything"}})
    };
    for (count, before) in [(100, 5), (100, 20), (500, 3), (500, 20)] {
        let mut many = execution((0..count).map(|number| item(number, before)).collect());
        many["metadata"]["name"] = json!(format!("many-{count}-{before}"));
        cluster.apply(&many).await;
        if before == 5 {
            many["spec"]["deployItems"][count - 2]["dependsOn"] = json!([name(count - 1)]);
            many["metadata"]["name"] = json!("mutual");
            let sentence = format!(
                "spec.deployItems: depend on each other: {}, {}; remove one of the names from the other one's dependsOn",
                name(count - 2),
                name(count - 1)
            );
            assert_eq!(denied(&cluster, &many).await, sentence);
        }
        if before == 3 {
            let last = &mut many["spec"]["deployItems"][count - 1];
            last["dependsOn"] = json!(["unknown"]);
            many["metadata"]["name"] = json!("stranded");
            let sentence = format!(
                "spec.deployItems: dependsOn names an item that does not exist, in the item {}; name items of the same Execution",
                name(count - 1)
            );
            assert_eq!(denied(&cluster, &many).await, sentence);
        }
    }
}

#[tokio::test]
async fn a_data_import_has_exactly_one_source_with_a_name() {
    let data = |imports: Value| installation("bad", json!({"imports": {"data": imports}}));
    let one = "spec.imports.data: needs exactly one of dataRef, secretRef and configMapRef: a, c; remove the others, or add \
               the one that is meant";
    let named = "spec.imports.data: names no Secret or ConfigMap: a; add its name to secretRef or configMapRef";
    check(&[
        (
            data(json!([{"name": "a"}, {"name": "b", "dataRef": "b"},
                {"name": "c", "dataRef": "c", "secretRef": {"name": "s"}}])),
            one,
        ),
        (data(json!([{"name": "a", "configMapRef": {"name": ""}}])), named),
        (
            data(json!([{"name": "", "dataRef": "b"}])),
            "spec.imports: an import has an empty name, in data; give it the name that the blueprint has for it",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_target_import_has_exactly_one_source_without_holes() {
    let targets = |imports: Value| installation("bad", json!({"imports": {"targets": imports}}));
    let one = "spec.imports.targets: needs exactly one of target, targets, targetListRef, targetMap and targetMapRef: a; \
               remove the others, or add the one that is meant";
    let hole = "spec.imports.targets: has an empty entry: a; name a Target in every entry of targets and targetMap, or \
                remove the entry";
    let key = "spec.imports.targets: has a key in targetMap that cannot be the value of a label: a; take at most 63 \
               lower-case letters, digits, dots and dashes, with a letter or a digit at both ends";
    check(&[
        (targets(json!([{"name": "a"}])), one),
        (targets(json!([{"name": "a", "target": "t", "targetMapRef": "m"}])), one),
        (targets(json!([{"name": "a", "targets": [""]}])), hole),
        (targets(json!([{"name": "a", "targetMap": {"k": ""}}])), hole),
        (targets(json!([{"name": "a", "targetMap": {"K": "t"}}])), key),
    ])
    .await;
    // An explicit empty list or map is a source.
    let cluster = crate::cluster().await;
    cluster.apply(&targets(json!([{"name": "a", "targets": []}, {"name": "b", "targetMap": {}}]))).await;
}

#[tokio::test]
async fn names_of_imports_are_unique_over_data_and_targets() {
    let imports = json!({"data": [{"name": "a", "dataRef": "x"}], "targets": [{"name": "a", "target": "t"}]});
    let sentence = "spec.imports: several imports are called a; keep one of them: data and targets share their names";
    check(&[(installation("bad", json!({"imports": imports})), sentence)]).await;
}

#[tokio::test]
async fn an_export_is_complete_and_its_name_is_unique_in_its_section() {
    let exports = |exports: Value| installation("bad", json!({"exports": exports}));
    check(&[
        (
            exports(json!({"data": [{"name": "a", "dataRef": ""}]})),
            "spec.exports.data: needs both name and dataRef: a; add the one that is missing",
        ),
        (
            exports(json!({"targets": [{"name": "a"}]})),
            "spec.exports.targets: needs both name and target: a; add the one that is missing",
        ),
        (
            exports(json!({"data": [{"name": "a", "dataRef": "x"}, {"name": "a", "dataRef": "y"}]})),
            "spec.exports: several exports of data, or several of targets, are called a; keep one of them",
        ),
    ])
    .await;
    let cluster = crate::cluster().await;
    let both = json!({"data": [{"name": "a", "dataRef": "x"}], "targets": [{"name": "a", "target": "y"}]});
    cluster.apply(&exports(both)).await;
}

#[tokio::test]
async fn a_blueprint_and_a_component_have_exactly_one_source() {
    let both = json!({"ref": {"resourceName": "r"}, "inline": {"filesystem": {}}});
    let blueprint = |has: &str| {
        format!("spec.blueprint: needs exactly one of ref and inline, and has {has}; keep the one that is meant")
    };
    let component = "spec.componentDescriptor: needs exactly one of ref and inline, and has neither; keep the one that is \
                     meant, or leave componentDescriptor out";
    check(&[
        (object("Installation", "bad", json!({"blueprint": both})), &blueprint("both")),
        (object("Installation", "bad", json!({"blueprint": {}})), &blueprint("neither")),
        (installation("bad", json!({"componentDescriptor": {}})), component),
    ])
    .await;
}

#[tokio::test]
async fn the_items_of_an_execution_are_named_typed_and_known_to_each_other() {
    let item = |name: &str| json!({"name": name, "type": "t"});
    let with = |field: &str, value: Value| {
        let mut item = item("a");
        item[field] = value;
        execution(json!([item]))
    };
    let label = "spec.deployItems: a label that Kubernetes does not take has the item a; keys are [prefix/]name, keys and \
                 values have at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or a digit";
    let own = "spec.deployItems: several items are called a; give every item a name of its own";
    let target = "spec.deployItems: a target without name or namespace has the item a; add what is missing, or leave the target out";
    let absent = "spec.deployItems: dependsOn names an item that does not exist, in the item a; name items of the same Execution";
    check(&[
        (
            execution(json!([item("")])),
            "spec.deployItems: an item has an empty name; give every item a name of its own",
        ),
        (execution(json!([item("a"), item("b"), item("a")])), own),
        (
            with("type", json!("")),
            "spec.deployItems: no type has the item a; name the type of the deployer that it is for",
        ),
        (with("target", json!({"name": "t"})), target),
        (with("labels", json!({"a b": "c"})), label),
        (with("labels", json!({"a": "-c"})), label),
        (with("dependsOn", json!(["b"])), absent),
        (
            with("dependsOn", json!(["a"])),
            "spec.deployItems: depends on itself: a; remove its own name from its dependsOn",
        ),
        (
            execution(json!([
                {"name": "a", "type": "t", "dependsOn": ["b"]}, {"name": "b", "type": "t", "dependsOn": ["c", "a"]}, item("c"),
            ])),
            "spec.deployItems: depend on each other: a, b; remove one of the names from the other one's dependsOn",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_deploy_item_has_a_type_that_never_changes_and_a_complete_target() {
    let cluster = crate::cluster().await;
    let item = |name: &str, spec: Value| object("DeployItem", name, spec);
    let typeless = item("bad", json!({"type": ""}));
    let sentence = "spec.type: is empty; name the type of the deployer that the item is for";
    assert_eq!(denied(&cluster, &typeless).await, sentence);
    let aimless = item("bad", json!({"type": "t", "target": {"name": "t"}}));
    let sentence = "spec.target: needs both name and namespace; add what is missing, or leave the target out";
    assert_eq!(denied(&cluster, &aimless).await, sentence);
    cluster.apply(&item("good", json!({"type": "t"}))).await;
    let sentence = "spec.type: never changes, and is t; delete the item and create one of the other type";
    assert_eq!(denied(&cluster, &item("good", json!({"type": "u"}))).await, sentence);
}

#[tokio::test]
async fn a_target_has_its_content_in_one_place() {
    let target = object("Target", "bad", json!({"type": "t", "config": {"a": 1}, "secretRef": {"name": "s"}}));
    check(&[(target, "spec: has config, secretRef at the same time; keep one of them")]).await;
    let cluster = crate::cluster().await;
    cluster.apply(&object("Target", "neither", json!({"type": "t"}))).await;
}

#[tokio::test]
async fn the_label_skips_the_validation_of_every_kind() {
    let cluster = crate::cluster().await;
    for mut bad in [
        installation("skipped", json!({"imports": {"data": [{"name": "a"}]}})),
        execution(json!([{"name": "a", "type": ""}])),
        object("DeployItem", "skipped", json!({"type": ""})),
        object("Target", "skipped", json!({"type": "t", "config": {}, "secretRef": {"name": "s"}})),
    ] {
        bad["metadata"]["labels"] = json!({SKIP: "true"});
        cluster.apply(&bad).await;
    }
}

/// What the validation would refuse stays writable in all that it leaves alone: labels, finalizers, other parts.
#[tokio::test]
async fn existing_invalid_objects_stay_writable() {
    let cluster = crate::cluster().await;
    let mut bad = installation("old", json!({"imports": {"data": [{"name": "a"}]}}));
    bad["metadata"]["labels"] = json!({SKIP: "true"});
    cluster.apply(&bad).await;
    let unlabelled = json!({"metadata": {"labels": {SKIP: null}}});
    let merge = |patch: Value| {
        let mut object = object("Installation", "old", Value::Null);
        if let (Some(object), Value::Object(patch)) = (object.as_object_mut(), patch) {
            object.remove("spec");
            object.extend(patch);
        }
        object["metadata"]["name"] = json!("old");
        object
    };
    cluster.merge(&merge(unlabelled)).await;
    cluster.merge(&merge(json!({"spec": {"context": "other"}}))).await;
    let worse = installation("old", json!({"imports": {"data": [{"name": "b"}]}}));
    let sentence = "spec.imports.data: needs exactly one of dataRef, secretRef and configMapRef: b; remove the others, or add \
                    the one that is meant";
    assert_eq!(denied(&cluster, &worse).await, sentence);
}

/// The warnings that a server answers a write of labels or finalizers with, as kubectl shows them.
async fn warnings(cluster: &Cluster, target: &str, metadata: Value) -> Vec<String> {
    let path = format!(
        "/apis/landscaper.gardener.cloud/v1alpha1/namespaces/{}/targets/{target}",
        cluster.client().default_namespace()
    );
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(kube::client::Body::from(json!({"metadata": metadata}).to_string().into_bytes()))
        .unwrap();
    warnings_of(cluster, request).await
}

async fn warnings_of(cluster: &Cluster, request: http::Request<kube::client::Body>) -> Vec<String> {
    let answer = cluster.client().send(request).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let warnings = answer.headers().get_all("warning").into_iter();
    warnings.map(|warning| warning.to_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn c_66_a_target_that_is_being_deleted_is_written_with_a_warning() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    let mut target = object("Target", "held", json!({"type": "t"}));
    target["metadata"]["finalizers"] = json!(["example.org/held"]);
    cluster.apply(&target).await;
    let labels = |number: u8| json!({"labels": {"number": number.to_string()}});
    assert_eq!(warnings(&cluster, "held", labels(1)).await, [""; 0]);
    cluster.delete(&target).await;
    let told = warnings(&cluster, "held", labels(2)).await;
    assert!(told.len() == 1 && told[0].contains("this Target is being deleted"), "{told:?}");
    assert_eq!(warnings(&cluster, "held", json!({"finalizers": null})).await, [""; 0], "it is let go of");
    cluster.expect_absent(&target).await;
}

/// Landscaper takes it, and looks its Targets up where the item is.
#[tokio::test]
async fn a_target_of_another_namespace_is_that_of_the_items_own_and_a_warning_says_so() {
    let cluster = crate::cluster().await;
    let mut item = object(
        "DeployItem",
        "item",
        json!({
            "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"name": "cluster", "namespace": "elsewhere"},
            "config": deploys("there", &[], "x")["config"],
        }),
    );
    let path = format!("/apis/landscaper.gardener.cloud/v1alpha1/namespaces/{NAMESPACE}/deployitems");
    item["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "test-reconcile"});
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(item.to_string().into_bytes()))
        .unwrap();
    let told = warnings_of(&cluster, request).await;
    assert!(told.len() == 1 && told[0].contains("spec.target.namespace has no effect"), "{told:?}");
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}})).await;
}
