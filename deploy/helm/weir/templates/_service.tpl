{{/* A port of a Service: a list of context and the name of the listener. */}}
{{- define "weir.servicePort" -}}
{{- $values := (index . 0).Values }}
{{- $name := index . 1 }}
{{- $port := eq $name "metrics" | ternary $values.metrics.port (get $values.ports $name) }}
{{- $http := ternary "https" "http" (and (eq $name "debug") (not (empty $values.debug.tlsSecret))) }}
{{- $grpc := $values.service.grpcAppProtocol | default (ternary "tls" "grpc" $values.tls.enabled) -}}
- { name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}, protocol: TCP, appProtocol: {{ eq $name "grpc" | ternary $grpc $http }} }
{{- end }}

{{/*
A Service: a map of the context `root`, `suffix` and `component`, by which it is named and labelled, its `ports`, and the values `of` it.
*/}}
{{- define "weir.service" -}}
{{- $root := .root -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "weir.fullname" $root }}{{ .suffix }}
  labels:
    {{- include "weir.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  {{- with .of.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .of.type | default "ClusterIP" }}
  {{- if has .component (list "headless" "peers") }}
  clusterIP: None
  {{- end }}
  {{- if eq .component "peers" }}
  # A Pod that waits for its store or its rules is shown, too.
  publishNotReadyAddresses: true
  {{- end }}
  {{- with .of.loadBalancerSourceRanges }}
  loadBalancerSourceRanges:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.internalTrafficPolicy }}
  internalTrafficPolicy: {{ . }}
  {{- end }}
  {{- with .of.trafficDistribution }}
  trafficDistribution: {{ . }}
  {{- end }}
  selector:
    {{- include "weir.selectorLabels" $root | nindent 4 }}
  ports:
    {{- range .ports }}
    {{- include "weir.servicePort" (list $root .) | nindent 4 }}
    {{- end }}
{{- end }}
