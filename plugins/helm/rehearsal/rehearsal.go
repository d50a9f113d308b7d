// Package rehearsal plans a chart that touches what most charts touch. It runs when the component is built, so that
// regular expressions, tables of functions and reflection are warm in every instance.
package rehearsal

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"time"

	"orangery.dev/helm/plan"
	"orangery.dev/helm/wire"
)

var files = []struct{ name, content string }{
	{"rehearsal/Chart.yaml", "apiVersion: v2\nname: rehearsal\nversion: 1.0.0\nappVersion: \"1.0\"\nkubeVersion: '>=1.20.0-0'\n"},
	{"rehearsal/values.yaml", `# Values
replicas: 2
image: {repository: example.org/app, tag: ""}
service: {type: ClusterIP, port: 80}
labels: {}
config: |
  a: b
ingress: {enabled: true, hosts: [{host: a.example.org, paths: [/]}]}
`},
	{"rehearsal/values.schema.json", `{"$schema": "https://json-schema.org/draft-07/schema#", "type": "object",
"properties": {"replicas": {"type": "integer", "minimum": 0}, "image": {"type": "object", "required": ["repository"]}}}`},
	{"rehearsal/templates/NOTES.txt", "{{ .Release.Name }} is at {{ .Values.service.port }}\n"},
	{"rehearsal/templates/_names.tpl", `{{- define "rehearsal.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- define "rehearsal.labels" -}}
app.kubernetes.io/name: {{ include "rehearsal.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
`},
	{"rehearsal/templates/deployment.yaml", `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "rehearsal.name" . }}
  labels: {{- include "rehearsal.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ include "rehearsal.name" . }}}}
  template:
    metadata:
      labels: {app: {{ include "rehearsal.name" . }}}
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
    spec:
      containers:
      - name: {{ .Chart.Name }}
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        ports: [{name: http, containerPort: {{ .Values.service.port | int }}}]
`},
	{"rehearsal/templates/config.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-config}
data:
  config: {{ tpl .Values.config . | quote }}
  list: {{ .Values.ingress.hosts | toJson | quote }}
  {{- if semverCompare ">=1.20-0" .Capabilities.KubeVersion.Version }}
  new: {{ ternary "yes" "no" (.Capabilities.APIVersions.Has "apps/v1") }}
  {{- end }}
  found: {{ (lookup "v1" "ConfigMap" .Release.Namespace "other") | toYaml | b64enc }}
`},
	{"rehearsal/templates/service.yaml", `apiVersion: v1
kind: Service
metadata:
  name: {{ include "rehearsal.name" . }}
spec:
  type: {{ .Values.service.type }}
  ports: [{port: {{ .Values.service.port }}, targetPort: http}]
---
{{- if .Values.ingress.enabled }}
{{- range $i, $host := .Values.ingress.hosts }}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: {{ printf "%s-%d" $.Release.Name $i }}}
spec: {rules: [{host: {{ required "a host" $host.host | lower }}}]}
{{- end }}
{{- end }}
`},
	{"rehearsal/templates/hook.yaml", `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "1"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
`},
}

// Run plans the chart once.
func Run() error {
	packed, err := pack()
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
		"name": "rehearsal", "namespace": "default", "values": map[string]any{"replicas": 3},
		"chart": map[string]any{"archive": map[string]any{"raw": packed}},
	})
	if err != nil {
		return err
	}
	proposal, err := plan.Plan(nowhere{}, wire.Item{
		Name: "rehearsal", Namespace: "default", Job: "rehearsal", Config: config, Now: time.Unix(1_700_000_000, 0).UTC(),
	})
	if err != nil {
		return err
	}
	_, err = json.Marshal(proposal)
	return err
}

func pack() ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(file.content)); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return packed.Bytes(), err
}

// nowhere is the host of the rehearsal: an empty cluster.
type nowhere struct{}

var errNowhere = errors.New("there is no host while the component is built")

func (nowhere) GetMany(keys []wire.Key) ([]map[string]any, error) {
	return make([]map[string]any, len(keys)), nil
}
func (nowhere) List(wire.Selection) ([]map[string]any, error)        { return nil, nil }
func (nowhere) Version() (string, error)                             { return "v1.33.0", nil }
func (nowhere) OCI(string) (wire.Artifact, error)                    { return nil, errNowhere }
func (nowhere) URL(string) (wire.Artifact, error)                    { return nil, errNowhere }
func (nowhere) HelmRepository(_, _, _ string) (wire.Artifact, error) { return nil, errNowhere }
func (nowhere) ComponentResource(string) (wire.Artifact, error)      { return nil, errNowhere }
func (nowhere) Trace(string)                                         {}
func (nowhere) Discover() ([]wire.APIResource, error) {
	return []wire.APIResource{
		{APIVersion: "v1", Kind: "ConfigMap", Namespaced: true}, {APIVersion: "v1", Kind: "Service", Namespaced: true},
		{APIVersion: "v1", Kind: "Secret", Namespaced: true}, {APIVersion: "apps/v1", Kind: "Deployment", Namespaced: true},
		{APIVersion: "batch/v1", Kind: "Job", Namespaced: true},
		{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Namespaced: true},
	}, nil
}
