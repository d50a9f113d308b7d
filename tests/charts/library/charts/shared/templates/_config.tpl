{{- define "shared.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .root.Release.Name }}-{{ .root.Chart.Name }}
  labels:
    helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
data: {{- toYaml .data | nindent 2 }}
{{- end -}}
