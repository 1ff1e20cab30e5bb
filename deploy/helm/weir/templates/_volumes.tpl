{{/* Whether files for TLS with the store are mounted. */}}
{{- define "weir.hasStoreTls" -}}
{{- $tls := or .Values.store.tls.enabled .Values.store.redis.perSecond.tls }}
{{- if and $tls (ne .Values.store.type "memory") (or .Values.store.tls.ca.existingSecret .Values.store.tls.client.existingSecret) }}true{{ end }}
{{- end }}

{{- define "weir.volumes" -}}
{{- if eq .Values.rules.source "files" }}
- name: rules
  configMap: { name: {{ include "weir.rulesConfigMap" . }} }
{{- end }}
{{- if .Values.secrets }}
- name: secrets
  projected:
    defaultMode: 288 # 0440, readable by fsGroup
    sources:
      {{- range $name, $secret := .Values.secrets }}
      - secret:
          name: {{ $secret.existingSecret | default (include "weir.fullname" $) }}
          items: [{ key: {{ $secret.key | default $name }}, path: {{ $name }} }]
      {{- end }}
{{- end }}
{{- with .Values.tls }}
{{- if .enabled }}
- name: tls
  projected:
    defaultMode: 288 # 0440, readable by fsGroup
    sources:
      - secret:
          name: {{ .existingSecret }}
          items: [{ key: tls.crt, path: tls.crt }, { key: tls.key, path: tls.key }]
      {{- if .clientCa.existingSecret }}
      - secret:
          name: {{ .clientCa.existingSecret }}
          items: [{ key: {{ .clientCa.key }}, path: client-ca.crt }]
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.debug.tlsSecret }}
- name: debug-tls
  projected:
    defaultMode: 288 # 0440, readable by fsGroup
    sources:
      - secret:
          name: {{ . }}
          items: [{ key: tls.crt, path: tls.crt }, { key: tls.key, path: tls.key }]
{{- end }}
{{- if include "weir.hasStoreTls" . }}
{{- with .Values.store.tls }}
- name: store-tls
  projected:
    defaultMode: 288 # 0440, readable by fsGroup
    sources:
      {{- if .ca.existingSecret }}
      - secret:
          name: {{ .ca.existingSecret }}
          items: [{ key: {{ .ca.key }}, path: ca.crt }]
      {{- end }}
      {{- if .client.existingSecret }}
      - secret:
          name: {{ .client.existingSecret }}
          items: [{ key: tls.crt, path: tls.crt }, { key: tls.key, path: tls.key }]
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Whole folders: a mount with a subPath would not be updated. */}}
{{- define "weir.volumeMounts" -}}
{{- if eq .Values.rules.source "files" }}
- { name: rules, mountPath: /etc/weir/runtime/config, readOnly: true }
{{- end }}
{{- if .Values.secrets }}
- { name: secrets, mountPath: /etc/weir/secrets, readOnly: true }
{{- end }}
{{- if .Values.tls.enabled }}
- { name: tls, mountPath: /etc/weir/tls, readOnly: true }
{{- end }}
{{- if .Values.debug.tlsSecret }}
- { name: debug-tls, mountPath: /etc/weir/debug-tls, readOnly: true }
{{- end }}
{{- if include "weir.hasStoreTls" . }}
- { name: store-tls, mountPath: /etc/weir/store-tls, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
