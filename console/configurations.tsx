import { useMemo } from 'preact/hooks';
import type { ListedConfiguration, ListedConfigurations } from '../src/operators/answers';
import { visible } from '../src/text/visible';
import { useAnswer } from './api';
import { type Line, difference, excerptOf } from './difference';
import { live } from './live-events';
import { Answered } from './parts';
import { useStore } from './store';
import { Text, Time } from './text';

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
          <p class="notice">No rules were rejected since the start of the service.</p>
        ) : (
          <>
            <p class={rejected.isNewest ? 'notice bad' : 'notice'}>
              Rejected <Time iso={rejected.at} />.{' '}
              {rejected.isNewest
                ? 'The rules before them stay active: correct these errors.'
                : 'Valid rules have followed.'}
            </p>
            <h2>Errors</h2>
            {rejected.errors.map((error) => (
              <pre key={error} tabIndex={0}>
                {visible(error)}
              </pre>
            ))}
            <h2>Changes from the active rules</h2>
            <Changes before={active} after={rejected} />
          </>
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
          <p class="notice">The rules have not been replaced since the start of the service.</p>
        ) : (
          <>
            <h2>
              From <Text text={previous.version} /> (<Time iso={previous.at} />) to <Text text={active.version} /> (
              <Time iso={active.at} />)
            </h2>
            <Changes before={previous} after={active} />
          </>
        )
      }
    />
  );
}

const SIGNS: Readonly<Record<Line['kind'], string>> = { same: '  ', removed: '− ', added: '+ ' };
/** More lines would delay the page. */
const MOST_LINES = 2_000;

function Changes({ before, after }: { readonly before: Configuration | null; readonly after: Configuration }) {
  const files = useMemo(() => changedFiles(before, after), [before?.at, after.at]);
  if (files === undefined) {
    return (
      <p class="notice">The files are not known: they have more than 4 MB, or the rules are from an xDS server.</p>
    );
  }
  if (files.length === 0) return <p class="notice">The files have the same text.</p>;
  return (
    <>
      {files.map(({ path, lines }) => (
        <section key={path}>
          <h3>
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
    </>
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
