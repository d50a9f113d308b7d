//! The operator as the chart installs it: its account, its roles, its arguments and its pod, on a real API server.

use std::{fs, time::Duration};

use http::Request;
use orangery_tests::{
    binary::{Binary, Running},
    helm::Helm,
    kube::Kube,
    objects::Objects,
    rendered::{NAMESPACE, UPGRADE, names, objects, of_kind, render},
    repository,
    tree::{API, blueprint, installation},
};
use serde_json::{Value, json};
use tokio::time::interval;

fn namespace(name: &str) -> Value {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// A token of a service account.
async fn token(admin: &Objects, account: &str) -> String {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
    let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let request = Request::post(path).header("content-type", "application/json");
    let answer: Value = admin
        .client()
        .request(request.body(asked.to_string().into_bytes()).expect("a request"))
        .await
        .expect("a token");
    answer["status"]["token"].as_str().expect("a token").to_owned()
}

/// Applies all that the chart makes of a set of values, and starts the operator of its Deployment as its account.
async fn install(server: &Kube, (admin, binary): (&Objects, &Binary), values: &str) -> Running {
    admin.apply(&namespace(NAMESPACE)).await;
    let rendered = objects(&render(values).await);
    for object in &rendered {
        admin.apply(object).await;
    }
    let pod = &of_kind(&rendered, "Deployment")["spec"]["template"]["spec"];
    is_restricted(admin, pod).await;
    let token = token(admin, pod["serviceAccountName"].as_str().expect("an account")).await;
    let kubeconfig = binary.folder().join("chart.kubeconfig");
    fs::write(&kubeconfig, server.kubeconfig_of(&token, NAMESPACE)).expect("the file can be written");
    let arguments = pod["containers"][0]["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
    // What is of the pod alone: where it listens, and its volumes.
    let arguments = arguments.map(|argument| match argument.split_once('=') {
        Some((flag @ ("--health-address" | "--metrics-address"), _)) => format!("{flag}=127.0.0.1:0"),
        Some((flag @ "--components-cache", _)) => format!("{flag}={}", binary.folder().join("components").display()),
        _ => argument.to_owned(),
    });
    let arguments: Vec<String> = arguments.chain([format!("--kubeconfig={}", kubeconfig.display())]).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    server.logging(binary.start_logging(&arguments))
}

/// The API server takes the pod where pods have to be restricted, and would not take one that is not.
async fn is_restricted(admin: &Objects, pod: &Value) {
    let metadata = json!({"name": "operator", "namespace": NAMESPACE});
    let pod = |change: &dyn Fn(&mut Value)| {
        let mut spec = pod.clone();
        change(&mut spec);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    };
    assert!(!admin.is_refused(&pod(&|_| ())).await, "the pod is refused");
    let changes: [&dyn Fn(&mut Value); 3] = [
        &|spec| spec["securityContext"]["runAsNonRoot"] = json!(false),
        &|spec| spec["securityContext"]["seccompProfile"] = Value::Null,
        &|spec| spec["containers"][0]["securityContext"] = Value::Null,
    ];
    for change in changes {
        assert!(admin.is_refused(&pod(change)).await, "pods need not be restricted here");
    }
}

fn root(namespace: &str) -> Value {
    let mut root = installation("root", &blueprint(json!({})));
    root["metadata"]["namespace"] = json!(namespace);
    root
}

async fn succeeds(admin: &Objects, namespace: &str) {
    admin.apply(&root(namespace)).await;
    let metadata = json!({"name": "root", "namespace": namespace});
    let status = json!({"phase": "Succeeded"});
    admin.expect(&json!({"apiVersion": API, "kind": "Installation", "metadata": metadata, "status": status})).await;
}

/// What the log complains of, where a right is missing.
fn check_rights(operator: &Running) {
    let log = operator.log();
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("forbidden")).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_38_what_the_chart_installs_works_with_the_rights_that_it_gives() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let admin = Objects::of(server.kubeconfig()).await;
    admin.apply(&namespace("team-a")).await;
    let operator = install(&server, (&admin, &binary), "metrics").await;
    succeeds(&admin, "team-a").await;
    check_rights(&operator);
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_410_the_job_before_an_upgrade_may_apply_the_definitions_and_change_no_other_object() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let admin = Objects::of(server.kubeconfig()).await;
    admin.apply(&namespace(NAMESPACE)).await;
    let rendered = objects(&render(UPGRADE).await);
    for object in &rendered {
        admin.apply(object).await;
    }
    let pod = &of_kind(&rendered, "Job")["spec"]["template"]["spec"];
    is_restricted(&admin, pod).await;
    let token = token(&admin, pod["serviceAccountName"].as_str().expect("an account")).await;
    let kubeconfig = server.kubeconfig_of(&token, NAMESPACE);
    let file = binary.folder().join("definitions.kubeconfig");
    fs::write(&file, &kubeconfig).expect("the file can be written");
    let arguments = pod["containers"][0]["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
    let file = file.to_string_lossy();
    let arguments: Vec<&str> = arguments.chain(["--kubeconfig", file.as_ref()]).collect();
    let ended = binary.run(&arguments).await;
    let up_to_date = ended.stdout.lines().filter(|line| line.ends_with(" is up to date")).count();
    assert_eq!((up_to_date, ended.stderr.as_str()), (15, ""), "{}", ended.stdout);
    let account = Objects::of(kubeconfig).await;
    let kind = |name: &str| {
        let names = json!({"plural": "things", "singular": "thing", "kind": "Thing"});
        let metadata = json!({"name": name, "labels": {"a": "b"}});
        let spec = json!({"group": "example.org", "scope": "Namespaced", "names": names, "versions": []});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec})
    };
    for object in [kind("things.example.org"), root(NAMESPACE)] {
        let refused = account.would_take(&object).await;
        assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403), "{refused:?}");
    }
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_38_with_namespaces_the_operator_has_rights_in_these_and_works_in_no_other() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let admin = Objects::of(server.kubeconfig()).await;
    for name in ["team-a", "team-b", "team-c"] {
        admin.apply(&namespace(name)).await;
    }
    admin.apply(&root("team-c")).await;
    let operator = install(&server, (&admin, &binary), "namespaces").await;
    for name in ["team-a", "team-b"] {
        succeeds(&admin, name).await;
    }
    check_rights(&operator);
    let metadata = json!({"name": "root", "namespace": "team-c"});
    let left = json!({"apiVersion": API, "kind": "Installation", "metadata": metadata});
    let left = admin.expect(&left).await;
    assert_eq!(left["status"]["phase"], Value::Null, "{left:#}");
    // Nor could it: its account has no rights there.
    let account = format!("system:serviceaccount:{NAMESPACE}:orangery");
    let may = async |namespace: &str| {
        let attributes = json!({"namespace": namespace, "verb": "update", "group": "landscaper.gardener.cloud", "resource": "installations"});
        let spec = json!({"user": account, "resourceAttributes": attributes});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        let request = Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews");
        let request = request.header("content-type", "application/json").body(review.to_string().into_bytes());
        let answer: Value = admin.client().request(request.expect("a request")).await.expect("an answer");
        answer["status"]["allowed"] == true
    };
    let mut tries = interval(Duration::from_millis(100));
    while !may("team-a").await {
        tries.tick().await;
    }
    assert!(!may("team-c").await);
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_230_the_server_takes_whatever_the_chart_renders() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let admin = Objects::of(server.kubeconfig()).await;
    for name in [NAMESPACE, "team-a", "team-b"] {
        admin.apply(&namespace(name)).await;
    }
    let mut refused = Vec::new();
    for name in names() {
        for object in objects(&render(&name).await) {
            // Their definitions are the other operator's.
            if object["apiVersion"] == "monitoring.coreos.com/v1" {
                continue;
            }
            if let Err(error) = admin.would_take(&object).await {
                refused.push(format!("{name}: {} {}: {error}", object["kind"], object["metadata"]["name"]));
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    // It would not take just anything.
    let rendered = objects(&render("usual").await);
    let mut wrong = of_kind(&rendered, "Deployment").clone();
    wrong["spec"]["template"]["spec"]["topologySpread"] = json!([]);
    assert!(admin.would_take(&wrong).await.is_err());
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_231_a_second_release_is_refused_with_a_sentence_where_it_is_in_the_way_of_the_first() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let admin = Objects::of(server.kubeconfig()).await;
    for name in ["one", "two", "team-a", "team-b", "team-c"] {
        admin.apply(&namespace(name)).await;
    }
    let chart = repository().join("charts/orangery").to_string_lossy().into_owned();
    let helm = Helm::of(&server.kubeconfig());
    let arguments = |does: &'static str, release: &'static str, home: &'static str, values: &'static str| {
        [does, release, &chart, "--namespace", home, "--set", values].map(str::to_owned)
    };
    let does = async |of: [String; 7]| helm.does(&of.each_ref().map(String::as_str)).await;
    let refuses = async |of: [String; 7], sentence: &str| {
        let message = helm.refuses(&of.each_ref().map(String::as_str)).await;
        assert!(message.contains(sentence), "{message}");
    };
    let notes = does(arguments("install", "first", "one", "validation=false")).await;
    for told in [
        "a job before it upgrades the definitions",
        "helm uninstall first --namespace one",
        "orangery uninstall --check",
    ] {
        assert!(notes.contains(told), "{notes}");
    }
    refuses(
        arguments("install", "second", "two", "validation=false,namespaces={team-c}"),
        "release first in namespace one works on all namespaces of this cluster, and two operators may not work on the same; give \
         it a list of `namespaces` first, without those of this release",
    )
    .await;
    does(arguments("upgrade", "first", "one", "validation=false,definitions.upgrade=false,namespaces={team-a,team-b}"))
        .await;
    refuses(
        arguments("install", "second", "two", "validation=false"),
        "release first in namespace one works on team-a, team-b, and two operators may not work on the same; give this release a \
         list of `namespaces` without these",
    )
    .await;
    refuses(
        arguments("install", "second", "two", "validation=false,namespaces={team-c,team-b}"),
        "release one/first works on namespace team-b already, and two operators may not work on the same; take it from the \
         `namespaces` of one of them",
    )
    .await;
    refuses(
        arguments("install", "first", "two", "validation=false,namespaces={team-c}"),
        "release first of this chart is in namespace one already, and its ClusterRoles have that name; choose another name for \
         this release",
    )
    .await;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "deployitems.validation.landscaper.gardener.cloud"},
    });
    let brought = json!({"meta.helm.sh/release-name": "first", "meta.helm.sh/release-namespace": "one"});
    admin.annotate(&policy, brought).await;
    refuses(
        arguments("install", "second", "two", "namespaces={team-c}"),
        "release one/first brings the admission policies, which hold for the whole cluster; say validation=false for this one",
    )
    .await;
    does(arguments("install", "second", "two", "validation=false,namespaces={team-c}")).await;
    for (release, home) in [("second", "two"), ("first", "one")] {
        helm.does(&["uninstall", release, "--namespace", home]).await;
    }
}
