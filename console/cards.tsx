import type { History, LiveRates } from '../src/operators/live-answers';
import { type ChartLine, outcomeLines } from './chart';
import type { Scope } from './fleet-answer';
import type { LineTone } from './plot';
import { Sparkline } from './sparkline';
import { outagesOf } from './happenings';
import type { Series } from './history';
import { Icon } from './icons';
import { clock, listed, measure, percent, shareOf } from './text';

/** A number of a page, and the chart that it can be in. */
export interface Figure {
  readonly label: string;
  readonly value: string;
  readonly unit: string;
  /** What it means: one line. */
  readonly context: string;
  readonly isBad?: boolean;
  readonly spark: Series;
  readonly tone: LineTone;
  /** The title of the chart. */
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly format: (value: number | null | undefined) => string;
}

/** What is made of several lines of a history, for each sample. */
function combined(lines: readonly Series[], make: (values: readonly number[]) => number | undefined): Series {
  return (lines[0] ?? []).map((_, index) => {
    const values = lines.map((line) => line[index]);
    return values.every((value) => typeof value === 'number') ? (make(values) ?? null) : null;
  });
}

/** The limited share of hits, without those that shadow mode has allowed. */
export function limitedShare(rates: LiveRates | null | undefined): number | undefined {
  return rates ? shareOf(rates.over - rates.shadow, rates.within + rates.over) : undefined;
}

/** The limited share of hits for each sample of a history. */
export function limitedShares({ over, shadow, within }: History['rates']): Series {
  return combined([over, shadow, within], ([o, s, w]) => shareOf(o! - s!, w! + o!) ?? 0);
}

function hasAny(values: Series): boolean {
  return values.some((value) => value !== null && value > 0);
}

/** The four numbers of a service: calls, what is limited, what fails, how long answers take. */
export function figuresOf({ rates, latency }: Scope, history: History): readonly Figure[] {
  const { rates: all, latency: latencies, store } = history;
  const [hits, limited] = rates ? [rates.within + rates.over, rates.over - rates.shadow] : [];
  const failed = rates?.storeErrors ?? 0;
  const share = limitedShares(all);
  const shadowShare = combined([all.shadow, all.over, all.within], ([s, o, w]) => shareOf(s, w! + o!) ?? 0);
  const passed = combined([all.within, all.shadow], ([within, shadow]) => within! + shadow!);
  const notPassed = combined([all.over, all.shadow], ([over, shadow]) => over! - shadow!);
  function lineOf(name: string, values: Series, tone: LineTone): ChartLine {
    return { name, values, tone };
  }
  function contextOf(text: string): string {
    return rates ? text : rates === null ? 'measuring…' : '';
  }
  const shadow = hasAny(all.shadow);
  return [
    {
      ...{ label: 'Calls over gRPC', value: measure(rates?.calls), unit: '/s' },
      context: contextOf(`${measure(hits)} hits/s of all listeners${change(all.calls)}`),
      ...{ spark: all.calls, tone: 'pass', title: 'Hits per second, by outcome', format: measure },
      lines: [
        ...outcomeLines(['passed', 'limited'], passed, notPassed),
        ...(shadow ? [lineOf('in shadow mode', all.shadow, 'third')] : []),
      ],
    },
    {
      label: 'Limited share',
      ...{ value: percent(shareOf(limited, hits)).replace(' %', ''), unit: hits ? '%' : '' },
      context: contextOf(hits === 0 ? 'no hits' : `${measure(limited)} of ${measure(hits)} hits/s`),
      ...{ spark: share, tone: 'over', title: 'Limited share of hits, %', format: percent },
      lines: [
        { ...lineOf('limited', share, 'over'), isArea: true },
        ...(shadow ? [lineOf('shadow', shadowShare, 'third')] : []),
      ],
    },
    {
      ...{ label: 'Failed calls', value: measure(rates?.storeErrors), unit: '/s', isBad: failed > 0 },
      context: contextOf(failed > 0 ? 'of all listeners' : noneSince(history, rates)),
      ...{ spark: all.storeErrors, tone: failed > 0 ? 'failed' : 'rest', format: measure },
      title: 'Calls over gRPC, and failed ones of all listeners, per second',
      lines: [
        { ...lineOf('gRPC', all.calls, 'pass'), isArea: true },
        lineOf('failed', all.storeErrors, 'failed'),
        ...[lineOf('invalid', all.invalid, 'third'), lineOf('no rule', all.noMatch, 'rest')].filter(({ values }) =>
          hasAny(values),
        ),
      ],
    },
    {
      ...{ label: 'Answer time, 99 % within', ...time(latency?.p99) },
      context: contextOf(latency ? `half within ${measure(latency.p50)} ms` : 'no calls'),
      ...{ spark: latencies.p99, tone: 'pass', title: 'Answer time, ms', format: measure },
      lines: [
        lineOf('99 % within', latencies.p99, 'over'),
        lineOf('half within', latencies.p50, 'pass'),
        lineOf('store, mean', store.latency, 'rest'),
      ],
    },
  ];
}

/** Milliseconds, or seconds where there are many. */
function time(milliseconds = Number.NaN): Pick<Figure, 'value' | 'unit'> {
  if (milliseconds >= 10_000) return { value: measure(milliseconds / 1000), unit: 's' };
  return { value: measure(Number.isNaN(milliseconds) ? null : milliseconds), unit: 'ms' };
}

/** By how much a number is more or less than at the begin of what is known, in percent. */
function change(values: Series): string {
  const [first, last] = [values.slice(0, 6), values.slice(-6)].map((part) =>
    part.reduce<number>((sum, each) => sum + (each ?? 0), 0),
  );
  if (values.length < 60 || !first) return '';
  const by = Math.round((100 * (last! - first)) / first);
  return Math.abs(by) < 2 ? '; as before' : `; ${Math.abs(by)} % ${by > 0 ? 'more' : 'less'} than before`;
}

function noneSince({ marks, rates: all }: History, rates: LiveRates | null | undefined): string {
  const until = outagesOf(marks).findLast((outage) => outage.until !== undefined)?.until;
  const none = !hasAny(all.storeErrors)
    ? 'none in the last hour'
    : `none ${until === undefined ? 'now' : `since ${clock(until)}`}`;
  return listed([rates && rates.invalid > 0 && `${measure(rates.invalid)} invalid/s`, none], '; ');
}

interface CardsProps {
  readonly figures: readonly Figure[];
  readonly history: History;
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
}

/** Each number with its trend: a button that puts it into the chart. */
export function NumberCards({ figures, history, chosen, onChoose }: CardsProps) {
  return (
    <div class="c12 grid" role="group" aria-label="Numbers; the pressed one is in the chart">
      {figures.map(({ label, value, unit, context, isBad = false, spark, tone }, index) => (
        <button
          key={label}
          class={`card figure c3 ${isBad ? 'red' : ''}`}
          aria-pressed={index === chosen}
          data-key={index + 1}
          onClick={() => onChoose(index)}
        >
          <span class="label">
            {isBad && <Icon name="red" />}
            {label}
            <kbd aria-hidden="true">{index + 1}</kbd>
          </span>
          <span class="value">
            {value}
            <small>{unit}</small>
          </span>
          <span class="context">{context}</span>
          <Sparkline history={history} values={spark} tone={tone} />
        </button>
      ))}
    </div>
  );
}
