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

{{/* The labels of the pod of `helm test`: nothing that selects the operator's pods selects it. */}}
{{- define "orangery.testLabels" -}}
app.kubernetes.io/name: orangery-test
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
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
