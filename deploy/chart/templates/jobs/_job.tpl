{{/*
A job that is safe to repeat. As a hook it runs before the release changes; otherwise it is a part of the release, with
the revision in its name, because a job cannot be changed. It uses the default ServiceAccount without its token: a
ServiceAccount of the release would not exist yet. Arguments: root, job, weight, spec (of the pod), retries (optional).
*/}}
{{- define "tollgate.job" -}}
{{- $of := dict "root" .root "component" .job -}}
{{- $hooks := .root.Values.jobs.hooks -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "tollgate.name" .root }}-{{ .job }}{{ $hooks | ternary "" (printf "-%d" .root.Release.Revision) }}
  labels: {{- include "tollgate.labels" $of | nindent 4 }}
  {{- if $hooks }}
  annotations: {{- include "tollgate.hook" .weight | nindent 4 }}
  {{- end }}
spec:
  # Failed pods stay with their logs until the next try.
  backoffLimit: {{ .retries | default ($hooks | ternary 4 20) }}
  activeDeadlineSeconds: {{ .root.Values.jobs.deadlineSeconds }}
  template:
    metadata: {{- include "tollgate.podMetadata" $of | nindent 6 }}
    spec:
      restartPolicy: {{ $hooks | ternary "Never" "OnFailure" }}
      {{- .spec | nindent 6 }}
{{- end }}

{{/* Annotations of an object that exists only before an install or upgrade. Argument: the weight. */}}
{{- define "tollgate.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "tollgate.jobResources" -}}
resources:
  requests: { cpu: 50m, memory: 96Mi }
  limits: { memory: 512Mi }
{{- end }}
