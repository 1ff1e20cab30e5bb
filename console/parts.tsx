import { type ComponentChildren, Fragment, type JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Answer, type ApiError, token } from './api';
import { Icon, type Tone } from './icons';
import { percent, shown } from './text';

/** With a class of its own. */
export interface Cell {
  readonly kind: string;
  readonly content: ComponentChildren;
  /** How many columns it takes. */
  readonly span?: number;
}

export interface TableRow {
  readonly key: string | number;
  /** One for each column; a text of callers or files is never more than text. */
  readonly cells: readonly (ComponentChildren | Cell)[];
  readonly kind?: string | undefined;
}

interface TableProps {
  readonly title: string;
  /** Titles: a column of numbers has a colon, one that narrow windows hide `!` at its end, also wider ones `!!`. */
  readonly columns: readonly (string | Cell)[];
  readonly rows: readonly TableRow[];
  /** How the rows are arranged in narrow windows: `stack` in two lines each. */
  readonly kind?: string;
  /** What is said when there are no rows. */
  readonly empty?: string;
}

/** A table, which scrolls by itself where it is wider than its place. The first cell of a row is its title. */
export function Table({ title, columns, rows, kind = '', empty = 'None.' }: TableProps) {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  const titles = columns.map((column) => (typeof column === 'string' ? titleOf(column) : column));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, table`}>
      <table class={kind}>
        <thead>
          <tr>
            {titles.map((column, index) => (
              <th key={index} scope="col" class={column.kind}>
                {column.content}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells, kind: kindOfRow }) => (
            <tr key={key} class={kindOfRow}>
              {cells.map((each, index) => {
                const cell: Cell = isCell(each) ? each : { ...titles[index]!, content: each };
                return index === 0 ? (
                  <th key={index} scope="row" class={cell.kind} colSpan={cell.span}>
                    {shown(cell.content)}
                  </th>
                ) : (
                  <td key={index} class={cell.kind}>
                    {shown(cell.content)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The title of a column, as {@link TableProps.columns} has it. */
export function titleOf(column: string): Cell {
  const hidden = column.endsWith('!!') ? 'roomy' : column.endsWith('!') ? 'wide' : '';
  return { kind: column.includes(':') ? `number ${hidden}` : hidden, content: column.replaceAll(/[:!]/g, '') };
}

function isCell(cell: ComponentChildren | Cell): cell is Cell {
  return typeof cell === 'object' && cell !== null && 'content' in cell;
}

/** Names with their values; those without a value are left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value], index) =>
        value === undefined || value === '' ? undefined : (
          <Fragment key={index}>
            <dt>{name}</dt>
            <dd>{shown(value)}</dd>
          </Fragment>
        ),
      )}
    </dl>
  );
}

interface NamedProps {
  readonly tone?: Tone;
  readonly name: string;
  readonly href?: string;
  readonly sub?: ComponentChildren;
  /** Whether `j` and `k` choose it. */
  readonly isRow?: boolean;
}

/** What something is called, in a second line what it is. */
export function Named({ tone, name, href, sub, isRow = false }: NamedProps) {
  return (
    <>
      <a class={`host ${tone ?? 'who'}`} {...(href !== undefined && { href })} data-row={isRow ? '' : undefined}>
        {tone !== undefined && <Icon name={tone} />}
        <b>{shown(name)}</b>
      </a>
      {sub !== undefined && <div class="sub">{shown(sub)}</div>}
    </>
  );
}

interface CardProps {
  readonly title: string;
  /** Columns of twelve. */
  readonly columns: 3 | 4 | 8 | 9 | 12;
  /** Next to the title, and at the end of its line. */
  readonly note?: ComponentChildren;
  readonly end?: ComponentChildren;
  readonly kind?: string;
  readonly children: ComponentChildren;
}

/** A part of a page. */
export function Card({ title, columns, note, end, kind = '', children }: CardProps) {
  return (
    <section class={`card c${columns} ${kind}`} aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        {note && <span class="small quiet">{shown(note)}</span>}
        {end && <span class="small quiet end-of-line">{end}</span>}
      </div>
      {children}
    </section>
  );
}

/** A state with its shape, in words. */
export function Pill({ tone, text }: { readonly tone: Tone; readonly text: string }) {
  return (
    <span class={`pill ${tone}`}>
      <Icon name={tone} />
      {text}
    </span>
  );
}

/** A share as a bar, whose number is next to it. In shadow mode, nothing was limited. */
export function Share({ share, kind = '' }: { readonly share: number | undefined; readonly kind?: string }) {
  if (!share) return <span class="faint">{percent(share)}</span>;
  return (
    <span class={`share ${kind}`}>
      <Bar share={share} />
      <b>{percent(share)}</b>
    </span>
  );
}

/** How much of something is used. */
export function Bar({ share, isFull = false }: { readonly share: number; readonly isFull?: boolean }) {
  return (
    <svg class={`bar ${isFull ? 'full' : ''}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="all" width="100" height="6" />
      <rect width={Math.max(share > 0 ? 3 : 0, Math.min(100, share))} height="6" />
    </svg>
  );
}

interface NoticeProps {
  readonly tone: Tone;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
  /** What can be done. */
  readonly actions?: ComponentChildren;
}

/** What matters most on a page. */
export function Notice({ tone, title, children, actions }: NoticeProps) {
  return (
    <div class={`notice ${tone} c12`} role="status">
      <Icon name={tone} />
      <div class="says">
        <p class="title">{shown(title)}</p>
        {children}
      </div>
      {actions && <p class="actions">{actions}</p>}
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  /** Each value with what it is called. */
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly value: string;
  readonly onChoose: (value: string) => void;
}

/** One of a few: one stop of the keyboard, whose arrow keys choose. */
export function Choice({ label, options, value, onChoose }: ChoiceProps) {
  function onKeyDown(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = options.findIndex(([each]) => each === value) + (by ?? 0);
    if (by === undefined || options[at] === undefined) return;
    event.preventDefault();
    (event.currentTarget as HTMLElement).querySelectorAll('button')[at]!.focus();
    onChoose(options[at][0]);
  }
  return (
    <span class="choice" role="group" aria-label={label} onKeyDown={onKeyDown}>
      {options.map(([each, text]) => {
        const isChosen = each === value;
        return (
          <button key={each} aria-pressed={isChosen} tabIndex={isChosen ? 0 : -1} onClick={() => onChoose(each)}>
            {text}
          </button>
        );
      })}
    </span>
  );
}

interface FieldProps extends Omit<JSX.IntrinsicElements['input'], 'onInput'> {
  readonly label: string;
  /** Values that can be chosen. */
  readonly offered?: readonly string[];
  readonly onText: (text: string) => void;
}

/** An input after its label. Its attributes lose their type, which is a union of those of each `type`. */
export function Field({ label, offered = [], onText, ...input }: FieldProps) {
  const list = offered.length === 0 ? undefined : `of-${label}`;
  return (
    <label>
      <span>{label}</span>{' '}
      <input {...(input as object)} list={list} onInput={(event) => onText(event.currentTarget.value)} />
      {list !== undefined && <Offered id={list} values={offered} />}
    </label>
  );
}

export function Offered({ id, values }: { readonly id: string; readonly values: readonly string[] }) {
  return (
    <datalist id={id}>
      {values.map((each) => (
        <option key={each} value={each} />
      ))}
    </datalist>
  );
}

interface SelectProps extends Pick<ChoiceProps, 'label' | 'options' | 'value'> {
  readonly required?: boolean;
  readonly onText: (value: string) => void;
}

/** A list of which one is chosen, after its label. */
export function Select({ label, options, onText, ...select }: SelectProps) {
  return (
    <label>
      <span>{label}</span>{' '}
      <select {...select} onInput={(event) => onText(event.currentTarget.value)}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SearchProps {
  readonly label: string;
  readonly value: string;
  /** How many are found: `3 of 7 callers`. */
  readonly found: string;
  readonly onText: (text: string) => void;
  readonly children?: ComponentChildren;
}

/** What a page is searched by. */
export function Search({ label, value, found, onText, children }: SearchProps) {
  return (
    <div class="head tools">
      <Field label={label} type="search" value={value} onText={onText} />
      {children}
      <span role="status" class="small quiet">
        {found}
      </span>
    </div>
  );
}

/** Asks for the operator token, which is forgotten when the page is left. */
export function TokenForm({ why, isAsked = false }: { readonly why: string; readonly isAsked?: boolean }) {
  const [text, setText] = useState('');
  const form = useRef<HTMLFormElement>(null);
  // Before the next key: an effect would be later.
  useLayoutEffect(() => {
    if (isAsked) form.current!.querySelector('input')!.focus();
  }, [isAsked]);
  function submit(event: Event): void {
    event.preventDefault();
    token.set(text.trim());
    // The form goes.
    document.querySelector('main')!.focus({ preventScroll: true });
  }
  return (
    <form ref={form} class="notice none c12 token" onSubmit={submit}>
      <Icon name="key" />
      <div class="says">
        <p class="title">{why}</p>
        <p class="quiet">It is the value of OPERATOR_TOKEN, and kept until this page is closed or loaded again.</p>
      </div>
      <span class="actions">
        <Field label="Operator token" type="password" autocomplete="off" required value={text} onText={setText} />
        <button class="main">Use it</button>
      </span>
    </form>
  );
}

/** Why there is no answer, and what to do. */
export function Failure({ error }: { readonly error: ApiError }) {
  if (error.status === 401 && token.value === '') {
    return <TokenForm why="The operator token is needed to see this." />;
  }
  return (
    <p class="notice red c12" role="alert">
      <Icon name="red" />
      <span>{error.message}.</span>
    </p>
  );
}

/** An answer when it is there; the last one stays while there is an error. */
export function answered<T>({ value, error }: Answer<T>, show: (value: T) => ComponentChildren) {
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {value !== undefined && show(value)}
      {value === undefined && error === undefined && <p class="empty">Loading…</p>}
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
    <button onClick={() => void copy()}>
      <span role="status">{isCopied ? 'Copied' : label}</span>
    </button>
  );
}

interface DialogProps extends Pick<CardProps, 'title' | 'children'> {
  readonly onClose: () => void;
}

/** Over the page; Escape closes it, and its first control is chosen. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    // What was chosen before is chosen again.
    return () => element.close();
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}
