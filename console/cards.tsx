import type { History, InstanceReport, LiveRates } from '../src/operators/live-answers';
import type { ChartLine } from './chart';
import type { LineTone } from './plot';
import { Sparkline } from './sparkline';
import { outagesOf } from './happenings';
import type { Series } from './history';
import { Icon } from './icons';
import { clock, measure, percent, shareOf } from './text';

/** A number of a page, and the chart that it can be in. */
export interface Figure {
  readonly label: string;
  readonly value: string;
  readonly unit: string;
  /** What it means: one line. */
  readonly context: string;
  readonly isBad: boolean;
  readonly spark: Series;
  readonly tone: LineTone;
  /** Of the chart. */
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly format: (value: number | null | undefined) => string;
}

export function percentOf(value: number | null | undefined): string {
  return percent(value ?? undefined);
}

/** What is made of several lines of a history, for each sample. */
function combined(lines: readonly Series[], make: (values: readonly number[]) => number | undefined): Series {
  return (lines[0] ?? []).map((_, index) => {
    const values = lines.map((line) => line[index]);
    return values.every((value) => typeof value === 'number') ? (make(values) ?? null) : null;
  });
}

/** Of hits, without those that shadow mode has allowed. */
export function limitedShare(rates: LiveRates | null | undefined): number | undefined {
  return rates ? shareOf(rates.over - rates.shadow, rates.within + rates.over) : undefined;
}

/** The limited share of hits for each sample of a history. */
export function limitedShares({ over, shadow, within }: History['rates']): Series {
  return combined([over, shadow, within], ([o, s, w]) => shareOf(o! - s!, w! + o!) ?? 0);
}

/** The four numbers of a service: calls, what is limited, what fails, how long answers take. */
export function figuresOf(
  rates: LiveRates | null | undefined,
  latency: Partial<NonNullable<InstanceReport['latency']>> | null | undefined,
  { rates: all, latency: latencies, store, marks }: History,
): readonly Figure[] {
  const hits = rates ? rates.within + rates.over : undefined;
  const limited = rates ? rates.over - rates.shadow : undefined;
  const failed = rates?.storeErrors ?? 0;
  const share = limitedShares(all);
  const shadows = combined(
    [all.shadow, all.over, all.within],
    ([shadow, over, within]) => shareOf(shadow, within! + over!) ?? 0,
  );
  const isShadowed = all.shadow.some((value) => (value ?? 0) > 0);
  const answered = combined([all.calls, all.storeErrors, all.invalid], ([calls, errors, invalid]) =>
    Math.max(0, calls! - errors! - invalid!),
  );
  const others: readonly ChartLine[] = [
    { name: 'invalid', values: all.invalid, tone: 'third' as const },
    { name: 'no rule', values: all.noMatch, tone: 'rest' as const },
  ].filter(({ values }) => values.some((value) => (value ?? 0) > 0));
  const measuring = rates === undefined ? '' : 'measuring…';
  return [
    {
      ...{ label: 'Calls over gRPC', value: measure(rates?.calls), unit: '/s', isBad: false },
      context: rates ? `${measure(hits)} hits/s${change(all.calls)}` : measuring,
      ...{ spark: all.calls, tone: 'pass', title: 'Hits per second, by outcome', format: measure },
      lines: [
        {
          name: 'passed',
          values: combined([all.within, all.shadow], ([within, shadow]) => within! + shadow!),
          tone: 'pass',
          isArea: true,
        },
        {
          name: 'limited',
          values: combined([all.over, all.shadow], ([over, shadow]) => over! - shadow!),
          tone: 'over',
        },
        ...(isShadowed ? [{ name: 'in shadow mode', values: all.shadow, tone: 'third' as const }] : []),
      ],
    },
    {
      ...{
        label: 'Limited share',
        value: percent(shareOf(limited, hits)).replace(' %', ''),
        unit: hits ? '%' : '',
        isBad: false,
      },
      context: rates ? (hits === 0 ? 'no hits' : `${measure(limited)} of ${measure(hits)} hits/s`) : measuring,
      ...{ spark: share, tone: 'over', title: 'Limited share of hits, %', format: percentOf },
      lines: [
        { name: 'limited', values: share, tone: 'over', isArea: true },
        ...(isShadowed ? [{ name: 'shadow', values: shadows, tone: 'third' as const }] : []),
      ],
    },
    {
      ...{ label: 'Failed calls', value: measure(rates?.storeErrors), unit: '/s', isBad: failed > 0 },
      context:
        failed > 0
          ? `${percent(shareOf(failed, rates?.calls))} of the calls`
          : noneSince(marks, all.storeErrors, rates),
      ...{
        spark: all.storeErrors,
        tone: failed > 0 ? 'failed' : 'rest',
        title: 'Calls per second, by outcome',
        format: measure,
      },
      lines: [
        { name: 'answered', values: answered, tone: 'pass', isArea: true },
        { name: 'failed', values: all.storeErrors, tone: 'failed' },
        ...others,
      ],
    },
    {
      ...{ label: 'Answer time, 99 % within', ...time(latency?.p99), isBad: false },
      context: latency ? `half within ${measure(latency.p50)} ms` : rates ? 'no calls' : measuring,
      ...{ spark: latencies.p99, tone: 'pass', title: 'Answer time, ms', format: measure },
      lines: [
        { name: '99 % within', values: latencies.p99, tone: 'over' },
        { name: 'half within', values: latencies.p50, tone: 'pass' },
        { name: 'store, mean', values: store.latency, tone: 'rest' },
      ],
    },
  ];
}

/** Milliseconds, or seconds where there are many. */
function time(milliseconds: number | undefined): Pick<Figure, 'value' | 'unit'> {
  const isLong = (milliseconds ?? 0) >= 10_000;
  return { value: measure(isLong ? milliseconds! / 1000 : milliseconds), unit: isLong ? 's' : 'ms' };
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

function noneSince(marks: History['marks'], errors: Series, rates: LiveRates | null | undefined): string {
  const invalid = rates && rates.invalid > 0 ? `${measure(rates.invalid)} invalid/s; ` : '';
  const until = outagesOf(marks).findLast((outage) => outage.until !== undefined)?.until;
  if (errors.every((value) => !value)) return `${invalid}none in the last hour`;
  return `${invalid}none ${until === undefined ? 'now' : `since ${clock(until)}`}`;
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
      {figures.map(({ label, value, unit, context, isBad, spark, tone }, index) => (
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
