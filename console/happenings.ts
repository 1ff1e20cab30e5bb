import type { EventMark, History, OutageMark } from '../src/operators/live-answers';
import type { Shape } from './icons';
import { addressOf } from './route';
import { clock, counted, duration, listed, spanText } from './text';

/** Something that has happened at a point in time, as charts and lists show it. */
export interface Happening {
  /** Unix seconds. */
  readonly at: number;
  readonly shape: Shape;
  readonly title: string;
  readonly text: string;
  /** What it is about, if it is a name, or where more is said. */
  readonly link?: { readonly href: string; readonly label: string; readonly isName?: boolean } | undefined;
}

/** A time in which servers of the store did not count. Those that overlap are one. */
export interface Outage {
  readonly from: number;
  /** Undefined: it lasts. */
  readonly until: number | undefined;
  readonly servers: readonly string[];
  /** Which have seen it. */
  readonly instances: readonly string[];
  /** Calls for which they did not count; undefined: not known yet. */
  readonly calls: number | undefined;
  /** What these got, in words: of servers with several policies, of each. */
  readonly answers: readonly string[];
}

const ANSWERS: Readonly<Record<NonNullable<OutageMark['policy']>, string>> = {
  error: 'failed',
  allow: 'passed without limits',
  deny: 'were denied',
  local: 'were counted by each instance',
};

/** What calls get that the store does not count: `failed`. Null is no policy. */
export function answerText(policy: OutageMark['policy']): string {
  return policy === null ? 'counted as the first ones' : ANSWERS[policy];
}

export function outagesOf(marks: History['marks']): readonly Outage[] {
  const all: Outage[] = [];
  const ofStore = marks.filter((mark): mark is OutageMark => mark.kind === 'store');
  for (const { at, until, server, calls, policy, instance = '' } of ofStore.sort((one, other) => one.at - other.at)) {
    const last = all.at(-1);
    const isNew = last === undefined || at > (last.until ?? Infinity);
    const before = isNew ? { from: at, until: at, servers: [], instances: [], calls: 0, answers: [] } : last;
    if (!isNew) all.pop();
    all.push({
      from: before.from,
      until: before.until === undefined || until === null ? undefined : Math.max(before.until, until),
      servers: [...new Set([...before.servers, server])],
      instances: [...new Set([...before.instances, instance])],
      calls: before.calls === undefined || calls === null ? undefined : before.calls + calls,
      answers: [...new Set([...before.answers, answerText(policy)])],
    });
  }
  return all;
}

/** `Store down 03:12:40 to 03:16:05, 3 min 25 s`. */
export function outageText({ from, until, servers }: Outage): string {
  const what = servers.length > 1 ? `${servers.length} servers of the store` : 'Store';
  const now = Date.now() / 1000;
  if (until === undefined) return `${what} down since ${clock(from)}, ${duration(now - from)}`;
  return `${what} down ${spanText(from, until)}`;
}

/** How each event is shown; a view of the rules says more of some. */
const EVENTS: Readonly<Record<EventMark['kind'], readonly [Shape, title: string, view?: string, label?: string]>> = {
  start: ['start', 'Instance started'],
  stop: ['stop', 'Instance stopped'],
  reload: ['load', 'Rules loaded', 'changes', 'what changed'],
  rejection: ['reject', 'Rules rejected', 'rejected', 'what is wrong'],
  worker: ['worker', 'Worker replaced'],
};

/** Seconds in which instances that do the same do it together. */
const TOGETHER = 60;

/** The newest come first. */
export function happeningsOf(marks: History['marks']): readonly Happening[] {
  const all: Happening[] = [];
  for (const { from, until, servers, instances, calls, answers } of outagesOf(marks)) {
    const seen = instances.length > 1 ? `, seen by ${instances.length} instances` : '';
    const text = `${servers.join(', ')}${seen}`;
    all.push({ at: from, shape: 'down', title: 'Store stopped answering', text });
    if (until === undefined) continue;
    const cost = !calls ? (calls === 0 ? '; no calls' : '') : `; ${counted(calls, 'call')} ${answers.join(' or ')}`;
    const after = `${text}, after ${duration(until - from)}${cost}`;
    all.push({ at: until, shape: 'back', title: 'Store answers again', text: after });
  }
  for (const [{ kind, at, text, instance = '' }, ...others] of groupsOf(marks)) {
    const [shape, title, view, label] = EVENTS[kind];
    const where = others.length > 0 ? `${others.length + 1} instances` : instance;
    const link = label === undefined ? undefined : { href: addressOf('rules', { view }), label };
    all.push({ at, shape, title, text: listed([text.replaceAll('\n', ' '), where], ' · '), link });
  }
  return all.sort((one, other) => other.at - one.at);
}

/** What each of several instances has done once at the same time, such as a load of the same rules. */
function groupsOf(marks: History['marks']): readonly (readonly [EventMark, ...EventMark[]])[] {
  const groups: [EventMark, ...EventMark[]][] = [];
  for (const mark of marks) {
    if (mark.kind === 'store') continue;
    const group = groups.find(([first, ...others]) => {
      const isOther = ![first, ...others].some(({ instance }) => instance === mark.instance);
      return isOther && whatOf(first) === whatOf(mark) && mark.at - first.at < TOGETHER;
    });
    if (group === undefined) groups.push([mark]);
    else group.push(mark);
  }
  return groups;
}

/** The version of rules may name the folder of their files, which each instance may have elsewhere. */
function whatOf({ kind, text }: EventMark): string {
  return `${kind} ${text.replace(/ version .*@/, ' version @')}`;
}
