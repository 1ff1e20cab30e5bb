import type { ComponentChildren } from 'preact';
import { RANGES } from './fleet-answer';
import { Choice } from './parts';
import { replaceParameters, useParameter } from './route';

interface PageBarProps {
  readonly title: string;
  readonly text?: ComponentChildren;
  /** Whether the page has charts, whose time can be chosen. */
  readonly hasRange?: boolean;
  readonly children?: ComponentChildren;
}

/** The title of a page, and what is chosen for all of it. */
export function PageBar({ title, text, hasRange = false, children }: PageBarProps) {
  const range = useParameter('range');
  const options = Object.entries(RANGES).map(([value, [name]]) => [value, name] as const);
  function choose(chosen: string): void {
    replaceParameters({ range: chosen });
  }
  return (
    <div class="page-bar">
      <h1>{title}</h1>
      {text && <span class="quiet sub">{text}</span>}
      {children}
      {hasRange && <Choice label="Time range" options={options} value={range} onChoose={choose} />}
    </div>
  );
}
