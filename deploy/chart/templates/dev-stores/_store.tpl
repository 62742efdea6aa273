{{/*
A server of devStores with its Service and, if wanted, its volume. Arguments: root, store, ports (a dict of name and
number), dataPath, spec (of the container, without name and mounts), volumes (further ones), mounts (further ones).
*/}}
{{- define "tollgate.devStore" -}}
{{- if and .root.Values.jobs.hooks .root.Release.IsInstall }}
{{- fail "An install with devStores needs jobs.hooks: false. Hooks run first, and would wait for stores to come." }}
{{- end }}
{{- $of := dict "root" .root "component" .store -}}
{{- $stores := .root.Values.devStores -}}
{{- $values := get $stores .store -}}
{{- $name := printf "%s-%s" (include "tollgate.name" .root) .store -}}
apiVersion: v1
kind: Service
metadata: {{- include "tollgate.metadata" $of | nindent 2 }}
spec:
  clusterIP: None
  # The brokers must find themselves by their name before they are ready.
  publishNotReadyAddresses: true
  selector: {{- include "tollgate.selector" $of | nindent 4 }}
  ports:
    {{- range $port, $number := .ports }}
    - { name: {{ $port }}, port: {{ $number }} }
    {{- end }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{- include "tollgate.metadata" $of | nindent 2 }}
spec:
  serviceName: {{ $name }}
  replicas: 1
  selector:
    matchLabels: {{- include "tollgate.selector" $of | nindent 6 }}
  template:
    metadata:
      {{- /* Without the labels and annotations of all pods: a change of them must not replace a store with its data. */}}
      labels: {{- include "tollgate.selector" $of | nindent 8 }}
    spec:
      {{- /* A kept volume keeps its rights: PostgreSQL refuses a data directory that its group may write. */}}
      {{- $user := dict "runAsUser" $values.runAsUser "runAsGroup" $values.runAsUser "fsGroup" $values.runAsUser
        "fsGroupChangePolicy" "OnRootMismatch" }}
      {{- $security := merge $user .root.Values.podSecurityContext }}
      {{- include "tollgate.podBase" (dict "root" .root "securityContext" $security) | trim | nindent 6 }}
      terminationGracePeriodSeconds: 30
      containers:
        - name: {{ .store }}
          image: {{ $values.image | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          {{- .spec | nindent 10 }}
          volumeMounts:
            - { name: data, mountPath: {{ .dataPath }} }
            - { name: secrets, mountPath: /etc/tollgate/secrets, readOnly: true }
            {{- with .mounts }}
            {{- . | nindent 12 }}
            {{- end }}
      volumes:
        - name: secrets
          secret: { secretName: {{ .secret | quote }}, defaultMode: 0440 }
        {{- with .volumes }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- if not $stores.storage }}
        - name: data
          emptyDir: {}
  {{- else }}
  volumeClaimTemplates:
    - metadata: { name: data }
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $stores.storageClassName }}
        storageClassName: {{ . | quote }}
        {{- end }}
        resources: { requests: { storage: {{ $stores.storage }} } }
  {{- end }}
{{- end }}
