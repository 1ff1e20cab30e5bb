import { type Setting, namesOf } from '../../src/settings/table/setting';
import { settingsTable } from '../../src/settings/table/settings-table';
import { fileNamesOf } from '../../src/settings/variables/secret-file';
import { markdownFiles, readMarkdown } from './markdown-files';

/** Names in capitals that are no settings of weir: variables that Node, libraries and systemd use, codes, and values. */
const OTHERS =
  /^(?:NODE_|SSL_CERT_|OTEL_|NOTIFY_SOCKET$|LISTEN_|WATCHDOG_USEC$|OVER_LIMIT$|GRPC_XDS_SOTW$|RESOURCE_EXHAUSTED$|INVALID_ARGUMENT$|HTTP_FILTER$|HTTP_ROUTE$)/;
const SPAN = /`(?<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g;

/** The names in capitals that a page has as code, such as `GRPC_PORT` and `GRPC_PORT=0`. */
function namesIn(page: string): readonly string[] {
  return Array.from(readMarkdown(page).matchAll(SPAN), ({ groups }) => groups!['name']!);
}

test('every setting that the documentation names exists', () => {
  const settings = settingsTable.flatMap((group): readonly Setting[] => group.settings);
  const names = new Set(settings.flatMap((setting) => [...namesOf(setting), ...fileNamesOf(setting)]));
  const pages = markdownFiles().filter((file) => /^(?:README\.md$|SECURITY\.md$|docs\/|examples\/)/.test(file));
  const named = pages.flatMap((page) => namesIn(page).map((name) => ({ page, name })));

  expect(named.length).toBeGreaterThan(200);
  expect(named.filter(({ name }) => !names.has(name) && !OTHERS.test(name))).toEqual([]);
});
