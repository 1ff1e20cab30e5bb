import type { HealthState } from '../src/operators/live-answers';

/** A state of a part, of a call or of a caller. Each has a shape of its own, so that its colour need not be seen. */
export type Tone = 'well' | 'amber' | 'red' | 'over' | 'none' | 'lock';

export const TONES: Readonly<Record<HealthState, Tone>> = {
  green: 'well',
  amber: 'amber',
  red: 'red',
  unknown: 'none',
};

/** In words. */
export const STATES: Readonly<Record<Tone, string>> = {
  ...{ well: 'well', amber: 'impaired', red: 'failing', none: 'not known', over: 'limited', lock: 'limit of 0' },
};

/** Drawn in 16 pixels: what is filled, and what is drawn on it or alone. */
const SHAPES = {
  well: ['M8 .5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 0 0 0-15z', 'M4.6 8.3l2.3 2.3 4.5-4.9'],
  amber: ['M8 .9l7.4 13.2a.6.6 0 0 1-.5.9H1.1a.6.6 0 0 1-.5-.9z', 'M8 5.6v4.2M8 12v.6'],
  red: ['M5 .7h6L15.3 5v6L11 15.3H5L.7 11V5z', 'M5.4 5.4l5.2 5.2m0-5.2l-5.2 5.2'],
  over: ['M8 .5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 0 0 0-15z', 'M4.3 8h7.4'],
  lock: [
    'M3.5 7h9a1.5 1.5 0 0 1 1.5 1.500v5a1.5 1.5 0 0 1-1.5 1.500h-9a1.5 1.5 0 0 1-1.5-1.500v-5a1.5 1.5 0 0 1 1.5-1.500z',
    '',
  ],
  none: ['', 'M5 8h6'],
} as const;

const LINES = {
  find: 'M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.5 10.5L14 14',
  next: 'M6 4l4 4-4 4',
  theme: 'M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12M8 2v12M10.5 3v10',
  key: 'M5 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6M8 8h6.5M12 8v2.5',
  live: 'M1.5 8h3l2-5 3 10 2-5h3',
  callers: 'M8 2.500a2.7 2.7 0 1 0 0 5.400a2.7 2.7 0 0 0 0-5.400M2.5 14c.4-3.2 2.5-4.4 5.5-4.400s5.1 1.2 5.5 4.4',
  rules: 'M2 4h2.500m2.5 0h7M4.5 8h2.500m2.5 0h4.500M4.5 12h2.500m2.5 0h4.5',
  fleet: 'M2.5 2.500h11v4.500h-11zM2.5 9h11v4.500h-11z',
  activity: 'M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12M8 4.500v3.500l2.5 1.5',
  settings: 'M2 5h5.500m4 0h2.500M7.5 3.500v3h4v-3zM2 11h1.500m4 0h6.500M3.5 9.500v3h4v-3z',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
} as const;

export type IconName = Tone | keyof typeof LINES;

/** A picture that says nothing that is not said in words next to it. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <Drawing name={name} />
    </svg>
  );
}

function Drawing({ name }: { readonly name: IconName }) {
  if (name in LINES) return <path class="stroke" d={LINES[name as keyof typeof LINES]} />;
  const [filled, drawn] = SHAPES[name as Tone];
  return (
    <>
      {filled !== '' && <path fill="currentColor" d={filled} />}
      {name === 'none' && <circle class="stroke" cx="8" cy="8" r="6.8" stroke-dasharray="3 2" />}
      {name === 'lock' && <path class="stroke" d="M4.8 7V5a3.2 3.2 0 0 1 6.4 0v2" />}
      {drawn !== '' && <path class={name === 'none' ? 'stroke' : 'stroke on'} d={drawn} />}
    </>
  );
}

/** What a mark in charts and lists stands for. */
export type Shape = 'down' | 'back' | 'load' | 'reject' | 'start' | 'stop' | 'worker' | 'change' | 'limited';

/** Drawn in 12 pixels. */
const MARKS: Readonly<Record<Shape, string>> = {
  down: 'M1 1h10v10h-10z',
  back: 'M2 2h8v8h-8z',
  load: 'M6 .3L11.7 6 6 11.7.3 6z',
  reject: 'M.4 1.5h11.2L6 11.5z',
  start: 'M6 1.600a4.4 4.4 0 1 0 0 8.800a4.4 4.4 0 0 0 0-8.800z',
  stop: 'M1.5 6a4.5 4.5 0 0 1 9 0a4.5 4.5 0 0 1 -9 0zM4 4l4 4M8 4l-4 4',
  worker: 'M6 1.600a4.4 4.4 0 1 0 0 8.800a4.4 4.4 0 0 0 0-8.800zM6 4v4',
  change: 'M6 1.500v9M1.5 6h9',
  limited: 'M6 .8a5.2 5.2 0 1 0 0 10.400a5.2 5.2 0 0 0 0-10.400zM3.2 5.400v1.200h5.600v-1.200z',
};

export function Mark({ shape }: { readonly shape: Shape }) {
  return <path class={`mark ${shape}`} d={MARKS[shape]} />;
}

/** A mark in a list. */
export function MarkIcon({ shape }: { readonly shape: Shape }) {
  return (
    <svg class="mark-icon" viewBox="0 0 12 12" aria-hidden="true">
      <Mark shape={shape} />
    </svg>
  );
}
