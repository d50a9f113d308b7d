{{/* What no schema tells: values that do not go together, and releases that would be in each other's way. What is in the cluster
     is known where Helm installs or upgrades, and not where it only renders. */}}
{{- define "orangery.check" -}}
{{- range list "serviceMonitor" "podMonitor" "prometheusRule" "dashboard" }}
{{- if and (get $.Values.metrics .).enabled (not $.Values.metrics.enabled) }}
{{- fail (printf "metrics.%s.enabled asks for figures that metrics.enabled turns off; say metrics.enabled=true, too" .) }}
{{- end }}
{{- end }}
{{- if and .Values.metrics.podMonitor.enabled (eq .Values.metrics.authentication "token") (not .Values.metrics.podMonitor.tokenSecret) }}
{{- fail "metrics.podMonitor.enabled has Prometheus ask without a token; say which Secret has one by metrics.podMonitor.tokenSecret" }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled }}
{{- fail "metrics.serviceMonitor and metrics.podMonitor are both enabled, and each figure would be fetched twice; turn one of them off" }}
{{- end }}
{{- range .Values.extraEnv }}
{{- if has .name (list "ORANGERY_LOG" "XDG_CACHE_HOME" "MIMALLOC_ARENA_EAGER_COMMIT" "POD_NAME" "POD_UID") }}
{{- fail (printf "extraEnv names %s, which the chart sets; take it away%s" .name (eq .name "ORANGERY_LOG" | ternary ", and use log.level" "")) }}
{{- end }}
{{- end }}
{{- range $label, $_ := include "orangery.labels" . | fromYaml }}
{{- if hasKey $.Values.podLabels $label }}
{{- fail (printf "podLabels names %s, by which the chart finds its pods; take it away" $label) }}
{{- end }}
{{- end }}
{{- if .Values.rbac.create }}
{{- $self := printf "%s/%s" .Release.Namespace .Release.Name }}
{{- range (lookup "apps/v1" "Deployment" "" "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $release := get $annotations "meta.helm.sh/release-name" }}
{{- $other := printf "%s/%s" .metadata.namespace $release }}
{{- if and $release (eq (get $labels "app.kubernetes.io/name") "orangery") (hasPrefix "orangery-" (get $labels "helm.sh/chart")) (ne $other $self) }}
{{- if eq $release $.Release.Name }}
{{- fail (printf "release %s of this chart is in namespace %s already, and its ClusterRoles have that name; choose another name for this release" $release .metadata.namespace) }}
{{- end }}
{{- $theirs := list }}
{{- range .spec.template.spec.containers }}
{{- range .args }}
{{- if hasPrefix "--namespace=" . }}
{{- $theirs = append $theirs (trimPrefix "--namespace=" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if not $theirs }}
{{- fail (printf "release %s in namespace %s works on all namespaces of this cluster, and two operators may not work on the same; give it a list of `namespaces` first, without those of this release" $release .metadata.namespace) }}
{{- end }}
{{- if not $.Values.namespaces }}
{{- fail (printf "release %s in namespace %s works on %s, and two operators may not work on the same; give this release a list of `namespaces` without these" $release .metadata.namespace (join ", " $theirs)) }}
{{- end }}
{{- range $.Values.namespaces }}
{{- if has . $theirs }}
{{- fail (printf "release %s works on namespace %s already, and two operators may not work on the same; take it from the `namespaces` of one of them" $other .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.validation }}
{{- $self := printf "%s/%s" .Release.Namespace .Release.Name }}
{{- $policy := lookup "admissionregistration.k8s.io/v1" "ValidatingAdmissionPolicy" "" "deployitems.validation.landscaper.gardener.cloud" }}
{{- with $policy }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $other := printf "%s/%s" (get $annotations "meta.helm.sh/release-namespace") (get $annotations "meta.helm.sh/release-name") }}
{{- if and (ne $other "/") (ne $other $self) }}
{{- fail (printf "release %s brings the admission policies, which hold for the whole cluster; say validation=false for this one" $other) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
