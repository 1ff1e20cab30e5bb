{{/* The variables of the container, as a list sorted by name, `extraEnv` last. */}}
{{- define "weir.env" -}}
{{- $env := include "weir.environment" . | fromYaml }}
{{- range $name, $value := .Values.settings }}
{{- $_ := set $env $name (include "weir.settingText" $value) }}
{{- end }}
{{- range $name, $secret := .Values.secrets }}
{{- $_ := set $env (printf "%s_FILE" $name) (printf "/etc/weir/secrets/%s" $name) }}
{{- end }}
{{- if not .Values.metrics.enabled }}
{{- $hasOutput := false }}
{{- range list "USE_PUSHSTATS" "USE_STATSD" "USE_TAGGEDSTATS" "USE_DOG_STATSD" "DISABLE_STATS" }}
{{- $hasOutput = or $hasOutput (hasKey $env .) }}
{{- end }}
{{- /* Else statistics would be sent to a daemon in the Pod, which does not exist. */}}
{{- if not $hasOutput }}{{ $_ := set $env "DISABLE_STATS" "true" }}{{ end }}
{{- end }}
{{- range $name, $value := $env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- if and (eq .Values.rules.source "xds") (not .Values.rules.xds.nodeId) }}
- name: CONFIG_GRPC_XDS_NODE_ID
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
