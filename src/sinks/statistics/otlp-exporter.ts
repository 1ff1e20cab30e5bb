import type { ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { Settings } from '../../settings/settings';
import { type Exporter, grpcOptions, retryingExporter } from '../otlp/exporters';
import type { ExporterHeaders } from '../otlp/headers';

/**
 * An exporter of metrics, of the parts that OpenTelemetry's exporters are made of: its packages for metrics have no version that shares
 * them with those for traces. Everything but the protocol and the headers is from the standard variables.
 *
 * @throws when one of them has an invalid value and no default
 */
export async function metricExporter(
  protocol: Settings['otelExporterOtlpProtocol'],
  headers: ExporterHeaders | undefined,
): Promise<Exporter<ResourceMetrics>> {
  const transformer = await import('@opentelemetry/otlp-transformer');
  const { MetricsExporterMetricsHelper: helper, ProtobufMetricsSerializer: protobuf } = transformer;
  if (protocol === 'grpc') {
    const base = await import('@opentelemetry/otlp-grpc-exporter-base');
    const { metadata, timeout } = await grpcOptions('METRICS', headers);
    const service = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
    const options = base.convertLegacyOtlpGrpcOptions({ metadata }, 'METRICS');
    const exporter = base.createOtlpGrpcExportDelegate(
      ...([
        options,
        protobuf,
        'otlp_grpc_metric_exporter',
        helper,
        undefined,
        'MetricsExportService',
        service,
      ] as const),
    );
    return retryingExporter(exporter, timeout);
  }
  const base = await import('@opentelemetry/otlp-exporter-base/node-http');
  const [serializer, type] =
    protocol === 'http/json'
      ? ([transformer.JsonMetricsSerializer, 'application/json'] as const)
      : ([protobuf, 'application/x-protobuf'] as const);
  const required = { 'Content-Type': type };
  const options = base.convertLegacyHttpOptions({ ...(headers && { headers }) }, 'METRICS', 'v1/metrics', required);
  return base.createOtlpHttpExportDelegate(options, serializer, 'otlp_http_metric_exporter', helper, undefined);
}
