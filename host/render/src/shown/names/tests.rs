use super::*;

/// The paths that the line with `!` reads, as `imports.list[].name`; `[*]` stands for entries of a map too.
fn told(engine: &str, template: &str) -> Vec<String> {
    let line = template.lines().position(|line| line.contains('!')).unwrap() + 1;
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Item => "[]".to_owned(),
        Step::Entry => "[*]".to_owned(),
    };
    let path = |path: Path| path.iter().map(step).collect::<String>().trim_start_matches('.').to_owned();
    read(engine, template, line).into_iter().map(path).collect()
}

fn go(template: &str) -> Vec<String> {
    told("GoTemplate", template)
}

fn jinja(template: &str) -> Vec<String> {
    told("Jinja", template)
}

const NOTHING: [&str; 0] = [];

#[test]
fn gotemplate_follows_variables() {
    assert_eq!(go("{{ $x := .imports.y }}\n! {{ $x.z }} {{ $x }} {{ $ }}"), ["imports.y.z", "imports.y"]);
    assert_eq!(go("{{- $x := $.values -}}{{ $y := ($x.a) }}\n! {{ $y.b | quote }}"), ["values.a.b"]);
    assert_eq!(go("{{ $x := .imports.a }}{{ if .b }}{{ $x := .imports.c }}{{ end }}\n! {{ $x }}"), ["imports.a"]);
    assert_eq!(go("{{ if $x := .imports.a }}\n! {{ $x.b }}{{ end }}"), ["imports.a.b"]);
}

#[test]
fn gotemplate_follows_the_dot() {
    assert_eq!(go("! {{ .imports.a }} {{ $.imports.b }} {{ .cd.x }} {{ .imports }}"), ["imports.a", "imports.b"]);
    assert_eq!(
        go("{{ with .imports.a }}\n! {{ .b }} {{ . }} {{ $.imports.c }}\n{{ end }}"),
        ["imports.a.b", "imports.a", "imports.c"]
    );
    assert_eq!(go("{{ with .imports.a }}{{ else }}\n! {{ .imports.c }}"), ["imports.c"]);
    assert_eq!(go("{{ with .imports.a }}{{ else with .imports.b }}\n! {{ .c }}"), ["imports.b.c"]);
    assert_eq!(go("{{ with .imports.a }}{{ end }}\n! {{ .imports.c }}"), ["imports.c"]);
    assert_eq!(go("{{ with $x := .imports.a }}\n! {{ .b }} {{ $x.c }}"), ["imports.a.b", "imports.a.c"]);
    assert_eq!(go("{{ block \"n\" .imports.a }}\n! {{ .b }} {{ $.c }}"), ["imports.a.b", "imports.a.c"]);
}

#[test]
fn gotemplate_follows_loops() {
    assert_eq!(go("{{ range .imports.l }}\n! {{ .a }}"), ["imports.l[*].a"]);
    assert_eq!(go("{{ range $x := .imports.l }}\n! {{ $x.a }} {{ .b }}"), ["imports.l[*].a", "imports.l[*].b"]);
    assert_eq!(go("{{ range $i, $x := .imports.l }}{{ range $x.m }}\n! {{ .a }} {{ $i }}"), ["imports.l[*].m[*].a"]);
}

#[test]
fn gotemplate_does_not_follow_what_is_computed_or_changes() {
    assert_eq!(go("{{ $x := .imports.a | default .imports.b }}\n! {{ $x.c }}"), NOTHING);
    assert_eq!(go("{{ $x := .imports.a }}\n! {{ $x.c }}\n{{ $x = .imports.b }}"), NOTHING);
    assert_eq!(go("{{ with index .imports.l 0 }}\n! {{ .a }} {{ (index .imports.l 1).b }}"), ["imports.l"]);
    assert_eq!(go("{{ $x := .imports.a }}{{ define \"d\" }}\n! {{ $x.b }} {{ .c }} {{ .imports.e }}"), ["imports.e"]);
    assert_eq!(go("! {{ \".imports.a\" }}{{/* it's .imports.b */}} .imports.c `{{ `.imports.d` }}"), NOTHING);
    assert_eq!(go("! {{ $unknown.a }}{{ end }}{{ .imports.b }}"), ["imports.b"]);
}

#[test]
fn jinja_follows_variables() {
    assert_eq!(
        jinja("{% set x = imports.y %}\n! {{ x.z }} {{ x }} {{ values.a }}"),
        ["imports.y.z", "imports.y", "values.a"]
    );
    assert_eq!(
        jinja("{%- with x = imports.y -%}\n! {{ x.z | default(x.w) }}{% endwith %}"),
        ["imports.y.z", "imports.y.w"]
    );
    assert_eq!(jinja("{% with x = imports.y %}{% endwith %}\n! {{ x.z }}"), NOTHING);
    assert_eq!(jinja("! {{ f(imports=imports.a.items()) }}{{ imports.b(1) }} {{ 1 | values.x }}"), ["imports.a"]);
}

#[test]
fn jinja_follows_loops() {
    assert_eq!(jinja("{% for x in imports.l if x.ok %}\n! {{ x.a }} {{ loop.index }}"), ["imports.l[].a"]);
    assert_eq!(jinja("{% for k, v in imports.m | items %}\n! {{ v.a }} {{ k.b }}"), ["imports.m[*].a"]);
    assert_eq!(jinja("{% for x in imports.l %}{% for y in x.m %}\n! {{ y.a }}"), ["imports.l[].m[].a"]);
    assert_eq!(jinja("{% for x in imports.l %}{% else %}\n! {{ x.a }}"), NOTHING);
    assert_eq!(jinja("{% for x in imports.l %}{% endfor %}\n! {{ x.a }}"), NOTHING);
}

#[test]
fn jinja_does_not_follow_what_is_computed_or_changes() {
    assert_eq!(jinja("{% set x = imports.a | upper %}\n! {{ x.b }}"), NOTHING);
    assert_eq!(jinja("{% set x = imports.a %}\n! {{ x.b }}\n{% set x = imports.c %}"), NOTHING);
    assert_eq!(jinja("{% if a %}{% set x = imports.a %}{% endif %}\n! {{ x.b }}"), NOTHING);
    assert_eq!(jinja("{% set imports %}t{% endset %}\n! {{ imports.b }}"), NOTHING);
    assert_eq!(jinja("{% macro m(imports, b=1) %}\n! {{ imports.a }}{% endmacro %}"), NOTHING);
    assert_eq!(jinja("{% set a, imports = imports.b %}\n! {{ a.c }} {{ imports.d }}"), NOTHING);
    assert_eq!(jinja("{% raw %}{% endraw %}{# {% set imports = 1 %} #}\n! {{ imports.l[0].x }}"), ["imports.l"]);
}

#[test]
fn other_engines_are_read_as_they_are_written() {
    assert_eq!(told("Spiff", "! a: \"(( 'x' imports.a.b ))\" myimports.c it's values.d."), ["imports.a.b", "values.d"]);
}
