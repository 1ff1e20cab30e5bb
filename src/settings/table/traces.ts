import { is } from './condition';
import { group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { ratio } from '../values/numbers';
import { otlpHeaders } from '../values/otlp-headers';
import { text } from '../values/text';

export const traceSettings = group({
  title: 'Traces (OpenTelemetry)',
  note: 'Spans are exported by OTLP; the standard OTEL_EXPORTER_OTLP_* variables apply as well.',
  requires: [is('TRACING_ENABLED', 'true')],
  settings: [
    setting({
      field: 'tracingEnabled',
      name: 'TRACING_ENABLED',
      type: boolean,
      default: false,
      help: 'Exports spans.',
    }),
    setting({
      field: 'tracingExporterProtocol',
      name: 'TRACING_EXPORTER_PROTOCOL',
      type: choice({ http: [], grpc: [] }),
      default: 'http',
      help: 'Protocol of the OTLP exporter.',
    }),
    setting({
      field: 'tracingServiceName',
      name: 'TRACING_SERVICE_NAME',
      type: text(),
      default: 'RateLimit',
      help: 'Service name in spans.',
    }),
    setting({
      field: 'tracingServiceNamespace',
      name: 'TRACING_SERVICE_NAMESPACE',
      type: text(),
      default: '',
      help: 'Service namespace in spans.',
    }),
    setting({
      field: 'tracingServiceInstanceId',
      name: 'TRACING_SERVICE_INSTANCE_ID',
      type: text(),
      default: undefined,
      defaultText: 'random UUID (version 4)',
      help: 'Service instance id in spans.',
    }),
    setting({
      field: 'tracingSamplingRate',
      name: 'TRACING_SAMPLING_RATE',
      type: ratio({ min: 0, max: 1 }),
      default: 1,
      help: 'Fraction of the traces to sample when the caller has made no sampling decision.',
    }),
  ],
});

export const traceExporterSettings = group({
  title: 'Headers of traces (OpenTelemetry)',
  note: 'Standard variables of the OTLP exporter, listed here because they hold secrets. They apply with TRACING_ENABLED=true.',
  settings: [
    setting({
      field: 'otelExporterOtlpHeaders',
      name: 'OTEL_EXPORTER_OTLP_HEADERS',
      type: otlpHeaders,
      default: undefined,
      secret: 'value',
      help: 'Headers to send to the collector.',
    }),
    setting({
      field: 'otelExporterOtlpTracesHeaders',
      name: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
      type: otlpHeaders,
      default: undefined,
      secret: 'value',
      help: 'Headers to send with traces; override those of the same name in OTEL_EXPORTER_OTLP_HEADERS.',
    }),
  ],
});
