{{- define "hooks.job" }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .root.Release.Name }}-{{ .name }}
  annotations:
    helm.sh/hook: {{ .hook | quote }}
    helm.sh/hook-weight: {{ .weight | default 0 | quote }}
    {{- with .delete }}
    helm.sh/hook-delete-policy: {{ . | quote }}
    {{- end }}
    {{- if eq .root.Values.failing .name }}
    simulate.orangery.dev/fail: {{ printf "%s fails as it was told" .name | quote }}
    {{- end }}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: work
        image: registry.example.org/work:1
        args: [{{ .name | quote }}]
{{- end }}
