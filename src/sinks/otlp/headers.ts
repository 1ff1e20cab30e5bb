import type { LoadedSettings } from '../../settings/read-settings';

/** Headers by name. */
export type ExporterHeaders = Readonly<Record<string, string>>;

/**
 * The headers of the exporter of a signal, if any of them are in files; otherwise undefined: the exporter reads its variables itself.
 *
 * @throws Error that names the variable whose file contains no headers
 */
export function headersInFiles(
  { files, settings, nameOf }: LoadedSettings,
  ofSignal: 'otelExporterOtlpTracesHeaders' | 'otelExporterOtlpMetricsHeaders',
): ExporterHeaders | undefined {
  const fields = ['otelExporterOtlpHeaders', ofSignal] as const;
  for (const field of fields) {
    const problem = files.has(field) ? problemOf(settings[field]) : undefined;
    if (problem !== undefined) throw new Error(`cannot use the file of ${nameOf(field)}: ${problem}`);
  }
  if (!fields.some((field) => files.has(field))) return undefined;
  return { ...settings.otelExporterOtlpHeaders, ...settings[ofSignal] };
}

/** Both protocols would leave out such headers, or fail, without a message that names them. */
function problemOf(headers: ExporterHeaders = {}): string | undefined {
  const entries = Object.entries(headers);
  if (entries.length === 0) return 'it contains no key=value';
  const isValid = entries.every(([name, value]) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\x20-\x7e]*$/.test(value));
  return isValid ? undefined : 'it contains characters that are not allowed in headers';
}
