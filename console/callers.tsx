import type { Offender } from '../src/limiter/offender';
import { type Answer, useAnswer } from './api';
import { CallerDetails } from './caller';
import { useCall } from './call-form';
import type { Caller } from './counters';
import { LOOK_INTERVAL, useScope } from './fleet-answer';
import { STATES } from './icons';
import { live, refusal } from './live-events';
import { PageBar } from './page-bar';
import { Card, Field, Named, Pill, Search, Share, Table, answered } from './parts';
import { addressOf, replaceParameters, useParameter } from './route';
import { useStore } from './store';
import { Link, count, secondsOf, shortClock, shown } from './text';

/** The most callers that are shown. */
const MOST_SHOWN = 200;

/** The callers that are limited, or one of them with its counters. */
export function CallersPage() {
  const [domain, descriptor, search] = [useParameter('domain'), useParameter('descriptor'), useParameter('q')];
  const asksToClear = useParameter('clear') === 'ask';
  const { instance } = useScope();
  const answer = useOffenders();
  if (domain !== '' && descriptor !== '') {
    const { offenders = [] } = answer.value ?? {};
    const known = offenders.find((each) => each.domain === domain && each.descriptor === descriptor);
    const query = { domain, descriptor };
    return (
      <div class="grid">
        <PickList offenders={offenders} chosen={known} all={addressOf('callers', { q: search })} />
        <div class="c9 grid">
          <CallerDetails key={`${domain} ${descriptor}`} query={query} offender={known} asksToClear={asksToClear} />
        </div>
      </div>
    );
  }
  const whose = instance === undefined ? '' : ', of the instance that answers';
  return (
    <>
      <PageBar title="Callers" text={`Limited calls of the last 10 minutes${whose}`} />
      <div class="grid">
        <section class="card c8" aria-label="Limited callers">
          {answered(answer, ({ offenders }) => {
            const found = offenders.filter((each) =>
              hasWords(`${each.domain} ${each.rule} ${each.descriptor}`, search),
            );
            return (
              <>
                <Search
                  label="Search by any part of a caller or its rule"
                  value={search}
                  found={`${count(found.length)} of ${count(offenders.length)} callers`}
                  onText={(q) => replaceParameters({ q })}
                />
                <CallerTable offenders={found.slice(0, MOST_SHOWN)} />
                {found.length > MOST_SHOWN && <p class="foot">Those that are limited most; search for others.</p>}
                {found.length === 0 && search !== '' && (
                  <p class="foot">No caller with this text was limited lately. Look up any caller here, too.</p>
                )}
              </>
            );
          })}
        </section>
        <AnyCaller key={search} domain={domain} descriptor={descriptor || (search.includes('=') ? search : '')} />
      </div>
    </>
  );
}

/** The callers of all instances that are limited most; with one instance only, or chosen, more of this one. */
function useOffenders(): Answer<{ readonly offenders: readonly Offender[] }> {
  const { fleet, instance } = useScope();
  const offenders = instance === undefined ? fleet?.offenders : undefined;
  const path = offenders ? undefined : 'offenders?top=1000';
  const own = useAnswer<{ readonly offenders: readonly Offender[] }>(path, { every: LOOK_INTERVAL });
  return offenders ? { value: { offenders } } : own;
}

/** Chooses a caller by the descriptor of its calls, whether it is limited or not. */
function AnyCaller({ domain, descriptor }: Caller) {
  const call = useCall({ domain, lines: descriptor });
  function submit(event: Event): void {
    event.preventDefault();
    location.hash = addressOf('callers', { domain: call.domain, descriptor: call.lines });
  }
  return (
    <Card title="Any caller" columns={4}>
      <form class="pad fields" onSubmit={submit}>
        {call.fields}
        <Field label="Descriptor: key=value,key2=value2, or JSON" required value={call.lines} onText={call.setLines} />
        <button class="main">Look up</button>
      </form>
    </Card>
  );
}

/** Whether a text has each of some words, in any order. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  const each = words.toLowerCase().split(/\s+/);
  return each.every((word) => lower.includes(word));
}

function keyOf({ domain, rule, descriptor }: Offender): string {
  return `${domain} ${rule} ${descriptor}`;
}

interface PickProps {
  readonly offenders: readonly Offender[];
  readonly chosen: Offender | undefined;
  /** Where all of them are. */
  readonly all: string;
}

function PickList({ offenders, chosen, all }: PickProps) {
  const mayChange = useStore(refusal) === '';
  return (
    <Card title="Limited callers" columns={3} kind="fill pick" end={<Link href={all} text="All" />}>
      {offenders.slice(0, MOST_SHOWN).map((offender) => {
        const { domain, rule, descriptor, recent } = offender;
        const href = addressOf('callers', { domain, descriptor });
        return (
          <a key={keyOf(offender)} data-row href={href} aria-current={offender === chosen ? 'true' : undefined}>
            <span class="who">{shown(descriptor)}</span>
            <b class="number">{count(recent)}</b>
            <span class="small quiet">{shown(rule === '' ? domain : rule)}</span>
            {stateOf(offender)}
          </a>
        );
      })}
      {offenders.length === 0 && <p class="empty">None that may be shown.</p>}
      <p class="foot">
        <kbd>j</kbd> <kbd>k</kbd> next, previous {mayChange && [<kbd key="c">c</kbd>, ' clear']}
      </p>
    </Card>
  );
}

/** Whether a caller passes now; not known while calls fail, as the store is down. */
function stateOf({ isShadow, state, since }: Offender) {
  const isDown = live.value.event?.health.store.state === 'red';
  if (isDown && (isShadow || state === 'passes')) return <Pill tone="none" text={STATES.none} />;
  if (isShadow) return <Pill tone="well" text="passes, shadow mode" />;
  if (state === 'never') return <Pill tone="lock" text="limit of 0" />;
  if (state === 'passes') return <Pill tone="well" text="passes now" />;
  return <Pill tone="over" text={since === null ? 'limited' : `limited since ${shortClock(secondsOf(since))}`} />;
}

/** Callers, those that are limited most first, with what can be looked at for each. */
export function CallerTable({ offenders }: { readonly offenders: readonly Offender[] }) {
  const rows = offenders.map((offender) => {
    const { domain, rule, descriptor, isShadow, recent, share, error } = offender;
    const query = { domain, descriptor };
    const sub =
      rule === '' ? `${domain}: a limit of the request` : <Link href={addressOf('rules', { rule })} text={rule} />;
    const others = error === 0 ? undefined : `at most ${count(error)} may be of others`;
    return {
      key: keyOf(offender),
      cells: [
        <Named isRow name={descriptor} href={addressOf('callers', query)} sub={sub} />,
        <span title={others}>{count(recent)}</span>,
        <Share share={share === null ? undefined : 100 * share} kind={isShadow ? 'shadow' : ''} />,
        stateOf(offender),
        <a class="small" aria-label={`Explain ${descriptor.slice(0, 80)}`} href={addressOf('explain', query)}>
          Explain
        </a>,
      ],
    };
  });
  const columns = ['Caller and rule', 'Limited calls:', 'Of its rule:!', 'State', 'Look into!'];
  return <Table title="Callers" kind="stack" columns={columns} rows={rows} empty="None, or OFFENDERS_SIZE is 0." />;
}
