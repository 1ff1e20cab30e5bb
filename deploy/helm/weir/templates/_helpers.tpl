{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Short enough for the suffixes of further objects. */}}
{{- define "weir.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of the Pod of helm test: not those of the Service's selector, because it must get no calls. */}}
{{- define "weir.testLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "weir.serviceAccountName" -}}
{{- default (ternary (include "weir.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{/* The first part of a repository is a registry if it has a dot or a port, or is localhost. */}}
{{- define "weir.image" -}}
{{- with .Values.image -}}
{{- $repository := .repository }}
{{- with $.Values.global.imageRegistry }}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "") }}
{{- end }}
{{- if .digest }}{{ $repository }}@{{ .digest }}{{ else }}{{ $repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "weir.rulesConfigMap" -}}
{{- .Values.rules.existingConfigMap | default (printf "%s-rules" (include "weir.fullname" .)) }}
{{- end }}

{{/* Whether several Pods may run at the same time, apart from updates. */}}
{{- define "weir.hasSeveralPods" -}}
{{- if .Values.autoscaling.enabled }}{{ if gt (int .Values.autoscaling.minReplicas) 1 }}true{{ end }}
{{- else if gt (int .Values.replicaCount) 1 }}true{{ end }}
{{- end }}

{{/* The time after which weir aborts a drain (9.5 s, or the delay and 4.5 s), 2 s for the last lines of the log, and 3 s to spare. */}}
{{- define "weir.terminationGracePeriodSeconds" -}}
{{- $needed := add (max 10 (add .Values.shutdownDelaySeconds 5)) 2 3 }}
{{- $given := .Values.terminationGracePeriodSeconds | default $needed }}
{{- if lt (int64 $given) (int64 $needed) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, but with shutdownDelaySeconds a stop takes up to %d s: set it to at least that, or remove it" (int64 $given) (int64 $needed)) }}
{{- end }}
{{- int64 $given }}
{{- end }}

{{/* Text of a setting's value. Helm reads numbers as floats, which would be written like 1e+06. */}}
{{- define "weir.settingText" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}

{{/* A quantity of Kubernetes in bytes, such as 512Mi or 1.5G; empty for another text. */}}
{{- define "weir.bytes" -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $number := regexFind "^[0-9.]+" (toString .) }}
{{- $unit := trimPrefix $number (toString .) }}
{{- if and $number (hasKey $units $unit) }}{{ mulf (float64 $number) (float64 (get $units $unit)) | int64 }}{{ end }}
{{- end }}

{{/* Processes that decide: `auto` is the CPU limit, as weir reads it from the control group: whole cores, at least 1. */}}
{{- define "weir.workers" -}}
{{- $limit := dig "limits" "cpu" "" .Values.resources | toString }}
{{- if ne (toString .Values.workers) "auto" }}{{ int .Values.workers }}
{{- else if not $limit }}
{{- fail "workers=auto needs resources.limits.cpu: without it, weir would start a process for each core of the node" }}
{{- else if hasSuffix "m" $limit }}{{ max 1 (div (int (trimSuffix "m" $limit)) 1000) }}
{{- else }}{{ max 1 (int (floor (float64 $limit))) }}
{{- end }}
{{- end }}

{{/* Whether the chart creates a Secret. */}}
{{- define "weir.createsSecret" -}}
{{- range .Values.secrets }}{{ if .value }}true{{ end }}{{ end }}
{{- end }}

{{/* Whether a setting is among the secrets, by its name or that of the Go service: a list of context and the two names. */}}
{{- define "weir.isSecret" -}}
{{- $secrets := (index . 0).Values.secrets }}
{{- if or (hasKey $secrets (index . 1)) (hasKey $secrets (index . 2)) }}true{{ end }}
{{- end }}

{{/* A password in the values would be in the release, and in the variables of the Pod. A list of the value, its name, and its secret. */}}
{{- define "weir.checkAddress" -}}
{{- $address := index . 0 }}
{{- if regexMatch "@|[?&]password=" $address }}
{{- fail (printf "%s has a user or a password in it, which everyone who reads the Deployment would see: put the whole URL into a Secret, and set secrets.%s: { existingSecret: NAME, key: KEY } instead; or leave out what is before the @, and set secrets.%s" (index . 1) (index . 2) (replace "_URL" "_AUTH" (index . 2))) }}
{{- end }}
{{- end }}

{{/* Of a probe of the debug listener with TLS. */}}
{{- define "weir.probeScheme" -}}
{{- if and (eq .Values.probes.port "debug") .Values.debug.tlsSecret }}, scheme: HTTPS{{ end }}
{{- end }}

{{/* Contradictions between values that the schema cannot express. */}}
{{- define "weir.check" -}}
{{- with .Values.store.redis }}
{{- include "weir.checkAddress" (list .url "store.redis.url" "KVSTORE_URL") }}
{{- include "weir.checkAddress" (list .perSecond.url "store.redis.perSecond.url" "KVSTORE_PERSECOND_URL") }}
{{- end }}
{{- $pods := or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}
{{- if and $pods (eq .Values.store.type "memory") (not .Values.store.allowSeparateCounters) }}
{{- fail "several Pods need a store that they share: set store.type to redis or memcached, or store.allowSeparateCounters=true if every limit may apply to each Pod by itself" }}
{{- end }}
{{- if eq .Values.store.type "redis" }}
{{- with .Values.store.redis }}
{{- if eq (empty .url) (empty (include "weir.isSecret" (list $ "KVSTORE_URL" "REDIS_URL"))) }}
{{- fail "store.type=redis needs an address: either store.redis.url, or secrets.KVSTORE_URL if it contains a password" }}
{{- end }}
{{- if and .perSecond.enabled (eq (empty .perSecond.url) (empty (include "weir.isSecret" (list $ "KVSTORE_PERSECOND_URL" "REDIS_PERSECOND_URL")))) }}
{{- fail "store.redis.perSecond.enabled needs an address: either store.redis.perSecond.url, or secrets.KVSTORE_PERSECOND_URL if it contains a password" }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled=true: there is nothing to scrape" }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.service.metrics) (not (hasKey .Values.service.separate "metrics")) }}
{{- fail "metrics.serviceMonitor.enabled needs service.metrics=true or service.separate.metrics: Prometheus scrapes the port of a Service" }}
{{- end }}
{{- if and (hasKey .Values.service.separate "metrics") (not .Values.metrics.enabled) }}
{{- fail "service.separate.metrics needs metrics.enabled=true: no listener would be behind it" }}
{{- end }}
{{- if and (eq .Values.probes.port "debug") (has .Values.debug.host (list "127.0.0.1" "::1" "localhost")) }}
{{- fail "probes.port=debug needs a debug.host that the kubelet reaches, such as 0.0.0.0: protect the port by networkPolicy.enabled" }}
{{- end }}
{{- if and .Values.debug.peers (has .Values.debug.host (list "127.0.0.1" "::1" "localhost")) }}
{{- fail "debug.peers needs a debug.host that Pods reach, such as 0.0.0.0: protect the port by networkPolicy.enabled" }}
{{- end }}
{{- if hasKey .Values.service.separate "debug" }}
{{- if has .Values.debug.host (list "127.0.0.1" "::1" "localhost") }}
{{- fail "service.separate.debug needs a debug.host that Pods reach, such as 0.0.0.0: protect the port by networkPolicy.enabled" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.debugClients) }}
{{- fail "service.separate.debug with networkPolicy.enabled needs networkPolicy.debugClients: no Pod could reach the debug listener" }}
{{- end }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas is %d, more than autoscaling.maxReplicas, which is %d" (int .minReplicas) (int .maxReplicas)) }}
{{- end }}
{{- end }}
{{- $workers := include "weir.workers" . | int }}
{{- $limit := include "weir.bytes" (dig "limits" "memory" "" .Values.resources) }}
{{- /* A primary takes 80 MB, and each worker 45 MB more: docs/sizing.md. */}}
{{- if and $limit (gt $workers 1) (lt (int64 $limit) (int64 (mul (add 80 (mul 45 $workers)) 1000000))) }}
{{- fail (printf "resources.limits.memory is %s, but %d workers take %d MB before they count anything: raise it, or use fewer workers" (dig "limits" "memory" "" .Values.resources) $workers (add 80 (mul 45 $workers))) }}
{{- end }}
{{- with .Values.networkPolicy }}
{{- if and .enabled .egress.enabled (not .egress.rules) (ne $.Values.store.type "memory") }}
{{- fail (printf "networkPolicy.egress.enabled with store.type=%s needs a rule for the store in networkPolicy.egress.rules: weir could not reach it" $.Values.store.type) }}
{{- end }}
{{- end }}
{{- if and .Values.rules.files .Values.rules.existingConfigMap }}
{{- fail "set rules.files or rules.existingConfigMap, not both: the files would not be mounted" }}
{{- end }}
{{- end }}
