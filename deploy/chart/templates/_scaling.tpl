{{/* Grows at once, and shrinks by one pod at a time: each shrinking waits for the streams of a gateway. */}}
{{- define "tollgate.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies:
    - { type: Percent, value: 100, periodSeconds: 15 }
    - { type: Pods, value: 2, periodSeconds: 15 }
scaleDown:
  stabilizationWindowSeconds: {{ .Values.scaleDown.afterSeconds }}
  policies:
    - { type: Pods, value: 1, periodSeconds: {{ .Values.scaleDown.periodSeconds }} }
{{- end }}

{{/* KEDA reads the lag with the user of the service, whose READ includes DESCRIBE. Arguments: root, component, topic. */}}
{{- define "tollgate.scaledObject" }}
{{- $values := .root.Values }}
{{- $scaling := (get $values .component).autoscaling }}
{{- /* Brokers without sign-in and without authorities need no secret. */}}
{{- $signsIn := or $values.kafka.saslMechanism $values.secrets.ca }}
{{- $mechanisms := dict "plain" "plaintext" "scram-sha-256" "scram_sha256" "scram-sha-512" "scram_sha512" }}
{{- if $signsIn }}
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {{- include "tollgate.metadata" . | nindent 2 }}
spec:
  {{- if $values.kafka.saslMechanism }}
  env:
    - { parameter: username, name: KAFKA_USERNAME, containerName: {{ .component }} }
  {{- end }}
  secretTargetRef:
    {{- if $values.kafka.saslMechanism }}
    - { parameter: password, name: {{ get $values.secrets .component | quote }}, key: kafka-password }
    {{- end }}
    {{- with $values.secrets.ca }}
    - { parameter: ca, name: {{ . | quote }}, key: ca.crt }
    {{- end }}
---
{{- end }}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{- include "tollgate.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: { name: {{ include "tollgate.name" .root }}-{{ .component }} }
  minReplicaCount: {{ $scaling.minReplicas }}
  maxReplicaCount: {{ $scaling.maxReplicas }}
  # Without an answer of the brokers the number of pods stays as it is.
  fallback: { failureThreshold: 3, replicas: {{ $scaling.minReplicas }}, behavior: currentReplicasIfHigher }
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {{- include "tollgate.scalingBehavior" .root | nindent 8 }}
  triggers:
    - type: cpu
      metricType: Utilization
      metadata: { value: {{ $scaling.cpuPercent | quote }} }
    - type: kafka
      {{- if $signsIn }}
      authenticationRef: { name: {{ include "tollgate.name" .root }}-{{ .component }} }
      {{- end }}
      metadata:
        bootstrapServers: {{ include "tollgate.brokers" .root | quote }}
        topic: {{ printf "%s%s" $values.kafka.topicPrefix .topic | quote }}
        consumerGroup: {{ printf "%s%s.%s" $values.kafka.topicPrefix .topic .component | quote }}
        lagThreshold: {{ $scaling.lagPerPod | int64 | quote }}
        offsetResetPolicy: earliest
        {{- with $values.kafka.saslMechanism }}
        sasl: {{ get $mechanisms . }}
        {{- end }}
        tls: {{ $values.kafka.tls | ternary "enable" "disable" }}
{{- end }}
