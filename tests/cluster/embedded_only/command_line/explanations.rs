//! `orangery explain`: where fields of objects come from (C-243 to C-246), held against markers that each stand in one input alone.

use std::collections::BTreeSet;

use orangery_tests::{
    chart,
    tree::{
        any, ask, blueprint, executions, imports_cluster, in_phase, installation, mocks, on_cluster, subinstallation,
    },
};
use serde_json::{Value, json};

use super::{offline::document, plans::Stage};

const TEMPLATE: &str = "\
deployItems:
{% for name in imports.app.names %}
- name: item-{{ loop.index }}
  type: landscaper.gardener.cloud/kubernetes-manifest
  target: {import: cluster}
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    manifests:
    - policy: manage
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: {{ name }}
          namespace: default
        data:
          constant: always
{%- if imports.app.verbose %}
          level: debug
{%- endif %}
          size: \"{{ imports.app.size }}\"
          both: {{ imports.app.first }}-{{ imports.other }}
          where: {{ imports.cluster.metadata.name }}
    - policy: manage
      manifest:
        apiVersion: v1
        kind: Secret
        metadata: {name: {{ name }}-login, namespace: default}
        stringData: {password: {{ imports.app.password }}}
{% endfor %}
";

/// An Installation whose blueprint has [`TEMPLATE`] in a file.
fn of_template() -> Value {
    let mut imports = imports_cluster();
    let size = json!({"type": "object", "properties": {"size": {"enum": ["small"]}}});
    let data = [
        json!({"name": "app", "type": "data", "schema": size}),
        json!({"name": "other", "type": "data", "schema": {}}),
    ];
    imports.as_array_mut().unwrap().extend(data);
    let fields =
        json!({"imports": imports, "deployExecutions": [{"name": "d", "type": "Jinja", "file": "items.yaml"}]});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["blueprint"]["inline"]["filesystem"]["items.yaml"] = json!(TEMPLATE);
    root["spec"]["imports"]["data"] = json!([{"name": "app", "dataRef": "app"}, {"name": "other", "dataRef": "other"}]);
    root
}

fn data_object(name: &str, data: Value) -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DataObject", "metadata": {"name": name}, "data": data})
}

impl Stage {
    async fn explain(&self, arguments: &[&str]) -> Value {
        let explain = ["explain", "--kubeconfig", "kubeconfig", "-o", "json"];
        document(&self.binary.run(&[&explain[..], arguments].concat()).await)
    }

    async fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.binary.run(&[&["explain", "--kubeconfig", "kubeconfig"], arguments].concat()).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        ended.stderr
    }
}

/// A field of an explanation.
fn field<'e>(explanation: &'e Value, path: &str) -> &'e Value {
    let fields = explanation["fields"].as_array().unwrap();
    fields.iter().find(|field| field["path"] == path).unwrap_or_else(|| panic!("no {path}: {explanation}"))
}

/// The inputs of a field: kind, name and path of each.
fn inputs(field: &Value) -> Vec<String> {
    let text = |input: &Value, name: &str| input[name].as_str().unwrap_or_default().to_owned();
    let inputs = field["inputs"].as_array().unwrap().iter();
    inputs.map(|input| ["kind", "name", "path"].map(|name| text(input, name)).join(" ")).collect()
}

/// The lines of templates that made a field.
fn lines(field: &Value) -> Vec<String> {
    let places = field["config"].as_array().unwrap().iter().map(|config| &config["place"]);
    places.map(|place| format!("{}:{}", place["file"].as_str().unwrap_or_default(), place["line"])).collect()
}

#[tokio::test]
async fn c_243_each_field_names_the_line_that_made_it_and_the_inputs_that_it_depends_on() {
    let stage = Stage::start().await;
    let mut app = json!({"names": ["one", "two"], "verbose": true, "size": "small", "first": "a", "password": "hunter2hunter2", "unused": 1});
    stage.cluster.apply(&data_object("app", app.clone())).await;
    stage.cluster.apply(&data_object("other", json!("b"))).await;
    stage.cluster.apply(&of_template()).await;
    stage.cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    let explanation = stage.explain(&["configmap/two"]).await;
    let has = |path: &str| {
        let field = field(&explanation, path);
        (lines(field), inputs(field))
    };
    let line = |begin: &str| {
        let number = TEMPLATE.lines().position(|line| line.trim_start().starts_with(begin)).unwrap();
        vec![format!("items.yaml:{}", number + 1)]
    };
    let of = |inputs: &[&str]| inputs.iter().map(|input| (*input).to_owned()).collect::<Vec<String>>();
    assert_eq!(has("data.constant"), (line("constant:"), of(&[])));
    assert_eq!(has("data.level"), (line("level:"), of(&["import app verbose"])));
    assert_eq!(has("data.both"), (line("both:"), of(&["import app first", "import other "])));
    assert_eq!(has("data.where"), (line("where:"), of(&["target cluster metadata.name"])));
    assert_eq!(has("metadata.name"), (line("name: {{"), of(&["import app names[1]"])));
    assert_eq!(has("data.size"), (line("size:"), of(&[])));
    let not_tried = explanation["notTried"].as_array().unwrap();
    let [size] = not_tried.as_slice() else { panic!("{not_tried:?}") };
    assert_eq!(size["path"], "size");
    assert!(size["why"].as_str().unwrap().contains("import \"app\""), "{size}");

    let about = |field: &str| explanation[field].clone();
    assert_eq!(about("installations"), json!(["root"]));
    assert_eq!((about("execution"), about("item")["item"].clone()), (json!("root"), json!("item-2")));
    assert_eq!(about("component"), "manifest 0.1.0");
    assert_eq!(field(&explanation, "data.both")["managers"][0]["manager"], "orangery");

    // What is secret is told from nothing but where it comes from.
    let login = stage.explain(&["secret/one-login", "stringData"]).await;
    assert_eq!(login["fields"].as_array().unwrap().len(), 1);
    let password = field(&login, "stringData.password");
    assert_eq!(password["value"], "(hidden)");
    assert_eq!((lines(password), inputs(password)), (line("stringData:"), of(&["import app password"])));
    assert!(!login.to_string().contains("hunter2"), "{login}");
    let text = stage.binary.run(&["explain", "--kubeconfig", "kubeconfig", "cm/one", "/data/both"]).await.stdout;
    let expected = "\ndata.both: \"a-b\"\n  made by       items.yaml:23 (deployExecutions \"d\"), config manifests[0].manifest.data.both\n  \
                    depends on    import app, first\n  depends on    import other\n  managed by    orangery (";
    assert!(text.contains(expected), "{text}");
    stage.cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    let why = stage.refused(&["cm/one", "data.none"]).await;
    let expected = "error: ConfigMap default/one has no field data.none; its fields are shown without one, and orangery plan shows all\n";
    assert_eq!(why, expected);
    let why = stage.refused(&["cm/three"]).await;
    assert!(why.starts_with("error: no deploy item in any namespace has configmap/three in its inventory; "), "{why}");
    // The name leaves the imports: the next job deletes it.
    app["names"] = json!(["one"]);
    stage.cluster.apply(&data_object("app", app)).await;
    let why = stage.refused(&["cm/two"]).await;
    assert!(why.contains("is not rendered any more, and the next job deletes it"), "{why}");
}

const CHART: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
  labels: {{ .Values.labels | toYaml | nindent 4 }}
data:
  host: {{ .Values.host | quote }}
  {{- if .Values.extra.enabled }}
  extra: {{ .Values.extra.text | upper }}
  {{- end }}
  all: {{ .Values | toJson | sha256sum }}
";

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_243_each_value_of_a_chart_is_named_by_the_fields_that_its_marker_is_in() {
    let stage = Stage::start().await;
    let values = json!({
        "host": "marker-host", "labels": {"a": "marker-a", "b": "marker-b"}, "extra": {"enabled": true, "text": "marker-extra"},
        "none": "marker-none",
    });
    let item = json!({
        "name": "chart", "type": chart::TYPE, "target": {"import": "cluster"},
        "config": {
            "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
            "name": "rel", "namespace": "default", "chart": {"archive": {"raw": chart::packed("1.0.0", &[("map.yaml", CHART)])}},
            "values": "VALUES",
        },
    });
    let mut imports = imports_cluster();
    imports.as_array_mut().unwrap().push(json!({"name": "values", "type": "data", "schema": {"type": "object"}}));
    let template = json!({"deployItems": [item]}).to_string().replace("\"VALUES\"", "{{ imports.values | tojson }}");
    let fields =
        json!({"imports": imports, "deployExecutions": [{"name": "d", "type": "Jinja", "template": template}]});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["imports"]["data"] = json!([{"name": "values", "dataRef": "values"}]);
    stage.cluster.apply(&data_object("values", values)).await;
    stage.cluster.apply(&root).await;
    stage.cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    let explanation = stage.explain(&["cm/rel-config"]).await;
    let of = |path: &str| inputs(field(&explanation, path)).into_iter().collect::<BTreeSet<_>>();
    let set = |paths: &[&str]| paths.iter().map(|path| format!("import values {path}")).collect::<BTreeSet<_>>();
    assert_eq!(of("data.host"), set(&["host"]));
    assert_eq!((of("metadata.labels.a"), of("metadata.labels.b")), (set(&["labels.a"]), set(&["labels.b"])));
    assert_eq!(of("data.extra"), set(&["extra.enabled", "extra.text"]));
    assert_eq!(of("data.all"), set(&["host", "labels.a", "labels.b", "extra.enabled", "extra.text", "none"]));
    assert_eq!(of("kind"), set(&[]));
    // What of the configuration a field comes from, and the line of the blueprint that has it.
    let config = &field(&explanation, "data.extra")["config"];
    let paths: Vec<&str> = config.as_array().unwrap().iter().filter_map(|config| config["path"].as_str()).collect();
    assert_eq!(paths, ["values.extra.enabled", "values.extra.text"]);
    assert_eq!(lines(field(&explanation, "data.extra")), ["blueprint.yaml:1", "blueprint.yaml:1"]);
    let name = &field(&explanation, "metadata.name")["config"];
    assert_eq!(name[0]["path"], "name", "{name}");
    // The line of the chart's template.
    for (path, begin) in
        [("data.host", "host:"), ("data.extra", "extra:"), ("metadata.labels.b", "labels:"), ("kind", "kind:")]
    {
        let line = CHART.lines().position(|line| line.trim_start().starts_with(begin)).unwrap() + 1;
        assert_eq!(
            field(&explanation, path)["chart"],
            json!({"file": "app/templates/map.yaml", "line": line}),
            "{path}"
        );
    }
}

#[tokio::test]
async fn c_243_what_a_deploy_item_has_exported_is_an_input_of_what_comes_later() {
    let stage = Stage::start().await;
    let made = json!([{"name": "made", "type": "data", "schema": {"type": "string"}}]);
    let template = "{\"exports\": {\"made\": {{ values.deployitems.mock.content | tojson }}}}";
    let fields = json!({
        "exports": made,
        "deployExecutions": executions(&[mocks("mock", &[], "Succeeded", "exported")]),
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
    });
    let mut maker = subinstallation("maker", &blueprint(fields));
    let mut imports = imports_cluster();
    imports.as_array_mut().unwrap().extend(made.as_array().unwrap().clone());
    let leaf = orangery_tests::tree::deploys("leaf", &[], "{{ imports.made }}");
    let mut taker = on_cluster(subinstallation(
        "taker",
        &blueprint(json!({"imports": imports, "deployExecutions": executions(&[leaf])})),
    ));
    let bound = json!([{"name": "made", "dataRef": "made"}]);
    maker["exports"] = json!({"data": bound});
    taker["imports"]["data"] = bound;
    let fields = json!({"imports": imports_cluster(), "subinstallations": [maker, taker]});
    stage.cluster.apply(&on_cluster(installation("root", &blueprint(fields)))).await;
    stage.cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    let explanation = stage.explain(&["cm/leaf", "data.content"]).await;
    let content = field(&explanation, "data.content");
    assert_eq!(
        (content["value"].as_str(), inputs(content)),
        (Some("exported"), vec!["export maker/mock content".to_owned()])
    );
    let installations = explanation["installations"].as_array().unwrap();
    assert_eq!((installations.len(), &installations[1]), (2, &json!("root")), "from its own up to the root");

    // An item that stands for itself has no inputs and no templates, and is explained from its configuration.
    let own = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem", "metadata": {"name": "own"},
        "spec": {
            "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"name": "cluster", "namespace": "default"},
            "config": {
                "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
                "manifests": [{"policy": "manage", "manifest": {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "leaf", "namespace": "kube-public"}, "data": {"content": "mine"}}}],
            },
        },
    });
    chart::deploy(&stage.cluster, &own).await;
    stage.cluster.expect(&in_phase("DeployItem", "own", "Succeeded")).await;
    let why = stage.refused(&["cm/leaf"]).await;
    assert!(
        why.contains("several deploy items have configmap/leaf: ")
            && why.contains("default/own, with the object in kube-public"),
        "{why}"
    );
    let explanation = stage.explain(&["cm/leaf", "-n", "kube-public", "data"]).await;
    let expected = json!({
        "path": "data.content", "value": "mine", "inputs": [],
        "config": [{"path": "manifests[0].manifest.data.content"}],
        "managers": explanation["fields"][0]["managers"],
    });
    assert_eq!(explanation["fields"], json!([expected]));
    assert_eq!(stage.explain(&["cm/leaf", "--item", "own", "data"]).await["fields"], explanation["fields"]);
    assert_eq!((explanation["installations"].clone(), explanation.get("execution")), (json!([]), None));
    // It writes nothing and begins no job.
    let job = |item: Value| item["status"]["jobID"].clone();
    let before = job(stage.cluster.expect(&any("Installation", "root")).await);
    stage.explain(&["cm/leaf", "-n", "default"]).await;
    assert_eq!(job(stage.cluster.expect(&any("Installation", "root")).await), before);
    ask(&stage.cluster, "root").await;
}
