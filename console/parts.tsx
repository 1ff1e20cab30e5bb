import type { ComponentChildren, JSX, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { excerpt } from '../src/text/excerpt';
import { type Answer, type ApiError, token } from './api';

/** A line of the last values, of which some may be missing. The numbers next to it say the same. */
export function Sparkline({ values }: { readonly values: readonly (number | null)[] }) {
  const [width, height] = [360, 24];
  const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
  let path = '';
  let isDrawing = false;
  values.forEach((value, index) => {
    if (value !== null) {
      const x = width - (values.length - 1 - index);
      path += `${isDrawing ? 'L' : 'M'}${x} ${(height - 1 - (value / most) * (height - 2)).toFixed(1)}`;
    }
    isDrawing = value !== null;
  });
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

interface TableProps {
  readonly title: string;
  /** What is above the table instead of its title. */
  readonly heading?: VNode;
  /** Titles: a column of numbers ends with a colon, one that narrow windows hide with an exclamation mark. */
  readonly columns: readonly string[];
  readonly children: ComponentChildren;
}

/** A table that scrolls by itself when the page is narrow. */
export function Table({ title, heading = <h2>{title}</h2>, columns, children }: TableProps) {
  return (
    <section>
      {heading}
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  key={column}
                  scope="col"
                  class={`${column.includes(':') ? 'number' : ''} ${column.endsWith('!') ? 'wide' : ''}`}
                >
                  {column.replaceAll(/[:!]/g, '')}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      </div>
    </section>
  );
}

/** Drawn in 16 pixels. */
const ICONS = {
  explain: 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13M6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.3M8 11.3v.4',
  counter: 'M2 14V9h3v5zM6.5 14V5h3v9zM11 14V2h3v12z',
  clear: 'M3 4h10M6.5 4V2h3v2M4.5 4l.6 10h5.8l.6-10M6.8 6.5v5M9.2 6.5v5',
} as const;

interface IconProps {
  readonly icon: keyof typeof ICONS;
  /** What the link leads to: its name, also when it is pointed at. */
  readonly label: string;
  readonly href: string;
}

/** A link as an icon. */
export function Icon({ icon, label, href }: IconProps) {
  const name = excerpt(label, 80);
  return (
    <a class="icon" href={href} title={name} aria-label={name}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d={ICONS[icon]} />
      </svg>
    </a>
  );
}

/** Pixels of a row of a list. */
const ROW_HEIGHT = 44;
/** Rows above and below those that are visible. */
const MORE_ROWS = 6;
/** Elements are used again for other rows, which costs less than new ones; more are never visible. */
const ELEMENTS = 256;

interface ListProps {
  readonly label: string;
  readonly count: number;
  readonly render: (index: number) => VNode;
  /** The row that is chosen; -1: none. */
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
}

/** A list of any length, of which only the visible rows exist. The arrow keys choose a row. */
export function LongList({ label, count, render, chosen, onChoose }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = box.current!;
    function look(): void {
      setView({ top: element.scrollTop, height: element.clientHeight });
    }
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    const [top, bottom] = [chosen * ROW_HEIGHT, (chosen + 1) * ROW_HEIGHT];
    if (chosen < 0) return;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [chosen]);
  const page = Math.max(1, Math.floor(view.height / ROW_HEIGHT) - 1);
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -Infinity,
    End: Infinity,
  };
  function onKeyDown(event: KeyboardEvent): void {
    const step = steps[event.key];
    if (step === undefined || count === 0) return;
    event.preventDefault();
    onChoose(Math.min(count - 1, Math.max(0, chosen + step)));
  }
  const first = Math.max(0, Math.floor(view.top / ROW_HEIGHT) - MORE_ROWS);
  const last = Math.min(count, Math.ceil((view.top + view.height) / ROW_HEIGHT) + MORE_ROWS, first + ELEMENTS);
  const rows: VNode[] = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div
        key={index % ELEMENTS}
        id={`row-${index}`}
        class="row"
        role="option"
        aria-selected={index === chosen}
        aria-setsize={count}
        aria-posinset={index + 1}
        style={{ top: `${index * ROW_HEIGHT}px` }}
        onClick={() => onChoose(index)}
      >
        {render(index)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="list"
      role="listbox"
      aria-label={label}
      aria-activedescendant={chosen >= first && chosen < last ? `row-${chosen}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" style={{ height: `${count * ROW_HEIGHT}px` }}>
        {rows}
      </div>
    </div>
  );
}

interface FieldProps extends Omit<JSX.IntrinsicElements['input'], 'onInput'> {
  readonly label: string;
  readonly onText: (text: string) => void;
}

/** An input after its label. Its attributes lose their type, which is a union of those of each `type`. */
export function Field({ label, onText, ...input }: FieldProps) {
  return (
    <label>
      {label} <input {...(input as object)} onInput={(event) => onText(event.currentTarget.value)} />
    </label>
  );
}

/** Asks for the operator token, which is forgotten when the page is left. */
export function TokenForm({ why }: { readonly why: string }) {
  const [text, setText] = useState('');
  return (
    <form
      class="notice"
      onSubmit={(event) => {
        event.preventDefault();
        token.set(text.trim());
      }}
    >
      <p>{why}</p>
      <Field label="Operator token" type="password" autocomplete="off" required value={text} onText={setText} />{' '}
      <button>Use it</button>
      <p class="hint">It is the value of OPERATOR_TOKEN, and kept until this page is closed or loaded again.</p>
    </form>
  );
}

/** Why there is no answer, and what to do. */
export function Failure({ error }: { readonly error: ApiError }) {
  if (error.status === 401 && token.value === '') {
    return <TokenForm why="The operator token is needed to see this." />;
  }
  return (
    <p class="notice bad" role="alert">
      {error.message}.
    </p>
  );
}

/** Shows an answer when it is there; the last one stays while there is an error. */
export function Answered<T>({ answer, show }: { readonly answer: Answer<T>; readonly show: (value: T) => VNode }) {
  const { value, error } = answer;
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {value !== undefined && show(value)}
      {value === undefined && error === undefined && <p class="hint">Loading…</p>}
    </>
  );
}

/**
 * Copies a text. Without a secure context, as with http and another host than localhost, there is no clipboard to write
 * to.
 */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    if (navigator.clipboard === undefined) {
      const area = document.createElement('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    } else await navigator.clipboard.writeText(text);
    setCopied(true);
  }
  return (
    <button type="button" onClick={() => void copy()}>
      <span role="status">{isCopied ? 'Copied' : label}</span>
    </button>
  );
}

interface ConfirmationProps {
  readonly title: string;
  readonly action: string;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
  readonly children: ComponentChildren;
}

/** Asks before something is changed. Escape cancels. */
export function Confirmation({ title, action, onConfirm, onCancel, children }: ConfirmationProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onCancel}>
      <h2>{title}</h2>
      {children}
      <button type="button" class="danger" onClick={onConfirm}>
        {action}
      </button>{' '}
      <button type="button" onClick={onCancel}>
        Cancel
      </button>
    </dialog>
  );
}
