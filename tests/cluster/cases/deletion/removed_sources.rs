//! Deletion when what a tree was made from is gone: its blueprint, its Context, and the component that deployed an item.

use std::{fs, path::Path, sync::Arc};

use orangery_tests::{
    external_deployer::item,
    objects::NAMESPACE,
    proxy::Sound,
    tree::{API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks, on_cluster},
    world::{MOCK, World},
};
use serde_json::{Value, json};

const COMPONENT: &str = "example.org/tree";

/// A repository with one component version, whose blueprint has an item of the mock deployer and one of a ConfigMap.
fn repository(folder: &Path) {
    let access = json!({"type": "localBlob", "localReference": "tree",
        "mediaType": "application/vnd.gardener.landscaper.blueprint.layer.v1.tar"});
    let resource = json!({"name": "blueprint", "version": "1.0.0", "type": "landscaper.gardener.cloud/blueprint",
        "relation": "local", "access": access});
    let component = json!({"name": COMPONENT, "version": "1.0.0", "provider": "us", "sources": [],
        "repositoryContexts": [{"type": "local", "filePath": "."}], "componentReferences": [], "resources": [resource]});
    let descriptor = json!({"meta": {"schemaVersion": "v2"}, "component": component});
    let items = [deploys("deployed", &[], "1"), mocks("mocked", &[], "Succeeded", "1")];
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&items)}));
    let tree = folder.join("blobs/tree");
    fs::create_dir_all(&tree).expect("a folder");
    fs::write(tree.join("blueprint.yaml"), blueprint.to_string()).expect("a blueprint");
    fs::write(folder.join("tree.json"), descriptor.to_string()).expect("a descriptor");
}

fn context() -> Value {
    let metadata = json!({"name": "sources", "namespace": NAMESPACE});
    let repository = json!({"type": "local", "filePath": "."});
    json!({"apiVersion": API, "kind": "Context", "metadata": metadata, "repositoryContext": repository})
}

fn root() -> Value {
    let mut root = on_cluster(installation("root", &blueprint(json!({}))));
    root["spec"]["context"] = json!("sources");
    root["spec"]["componentDescriptor"] = json!({"ref": {"componentName": COMPONENT, "version": "1.0.0"}});
    root["spec"]["blueprint"] = json!({"ref": {"resourceName": "blueprint"}});
    root
}

/// The cluster is cleaned from what the host itself knows; an item of a deployer that is not there waits, and says for what.
#[tokio::test]
async fn c_28_ins_81_a_tree_is_deleted_without_its_blueprint_its_context_and_its_deployer() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    repository(folder.path());
    let components = folder.path().to_string_lossy().into_owned();
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.objects.apply(&context()).await;
    world.start_with(&[MOCK, "--components", &components]);
    world.objects.apply(&root()).await;
    world.objects.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deployed"}});
    world.objects.expect(&config_map).await;

    world.kill().await;
    drop(folder);
    let freed = json!({"apiVersion": API, "kind": "Context", "metadata": {"name": "sources", "finalizers": null}});
    world.objects.delete(&context()).await;
    world.objects.merge_where_there(&freed).await;
    world.objects.expect_absent(&context()).await;
    world.start_with(&[]);
    world.objects.delete(&any("Installation", "root")).await;
    world.objects.expect_absent(&config_map).await;
    let waits = |execution: &Value| execution["status"]["conditions"].to_string().contains("WaitingForDeployItem");
    world.objects.expect_that(&any("Execution", "root"), "does not wait for its item", waits).await;
    let why = world.run(&["why", "installation/root"]).await;
    let nobody = "nobody has taken it, neither a component for landscaper.gardener.cloud/mock nor another deployer";
    assert!(why.contains(nobody), "{why}");
    assert!(why.contains("delete-without-uninstall"), "{why}");

    // The administrator knows that the deployer is gone for good, and has the item go as it is.
    let annotation = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    let mocked = world.objects.list(&item()).await.pop().expect("the item of the mock deployer");
    world.objects.annotate(&mocked, annotation).await;
    world.objects.expect_absent(&any("Installation", "root")).await;
    world.objects.expect_absent(&item()).await;
    world.end().await;
}
