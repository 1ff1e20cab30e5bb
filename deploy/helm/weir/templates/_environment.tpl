{{/*
The settings that the values determine, as a map. scripts/chart.mjs reads the names from this file: the value `settings` does
not accept them. Nor does it accept HOST, GRPC_HOST and GRPC_UDS, which would keep other Pods out, and RUNTIME_SUBDIRECTORY, which
is not mounted.
*/}}
{{- define "weir.environment" -}}
{{- $v := .Values -}}
PORT: {{ $v.ports.http | int | quote }}
GRPC_PORT: {{ $v.ports.grpc | int | quote }}
DEBUG_HOST: {{ $v.debug.host | quote }}
DEBUG_PORT: {{ $v.ports.debug | int | quote }}
{{- if $v.debug.tlsSecret }}
DEBUG_TLS_CERT: /etc/weir/debug-tls/tls.crt
DEBUG_TLS_KEY: /etc/weir/debug-tls/tls.key
{{- end }}
{{- if $v.debug.peers }}
OPERATOR_PEERS: {{ printf "dns:%s%s-peers:%d" (ternary "https://" "" (not (empty $v.debug.tlsSecret))) (include "weir.fullname" .) (int $v.ports.debug) | quote }}
{{- end }}
GRPC_MAX_CONNECTION_AGE: {{ $v.maxConnectionAge | quote }}
SHUTDOWN_DELAY: {{ printf "%ds" (int $v.shutdownDelaySeconds) | quote }}
WORKERS: {{ include "weir.settingText" $v.workers | quote }}
LOG_LEVEL: {{ $v.log.level | quote }}
LOG_FORMAT: {{ $v.log.format | quote }}
{{- if $v.tls.enabled }}
GRPC_SERVER_USE_TLS: "true"
GRPC_SERVER_TLS_CERT: /etc/weir/tls/tls.crt
GRPC_SERVER_TLS_KEY: /etc/weir/tls/tls.key
{{- if $v.tls.clientCa.existingSecret }}
GRPC_CLIENT_TLS_CACERT: /etc/weir/tls/client-ca.crt
{{- with $v.tls.clientSan }}
GRPC_CLIENT_TLS_SAN: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{ include "weir.ruleEnvironment" . }}
{{ include "weir.storeEnvironment" . }}
{{- if $v.metrics.enabled }}
USE_PULLMETRICS: "true"
PULLMETRICS_ADDR: {{ printf ":%d" (int $v.metrics.port) | quote }}
PULLMETRICS_PATH: {{ $v.metrics.path | quote }}
{{- end }}
{{- end }}

{{- define "weir.ruleEnvironment" -}}
{{- with .Values.rules -}}
{{- if eq .source "xds" -}}
CONFIG_TYPE: GRPC_XDS_SOTW
CONFIG_GRPC_XDS_SERVER_URL: {{ .xds.serverUrl | quote }}
{{- with .xds.nodeId }}
CONFIG_GRPC_XDS_NODE_ID: {{ . | quote }}
{{- end }}
{{- else -}}
CONFIG_TYPE: FILE
RUNTIME_ROOT: /etc/weir/runtime
RUNTIME_APPDIRECTORY: config
RUNTIME_WATCH_ROOT: {{ not .watchFiles | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "weir.storeEnvironment" -}}
{{- $store := .Values.store -}}
{{- if eq $store.type "redis" -}}
BACKEND_TYPE: kvstore
{{- with $store.redis }}
KVSTORE_TYPE: {{ .type | quote }}
{{- with .url }}
KVSTORE_URL: {{ . | quote }}
{{- end }}
{{- if .perSecond.enabled }}
KVSTORE_PERSECOND: "true"
KVSTORE_PERSECOND_TYPE: {{ .perSecond.type | quote }}
{{- with .perSecond.url }}
KVSTORE_PERSECOND_URL: {{ . | quote }}
{{- end }}
{{- if .perSecond.tls }}
KVSTORE_PERSECOND_TLS: "true"
{{- end }}
{{- end }}
{{- end }}
{{- if $store.tls.enabled }}
KVSTORE_TLS: "true"
{{- end }}
{{- if or $store.tls.enabled (and $store.redis.perSecond.enabled $store.redis.perSecond.tls) }}
{{- if $store.tls.ca.existingSecret }}
KVSTORE_TLS_CACERT: /etc/weir/store-tls/ca.crt
{{- end }}
{{- if $store.tls.client.existingSecret }}
KVSTORE_TLS_CLIENT_CERT: /etc/weir/store-tls/tls.crt
KVSTORE_TLS_CLIENT_KEY: /etc/weir/store-tls/tls.key
{{- end }}
{{- if $store.tls.skipHostnameVerification }}
KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION: "true"
{{- end }}
{{- end }}
{{- else if eq $store.type "memcached" -}}
BACKEND_TYPE: plaincache
{{- if $store.memcached.srv }}
PLAINCACHE_SRV: {{ $store.memcached.srv | quote }}
{{- else }}
PLAINCACHE_HOST_PORT: {{ $store.memcached.hosts | quote }}
{{- end }}
{{- if $store.tls.enabled }}
PLAINCACHE_TLS: "true"
{{- if $store.tls.ca.existingSecret }}
PLAINCACHE_TLS_CACERT: /etc/weir/store-tls/ca.crt
{{- end }}
{{- if $store.tls.client.existingSecret }}
PLAINCACHE_TLS_CLIENT_CERT: /etc/weir/store-tls/tls.crt
PLAINCACHE_TLS_CLIENT_KEY: /etc/weir/store-tls/tls.key
{{- end }}
{{- if $store.tls.skipHostnameVerification }}
PLAINCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: "true"
{{- end }}
{{- end }}
{{- else -}}
BACKEND_TYPE: memory
{{- end }}
{{- end }}
