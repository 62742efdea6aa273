{{/* What all pods of our images have in common. Arguments: root, component, priorityClassName (optional). */}}
{{- define "tollgate.podSpec" -}}
serviceAccountName: {{ include "tollgate.name" .root }}-{{ .component }}
{{- include "tollgate.podBase" . }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "tollgate.selector" $ | nindent 8 }}
    {{- /* Only pods of the same version count, or an update spreads new pods by the places of the old ones. */}}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}

{{/*
What pods of jobs have as well. Without the links to Services, because those are variables such as TOLLGATE_PORT, which
are settings. Arguments: root, priorityClassName (optional), securityContext (optional).
*/}}
{{- define "tollgate.podBase" }}
{{- $security := .securityContext | default .root.Values.podSecurityContext }}
{{- if .root.Values.openshift }}
{{- $security = omit $security "runAsUser" "runAsGroup" "fsGroup" }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- toYaml $security | nindent 2 }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Metadata of a pod. Without versions: a change of the chart alone replaces no pod. Arguments: root, component. */}}
{{- define "tollgate.podMetadata" -}}
labels:
  {{- include "tollgate.selector" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tollgate.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* The Secret of a component and the token of the metrics, as files in one folder. Arguments: root, secret. */}}
{{- define "tollgate.secretsVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret: { name: {{ .secret | quote }} }
      - secret:
          name: {{ .root.Values.secrets.metrics | quote }}
          items: [{ key: token, path: metrics-token }]
{{- end }}

{{/* The authorities of the stores, if there are any of their own. Arguments: root, indent. */}}
{{- define "tollgate.caVolume" -}}
{{- with .root.Values.secrets.ca -}}
{{- printf "- name: ca\n  secret: { secretName: %s, defaultMode: 0440 }" (quote .) | nindent $.indent -}}
{{- end -}}
{{- end }}

{{- define "tollgate.caMount" -}}
{{- if .root.Values.secrets.ca -}}
{{- "- { name: ca, mountPath: /etc/tollgate/ca, readOnly: true }" | nindent .indent -}}
{{- end -}}
{{- end }}

{{/* How to reach the brokers, without the sign-in. */}}
{{- define "tollgate.kafkaTlsEnv" -}}
{{- with .Values.kafka.topicPrefix }}
- { name: KAFKA_TOPIC_PREFIX, value: {{ . | quote }} }
{{- end }}
{{- if .Values.kafka.tls }}
- { name: KAFKA_TLS, value: 'true' }
{{- if .Values.secrets.ca }}
- { name: KAFKA_CA_FILE, value: /etc/tollgate/ca/ca.crt }
{{- end }}
{{- end }}
{{- end }}

{{/* The settings of a service at Kafka. Arguments: root, service. */}}
{{- define "tollgate.kafkaEnv" -}}
- { name: KAFKA_BROKERS, value: {{ include "tollgate.brokers" .root | quote }} }
- { name: KAFKA_SESSION_TIMEOUT_MS, value: {{ .root.Values.kafka.sessionTimeoutMs | quote }} }
{{- with .root.Values.kafka.saslMechanism }}
- { name: KAFKA_SASL_MECHANISM, value: {{ . }} }
- { name: KAFKA_USERNAME, value: {{ (get $.root.Values $.service).kafkaUsername | quote }} }
- { name: KAFKA_PASSWORD_FILE, value: /etc/tollgate/secrets/kafka-password }
{{- end }}
{{- include "tollgate.kafkaTlsEnv" .root }}
{{- end }}
