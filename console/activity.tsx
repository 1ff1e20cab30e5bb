import { useState } from 'preact/hooks';
import { useHappenings } from './changes';
import { type Happening, outagesOf } from './happenings';
import { useRecorded } from './history';
import { MarkIcon, type Shape } from './icons';
import { PageBar } from './page-bar';
import { Card, Choice, Pill, Table, answered } from './parts';
import { Link, clock, count, duration, shown } from './text';
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
      {answered(useRecorded(), ({ marks }) => (
        <div class="grid">
          <Card title="What happened" columns={8}>
            <Log happenings={happenings.filter(({ shape }) => shapes.length === 0 || shapes.includes(shape))} />
          </Card>
          <OutageTable marks={marks} />
        </div>
      ))}
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
            <b>
              {title}
              {link?.isName && [': ', <Link href={link.href} text={link.label} />]}
            </b>
            <div class="sub">
              {shown(text)}
              {link !== undefined && !link.isName && [' · ', <Link href={link.href} text={link.label} />]}
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
  const rows = outages.map(({ from, until, calls, answers }) => {
    const to = until === undefined ? <Pill tone="red" text="ongoing" /> : clock(until);
    const cost = [calls === undefined ? '–' : count(calls), <span class="sub">{answers.join(' or ')}</span>];
    return { key: from, cells: [clock(from), to, duration((until ?? now) - from), cost] };
  });
  const all = rows.length > 0 && `${rows.length} in all, ${duration(sum)}`;
  return (
    <Card title="Outages, last hour" columns={4} end={all}>
      <Table title="Outages" kind="times" columns={['From', 'To', 'Lasted:', 'Calls:']} rows={rows} />
    </Card>
  );
}
