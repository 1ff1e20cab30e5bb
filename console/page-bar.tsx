import type { ComponentChildren } from 'preact';
import { RANGES } from './fleet-answer';
import { Choice } from './parts';
import { replaceParameters, route } from './route';
import { useStore } from './store';

interface PageBarProps {
  readonly title: string;
  readonly text?: ComponentChildren;
  /** Whether the page has charts, whose time can be chosen. */
  readonly hasRange?: boolean;
  readonly children?: ComponentChildren;
}

/** The title of a page, and what is chosen for all of it. */
export function PageBar({ title, text, hasRange = false, children }: PageBarProps) {
  return (
    <div class="page-bar">
      <h1>{title}</h1>
      {text !== undefined && <span class="quiet sub">{text}</span>}
      {children}
      {hasRange && <RangeChoice />}
    </div>
  );
}

function RangeChoice() {
  const chosen = useStore(route).parameters.get('range') ?? '';
  return (
    <span class="end-of-line">
      <Choice
        label="Time range"
        options={Object.entries(RANGES).map(([value, [text]]) => [value, text])}
        value={chosen}
        onChoose={(range) => replaceParameters({ range })}
      />
    </span>
  );
}
