import type { Offender } from '../src/limiter/offender';
import { type Answer, useLooks } from './api';
import { CallerDetails } from './caller';
import { useCall } from './call-form';
import type { Caller } from './counters';
import { useScope } from './fleet-answer';
import { refusal } from './live-events';
import { PageBar } from './page-bar';
import { Answered, Card, Field, Named, Pill, Share, Table } from './parts';
import { addressOf, replaceParameters, route } from './route';
import { useStore } from './store';
import { Link, Text, count, secondsOf, shortClock } from './text';

/** The most callers that are shown. */
const MOST_SHOWN = 200;

/** The callers that are limited, or one of them with its counters. */
export function CallersPage() {
  const { parameters } = useStore(route);
  const [domain, descriptor] = [parameters.get('domain') ?? '', parameters.get('descriptor') ?? ''];
  const search = parameters.get('q') ?? '';
  const { instance } = useScope();
  const mayChange = useStore(refusal) === '';
  const answer = useOffenders();
  const isChosen = domain !== '' && descriptor !== '';
  const known = answer.value?.offenders.find((each) => each.domain === domain && each.descriptor === descriptor);
  if (isChosen) {
    return (
      <div class="grid">
        <section class="card c3 fill pick" aria-label="Limited callers">
          <div class="head">
            <h2>Limited callers</h2>
            <a class="small end-of-line" href={addressOf('callers', { q: search })}>
              All
            </a>
          </div>
          <PickList offenders={answer.value?.offenders ?? []} chosen={known} />
          <p class="foot">
            <kbd>j</kbd> <kbd>k</kbd> next, previous {mayChange && [<kbd key="c">c</kbd>, ' clear']}
          </p>
        </section>
        <div class="c9 grid">
          <CallerDetails
            key={`${domain} ${descriptor}`}
            query={{ domain, descriptor }}
            offender={known}
            asksToClear={parameters.get('clear') === 'ask'}
          />
        </div>
      </div>
    );
  }
  return (
    <>
      <PageBar
        title="Callers"
        text={`Limited calls of the last 10 minutes${instance === undefined ? '' : ', of the instance that answers'}`}
      />
      <div class="grid">
        <section class="card c8" aria-label="Limited callers">
          <Answered
            answer={answer}
            show={({ offenders }) => {
              const found = offenders.filter((each) =>
                hasWords(`${each.domain} ${each.rule} ${each.descriptor}`, search),
              );
              return (
                <>
                  <div class="head tools">
                    <Field
                      label="Search by any part of a caller or its rule"
                      type="search"
                      value={search}
                      onText={(q) => replaceParameters({ q })}
                    />
                    <span role="status" class="small quiet">
                      {count(found.length)} of {count(offenders.length)} callers
                    </span>
                  </div>
                  <CallerTable offenders={found.slice(0, MOST_SHOWN)} />
                  {found.length > MOST_SHOWN && <p class="foot">Those that are limited most; search for others.</p>}
                  {found.length === 0 && search !== '' && (
                    <p class="foot">No caller with this text was limited lately. Look up any caller here, too.</p>
                  )}
                </>
              );
            }}
          />
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
  const own = useLooks<{ readonly offenders: readonly Offender[] }>(offenders ? undefined : 'offenders?top=1000');
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
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

function keyOf({ domain, rule, descriptor }: Offender): string {
  return `${domain} ${rule} ${descriptor}`;
}

interface PickProps {
  readonly offenders: readonly Offender[];
  readonly chosen: Offender | undefined;
}

function PickList({ offenders, chosen }: PickProps) {
  return (
    <>
      {offenders.slice(0, MOST_SHOWN).map((offender) => {
        const { domain, rule, descriptor, recent } = offender;
        return (
          <a
            key={keyOf(offender)}
            data-row
            href={addressOf('callers', { domain, descriptor })}
            aria-current={offender === chosen ? 'true' : undefined}
          >
            <span class="who">
              <Text text={descriptor} />
            </span>
            <b class="number">{count(recent)}</b>
            <span class="small quiet">
              <Text text={rule === '' ? domain : rule} />
            </span>
            <State offender={offender} />
          </a>
        );
      })}
    </>
  );
}

/** Whether a caller passes now. */
function State({ offender: { isShadow, state, since } }: { readonly offender: Offender }) {
  if (isShadow) return <Pill tone="well" text="passes, shadow mode" />;
  if (state === 'never') return <Pill tone="lock" text="limit of 0" />;
  if (state === 'passes') return <Pill tone="well" text="passes now" />;
  return <Pill tone="over" text={since === null ? 'limited' : `limited since ${shortClock(secondsOf(since))}`} />;
}

/** Callers, those that are limited most first, with what can be looked at for each. */
export function CallerTable({ offenders }: { readonly offenders: readonly Offender[] }) {
  if (offenders.length === 0) return <p class="empty">None, or OFFENDERS_SIZE is 0.</p>;
  return (
    <Table
      title="Callers"
      kind="stack"
      columns={['Caller and rule', 'Limited calls:', 'Of its rule:!', 'State', 'Look into!']}
      rows={offenders.map((offender) => {
        const { domain, rule, descriptor, recent, share, error } = offender;
        const query = { domain, descriptor };
        const sub =
          rule === '' ? `${domain}: a limit of the request` : <Link href={addressOf('rules', { rule })} text={rule} />;
        return {
          key: keyOf(offender),
          cells: [
            <Named isRow name={descriptor} href={addressOf('callers', query)} sub={sub} />,
            <span title={error === 0 ? undefined : `at most ${count(error)} may be of others`}>{count(recent)}</span>,
            <Share share={share === null ? undefined : 100 * share} />,
            <State offender={offender} />,
            <a class="small" aria-label={`Explain ${descriptor.slice(0, 80)}`} href={addressOf('explain', query)}>
              Explain
            </a>,
          ],
        };
      })}
    />
  );
}
