import { type Setting, namesOf } from './table/setting';
import { settingRows } from './table/settings-table';
import { otlpHeaders, percentDecoded, splitList } from './values/lists';
import { type Environment, lookUp, textInFile } from './variables';

const secretRows = settingRows.filter(({ type }) => type.secret === 'value');

/**
 * The secrets in an environment, so that logs and error messages can mask them: the secret settings, and the
 * credentials in every variable that holds a URL (a proxy's, for example). A compound secret (a header value with its
 * scheme, a user with a password) is returned as a whole and in parts.
 */
export function secretsOf(environment: Environment): readonly string[] {
  const inSettings = secretRows.flatMap((row) =>
    lookUp(environment, namesOf(row)).flatMap(({ text }) => secretsOfSetting(row, text)),
  );
  const inUrls = lookUp(environment, Object.keys(environment)).flatMap(({ text }) => secretsOfUrls(text));
  return distinct([...inSettings, ...inUrls]);
}

/** The secrets in the contents of a file of a secret setting. */
export function secretsOfText(setting: Pick<Setting, 'type'>, contents: string): readonly string[] {
  const text = textInFile(setting, contents);
  return distinct(setting.type.secret === 'value' ? secretsOfSetting(setting, text) : secretsOfUrls(text));
}

function distinct(secrets: readonly string[]): readonly string[] {
  return [...new Set(secrets)].filter((secret) => secret !== '');
}

function secretsOfSetting({ type }: Pick<Setting, 'type'>, text: string): readonly string[] {
  if (type === otlpHeaders) return splitList(text).flatMap(secretsOfItem);
  const result = type.parse(text);
  if ('value' in result && typeof result.value === 'object') {
    return Object.values(Object(result.value)).flatMap((value) => secretsOfHeader(String(value)));
  }
  return secretsOfCredentials(text);
}

/** `key=value`, percent-encoded; an item that is no pair may be a value whose key was forgotten. */
function secretsOfItem(item: string): readonly string[] {
  return secretsOfHeader(percentDecoded(item.slice(item.indexOf('=') + 1)));
}

/** `Bearer token`, `Basic base64`, or a key alone. */
function secretsOfHeader(value: string): readonly string[] {
  const [, scheme, token] = /^(\S+)\s+([^]*)$/.exec(value) ?? [];
  if (scheme === undefined || token === undefined) return [value];
  const basic = scheme.toLowerCase() === 'basic' ? secretsOfCredentials(Buffer.from(token, 'base64').toString()) : [];
  return [value, token, ...basic];
}

/** `password` or `user:password`. */
function secretsOfCredentials(text: string): readonly string[] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text] : [text, text.slice(colon + 1)];
}

/** One URL or a list of them, each `scheme://user:password@host` or with the password in the query. */
function secretsOfUrls(text: string): readonly string[] {
  return text.split(/,(?=[^,]*:\/\/)/).flatMap((url) => {
    // Up to the last at sign: without one, each scheme would be followed to the end of the text in vain.
    const credentials = /:\/\/([^/@:]*:[^]*)$/.exec(url.slice(0, Math.max(0, url.lastIndexOf('@'))))?.[1];
    const query = /[?&]password=([^&]*)/.exec(url)?.[1];
    const encoded = [
      ...(credentials === undefined ? [] : secretsOfCredentials(credentials)),
      ...(query === undefined ? [] : [query]),
    ];
    return encoded.flatMap((secret) => [secret, percentDecoded(secret)]);
  });
}
