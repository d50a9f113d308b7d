//! `orangery plan` as users call it: before the first install, before an upgrade, and where there is nothing to do.

use orangery_tests::{
    binary::{Binary, Ended},
    chart::{deploy, item, packed},
    cluster::Cluster,
    tree::{API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

use super::offline::{document, write};

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {text: {{ .Values.text | quote }}}\n";
const PASSWORD: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: {{ .Values.text | quote }}}\n";
const HOOK: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-upgrade}}\n";

pub(super) struct Stage {
    pub(super) binary: Binary,
    pub(super) cluster: Cluster,
}

impl Stage {
    pub(super) async fn start() -> Self {
        let binary = crate::binary().await;
        let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
        write(&binary, "kubeconfig", cluster.kubeconfig());
        Self { binary, cluster }
    }

    pub(super) async fn plan(&self, arguments: &[&str]) -> Ended {
        // Where the operator is not asked, what the other profile refuses is told as well: first the loopback of the tests.
        let plan = ["plan", "--kubeconfig", "kubeconfig", "--default-policy=compatible"];
        self.binary.run(&[&plan[..], arguments].concat()).await
    }

    /// Action, kind and name of each object.
    async fn objects(&self, arguments: &[&str]) -> Vec<String> {
        let plan = document(&self.plan(&[arguments, &["-o", "json"]].concat()).await);
        let objects = plan["objects"].as_array().cloned().unwrap_or_default();
        let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
        objects.iter().map(|one| ["action", "kind", "name"].map(|field| text(one, field)).join(" ")).collect()
    }
}

fn with(text: &str, templates: &[(&str, &str)]) -> Value {
    item(&packed("1.0.0", templates), &json!({"config": {"values": {"text": text}}}))
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_chart_is_planned_before_it_is_installed_and_before_it_is_upgraded() {
    let stage = Stage::start().await;
    let first = with("hunter2", &[("config.yaml", CONFIG), ("password.yaml", PASSWORD)]);
    write(&stage.binary, "item.yaml", first.to_string());
    let created = ["create Secret sh.helm.release.v1.rel.v1", "create Secret login", "create ConfigMap config"];
    assert_eq!(stage.objects(&["-f", "item.yaml"]).await, created);
    let message = stage.plan(&["-f", "item.yaml"]).await;
    assert!(message.stdout.contains("\n+ ConfigMap default/config"), "{message:?}");
    assert!(message.stdout.ends_with("deploy item default/item, by helm 0.1.0: 3 to create\n"), "{message:?}");
    assert!(message.stdout.contains("\n      password: (hidden)"), "{message:?}");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}});
    stage.cluster.expect_absent(&config).await;
    stage.cluster.expect_absent(&any("DeployItem", "item")).await;

    deploy(&stage.cluster, &first).await;
    stage.cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    let second = with("hunter3", &[("config.yaml", CONFIG), ("hook.yaml", HOOK)]);
    write(&stage.binary, "item.yaml", second.to_string());
    let message = stage.plan(&["-f", "item.yaml", "--brief"]).await;
    let mut lines: Vec<&str> = message.stdout.lines().collect();
    let last = lines.pop();
    lines.sort_unstable();
    let expected = [
        "",
        "+ ConfigMap default/hook  (pre-upgrade hook ConfigMap hook (app/templates/hook.yaml))",
        "+ Secret default/sh.helm.release.v1.rel.v2  (begin release)",
        "- Secret default/login  (delete what left the chart)",
        "~ ConfigMap default/config  (write ConfigMap)",
        "~ Secret default/sh.helm.release.v1.rel.v1  (finish release)",
    ];
    assert_eq!(lines, expected, "{message:?}");
    let summary = "deploy item default/item, by helm 0.1.0: 2 to create, 2 to change, 1 to delete";
    assert_eq!(last, Some(summary));
    let message = stage.plan(&["-f", "item.yaml"]).await.stdout;
    assert!(message.contains("\n    data.text: \"hunter2\" → \"hunter3\"\n"), "{message}");
    stage.cluster.expect(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}})).await;

    // As the item is now, only the release goes on.
    let again = [
        "create Secret sh.helm.release.v1.rel.v2",
        "none Secret login",
        "none ConfigMap config",
        "change Secret sh.helm.release.v1.rel.v1",
    ];
    assert_eq!(stage.objects(&["item"]).await, again);
}

#[tokio::test]
async fn c_307_manifests_are_planned_with_what_left_them_and_the_exit_code_says_whether_anything_is_to_be_done() {
    let stage = Stage::start().await;
    let manifest = |name: &str, text: &str| {
        json!({"policy": "manage", "manifest": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"}, "data": {"text": text}}})
    };
    let of = |manifests: Value| {
        let config = json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
            "manifests": manifests});
        json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": "item"}, "spec": {"config": config,
            "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"name": "cluster", "namespace": "default"}}})
    };
    let first = of(json!([manifest("a", "1"), manifest("b", "1"), manifest("c", "1")]));
    write(&stage.binary, "item.yaml", first.to_string());
    let created = ["create ConfigMap a", "create ConfigMap b", "create ConfigMap c"];
    assert_eq!(stage.objects(&["-f", "item.yaml"]).await, created);
    deploy(&stage.cluster, &first).await;
    stage.cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    let none = ["none ConfigMap a", "none ConfigMap b", "none ConfigMap c"];
    assert_eq!(stage.objects(&["item"]).await, none);
    let code = async |arguments: &[&str]| stage.plan(&[arguments, &["--detailed-exitcode"]].concat()).await.code;
    assert_eq!(
        (code(&["item"]).await, code(&["nobody"]).await, code(&["-f", "none.yaml"]).await),
        (Some(0), Some(1), Some(1))
    );
    write(&stage.binary, "item.yaml", of(json!([manifest("a", "2"), manifest("b", "1")])).to_string());
    let changed = ["change ConfigMap a", "none ConfigMap b", "delete ConfigMap c"];
    assert_eq!(stage.objects(&["-f", "item.yaml"]).await, changed);
    assert_eq!(code(&["-f", "item.yaml"]).await, Some(2));
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_plan_that_fails_is_reported_in_one_sentence() {
    let stage = Stage::start().await;
    let text = async |arguments: &[&str]| {
        let ended = stage.plan(arguments).await;
        (ended.code, ended.stderr.lines().last().unwrap_or_default().to_owned())
    };
    let none = "error: there is no installation or deploy item nobody in namespace default; orangery inspect -A shows all there are";
    assert_eq!(text(&["nobody"]).await, (Some(1), none.to_owned()));
    write(&stage.binary, "other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n");
    let other = "error: other.yaml is not planned: it has neither an Installation nor one DeployItem; name a file or folder that has";
    assert_eq!(text(&["-f", "other.yaml"]).await, (Some(2), other.to_owned()));
    let mut unknown = with("a", &[]);
    unknown["spec"]["type"] = json!("example.com/nobody");
    write(&stage.binary, "unknown.yaml", unknown.to_string());
    let expected = "error: no component of this host claims the type \"example.com/nobody\" of DeployItem item; name the folder with its registration, with --plugins";
    assert_eq!(text(&["-f", "unknown.yaml"]).await, (Some(1), expected.to_owned()));
    let broken = with("a", &[("config.yaml", "{{ fail \"no\" }}")]);
    write(&stage.binary, "broken.yaml", broken.to_string());
    let (code, message) = text(&["-f", "broken.yaml"]).await;
    assert!(code == Some(1) && message.contains("app/templates/config.yaml"), "{message}");
}

#[tokio::test]
async fn c_319_what_an_operator_would_do_is_told_of_every_root_and_nothing_is_written() {
    let stage = Stage::start().await;
    let root = |name: &str, item: Value| {
        let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])}));
        on_cluster(installation(name, &blueprint))
    };
    stage.cluster.apply(&root("done", deploys("done", &[], "1"))).await;
    stage.cluster.expect(&in_phase("Installation", "done", "Succeeded")).await;
    // Nobody has asked for its job.
    let mut quiet = root("quiet", deploys("quiet", &[], "1"));
    quiet["metadata"] = json!({"name": "quiet"});
    stage.cluster.apply(&quiet).await;
    let observe = ["run", "--observe", "--kubeconfig", "kubeconfig", "--default-policy=compatible"];
    let told = stage.binary.run(&observe).await;
    let expected = "  installation done
    item done (landscaper.gardener.cloud/kubernetes-manifest, by manifest 0.1.0): nothing to do

installation default/done: 1 as they should be

  installation quiet
  + item quiet (landscaper.gardener.cloud/kubernetes-manifest, by manifest 0.1.0)
      + ConfigMap default/quiet  (manifests)

installation default/quiet: 1 to create

2 roots in 1 namespaces: 0 would fail or cannot be planned; nothing was written
";
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), expected), "{told:?}");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quiet"}});
    stage.cluster.expect_absent(&map).await;
    stage.cluster.expect_absent(&any("Execution", "quiet")).await;
    // A root that cannot be planned keeps nothing from the others.
    let mut broken = quiet.clone();
    broken["metadata"]["name"] = json!("broken");
    broken["spec"]["imports"]["targets"][0]["target"] = json!("nowhere");
    stage.cluster.apply(&broken).await;
    let told = stage.binary.run(&observe).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stdout.contains("installation default/broken is not planned: Installation broken: "), "{told:?}");
    assert!(
        told.stdout.ends_with("\n3 roots in 1 namespaces: 1 would fail or cannot be planned; nothing was written\n")
    );
}
