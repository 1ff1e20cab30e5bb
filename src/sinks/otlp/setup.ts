import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  type Resource,
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import type { Settings } from '../../settings/settings';
import type { Log } from '../../log/log';

/** One for the spans and the metrics of a process. */
const INSTANCE_ID = randomUUID();

/** What spans and metrics come from: OTEL_RESOURCE_ATTRIBUTES, and the settings, which override them. */
export function resourceOf(settings: Settings): Resource {
  const { tracingServiceNamespace: namespace } = settings;
  const own = resourceFromAttributes({
    'service.name': settings.tracingServiceName,
    ...(namespace !== '' && { 'service.namespace': namespace }),
    'service.instance.id': settings.tracingServiceInstanceId ?? INSTANCE_ID,
  });
  return defaultResource()
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(own);
}

/**
 * Logs what OpenTelemetry reports while it reads the standard variables: it replaces an invalid value by its default
 * and reports that only to its diagnostic logger.
 *
 * @throws when a variable has an invalid value and no default
 */
export async function withDiagnostics<T>(log: Log, create: () => Promise<T>): Promise<T> {
  const logged = new Set<string>();
  function warn(reason: string): void {
    if (!logged.has(reason)) log.warn('invalid OTLP exporter setting; using its default', { reason });
    logged.add(reason);
  }
  function ignore(): void {}
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    return await create();
  } catch (error) {
    throw new Error('cannot create the OTLP exporter from its settings (OTEL_EXPORTER_OTLP_*)', { cause: error });
  } finally {
    // The logging exporter reports failed exports, once instead of for each batch.
    diag.disable();
  }
}
