//! What fails a job of an Installation, with the whole error, and what it leaves unmade.

use serde_json::{Value, json};

use crate::{
    objects::{
        ENGINE, both, data, data_export, data_import, data_object, deploying, exporting, installation, item, object,
        of_items, sub, with,
    },
    world::{FINALIZER, World, is_deleting, job_ended, message, name_of},
};

/// A root that fails in `Init`, with its error.
struct Refusal {
    blueprint: Value,
    spec: Value,
    error: &'static str,
}

fn refused(blueprint: Value, error: &'static str) -> Refusal {
    Refusal { blueprint, spec: json!({}), error }
}

/// A root that imports `v` from this source.
fn importing(source: Value, import: Value, error: &'static str) -> Refusal {
    let list = if import["type"] == "data" { "data" } else { "targets" };
    let blueprint = both(&deploying(&[("never", &[])]), &json!({"imports": [import]}));
    Refusal { blueprint, spec: json!({"imports": {(list): [source]}}), error }
}

fn execution(kind: &str, template: Value) -> Value {
    json!({(kind): [{"name": "first", "type": ENGINE, "template": template.to_string()}]})
}

fn refusals() -> Vec<Refusal> {
    let never = || deploying(&[("never", &[])]);
    let numeric = json!({"name": "v", "type": "data", "schema": {"type": "integer"}});
    let target = json!({"name": "v", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"});
    vec![
        refused(
            json!({"deployExecutions": [{"name": "web", "type": "Unheard", "template": "{}"}]}),
            "RenderTemplate/UnknownTemplateType: deployExecutions \"web\" (Unheard): no component renders the type \"Unheard\"; known types are: Paths; correct `type` or register a component for it",
        ),
        refused(
            execution("deployExecutions", json!({"deployItems": 7})),
            "RenderTemplate/InvalidTemplateOutput: deployExecutions \"first\" (Paths): the rendered deploy items have a wrong form: deployItems: expected a list, found a number",
        ),
        refused(
            execution("subinstallationExecutions", json!({"subinstallations": [{"name": "x"}]})),
            "RenderTemplate/InvalidTemplateOutput: subinstallationExecutions \"first\" (Paths): the sub-installation \"x\" needs exactly one of blueprint.ref and blueprint.filesystem",
        ),
        refused(
            both(&never(), &execution("importExecutions", json!({"errors": ["too small", "too red"]}))),
            "RunImportExecutions/ImportsRefused: import execution \"first\" refuses the imports: too small; too red",
        ),
        refused(
            of_items(&[item("twice", &[], &json!({})), item("twice", &[], &json!({}))]),
            "RenderDeployItems/InvalidDeployItems: deploy items: twice is defined twice; give every one its own name",
        ),
        refused(
            deploying(&[("a", &["ghost"])]),
            "RenderDeployItems/InvalidDeployItems: deploy items: a depends on ghost, which does not exist; known are: a",
        ),
        refused(
            deploying(&[("a", &["a"])]),
            "RenderDeployItems/InvalidDeployItems: deploy items: a -> a depend on each other in a circle; remove one of these dependencies",
        ),
        refused(
            deploying(&[("a", &["b"]), ("b", &["a"])]),
            "RenderDeployItems/InvalidDeployItems: deploy items: a -> b -> a depend on each other in a circle; remove one of these dependencies",
        ),
        refused(
            of_items(&[item("a", &[], &json!({"target": {"import": "ghost"}}))]),
            "RenderDeployItems/InvalidDeployItems: deploy item \"a\": there is no target import \"ghost\"; known are: none",
        ),
        refused(
            json!({"subinstallations": [sub("x", &never(), &json!({})), sub("x", &never(), &json!({}))]}),
            "RenderSubinstallations/InvalidSubinstallations: two sub-installations are named \"x\"; give every one its own name",
        ),
        refused(
            json!({"subinstallations": [sub("x", &never(), &json!({"imports": data(&["ghost"])}))]}),
            "RenderSubinstallations/InvalidSubinstallations: the sub-installation \"x\" imports data ghost, which neither the blueprint imports nor a sibling exports; known are: none",
        ),
        importing(
            json!({"name": "v", "dataRef": "text"}),
            numeric.clone(),
            "ValidateImports/SchemaValidationFailed: import \"v\" of installation default/root-11: the value does not follow the schema: at /: value is not of type \"integer\", found string",
        ),
        importing(
            json!({"name": "other", "dataRef": "text"}),
            numeric,
            "ValidateImports/ImportNotSatisfied: import \"v\" of installation default/root-12: the blueprint asks for data, and the installation gives nothing; add it to spec.imports, or make it optional by required: false",
        ),
        importing(
            json!({"name": "v", "secretRef": {"name": "ghost", "key": "k"}}),
            data_import("v"),
            "ReadImports/ImportNotFound: import \"v\" of installation default/root-13: Secret ghost does not exist; create it, or let another installation export it",
        ),
        importing(
            json!({"name": "v", "configMapRef": {"name": "settings", "key": "ghost"}}),
            data_import("v"),
            "ReadImports/ImportNotFound: import \"v\" of installation default/root-14: ConfigMap settings has no key \"ghost\"; its keys are: a",
        ),
        importing(
            json!({"name": "v", "target": "ghost"}),
            target,
            "ReadImports/ImportNotFound: import \"v\" of installation default/root-15: Target ghost does not exist; create it, or let another installation export it",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_51_orc_14_orc_22_c_09_what_cannot_be_rendered_fails_the_job_in_init_and_nothing_is_made() {
    let world = World::new().await;
    world.apply(&data_object("text", &json!("secret text"))).await;
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}});
    world.apply(&settings).await;
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for (number, Refusal { blueprint, spec, error }) in refusals().iter().enumerate() {
        let name = format!("root-{number}");
        world.apply(&with(installation(&name, blueprint), spec)).await;
        world.ended("Installation", &name, "Failed").await;
        let status = world.status("Installation", &name).await;
        found.push(status["lastError"].as_str().unwrap().to_owned());
        expected.push(format!("{error} [ERR_CONFIGURATION_PROBLEM]"));
        assert_eq!((&status["jobGeneration"], &status["observedGeneration"]), (&json!(2), &json!(2)), "{name}");
        assert_eq!(status.get("executionRef"), None, "{name}");
    }
    assert_eq!(found, expected);
    for kind in ["Execution", "DeployItem"] {
        assert_eq!(world.list(kind).await, Vec::<Value>::new(), "{kind}");
    }
    assert_eq!(world.list("Installation").await.len(), expected.len(), "no sub-installation");
}

/// A root with an item of its name that exports `out` as `key`.
fn exporter(name: &str, key: &str, blueprint: &Value) -> Value {
    let blueprint = both(&deploying(&[(name, &[])]), blueprint);
    with(installation(name, &blueprint), &json!({"exports": {"data": [{"name": "out", "dataRef": key}]}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_40_to_42_ins_51_exports_that_cannot_be_made_fail_the_job_after_its_items() {
    let world = World::new().await;
    let numeric = json!({"name": "out", "type": "data", "schema": {"type": "integer"}});
    let mut wrong = exporting("out", &json!("text"));
    wrong["exports"] = json!([numeric]);
    world.apply(&exporter("owner", "shared", &exporting("out", &json!("mine")))).await;
    world.succeed("owner").await;
    world.ended("Installation", "owner", "Succeeded").await;
    let cases = [
        (
            "silent",
            exporter("silent", "silent", &json!({"exports": [data_export("out")]})),
            "CreateExports/ExportNotDefined: data export \"out\" of installation default/silent has no value; let an exportExecution of the blueprint answer it under `exports`, or remove it from spec.exports",
        ),
        (
            "wrong",
            exporter("wrong", "wrong", &wrong),
            "ValidateExport/SchemaValidationFailed: data export \"out\" of installation default/wrong: the value does not follow the schema: at /: value is not of type \"integer\", found string",
        ),
        (
            "undeclared",
            exporter("undeclared", "undeclared", &json!({})),
            "CreateExports/ExportNotDefined: data export \"out\" of installation default/undeclared has no value; let an exportExecution of the blueprint answer it under `exports`, or remove it from spec.exports",
        ),
        (
            "thief",
            exporter("thief", "shared", &exporting("out", &json!("stolen"))),
            "WriteExports/ExportConflict: DataObject shared of installation default/thief belongs to installation owner, which exports it too; rename one of the exports",
        ),
    ];
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for (name, root, error) in cases {
        world.apply(&root).await;
        world.succeed(name).await;
        world.ended("Installation", name, "Failed").await;
        found.push(world.status("Installation", name).await["lastError"].as_str().unwrap().to_owned());
        expected.push(format!("{error} [ERR_CONFIGURATION_PROBLEM]"));
    }
    assert_eq!(found, expected);
    assert_eq!(world.find("DataObject", "shared").await.unwrap()["data"], "mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_21_a_predecessor_that_is_being_deleted_fails_the_job_at_once() {
    let world = World::new().await;
    world.apply(&exporter("first", "first", &exporting("out", &json!("v")))).await;
    world.succeed("first").await;
    world.ended("Installation", "first", "Succeeded").await;
    world.delete("Installation", "first").await;
    world.item("first", is_deleting).await;
    let imports = json!({"imports": [data_import("first")]});
    world.apply(&with(installation("second", &imports), &json!({"imports": data(&["first"])}))).await;
    world.ended("Installation", "second", "Failed").await;
    let message = "an installation whose exports are imported here is being deleted: first";
    let error = &world.status("Installation", "second").await["lastError"];
    assert_eq!(*error, json!(format!("CheckPredecessors/PredecessorDeleted: {message} []")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_24_c_31_a_sub_installation_that_does_not_say_its_template_is_not_guessed_at() {
    let world = World::new().await;
    let subs = json!({"subinstallations": [sub("x", &deploying(&[("i", &[])]), &json!({}))]});
    world.apply(&installation("root", &subs)).await;
    world.succeed("i").await;
    world.ended("Installation", "root", "Succeeded").await;
    let name = name_of(&world.find_sub("x").await.unwrap());
    let template = "landscaper.gardener.cloud/subinstallation-name";
    world.patch("Installation", &name, &json!({"metadata": {"annotations": {(template): null}}})).await;
    world.request("root").await;
    world.ended("Installation", "root", "Failed").await;
    let message = format!(
        "sub-installation {name} lacks the annotation {template}, so its template is unknown; delete it or restore the annotation"
    );
    let error = &world.status("Installation", "root").await["lastError"];
    assert_eq!(*error, json!(format!("ReconcileSubinstallations/DanglingSubinstallation: {message} []")));
    world.patch("Installation", &name, &json!({"metadata": {"annotations": {(template): "x"}}})).await;
    world.request("root").await;
    world.succeed("i").await;
    world.ended("Installation", "root", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_24_exe_06_c_23_an_execution_that_lost_its_owner_is_used_again() {
    let world = World::new().await;
    world.apply(&object("Execution", "root", &json!({"context": "other"}))).await;
    world.apply(&installation("root", &deploying(&[("r", &[])]))).await;
    world.succeed("r").await;
    world.ended("Installation", "root", "Succeeded").await;
    let execution = world.find("Execution", "root").await.unwrap();
    let metadata = &execution["metadata"];
    assert_eq!((&execution["spec"]["context"], &metadata["finalizers"]), (&json!("default"), &json!([FINALIZER])));
    world.delete("Installation", "root").await;
    world.succeed("r").await;
    world.gone("Installation", "root").await;
    assert_eq!(world.find("Execution", "root").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_100_an_export_leaves_what_a_user_made_under_its_name() {
    let world = World::new().await;
    let mine = json!({"precious": true});
    world.apply(&data_object("out", &mine)).await;
    let before = world.find("DataObject", "out").await.unwrap();
    let exports = json!({"exports": data(&["out"])});
    world.apply(&with(installation("root", &exporting("out", &json!(1))), &exports)).await;
    let failed = world.ended("Installation", "root", "Failed").await;
    let expected = "WriteExports/ExportConflict: DataObject out exists already and was exported by no installation, so installation \
                    default/root does not overwrite it; rename the export, or delete the object [ERR_CONFIGURATION_PROBLEM]";
    assert_eq!(world.whole(&failed).await["lastError"], expected);
    assert_eq!(world.find("DataObject", "out").await.unwrap(), before);
    world.delete("DataObject", "out").await;
    world.request("root").await;
    world.ended_after("Installation", "root", "Succeeded", &failed).await;
    // Its own it writes again, also where the owner was taken away.
    let owned = world.find("DataObject", "out").await.unwrap();
    world.patch("DataObject", "out", &json!({"metadata": {"ownerReferences": null}})).await;
    world.request("root").await;
    let again = async || {
        let object = world.find("DataObject", "out").await?;
        (object["metadata"]["uid"] != owned["metadata"]["uid"] && object["data"] == 1).then_some(())
    };
    world.wait("the export does not come back", again).await;
}

/// What others hold on its way out is not written to: that would go with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_138_a_record_that_somebody_holds_on_its_way_out_is_written_anew_when_it_is_gone() {
    let world = World::new().await;
    let blueprint =
        both(&both(&deploying(&[("r", &[])]), &exporting("out", &json!(1))), &json!({"imports": [data_import("in")]}));
    world.apply(&data_object("in", &json!("v"))).await;
    let bound = json!({"imports": data(&["in"]), "exports": data(&["out"])});
    world.apply(&with(installation("root", &blueprint), &bound)).await;
    world.succeed("r").await;
    let mut before = world.ended("Installation", "root", "Succeeded").await;
    let by = |source: &str| {
        let source = source.to_owned();
        move |object: &Value| {
            let labels = &object["metadata"]["labels"];
            labels["data.landscaper.gardener.cloud/source"] == source.as_str()
                && labels["data.landscaper.gardener.cloud/key"] != "in"
        }
    };
    let copied = |object: &Value| object["metadata"]["labels"]["data.landscaper.gardener.cloud/context"] == "Inst.root";
    // The export of the Installation, that of its Execution, the copy of the import.
    type IsRecord<'a> = &'a dyn Fn(&Value) -> bool;
    let records: [(&str, IsRecord<'_>); 3] =
        [("Installation", &by("Inst.root")), ("Execution", &by("Exec.root")), ("Installation", &copied)];
    for (kind, is_it) in records {
        let record = world.list("DataObject").await.into_iter().find(|object| is_it(object)).unwrap();
        let name = name_of(&record);
        world.patch("DataObject", &name, &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
        world.delete("DataObject", &name).await;
        world.request("root").await;
        let waits = format!("waiting for DataObject {name} to be gone");
        if !copied(&record) {
            world.succeed("r").await;
        }
        world.says(kind, "root", &waits).await;
        world.patch("DataObject", &name, &json!({"metadata": {"finalizers": null}})).await;
        if copied(&record) {
            world.succeed("r").await;
        }
        before = world.ended_after("Installation", "root", "Succeeded", &before).await;
        let anew = world.find("DataObject", &name).await.expect("it is written anew");
        assert_eq!(anew["data"], record["data"], "{name}");
        assert_ne!(anew["metadata"]["uid"], record["metadata"]["uid"], "{name}");
    }
}

/// Two roots turn round: what one exported and the other imported is exported by the other and imported by the one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_160_an_export_that_moves_is_written_by_its_new_exporter() {
    let world = World::new().await;
    let exporter = |name: &str| {
        let exports = json!({"data": [{"name": "out", "dataRef": "x"}]});
        with(installation(name, &exporting("out", &json!(name))), &json!({"exports": exports}))
    };
    let importer = |name: &str| {
        with(installation(name, &json!({"imports": [data_import("x")]})), &json!({"imports": data(&["x"])}))
    };
    world.apply(&exporter("a")).await;
    world.ended("Installation", "a", "Succeeded").await;
    world.apply(&importer("b")).await;
    world.ended("Installation", "b", "Succeeded").await;
    // As long as the spec of one exports it, the other may not.
    world.apply(&exporter("b")).await;
    let refused = world.ended("Installation", "b", "Failed").await;
    assert!(message(&refused).contains("belongs to installation a, which exports it too"), "{refused:#}");
    world.apply(&importer("a")).await;
    world.ended("Installation", "a", "Failed").await;
    world.request("b").await;
    world.ended_after("Installation", "b", "Succeeded", &refused).await;
    world.expect("Installation", "a", |a| a["status"]["phase"] == "Succeeded" && job_ended(a)).await;
    let exported =
        |object: &Value| object["metadata"]["labels"]["data.landscaper.gardener.cloud/sourceType"] == "export";
    let objects: Vec<Value> = world.list("DataObject").await.into_iter().filter(exported).collect();
    let owners: Vec<_> =
        objects.iter().map(|one| (&one["data"], &one["metadata"]["ownerReferences"][0]["name"])).collect();
    assert_eq!(owners, [(&json!("b"), &json!("b"))]);
}
