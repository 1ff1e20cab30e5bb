import { useEffect, useState } from 'preact/hooks';
import type { Offender } from '../src/limiter/offender';
import type { ListedSetting } from '../src/operators/answers';
import { useAnswer } from './api';
import { Answered, Field, Icon, Table } from './parts';
import { addressOf, replaceParameters, route } from './route';
import { useStore } from './store';
import { Short, count } from './text';

/** Milliseconds between two looks, and the most callers that are shown. */
const [LOOK_INTERVAL, MOST_SHOWN] = [5_000, 200];

export function CallersPage() {
  const { parameters } = useStore(route);
  const search = parameters.get('q') ?? '';
  const [looks, setLooks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setLooks((before) => before + 1), LOOK_INTERVAL);
    return () => clearInterval(timer);
  }, []);
  return (
    <Answered
      answer={useAnswer<{ readonly offenders: readonly Offender[] }>('offenders?top=1000', looks)}
      show={({ offenders }) => {
        const found = offenders.filter((each) => hasWords(`${each.domain} ${each.rule} ${each.descriptor}`, search));
        return (
          <>
            <Field
              label="Search by any part of a caller or its rule"
              type="search"
              value={search}
              onText={(q) => replaceParameters({ q })}
            />{' '}
            <span role="status">
              {count(found.length)} of {count(offenders.length)} callers
            </span>
            <CallerTable title="Callers that are limited" offenders={found.slice(0, MOST_SHOWN)} />
            {found.length > MOST_SHOWN && <p class="hint">Those that are limited most; search for others.</p>}
            {found.length === 0 && search !== '' && <NotLimited search={search} />}
          </>
        );
      }}
    />
  );
}

/** Whether a text has each of some words, in any order. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

function NotLimited({ search }: { readonly search: string }) {
  return (
    <p class="notice">
      No caller with this text was limited lately. <a href={addressOf('counters', { descriptor: search })}>Counters</a>{' '}
      and <a href={addressOf('explain', { descriptor: search })}>Explain</a> show any caller.
    </p>
  );
}

interface CallerTableProps {
  readonly title: string;
  /** The callers that are limited most come first. */
  readonly offenders: readonly Offender[];
}

/** Callers with what can be looked at, and done, for each. */
export function CallerTable({ title, offenders }: CallerTableProps) {
  const heading = (
    <>
      <h2>{title}</h2>
      <Period />
    </>
  );
  if (offenders.length === 0) {
    return (
      <section>
        {heading}
        <p class="hint">None, or OFFENDERS_SIZE is 0.</p>
      </section>
    );
  }
  return (
    <Table title={title} heading={heading} columns={['Caller, and its rule', 'Limited calls:', 'Look into:']}>
      {offenders.map((offender) => (
        <Caller key={`${offender.domain} ${offender.rule} ${offender.descriptor}`} offender={offender} />
      ))}
    </Table>
  );
}

function Caller({ offender: { domain, rule, descriptor, isShadow, limited, error } }: { readonly offender: Offender }) {
  const query = { domain, descriptor };
  return (
    <tr>
      <td class="text">
        <Short text={descriptor} />
        <div class="hint">
          {rule === '' ? (
            <Short text={`${domain}: a limit of the request`} />
          ) : (
            <Short text={rule} href={addressOf('rules', { rule })} />
          )}
          {isShadow && ' (shadow mode: the calls passed)'}
        </div>
      </td>
      <td class="number" title={error === 0 ? undefined : `at most ${count(error)} of them are of others`}>
        {count(limited)}
      </td>
      <td class="icons">
        <Icon icon="explain" label={`Explain ${descriptor}`} href={addressOf('explain', query)} />
        <Icon icon="counter" label={`Counter of ${descriptor}`} href={addressOf('counters', query)} />
        <Icon icon="clear" label={`Clear ${descriptor}…`} href={addressOf('counters', { ...query, clear: 'ask' })} />
      </td>
    </tr>
  );
}

/** The time for which callers are counted. */
function Period() {
  const { value } = useAnswer<{ readonly settings: readonly ListedSetting[] }>('settings');
  const period = value?.settings.find(({ name }) => name === 'OFFENDERS_WINDOW')?.value ?? 'OFFENDERS_WINDOW';
  return <p class="hint">Counted in the present period of {period}, and in the one before it.</p>;
}
