{{/*
The variables of a service: those of the chart, and those of its value `env`. A name of both is refused, because an
upgrade does not merge such a list reliably, and because other objects depend on the value, such as the time to stop on
the drain. A setting and its file count as one. Arguments: root, service.
*/}}
{{- define "tollgate.serviceEnv" -}}
{{- $own := include "tollgate.ownEnv" . -}}
{{- $names := list -}}
{{- range fromYamlArray $own }}{{- $names = append $names (trimSuffix "_FILE" .name) }}{{- end -}}
{{- $env := (get .root.Values .service).env | default dict -}}
{{- range $name, $_ := omit $env "NODE_OPTIONS" "TOLLGATE_TRUSTED_PROXIES" }}
{{- if has (trimSuffix "_FILE" $name) $names }}
{{- fail (printf "%s.env.%s: the chart sets it" $.service $name) }}
{{- end }}
{{- end -}}
{{- $own }}
{{- include "tollgate.givenEnv" $env }}
{{- end }}

{{/* Variables of a value `env`. A number stays in digits: as text, one of a million or more would be 1e+06. */}}
{{- define "tollgate.givenEnv" -}}
{{- range $name, $value := . }}
- { name: {{ $name | quote }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }} }
{{- end }}
{{- end }}

{{/* The settings of a service (docs/operating/settings.md) that the chart makes. Arguments: root, service. */}}
{{- define "tollgate.ownEnv" -}}
{{- $root := .root -}}
{{- $values := get $root.Values .service -}}
{{- include "tollgate.kafkaEnv" . }}
{{- if ne .service "console" }}
- { name: REDIS_URL_FILE, value: /etc/tollgate/secrets/redis-url }
{{- end }}
{{- if ne .service "gateway" }}
- { name: DATABASE_URL_FILE, value: /etc/tollgate/secrets/database-url }
{{- end }}
{{- if or (eq .service "gateway") (eq .service "billing") }}
- { name: REDIS_SETTLED_REPLICAS, value: {{ $root.Values.redis.settledReplicas | quote }} }
{{- end }}
- { name: TOLLGATE_CONFIG, value: /etc/tollgate/config/tollgate.yaml }
- { name: TOLLGATE_LOG_LEVEL, value: {{ $root.Values.logLevel }} }
- { name: TOLLGATE_MESSAGE_KEYS_FILE, value: /etc/tollgate/secrets/message-keys }
- { name: TOLLGATE_METRICS_TOKEN_FILE, value: /etc/tollgate/secrets/metrics-token }
{{- if not (hasKey ($values.env | default dict) "NODE_OPTIONS") }}
- { name: NODE_OPTIONS, value: '--enable-source-maps --max-old-space-size={{ $values.heapMib }}' }
{{- end }}
{{- if and $root.Values.simulator.enabled (has .service (list "gateway" "metering")) }}
- { name: TOLLGATE_SIMULATOR_URL, value: 'http://{{ include "tollgate.name" $root }}-simulator:9000/v1' }
{{- end }}
{{- if and $root.Values.tracing.url (has .service (include "tollgate.traced" $root | splitList ",")) }}
- { name: TOLLGATE_TRACES_URL, value: {{ $root.Values.tracing.url | quote }} }
- { name: TOLLGATE_TRACES_PERCENT, value: {{ $root.Values.tracing.percent | quote }} }
- { name: TOLLGATE_TRACES_SLOW_MS, value: {{ $root.Values.tracing.slowMs | int | quote }} }
{{- end }}
{{- if eq .service "gateway" }}
- { name: TOLLGATE_CONFIG_SECRETS_FILE, value: /etc/tollgate/secrets/config-secrets }
- { name: TOLLGATE_OPERATOR_SECRET_FILE, value: /etc/tollgate/secrets/operator-secret }
- { name: TOLLGATE_OPERATOR_ALLOWED_HOSTS, value: {{ include "tollgate.operatorHosts" $root | quote }} }
- { name: TOLLGATE_LAME_DUCK_SECONDS, value: {{ $values.lameDuckSeconds | quote }} }
- { name: TOLLGATE_DRAIN_SECONDS, value: {{ $values.drainSeconds | quote }} }
{{- end }}
{{- if eq .service "metering" }}
- { name: TOLLGATE_USAGE_KEPT_MONTHS, value: {{ $values.usageKeptMonths | quote }} }
{{- end }}
{{- if eq .service "console" }}
- { name: TOLLGATE_CONSOLE_URL, value: {{ include "tollgate.consoleUrl" $root | quote }} }
- { name: TOLLGATE_CONSOLE_INNER_API_URL, value: 'http://{{ include "tollgate.name" $root }}-gateway:{{ $root.Values.gateway.service.port }}' }
{{- if not (hasKey ($values.env | default dict) "TOLLGATE_TRUSTED_PROXIES") }}
- { name: TOLLGATE_TRUSTED_PROXIES, value: private }
{{- end }}
- { name: TOLLGATE_CONSOLE_SECRET_FILE, value: /etc/tollgate/secrets/console-secret }
- { name: TOLLGATE_LAME_DUCK_SECONDS, value: {{ $root.Values.gateway.lameDuckSeconds | quote }} }
- { name: TOLLGATE_DRAIN_SECONDS, value: '15' }
{{- end }}
{{- end }}

{{/* Names by which the operator API may be called. */}}
{{- define "tollgate.operatorHosts" -}}
{{- $name := printf "%s-operator" (include "tollgate.name" .) -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- concat (list $name $inNamespace (printf "%s.svc" $inNamespace)) .Values.gateway.operator.allowedHosts | join "," -}}
{{- end }}

{{/*
Probes of a service. The start only waits for the process: a store that is unavailable must not restart it. `/readyz`
answers within 1 s.
*/}}
{{- define "tollgate.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: health }
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 120
readinessProbe:
  httpGet: { path: /readyz, port: health }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 2
livenessProbe:
  httpGet: { path: /livez, port: health }
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}

{{/* A Deployment of a service with its ServiceAccount. Arguments: root, service. */}}
{{- define "tollgate.service" -}}
{{- $root := .root -}}
{{- $service := .service -}}
{{- $values := get $root.Values $service -}}
{{- $of := dict "root" $root "component" $service -}}
{{- $isGateway := eq $service "gateway" -}}
{{- $grace := dict "gateway" (include "tollgate.gatewayGraceSeconds" $root) "console" (include "tollgate.consoleGraceSeconds" $root) -}}
apiVersion: v1
kind: ServiceAccount
metadata: {{- include "tollgate.metadata" $of | nindent 2 }}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "tollgate.metadata" $of | nindent 2 }}
spec:
  {{- /*
  Where something else scales, the number of the cluster: another one would reset it at each upgrade. Helm would delete
  a number that is left out, and Kubernetes would then start again from one pod. `lookup` finds nothing at an install,
  and without a cluster.
  */}}
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- else }}
  {{- $name := printf "%s-%s" (include "tollgate.name" $root) $service }}
  {{- with lookup "apps/v1" "Deployment" $root.Release.Namespace $name }}
  replicas: {{ max .spec.replicas $values.autoscaling.minReplicas }}
  {{- end }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  selector:
    matchLabels: {{- include "tollgate.selector" $of | nindent 6 }}
  template:
    metadata: {{- include "tollgate.podMetadata" $of | nindent 6 }}
    spec:
      {{- $priority := ternary $root.Values.requestPathPriorityClassName "" $isGateway }}
      {{- include "tollgate.podSpec" (merge (dict "priorityClassName" $priority) $of) | nindent 6 }}
      {{- /* Longer than the service takes to stop, which publishes the last usage as the last step. */}}
      terminationGracePeriodSeconds: {{ get $grace $service | default "30" }}
      containers:
        - name: {{ $service }}
          {{- include "tollgate.image" (dict "root" $root "image" $service) | nindent 10 }}
          {{- include "tollgate.containerSecurity" $root | nindent 10 }}
          env: {{- include "tollgate.serviceEnv" . | nindent 12 }}
          ports:
            {{- if $isGateway }}
            - { name: public, containerPort: 8080 }
            - { name: operator, containerPort: 8081 }
            {{- else if eq $service "console" }}
            - { name: console, containerPort: 8082 }
            {{- end }}
            - { name: health, containerPort: 9090 }
          {{- include "tollgate.probes" $root | nindent 10 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          volumeMounts:
            {{- /* Whole folders, because a mounted file does not follow a change. */}}
            - { name: config, mountPath: /etc/tollgate/config, readOnly: true }
            - { name: secrets, mountPath: /etc/tollgate/secrets, readOnly: true }
            {{- include "tollgate.caMount" (dict "root" $root "indent" 12) }}
      volumes:
        - name: config
          configMap: { name: {{ include "tollgate.configMap" $root | quote }} }
        {{- $secret := get $root.Values.secrets $service }}
        {{- include "tollgate.secretsVolume" (dict "root" $root "secret" $secret) | nindent 8 }}
        {{- include "tollgate.caVolume" (dict "root" $root "indent" 8) }}
{{- end }}
