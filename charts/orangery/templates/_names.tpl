{{/* The name of everything: that of the release. */}}
{{- define "orangery.name" -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "orangery.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "orangery.name" .) }}
{{- end }}

{{/* The labels that select the pods. */}}
{{- define "orangery.selector" -}}
app.kubernetes.io/name: orangery
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of what is there for a while: nothing that selects the operator's pods selects it. */}}
{{- define "orangery.labelsBeside" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "orangery.labels" -}}
{{ include "orangery.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "orangery.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The configuration of the container deployer. Its own containers are those of the operator's image. */}}
{{- define "orangery.containers" -}}
{{- $own := dict "image" (include "orangery.image" .) "imagePullPolicy" .Values.image.pullPolicy }}
{{- $configuration := dict "apiVersion" "container.deployer.landscaper.gardener.cloud/v1alpha1" "kind" "Configuration" }}
{{- $_ := set $configuration "identity" (include "orangery.name" .) }}
{{- with .Values.containers.namespace }}{{ $_ := set $configuration "namespace" . }}{{ end }}
{{- with .Values.containers.defaultImage }}{{ $_ := set $configuration "defaultImage" (dict "image" .) }}{{ end }}
{{- $_ := set $configuration "initContainer" $own }}
{{- $_ := set $configuration "waitContainer" $own }}
{{- $_ := set $configuration "stateSecrets" .Values.containers.stateSecrets }}
{{- $_ := set $configuration "debug" (dict "keepPod" .Values.containers.keepPods) }}
{{- toYaml $configuration }}
{{- end }}

{{/* What makes an object a part of an upgrade alone: it is made before, in the order of this weight, and goes after. */}}
{{- define "orangery.beforeUpgrade" -}}
helm.sh/hook: pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
