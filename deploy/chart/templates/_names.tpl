{{/* Prefix of all names, of at most 40 characters. Names of Services begin with a letter and have no dot. */}}
{{- define "tollgate.name" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z][a-z0-9-]*$" $name) -}}
{{- fail (printf "%s cannot be the prefix of Service names: set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* The name of the release as a label. YAML would read some names as a number. */}}
{{- define "tollgate.instance" -}}
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
{{- end }}

{{/* Labels that select the pods of a component. Arguments: root, component. */}}
{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
{{ include "tollgate.instance" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of an object. Arguments: root, component. */}}
{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Name and labels of an object of a component. Arguments: root, component. */}}
{{- define "tollgate.metadata" -}}
name: {{ include "tollgate.name" .root }}-{{ .component }}
labels: {{- include "tollgate.labels" . | nindent 2 }}
{{- end }}

{{/* One of our images. Arguments: root, image. */}}
{{- define "tollgate.image" -}}
{{- $image := .root.Values.image -}}
{{- $version := printf ":%s" ($image.tag | default .root.Chart.AppVersion) -}}
{{- with get ($image.digests | default dict) .image }}{{ $version = printf "@%s" . }}{{ end -}}
image: {{ printf "%s/%s%s" $image.repository .image $version | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{/* The host of a server of devStores. Arguments: root, server. */}}
{{- define "tollgate.devHost" -}}
{{ include "tollgate.name" .root }}-{{ .server }}
{{- end }}

{{- define "tollgate.brokers" -}}
{{- if .Values.devStores.enabled -}}
{{ include "tollgate.devHost" (dict "root" . "server" "kafka") }}:9092
{{- else -}}
{{ required "kafka.brokers is required" .Values.kafka.brokers }}
{{- end -}}
{{- end }}

{{- define "tollgate.configMap" -}}
{{- .Values.existingConfigMap | default (printf "%s-config" (include "tollgate.name" .)) -}}
{{- end }}

{{/* Services, each with a Deployment. */}}
{{- define "tollgate.services" -}}
{{- concat (list "gateway" "auth" "metering" "billing") (.Values.console.enabled | ternary (list "console") list) | join "," -}}
{{- end }}

{{/* Services that send traces. */}}
{{- define "tollgate.traced" -}}
gateway,metering,billing
{{- end }}

{{/* Where browsers reach the console. A wildcard is no host of a URL. */}}
{{- define "tollgate.consoleUrl" -}}
{{- $hosts := list -}}
{{- $scheme := "https" -}}
{{- if .Values.ingress.enabled -}}
{{- $hosts = list (required "ingress.host is required" .Values.ingress.host) -}}
{{- $scheme = ternary "https" "http" (not (empty .Values.ingress.tlsSecret)) -}}
{{- else if .Values.httpRoute.enabled -}}
{{- $hosts = .Values.httpRoute.hostnames -}}
{{- end -}}
{{- $host := "" -}}
{{- range reverse $hosts }}{{- if not (hasPrefix "*" .) }}{{- $host = . }}{{- end }}{{- end -}}
{{- if .Values.console.url -}}
{{ .Values.console.url }}
{{- else if $host -}}
{{ $scheme }}://{{ $host }}
{{- else if $hosts -}}
{{- fail "console.url is required: the Ingress or HTTPRoute has only hosts with a wildcard" -}}
{{- else -}}
http://localhost:8082
{{- end -}}
{{- end }}

{{/*
Seconds from the signal until the kubelet kills a console: lame duck, 15 s for its requests, which take milliseconds,
and as much to close connections and for a slow machine as a gateway has.
*/}}
{{- define "tollgate.consoleGraceSeconds" -}}
{{- add (int .Values.gateway.lameDuckSeconds) 35 -}}
{{- end }}

{{/*
Seconds from the signal until the kubelet kills a gateway: lame duck and drain, then at most 15 s to publish usage and
to close connections (docs/operating/distributed.md, Stop), and 5 s for a slow machine.
*/}}
{{- define "tollgate.gatewayGraceSeconds" -}}
{{- add (int .Values.gateway.lameDuckSeconds) (int .Values.gateway.drainSeconds) 20 -}}
{{- end }}
