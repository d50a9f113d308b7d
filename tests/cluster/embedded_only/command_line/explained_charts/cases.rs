//! Charts, each with one way in which templates make fields of values.

use orangery_tests::chart;
use serde_json::{Value, json};

/// A chart with its values.
pub(super) struct ChartCase {
    pub(super) name: &'static str,
    chart: ChartSource,
    pub(super) values: Value,
    /// The object that is explained; `REL` stands for the name of the release.
    pub(super) object: &'static str,
    /// Values that a field depends on without their markers in it.
    pub(super) hidden: &'static [(&'static str, &'static [&'static str])],
}

/// Where a chart comes from.
enum ChartSource {
    /// The data of a ConfigMap, and a file with named parts.
    Data(&'static str, &'static str),
    /// A chart of `tests/charts`.
    Folder,
}

impl ChartCase {
    /// The chart, packed.
    pub(super) fn packed(&self) -> String {
        match self.chart {
            ChartSource::Folder => chart::of_folder(self.name),
            ChartSource::Data(data, parts) => {
                let map = format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Release.Name }}}}\ndata:\n  z: z\n{data}\n"
                );
                chart::packed("1.0.0", &[("map.yaml", &map), ("_parts.tpl", parts)])
            }
        }
    }
}

type Hidden = &'static [(&'static str, &'static [&'static str])];

fn parts(name: &'static str, data: &'static str, parts: &'static str, values: Value, hidden: Hidden) -> ChartCase {
    ChartCase { name, chart: ChartSource::Data(data, parts), values, object: "cm/REL", hidden }
}

fn data(name: &'static str, text: &'static str, values: Value, hidden: Hidden) -> ChartCase {
    parts(name, text, "", values, hidden)
}

fn folder(name: &'static str, object: &'static str, values: Value, hidden: Hidden) -> ChartCase {
    ChartCase { name, chart: ChartSource::Folder, values, object, hidden }
}

fn ab() -> Value {
    json!({"a": "marker-a", "b": "marker-b", "unused": "marker-unused"})
}

fn switch() -> Value {
    json!({"on": true, "a": "marker-a", "b": "marker-b"})
}

fn list() -> Value {
    json!({"list": ["marker-two", "marker-one"]})
}

fn map() -> Value {
    json!({"a": "marker-a", "map": {"x": "marker-x", "y": "marker-y"}})
}

/// All of them.
pub(super) fn cases() -> Vec<ChartCase> {
    [texts(), decisions(), lists(), named(), folders()].into_iter().flatten().collect()
}

fn texts() -> Vec<ChartCase> {
    vec![
        data("quote", "  a: {{ .Values.a | quote }}", ab(), &[]),
        data("two in one", "  a: {{ .Values.a }}-{{ .Values.b }}", ab(), &[]),
        data("printf", "  a: {{ printf \"%s/%s\" .Values.b .Values.a }}", ab(), &[]),
        data("upper", "  a: {{ .Values.a | upper }}", ab(), &[]),
        data("replace", "  a: {{ .Values.a | replace \"-\" \"_\" }}", ab(), &[("data.a", &["a"])]),
        data("base64", "  a: {{ .Values.a | b64enc }}", ab(), &[("data.a", &["a"])]),
        data("sha256", "  a: {{ .Values.a | sha256sum }}", ab(), &[("data.a", &["a"])]),
        data("hash of all", "  a: {{ .Values | toJson | sha256sum }}", ab(), &[("data.a", &["a", "b", "unused"])]),
        data("json", "  a: {{ .Values | toJson | quote }}", ab(), &[]),
        data("text of lines", "  a: |\n    {{ .Values.a }}\n    {{ .Values.b }}", ab(), &[]),
        data("indent", "  a: |\n{{ .Values.a | indent 4 }}", ab(), &[]),
        data("required", "  a: {{ required \"needed\" .Values.a }}", ab(), &[]),
        data("sum", "  a: {{ add .Values.n 1 | quote }}", json!({"n": 1}), &[("data.a", &["n"])]),
        data("number", "  a: {{ .Values.n | quote }}", json!({"n": 4001, "m": 4002}), &[]),
    ]
}

fn decisions() -> Vec<ChartCase> {
    vec![
        data("if", "  {{- if .Values.on }}\n  a: {{ .Values.a }}\n  {{- end }}", switch(), &[("data.a", &["on"])]),
        data(
            "else",
            "  a: {{ if .Values.on }}{{ .Values.a }}{{ else }}{{ .Values.b }}{{ end }}",
            switch(),
            &[("data.a", &["on"])],
        ),
        data("ternary", "  a: {{ ternary .Values.a .Values.b .Values.on }}", switch(), &[("data.a", &["on"])]),
        data("and", "  a: {{ and .Values.on .Values.a }}", switch(), &[("data.a", &["on"])]),
        data("default", "  a: {{ .Values.none | default .Values.a }}", ab(), &[]),
        data("default that is not taken", "  a: {{ .Values.b | default .Values.a }}", ab(), &[]),
        data("coalesce", "  a: {{ coalesce .Values.none .Values.b .Values.a }}", ab(), &[]),
        data("equal", "  a: {{ eq .Values.a \"marker-a\" | quote }}", ab(), &[("data.a", &["a"])]),
        data("fail", "  {{- if not .Values.a }}{{ fail \"no\" }}{{ end }}\n  b: {{ .Values.b }}", ab(), &[]),
        data("has a key", "  a: {{ hasKey .Values.map \"x\" | quote }}", map(), &[]),
    ]
}

fn lists() -> Vec<ChartCase> {
    vec![
        data(
            "range of a list",
            "  {{- range $i, $v := .Values.list }}\n  k{{ $i }}: {{ $v }}\n  {{- end }}",
            list(),
            &[],
        ),
        data("range of a map", "  {{- range $k, $v := .Values.map }}\n  {{ $k }}: {{ $v }}\n  {{- end }}", map(), &[]),
        data("yaml", "  {{- toYaml .Values.map | nindent 2 }}", map(), &[]),
        data("length", "  a: {{ len .Values.list | quote }}", list(), &[]),
        data("index", "  a: {{ index .Values.list 1 }}", list(), &[]),
        data("join", "  a: {{ .Values.list | join \",\" }}", list(), &[]),
        data("first of the sorted", "  a: {{ .Values.list | sortAlpha | first }}", list(), &[]),
        data("get", "  a: {{ get .Values.map \"y\" }}", map(), &[]),
        data("dig", "  a: {{ dig \"map\" \"x\" \"none\" (.Values | toYaml | fromYaml) }}", map(), &[]),
        data("merge", "  {{- toYaml (merge (dict \"x\" .Values.a) .Values.map) | nindent 2 }}", map(), &[]),
        data("with", "  {{- with .Values.map }}\n  a: {{ .x }}\n  {{- end }}", map(), &[]),
    ]
}

fn named() -> Vec<ChartCase> {
    let own = "{{- define \"app.text\" -}}{{ .Values.a }}-{{ .Chart.Name }}{{- end -}}";
    let given = "{{- define \"app.text\" -}}{{ .text }}{{- end -}}";
    let template = json!({"a": "{{ .Values.b }}", "b": "marker-b"});
    vec![
        parts("named part", "  a: {{ include \"app.text\" . }}", own, ab(), &[]),
        parts("named part of a dict", "  a: {{ include \"app.text\" (dict \"text\" .Values.b) }}", given, ab(), &[]),
        data("template in a value", "  a: {{ tpl .Values.a . }}", template, &[("data.a", &["a"])]),
    ]
}

fn folders() -> Vec<ChartCase> {
    let size = |text: &str| json!({"size": text});
    let mut users = size("marker-users");
    users["data"] = json!({"port": {"number": 5433}});
    let stores = json!({"orders": size("marker-orders"), "users": users, "global": {"registry": "marker-registry"}});
    let enabled = json!({"enabled": true});
    let web = json!({"image": "marker-image", "replicas": 4001, "annotations": {"a": "marker-annotation"},
        "service": {"type": "ClusterIP"}});
    vec![
        folder("library", "cm/REL-library", json!({"data": {"color": "marker-color", "size": "marker-size"}}), &[]),
        folder("subcharts", "cm/REL-summary", stores.clone(), &[]),
        folder("subcharts", "cm/REL-orders", stores, &[]),
        folder(
            "switches",
            "cm/REL",
            json!({"tags": {"backend": true}, "search": enabled, "cache": enabled}),
            &[("data.parts", &["tags.backend", "search.enabled", "cache.enabled"])],
        ),
        // Another text than the one that the schema lets be is not tried.
        folder("schema", "cm/REL", json!({"replicas": 7, "mode": "loud"}), &[("data.replicas", &["replicas"])]),
        folder("web", "deployment/REL", web.clone(), &[]),
        folder("web", "svc/REL", web, &[("spec.type", &["service.type"])]),
    ]
}
