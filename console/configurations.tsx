import { useMemo } from 'preact/hooks';
import type { ListedConfiguration, ListedConfigurations } from '../src/operators/answers';
import { visible } from '../src/text/visible';
import { useAnswer } from './api';
import { type Line, difference, excerptOf } from './difference';
import { live } from './live-events';
import { Answered, Card, Notice } from './parts';
import { useStore } from './store';
import { Text, Time, clock, secondsOf } from './text';

/** What two configurations are compared by. */
type Configuration = Pick<ListedConfiguration, 'at' | 'files'>;

/** The answer, again after each load. */
function useConfigurations() {
  const event = useStore(live).event;
  return useAnswer<ListedConfigurations>('configurations', `${event?.loaded?.at} ${event?.rejected?.at}`);
}

export function RejectedConfiguration() {
  return (
    <Answered
      answer={useConfigurations()}
      show={({ active, rejected }) =>
        rejected === null ? (
          <p class="empty">No rules were rejected since the start of the service.</p>
        ) : (
          <div class="grid">
            <Notice
              tone={rejected.isNewest ? 'amber' : 'none'}
              title={
                <>
                  Rejected at <Time iso={rejected.at} />
                </>
              }
            >
              <p>
                {rejected.isNewest
                  ? 'The rules before them stay active. To do: correct these errors.'
                  : 'Valid rules have followed.'}
              </p>
            </Notice>
            <Card title="Errors" columns={12}>
              {rejected.errors.map((error) => (
                <pre key={error} class="foot" tabIndex={0}>
                  {visible(error)}
                </pre>
              ))}
            </Card>
            <Changes title="Changes from the active rules" before={active} after={rejected} />
          </div>
        )
      }
    />
  );
}

export function ConfigurationChanges() {
  return (
    <Answered
      answer={useConfigurations()}
      show={({ active, previous }) =>
        active === null || previous === null ? (
          <p class="empty">The rules have not been replaced since the start of the service.</p>
        ) : (
          <div class="grid">
            <Changes
              title={`From ${previous.version} (${clock(secondsOf(previous.at))}) to ${active.version} (${clock(secondsOf(active.at))})`}
              before={previous}
              after={active}
            />
          </div>
        )
      }
    />
  );
}

const SIGNS: Readonly<Record<Line['kind'], string>> = { same: '  ', removed: '− ', added: '+ ' };
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
          <h3 class="foot">
            <Text text={path} />
          </h3>
          <pre class="changes" tabIndex={0}>
            {lines.slice(0, MOST_LINES).map((line, index) =>
              line === undefined ? (
                <div key={index}>…</div>
              ) : (
                <div key={index} class={line.kind}>
                  {SIGNS[line.kind]}
                  {visible(line.text)}
                </div>
              ),
            )}
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
  );
  return [...new Set([...old!.keys(), ...now!.keys()])]
    .sort()
    .filter((path) => old!.get(path) !== now!.get(path))
    .map((path) => ({ path, lines: excerptOf(difference(old!.get(path) ?? '', now!.get(path) ?? '')) }));
}
