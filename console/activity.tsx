import { useState } from 'preact/hooks';
import { useHappenings } from './changes';
import { type Happening, outagesOf } from './happenings';
import { recordedOf } from './history';
import { MarkIcon, type Shape } from './icons';
import { PageBar } from './page-bar';
import { Answered, Card, Choice, Pill, Table } from './parts';
import { Link, Text, clock, count, duration } from './text';
import type { History } from '../src/operators/live-answers';

const KINDS: readonly (readonly [value: string, text: string, shapes: readonly Shape[]])[] = [
  ['', 'All', []],
  ['outages', 'Outages', ['down', 'back']],
  ['rules', 'Rules', ['load', 'reject']],
  ['callers', 'Callers', ['limited', 'change']],
  ['starts', 'Starts', ['start', 'stop', 'worker']],
];

/** What has happened: outages, loads of rules, changes of counters, starts. */
export function ActivityPage() {
  const [kind, setKind] = useState('');
  const happenings = useHappenings();
  const shapes = KINDS.find(([value]) => value === kind)![2];
  return (
    <>
      <PageBar title="Activity" text="The last hour of all instances that are known">
        <Choice label="Kinds" options={KINDS.map(([value, text]) => [value, text])} value={kind} onChoose={setKind} />
      </PageBar>
      <Answered
        answer={recordedOf().use()}
        show={({ marks }) => {
          const all = happenings.filter(({ shape }) => shapes.length === 0 || shapes.includes(shape));
          return (
            <div class="grid">
              <Card title="What happened" columns={8}>
                <Log happenings={all} />
              </Card>
              <OutageTable marks={marks} />
            </div>
          );
        }}
      />
    </>
  );
}

/** Happenings, the newest first. */
export function Log({ happenings }: { readonly happenings: readonly Happening[] }) {
  if (happenings.length === 0) return <p class="empty">Nothing in the last hour.</p>;
  return (
    <ol class="log">
      {happenings.map(({ at, shape, title, text, link }) => (
        <li key={`${at} ${title} ${text}`}>
          <MarkIcon shape={shape} />
          <time dateTime={new Date(at * 1000).toISOString()}>{clock(at)}</time>
          <div>
            <b>{title}</b>
            <div class="sub">
              <Text text={text} />
              {link !== undefined && [' · ', <Link key="link" href={link.href} text={link.label} />]}
            </div>
          </div>
        </li>
      ))}
    </ol>
  );
}

/** The outages of the store, the newest first. */
export function OutageTable({ marks }: Pick<History, 'marks'>) {
  const outages = outagesOf(marks).toReversed();
  const now = Date.now() / 1000;
  const sum = outages.reduce((seconds, { from, until = now }) => seconds + until - from, 0);
  return (
    <Card
      title="Outages, last hour"
      columns={4}
      end={outages.length > 0 && `${outages.length} in all, ${duration(sum)}`}
    >
      {outages.length === 0 ? (
        <p class="empty">None.</p>
      ) : (
        <Table
          title="Outages"
          columns={['From', 'To', 'Lasted:', 'Calls:']}
          rows={outages.map(({ from, until, calls, answers }) => ({
            key: from,
            cells: [
              <span class="nowrap">{clock(from)}</span>,
              until === undefined ? <Pill tone="red" text="ongoing" /> : <span class="nowrap">{clock(until)}</span>,
              duration((until ?? now) - from),
              <>
                {calls === undefined ? '–' : count(calls)}
                <div class="sub">{answers.join(' or ')}</div>
              </>,
            ],
          }))}
        />
      )}
    </Card>
  );
}
