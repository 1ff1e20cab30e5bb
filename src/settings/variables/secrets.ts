import { type Environment, lookUp } from './environment';
import type { Setting, SettingGroup } from '../table/setting';
import { settingsTable } from '../table/settings-table';
import { splitList } from '../values/lists';

/** What the exporters of traces read by themselves: `key=value`, percent-encoded. */
const EXPORTER_HEADERS = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'];

const groups: readonly SettingGroup[] = settingsTable;
const secretRows = groups.flatMap(({ settings }) => settings.filter(({ secret }) => secret === 'value'));

/**
 * The secrets in an environment, so that nothing shows them, whoever quotes them: the settings that are secret, the headers of
 * the trace exporters, and the credentials in any variable that holds an address, a proxy's for example. A secret that is made
 * of others (a header with its scheme, a user with a password) comes whole and in its parts.
 */
export function secretsOf(environment: Environment): readonly string[] {
  const ofSettings = secretRows.flatMap((row) =>
    lookUp(environment, namesOf(row)).flatMap(({ text }) => inSetting(row, text)),
  );
  const ofExporters = lookUp(environment, EXPORTER_HEADERS).flatMap(({ text }) =>
    splitList(text).flatMap((pair) => inHeader(unescape(pair.slice(pair.indexOf('=') + 1)))),
  );
  const ofAddresses = lookUp(environment, Object.keys(environment)).flatMap(({ text }) => inAddresses(text));
  return [...new Set([...ofSettings, ...ofExporters, ...ofAddresses])].filter((secret) => secret !== '');
}

function namesOf({ name, alias }: Setting): readonly string[] {
  return alias === undefined ? [name] : [name, alias];
}

function inSetting({ type }: Setting, text: string): readonly string[] {
  const reading = type.read(text);
  if ('value' in reading && typeof reading.value === 'object')
    return Object.values(Object(reading.value)).flatMap((value) => inHeader(String(value)));
  return inCredentials(text);
}

/** `Bearer token`, `Basic base64`, or a key alone. */
function inHeader(value: string): readonly string[] {
  const [, scheme, token] = /^(\S+)\s+([^]*)$/.exec(value) ?? [];
  if (scheme === undefined || token === undefined) return [value];
  const basic = scheme.toLowerCase() === 'basic' ? inCredentials(Buffer.from(token, 'base64').toString()) : [];
  return [value, token, ...basic];
}

/** `password` or `user:password`. */
function inCredentials(text: string): readonly string[] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text] : [text, text.slice(colon + 1)];
}

/** One address or a list of them, each as `scheme://user:password@host` or with the password in its query. */
function inAddresses(text: string): readonly string[] {
  return text.split(/,(?=[^,]*:\/\/)/).flatMap((address) => {
    const credentials = /:\/\/([^/@:]*:[^]*)@/.exec(address)?.[1];
    const query = /[?&]password=([^&]*)/.exec(address)?.[1];
    const written = [
      ...(credentials === undefined ? [] : inCredentials(credentials)),
      ...(query === undefined ? [] : [query]),
    ];
    return written.flatMap((secret) => [secret, unescape(secret)]);
  });
}

function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
