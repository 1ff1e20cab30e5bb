{{- define "weir.grpcServicePort" -}}
{{- $protocol := .Values.service.grpcAppProtocol | default (ternary "tls" "grpc" .Values.tls.enabled) -}}
- { name: grpc, port: {{ .Values.ports.grpc }}, targetPort: grpc, protocol: TCP, appProtocol: {{ $protocol }} }
{{- end }}
