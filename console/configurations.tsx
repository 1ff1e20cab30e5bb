import { useMemo } from 'preact/hooks';
import type { ListedConfiguration, ListedConfigurations, ListedLoad } from '../src/operators/answers';
import { visible } from '../src/text/visible';
import { useAnswer } from './api';
import { type Line, difference, excerptOf } from './difference';
import { live } from './live-events';
import { Card, Notice, Table, answered } from './parts';
import { useStore } from './store';
import { Time, clock, count, listed, secondsOf, shown } from './text';

/** What two configurations are compared by. */
type Configuration = Pick<ListedConfiguration, 'at' | 'files'>;

/** An answer of the API, again after each load. */
function useAfterLoads<Answer>(path: string) {
  const { event } = useStore(live);
  return useAnswer<Answer>(path, { version: `${event?.loaded?.at} ${event?.rejected?.at}` });
}

export function RejectedConfiguration() {
  return answered(useAfterLoads<ListedConfigurations>('configurations'), ({ active, rejected }) => {
    if (rejected === null) return <p class="empty">No rules were rejected since the start of the service.</p>;
    const [tone, text] = rejected.isNewest
      ? (['amber', 'The rules before them stay active. To do: correct these errors.'] as const)
      : (['none', 'Valid rules have followed.'] as const);
    return (
      <div class="grid">
        <Notice tone={tone} title={['Rejected at ', <Time iso={rejected.at} />]}>
          <p>{text}</p>
        </Notice>
        <Card title="Errors" columns={12}>
          {rejected.errors.map((error) => (
            <pre key={error} class="foot changes" tabIndex={0}>
              {visible(error)}
            </pre>
          ))}
        </Card>
        <Changes title="Changes from the active rules" before={active} after={rejected} />
      </div>
    );
  });
}

export function ConfigurationChanges() {
  return answered(useAfterLoads<ListedConfigurations>('configurations'), ({ active, previous }) => {
    if (active === null || previous === null) {
      return <p class="empty">The rules have not been replaced since the start of the service.</p>;
    }
    const [from, to] = [previous, active].map(({ version, at }) => `${version} (${clock(secondsOf(at))})`);
    return (
      <div class="grid">
        <Changes title={`From ${from} to ${to}`} before={previous} after={active} />
        <Loads />
      </div>
    );
  });
}

function Loads() {
  return (
    <Card title="Loads of this instance" columns={12}>
      {answered(useAfterLoads<{ readonly loads: readonly ListedLoad[] }>('loads'), ({ loads }) => (
        <Table
          title="Loads"
          columns={['Loaded', 'Rules:', 'What changed']}
          rows={loads.toReversed().map(({ at, rules, changes }) => ({
            key: at,
            cells: [<Time iso={at} />, count(rules), changesText(changes)],
          }))}
        />
      ))}
    </Card>
  );
}

/** `added shop.user, shop.plan and 7 more; removed shop.card`. */
function changesText(changes: ListedLoad['changes']): string {
  if (changes === null) return 'the first rules';
  const texts = Object.entries({
    added: [changes.domainsAdded, changes.rulesAdded],
    removed: [changes.domainsRemoved, changes.rulesRemoved],
    changed: [changes.rulesChanged],
  }).map(([what, lists]) => {
    const names = lists.flatMap((list) => list.names);
    const more = lists.reduce((sum, list) => sum + list.count, 0) - names.length;
    return names.length > 0 && `${what} ${names.join(', ')}${more > 0 ? ` and ${count(more)} more` : ''}`;
  });
  return listed(texts, '; ') || 'nothing';
}

const SIGNS: Readonly<Record<Line['kind'], string>> = { same: '  ', removed: '− ', added: '+ ', omitted: '' };
/** More lines would delay the page. */
const MOST_LINES = 2_000;

interface ChangesProps {
  readonly title: string;
  readonly before: Configuration | null;
  readonly after: Configuration;
}

function Changes({ title, before, after }: ChangesProps) {
  const files = useMemo(() => changedFiles(before, after), [before?.at, after.at]);
  return (
    <Card title={title} columns={12}>
      {files === undefined && (
        <p class="empty">The files are not known: they have more than 4 MB, or the rules are from an xDS server.</p>
      )}
      {files?.length === 0 && <p class="empty">The files have the same text.</p>}
      {files?.map(({ path, lines }) => (
        <section key={path} aria-label={path}>
          <h3 class="foot">{shown(path)}</h3>
          <pre class="changes" tabIndex={0}>
            {lines.slice(0, MOST_LINES).map(({ kind, text }, index) => (
              <div key={index} class={kind}>
                {SIGNS[kind] + visible(text)}
              </div>
            ))}
            {lines.length > MOST_LINES && `… and ${lines.length - MOST_LINES} more lines`}
          </pre>
        </section>
      ))}
    </Card>
  );
}

function changedFiles(before: Configuration | null, after: Configuration) {
  if (before?.files === null || after.files === null) return undefined;
  const [old, now] = [before?.files ?? [], after.files].map(
    (files) => new Map(files.map(({ path, text }) => [path, text])),
  ) as [Map<string, string>, Map<string, string>];
  return [...new Set([...old.keys(), ...now.keys()])]
    .sort()
    .filter((path) => old.get(path) !== now.get(path))
    .map((path) => ({ path, lines: excerptOf(difference(old.get(path) ?? '', now.get(path) ?? '')) }));
}
