{{/*
A job that is safe to repeat. As a hook it runs before the release changes; otherwise it is a part of the release, with
a hash in its name, because a job cannot be changed. The hash is of the pod, of the files that the pod mounts from the
chart, and of the revision: Helm repeats the job at each upgrade, and Argo CD, for which the revision is always 1, when
the job has changed. It has only 5 characters, because the names of jobs end at 63. The job uses the default
ServiceAccount without its token: a ServiceAccount of the release would not exist yet. Arguments: root, job, weight,
spec (of the pod), files (text, optional), retries (optional).
*/}}
{{- define "tollgate.job" -}}
{{- $of := dict "root" .root "component" .job -}}
{{- $hooks := .root.Values.jobs.hooks -}}
{{- $restartPolicy := $hooks | ternary "Never" "OnFailure" -}}
{{- $podMetadata := include "tollgate.podMetadata" $of -}}
{{- $hash := list .root.Release.Revision $podMetadata $restartPolicy .spec .files | toJson | sha256sum | trunc 5 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "tollgate.name" .root }}-{{ .job }}{{ $hooks | ternary "" (printf "-%s" $hash) }}
  labels: {{- include "tollgate.labels" $of | nindent 4 }}
  {{- if $hooks }}
  annotations: {{- include "tollgate.hook" .weight | nindent 4 }}
  {{- end }}
spec:
  # Failed pods stay with their logs until the next try.
  backoffLimit: {{ .retries | default ($hooks | ternary 4 20) }}
  activeDeadlineSeconds: {{ .root.Values.jobs.deadlineSeconds }}
  template:
    metadata: {{- $podMetadata | nindent 6 }}
    spec:
      restartPolicy: {{ $restartPolicy }}
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
